//! The order of phases, what they find, and where their work ends up.

use super::house::House;

/// A phase of type deploy that writes a file of its name, and says when it began and ended.
fn writer(id: &str, needs: &str, wait: &str) -> String {
    format!(
        "  - {{id: {id}, type: deploy, scope: {id}/, needs: [{needs}], \
         run: 'echo +{id} >> TOP/order; mkdir -p {id}; {wait} echo {id} > {id}/f; echo -{id} >> TOP/order'}}\n"
    )
}

#[test]
fn phases_run_one_after_the_other_and_their_work_is_merged_into_main() {
    let house = House::new();
    let second = "  - {id: 2, type: deploy, scope: 2/, run: 'cat 1/f && mkdir -p 2 && echo two > 2/f'}\n";
    house.plan(&(writer("1", "", "") + second));
    let ran = house.brain(&["run", "p.yml"]);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    assert!(
        ran.out
            .contains("p finished: 2 delivered, 0 partial, 0 skipped, 0 failed"),
        "{}",
        ran.out
    );
    assert!(ran.out.contains("Plan finished — wrap up?"), "{}", ran.out);
    // The second saw what the first had made; main's checkout went along.
    assert_eq!(house.read("2/f"), "two\n");
    assert_eq!(house.git(&["status", "--porcelain", "--untracked-files=no"]), "");
    assert_eq!(house.git(&["rev-parse", "--abbrev-ref", "HEAD"]), "main");
    assert_eq!(house.git(&["merge-base", "--is-ancestor", "theme/p", "main"]), "");
    assert_eq!(house.standing(), ["1 accepted ok", "2 accepted ok"]);
    assert_eq!(house.worktrees(), 0, "what has landed needs no worktree");
}

#[test]
fn phases_without_a_path_between_them_run_side_by_side_up_to_the_jobs() {
    let house = House::new();
    // Each of a pair waits for the other: alone it would never end.
    let meet = |id: &str, other: &str| {
        writer(
            id,
            "",
            &format!("until grep -q +{other} TOP/order; do sleep 0.05; done;"),
        )
    };
    house.plan(&(meet("a", "b") + &meet("b", "a") + &writer("c", "a, b", "")));
    let ran = house.brain(&["run", "p.yml", "--jobs", "2"]);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    let order = house.notes("order");
    assert_eq!(order.last().unwrap(), "-c");
    assert_eq!(order.iter().position(|it| it == "+c"), Some(4), "{order:?}");

    let house = House::new();
    house.plan(&(writer("a", "", "sleep 0.3;") + &writer("b", "", "sleep 0.3;") + &writer("c", "", "")));
    assert_eq!(house.brain(&["run", "p.yml", "--jobs", "1"]).code, 0);
    assert_eq!(house.notes("order"), ["+a", "-a", "+b", "-b", "+c", "-c"]);
}

#[test]
fn a_diamond_joins_and_scopes_that_meet_run_one_after_the_other() {
    let house = House::new();
    let shared = |id: &str| {
        format!(
            "  - {{id: {id}, type: deploy, scope: shared/, needs: [a], \
             run: 'echo +{id} >> TOP/order; mkdir -p shared; sleep 0.2; echo {id} >> shared/f; echo -{id} >> TOP/order'}}\n"
        )
    };
    house.plan(
        &(writer("a", "", "") + &shared("b") + &shared("c") + &writer("d", "b, c", "test -s shared/f;")),
    );
    let ran = house.brain(&["run", "p.yml", "--jobs", "4"]);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    assert_eq!(
        house.notes("order"),
        ["+a", "-a", "+b", "-b", "+c", "-c", "+d", "-d"]
    );
    assert_eq!(house.read("shared/f"), "b\nc\n");
}

#[test]
fn o_31_a_worktree_starts_at_the_themes_head_wherever_the_run_is_started() {
    let house = House::new();
    house.plan(&(writer("1", "", "") + "  - {id: 2, type: deploy, scope: 2/, run: 'git log --oneline > TOP/log; mkdir 2; echo > 2/f'}\n"));
    // The one who starts it sits in a linked worktree on another branch.
    house.git(&["worktree", "add", "-q", "-b", "side", "../side"]);
    let ran = house
        .program(&[
            "--root",
            house.root.to_str().unwrap(),
            "run",
            house.root.join("p.yml").to_str().unwrap(),
        ])
        .current_dir(house.top.join("side"))
        .output()
        .unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let claim = house.claim_of("2");
    let shown = house.json(&["claim", "show", &claim]);
    let base = shown["claim"]["base"]["."]["commit"].as_str().unwrap().to_owned();
    assert_eq!(house.git(&["merge-base", "--is-ancestor", &base, "theme/p"]), "");
    assert_eq!(
        house.git(&["show", &format!("{base}:1/f")]),
        "1",
        "phase 1 is below phase 2"
    );
    assert!(house.notes("log").len() >= 2);
}

#[test]
fn the_environment_of_a_satellite_is_the_fixed_list() {
    let house = House::new();
    house.plan(
        "  - {id: 1, type: deploy, scope: 1/, run: 'env > TOP/env; cat > TOP/brief; mkdir 1; echo > 1/f'}\n",
    );
    let mut run = house.program(&["run", "p.yml"]);
    let ran = run
        .env("API_KEY", "hunter2hunter2")
        .env("LANG", "C.UTF-8")
        .output()
        .unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let env = house.notes("env");
    let names: Vec<&str> = env
        .iter()
        .filter_map(|line| line.split_once('='))
        .map(|(name, _)| name)
        .collect();
    assert!(!env.iter().any(|line| line.contains("hunter2")), "{env:?}");
    let ours = [
        "BRAIN_SESSION",
        "BRAIN_TOKEN",
        "BRAIN_ROOT",
        "BRAIN_ATTEMPT",
        "BRAIN_ATTEMPT_DIR",
    ];
    for name in ours {
        assert!(names.contains(&name), "{name} in {names:?}");
    }
    let shells = ["PWD", "OLDPWD", "SHLVL", "_"];
    let base = [
        "PATH",
        "HOME",
        "LANG",
        "LC_ALL",
        "TZ",
        "TERM",
        "TMPDIR",
        "USER",
        "LOGNAME",
        "SHELL",
        "LANGUAGE",
        "XDG_STATE_HOME",
    ];
    let known = |name: &&&str| base.contains(name) || ours.contains(name) || shells.contains(name);
    let strange: Vec<&&str> = names.iter().filter(|name| !known(name)).collect();
    assert!(strange.is_empty(), "{strange:?}");
    let brief = house.notes("brief").join("\n");
    assert!(
        brief.contains("Phase 1 — 1") && brief.contains("Scope    : 1"),
        "{brief}"
    );
    assert!(brief.contains(&house.claim_of("1")), "{brief}");
}

#[test]
fn only_the_swarm_mode_is_driven_and_the_refusal_says_how() {
    let house = House::new();
    house.write(
        "m.yml",
        "name: m\nphases:\n  - {id: 1, type: deploy, scope: a/, run: 'true 1'}\n",
    );
    for args in [&["run", "m.yml"][..], &["run", "m.yml", "--mode", "assisted"]] {
        let said = house.brain(args);
        assert_eq!(said.code, 64, "{}", said.err);
        assert!(said.err.contains("--mode swarm"), "{}", said.err);
    }
    assert_eq!(house.brain(&["run", "none.yml", "--mode", "swarm"]).code, 65);
}

#[test]
fn a_worktree_is_made_fit_to_work_in_and_no_secret_gets_in() {
    let house = House::new();
    house.write("node_modules/m/index.js", "1\n");
    house.write("cache/seed", "seed\n");
    house.write(".env", "TOKEN=abcdefghijk\n");
    house.write(".git/info/exclude", "node_modules\ncache\n.env\nready\n");
    let setup = "worktree: {setup: 'echo ready > ready', link: [node_modules], copy: [cache]}";
    house.plan(&format!(
        "  - id: 1\n    type: deploy\n    scope: 1/\n    {setup}\n    \
         run: 'test -L node_modules && test -f cache/seed && test ! -L cache && test -f ready && test ! -e .env && mkdir 1 && echo > 1/f'\n"
    ));
    let ran = house.brain(&["run", "p.yml"]);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    assert!(ran.err.contains("worktree ready in"), "{}", ran.err);
    assert!(
        house.has("node_modules/m/index.js"),
        "a link is taken away, not what it leads to"
    );

    house.plan(
        "  - {id: 9, type: deploy, scope: 9/, worktree: {link: [.env]}, run: 'mkdir 9; cp .env 9/f'}\n",
    );
    let ran = house.brain(&["run", "p.yml", "--no-wait"]);
    assert_eq!(ran.code, 11, "{}{}", ran.out, ran.err);
    assert!(ran.err.contains("zone secret"), "{}", ran.err);
}

#[test]
fn satellites_that_end_at_the_same_moment_all_land() {
    let house = House::new();
    let meet = |id: u32| {
        format!(
            "  - {{id: {id}, type: deploy, scope: out/{id}/, needs: [], \
             run: 'mkdir -p out/{id}; echo > out/{id}/f; echo >> TOP/ready; until test $(wc -l < TOP/ready) -ge 16; do sleep 0.05; done'}}\n"
        )
    };
    let phases: String = (0..16).map(meet).collect();
    house.plan(&phases);
    let ran = house.brain(&["run", "p.yml", "--jobs", "16", "--no-wait"]);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    assert_eq!(
        house
            .git(&["ls-tree", "-r", "--name-only", "main", "out/"])
            .lines()
            .count(),
        16
    );
    assert_eq!(house.worktrees(), 0);
}

#[test]
fn what_an_agent_configures_in_the_repository_is_never_run_by_brain() {
    let house = House::new();
    // Every git that looks at files as their user would run it.
    let trap = "git config core.fsmonitor \"touch TOP/ran; false\"; mkdir -p a; echo a > a/f";
    house.plan(&format!(
        "  - {{id: a, type: deploy, scope: a/, run: '{trap}'}}\n"
    ));
    let ran = house.brain(&["run", "p.yml", "--no-merge"]);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    assert_eq!(house.standing(), ["a accepted ok"]);
    assert_eq!(house.worktrees(), 0);
    assert_eq!(house.notes("ran"), Vec::<String>::new());
}
