//! `brain demo`: the whole story, and what is left of it.

use std::fs;
use std::os::unix::process::CommandExt;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use super::house::{House, processes};

#[test]
fn a_demo_tells_its_story_and_leaves_nothing() {
    let house = House::new();
    let place = house.note("demo");
    fs::create_dir(&place).unwrap();
    let told = house.program(&["demo"]).env("TMPDIR", &place).output().unwrap();
    let (out, err) = (
        String::from_utf8_lossy(&told.stdout),
        String::from_utf8_lossy(&told.stderr),
    );
    assert!(told.status.success(), "{out}{err}");
    assert!(
        out.contains("3 delivered, 0 partial, 0 skipped, 0 failed"),
        "{out}{err}"
    );
    assert_eq!(fs::read_dir(&place).unwrap().count(), 0);
}

/// Whether a terminal interrupts all of it or somebody ends the program alone.
#[test]
fn a_demo_that_is_cut_off_leaves_neither_folder_nor_process() {
    for (signal, whole) in [(Signal::INT, true), (Signal::INT, false), (Signal::TERM, false)] {
        let house = House::new();
        let place = house.note("demo");
        fs::create_dir(&place).unwrap();
        let mut demo = house.program(&["demo"]);
        demo.env("TMPDIR", &place).process_group(0);
        let mut demo = demo.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let mark = house.until("the demo has a folder", || {
            Some(fs::read_dir(&place).unwrap().next()?.unwrap().path())
        });
        let attempts = mark.join("repo/.brain/attempts");
        house.until("a satellite works", || {
            let at_work =
                |dir: fs::DirEntry| fs::metadata(dir.path().join("log")).is_ok_and(|log| log.len() > 0);
            fs::read_dir(&attempts).ok()?.flatten().any(at_work).then_some(())
        });
        let pid = Pid::from_child(&demo);
        let sent = if whole {
            kill_process_group(pid, signal)
        } else {
            kill_process(pid, signal)
        };
        sent.unwrap();
        let ended = house.until("it ends", || demo.try_wait().unwrap());
        assert!(ended.code().is_some_and(|code| code > 128), "{ended:?}");
        assert_eq!(fs::read_dir(&place).unwrap().count(), 0, "{signal:?}");
        let mark = mark.file_name().unwrap().to_string_lossy().into_owned();
        house.until("nothing is left", || processes(&mark).is_empty().then_some(()));
    }
}
