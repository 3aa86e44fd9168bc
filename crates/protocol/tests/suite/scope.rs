use protocol::facts::path::{Fold, LogicalPath};
use protocol::facts::scope::{Scope, ScopeError};

fn scope(text: &str) -> Scope {
    Scope::parse(text.split(' '), Fold::Exact).expect("legal")
}

fn path(text: &str) -> LogicalPath {
    LogicalPath::parse(text, Fold::Exact).expect("legal")
}

#[test]
fn every_vector_is_right() {
    let mut checked = 0;
    let mut wrong = Vec::new();
    for line in include_str!("scope-vectors.tsv")
        .lines()
        .filter(|line| !line.starts_with('#'))
    {
        let fields: Vec<&str> = line.split('\t').collect();
        let [question, left, right, answer] = fields[..] else {
            panic!("{line}")
        };
        let got = match question {
            "overlaps" => {
                let (left, right) = (scope(left), scope(right));
                assert_eq!(
                    left.overlaps(&right),
                    right.overlaps(&left),
                    "not symmetric: {line}"
                );
                left.overlaps(&right)
            }
            "covers" => scope(left).covers(&path(right)),
            other => panic!("{other}"),
        };
        if got != (answer == "yes") {
            wrong.push(line);
        }
        checked += 1;
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(checked > 400, "only {checked} vectors");
}

fn refusal(entries: &[&str]) -> ScopeError {
    Scope::parse(entries, Fold::Exact).expect_err("illegal")
}

#[test]
fn what_is_no_scope_is_refused_with_the_entry() {
    let text = |text: &str| text.to_string();
    for (entry, error) in [
        ("", ScopeError::Empty(text(""))),
        ("!", ScopeError::Empty(text("!"))),
        ("/", ScopeError::Root(text("/"))),
        ("//", ScopeError::Root(text("//"))),
        ("!/", ScopeError::Root(text("!/"))),
        ("/etc", ScopeError::Absolute(text("/etc"))),
        ("..", ScopeError::Climbs(text(".."))),
        ("src/../../etc", ScopeError::Climbs(text("src/../../etc"))),
        ("!../x", ScopeError::Climbs(text("!../x"))),
        ("**/../x", ScopeError::Climbs(text("**/../x"))),
        ("*/../x", ScopeError::Climbs(text("*/../x"))),
        ("a\tb", ScopeError::Control(text("a\tb"))),
        ("a\nb", ScopeError::Control(text("a\nb"))),
        ("a\u{85}b", ScopeError::Control(text("a\u{85}b"))),
        ("a\u{1}b", ScopeError::Control(text("a\u{1}b"))),
    ] {
        assert_eq!(refusal(&["ok", entry]), error);
    }
    assert_eq!(refusal(&[]), ScopeError::Empty(text("")));
    assert_eq!(refusal(&["!a"]), ScopeError::Empty(text("")));
}

#[test]
fn what_would_grow_without_bound_is_refused_when_it_is_opened() {
    let complex =
        |entries: &[String]| matches!(Scope::parse(entries, Fold::Exact), Err(ScopeError::TooComplex(_)));
    let own = |entries: &[&str]| entries.iter().map(|entry| entry.to_string()).collect::<Vec<_>>();
    assert!(complex(&own(&["**", &format!("!*a{}", "?".repeat(16))])));
    assert!(complex(&own(&[&"a".repeat(4097)])));
    assert!(complex(&own(&[&"?".repeat(1025)])));
    assert!(complex(&(0..2049).map(|n| n.to_string()).collect::<Vec<_>>()));
    assert!(complex(
        &(0..9)
            .map(|n| format!("{n}{}", "?".repeat(1000)))
            .collect::<Vec<_>>()
    ));
    assert!(complex(
        &(0..17)
            .map(|n| format!("{n}{}", "a".repeat(4000)))
            .collect::<Vec<_>>()
    ));

    let real: Vec<String> = (0..400).map(|n| format!("crates/part{n}/src/**/*.rs")).collect();
    assert!(!complex(&real[..300]));
    let names: Vec<String> = (0..1500).map(|n| format!("crates/part{n}/src/lib.rs")).collect();
    assert!(!complex(&names));
    let mut all_but: Vec<String> = (0..300)
        .map(|n| format!("!crates/part{n}/src/generated/"))
        .collect();
    all_but.insert(0, ".".into());
    assert!(!complex(&all_but));
    let kinds = [
        "png", "jpg", "svg", "snap", "lock", "gen.rs", "pb.go", "min.js", "map", "wasm", "so", "a",
    ];
    let mut sources = own(&["src/", "tests/**/*.rs", "docs/**/*.md", "**/*.toml"]);
    sources.extend(kinds.map(|kind| format!("!**/*.{kind}")));
    assert!(!complex(&sources));
}

#[test]
fn entries_are_read_by_the_grammar() {
    for (entries, at, covered) in [
        (".", "anything/at/all", true),
        ("./", "x", true),
        ("src/..", "x", true),
        ("./src/./auth//", "src/auth/a.ts", true),
        ("src/x/../auth", "src/auth/a.ts", true),
        ("src/auth", "src/auth-legacy/a.ts", false),
        ("src/auth", "src/authz.ts", false),
        ("src/auth/", "src/auth", true),
        ("src/auth", "src", false),
        ("KERNEL.md", "KERNEL.md.bak", false),
        ("a**b", "axxb", true),
        ("***", "a/b", false),
        ("***", "a", true),
        ("src/**/**", "src", false),
        ("src/**/**/x", "src/x", true),
        ("*", ".env", true),
        ("?env", ".env", true),
        (r"\!a", "!a", true),
        (r"!!a .", "!a", false),
        (r"!!a .", "a", true),
        (r"a\?", "a?", true),
        (r"a\?", "ab", false),
        (r"a\\*", r"a\b", true),
        (r"a\\*", "ab", false),
        (r"a\b", r"a\b", true),
        (r"a\b", "ab", false),
        (r"a\", r"a\", true),
        (r"\*\*", "**", true),
        (r"\*\*", "a", false),
        ("été/", "e\u{301}te\u{301}/x", true),
        ("e\u{301}*", "étage", true),
        ("日?", "日本", true),
        ("!. src", "src/a", false),
        (". !*", ".gitignore", false),
        (". !**", "a/b", false),
        ("src/gen/keep src/ !src/gen/", "src/gen/keep", false),
        ("Src", "src/a", false),
    ] {
        assert_eq!(scope(entries).covers(&path(at)), covered, "{entries} {at}");
    }
    assert!(scope(".").covers(&LogicalPath::root()));
    assert!(!scope("**").covers(&LogicalPath::root()));
    assert!(scope(". !**").overlaps(&scope(".")), "the root itself is left");
    assert!(!scope(". !**").overlaps(&scope("**")));
}

#[test]
fn where_one_side_folds_case_both_do() {
    let fold = |text: &str| Scope::parse(text.split(' '), Fold::Case).unwrap();
    let folded = |text: &str| LogicalPath::parse(text, Fold::Case).unwrap();
    assert!(fold("SRC/*.RS").covers(&path("src/a.rs")));
    assert!(fold("src/").covers(&path("SRC/a")));
    assert!(scope("Src/*.RS").covers(&folded("sRC/A.rs")));
    assert!(!scope("Src/ !SRC/GEN").covers(&folded("src/Gen/x")));
    assert!(scope("Src/A").overlaps(&fold("sRC/*")));
    assert!(!scope("Src/A").overlaps(&scope("sRC/*")));
    assert!(fold("src").contains(&scope("SRC/x")));
    assert!(scope("src/A").names_file_exactly(&folded("SRC/a")));
}

#[test]
fn a_domain_holds_its_children() {
    for (domain, child, held) in [
        (".", "src", true),
        (".", ".", true),
        ("**", ".", false),
        ("src", "src/auth/*.rs", true),
        ("src/", "src", true),
        ("src/*.rs", "src", false),
        ("src/**", "src/*/x", true),
        ("src/ !src/gen/", "src/a", true),
        ("src/ !src/gen/", "src/", false),
        ("src/ !src/gen/", "src/ !src/gen/", true),
        ("src/ !src/gen/", "src/ !src/gen", true),
        ("src/ !src/gen/*.rs", "src/ !src/gen/", true),
        ("src/a src/b", "src/", false),
        ("*a* *b*", "*a?", true),
        ("src tests", "tests/x src/y", true),
        ("src", "src-old", false),
        (r"a\*b", "a*b", false),
        ("a*b", r"a\*b/", false),
        ("a*b/", r"a\*b", true),
    ] {
        assert_eq!(
            scope(domain).contains(&scope(child)),
            held,
            "{domain} holds {child}"
        );
    }
}

#[test]
fn a_store_finds_rivals_by_literal_prefix() {
    let scope = scope(r"src/auth/ src/*.rs **/x . * a\*b/c d?e/f src/lib.rs !src/gen");
    let prefixes = ["src/auth", "src", "", "", "", "a*b/c", "", "src/lib.rs"];
    assert_eq!(scope.literal_prefixes(), prefixes);
}

#[test]
fn a_scope_knows_the_files_that_it_names() {
    let named = scope(r"src/lib.rs docs/ *.md a\*b !docs/x");
    assert!(named.names_file_exactly(&path("src/lib.rs")));
    assert!(named.names_file_exactly(&path("a*b")));
    assert!(!named.names_file_exactly(&path("src/lib.rs/x")));
    assert!(!named.names_file_exactly(&path("docs")));
    assert!(!named.names_file_exactly(&path("a.md")));
    assert!(!scope("a !a").names_file_exactly(&path("a")));
    assert!(!scope(".").names_file_exactly(&LogicalPath::root()));
}

#[test]
fn a_path_becomes_a_scope_of_itself() {
    for text in ["src/a", "!a", "a*?", r"a\*b", r"\", "**", "{a,b}/[c]", "e\u{301}"] {
        let at = path(text);
        let file = Scope::from_file(&at).unwrap();
        assert!(file.names_file_exactly(&at), "{text}");
        let directory = Scope::from_path(&at).unwrap();
        assert!(
            directory.covers(&at.join("below", Fold::Exact).unwrap()),
            "{text}"
        );
        assert!(!directory.names_file_exactly(&at), "{text}");
        assert!(!directory.covers(&path("other")), "{text}");
    }
    assert!(Scope::from_path(&LogicalPath::root()).unwrap().covers(&path("x")));
    assert!(matches!(
        Scope::from_file(&path("a\tb")),
        Err(ScopeError::Control(_))
    ));
    let folded = LogicalPath::parse("Src/A", Fold::Case).unwrap();
    assert!(Scope::from_file(&folded).unwrap().covers(&path("sRC/a")));
}

#[test]
fn a_union_covers_what_either_does_or_is_refused() {
    let union = scope("src/ !src/gen/").union(&scope("docs/")).unwrap();
    assert!(union.covers(&path("docs/x")) && union.covers(&path("src/x")));
    assert!(!union.covers(&path("src/gen/x")));
    let entangled = scope("src/ !src/gen/").union(&scope("src/gen/keep"));
    assert_eq!(entangled, Err(ScopeError::Entangled("!src/gen/".into())));
    assert!(
        scope("src/ !src/gen/")
            .union(&scope("src/x src/gen !src/gen/"))
            .is_ok()
    );
}

#[test]
fn a_stored_scope_keeps_its_words() {
    let given = scope("src/ ./docs/*.md !src/gen/");
    let stored = serde_json::to_string(&given).unwrap();
    assert_eq!(stored, r#"["src/","./docs/*.md","!src/gen/"]"#);
    assert_eq!(serde_json::from_str::<Scope>(&stored).unwrap(), given);
    let folded = Scope::parse(["Src/"], Fold::Case).unwrap();
    let stored = serde_json::to_string(&folded).unwrap();
    assert_eq!(stored, r#"{"fold":true,"entries":["Src/"]}"#);
    let read = serde_json::from_str::<Scope>(&stored).unwrap();
    assert_eq!(read, folded);
    assert!(read.covers(&path("sRC/x")));
    for broken in ["[]", r#"["../x"]"#, r#"["!a"]"#, r#""a""#] {
        assert!(serde_json::from_str::<Scope>(broken).is_err(), "{broken}");
    }
}

#[test]
fn scopes_are_equal_in_any_order_and_spelling() {
    assert_eq!(scope("a b !c"), scope("!c ./b a a"));
    assert_eq!(scope("a/**/**/b"), scope("a/**/b"));
    assert_ne!(scope("a"), scope("a/"));
    assert_ne!(scope("a*b"), scope(r"a\*b"));
    assert_ne!(scope("a b"), scope("a !b"));
    assert_ne!(scope("a"), Scope::parse(["a"], Fold::Case).unwrap());
}

#[test]
fn two_accepted_scopes_answer_fast_at_worst() {
    let started = std::time::Instant::now();
    let globs = |letter: char| format!("*{}", format!("{letter}*").repeat(500));
    assert!(scope(&globs('a')).overlaps(&scope(&globs('b'))));
    let costly = |letter: char| scope(&format!("** !**/*{letter}{} !**/{letter}*", "?".repeat(7)));
    assert!(costly('a').overlaps(&costly('b')));
    let narrow = |letter: char| format!("*{letter}{}", "?".repeat(8));
    let apart = scope(&format!("{} !{}", narrow('a'), narrow('c')));
    assert!(!apart.overlaps(&scope(&format!("{} !{}", narrow('b'), narrow('d')))));
    assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
}
