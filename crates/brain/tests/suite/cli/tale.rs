//! Tales: what is typed, and what is seen, in one text. `UPDATE=1` writes what is seen anew.
//!
//! | line | meaning |
//! | --- | --- |
//! | `$ brain …` | a command line, words quoted as in a shell |
//! | `> …` `! …` `= N` | its standard output, standard error, and exit code |
//! | `@ human`, `@ plain`, `@ agent:A` | who types from now on |
//! | `@ NAME=VALUE` | a variable; without a value it goes |
//! | `+ 31m` | the clock is turned |
//! | `% …` | a script of the shell, which succeeds and is not shown |
//! | `cd …` | where the next commands are typed, from the root |

use std::fmt::Write;
use std::fs;
use std::path::Path;

use super::stage::{Ran, Stage};

/// Tells a tale on a stage and compares what is seen.
pub fn tell(name: &str, mut stage: Stage) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/suite/cli/tales")
        .join(format!("{name}.txt"));
    let text = fs::read_to_string(&file).unwrap_or_else(|why| panic!("{}: {why}", file.display()));
    let mut seen = String::with_capacity(text.len());
    let mut commands = 0;
    for line in text.lines() {
        let (mark, rest) = line.split_once(' ').unwrap_or((line, ""));
        match mark {
            ">" | "!" | "=" => continue,
            _ => writeln!(seen, "{line}").unwrap(),
        }
        match mark {
            "$" => {
                commands += 1;
                let words = words(&rest.replace("ROOT", stage.root.to_str().unwrap()));
                assert_eq!(words[0], "brain", "{line}");
                show(&mut seen, &stage, &stage.run(&words[1..]));
            }
            "@" => match rest.split_once('=') {
                Some((variable, value)) => {
                    let value = value.replace("ROOT", stage.root.to_str().unwrap());
                    stage.set(variable, &value);
                }
                None => {
                    stage.called_by(rest);
                }
            },
            "+" => stage.turn(protocol::facts::span::Span::parse(rest).unwrap().as_ms()),
            "%" => drop(stage.sh(rest)),
            "cd" => stage.cwd = stage.root.join(rest.replace("WORKTREE", &stage.worktree())),
            _ => assert!(
                line.is_empty() || mark.starts_with('#'),
                "{name}: not understood: {line}"
            ),
        }
    }
    assert!(commands > 2, "{name} tells hardly anything");
    if std::env::var_os("UPDATE").is_some() {
        fs::write(file, seen).unwrap();
    } else if seen != text {
        let at = seen.lines().zip(text.lines()).take_while(|(a, b)| a == b).count();
        let around = |text: &str| {
            text.lines()
                .skip(at.saturating_sub(6))
                .take(14)
                .collect::<Vec<_>>()
                .join("\n")
        };
        panic!(
            "{name} is told otherwise from line {} (`UPDATE=1` takes it over).\n--- written\n{}\n--- seen\n{}",
            at + 1,
            around(&text),
            around(&seen)
        );
    }
}

fn show(seen: &mut String, stage: &Stage, ran: &Ran) {
    let mut out = ran.out.clone();
    if let Ok(document @ serde_json::Value::Object(_)) = serde_json::from_str::<serde_json::Value>(&out) {
        out = serde_json::to_string_pretty(&document).unwrap();
    }
    for (mark, text) in [(">", &out), ("!", &ran.err)] {
        for line in stage.plain(text).lines() {
            writeln!(seen, "{}", format!("{mark} {line}").trim_end()).unwrap();
        }
    }
    writeln!(seen, "= {}", ran.code).unwrap();
}

/// Splits a line as a shell does: blanks, quotes, backslashes.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote, mut open) = (Vec::new(), String::new(), None, false);
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (None, ' ') if open => {
                words.push(std::mem::take(&mut word));
                open = false;
            }
            (None, ' ') => {}
            (None, '\'' | '"') => (quote, open) = (Some(c), true),
            (Some(mark), c) if c == mark => quote = None,
            (None | Some('"'), '\\') => {
                let next = chars.next().unwrap();
                word.push(if next == 'n' { '\n' } else { next });
                open = true;
            }
            _ => {
                word.push(c);
                open = true;
            }
        }
    }
    if open {
        words.push(word);
    }
    words
}
