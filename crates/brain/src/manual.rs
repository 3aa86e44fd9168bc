//! The page of commands, made from the grammar.

use std::fmt::Write;

use clap::{ColorChoice, Command, CommandFactory};

use crate::cli::Cli;

/// What every command takes is told once, on top.
const GLOBAL: [&str; 5] = ["root", "json", "quiet", "color", "help"];

/// The page: every command with its help.
pub fn page() -> String {
    let mut page = String::from(
        "# The command line\n\nEvery command, as `--help` shows it. This page is made from the program: `UPDATE=1 ./test` writes it \
         anew.\nWhat the exit codes mean stands in [exit-codes.md](exit-codes.md).\n",
    );
    let mut top = Cli::command().color(ColorChoice::Never).term_width(100);
    top.build();
    let _ = write!(page, "\n## brain\n\n```\n{}\n```\n", help(&mut top));
    for verb in top.get_subcommands() {
        tell(&mut page, "brain", verb);
    }
    page
}

fn tell(page: &mut String, above: &str, command: &Command) {
    if command.is_hide_set() {
        return;
    }
    let name = format!("{above} {}", command.get_name());
    let told_above = |command: Command| {
        let names: Vec<_> = command.get_arguments().map(|arg| arg.get_id().clone()).collect();
        let is_global = |name: &&clap::Id| GLOBAL.contains(&name.as_str());
        names.iter().filter(is_global).fold(command, |command, name| {
            command.mut_arg(name, |arg| arg.hide(true))
        })
    };
    let mut alone = told_above(command.clone()).bin_name(name.clone());
    let _ = write!(page, "\n## {name}\n\n```\n{}\n```\n", help(&mut alone));
    for verb in command.get_subcommands() {
        tell(page, &name, verb);
    }
}

fn help(command: &mut Command) -> String {
    let text = command.render_long_help().to_string();
    let lines: Vec<&str> = text.trim_end().lines().map(str::trim_end).collect();
    lines.join("\n")
}
