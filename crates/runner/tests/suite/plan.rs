//! Plans are read strictly, and refused with every error at once.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use protocol::facts::kind::Kind;
use protocol::facts::plan::{Launch, Mode, PhaseGate, Plan};
use protocol::facts::span::Span;
use protocol::facts::trigger::Trigger;
use runner::plan::{Known, Notice, Problem, read, read_bytes, render};

const MANUAL: &str = include_str!("plan/manual.yml");

fn good(text: &str) -> (Plan, Vec<Notice>) {
    read(text, "plans/p.yml", &Known::default()).unwrap_or_else(|problems| panic!("{}", render(&problems)))
}

fn bad(text: &str) -> Vec<Problem> {
    match read(text, "plans/p.yml", &Known::default()) {
        Ok((plan, _)) => panic!("it was accepted: {plan:#?}"),
        Err(problems) => {
            assert!(!problems.is_empty());
            problems
        }
    }
}

/// The problems in short: `code line:column`.
fn short(problems: &[Problem]) -> Vec<String> {
    problems
        .iter()
        .map(|p| format!("{} {}:{}", p.code, p.line, p.column))
        .collect()
}

/// A plan of one phase with these lines added to it.
fn phase(lines: &str) -> String {
    let mut text = String::from("phases:\n  - id: 1\n    scope: src/\n");
    text.extend(lines.lines().map(|line| format!("    {line}\n")));
    text
}

#[test]
fn the_plan_of_the_manual_is_read_as_it_stands() {
    let (plan, notices) = good(MANUAL);
    assert_eq!(
        (plan.name.as_str(), plan.branch.as_str()),
        ("superoauth-tier3", "theme/superoauth-tier3")
    );
    assert_eq!((plan.mode, plan.chain), (Mode::Manual, false));
    assert_eq!(plan.targets["vps"].ssh.as_deref(), Some("deploy@203.0.113.7"));
    let [first, second] = &plan.phases[..] else {
        panic!("{plan:#?}")
    };
    assert_eq!(
        first.scope,
        [
            "github/super-oauth/package.json",
            "github/super-oauth/package-lock.json"
        ]
    );
    assert_eq!(first.scope_written, ["package.json", "package-lock.json"]);
    assert_eq!(first.run, Some(Launch::Runner("claude".to_owned())));
    assert_eq!(first.timeout, Some(Span::from_ms(1_800_000)));
    assert_eq!(first.retries, 1);
    assert_eq!(first.tests.as_ref().unwrap().run, "npm test");
    let asked = Trigger::HumanGate {
        text: "residual low/medium: go on?".to_owned(),
    };
    assert_eq!(first.on_partial, [asked]);
    assert_eq!(second.kind, Kind::Deploy);
    assert_eq!(second.gate, PhaseGate::Human);
    assert_eq!(second.needs, std::slice::from_ref(&first.id));
    assert_eq!(second.title, "2");
    let told: Vec<_> = notices.iter().map(|notice| (notice.code, notice.line)).collect();
    assert_eq!(told, [("plan.unquoted_trigger", 21)]);
}

#[test]
fn what_is_left_out_has_its_default() {
    let (plan, _) = good("phases: [{id: a, scope: src/}, {id: b, scope: .}, {id: c, scope: x, needs: []}]");
    assert_eq!(
        (plan.name.as_str(), plan.branch.as_str(), plan.mode),
        ("p", "theme/p", Mode::Manual)
    );
    let [a, b, c] = &plan.phases[..] else {
        panic!("{plan:#?}")
    };
    assert_eq!(
        (a.title.as_str(), a.kind, a.gate, a.retries),
        ("a", Kind::Code, PhaseGate::Never, 0)
    );
    assert!(a.baseline && a.network && a.sandbox && a.run.is_none() && a.timeout.is_none());
    assert!(a.needs.is_empty() && c.needs.is_empty());
    assert_eq!(b.needs, std::slice::from_ref(&a.id));
    assert_eq!(b.scope, ["."]);
}

#[test]
fn every_error_is_told_in_one_go_by_position() {
    let text = "\
name: x
mode: automatic
branch: a..b
phasess: []
phases:
  - id: 1
    scpoe: src/
    type: cod
    timeout: 30
    gate: no
  - id: 1
    scope: [../other, /etc]
    needs: [1, 22]
    run: cluade
    on_fail: signal → BLOCKED pilot
    tests: npm test | tail
    secrets: [my-key]
    network: no
    retries: -1
";
    let problems = bad(text);
    assert_eq!(
        short(&problems),
        [
            "plan.bad_mode 2:7",
            "plan.bad_branch 3:9",
            "plan.unknown_key 4:1",
            "plan.missing_key 6:5",
            "plan.unknown_key 7:5",
            "plan.bad_type 8:11",
            "plan.bad_time 9:14",
            "plan.bad_gate 10:11",
            "plan.duplicate_phase 11:9",
            "plan.scope_outside 12:13",
            "plan.scope_outside 12:23",
            "plan.unknown_phase 13:16",
            "plan.unknown_runner 14:10",
            "plan.bad_trigger 15:23",
            "plan.status_hidden 16:21",
            "plan.bad_secret 17:15",
            "plan.bad_word 18:14",
            "plan.bad_number 19:14",
        ]
    );
    assert!(
        problems
            .iter()
            .all(|problem| !problem.fix.is_empty() && !problem.message.is_empty())
    );
    let fix = |code: &str| &problems.iter().find(|problem| problem.code == code).unwrap().fix;
    assert!(problems[4].fix.contains("`scope`"));
    assert!(fix("plan.bad_type").contains("`type: code`"));
    assert!(fix("plan.unknown_phase").contains("`1`") || fix("plan.unknown_phase").contains("id of a phase"));
    assert!(fix("plan.unknown_runner").contains("`claude`"));
}

#[test]
fn a_problem_is_shown_with_its_line_and_the_fix() {
    let problems = bad("phases:\n  - id: 1\n    scope: src/\n    gat\u{e9}: human\n");
    assert_eq!(
        render(&problems),
        "error[plan.unknown_key]: `gat\u{e9}` is no key of a phase
 --> plans/p.yml:4:5
  |
4 |     gat\u{e9}: human
  |     ^
  = fix: write `gate`, if that is meant

error: 1 problem in the plan
"
    );
}

#[test]
fn o_15_a_test_command_with_a_hidden_status_is_refused_wherever_it_is_written() {
    for command in [
        "npm test | tail -20",
        "npm test 2>&1 | grep -i fail",
        "npm test || true",
        "npm test; echo done",
    ] {
        let by_itself = phase(&format!("tests: {command}"));
        let in_a_map = phase(&format!("tests: {{run: \"{command}\", format: tap}}"));
        let of_a_project = format!(
            "projects: {{a: {{path: a, tests: '{command}'}}}}\nphases: [{{id: 1, scope: x, project: a}}]\n"
        );
        for text in [by_itself, in_a_map, of_a_project] {
            let problems = bad(&text);
            assert_eq!(problems[0].code, "plan.status_hidden", "{text}");
            let at = problems[0].excerpt.chars().nth(problems[0].column - 1).unwrap();
            assert!(
                "|;".contains(at),
                "{text}: column {} is {at:?}",
                problems[0].column
            );
        }
    }
    let (plan, _) = good(&phase("tests: npm test"));
    assert_eq!(plan.phases[0].tests.as_ref().unwrap().run, "npm test");
}

#[test]
fn o_18_scalars_are_text_whatever_yaml_makes_of_them() {
    let text = "\
phases:
  - id: no
    title: on
    agent: 1.10
    story_angle: 12:30:00
    scope: src/#internal   # trailing comment
  - id: 1e3
    title: 022
    depends_on: [no]
    scope: true
  - id: '1.0'
    needs: ['1e3', no]
    scope: 1_000
";
    let (plan, _) = good(text);
    let [no, e3, dot] = &plan.phases[..] else {
        panic!("{plan:#?}")
    };
    assert_eq!((no.id.as_str(), no.title.as_str()), ("no", "on"));
    assert_eq!(no.agent.as_deref(), Some("1.10"));
    assert_eq!(no.story_angle.as_deref(), Some("12:30:00"));
    assert_eq!(no.scope, ["src/#internal"]);
    assert_eq!((e3.id.as_str(), e3.title.as_str()), ("1e3", "022"));
    assert_eq!(e3.needs, std::slice::from_ref(&no.id));
    assert_eq!(e3.scope, ["true"]);
    assert_eq!(dot.needs, [e3.id.clone(), no.id.clone()]);
    let (quoted, _) = good("phases: [{id: 1, scope: a}, {id: 2, needs: \"1\", scope: b}]");
    assert_eq!(quoted.phases[1].needs[0].as_str(), "1");
}

#[test]
fn o_18_the_case_as_it_was_met_is_refused_word_by_word() {
    let text = "\
phases:
  - id: no
    title: on
    node: 1.10
    mode: 022
    gate: no
    window: 12:30:00
    scope: src/#internal   # trailing comment
  - id: 1e3
    depends_on: [no]
    scope: ~
";
    let problems = bad(text);
    assert_eq!(
        short(&problems),
        [
            "plan.unknown_key 4:5",
            "plan.unknown_key 5:5",
            "plan.bad_gate 6:11",
            "plan.unknown_key 7:5",
            "plan.missing_key 11:5",
        ]
    );
    assert!(problems[2].fix.contains("`human`, `0-failures`, `never`"));
    assert!(problems[4].message.contains("no `scope`"));
    for gate in [
        "no",
        "yes",
        "on",
        "off",
        "true",
        "0",
        "none",
        "Human",
        "0 failures",
    ] {
        assert_eq!(
            bad(&phase(&format!("gate: {gate}")))[0].code,
            "plan.bad_gate",
            "{gate}"
        );
    }
}

#[test]
fn o_19_a_duplicate_key_is_refused_with_both_lines() {
    let text = "\
phases:
  - id: a
    scope: src/
    scope: agents/
    gate: human
    gate: none
";
    let problems = bad(text);
    assert_eq!(
        short(&problems),
        ["plan.duplicate_key 4:5", "plan.duplicate_key 6:5"]
    );
    assert!(problems[0].message.contains("line 3") && problems[0].message.contains("line 4"));
    assert!(problems[1].message.contains("line 5") && problems[1].message.contains("line 6"));
    for (text, at) in [
        ("name: a\nname: b\nphases: [{id: 1, scope: a}]\n", "2:1"),
        ("phases: [{id: 1, scope: a}]\nphases: []\n", "2:1"),
        ("phases: [{id: 1, scope: a, id: 2}]\n", "1:28"),
        (
            "projects:\n  x: {path: a}\n  x: {path: b}\nphases: [{id: 1, scope: a}]\n",
            "3:3",
        ),
        ("phases: [{id: 1, scope: a, tests: {run: x y, run: z}}]\n", "1:46"),
        ("phases: [{id: 1, scope: a, 'id': 1}]\n", "1:28"),
    ] {
        assert_eq!(short(&bad(text)), [format!("plan.duplicate_key {at}")], "{text}");
    }
}

#[test]
fn o_19_two_phases_with_one_id_are_refused_with_both_lines() {
    let problems = bad("phases:\n  - id: a\n    scope: x\n  - id: 'a'\n    scope: y\n");
    assert_eq!(short(&problems), ["plan.duplicate_phase 4:9"]);
    assert!(problems[0].message.contains("line 2") && problems[0].message.contains("line 4"));
    assert_eq!(
        bad("phases: [{id: a, scope: x, needs: [], depends_on: []}]")[0].code,
        "plan.duplicate_key"
    );
}

#[test]
fn o_20_a_circle_is_printed_whole_and_in_order_and_the_same_every_time() {
    let text = "\
phases:
  - {id: x, scope: x, needs: [a]}
  - {id: a, scope: a, needs: [b]}
  - {id: b, scope: b, needs: [c]}
  - {id: c, scope: c, needs: [a]}
";
    let problems = bad(text);
    assert_eq!(short(&problems), ["plan.cycle 3:23"]);
    assert_eq!(
        problems[0].message,
        "these phases wait for each other: a → b → c → a; waiting for it: x"
    );
    for _ in 0..20 {
        assert_eq!(bad(text), problems);
    }
    let alone = bad("phases: [{id: a, scope: x, needs: a}]");
    assert!(
        alone[0].message.ends_with("wait for each other: a → a"),
        "{}",
        alone[0].message
    );
}

#[test]
fn o_20_a_need_that_is_no_phase_is_named_with_the_nearest() {
    let problems = bad("phases: [{id: host, scope: x}, {id: b, scope: y, needs: [ghost]}]");
    assert_eq!(problems[0].code, "plan.unknown_phase");
    assert!(problems[0].message.contains("`ghost`") && problems[0].fix.contains("`host`"));
    let problems = bad(&phase("on_done: trigger:7"));
    assert_eq!((problems[0].code, problems[0].line), ("plan.unknown_phase", 4));
}

#[test]
fn o_20_needs_may_be_one_word_twice_or_a_diamond() {
    let text = "\
phases:
  - {id: a, scope: a}
  - {id: b, scope: b, depends_on: a}
  - {id: c, scope: c, needs: [a, a]}
  - {id: d, scope: d, needs: [b, c]}
";
    let (plan, _) = good(text);
    let needs: Vec<Vec<_>> = plan
        .phases
        .iter()
        .map(|phase| phase.needs.iter().map(|id| id.as_str()).collect())
        .collect();
    assert_eq!(needs, [vec![], vec!["a"], vec!["a"], vec!["b", "c"]]);
    let order: Vec<_> = plan
        .order()
        .unwrap()
        .into_iter()
        .map(|phase| phase.id.as_str())
        .collect();
    assert_eq!(order, ["a", "b", "c", "d"]);
}

#[test]
fn utf_8_with_a_mark_and_crlf_are_the_same_plan() {
    let (plain, _) = good(MANUAL);
    let crlf = format!("\u{feff}{}", MANUAL.replace('\n', "\r\n"));
    assert_eq!(good(&crlf).0, plain);
    let (read, _) = read_bytes(crlf.as_bytes(), "p.yml", &Known::default()).unwrap();
    assert_eq!(read, plain);
}

#[test]
fn what_a_plan_must_not_hold_is_refused_with_its_place() {
    let mut wrong = Vec::new();
    for (text, expected) in [
        ("phases:\n  - id: 1\r    scope: a\n", "plan.lone_cr 2:10"),
        ("phases:\n  - id: 1\n\t  scope: a\n", "plan.tab_indent 3:1"),
        (
            "phases:\n  - id: 1\n    scope:\u{a0}a\n",
            "plan.no_break_space 3:11",
        ),
        (
            "phases:\n  - id: 1\n   \u{a0}scope: a\n",
            "plan.no_break_space 3:4",
        ),
        (
            "phases:\n  - id: 1\n    scope: a\u{0}\n",
            "plan.control_character 3:13",
        ),
        (
            "phases: [{id: 1, scope: a}]\n---\nphases: []\n",
            "plan.second_document 2:1",
        ),
        ("phases: [{id: 1, scope: &x a}]\n", "plan.anchor 1:25"),
        ("phases: [{id: 1, scope: !!str a}]\n", "plan.tag 1:25"),
        ("phases: [{id: 1, scope: a, ? [x] : y}]\n", "plan.bad_key 1:30"),
        ("phases: [{id: 1, scope: a, ~: y}]\n", "plan.bad_key 1:28"),
        ("phases: [{id: 1, scope: [{a: b}]}]\n", "plan.bad_shape 1:26"),
        ("phases: [{id: 1, scope: '!a'}]", "plan.bad_scope 1:18"),
        ("phases:\n  - id: 1\n    scope: *.rs\n", "plan.alias 3:12"),
        ("phases:\n  - id: 1\n    scope: !src/x\n", "plan.tag 3:12"),
        ("phases: {id: 1}\n", "plan.bad_shape 1:9"),
        ("phases: [1]\n", "plan.bad_shape 1:10"),
        ("[]\n", "plan.bad_shape 1:1"),
        ("phases:\n  - id: 1\n  scope: a\n", "plan.not_yaml 3:3"),
        ("phases: []\n", "plan.no_phase 1:1"),
        ("phases:\n", "plan.no_phase 1:1"),
        ("name: x\n", "plan.no_phase 1:1"),
        ("", "plan.empty 1:1"),
        ("# nothing\n", "plan.empty 1:1"),
        ("---\n...\n", "plan.empty 1:1"),
        ("phases: [{id: next, scope: a}]", "plan.bad_id 1:15"),
        ("phases: [{id: 1, scope: a, title: ''}]", "plan.empty_value 1:35"),
        ("phases: [{id: 1, scope: []}]", "plan.missing_key 1:18"),
        (
            "phases: [{id: 1, scope: a, project: ap}]\nprojects: {app: {path: a}}",
            "plan.unknown_project 1:37",
        ),
        (
            "phases: [{id: 1, scope: a}]\nprojects: {app: {path: ../a}}",
            "plan.bad_path 2:24",
        ),
        (
            "phases: [{id: 1, scope: a}]\nprojects: {app: {path: a, target: vsp}}\ntargets: {vps: ~}",
            "plan.unknown_target 2:35",
        ),
        (
            "phases: [{id: 1, scope: a}]\nrunner: cluade",
            "plan.unknown_runner 2:9",
        ),
        ("phases: [{id: 1, scope: a}]\njobs: 0", "plan.bad_number 2:7"),
        ("phases: [{id: 1, scope: a, memory: lots}]", "plan.bad_size 1:36"),
        ("phases: [{id: 1, scope: a}]\nchain: []", "plan.both_forms 2:1"),
        ("phases: [{id: 1, scope: a}]\npilote: x", "plan.unknown_key 2:1"),
        ("phases: [{step: 1, scope: a}]", "plan.missing_key 1:10"),
    ] {
        let short = short(&bad(text));
        if !short.contains(&expected.to_owned()) {
            wrong.push(format!("{text:?}: {expected}, not {short:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let anchors = short(&bad(
        "a: &x {b: 1}\nphases:\n  - <<: *x\n    id: 1\n    scope: a\n",
    ));
    for code in ["plan.anchor 1:", "plan.merge_key 3:5", "plan.alias 3:9"] {
        assert!(
            anchors.iter().any(|found| found.starts_with(code)),
            "{code}: {anchors:?}"
        );
    }
}

#[test]
fn what_is_not_utf_8_is_told_with_its_line() {
    let wide: Vec<u8> = "phases: []\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let marked: Vec<u8> = [b"\xff\xfe".as_slice(), &wide].concat();
    for (bytes, line, message) in [
        (wide.as_slice(), 1, "UTF-16"),
        (&marked, 1, "UTF-16"),
        (b"phases:\n  - id: \xe9\n", 2, "not UTF-8"),
    ] {
        let problems = read_bytes(bytes, "p.yml", &Known::default()).unwrap_err();
        assert_eq!((problems[0].code, problems[0].line), ("plan.not_utf8", line));
        assert!(problems[0].message.contains(message));
    }
    let large = vec![b'#'; (8 << 20) + 1];
    assert_eq!(
        read_bytes(&large, "p.yml", &Known::default()).unwrap_err()[0].code,
        "plan.too_large"
    );
}

#[test]
fn a_run_is_a_runner_a_command_or_an_error() {
    let runners = ["mine".to_owned()];
    let known = Known {
        runners: &runners,
        program: Some(&|word| word == "make"),
        ..Known::default()
    };
    for (run, launch) in [
        ("claude", Some(Launch::Runner("claude".to_owned()))),
        ("mine", Some(Launch::Runner("mine".to_owned()))),
        ("make", Some(Launch::Shell("make".to_owned()))),
        ("./do.sh", Some(Launch::Shell("./do.sh".to_owned()))),
        (
            "npm run build | tee log",
            Some(Launch::Shell("npm run build | tee log".to_owned())),
        ),
        ("cluade", None),
    ] {
        let read = read(&phase(&format!("run: {run}")), "p.yml", &known);
        assert_eq!(
            read.ok().and_then(|(plan, _)| plan.phases[0].run.clone()),
            launch,
            "{run}"
        );
    }
}

#[test]
fn secrets_and_projects_are_checked_against_what_the_caller_knows() {
    let projects = BTreeMap::from([("app".to_owned(), "github/app".to_owned())]);
    let known = Known {
        projects: Some(&projects),
        secret: Some(&|name| name == "KEY"),
        ..Known::default()
    };
    let text = |secret: &str| {
        phase(&format!(
            "project: app\nsecrets: {secret}\nsecret_files: {{a.pem: {secret}}}"
        ))
    };
    let (plan, _) = read(&text("KEY"), "p.yml", &known).unwrap();
    assert_eq!(plan.phases[0].scope, ["github/app/src/"]);
    let problems = read(&text("KYE"), "p.yml", &known).unwrap_err();
    assert_eq!(
        short(&problems),
        ["plan.unknown_secret 5:14", "plan.unknown_secret 6:27"]
    );
    assert!(
        read(
            &text("KYE"),
            "p.yml",
            &Known {
                secret: None,
                ..known
            }
        )
        .is_ok()
    );
}

#[test]
fn a_chain_of_the_original_is_read_with_a_notice() {
    let text = "\
name: shop-cart
branch: theme/shop-cart
pilote: sess-x
swarm_ready: true
chain:
  - step: 1
    type: code
    scope: shop/cart/
    story_angle: \"Cart keeps its lines\"
    agents: [a, b]
    input_contract: {x: [y]}
  - step: 2
    type: deploy
    scope: infra/
    gate: never
    status: open
    note: x
";
    let (plan, notices) = good(text);
    assert!(plan.chain);
    assert_eq!(plan.phases[1].needs[0].as_str(), "1");
    assert!(plan.phases[1].gate_after && !plan.phases[0].gate_after);
    let lines: Vec<_> = notices.iter().map(|notice| notice.line).collect();
    assert_eq!(lines, [3, 4, 10, 11, 16, 17]);
    assert!(notices.iter().all(|notice| notice.code == "plan.unused_key"));
    assert!(!good(&phase("gate: never")).0.phases[0].gate_after);
}

#[test]
fn the_canonical_form_hears_meaning_and_not_spelling() {
    let form = |text: &str| good(text).0.phases[0].canonical();
    let plain = form("phases:\n  - id: 1\n    scope: src/\n    needs: []\n");
    for same in [
        "phases: [{scope: [\"./src/\"], id: '1', retries: 0, gate: never}] # x\n",
        "name: other\nphases:\n# why\n- scope:\n    - src/\n  type: code\n  id: 1\n",
    ] {
        assert_eq!(form(same), plain, "{same}");
    }
    assert_ne!(form("phases: [{id: 1, scope: agents/}]"), plain);
}

#[test]
fn phases_that_could_run_at_once_and_conflict_are_told() {
    let overlap = |a: &[String], b: &[String]| {
        a.iter()
            .any(|a| b.iter().any(|b| a.starts_with(b) || b.starts_with(a)))
    };
    let known = Known {
        conflict: Some(&overlap),
        ..Known::default()
    };
    let text = "\
phases:
  - {id: a, scope: src/, needs: []}
  - {id: b, scope: src/api/, needs: []}
  - {id: c, scope: docs/, needs: []}
  - {id: d, scope: src/api/x, needs: [b]}
  - {id: s, scope: src/, type: search, needs: []}
";
    let (_, notices) = read(text, "p.yml", &known).unwrap();
    let messages: Vec<_> = notices
        .iter()
        .map(|notice| notice.message.split(" could").next().unwrap())
        .collect();
    assert_eq!(messages, ["phases `a` and `b`", "phases `a` and `d`"]);
}

#[test]
fn bare_triggers_keep_their_columns_and_comments() {
    let text = phase("on_done: gate:human → \"it's done: go?\" # asked\non_fail: signal → NOPE \"a: b\"");
    let problems = bad(&text);
    assert_eq!(short(&problems), ["plan.bad_trigger 5:23"]);
    let text =
        phase("story_angle: |\n  on_done: x \"a: b\"\non_done: gate:human → \"it's done: go?\" # asked");
    let (plan, _) = good(&text);
    assert_eq!(plan.phases[0].story_angle.as_deref(), Some("on_done: x \"a: b\""));
    assert_eq!(
        plan.phases[0].on_done,
        [Trigger::HumanGate {
            text: "it's done: go?".to_owned()
        }]
    );
}

fn large(count: usize, line: impl Fn(usize) -> String) -> String {
    let phases = (0..count).map(|at| format!("  - {{id: p{at}, {}}}\n", line(at)));
    std::iter::once("phases:\n".to_owned()).chain(phases).collect()
}

/// Bounds that a slow machine in a debug build keeps, and anything quadratic does not.
#[test]
fn large_plans_are_checked_in_time() {
    let timed = |text: &str, most: u64| {
        let start = Instant::now();
        let count = read(text, "p.yml", &Known::default()).map_or_else(|problems| problems.len(), |_| 0);
        assert!(
            start.elapsed() < Duration::from_millis(most),
            "{:?}",
            start.elapsed()
        );
        count
    };
    assert_eq!(
        timed(
            &large(1_000, |at| format!("scope: src/{at}, gate: human, timeout: 30m")),
            500
        ),
        0
    );
    assert_eq!(timed(&large(20_000, |at| format!("scope: src/{at}")), 10_000), 0);
    assert_eq!(
        timed(&large(20_000, |_| "scope: a, needs: [ghost]".to_owned()), 20_000),
        20_000
    );
    assert_eq!(
        timed(
            &large(20_000, |at| format!("scope: a, needs: [p{}]", (at + 1) % 20_000)),
            10_000
        ),
        1
    );
    assert_eq!(timed(&large(20_001, |_| "scope: a".to_owned()), 10_000), 1);
    assert!(timed(&"[".repeat(1 << 20), 5_000) > 0);
    assert!(timed(&format!("a: {}", "{".repeat(1 << 20)), 5_000) > 0);
}

#[test]
fn conflicts_of_a_large_plan_are_found_in_time() {
    let equal = |a: &[String], b: &[String]| a == b;
    let known = Known {
        conflict: Some(&equal),
        ..Known::default()
    };
    let told = |text: &str| {
        let start = Instant::now();
        let (_, notices) =
            read(text, "p.yml", &known).unwrap_or_else(|problems| panic!("{}", render(&problems)));
        assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
        notices.len()
    };
    assert_eq!(
        told(&large(1_000, |at| format!("scope: src/{}, needs: []", at / 2))),
        500
    );
    assert_eq!(told(&large(5_000, |_| "scope: src/".to_owned())), 0);
}

proptest! {
    #[test]
    fn no_text_panics_the_reader(text in "(phases:|\n|  |- |id: |scope: |[a-c]|\\[|\\]|\\{|\\}|: |,|'|\"|&a |\\*a|<<: |---|\\||>|#|\t|\r|~|!x|\\?|on_done: |\u{a0}){0,40}") {
        if let Err(problems) = read(&text, "p.yml", &Known::default()) {
            prop_assert!(!problems.is_empty());
            prop_assert!(!render(&problems).is_empty());
        }
    }

    #[test]
    fn no_bytes_panic_the_reader(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(read_bytes(&bytes, "p.yml", &Known::default()).is_err_and(|problems| !problems.is_empty()));
    }

    #[test]
    fn a_damaged_plan_never_panics(at in 0..MANUAL.len(), with in any::<char>()) {
        let at = (at..).find(|at| MANUAL.is_char_boundary(*at)).unwrap();
        let text = format!("{}{with}{}", &MANUAL[..at], &MANUAL[at..]);
        if let Err(problems) = read(&text, "p.yml", &Known::default()) {
            prop_assert!(!problems.is_empty());
        }
    }
}
