//! What each word of the command line does: text to command, answer to text.

mod claim;
mod close;
pub mod demo;
mod doctor;
mod gate;
mod init;
mod lock;
mod log;
mod plan;
pub mod preflight;
mod run;
mod signal;
mod status;

use protocol::facts::span::Span;

use crate::cli::{Cli, Command};
use crate::context::Context;
use crate::failure::{Failure, Trouble};
use crate::out::Out;

/// Carries a command out; gives the exit code.
pub fn carry_out(cli: &Cli) -> Result<u8, Failure> {
    let globals = &cli.globals;
    let open = || Context::open(globals);
    match &cli.command {
        Command::Init(args) => init::init(globals, args),
        Command::Demo(args) => demo::demo(globals, args),
        Command::Doctor => doctor::doctor(globals),
        Command::Claim(verb) => claim::claim(&mut open()?, verb),
        Command::Stop { why } => gate::stop(&mut open()?, why),
        Command::Thaw => gate::thaw(&mut open()?),
        Command::Close(args) => close::close(&mut open()?, args),
        Command::Preflight(verb) => preflight::preflight(globals, verb),
        Command::Lock(verb) => lock::lock(&mut open()?, verb),
        Command::Gate(verb) => gate::gate(&mut open()?, verb),
        Command::Signal(verb) => signal::signal(&mut open()?, verb),
        Command::Plan(verb) => plan::plan(globals, verb),
        Command::Run(args) => run::run(&mut open()?, args),
        Command::Status => status::status(&mut open()?),
        Command::Log(args) => log::log(&mut open()?, args),
        Command::Completions { shell } => {
            completions(Out::new(globals), *shell);
            Ok(0)
        }
        Command::Version => {
            version(Out::new(globals));
            Ok(0)
        }
    }
}

fn completions(out: Out, shell: clap_complete::Shell) {
    use clap::CommandFactory;
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "brain", &mut script);
    out.text("script", &String::from_utf8_lossy(&script));
}

fn version(out: Out) {
    let version = env!("CARGO_PKG_VERSION");
    let testkit = cfg!(feature = "testkit");
    let document =
        serde_json::json!({ "version": version, "sqlite": store::sqlite_version(), "testkit": testkit });
    let mark = if testkit {
        " (testkit: takes clock and caller from the environment)"
    } else {
        ""
    };
    out.answer(
        document,
        format!("brain {version}, SQLite {}{mark}", store::sqlite_version()),
    );
}

/// Reads a time span that was typed.
fn span(text: &str, what: &str) -> Result<Span, Failure> {
    Span::parse(text).map_err(|error| bad_span(text, what, &error))
}

/// Reads a time span in which a bare number means minutes.
fn span_in_minutes(text: &str, what: &str) -> Result<Span, Failure> {
    Span::parse_minutes_bare(text).map_err(|error| bad_span(text, what, &error))
}

fn bad_span(text: &str, what: &str, error: &protocol::facts::span::SpanError) -> Failure {
    Trouble::usage(format!("{what}: {text:?}: {error}"))
        .hint("write 90s, 30m, 4h or 2d")
        .into()
}
