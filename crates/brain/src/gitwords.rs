//! What git refused, in the words and codes of the command line.

use git::Kind;

use crate::advice::quote;
use crate::exit;
use crate::failure::Trouble;

/// The failure of a git operation, with the command that mends it.
pub fn trouble(error: &git::Error) -> Trouble {
    let at = error.target().display().to_string();
    let new = |exit, code, message: String| Trouble::new(exit, code, message);
    match error.kind() {
        Kind::Missing => new(exit::UNREACHABLE, "git.missing", "git is not on PATH".to_owned())
            .hint("install git 2.40 or newer"),
        Kind::NotARepository if error.stderr().contains("dubious ownership") => new(
            exit::NOT_YOURS,
            "git.owner",
            format!("{at} belongs to another user, and git leaves it alone"),
        )
        .fix("tell git that you trust it", format!("git config --global --add safe.directory {}", quote(&at))),
        Kind::NotARepository => new(exit::NOT_YOURS, "git.not_a_repository", format!("{at} is in no git repository"))
            .fix("make one", format!("git init {}", quote(&at))),
        Kind::Locked { path, age } => new(
            exit::BUSY,
            "git.locked",
            format!("{} is held for {} s already", path.display(), age.map_or(0, |age| age.as_secs())),
        )
        .hint("another git is at work there; when none is, look at the file and remove it yourself"),
        Kind::NoMergeBase | Kind::Shallow => new(
            exit::CANNOT_JUDGE,
            "git.no_merge_base",
            format!("{at} does not have the history that this needs (a shallow clone?)"),
        )
        .fix("get it", "git fetch --unshallow"),
        Kind::NotAncestor { base, head } => new(
            exit::CANNOT_JUDGE,
            "git.no_merge_base",
            format!("{base}, on which the claim was opened, is not in the history of {head}"),
        )
        .hint("the branch was rewritten: rebase the work onto what the claim was opened on, or close it as failed"),
        Kind::DetachedHead => new(exit::NOT_YOURS, "git.detached", format!("the head of {at} is detached"))
            .fix("make a branch", "git switch -c NAME"),
        Kind::UnbornHead => new(exit::NOT_YOURS, "git.no_commit", format!("{at} has no commit yet"))
            .fix("make one", "git commit --allow-empty -m start"),
        Kind::NoIdentity => new(exit::NOT_YOURS, "git.no_identity", "git does not know who commits".to_owned())
            .fix("tell it", "git config user.name NAME && git config user.email MAIL"),
        Kind::HookRefused { hook, output } => {
            let said: Vec<&str> = output.lines().rev().take(3).collect();
            let said = said.into_iter().rev().collect::<Vec<_>>().join(" / ");
            new(exit::MEND, "git.hook_refused", format!("the hook {hook} of {at} refused: {said}"))
                .hint("mend what it complains about; a hook is never gone round")
        }
        Kind::Submodules => {
            let said = error.stderr().lines().next().unwrap_or("git does not say why");
            new(exit::NOT_YOURS, "git.submodules", format!("a submodule of {at} could not be filled: {said}"))
                .fix("see whether it can be", "git submodule update --init --recursive")
        }
        Kind::KeyRefused => new(exit::MEND, "git.key_refused", format!("the commit in {at} could not be signed: {}", error.stderr()))
            .hint("unlock the signing key; signing is never left out"),
        Kind::Filter { path, name } => new(
            exit::MEND,
            "git.filter",
            format!("{} wants the filter {name}, which neither the system's nor your own git configuration has", path.display()),
        )
        .hint("install it (git lfs install), and close again"),
        Kind::Conflict { files } => {
            let files: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
            new(exit::MEND, "git.conflict", format!("merging conflicts in {}", files.join(", ")))
        }
        _ => new(exit::UNREACHABLE, "git.failed", error.to_string()),
    }
}
