//! Worktrees: made at exactly the commit that was asked for, removed only when nothing is lost.

use crate::command::{split_nul, to_path};
use crate::door::Door;
use crate::{Error, Head, Kind, Oid, Repository};
use std::fs;
use std::path::{Path, PathBuf};

/// One checkout of a repository, as git lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worktree {
    /// Its folder; for a bare repository, the repository.
    pub path: PathBuf,
    /// The commit; `None` where there is none, or no checkout.
    pub head: Option<Oid>,
    /// The branch, without `refs/heads/`.
    pub branch: Option<String>,
    /// It is the bare repository itself.
    pub bare: bool,
    /// Why it is locked, if it is; the reason may be empty.
    pub locked: Option<String>,
    /// Why git would forget it, if it would: the folder is gone, for example.
    pub prunable: Option<String>,
}

impl Door {
    /// Lists all checkouts of the repository, the main one first.
    ///
    /// # Errors
    ///
    /// Whatever keeps git from answering.
    pub fn worktrees(&self) -> Result<Vec<Worktree>, Error> {
        const DOING: &str = "listing worktrees";
        let out = self
            .git(DOING)
            .on_shared_dir()
            .args(["worktree", "list", "--porcelain", "-z"])
            .run()?;
        let mut found: Vec<Worktree> = Vec::new();
        for line in split_nul(&out) {
            let (key, value) = match line.iter().position(|b| *b == b' ') {
                Some(at) => (&line[..at], &line[at + 1..]),
                None => (line, &b""[..]),
            };
            let text = || String::from_utf8_lossy(value).into_owned();
            if key == b"worktree" {
                let path = to_path(value);
                let (head, branch, locked, prunable) = (None, None, None, None);
                found.push(Worktree {
                    path,
                    head,
                    branch,
                    bare: false,
                    locked,
                    prunable,
                });
            }
            let Some(last) = found.last_mut() else { continue };
            match key {
                b"HEAD" => last.head = Oid::from_bytes(value).filter(|oid| !oid.is_zero()),
                b"branch" => last.branch = text().strip_prefix("refs/heads/").map(str::to_owned),
                b"bare" => last.bare = true,
                b"locked" => last.locked = Some(text()),
                b"prunable" => last.prunable = Some(text()),
                _ => {}
            }
        }
        Ok(found)
    }

    /// Returns the checkout that has a branch; `None` when none has. Starts git only when files cannot tell.
    ///
    /// # Errors
    ///
    /// Those of [`Door::worktrees`].
    pub fn checked_out_at(&self, branch: &str) -> Result<Option<PathBuf>, Error> {
        if let Ok(found) = self.repository().holder_from_files(branch) {
            return Ok(found);
        }
        let holder = |tree: &Worktree| tree.branch.as_deref() == Some(branch);
        Ok(self.worktrees()?.into_iter().find(holder).map(|tree| tree.path))
    }

    /// Makes a worktree at `at`, on the new branch `branch`, whose head is exactly `commit`.
    ///
    /// No hook runs. Submodules are filled. When a step fails, what was made is taken away again.
    ///
    /// # Errors
    ///
    /// [`Kind::Leftover`] (the folder exists: it is never reused), [`Kind::BranchExists`],
    /// [`Kind::BranchCheckedOut`], [`Kind::Submodules`], [`Kind::Unknown`] for the commit.
    pub fn worktree_add(&self, at: &Path, branch: &str, commit: &Oid) -> Result<Door, Error> {
        const DOING: &str = "making a worktree";
        let full = self.branch_ref(branch)?;
        let at = &std::path::absolute(at).map_err(|e| Error::io(DOING, at, e))?;
        if at.symlink_metadata().is_ok() {
            return Err(Error::new(DOING, at, Kind::Leftover));
        }
        if let Some(at) = self.checked_out_at(branch)? {
            return Err(self.error(
                DOING,
                Kind::BranchCheckedOut {
                    name: branch.to_owned(),
                    at,
                },
            ));
        }
        if let Err(error) = self.branch_create(branch, commit) {
            // Git makes no branch at what is not there or no commit; only then it is asked which of it.
            let is_there = self.resolve(commit.as_str())?.as_ref() == Some(commit);
            let name = commit.to_string();
            return Err(if is_there {
                error
            } else {
                self.error(DOING, Kind::Unknown { name })
            });
        }
        let made = self.fill_worktree(at, branch, commit);
        if made.is_err() {
            // All of it is ours and seconds old; it is the one removal that forces.
            let _turn = self.take_worktree_turn(DOING);
            let remove = self.git(DOING).on_shared_dir();
            let _ = remove
                .args(["worktree", "remove", "--force", "--force", "--"])
                .arg(at)
                .output();
            let _ = self
                .git(DOING)
                .args(["update-ref", "-d", &full, commit.as_str()])
                .output();
        }
        made
    }

    fn fill_worktree(&self, at: &Path, branch: &str, commit: &Oid) -> Result<Door, Error> {
        const DOING: &str = "filling a worktree";
        let add = self.git(DOING).on_shared_dir();
        // Filling it is a step of its own, through a door of its own: it may run filters.
        let turn = self.take_worktree_turn(DOING)?;
        add.args(["worktree", "add", "--quiet", "--no-checkout", "--"])
            .arg(at)
            .arg(branch)
            .run()?;
        drop(turn);
        let lost = || Error::new(DOING, at, Kind::NotARepository);
        let door = self.to(Repository::at(at).ok_or_else(lost)?)?;
        if door.repository().common_dir() != self.repository().common_dir() {
            return Err(lost());
        }
        door.git(DOING)
            .args(["read-tree", "--reset", "-u", commit.as_str()])
            .run()?;
        if at.join(".gitmodules").symlink_metadata().is_ok() {
            // Its network, keys and helpers are the user's, so it runs as the user; `--checkout` keeps a
            // configured `submodule.*.update` command from running.
            let out = door
                .as_user()
                .git(DOING)
                .without_hooks()
                .env("GIT_DIR", door.repository().git_dir()) // or a configured `core.worktree` would count
                .env("GIT_WORK_TREE", at)
                .args([
                    "submodule",
                    "--quiet",
                    "update",
                    "--init",
                    "--recursive",
                    "--checkout",
                ])
                .output()?;
            if !out.status.success() {
                return Err(Error::new(DOING, at, Kind::Submodules).with_stderr(&out.stderr));
            }
        }
        match door.head()? {
            Head::Branch { name, at } if name == branch && at == *commit => Ok(door),
            head => {
                let head = head.oid().unwrap_or(commit).clone();
                Err(Error::new(
                    DOING,
                    at,
                    Kind::NotAncestor {
                        base: commit.clone(),
                        head,
                    },
                ))
            }
        }
    }

    /// Takes away what is left of making a worktree in which nothing ever ran, with its branch.
    ///
    /// For a maker that was killed halfway: the caller vouches that no agent was ever started there. The
    /// branch goes only while it still stands at `commit`.
    ///
    /// # Errors
    ///
    /// [`Kind::Io`] when the folder cannot be removed.
    pub fn worktree_discard(&self, at: &Path, branch: &str, commit: &Oid) -> Result<(), Error> {
        const DOING: &str = "discarding a half-made worktree";
        let full = self.branch_ref(branch)?;
        let git = || self.git(DOING).on_shared_dir();
        let _turn = self.take_worktree_turn(DOING)?;
        // Each step is for another moment at which the maker may have died; what is not there is fine.
        let _ = git()
            .args(["worktree", "remove", "--force", "--force", "--"])
            .arg(at)
            .output();
        if at.symlink_metadata().is_ok() {
            fs::remove_dir_all(at).map_err(|e| Error::io(DOING, at, e))?;
        }
        let _ = git().args(["worktree", "prune", "--expire", "now"]).output();
        let _ = self
            .git(DOING)
            .args(["update-ref", "-d", &full, commit.as_str()])
            .output();
        Ok(())
    }

    /// Removes the worktree at `at` if it is clean and its head is in the history of `landed_in`.
    ///
    /// `landed_in` is a branch or a full ref. Ignored files go with it; the branch stays. One that is
    /// already gone is fine.
    ///
    /// # Errors
    ///
    /// [`Kind::Dirty`], [`Kind::Unlanded`], [`Kind::InProgress`]: it is kept, whole.
    pub fn worktree_remove(&self, at: &Path, landed_in: &str) -> Result<(), Error> {
        const DOING: &str = "removing a worktree";
        let at = &std::path::absolute(at).map_err(|e| Error::io(DOING, at, e))?;
        if at.symlink_metadata().is_err() {
            return Ok(());
        }
        let refuse = |kind| Err(Error::new(DOING, at, kind));
        let Some(repository) = Repository::at(at) else {
            return refuse(Kind::NotARepository);
        };
        if !repository.is_linked_worktree() || repository.common_dir() != self.repository().common_dir() {
            return refuse(Kind::NotARepository);
        }
        let door = self.to(repository)?;
        door.refuse_if_in_progress(DOING)?;
        let status = door.status()?;
        let paths: Vec<PathBuf> = status.entries.into_iter().map(|entry| entry.path).collect();
        if !paths.is_empty() {
            return refuse(Kind::Dirty { paths });
        }
        if let Some(head) = status.head
            && !self.is_landed(&head, landed_in)?
        {
            return refuse(Kind::Unlanded { head });
        }
        // Git wants to be forced to remove submodules, clean or not: looking into them is left to us.
        let submodules = fs::symlink_metadata(door.repository().git_dir().join("modules")).is_ok();
        let paths = if submodules {
            door.dirty_in_submodules()?
        } else {
            Vec::new()
        };
        if !paths.is_empty() {
            return refuse(Kind::Dirty { paths });
        }
        // Git's own look would run the repository's filters, which the coordinator must not.
        let force = submodules || self.is_coordinator();
        let git = self.git(DOING).on_shared_dir().args(["worktree", "remove"]);
        let _turn = self.take_worktree_turn(DOING)?;
        git.args(force.then_some("--force")).arg("--").arg(at).run()?;
        Ok(())
    }

    /// Lists what is uncommitted in submodules, each looked at through a door of its own.
    fn dirty_in_submodules(&self) -> Result<Vec<PathBuf>, Error> {
        const DOING: &str = "looking into submodules";
        let top = self.repository().checkout(DOING)?;
        let mut dirty = Vec::new();
        let out = self.git(DOING).args(["ls-files", "-z", "--stage"]).run()?;
        for line in split_nul(&out).filter(|line| line.starts_with(b"160000 ")) {
            let Some(tab) = line.iter().position(|b| *b == b'\t') else {
                return Err(self.garbled(DOING));
            };
            let path = to_path(&line[tab + 1..]);
            let Some(inside) = Repository::at(&top.join(&path)) else {
                continue;
            };
            let door = self.to(inside)?;
            dirty.extend(
                door.status()?
                    .entries
                    .into_iter()
                    .map(|entry| path.join(entry.path)),
            );
            dirty.extend(
                door.dirty_in_submodules()?
                    .into_iter()
                    .map(|below| path.join(below)),
            );
        }
        Ok(dirty)
    }

    /// Refuses while a merge or the like is going on, which a commit of ours would end by accident.
    pub(crate) fn refuse_if_in_progress(&self, doing: &'static str) -> Result<(), Error> {
        let signs = [
            ("MERGE_HEAD", "merge"),
            ("CHERRY_PICK_HEAD", "cherry-pick"),
            ("REVERT_HEAD", "revert"),
            ("rebase-merge", "rebase"),
            ("rebase-apply", "rebase"),
        ];
        let git_dir = self.repository().git_dir();
        match signs
            .iter()
            .find(|(file, _)| git_dir.join(file).symlink_metadata().is_ok())
        {
            Some((_, what)) => Err(self.error(doing, Kind::InProgress { what })),
            None => Ok(()),
        }
    }
}
