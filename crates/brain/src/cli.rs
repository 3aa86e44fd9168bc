//! The grammar of the command line; what each word does is in `commands/`.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Whether these bare words ask for JSON, also where the grammar does not understand them.
pub fn asks_for_json(args: &[std::ffi::OsString]) -> bool {
    args.iter()
        .take_while(|arg| *arg != "--")
        .any(|arg| arg == "--json")
}

/// The colours of help and of mistakes in the grammar, which are shown before the words are understood.
pub fn help_color(args: &[std::ffi::OsString]) -> clap::ColorChoice {
    let words: Vec<&str> = args
        .iter()
        .take_while(|arg| *arg != "--")
        .filter_map(|arg| arg.to_str())
        .collect();
    let pair = words
        .windows(2)
        .find(|pair| pair[0] == "--color")
        .map(|pair| pair[1]);
    match words
        .iter()
        .find_map(|word| word.strip_prefix("--color="))
        .or(pair)
    {
        Some("always") => clap::ColorChoice::Always,
        Some("never") => clap::ColorChoice::Never,
        _ => clap::ColorChoice::Auto,
    }
}

/// Lets several agents and people work at once on the same repositories.
#[derive(Parser, Debug)]
#[command(
    name = "brain",
    version,
    max_term_width = 100,
    arg_required_else_help = true,
    disable_help_subcommand = true,
    after_help = "Start with `brain demo`: the whole story in a minute, in a folder of its own."
)]
pub struct Cli {
    #[command(flatten)]
    pub globals: Globals,
    #[command(subcommand)]
    pub command: Command,
}

/// What every command takes.
#[derive(Args, Debug, Clone, Default)]
pub struct Globals {
    /// The brain root; left out: the nearest folder above that holds `.brain/`
    #[arg(long, global = true, value_name = "DIR", env = "BRAIN_ROOT")]
    pub root: Option<PathBuf>,
    /// One JSON document on standard output, also for errors
    #[arg(long, global = true)]
    pub json: bool,
    /// Print only the answer
    #[arg(long, short, global = true)]
    pub quiet: bool,
    /// Colours
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN")]
    pub color: ColorWhen,
}

/// When colours are used.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ColorWhen {
    /// On a terminal, unless NO_COLOR is set
    #[default]
    Auto,
    Always,
    Never,
}

#[derive(Subcommand, Debug)]
pub enum Command {
    /// Make this folder a brain: `.brain/` and `brain.yml`; twice changes nothing
    #[command(
        after_help = "Example:\n  brain init && git add brain.yml && git commit -m 'brain: this repository is coordinated'"
    )]
    Init(Init),
    /// A small real repository, a plan, satellites, a gate: the whole story in a minute
    #[command(after_help = "Example:\n  brain demo\n  brain demo --keep     keep the folder and look around")]
    Demo(Demo),
    /// What is missing or wrong on this machine and in this brain, each with its fix
    #[command(after_help = "Example:\n  brain doctor")]
    Doctor,
    /// Claims: who works where
    #[command(subcommand)]
    Claim(Claim),
    /// Stop everything, at once: nothing is written, opened, launched, closed or landed
    #[command(after_help = "Example:\n  brain stop \"the deploy broke production\"")]
    Stop {
        /// Why
        why: Vec<String>,
    },
    /// Lift the stop
    #[command(after_help = "Example:\n  brain thaw")]
    Thaw,
    /// Close a claim: audit, evidence, commit, landing, result
    #[command(
        after_help = "Example:\n  brain close @me\n  brain close @me --result failed --notes \"the API has no such field\""
    )]
    Close(Close),
    /// The check before each write
    #[command(subcommand)]
    Preflight(Preflight),
    /// Locks: a session's hold on a file
    #[command(subcommand)]
    Lock(Lock),
    /// Gates, pauses and aborts
    #[command(subcommand)]
    Gate(Gate),
    /// Signals between sessions
    #[command(subcommand)]
    Signal(Signal),
    /// Plans
    #[command(subcommand)]
    Plan(Plan),
    /// Run a plan, go on with a run, or look at one
    #[command(
        args_conflicts_with_subcommands = true,
        after_help = "Example:\n  brain run plan.yml --mode swarm --jobs 4\n  brain run --resume\n  brain run status"
    )]
    Run(Run),
    /// Who works here, what waits, what is wrong
    #[command(after_help = "Example:\n  brain status")]
    Status,
    /// What happened, from the journal
    #[command(after_help = "Example:\n  brain log --claim @me\n  brain log --since 2h")]
    Log(Log),
    /// Print the completions of a shell
    #[command(
        after_help = "Example:\n  brain completions bash > ~/.local/share/bash-completion/completions/brain"
    )]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// The version, and what this binary is made of
    #[command(after_help = "Example:\n  brain version --json")]
    Version,
}

#[derive(Args, Debug)]
pub struct Init {
    /// Install these hooks too
    #[arg(long, value_name = "HOST", value_delimiter = ',')]
    pub hooks: Vec<String>,
    /// Take each question's default
    #[arg(long)]
    pub yes: bool,
}

#[derive(Args, Debug)]
pub struct Demo {
    /// Keep the folder
    #[arg(long)]
    pub keep: bool,
}

#[derive(Subcommand, Debug)]
pub enum Claim {
    /// Claim a scope; prints the id alone on standard output
    #[command(
        after_help = "Example:\n  S=$(brain claim open --scope src/api --task \"add the orders endpoint\")"
    )]
    Open(Box<Open>),
    /// List live claims
    #[command(after_help = "Example:\n  brain claim list --all")]
    List {
        /// Also those that ended
        #[arg(long)]
        all: bool,
        /// One JSON document a line
        #[arg(long)]
        jsonl: bool,
    },
    /// Show a claim whole
    #[command(after_help = "Example:\n  brain claim show @me")]
    Show { id: String },
    /// Give a sign of life; a stale claim nobody took is open again
    #[command(after_help = "Example:\n  brain claim renew @me")]
    Renew { id: String },
    /// Let claims go whose owner is proven gone
    #[command(after_help = "Example:\n  brain claim reap")]
    Reap {
        /// Only those without a sign of life for this long
        #[arg(long, value_name = "D")]
        older_than: Option<String>,
    },
}

#[derive(Args, Debug)]
pub struct Open {
    /// Where it writes: folders, files, globs, `!` takes away
    #[arg(long, required = true, num_args = 1.., value_name = "P")]
    pub scope: Vec<String>,
    /// The task, one line
    #[arg(long, value_name = "TEXT")]
    pub task: String,
    /// pilot, satellite or solo
    #[arg(long = "type", value_name = "TYPE", default_value = "solo")]
    pub kind_of: String,
    /// code, test, deploy, search, brain-write or domain
    #[arg(long, value_name = "KIND", default_value = "code")]
    pub kind: String,
    /// leaf or domain
    #[arg(long, value_name = "LEVEL", default_value = "leaf")]
    pub level: String,
    /// The claim that launches it
    #[arg(long, value_name = "ID")]
    pub parent: Option<String>,
    /// What works; left out: the agent that was recognised
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// How long it lasts without a sign of life [4h; a pilot 12h]
    #[arg(long, value_name = "D")]
    pub ttl: Option<String>,
    /// The branch on which it works
    #[arg(long, value_name = "B")]
    pub branch: Option<String>,
    /// Work in a worktree of its own
    #[arg(long)]
    pub worktree: bool,
    /// `rendering`: every write needs the lock
    #[arg(long, value_name = "MODE")]
    pub mode: Option<String>,
    /// What happens after ok
    #[arg(long, value_name = "T")]
    pub on_done: Vec<String>,
    /// What happens after partial
    #[arg(long, value_name = "T")]
    pub on_partial: Vec<String>,
    /// What happens after failed
    #[arg(long, value_name = "T")]
    pub on_fail: Vec<String>,
    /// The command whose success closes it
    #[arg(long, value_name = "CMD")]
    pub tests: Option<String>,
    /// A pilot that keeps everyone else out
    #[arg(long)]
    pub exclusive: bool,
    /// Exactly this id
    #[arg(long, value_name = "ID")]
    pub id: Option<String>,
    /// The same request under the same key gets the first answer again
    #[arg(long, value_name = "K")]
    pub key: Option<String>,
    /// The last part of the id
    #[arg(long, value_name = "S")]
    pub slug: Option<String>,
    /// The process whose life is the session's
    #[arg(long, value_name = "PID")]
    pub owner_pid: Option<u32>,
    /// Where its close lands
    #[arg(long, value_name = "B")]
    pub theme: Option<String>,
    /// What is dirty in the scope is mine
    #[arg(long)]
    pub take_dirty: bool,
}

#[derive(Args, Debug)]
pub struct Close {
    /// The whole id, or @me
    pub id: String,
    /// Close with a lower result, without evidence when failed
    #[arg(long, value_name = "RESULT", value_parser = ["partial", "failed"])]
    pub result: Option<String>,
    /// Words for the result
    #[arg(long, value_name = "TEXT")]
    pub notes: Option<String>,
    /// A test report to vouch for the work
    #[arg(long, value_name = "FILE")]
    pub tests: Option<PathBuf>,
    /// Leave these changes alone (a human's word)
    #[arg(long, value_name = "PATH", num_args = 1..)]
    pub leave: Vec<String>,
    /// Accept that claims below failed
    #[arg(long)]
    pub accept_failed: bool,
    /// Do not wait at a gate
    #[arg(long)]
    pub no_wait: bool,
}

#[derive(Subcommand, Debug)]
pub enum Preflight {
    /// May this session write these paths? Exit 0 is go
    #[command(after_help = "Example:\n  brain preflight check @me src/api/orders.rs")]
    Check(Check),
    /// Count a failure of the claim's work
    #[command(after_help = "Example:\n  brain preflight fail @me --why \"the build broke\"")]
    Fail {
        id: String,
        /// Why
        #[arg(long, value_name = "TEXT", default_value = "no reason given")]
        why: String,
    },
    /// Clear the failures; at the limit a human does
    #[command(after_help = "Example:\n  brain preflight reset @me")]
    Reset {
        id: String,
        /// Why
        #[arg(long, value_name = "TEXT", default_value = "reset")]
        why: String,
    },
    /// How often the claim's work failed
    #[command(after_help = "Example:\n  brain preflight status @me")]
    Status { id: String },
}

#[derive(Args, Debug)]
pub struct Check {
    /// The claim; `-` for a read without one
    pub id: String,
    /// The paths
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// write, read or delete; a move is a delete of the source and a write of the destination
    #[arg(long, value_enum, default_value_t)]
    pub op: OpWord,
}

/// What is about to be done.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OpWord {
    #[default]
    Write,
    Read,
    Delete,
}

#[derive(Subcommand, Debug)]
pub enum Lock {
    /// Take or renew a lock: 0 it is yours, 1 someone else holds it
    #[command(after_help = "Example:\n  brain lock acquire src/schema.sql @me --ttl 10m")]
    Acquire {
        path: PathBuf,
        /// The claim, or any name without one
        id: String,
        /// How long it lasts; a bare number means minutes
        #[arg(long, value_name = "D", default_value = "60m")]
        ttl: String,
    },
    /// Give a lock back; releasing what is free is 0
    #[command(after_help = "Example:\n  brain lock release src/schema.sql @me")]
    Release {
        path: PathBuf,
        id: String,
        /// Take someone else's lock away (a human's word)
        #[arg(long, requires = "why")]
        force: bool,
        /// Why
        #[arg(long, value_name = "TEXT")]
        why: Option<String>,
    },
    /// Who holds this path
    #[command(after_help = "Example:\n  brain lock check src/schema.sql")]
    Check { path: PathBuf },
    /// Every lock
    #[command(after_help = "Example:\n  brain lock list")]
    List {
        /// One JSON document a line
        #[arg(long)]
        jsonl: bool,
    },
    /// Remove locks that hold nothing any more
    #[command(after_help = "Example:\n  brain lock cleanup")]
    Cleanup,
    /// Take locks in sorted order, run a command, give them back whatever happens
    #[command(after_help = "Example:\n  brain lock run @me src/schema.sql -- ./migrate.sh")]
    Run {
        id: String,
        #[arg(required = true, value_name = "PATH")]
        paths: Vec<PathBuf>,
        #[arg(last = true, required = true, value_name = "CMD")]
        command: Vec<std::ffi::OsString>,
    },
}

#[derive(Subcommand, Debug)]
pub enum Gate {
    /// Wait for a human
    #[command(
        after_help = "Example:\n  brain gate open @me \"drop the old table?\"\n  brain gate open @me --about zone.kernel \"the agents' rules need it\""
    )]
    Open {
        id: String,
        /// ask, review, zone.kernel, zone.personal, zone:PATH …
        #[arg(long, value_name = "KIND", default_value = "ask")]
        about: String,
        /// Why
        why: String,
    },
    /// Answer continue (humans)
    #[command(after_help = "Example:\n  brain gate approve gate-0000017")]
    Approve {
        /// The gate, or the claim that waits
        id: String,
        words: Vec<String>,
    },
    /// Answer abort (humans)
    #[command(after_help = "Example:\n  brain gate reject gate-0000017 \"not on a Friday\"")]
    Reject { id: String, words: Vec<String> },
    /// Answer a gate (humans)
    #[command(after_help = "Example:\n  brain gate answer gate-0000017 skip")]
    Answer {
        id: String,
        /// continue, adapt, retry, skip or abort
        choice: String,
        words: Vec<String>,
    },
    /// List gates that wait
    #[command(after_help = "Example:\n  brain gate list")]
    List {
        /// One JSON document a line
        #[arg(long)]
        jsonl: bool,
    },
    /// Show a gate whole
    #[command(after_help = "Example:\n  brain gate show gate-0000017")]
    Show { id: String },
    /// Pause a claim and all below it
    #[command(after_help = "Example:\n  brain gate pause sess-20261130-1400-api \"wait for the schema\"")]
    Pause { id: String, why: Vec<String> },
    /// Lift a pause
    #[command(after_help = "Example:\n  brain gate resume sess-20261130-1400-api")]
    Resume { id: String },
    /// Fail a claim and all below it
    #[command(after_help = "Example:\n  brain gate abort sess-20261130-1400-api \"wrong idea\"")]
    Abort { id: String, why: Vec<String> },
    /// The state of a claim and what holds it
    #[command(after_help = "Example:\n  brain gate status @me")]
    Status { id: String },
}

#[derive(Subcommand, Debug)]
pub enum Signal {
    /// Send one line to a session, pilot, parent, human or all
    #[command(
        after_help = "Example:\n  brain signal send --to pilot --type BLOCKED_ON \"the schema is locked\""
    )]
    Send {
        /// A session's id, pilot, parent, human or all
        #[arg(long, value_name = "WHO")]
        to: String,
        /// BLOCKED_ON, CHECKPOINT, HANDOFF, INFO …
        #[arg(long = "type", value_name = "T")]
        kind: String,
        /// One of your own claims
        #[arg(long, value_name = "ID")]
        from: Option<String>,
        /// One line, at most 200 characters
        summary: String,
    },
    /// List signals nobody acknowledged; reading delivers them
    #[command(after_help = "Example:\n  brain signal list --for @me")]
    List {
        /// Left out: your own, or the people's
        #[arg(long = "for", value_name = "ID")]
        to: Option<String>,
        /// One JSON document a line
        #[arg(long)]
        jsonl: bool,
    },
    /// Say that signals were received
    #[command(after_help = "Example:\n  brain signal ack sig-0000012")]
    Ack {
        #[arg(required = true, value_name = "SIG")]
        ids: Vec<String>,
    },
}

#[derive(Subcommand, Debug)]
pub enum Plan {
    /// Check a plan as a whole, with every error at once
    #[command(after_help = "Example:\n  brain plan check plan.yml")]
    Check { plan: PathBuf },
    /// Print the map: phases, zones, gates, order
    #[command(after_help = "Example:\n  brain plan show plan.yml")]
    Show { plan: PathBuf },
    /// Print the JSON Schema of plans, for editors
    #[command(after_help = "Example:\n  brain plan schema > plan.schema.json")]
    Schema,
}

#[derive(Args, Debug)]
pub struct Run {
    #[command(subcommand)]
    pub verb: Option<RunVerb>,
    /// The plan
    #[arg(value_name = "PLAN", required_unless_present = "resume")]
    pub plan: Option<PathBuf>,
    /// Go on with an unfinished run
    #[arg(long, value_name = "RUN", num_args = 0..=1, default_missing_value = "", conflicts_with = "plan")]
    pub resume: Option<String>,
    /// How phases are delegated
    #[arg(long, value_name = "MODE", value_parser = ["manual", "assisted", "swarm"])]
    pub mode: Option<String>,
    /// How many phases may run side by side
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub jobs: Option<u32>,
    /// The pilot under which the run works
    #[arg(long, value_name = "ID")]
    pub parent: Option<String>,
    /// Keep the theme branch at the end
    #[arg(long)]
    pub no_merge: bool,
    /// Stop at a gate that nobody can answer here, with exit 11
    #[arg(long)]
    pub no_wait: bool,
    /// Say yes beforehand: partial, review (humans)
    #[arg(long, value_name = "KIND", num_args = 1.., value_parser = ["partial", "review"])]
    pub yes_to: Vec<String>,
}

#[derive(Subcommand, Debug)]
pub enum RunVerb {
    /// Where a run stands
    #[command(after_help = "Example:\n  brain run status")]
    Status { run: Option<String> },
    /// What a run delivered
    #[command(after_help = "Example:\n  brain run report --format markdown")]
    Report {
        run: Option<String>,
        /// text, markdown, json or html
        #[arg(long, default_value = "text", value_parser = ["text", "markdown", "json", "html"])]
        format: String,
    },
    /// End a run; what it merged stays
    #[command(after_help = "Example:\n  brain run cancel run-0000042")]
    Cancel { run: Option<String> },
}

#[derive(Args, Debug)]
pub struct Log {
    /// Only what touches this claim
    #[arg(long, value_name = "ID")]
    pub claim: Option<String>,
    /// Only what happened since: a time span like 2h
    #[arg(long, value_name = "T")]
    pub since: Option<String>,
    /// One JSON document a line
    #[arg(long)]
    pub jsonl: bool,
}
