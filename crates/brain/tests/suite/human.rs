//! Proofs: which count, where, and which do not.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use brain::human::{Demo, HumanError, MacKey, Seal, Signers, sign, typed};
use protocol::facts::caller::Proof;
use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = fs::canonicalize(folder.path()).unwrap();
    (folder, path)
}

#[test]
fn a_seal_counts_for_its_answer_and_its_key_alone() {
    let (_folder, path) = folder();
    let root = path.join("root");
    let key = MacKey::open(&path.join("state/mac.key"), &root).unwrap();
    let seal = key.seal("answer");
    assert!(key.verifies("answer", &seal));
    assert!(!key.verifies("another", &seal));
    let again = MacKey::open(&path.join("state/mac.key"), &root).unwrap();
    assert!(again.verifies("answer", &Seal::parse(&seal.to_string()).unwrap()));
    let other = MacKey::open(&path.join("other/mac.key"), &root).unwrap();
    assert!(!other.verifies("answer", &seal));
    for forged in ["", "mac:", "mac:00", "ssh:x", "demo:00", "x"] {
        assert!(
            !Seal::parse(forged).is_some_and(|seal| key.verifies("answer", &seal)),
            "{forged}"
        );
    }
    let Seal::Mac(hex) = seal else {
        panic!("a machine's seal is a MAC")
    };
    assert!(!key.verifies("answer", &Seal::Demo(hex)));
}

#[test]
fn a_key_is_made_once_whoever_comes_first() {
    let (_folder, path) = folder();
    let file = path.join("state/brain/mac.key");
    let seals: Vec<Seal> = thread::scope(|scope| {
        let open = || MacKey::open(&file, Path::new("/nowhere")).unwrap().seal("x");
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(open)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(seals.windows(2).all(|pair| pair[0] == pair[1]));
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(
        fs::read_dir(file.parent().unwrap()).unwrap().count(),
        1,
        "no draft is left"
    );
}

#[test]
fn a_key_that_agents_or_others_reach_is_none() {
    let (_folder, path) = folder();
    let open = |file: &Path| MacKey::open(file, &path.join("root")).map(|_| ()).unwrap_err();
    let within = open(&path.join("root/state/mac.key")).to_string();
    assert!(within.contains("within the brain"), "{within}");
    let file = path.join("state/mac.key");
    MacKey::open(&file, &path.join("root")).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let open_to_all = open(&file).to_string();
    assert!(open_to_all.contains("chmod 600 "), "{open_to_all}");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(&file, "short").unwrap();
    assert!(matches!(open(&file), HumanError::Key { .. }));
}

#[test]
fn a_demos_key_answers_in_that_demo_alone() {
    let (_folder, path) = folder();
    let brain = |name: &str| {
        let root = path.join(name);
        fs::create_dir_all(root.join(".brain")).unwrap();
        root
    };
    let (root, real) = (brain("demo"), brain("real"));
    let machine = MacKey::open(&path.join("state/mac.key"), &root).unwrap();
    assert!(!Demo::is_claimed(&root));
    let demo = Demo::make(&root, "demo-1", &machine).unwrap();
    let seal = demo.seal("answer");
    let opened = Demo::open(&root, "demo-1", &machine).unwrap();
    assert!(opened.verifies("answer", &seal) && !opened.verifies("other", &seal));
    assert!(!machine.verifies("answer", &seal));
    assert!(
        Demo::make(&root, "demo-1", &machine).is_err(),
        "a brain is made a demo once"
    );
    // Carried into a real brain, under another id, or without the machine's key, it is nothing.
    fs::copy(root.join(".brain/demo"), real.join(".brain/demo")).unwrap();
    assert!(Demo::is_claimed(&real));
    assert!(Demo::open(&real, "demo-1", &machine).is_none());
    assert!(Demo::open(&root, "shop", &machine).is_none());
    let other = MacKey::open(&path.join("other/mac.key"), &root).unwrap();
    assert!(Demo::open(&root, "demo-1", &other).is_none());
    fs::write(
        real.join(".brain/demo"),
        format!("{}\n{}\n", "0".repeat(64), "0".repeat(64)),
    )
    .unwrap();
    assert!(Demo::open(&real, "demo-1", &machine).is_none());
}

#[test]
fn a_listed_key_signs_for_its_name() {
    let (_folder, path) = folder();
    let key = |name: &str| {
        let file = path.join(name);
        let made = Command::new("ssh-keygen")
            .args(["-q", "-t", "ed25519", "-N", "", "-C", "", "-f"])
            .arg(&file)
            .status();
        assert!(made.expect("the suite needs ssh-keygen").success());
        file
    };
    let (ana, ben) = (key("ana"), key("ben"));
    let list = path.join("signers");
    let public = fs::read_to_string(ana.with_extension("pub")).unwrap();
    fs::write(
        &list,
        format!("ana@example.org namespaces=\"brain-gate\" {public}"),
    )
    .unwrap();
    let signers = Signers::new(list.clone());
    let seal = sign("answer", &ana).unwrap();
    let stored = Seal::parse(&seal.to_string()).unwrap();
    let expected = Proof::Signed {
        signer: "ana@example.org".into(),
    };
    assert_eq!(signers.verify("answer", &stored).unwrap(), Some(expected));
    assert_eq!(signers.verify("other", &seal).unwrap(), None);
    assert_eq!(
        signers.verify("answer", &sign("answer", &ben).unwrap()).unwrap(),
        None
    );
    assert_eq!(
        signers.verify("answer", &Seal::Ssh("garbage".into())).unwrap(),
        None
    );
    assert_eq!(signers.verify("answer", &Seal::Mac("00".into())).unwrap(), None);
    // A list that cannot be read is no verdict.
    fs::remove_file(&list).unwrap();
    assert!(signers.verify("answer", &seal).is_err());
    assert!(sign("answer", &path.join("nobody")).is_err());
}

/// What came of asking, printed for [`asked`]: only ever started by it.
#[test]
#[ignore = "the suite starts it itself, on a terminal of its own"]
fn asked_by_the_suite() {
    let told = match typed("⚡ Delete KERNEL.md?") {
        Ok(proof) => format!("{proof:?}"),
        Err(error) => format!("{error:?}"),
    };
    fs::write(std::env::var("SUITE_OUT").unwrap(), told).unwrap();
}

/// Asks in a session of its own: on this terminal, or on none.
fn ask(terminal: Option<&File>, out: &Path) -> Command {
    let mut command = Command::new("setsid");
    command.arg("--wait").env("SUITE_OUT", out);
    match terminal {
        Some(terminal) => command.arg("--ctty").stdin(terminal.try_clone().unwrap()),
        None => command.stdin(Stdio::null()),
    };
    command
        .arg(std::env::current_exe().unwrap())
        .args(["--quiet", "--ignored", "--exact", "human::asked_by_the_suite"])
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// Asks on a new terminal, where `answer` makes of the code shown what is typed.
fn asked(answer: fn(&str) -> String) -> String {
    let (_folder, path) = folder();
    let out = path.join("out");
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let flags = OFlags::RDWR | OFlags::NOCTTY;
    let terminal = File::from(rustix::fs::open(&name, flags, Mode::empty()).unwrap());
    let mut master = File::from(master);
    // Typed ahead: it must answer nothing.
    master.write_all(b"yes\n").unwrap();
    let mut child = ask(Some(&terminal), &out).spawn().unwrap();
    let mut shown = Vec::new();
    let code = loop {
        let mut bytes = [0; 256];
        let read = master.read(&mut bytes).unwrap();
        shown.extend_from_slice(&bytes[..read]);
        let text = String::from_utf8_lossy(&shown);
        if let Some((before, _)) = text.split_once(" to answer: ") {
            assert!(before.contains("⚡ Delete KERNEL.md?"), "{before}");
            break before.rsplit(' ').next().unwrap().to_owned();
        }
    };
    master
        .write_all(format!("{}\n", answer(&code)).as_bytes())
        .unwrap();
    assert!(child.wait().unwrap().success());
    let name = name.to_string_lossy().into_owned();
    fs::read_to_string(out).unwrap().replace(&name, "TTY")
}

#[test]
fn the_code_on_the_terminal_is_typed_by_who_sees_it() {
    assert_eq!(asked(str::to_lowercase), "Typed { terminal: \"TTY\" }");
    assert_eq!(asked(|_| "yes".to_owned()), "WrongCode");
    assert_eq!(asked(|_| String::new()), "WrongCode");
}

#[test]
fn without_a_terminal_nobody_is_asked() {
    let (_folder, path) = folder();
    let out = path.join("out");
    assert!(ask(None, &out).status().unwrap().success());
    assert_eq!(fs::read_to_string(out).unwrap(), "NoTerminal");
}
