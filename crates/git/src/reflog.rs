//! What the head's log says about where a commit came from.

use crate::{Oid, Repository};
use std::collections::HashMap;
#[cfg(test)]
use std::collections::HashSet;
use std::fs;

/// Whether a commit was made in this checkout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Made {
    /// By a commit, cherry-pick, revert, amend or a rebase's pick in this checkout.
    Here,
    /// Elsewhere: a pull, a merge, a reset or a checkout brought it.
    Brought,
    /// Nobody can tell: the log is off, or somebody moved the branch by hand.
    Unknown,
}

/// The head's log of one checkout.
#[derive(Debug, Default)]
pub(crate) struct Reflog {
    moves: HashMap<String, Made>,
    readable: bool,
    by_hand: bool,
}

impl Reflog {
    /// Reads the log; one that is missing knows nothing.
    pub fn read(repository: &Repository) -> Reflog {
        match fs::read(repository.git_dir().join("logs/HEAD")) {
            Ok(bytes) if !bytes.is_empty() => Reflog::parse(&bytes),
            _ => Reflog::default(),
        }
    }

    fn parse(bytes: &[u8]) -> Reflog {
        let mut log = Reflog {
            readable: true,
            ..Reflog::default()
        };
        for line in bytes.split(|b| *b == b'\n') {
            // `old new name <mail> time zone\tmessage`
            let tab = line.iter().position(|b| *b == b'\t');
            let (fields, why) = tab.map_or((line, &b""[..]), |at| (&line[..at], &line[at + 1..]));
            let Some(new) = fields.split(|b| *b == b' ').nth(1).and_then(Oid::from_bytes) else {
                continue;
            };
            let made = judge(&String::from_utf8_lossy(why));
            log.by_hand |= made == Made::Unknown;
            let known = log.moves.entry(new.as_str().to_owned()).or_insert(made);
            // A commit made here and later reset to is still one made here.
            if made == Made::Here || *known == Made::Unknown && made != Made::Unknown && *known != Made::Here
            {
                *known = made;
            }
        }
        log
    }

    /// Tells whether `commit` was made here.
    ///
    /// One that the head never stood on came with one that it did: it was brought, unless somebody moved
    /// the head in a way that the log does not explain.
    pub fn made(&self, commit: &Oid) -> Made {
        match self.moves.get(commit.as_str()) {
            Some(made) => *made,
            None if self.readable && !self.by_hand => Made::Brought,
            None => Made::Unknown,
        }
    }

    /// Returns all commits that were made here.
    #[cfg(test)]
    fn here(&self) -> HashSet<&str> {
        self.moves
            .iter()
            .filter(|(_, made)| **made == Made::Here)
            .map(|(oid, _)| oid.as_str())
            .collect()
    }
}

/// Reads the message that git leaves: `commit (amend): …`, `pull --rebase (pick): …`, `merge x: Fast-forward`.
fn judge(why: &str) -> Made {
    let (action, rest) = why.split_once(": ").unwrap_or((why.trim_end_matches(':'), ""));
    let verb = action.split(' ').next().unwrap_or_default();
    let step = action
        .rsplit_once('(')
        .and_then(|(_, step)| step.strip_suffix(')'))
        .unwrap_or_default();
    match verb {
        "commit" | "cherry-pick" | "revert" | "am" => Made::Here,
        "rebase" | "pull" if !step.is_empty() => match step {
            "start" | "finish" | "abort" => Made::Brought,
            _ => Made::Here,
        },
        // The merge commit itself was made here; what it brought has other names.
        "merge" | "pull" if rest.starts_with("Merge made") => Made::Here,
        "merge" | "pull" | "rebase" | "reset" | "checkout" | "clone" | "fetch" | "branch" | "initial" => {
            Made::Brought
        }
        _ => Made::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_that_git_leaves_is_judged() {
        for (why, made) in [
            ("commit: x", Made::Here),
            ("commit (initial): x", Made::Here),
            ("commit (amend): x: y", Made::Here),
            ("commit (merge): Merge branch 'o'", Made::Here),
            ("cherry-pick: x", Made::Here),
            ("revert: x", Made::Here),
            ("rebase (pick): x", Made::Here),
            ("rebase (start): checkout origin/main", Made::Brought),
            ("rebase (finish): returning to refs/heads/main", Made::Brought),
            ("pull --rebase (pick): x", Made::Here),
            ("pull --rebase origin main (start): checkout 123", Made::Brought),
            ("pull: Fast-forward", Made::Brought),
            ("merge o: Fast-forward", Made::Brought),
            ("merge o: Merge made by the 'ort' strategy.", Made::Here),
            ("reset: moving to HEAD~1", Made::Brought),
            ("checkout: moving from a to b", Made::Brought),
            ("", Made::Unknown),
            ("something: else", Made::Unknown),
        ] {
            assert_eq!(judge(why), made, "{why}");
        }
    }

    #[test]
    fn a_commit_made_here_stays_so_after_a_reset_to_it() {
        let (a, b) = ("a".repeat(40), "b".repeat(40));
        let text = format!(
            "{a} {b} N <m> 1 +0000\tcommit: x\n{b} {a} N <m> 1 +0000\treset: moving to HEAD~1\n\
             {a} {b} N <m> 1 +0000\treset: moving to {b}\n"
        );
        let log = Reflog::parse(text.as_bytes());
        assert_eq!(log.here(), HashSet::from([b.as_str()]));
    }
}
