//! What a driver tells whoever watches, and why it could not go on.

use std::path::PathBuf;

use protocol::facts::claim::Outcome as Went;
use protocol::facts::gate::Gate;
use protocol::facts::id::SessId;
use protocol::refusal::Refusal;

use crate::close;

/// What happens, for whoever watches.
#[derive(Clone, PartialEq, Debug)]
pub enum News {
    /// A phase is about to be delegated: its number, title, zones and type.
    Announced {
        /// The phase.
        phase: String,
        /// Its title.
        title: String,
        /// The zones that its scope names.
        zones: Vec<String>,
        /// Its type.
        kind: String,
    },
    /// Something that a human should know and need not answer.
    Told {
        /// The phase.
        phase: String,
        /// What.
        what: String,
    },
    /// A worktree was made fit to work in.
    Prepared {
        /// The phase.
        phase: String,
        /// How long it took, in milliseconds.
        took_ms: u64,
    },
    /// An agent was started.
    Started {
        /// The phase.
        phase: String,
        /// Its claim.
        claim: SessId,
        /// Its log.
        log: PathBuf,
    },
    /// An agent that was running already was taken back.
    TakenBack {
        /// The phase.
        phase: String,
        /// Its claim.
        claim: SessId,
    },
    /// An agent ended.
    Ended {
        /// The phase.
        phase: String,
        /// How.
        how: String,
        /// How long it ran, in milliseconds.
        ran_ms: u64,
    },
    /// A close said no.
    Refused {
        /// The phase.
        phase: String,
        /// Why.
        why: Box<Refusal>,
    },
    /// A phase came to an end.
    Settled {
        /// The phase.
        phase: String,
        /// With what.
        outcome: Went,
        /// The lines of its claim's summary.
        summary: Vec<String>,
    },
    /// A gate waits.
    Gate(Box<Gate>),
    /// A branch was merged.
    Merged {
        /// The repository.
        repo: String,
        /// The branch that it went into.
        into: String,
        /// The commit.
        commit: String,
    },
}

/// Who watches a run and answers its gates.
pub trait Face: Sync {
    /// Hears what happens, from any thread.
    fn hear(&self, news: News);
}

/// Why a run could not go on.
#[derive(Debug)]
#[non_exhaustive]
pub enum Trouble {
    /// The rules say no.
    Refused(Box<Refusal>),
    /// The store failed.
    Store(store::Fault),
    /// git failed.
    Git(git::Error),
    /// A child could not be handled.
    Launch(crate::launch::Error),
    /// A close failed.
    Close(Box<close::CloseError>),
    /// A file could not be handled.
    Io(&'static str, PathBuf, std::io::Error),
    /// The theme does not merge into the main branch.
    MergeConflict {
        /// The repository.
        repo: String,
        /// The files.
        files: Vec<String>,
    },
    /// The main branch's checkout would lose something.
    WouldOverwrite {
        /// The repository.
        repo: String,
        /// The paths.
        paths: Vec<String>,
    },
    /// A branch of the theme's name is there and no run of this brain made it.
    BranchExists {
        /// The branch.
        branch: String,
        /// The repository.
        repo: String,
    },
    /// The run has no place to begin at.
    Place {
        /// What is missing.
        why: String,
        /// The command that makes it.
        mend: String,
    },
    /// A phase asks for what cannot be had.
    Phase {
        /// The phase.
        phase: String,
        /// Why.
        why: String,
    },
}

impl From<store::Fault> for Trouble {
    fn from(fault: store::Fault) -> Trouble {
        Trouble::Store(fault)
    }
}

impl From<git::Error> for Trouble {
    fn from(error: git::Error) -> Trouble {
        Trouble::Git(error)
    }
}

impl From<crate::launch::Error> for Trouble {
    fn from(error: crate::launch::Error) -> Trouble {
        Trouble::Launch(error)
    }
}

impl From<Refusal> for Trouble {
    fn from(refusal: Refusal) -> Trouble {
        Trouble::Refused(Box::new(refusal))
    }
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Trouble::Refused(refusal) => write!(f, "refused: {}", refusal.code()),
            Trouble::Store(fault) => fault.fmt(f),
            Trouble::Git(error) => error.fmt(f),
            Trouble::Launch(error) => error.fmt(f),
            Trouble::Close(error) => error.fmt(f),
            Trouble::Io(doing, path, error) => write!(f, "cannot {doing} {}: {error}", path.display()),
            Trouble::MergeConflict { repo, files } => {
                write!(f, "the theme does not merge in {repo}: {}", files.join(", "))
            }
            Trouble::WouldOverwrite { repo, paths } => {
                write!(f, "the merge in {repo} would overwrite {}", paths.join(", "))
            }
            Trouble::BranchExists { branch, repo } => {
                write!(
                    f,
                    "{branch} is there already in {repo}, and no run of this brain made it"
                )
            }
            Trouble::Place { why, .. } => f.write_str(why),
            Trouble::Phase { phase, why } => write!(f, "phase {phase}: {why}"),
        }
    }
}
