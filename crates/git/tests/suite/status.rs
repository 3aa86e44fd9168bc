use crate::world::{World, executable, paths, write};
use git::{Fingerprint, Side};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// Names that quoting, line ends, options or encodings would trip over.
pub fn odd_names() -> Vec<PathBuf> {
    let mut names = paths(&[
        "agents/été.md",
        "agents/a b.md",
        "tab\there.md",
        "line\nbreak.md",
        "return\rhere",
        "ends with return\r",
        "\"quoted\".md",
        "back\\slash",
        "-leading",
        ":(top)magic",
        "glob*[x]?.md",
        " blank ",
        "#hash",
    ]);
    names.push(PathBuf::from(OsStr::from_bytes(b"latin-\xe9")));
    names
}

#[test]
fn any_file_name_is_reported_as_it_is() {
    let world = World::new();
    for name in odd_names() {
        write(&world.main.join(name), "x");
    }
    let mut found: Vec<PathBuf> = world
        .door()
        .status()
        .unwrap()
        .entries
        .into_iter()
        .map(|entry| entry.path)
        .collect();
    let mut wanted = odd_names();
    found.sort();
    wanted.sort();
    assert_eq!(found, wanted);
}

#[test]
fn any_file_name_is_fingerprinted_with_its_own_content() {
    let world = World::new();
    for (n, name) in odd_names().iter().enumerate() {
        write(&world.main.join(name), &format!("content {n}"));
    }
    let prints = world.door().dirty().unwrap();
    assert_eq!(prints.len(), odd_names().len());
    for (n, name) in odd_names().iter().enumerate() {
        let file = world.path.join("same");
        fs::write(&file, format!("content {n}")).unwrap();
        let oid = world.git(&world.main, &["hash-object", file.to_str().unwrap()]);
        assert_eq!(prints[name].to_string(), format!("100644:{oid}"), "{name:?}");
    }
}

#[test]
fn both_sides_of_a_rename_are_told() {
    let world = World::new();
    world.git(&world.main, &["mv", "a.txt", "b.txt"]);
    let entries = world.door().status().unwrap().entries;
    assert_eq!(entries.len(), 1);
    assert_eq!(entries[0].path, Path::new("b.txt"));
    assert_eq!(entries[0].from.as_deref(), Some(Path::new("a.txt")));
    assert_eq!(entries[0].staged, Some(Side::Renamed));
    let prints = world.door().dirty().unwrap();
    assert_eq!(prints[Path::new("a.txt")], Fingerprint::Absent);
    assert!(matches!(prints[Path::new("b.txt")], Fingerprint::File { .. }));
}

#[test]
fn staged_and_unstaged_sides_links_and_modes_are_told_apart() {
    let world = World::new();
    world.commit(&world.main, "run.sh", "x");
    world.commit(&world.main, "gone", "x");
    world.commit(&world.main, "link", "x");
    write(&world.main.join("a.txt"), "two\n");
    world.git(&world.main, &["add", "a.txt"]);
    write(&world.main.join("a.txt"), "three\n");
    executable(&world.main.join("run.sh"));
    fs::remove_file(world.main.join("gone")).unwrap();
    fs::remove_file(world.main.join("link")).unwrap();
    symlink("/nowhere", world.main.join("link")).unwrap();
    let entries = world.door().status().unwrap().entries;
    let of = |name: &str| entries.iter().find(|e| e.path == Path::new(name)).unwrap();
    assert_eq!(
        (of("a.txt").staged, of("a.txt").unstaged),
        (Some(Side::Modified), Some(Side::Modified))
    );
    assert_eq!(
        (of("run.sh").mode, of("run.sh").unstaged),
        (0o100_755, Some(Side::Modified))
    );
    assert_eq!(of("gone").unstaged, Some(Side::Deleted));
    assert_eq!(
        (of("link").mode, of("link").unstaged),
        (0o120_000, Some(Side::TypeChanged))
    );
    let prints = world.door().dirty().unwrap();
    assert_eq!(prints[Path::new("gone")], Fingerprint::Absent);
    assert!(prints[Path::new("link")].to_string().starts_with("120000:2f6e6f"));
    assert!(prints[Path::new("run.sh")].to_string().starts_with("100755:"));
}

#[test]
fn a_fingerprint_reads_back_from_its_text() {
    let oid = "a".repeat(40);
    for text in [
        "absent",
        "other",
        "120000:2f",
        "160000:",
        &format!("160000:{oid}"),
        &format!("100755:{oid}"),
    ] {
        let print: Fingerprint = text.parse().unwrap();
        assert_eq!(print.to_string(), *text);
    }
    assert!("100644:short".parse::<Fingerprint>().is_err());
}

#[test]
fn an_unreadable_file_does_not_hide_the_others() {
    let world = World::new();
    let files: Vec<PathBuf> = paths(&["a.txt", "missing", "dir"]);
    fs::create_dir(world.main.join("dir")).unwrap();
    let prints = world.door().fingerprints(files).unwrap();
    assert!(matches!(prints[Path::new("a.txt")], Fingerprint::File { .. }));
    assert_eq!(prints[Path::new("missing")], Fingerprint::Absent);
    assert_eq!(prints[Path::new("dir")], Fingerprint::Repository(None));
}

#[test]
fn an_unmerged_path_is_told() {
    let world = World::new();
    world.git(&world.main, &["checkout", "-q", "-b", "o"]);
    world.commit(&world.main, "a.txt", "o\n");
    world.git(&world.main, &["checkout", "-q", "main"]);
    world.commit(&world.main, "a.txt", "m\n");
    assert!(!world.try_git(&world.main, &["merge", "o"]).status.success());
    let entries = world.door().status().unwrap().entries;
    assert!(entries.len() == 1 && entries[0].unmerged);
}

#[test]
fn ignored_files_are_found_by_pattern_only() {
    let world = World::new();
    world.commit(&world.main, ".gitignore", "*.env\nbuild/\n");
    write(&world.main.join("secret/prod.env"), "x");
    write(&world.main.join("other.env"), "x");
    write(&world.main.join("build/out"), "x");
    assert_eq!(
        world.door().ignored(&["secret/**"]).unwrap(),
        paths(&["secret/prod.env"])
    );
    assert_eq!(world.door().ignored(&[]).unwrap(), paths(&[]));
}

#[test]
fn branch_upstream_and_an_unborn_head_are_told() {
    let world = World::new();
    let clone = world.path.join("clone");
    world.git(&world.path, &["clone", "-q", "main", "clone"]);
    let status = world.door_at(&clone).status().unwrap();
    assert_eq!(status.upstream.as_deref(), Some("origin/main"));
    assert_eq!(status.branch.as_deref(), Some("main"));
    let fresh = world.path.join("fresh");
    fs::create_dir(&fresh).unwrap();
    world.git(&fresh, &["init", "-q"]);
    let status = world.door_at(&fresh).status().unwrap();
    assert_eq!((status.head, status.branch.as_deref()), (None, Some("main")));
}

#[test]
fn a_held_index_does_not_keep_the_status_waiting() {
    let world = World::new();
    write(&world.main.join(".git/index.lock"), "");
    write(&world.main.join("a.txt"), "two\n");
    assert_eq!(world.door().status().unwrap().entries.len(), 1);
}
