//! `brain run …`: starts, resumes, shows and ends runs of plans.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use protocol::command::Command;
use protocol::event::Event;
use protocol::facts::claim::{Fence, Outcome};
use protocol::facts::gate::{Gate, GateKind};
use protocol::facts::id::{GateId, RunId};
use protocol::facts::plan::{Mode, Plan as Fact};
use protocol::facts::run::{PhaseRun, Run as RunFact, RunEnd};
use protocol::refusal::Refusal;
use protocol::world::{Pick, World};
use runner::drive::{self, Driven, Driver, Face, Ground, News, Planned, Trouble as Why};
use rustix::fs::FlockOperation;
use serde_json::json;
use store::{Fault, Store};

use crate::cli::{Run, RunVerb};
use crate::commands::plan;
use crate::context::{Context, Typed, open_store};
use crate::failure::{Failure, Trouble};
use crate::out::Out;
use crate::{advice, exit, gitwords, ground, prompt, proof, report, show, wire};

/// Phases side by side when nothing is said: as many as there are processors, at least two.
fn jobs_by_default() -> u32 {
    std::thread::available_parallelism().map_or(2, |n| u32::try_from(n.get()).unwrap_or(2).max(2))
}

/// Carries out `brain run …`.
pub fn run(cx: &mut Context, args: &Run) -> Result<u8, Failure> {
    match &args.verb {
        Some(RunVerb::Status { run }) => status(cx, run.as_deref()),
        Some(RunVerb::Report { run, format }) => {
            let (run, world) = whole(cx, run.as_deref())?;
            let text = report::render(&world, &run, format);
            if cx.out.json {
                cx.out
                    .answer(json!({ "report": report::document(&world, &run) }), "");
            } else {
                cx.out.answer(json!({}), text);
            }
            Ok(0)
        }
        Some(RunVerb::Cancel { run }) => {
            let id = cx.run_id(run.as_deref())?;
            let entries = cx.submit(&Command::CancelRun { run: id.clone() })?;
            crate::attempts::end(&cx.root, &entries);
            cx.out
                .answer(json!({ "run": id.as_str(), "end": "cancelled" }), "");
            cx.out.note(format!(
                "{id} is cancelled; what it merged into its theme stays there"
            ));
            Ok(0)
        }
        None => match &args.resume {
            Some(text) => resume(cx, args, text),
            None => start(cx, args),
        },
    }
}

fn start(cx: &mut Context, args: &Run) -> Result<u8, Failure> {
    let path = args
        .plan
        .as_deref()
        .map(plan::path_of)
        .ok_or_else(|| Trouble::usage("no plan was named"))?;
    let (fact, notices) = plan::read(&cx.config, &cx.policy, &path)?;
    notices
        .iter()
        .for_each(|notice| cx.out.note(plan::notice_line(notice)));
    let mode = match args.mode.as_deref() {
        Some("swarm") => Mode::Swarm,
        Some("assisted") => Mode::Assisted,
        Some(_) => Mode::Manual,
        None => fact.mode,
    };
    if mode != Mode::Swarm {
        return Err(Trouble::usage("this version runs plans in swarm mode only")
            .fix(
                "run it so",
                format!(
                    "brain run {} --mode swarm",
                    advice::quote(&path.display().to_string())
                ),
            )
            .into());
    }
    let yes_to: Vec<GateKind> = args
        .yes_to
        .iter()
        .filter_map(|word| GateKind::parse(word))
        .collect();
    if !yes_to.is_empty() {
        let text = format!("run {} and say yes to {}", fact.name, args.yes_to.join(", "));
        proof::prove(cx, "say yes beforehand", &text, &text)?;
    }
    let parent = args
        .parent
        .as_deref()
        .map(|id| cx.claim_id(id, Typed::Part))
        .transpose()?;
    cx.out.note(plan::map_line(&cx.policy, &fact));
    let phases: Vec<_> = fact
        .phases
        .iter()
        .map(|it| (it.clone(), drive::phase_digest(it)))
        .collect();
    let planned = Planned {
        digest: drive::whole_digest(&phases),
        source: path.display().to_string(),
        jobs: args.jobs.or(fact.jobs).unwrap_or_else(jobs_by_default),
        merge: !args.no_merge,
        parent,
        yes_to,
        main_branch: cx.config.main_branch.clone(),
        risk: cx.config.risk.clone(),
        plan: fact,
    };
    let ground = ground::of(cx)?;
    let open = opener(cx);
    let (run, fence) =
        drive::start(&ground, &open, &planned).map_err(|why| failure(&planned.plan.name, why))?;
    cx.out.note(format!(
        "{run} of {}, on {}",
        planned.plan.name, planned.plan.branch
    ));
    let alive = hold(cx, &run)?.ok_or_else(|| Refusal::RunDriven { run: run.clone() })?;
    go(cx, args, &ground, &run, fence, &path, alive)
}

fn resume(cx: &mut Context, args: &Run, text: &str) -> Result<u8, Failure> {
    let id = cx.run_id(Some(text))?;
    let (world, _) = cx.look(&vec![Pick::Run(id.clone())])?;
    let run = world
        .runs
        .get(&id)
        .ok_or_else(|| Refusal::RunUnknown { id: id.to_string() })?;
    let source = PathBuf::from(&run.source);
    if let Some(end) = run.end {
        return over(cx, &id, end);
    }
    // Whoever holds the lock drives, however long it was silent: it is asked before the lease is.
    let alive = hold(cx, &id)?.ok_or_else(|| Refusal::RunDriven { run: id.clone() })?;
    let entries = cx.submit(&Command::TakeRun {
        id: id.clone(),
        driver_gone: true,
    })?;
    let fence = entries.iter().find_map(|entry| match entry.event {
        Event::RunTaken { driver, .. } => Some(driver),
        _ => None,
    });
    let fence = fence.ok_or_else(|| Refusal::RunTaken { run: id.clone() })?;
    let ground = ground::of(cx)?;
    go(cx, args, &ground, &id, fence, &source, alive)
}

/// Takes the lock that says that a driver of this run is alive on this machine; `None` when one is.
fn hold(cx: &Context, run: &RunId) -> Result<Option<File>, Failure> {
    let folder = cx.root.state().join("runs");
    std::fs::create_dir_all(&folder).map_err(|error| Trouble::io("cannot make", &folder, &error))?;
    let path = folder.join(format!("{run}.lock"));
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path);
    let file = file.map_err(|error| Trouble::io("cannot open", &path, &error))?;
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(Trouble::io("cannot lock", &path, &error.into()).into()),
    }
}

/// Reads a plan's file whenever it is called, and understands it anew only when it changed.
pub fn rereader(cx: &Context, plan: &Path) -> impl Fn() -> Result<Arc<Fact>, String> + Sync + use<> {
    let (config, policy, path) = (cx.config.clone(), cx.policy.clone(), plan.to_owned());
    let last: Mutex<Option<(Vec<u8>, Arc<Fact>)>> = Mutex::new(None);
    move || {
        let mut last = last.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        // A file that cannot be read has its say below.
        let bytes = std::fs::read(&path).unwrap_or_default();
        if let Some((read, plan)) = &*last
            && *read == bytes
        {
            return Ok(plan.clone());
        }
        let read = plan::read(&config, &policy, &path).map_err(|failure| failure.shown().message);
        let plan = Arc::new(read?.0);
        *last = Some((bytes, plan.clone()));
        Ok(plan)
    }
}

/// Opens one more store on the same brain, for another thread.
pub fn opener(cx: &Context) -> impl Fn() -> Result<Box<dyn Store>, Fault> + Sync + use<> {
    let (path, keys) = (cx.root.state().join(crate::root::DATABASE), cx.keys.clone());
    move || Ok(Box::new(open_store(&path, &keys)?) as Box<dyn Store>)
}

/// Drives a run to its end, or to gates that nobody here can answer.
fn go(
    cx: &mut Context,
    args: &Run,
    ground: &Ground,
    id: &RunId,
    fence: Fence,
    plan: &Path,
    alive: File,
) -> Result<u8, Failure> {
    let open = opener(cx);
    let reread = rereader(cx, plan);
    let asks = prompt::has_terminal() && !cx.out.json && !cx.is_agent() && !args.no_wait;
    let (ask, asked) = channel();
    let face = Screen {
        out: cx.out,
        ask: asks.then(|| Mutex::new(ask)),
    };
    if asks {
        prompter(cx, asked);
    }
    let mut driver = Driver::new(ground, &open, &face, id.clone(), fence, &reread);
    driver.wait_at_gates = !args.no_wait;
    let driven = driver.drive();
    drop(alive);
    match driven.map_err(|why| failure(id.as_str(), why))? {
        Driven::Over(end) => over(cx, id, end),
        Driven::Gated(gates) => gated(cx, id, &gates),
    }
}

fn over(cx: &mut Context, id: &RunId, end: RunEnd) -> Result<u8, Failure> {
    let (run, world) = whole(cx, Some(id.as_str()))?;
    if cx.out.json {
        cx.out
            .answer(json!({ "report": report::document(&world, &run) }), "");
    } else {
        cx.out.answer(json!({}), report::render(&world, &run, "text"));
    }
    Ok(match end {
        RunEnd::Finished => 0,
        RunEnd::Failed | RunEnd::Cancelled | RunEnd::Aborted => exit::PLAN_FAILED,
    })
}

fn gated(cx: &mut Context, id: &RunId, gates: &[GateId]) -> Result<u8, Failure> {
    let (world, _) = cx.look(&gates.iter().cloned().map(Pick::Gate).collect())?;
    let lines: Vec<String> = world.gates.values().map(show::gate_line).collect();
    let mut trouble = Trouble::new(
        exit::HUMAN_FIRST,
        "gate.pending",
        format!("{id} waits for a human:\n  {}", lines.join("\n  ")),
    )
    .facts(json!({ "run": id.as_str(), "gates": world.gates.values().map(wire::gate).collect::<Vec<_>>() }));
    if let Some(gate) = gates.first() {
        trouble = trouble.fix("a human looks at it", format!("brain gate show {gate}"));
    }
    Err(trouble
        .fix("then go on", format!("brain run --resume {id}"))
        .into())
}

/// A thread that asks the person at the terminal, one gate after the other.
fn prompter(cx: &Context, gates: Receiver<Gate>) {
    let (dir, out, cwd) = (cx.root.dir().to_owned(), cx.out, cx.cwd.clone());
    std::thread::spawn(move || {
        while let Ok(gate) = gates.recv() {
            let Ok(root) = crate::root::Root::named(&dir) else {
                return;
            };
            let Ok(mut cx) = Context::at(out, root, cwd.clone()) else {
                return;
            };
            loop {
                let pending = cx
                    .look(&vec![Pick::Gate(gate.id.clone())])
                    .is_ok_and(|(world, _)| world.gates.get(&gate.id).is_some_and(Gate::is_pending));
                if !pending {
                    break;
                }
                match prompt::choice(&gate) {
                    Ok(Some((choice, words))) => match super::gate::give(&mut cx, &gate, choice, &words) {
                        Ok(_) => break,
                        Err(failure) => drop(out.fail(&failure)),
                    },
                    Ok(None) => {}
                    Err(_) => return,
                }
            }
        }
    });
}

/// Shows on standard error what happens.
struct Screen {
    out: Out,
    ask: Option<Mutex<Sender<Gate>>>,
}

impl Face for Screen {
    fn hear(&self, news: News) {
        if let (News::Gate(gate), Some(ask)) = (&news, &self.ask) {
            let ask = ask.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            if ask.send((**gate).clone()).is_ok() {
                return;
            }
        }
        self.out.note(news_line(&self.out, &news));
    }
}

/// One piece of news on a line, or a gate in its block.
pub fn news_line(out: &Out, news: &News) -> String {
    match news {
        News::Announced {
            phase,
            title,
            zones,
            kind,
        } => out.paint(
            "1",
            &format!(
                "Phase {phase} — {title} | zone: {} | type: {kind}",
                zones.join(", ")
            ),
        ),
        News::Told { phase, what } => format!("  {phase}  note: {what}"),
        News::Prepared { phase, took_ms } => {
            format!("  {phase}  worktree ready in {}", show::rough(*took_ms))
        }
        News::Started { phase, claim, log } => {
            format!("  {phase}  started as {claim}, log {}", log.display())
        }
        News::TakenBack { phase, claim } => format!("  {phase}  taken back: {claim} was running all along"),
        News::Ended { phase, how, ran_ms } => format!("  {phase}  {how} after {}", show::rough(*ran_ms)),
        News::Refused { phase, why } => {
            let (message, _) = advice::of_refusal(why);
            out.paint("31", &format!("  {phase}  refused: {message} [{}]", why.code()))
        }
        News::Settled {
            phase,
            outcome,
            summary,
        } => {
            let colour = if *outcome == Outcome::Ok { "32" } else { "33" };
            let mut text = out.paint(colour, &format!("  {phase}  {}", outcome.as_str()));
            for line in summary {
                text.push_str(&format!("\n      {line}"));
            }
            text
        }
        News::Gate(gate) => format!("{}\n   → brain gate answer {} CHOICE", show::gate(gate), gate.id),
        News::Merged { repo, into, commit } => {
            let repo = if repo == "." {
                String::new()
            } else {
                format!(" of {repo}")
            };
            out.paint(
                "32",
                &format!(
                    "merged into {into}{repo} at {}",
                    commit.get(..7).unwrap_or(commit)
                ),
            )
        }
    }
}

/// The failure of a run, in the words of the command line.
fn failure(name: &str, why: Why) -> Failure {
    let resume = format!("brain run --resume {name}");
    match why {
        Why::Refused(refusal) => Failure::Refused(refusal),
        Why::Store(fault) => Failure::Fault(fault),
        Why::Git(error) => gitwords::trouble(&error).into(),
        Why::MergeConflict { repo, files } => Trouble::new(
            exit::PLAN_FAILED,
            "run.merge_conflict",
            format!(
                "the theme conflicts with the main branch of {repo} in {}; nothing was moved",
                files.join(", ")
            ),
        )
        .hint(
            "merge the main branch into the theme by hand, or settle the conflict in a worktree of the theme",
        )
        .fix("then try again", resume)
        .into(),
        Why::WouldOverwrite { repo, paths } => Trouble::new(
            exit::PLAN_FAILED,
            "run.would_overwrite",
            format!(
                "the merge would overwrite uncommitted work in {repo}: {}; nothing was moved",
                paths.join(", ")
            ),
        )
        .fix("put it aside or commit it, then try again", resume)
        .into(),
        Why::BranchExists { branch, repo } => Trouble::new(
            exit::NOT_YOURS,
            "run.branch_exists",
            format!("{repo} has a branch {branch} already, and no run of this brain made it"),
        )
        .fix("rename it", format!("git branch -m {branch} {branch}-old"))
        .hint("or give the plan another `branch:`")
        .into(),
        Why::Place { why, mend } => Trouble::new(exit::NOT_YOURS, "run.no_place", why)
            .fix("mend that first", mend)
            .into(),
        Why::Phase { phase, why } => {
            Trouble::new(exit::UNREADABLE, "run.phase", format!("phase {phase}: {why}")).into()
        }
        other => Trouble::new(exit::UNREACHABLE, "run.failed", other.to_string())
            .fix("go on", resume)
            .into(),
    }
}

/// A run with everything that a report needs.
fn whole(cx: &mut Context, run: Option<&str>) -> Result<(RunFact, World), Failure> {
    let id = cx.run_id(run)?;
    let picks = vec![
        Pick::Run(id.clone()),
        Pick::Crew(id.clone()),
        Pick::Phases(id.clone()),
        Pick::GatesOfRun(id.clone()),
    ];
    let (world, _) = cx.look(&picks)?;
    let run = world
        .runs
        .get(&id)
        .cloned()
        .ok_or_else(|| Refusal::RunUnknown { id: id.to_string() })?;
    Ok((run, world))
}

fn status(cx: &mut Context, run: Option<&str>) -> Result<u8, Failure> {
    if run.is_none() {
        let (world, _) = cx.look(&vec![Pick::AllRuns])?;
        if world.runs.is_empty() {
            cx.out.list(false, "runs", Vec::new(), &[], "there is no run");
            return Ok(0);
        }
    }
    let (run, world) = whole(cx, run)?;
    let phases: Vec<&PhaseRun> = report::phases(&world, &run);
    let mut text = vec![format!("{}  {}  {}", run.id, run.plan, wire::end_word(&run))];
    for phase in &phases {
        let (standing, outcome) = wire::standing(&phase.standing);
        let outcome = outcome.map_or(String::new(), |outcome| format!(" {outcome}"));
        let gate = phase
            .waiting
            .as_ref()
            .map_or(String::new(), |gate| format!("  waits at {gate}"));
        let claim = phase
            .last()
            .map_or(String::new(), |attempt| format!("  {}", attempt.claim));
        text.push(format!(
            "  {:<10} {}  {}{outcome}{claim}{gate}",
            phase.phase.id, standing, phase.phase.title
        ));
    }
    cx.out
        .answer(json!({ "run": wire::run(&run, &phases) }), text.join("\n"));
    Ok(0)
}
