//! What a store costs, as ratios of two things measured by turns in one run: `cargo bench -p store --profile ci`.
//!
//! `BARS=1` makes a missed bar an error. A second argument runs one part alone: open, look, claims, processes.
#![expect(clippy::unwrap_used, reason = "a bench that cannot go on has nothing to say")]

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use protocol::event::Entry;
use protocol::event::Event;
use protocol::facts::caller::{Actor, Caller, Process};
use protocol::facts::claim::{Claim, Fence};
use protocol::facts::id::SessId;
use protocol::facts::lock::{Holder, Lock};
use protocol::facts::path::{Fold, LogicalPath};
use protocol::facts::span::Span;
use protocol::facts::time;
use protocol::rules::footprint;
use protocol::rules::preflight::{Op, PathAsk, Preflight};
use protocol::world::Footprint;
use rusqlite::Connection;
use store::conformance::open_claim;
use store::{Outcome, Sqlite, SqliteOptions, Store, Sync};

const CLAIMS: usize = 10_000;
const LOCKS: usize = 100_000;
const EVENTS: usize = 1_000_000;

fn main() {
    let args: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| !arg.starts_with("--"))
        .collect();
    match args.first().map(String::as_str) {
        Some("child-claims") => return child_claims(Path::new(&args[1]), &args[2]),
        Some("child-bare") => return child_bare(Path::new(&args[1])),
        _ => {}
    }
    let only = args.first().cloned().unwrap_or_default();
    let wanted = |part: &str| only.is_empty() || only == part;
    let mut missed = 0;
    let mut bar = |what: &str, ratio: f64, ok: bool| {
        println!("{} {what}: {ratio:.2}", if ok { "ok    " } else { "MISSED" });
        missed += u32::from(!ok);
    };
    if wanted("claims") || wanted("look") || wanted("open") {
        let folder = tempfile::tempdir().unwrap();
        let (empty, full) = (folder.path().join("empty.db"), folder.path().join("full.db"));
        Sqlite::create(&empty, SqliteOptions::default()).unwrap();
        let began = Instant::now();
        fill(&full);
        println!("filled a store in {:?}", began.elapsed());
        if wanted("claims") {
            let ratio = claims(&empty, &full);
            bar(
                "claim beside 10,000 live ones / beside none, at most 1.5",
                ratio,
                ratio <= 1.5,
            );
        }
        if wanted("look") {
            let ratio = look(&empty, &full);
            bar(
                "preflight's look in a full store / in an empty one, at most 1.2",
                ratio,
                ratio <= 1.2,
            );
        }
        if wanted("open") {
            opening(&empty, &full);
        }
    }
    if wanted("processes") {
        let (ratio, fair, longest) = processes();
        bar(
            "claims of 16 processes / bare rows of 16, at least 0.5",
            ratio,
            ratio >= 0.5,
        );
        bar("slowest process / mean, at least 0.25", fair, fair >= 0.25);
        bar("longest wait in seconds, under 1", longest, longest < 1.0);
    }
    if missed > 0 && std::env::var_os("BARS").is_some() {
        std::process::exit(1);
    }
}

/// A caller under eight processes, as an agent's hook is.
fn caller() -> Caller {
    let process = |pid| Process {
        host: "box".to_owned(),
        boot: "boot".to_owned(),
        pid_ns: 1,
        pid,
        start: 7,
    };
    Caller {
        chain: (1..9).map(process).collect(),
        ..Caller::plain("ana", "box")
    }
}

fn open(path: &Path) -> Sqlite {
    Sqlite::open(path, SqliteOptions::default()).unwrap()
}

/// 10,000 live claims, one in a hundred a glob without a literal first component; 100,000 locks; 1,000,000 events.
fn fill(path: &Path) {
    let mut store = Sqlite::create(path, SqliteOptions::default()).unwrap();
    let Outcome::Committed(entries) =
        open_claim(&mut store, &caller(), "sample", &["sample/"], None).unwrap()
    else {
        panic!("an empty store refuses nothing")
    };
    let Event::ClaimOpened(sample) = &entries[0].event else {
        panic!("a claim was opened")
    };
    let mut made = 0;
    let many = |store: &mut Sqlite, events: Vec<Event>| {
        let decide = |_: &protocol::world::World, now: time::Instant| {
            Ok(store::Decided {
                actor: Actor {
                    nature: "plain".to_owned(),
                    user: "ana".to_owned(),
                    host: "box".to_owned(),
                    claim: None,
                    proof: None,
                },
                key: None,
                events: events.iter().cloned().map(|event| at(event, now)).collect(),
            })
        };
        match store.transact(&Footprint::new(), Sync::Relaxed, &decide).unwrap() {
            Outcome::Committed(entries) => entries.len(),
            _ => 0,
        }
    };
    for chunk in 0..CLAIMS / 1_000 {
        let claims = (0..1_000).map(|n| {
            let n = chunk * 1_000 + n;
            let scope = if n % 100 == 7 {
                format!("*-gen{n}.md")
            } else {
                format!("crates/c{}/src/m{n}/", n % 40)
            };
            Event::ClaimOpened(Claim {
                id: SessId::parse(&format!("sess-20261130-1400-n{n}")).unwrap(),
                scope: store::conformance::scope(&[&scope]),
                fence: Fence(n as u64 + 2),
                ..sample.clone()
            })
        });
        made += many(&mut store, claims.collect());
    }
    for chunk in 0..LOCKS / 10_000 {
        let locks = (0..10_000).map(|n| {
            let n = chunk * 10_000 + n;
            Event::LockTaken(Lock {
                path: LogicalPath::parse(
                    &format!("crates/c{}/src/m{}/f{n}.rs", n % 40, n % CLAIMS),
                    Fold::Exact,
                )
                .unwrap(),
                holder: Holder::Name(format!("h{n}")),
                owner: sample.owner.clone(),
                fence: Fence(20_000 + n as u64),
                taken_at: sample.opened_at,
                ttl: Span::from_ms(3_600_000),
            })
        });
        made += many(&mut store, locks.collect());
    }
    // The rest of the journal is written below the door: what it says is never looked at here.
    drop(store);
    let connection = Connection::open(path).unwrap();
    let entry = Entry {
        seq: 0,
        at: sample.opened_at,
        actor: Actor {
            nature: "plain".to_owned(),
            user: "ana".to_owned(),
            host: "box".to_owned(),
            claim: None,
            proof: None,
        },
        key: None,
        event: Event::ClaimRenewed {
            id: sample.id.clone(),
            fence: None,
        },
    };
    let data = serde_json::to_string(&entry).unwrap();
    connection
        .execute(
            "WITH RECURSIVE n(i) AS (SELECT ?1 UNION ALL SELECT i + 1 FROM n WHERE i < ?2)
             INSERT INTO journal (seq, wall, claim, key, fence, data) SELECT i, 0, ?3, NULL, 200000, ?4 FROM n",
            rusqlite::params![made as i64 + 2, EVENTS as i64, sample.id.as_str(), data],
        )
        .unwrap();
    connection
        .execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")
        .unwrap();
}

fn at(event: Event, now: time::Instant) -> Event {
    match event {
        Event::ClaimOpened(claim) => Event::ClaimOpened(Claim {
            opened_at: now,
            ..claim
        }),
        other => other,
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// Opens claims in both stores by turns and gives the ratio of the medians.
fn claims(empty: &Path, full: &Path) -> f64 {
    let mut stores = [open(empty), open(full)];
    let mut times = [Vec::new(), Vec::new()];
    for n in 0..400 {
        for which in [n % 2, 1 - n % 2] {
            let entry = format!("other/o{n}/");
            let began = Instant::now();
            let outcome =
                open_claim(&mut stores[which], &caller(), &format!("o{n}"), &[&entry], None).unwrap();
            times[which].push(began.elapsed());
            let Outcome::Committed(entries) = outcome else {
                panic!("{outcome:?}")
            };
            let Event::ClaimOpened(claim) = &entries[0].event else {
                panic!("a claim was opened")
            };
            // The empty store stays empty.
            let abort = protocol::command::Command::Abort {
                id: claim.id.clone(),
                why: "done".to_owned(),
            };
            let policy = store::conformance::policy();
            let (caller, store) = (caller(), &mut stores[which]);
            let request = store::Request {
                caller: &caller,
                policy: &policy,
                key: None,
            };
            store::submit(store, request, &abort).unwrap();
        }
    }
    let [empty, full] = times.map(median);
    println!("a claim: {empty:?} in an empty store, {full:?} in a full one");
    full.as_secs_f64() / empty.as_secs_f64()
}

/// What a hook asks of the store: one claim, one path.
fn preflight(claim: &str) -> Footprint {
    let path = LogicalPath::parse("work/w/src/main.rs", Fold::Exact).unwrap();
    let ask = Preflight {
        id: SessId::parse(claim).ok(),
        op: Op::Write,
        paths: vec![PathAsk {
            given: "work/w/src/main.rs".to_owned(),
            path: Ok(path),
            links: None,
            folder: false,
            repo: None,
        }],
    };
    footprint::of_preflight(&ask, &caller())
}

/// Opens a claim for the preflights to be about; its id.
fn worker(path: &Path) -> String {
    let outcome = open_claim(&mut open(path), &caller(), "worker", &["work/w/"], Some("worker")).unwrap();
    let (Outcome::Committed(entries) | Outcome::Repeated(entries)) = outcome else {
        panic!("{outcome:?}")
    };
    entries[0].event.claim().unwrap().to_string()
}

fn look(empty: &Path, full: &Path) -> f64 {
    let picks = [preflight(&worker(empty)), preflight(&worker(full))];
    let paths = [empty, full];
    let mut times = [Vec::new(), Vec::new()];
    let mut warm = [Vec::new(), Vec::new()];
    let mut stores = [open(empty), open(full)];
    for n in 0..2_000 {
        for which in [n % 2, 1 - n % 2] {
            let began = Instant::now();
            open(paths[which]).look(&picks[which]).unwrap();
            times[which].push(began.elapsed());
            let began = Instant::now();
            stores[which].look(&picks[which]).unwrap();
            warm[which].push(began.elapsed());
        }
    }
    let ([empty, full], [warm_empty, warm_full]) = (times.map(median), warm.map(median));
    println!("opening and looking: {empty:?} in an empty store, {full:?} in a full one");
    println!("looking alone: {warm_empty:?} in an empty store, {warm_full:?} in a full one");
    full.as_secs_f64() / empty.as_secs_f64()
}

/// Where the time of a preflight goes.
fn opening(empty: &Path, full: &Path) {
    for (name, path) in [("empty", empty), ("full", full)] {
        let (mut bare, mut opened, mut looked) = (Vec::new(), Vec::new(), Vec::new());
        let picks = preflight(&worker(path));
        for _ in 0..2_000 {
            let began = Instant::now();
            let connection = Connection::open(path).unwrap();
            connection
                .query_row("PRAGMA user_version", [], |row| row.get::<_, i64>(0))
                .unwrap();
            bare.push(began.elapsed());
            drop(connection);
            let began = Instant::now();
            let mut store = open(path);
            opened.push(began.elapsed());
            let began = Instant::now();
            store.look(&picks).unwrap();
            looked.push(began.elapsed());
        }
        println!(
            "{name}: bare SQLite {:?}, opening a store {:?}, its first look {:?}",
            median(bare),
            median(opened),
            median(looked)
        );
    }
}

/// Sixteen processes of each kind by turns; the ratio of what they did, the slowest against the mean, the longest wait.
fn processes() -> (f64, f64, f64) {
    let folder = tempfile::tempdir().unwrap();
    let (mut claims, mut bare) = (0, 0);
    let (mut fair, mut longest, mut longest_bare) = (f64::MAX, 0.0f64, 0.0f64);
    for round in 0..4 {
        let store = folder.path().join(format!("claims{round}.db"));
        Sqlite::create(&store, SqliteOptions::default()).unwrap();
        let plain = folder.path().join(format!("bare{round}.db"));
        let connection = Connection::open(&plain).unwrap();
        connection
            .execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE row (id INTEGER PRIMARY KEY, who TEXT)")
            .unwrap();
        drop(connection);
        let said = sixteen("child-claims", &store);
        let done: Vec<f64> = said.iter().map(|(done, _)| *done as f64).collect();
        claims += said.iter().map(|(done, _)| done).sum::<u64>();
        fair = fair.min(done.iter().copied().fold(f64::MAX, f64::min) * 16.0 / done.iter().sum::<f64>());
        longest = longest.max(
            said.iter()
                .map(|(_, wait)| *wait as f64 / 1e6)
                .fold(0.0, f64::max),
        );
        let said = sixteen("child-bare", &plain);
        bare += said.iter().map(|(done, _)| done).sum::<u64>();
        let waits = said.iter().map(|(_, wait)| *wait as f64 / 1e6);
        longest_bare = waits.fold(longest_bare, f64::max);
    }
    println!("in 4 x 3 s: {claims} claims, {bare} bare rows; longest wait for one {longest_bare:.2} s");
    (claims as f64 / bare as f64, fair, longest)
}

fn sixteen(role: &str, path: &Path) -> Vec<(u64, u64)> {
    let start = |at: usize| {
        Command::new(std::env::current_exe().unwrap())
            .args([role, path.to_str().unwrap(), &format!("p{at}")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let mut children: Vec<_> = (0..16).map(start).collect();
    let mut outs: Vec<_> = children
        .iter_mut()
        .map(|child| BufReader::new(child.stdout.take().unwrap()).lines())
        .collect();
    outs.iter_mut()
        .for_each(|lines| assert_eq!(lines.next().unwrap().unwrap(), "ready"));
    for child in &mut children {
        child.stdin.take().unwrap().write_all(b"go\n").unwrap();
    }
    let said = outs.iter_mut().map(|lines| {
        let line = lines.next().unwrap().unwrap();
        let (done, longest) = line.split_once(' ').unwrap();
        (done.parse().unwrap(), longest.parse().unwrap())
    });
    let said = said.collect();
    children.iter_mut().for_each(|child| drop(child.wait()));
    said
}

fn three_seconds(mut one: impl FnMut(u64)) {
    println!("ready");
    std::io::stdin().read_line(&mut String::new()).unwrap();
    let began = Instant::now();
    let (mut done, mut longest) = (0, Duration::ZERO);
    while began.elapsed() < Duration::from_secs(3) {
        let asked = Instant::now();
        one(done);
        longest = longest.max(asked.elapsed());
        done += 1;
    }
    println!("{done} {}", longest.as_micros());
}

fn child_claims(path: &Path, name: &str) {
    let mut store = open(path);
    let (caller, policy) = (caller(), store::conformance::policy());
    let request = store::Request {
        caller: &caller,
        policy: &policy,
        key: None,
    };
    three_seconds(|n| {
        let scope = store::conformance::scope(&[&format!("{name}/{n}/")]);
        let ask = store::conformance::opening(&format!("{name}-{n}"), scope, Span::from_ms(3_600_000));
        let outcome =
            store::submit(&mut store, request, &protocol::command::Command::OpenClaim(ask)).unwrap();
        assert!(matches!(outcome, Outcome::Committed(_)));
    });
}

/// The least that a durable write can be: one row, FULL, the same queue-less retry as a busy handler's.
fn child_bare(path: &Path) {
    let mut connection = Connection::open(path).unwrap();
    connection.execute_batch("PRAGMA synchronous = FULL").unwrap();
    connection
        .busy_handler(Some(|_| {
            std::thread::sleep(Duration::from_micros(950));
            true
        }))
        .unwrap();
    three_seconds(|_| {
        connection
            .execute_batch("BEGIN IMMEDIATE; INSERT INTO row (who) VALUES ('x'); COMMIT")
            .unwrap();
    });
}
