//! The words of a preflight's no.

use protocol::facts::id::SessId;
use protocol::facts::zone::Zone;
use protocol::refusal::Detail;

use super::{Advice, advise, ask_holder, at, escaped, halted, hint, holder, quote};

/// What a preflight met, and what to do now. `satellite` is the asking claim, when it is one.
pub fn of_detail(detail: &Detail, path: &str, satellite: Option<&SessId>) -> (String, Vec<Advice>) {
    use Detail as D;
    let tell_pilot = || match satellite {
        Some(id) => advise(
            "tell your pilot",
            format!(
                "brain signal send --from {id} --to pilot --type BLOCKED_ON {}",
                quote(&format!("I need {path}"))
            ),
        ),
        None => hint("open a claim that covers it, or ask its holder"),
    };
    match detail {
        D::Halted { why, since } => halted(why, *since),
        D::Unknown { id } => (
            format!("no claim is called {}", quote(id)),
            vec![advise(
                "open one",
                format!("brain claim open --scope {} --task …", quote(path)),
            )],
        ),
        D::State {
            id,
            state,
            gate,
            paused_by,
        } => {
            let by = if paused_by.is_empty() {
                String::new()
            } else {
                format!(", by {}", paused_by.join(", "))
            };
            let advice = match gate {
                Some(gate) => advise(
                    "show a human what it waits for",
                    format!("brain gate show {gate}"),
                ),
                None => advise("see its state", format!("brain gate status {id}")),
            };
            (
                format!("{id} is {state}{by}: nothing may be written"),
                vec![advice],
            )
        }
        D::Superseded { id, by } => (
            format!("{id} was stale and {by} took its scope: stop"),
            vec![advise("see who has it", format!("brain claim show {by}"))],
        ),
        D::Expired { id } => (
            format!("{id} is stale"),
            vec![advise("its owner renews it", format!("brain claim renew {id}"))],
        ),
        D::Outdated { id } => (
            format!("your token for {id} is outdated"),
            vec![advise("see who has it", format!("brain claim show {id}"))],
        ),
        D::Ancestor { ancestor, state } => (
            format!("{ancestor}, above you, is {state}: nothing may be written below it"),
            vec![advise("see why", format!("brain gate status {ancestor}"))],
        ),
        D::Outside { real, .. } => (
            format!("{} lies outside the brain, at {}", quote(path), quote(real)),
            vec![tell_pilot()],
        ),
        D::Reserved { .. } => (
            format!("{} is git's or brain's own: nobody writes there", quote(path)),
            vec![],
        ),
        D::Links { .. } => (format!("{} goes through more than 40 links", quote(path)), vec![]),
        D::HardLinked { links } => (
            format!(
                "{} has {links} names (hard links), and one of them may lie outside the scope",
                quote(path)
            ),
            vec![advise(
                "give it a file of its own",
                format!("cp -p {0} {0}.new && mv {0}.new {0}", quote(path)),
            )],
        ),
        D::NotCovered { scope, zone, .. } => {
            let zone = if *zone == Zone::Project {
                String::new()
            } else {
                format!(" (zone {zone})")
            };
            (
                format!("{}{zone} is not in your scope: {scope}", quote(path)),
                vec![tell_pilot()],
            )
        }
        D::SearchReads { scope } => (
            format!("a search claim writes only the files that its scope names: {scope}"),
            vec![tell_pilot()],
        ),
        D::Zone { zone, .. } => {
            let advice = match zone {
                Zone::Secret => hint("a human does it by hand"),
                _ => advise(
                    "ask a human for the right",
                    format!("brain gate open @me --about zone.{zone} WHY"),
                ),
            };
            let why = match zone {
                Zone::Secret => "which nobody writes through brain",
                _ => "which needs a human's word",
            };
            (format!("{} is in zone {zone}, {why}", quote(path)), vec![advice])
        }
        D::SecretRead => (
            format!("{} is in zone secret: a satellite never reads it", quote(path)),
            vec![hint("ask for the secret by name in the plan's `secrets:`")],
        ),
        D::KernelDeleted => (
            format!(
                "{} is a kernel file: deleting it needs a human's word of its own",
                quote(path)
            ),
            vec![advise(
                "ask for it",
                format!("brain gate open @me --about zone:{} WHY", quote(path)),
            )],
        ),
        D::LockHeld {
            by,
            locked,
            owner,
            expires_at,
        } => (
            format!(
                "{} is locked by {by} of {}@{} (on {locked}, until {})",
                quote(path),
                owner.user,
                owner.host,
                at(*expires_at)
            ),
            vec![advise(
                "see the lock",
                format!("brain lock check {}", quote(locked.as_str())),
            )],
        ),
        D::Claimed { held } => (
            format!("{} is held by {}", quote(path), holder(held)),
            vec![ask_holder(&held.claim, path)],
        ),
        D::LockRequired => (
            format!("in rendering every write needs the lock on {}", quote(path)),
            vec![advise(
                "take it",
                format!("brain lock acquire {} @me", quote(path)),
            )],
        ),
        D::Breaker {
            work,
            fails,
            most,
            last,
        } => (
            format!(
                "{work} failed {fails}/{most} times in a row: {}",
                escaped(last.as_deref().unwrap_or("no reason given"))
            ),
            vec![hint("stop, tell your pilot, and wait for a human")],
        ),
        D::Branch {
            repo,
            expected,
            found,
        } => {
            let found = found.as_deref().unwrap_or("a detached head");
            let in_repo = if repo.is_empty() || repo == "." {
                String::new()
            } else {
                format!(" in {}", quote(repo))
            };
            (
                format!("you are on {found}{in_repo}, and the claim works on {expected}"),
                vec![advise("go there", format!("git switch {}", quote(expected)))],
            )
        }
        D::Checkout { expected, found, .. } => (
            format!(
                "{} is in the checkout {}, and the claim works in {}",
                quote(path),
                quote(found),
                quote(expected)
            ),
            vec![advise("go there", format!("cd {}", quote(expected)))],
        ),
    }
}
