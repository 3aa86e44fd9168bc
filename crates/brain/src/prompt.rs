//! Asking a person at the terminal.

use std::fs::File;
use std::io::{BufRead, BufReader, IsTerminal, Write};

use protocol::facts::gate::{Choice, Gate};

use crate::failure::{Failure, Trouble};
use crate::show;

/// Whether a person can be asked here: they see standard error and type on standard input.
pub fn has_terminal() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Shows a gate and reads an answer; `None` when the line was empty or no answer.
///
/// # Errors
///
/// When the terminal is gone.
pub fn choice(gate: &Gate) -> Result<Option<(Choice, String)>, Failure> {
    let gone = |error: std::io::Error| Trouble::io("cannot ask at", std::path::Path::new("/dev/tty"), &error);
    let tty = File::options()
        .read(true)
        .write(true)
        .open("/dev/tty")
        .map_err(gone)?;
    let mut out = &tty;
    write!(
        out,
        "{}\nanswer [{}]: ",
        show::gate(gate),
        gate.choices().map(Choice::as_str).join("|")
    )
    .map_err(gone)?;
    let mut line = String::new();
    BufReader::new(&tty).read_line(&mut line).map_err(gone)?;
    let (word, words) = line.trim().split_once(' ').unwrap_or((line.trim(), ""));
    Ok(Choice::parse(&word.to_lowercase()).map(|choice| (choice, words.trim().to_owned())))
}
