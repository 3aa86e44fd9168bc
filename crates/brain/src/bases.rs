//! The repositories that a claim is opened over, and a worktree of its own where one is asked for.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use git::{Door, Oid};
use protocol::command::OpenClaim;
use protocol::facts::claim::Base;
use runner::base::{Checkout, bases};
use runner::random;

use crate::context::Context;
use crate::exit;
use crate::failure::{Failure, Trouble};
use crate::gitwords::trouble;

/// Notes the root's repository and those of the projects as they are now.
///
/// # Errors
///
/// Whatever keeps git from answering: what cannot be compared later must not be opened over.
pub fn of(cx: &Context) -> Result<BTreeMap<String, Base>, Failure> {
    let root = cx.root.dir();
    let folders: Vec<PathBuf> = cx
        .config
        .projects
        .values()
        .map(|project| root.join(&project.path))
        .collect();
    bases(
        root,
        folders.iter().map(PathBuf::as_path),
        &cx.policy,
        &Door::user,
    )
    .map_err(|error| trouble(&error).into())
}

/// Looks whether a close could land in this branch.
///
/// # Errors
///
/// No repository, or no such branch.
pub fn theme(cx: &Context, name: &str) -> Result<(), Failure> {
    let lost = |why: String| Trouble::usage(format!("--theme: {why}"));
    let repository = cx.root.repository().cloned();
    let repository = repository.ok_or_else(|| lost("the root lies in no git repository".to_owned()))?;
    match Door::user(repository)
        .branch(name)
        .map_err(|error| lost(trouble(&error).message))?
    {
        Some(_) => Ok(()),
        None => Err(lost(format!("there is no branch {name:?}"))
            .fix("make it", format!("git branch {}", crate::advice::quote(name)))
            .into()),
    }
}

/// Whether no repository of the claim has this branch, nor will have it with the first commit.
///
/// What git cannot tell is not missing: it was asked for a word of advice.
pub fn lacks_branch(cx: &Context, base: &BTreeMap<String, Base>, name: &str) -> bool {
    let has = |base: &Base| {
        if base.branch.as_deref() == Some(name) {
            return true;
        }
        let checkout = Checkout::find(cx.root.dir(), Path::new(&base.checkout));
        let found = checkout.map(|checkout| Door::user(checkout.repository).branch(name));
        match found {
            Some(Err(error)) => !matches!(error.kind(), git::Kind::BadName { .. }),
            Some(Ok(tip)) => tip.is_some(),
            None => true,
        }
    };
    !base.is_empty() && !base.values().any(has)
}

/// A worktree that is to be made once the claim is opened.
pub struct Own {
    at: PathBuf,
    branch: String,
    commit: Oid,
}

/// Plans a worktree for a claim: a branch of its own at the head of the one checked out, into which it lands.
///
/// # Errors
///
/// No repository, no commit, or a detached head without a theme.
pub fn plan_worktree(cx: &Context, ask: &mut OpenClaim) -> Result<Own, Failure> {
    let lost = |why: &str| Trouble::new(exit::NOT_YOURS, "claim.no_worktree", format!("--worktree: {why}"));
    if let Some(branch) = &ask.branch {
        let why = format!("--worktree makes a branch of its own, so --branch {branch} cannot be");
        return Err(Trouble::usage(why)
            .hint("leave --branch out; --theme names where the work lands")
            .into());
    }
    let checkout = Checkout::find(cx.root.dir(), cx.root.dir())
        .ok_or_else(|| lost("the root lies in no git repository").fix("make one", "git init"))?;
    let base = ask
        .base
        .get(&checkout.repo)
        .ok_or_else(|| lost("the root's repository is unknown"))?;
    let commit = base.commit.as_deref().and_then(Oid::parse).ok_or_else(|| {
        lost("the repository has no commit yet").fix("make one", "git commit --allow-empty -m start")
    })?;
    let theme = ask.theme_branch.clone().or_else(|| base.branch.clone());
    let theme = theme.ok_or_else(|| lost("the head is detached").hint("name where it lands with --theme"))?;
    let mark = random::bytes::<4>()
        .map_err(|error| Trouble::io("cannot read", Path::new("/dev/urandom"), &error))?;
    let name = format!("{}-{}", ask.slug, random::hex(&mark));
    let (at, branch) = (
        cx.root.state().join("worktrees").join(&name),
        format!("brain/{name}"),
    );
    let shown = at.display().to_string();
    ask.base = BTreeMap::from([(
        checkout.repo,
        Base {
            commit: Some(commit.to_string()),
            branch: Some(branch.clone()),
            checkout: shown.clone(),
            ..Base::default()
        },
    )]);
    ask.branch = Some(branch.clone());
    ask.theme_branch = Some(theme);
    ask.worktree = Some(shown);
    Ok(Own { at, branch, commit })
}

/// Makes the worktree of an opened claim.
///
/// # Errors
///
/// What git says.
pub fn make_worktree(cx: &Context, own: &Own) -> Result<(), Failure> {
    let repository = cx
        .root
        .repository()
        .cloned()
        .ok_or_else(|| Trouble::usage("the root lies in no git repository"))?;
    let made = Door::user(repository).worktree_add(&own.at, &own.branch, &own.commit);
    made.map(drop).map_err(|error| trouble(&error).into())
}
