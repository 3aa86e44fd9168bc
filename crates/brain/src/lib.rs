//! The faces of brain, and what stands between a face and the rules.

#![expect(
    missing_docs,
    reason = "a program, not a library: its parts are open to its own tests"
)]

pub mod advice;
pub mod attempts;
pub mod attended;
pub mod bases;
pub mod bug;
pub mod caller;
pub mod cli;
pub mod codes;
pub mod commands;
pub mod config;
pub mod context;
pub mod exit;
pub mod facts;
pub mod failure;
pub mod gitwords;
pub mod ground;
pub mod human;
pub mod keys;
pub mod manual;
pub mod out;
pub mod place;
pub mod prompt;
pub mod proof;
pub mod report;
pub mod root;
pub mod show;
pub mod wire;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};

use crate::cli::Cli;
use crate::out::Out;

/// The hidden word under which this program watches a child of a run.
pub const ATTEMPT: &str = "__attempt";

/// Runs one command line.
pub fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    bug::report_and_exit(cli::asks_for_json(&args));
    if args.first().is_some_and(|word| word == ATTEMPT) {
        return runner::launch::main(args.into_iter().skip(1), runner::launch::unfiltered);
    }
    if let [word, folder, rest @ ..] = args.as_slice()
        && word == commands::demo::INNER
    {
        let color = rest.iter().any(|word| word == "--color=always");
        let out = Out::new(&cli::Globals::default());
        return finish(out, commands::demo::tell(std::path::Path::new(folder), color));
    }
    // The check before each write is read from the bare words: the whole grammar costs a millisecond.
    if let Some((globals, check)) = commands::preflight::fast(&args) {
        let out = Out::new(&globals);
        return finish(out, commands::preflight::check(&globals, &check));
    }
    let parsed = Cli::command()
        .color(cli::help_color(&args))
        .try_get_matches()
        .and_then(|matches| Cli::from_arg_matches(&matches));
    let cli = match parsed {
        Ok(cli) => cli,
        Err(error) => return usage(&args, &error),
    };
    #[cfg(feature = "testkit")]
    bug::on_purpose();
    finish(Out::new(&cli.globals), commands::carry_out(&cli))
}

fn finish(out: Out, done: Result<u8, failure::Failure>) -> ExitCode {
    ExitCode::from(out.finish(done.unwrap_or_else(|failure| out.fail(&failure))))
}

/// Wrong usage is 64, and one document where JSON was asked for; help and version are answers.
fn usage(args: &[OsString], error: &clap::Error) -> ExitCode {
    use clap::error::ErrorKind as K;
    if matches!(error.kind(), K::DisplayHelp | K::DisplayVersion) {
        out::written(error.print());
        return finish(Out::new(&cli::Globals::default()), Ok(0));
    }
    if args.is_empty() {
        // As `cargo` and `gh` do: nothing was asked, so nothing was wrong.
        out::written(Cli::command().color(cli::help_color(args)).print_help());
        return finish(Out::new(&cli::Globals::default()), Ok(0));
    }
    if cli::asks_for_json(args) {
        let globals = cli::Globals {
            json: true,
            ..Default::default()
        };
        let message = match error.kind() {
            K::DisplayHelpOnMissingArgumentOrSubcommand | K::MissingSubcommand => {
                "a verb is missing".to_owned()
            }
            _ => error
                .to_string()
                .lines()
                .next()
                .unwrap_or_default()
                .trim_start_matches("error: ")
                .to_owned(),
        };
        let trouble = failure::Trouble::usage(message).hint("see --help");
        return finish(Out::new(&globals), Err(trouble.into()));
    }
    let _ = error.print();
    ExitCode::from(exit::USAGE)
}

/// The clock of this process: the system's, or under `testkit` the one that the test turns.
pub fn clock() -> store::clock::Clock {
    #[cfg(feature = "testkit")]
    if let Some(clock) = std::env::var("BRAIN_TEST_CLOCK")
        .ok()
        .and_then(|text| store::clock::Clock::read_from(&text))
    {
        return clock;
    }
    store::clock::Clock::System
}
