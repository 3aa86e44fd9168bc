//! `brain demo`: a small real repository, a plan, two satellites, a gate, and the merged result.
//!
//! Everything is real: git, worktrees, processes, tests, the store. Only the agents are shell scripts, and
//! the human's answer is sealed by a throw-away key that counts in this one brain.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::Command as Process;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

use git::{Door, Message, Repository};
use protocol::facts::gate::{Choice, Gate};
use protocol::world::Pick;
use runner::drive::{self, Driver, Face, News, Planned};
use runner::random;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::advice::quote;
use crate::attended::{Attended, attend, code};
use crate::cli::{Demo as Args, Globals};
use crate::commands::run::news_line;
use crate::commands::{gate, init, plan};
use crate::context::Context;
use crate::failure::{Failure, Trouble};
use crate::human::{Demo, MacKey};
use crate::out::Out;
use crate::root::Root;
use crate::{attempts, ground, report};

/// The hidden word under which this program tells the story in a prepared folder.
pub const INNER: &str = "__demo";

/// Carries out `brain demo`: makes the folder, tells the story, takes the folder away, also when it is interrupted.
pub fn demo(globals: &Globals, args: &Args) -> Result<u8, Failure> {
    let out = Out::new(globals);
    let mark = random::bytes::<6>()
        .map_err(|error| Trouble::io("cannot read", Path::new("/dev/urandom"), &error))?;
    let folder = std::env::temp_dir().join(format!("brain-demo-{}", random::hex(&mark)));
    fs::create_dir(&folder).map_err(|error| Trouble::io("cannot make", &folder, &error))?;
    let this = std::env::current_exe()
        .map_err(|error| Trouble::io("cannot find", Path::new("this program"), &error))?;
    let mut inner = Process::new(this);
    inner.arg(INNER).arg(&folder);
    // The demo leaves no key of answers behind, and nobody's session and settings play a part in it.
    inner
        .env("XDG_STATE_HOME", folder.join("state"))
        .env_remove("BRAIN_ROOT")
        .env_remove("BRAIN_SESSION")
        .env_remove("BRAIN_TOKEN");
    if out.paint("1", "x") != "x" {
        inner.arg("--color=always");
    }
    let told = attend(&mut inner, &[SIGINT, SIGTERM, SIGHUP]).and_then(Attended::status);
    let told = told.map_err(|error| Trouble::io("cannot start", Path::new("the demo"), &error));
    // A story that was cut off leaves its satellites at work: they live on without whoever launched them.
    if let Ok(root) = Root::named(&folder.join("repo")) {
        attempts::end_all(&root);
    }
    if args.keep {
        out.note(format!(
            "\nKept: cd {} && brain status && brain log",
            folder.join("repo").display()
        ));
    } else if let Err(error) = fs::remove_dir_all(&folder) {
        out.note(format!("could not remove {}: {error}", folder.display()));
    }
    let code = code(told?);
    out.answer(serde_json::json!({ "demo": code == 0 }), "");
    Ok(code)
}

/// Tells the story in a folder of its own.
pub fn tell(folder: &Path, color: bool) -> Result<u8, Failure> {
    let globals = Globals {
        color: if color {
            crate::cli::ColorWhen::Always
        } else {
            Default::default()
        },
        ..Globals::default()
    };
    let out = Out::new(&globals);
    let say = |text: &str| out.note(out.paint("36", text));
    let repo = folder.join("repo");
    say("1. A small repository: two scripts, and a test suite that speaks TAP.");
    let root = repository(&repo)?;
    out.note(format!("   {}", root.dir().display()));

    say("2. It becomes a brain. A throw-away key will answer the human gate here, and nowhere else.");
    let quiet = Out::new(&Globals {
        quiet: true,
        ..globals.clone()
    });
    init::make(&root, quiet)?;
    let (config, _) = crate::context::configuration(&root)?;
    let key = MacKey::place().and_then(|place| MacKey::open(&place, root.dir()));
    let made = key.and_then(|key| Demo::make(root.dir(), config.brain.as_deref().unwrap_or_default(), &key));
    made.map_err(|error| Trouble::usage(error.to_string()))?;
    commit_all(&root, "brain: this repository is coordinated")?;

    say("3. A plan of three phases. Two satellites start side by side, each in a worktree of its own.");
    let path = repo.join("plan.yml");
    let cx = &mut Context::at(out, root, repo.clone())?;
    let (fact, _) = plan::read(&cx.config, &cx.policy, &path)?;
    out.note(format!("   {}", plan::map_line(&cx.policy, &fact)));
    let planned = Planned {
        digest: String::new(),
        source: path.display().to_string(),
        parent: None,
        jobs: 2,
        merge: true,
        yes_to: Vec::new(),
        main_branch: None,
        risk: Vec::new(),
        plan: fact,
    };
    let run = drive_it(cx, &planned, &path)?;

    say("5. The result is on main, and the report says who did what.");
    out.note(history(&repo)?);
    let picks = vec![
        Pick::Run(run.clone()),
        Pick::Crew(run.clone()),
        Pick::Phases(run.clone()),
        Pick::GatesOfRun(run.clone()),
    ];
    let (world, _) = cx.look(&picks)?;
    let Some(fact) = world.runs.get(&run) else {
        return Ok(crate::exit::BUG);
    };
    out.answer(serde_json::json!({}), report::render(&world, fact, "text"));
    Ok(u8::from(fact.end != Some(protocol::facts::run::RunEnd::Finished)))
}

fn drive_it(cx: &mut Context, planned: &Planned, path: &Path) -> Result<protocol::facts::id::RunId, Failure> {
    let ground = ground::of(cx)?;
    let open = crate::commands::run::opener(cx);
    let failed = |why: drive::Trouble| {
        Failure::from(Trouble::new(
            crate::exit::PLAN_FAILED,
            "demo.failed",
            why.to_string(),
        ))
    };
    let (run, fence) = drive::start(&ground, &open, planned).map_err(failed)?;
    let reread = crate::commands::run::rereader(cx, path);
    let (ask, asked) = channel::<Gate>();
    let teller = Teller {
        out: cx.out,
        ask: Mutex::new(ask),
        over: AtomicBool::new(false),
        logs: Mutex::new(Vec::new()),
    };
    let (out, dir, cwd) = (cx.out, cx.root.dir().to_owned(), cx.cwd.clone());
    thread::scope(|scope| {
        scope.spawn(move || {
            while let Ok(gate) = asked.recv() {
                let answered = Root::named(&dir)
                    .map_err(|error| crate::context::no_root(&error))
                    .and_then(|root| Context::at(out, root, cwd.clone()))
                    .and_then(|mut cx| answer(&mut cx, &gate));
                if let Err(failure) = answered {
                    out.fail(&failure);
                }
            }
        });
        let driven = Driver::new(&ground, &open, &teller, run.clone(), fence, &reread).drive();
        teller.over.store(true, Ordering::Relaxed);
        let logs = std::mem::take(
            &mut *teller
                .logs
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner),
        );
        for log in logs {
            // A thread that only reads and prints: if it fell over, the log file still has it all.
            let _ = log.join();
        }
        drop(teller);
        driven.map_err(failed)
    })?;
    Ok(run)
}

fn answer(cx: &mut Context, asked: &Gate) -> Result<u8, Failure> {
    cx.out.note(cx.out.paint(
        "36",
        "4. A human gate: nothing goes on before someone answers. The demo's key does, as a human would:",
    ));
    cx.out.note(format!("   brain gate answer {} continue", asked.id));
    gate::give(cx, asked, Choice::Continue, "looks good")
}

/// Tells what happens, and what the satellites print.
struct Teller {
    out: Out,
    ask: Mutex<Sender<Gate>>,
    over: AtomicBool,
    logs: Mutex<Vec<thread::JoinHandle<()>>>,
}

impl Face for Teller {
    fn hear(&self, news: News) {
        match &news {
            News::Gate(gate) => {
                self.out.note(crate::show::gate(gate));
                let ask = self.ask.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                // Nobody listens any more only when the story is over.
                let _ = ask.send((**gate).clone());
            }
            News::Started { phase, log, .. } => {
                self.out.note(news_line(&self.out, &news));
                let (out, phase, log) = (self.out, phase.clone(), log.clone());
                let follow = thread::spawn(move || follow(out, &phase, &log));
                self.logs
                    .lock()
                    .unwrap_or_else(std::sync::PoisonError::into_inner)
                    .push(follow);
            }
            _ => self.out.note(news_line(&self.out, &news)),
        }
    }
}

/// Prints a satellite's log as it grows, until the line that says it is done.
fn follow(out: Out, phase: &str, log: &Path) {
    let mut at = 0;
    for _ in 0..600 {
        if let Ok(mut file) = File::open(log)
            && file.seek(SeekFrom::Start(at)).is_ok()
        {
            let mut reader = BufReader::new(file);
            let mut line = String::new();
            while let Ok(read @ 1..) = reader.read_line(&mut line) {
                if !line.ends_with('\n') {
                    break;
                }
                at += read as u64;
                let text = line.trim_end().to_owned();
                line.clear();
                if text == DONE {
                    return;
                }
                out.note(format!(
                    "     {} {text}",
                    out.paint("35", &format!("{phase:>8} │"))
                ));
            }
        }
        thread::sleep(Duration::from_millis(100));
    }
}

/// What a script of the demo prints last.
const DONE: &str = "(done)";

fn write(at: &Path, text: &str) -> Result<(), Failure> {
    let folder = at.parent().unwrap_or(at);
    let written = fs::create_dir_all(folder).and_then(|()| fs::write(at, text));
    written.map_err(|error| Trouble::io("cannot write", at, &error).into())
}

fn repository(repo: &Path) -> Result<Root, Failure> {
    fs::create_dir_all(repo).map_err(|error| Trouble::io("cannot make", repo, &error))?;
    Repository::init(
        repo,
        "main",
        &[
            ("user.name", "brain demo"),
            ("user.email", "demo@localhost"),
            ("commit.gpgsign", "false"),
        ],
    )
    .map_err(|error| crate::gitwords::trouble(&error))?;
    let this = std::env::current_exe()
        .map_err(|error| Trouble::io("cannot find", Path::new("this program"), &error))?;
    let brain = quote(&this.display().to_string());
    let script = |text: &str| text.replace("PORT\n", PORT).replace("BRAIN", &brain);
    for (name, text) in [
        ("src/greeting.sh", "echo \"Hello\"\n".to_owned()),
        (
            "tests/greeting.t",
            "[ \"$(sh src/greeting.sh)\" = Hello ]\n".to_owned(),
        ),
        ("src/farewell.sh", "echo \"Bye\"\n".to_owned()),
        (
            "tests/farewell.t",
            "[ \"$(sh src/farewell.sh)\" = Bye ]\n".to_owned(),
        ),
        ("tests/run.sh", SUITE.to_owned()),
        ("demo/greeting.sh", script(GREETING)),
        ("demo/farewell.sh", script(FAREWELL)),
        ("demo/publish.sh", PUBLISH.to_owned()),
        ("plan.yml", PLAN.to_owned()),
    ] {
        write(&repo.join(name), &text)?;
    }
    let root = Root::named(repo).map_err(|error| crate::context::no_root(&error))?;
    commit_all(&root, "a repository to play with")?;
    Ok(root)
}

fn commit_all(root: &Root, text: &str) -> Result<(), Failure> {
    let bad = |error: git::Error| Failure::from(crate::gitwords::trouble(&error));
    let repository =
        Repository::at(root.dir()).ok_or_else(|| Trouble::usage("the demo's repository is gone"))?;
    let door = Door::user(repository);
    let paths: Vec<PathBuf> = door
        .status()
        .map_err(bad)?
        .entries
        .into_iter()
        .map(|entry| entry.path)
        .collect();
    door.commit(
        &paths,
        &Message {
            text: text.to_owned(),
            trailers: Vec::new(),
        },
    )
    .map_err(bad)?;
    Ok(())
}

fn history(repo: &Path) -> Result<String, Failure> {
    let repository = Repository::at(repo).ok_or_else(|| Trouble::usage("the demo's repository is gone"))?;
    let log = Door::user(repository)
        .graph("main", 12)
        .map_err(|error| crate::gitwords::trouble(&error))?;
    let lines: Vec<String> = log.lines().map(|line| format!("   {line}")).collect();
    Ok(lines.join("\n"))
}

const PLAN: &str = r#"name: demo
branch: theme/demo
mode: swarm
phases:
  - id: greeting
    title: Greet by name
    scope: [src/greeting.sh, tests/greeting.t]
    story_angle: "the greeting takes a name"
    tests: sh tests/run.sh greeting
    run: sh demo/greeting.sh
    needs: []
  - id: farewell
    title: Say goodbye properly
    scope: [src/farewell.sh, tests/farewell.t]
    story_angle: "the farewell takes a name"
    tests: sh tests/run.sh farewell
    run: sh demo/farewell.sh
    needs: []
  - id: publish
    title: Publish what both made
    type: deploy
    scope: dist/
    story_angle: "greeting and farewell are fine: publish them?"
    run: sh demo/publish.sh
    gate: human
    needs: [greeting, farewell]
"#;

const SUITE: &str = r#"# Runs the named tests, else all, and speaks TAP; its status counts too.
set -- $(for name in "${@:-*}"; do echo tests/$name.t; done)
echo "1..$#"
n=0
red=0
for t in "$@"; do
    n=$((n + 1))
    if sh "$t"; then echo "ok $n - $t"; else echo "not ok $n - $t"; red=1; fi
done
exit $red
"#;

/// Waits for the lock that both satellites want, and shows one refusal.
const PORT: &str = r#"port() {
    brain lock acquire shared/port "$1" --quiet && return
    echo '  the test port is taken; I wait for it'
    until brain lock acquire shared/port "$1" --quiet 2>/dev/null; do sleep 0.2; done
}
"#;

const GREETING: &str = r#"brain() { BRAIN "$@"; }
PORT
echo 'I greet by name. May I also touch the farewell?'
brain preflight check @me src/farewell.sh || echo "  (exit $?: no, it is not mine)"
echo 'Then only what is mine:'
brain preflight check @me src/greeting.sh tests/greeting.t && echo '  (exit 0: go)'
port greeter
echo 'I hold the test port.'
echo 'echo "Hello, ${1:-world}"' > src/greeting.sh
echo '[ "$(sh src/greeting.sh Ada)" = "Hello, Ada" ]' > tests/greeting.t
sleep 1
brain lock release shared/port greeter --quiet
echo 'Done: my changes are audited, tested, committed and merged for me.'
echo '(done)'
"#;

const FAREWELL: &str = r#"brain() { BRAIN "$@"; }
PORT
port leaver
echo 'I hold the test port.'
echo 'echo "Godbye, ${1:-world}"' > src/farewell.sh
echo '[ "$(sh src/farewell.sh Ada)" = "Goodbye, Ada" ]' > tests/farewell.t
sleep 1
brain lock release shared/port leaver --quiet
echo 'I think that I am done, so I close:'
brain close @me || echo "  (exit $?: red tests refuse it)"
sed 's/Godbye/Goodbye/' src/farewell.sh > src/f && mv src/f src/farewell.sh
echo 'A letter was missing. Now it is right.'
echo '(done)'
"#;

const PUBLISH: &str = r#"mkdir -p dist
{ sh src/greeting.sh Ada; sh src/farewell.sh Ada; } > dist/words.txt
cat dist/words.txt
echo '(done)'
"#;
