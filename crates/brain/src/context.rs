//! What a command stands on: the root, its configuration, its store, and who calls.

use std::path::{Path, PathBuf};

use protocol::command::Command;
use protocol::event::Entry;
use protocol::facts::caller::{Caller, Nature};
use protocol::facts::claim::Claim;
use protocol::facts::gate::{About, Gate};
use protocol::facts::id::{GateId, RunId, SessId};
use protocol::facts::policy::Policy;
use protocol::facts::time::Instant;
use protocol::refusal::Refusal;
use protocol::rules::preflight::{Op, PathAsk};
use protocol::world::{Footprint, Pick, World};
use serde_json::json;
use store::{Fault, Outcome, Request, Sqlite, SqliteOptions, Store, Trusting};

use crate::caller::Probe;
use crate::cli::Globals;
use crate::config::{self, Config};
use crate::failure::{Failure, Trouble};
use crate::keys::Keys;
use crate::out::Out;
use crate::place::{PlaceError, Placer};
use crate::root::{Root, RootError};

/// How much of an id must be typed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Typed {
    /// Any unique part; an exact one wins.
    Part,
    /// The whole id, or `@me`: the verb cannot be taken back.
    Whole,
}

/// The surroundings of one command.
pub struct Context {
    /// How answers are shown.
    pub out: Out,
    /// The brain.
    pub root: Root,
    /// Its configuration.
    pub config: Config,
    /// The rules' share of it.
    pub policy: Policy,
    /// Its store.
    pub store: Trusting<Sqlite>,
    /// The keys whose seals count in it.
    pub keys: Keys,
    /// Who calls.
    pub caller: Caller,
    /// From where.
    pub cwd: PathBuf,
    /// Whether the last submitted request had been answered before.
    pub replayed: bool,
}

impl Context {
    /// Finds the brain and opens it.
    ///
    /// # Errors
    ///
    /// No brain here, a bad configuration, or a store that cannot be opened.
    pub fn open(globals: &Globals) -> Result<Context, Failure> {
        let mut cx = Context::near(globals)?;
        cx.look_around();
        Ok(cx)
    }

    /// Finds the brain and opens it to look, with as much of the caller as its environment tells: what the check
    /// before each write rarely has a use for is left to [`Context::look_around`].
    ///
    /// # Errors
    ///
    /// As [`Context::open`].
    pub fn near(globals: &Globals) -> Result<Context, Failure> {
        let cwd = std::env::current_dir()
            .map_err(|error| Trouble::io("cannot tell the current folder", Path::new("."), &error))?;
        let root = find_root(globals, &cwd)?;
        Context::over(Out::new(globals), root, cwd)
    }

    /// Opens this brain.
    ///
    /// # Errors
    ///
    /// As [`Context::open`].
    pub fn at(out: Out, root: Root, cwd: PathBuf) -> Result<Context, Failure> {
        let mut cx = Context::over(out, root, cwd)?;
        cx.look_around();
        Ok(cx)
    }

    fn over(out: Out, root: Root, cwd: PathBuf) -> Result<Context, Failure> {
        let (config, policy) = rules(&root)?;
        let database = root.database().map_err(|error| no_root(&error))?;
        let keys = Keys::of(&root, &config);
        let store = open_store(&database, &keys)?;
        let caller = Probe::new().unnamed();
        Ok(Context {
            out,
            root,
            config,
            policy,
            store,
            keys,
            caller,
            cwd,
            replayed: false,
        })
    }

    /// Finds out all about the caller, also the processes above it, and names the policy: from now on commands
    /// may be submitted.
    pub fn look_around(&mut self) {
        self.policy.digest = config::digest(&self.policy);
        let probe = Probe::new();
        self.caller = probe.whole().unwrap_or_else(|_| probe.near());
    }

    /// Decides a command at the door.
    ///
    /// # Errors
    ///
    /// The refusal, or the store's fault.
    pub fn submit(&mut self, command: &Command) -> Result<Vec<Entry>, Failure> {
        self.submit_under(command, None)
    }

    /// Decides a command under an idempotency key.
    ///
    /// # Errors
    ///
    /// As [`Context::submit`].
    pub fn submit_under(&mut self, command: &Command, key: Option<&str>) -> Result<Vec<Entry>, Failure> {
        let answer = match self.ask(command, key) {
            Err(Fault::Damaged { why, .. }) => {
                self.rebuild(&why)?;
                self.ask(command, key)?
            }
            answer => answer?,
        };
        match answer {
            Outcome::Committed(entries) => Ok(entries),
            Outcome::Repeated(entries) => {
                self.replayed = true;
                Ok(entries)
            }
            Outcome::Refused(refusal) => Err(refusal.into()),
        }
    }

    fn ask(&mut self, command: &Command, key: Option<&str>) -> Result<Outcome, Fault> {
        let request = Request {
            caller: &self.caller,
            policy: &self.policy,
            key,
        };
        store::submit(&mut self.store, request, command)
    }

    /// Makes the tables of a damaged store anew from its journal, and says so (R30).
    fn rebuild(&mut self, why: &str) -> Result<(), Failure> {
        let database = self.root.database().map_err(|error| no_root(&error))?;
        let rebuilt = Sqlite::rebuild(&database, options())?;
        self.out.note(format!(
            "note: the store was damaged ({why}), so its tables were made anew from the {} entries of its journal; \
             the damaged file is kept as {}, and every claim is stale until its session's next command",
            rebuilt.entries,
            rebuilt.aside.display()
        ));
        self.store = open_store(&database, &self.keys)?;
        Ok(())
    }

    /// Looks at the facts.
    ///
    /// # Errors
    ///
    /// The store's fault.
    pub fn look(&mut self, picks: &Footprint) -> Result<(World, Instant), Failure> {
        Ok(self.store.look(picks)?)
    }

    /// The claim that was meant.
    ///
    /// # Errors
    ///
    /// No such claim, or several.
    pub fn claim_id(&mut self, text: &str, typed: Typed) -> Result<SessId, Failure> {
        if text == "@me" {
            return self.me();
        }
        let whole = SessId::parse(text).ok();
        if let Some(id) = &whole {
            let (world, _) = self.look(&vec![Pick::Claim(id.clone())])?;
            if typed == Typed::Whole || world.claims.contains_key(id) {
                return Ok(id.clone());
            }
        }
        let (world, _) = self.look(&vec![Pick::IdsWith(text.to_owned())])?;
        let ids = || world.taken.iter().map(SessId::as_str);
        if typed == Typed::Whole {
            let meant: Vec<&str> = ids()
                .filter(|id| !text.is_empty() && id.contains(text))
                .take(5)
                .collect();
            let trouble = Trouble::usage(format!(
                "{text:?} is no whole session id: this verb takes no part of one"
            ));
            return Err(match meant.as_slice() {
                [] => trouble.fix("list the claims", "brain claim list"),
                meant => trouble.hint(format!("did you mean {}?", meant.join(", "))),
            }
            .into());
        }
        match one_of(text, ids(), "claim", "brain claim list --all") {
            // What could be a whole id is unknown, not unlike any.
            Err(Failure::Other(trouble)) if trouble.exit == crate::exit::UNKNOWN && whole.is_some() => {
                Err(Refusal::ClaimUnknown { id: text.to_owned() }.into())
            }
            Err(failure) => Err(failure),
            Ok(id) => SessId::parse(&id).map_err(|error| Trouble::usage(error.to_string()).into()),
        }
    }

    /// The session of this process: the one that `BRAIN_SESSION` names, or the claim that the caller owns.
    fn me(&mut self) -> Result<SessId, Failure> {
        if let Some(named) = std::env::var_os("BRAIN_SESSION").filter(|named| !named.is_empty()) {
            let named = named.to_string_lossy().into_owned();
            return SessId::parse(&named)
                .map_err(|error| Trouble::usage(format!("BRAIN_SESSION: {error}")).into());
        }
        let picks = vec![Pick::Caller(self.caller.clone())];
        let (world, _) = self.look(&picks)?;
        let owned: Vec<&Claim> = world
            .owned_by(&self.caller)
            .filter(|claim| !claim.is_terminal())
            .collect();
        match owned.as_slice() {
            [one] => Ok(one.id.clone()),
            [] => Err(Trouble::usage("@me: no live claim is yours")
                .fix("open one", "brain claim open --scope … --task …")
                .hint("or name the claim")
                .into()),
            several => {
                let ids: Vec<&str> = several.iter().map(|claim| claim.id.as_str()).collect();
                Err(
                    Trouble::usage(format!("@me: {} claims are yours: {}", ids.len(), ids.join(", ")))
                        .hint("name the one you mean")
                        .into(),
                )
            }
        }
    }

    /// The gate that was meant: its id, a unique part of it, or the claim that waits.
    ///
    /// # Errors
    ///
    /// No such gate, or several.
    pub fn gate_id(&mut self, text: &str, typed: Typed) -> Result<GateId, Failure> {
        if text == "@me" || text.starts_with("sess-") {
            let id = self.claim_id(text, typed)?;
            let (world, _) = self.look(&vec![Pick::Claim(id.clone()), Pick::GatesOf(id.clone())])?;
            let claim = world
                .claims
                .get(&id)
                .ok_or_else(|| Refusal::ClaimUnknown { id: id.to_string() })?;
            let last = || {
                world
                    .gates
                    .values()
                    .rfind(|gate| matches!(&gate.about, About::Claim(of) if *of == id))
            };
            // To look at, the last one will do, also when it was answered.
            let seen = if typed == Typed::Part {
                last().map(|gate| gate.id.clone())
            } else {
                None
            };
            return claim.waiting.clone().or(seen).ok_or_else(|| {
                Trouble::new(
                    crate::exit::NOT_YOURS,
                    "gate.none",
                    format!("{id} waits at no gate"),
                )
                .fix("see its state", format!("brain gate status {id}"))
                .into()
            });
        }
        if let Some(id) = GateId::parse(text) {
            return Ok(id);
        }
        let (world, _) = self.look(&vec![Pick::PendingGates])?;
        let id = one_of(
            text,
            world.gates.keys().map(GateId::as_str),
            "open gate",
            "brain gate list",
        )?;
        if typed == Typed::Whole {
            return Err(Trouble::usage(format!(
                "{text:?} is no whole id of a gate: an answer takes no part of one"
            ))
            .hint(format!("did you mean {id}?"))
            .into());
        }
        GateId::parse(&id).ok_or_else(|| Refusal::GateUnknown { id }.into())
    }

    /// The run that was meant: its id or a part, its plan's name, or the only unfinished one.
    ///
    /// # Errors
    ///
    /// No such run, or several.
    pub fn run_id(&mut self, text: Option<&str>) -> Result<RunId, Failure> {
        let (world, _) = self.look(&vec![Pick::AllRuns])?;
        let last = |name: &str| {
            world
                .runs
                .values()
                .rev()
                .find(|run| run.plan == name)
                .map(|run| run.id.clone())
        };
        match text.filter(|text| !text.is_empty()) {
            None => {
                let live: Vec<&RunId> = world
                    .runs
                    .values()
                    .filter(|run| run.end.is_none())
                    .map(|run| &run.id)
                    .collect();
                match (live.as_slice(), world.runs.keys().next_back()) {
                    ([one], _) => Ok((*one).clone()),
                    ([], Some(last)) => Ok(last.clone()),
                    ([], None) => Err(
                        Trouble::new(crate::exit::UNKNOWN, "run.unknown", "there is no run")
                            .fix("start one", "brain run PLAN --mode swarm")
                            .into(),
                    ),
                    (several, _) => {
                        let ids: Vec<&str> = several.iter().map(|id| id.as_str()).collect();
                        Err(Trouble::usage(format!("several runs are unfinished: {}", ids.join(", "))).into())
                    }
                }
            }
            Some(text) => {
                let stem = Path::new(text)
                    .file_stem()
                    .map(|stem| stem.to_string_lossy().into_owned());
                if let Some(id) = last(text).or_else(|| stem.as_deref().and_then(last)) {
                    return Ok(id);
                }
                let id = one_of(
                    text,
                    world.runs.keys().map(RunId::as_str),
                    "run",
                    "brain run status",
                )?;
                RunId::parse(&id).ok_or_else(|| Refusal::RunUnknown { id }.into())
            }
        }
    }

    /// Finds out where a path that someone typed really lies.
    ///
    /// # Errors
    ///
    /// An empty path.
    pub fn place(&self, path: &Path, delete: bool) -> Result<PathAsk, Failure> {
        let op = if delete { Op::Delete } else { Op::Write };
        let placed = Placer::new(&self.root).place(&self.cwd, path.as_os_str(), op);
        placed.map_err(|error| bad_path(path, &error))
    }

    /// Whether the caller is taken for an agent, as far as one can tell without the store.
    pub fn is_agent(&self) -> bool {
        matches!(self.caller.nature, Nature::Agent { .. })
    }
}

/// Opens a store in which only what these keys sealed is an answer.
///
/// # Errors
///
/// The store's fault.
pub fn open_store(database: &Path, keys: &Keys) -> Result<Trusting<Sqlite>, Fault> {
    let keys = keys.clone();
    let trusts = Box::new(move |gate: &Gate| keys.verify(gate));
    Ok(Trusting::new(Sqlite::open(database, options())?, trusts))
}

fn options() -> SqliteOptions {
    SqliteOptions {
        clock: crate::clock(),
        ..SqliteOptions::default()
    }
}

/// Finds the brain that was named, or the one around the current folder.
///
/// # Errors
///
/// No brain here.
pub fn find_root(globals: &Globals, cwd: &Path) -> Result<Root, Failure> {
    // An empty BRAIN_ROOT names nothing.
    let found = match globals.root.as_ref().filter(|dir| !dir.as_os_str().is_empty()) {
        Some(dir) => Root::named(dir),
        None => Root::find(cwd),
    };
    found.map_err(|error| no_root(&error))
}

/// The words for a brain that is not there, or has no store.
pub fn no_root(error: &RootError) -> Failure {
    let quoted = |dir: &Path| crate::advice::quote(&dir.display().to_string());
    let trouble = match error {
        RootError::NoBrain(dir) => {
            let message = format!(
                "no brain here: neither {} nor a folder above it holds .brain/",
                dir.display()
            );
            Trouble::new(crate::exit::UNREACHABLE, "brain.none", message).fix("make one", "brain init")
        }
        RootError::StoreMissing(dir) => {
            let message = format!(
                "the brain at {} has no store: .brain/{} is missing",
                dir.display(),
                crate::root::DATABASE
            );
            Trouble::new(crate::exit::UNREACHABLE, "store.missing", message)
                .fix(
                    "make it again, empty",
                    format!("brain init --root {}", quoted(dir)),
                )
                .hint("`git clean -xdf` takes it away; what the claims were is lost with it")
        }
        RootError::NoFolder(dir, error) => {
            let message = format!(
                "--root or BRAIN_ROOT names {}, which is no folder: {error}",
                dir.display()
            );
            Trouble::new(crate::exit::USAGE, "brain.no_folder", message)
                .hint("name the folder that holds .brain/")
        }
    };
    trouble.into()
}

/// The words for a path that could not be looked at.
pub fn bad_path(path: &Path, error: &PlaceError) -> Failure {
    let exit = match error {
        PlaceError::Unreadable(..) => crate::exit::CANNOT_JUDGE,
        PlaceError::Empty | PlaceError::Nul | PlaceError::NotUtf8(_) => crate::exit::USAGE,
    };
    Trouble::new(
        exit,
        "path.bad",
        format!("{}: {error}", crate::advice::quote(&path.display().to_string())),
    )
    .into()
}

/// The words for a configuration that does not read: its first mistake on the first line, each with its place.
pub fn bad_config(error: &config::ConfigError) -> Failure {
    let text = error.to_string();
    let (first, rest) = text.split_once('\n').unwrap_or((&text, ""));
    let problem = |it: &config::Problem| {
        json!({ "file": it.file, "line": it.line, "column": it.column, "excerpt": it.excerpt, "message": it.message,
                "fix": it.fix })
    };
    let problems: Vec<_> = error.problems.iter().map(problem).collect();
    let more = match problems.len() {
        0 | 1 => String::new(),
        many => format!(", the first of {many} mistakes"),
    };
    Trouble::new(crate::exit::CONFIG, "config.bad", format!("{first}{more}"))
        .detail(rest)
        .facts(json!({ "problems": problems }))
        .into()
}

/// Reads the configuration and makes the policy of it.
///
/// # Errors
///
/// Every mistake in it.
pub fn configuration(root: &Root) -> Result<(Config, Policy), Failure> {
    let (config, mut policy) = rules(root)?;
    policy.digest = config::digest(&policy);
    Ok((config, policy))
}

/// Does the same, but for the hash of the policy.
fn rules(root: &Root) -> Result<(Config, Policy), Failure> {
    no_shared_store()?;
    let config = Config::load(root.dir()).map_err(|error| bad_config(&error))?;
    let policy = config.rules(&root.facts()).map_err(|error| bad_config(&error))?;
    Ok((config, policy))
}

/// Refuses the variable that names a shared store, as the key `store` is refused in the configuration: passed over,
/// it would leave two machines that think they are coordinated. An empty one names nothing.
fn no_shared_store() -> Result<(), Failure> {
    const NAME: &str = "BRAIN_STORE";
    if std::env::var_os(NAME).is_none_or(|named| named.is_empty()) {
        return Ok(());
    }
    // What it names is not shown: a store's address holds its password.
    let message = format!("{NAME} names a shared store, and this brain keeps its own in `.brain/brain.db`");
    Err(Trouble::new(crate::exit::CONFIG, "config.bad", message)
        .fix("take it out of the environment", format!("unset {NAME}"))
        .hint("let the work of one machine alone into this brain")
        .facts(json!({ "variable": NAME, "problems": [] }))
        .into())
}

/// The one id that contains this text; an exact one wins.
///
/// # Errors
///
/// None has it, or several do.
pub fn one_of<'i>(
    text: &str,
    ids: impl Iterator<Item = &'i str>,
    what: &str,
    list: &str,
) -> Result<String, Failure> {
    let found: Vec<&str> = ids.filter(|id| !text.is_empty() && id.contains(text)).collect();
    if let Some(exact) = found.iter().find(|id| **id == text) {
        return Ok((*exact).to_owned());
    }
    match found.as_slice() {
        [one] => Ok((*one).to_owned()),
        [] => Err(Trouble::new(
            crate::exit::UNKNOWN,
            "id.unknown",
            format!("no {what} has {text:?} in its id"),
        )
        .fix("list them", list)
        .into()),
        several => {
            let shown: Vec<&str> = several.iter().copied().take(5).collect();
            Err(Trouble::usage(format!(
                "{text:?} fits {} ids: {}",
                several.len(),
                shown.join(", ")
            ))
            .into())
        }
    }
}
