//! The three kinds of no, and how each is shown: refused by the rules, failed by the world, a bug of ours.

use std::path::{Path, PathBuf};

use protocol::refusal::Refusal;
use serde_json::{Value, json};
use store::Fault;

use crate::advice::{self, Advice, quote};
use crate::{exit, facts, wire};

/// Why a command did not do what was asked.
#[derive(Debug)]
pub enum Failure {
    /// The rules say no.
    Refused(Box<Refusal>),
    /// The rules say no to a lock, whose exit codes are its own.
    LockRefused(Box<Refusal>),
    /// The store failed.
    Fault(Fault),
    /// The world failed in another way, or the request makes no sense.
    Other(Box<Trouble>),
}

/// A failure with its own code and words.
#[derive(Debug)]
pub struct Trouble {
    /// The exit code.
    pub exit: u8,
    /// The dotted code.
    pub code: &'static str,
    /// What happened, to what: one line.
    pub message: String,
    /// More of it for people, on lines of its own; machines have the facts.
    pub detail: String,
    /// What to do now.
    pub advice: Vec<Advice>,
    /// Facts for machines.
    pub facts: Value,
}

impl Trouble {
    /// A failure in words.
    pub fn new(exit: u8, code: &'static str, message: impl Into<String>) -> Trouble {
        Trouble {
            exit,
            code,
            message: message.into(),
            detail: String::new(),
            advice: Vec::new(),
            facts: json!({}),
        }
    }

    /// Wrong usage.
    pub fn usage(message: impl Into<String>) -> Trouble {
        Trouble::new(exit::USAGE, "usage", message)
    }

    /// A file that could not be read or written.
    pub fn io(doing: &str, path: &Path, error: &std::io::Error) -> Trouble {
        Trouble::new(
            exit::UNREACHABLE,
            "io",
            format!("{doing} {}: {error}", path.display()),
        )
    }

    /// Adds the command that mends it.
    pub fn fix(mut self, say: &str, run: impl Into<String>) -> Trouble {
        self.advice.push(Advice {
            say: say.to_owned(),
            run: Some(run.into()),
        });
        self
    }

    /// Adds advice without a command.
    pub fn hint(mut self, say: impl Into<String>) -> Trouble {
        self.advice.push(Advice {
            say: say.into(),
            run: None,
        });
        self
    }

    /// Adds lines for people.
    pub fn detail(mut self, detail: impl Into<String>) -> Trouble {
        self.detail = detail.into();
        self
    }

    /// Adds facts for machines.
    pub fn facts(mut self, facts: Value) -> Trouble {
        self.facts = facts;
        self
    }
}

impl From<Trouble> for Failure {
    fn from(trouble: Trouble) -> Failure {
        Failure::Other(Box::new(trouble))
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Failure {
        Failure::Refused(Box::new(refusal))
    }
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Failure {
        Failure::Fault(fault)
    }
}

/// A failure as it is shown.
pub struct Shown {
    /// The exit code.
    pub exit: u8,
    /// `refused`, `fault` or `bug`.
    pub kind: &'static str,
    /// The dotted code.
    pub code: &'static str,
    /// What happened.
    pub message: String,
    /// More of it for people.
    pub detail: String,
    /// What to do now.
    pub advice: Vec<Advice>,
    /// Facts for machines.
    pub facts: Value,
}

impl Failure {
    /// Its exit code, words and facts.
    pub fn shown(&self) -> Shown {
        match self {
            Failure::Refused(refusal) => refused(refusal, exit::of_refusal(refusal)),
            Failure::LockRefused(refusal) => refused(refusal, exit::of_lock(refusal)),
            Failure::Fault(fault) => Shown {
                exit: exit::of_fault(fault),
                kind: "fault",
                code: exit::fault_code(fault),
                message: fault.to_string(),
                detail: String::new(),
                advice: fault_advice(fault),
                facts: json!({}),
            },
            Failure::Other(it) => Shown {
                exit: it.exit,
                kind: kind(it.exit),
                code: it.code,
                message: it.message.clone(),
                detail: it.detail.clone(),
                advice: it.advice.clone(),
                facts: it.facts.clone(),
            },
        }
    }
}

/// What cannot be asked for is refused, like what the rules refuse; what the world failed at is a fault.
fn kind(exit: u8) -> &'static str {
    match exit {
        exit::BUG => "bug",
        exit::UNREACHABLE | exit::BUSY | exit::CONFIG => "fault",
        _ => "refused",
    }
}

fn refused(refusal: &Refusal, exit: u8) -> Shown {
    let (message, advice) = advice::of_refusal(refusal);
    Shown {
        exit,
        kind: "refused",
        code: refusal.code(),
        message,
        detail: String::new(),
        advice,
        facts: facts::of_refusal(refusal),
    }
}

fn fault_advice(fault: &Fault) -> Vec<Advice> {
    let one = |say: &str, run: String| {
        vec![Advice {
            say: say.to_owned(),
            run: Some(run),
        }]
    };
    let hint = |say: &str| {
        vec![Advice {
            say: say.to_owned(),
            run: None,
        }]
    };
    match fault {
        Fault::Missing(path) => {
            let root = path
                .parent()
                .and_then(Path::parent)
                .map_or_else(PathBuf::new, Path::to_owned);
            one(
                "make the store",
                format!("brain init --root {}", quote(&root.display().to_string())),
            )
        }
        Fault::Busy { .. } => hint("run the same command again"),
        Fault::TooNew { .. } => {
            hint("install the newest brain; this one changes nothing in a store that it does not know")
        }
        Fault::Filesystem { .. } => hint("keep `.brain/` on a local disk"),
        Fault::Replaced(_) => hint("run the same command again: it opens the file that is there now"),
        Fault::Disk { .. } => one("look at the disk", "df -h .brain && ls -ld .brain".to_owned()),
        Fault::Damaged { .. } => one("see what can be saved", "brain doctor".to_owned()),
        _ => one("look at the store", "brain doctor".to_owned()),
    }
}

impl Shown {
    /// The error document.
    pub fn document(&self) -> Value {
        let advice: Vec<Value> = self
            .advice
            .iter()
            .map(|it| match &it.run {
                Some(run) => json!({ "say": it.say, "run": run }),
                None => json!({ "say": it.say }),
            })
            .collect();
        json!({
            "v": wire::VERSION,
            "ok": false,
            "error": {
                "kind": self.kind,
                "code": self.code,
                "exit": self.exit,
                "message": self.message,
                "facts": self.facts,
                "advice": advice,
            },
        })
    }

    /// The lines for a person.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!("error: {} [{}]", self.message, self.code)];
        lines.extend(self.detail.lines().map(str::to_owned));
        for it in self.advice.iter().take(4) {
            lines.push(match &it.run {
                Some(run) => format!("  {}: {run}", it.say),
                None => format!("  {}", it.say),
            });
        }
        lines
    }
}
