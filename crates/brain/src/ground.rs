//! What the runner needs of a brain, gathered from configuration and root.

use std::collections::BTreeMap;
use std::ffi::OsString;

use runner::base::Checkout;
use runner::close::Settings;
use runner::drive::{Ground, Runner};

use crate::config::{Brief, Evidence};
use crate::context::Context;
use crate::failure::{Failure, Trouble};

/// Gathers it.
///
/// # Errors
///
/// When this program cannot be found again to watch a child.
pub fn of(cx: &Context) -> Result<Ground, Failure> {
    let this = std::env::current_exe()
        .map_err(|error| Trouble::io("cannot find", std::path::Path::new("this program"), &error))?;
    let config = &cx.config;
    let with_tests = config
        .projects
        .iter()
        .filter_map(|(name, it)| Some((name, it, it.tests.clone()?)));
    let tests: BTreeMap<_, _> = with_tests
        .clone()
        .map(|(name, _, tests)| (name.clone(), tests))
        .collect();
    let by_repo = with_tests.filter_map(|(_, project, tests)| {
        let checkout = Checkout::find(cx.root.dir(), &cx.root.dir().join(&project.path))?;
        Some((checkout.repo, tests))
    });
    let settings = Settings {
        tests: config.tests.clone(),
        projects: by_repo.collect(),
        clean: config.evidence == Evidence::Clean,
        push: config.push,
    };
    let runner = |runner: &crate::config::Runner| Runner {
        command: runner.command.clone(),
        brief_as_argument: runner.brief == Brief::Argument,
    };
    Ok(Ground {
        root: cx.root.dir().to_owned(),
        state: cx.root.state(),
        caller: cx.caller.clone(),
        policy: cx.policy.clone(),
        shim: vec![this.into_os_string(), OsString::from(crate::ATTEMPT)],
        projects: config
            .projects
            .iter()
            .map(|(name, it)| (name.clone(), it.path.clone()))
            .collect(),
        tests,
        settings,
        runners: config
            .runners
            .iter()
            .map(|(name, it)| (name.clone(), runner(it)))
            .collect(),
        worktree: config.worktree.clone(),
        runner: config.runner.clone(),
    })
}
