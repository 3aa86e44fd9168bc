//! Every spelling of a place, judged by where it leads.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use brain::place::{PlaceError, Placer, walk};
use brain::root::Root;
use proptest::prelude::*;
use protocol::rules::preflight::{Op, PathAsk, RepoAt, Unplaced};

use super::world::World;

fn ask(world: &World, from: &Path, given: &str, op: Op) -> PathAsk {
    let root = Root::find(&world.main).unwrap();
    Placer::new(&root).place(from, OsStr::new(given), op).unwrap()
}

/// Shows where a path was placed: its logical path, or why it has none.
fn shown(world: &World, from: &Path, given: &str, op: Op) -> String {
    match ask(world, from, given, op).path {
        Ok(path) => path.as_str().to_owned(),
        Err(Unplaced::Outside(real)) => {
            let real = real.replace(world.path.to_str().unwrap(), "");
            format!("outside {real}")
        }
        Err(Unplaced::Reserved) => "reserved".to_owned(),
        Err(Unplaced::Links) => "links".to_owned(),
    }
}

fn check(world: &World, table: &[(&str, &str)]) {
    for (given, expected) in table {
        let given = given.replace("$PWD", world.main.to_str().unwrap());
        assert_eq!(shown(world, &world.main, &given, Op::Write), *expected, "{given}");
    }
}

#[test]
fn the_same_place_spelled_otherwise() {
    let world = World::new();
    check(
        &world,
        &[
            ("src/auth/../../KERNEL.md", "KERNEL.md"),
            ("src/auth/../../agents/x.md", "agents/x.md"),
            ("./src/auth/a.ts", "src/auth/a.ts"),
            ("src//auth/a.ts", "src/auth/a.ts"),
            ("src/auth/./a.ts", "src/auth/a.ts"),
            ("src/auth/../auth/a.ts", "src/auth/a.ts"),
            ("$PWD/src/auth/a.ts", "src/auth/a.ts"),
            ("$PWD//src/./auth/new.ts", "src/auth/new.ts"),
            ("$PWD-old/x", "outside /main-old/x"),
            ("src/auth/", "src/auth"),
            (".", "."),
            ("$PWD", "."),
            ("/tmp/x", "outside /tmp/x"),
            ("~/x", "~/x"),
            ("..", "outside "),
            ("../other", "outside /other"),
            ("../main/src/auth/a.ts", "src/auth/a.ts"),
            ("src/auth/new/deep/x.ts", "src/auth/new/deep/x.ts"),
            ("src/new/../auth/a.ts", "src/auth/a.ts"),
            ("src/auth/a.ts/below", "src/auth/a.ts/below"),
            ("a\\b", "a\\b"),
            ("/../../..", "outside /"),
            (".git/config", "reserved"),
            (".GIT/config", "reserved"),
            ("sub/.git", "reserved"),
            (".brain/brain.db", "reserved"),
            (".git/../src/x", "src/x"),
            ("src/.github/x", "src/.github/x"),
        ],
    );
    let src = world.main.join("src");
    assert_eq!(shown(&world, &src, "auth/a.ts", Op::Write), "src/auth/a.ts");
    assert_eq!(
        shown(&world, &src, "src/auth/a.ts", Op::Write),
        "src/src/auth/a.ts"
    );
    assert_eq!(shown(&world, &src, "../KERNEL.md", Op::Write), "KERNEL.md");
}

#[test]
fn a_link_is_followed_wherever_it_stands() {
    let world = World::new();
    world.link("../../agents", "src/app/link");
    world.link("/nonexistent", "src/app/dangling");
    world.link("../nowhere/x", "src/app/inside");
    world.link("auth/a.ts", "src/alias.ts");
    world.link("../.git", "src/git");
    world.link("loop", "loop");
    world.link(world.main.to_str().unwrap(), "../alias");
    world.link("/proc/self/cwd", "cwd");
    let alias = world.path.join("alias");
    check(
        &world,
        &[
            ("src/app/link/x.md", "agents/x.md"),
            ("src/app/link/new/deep.md", "agents/new/deep.md"),
            ("src/app/link", "agents"),
            ("src/app/link/../a", "a"),
            ("src/app/dangling", "outside /nonexistent"),
            ("src/app/dangling/x", "outside /nonexistent/x"),
            ("src/app/inside", "src/nowhere/x"),
            ("src/app/new.ts", "src/app/new.ts"),
            ("src/app/new/../link/x", "agents/x"),
            ("src/alias.ts", "src/auth/a.ts"),
            ("src/git/config", "reserved"),
            ("loop", "links"),
            ("loop/x", "links"),
            ("../alias/src/app/a.ts", "src/app/a.ts"),
            ("cwd/x", "outside /proc/self/cwd/x"),
            ("/dev/fd/1", "outside /proc/self/fd/1"),
        ],
    );
    let through = alias.join("src/app/link/x.md");
    assert_eq!(
        shown(&world, &world.main, through.to_str().unwrap(), Op::Write),
        "agents/x.md"
    );
    // A delete takes the link, not what it leads to; with a slash it goes through.
    let delete = |given| shown(&world, &world.main, given, Op::Delete);
    assert_eq!(delete("src/app/link"), "src/app/link");
    assert_eq!(delete("src/app/link/"), "agents");
    assert_eq!(delete("src/app/link/x.md"), "agents/x.md");
    assert_eq!(delete("src/app/dangling"), "src/app/dangling");
    assert_eq!(delete("loop"), "loop");
    assert_eq!(delete("src/app/gone"), "src/app/gone");
}

#[test]
fn forty_links_are_followed_and_one_more_is_not() {
    let world = World::bare();
    for n in 0..41 {
        world.link(&format!("l{n}"), &format!("l{}", n + 1));
    }
    check(&world, &[("l40", "l0"), ("l41", "links")]);
}

#[test]
fn a_root_reached_through_a_link_is_the_same_root() {
    let world = World::new();
    world.link(world.main.to_str().unwrap(), "../alias");
    let alias = world.path.join("alias");
    let root = Root::named(&alias).unwrap();
    assert_eq!(root.dir(), world.main);
    let walked = walk(Path::new("/"), alias.join("src/auth/a.ts").as_os_str(), Op::Write).unwrap();
    assert_eq!(Root::find(walked.path()).unwrap().dir(), world.main);
}

#[test]
fn a_linked_worktree_has_the_main_checkouts_paths() {
    let world = World::new();
    let beside = world.path.join("beside");
    let within = world.main.join(".brain/worktrees/one");
    for (at, branch) in [(&beside, "b1"), (&within, "b2")] {
        world.git(
            &world.main,
            &["worktree", "add", "-q", "-b", branch, at.to_str().unwrap()],
        );
        let asked = ask(&world, at, "src/auth/../auth/a.ts", Op::Write);
        assert_eq!(asked.path.unwrap().as_str(), "src/auth/a.ts");
        let expected = RepoAt {
            repo: ".".into(),
            checkout: at.to_str().unwrap().into(),
            branch: Some(branch.into()),
            submodule: false,
        };
        assert_eq!(asked.repo, Some(expected));
        let absolute = at.join("new/file");
        assert_eq!(
            shown(&world, &world.main, absolute.to_str().unwrap(), Op::Write),
            "new/file"
        );
        assert_eq!(shown(&world, at, ".git", Op::Write), "reserved");
        assert_eq!(Root::find(&at.join("src/x")).unwrap().dir(), world.main);
    }
    assert_eq!(
        shown(&world, &world.main, ".brain/worktrees/other/x", Op::Write),
        "reserved"
    );
}

#[test]
fn the_repository_of_a_path_is_told() {
    let world = World::new();
    world.write("github/api/index.ts", "");
    world.repository("github/api");
    let repo = |given| ask(&world, &world.main, given, Op::Write).repo.unwrap();
    let root = repo("src/auth/new.ts");
    assert_eq!((root.repo.as_str(), root.branch.as_deref()), (".", Some("main")));
    assert_eq!(root.checkout, world.main.to_str().unwrap());
    let api = repo("github/api/src/new.ts");
    assert_eq!((api.repo.as_str(), api.submodule), ("github/api", false));
    world.git(&world.main.join("github/api"), &["checkout", "-q", "--detach"]);
    assert_eq!(repo("github/api/x").branch, None);
    // A submodule's content is its own.
    let origin = world.main.join("github/api");
    world.git(
        &world.main,
        &[
            "submodule",
            "--quiet",
            "add",
            origin.to_str().unwrap(),
            "vendor/lib",
        ],
    );
    let lib = repo("vendor/lib/x");
    assert_eq!((lib.repo.as_str(), lib.submodule), ("vendor/lib", true));
    assert_eq!(
        shown(&world, &world.main, "vendor/lib/x", Op::Write),
        "vendor/lib/x"
    );
    // Without a repository there is none.
    let world = World::bare();
    assert_eq!(ask(&world, &world.main, "x", Op::Write).repo, None);
}

#[test]
fn a_brain_may_stand_below_its_repository() {
    let world = World::new();
    fs::create_dir_all(world.main.join("packages/brain/.brain")).unwrap();
    let root = Root::find(&world.main.join("packages/brain/src")).unwrap();
    let asked = Placer::new(&root)
        .place(root.dir(), OsStr::new("x"), Op::Write)
        .unwrap();
    assert_eq!(asked.path.unwrap().as_str(), "x");
    assert_eq!(asked.repo.unwrap().repo, ".");
}

#[test]
fn a_bare_repository_counts_from_the_folder_that_holds_it() {
    let world = World::bare();
    world.write("seed/a", "");
    world.repository("seed");
    world.git(&world.main, &["clone", "-q", "--bare", "seed", "project.git"]);
    let worktree = world.main.join("wt");
    let bare = world.main.join("project.git");
    world.git(
        &bare,
        &["worktree", "add", "-q", "-b", "topic", worktree.to_str().unwrap()],
    );
    let asked = ask(&world, &worktree, "src/x", Op::Write);
    assert_eq!(asked.path.unwrap().as_str(), "src/x");
    assert_eq!(asked.repo.unwrap().branch.as_deref(), Some("topic"));
}

#[test]
fn a_file_with_two_names_is_told_unless_git_ignores_it() {
    let world = World::new();
    let link = |to: &str, at: &str| fs::hard_link(world.main.join(to), world.main.join(at)).unwrap();
    link("src/auth/a.ts", "src/other.ts");
    world.write("node_modules/p/[x]*.js", "");
    link("node_modules/p/[x]*.js", "node_modules/y.js");
    let links = |given, op| ask(&world, &world.main, given, op).links;
    assert_eq!(links("src/other.ts", Op::Write), Some(2));
    assert_eq!(links("src/other.ts", Op::Delete), None);
    assert_eq!(links("agents/x.md", Op::Write), None);
    assert_eq!(links("node_modules/p/[x]*.js", Op::Write), None);
    assert_eq!(links("node_modules/y.js", Op::Write), None);
    let folder = ask(&world, &world.main, "src", Op::Write);
    assert_eq!((folder.links, folder.folder), (None, true));
    assert!(ask(&world, &world.main, "new/", Op::Write).folder);
    assert!(!ask(&world, &world.main, "src/auth/a.ts", Op::Write).folder);
}

#[test]
fn what_is_no_path_is_wrong_usage() {
    let from = Path::new("/");
    assert!(matches!(
        walk(from, OsStr::new(""), Op::Write),
        Err(PlaceError::Empty)
    ));
    assert!(matches!(
        walk(from, OsStr::new("a\0b"), Op::Write),
        Err(PlaceError::Nul)
    ));
    let world = World::bare();
    let root = Root::find(&world.main).unwrap();
    let odd = OsStr::from_bytes(b"caf\xe9");
    let asked = Placer::new(&root).place(&world.main, odd, Op::Write);
    assert!(matches!(asked, Err(PlaceError::NotUtf8(_))));
}

#[test]
fn names_are_compared_as_git_was_told() {
    let world = World::new();
    let key = |given| {
        ask(&world, &world.main, given, Op::Write)
            .path
            .unwrap()
            .key()
            .to_owned()
    };
    assert_ne!(key("SRC/auth/A.ts"), key("src/auth/a.ts"));
    assert_eq!(key("caf\u{e9}"), key("cafe\u{301}"));
    world.git(&world.main, &["config", "core.ignorecase", "true"]);
    assert_eq!(key("SRC/auth/A.ts"), key("src/auth/a.ts"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_path_panics_and_none_escapes(
        given in proptest::collection::vec(prop_oneof![
            Just(".."), Just("."), Just(""), Just("src"), Just("auth"), Just("up"), Just("out"), Just("new"), Just("é"), Just("\\")
        ], 0..9),
        op in prop_oneof![Just(Op::Write), Just(Op::Delete), Just(Op::Read)],
    ) {
        let world = World::bare();
        world.write("src/auth/a.ts", "");
        world.link("..", "src/up");
        world.link("../..", "src/out");
        let given = given.join("/");
        if given.is_empty() {
            return Ok(());
        }
        let asked = ask(&world, &world.main, &given, op);
        // Where the kernel can tell, it says the same.
        let joined = world.main.join(&given);
        if let (Ok(real), true) = (fs::canonicalize(&joined), op != Op::Delete) {
            let expected = real.strip_prefix(&world.main).ok().map(PathBuf::from);
            match (asked.path, expected) {
                (Ok(path), Some(below)) if below.as_os_str().is_empty() => prop_assert!(path.is_root()),
                (Ok(path), Some(below)) => prop_assert_eq!(path.as_str(), below.to_str().unwrap()),
                (Err(Unplaced::Outside(at)), None) => prop_assert_eq!(PathBuf::from(at), real),
                (Err(Unplaced::Reserved), _) => {}
                other => prop_assert!(false, "{:?}", other),
            }
        }
    }

    #[test]
    fn no_bytes_panic(given in proptest::collection::vec(any::<u8>(), 0..60)) {
        let _ = walk(Path::new("/tmp"), OsStr::from_bytes(&given), Op::Write);
    }
}

#[test]
#[ignore = "a measurement: cargo test --profile ci -p brain little_time -- --ignored --nocapture"]
fn placing_takes_little_time() {
    let world = World::new();
    let best = |work: &dyn Fn()| {
        let once = || {
            let start = std::time::Instant::now();
            (0..50).for_each(|_| work());
            start.elapsed() / 50
        };
        (0..50).map(|_| once()).min().unwrap_or_default()
    };
    let given = world.main.join("src/auth/a.ts");
    let walked = walk(&world.main, given.as_os_str(), Op::Write).unwrap();
    let root = Root::find(&world.main).unwrap();
    println!(
        "find root: {:?}",
        best(&|| drop(Root::find(walked.path()).unwrap()))
    );
    println!(
        "walk: {:?}",
        best(&|| drop(walk(&world.main, given.as_os_str(), Op::Write).unwrap()))
    );
    println!(
        "walk from /: {:?}",
        best(&|| drop(walk(Path::new("/"), given.as_os_str(), Op::Write).unwrap()))
    );
    println!(
        "place, new placer: {:?}",
        best(&|| drop(
            Placer::new(&root)
                .ask(given.as_os_str(), &walked, Op::Write)
                .unwrap()
        ))
    );
    println!(
        "all, cold: {:?}",
        best(&|| {
            let walked = walk(&world.main, given.as_os_str(), Op::Write).unwrap();
            let root = Root::find(walked.path()).unwrap();
            drop(
                Placer::new(&root)
                    .ask(given.as_os_str(), &walked, Op::Write)
                    .unwrap(),
            );
        })
    );
    println!(
        "facts: {:?}",
        best(&|| drop(Root::find(&world.main).unwrap().facts()))
    );
}
