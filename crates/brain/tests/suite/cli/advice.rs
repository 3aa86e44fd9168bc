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
