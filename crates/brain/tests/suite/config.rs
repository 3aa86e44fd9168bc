//! What a configuration says, and what it refuses to be.

use brain::config::{Brief, Config, ConfigError, Evidence, RootFacts, Tier, template};
use proptest::prelude::*;
use protocol::facts::path::{Fold, LogicalPath};
use protocol::facts::zone::Zone;

fn read(text: &str) -> Result<Config, ConfigError> {
    Config::read(vec![("brain.yml", text.to_owned())])
}

fn zone(config: &Config, path: &str) -> Zone {
    let policy = config.policy(&RootFacts::default()).unwrap();
    policy
        .zones
        .zone_of(&LogicalPath::parse(path, Fold::Exact).unwrap())
}

#[test]
fn what_init_writes_is_the_defaults() {
    let mut config = read(&template("shop-7f3a")).unwrap();
    assert_eq!(config.brain.take().as_deref(), Some("shop-7f3a"));
    let defaults = Config::read(Vec::new()).unwrap();
    let digest = |config: &Config| config.policy(&RootFacts::default()).unwrap().digest;
    assert_eq!(digest(&config), digest(&defaults));
    assert_eq!(
        (config.fails_max, config.kerneluser, config.push),
        (3, true, false)
    );
    assert_eq!(config.stale_grace.to_string(), "1d");
    assert!(config.notices.is_empty());
}

#[test]
fn every_key_is_read() {
    let config = read(
        "brain: b\nkerneluser: false\nzones: {personal: [notes/], kernel: LAW.md}\n\
         circuit_breaker: {max_consecutive_fails: 5}\nstale_grace: 2d\nmain_branch: trunk\npush: true\n\
         tests: {run: cargo test, format: libtest, exit_is_enough: [make check]}\nevidence: clean\n\
         gates: {signed: true, signers: keys, timeout: 4h, elicitation: true}\njournal: {to: off}\n\
         hooks: {unclaimed: deny}\nprojects: {api: {path: github/api, tests: npm test, target: vps}}\n\
         targets: {vps: {ssh: deploy@host}}\nsources: [a]\nworktree: {setup: npm ci, link: [node_modules]}\n\
         runner: mine\nrunners: {mine: {command: ./agent, brief: argument}}\nrisk: {paths: [agents/]}\n\
         context: {provider: x}\nsecrets: {file: MYSECRETS}\nsandbox: {net: false}\nanything: else\n",
    )
    .unwrap();
    assert!(!config.kerneluser && config.push);
    assert_eq!(
        (config.fails_max, config.stale_grace.to_string()),
        (5, "2d".into())
    );
    assert_eq!(config.tests.as_ref().unwrap().run, "cargo test");
    assert_eq!(config.exit_is_enough, ["make check"]);
    assert_eq!(config.evidence, Evidence::Clean);
    assert!(config.gates.signed && config.gates.elicitation);
    assert_eq!(config.projects["api"].tests.as_ref().unwrap().run, "npm test");
    assert_eq!(config.targets["vps"].ssh.as_deref(), Some("deploy@host"));
    assert_eq!(config.worktree.link, ["node_modules"]);
    assert_eq!(config.runners["mine"].brief, Brief::Argument);
    assert_eq!(config.risk, ["agents/"]);
    assert_eq!(zone(&config, "notes/x.md"), Zone::Personal);
    assert_eq!(zone(&config, "LAW.md"), Zone::Kernel);
    assert_eq!(zone(&config, "KERNEL.md"), Zone::Project);
    let hooks = config.hooks.unwrap();
    assert_eq!(hooks.get("unclaimed").unwrap().text(), Some("deny"));
}

#[test]
fn a_mistake_is_shown_where_it_stands_with_its_fix() {
    // text, line, column, part of the message, part of the fix
    let table = [
        (
            "circuit_breaker:\n  max_consecutive_fails: \"3\"",
            2,
            26,
            "quoted",
            "max_consecutive_fails: 3",
        ),
        (
            "circuit_breaker:\n  max_consecutive_fail: 3",
            2,
            3,
            "no key",
            "`max_consecutive_fails`",
        ),
        (
            "circuit_breaker: {max_consecutive_fails: 0}",
            1,
            42,
            "cannot be",
            "from 1",
        ),
        (
            "circuit_breaker: {max_consecutive_fails: 3.0}",
            1,
            42,
            "cannot be",
            "whole number",
        ),
        (
            "circuit_breaker: {max_consecutive_fails: +3}",
            1,
            42,
            "cannot be",
            "whole number",
        ),
        ("circuit_breaker: 3", 1, 18, "is a map", "indented"),
        ("kerneluser: yes", 1, 13, "true or false", "kerneluser: true"),
        ("kerneluser: \"true\"", 1, 13, "true or false", "without quotes"),
        ("stale_grace: 24", 1, 14, "duration", "30m"),
        ("stale_grace: soon", 1, 14, "duration", "30m"),
        ("zones: {kernal: [x]}", 1, 9, "no key `kernal`", "`kernel`"),
        ("gates: {signed: true}", 1, 17, "whose", "signers"),
        ("gates: {signd: true}", 1, 9, "no key", "`signed`"),
        ("evidence: cleen", 1, 11, "cannot be", "`clean`"),
        ("tests: npm test | tail", 1, 8, "another status", "alone"),
        ("tests: {run: npm test || true}", 1, 14, "another status", "alone"),
        ("projects: {api: {tests: x}}", 1, 17, "no `path`", "path: FOLDER"),
        ("runners: {x: {comand: y}}", 1, 15, "no key", "`command`"),
        ("risk: {paths: [../x]}", 1, 15, "paths", "relative"),
        ("brain: a b", 1, 8, "no brain id", "brain init"),
        ("push: true\npush: false", 2, 1, "line 1 already", "keep the one"),
        ("a: &x 1\nb: *x", 1, 4, "anchor", "write the value out"),
        ("- a\n- b", 1, 1, "lines", "key: value"),
        ("a: [1", 1, 0, "no YAML", "mend"),
        ("a: 1\n---\nb: 2", 2, 1, "second document", "one"),
    ];
    for (text, line, column, message, fix) in table {
        let error = read(text).expect_err(text);
        let problem = &error.problems[0];
        let all = format!("{text:?} gave {problem:?}");
        assert!(problem.message.contains(message), "{all}");
        assert!(
            problem.fix.contains(fix) || problem.message.contains(fix),
            "{all}"
        );
        if column > 0 {
            assert_eq!((problem.line, problem.column), (line, column), "{all}");
        }
        assert_eq!(problem.file, "brain.yml");
    }
}

#[test]
fn every_mistake_is_told_in_one_go() {
    let error = read("kerneluser: 1\npush: 2\nstale_grace: x\n").unwrap_err();
    assert_eq!(
        error.problems.iter().map(|p| p.line).collect::<Vec<_>>(),
        [1, 2, 3]
    );
    let shown = error.to_string();
    assert!(shown.contains("brain.yml:2:7: "), "{shown}");
    assert!(shown.contains(" 2 | push: 2\n           ^\n   fix: "), "{shown}");
}

#[test]
fn a_bad_zone_pattern_is_found_in_its_line() {
    let config = read("zones:\n  personal:\n    - notes/\n    - ../out\n").unwrap();
    let error = config.policy(&RootFacts::default()).unwrap_err();
    assert_eq!(
        (error.problems[0].line, error.problems[0].column),
        (4, 7),
        "{error}"
    );
    let config = read("zones:\n  kernel: ['!x']\n").unwrap();
    let error = config.policy(&RootFacts::default()).unwrap_err();
    assert_eq!(
        (error.problems[0].line, error.problems[0].column),
        (2, 12),
        "{error}"
    );
}

#[test]
fn who_signs_is_kernel_whatever_the_zones_say() {
    let config = read("gates: {signers: team/keys}\nzones: {kernel: [], project: [team/]}").unwrap();
    assert_eq!(zone(&config, "team/keys"), Zone::Kernel);
    assert_eq!(zone(&config, "team/other"), Zone::Project);
    // One outside the root is out of reach anyway.
    assert_eq!(
        zone(&read("gates: {signers: /etc/keys}").unwrap(), "etc/keys"),
        Zone::Project
    );
}

#[test]
fn a_password_is_never_shown() {
    let error = read("store: [postgres://me:hunter2@db/x]").unwrap_err();
    assert!(!format!("{error} {error:?}").contains("hunter2"));
}

#[test]
fn a_key_of_someone_elses_is_ignored_and_a_slip_is_noticed() {
    let config = read("x-team: {kerneluser: what}\nkernel_user: false\n").unwrap();
    assert!(config.kerneluser);
    assert_eq!(config.notices.len(), 1, "{:?}", config.notices);
}

#[test]
fn the_local_file_overrides_key_by_key() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
    write(
        "brain.yml",
        "\u{feff}brain: b\r\nzones: {personal: [a/], kernel: [k/]}\r\npush: true\r\n",
    );
    write("brain.local.yml", "zones:\n  personal: [b/]\npush:\n");
    write("brain-compose.yml", "kerneluser: false\n");
    let config = Config::load(dir.path()).unwrap();
    assert_eq!(config.zones.personal.as_deref(), Some(&["b/".to_owned()][..]));
    assert_eq!(config.zones.kernel.as_deref(), Some(&["k/".to_owned()][..]));
    assert!(config.push && config.kerneluser);
    write("brain.local.yml", "push: maybe\n");
    let error = Config::load(dir.path()).unwrap_err();
    assert_eq!(error.problems[0].file, "brain.local.yml");
    assert_eq!(error.problems[0].excerpt, "push: maybe");
}

#[test]
fn a_brain_of_the_original_is_read_as_it_is() {
    let compose = |main: &str, local: &str| {
        Config::read(vec![
            ("brain-compose.yml", main.to_owned()),
            ("brain-compose.local.yml", local.to_owned()),
        ])
    };
    let modes =
        "modes:\n  rendering:\n    circuit_breaker:\n      max_consecutive_fails: 4\n      on_trigger: x\n";
    let config = compose(
        &format!("kerneluser: \"true\"\nfeature_set: {{tier: pro}}\n{modes}"),
        "instances:\n  a: {active: false, feature_set: free}\n  b: {active: true, feature_set: {tier: full}}\n",
    )
    .unwrap();
    assert_eq!(
        (config.kerneluser, config.fails_max, config.tier),
        (true, 4, Tier::Full)
    );
    let config = compose("kerneluser: 'true'\nfeature_set: pro\n", "x: &a {y: 1}\nz: *a\n").unwrap();
    assert_eq!(
        (config.kerneluser, config.fails_max, config.tier),
        (false, 3, Tier::Pro)
    );
    // No YAML, and the original read it all the same.
    let config = compose(
        "kerneluser: false # law\nname: a: b: [\n  max_consecutive_fails: 7\n",
        "",
    )
    .unwrap();
    assert_eq!((config.kerneluser, config.fails_max), (false, 7));
    assert_eq!(config.notices.len(), 1);
    // A quoted number never trips.
    let error = compose(&modes.replace('4', "\"4\""), "").unwrap_err();
    assert_eq!(
        (error.problems[0].line, error.problems[0].file.as_str()),
        (4, "brain-compose.yml")
    );
}

#[test]
fn the_digest_tells_policies_apart() {
    let digest = |text: &str| {
        let config = read(text).unwrap();
        config.policy(&RootFacts::default()).unwrap().digest
    };
    let plain = digest("brain: a");
    assert_eq!(plain, digest("brain: b\nmain_branch: x"));
    assert_eq!(plain, digest("kerneluser: true"));
    for other in [
        "kerneluser: false",
        "stale_grace: 1h",
        "circuit_breaker: {max_consecutive_fails: 4}",
        "zones: {kernel: []}",
    ] {
        assert_ne!(plain, digest(other), "{other}");
    }
}

proptest! {
    #[test]
    fn no_text_panics(text in "\\PC{0,200}") {
        let _ = read(&text);
    }

    #[test]
    fn no_yaml_panics(text in "(brain|zones|tests|gates|push|risk|runners|[a-z]{1,3})?[:\\[\\]{},\\-\\n \"'#&*|>!a-z0-9\\t\\r]{0,80}") {
        if let Ok(config) = Config::read(vec![("brain.yml", text.clone()), ("brain.local.yml", text.clone())]) {
            let _ = config.policy(&RootFacts::default());
        }
        let _ = Config::read(vec![("brain-compose.yml", text)]);
    }
}

#[test]
#[ignore = "a measurement: cargo test --profile ci -p brain little_time -- --ignored --nocapture"]
fn reading_what_init_writes_takes_little_time() {
    let text = template("shop-7f3a");
    let best = |work: &dyn Fn()| {
        let once = || {
            let start = std::time::Instant::now();
            (0..100).for_each(|_| work());
            start.elapsed() / 100
        };
        (0..50).map(|_| once()).min().unwrap_or_default()
    };
    println!("read: {:?}", best(&|| drop(read(&text).unwrap())));
    let config = read(&text).unwrap();
    println!(
        "policy: {:?}",
        best(&|| drop(config.policy(&RootFacts::default()).unwrap()))
    );
}
