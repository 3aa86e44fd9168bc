//! The hypervisor is killed between every two of its steps; `brain run --resume` comes to the same end.

use std::collections::BTreeMap;
use std::time::Duration;
#[cfg(feature = "testkit")]
use std::time::Instant;

use super::house::{House, Said, processes};

/// How many kills one test makes at most, and over how long; `BRAIN_TEST_KILLS` asks for more.
#[cfg(feature = "testkit")]
fn patience() -> (u64, Duration) {
    let asked = std::env::var("BRAIN_TEST_KILLS")
        .ok()
        .and_then(|text| text.parse::<u64>().ok());
    asked.map_or((12, Duration::from_secs(45)), |kills| {
        (kills, Duration::from_secs(3_600))
    })
}

/// Two phases side by side, one that fails at first and is retried, one that a human lets go on.
const PLAN: &str = "  - {id: a, type: code, scope: a/, needs: [], tests: sh tests/green.sh, run: 'echo $BRAIN_ATTEMPT a >> TOP/started; mkdir -p a; sleep 0.3; echo a > a/f'}
  - {id: b, type: deploy, scope: b/, needs: [], retries: 1, run: 'echo $BRAIN_ATTEMPT b >> TOP/started; mkdir -p b; echo b > b/f; test -e TOP/again || { echo > TOP/again; exit 3; }'}
  - {id: c, type: deploy, scope: c/, needs: [a, b], gate: human, run: 'echo $BRAIN_ATTEMPT c >> TOP/started; mkdir -p c; cat a/f b/f > c/f'}
";

/// Whatever happened before, the run is over and everything is as if nothing had.
fn is_whole(house: &House, how: &str) {
    assert_eq!(
        house.standing(),
        ["a accepted ok", "b accepted ok", "c accepted ok"],
        "{how}"
    );
    assert_eq!(
        house.git(&["ls-tree", "-r", "--name-only", "main"]),
        "README.md\na/f\nb/f\nbrain.yml\nc/f\ntests/green.sh\ntests/red.sh",
        "{how}"
    );
    assert_eq!(house.read("c/f"), "a\nb\n", "{how}");
    assert_eq!(
        house.git(&["status", "--porcelain", "--untracked-files=no"]),
        "",
        "{how}"
    );
    let journal = house.brain(&["log", "--jsonl"]).out;
    let events = journal
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let mut accepted = BTreeMap::new();
    let (mut runs, mut ends) = (0, 0);
    for event in events {
        match event["event"].as_str() {
            Some("phase_accepted") => {
                *accepted
                    .entry(event["data"]["phase"].as_str().unwrap().to_owned())
                    .or_insert(0) += 1;
            }
            Some("run_started") => runs += 1,
            Some("run_ended") => ends += 1,
            _ => {}
        }
    }
    assert_eq!(
        accepted.into_iter().collect::<Vec<_>>(),
        [("a", 1), ("b", 1), ("c", 1)].map(|(id, n)| (id.to_owned(), n)),
        "{how}"
    );
    assert_eq!((runs, ends), (1, 1), "{how}");
    let mut started = house.notes("started");
    let all = started.len();
    started.sort();
    started.dedup();
    assert_eq!(
        started.len(),
        all,
        "{how}: no attempt is started twice: {started:?}"
    );
    house.until("nothing is left running", || {
        processes(&house.top.display().to_string())
            .is_empty()
            .then_some(())
    });
    assert_eq!(
        house.json(&["claim", "list"])["claims"].as_array().unwrap().len(),
        0,
        "{how}"
    );
}

fn ended(said: &Said) -> bool {
    said.code == 0
}

/// Runs on until the gate, answers it, and runs on to the end.
fn go_on(house: &House, how: &str) {
    for _ in 0..6 {
        let begun = house.has(".brain/brain.db")
            && !house
                .brain(&["run", "status", "--json"])
                .out
                .contains("\"runs\":[]");
        let args: &[&str] = if begun {
            &["run", "--resume", "--no-wait"]
        } else {
            &["run", "p.yml", "--no-wait", "--jobs", "2"]
        };
        let said = house.brain(args);
        match said.code {
            0 => return,
            11 => drop(house.settle("phase", "continue")),
            code => panic!("{how}: exit {code}\n{}{}", said.out, said.err),
        }
    }
    panic!("{how}: it never ends");
}

#[cfg(feature = "testkit")]
#[test]
fn o_31_a_run_that_is_killed_at_any_step_goes_on_to_the_same_end() {
    let (most, at_most) = patience();
    let began = Instant::now();
    // A prime apart, so that a bounded run of the test still meets every part of a run.
    let stride = if std::env::var_os("BRAIN_TEST_KILLS").is_some() {
        1
    } else {
        11
    };
    let mut killed = 0;
    for n in 0.. {
        let step = 1 + n * stride;
        let house = House::new();
        house.plan(PLAN);
        let how = format!("killed before step {step}");
        let mut died = false;
        for args in [
            &["run", "p.yml", "--no-wait", "--jobs", "2"][..],
            &["run", "--resume", "--no-wait"],
        ] {
            let output = house
                .program(args)
                .env("BRAIN_TEST_DIE_AT", step.to_string())
                .output()
                .unwrap();
            died = output.status.code().is_none();
            if died || output.status.code() == Some(0) {
                break;
            }
            assert_eq!(
                output.status.code(),
                Some(11),
                "{how}: {}",
                String::from_utf8_lossy(&output.stderr)
            );
            house.settle("phase", "continue");
        }
        go_on(&house, &how);
        is_whole(&house, &how);
        if !died {
            break;
        }
        killed += 1;
        if killed >= most || began.elapsed() > at_most {
            break;
        }
    }
    assert!(killed > 0);
}

#[test]
fn a_run_that_is_killed_again_and_again_at_odd_moments_comes_to_the_same_end() {
    let house = House::new();
    house.plan(PLAN);
    let mut run = house.start(&["run", "p.yml", "--jobs", "2"]);
    let mut kills = 0;
    for moment in [120, 340, 70, 210, 500, 160, 400, 90, 260] {
        if run.child.try_wait().unwrap().is_some() {
            break;
        }
        std::thread::sleep(Duration::from_millis(moment));
        run.kill();
        kills += 1;
        let gates = house.json(&["gate", "list"]);
        if gates["gates"][0].is_object() {
            house.settle("phase", "continue");
        }
        let begun = house.brain(&["run", "status", "--json"]).out.contains("\"run\":");
        run = if begun {
            house.start(&["run", "--resume"])
        } else {
            house.start(&["run", "p.yml", "--jobs", "2"])
        };
    }
    run.kill();
    let how = format!("killed {kills} times");
    go_on(&house, &how);
    is_whole(&house, &how);
}

#[test]
fn a_child_that_lived_on_is_taken_back_and_a_second_hypervisor_is_refused() {
    let house = House::new();
    house.plan("  - {id: 1, type: deploy, scope: a/, run: 'echo $$ >> TOP/pid; mkdir a; until test -e TOP/go; do sleep 0.05; done; echo > a/f'}\n");
    let run = house.start(&["run", "p.yml"]);
    let pid = house.noted("pid", 1)[0].clone();
    let second = house.brain(&["run", "--resume"]);
    assert_eq!(second.code, 10, "{}", second.err);
    assert!(second.err.contains("run.driven"), "{}", second.err);
    run.kill();
    assert!(
        std::path::Path::new(&format!("/proc/{pid}")).exists(),
        "the child outlives its hypervisor"
    );
    let run = house.start(&["run", "--resume"]);
    house.until("it is taken back", || {
        run.err().contains("taken back").then_some(())
    });
    std::fs::write(house.note("go"), "").unwrap();
    let said = run.end();
    assert!(ended(&said), "{}{}", said.out, said.err);
    assert_eq!(house.notes("pid").len(), 1);
    assert!(house.has("a/f"));
}

#[test]
fn a_child_that_died_without_a_word_is_a_failed_attempt() {
    let house = House::new();
    house.plan("  - {id: 1, type: deploy, scope: a/, retries: 1, run: 'echo $$ $PPID >> TOP/pid; mkdir a; test $(wc -l < TOP/pid) -gt 1 || sleep 60; echo > a/f'}\n");
    let run = house.start(&["run", "p.yml"]);
    let line = house.noted("pid", 1)[0].clone();
    run.kill();
    for pid in line.split(' ').rev() {
        let pid = rustix::process::Pid::from_raw(pid.parse().unwrap()).unwrap();
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
    let said = house.brain(&["run", "--resume"]);
    assert!(ended(&said), "{}{}", said.out, said.err);
    let status = house.json(&["run", "status"]);
    let attempts = status["run"]["phases"][0]["attempts"].as_array().unwrap().clone();
    assert_eq!(attempts.len(), 2, "{status}");
    assert_eq!(attempts[0]["outcome"], "failed");
}
