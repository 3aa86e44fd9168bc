//! The end of a run: what is merged, what is in the way, what another run finds.

use super::house::House;

const ONE: &str = "  - {id: 1, type: deploy, scope: a/, run: 'mkdir -p a; echo run > a/f'}\n";

#[test]
fn a_theme_is_kept_where_nothing_is_to_be_merged() {
    let house = House::new();
    house.plan(ONE);
    let before = house.git(&["rev-parse", "main"]);
    let ran = house.brain(&["run", "p.yml", "--no-merge"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.contains("theme/p is kept, not merged"), "{}", ran.out);
    assert_eq!(house.git(&["rev-parse", "main"]), before);
    assert_eq!(house.git(&["show", "theme/p:a/f"]), "run");
}

#[test]
fn uncommitted_work_in_the_way_is_named_nothing_moves_and_the_run_goes_on_after() {
    let house = House::new();
    house.plan(ONE);
    house.write("a/f", "mine\n");
    let before = house.git(&["rev-parse", "main"]);
    let ran = house.brain(&["run", "p.yml"]);
    assert_eq!(ran.code, 20, "{}{}", ran.out, ran.err);
    assert!(
        ran.err.contains("a/f") && ran.err.contains("run.would_overwrite"),
        "{}",
        ran.err
    );
    assert_eq!(house.git(&["rev-parse", "main"]), before);
    assert_eq!(house.read("a/f"), "mine\n");
    let again = house.brain(&["run", "--resume"]);
    assert_eq!(again.code, 20, "still in the way: {}", again.err);
    std::fs::remove_file(house.root.join("a/f")).unwrap();
    let ran = house.brain(&["run", "--resume"]);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    assert_eq!(house.read("a/f"), "run\n");
    assert_eq!(
        house.brain(&["run", "--resume"]).code,
        0,
        "a run that is over is no error"
    );
}

#[test]
fn a_merge_that_conflicts_moves_nothing_and_is_tried_again() {
    let house = House::new();
    house.write("a/f", "before\n");
    house.commit_all("", "a");
    // While the phase works someone commits on main.
    house.plan("  - {id: 1, type: deploy, scope: a/, run: 'echo run > a/f; echo > TOP/here; until test -e TOP/go; do sleep 0.05; done'}\n");
    let run = house.start(&["run", "p.yml"]);
    house.noted("here", 1);
    house.write("a/f", "main\n");
    house.commit_all("", "main goes on");
    let main = house.git(&["rev-parse", "main"]);
    std::fs::write(house.note("go"), "").unwrap();
    let ran = run.end();
    assert_eq!(ran.code, 20, "{}{}", ran.out, ran.err);
    assert!(
        ran.err.contains("run.merge_conflict") && ran.err.contains("a/f"),
        "{}",
        ran.err
    );
    assert_eq!(house.git(&["rev-parse", "main"]), main);
    assert_eq!(house.read("a/f"), "main\n");
    assert_eq!(house.brain(&["run", "--resume"]).code, 20);
    let refused = house.brain(&["run", "p.yml"]);
    assert_eq!(refused.code, 12, "{}", refused.err);
    assert!(
        refused.err.contains("run.unfinished") && refused.err.contains("run --resume"),
        "{}",
        refused.err
    );
    // A human settles it in a worktree of the theme.
    house.git(&["worktree", "add", "-q", "../theme", "theme/p"]);
    let theme = house.top.join("theme");
    house.git_in(&theme, &["merge", "-q", "-s", "ours", "-m", "settled", "main"]);
    let ran = house.brain(&["run", "--resume"]);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    assert_eq!(house.read("a/f"), "run\n");
}

#[test]
fn a_branch_that_no_run_made_is_refused() {
    let house = House::new();
    house.plan(ONE);
    house.git(&["branch", "theme/p"]);
    let ran = house.brain(&["run", "p.yml"]);
    assert_eq!(ran.code, 12, "{}", ran.err);
    assert!(ran.err.contains("run.branch_exists"), "{}", ran.err);
    assert_eq!(
        house.json(&["claim", "list"])["claims"].as_array().unwrap().len(),
        0
    );
    house.git(&["branch", "-d", "theme/p"]);
    assert_eq!(house.brain(&["run", "p.yml"]).code, 0);
}

#[test]
fn a_new_run_after_a_cancel_keeps_what_was_accepted_with_the_same_meaning() {
    let house = House::new();
    let phase = |id: &str, text: &str| {
        format!(
            "  - {{id: {id}, type: deploy, scope: {id}/, needs: [], run: 'echo {id} >> TOP/ran; mkdir -p {id}; echo {text} > {id}/f'}}\n"
        )
    };
    let human =
        "  - {id: h, type: deploy, scope: h/, needs: [a, b], gate: human, run: 'mkdir h; echo > h/f'}\n";
    house.plan(&(phase("a", "1") + &phase("b", "1") + human));
    let ran = house.brain(&["run", "p.yml", "--no-wait"]);
    assert_eq!(ran.code, 11, "{}{}", ran.out, ran.err);
    assert_eq!(house.brain(&["run", "cancel"]).code, 0);
    assert_eq!(house.brain(&["run", "--resume", "p"]).code, 20);
    // Comments and spacing mean nothing; another command does.
    house.plan(&format!("# a comment\n{}{}", phase("a", "1"), phase("b", "2")));
    let ran = house.brain(&["run", "p.yml"]);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    let mut order = house.notes("ran");
    order.sort();
    assert_eq!(order, ["a", "b", "b"]);
    assert_eq!(house.read("b/f"), "2\n");
    assert_eq!(house.read("a/f"), "1\n");
}

#[test]
fn two_repositories_below_one_root_move_together_or_not_at_all() {
    let house = House::with("projects:\n  web: {path: web}\n  api: {path: api}");
    for at in ["web", "api"] {
        house.repository(at);
        house.write(&format!("{at}/x"), "x\n");
        house.commit_all(at, "first");
    }
    house.write(".git/info/exclude", "web\napi\n");
    let phase = |project: &str| {
        format!(
            "  - {{id: {project}, project: {project}, type: deploy, scope: src/, needs: [], run: 'mkdir -p src; echo {project} > src/f'}}\n"
        )
    };
    house.plan(&(phase("api") + &phase("web")));
    house.write("web/src/f", "mine\n");
    let heads =
        |house: &House| ["web", "api"].map(|at| house.git_in(&house.root.join(at), &["rev-parse", "main"]));
    let before = heads(&house);
    let ran = house.brain(&["run", "p.yml"]);
    assert_eq!(ran.code, 20, "{}{}", ran.out, ran.err);
    assert!(ran.err.contains("src/f"), "{}", ran.err);
    assert_eq!(heads(&house), before, "all or none");
    std::fs::remove_file(house.root.join("web/src/f")).unwrap();
    let ran = house.brain(&["run", "--resume"]);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    assert_eq!(
        (house.read("web/src/f"), house.read("api/src/f")),
        ("web\n".to_owned(), "api\n".to_owned())
    );
    assert_eq!(
        house.git(&["branch", "--list", "theme/p"]),
        "",
        "the root's own repository is not touched"
    );
}
