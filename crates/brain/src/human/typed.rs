//! The code that is typed: it goes through the terminal, where a pipe, a script or CI cannot follow.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};

use protocol::facts::caller::Proof;
use rustix::termios::{QueueSelector, isatty, tcflush, ttyname};

use super::HumanError;
use runner::random;

/// Letters and digits that no eye takes for each other: 32 of them, so that none is likelier.
const LETTERS: &[u8; 32] = b"ABCDEFGHJKLMNPQRSTUVWXYZ23456789";

/// Longer lines are no code.
const LINE_MAX: usize = 256;

/// Shows `what` on the controlling terminal and lets a code be typed that stands below it.
///
/// `what` is shown as it is: the caller has escaped what an agent wrote in it.
///
/// # Errors
///
/// [`HumanError::NoTerminal`] and [`HumanError::WrongCode`]; there is one try.
pub fn typed(what: &str) -> Result<Proof, HumanError> {
    let terminal = OpenOptions::new().read(true).write(true).open("/dev/tty");
    let mut terminal = match terminal {
        Ok(terminal) if isatty(&terminal) => terminal,
        _ => return Err(HumanError::NoTerminal),
    };
    let name = name(&terminal);
    let code = code().map_err(HumanError::io("making a code for", name.as_ref()))?;
    // What was typed before the question was seen answers it no more.
    let _ = tcflush(&terminal, QueueSelector::IFlush);
    let failed = || HumanError::io("asking on", name.as_ref());
    write!(terminal, "{what}\nType {code} to answer: ").map_err(failed())?;
    let line = line(&mut terminal).map_err(failed())?;
    match is_code(&line, &code) {
        true => Ok(Proof::Typed { terminal: name }),
        false => Err(HumanError::WrongCode),
    }
}

/// Makes a short code.
fn code() -> io::Result<String> {
    let letter = |byte: u8| char::from(LETTERS[usize::from(byte) % LETTERS.len()]);
    Ok(random::bytes::<4>()?.map(letter).iter().collect())
}

fn is_code(line: &str, code: &str) -> bool {
    line.trim().eq_ignore_ascii_case(code)
}

/// Names the terminal's device: `/dev/tty` is everyone's own, so the standard streams are asked.
fn name(terminal: &File) -> String {
    let streams = [
        ttyname(io::stdin(), Vec::new()),
        ttyname(io::stderr(), Vec::new()),
        ttyname(io::stdout(), Vec::new()),
        ttyname(terminal, Vec::new()),
    ];
    let found = streams.into_iter().find_map(Result::ok);
    found.map_or_else(
        || "/dev/tty".to_owned(),
        |name| name.to_string_lossy().into_owned(),
    )
}

fn line(terminal: &mut impl Read) -> io::Result<String> {
    let mut line = Vec::new();
    let mut byte = [0];
    while line.len() < LINE_MAX && terminal.read(&mut byte)? == 1 && byte[0] != b'\n' {
        line.push(byte[0]);
    }
    Ok(String::from_utf8_lossy(&line).into_owned())
}

#[cfg(test)]
mod tests {
    use super::{code, is_code, line};

    #[test]
    fn a_code_is_short_and_typed_in_any_case() {
        let code = code().unwrap();
        assert_eq!(code.len(), 4);
        assert!(is_code(&format!(" {}\r", code.to_lowercase()), &code));
        assert!(!is_code("", &code) && !is_code(&format!("{code}X"), &code));
    }

    #[test]
    fn a_line_ends_at_its_end() {
        assert_eq!(line(&mut &b"ABCD\nrest"[..]).unwrap(), "ABCD");
        assert_eq!(line(&mut &b"AB"[..]).unwrap(), "AB");
        assert_eq!(line(&mut &[b'x'; 9000][..]).unwrap().len(), 256);
    }
}
