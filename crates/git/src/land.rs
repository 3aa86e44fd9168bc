//! Landing: branches move by compare-and-swap, without a checkout, and the files of one go along.

use crate::audit::Raw;
use crate::command::{split_nul, to_path};
use crate::door::Door;
use crate::fingerprint::with_quoted_paths;
use crate::{Error, Kind, Message, Oid, Repository, Signature};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

/// A move of a branch that has been worked out and not yet made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Landing {
    /// The branch that moves, without `refs/heads/`.
    pub branch: String,
    /// Where it stood when the move was worked out.
    pub old: Oid,
    /// Where it will stand.
    pub new: Oid,
    /// How it gets there.
    pub way: Way,
}

/// How a branch gets to where it lands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// It holds the work already; nothing moves.
    AlreadyThere,
    /// It is behind and only moves forward.
    FastForward,
    /// By a merge commit.
    Merge,
    /// Its own commits were made again on another one.
    Rebase,
}

impl Door {
    /// Works out how to bring the commit `source` into `branch`. Writes objects, moves nothing.
    ///
    /// The same source, branch, message and signature give the same merge commit. Only merge drivers that
    /// the door lets in are run.
    ///
    /// # Errors
    ///
    /// [`Kind::Conflict`] with the files, [`Kind::NoMergeBase`], [`Kind::Shallow`], [`Kind::Unknown`],
    /// [`Kind::NoIdentity`].
    pub fn plan_merge(
        &self,
        source: &Oid,
        branch: &str,
        message: &Message,
        signature: &Signature,
    ) -> Result<Landing, Error> {
        const DOING: &str = "working out a merge";
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
        // Where one is in the other's history it is itself the newest that both have.
        let base = self.merge_base(source, &old)?;
        if base.as_ref() == Some(source) {
            return Ok(landing(old.clone(), Way::AlreadyThere));
        }
        if base.as_ref() == Some(&old) {
            return Ok(landing(source.clone(), Way::FastForward));
        }
        let tree = self.merge_trees(DOING, None, &old, source)?;
        let merge = self.commit_tree(&tree, &[&old, source], &message.render(), signature, None)?;
        Ok(landing(merge, Way::Merge))
    }

    /// Moves the branch as worked out, and the files of the checkout that has it, or nothing at all. No hook
    /// runs: a guard of brain's own on refs would refuse brain.
    ///
    /// # Errors
    ///
    /// Those of [`Door::land_all`].
    pub fn land(&self, landing: &Landing) -> Result<(), Error> {
        Door::land_all(&[(self, landing)])
    }

    /// Moves several branches, of several repositories, all or none; then the files of their checkouts.
    ///
    /// First every move is checked, then the refs move one by one (when one has been moved meanwhile, those
    /// before it go back), then the files. After a crash between refs and files [`Door::sync_checkout`]
    /// finishes.
    ///
    /// # Errors
    ///
    /// [`Kind::WouldOverwrite`] when uncommitted work is in the way, [`Kind::NonFastForward`] when a branch
    /// is not where it was (work it out again), [`Kind::Filter`], [`Kind::InProgress`]: nothing has moved.
    pub fn land_all(landings: &[(&Door, &Landing)]) -> Result<(), Error> {
        const DOING: &str = "landing";
        let mut moves: Vec<(Door, String, bool, &Landing)> = Vec::new();
        for (door, landing) in landings.iter().filter(|(_, landing)| landing.old != landing.new) {
            let full = door.branch_ref(&landing.branch)?;
            let checkout = door.check_move(landing)?;
            let along = checkout.is_some();
            moves.push((checkout.unwrap_or_else(|| (*door).clone()), full, along, landing));
        }
        for (n, (door, full, _, Landing { old, new, .. })) in moves.iter().enumerate() {
            let moved = door.move_ref(DOING, full, new, old, "merge: landed by brain");
            if let Err(e) = moved {
                for (door, full, _, Landing { old, new, .. }) in moves[..n].iter().rev() {
                    // Where somebody has built on it in the meantime it stays: undoing would lose theirs.
                    let _ = door.move_ref(DOING, full, old, new, "reset: landing undone by brain");
                }
                return Err(e);
            }
        }
        for (door, _, along, landing) in &moves {
            if *along {
                door.sync_files(&landing.old, &landing.new)?;
            }
        }
        Ok(())
    }

    /// Brings the checkout that has `branch` from `old` to `new` after the ref has moved: what a crash left
    /// undone. Doing it again changes nothing; without a checkout there is nothing to do.
    ///
    /// # Errors
    ///
    /// [`Kind::WouldOverwrite`] when files were changed meanwhile that the move touches: they are kept.
    pub fn sync_checkout(&self, branch: &str, old: &Oid, new: &Oid) -> Result<(), Error> {
        match self.door_of(branch)? {
            Some(door) => door.sync_files(old, new),
            None => Ok(()),
        }
    }

    /// Opens the checkout that has a branch, if its folder is there.
    fn door_of(&self, branch: &str) -> Result<Option<Door>, Error> {
        let repository = self.checked_out_at(branch)?.and_then(|at| Repository::at(&at));
        repository.map(|repository| self.to(repository)).transpose()
    }

    /// Makes sure that the files of the branch's checkout can go along; returns the door to it.
    fn check_move(&self, landing: &Landing) -> Result<Option<Door>, Error> {
        const DOING: &str = "checking a checkout before its branch moves";
        let Some(door) = self.door_of(&landing.branch)? else {
            return Ok(None);
        };
        let top = door.repository().checkout(DOING)?;
        door.refuse_if_in_progress(DOING)?;
        let touched = door.touched(DOING, &landing.old, &landing.new)?;
        let paths: BTreeSet<&Path> = touched.iter().map(|raw| raw.path.as_path()).collect();
        door.check_filters(&paths.iter().map(|path| path.to_path_buf()).collect::<Vec<_>>())?;
        let mut clashes: BTreeSet<PathBuf> = BTreeSet::new();
        for entry in door.status()?.entries {
            clashes.extend(
                [Some(entry.path), entry.from]
                    .into_iter()
                    .flatten()
                    .filter(|p| clash(&paths, p)),
            );
        }
        // Ignored files are in no status, and git would write over them.
        for raw in touched.iter().filter(|raw| raw.before.is_none()) {
            clashes.extend(in_the_way(top, &raw.path, &paths));
        }
        if !clashes.is_empty() {
            let kind = Kind::WouldOverwrite {
                paths: clashes.into_iter().collect(),
                at: top.to_owned(),
            };
            return Err(door.error(DOING, kind));
        }
        door.refresh(DOING)?;
        door.two_way(DOING, &["--dry-run"], &landing.old, &landing.new)?;
        Ok(Some(door))
    }

    /// Brings index and files from `old` to `new`; both may already be partly there.
    fn sync_files(&self, old: &Oid, new: &Oid) -> Result<(), Error> {
        const DOING: &str = "moving the files of a checkout";
        let _turn = self.take_turn(DOING)?;
        self.adopt_moved_files(DOING, old, new)?;
        self.refresh(DOING)?;
        self.two_way(DOING, &[], old, new)
    }

    /// Tells the index about files that a move which was cut off has already written.
    fn adopt_moved_files(&self, doing: &'static str, old: &Oid, new: &Oid) -> Result<(), Error> {
        let touched = self.touched(doing, old, new)?;
        let wanted: BTreeMap<&Path, &Raw> = touched.iter().map(|raw| (raw.path.as_path(), raw)).collect();
        let entries = self.status()?.entries;
        let changed = entries
            .iter()
            .filter(|entry| entry.unstaged.is_some() || entry.untracked);
        let suspects: Vec<&Raw> = changed
            .filter_map(|entry| wanted.get(entry.path.as_path()).copied())
            .collect();
        if suspects.is_empty() {
            return Ok(());
        }
        let top = self.repository().checkout(doing)?;
        let is_file = |raw: &&Raw| {
            top.join(&raw.path)
                .symlink_metadata()
                .is_ok_and(|found| found.is_file())
        };
        let files: Vec<&Raw> = suspects.iter().copied().filter(is_file).collect();
        // Filtered, unlike a fingerprint: this is compared with what is committed.
        let git = self.git(doing).args(["hash-object", "--stdin-paths"]);
        let out = with_quoted_paths(git, files.iter().map(|raw| raw.path.as_path())).run()?;
        let hashes: Vec<Oid> = out.split(|b| *b == b'\n').filter_map(Oid::from_bytes).collect();
        let mut there: Vec<PathBuf> = files
            .iter()
            .zip(hashes)
            .filter(|(raw, oid)| raw.after.as_ref().is_some_and(|after| after.oid == *oid))
            .map(|(raw, _)| raw.path.clone())
            .collect();
        let links = self.fingerprints(suspects.iter().map(|raw| raw.path.clone()))?;
        for raw in suspects {
            let gone = links.get(&raw.path) == Some(&crate::Fingerprint::Absent);
            if gone && raw.after.is_none() || self.is_link_to(top, raw)? {
                there.push(raw.path.clone());
            }
        }
        match there.is_empty() {
            true => Ok(()),
            false => crate::index::take(self, &self.index_file(), &there, doing),
        }
    }

    fn is_link_to(&self, top: &Path, raw: &Raw) -> Result<bool, Error> {
        use std::os::unix::ffi::OsStrExt;
        const DOING: &str = "comparing a link";
        let Some(after) = raw.after.as_ref().filter(|after| after.mode == 0o120_000) else {
            return Ok(false);
        };
        let Ok(to) = std::fs::read_link(top.join(&raw.path)) else {
            return Ok(false);
        };
        let git = self
            .git(DOING)
            .args(["hash-object", "--stdin"])
            .input(to.as_os_str().as_bytes().to_vec());
        Ok(Oid::from_bytes(&git.run()?).as_ref() == Some(&after.oid))
    }

    fn touched(&self, doing: &'static str, old: &Oid, new: &Oid) -> Result<Vec<Raw>, Error> {
        self.raw_diff(doing, Some(old.as_str()), new.as_str(), "--no-renames")
    }

    /// Notes in the index which files are as it says, though touched: git would take them for changed.
    fn refresh(&self, doing: &'static str) -> Result<(), Error> {
        // Its exit code says whether some are changed, which is no failure.
        self.git(doing)
            .args(["update-index", "-q", "--refresh"])
            .output()
            .map(|_| ())
    }

    fn two_way(&self, doing: &'static str, how: &[&str], old: &Oid, new: &Oid) -> Result<(), Error> {
        let git = self.git(doing).args(["read-tree", "-m", "-u"]).args(how);
        let out = git.args([old.as_str(), new.as_str()]).output()?;
        if out.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&out.stderr);
        let kind = match ["not uptodate", "would be", "Cannot merge"]
            .iter()
            .any(|words| said.contains(words))
        {
            true => {
                let quoted = said.split('\'').nth(1).map(PathBuf::from);
                let at = self.repository().folder().to_owned();
                Kind::WouldOverwrite {
                    paths: quoted.into_iter().collect(),
                    at,
                }
            }
            false => Kind::Failed {
                status: out.status.code(),
            },
        };
        Err(self.error(doing, kind).with_stderr(&out.stderr))
    }

    /// Merges two commits without a checkout and returns the tree.
    pub(crate) fn merge_trees(
        &self,
        doing: &'static str,
        base: Option<&Oid>,
        ours: &Oid,
        theirs: &Oid,
    ) -> Result<Oid, Error> {
        let git = self
            .git(doing)
            .args(["merge-tree", "--write-tree", "-z", "--name-only", "--no-messages"]);
        let git = git.args(base.map(|base| format!("--merge-base={base}")));
        let out = git.args([ours.as_str(), theirs.as_str()]).output()?;
        let mut tokens = split_nul(&out.stdout);
        let tree = tokens.next().and_then(Oid::from_bytes);
        match out.status.code() {
            Some(0) => tree.ok_or_else(|| self.garbled(doing)),
            Some(1) => {
                let files: BTreeSet<PathBuf> = tokens.filter(|t| !t.is_empty()).map(to_path).collect();
                Err(self.error(
                    doing,
                    Kind::Conflict {
                        files: files.into_iter().collect(),
                    },
                ))
            }
            _ if String::from_utf8_lossy(&out.stderr).contains("unrelated histories") => {
                let shallow = self.repository().is_shallow();
                let kind = if shallow { Kind::Shallow } else { Kind::NoMergeBase };
                Err(self.error(doing, kind).with_stderr(&out.stderr))
            }
            _ => Err(crate::command::failure(doing, self.repository().folder(), &out)),
        }
    }
}

/// Tells whether a path, something above it or something below it is among `touched`.
fn clash(touched: &BTreeSet<&Path>, path: &Path) -> bool {
    // Paths are ordered by component, so what lies below one follows it.
    path.ancestors().any(|above| touched.contains(above))
        || touched
            .range(path..)
            .next()
            .is_some_and(|next| next.starts_with(path))
}

/// Finds what stands on disk where a file is to be added.
fn in_the_way(top: &Path, path: &Path, touched: &BTreeSet<&Path>) -> Option<PathBuf> {
    match top.join(path).symlink_metadata() {
        // A folder goes away with its files, or git refuses to remove what is left of it.
        Ok(found) if found.is_dir() => None,
        Ok(_) => Some(path.to_owned()),
        Err(e) if e.kind() == io::ErrorKind::NotADirectory => {
            let is_file = |above: &&Path| top.join(above).symlink_metadata().is_ok_and(|f| !f.is_dir());
            let file = path.ancestors().skip(1).find(is_file)?;
            (!touched.contains(file)).then(|| file.to_owned())
        }
        Err(_) => None,
    }
}
