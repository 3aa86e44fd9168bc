//! What keeps the documents and the walls true: read from the sources, without building anything.
//!
//! Two lists in the documents are made here. `UPDATE_DOCS=1` writes them anew; without it they are compared.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .expect("the workspace")
}

fn read(path: impl AsRef<Path>) -> String {
    let path = path.as_ref();
    fs::read_to_string(path).unwrap_or_else(|why| panic!("{}: {why}", path.display()))
}

/// The files below a folder that end so, in order.
fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten() {
            let path = entry.expect("an entry").path();
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            if path.is_dir() && name != "target" && !name.starts_with('.') {
                folders.push(path);
            } else if name.ends_with(ending) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// The crates by name, with their folders.
fn crates() -> BTreeMap<String, PathBuf> {
    let folders = fs::read_dir(root().join("crates")).expect("the crates");
    let named = folders.map(|entry| {
        let path = entry.expect("an entry").path();
        (
            path.file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
            path,
        )
    });
    named
        .filter(|(_, path)| path.join("Cargo.toml").exists())
        .collect()
}

/// Compares what stands between two marks with what should, or writes it there when asked to.
fn holds(document: &str, mark: &str, wanted: &str) {
    let path = root().join(document);
    let text = read(&path);
    let (begin, end) = (format!("<!-- {mark} -->\n"), format!("<!-- end of {mark} -->"));
    let (before, rest) = text
        .split_once(&begin)
        .expect("the mark at which the list begins");
    let (found, after) = rest.split_once(&end).expect("the mark at which the list ends");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(path, format!("{before}{begin}{wanted}{end}{after}")).expect("the document can be written");
    } else {
        assert!(
            found == wanted,
            "{document} is not current; `UPDATE_DOCS=1 cargo test -p testkit --test tidy` makes it so.\n\
             It should say:\n{wanted}"
        );
    }
}

/// The first paragraph of a module's own comment, on one line.
fn sentence(file: &Path) -> String {
    let text = read(file);
    let lines = text.lines().map_while(|line| line.strip_prefix("//! "));
    let sentence = lines.collect::<Vec<_>>().join(" ");
    assert!(!sentence.is_empty(), "{} does not say what it is", file.display());
    sentence
}

/// The modules that a folder of sources holds, by name.
fn modules(folder: &Path) -> Vec<(String, PathBuf)> {
    let entries = fs::read_dir(folder).expect("a folder of sources");
    let mut found: Vec<_> = entries
        .filter_map(|entry| {
            let path = entry.expect("an entry").path();
            let name = path.file_stem()?.to_string_lossy().into_owned();
            let inner = path.join("mod.rs");
            let is_module = path.extension().is_some_and(|it| it == "rs");
            match is_module && !["lib", "main", "mod"].contains(&name.as_str()) {
                true => Some((name, path)),
                false => inner.exists().then_some((name, inner)),
            }
        })
        .collect();
    found.sort();
    found
}

#[test]
fn architecture_holds_the_sentence_of_every_module() {
    let mut list = String::new();
    for (name, folder) in crates() {
        let src = folder.join("src");
        let top = [src.join("lib.rs"), src.join("main.rs")]
            .into_iter()
            .find(|it| it.exists());
        list += &format!("\n**`{name}`** — {}\n\n", sentence(&top.expect("a crate's top")));
        for (module, file) in modules(&src) {
            list += &format!("* `{module}` — {}\n", sentence(&file));
            let inner = src.join(&module);
            // The protocol's nouns and rules are rooms of their own; elsewhere a module keeps its inside to itself.
            if name == "protocol" && inner.is_dir() {
                for (module, file) in modules(&inner) {
                    list += &format!("  * `{module}` — {}\n", sentence(&file));
                }
            }
        }
    }
    assert!(list.lines().count() > 40, "hardly any module was found");
    holds("ARCHITECTURE.md", "rooms", &(list.trim_end().to_owned() + "\n\n"));
}

/// The tests that are told a field case, by the number of the case.
fn told() -> BTreeMap<u32, BTreeSet<String>> {
    let mut told: BTreeMap<u32, BTreeSet<String>> = BTreeMap::new();
    for (name, folder) in crates() {
        for file in files(&folder, ".rs") {
            for line in read(file).lines() {
                let Some(rest) = line.trim_start().strip_prefix("fn o_") else {
                    continue;
                };
                let (case, rest) = rest.split_once('_').expect("a sentence behind the number");
                let test = rest.split('(').next().unwrap_or_default();
                let case = case.parse().expect("the number of a case");
                told.entry(case).or_default().insert(format!("`{name}` {test}"));
            }
        }
    }
    told
}

#[test]
fn every_field_case_shows_the_tests_that_tell_it() {
    let mut told = told();
    assert!(told.len() > 3, "hardly any case is told");
    let text = read(root().join("docs/testing.md"));
    let rows = text.lines().filter(|line| line.starts_with("| O-"));
    let mut list = String::from("| case | part | what happened | tests |\n| --- | --- | --- | --- |\n");
    for row in rows {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [_, id, part, what, ..] = cells[..] else {
            panic!("a row without its cells: {row}")
        };
        let number = id["O-".len()..].parse().expect("the number of a case");
        let tests = told.remove(&number).unwrap_or_default();
        let tests: Vec<String> = tests.iter().map(|it| it.replace('_', " ")).collect();
        list += &format!("| {id} | {part} | {what} | {} |\n", tests.join("; "));
    }
    assert!(
        told.is_empty(),
        "cases without a row in docs/testing.md: {told:?}"
    );
    holds("docs/testing.md", "cases", &list);
}

#[test]
fn every_link_in_the_documents_leads_somewhere() {
    let mut followed = 0;
    for file in files(&root(), ".md") {
        for part in read(&file).split("](").skip(1) {
            let target = part.split([')', '#']).next().unwrap_or_default();
            if target.is_empty() || target.contains("://") {
                continue;
            }
            followed += 1;
            let path = file.parent().unwrap().join(target);
            assert!(path.exists(), "{}: {target} is not there", file.display());
        }
    }
    assert!(followed > 10, "hardly any link was met");
}

/// Words like `R7` in a text, with that letter.
fn cited(text: &str, letter: char) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric());
    let is_rule = |word: &&str| {
        let digits = word.strip_prefix(letter);
        digits.is_some_and(|it| (1..=2).contains(&it.len()) && it.bytes().all(|b| b.is_ascii_digit()))
    };
    words.filter(is_rule).map(str::to_owned).collect()
}

#[test]
fn every_rule_that_the_code_cites_is_written_down() {
    let page = read(root().join("docs/reliability.md"));
    let written = |rule: &str| page.lines().any(|line| line.starts_with(&format!("| {rule} |")));
    let mut met = BTreeSet::new();
    for file in files(&root().join("crates"), ".rs") {
        for line in read(&file).lines().filter_map(|line| line.split_once("//")) {
            let rules = cited(line.1, 'R').into_iter().chain(cited(line.1, 'T'));
            for rule in rules {
                assert!(
                    written(&rule),
                    "{} cites {rule}, which docs/reliability.md lacks",
                    file.display()
                );
                met.insert(rule);
            }
        }
    }
    assert!(met.len() > 10, "hardly any rule is cited: {met:?}");
}

/// The names under `[dependencies]` of a crate.
fn dependencies(folder: &Path) -> BTreeSet<String> {
    let manifest = read(folder.join("Cargo.toml"));
    let lines = manifest
        .lines()
        .skip_while(|line| *line != "[dependencies]")
        .skip(1);
    let names = lines
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| line.split_once(['.', ' ']));
    names
        .map(|(name, _)| name.to_owned())
        .filter(|name| !name.starts_with('#'))
        .collect()
}

#[test]
fn an_arrow_between_crates_goes_down() {
    let floors: BTreeMap<&str, &[&str]> = BTreeMap::from([
        ("protocol", &[][..]),
        ("store", &["protocol"]),
        ("git", &[]),
        ("runner", &["protocol", "store", "git"]),
        ("brain", &["protocol", "store", "git", "runner"]),
        ("testkit", &["protocol", "store", "git", "runner"]),
    ]);
    let all = crates();
    for (name, folder) in &all {
        let below = floors
            .get(name.as_str())
            .unwrap_or_else(|| panic!("{name} has no floor"));
        let needs = dependencies(folder);
        for need in needs.iter().filter(|need| all.contains_key(*need)) {
            assert!(below.contains(&need.as_str()), "{name} must not know {need}");
        }
        if name == "protocol" {
            let needs: Vec<&str> = needs.iter().map(String::as_str).collect();
            assert_eq!(needs, ["serde", "unicode-normalization"]);
        }
        for (library, only) in [("rusqlite", "store"), ("clap", "brain")] {
            assert!(
                !needs.contains(library) || name == only,
                "{library} belongs to {only}, not to {name}"
            );
        }
    }
}

/// The sources of a crate, without comments.
fn code(folder: &Path) -> Vec<(PathBuf, String)> {
    let bare = |text: String| {
        let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        lines.collect::<Vec<_>>().join("\n")
    };
    files(&folder.join("src"), ".rs")
        .into_iter()
        .map(|file| (file.clone(), bare(read(file))))
        .collect()
}

#[test]
fn the_protocol_sees_nothing_but_what_it_is_given() {
    let banned = [
        "std::fs",
        "std::env",
        "std::net",
        "std::io",
        "std::process",
        "std::thread",
        "SystemTime",
        "Instant::now",
        "println!",
        "async fn",
    ];
    let sources = code(&crates()["protocol"]);
    assert!(sources.len() > 20, "hardly any source was met");
    for (file, text) in sources {
        for word in banned {
            assert!(
                !text.contains(word),
                "{} has {word}: it belongs to a store, the runner or a face",
                file.display()
            );
        }
    }
}

#[test]
fn git_is_started_by_one_crate() {
    let mut met = 0;
    for (name, folder) in crates() {
        for (file, text) in code(&folder) {
            let starts = text.contains("Command::new(\"git\")");
            assert!(
                !starts || name == "git",
                "{} starts git: that is what the crate `git` is for",
                file.display()
            );
            met += u32::from(starts);
        }
    }
    assert!(met > 0, "nobody starts git");
}

#[test]
fn every_test_file_is_declared() {
    let mut met = 0;
    for (name, folder) in crates() {
        let manifest = read(folder.join("Cargo.toml"));
        for file in files(&folder.join("tests"), ".rs") {
            let below = file
                .strip_prefix(&folder)
                .expect("a file of the crate")
                .to_string_lossy()
                .into_owned();
            let is_top = below.matches('/').count() == 1 || below.ends_with("/main.rs");
            assert!(
                !is_top || !manifest.contains("autotests = false") || manifest.contains(&below),
                "{name} does not name {below}, which never runs"
            );
        }
        for main in files(&folder.join("tests"), "main.rs") {
            let declared = read(&main);
            for (name, file) in modules(main.parent().unwrap()) {
                met += 1;
                assert!(
                    declared.contains(&format!("mod {name};")),
                    "{} is not declared and never runs",
                    file.display()
                );
            }
        }
    }
    assert!(met > 5, "hardly any test file was met");
}
