//! The order that the needs of phases ask for, and the circles that no order satisfies.
//!
//! Phases are positions here, `needs[i]` holding the positions that phase `i` needs. Everything is linear in
//! phases and needs, walks without recursion, and answers the same on every run.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// A circle of phases that wait for each other, and what waits for them without being part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cycle {
    /// The circle in order: each needs the one after it, the last the first. It begins with the phase that
    /// stands first in the plan, and is the shortest through it.
    pub members: Vec<usize>,
    /// Phases of further circles that are knotted with this one, in the plan's order.
    pub knotted: Vec<usize>,
    /// Phases that can never start because of it, in the plan's order. Each is named under one circle only.
    pub waiting: Vec<usize>,
}

/// Gives an order in which every phase comes after all it needs, and otherwise as in the plan.
///
/// Gives nothing when there is a circle: [`cycles`] shows it.
pub fn order(needs: &[Vec<usize>]) -> Option<Vec<usize>> {
    let needed_by = turned(needs);
    let mut open: Vec<usize> = needs.iter().map(Vec::len).collect();
    let mut ready: BinaryHeap<_> = (0..needs.len())
        .filter(|at| open[*at] == 0)
        .map(Reverse)
        .collect();
    let mut order = Vec::with_capacity(needs.len());
    while let Some(Reverse(at)) = ready.pop() {
        order.push(at);
        for &next in &needed_by[at] {
            open[next] -= 1;
            if open[next] == 0 {
                ready.push(Reverse(next));
            }
        }
    }
    (order.len() == needs.len()).then_some(order)
}

/// Finds every knot of circles, each shown by one whole circle, in the plan's order.
pub fn cycles(needs: &[Vec<usize>]) -> Vec<Cycle> {
    let knot_of = knots(needs);
    let mut knots: Vec<Vec<usize>> = vec![Vec::new(); needs.len()];
    for (at, &knot) in knot_of.iter().enumerate() {
        knots[knot].push(at);
    }
    knots.retain(|knot| knot.len() > 1 || knot.first().is_some_and(|at| needs[*at].contains(at)));
    knots.sort_unstable_by_key(|knot| knot[0]);

    let needed_by = turned(needs);
    let mut named = vec![false; needs.len()];
    knots.iter().flatten().for_each(|at| named[*at] = true);
    let mut came_from = vec![usize::MAX; needs.len()];
    let mut cycles = Vec::with_capacity(knots.len());
    for knot in knots {
        let members = shortest_circle(needs, &knot_of, knot[0], &mut came_from);
        let mut in_circle = members.clone();
        in_circle.sort_unstable();
        let mut waiting = Vec::new();
        let mut queue = VecDeque::from(knot.clone());
        while let Some(at) = queue.pop_front() {
            for &next in &needed_by[at] {
                if !named[next] {
                    named[next] = true;
                    waiting.push(next);
                    queue.push_back(next);
                }
            }
        }
        waiting.sort_unstable();
        let knotted = knot
            .into_iter()
            .filter(|at| in_circle.binary_search(at).is_err())
            .collect();
        cycles.push(Cycle {
            members,
            knotted,
            waiting,
        });
    }
    cycles
}

/// Walks breadth first from `start` within its knot until it comes back. A cell of `came_from` is only ever
/// written for one knot, so it needs no clearing.
fn shortest_circle(
    needs: &[Vec<usize>],
    knot_of: &[usize],
    start: usize,
    came_from: &mut [usize],
) -> Vec<usize> {
    let mut queue = VecDeque::from([start]);
    while let Some(at) = queue.pop_front() {
        for &next in &needs[at] {
            if next == start {
                let mut members = vec![at];
                let mut back = at;
                while back != start {
                    back = came_from[back];
                    members.push(back);
                }
                members.reverse();
                return members;
            }
            if knot_of[next] == knot_of[start] && came_from[next] == usize::MAX {
                came_from[next] = at;
                queue.push_back(next);
            }
        }
    }
    vec![start]
}

fn turned(needs: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut needed_by = vec![Vec::new(); needs.len()];
    for (at, needs) in needs.iter().enumerate() {
        needs.iter().for_each(|need| needed_by[*need].push(at));
    }
    needed_by
}

/// Gives each phase the number of its knot (its strongly connected component, by Tarjan's algorithm).
fn knots(needs: &[Vec<usize>]) -> Vec<usize> {
    const UNSEEN: usize = usize::MAX;
    let count = needs.len();
    let (mut seen, mut low, mut knot_of) = (vec![UNSEEN; count], vec![0; count], vec![UNSEEN; count]);
    let (mut clock, mut knots) = (0, 0);
    let mut stack = Vec::new();
    let mut path: Vec<(usize, usize)> = Vec::new();
    for root in 0..count {
        if seen[root] != UNSEEN {
            continue;
        }
        path.push((root, 0));
        while let Some((at, step)) = path.pop() {
            if step == 0 {
                (seen[at], low[at]) = (clock, clock);
                clock += 1;
                stack.push(at);
            } else {
                let child = needs[at][step - 1];
                if knot_of[child] == UNSEEN {
                    low[at] = low[at].min(low[child]);
                }
            }
            match needs[at].get(step) {
                Some(&next) => {
                    path.push((at, step + 1));
                    if seen[next] == UNSEEN {
                        path.push((next, 0));
                    } else if knot_of[next] == UNSEEN {
                        low[at] = low[at].min(seen[next]);
                    }
                }
                None if low[at] == seen[at] => {
                    while let Some(member) = stack.pop() {
                        knot_of[member] = knots;
                        if member == at {
                            break;
                        }
                    }
                    knots += 1;
                }
                None => {}
            }
        }
    }
    knot_of
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cycle(members: &[usize], knotted: &[usize], waiting: &[usize]) -> Cycle {
        Cycle {
            members: members.to_vec(),
            knotted: knotted.to_vec(),
            waiting: waiting.to_vec(),
        }
    }

    #[test]
    fn o_20_a_circle_is_found_whole_and_what_waits_on_it_is_named_apart() {
        let (a, b, c, x, y) = (0, 1, 2, 3, 4);
        let needs = vec![vec![b], vec![c], vec![a], vec![a], vec![x]];
        assert_eq!(cycles(&needs), [cycle(&[a, b, c], &[], &[x, y])]);
        assert_eq!(order(&needs), None);
        assert_eq!(cycles(&[vec![0]]), [cycle(&[0], &[], &[])]);
    }

    #[test]
    fn o_20_a_diamond_is_no_circle() {
        let needs = vec![vec![], vec![0], vec![0], vec![1, 2]];
        assert_eq!(cycles(&needs), []);
        assert_eq!(order(&needs), Some(vec![0, 1, 2, 3]));
    }

    #[test]
    fn two_circles_are_told_apart_and_knotted_ones_together() {
        let apart = vec![vec![1], vec![0], vec![3], vec![2], vec![0, 2]];
        assert_eq!(
            cycles(&apart),
            [cycle(&[0, 1], &[], &[4]), cycle(&[2, 3], &[], &[])]
        );
        let one_needs_the_other = vec![vec![2, 1], vec![0], vec![3], vec![4], vec![2]];
        assert_eq!(
            cycles(&one_needs_the_other),
            [cycle(&[0, 1], &[], &[]), cycle(&[2, 3, 4], &[], &[])]
        );
        let knotted = vec![vec![1], vec![0, 2], vec![1]];
        assert_eq!(cycles(&knotted), [cycle(&[0, 1], &[2], &[])]);
    }

    #[test]
    fn the_order_keeps_the_plans_where_it_is_free() {
        assert_eq!(order(&[vec![2], vec![], vec![]]), Some(vec![1, 2, 0]));
        assert_eq!(order(&[]), Some(vec![]));
    }

    #[test]
    fn a_plan_of_the_largest_size_is_no_depth_problem() {
        let chain: Vec<_> = (0..20_000)
            .map(|at| if at == 0 { vec![] } else { vec![at - 1] })
            .collect();
        assert_eq!(order(&chain).map(|order| order.len()), Some(20_000));
        let ring: Vec<_> = (0..20_000).map(|at| vec![(at + 1) % 20_000]).collect();
        assert_eq!(cycles(&ring)[0].members.len(), 20_000);
        let pairs: Vec<_> = (0..20_000_usize).map(|at| vec![at ^ 1]).collect();
        assert_eq!(cycles(&pairs).len(), 10_000);
    }

    proptest! {
        #[test]
        fn there_is_an_order_or_a_circle_and_each_is_true(
            needs in (1_usize..9).prop_flat_map(|n| {
                proptest::collection::vec(proptest::collection::vec(0..n, 0..3), n)
            })
        ) {
            let cycles = cycles(&needs);
            match order(&needs) {
                Some(order) => {
                    prop_assert!(cycles.is_empty());
                    let place = |at| order.iter().position(|found| *found == at);
                    for (at, needs) in needs.iter().enumerate() {
                        prop_assert!(needs.iter().all(|need| place(*need) < place(at)));
                    }
                }
                None => {
                    prop_assert!(!cycles.is_empty());
                    for cycle in cycles {
                        let members = &cycle.members;
                        for (step, at) in members.iter().enumerate() {
                            prop_assert!(needs[*at].contains(&members[(step + 1) % members.len()]));
                        }
                    }
                }
            }
        }
    }
}
