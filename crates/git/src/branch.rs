//! Branches: made, moved by compare-and-swap, deleted only when nothing is lost.

use crate::command::split_nul;
use crate::door::Door;
use crate::{Error, Kind, Oid};

impl Door {
    /// Returns the tip of a branch; `None` when there is no such branch.
    ///
    /// # Errors
    ///
    /// [`Kind::BadName`].
    pub fn branch(&self, name: &str) -> Result<Option<Oid>, Error> {
        self.resolve(&self.branch_ref(name)?)
    }

    /// Lists branches whose name starts with `prefix` up to a `/` or the end, with their tips.
    ///
    /// # Errors
    ///
    /// [`Kind::BadName`].
    pub fn branches(&self, prefix: &str) -> Result<Vec<(String, Oid)>, Error> {
        const DOING: &str = "listing branches";
        let pattern = match prefix.trim_end_matches('/') {
            "" => "refs/heads/".to_owned(),
            prefix => self.branch_ref(prefix)?,
        };
        let format = "--format=%(objectname)%00%(refname:lstrip=2)%00";
        let out = self.git(DOING).args(["for-each-ref", format, &pattern]).run()?;
        let tokens: Vec<&[u8]> = split_nul(&out).collect();
        let pair = |pair: &[&[u8]]| {
            let oid = Oid::from_bytes(pair.first()?.trim_ascii_start())?;
            Some((String::from_utf8_lossy(pair.get(1)?).into_owned(), oid))
        };
        tokens
            .chunks_exact(2)
            .map(|chunk| pair(chunk).ok_or_else(|| self.garbled(DOING)))
            .collect()
    }

    /// Makes a branch at a commit.
    ///
    /// # Errors
    ///
    /// [`Kind::BranchExists`], [`Kind::BadName`].
    pub fn branch_create(&self, name: &str, at: &Oid) -> Result<(), Error> {
        const DOING: &str = "making a branch";
        let full = self.branch_ref(name)?;
        match self.move_ref(
            DOING,
            &full,
            at,
            &at.zero(),
            &format!("branch: Created from {at}"),
        ) {
            Err(e) if matches!(e.kind(), Kind::NonFastForward { .. }) => Err(self.error(
                DOING,
                Kind::BranchExists {
                    name: name.to_owned(),
                },
            )),
            made => made,
        }
    }

    /// Deletes a branch that stands at `expected` and whose commits are all in `landed_in`.
    ///
    /// One that is already gone is fine.
    ///
    /// # Errors
    ///
    /// [`Kind::BranchCheckedOut`], [`Kind::Unlanded`], [`Kind::NonFastForward`] when it moved meanwhile.
    pub fn branch_delete(&self, name: &str, expected: &Oid, landed_in: &str) -> Result<(), Error> {
        const DOING: &str = "deleting a branch";
        let full = self.branch_ref(name)?;
        if self.branch(name)?.is_none() {
            return Ok(());
        }
        if let Some(at) = self.checked_out_at(name)? {
            return Err(self.error(
                DOING,
                Kind::BranchCheckedOut {
                    name: name.to_owned(),
                    at,
                },
            ));
        }
        if !self.is_landed(expected, landed_in)? {
            return Err(self.error(
                DOING,
                Kind::Unlanded {
                    head: expected.clone(),
                },
            ));
        }
        let out = self
            .git(DOING)
            .args(["update-ref", "-d", &full, expected.as_str()])
            .output()?;
        self.moved(DOING, &full, &out)
    }

    /// Moves a ref from `old` to `new`, or not at all; a null `old` means that it must not exist.
    ///
    /// # Errors
    ///
    /// [`Kind::NonFastForward`] when it is not at `old` (any more).
    pub(crate) fn move_ref(
        &self,
        doing: &'static str,
        full: &str,
        new: &Oid,
        old: &Oid,
        why: &str,
    ) -> Result<(), Error> {
        let git = self.git(doing);
        let git = if self.is_coordinator() {
            git
        } else {
            git.without_hooks()
        };
        let out = git
            .args([
                "update-ref",
                "--create-reflog",
                "-m",
                why,
                full,
                new.as_str(),
                old.as_str(),
            ])
            .output()?;
        self.moved(doing, full, &out)
    }

    fn moved(&self, doing: &'static str, full: &str, out: &std::process::Output) -> Result<(), Error> {
        if out.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&out.stderr);
        let lost = [
            "but expected",
            "reference already exists",
            "unable to resolve reference",
            "is missing",
        ];
        if lost.iter().any(|words| said.contains(words)) {
            let kind = Kind::NonFastForward {
                name: full.to_owned(),
            };
            return Err(self.error(doing, kind).with_stderr(&out.stderr));
        }
        Err(crate::command::failure(doing, self.repository().folder(), out))
    }

    /// Tells whether `below` is `above` or in its history.
    ///
    /// # Errors
    ///
    /// [`Kind::Shallow`] where a cut-off history cannot tell, [`Kind::Unknown`] for a commit that is not there.
    pub fn is_ancestor(&self, below: &Oid, above: &Oid) -> Result<bool, Error> {
        const DOING: &str = "looking for a commit in a history";
        match self.is_known_ancestor(below, above) {
            Ok(false) if self.repository().is_shallow() => Err(self.error(DOING, Kind::Shallow)),
            Err(e) if self.repository().is_shallow() && matches!(e.kind(), Kind::Unknown { .. }) => Err(self
                .error(DOING, Kind::Shallow)
                .with_stderr(e.stderr().as_bytes())),
            answer => answer,
        }
    }

    /// Tells whether the history that is here says so; where it is cut off, false is no proof.
    pub(crate) fn is_known_ancestor(&self, below: &Oid, above: &Oid) -> Result<bool, Error> {
        const DOING: &str = "looking for a commit in a history";
        if below == above {
            return Ok(true);
        }
        let args = ["merge-base", "--is-ancestor", below.as_str(), above.as_str()];
        let out = self.git(DOING).args(args).output()?;
        match out.status.code() {
            Some(0) => Ok(true),
            Some(1) => Ok(false),
            _ => Err(self.incomparable(DOING, below, &out)),
        }
    }

    /// Returns the newest commit that is in both histories, as far as they are here.
    ///
    /// # Errors
    ///
    /// [`Kind::Unknown`] where `one` is not there.
    pub(crate) fn merge_base(&self, one: &Oid, other: &Oid) -> Result<Option<Oid>, Error> {
        const DOING: &str = "looking for what two histories share";
        if one == other {
            return Ok(Some(one.clone()));
        }
        let args = ["merge-base", one.as_str(), other.as_str()];
        let out = self.git(DOING).args(args).output()?;
        match out.status.code() {
            Some(0) => Oid::from_bytes(&out.stdout)
                .map(Some)
                .ok_or_else(|| self.garbled(DOING)),
            Some(1) => Ok(None),
            _ => Err(self.incomparable(DOING, one, &out)),
        }
    }

    /// Names what kept git from comparing a commit with another.
    fn incomparable(&self, doing: &'static str, commit: &Oid, out: &std::process::Output) -> Error {
        match self.resolve(commit.as_str()) {
            Ok(None) if out.status.code() == Some(128) => {
                let name = commit.to_string();
                self.error(doing, Kind::Unknown { name }).with_stderr(&out.stderr)
            }
            Ok(_) => crate::command::failure(doing, self.repository().folder(), out),
            Err(error) => error,
        }
    }

    /// Tells whether a commit is in the history of a ref. A ref that does not exist holds nothing.
    pub(crate) fn is_landed(&self, commit: &Oid, landed_in: &str) -> Result<bool, Error> {
        let full = if landed_in.starts_with("refs/") {
            landed_in.to_owned()
        } else {
            self.branch_ref(landed_in)?
        };
        match self.resolve(&full)? {
            Some(tip) => match self.is_ancestor(commit, &tip) {
                // Where history is cut off nothing proves it: keep the work.
                Err(e) if matches!(e.kind(), Kind::Shallow) => Ok(false),
                answer => answer,
            },
            None => Ok(false),
        }
    }

    /// Spells a branch's name in full, if git would accept it (`git check-ref-format`).
    pub(crate) fn branch_ref(&self, name: &str) -> Result<String, Error> {
        let bad_char = |c: char| c.is_ascii_control() || " ~^:?*[\\".contains(c);
        let bad_part = |part: &str| part.is_empty() || part.starts_with('.') || part.ends_with(".lock");
        let bad = name.starts_with('-')
            || name == "@"
            || name == "HEAD"
            || name.ends_with('.')
            || name.contains("..")
            || name.contains("@{")
            || name.chars().any(bad_char)
            || name.split('/').any(bad_part);
        match bad {
            true => Err(self.error(
                "naming a branch",
                Kind::BadName {
                    name: name.to_owned(),
                },
            )),
            false => Ok(format!("refs/heads/{name}")),
        }
    }
}
