//! Phases that could run at once and conflict: they will run one after the other, and that is told.

use std::collections::HashMap;

use protocol::facts::kind::Kind;
use protocol::facts::needs;
use protocol::facts::plan::{Phase, Plan};

/// Finds the pairs of phases without a path between them whose scopes conflict, as positions in the plan.
///
/// `conflict` is asked only where the literal beginnings of two scopes lie on one line of folders; elsewhere no
/// path can be in both. A search conflicts with nobody here. At most [`PAIRS_MAX`] pairs are looked at: a plan
/// with more of them is told in part, and its run judges each pair when it comes to it.
pub(super) fn side_by_side(
    plan: &Plan,
    conflict: &dyn Fn(&[String], &[String]) -> bool,
) -> Vec<(usize, usize)> {
    let Some((needs, order)) = plan
        .needs()
        .and_then(|needs| needs::order(&needs).map(|order| (needs, order)))
    else {
        return Vec::new();
    };
    let mut looks = 0;
    let mut pairs = Vec::new();
    let after = Reach::of(&needs, &order);
    let mut at_folder: HashMap<String, Vec<usize>> = HashMap::new();
    let folders: Vec<Vec<String>> = plan.phases.iter().map(folders).collect();
    for (at, folders) in folders.iter().enumerate() {
        folders
            .iter()
            .for_each(|folder| at_folder.entry(folder.clone()).or_default().push(at));
    }
    for (at, folders) in folders.iter().enumerate() {
        let mut met: Vec<usize> = Vec::new();
        for folder in folders.iter().flat_map(|folder| upwards(folder)) {
            looks += 1;
            let others = at_folder.get(folder).map_or(&[][..], Vec::as_slice);
            let room = PAIRS_MAX.saturating_sub(looks);
            met.extend(others.iter().take(room).filter(|other| **other != at));
            looks += others.len().min(room);
        }
        met.sort_unstable();
        met.dedup();
        for other in met {
            let (first, second) = (at.min(other), at.max(other));
            if !after.ordered(first, second)
                && conflict(&plan.phases[first].scope, &plan.phases[second].scope)
            {
                pairs.push((first, second));
            }
        }
        if looks >= PAIRS_MAX {
            break;
        }
    }
    pairs.sort_unstable();
    pairs.dedup();
    pairs
}

/// How many pairs of phases are looked at in one plan.
const PAIRS_MAX: usize = 1 << 20;

/// Gives the literal folder that each entry of a scope begins in, folded so that no volume tells it apart.
fn folders(phase: &Phase) -> Vec<String> {
    if phase.kind == Kind::Search {
        return Vec::new();
    }
    let mut folders: Vec<_> = phase
        .scope
        .iter()
        .filter(|entry| !entry.starts_with('!'))
        .map(|entry| {
            // A name beyond ASCII may be written in two forms: it ends the literal part, like a pattern.
            let plain = |part: &&str| part.is_ascii() && !part.contains(['*', '?', '\\']);
            let parts = entry.split('/').filter(|part| !part.is_empty() && *part != ".");
            parts
                .take_while(plain)
                .collect::<Vec<_>>()
                .join("/")
                .to_ascii_lowercase()
        })
        .collect();
    folders.sort_unstable();
    folders.dedup();
    folders
}

/// Gives a folder and all above it, up to the root, which is empty.
fn upwards(folder: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(folder), |folder| match folder.rfind('/') {
        Some(end) => Some(&folder[..end]),
        None if folder.is_empty() => None,
        None => Some(""),
    })
}

/// For each phase the set of phases that come before it, one bit each.
struct Reach {
    words: usize,
    bits: Vec<u64>,
}

impl Reach {
    fn of(needs: &[Vec<usize>], order: &[usize]) -> Self {
        let words = needs.len().div_ceil(64);
        let mut bits = vec![0_u64; words * needs.len()];
        for &at in order {
            for &need in &needs[at] {
                for word in 0..words {
                    bits[at * words + word] |= bits[need * words + word];
                }
                bits[at * words + need / 64] |= 1 << (need % 64);
            }
        }
        Self { words, bits }
    }

    fn ordered(&self, a: usize, b: usize) -> bool {
        let before = |a: usize, b: usize| self.bits[a * self.words + b / 64] >> (b % 64) & 1 == 1;
        before(a, b) || before(b, a)
    }
}
