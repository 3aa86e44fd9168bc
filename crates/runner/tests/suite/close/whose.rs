//! Step 1: whose a change is, on real repositories.

use std::fs;
use std::path::Path;

use git::Kind as GitKind;
use protocol::facts::claim::Outcome;
use protocol::refusal::Refusal;
use runner::close::{CloseAsk, CloseError, Closed, Fuse, Notice};

use super::world::{World, notes, short};

#[test]
fn the_files_of_the_scope_are_committed_and_nothing_else() {
    let mut w = World::new();
    let id = w.open("docs", &["docs/"], notes());
    w.write("docs/a.md", "two\n");
    w.write("docs/new.md", "new\n");
    let result = w.done(&id);
    assert_eq!(short(&result), (Outcome::Ok, vec!["docs/a.md", "docs/new.md"]));
    assert_eq!(w.changed("HEAD"), ["docs/a.md", "docs/new.md"]);
    assert_eq!(result.commit["."], w.root_git(&["rev-parse", "HEAD"]));
    let message = w.root_git(&["log", "-1", "--format=%B"]);
    assert_eq!(
        message.trim(),
        "brain-write(docs/): the work of docs\n\nBrain-Session: sess-20261130-1030-docs\nBrain-Result: ok"
    );
    assert_eq!(w.dirty(), [""; 0]);
}

#[test]
fn what_lies_outside_the_scope_refuses_and_leaves_no_commit() {
    let mut w = World::new();
    let id = w.open("docs", &["docs/"], notes());
    w.write("docs/a.md", "two\n");
    w.write("src/a.rs", "two\n");
    w.write("loose.txt", "x\n");
    w.root_git(&["add", "loose.txt"]);
    assert_eq!(w.strays(&id), ["loose.txt", "src/a.rs"]);
    assert_eq!(w.commits("main"), 1);
}

#[test]
fn o_07_every_name_is_called_by_its_real_name() {
    let mut w = World::new();
    let id = w.open("docs", &["docs/"], notes());
    w.write("docs/ok.md", "x\n");
    for name in [
        "agents/été.md",
        "agents/a b.md",
        "agents/tab\there.md",
        "agents/line\nbreak.md",
        "agents/\"q\".md",
    ] {
        w.write(name, "x\n");
    }
    let mut strays = w.strays(&id);
    strays.sort();
    assert_eq!(
        strays,
        [
            "agents/\"q\".md",
            "agents/a b.md",
            "agents/line\nbreak.md",
            "agents/tab\there.md",
            "agents/été.md"
        ]
    );
    fs::remove_dir_all(w.root.join("agents")).unwrap();
    w.write("docs/été \"x\".md", "x\n");
    assert_eq!(short(&w.done(&id)).1, ["docs/ok.md", "docs/été \"x\".md"]);
}

#[test]
fn both_sides_of_a_rename_deletions_modes_and_links_count() {
    let mut w = World::new();
    for name in ["docs/moved.md", "docs/gone.md", "docs/mode.md", "docs/link.md"] {
        w.write(name, &format!("a long enough text for {name}\n"));
    }
    w.root_git(&["add", "."]);
    w.root_git(&["commit", "-q", "-m", "more"]);
    let id = w.open("docs", &["docs/"], notes());
    w.root_git(&["mv", "docs/moved.md", "src/moved.md"]);
    assert_eq!(w.strays(&id), ["src/moved.md"]);
    w.root_git(&["mv", "src/moved.md", "docs/else.md"]);
    fs::remove_file(w.root.join("docs/gone.md")).unwrap();
    w.root_git(&["update-index", "--chmod=+x", "docs/mode.md"]);
    w.script(&w.root.join("docs/mode.md"), "true");
    fs::remove_file(w.root.join("docs/link.md")).unwrap();
    std::os::unix::fs::symlink("a.md", w.root.join("docs/link.md")).unwrap();
    let result = w.done(&id);
    let all = [
        "docs/else.md",
        "docs/gone.md",
        "docs/link.md",
        "docs/mode.md",
        "docs/moved.md",
    ];
    assert_eq!(short(&result).1, all);
    assert_eq!(w.changed("HEAD"), all);
    assert_eq!(w.dirty(), [""; 0]);
}

#[test]
fn what_others_staged_stays_staged_and_what_was_dirty_stays_dirty() {
    let mut w = World::new();
    w.write("src/a.rs", "of a human\n");
    w.root_git(&["add", "src/a.rs"]);
    w.write("docs/draft.md", "of a human\n");
    let id = w.open("docs", &["docs/"], notes());
    w.write("docs/a.md", "two\n");
    assert_eq!(short(&w.done(&id)).1, ["docs/a.md"]);
    assert_eq!(w.dirty(), ["M  src/a.rs", "?? docs/draft.md"]);
}

#[test]
fn taken_over_what_was_dirty_in_the_scope_is_the_claims_own() {
    let mut w = World::new();
    w.write("docs/draft.md", "of a human\n");
    w.write("src/a.rs", "of a human\n");
    let mut ask = notes();
    ask.change = |open| open.take_dirty = true;
    let id = w.open("docs", &["docs/"], ask);
    assert_eq!(short(&w.done(&id)).1, ["docs/draft.md"]);
    assert_eq!(w.dirty(), ["M src/a.rs"].map(|it| format!(" {it}")));
}

#[test]
fn changes_in_the_scope_of_a_claim_that_was_live_meanwhile_are_left_alone() {
    let mut w = World::new();
    let docs = w.open("docs", &["docs/"], notes());
    let other = w.open("src", &["src/"], notes());
    let gone = w.open("etc", &["etc/"], notes());
    w.write("docs/a.md", "two\n");
    w.write("src/a.rs", "two\n");
    w.write("etc/x", "x\n");
    w.clock.turn(10);
    let abort = protocol::command::Command::Abort {
        id: gone,
        why: "enough".to_owned(),
    };
    w.submit(&w.human(), &abort);
    let before = w.open("before", &["lib/"], notes());
    w.write("lib/x", "x\n");
    let closed = w.close(&docs).unwrap();
    let Closed::Done(result, notices) = closed else {
        panic!("{closed:?}")
    };
    assert_eq!(short(&result).1, ["docs/a.md"]);
    let [Notice::Left(left)] = notices.as_slice() else {
        panic!("{notices:?}")
    };
    assert_eq!(
        left.iter().map(|it| it.0.as_str()).collect::<Vec<_>>(),
        ["etc/x", "lib/x", "src/a.rs"]
    );
    assert_eq!(short(&w.done(&other)).1, ["src/a.rs"]);
    assert_eq!(short(&w.done(&before)).1, ["lib/x"]);
}

#[test]
fn what_a_claim_left_that_had_ended_before_is_not_excused_by_it() {
    let mut w = World::new();
    let gone = w.open("etc", &["etc/"], notes());
    let abort = protocol::command::Command::Abort {
        id: gone,
        why: "enough".to_owned(),
    };
    w.submit(&w.human(), &abort);
    w.clock.turn(10);
    let docs = w.open("docs", &["docs/"], notes());
    w.write("docs/a.md", "two\n");
    w.write("etc/x", "x\n");
    assert_eq!(w.strays(&docs), ["etc/x"]);
}

#[test]
fn commits_of_other_sessions_are_theirs_and_own_ones_are_kept() {
    let mut w = World::new();
    let id = w.open("docs", &["docs/"], notes());
    w.write("src/a.rs", "theirs\n");
    w.root_git(&[
        "commit",
        "-q",
        "-am",
        "x\n\nBrain-Session: sess-20261130-0900-other",
    ]);
    w.write("docs/a.md", "mine\n");
    w.root_git(&["commit", "-q", "-am", "mine"]);
    let own = w.root_git(&["rev-parse", "HEAD"]);
    let result = w.done(&id);
    assert_eq!(short(&result).1, ["docs/a.md"]);
    assert_eq!(result.commit["."], own);
    assert_eq!(w.commits("main"), 3);
}

#[test]
fn a_commit_that_no_session_signed_counts_as_the_claims() {
    let mut w = World::new();
    let id = w.open("docs", &["docs/"], notes());
    w.write("src/a.rs", "went around\n");
    w.root_git(&["commit", "-q", "-am", "quick fix"]);
    assert_eq!(w.strays(&id), ["src/a.rs"]);
}

#[test]
fn what_a_pull_brought_meanwhile_is_not_the_claims() {
    let mut w = World::new();
    let up = w.path.join("up");
    w.git(&w.path, &["clone", "-q", "root", "up"]);
    w.root_git(&["remote", "add", "origin", up.to_str().unwrap()]);
    let id = w.open("docs", &["docs/"], notes());
    w.write_at(&up, "src/b.rs", "theirs\n");
    w.git(&up, &["add", "."]);
    w.git(&up, &["commit", "-q", "-m", "theirs"]);
    w.root_git(&["pull", "-q", "--ff-only", "origin", "main"]);
    w.write("docs/a.md", "mine\n");
    assert_eq!(short(&w.done(&id)).1, ["docs/a.md"]);
    assert_eq!(w.changed("HEAD"), ["docs/a.md"]);
}

#[test]
fn a_human_leaves_aside_what_an_agent_may_not() {
    let mut w = World::new();
    let id = w.open("docs", &["docs/"], notes());
    w.write("docs/a.md", "two\n");
    w.write("tmp/x.log", "x\n");
    w.write("loose.txt", "x\n");
    let ask = CloseAsk {
        leave: vec!["tmp/*.log".to_owned(), "loose.txt".to_owned()],
        ..CloseAsk::of(id.clone())
    };
    for caller in [w.plain(), w.agent("docs")] {
        let said = w.close_as(&caller, &ask, Fuse::default());
        assert!(
            matches!(said, Err(CloseError::Refused(Refusal::NotHuman { .. }))),
            "{said:?}"
        );
    }
    let said = w.close_as(&w.human(), &ask, Fuse::default());
    assert!(matches!(said, Ok(Closed::Done(..))), "{said:?}");
    assert_eq!(w.changed("HEAD"), ["docs/a.md"]);
}

#[test]
fn a_kernel_file_outside_the_right_is_a_stray_though_a_folder_covers_it() {
    let mut w = World::new();
    let id = w.open("all", &["."], notes());
    w.write("docs/a.md", "two\n");
    w.write("CLAUDE.md", "obey\n");
    let Refusal::OutOfScope { strays, .. } = w.refused(&id) else {
        panic!()
    };
    assert_eq!(strays.len(), 1);
    assert!(strays[0].why.contains("zone kernel"), "{strays:?}");
}

#[test]
fn an_ignored_secret_that_changed_is_a_stray_and_other_ignored_files_are_not() {
    let mut w = World::new();
    w.write(".env", "KEY=1\n");
    let id = w.open("docs", &["docs/"], notes());
    w.write("docs/a.md", "two\n");
    w.write("ignored/x", "x\n");
    w.write(".env", "KEY=2\n");
    assert_eq!(w.strays(&id), [".env"]);
    w.write(".env", "KEY=1\n");
    w.done(&id);
}

#[test]
fn work_on_another_branch_or_on_none_is_refused_by_name() {
    let mut w = World::new();
    let id = w.open("docs", &["docs/"], notes());
    w.write("docs/a.md", "two\n");
    w.root_git(&["switch", "-q", "-c", "else"]);
    let Refusal::WrongPlace { expected, found, .. } = w.refused(&id) else {
        panic!()
    };
    assert_eq!((expected.as_str(), found.as_str()), ("main", "else"));
    w.root_git(&["switch", "-q", "--detach"]);
    let Refusal::WrongPlace { found, .. } = w.refused(&id) else {
        panic!()
    };
    assert!(found.starts_with("no branch"), "{found}");
    w.root_git(&["switch", "-q", "main"]);
    w.done(&id);
}

#[test]
fn o_32_what_a_shallow_clone_cannot_compare_is_an_error_and_never_clean() {
    let mut w = World::new();
    for n in 0..3 {
        w.write("src/a.rs", &format!("{n}\n"));
        w.root_git(&["commit", "-q", "-am", "more"]);
    }
    let up = w.path.join("up");
    fs::rename(&w.root, &up).unwrap();
    let url = format!("file://{}", up.display());
    w.git(&w.path, &["clone", "-q", &url, "root"]);
    let id = w.open("docs", &["docs/"], notes());
    w.git(&up, &["commit", "-q", "--allow-empty", "-m", "a"]);
    w.git(&up, &["commit", "-q", "--allow-empty", "-m", "b"]);
    w.root_git(&["fetch", "-q", "--depth=1", "origin", "main"]);
    w.root_git(&["reset", "-q", "--hard", "FETCH_HEAD"]);
    w.write("docs/a.md", "two\n");
    match w.close(&id) {
        Err(CloseError::Git(error)) => assert!(
            matches!(
                error.kind(),
                GitKind::Shallow | GitKind::NoMergeBase | GitKind::NotAncestor { .. }
            ),
            "{error}"
        ),
        other => panic!("{other:?}"),
    }
    w.root_git(&["fetch", "-q", "--unshallow", "origin"]);
    assert_eq!(short(&w.done(&id)).1, ["docs/a.md"]);
}

#[test]
fn a_submodule_that_moved_is_one_path() {
    let mut w = World::new();
    let lib = w.path.join("lib");
    w.init(&lib);
    w.root_git(&["submodule", "--quiet", "add", lib.to_str().unwrap(), "docs/lib"]);
    w.root_git(&["commit", "-q", "-m", "lib"]);
    let id = w.open("docs", &["docs/"], notes());
    w.git(
        &w.root.join("docs/lib"),
        &["commit", "-q", "--allow-empty", "-m", "x"],
    );
    assert_eq!(short(&w.done(&id)).1, ["docs/lib"]);
    assert_eq!(w.changed("HEAD"), ["docs/lib"]);
}

#[test]
fn a_project_of_its_own_is_committed_in_its_own_repository() {
    let mut w = World::new();
    let api = w.root.join("api");
    w.init(&api);
    w.projects = vec![api.clone()];
    let id = w.open("api", &["api/src/", "docs/"], notes());
    w.write("api/src/a.rs", "two\n");
    w.write("docs/a.md", "two\n");
    let result = w.done(&id);
    assert_eq!(short(&result).1, ["api/src/a.rs", "docs/a.md"]);
    assert_eq!(result.commit["api"], w.git(&api, &["rev-parse", "HEAD"]));
    assert_eq!(result.commit["."], w.root_git(&["rev-parse", "HEAD"]));
}

#[test]
fn what_lies_in_no_repository_is_named_and_not_committed() {
    let mut w = World::empty();
    let id = w.open("docs", &["docs/"], notes());
    w.write("docs/a.md", "two\n");
    let closed = w.close(&id).unwrap();
    let Closed::Done(result, notices) = closed else {
        panic!("{closed:?}")
    };
    assert!(result.commit.is_empty());
    assert_eq!(notices, [Notice::Unversioned(vec!["docs/".to_owned()])]);
}

#[test]
fn a_claim_that_took_over_inherits_what_the_first_one_left() {
    let mut w = World::new();
    let mut ask = notes();
    ask.change = |open| open.ttl = Some(protocol::facts::span::Span::from_ms(10_000));
    let first = w.open("first", &["docs/"], ask);
    w.write("docs/a.md", "half\n");
    w.clock.turn(20_000);
    let second = w.open("second", &["docs/"], notes());
    assert_eq!(w.claim(&second).inherits, std::slice::from_ref(&first));
    let said = w.close(&first);
    assert!(
        matches!(said, Err(CloseError::Refused(Refusal::Superseded { .. }))),
        "{said:?}"
    );
    assert_eq!(short(&w.done(&second)).1, ["docs/a.md"]);
    assert!(Path::new(&w.root).exists());
}
