//! Step 8: what a person reads of a close, in a few lines.

use protocol::facts::claim::{Claim, ClaimResult, Outcome, Tier};

/// Says how a close went in at most 5 lines, 8 for tier 3 (protocol, section 11).
pub fn summary(claim: &Claim, result: &ClaimResult) -> Vec<String> {
    let (mark, how) = match result.status {
        Outcome::Ok => ("✅", "done"),
        Outcome::Partial => ("⚠️", "partly done"),
        Outcome::Failed => ("❌", "failed"),
    };
    let tier = match claim.tier() {
        Tier::Atomic => "",
        Tier::Validated => " [Validated]",
        Tier::Orchestrated => " [Orchestrated]",
    };
    let who = claim.kind_of.as_str();
    let who = who[..1].to_uppercase() + &who[1..];
    let mut lines = vec![format!(
        "{mark} {who} {how} — {}{tier}",
        claim.scope.to_strings().join(", ")
    )];
    let line = |name: &str, text: &str| format!("{name:<9} : {text}");
    if let Some(tests) = result.tests.as_ref().filter(|_| claim.tier() == Tier::Validated) {
        let counts = match &tests.report {
            Some(report) => format!(
                "{}/{}{}",
                report.passed,
                report.total,
                if report.is_green() { " ✅" } else { "" }
            ),
            None => "no count".to_owned(),
        };
        lines.push(line("Tests", &counts));
    }
    if claim.tier() == Tier::Orchestrated {
        lines.push(line("Children", &format!("{} closed", result.children.len())));
        lines.push(line("Status", result.status.as_str()));
    }
    let files = match result.files_modified.as_slice() {
        [] => "no file".to_owned(),
        [one] => one.clone(),
        [one, rest @ ..] => format!("{one} +{}", rest.len()),
    };
    lines.push(line("Delivered", &format!("{} ({files})", claim.story_angle)));
    let commits: Vec<String> = match result.commit.iter().collect::<Vec<_>>().as_slice() {
        [] => vec!["none".to_owned()],
        [(_, one)] => vec![short(one).to_owned()],
        many => many
            .iter()
            .map(|(repo, oid)| format!("{repo} {}", short(oid)))
            .collect(),
    };
    lines.push(line("Commit", &commits.join(", ")));
    lines.push(match (&result.signal_id, &claim.parent_satellite) {
        (Some(signal), Some(parent)) => line("Signal", &format!("{signal} → {parent}")),
        _ => line("Signal", "standalone"),
    });
    lines
}

fn short(commit: &str) -> &str {
    commit.get(..7).unwrap_or(commit)
}
