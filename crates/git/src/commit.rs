//! Commits of exactly the given paths: an ordinary one in the user's checkout, our own in a satellite's.

use crate::command::{failure, split_nul, to_path};
use crate::config::Config;
use crate::door::Door;
use crate::index::{self, Scratch, check_paths};
use crate::rebase::Author;
use crate::{Error, Head, Kind, Oid, Repository};
use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

/// A commit's message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Subject and body.
    pub text: String,
    /// Trailers, in order: key and value, one line each.
    pub trailers: Vec<(String, String)>,
}

impl Message {
    /// Writes it as it goes to git: a line break in a trailer's value becomes a blank, NUL nothing.
    pub(crate) fn render(&self) -> String {
        let mut text = self.text.trim().replace('\0', "");
        text.push('\n');
        for (n, (key, value)) in self.trailers.iter().enumerate() {
            let value = value.replace('\0', "").replace(['\n', '\r'], " ");
            text += &format!("{}{key}: {}\n", if n == 0 { "\n" } else { "" }, value.trim());
        }
        text
    }
}

/// A name and an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The name.
    pub name: String,
    /// The mail address.
    pub email: String,
}

/// Who signs a commit that the coordinator writes, and when: the same twice makes the same commit twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// Who; `None` takes `user.name` and `user.email` from the configuration, and never guesses.
    pub identity: Option<Identity>,
    /// Seconds since 1970, in UTC.
    pub seconds: u64,
}

/// A commit that was made, or found to be there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// The commit.
    pub oid: Oid,
    /// Its tree, to be compared with the one the evidence is bound to.
    pub tree: Oid,
    /// False when there was nothing to commit and this is the tip as it was.
    pub made: bool,
    /// Paths that a hook left different from what was committed.
    pub left_dirty: Vec<PathBuf>,
}

impl Door {
    /// Writes the tree that a commit of `paths` would have, and returns its name.
    ///
    /// Nothing is staged and no ref moves.
    ///
    /// # Errors
    ///
    /// [`Kind::Filter`] behind the coordinator's door, [`Kind::BadName`] for a path outside.
    pub fn tree_of(&self, paths: &[PathBuf]) -> Result<Oid, Error> {
        const DOING: &str = "writing the tree to be committed";
        self.repository().checkout(DOING)?;
        check_paths(self, paths, DOING)?;
        self.check_filters(paths)?;
        let head = self.head()?;
        let scratch = Scratch::at(self, head.oid(), DOING)?;
        if !paths.is_empty() {
            scratch.take(paths, DOING)?;
        }
        scratch.write_tree(DOING)
    }

    /// Commits `paths` as they are in the user's checkout, and only these: what others have staged stays
    /// staged.
    ///
    /// An ordinary `git commit`: hooks run, it is signed if the user signs. When a hook refuses after it
    /// has rewritten one of the files, it is asked once more about the new content.
    ///
    /// # Errors
    ///
    /// [`Kind::HookRefused`] and [`Kind::KeyRefused`] (the index is as it was), [`Kind::NoIdentity`],
    /// [`Kind::InProgress`], [`Kind::DetachedHead`], [`Kind::Locked`].
    pub fn commit(&self, paths: &[PathBuf], message: &Message) -> Result<Commit, Error> {
        const DOING: &str = "committing";
        self.repository().checkout(DOING)?;
        self.refuse_if_in_progress(DOING)?;
        check_paths(self, paths, DOING)?;
        if let Head::Detached(_) = self.head()? {
            return Err(self.error(DOING, Kind::DetachedHead));
        }
        let _turn = self.take_turn(DOING)?;
        let Known { paths, new } = self.known_paths(paths, DOING)?;
        if paths.is_empty() {
            return self.tip(false, Vec::new());
        }
        let before = stamps(self.repository().folder(), &paths);
        let made = match self.announce_and_commit(&paths, &new, message) {
            Err(e)
                if matches!(e.kind(), Kind::HookRefused { .. })
                    && stamps(self.repository().folder(), &paths) != before =>
            {
                self.announce_and_commit(&paths, &new, message)
            }
            made => made,
        };
        match made {
            Ok(made) => {
                let reformatted = stamps(self.repository().folder(), &paths) != before;
                let left_dirty = if reformatted {
                    self.follow_hook(&paths)?
                } else {
                    Vec::new()
                };
                self.tip(made, left_dirty)
            }
            Err(e) => {
                self.forget(&new, DOING)?;
                Err(e)
            }
        }
    }

    /// Commits `paths` as they are in a satellite's worktree, behind the coordinator's door.
    ///
    /// No hook runs. With the same head, files, message and signature it makes the same commit, so a
    /// repeated close finds what the first one left. It is signed when the user's own configuration says
    /// `commit.gpgSign` (and the same only if the key's format has no clock: `ssh`).
    ///
    /// # Errors
    ///
    /// [`Kind::Filter`], [`Kind::NoIdentity`], [`Kind::DetachedHead`], [`Kind::NonFastForward`] when the
    /// branch moved meanwhile, [`Kind::InProgress`], [`Kind::Locked`].
    pub fn commit_as(
        &self,
        paths: &[PathBuf],
        message: &Message,
        signature: &Signature,
    ) -> Result<Commit, Error> {
        const DOING: &str = "committing for a session";
        let _turn = self.take_turn(DOING)?;
        self.refuse_if_in_progress(DOING)?;
        let tree = self.tree_of(paths)?;
        let head = self.head()?;
        let Some(branch) = head.branch() else {
            return Err(self.error(DOING, Kind::DetachedHead));
        };
        let full = self.branch_ref(branch)?;
        let (oid, made) = match head.oid() {
            Some(at) if self.tree(at)? == tree => (at.clone(), false),
            parent => {
                let parents: Vec<&Oid> = parent.into_iter().collect();
                let oid = self.commit_tree(&tree, &parents, &message.render(), signature, None)?;
                let old = parent.cloned().unwrap_or_else(|| oid.zero());
                let subject = message.text.lines().next().unwrap_or_default();
                self.move_ref(DOING, &full, &oid, &old, &format!("commit: {subject}"))?;
                (oid, true)
            }
        };
        if !paths.is_empty() {
            index::take(self, &self.index_file(), paths, DOING)?;
        }
        Ok(Commit {
            oid,
            tree,
            made,
            left_dirty: Vec::new(),
        })
    }

    /// Returns the tree of a commit.
    ///
    /// # Errors
    ///
    /// Whatever keeps git from answering.
    pub fn tree(&self, commit: &Oid) -> Result<Oid, Error> {
        const DOING: &str = "reading a commit's tree";
        let out = self
            .git(DOING)
            .args(["rev-parse", "--verify", &format!("{commit}^{{tree}}")])
            .run()?;
        Oid::from_bytes(&out).ok_or_else(|| self.garbled(DOING))
    }

    /// Writes a commit object whose name depends on its arguments alone.
    pub(crate) fn commit_tree(
        &self,
        tree: &Oid,
        parents: &[&Oid],
        message: &str,
        signature: &Signature,
        author: Option<&Author>,
    ) -> Result<Oid, Error> {
        const DOING: &str = "writing a commit";
        let config = self.configuration(DOING)?;
        let identity = match &signature.identity {
            Some(given) => given.clone(),
            None => match (config.get("user.name"), config.get("user.email")) {
                (Some(name), Some(email)) if !name.trim().is_empty() => Identity {
                    name: name.to_owned(),
                    email: email.to_owned(),
                },
                _ => return Err(self.error(DOING, Kind::NoIdentity)),
            },
        };
        let date = format!("@{} +0000", signature.seconds);
        let (by, at) = author.map_or((&identity, &date), |author| (&author.identity, &author.date));
        let git = self
            .git(DOING)
            .env("GIT_AUTHOR_NAME", &by.name)
            .env("GIT_AUTHOR_EMAIL", &by.email)
            .env("GIT_AUTHOR_DATE", at)
            .env("GIT_COMMITTER_NAME", &identity.name)
            .env("GIT_COMMITTER_EMAIL", &identity.email)
            .env("GIT_COMMITTER_DATE", &date);
        let sign = config.flag("commit.gpgsign") == Some(true);
        let git = git.arg("commit-tree").args(sign.then_some("-S"));
        let git = git.args(parents.iter().flat_map(|parent| ["-p", parent.as_str()]));
        let out = git
            .args(["-F", "-", tree.as_str()])
            .input(message.as_bytes().to_vec())
            .run()?;
        Oid::from_bytes(&out).ok_or_else(|| self.garbled(DOING))
    }

    /// Refuses paths whose attributes name a filter that is not there: their content would be committed raw.
    ///
    /// Behind the user's door the repository's own filters count, so nothing is refused.
    pub(crate) fn check_filters(&self, paths: &[PathBuf]) -> Result<(), Error> {
        const DOING: &str = "looking for filters";
        if !self.is_coordinator() || paths.is_empty() {
            return Ok(());
        }
        let git = self
            .git(DOING)
            .args(["check-attr", "-z", "--stdin", "filter"])
            .input_paths(paths);
        let out = git.run()?;
        let mut named: BTreeMap<&[u8], &[u8]> = BTreeMap::new();
        let tokens: Vec<&[u8]> = split_nul(&out).collect();
        for line in tokens.chunks_exact(3) {
            if !matches!(line[2], b"unspecified" | b"unset" | b"set" | b"") {
                named.entry(line[2]).or_insert(line[0]);
            }
        }
        if named.is_empty() {
            return Ok(());
        }
        let config = self.configuration(DOING)?;
        for (filter, path) in named {
            let name = String::from_utf8_lossy(filter).into_owned();
            let is = |what: &str| {
                config
                    .get(&format!("filter.{name}.{what}"))
                    .is_some_and(|v| !v.is_empty())
            };
            if !is("clean") && !is("process") {
                return Err(self.error(
                    DOING,
                    Kind::Filter {
                        path: to_path(path),
                        name,
                    },
                ));
            }
        }
        Ok(())
    }

    /// Returns what git says of its configuration, asked once for a door: a close commits and merges as the
    /// same person.
    fn configuration(&self, doing: &'static str) -> Result<&Config, Error> {
        if let Some(known) = self.configuration.get() {
            return Ok(known);
        }
        let listed = self.git(doing).args(["config", "--list", "-z"]).run()?;
        Ok(self.configuration.get_or_init(|| Config::from_list(&listed)))
    }

    fn tip(&self, made: bool, left_dirty: Vec<PathBuf>) -> Result<Commit, Error> {
        const DOING: &str = "reading the tip";
        match self.head()?.oid() {
            Some(oid) => Ok(Commit {
                oid: oid.clone(),
                tree: self.tree(oid)?,
                made,
                left_dirty,
            }),
            None => Err(self.error(DOING, Kind::UnbornHead)),
        }
    }

    /// Sorts paths into what the index or the last commit knows and what is new.
    fn known_paths(&self, paths: &[PathBuf], doing: &'static str) -> Result<Known, Error> {
        let top = self.repository().folder();
        let out = self.git(doing).args(["ls-files", "-z", "--cached"]).run()?;
        let known: HashSet<PathBuf> = split_nul(&out).map(to_path).collect();
        let mut sorted = Known {
            paths: Vec::new(),
            new: Vec::new(),
        };
        let given: HashSet<&Path> = paths.iter().map(PathBuf::as_path).collect();
        let mut gone = Vec::new();
        for path in paths {
            let on_disk = top.join(path);
            let found = on_disk.symlink_metadata();
            let is_folder =
                found.as_ref().is_ok_and(|found| found.is_dir()) && Repository::at(&on_disk).is_none();
            match (known.contains(path), found) {
                // A folder took a file's place. To `git commit` its name would mean all that is in it; the
                // file goes anyway when what is below it comes.
                (true, _) if is_folder => {
                    if !given
                        .iter()
                        .any(|other| other.starts_with(path) && *other != path)
                    {
                        let what = "a folder of somebody else's in the place of a file";
                        return Err(self.error(doing, Kind::Unsupported { what }));
                    }
                }
                (true, _) => sorted.paths.push(path.clone()),
                (false, Ok(_)) if !is_folder => {
                    sorted.new.push(path.clone());
                    sorted.paths.push(path.clone());
                }
                (false, _) => gone.push(path.clone()),
            }
        }
        // Gone from index and disk: to be committed only if the last commit still has it.
        if !gone.is_empty()
            && let Some(head) = self.head()?.oid()
        {
            let git =
                self.git(doing)
                    .args(["ls-tree", "-r", "-z", "--name-only", "--full-tree", head.as_str()]);
            let committed: HashSet<PathBuf> = split_nul(&git.run()?).map(to_path).collect();
            sorted
                .paths
                .extend(gone.into_iter().filter(|path| committed.contains(path)));
        }
        Ok(sorted)
    }

    fn announce_and_commit(
        &self,
        paths: &[PathBuf],
        new: &[PathBuf],
        message: &Message,
    ) -> Result<bool, Error> {
        const TRIES: usize = 4;
        for _ in 1..TRIES {
            self.announce(new, "committing")?;
            match self.commit_once(paths, message) {
                // A stranger's git has written an index that it read before ours was announced.
                Err(e) if !new.is_empty() && e.stderr().contains("did not match any file") => {}
                answer => return answer,
            }
        }
        self.announce(new, "committing")?;
        self.commit_once(paths, message)
    }

    /// Tells the index that new files will come: `git commit` takes no path that it does not know.
    fn announce(&self, new: &[PathBuf], doing: &'static str) -> Result<(), Error> {
        if new.is_empty() {
            return Ok(());
        }
        let git = self.git(doing).args(["add", "--intent-to-add", "--force"]);
        git.args(["--pathspec-from-file=-", "--pathspec-file-nul"])
            .input_paths(new)
            .run()?;
        Ok(())
    }

    fn forget(&self, new: &[PathBuf], doing: &'static str) -> Result<(), Error> {
        if new.is_empty() {
            return Ok(());
        }
        let git = self
            .git(doing)
            .args(["update-index", "-z", "--force-remove", "--stdin"]);
        git.input_paths(new).run()?;
        Ok(())
    }

    /// Runs `git commit` once; false when there was nothing to commit.
    fn commit_once(&self, paths: &[PathBuf], message: &Message) -> Result<bool, Error> {
        const DOING: &str = "committing";
        let trace = self.scratch("trace");
        let refusal = || refusing_hook(&fs::read_to_string(&trace).unwrap_or_default());
        let out = self
            .git(DOING)
            .env("GIT_TRACE2_EVENT", &trace)
            .args(["commit", "--quiet", "--only", "--cleanup=whitespace", "--no-edit"])
            .arg(format!("--message={}", message.render()))
            .args(["--pathspec-from-file=-", "--pathspec-file-nul"])
            .input_paths(paths)
            // A hook that ran into a lock has answered: git itself holds the index while it runs.
            .output_unless(|| refusal().is_some());
        let refusal = refusal();
        let _ = fs::remove_file(&trace);
        let out = out?;
        if out.status.success() {
            return Ok(true);
        }
        if let Some(hook) = refusal {
            let kind = Kind::HookRefused {
                hook,
                output: printed(&out),
            };
            return Err(self.error(DOING, kind).with_stderr(&out.stderr));
        }
        if out.status.code() == Some(1) && says_nothing_to_commit(&out) {
            return Ok(false);
        }
        Err(failure(DOING, self.repository().folder(), &out))
    }

    /// Puts the index where the commit is, for paths that a hook has rewritten and staged: git keeps there
    /// what was staged before the hook. Returns the paths whose files still differ.
    fn follow_hook(&self, paths: &[PathBuf]) -> Result<Vec<PathBuf>, Error> {
        const DOING: &str = "following a hook's changes";
        let git = self.git(DOING).args([
            "reset",
            "--quiet",
            "--pathspec-from-file=-",
            "--pathspec-file-nul",
        ]);
        git.input_paths(paths).run()?;
        let ours: HashSet<&PathBuf> = paths.iter().collect();
        let entries = self.status()?.entries;
        Ok(entries
            .into_iter()
            .map(|entry| entry.path)
            .filter(|path| ours.contains(path))
            .collect())
    }
}

struct Known {
    paths: Vec<PathBuf>,
    new: Vec<PathBuf>,
}

/// What changes when a file is written: enough to notice a hook at work, without reading files.
fn stamps(top: &Path, paths: &[PathBuf]) -> Vec<Option<(u64, i64, i64, u64)>> {
    use std::os::unix::fs::MetadataExt;
    let stamp = |path: &PathBuf| {
        let found = top.join(path).symlink_metadata().ok()?;
        Some((found.ino(), found.mtime(), found.mtime_nsec(), found.len()))
    };
    paths.iter().map(stamp).collect()
}

pub(crate) fn printed(out: &Output) -> String {
    let both = [&out.stdout[..], &out.stderr[..]].concat();
    String::from_utf8_lossy(&both).trim().to_owned()
}

fn says_nothing_to_commit(out: &Output) -> bool {
    let said = printed(out);
    said.is_empty()
        || ["nothing to commit", "nothing added to commit", "no changes added"]
            .iter()
            .any(|w| said.contains(w))
}

/// Finds the hook that ended with a failure in git's own account of what it started. Lines of a git that
/// a hook started have a `/` in their session's name.
pub(crate) fn refusing_hook(trace: &str) -> Option<String> {
    let field = |line: &str, name: &str| -> Option<String> {
        let start = line.find(&format!("\"{name}\":"))? + name.len() + 3;
        let rest = line[start..].trim_start_matches('"');
        Some(rest[..rest.find(['"', ',', '}'])?].to_owned())
    };
    let own = |line: &&str| field(line, "sid").is_some_and(|sid| !sid.contains('/'));
    let mut started: BTreeMap<String, String> = BTreeMap::new();
    for line in trace.lines().filter(own) {
        match (field(line, "event").as_deref(), field(line, "child_id")) {
            (Some("child_start"), Some(id)) if line.contains("\"child_class\":\"hook\"") => {
                started.insert(id, field(line, "hook_name")?);
            }
            (Some("child_exit"), Some(id)) if field(line, "code").as_deref() != Some("0") => {
                if let Some(hook) = started.remove(&id)
                    && hook != "post-commit"
                {
                    return Some(hook);
                }
            }
            _ => {}
        }
    }
    None
}
