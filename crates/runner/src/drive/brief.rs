//! What a satellite is told (`hypervisor.md`, 8): plain text, the plan's words apart from ours.

use protocol::facts::claim::Claim;
use protocol::facts::plan::Phase;

const RULE: &str = "━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━";

/// Composes the brief of a phase for the claim that works on it.
///
/// `before` are the results of the phases that it needs, one line each.
pub fn brief(phase: &Phase, claim: &Claim, zones: &[String], before: &[String]) -> String {
    let mut lines = vec![
        RULE.to_owned(),
        format!("  Phase {} — {}", phase.id, phase.title),
        format!("  Zone     : {}", zones.join(", ")),
        format!("  Type     : {}", phase.kind),
    ];
    lines.extend(phase.agent.iter().map(|agent| format!("  Agent    : {agent}")));
    lines.push(format!("  Scope    : {}", claim.scope));
    lines.extend(
        phase
            .story_angle
            .iter()
            .map(|task| format!("  Task     : {task}")),
    );
    lines.extend(
        claim
            .tests
            .iter()
            .map(|tests| format!("  Tests    : {}", tests.run)),
    );
    lines.extend(before.iter().map(|line| format!("  Before   : {line}")));
    lines.push(RULE.to_owned());
    lines.push(format!(
        "You work as {} in a worktree of your own. Inside the scope decide alone.",
        claim.id
    ));
    lines.push("Before you write a file:  brain preflight check @me PATH".to_owned());
    lines.push(
        "Outside the scope:        brain signal send --to pilot --type BLOCKED_ON \"what you need\""
            .to_owned(),
    );
    lines.push("Before a destructive act: brain gate open @me \"what you are about to do\"".to_owned());
    lines.push(
        "A missing secret stops the work; never ask for one. End with status 0 when you are done:".to_owned(),
    );
    lines.push("your changes are audited, tested, committed and merged for you.".to_owned());
    lines.join("\n") + "\n"
}
