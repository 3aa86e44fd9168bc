//! Checkouts to try something in: of exactly one tree, on no branch, thrown away whatever they hold.

use crate::door::Door;
use crate::{Error, Oid, Repository};
use std::path::Path;

impl Door {
    /// Makes a checkout at `at` whose files are exactly `tree` and whose head is `head`, on no branch.
    ///
    /// No hook runs and no ref moves. Submodules stay empty. What stood at `at` from an earlier try is
    /// thrown away first, so the folder must be the caller's own.
    ///
    /// # Errors
    ///
    /// Whatever keeps git from making it.
    pub fn trial_add(&self, at: &Path, head: &Oid, tree: &Oid) -> Result<Door, Error> {
        const DOING: &str = "making a checkout for a trial";
        self.trial_remove(at)?;
        let add = self.git(DOING).on_shared_dir();
        add.args(["worktree", "add", "--quiet", "--no-checkout", "--detach", "--"])
            .arg(at)
            .arg(head.as_str())
            .run()?;
        let lost = || Error::new(DOING, at, crate::Kind::NotARepository);
        let door = self.to(Repository::at(at).ok_or_else(lost)?)?;
        door.git(DOING)
            .args(["read-tree", "--reset", "-u", tree.as_str()])
            .run()?;
        Ok(door)
    }

    /// Throws a checkout for a trial away; one that is not there is fine.
    ///
    /// # Errors
    ///
    /// Whatever keeps git from removing it.
    pub fn trial_remove(&self, at: &Path) -> Result<(), Error> {
        const DOING: &str = "throwing a trial away";
        if at.symlink_metadata().is_ok() {
            let remove = self.git(DOING).on_shared_dir();
            let out = remove
                .args(["worktree", "remove", "--force", "--force", "--"])
                .arg(at)
                .output()?;
            if !out.status.success() {
                // Cut off halfway, it may not be known to git as a checkout.
                std::fs::remove_dir_all(at).map_err(|e| Error::io(DOING, at, e))?;
            }
        }
        self.git(DOING)
            .on_shared_dir()
            .args(["worktree", "prune"])
            .output()?;
        Ok(())
    }
}
