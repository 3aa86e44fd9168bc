//! Everything that differs between an opening and now, and where each difference came from.

use crate::command::{split_nul, to_path};
use crate::door::Door;
use crate::reflog::{Made, Reflog};
use crate::status::{Entry, Side, Status, side};
use crate::{Blob, Error, Fingerprint, Kind, Oid, SESSION_TRAILER};
use std::collections::btree_map::Entry as Slot;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// What was noted of one checkout when a claim was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Opening {
    /// The commit that was checked out; `None` before the first.
    pub commit: Option<Oid>,
    /// What was not as in that commit, by path relative to the checkout ([`Door::dirty`]).
    pub dirty: BTreeMap<PathBuf, Fingerprint>,
}

/// The answer of [`Door::audit`]: facts, no verdict.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Audit {
    /// The branch now; the caller compares it with the one that the claim was opened on.
    pub branch: Option<String>,
    /// The commit now.
    pub head: Option<Oid>,
    /// The branch's upstream.
    pub upstream: Option<String>,
    /// The commits since the opening, newest first.
    pub commits: Vec<Committed>,
    /// One for each path, sorted; both sides of a rename have one.
    pub changes: Vec<Change>,
    /// What git ignores, as [`Door::status_with_ignored`] lists it: none of it is among the changes.
    pub ignored: Vec<PathBuf>,
}

/// A commit that came since the opening.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    /// Its name.
    pub oid: Oid,
    /// How many parents it has: two or more for a merge.
    pub parents: usize,
    /// The sessions that its `Brain-Session` trailers name.
    pub sessions: Vec<String>,
    /// Whether it was made in this checkout.
    pub made: Made,
}

/// A path that is not as it was at the opening.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The path, relative to the checkout.
    pub path: PathBuf,
    /// For what was renamed or copied to here: the other side.
    pub from: Option<PathBuf>,
    /// For what was renamed away from here: the other side.
    pub to: Option<PathBuf>,
    /// What the opening's commit has here.
    pub before: Option<Blob>,
    /// What the commit checked out now has here.
    pub committed: Option<Blob>,
    /// The mode of what is here now; `None` when nothing is. A folder (`40000`) is a repository inside.
    pub mode: Option<u32>,
    /// It differs between the opening's commit and the one now.
    pub in_commits: bool,
    /// The index differs from the commit now.
    pub staged: Option<Side>,
    /// The file differs from the index.
    pub unstaged: Option<Side>,
    /// Git does not know it.
    pub untracked: bool,
    /// A merge left it unresolved.
    pub unmerged: bool,
    /// What it was at the opening.
    pub at_opening: AtOpening,
    /// The commits that touched it: positions in [`Audit::commits`].
    pub commits: Vec<usize>,
}

/// How a path stood when the claim was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtOpening {
    /// As in the commit.
    Clean,
    /// Already different, and still exactly what it was.
    DirtySame,
    /// Already different, and different from that now; also when it is clean or committed by now.
    DirtyChanged,
}

impl Change {
    /// Tells whether the files or the index hold it uncommitted.
    pub fn is_uncommitted(&self) -> bool {
        self.staged.is_some() || self.unstaged.is_some() || self.untracked || self.unmerged
    }

    /// Tells whether nothing was here and something is.
    pub fn is_added(&self) -> bool {
        self.before.is_none() && self.mode.is_some()
    }

    /// Tells whether something was here and nothing is.
    pub fn is_deleted(&self) -> bool {
        self.before.is_some() && self.mode.is_none()
    }

    /// Tells whether a link is or was here.
    pub fn is_link(&self) -> bool {
        self.has_mode(0o120_000)
    }

    /// Tells whether a submodule or another repository is or was here.
    pub fn is_repository(&self) -> bool {
        self.has_mode(0o160_000) || self.has_mode(0o040_000)
    }

    /// Tells whether the mode is another: executable or not, or a file where a link was.
    pub fn is_mode_change(&self) -> bool {
        matches!((&self.before, self.mode), (Some(before), Some(now)) if before.mode != now)
    }

    fn has_mode(&self, mode: u32) -> bool {
        self.mode == Some(mode) || self.before.as_ref().is_some_and(|before| before.mode == mode)
    }

    fn new(path: PathBuf) -> Change {
        Change {
            path,
            from: None,
            to: None,
            before: None,
            committed: None,
            mode: None,
            in_commits: false,
            staged: None,
            unstaged: None,
            untracked: false,
            unmerged: false,
            at_opening: AtOpening::Clean,
            commits: Vec::new(),
        }
    }
}

impl Door {
    /// Compares the checkout with what was noted at the opening. Protocol, section 11.1.
    ///
    /// Starts git once when no commit was made and nothing was dirty at the opening; once more to hash
    /// what was, and three times more when the head has moved. Ignored files are listed and not audited.
    ///
    /// # Errors
    ///
    /// [`Kind::NotAncestor`] when the opening's commit is no longer in the branch's history,
    /// [`Kind::NoMergeBase`] when the two have nothing in common, [`Kind::Shallow`] when a shallow clone
    /// cannot tell, [`Kind::UnbornHead`] when there was a commit and now is none: what cannot be compared
    /// is never "no changes".
    pub fn audit(&self, opening: &Opening) -> Result<Audit, Error> {
        self.compare(opening, |base, head, changes| {
            self.commits_since(base, head, changes)
        })
    }

    /// Lists what differs, without saying which commits it came with: one start of git less.
    ///
    /// # Errors
    ///
    /// Those of [`Door::audit`].
    pub fn changes(&self, opening: &Opening) -> Result<Vec<Change>, Error> {
        let audit = self.compare(opening, |_, _, _| Ok(Vec::new()))?;
        Ok(audit.changes)
    }

    /// Compares with the opening; `attribute` says which commits came since, and notes them at the changes.
    fn compare(
        &self,
        opening: &Opening,
        attribute: impl Fn(Option<&Oid>, &Oid, &mut Changes) -> Result<Vec<Committed>, Error>,
    ) -> Result<Audit, Error> {
        let (status, ignored) = self.status_with_ignored()?;
        let mut changes = Changes::default();
        let mut commits = Vec::new();
        match (&opening.commit, &status.head) {
            (Some(base), Some(head)) if base != head => {
                self.check_history(base, head)?;
                self.add_committed(Some(base), head, &mut changes)?;
                commits = attribute(Some(base), head, &mut changes)?;
            }
            (None, Some(head)) => {
                self.add_committed(None, head, &mut changes)?;
                commits = attribute(None, head, &mut changes)?;
            }
            (Some(_), None) => return Err(self.error("comparing with the opening", Kind::UnbornHead)),
            _ => {}
        }
        let Status {
            head,
            branch,
            upstream,
            entries,
        } = status;
        for entry in entries {
            changes.add_uncommitted(entry, self.repository().folder());
        }
        let now = self.fingerprints(opening.dirty.keys().cloned())?;
        for (path, was) in &opening.dirty {
            let same = *was != Fingerprint::Other && now.get(path) == Some(was);
            let change = changes.of(path);
            change.at_opening = if same {
                AtOpening::DirtySame
            } else {
                AtOpening::DirtyChanged
            };
            if !change.in_commits && !change.is_uncommitted() {
                change.mode = now.get(path).and_then(mode_of); // somebody put it back
            }
        }
        Ok(Audit {
            branch,
            head,
            upstream,
            commits,
            changes: changes.0.into_values().collect(),
            ignored,
        })
    }

    /// Tells whether a commit has this parent alone and differs from it in these paths, no less and no more:
    /// then nothing but it has come between two looks at the checkout.
    ///
    /// # Errors
    ///
    /// Whatever keeps git from answering.
    pub fn is_only(&self, commit: &Oid, parent: Option<&Oid>, paths: &[PathBuf]) -> Result<bool, Error> {
        const DOING: &str = "reading a commit";
        let git = self
            .git(DOING)
            .args([
                "log",
                "-1",
                "-z",
                "--raw",
                "-c",
                "--root",
                "--no-renames",
                "--no-abbrev",
            ])
            .args([
                "--no-show-signature",
                "--no-ext-diff",
                "--no-textconv",
                "--ignore-submodules=none",
            ]);
        let out = git
            .args(["--format=tformat:%P%x00", commit.as_str(), "--"])
            .run()?;
        let mut tokens = split_nul(&out);
        let parents = tokens.next().ok_or_else(|| self.garbled(DOING))?;
        if parents != parent.map(Oid::as_str).unwrap_or_default().as_bytes() {
            return Ok(false);
        }
        let mut differ = BTreeSet::new();
        while let Some(token) = tokens.next() {
            if token.strip_prefix(b"\n").unwrap_or(token).starts_with(b":") {
                differ.insert(to_path(tokens.next().ok_or_else(|| self.garbled(DOING))?));
            }
        }
        Ok(differ.iter().eq(&paths.iter().cloned().collect::<BTreeSet<_>>()))
    }

    fn check_history(&self, base: &Oid, head: &Oid) -> Result<(), Error> {
        const DOING: &str = "comparing with the opening";
        if self.is_ancestor(base, head)? {
            return Ok(());
        }
        let out = self
            .git(DOING)
            .args(["merge-base", base.as_str(), head.as_str()])
            .output()?;
        match out.status.success() {
            true => Err(self.error(
                DOING,
                Kind::NotAncestor {
                    base: base.clone(),
                    head: head.clone(),
                },
            )),
            false => Err(self.error(DOING, Kind::NoMergeBase).with_stderr(&out.stderr)),
        }
    }

    fn add_committed(&self, base: Option<&Oid>, head: &Oid, changes: &mut Changes) -> Result<(), Error> {
        const DOING: &str = "comparing commits";
        for raw in self.raw_diff(DOING, base.map(Oid::as_str), head.as_str(), "-M")? {
            let change = changes.of(&raw.path);
            (change.in_commits, change.committed) = (true, raw.after.clone());
            change.mode = raw.after.map(|blob| blob.mode);
            match raw.from {
                None => change.before = raw.before,
                Some(from) => {
                    change.from = Some(from.clone());
                    let other = changes.of(&from);
                    if raw.side == Side::Renamed {
                        (other.in_commits, other.before, other.to) = (true, raw.before, Some(raw.path));
                    }
                }
            }
        }
        Ok(())
    }

    /// Lists the paths that differ between two trees; `None` is the empty one.
    pub(crate) fn raw_diff(
        &self,
        doing: &'static str,
        base: Option<&str>,
        head: &str,
        renames: &str,
    ) -> Result<Vec<Raw>, Error> {
        let git = self
            .git(doing)
            .args(["diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-commit-id"]);
        let git = git.args([
            renames,
            "--no-ext-diff",
            "--no-textconv",
            "--ignore-submodules=none",
        ]);
        let out = match base {
            Some(base) => git.args([base, head]).run()?,
            None => {
                // The empty tree need not be in the repository for git to know it.
                let empty = self
                    .git(doing)
                    .args(["hash-object", "-t", "tree", "/dev/null"])
                    .run()?;
                let empty = Oid::from_bytes(&empty).ok_or_else(|| self.garbled(doing))?;
                git.args([empty.as_str(), head]).run()?
            }
        };
        parse_raw(&out).ok_or_else(|| self.garbled(doing))
    }

    fn commits_since(
        &self,
        base: Option<&Oid>,
        head: &Oid,
        changes: &mut Changes,
    ) -> Result<Vec<Committed>, Error> {
        const DOING: &str = "reading commits";
        let format =
            format!("%H%x00%P%x00%(trailers:key={SESSION_TRAILER},valueonly,unfold,separator=%x0A)%x00");
        let git = self
            .git(DOING)
            .args(["log", "-z", "--raw", "-c", "--no-renames", "--no-abbrev"])
            .args([
                "--no-show-signature",
                "--no-ext-diff",
                "--no-textconv",
                "--ignore-submodules=none",
                "--root",
            ]);
        let range = base.map_or_else(|| head.to_string(), |base| format!("{base}..{head}"));
        let out = git
            .arg(format!("--format=tformat:{format}"))
            .arg(range)
            .arg("--")
            .run()?;
        let log = Reflog::read(self.repository());
        let mut commits: Vec<Committed> = Vec::new();
        let mut tokens = split_nul(&out);
        while let Some(token) = tokens.next() {
            let token = token.strip_prefix(b"\n").unwrap_or(token);
            if token.is_empty() {
                continue;
            }
            if token.starts_with(b":") {
                let path = to_path(tokens.next().ok_or_else(|| self.garbled(DOING))?);
                // A path may have been touched and be as it was again: then it is no change.
                if let Some(change) = changes.0.get_mut(&path) {
                    change.commits.push(commits.len().saturating_sub(1));
                }
                continue;
            }
            let (oid, parents, sessions) = match (Oid::from_bytes(token), tokens.next(), tokens.next()) {
                (Some(oid), Some(parents), Some(sessions)) => (oid, parents, sessions),
                _ => return Err(self.garbled(DOING)),
            };
            let sessions = String::from_utf8_lossy(sessions);
            commits.push(Committed {
                made: log.made(&oid),
                oid,
                parents: parents.split(|b| *b == b' ').filter(|p| !p.is_empty()).count(),
                sessions: sessions
                    .lines()
                    .map(str::trim)
                    .filter(|s| !s.is_empty())
                    .map(str::to_owned)
                    .collect(),
            });
        }
        Ok(commits)
    }
}

/// One line of a raw diff.
pub(crate) struct Raw {
    pub path: PathBuf,
    pub from: Option<PathBuf>,
    pub before: Option<Blob>,
    pub after: Option<Blob>,
    pub side: Side,
}

fn parse_raw(out: &[u8]) -> Option<Vec<Raw>> {
    let mut tokens = split_nul(out);
    let mut found = Vec::new();
    while let Some(meta) = tokens.next() {
        let fields: Vec<&[u8]> = meta.strip_prefix(b":")?.split(|b| *b == b' ').collect();
        let [old_mode, new_mode, old, new, letter] = fields.as_slice() else {
            return None;
        };
        let side = side(*letter.first()?)?;
        let first = to_path(tokens.next()?);
        let (from, path) = match side {
            Side::Renamed | Side::Copied => (Some(first), to_path(tokens.next()?)),
            _ => (None, first),
        };
        found.push(Raw {
            path,
            from,
            before: Blob::of(old_mode, old),
            after: Blob::of(new_mode, new),
            side,
        });
    }
    Some(found)
}

#[derive(Default)]
struct Changes(BTreeMap<PathBuf, Change>);

impl Changes {
    fn of(&mut self, path: &Path) -> &mut Change {
        match self.0.entry(path.to_owned()) {
            Slot::Vacant(slot) => slot.insert(Change::new(path.to_owned())),
            Slot::Occupied(slot) => slot.into_mut(),
        }
    }

    fn add_uncommitted(&mut self, entry: Entry, top: &Path) {
        if let Some(from) = &entry.from
            && (entry.staged == Some(Side::Renamed) || entry.unstaged == Some(Side::Renamed))
        {
            let other = self.of(from);
            other.to = Some(entry.path.clone());
            other.mode = None;
            if entry.staged == Some(Side::Renamed) {
                other.staged = Some(Side::Deleted);
            } else {
                other.unstaged = Some(Side::Deleted);
            }
            if !other.in_commits {
                (other.before, other.committed) = (entry.head.clone(), entry.head.clone());
            }
        }
        let renamed = entry.from.is_some();
        let change = self.of(&entry.path);
        if entry.untracked {
            // Next to a staged deletion this is the second entry of its path.
            change.untracked = true;
            change.mode = mode_on_disk(&top.join(&entry.path));
            return;
        }
        if !change.in_commits && !renamed {
            // What no commit touched is in the opening's commit what it is in the one now.
            (change.before, change.committed) = (entry.head.clone(), entry.head);
        }
        change.from = entry.from.or(change.from.take());
        (change.staged, change.unstaged, change.unmerged) = (entry.staged, entry.unstaged, entry.unmerged);
        change.mode = (entry.mode != 0).then_some(entry.mode);
    }
}

fn mode_on_disk(file: &Path) -> Option<u32> {
    use std::os::unix::fs::PermissionsExt;
    let found = file.symlink_metadata().ok()?;
    Some(match (found.is_symlink(), found.is_dir()) {
        (true, _) => 0o120_000,
        (_, true) => 0o040_000,
        _ if found.permissions().mode() & 0o100 != 0 => 0o100_755,
        _ => 0o100_644,
    })
}

fn mode_of(print: &Fingerprint) -> Option<u32> {
    match print {
        Fingerprint::Absent | Fingerprint::Other => None,
        Fingerprint::File {
            executable: false, ..
        } => Some(0o100_644),
        Fingerprint::File { executable: true, .. } => Some(0o100_755),
        Fingerprint::Link(_) => Some(0o120_000),
        Fingerprint::Repository(_) => Some(0o160_000),
    }
}
