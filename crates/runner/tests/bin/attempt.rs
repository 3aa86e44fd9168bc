//! Stands in for `brain` where the suite launches real processes: the hidden command that a shim is, and
//! hypervisors that can be killed.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use runner::launch::{self, Base, Brief, Command, Filter, Limits, Quiet, Spec};

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    match args.next() {
        Some(word) if word == "__attempt" => launch::main(args, launch::unfiltered),
        Some(word) if word == "__masked" => launch::main(args, masking),
        Some(word) if word == "start" => start(args.collect()),
        Some(word) if word == "quiet" => quiet(args.collect()),
        _ => ExitCode::from(64),
    }
}

fn shim() -> Vec<OsString> {
    let program = std::env::current_exe().expect("a program knows its path");
    vec![program.into(), "__attempt".into()]
}

/// Starts a shell text under an attempt, in the folder's parent, and waits for its end.
fn start(args: Vec<OsString>) -> ExitCode {
    let [dir, text] = &args[..] else {
        return ExitCode::from(64);
    };
    let dir = PathBuf::from(dir);
    let child = launch::start(&Spec {
        shim: shim(),
        command: Command::Shell(text.to_string_lossy().into_owned()),
        cwd: dir.parent().expect("an attempt has a parent").to_owned(),
        dir,
        base: Base::Fixed,
        env: Vec::new(),
        masked: Vec::new(),
        brief: Brief::None,
        limits: Limits::default(),
    });
    match child.map(|child| child.wait(None)) {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs a shell text quietly, in the folder's parent.
fn quiet(args: Vec<OsString>) -> ExitCode {
    let [dir, text] = &args[..] else {
        return ExitCode::from(64);
    };
    let dir = PathBuf::from(dir);
    let ran = launch::run_quietly(Quiet {
        shim: shim(),
        command: Command::Shell(text.to_string_lossy().into_owned()),
        cwd: dir.parent().expect("an attempt has a parent").to_owned(),
        dir,
        base: Base::Fixed,
        env: Vec::new(),
        limits: Limits::default(),
    });
    ExitCode::from(u8::from(ran.is_err()))
}

/// A filter that writes `*` for the bytes of the secrets, wherever the pieces of the output were cut.
fn masking(secrets: &[(OsString, OsString)]) -> Box<dyn Filter> {
    struct Masking {
        secrets: Vec<Vec<u8>>,
        kept: Vec<u8>,
    }
    impl Filter for Masking {
        fn pass(&mut self, printed: &[u8], _log: &mut Vec<u8>) {
            self.kept.extend_from_slice(printed);
        }
        fn finish(&mut self, log: &mut Vec<u8>) {
            for secret in &self.secrets {
                for at in 0..self.kept.len() {
                    if self.kept[at..].starts_with(secret) {
                        self.kept[at..at + secret.len()].fill(b'*');
                    }
                }
            }
            log.append(&mut self.kept);
        }
    }
    let secrets = secrets.iter().map(|(_, value)| value.as_encoded_bytes().to_vec());
    Box::new(Masking {
        secrets: secrets.collect(),
        kept: Vec::new(),
    })
}
