//! Step 4: into the theme branch and to the upstream.

use protocol::event::Event;
use protocol::facts::claim::Outcome;
use protocol::refusal::Refusal;
use runner::close::{Closed, Notice};

use super::world::{GREEN, World, code, notes, short};

fn with_theme() -> World {
    let w = World::new();
    w.root_git(&["branch", "theme"]);
    w.write(".gitignore", ".env\nignored/\n.brain/\n");
    w.root_git(&["commit", "-q", "-am", "ignore"]);
    w.root_git(&["branch", "-f", "theme"]);
    w
}

#[test]
fn a_satellites_commit_lands_in_the_theme_and_the_intention_was_written_down_first() {
    let mut w = with_theme();
    let (id, at) = w.open_in_worktree("api", &["src/"], code(GREEN));
    w.write_at(&at, "src/a.rs", "two\n");
    let result = w.done(&id);
    assert_eq!(result.commit["."], w.root_git(&["rev-parse", "theme"]));
    assert_eq!(w.changed("theme"), ["src/a.rs"]);
    let landings: Vec<bool> = w
        .events()
        .iter()
        .filter_map(|it| match it {
            Event::CloseLanded { landing, .. } => Some(landing.done),
            _ => None,
        })
        .collect();
    assert_eq!(landings, [false, true]);
}

#[test]
fn a_theme_that_moved_gets_a_merge_whose_tree_was_tested() {
    let mut w = with_theme();
    w.write_suite("cat docs/b.md > \"$0.saw\" 2>/dev/null; printf '1..1\\nok 1\\n'");
    let suite = w.suite();
    let (id, at) = w.open_in_worktree("api", &["src/"], code(suite));
    w.root_git(&["switch", "-q", "theme"]);
    w.write("docs/b.md", "theirs\n");
    w.root_git(&["add", "docs"]);
    w.root_git(&["commit", "-q", "-m", "theirs"]);
    w.write_at(&at, "src/a.rs", "two\n");
    let result = w.done(&id);
    assert_eq!(w.root_git(&["show", "theme:src/a.rs"]), "two");
    assert_eq!(
        std::fs::read_to_string(w.root.join("src/a.rs")).unwrap(),
        "two\n",
        "the checkout went along"
    );
    assert_eq!(
        result.tests.unwrap().tree,
        w.root_git(&["rev-parse", "theme^{tree}"])
    );
    assert_eq!(
        std::fs::read_to_string(w.path.join("suite.sh.saw")).unwrap(),
        "theirs\n"
    );
}

#[test]
fn a_merge_that_is_red_does_not_land() {
    let mut w = with_theme();
    w.write_suite(
        "if test -e docs/b.md; then printf '1..1\\nnot ok 1\\n'; exit 1; fi; printf '1..1\\nok 1\\n'",
    );
    let suite = w.suite();
    let (id, at) = w.open_in_worktree("api", &["src/"], code(suite));
    w.root_git(&["switch", "-q", "theme"]);
    w.write("docs/b.md", "theirs\n");
    w.root_git(&["add", "docs"]);
    w.root_git(&["commit", "-q", "-m", "theirs"]);
    let theme = w.root_git(&["rev-parse", "theme"]);
    w.write_at(&at, "src/a.rs", "two\n");
    assert!(matches!(w.refused(&id), Refusal::TestsRed { .. }));
    assert_eq!(w.root_git(&["rev-parse", "theme"]), theme);
}

#[test]
fn a_conflict_is_partial_with_the_files() {
    let mut w = with_theme();
    let (id, at) = w.open_in_worktree("docs", &["docs/"], notes());
    w.root_git(&["switch", "-q", "theme"]);
    w.write("docs/a.md", "theirs\n");
    w.root_git(&["commit", "-q", "-am", "theirs"]);
    w.write_at(&at, "docs/a.md", "mine\n");
    let Ok(Closed::Done(result, notices)) = w.close(&id) else {
        panic!()
    };
    assert_eq!(short(&result), (Outcome::Partial, vec!["docs/a.md"]));
    let [Notice::NotLanded(theme, why)] = notices.as_slice() else {
        panic!("{notices:?}")
    };
    assert_eq!(theme, "theme");
    assert!(why.contains("docs/a.md"), "{why}");
    assert_eq!(w.root_git(&["show", "theme:docs/a.md"]), "theirs");
}

#[test]
fn dirty_files_of_the_themes_checkout_are_never_written_over() {
    let mut w = with_theme();
    w.root_git(&["switch", "-q", "theme"]);
    let (id, at) = w.open_in_worktree("docs", &["docs/"], notes());
    w.write("docs/a.md", "of a human\n");
    let theme = w.root_git(&["rev-parse", "theme"]);
    w.write_at(&at, "docs/a.md", "mine\n");
    let Ok(Closed::Done(result, notices)) = w.close(&id) else {
        panic!()
    };
    assert_eq!(result.status, Outcome::Partial);
    assert!(notices[0].to_string().contains("docs/a.md"), "{notices:?}");
    assert_eq!(w.root_git(&["rev-parse", "theme"]), theme);
    assert_eq!(
        std::fs::read_to_string(w.root.join("docs/a.md")).unwrap(),
        "of a human\n"
    );
}

fn with_upstream() -> World {
    let mut w = World::new();
    let up = w.path.join("up.git");
    w.git(&w.path, &["clone", "-q", "--bare", "root", "up.git"]);
    w.root_git(&["remote", "add", "origin", up.to_str().unwrap()]);
    w.root_git(&["fetch", "-q", "origin"]);
    w.root_git(&["branch", "-q", "-u", "origin/main"]);
    w.settings.push = true;
    w
}

#[test]
fn a_branch_with_an_upstream_is_pushed_when_the_configuration_says_so() {
    for push in [true, false] {
        let mut w = with_upstream();
        w.settings.push = push;
        let id = w.open("docs", &["docs/"], notes());
        w.write("docs/a.md", "two\n");
        let result = w.done(&id);
        let up = w.git(&w.path.join("up.git"), &["rev-parse", "main"]);
        assert_eq!(up == result.commit["."], push);
    }
}

#[test]
fn an_upstream_that_moved_has_the_work_put_on_top() {
    let mut w = with_upstream();
    w.git(&w.path, &["clone", "-q", "up.git", "other"]);
    let other = w.path.join("other");
    let id = w.open("docs", &["docs/"], notes());
    w.write_at(&other, "src/b.rs", "theirs\n");
    w.git(&other, &["add", "."]);
    w.git(&other, &["commit", "-q", "-m", "theirs"]);
    w.git(&other, &["push", "-q"]);
    w.write("docs/a.md", "mine\n");
    let result = w.done(&id);
    let up = w.git(&w.path.join("up.git"), &["rev-parse", "main"]);
    assert_eq!(result.commit["."], up);
    assert_eq!(w.root_git(&["rev-parse", "main"]), up);
    assert!(w.root.join("src/b.rs").exists());
    assert_eq!(w.commits("main"), 3);
}

#[test]
fn an_upstream_that_is_gone_is_named_and_the_commit_kept() {
    let mut w = with_upstream();
    let id = w.open("docs", &["docs/"], notes());
    w.write("docs/a.md", "two\n");
    std::fs::rename(w.path.join("up.git"), w.path.join("gone.git")).unwrap();
    let Ok(Closed::Done(result, notices)) = w.close(&id) else {
        panic!()
    };
    assert!(
        matches!(notices.as_slice(), [Notice::NotPushed(..)]),
        "{notices:?}"
    );
    assert_eq!(result.commit["."], w.root_git(&["rev-parse", "main"]));
}
