//! Drift into a zone, a type or a file that the plan should not touch unasked (`hypervisor.md`, 6).

use std::collections::BTreeSet;

use crate::command::Changed;
use crate::facts::claim::Claim;
use crate::facts::gate::GateKind;
use crate::facts::path::LogicalPath;
use crate::facts::plan::{KernelExit, Phase};
use crate::facts::policy::Policy;
use crate::facts::run::Run;
use crate::facts::scope::Scope;
use crate::facts::zone::Zone;
use crate::rules::preflight::may_delete;

/// The subject of a finding about deleted kernel files.
pub const DELETES: &str = "deletes";

/// One change that a human is told or asked about.
#[derive(Clone, PartialEq, Debug)]
pub struct Finding {
    /// The gate that it opens; `None` when it is only told.
    pub gate: Option<GateKind>,
    /// What the answer lets pass.
    pub subject: String,
    /// What was seen.
    pub why: String,
    /// The paths.
    pub known: Vec<(String, String)>,
}

/// The zones that a phase's declared scope names.
pub fn zones_of(policy: &Policy, phase: &Phase) -> BTreeSet<Zone> {
    match Scope::parse(&phase.scope, policy.fold) {
        Ok(scope) => policy
            .zones
            .entry_zones(&scope)
            .into_iter()
            .map(|(_, zone)| zone)
            .collect(),
        Err(_) => BTreeSet::new(),
    }
}

/// What a phase asks or tells before it is delegated, by its declared scope and its needs.
pub fn before(policy: &Policy, run: &Run, phase: &Phase, needs: &[&Phase]) -> Vec<Finding> {
    let mut found = Vec::new();
    let zones = zones_of(policy, phase);
    let named: BTreeSet<Zone> = needs.iter().flat_map(|need| zones_of(policy, need)).collect();
    for (zone, subject) in [(Zone::Kernel, "kernel"), (Zone::Personal, "personal")] {
        if zones.contains(&zone) {
            found.push(Finding {
                gate: Some(GateKind::Zone),
                subject: subject.to_owned(),
                why: format!("zone: {} → {subject}", words(&named)),
                known: entries_in(policy, phase, zone),
            });
        }
    }
    if named.contains(&Zone::Kernel) && !zones.contains(&Zone::Kernel) {
        let gate = (run.kernel_exit == KernelExit::Gate).then_some(GateKind::Zone);
        let why = "zone: kernel → project".to_owned();
        found.push(Finding {
            gate,
            subject: "kernel-exit".to_owned(),
            why,
            known: Vec::new(),
        });
    }
    if let Some(need) = needs.iter().find(|need| need.kind != phase.kind) {
        let why = format!(
            "type: {} → {}: a new window is a good idea",
            need.kind, phase.kind
        );
        found.push(Finding {
            gate: None,
            subject: "type".to_owned(),
            why,
            known: Vec::new(),
        });
    }
    let risky = Scope::parse(&run.risk, policy.fold)
        .ok()
        .zip(Scope::parse(&phase.scope, policy.fold).ok());
    if risky.is_some_and(|(risk, scope)| risk.overlaps(&scope)) {
        found.push(Finding {
            gate: Some(GateKind::Architecture),
            subject: "risk".to_owned(),
            why: "its scope touches files that the house stands on".to_owned(),
            known: vec![("risk.paths".to_owned(), run.risk.join(" "))],
        });
    }
    found
}

fn words(zones: &BTreeSet<Zone>) -> String {
    let names: Vec<String> = zones.iter().map(|zone| zone.to_string()).collect();
    if names.is_empty() {
        "start".to_owned()
    } else {
        names.join(", ")
    }
}

fn entries_in(policy: &Policy, phase: &Phase, zone: Zone) -> Vec<(String, String)> {
    let Ok(scope) = Scope::parse(&phase.scope, policy.fold) else {
        return Vec::new();
    };
    let entries = policy
        .zones
        .entry_zones(&scope)
        .into_iter()
        .filter(|(_, of)| *of == zone);
    entries
        .map(|(entry, zone)| ("Risk".to_owned(), format!("{} is {zone}", entry.as_str())))
        .collect()
}

/// What a finished phase's real diff asks, though it may report `ok`: of what a human let the claim delete, nothing
/// again.
pub fn after(policy: &Policy, run: &Run, phase: &Phase, claim: &Claim, changed: &[Changed]) -> Vec<Finding> {
    let declared = zones_of(policy, phase);
    let risk = Scope::parse(&run.risk, policy.fold).ok();
    let list = |filter: &dyn Fn(&Changed) -> bool| -> Vec<String> {
        changed
            .iter()
            .filter(|it| filter(it))
            .map(|it| it.path.to_string())
            .collect()
    };
    let zone = |path: &LogicalPath| policy.zones.zone_of(path);
    let mut found = Vec::new();
    let mut add = |gate, subject: &str, why: &str, paths: Vec<String>| {
        if !paths.is_empty() {
            let known = paths.into_iter().map(|path| ("Path".to_owned(), path)).collect();
            let subject = subject.to_owned();
            found.push(Finding {
                gate: Some(gate),
                subject,
                why: why.to_owned(),
                known,
            });
        }
    };
    let unasked = |path: &LogicalPath| !may_delete(policy, claim, path);
    let deleted = list(&|it| it.deleted && zone(&it.path) == Zone::Kernel && unasked(&it.path));
    add(GateKind::Zone, DELETES, "it deleted kernel files", deleted);
    let strayed = list(&|it| zone(&it.path) != Zone::Project && !declared.contains(&zone(&it.path)));
    add(
        GateKind::Zone,
        "diff",
        "it wrote in a zone that its scope does not name",
        strayed,
    );
    let fresh = list(&|it| it.added && zone(&it.path) == Zone::Kernel);
    add(
        GateKind::Architecture,
        "diff",
        "it made new files in the kernel zone",
        fresh,
    );
    let risky = list(&|it| risk.as_ref().is_some_and(|risk| risk.covers(&it.path)));
    add(
        GateKind::Architecture,
        "diff",
        "it changed files that the house stands on",
        risky,
    );
    found
}
