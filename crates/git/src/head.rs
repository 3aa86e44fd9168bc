//! Where a checkout stands: from files where they tell, else from git.

use crate::command::failure;
use crate::door::Door;
use crate::{Error, Head, Kind, Oid};

impl Door {
    /// Returns where the checkout stands; starts git only when files cannot tell.
    ///
    /// # Errors
    ///
    /// Whatever keeps git from answering.
    pub fn head(&self) -> Result<Head, Error> {
        if let Some(head) = self.repository().head_from_files() {
            return Ok(head);
        }
        const DOING: &str = "reading HEAD";
        let output = self.git(DOING).args(["symbolic-ref", "-q", "HEAD"]).output()?;
        let oid = self.resolve("HEAD")?;
        let name = String::from_utf8_lossy(&output.stdout).trim_end().to_owned();
        match (output.status.success(), oid) {
            (true, Some(at)) => Ok(Head::Branch {
                name: short(&name),
                at,
            }),
            (true, None) => Ok(Head::Unborn { name: short(&name) }),
            (false, Some(at)) => Ok(Head::Detached(at)),
            (false, None) => Err(self
                .error(DOING, Kind::NotARepository)
                .with_stderr(&output.stderr)),
        }
    }

    /// Returns the commit that a name stands for; `None` when it stands for none.
    ///
    /// # Errors
    ///
    /// [`Kind::BadName`] for a name that git would take as an option.
    pub fn resolve(&self, name: &str) -> Result<Option<Oid>, Error> {
        const DOING: &str = "resolving a name";
        match self.repository().ref_from_files(name) {
            Ok(Some(oid)) => return Ok(Some(oid)),
            // Branches are shared by all worktrees and have no other spelling: what is in no file is not.
            Ok(None) if name.starts_with("refs/heads/") => return Ok(None),
            _ => {}
        }
        if name.starts_with('-') || name.contains('\0') {
            return Err(self.error(
                DOING,
                Kind::BadName {
                    name: name.to_owned(),
                },
            ));
        }
        let name = format!("{name}^{{commit}}");
        let output = self
            .git(DOING)
            .args(["rev-parse", "--verify", "--quiet", &name])
            .output()?;
        match output.status.code() {
            Some(0) => Oid::from_bytes(&output.stdout)
                .map(Some)
                .ok_or_else(|| self.garbled(DOING)),
            Some(1) => Ok(None),
            _ if output.stderr.is_empty() => Ok(None),
            _ => Err(failure(DOING, self.repository().folder(), &output)),
        }
    }
}

fn short(name: &str) -> String {
    name.strip_prefix("refs/heads/").unwrap_or(name).to_owned()
}
