//! The one engine behind covering and overlapping: automata that read a path letter by letter.
//!
//! A machine is a nondeterministic automaton without empty moves. Whether machines share a path is
//! a breadth-first walk over the product of their states, polynomial and exact; what is taken away
//! is determinised on the way, set by set, up to a fixed number of sets.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::part::{Part, Piece};

/// A letter that no machine mentions, as entries refuse control characters: it stands for all those.
const OTHER: char = '\u{1}';

/// The letters on which a machine moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Only(char),
    /// Every letter but `/`.
    Any,
    /// Every letter but `/` and this one.
    Except(char),
}

impl Class {
    fn admits(self, letter: char) -> bool {
        match self {
            Self::Only(mine) => mine == letter,
            Self::Any => letter != '/',
            Self::Except(mine) => letter != '/' && letter != mine,
        }
    }

    /// Returns the letters of both. Two exceptions would need a third case; only the machine of one
    /// built-in zone holds any, and no search walks it twice.
    fn and(self, other: Self) -> Option<Self> {
        match (self, other) {
            (Self::Only(mine), class) | (class, Self::Only(mine)) => {
                class.admits(mine).then_some(Self::Only(mine))
            }
            (Self::Any, class) | (class, Self::Any) => Some(class),
            (Self::Except(_), Self::Except(_)) => Some(self),
        }
    }
}

/// A compiled pattern. Every state can still reach acceptance, and every word that it accepts is a
/// path: no empty component.
#[derive(Clone, Debug)]
pub(in crate::facts) struct Machine {
    /// Where the moves of each state start in `moves`; one more than there are states.
    starts: Vec<u32>,
    moves: Vec<(Class, u32)>,
    accepts: Vec<bool>,
    /// The states from which every way of going on is accepted.
    all: Vec<bool>,
}

/// A state under construction: at most two moves of its own, and an empty one.
#[derive(Default)]
struct Draft {
    moves: [Option<(Class, u32)>; 2],
    skip: Option<u32>,
    accepts: bool,
    all: bool,
}

impl Machine {
    pub(super) fn new(parts: &[Part], below: bool) -> Self {
        let mut drafts = Vec::new();
        let Some((last, before)) = parts.split_last() else {
            add_rest(&mut drafts, true);
            return Self::without_skips(&drafts);
        };
        for part in before {
            add_part(&mut drafts, part);
            if *part != Part::Deep {
                add(&mut drafts, Class::Only('/'), 1);
            }
        }
        if *last == Part::Deep {
            add_rest(&mut drafts, false);
        } else {
            add_part(&mut drafts, last);
            let end = next(&drafts);
            let slash = below.then_some((Class::Only('/'), end + 1));
            drafts.push(Draft {
                moves: [slash, None],
                accepts: true,
                ..Draft::default()
            });
            if below {
                add_rest(&mut drafts, false);
            }
        }
        Self::without_skips(&drafts)
    }

    fn without_skips(drafts: &[Draft]) -> Self {
        let mut machine = Self {
            starts: vec![0],
            moves: Vec::with_capacity(drafts.len() * 2),
            accepts: vec![],
            all: vec![],
        };
        for draft in drafts {
            let reached = || {
                std::iter::successors(Some(draft), |at| {
                    at.skip.and_then(|next| drafts.get(next as usize))
                })
            };
            machine
                .moves
                .extend(reached().flat_map(|at| at.moves.into_iter().flatten()));
            machine.starts.push(machine.moves.len() as u32);
            machine.accepts.push(reached().any(|at| at.accepts));
            machine.all.push(reached().any(|at| at.all));
        }
        machine
    }

    pub(super) fn len(&self) -> usize {
        self.accepts.len()
    }

    fn moves(&self, state: u32) -> &[(Class, u32)] {
        let at = state as usize;
        &self.moves[self.starts[at] as usize..self.starts[at + 1] as usize]
    }

    /// Says whether the machine accepts this path.
    pub(super) fn accepts(&self, path: &str) -> bool {
        let (mut now, mut then) = (vec![0_u32], Vec::new());
        for letter in path.chars() {
            for &state in &now {
                for &(class, target) in self.moves(state) {
                    if class.admits(letter) && !then.contains(&target) {
                        then.push(target);
                    }
                }
            }
            std::mem::swap(&mut now, &mut then);
            then.clear();
        }
        now.iter().any(|state| self.accepts[*state as usize])
    }
}

fn next(drafts: &[Draft]) -> u32 {
    drafts.len() as u32
}

/// Adds a state that moves on `class` by so many states; by none, it loops and can be skipped.
fn add(drafts: &mut Vec<Draft>, class: Class, by: u32) {
    let at = next(drafts);
    let skip = (by == 0).then_some(at + 1);
    drafts.push(Draft {
        moves: [Some((class, at + by)), None],
        skip,
        ..Draft::default()
    });
}

fn add_part(drafts: &mut Vec<Draft>, part: &Part) {
    match part {
        Part::Literal(name) => name
            .chars()
            .for_each(|letter| add(drafts, Class::Only(letter), 1)),
        Part::Deep => {
            let at = next(drafts);
            let inside = Some((Class::Any, at + 1));
            drafts.push(Draft {
                moves: [inside, None],
                skip: Some(at + 2),
                ..Draft::default()
            });
            drafts.push(Draft {
                moves: [inside, Some((Class::Only('/'), at))],
                ..Draft::default()
            });
        }
        Part::Pattern(pieces) => {
            if matches!(pieces[..], [Piece::Run]) {
                add(drafts, Class::Any, 1);
            }
            for piece in pieces {
                match piece {
                    Piece::Char(letter) => add(drafts, Class::Only(*letter), 1),
                    Piece::One => add(drafts, Class::Any, 1),
                    Piece::Run => add(drafts, Class::Any, 0),
                    Piece::But(end) => add_all_but(drafts, end),
                }
            }
        }
    }
}

/// Adds what reads any end of a component but `end`: along `end` every stop but the last is good,
/// and off it all are.
fn add_all_but(drafts: &mut Vec<Draft>, end: &str) {
    let free = next(drafts) + end.chars().count() as u32 + 1;
    for letter in end.chars() {
        let on = (Class::Only(letter), next(drafts) + 1);
        let off = (Class::Except(letter), free);
        drafts.push(Draft {
            moves: [Some(on), Some(off)],
            skip: Some(free + 1),
            ..Draft::default()
        });
    }
    drafts.push(Draft {
        moves: [Some((Class::Any, free)), None],
        ..Draft::default()
    });
    add(drafts, Class::Any, 0);
}

/// Adds what reads one component or more, to the end; at the root, or none.
fn add_rest(drafts: &mut Vec<Draft>, root: bool) {
    let at = next(drafts);
    let inside = Some((Class::Any, at + 1));
    // The empty path is the root: only `.` covers it, so `**` from the start does not cover all.
    drafts.push(Draft {
        moves: [inside, None],
        accepts: root,
        all: root || at > 0,
        ..Draft::default()
    });
    let slash = Some((Class::Only('/'), at));
    drafts.push(Draft {
        moves: [inside, slash],
        accepts: true,
        all: true,
        ..Draft::default()
    });
    if root {
        // After a slash the end is no path: that state is not the root's.
        drafts[at as usize + 1].moves[1] = Some((Class::Only('/'), at + 2));
        drafts.push(Draft {
            moves: [inside, None],
            all: true,
            ..Draft::default()
        });
    }
}

/// Says that a walk would pass its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::facts) struct PastLimit;

/// Returns a path that every machine of `wanted` accepts and none of `taken` does.
///
/// Letters that no machine mentions appear as one that stands for them.
pub(in crate::facts) fn find(
    wanted: &[&Machine],
    taken: &[&Machine],
    sets_max: usize,
) -> Result<Option<String>, PastLimit> {
    let mut walk = Walk::new(wanted, taken, sets_max);
    let Some(start) = walk.start() else {
        return Ok(None);
    };
    let mut nodes = vec![(start, 0_u32, OTHER)];
    let mut seen = Seen::new(walk.size, taken.is_empty());
    seen.insert(start);
    let (mut at, mut steps) = (0, Vec::new());
    while at < nodes.len() {
        let node = nodes[at].0;
        if walk.accepts(node) {
            return Ok(Some(spell(&nodes, at)));
        }
        walk.step(node, &mut steps)?;
        for (target, letter, _) in steps.drain(..) {
            if seen.insert(target) {
                nodes.push((target, at as u32, letter));
            }
        }
        at += 1;
    }
    Ok(None)
}

fn spell(nodes: &[(Node, u32, char)], mut at: usize) -> String {
    let mut letters = Vec::new();
    while at > 0 {
        letters.push(nodes[at].2);
        at = nodes[at].1 as usize;
    }
    letters.iter().rev().collect()
}

/// Counts the states of `wanted` with what is taken away from it: those that one word alone
/// reaches, and the rest.
///
/// The walk over two such products visits at most `words × states` of the first kind and the
/// product of the second: the limits on both bound every later question (see `limits`).
pub(super) fn measure(
    wanted: &Machine,
    taken: &[&Machine],
    sets_max: usize,
    nodes_max: usize,
) -> Result<(usize, usize), PastLimit> {
    let wanted = [wanted];
    let mut walk = Walk::new(&wanted, taken, sets_max);
    let Some(start) = walk.start() else {
        return Ok((0, 0));
    };
    let mut many = HashMap::from([(start, false)]);
    let (mut queue, mut steps) = (vec![start], Vec::new());
    while let Some(node) = queue.pop() {
        let by_many = many[&node];
        walk.step(node, &mut steps)?;
        for (target, _, wild) in steps.drain(..) {
            match many.get_mut(&target) {
                None => {
                    many.insert(target, by_many || wild);
                    queue.push(target);
                }
                Some(known) if !*known => {
                    *known = true;
                    queue.push(target);
                }
                Some(_) => {}
            }
        }
        if many.len() > nodes_max {
            return Err(PastLimit);
        }
    }
    let loops = many.values().filter(|by_many| **by_many).count();
    Ok((many.len() - loops, loops))
}

/// A state of each wanted machine, as one number, and the set of states of the taken ones.
type Node = (u64, u32);

struct Walk<'a> {
    wanted: &'a [&'a Machine],
    sets: Sets<'a>,
    size: u64,
}

impl<'a> Walk<'a> {
    fn new(wanted: &'a [&'a Machine], taken: &'a [&'a Machine], sets_max: usize) -> Self {
        let size = wanted.iter().map(|machine| machine.len() as u64).product();
        Self {
            wanted,
            sets: Sets::new(taken, sets_max),
            size,
        }
    }

    /// Returns the first node; `None` if everything is taken away at once.
    fn start(&mut self) -> Option<Node> {
        self.sets.first().map(|set| (0, set))
    }

    fn accepts(&self, (states, set): Node) -> bool {
        !self.sets.accepts(set)
            && self
                .states(states)
                .all(|(machine, state)| machine.accepts[state as usize])
    }

    fn states(&self, states: u64) -> impl Iterator<Item = (&'a Machine, u32)> {
        self.wanted.iter().scan(states, |rest, machine| {
            let size = machine.len() as u64;
            let state = (*rest % size) as u32;
            *rest /= size;
            Some((*machine, state))
        })
    }

    /// Adds the nodes one letter further, the letter, and whether it stands for many.
    fn step(&mut self, (states, set): Node, steps: &mut Vec<(Node, char, bool)>) -> Result<(), PastLimit> {
        self.combine(self.wanted, states, set, (Class::Any, true), (0, 1), steps)
    }

    /// Chooses a move of each machine in turn, as long as some letter allows them all.
    fn combine(
        &mut self,
        machines: &'a [&'a Machine],
        states: u64,
        set: u32,
        (class, free): (Class, bool),
        (target, unit): (u64, u64),
        steps: &mut Vec<(Node, char, bool)>,
    ) -> Result<(), PastLimit> {
        let Some((machine, others)) = machines.split_first() else {
            return self.take_away(class, target, set, steps);
        };
        let size = machine.len() as u64;
        for &(on, next) in machine.moves((states % size) as u32) {
            let both = if free { Some(on) } else { class.and(on) };
            if let Some(both) = both {
                let target = (target + u64::from(next) * unit, unit * size);
                self.combine(others, states / size, set, (both, false), target, steps)?;
            }
        }
        Ok(())
    }

    fn take_away(
        &mut self,
        class: Class,
        target: u64,
        set: u32,
        steps: &mut Vec<(Node, char, bool)>,
    ) -> Result<(), PastLimit> {
        if let Class::Only(letter) = class {
            if let Some(set) = self.sets.step(set, letter)? {
                steps.push(((target, set), letter, false));
            }
            return Ok(());
        }
        for at in 0..self.sets.letters.len() {
            let letter = self.sets.letters[at];
            if class.admits(letter)
                && let Some(set) = self.sets.step(set, letter)?
            {
                steps.push(((target, set), letter, letter == OTHER));
            }
        }
        Ok(())
    }
}

/// Where a walk has been: a bit each while that is small, a table otherwise.
enum Seen {
    Bits { words: usize, rows: Vec<u64> },
    Table(HashSet<Node>),
}

impl Seen {
    fn new(size: u64, one_set: bool) -> Self {
        if one_set || size <= 4096 {
            Self::Bits {
                words: size.div_ceil(64) as usize,
                rows: Vec::new(),
            }
        } else {
            Self::Table(HashSet::new())
        }
    }

    fn insert(&mut self, (states, set): Node) -> bool {
        match self {
            Self::Table(table) => table.insert((states, set)),
            Self::Bits { words, rows } => {
                let row = set as usize * *words;
                if rows.len() < row + *words {
                    rows.resize(row + *words, 0);
                }
                let (word, bit) = (&mut rows[row + states as usize / 64], 1 << (states % 64));
                let fresh = *word & bit == 0;
                *word |= bit;
                fresh
            }
        }
    }
}

/// A machine, by its place among those that take away, and one of its states.
type Member = (u32, u32);

/// The machines that take away, determinised together as far as a walk needs it.
struct Sets<'a> {
    taken: &'a [&'a Machine],
    /// Each set by its number: machines and their states, in order.
    sets: Vec<Rc<[Member]>>,
    known: HashMap<Rc<[Member]>, u32>,
    accepts: Vec<bool>,
    /// The letters that some taken machine tells apart, and `OTHER`, never `/`.
    letters: Vec<char>,
    /// By set and letter, `/` after the others: unknown, all taken away, or the next set plus two.
    steps: Vec<u32>,
    sets_max: usize,
}

const UNKNOWN: u32 = 0;
const NOTHING_LEFT: u32 = 1;

impl<'a> Sets<'a> {
    fn new(taken: &'a [&'a Machine], sets_max: usize) -> Self {
        let moves = taken.iter().flat_map(|machine| &machine.moves);
        let mut letters: Vec<char> = moves
            .filter_map(|(class, _)| match class {
                Class::Only('/') | Class::Any => None,
                Class::Only(letter) | Class::Except(letter) => Some(*letter),
            })
            .collect();
        letters.sort_unstable();
        letters.dedup();
        letters.push(OTHER);
        let (sets, known, accepts, steps) = Default::default();
        Self {
            taken,
            sets,
            known,
            accepts,
            letters,
            steps,
            sets_max,
        }
    }

    fn first(&mut self) -> Option<u32> {
        if self.taken.iter().any(|machine| machine.all[0]) {
            return None;
        }
        Some(self.number((0..self.taken.len() as u32).map(|machine| (machine, 0)).collect()))
    }

    fn accepts(&self, set: u32) -> bool {
        self.accepts[set as usize]
    }

    /// Returns the set after one letter; `None` if every way on from there is taken away.
    fn step(&mut self, set: u32, letter: char) -> Result<Option<u32>, PastLimit> {
        if self.taken.is_empty() {
            return Ok(Some(set));
        }
        let column = match letter {
            '/' => self.letters.len(),
            letter => {
                let others = self.letters.len() - 1;
                self.letters[..others].binary_search(&letter).unwrap_or(others)
            }
        };
        let at = set as usize * (self.letters.len() + 1) + column;
        if self.steps[at] == UNKNOWN {
            self.steps[at] = match self.moved(set, letter) {
                None => NOTHING_LEFT,
                Some(members) => self.number(members) + 2,
            };
            if self.sets.len() > self.sets_max {
                return Err(PastLimit);
            }
        }
        Ok(self.steps[at].checked_sub(2))
    }

    fn moved(&self, set: u32, letter: char) -> Option<Vec<Member>> {
        let mut moved = Vec::new();
        for &(machine, state) in &*self.sets[set as usize] {
            let taker = self.taken[machine as usize];
            for &(class, target) in taker.moves(state) {
                if class.admits(letter) {
                    if taker.all[target as usize] {
                        return None;
                    }
                    moved.push((machine, target));
                }
            }
        }
        moved.sort_unstable();
        moved.dedup();
        Some(moved)
    }

    fn number(&mut self, members: Vec<Member>) -> u32 {
        if let Some(known) = self.known.get(&members[..]) {
            return *known;
        }
        let set = self.sets.len() as u32;
        let accepts = |(machine, state): &Member| self.taken[*machine as usize].accepts[*state as usize];
        self.accepts.push(members.iter().any(accepts));
        let members: Rc<[Member]> = members.into();
        self.sets.push(Rc::clone(&members));
        self.known.insert(members, set);
        self.steps
            .resize(self.steps.len() + self.letters.len() + 1, UNKNOWN);
        set
    }
}
