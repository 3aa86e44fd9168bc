//! To and from a remote: never by force.

use crate::command::failure;
use crate::commit::{printed, refusing_hook};
use crate::door::Door;
use crate::{Error, Kind, Oid};
use std::fs;
use std::process::Output;

impl Door {
    /// Pushes a branch to the same name at `remote` (a name or an address), forward only.
    ///
    /// With `expected`, the remote's branch must stand exactly there and be in the branch's history.
    /// Behind the coordinator's door `remote` is an address: the repository's list of remotes does not
    /// count there.
    ///
    /// # Errors
    ///
    /// [`Kind::NonFastForward`] (fetch, rebase, again), [`Kind::PushRefused`], [`Kind::HookRefused`] for
    /// `pre-push`, [`Kind::Unreachable`], [`Kind::Unknown`] for the branch.
    pub fn push(&self, remote: &str, branch: &str, expected: Option<&Oid>) -> Result<Oid, Error> {
        const DOING: &str = "pushing";
        let full = self.branch_ref(branch)?;
        self.check_remote(remote)?;
        let missing = || {
            self.error(
                DOING,
                Kind::Unknown {
                    name: branch.to_owned(),
                },
            )
        };
        let tip = self.branch(branch)?.ok_or_else(missing)?;
        let moved = || self.error(DOING, Kind::NonFastForward { name: full.clone() });
        if let Some(expected) = expected {
            // A lease alone would let history be rewritten; one on an ancestor cannot.
            match self.is_ancestor(expected, &tip) {
                Ok(true) => {}
                Ok(false) => return Err(moved()),
                Err(e) if matches!(e.kind(), Kind::Unknown { .. }) => return Err(moved()),
                Err(e) => return Err(e),
            }
        }
        let trace = self.scratch("trace");
        let lease = expected.map(|expected| format!("--force-with-lease={full}:{expected}"));
        let git = self.git(DOING).env("GIT_TRACE2_EVENT", &trace);
        let git = git.args([
            "push",
            "--porcelain",
            "--no-follow-tags",
            "--recurse-submodules=no",
            "--atomic",
        ]);
        let out = git
            .args(lease)
            .args(["--", remote])
            .arg(format!("{tip}:{full}"))
            .output();
        let traced = fs::read_to_string(&trace).unwrap_or_default();
        let _ = fs::remove_file(&trace);
        let out = out?;
        if out.status.success() {
            return Ok(tip);
        }
        let kind = match (verdict(&out), refusing_hook(&traced)) {
            (Some(Verdict::Moved), _) => return Err(moved().with_stderr(&out.stderr)),
            (Some(Verdict::Refused(reason)), _) => Kind::PushRefused { reason },
            (None, Some(hook)) => Kind::HookRefused {
                hook,
                output: printed(&out),
            },
            (None, None) => return Err(self.network_failure(DOING, &out)),
        };
        Err(self.error(DOING, kind).with_stderr(&out.stderr))
    }

    /// Fetches a branch and returns its tip; `None` when the remote has no such branch.
    ///
    /// It is kept under `refs/brain/fetched/`, so nobody's remote-tracking branch is rewritten by us.
    ///
    /// # Errors
    ///
    /// [`Kind::Unreachable`].
    pub fn fetch(&self, remote: &str, branch: &str) -> Result<Option<Oid>, Error> {
        const DOING: &str = "fetching";
        let full = self.branch_ref(branch)?;
        self.check_remote(remote)?;
        let kept = format!("refs/brain/fetched/{branch}");
        let git = self
            .git(DOING)
            .args(["fetch", "--quiet", "--no-tags", "--no-write-fetch-head"]);
        let git = git
            .args(["--recurse-submodules=no", "--", remote])
            .arg(format!("+{full}:{kept}"));
        let out = git.output()?;
        match out.status.success() {
            true => self.resolve(&kept),
            false if String::from_utf8_lossy(&out.stderr).contains("couldn't find remote ref") => Ok(None),
            false => Err(self.network_failure(DOING, &out)),
        }
    }

    fn check_remote(&self, remote: &str) -> Result<(), Error> {
        // `ext::` is a command line, and an agent may have written the name down.
        match remote.is_empty() || remote.starts_with('-') || remote.starts_with("ext::") {
            true => Err(self.error(
                "naming a remote",
                Kind::BadName {
                    name: remote.to_owned(),
                },
            )),
            false => Ok(()),
        }
    }

    fn network_failure(&self, doing: &'static str, out: &Output) -> Error {
        const SIGNS: [&str; 9] = [
            "Could not read from remote repository",
            "unable to access",
            "does not appear to be a git repository",
            "Could not resolve host",
            "Connection refused",
            "unable to connect",
            "Authentication failed",
            "terminal prompts disabled",
            "does not exist",
        ];
        let said = String::from_utf8_lossy(&out.stderr);
        match SIGNS.iter().any(|sign| said.contains(sign)) {
            true => self.error(doing, Kind::Unreachable).with_stderr(&out.stderr),
            false => failure(doing, self.repository().folder(), out),
        }
    }
}

enum Verdict {
    Moved,
    Refused(String),
}

/// Reads what the remote said of the one ref: `!\t<from>:<to>\t[rejected] (fetch first)`.
fn verdict(out: &Output) -> Option<Verdict> {
    let text = String::from_utf8_lossy(&out.stdout);
    let line = text.lines().find_map(|line| line.strip_prefix("!\t"))?;
    let summary = line.split('\t').nth(1).unwrap_or(line);
    let moved = [
        "(fetch first)",
        "(non-fast-forward)",
        "(stale info)",
        "(remote ref updated since checkout)",
    ];
    // Two that push at once: the loser hears it from the remote, as a lock or a lost swap.
    let raced = ["cannot lock ref", "failed to update ref", "but expected"];
    if moved.iter().chain(&raced).any(|words| summary.contains(words)) {
        return Some(Verdict::Moved);
    }
    Some(Verdict::Refused(summary.to_owned()))
}
