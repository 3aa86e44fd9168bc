//! The rules of the embedded store, by their names in docs/reliability: R1, R5 to R9, R17, R20 to R31.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use protocol::command::Command;
use protocol::event::Event;
use protocol::facts::claim::{Fence, State};
use protocol::facts::id::{SessId, SigId};
use protocol::facts::span::Span;
use protocol::world::{Lease, Pick};
use rusqlite::Connection;
use store::clock::{Clock, Reading};
use store::conformance::{open_claim, opening, policy, scope, tables_equal_journal};
use store::{Fault, Only, Outcome, Request, Sqlite, SqliteOptions, Store, Sync, submit};

use crate::child::{Worker, ana, fresh, open, say, told};

const HOUR: u64 = 3_600_000;

fn by_hand() -> (Clock, SqliteOptions) {
    let clock = Clock::by_hand(1_796_047_200_000);
    let options = SqliteOptions {
        clock: clock.clone(),
        deadline: Duration::from_secs(5),
        ..SqliteOptions::default()
    };
    (clock, options)
}

fn boot(clock: &Clock, name: &str) {
    clock.set(Reading {
        boot: name.to_owned(),
        ..clock.read()
    });
}

fn give(store: &mut dyn Store, command: &Command) -> Outcome {
    let (caller, policy) = (ana(), policy());
    let request = Request {
        caller: &caller,
        policy: &policy,
        key: None,
    };
    submit(store, request, command).unwrap()
}

/// Opens a claim of an hour on a folder of its own; its id and fence.
fn claim(store: &mut dyn Store, name: &str) -> (SessId, Fence) {
    let entry = format!("{name}/");
    let ask = opening(name, scope(&[&entry]), Span::from_ms(HOUR));
    match give(store, &Command::OpenClaim(ask)) {
        Outcome::Committed(entries) => match &entries[0].event {
            Event::ClaimOpened(claim) => (claim.id.clone(), claim.fence),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

fn state(store: &mut dyn Store, id: &SessId) -> State {
    let (world, now) = store.look(&vec![Pick::Claim(id.clone())]).unwrap();
    world.state(&world.claims[id], now)
}

/// Says that the database is whole, in its own words.
pub fn assert_sound(path: &Path) {
    let said: String = Connection::open(path)
        .unwrap()
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .unwrap();
    assert_eq!(said, "ok");
}

#[test]
fn r1_no_step_of_the_wall_clock_changes_a_lease() {
    let (clock, options) = by_hand();
    let folder = tempfile::tempdir().unwrap();
    let mut store = Sqlite::create(&folder.path().join("store.db"), options).unwrap();
    let (id, _) = claim(&mut store, "a");
    for step in [-(HOUR as i64), HOUR as i64, 30 * HOUR as i64] {
        let reading = clock.read();
        clock.set(Reading {
            wall: reading.wall + step,
            ..reading
        });
        assert_eq!(state(&mut store, &id), State::Open, "after a step of {step} ms");
    }
    clock.turn(HOUR - 1);
    assert_eq!(state(&mut store, &id), State::Open);
    clock.turn(1);
    assert_eq!(state(&mut store, &id), State::Stale);
}

#[test]
fn r1_another_boot_ends_every_lease_also_one_that_no_command_noted() {
    let (clock, options) = by_hand();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let mut store = Sqlite::create(&path, options.clone()).unwrap();
    let (id, fence) = claim(&mut store, "a");
    boot(&clock, "second");
    assert_eq!(state(&mut store, &id), State::Stale);
    let lease = [(Lease::Claim(id.clone()), fence)];
    assert_eq!(store.touch(&lease, Span::from_ms(HOUR)).unwrap(), [false]);
    let delivery = [(Lease::Delivery(SigId::mint(9)), Fence(0))];
    assert_eq!(store.touch(&delivery, Span::from_ms(HOUR)).unwrap(), [false]);
    // Nothing was written in the second boot: the third must not take its number for its own.
    boot(&clock, "third");
    assert_eq!(state(&mut store, &id), State::Stale);
    let (second, _) = claim(&mut store, "b");
    assert_eq!(state(&mut store, &second), State::Open);
    boot(&clock, "hand");
    assert_eq!(state(&mut store, &second), State::Stale);
}

#[test]
fn r5_a_sign_of_life_counts_only_when_it_was_committed() {
    let (clock, options) = by_hand();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let mut store = Sqlite::create(&path, options).unwrap();
    let (id, fence) = claim(&mut store, "a");
    let lease = [(Lease::Claim(id.clone()), fence)];
    let busy = Connection::open(&path).unwrap();
    busy.execute_batch("BEGIN IMMEDIATE").unwrap();
    clock.turn(HOUR / 2);
    let began = std::time::Instant::now();
    assert_eq!(
        store.touch(&lease, Span::from_ms(HOUR)).unwrap(),
        [false],
        "the store was busy"
    );
    assert!(
        began.elapsed() < Duration::from_secs(2),
        "a sign of life waits for nobody"
    );
    busy.execute_batch("ROLLBACK").unwrap();
    // Nothing counted: it expires an hour after it was opened.
    clock.turn(HOUR / 2);
    assert_eq!(state(&mut store, &id), State::Stale);
}

#[test]
fn r3_r6_a_lease_is_pushed_on_by_its_fence_alone_never_shortened_and_never_revived() {
    let (clock, options) = by_hand();
    let folder = tempfile::tempdir().unwrap();
    let mut store = Sqlite::create(&folder.path().join("store.db"), options).unwrap();
    let (id, fence) = claim(&mut store, "a");
    let touch = |store: &mut Sqlite, fence, ms| {
        let leases = [(Lease::Claim(id.clone()), fence)];
        store.touch(&leases, Span::from_ms(ms)).unwrap()[0]
    };
    assert!(!touch(&mut store, fence.next(), HOUR));
    assert!(
        !touch(&mut store, Fence(0), HOUR),
        "no delivery is made of a claim's lease"
    );
    assert!(touch(&mut store, fence, 1_000), "it is held");
    clock.turn(2_000);
    assert_eq!(state(&mut store, &id), State::Open, "it was not shortened");
    assert!(touch(&mut store, fence, HOUR));
    clock.turn(HOUR);
    assert!(
        !touch(&mut store, fence, HOUR),
        "it ran out: a new fence is needed"
    );
    assert_eq!(state(&mut store, &id), State::Stale);
    match give(&mut store, &Command::RenewClaim { id: id.clone() }) {
        Outcome::Committed(entries) => {
            assert!(
                matches!(&entries[0].event, Event::ClaimRenewed { fence: Some(new), .. } if *new > fence)
            );
        }
        other => panic!("{other:?}"),
    }
    assert!(!touch(&mut store, fence, HOUR), "the old fence is void");
}

#[test]
fn r8_a_store_that_was_put_back_mints_above_all_that_was_lost() {
    let (_folder, path) = fresh();
    let mut store = open(&path);
    claim(&mut store, "kept");
    let old = path.with_file_name("old.db");
    let backup = Connection::open(&path).unwrap();
    backup.execute("VACUUM INTO ?1", [old.to_str().unwrap()]).unwrap();
    drop(backup);
    let (_, lost) = claim(&mut store, "lost");
    drop(store);
    // A backup is no write-ahead file until it is opened as a store again.
    let mut restored = Sqlite::create(&old, SqliteOptions::default()).unwrap();
    let raised = restored.raise_epoch().unwrap();
    let (_, fence) = claim(&mut restored, "new");
    assert!(
        raised > lost && fence > raised,
        "{fence} does not win over {lost}"
    );
    assert_eq!(fence.0 / Fence::EPOCH, 1);
    tables_equal_journal(&mut restored).unwrap();
}

#[test]
fn r9_a_fence_is_on_the_disk_before_it_is_shown() {
    let (_folder, path) = fresh();
    let mut worker = Worker::start("prober", &path, "sync");
    assert_eq!(worker.hear(), "ready");
    worker.tell("go");
    let said = worker.hear();
    worker.end();
    assert_eq!(
        said, "claim 1 signal 0 claim 1 again 1 refused 0",
        "how often the log was made durable by each"
    );
}

#[test]
fn r17_the_same_key_gets_the_first_answer() {
    let (_folder, path) = fresh();
    let mut store = open(&path);
    let first = open_claim(&mut store, &ana(), "a", &["a/"], Some("k")).unwrap();
    drop(store);
    let again = open_claim(&mut open(&path), &ana(), "a", &["a/"], Some("k")).unwrap();
    let (Outcome::Committed(first), Outcome::Repeated(again)) = (first, again) else {
        panic!("the second answer is the first one again");
    };
    assert_eq!(first, again);
}

#[test]
fn r20_this_sqlite_does_not_corrupt_its_log() {
    assert!(rusqlite::version_number() >= 3_051_003 && rusqlite::version_number() != 3_052_000);
}

#[test]
fn r21_network_file_systems_are_refused_by_name() {
    let (_folder, path) = fresh();
    for (kind, name) in [(0x6969, "NFS"), (0x6573_5546, "FUSE"), (0xFF53_4D42, "CIFS")] {
        assert_refused(&path, kind, name);
    }
    open(&path);
}

fn assert_refused(path: &Path, kind: u64, name: &str) {
    let options = |filesystem| SqliteOptions {
        filesystem,
        ..SqliteOptions::default()
    };
    let filesystem: fn(&Path) -> Option<u64> = match kind {
        0x6969 => |_| Some(0x6969),
        0x6573_5546 => |_| Some(0x6573_5546),
        _ => |_| Some(0xFF53_4D42),
    };
    let new = path.with_file_name("new.db");
    for made in [
        Sqlite::open(path, options(filesystem)),
        Sqlite::create(&new, options(filesystem)),
    ] {
        match made.map(drop) {
            Err(Fault::Filesystem { kind, .. }) => assert_eq!(kind, name),
            other => panic!("{other:?}"),
        }
    }
    assert!(!new.exists(), "nothing was left on {name}");
}

#[test]
fn r21_a_file_that_keeps_no_write_ahead_log_is_refused() {
    let (_folder, path) = fresh();
    let other = Connection::open(&path).unwrap();
    let mode: String = other
        .query_row("PRAGMA journal_mode = DELETE", [], |row| row.get(0))
        .unwrap();
    assert_eq!(mode, "delete");
    drop(other);
    assert!(matches!(
        Sqlite::open(&path, SqliteOptions::default()),
        Err(Fault::Filesystem { .. })
    ));
}

#[test]
fn r22_a_writer_that_comes_second_waits_its_turn_and_then_says_busy() {
    let (_folder, path) = fresh();
    let options = SqliteOptions {
        deadline: Duration::from_millis(60),
        ..SqliteOptions::default()
    };
    let mut store = Sqlite::open(&path, options).unwrap();
    let busy = Connection::open(&path).unwrap();
    busy.execute_batch("BEGIN IMMEDIATE").unwrap();
    let fault = open_claim(&mut store, &ana(), "a", &["a/"], None).unwrap_err();
    assert!(
        matches!(fault, Fault::Busy { .. }) && fault.can_retry(),
        "{fault}"
    );
    // Looking waits for nobody.
    store.look(&vec![Pick::AllClaims]).unwrap();
    busy.execute_batch("ROLLBACK").unwrap();
    open_claim(&mut store, &ana(), "a", &["a/"], None).unwrap();
}

/// What a process does that looks at itself while it works.
pub fn prober(place: &Path, what: &str) {
    if what == "own" {
        return own_disk(place);
    }
    let mut store = open(place);
    say("ready");
    for _ in told() {
        say(&match what {
            "sync" => synchronous(&mut store),
            "locks" => locks_while_working(&mut store, place),
            "files" => files_of_a_child(),
            other => panic!("no such look: {other}"),
        });
    }
}

/// How often the log is made durable by each kind of transaction.
fn synchronous(store: &mut Sqlite) -> String {
    let signal = Command::SendSignal {
        to: "human".to_owned(),
        kind: protocol::facts::signal_kind::SignalKind::Info,
        from: None,
        summary: "hello".to_owned(),
    };
    let unknown = Command::RenewClaim {
        id: SessId::parse("sess-20261130-1400-none").unwrap(),
    };
    let keyed = |store: &mut Sqlite| open_claim(store, &ana(), "b", &["b/"], Some("key")).unwrap();
    let mut said = Vec::new();
    let mut before = store.synced();
    let mut note = |store: &Sqlite, what: &str| {
        said.push(format!("{what} {}", store.synced() - before));
        before = store.synced();
    };
    claim(store, "a");
    note(store, "claim");
    give(store, &signal);
    note(store, "signal");
    assert!(matches!(keyed(store), Outcome::Committed(_)));
    note(store, "claim");
    assert!(matches!(keyed(store), Outcome::Repeated(_)));
    note(store, "again");
    assert!(matches!(give(store, &unknown), Outcome::Refused(_)));
    note(store, "refused");
    said.join(" ")
}

/// The locks that this process holds, as the kernel lists them.
fn kernel_locks() -> Vec<String> {
    let me = std::process::id().to_string();
    let listed = std::fs::read_to_string("/proc/locks").unwrap();
    let mut mine: Vec<String> = listed
        .lines()
        .filter(|line| line.split_whitespace().nth(4) == Some(&me))
        .map(|line| line.split_whitespace().skip(1).collect::<Vec<_>>().join(" "))
        .collect();
    mine.sort();
    mine
}

/// Every verb, with the kernel's list of locks before and after.
fn locks_while_working(store: &mut Sqlite, place: &Path) -> String {
    claim(store, "first");
    let before = kernel_locks();
    assert!(!before.is_empty(), "an open store holds its shared lock");
    let (id, fence) = claim(store, "a");
    let mut verbs: Vec<(&str, Vec<String>)> = vec![("transact", kernel_locks())];
    give(
        store,
        &Command::RenewClaim {
            id: SessId::parse("sess-20261130-1400-none").unwrap(),
        },
    );
    verbs.push(("refused", kernel_locks()));
    store.look(&vec![Pick::AllClaims]).unwrap();
    verbs.push(("look", kernel_locks()));
    store.journal(0, 10, &Only::default()).unwrap();
    verbs.push(("journal", kernel_locks()));
    store.wait(u64::MAX >> 1, Duration::from_millis(40)).unwrap();
    verbs.push(("wait", kernel_locks()));
    store
        .touch(&[(Lease::Claim(id), fence)], Span::from_ms(HOUR * 2))
        .unwrap();
    verbs.push(("touch", kernel_locks()));
    // A second connection of this process comes and goes, which must not drop what the first one holds.
    drop(open(place));
    verbs.push(("open and close", kernel_locks()));
    for n in 0..120 {
        claim(store, &format!("more{n}"));
    }
    verbs.push(("folding the log back", kernel_locks()));
    match verbs.iter().find(|(_, locks)| *locks != before) {
        None => "unchanged".to_owned(),
        Some((verb, locks)) => format!("{verb}: {before:?} became {locks:?}"),
    }
}

/// What a child of this process has open.
fn files_of_a_child() -> String {
    let listed = std::process::Command::new("ls")
        .args(["-l", "/proc/self/fd"])
        .output()
        .unwrap();
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    let open: Vec<&str> = listed.lines().filter(|line| line.contains("store.db")).collect();
    format!("{open:?}")
}

fn probe(path: &Path, what: &str) -> String {
    let mut worker = Worker::start("prober", path, what);
    assert_eq!(worker.hear(), "ready");
    worker.tell("go");
    let said = worker.hear();
    worker.end();
    said
}

#[test]
fn r25_no_verb_drops_a_lock_of_the_kernel() {
    let (_folder, path) = fresh();
    assert_eq!(probe(&path, "locks"), "unchanged");
}

#[test]
fn r25_nothing_in_this_crate_opens_the_file_but_sqlite() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut open = vec![root];
    let mut seen = 0;
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            seen += 1;
            for banned in [
                "File::open",
                "fs::read(",
                "fs::copy",
                "fs::write",
                "OpenOptions",
                "fs::rename",
                "fs::hard_link",
            ] {
                assert!(!text.contains(banned), "{}: {banned}", path.display());
            }
            if !path.ends_with("clock.rs") {
                assert!(!text.contains("read_to_string"), "{}", path.display());
            }
        }
    }
    assert!(seen > 8);
}

#[test]
fn r26_a_child_inherits_nothing_of_the_store() {
    let (_folder, path) = fresh();
    assert_eq!(probe(&path, "files"), "[]");
}

#[test]
fn r27_no_look_leaves_a_read_transaction_behind() {
    let (_folder, path) = fresh();
    let mut reader = open(&path);
    let mut store = open(&path);
    for n in 0..200 {
        claim(&mut store, &format!("a{n}"));
    }
    reader.look(&vec![Pick::AllClaims]).unwrap();
    reader.journal(0, 100, &Only::default()).unwrap();
    reader.wait(u64::MAX >> 1, Duration::from_millis(30)).unwrap();
    // With nobody reading, the log can be folded back to nothing.
    let other = Connection::open(&path).unwrap();
    let busy: i64 = other
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))
        .unwrap();
    assert_eq!(busy, 0);
}

#[test]
fn r29_a_file_that_was_moved_away_or_replaced_stops_the_store() {
    let (_folder, path) = fresh();
    let mut store = open(&path);
    claim(&mut store, "a");
    let away = path.with_file_name("away.db");
    std::fs::rename(&path, &away).unwrap();
    assert_replaced(&mut store);
    Sqlite::create(&path, SqliteOptions::default()).unwrap();
    assert_replaced(&mut store);
    std::fs::remove_file(&path).unwrap();
    std::fs::rename(&away, &path).unwrap();
    store.look(&Vec::new()).unwrap();
}

fn assert_replaced(store: &mut Sqlite) {
    let claimed = open_claim(store, &ana(), "b", &["b/"], None).map(drop);
    let looked = store.look(&Vec::new()).map(drop);
    let touched = store.touch(&[], Span::from_ms(1)).map(drop);
    let read = store.journal(0, 1, &Only::default()).map(drop);
    let waited = store.wait(u64::MAX >> 1, Duration::from_millis(60)).map(drop);
    for answer in [claimed, looked, touched, read, waited] {
        assert!(matches!(answer, Err(Fault::Replaced(_))), "{answer:?}");
    }
}

/// Overwrites some bytes of a closed store: one page of the table or index that holds `object`.
fn flip(path: &Path, object: &str) {
    let connection = Connection::open(path).unwrap();
    connection
        .execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")
        .unwrap();
    let page: u32 = connection
        .query_row(
            "SELECT rootpage FROM sqlite_schema WHERE name = ?1",
            [object],
            |row| row.get(0),
        )
        .unwrap();
    drop(connection);
    let mut bytes = std::fs::read(path).unwrap();
    let at = (page as usize - 1) * 4096;
    bytes[at..at + 64].iter_mut().for_each(|byte| *byte ^= 0x5A);
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn r30_the_first_writer_of_a_boot_finds_damage_and_the_journal_rebuilds_the_tables() {
    let (clock, options) = by_hand();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let mut store = Sqlite::create(&path, options.clone()).unwrap();
    for n in 0..40 {
        claim(&mut store, &format!("a{n}"));
    }
    let (last, fence) = claim(&mut store, "last");
    drop(store);
    // No command here looks at it: only a look over the whole file finds it.
    flip(&path, "gate_about");
    // Nobody looks it over in the boot that is known already, and no preflight does at all.
    let mut store = Sqlite::open(&path, options.clone()).unwrap();
    boot(&clock, "second");
    store.look(&vec![Pick::Claim(last.clone())]).unwrap();
    let fault = open_claim(&mut store, &ana(), "b", &["b/"], None).unwrap_err();
    assert!(matches!(fault, Fault::Damaged { .. }), "{fault}");

    let rebuilt = Sqlite::rebuild(&path, options.clone()).unwrap();
    assert_eq!(rebuilt.entries, 41);
    assert!(rebuilt.aside.exists());
    assert_sound(&path);
    // Who had it open goes on; every claim is stale until it gives a sign of life.
    assert_eq!(state(&mut store, &last), State::Stale);
    tables_equal_journal(&mut store).unwrap();
    let (_, new) = claim(&mut store, "b");
    assert!(new > fence && new.0 / Fence::EPOCH == 1);
    give(&mut store, &Command::RenewClaim { id: last.clone() });
    assert_eq!(state(&mut store, &last), State::Open);
    tables_equal_journal(&mut store).unwrap();
}

#[test]
fn r30_a_file_is_looked_over_once_a_boot_also_when_the_first_command_is_refused() {
    let (clock, options) = by_hand();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let mut store = Sqlite::create(&path, options.clone()).unwrap();
    let unknown = Command::RenewClaim {
        id: SessId::parse("sess-20261130-1400-none").unwrap(),
    };
    assert!(matches!(give(&mut store, &unknown), Outcome::Refused(_)));
    claim(&mut store, "a");
    boot(&clock, "second");
    assert!(matches!(give(&mut store, &unknown), Outcome::Refused(_)));
    drop(store);
    flip(&path, "mark");
    // Damage that came after the look is not looked for again in this boot: a refused command meets none of it.
    let mut store = Sqlite::open(&path, options).unwrap();
    assert!(matches!(give(&mut store, &unknown), Outcome::Refused(_)));
}

#[test]
fn r30_a_journal_that_cannot_be_read_is_not_rebuilt_from() {
    let (_folder, path) = fresh();
    let mut store = open(&path);
    for n in 0..40 {
        claim(&mut store, &format!("a{n}"));
    }
    drop(store);
    flip(&path, "journal");
    let fault = Sqlite::rebuild(&path, SqliteOptions::default()).unwrap_err();
    assert!(matches!(fault, Fault::Damaged { .. }), "{fault}");
}

#[test]
fn r31_a_newer_store_and_a_foreign_file_are_refused_and_left_alone() {
    let (folder, path) = fresh();
    let other = Connection::open(&path).unwrap();
    other.execute_batch("PRAGMA user_version = 99").unwrap();
    drop(other);
    for made in [
        Sqlite::open(&path, SqliteOptions::default()),
        Sqlite::create(&path, SqliteOptions::default()),
    ] {
        assert!(matches!(made.map(drop), Err(Fault::TooNew { found: 99, .. })));
    }
    let foreign = folder.path().join("foreign.db");
    Connection::open(&foreign)
        .unwrap()
        .execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE theirs (x)")
        .unwrap();
    for made in [
        Sqlite::open(&foreign, SqliteOptions::default()),
        Sqlite::create(&foreign, SqliteOptions::default()),
    ] {
        assert!(matches!(made.map(drop), Err(Fault::Damaged { .. })));
    }
    let text = folder.path().join("text.db");
    std::fs::write(
        &text,
        "no database at all, but long enough to be taken for one".repeat(100),
    )
    .unwrap();
    assert!(matches!(
        Sqlite::open(&text, SqliteOptions::default()),
        Err(Fault::Damaged { .. })
    ));
    let missing = folder.path().join("missing.db");
    assert!(matches!(
        Sqlite::open(&missing, SqliteOptions::default()),
        Err(Fault::Missing(_))
    ));
    assert!(!missing.exists());
}

#[test]
fn r31_many_processes_make_one_store() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| Sqlite::create(&path, SqliteOptions::default()).unwrap());
        }
    });
    claim(&mut open(&path), "a");
    assert_sound(&path);
}

/// What a process does that may write little or nothing: claims until it may not, then says why.
fn own_disk(place: &Path) {
    say("ready");
    let mut lines = told();
    lines.next();
    let mut done = 0;
    let fault = match Sqlite::open(place, SqliteOptions::default()) {
        Err(fault) => fault,
        Ok(mut store) => loop {
            let slug = format!("d{done}");
            let entry = format!("{slug}/");
            match open_claim(&mut store, &ana(), &slug, &[&entry], None) {
                Ok(_) => done += 1,
                Err(fault) => break fault,
            }
        },
    };
    let kind = match fault {
        Fault::Disk { .. } => "disk",
        _ => "other",
    };
    say(&format!("{done} {kind} {fault}"));
}

#[test]
fn a_full_disk_is_a_fault_of_the_disk_and_leaves_nothing_half_done() {
    let (_folder, path) = fresh();
    let mut worker = Worker::start_with("prober", &path, "own", |command| {
        // The kernel refuses to let any file grow beyond this, as a full disk would; and sends no interrupt.
        let program = command.get_program().to_owned();
        let args: Vec<_> = command.get_args().map(|it| it.to_owned()).collect();
        let envs: Vec<_> = command
            .get_envs()
            .map(|(k, v)| (k.to_owned(), v.map(|v| v.to_owned())))
            .collect();
        let mut limited = std::process::Command::new("sh");
        limited
            .args(["-c", "trap '' XFSZ; ulimit -f 2000; exec \"$0\" \"$@\""])
            .arg(program)
            .args(args);
        for (key, value) in envs {
            if let Some(value) = value {
                limited.env(key, value);
            }
        }
        limited
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped());
        *command = limited;
    });
    worker.hear();
    worker.tell("go");
    let said = worker.hear();
    worker.end();
    let (done, why) = said.split_once(' ').unwrap();
    assert!(why.starts_with("disk "), "{said}");
    let done: u64 = done.parse().unwrap();
    assert!(done > 10, "{said}");
    let mut store = open(&path);
    assert_eq!(
        crate::child::head(&mut store),
        done,
        "every answered claim, and no other"
    );
    tables_equal_journal(&mut store).unwrap();
    assert_sound(&path);
    claim(&mut store, "after");
}

#[test]
fn a_file_that_may_not_be_written_is_a_fault_of_the_disk() {
    use std::os::unix::fs::PermissionsExt;
    let (folder, path) = fresh();
    for file in std::fs::read_dir(folder.path()).unwrap() {
        let file = file.unwrap().path();
        std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o444)).unwrap();
    }
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let root = rustix::process::geteuid().is_root();
    let binary: PathBuf = std::env::current_exe().unwrap();
    assert!(binary.exists());
    let mut worker = Worker::start_with("prober", &path, "own", |command| {
        // Root may write everything; nobody may not.
        if root {
            command.uid(65_534).gid(65_534);
        }
    });
    worker.hear();
    worker.tell("go");
    let said = worker.hear();
    worker.end();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
    assert!(said.starts_with("0 disk "), "{said}");
}

#[test]
fn a_rule_that_panics_leaves_no_transaction_behind() {
    let (_folder, path) = fresh();
    let mut store = open(&path);
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let decide = |_: &protocol::world::World, _| panic!("a bug in a rule");
        store.transact(&Vec::new(), Sync::Full, &decide).map(drop)
    }));
    assert!(panicked.is_err());
    claim(&mut open(&path), "a");
    claim(&mut store, "b");
}
