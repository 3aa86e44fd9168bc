//! The command whose success closes a claim, and whether its status can be believed.

use serde::{Deserialize, Serialize};

use super::report::Format;

/// How the tests of a claim, a phase or a project are run and read (protocol, 11).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tests {
    /// The shell command; its own exit status counts, and [`hides_status`] holds that it can.
    pub run: String,
    /// Where it leaves a report, relative to where it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<String>,
    /// The form of its report or output, where it is not to be found out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<Format>,
}

/// The place where a command lets another one's status stand for its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hides {
    /// The column in the command, in characters from 1.
    pub column: usize,
    /// What stands there: `|`, `|&`, `||`, `;`, `&`, `!` or `line break`.
    pub what: &'static str,
}

/// Finds what makes the exit status of a shell command another one's than the tests' (protocol, 11).
///
/// `npm test | tail` ends as `tail` does, `npm test || true` and `npm test; echo done` are always 0, `&` does
/// not wait, a line break is a `;`, `!` turns red into green. `&&` and redirections (`2>&1`, `&>`, `>|`) leave
/// the status alone, and so does what stands in quotes, in `$(…)` or in a comment; but the text that `sh -c`
/// or `eval` is given is a command again and is looked into.
pub fn hides_status(command: &str) -> Option<Hides> {
    Lexer {
        chars: command.chars().collect(),
        at: 0,
    }
    .run(0)
}

/// How deep one shell may stand in the quotes of another: deeper is no test command.
const DEPTH_MAX: usize = 8;

struct Lexer {
    chars: Vec<char>,
    at: usize,
}

/// A word of the command with its quotes taken away, and whether any of it was quoted.
#[derive(Default)]
struct Word {
    text: String,
    /// The column of the first character of its text.
    column: usize,
    begun: bool,
}

impl Lexer {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    fn run(&mut self, depth: usize) -> Option<Hides> {
        let mut shell = Shell::No;
        let mut word = Word::default();
        // Whether a command is still to begin: at the start, and after `&&` or `(`.
        let mut fresh = true;
        // A `;` or line break hides only when something follows.
        let mut ended: Option<Hides> = None;
        while let Some(c) = self.peek(0) {
            let hides = |what| {
                Some(Hides {
                    column: self.at + 1,
                    what,
                })
            };
            let found = match c {
                '|' => hides(match self.peek(1) {
                    Some('|') => "||",
                    Some('&') => "|&",
                    _ => "|",
                }),
                '&' => match self.peek(1) {
                    Some('&' | '>') => None,
                    _ => hides("&"),
                },
                _ => None,
            };
            if found.is_some() {
                return found;
            }
            let comment = c == '#' && !word.begun;
            if !c.is_whitespace() && c != ';' && !comment {
                if ended.is_some() {
                    return ended;
                }
                if c == '!' && fresh && !word.begun && self.peek(1).is_none_or(char::is_whitespace) {
                    return Some(Hides {
                        column: self.at + 1,
                        what: "!",
                    });
                }
            }
            if c.is_whitespace() || matches!(c, ';' | '&' | '(' | ')') {
                if let Some(hides) = shell.take(&word, depth) {
                    return Some(hides);
                }
                fresh &= !word.begun;
                word = Word::default();
            }
            match c {
                '\n' if !fresh => {
                    ended = ended.or(Some(Hides {
                        column: self.at + 1,
                        what: "line break",
                    }))
                }
                ';' => {
                    ended = ended.or(Some(Hides {
                        column: self.at + 1,
                        what: ";",
                    }))
                }
                '&' if self.peek(1) == Some('>') => self.at += 1,
                '&' => {
                    (fresh, shell) = (true, Shell::No);
                    self.at += 1;
                }
                '(' => (fresh, shell) = (true, Shell::No),
                '#' if comment => {
                    while self.peek(1).is_some_and(|c| c != '\n') {
                        self.at += 1;
                    }
                }
                ')' => {}
                c if c.is_whitespace() => {}
                c => self.part(c, &mut word),
            }
            self.at += 1;
        }
        shell.take(&word, depth)
    }

    /// Reads one character of a word, or a whole quoted part; leaves `at` on its last character.
    fn part(&mut self, c: char, word: &mut Word) {
        if !word.begun {
            *word = Word {
                text: String::new(),
                column: self.at + 1,
                begun: true,
            };
        }
        match c {
            '\\' => {
                self.at += 1;
                word.text.extend(self.peek(0).filter(|c| *c != '\n'));
            }
            '\'' | '"' => {
                if word.text.is_empty() {
                    word.column = self.at + 2;
                }
                self.quoted(c, &mut word.text);
            }
            '`' => self.quoted(c, &mut String::new()),
            '$' if self.peek(1) == Some('(') => self.nested('(', ')'),
            '$' if self.peek(1) == Some('{') => self.nested('{', '}'),
            '<' | '>' if self.peek(1) == Some('(') => self.nested('(', ')'),
            '<' | '>' => {
                if matches!(self.peek(1), Some('&' | '|')) {
                    self.at += 1;
                }
            }
            c => word.text.push(c),
        }
    }

    /// Reads up to the closing quote into `text`.
    fn quoted(&mut self, quote: char, text: &mut String) {
        self.at += 1;
        while let Some(c) = self.peek(0) {
            match c {
                c if c == quote => return,
                '\\' if quote != '\'' => {
                    self.at += 1;
                    text.extend(self.peek(0));
                }
                '$' if quote == '"' && self.peek(1) == Some('(') => self.nested('(', ')'),
                c => text.push(c),
            }
            self.at += 1;
        }
    }

    /// Skips a bracketed part, its own quotes and brackets included, with one look at each character.
    fn nested(&mut self, open: char, close: char) {
        let mut depth = 0_usize;
        let mut quote = None;
        self.at += 1;
        while let Some(c) = self.peek(0) {
            match (quote, c) {
                (Some('\''), '\'') | (Some('"'), '"') => quote = None,
                (Some('\''), _) => {}
                (_, '\\') => self.at += 1,
                (None, '\'' | '"') => quote = Some(c),
                (None, c) if c == open => depth += 1,
                (None, c) if c == close => {
                    depth -= 1;
                    if depth == 0 {
                        return;
                    }
                }
                _ => {}
            }
            self.at += 1;
        }
    }
}

/// Whether the words so far hand a text to another shell.
enum Shell {
    No,
    /// `sh`, `bash` …: an option with `c` in it will be followed by a command.
    Named,
    /// The next word is a command.
    Next,
}

impl Shell {
    /// Takes one finished word, and looks into it when it is a command itself.
    fn take(&mut self, word: &Word, depth: usize) -> Option<Hides> {
        if !word.begun {
            return None;
        }
        let text = word.text.as_str();
        let name = text.rsplit('/').next().unwrap_or(text);
        *self = match self {
            Self::Next => {
                *self = Self::No;
                if depth == DEPTH_MAX {
                    return Some(Hides {
                        column: word.column,
                        what: "sh -c",
                    });
                }
                let inner = Lexer {
                    chars: text.chars().collect(),
                    at: 0,
                }
                .run(depth + 1)?;
                return Some(Hides {
                    column: word.column + inner.column - 1,
                    what: inner.what,
                });
            }
            _ if matches!(name, "sh" | "bash" | "dash" | "zsh" | "ksh" | "ash") => Self::Named,
            _ if text == "eval" => Self::Next,
            Self::Named if text.starts_with('-') && !text.starts_with("--") && text.contains('c') => {
                Self::Next
            }
            Self::Named => Self::Named,
            Self::No => Self::No,
        };
        None
    }
}

#[cfg(test)]
mod cases {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn o_15_a_command_whose_status_another_one_hides_is_found_with_its_column() {
        for (command, column, what) in [
            ("npm test | tail -20", 10, "|"),
            ("npm test 2>&1 | grep -i fail", 15, "|"),
            ("npm test |& tee log", 10, "|&"),
            ("npm test || true", 10, "||"),
            ("npm test||:", 9, "||"),
            ("npm test; echo done", 9, ";"),
            ("cd api ; npm test", 8, ";"),
            ("npm test &", 10, "&"),
            ("npm test & wait", 10, "&"),
            ("npm ci\nnpm test", 7, "line break"),
            ("npm test # all of it\necho done", 21, "line break"),
            ("(npm test | tail)", 11, "|"),
            ("{ npm test; }", 11, ";"),
            ("! npm test", 1, "!"),
            ("cd api && ! npm test", 11, "!"),
            ("npm test -- \"a|b\" | tail", 19, "|"),
            ("echo \"$(echo ')')\" | tail", 20, "|"),
            ("sh -c 'npm test | tail'", 17, "|"),
            ("/bin/bash -o pipefail -c \"npm test; true\"", 35, ";"),
            ("env CI=1 bash -ec 'npm test || true'", 29, "||"),
            ("eval 'npm test; true'", 15, ";"),
            ("sh -c \"sh -c 'npm test | cat'\"", 24, "|"),
            ("npm test \\\n| tail", 12, "|"),
            ("été && npm test | tail", 17, "|"),
        ] {
            assert_eq!(hides_status(command), Some(Hides { column, what }), "{command}");
        }
    }

    #[test]
    fn o_15_a_command_that_ends_as_its_tests_do_is_left_alone() {
        for command in [
            "",
            "npm test",
            "npm ci && npm test",
            "npm ci &&\n  npm test",
            "npm test 2>&1",
            "npm test &> log",
            "npm test &>> log",
            "npm test >& log",
            "npm test >| log",
            "npm test >log 2>&1 </dev/null",
            "npm test -- --grep 'a|b;c&d'",
            "npm test -- --grep \"a || b\"",
            "npm test -- a\\|b",
            "npm test $(ls | head -1)",
            "npm test \"$(ls | head -1; true)\"",
            "npm test `ls | head -1`",
            "npm test ${X:-a|b}",
            "test $((1|2)) -eq 3",
            "cmp <(sort a | uniq) b",
            "(cd api && npm test)",
            "npm test;",
            "npm test\n",
            "\nnpm test\n# a | b\n",
            "# first\nnpm test # then | nothing",
            "npm \\\n  test",
            "curl http://x/#a",
            "[ ! -e x ]",
            "sh -c 'npm ci && npm test'",
            "sh run.sh 'a | b'",
            "grep -c 'a|b' x",
        ] {
            assert_eq!(hides_status(command), None, "{command}");
        }
    }

    #[test]
    fn a_long_or_deeply_nested_command_takes_linear_time() {
        assert_eq!(hides_status(&"$(".repeat(200_000)), None);
        assert_eq!(hides_status(&"\"$(".repeat(200_000)), None);
        assert!(hides_status(&format!("{} x", "eval ".repeat(200_000))).is_none());
    }

    proptest! {
        #[test]
        fn no_command_panics_the_lexer(command in "[a-c |&;<>(){}$'\"`\\\\!#\n-]{0,40}|.{0,30}") {
            if let Some(hides) = hides_status(&command) {
                prop_assert!(hides.column <= command.chars().count() + 1);
            }
        }

        #[test]
        fn a_pipe_after_plain_words_is_always_found(words in "[a-z0-9 =./:-]{1,20}", rest in ".{0,20}") {
            let hides = hides_status(&format!("x{words} | {rest}"));
            prop_assert!(hides.is_some());
        }
    }
}
