//! The `brain` command line.

fn main() -> std::process::ExitCode {
    brain::main()
}
