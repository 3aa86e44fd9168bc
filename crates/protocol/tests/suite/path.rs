use protocol::facts::path::{Fold, LogicalPath, PathError};

fn outcome(text: &str, fold: Fold) -> String {
    match LogicalPath::parse(text, fold) {
        Ok(path) => path.key().to_string(),
        Err(PathError::Empty) => "EMPTY".into(),
        Err(PathError::Outside(_)) => "OUTSIDE".into(),
        Err(PathError::Reserved(_)) => "RESERVED".into(),
        Err(PathError::Control(_)) => "CONTROL".into(),
    }
}

#[test]
fn every_spelling_of_a_place_has_one_key() {
    let table = [
        ("src/auth/a.ts", "src/auth/a.ts"),
        ("./src/auth/a.ts", "src/auth/a.ts"),
        ("src//auth/a.ts", "src/auth/a.ts"),
        ("src/auth/./a.ts", "src/auth/a.ts"),
        ("src/auth/../auth/a.ts", "src/auth/a.ts"),
        ("src/x/../auth/y/../a.ts", "src/auth/a.ts"),
        (".//././src/auth///a.ts", "src/auth/a.ts"),
        ("src/auth/a.ts/", "src/auth/a.ts"),
        ("src/auth/a.ts/.", "src/auth/a.ts"),
        ("src/auth/", "src/auth"),
        ("src/auth/../../KERNEL.md", "KERNEL.md"),
        ("src/auth/../../agents/x.md", "agents/x.md"),
        ("src/..", ""),
        (".", ""),
        ("./", ""),
        ("a/b/../..", ""),
        ("a/../.", ""),
        ("..", "OUTSIDE"),
        ("../x", "OUTSIDE"),
        ("src/../../x", "OUTSIDE"),
        ("a/../../a", "OUTSIDE"),
        ("./..", "OUTSIDE"),
        ("/", "OUTSIDE"),
        ("/tmp/x", "OUTSIDE"),
        ("//src", "OUTSIDE"),
        ("", "EMPTY"),
        ("~/x", "~/x"),
        (" ", " "),
        (" src/a ", " src/a "),
        ("...", "..."),
        ("..a/b..", "..a/b.."),
        (".git", "RESERVED"),
        (".git/config", "RESERVED"),
        (".GIT/config", "RESERVED"),
        ("sub/.Git/hooks/x", "RESERVED"),
        (".brain", "RESERVED"),
        (".BRAIN/brain.db", "RESERVED"),
        ("a/.brain/x", "RESERVED"),
        (".git/../a", "a"),
        (".gitignore", ".gitignore"),
        (".github/x", ".github/x"),
        (".brain-old/x", ".brain-old/x"),
        ("git/x", "git/x"),
        ("brain.yml", "brain.yml"),
        (r"a\b", r"a\b"),
        (r"src\..\x", r"src\..\x"),
        (r"..\x", r"..\x"),
        ("src-old/x", "src-old/x"),
        ("agents-old/", "agents-old"),
        ("KERNEL.md.bak", "KERNEL.md.bak"),
        ("Src/A.ts", "Src/A.ts"),
        ("agents/été.md", "agents/été.md"),
        ("agents/e\u{301}te\u{301}.md", "agents/été.md"),
        ("\u{212B}", "\u{C5}"),
        ("a b/c d", "a b/c d"),
        ("agents/tab\there.md", "agents/tab\there.md"),
        ("new\nline", "new\nline"),
        ("a\0b", "CONTROL"),
        ("app/[slug]/page.tsx", "app/[slug]/page.tsx"),
        ("*", "*"),
        ("!a", "!a"),
        ("日本/語", "日本/語"),
    ];
    for (text, expected) in table {
        assert_eq!(outcome(text, Fold::Exact), expected, "{text:?}");
    }
    assert!(table.len() >= 60);
}

#[test]
fn a_volume_that_folds_case_has_one_key_per_place() {
    for (text, expected) in [
        ("SRC/Auth/A.ts", "src/auth/a.ts"),
        ("KERNEL.md", "kernel.md"),
        ("Agents/E\u{301}TE\u{301}.md", "agents/été.md"),
        ("ΟΔΟΣ/ΑΣ", "οδοσ/ασ"),
        ("already/lower", "already/lower"),
        (".gIt/x", "RESERVED"),
        ("\u{212A}", "k"),
    ] {
        assert_eq!(outcome(text, Fold::Case), expected, "{text:?}");
    }
}

fn path(text: &str) -> LogicalPath {
    LogicalPath::parse(text, Fold::Exact).expect("legal")
}

fn folded(text: &str) -> LogicalPath {
    LogicalPath::parse(text, Fold::Case).expect("legal")
}

#[test]
fn a_path_is_shown_as_first_given_and_compared_by_its_key() {
    let (decomposed, composed) = (path("./e\u{301}te\u{301}//x"), path("été/x"));
    assert_eq!(decomposed, composed);
    assert_eq!(decomposed.cmp(&composed), std::cmp::Ordering::Equal);
    assert_eq!(decomposed.to_string(), "e\u{301}te\u{301}/x");
    assert_eq!(std::collections::HashSet::from([decomposed, composed]).len(), 1);
    assert_eq!(folded("Src/A").as_str(), "Src/A");
    assert_eq!(folded("Src/A"), folded("sRC/a"));
    assert_ne!(path("Src/A"), path("sRC/a"));
    assert_eq!(LogicalPath::root().to_string(), ".");
    assert!(path("a") < path("b"));
}

#[test]
fn a_path_knows_what_holds_it() {
    let deep = folded("Src/Auth/A.ts");
    assert_eq!(
        deep.ancestors_or_self().collect::<Vec<_>>(),
        ["src/auth/a.ts", "src/auth", "src", ""]
    );
    assert_eq!(deep.components().collect::<Vec<_>>(), ["Src", "Auth", "A.ts"]);
    assert_eq!(deep.parent().unwrap().as_str(), "Src/Auth");
    assert_eq!(deep.parent().unwrap().key(), "src/auth");
    assert_eq!(path("a").parent(), Some(LogicalPath::root()));
    assert_eq!(LogicalPath::root().parent(), None);
    assert_eq!(LogicalPath::root().components().count(), 0);
    assert_eq!(LogicalPath::root().ancestors_or_self().collect::<Vec<_>>(), [""]);
    assert!(path("src/auth").starts_with(&path("src")));
    assert!(path("src").starts_with(&path("src")));
    assert!(path("src").starts_with(&LogicalPath::root()));
    assert!(!path("src-old/x").starts_with(&path("src")));
    assert!(!path("src").starts_with(&path("src/auth")));
}

#[test]
fn a_path_is_joined_from_where_it_stands() {
    let src = path("src");
    assert_eq!(src.join("a.ts", Fold::Exact), Ok(path("src/a.ts")));
    assert_eq!(src.join("../x", Fold::Exact), Ok(path("x")));
    assert_eq!(LogicalPath::root().join("x", Fold::Exact), Ok(path("x")));
    assert_eq!(
        src.join("../../x", Fold::Exact),
        Err(PathError::Outside("src/../../x".into()))
    );
    assert_eq!(src.join("/x", Fold::Exact), Err(PathError::Outside("/x".into())));
    assert_eq!(src.join("", Fold::Exact), Err(PathError::Empty));
    assert!(matches!(
        src.join(".git", Fold::Exact),
        Err(PathError::Reserved(_))
    ));
}

#[test]
fn an_audit_can_name_what_nobody_may_write() {
    let committed = LogicalPath::from_tree("sub/.Brain/x", Fold::Exact).unwrap();
    assert_eq!(committed.reserved(), Some(".Brain"));
    assert_eq!(path("src/x").reserved(), None);
    assert!(LogicalPath::from_tree("../x", Fold::Exact).is_err());
}

#[test]
fn a_stored_path_is_a_string_until_case_shows() {
    for (given, stored) in [
        (path("src/A.ts"), r#""src/A.ts""#),
        (path("e\u{301}"), "\"e\u{301}\""),
        (folded("src/a.ts"), r#""src/a.ts""#),
        (folded("src/A.ts"), r#"["src/A.ts","src/a.ts"]"#),
        (LogicalPath::root(), r#"".""#),
    ] {
        assert_eq!(serde_json::to_string(&given).unwrap(), stored);
        let read: LogicalPath = serde_json::from_str(stored).unwrap();
        assert_eq!((read.key(), read.as_str()), (given.key(), given.as_str()));
    }
    for broken in [r#""""#, r#""../x""#, r#"["a","/b"]"#, "3"] {
        assert!(serde_json::from_str::<LogicalPath>(broken).is_err(), "{broken}");
    }
}
