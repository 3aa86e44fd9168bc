//! A close that is cut off before any of its acts is finished by the same call, with the same result.

use protocol::event::Event;
use protocol::facts::claim::ClaimResult;
use protocol::facts::id::SessId;
use runner::close::{CloseAsk, CloseError, Closed, Fuse};

use super::world::{World, code, notes};

/// Closes with a crash before the n-th act, then again without; `None` when there is no n-th act.
fn cut_off(w: &mut World, id: &SessId, acts: u32) -> Option<ClaimResult> {
    let ask = CloseAsk::of(id.clone());
    match w.close_as(&w.plain(), &ask, Fuse::after(acts)) {
        Err(CloseError::Io { source, .. }) if source.kind() == std::io::ErrorKind::Interrupted => {}
        Ok(Closed::Done(..)) => return None,
        other => panic!("{acts}: {other:?}"),
    }
    w.clock.turn(90_000);
    match w.close(id) {
        Ok(Closed::Done(result, _) | Closed::Already(result)) => Some(result),
        other => panic!("{acts}: {other:?}"),
    }
}

fn ends(w: &mut World) -> usize {
    w.events()
        .iter()
        .filter(|it| matches!(it, Event::ClaimClosed { .. }))
        .count()
}

#[test]
fn in_a_users_checkout_there_is_one_commit_whenever_it_was_cut_off() {
    let mut met = 0;
    for acts in 0.. {
        let mut w = World::new();
        w.write_suite("echo $$ >> left.txt; printf '1..1\\nok 1\\n'");
        let suite = w.suite();
        let id = w.open("api", &["src/"], code(suite));
        w.write("src/a.rs", "two\n");
        w.write("src/new.rs", "new\n");
        let Some(result) = cut_off(&mut w, &id, acts) else {
            break;
        };
        met += 1;
        assert_eq!(w.commits("main"), 2, "{acts}");
        assert_eq!(ends(&mut w), 1);
        assert_eq!(result.files_modified, ["src/a.rs", "src/new.rs"], "{acts}");
        assert_eq!(result.commit["."], w.root_git(&["rev-parse", "HEAD"]), "{acts}");
        assert_eq!(w.dirty(), ["?? left.txt"], "{acts}");
        assert_eq!(
            result.tests.unwrap().tree,
            w.root_git(&["rev-parse", "HEAD^{tree}"])
        );
    }
    assert!(met >= 10, "only {met} acts were met");
}

#[test]
fn in_a_worktree_the_commit_has_the_same_name_whenever_it_was_cut_off() {
    let mut names: Vec<(String, String)> = Vec::new();
    for acts in 0.. {
        let mut w = World::new();
        w.write(".gitignore", ".brain/\n");
        // The same commits in every world: dates are part of a name.
        let dated = |w: &World, args: &[&str]| {
            let mut all = vec!["-c", "user.name=Ana"];
            all.extend(args);
            w.root_git(&all)
        };
        dated(&w, &["add", "."]);
        dated(&w, &["commit", "-q", "-m", "ignore"]);
        let tree = w.root_git(&["rev-parse", "HEAD^{tree}"]);
        let first = fixed_commit(&w, &tree);
        w.root_git(&["branch", "theme", &first]);
        let (id, at) = w.open_in_worktree("docs", &["docs/"], notes());
        let theirs = fixed_commit(&w, &first);
        w.root_git(&["branch", "-f", "theme", &theirs]);
        w.write_at(&at, "docs/a.md", "two\n");
        let Some(result) = cut_off(&mut w, &id, acts) else {
            break;
        };
        assert_eq!(ends(&mut w), 1);
        assert_eq!(w.root_git(&["rev-list", "--count", "theme"]), "4", "{acts}");
        names.push((result.commit["."].clone(), w.root_git(&["rev-parse", "theme"])));
    }
    assert!(names.len() >= 10, "only {} acts were met", names.len());
    names.dedup();
    // What was cut off before the close had begun begins later, and its dates are later ones.
    assert!(names.len() <= 2, "{names:?}");
}

#[test]
fn a_branch_that_was_moved_without_its_files_has_them_brought_along() {
    let mut met = 0;
    for acts in 0.. {
        let mut w = World::new();
        w.root_git(&["switch", "-q", "-c", "theme"]);
        let (id, at) = w.open_in_worktree("docs", &["docs/"], notes());
        w.write_at(&at, "docs/a.md", "two\n");
        let ask = CloseAsk::of(id.clone());
        if w.close_as(&w.plain(), &ask, Fuse::after(acts)).is_ok() {
            break;
        }
        let closing = w.claim(&id).closing;
        let Some(landing) = closing.and_then(|it| it.landings.get(".").cloned()) else {
            continue;
        };
        if w.root_git(&["rev-parse", "theme"]) == landing.old {
            met += 1;
            w.root_git(&["update-ref", &landing.target, &landing.new, &landing.old]);
        }
        w.done(&id);
        let file = std::fs::read_to_string(w.root.join("docs/a.md")).unwrap();
        assert_eq!((file.as_str(), w.dirty()), ("two\n", vec![]), "{acts}");
    }
    assert!(met > 0, "it was never cut off between intention and act");
}

/// A commit of a tree, or an empty one on a commit, whose name is always the same.
fn fixed_commit(w: &World, on: &str) -> String {
    let mut command = std::process::Command::new("git");
    command.env_clear().envs(w.environment()).current_dir(&w.root);
    for who in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{who}_DATE"), "@1700000000 +0000");
    }
    let is_tree = w.root_git(&["cat-file", "-t", on]) == "tree";
    let tree = if is_tree {
        on.to_owned()
    } else {
        w.root_git(&["rev-parse", &format!("{on}^{{tree}}")])
    };
    command.args(["commit-tree", "-m", "fixed", &tree]);
    if !is_tree {
        command.args(["-p", on]);
    }
    let out = command.output().unwrap();
    String::from_utf8(out.stdout).unwrap().trim().to_owned()
}
