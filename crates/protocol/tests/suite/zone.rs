use protocol::facts::path::{Fold, LogicalPath};
use protocol::facts::scope::{Scope, ScopeError};
use protocol::facts::zone::{Coverage, Zone, ZoneError, ZoneLists, Zones};

use Zone::{Kernel, Personal, Project, Secret};

fn path(text: &str) -> LogicalPath {
    LogicalPath::parse(text, Fold::Exact).expect("legal")
}

fn scope(text: &str) -> Scope {
    Scope::parse(text.split(' '), Fold::Exact).expect("legal")
}

fn built_in(legacy_layout: bool) -> Zones {
    let hooks = [
        path(".githooks"),
        LogicalPath::from_tree(".git/hooks", Fold::Exact).expect("legal"),
    ];
    Zones::new(&ZoneLists::default(), legacy_layout, &hooks, Fold::Exact).expect("legal")
}

fn given(list: &[&str]) -> Option<Vec<String>> {
    Some(list.iter().map(|entry| entry.to_string()).collect())
}

fn configured(lists: &ZoneLists) -> Zones {
    Zones::new(lists, true, &[], Fold::Exact).expect("legal")
}

#[test]
fn every_built_in_path_has_its_zone() {
    let zones = built_in(true);
    for (text, zone) in [
        ("brain.yml", Kernel),
        ("brain.local.yml", Kernel),
        ("brain-compose.yml", Kernel),
        ("brain-compose.local.yml", Kernel),
        ("brain-compose.yaml", Project),
        ("sub/brain.yml", Project),
        (".claude/settings.json", Kernel),
        (".claude/settings.local.json", Kernel),
        (".claude/commands/x.md", Project),
        (".codex/config.toml", Kernel),
        (".codex", Kernel),
        (".gemini/settings.json", Kernel),
        (".gemini/other.json", Project),
        (".cursor/hooks.json", Kernel),
        (".cursor/rules", Project),
        (".opencode/x/y", Kernel),
        (".mcp.json", Kernel),
        (".githooks/pre-commit", Kernel),
        (".githooks-old/x", Project),
        ("KERNEL.md", Kernel),
        ("CLAUDE.md", Kernel),
        ("AGENTS.md", Kernel),
        ("PATHS.md", Kernel),
        ("brain-constitution.md", Kernel),
        ("BRAIN-INDEX.md", Kernel),
        ("KERNEL.md.bak", Project),
        ("kernel.md", Project),
        ("docs/KERNEL.md", Project),
        ("src/auth/../../KERNEL.md", Kernel),
        ("agents/x.md", Kernel),
        ("agents", Kernel),
        ("agents/été.md", Kernel),
        ("agents/a b.md", Kernel),
        ("agents/tab\there.md", Kernel),
        ("agents-old/x.md", Project),
        ("src/agents/x.md", Project),
        ("scripts/run.sh", Kernel),
        ("profil/style.md", Kernel),
        ("profil/capital.md", Personal),
        ("profil/objectifs.md", Personal),
        ("progression/2024/x.md", Personal),
        ("MYSECRETS", Secret),
        ("a/b/MYSECRETS", Secret),
        ("MYSECRETS/x", Secret),
        ("MYSECRETS.md", Project),
        ("brain-secrets/key", Secret),
        ("x/brain-secrets/key", Secret),
        (".env", Secret),
        ("apps/web/.env", Secret),
        ("apps/web/.env.local", Secret),
        (".env.production", Secret),
        (".env.example.local", Secret),
        (".env.exampl", Secret),
        (".env.", Secret),
        (".env.local/.env.example", Secret),
        (".env.example/.env.local", Secret),
        (".env.example", Project),
        ("apps/web/.env.example", Project),
        ("agents/.env.example", Kernel),
        ("agents/.env", Secret),
        (".environment", Project),
        ("x.env", Project),
        (".envrc", Project),
        ("src/lib.rs", Project),
        (".", Project),
    ] {
        assert_eq!(zones.zone_of(&path(text)), zone, "{text}");
    }
    let hook = LogicalPath::from_tree(".git/hooks/pre-push", Fold::Exact).unwrap();
    assert_eq!(zones.zone_of(&hook), Kernel);
}

#[test]
fn folders_of_a_legacy_brain_are_kernel_only_there() {
    let zones = built_in(false);
    for text in ["agents/x.md", "profil/style.md", "scripts/run.sh"] {
        assert_eq!(zones.zone_of(&path(text)), Project, "{text}");
    }
    assert_eq!(zones.zone_of(&path("profil/capital.md")), Personal);
    assert_eq!(zones.zone_of(&path("KERNEL.md")), Kernel);
}

#[test]
fn a_configured_list_replaces_its_zone_and_secret_only_grows() {
    let zones = configured(&ZoneLists {
        kernel: given(&["core/"]),
        personal: given(&["diary/"]),
        secret: given(&["keys/*.pem", ".env.example"]),
        project: None,
    });
    for (text, zone) in [
        ("core/x", Kernel),
        ("KERNEL.md", Project),
        ("agents/x", Project),
        ("brain.yml", Kernel),
        (".claude/settings.json", Kernel),
        ("diary/x", Personal),
        ("profil/capital.md", Project),
        ("keys/a.pem", Secret),
        ("keys/a.txt", Project),
        ("sub/keys/a.pem", Project),
        ("sub/.env", Secret),
        (".env.example", Secret),
        ("sub/.env.example", Project),
    ] {
        assert_eq!(zones.zone_of(&path(text)), zone, "{text}");
    }
    let emptied = configured(&ZoneLists {
        kernel: given(&[]),
        secret: given(&[]),
        ..ZoneLists::default()
    });
    assert_eq!(emptied.zone_of(&path("KERNEL.md")), Project);
    assert_eq!(emptied.zone_of(&path(".mcp.json")), Kernel);
    assert_eq!(emptied.zone_of(&path(".env")), Secret);
    assert_eq!(emptied.zone_of(&path("profil/capital.md")), Personal);
}

#[test]
fn most_components_win_then_the_stricter() {
    let zones = configured(&ZoneLists {
        kernel: given(&["a/", "b/c/d/", "same/x", "deep/**"]),
        personal: given(&["a/p/", "b/", "same/x"]),
        project: given(&["a/p/free/", "b/c/", "same/x", "deep/ok/", "brain.yml"]),
        secret: given(&["a/"]),
    });
    for (text, zone) in [
        ("a/p/free/x", Secret),
        ("b/x", Personal),
        ("b/c/x", Project),
        ("b/c/d/x", Kernel),
        ("same/x", Kernel),
        ("deep/x", Kernel),
        ("deep/ok/x", Project),
        ("brain.yml", Kernel),
    ] {
        assert_eq!(zones.zone_of(&path(text)), zone, "{text}");
    }
    assert!(Project < Personal && Personal < Kernel && Kernel < Secret);
}

#[test]
fn a_list_that_is_no_policy_is_refused() {
    let refused = |lists: &ZoneLists| Zones::new(lists, true, &[], Fold::Exact).unwrap_err();
    assert_eq!(
        refused(&ZoneLists {
            kernel: given(&["../x"]),
            ..ZoneLists::default()
        }),
        ZoneError::Pattern {
            zone: Kernel,
            error: ScopeError::Climbs("../x".into())
        }
    );
    assert_eq!(
        refused(&ZoneLists {
            secret: given(&["!.env"]),
            ..ZoneLists::default()
        }),
        ZoneError::Exclusion {
            zone: Secret,
            pattern: "!.env".into()
        }
    );
    let costly = format!("**/*a{}", "?".repeat(16));
    assert_eq!(
        refused(&ZoneLists {
            personal: given(&[&costly]),
            ..ZoneLists::default()
        }),
        ZoneError::TooComplex
    );
}

#[test]
fn an_entry_has_the_zone_of_its_literal_part() {
    let zones = built_in(true);
    let scope =
        scope("agents/ agents/*.md agents* . * **/x KERN* .env* src/**/.env profil/capital.md !agents/x");
    let got: Vec<_> = zones
        .entry_zones(&scope)
        .into_iter()
        .map(|(entry, zone)| (entry.as_str(), zone))
        .collect();
    assert_eq!(
        got,
        [
            ("agents/", Kernel),
            ("agents/*.md", Kernel),
            ("agents*", Kernel),
            (".", Project),
            ("*", Project),
            ("**/x", Project),
            ("KERN*", Project),
            (".env*", Secret),
            ("src/**/.env", Project),
            ("profil/capital.md", Personal),
        ]
    );
}

#[test]
fn an_entry_covers_no_path_of_another_zone() {
    let zones = built_in(true);
    for (entries, at, coverage) in [
        (".", "src/x", Coverage::Yes),
        (".", "KERNEL.md", Coverage::OtherZone(Kernel)),
        (". KERNEL.md", "KERNEL.md", Coverage::Yes),
        ("KERNEL.md .", "KERNEL.md", Coverage::Yes),
        ("src", "KERNEL.md", Coverage::No),
        (". KERNEL.md !KERNEL.md", "KERNEL.md", Coverage::No),
        ("src", "src/.env", Coverage::OtherZone(Secret)),
        ("profil/", "profil/style.md", Coverage::Yes),
        ("profil/", "profil/capital.md", Coverage::OtherZone(Personal)),
        ("src/agents", "src/agents/x", Coverage::Yes),
        ("src", "src/.env.example", Coverage::Yes),
    ] {
        assert_eq!(
            zones.coverage(&scope(entries), &path(at)),
            coverage,
            "{entries} {at}"
        );
    }
}

#[test]
fn scopes_overlap_only_where_both_cover() {
    let zones = built_in(true);
    for (mine, theirs, overlap) in [
        (".", ".", true),
        (".", "KERNEL.md", false),
        (".", "agents/", false),
        (". agents/x", "agents/", true),
        ("src", "src/auth", true),
        ("src", "docs", false),
        ("src", "src/.env", false),
        ("**/.env", "src/", false),
        ("**/.env.*", "src/", true),
        ("src/.env", "src/.env", true),
        ("profil/", "profil/capital.md", false),
        ("profil/", "profil/*.md", true),
        ("profil/c*.md", "profil/?apital.md", false),
        ("profil/c*.md", "profil/?apita*.md", true),
        ("**/MYSECRETS", "**/*", false),
        ("**/.env.*", "**/.env.exampl?", true),
        ("**/.env.*", "**/.env.exampl", false),
        ("*", "KERNEL.*", true),
        ("*", "KERNEL.?d", true),
        ("*.md !K*", "KERNEL*", false),
        ("agents?x", "agents?x", false),
        ("src !src/*", "src/*", false),
        ("src !src/a", "src/a src/.env", false),
    ] {
        assert_eq!(
            zones.overlap(&scope(mine), &scope(theirs)),
            overlap,
            "{mine} / {theirs}"
        );
        assert_eq!(
            zones.overlap(&scope(theirs), &scope(mine)),
            overlap,
            "{theirs} / {mine}"
        );
    }
}

/// The walk over zones against asking every short path.
#[test]
fn an_overlap_in_zones_is_exact() {
    let zones = configured(&ZoneLists {
        kernel: given(&["a/", "b/?", "*b"]),
        personal: given(&["a/b/", "b/a", "?a"]),
        project: given(&["a/b/a", "bb/"]),
        secret: given(&["**/ab"]),
    });
    let mut paths = vec![String::new()];
    let mut last = paths.clone();
    for _ in 0..5 {
        let longer = |path: &String| ["a", "b", "c", "d", "/"].map(|letter| format!("{path}{letter}"));
        last = last
            .iter()
            .flat_map(longer)
            .filter(|path| !path.starts_with('/') && !path.contains("//"))
            .collect();
        paths.extend(last.iter().filter(|path| !path.ends_with('/')).cloned());
    }
    let paths: Vec<_> = paths[1..].iter().map(|text| path(text)).collect();
    let scopes = [
        ".",
        "a",
        "a/*",
        "*",
        "?a",
        "**/a",
        "b/",
        "b/?",
        "a/b",
        "a/b/a",
        "*/*",
        "*b/ !bb/",
        ". !a/ !b/",
        "ab",
        "**/ab",
        "a/b/* b",
        "?? !?c",
        "bb",
        "a*/",
        "c/** !**/c",
    ];
    let scopes = scopes.map(scope);
    let covered: Vec<Vec<bool>> = scopes
        .iter()
        .map(|scope| {
            paths
                .iter()
                .map(|path| zones.coverage(scope, path) == Coverage::Yes)
                .collect()
        })
        .collect();
    let mut counts = [0, 0, 0];
    for (mine, left) in scopes.iter().zip(&covered) {
        for (theirs, right) in scopes.iter().zip(&covered) {
            let expected = left.iter().zip(right).any(|(a, b)| *a && *b);
            assert_eq!(zones.overlap(mine, theirs), expected, "{mine} / {theirs}");
            counts[usize::from(expected)] += 1;
            counts[2] += usize::from(!expected && mine.overlaps(theirs));
        }
    }
    assert!(counts.iter().all(|count| *count > 0), "{counts:?}");
}

#[test]
fn zones_fold_case_where_the_volume_does() {
    let zones = Zones::new(&ZoneLists::default(), true, &[], Fold::Case).unwrap();
    for (text, zone) in [
        ("kernel.MD", Kernel),
        ("mysecrets", Secret),
        ("x/.ENV.Local", Secret),
        (".env.EXAMPLE", Project),
    ] {
        assert_eq!(zones.zone_of(&path(text)), zone, "{text}");
    }
    assert_eq!(
        built_in(true).zone_of(&LogicalPath::parse("Kernel.md", Fold::Case).unwrap()),
        Kernel
    );
    let folded = Scope::parse(["kernel.md"], Fold::Case).unwrap();
    assert_eq!(built_in(true).entry_zones(&folded)[0].1, Kernel);
    assert!(zones.overlap(&scope("kernel.md"), &scope("KERNEL.md")));
}

#[test]
fn the_policy_has_one_text() {
    let lists = |kernel: &[&str]| {
        configured(&ZoneLists {
            kernel: given(kernel),
            ..ZoneLists::default()
        })
        .canonical()
    };
    assert_eq!(lists(&["a", "b/"]), lists(&["./b/", "a", "a"]));
    assert_ne!(lists(&["a"]), lists(&["b"]));
    assert_ne!(lists(&["a*"]), lists(&[r"a\*"]));
    let folded = Zones::new(&ZoneLists::default(), true, &[], Fold::Case).unwrap();
    assert_ne!(built_in(true).canonical(), folded.canonical());
    assert!(lists(&["a"]).starts_with("exact\nkernel glob .claude/settings*.json\n"));
}

/// A folder may be of a zone by a pattern for what lies in it.
#[test]
fn an_entry_is_of_the_zone_that_a_pattern_gives_to_all_below_it() {
    let zones = configured(&ZoneLists {
        kernel: given(&["agents/**", "laws/*/", "h*/law/**", "docs/*.md"]),
        personal: given(&["agents/me/**"]),
        ..ZoneLists::default()
    });
    for (entry, zone) in [
        ("agents/", Kernel),
        ("agents", Kernel),
        ("agents/*.md", Kernel),
        ("agents/x/", Kernel),
        ("agents/me/", Personal),
        ("agents-old/", Project),
        ("laws/", Kernel),
        ("house/law/", Kernel),
        ("house/", Project),
        // Only some of what lies there is of the zone, and the entry covers the rest.
        ("docs/", Project),
        (".", Project),
        ("*", Project),
        ("**/agents/", Project),
    ] {
        let scope = scope(entry);
        let zones: Vec<Zone> = zones.entry_zones(&scope).into_iter().map(|it| it.1).collect();
        assert_eq!(zones, [zone], "{entry}");
    }
    let covers = |entry: &str, at: &str| zones.coverage(&scope(entry), &path(at));
    assert_eq!(covers("agents/", "agents/x.md"), Coverage::Yes);
    assert_eq!(covers("agents/", "agents/me/x.md"), Coverage::OtherZone(Personal));
    assert_eq!(covers(".", "agents/x.md"), Coverage::OtherZone(Kernel));
    assert!(zones.overlap(&scope("agents/"), &scope("agents/x.md")));
    assert!(!zones.overlap(&scope("."), &scope("agents/")));
}
