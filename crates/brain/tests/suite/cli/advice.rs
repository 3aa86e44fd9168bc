//! What is advised can be typed, and helps.

use super::stage::Stage;

/// However a stray came to be, the first command that a refused close prints takes it back, from any folder.
#[test]
fn what_a_refused_close_advises_takes_the_change_back() {
    let commit = "git add -A && git commit -qm out";
    for (how, script) in [
        ("edited", "echo out >>src/auth/a.ts".to_owned()),
        ("staged", "echo out >>src/auth/a.ts && git add -A".to_owned()),
        ("deleted", "rm src/auth/a.ts".to_owned()),
        (
            "staged and new",
            "echo out >'src/a b.ts' && git add -A".to_owned(),
        ),
        ("new", "echo out >'src/a b.ts'".to_owned()),
        ("committed", format!("echo out >>src/auth/a.ts && {commit}")),
        ("committed, new", format!("echo out >'src/a b.ts' && {commit}")),
        ("committed, deleted", format!("rm src/auth/a.ts && {commit}")),
        (
            "committed and edited again",
            format!("echo out >>src/auth/a.ts && {commit} && echo more >>src/auth/a.ts"),
        ),
    ] {
        let stage = Stage::brain();
        let open = [
            "claim", "open", "--scope", "docs", "--task", "x", "--kind", "deploy",
        ];
        let id = stage.ok(&open);
        stage.sh(&script);
        stage.sh("echo mine >docs/mine.md");
        let document = stage.run(&["close", &id, "--json"]).document();
        assert_eq!(
            document["error"]["code"], "close.out_of_scope",
            "{how}: {document}"
        );
        let advised = document["error"]["advice"][0]["run"].as_str().unwrap();
        stage.sh(&format!("cd / && {advised}"));
        stage.ok(&["close", &id]);
        assert_eq!(
            stage.sh("cat src/auth/a.ts; ls src; git status --short"),
            "a\nauth\nauth-legacy\n",
            "{how}"
        );
        assert_eq!(stage.sh("git show HEAD:docs/mine.md"), "mine\n", "{how}");
    }
}

/// A session with a worktree of its own is told when anybody has stashed something, and nobody else is.
#[test]
fn o_30_a_stash_is_warned_of_before_each_write_in_a_worktree() {
    let mut stage = Stage::brain();
    let shared = stage.ok(&["claim", "open", "--scope", "docs", "--task", "x"]);
    let open = ["claim", "open", "--scope", "src", "--task", "x", "--worktree"];
    let own = stage.ok(&open);
    let tree = stage.root.join(".brain/worktrees").join(stage.worktree());
    let main = std::mem::replace(&mut stage.cwd, tree);
    let check = ["preflight", "check", &own, "src/auth/a.ts"];
    let said = stage.run(&check);
    assert_eq!((said.code, said.err.as_str()), (0, ""));

    stage.sh("echo W1 >>src/auth/a.ts && git stash -q");
    let said = stage.run(&check);
    assert_eq!((said.code, said.out.as_str()), (0, ""));
    assert!(
        said.err.starts_with("warning: something is stashed"),
        "{}",
        said.err
    );
    assert_eq!(said.err.lines().count(), 1);
    let document = stage.run(&[&check[..], &["--json"]].concat()).document();
    assert_eq!(
        document["warnings"].as_array().map(Vec::len),
        Some(1),
        "{document}"
    );

    // Reads are no matter of the stash, a refusal has enough to say, and a person's own stash is theirs.
    for (args, code) in [(&["src/auth/a.ts", "--op", "read"][..], 0), (&["docs/ok.md"], 1)] {
        let said = stage.run(&[&check[..3], args].concat());
        assert_eq!(said.code, code, "{}", said.err);
        assert!(!said.err.contains("stash"), "{}", said.err);
    }
    stage.cwd = main;
    let said = stage.run(&["preflight", "check", &shared, "docs/ok.md"]);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
}
