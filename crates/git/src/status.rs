//! What differs between the last commit, the index and the files: one call of git.

use crate::command::{split_nul, to_path};
use crate::door::Door;
use crate::oid::parse_mode;
use crate::{Blob, Error, Oid};
use std::path::PathBuf;

/// A checkout at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// The commit checked out; `None` before the first.
    pub head: Option<Oid>,
    /// The branch, without `refs/heads/`; `None` on a detached head.
    pub branch: Option<String>,
    /// The branch's upstream, `origin/main` for example.
    pub upstream: Option<String>,
    /// What is not as in `head`; ignored files are not listed.
    pub entries: Vec<Entry>,
}

/// One path that is not as in the last commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The path, relative to the checkout.
    pub path: PathBuf,
    /// The other side of a rename: the path that it had. That path has no entry of its own.
    pub from: Option<PathBuf>,
    /// What the index has against the last commit.
    pub staged: Option<Side>,
    /// What the files have against the index.
    pub unstaged: Option<Side>,
    /// Git does not know the path. A folder here is a repository inside this one.
    pub untracked: bool,
    /// A merge left it unresolved.
    pub unmerged: bool,
    /// What the last commit has under this path (under `from`, for a rename).
    pub head: Option<Blob>,
    /// What the index has under this path.
    pub index: Option<Blob>,
    /// The mode of the file itself; 0 where there is none or nobody looked.
    pub mode: u32,
    /// What is known of it as a submodule.
    pub submodule: Option<Submodule>,
}

/// How one side differs from the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// It was not there.
    Added,
    /// Its content or mode is another.
    Modified,
    /// It is gone.
    Deleted,
    /// A file became a link, or the like.
    TypeChanged,
    /// It was elsewhere.
    Renamed,
    /// It is a copy of another that is still there.
    Copied,
}

/// What differs in a submodule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Submodule {
    /// Another commit is checked out in it.
    pub commit: bool,
    /// Files in it are modified.
    pub modified: bool,
    /// It holds untracked files.
    pub untracked: bool,
}

impl Door {
    /// Tells what is not as in the last commit, untracked files one by one. Starts git once.
    ///
    /// Neither writes the index nor waits for its lock. Behind the coordinator's door nothing is started
    /// inside a submodule: only another commit checked out there is seen.
    ///
    /// # Errors
    ///
    /// [`Kind::NoCheckout`](crate::Kind::NoCheckout) in a bare repository.
    pub fn status(&self) -> Result<Status, Error> {
        self.look(false).map(|(status, _)| status)
    }

    /// Tells the same and lists what is ignored, in the same start of git: files, and folders that are
    /// ignored as a whole.
    ///
    /// # Errors
    ///
    /// Those of [`Door::status`].
    pub fn status_with_ignored(&self) -> Result<(Status, Vec<PathBuf>), Error> {
        self.look(true)
    }

    fn look(&self, with_ignored: bool) -> Result<(Status, Vec<PathBuf>), Error> {
        const DOING: &str = "reading the status";
        self.repository().checkout(DOING)?;
        let depth = if self.is_coordinator() { "dirty" } else { "none" };
        let out = self
            .git(DOING)
            .args([
                "status",
                "--porcelain=v2",
                "-z",
                "--branch",
                "--untracked-files=all",
            ])
            .args(["--find-renames", "--no-ahead-behind"])
            .arg(format!("--ignore-submodules={depth}"))
            .args(with_ignored.then_some("--ignored=matching"))
            .run()?;
        parse(&out).ok_or_else(|| self.garbled(DOING))
    }

    /// Lists the ignored files that a pattern matches (`:(glob)` rules, relative to the checkout).
    ///
    /// # Errors
    ///
    /// [`Kind::NoCheckout`](crate::Kind::NoCheckout) in a bare repository.
    pub fn ignored(&self, patterns: &[&str]) -> Result<Vec<PathBuf>, Error> {
        const DOING: &str = "listing ignored files";
        self.repository().checkout(DOING)?;
        if patterns.is_empty() {
            return Ok(Vec::new()); // to git, no pattern means all
        }
        let out = self
            .git(DOING)
            .arg("--no-literal-pathspecs")
            .args([
                "ls-files",
                "-z",
                "--others",
                "--ignored",
                "--exclude-standard",
                "--",
            ])
            .args(patterns.iter().map(|pattern| format!(":(top,glob){pattern}")))
            .run()?;
        Ok(split_nul(&out).map(to_path).collect())
    }
}

fn parse(out: &[u8]) -> Option<(Status, Vec<PathBuf>)> {
    let (mut status, mut ignored) = (Status::default(), Vec::new());
    let mut tokens = split_nul(out);
    while let Some(token) = tokens.next() {
        let (kind, rest) = token.split_first()?;
        let rest = rest.get(1..).unwrap_or_default();
        match kind {
            b'#' => header(rest, &mut status),
            b'1' => status.entries.push(tracked(rest, 7, None)?),
            b'2' => status
                .entries
                .push(tracked(rest, 8, Some(to_path(tokens.next()?)))?),
            b'u' => status.entries.push(unmerged(rest)?),
            b'?' => status.entries.push(untracked(rest)),
            b'!' => ignored.push(to_path(rest.strip_suffix(b"/").unwrap_or(rest))),
            _ => return None,
        }
    }
    Some((status, ignored))
}

fn header(line: &[u8], status: &mut Status) {
    let line = String::from_utf8_lossy(line);
    match line.split_once(' ') {
        Some(("branch.oid", oid)) => status.head = Oid::parse(oid),
        Some(("branch.head", name)) => status.branch = (name != "(detached)").then(|| name.to_owned()),
        Some(("branch.upstream", name)) => status.upstream = Some(name.to_owned()),
        _ => {}
    }
}

/// `XY sub mH mI mW hH hI [X<score>] path`
fn tracked(line: &[u8], columns: usize, from: Option<PathBuf>) -> Option<Entry> {
    let mut fields = line.splitn(columns + 1, |b| *b == b' ');
    let xy = fields.next()?;
    let submodule = parse_submodule(fields.next()?);
    let [head, index, files] = [fields.next()?, fields.next()?, fields.next()?];
    let head = Blob::of(head, fields.next()?);
    let index = Blob::of(index, fields.next()?);
    Some(Entry {
        path: to_path(fields.last()?),
        from,
        staged: side(*xy.first()?),
        unstaged: side(*xy.get(1)?),
        untracked: false,
        unmerged: false,
        head,
        index,
        mode: parse_mode(files)?,
        submodule,
    })
}

/// `XY sub m1 m2 m3 mW h1 h2 h3 path`
fn unmerged(line: &[u8]) -> Option<Entry> {
    let fields: Vec<&[u8]> = line.splitn(10, |b| *b == b' ').collect();
    let ours = Blob::of(fields.get(3)?, fields.get(7)?);
    Some(Entry {
        path: to_path(fields.get(9)?),
        from: None,
        staged: None,
        unstaged: None,
        untracked: false,
        unmerged: true,
        head: ours,
        index: None,
        mode: parse_mode(fields.get(5)?)?,
        submodule: parse_submodule(fields.get(1)?),
    })
}

fn untracked(path: &[u8]) -> Entry {
    Entry {
        path: to_path(path.strip_suffix(b"/").unwrap_or(path)),
        from: None,
        staged: None,
        unstaged: None,
        untracked: true,
        unmerged: false,
        head: None,
        index: None,
        mode: 0,
        submodule: None,
    }
}

fn parse_submodule(field: &[u8]) -> Option<Submodule> {
    match field {
        [b'S', commit, modified, untracked] => Some(Submodule {
            commit: *commit == b'C',
            modified: *modified == b'M',
            untracked: *untracked == b'U',
        }),
        _ => None,
    }
}

pub(crate) fn side(letter: u8) -> Option<Side> {
    match letter {
        b'A' => Some(Side::Added),
        b'M' => Some(Side::Modified),
        b'D' => Some(Side::Deleted),
        b'T' => Some(Side::TypeChanged),
        b'R' => Some(Side::Renamed),
        b'C' => Some(Side::Copied),
        _ => None,
    }
}
