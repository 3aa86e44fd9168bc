//! Makes a branch's commits again on top of another one, without a checkout.

use crate::command::split_nul;
use crate::door::Door;
use crate::land::{Landing, Way};
use crate::{Error, Identity, Kind, Oid, Signature};

/// Who wrote a commit, and when, as git stores it.
pub(crate) struct Author {
    pub identity: Identity,
    pub date: String,
}

impl Door {
    /// Works out `branch` with its own commits made again on top of `onto`. Moves nothing: that is for
    /// [`Door::land`].
    ///
    /// Authors, their dates and the messages stay; the committer is the signature's. Merges and commits
    /// that change nothing any more are left out.
    ///
    /// # Errors
    ///
    /// [`Kind::Conflict`] with the files of the first commit that does not fit, [`Kind::NoMergeBase`],
    /// [`Kind::Shallow`], [`Kind::Unknown`].
    pub fn plan_rebase(&self, branch: &str, onto: &Oid, signature: &Signature) -> Result<Landing, Error> {
        const DOING: &str = "working out a rebase";
        let missing = || {
            self.error(
                DOING,
                Kind::Unknown {
                    name: branch.to_owned(),
                },
            )
        };
        let old = self.branch(branch)?.ok_or_else(missing)?;
        let landing = |new: Oid, way| Landing {
            branch: branch.to_owned(),
            old: old.clone(),
            new,
            way,
        };
        if self.is_known_ancestor(onto, &old)? {
            return Ok(landing(old.clone(), Way::AlreadyThere));
        }
        if self.is_known_ancestor(&old, onto)? {
            return Ok(landing(onto.clone(), Way::FastForward));
        }
        let related = self
            .git(DOING)
            .args(["merge-base", old.as_str(), onto.as_str()])
            .output()?;
        if !related.status.success() {
            let shallow = self.repository().is_shallow();
            let kind = if shallow { Kind::Shallow } else { Kind::NoMergeBase };
            return Err(self.error(DOING, kind).with_stderr(&related.stderr));
        }
        let git = self
            .git(DOING)
            .args(["rev-list", "--reverse", "--topo-order", "--no-merges"]);
        let out = git.arg(format!("{onto}..{old}")).arg("--").run()?;
        let mut tip = onto.clone();
        for commit in out.split(|b| *b == b'\n').filter_map(Oid::from_bytes) {
            tip = self.pick(&commit, tip, signature)?;
        }
        Ok(landing(tip, Way::Rebase))
    }

    fn pick(&self, commit: &Oid, onto: Oid, signature: &Signature) -> Result<Oid, Error> {
        const DOING: &str = "making a commit again";
        let format = "--format=%P%x00%an%x00%ae%x00%ad%x00%B%x00";
        let git = self
            .git(DOING)
            .args(["show", "--no-patch", "--no-show-signature", "--date=raw", format]);
        let out = git.arg(commit.as_str()).run()?;
        let fields: Vec<&[u8]> = split_nul(&out).collect();
        let [parent, name, email, date, message, ..] = fields.as_slice() else {
            return Err(self.garbled(DOING));
        };
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let Some(parent) = Oid::from_bytes(parent) else {
            return Err(self.error(DOING, Kind::NoMergeBase));
        };
        let tree = self.merge_trees(DOING, Some(&parent), &onto, commit)?;
        if tree == self.tree(&onto)? {
            return Ok(onto);
        }
        let identity = Identity {
            name: text(name),
            email: text(email),
        };
        let author = Author {
            identity,
            date: format!("@{}", text(date)),
        };
        self.commit_tree(&tree, &[&onto], &text(message), signature, Some(&author))
    }
}
