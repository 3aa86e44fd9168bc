//! Every way of saying no: its code, its exit code, its words, its facts.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use brain::failure::Failure;
use brain::{advice, codes, exit, facts};
use protocol::facts::claim::{ClaimType, Owner, State};
use protocol::facts::gate::{Choice, GateKind};
use protocol::facts::id::{GateId, RunId, SessId, SigId};
use protocol::facts::lock::Holder;
use protocol::facts::path::{Fold, LogicalPath};
use protocol::facts::report::{Format, Report};
use protocol::facts::scope::Scope;
use protocol::facts::time::Instant;
use protocol::facts::zone::Zone;
use protocol::refusal::{Check, Detail, Held, Refusal, Stray};

fn id(slug: &str) -> SessId {
    SessId::parse(&format!("sess-20261130-1000-{slug}")).unwrap()
}

fn path(text: &str) -> LogicalPath {
    LogicalPath::parse(text, Fold::Exact).unwrap()
}

fn scope(text: &str) -> Scope {
    Scope::parse(&[text.to_owned()], Fold::Exact).unwrap()
}

fn at() -> Instant {
    Instant {
        era: 1,
        tick: 1,
        wall: 1_796_032_800_000,
    }
}

fn owner() -> Owner {
    let process = protocol::facts::caller::Process {
        host: "box".into(),
        boot: "b".into(),
        pid_ns: 0,
        pid: 41,
        start: 7,
    };
    Owner {
        user: "ana".into(),
        host: "box".into(),
        process: Some(process),
        host_session: Some("A".into()),
    }
}

fn held() -> Box<Held> {
    Box::new(Held {
        claim: id("held"),
        kind_of: ClaimType::Solo,
        scope: scope("src/"),
        state: State::Open,
        story_angle: "a \u{202e}task".into(),
        agent: "codex".into(),
        owner: owner(),
        opened_at: at(),
        seen_at: Some(at()),
        expires_at: Some(at()),
    })
}

/// One of each kind.
fn refusals() -> Vec<Refusal> {
    use Refusal as R;
    let (a, b) = (|| id("a"), || id("b"));
    let gate = || GateId::mint(9);
    let run = || RunId::mint(42);
    let file = || path("src/a b.rs");
    let words = || "words".to_owned();
    let report = Report {
        total: 3,
        passed: 2,
        failed: 1,
        failures: vec!["x".into()],
        ..Report::empty(Format::Tap)
    };
    vec![
        R::Halted {
            why: words(),
            since: at(),
        },
        R::ClaimUnknown {
            id: "sess-x y".into(),
        },
        R::IdTaken { id: a() },
        R::ScopeOverlaps {
            wanted: scope("src/api"),
            held: held(),
            stale_with_children: true,
        },
        R::NoParent {
            parent: a(),
            state: State::Stale,
        },
        R::LeafHasNoChildren { parent: a() },
        R::OutsideDomain {
            parent: a(),
            wanted: scope("x"),
            domain: scope("y"),
        },
        R::OnlyOwnChildren { caller: a() },
        R::Detached { repo: ".".into() },
        R::TtlOutOfBounds {
            asked_ms: 1,
            least_ms: 10_000,
            most_ms: 2_592_000_000,
        },
        R::TestsHidden {
            command: "npm test | tail".into(),
            by: "|".into(),
            column: 10,
        },
        R::BadText {
            field: "task".into(),
            why: "it is empty".into(),
        },
        R::NotOwner {
            id: a(),
            verb: "close".into(),
            owner: owner(),
        },
        R::WrongState {
            id: a(),
            state: State::Paused,
            verb: "renew".into(),
        },
        R::Superseded { id: a(), by: b() },
        R::Outdated { id: a() },
        R::LockHeld {
            path: file(),
            by: Holder::Claim(b()),
            locked: path("src"),
            owner: owner(),
            taken_at: at(),
            expires_at: Some(at()),
        },
        R::LockNotCovered {
            path: file(),
            holder: "ana".into(),
        },
        R::LockClaimed {
            path: file(),
            held: held(),
        },
        R::LockNotOwner {
            path: file(),
            by: Holder::Name("ben".into()),
        },
        R::LockLost {
            path: file(),
            by: None,
        },
        R::BadHolder { name: "a b".into() },
        R::NotHuman {
            verb: "answer a gate".into(),
            taken_for: "an agent".into(),
        },
        R::GateUnknown { id: "gate-1".into() },
        R::NotOffered {
            gate: gate(),
            kind: GateKind::Ask,
            choice: Choice::Retry,
        },
        R::GateChanged {
            gate: gate(),
            shown: "1".into(),
            now: "2".into(),
        },
        R::GateWithdrawn { gate: gate() },
        R::GatePending {
            gate: gate(),
            kind: GateKind::Ask,
            why: words(),
        },
        R::WordsMustBe {
            gate: gate(),
            words: "KERNEL.md".into(),
        },
        R::NotPaused {
            id: a(),
            paused_by: vec!["ana on x".into()],
        },
        R::OwnPause { id: a() },
        R::SignalUnknown { id: SigId::mint(3) },
        R::AddressUnknown { to: "nobody".into() },
        R::SignalNotYours { id: SigId::mint(3) },
        R::SenderNotYours { from: a() },
        R::BreakerOpen {
            work: "scope:x".into(),
            fails: 3,
            last: None,
        },
        R::OutOfScope {
            id: a(),
            strays: vec![
                Stray {
                    path: file(),
                    why: words(),
                    made: None,
                };
                7
            ],
        },
        R::TestsRed {
            id: a(),
            command: "npm test".into(),
            exit: Some(1),
            report: Some(report),
        },
        R::NoTests {
            id: a(),
            command: "npm test".into(),
            exit: Some(5),
        },
        R::ChildrenLive {
            id: a(),
            children: vec![(b(), State::Stale)],
        },
        R::ChildrenFailed {
            id: a(),
            children: vec![b()],
        },
        R::WrongPlace {
            id: a(),
            repo: ".".into(),
            expected: "main".into(),
            found: "on x".into(),
        },
        R::WroteMeanwhile { id: a() },
        R::ReportRejected {
            id: a(),
            why: words(),
        },
        R::NotClosing { id: a() },
        R::NoEvidence { id: a() },
        R::RunUnknown { id: "run-1".into() },
        R::PhaseUnknown {
            run: run(),
            phase: "a".into(),
        },
        R::RunUnfinished {
            run: run(),
            plan: "shop".into(),
        },
        R::RunOver { run: run() },
        R::RunTaken { run: run() },
        R::RunDriven { run: run() },
        R::PhaseState {
            run: run(),
            phase: "a".into(),
            verb: "retry".into(),
        },
        R::JobsFull { run: run(), jobs: 4 },
    ]
}

/// One of each kind, with the check that meets it.
fn details() -> Vec<(Check, Detail)> {
    use Detail as D;
    let (a, b) = (|| id("a"), || id("b"));
    let zone = |zone| (Check::Zone, D::Zone { zone, right: false });
    vec![
        (
            Check::Claim,
            D::Halted {
                why: "why".into(),
                since: at(),
            },
        ),
        (Check::Claim, D::Unknown { id: "sess-x".into() }),
        (
            Check::Claim,
            D::State {
                id: a(),
                state: State::WaitingHuman,
                gate: Some(GateId::mint(9)),
                paused_by: vec![],
            },
        ),
        (Check::Claim, D::Superseded { id: a(), by: b() }),
        (Check::Claim, D::Expired { id: a() }),
        (Check::Claim, D::Outdated { id: a() }),
        (
            Check::Parents,
            D::Ancestor {
                ancestor: b(),
                state: State::Paused,
            },
        ),
        (
            Check::Scope,
            D::Outside {
                given: "/tmp/x".into(),
                real: "/tmp/x".into(),
            },
        ),
        (
            Check::Scope,
            D::Reserved {
                given: ".git/x".into(),
            },
        ),
        (Check::Scope, D::Links { given: "x".into() }),
        (Check::Scope, D::HardLinked { links: 2 }),
        (
            Check::Scope,
            D::NotCovered {
                scope: scope("src"),
                pilot: Some(b()),
                zone: Zone::Kernel,
            },
        ),
        (Check::Scope, D::SearchReads { scope: scope("src") }),
        zone(Zone::Kernel),
        zone(Zone::Personal),
        zone(Zone::Project),
        zone(Zone::Secret),
        (Check::Zone, D::SecretRead),
        (Check::Zone, D::KernelDeleted),
        (
            Check::Lock,
            D::LockHeld {
                by: Holder::Claim(b()),
                locked: path("src"),
                owner: owner(),
                expires_at: None,
            },
        ),
        (Check::Lock, D::Claimed { held: held() }),
        (Check::Lock, D::LockRequired),
        (
            Check::Breaker,
            D::Breaker {
                work: "scope:x".into(),
                fails: 3,
                most: 3,
                last: Some("why".into()),
            },
        ),
        (
            Check::Branch,
            D::Branch {
                repo: ".".into(),
                expected: "main".into(),
                found: None,
            },
        ),
        (
            Check::Branch,
            D::Checkout {
                repo: ".".into(),
                expected: "/a".into(),
                found: "/b".into(),
            },
        ),
    ]
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn source(file: &str) -> String {
    fs::read_to_string(root().join(file)).unwrap()
}

/// The words in quotes that look like a dotted code of one of these families.
fn dotted(text: &str) -> BTreeSet<String> {
    let families: BTreeSet<&str> = codes::ALL
        .iter()
        .filter_map(|it| it.code.split_once('.'))
        .map(|it| it.0)
        .collect();
    let is_code = |word: &&str| {
        word.split_once('.').is_some_and(|(family, rest)| {
            let plain =
                !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
            families.contains(family) && plain && !matches!(rest, "yml" | "db")
        })
    };
    text.split('"').filter(is_code).map(str::to_owned).collect()
}

fn row(code: &str) -> &'static codes::Code {
    codes::ALL
        .iter()
        .find(|row| row.code == code)
        .unwrap_or_else(|| panic!("{code} is in no list"))
}

#[test]
fn every_refusal_stands_in_the_list_with_its_exit_codes() {
    let mut met = BTreeSet::new();
    for refusal in refusals() {
        let row = row(refusal.code());
        assert!(met.insert(row.code), "{} is told twice", row.code);
        let (of_lock, of_all) = (exit::of_lock(&refusal), exit::of_refusal(&refusal));
        match row.exit {
            Some(exit) => assert_eq!(exit, of_all, "{}", row.code),
            None => assert!(row.lock.is_some(), "{}", row.code),
        }
        if let Some(lock) = row.lock {
            assert_eq!(lock, of_lock, "{}", row.code);
        }
    }
    for (check, detail) in details() {
        let row = row(detail.code());
        met.insert(row.code);
        assert_eq!(row.check, Some(check.exit()), "{}", row.code);
    }
    let written = dotted(&source("crates/protocol/src/refusal.rs"));
    let told: BTreeSet<String> = met.iter().map(|code| (*code).to_owned()).collect();
    assert_eq!(told, written, "a refusal that this test does not tell");
}

#[test]
fn every_code_of_the_faces_stands_in_the_list_and_none_is_left_over() {
    let mut written = dotted(&source("crates/protocol/src/refusal.rs"));
    let mut folders = vec![root().join("crates/brain/src")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if !path.ends_with("codes.rs") {
                written.extend(dotted(&fs::read_to_string(path).unwrap()));
            }
        }
    }
    // What is wrong with a plan is told by the runner, which has a list of its own.
    written.retain(|code| !code.starts_with("plan.") || code == "plan.unreadable");
    written.extend(["usage", "io", "bug"].map(str::to_owned));
    let listed: BTreeSet<String> = codes::ALL.iter().map(|row| row.code.to_owned()).collect();
    assert_eq!(listed.len(), codes::ALL.len(), "a code stands twice in the list");
    assert_eq!(listed, written);
}

#[test]
fn every_exit_code_has_a_meaning() {
    let numbers: BTreeSet<&str> = exit::TABLE.iter().map(|(number, _)| *number).collect();
    for row in codes::ALL {
        for number in row.exit.into_iter().chain(row.check).chain(row.lock) {
            let known = numbers.contains(number.to_string().as_str()) || (1..=6).contains(&number);
            assert!(known, "{}: {number} has no meaning", row.code);
        }
    }
}

#[test]
fn facts_name_no_process_but_its_number_and_tell_time_as_people_do() {
    let mut shown = BTreeMap::new();
    for refusal in refusals() {
        shown.insert(refusal.code(), facts::of_refusal(&refusal));
    }
    for (_, detail) in details() {
        shown.insert(detail.code(), facts::of_detail(&detail));
    }
    assert!(shown.len() > 70, "hardly any fact was met");
    for (code, facts) in &shown {
        assert!(facts.is_object(), "{code}: {facts}");
        let text = facts.to_string();
        for word in ["boot", "pid_ns", "\"start\"", "\"tick\"", "\"era\"", "token"] {
            assert!(!text.contains(word), "{code} lets {word} out: {text}");
        }
    }
    assert_eq!(
        shown["claim.scope_overlaps"]["held"]["expires_at"],
        "2026-11-30T10:00:00Z"
    );
    assert_eq!(shown["claim.scope_overlaps"]["held"]["owner"]["pid"], 41);
}

#[test]
fn every_refusal_is_told_in_at_most_ten_lines_without_control_and_without_a_way_around() {
    let detailed = details().into_iter().map(|(check, detail)| Refusal::Preflight {
        check,
        path: Some(path("src/a b.rs")),
        detail: Box::new(detail),
    });
    let mut advised = 0;
    for refusal in refusals().into_iter().chain(detailed) {
        let (message, advice) = advice::of_refusal(&refusal);
        let lines = Failure::from(refusal.clone()).shown().lines();
        assert!(lines.len() <= 10 && !message.contains('\n'), "{lines:?}");
        for line in &lines {
            assert!(
                !line.chars().any(|c| c.is_control() || c == '\u{202e}'),
                "{line:?}"
            );
        }
        for run in advice.iter().filter_map(|it| it.run.as_deref()) {
            advised += 1;
            for way in [
                "--force",
                "--leave",
                "--accept-failed",
                "brain thaw",
                "gate approve",
                "--no-verify",
                "reset",
            ] {
                assert!(!run.contains(way), "{}: {run}", refusal.code());
            }
        }
    }
    assert!(advised > 30, "hardly any command is advised");
}

/// Compares a page with the file, or writes it there.
fn holds(file: &str, page: &str) {
    let path = root().join(file);
    if std::env::var_os("UPDATE").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, page).unwrap();
    } else {
        let found = fs::read_to_string(path).unwrap_or_default();
        assert!(
            found == page,
            "{file} is not current: `UPDATE=1 ./test` writes it anew"
        );
    }
}

#[test]
fn the_page_of_exit_codes_is_what_the_program_does() {
    holds("docs/exit-codes.md", &codes::page());
}

#[test]
fn the_page_of_commands_is_what_the_program_takes() {
    let page = brain::manual::page();
    holds("docs/cli.md", &page);
    let sections: Vec<&str> = page.split("\n## ").skip(1).collect();
    assert!(sections.len() > 40, "hardly any command was met");
    for section in sections {
        let name = section.lines().next().unwrap_or_default();
        let is_group = section.contains("Commands:");
        assert!(is_group || section.contains("Example"), "{name} has no example");
    }
}
