//! Whose a change is: what a close may commit, what refuses it, what it leaves alone (section 11, step 1).

use std::fmt;

use crate::facts::claim::{Base, Claim, ClaimType, End};
use crate::facts::id::SessId;
use crate::facts::path::LogicalPath;
use crate::facts::scope::Scope;
use crate::facts::time::Instant;
use crate::refusal::{Detail, Stray};
use crate::rules::Asked;
use crate::rules::claim::writes;
use crate::rules::preflight::{Op, in_scope, in_zone};
use crate::world::World;

/// A path that is not as it was when the claim was opened, with what git knows of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Change {
    /// The logical path.
    pub path: LogicalPath,
    /// Whether nothing is there any more.
    pub deleted: bool,
    /// Whether files or index hold it uncommitted.
    pub uncommitted: bool,
    /// How it stood at the opening.
    pub at_opening: AtOpening,
    /// The commits since the opening that touched it.
    pub commits: Vec<Commit>,
}

/// How a path stood when the claim was opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AtOpening {
    /// As in the commit.
    Clean,
    /// Already different, and still exactly that.
    Same,
    /// Already different, and by now something else.
    Changed,
}

/// A commit that touched a path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Commit {
    /// The sessions that its trailers name.
    pub sessions: Vec<String>,
    /// Whether it was made elsewhere, and a pull, a merge or a reset brought it.
    pub brought: bool,
}

/// Why a change is not the closing claim's.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Left {
    /// It was there at the opening, and is what it was.
    Before,
    /// It lies in the scope of this claim, which was live meanwhile or was launched by the closing one.
    Claimed(SessId),
    /// Its commits carry the name of another session.
    Committed(String),
    /// Only commits that were made elsewhere brought it.
    Brought,
    /// A human said so.
    Said,
}

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Left::Before => f.write_str("it was there when the claim was opened"),
            Left::Claimed(id) => write!(f, "it lies in the scope of {id}"),
            Left::Committed(session) => write!(f, "{session} committed it"),
            Left::Brought => f.write_str("a pull or merge brought it"),
            Left::Said => f.write_str("a human said to leave it"),
        }
    }
}

/// Every change in one of three heaps; positions are those of the changes that were handed in.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Attribution {
    /// The claim's own and covered: to be committed.
    pub mine: Vec<usize>,
    /// The claim's own and not covered: they refuse the close.
    pub strays: Vec<(usize, Stray)>,
    /// Somebody else's.
    pub left: Vec<(usize, Left)>,
}

/// Sorts changes by whose they are. What nobody claims is the closing claim's.
///
/// The world holds the claims that were live meanwhile ([`crate::world::Pick::Since`] and
/// [`crate::world::Pick::Live`]) and what the claim launched. `leave` is a human's word; that it is a
/// human's was judged before.
pub fn attribute(asked: Asked<'_>, claim: &Claim, leave: Option<&Scope>, changes: &[Change]) -> Attribution {
    let others = others(asked.world, claim);
    let mut sorted = Attribution::default();
    for (at, change) in changes.iter().enumerate() {
        if let Some(left) = not_mine(claim, &others, change) {
            sorted.left.push((at, left));
        } else if leave.is_some_and(|leave| leave.covers(&change.path)) {
            sorted.left.push((at, Left::Said));
        } else if let Some(why) = uncovered(asked, claim, change) {
            let path = change.path.clone();
            let made = None;
            sorted.strays.push((at, Stray { path, why, made }));
        } else {
            sorted.mine.push(at);
        }
    }
    sorted
}

/// Another claim with what it may write, and how it stands to the closing one.
struct Other<'w> {
    id: &'w SessId,
    scope: std::borrow::Cow<'w, Scope>,
    /// It delegates to the closing claim, so it gave away what that one's scope covers.
    above: bool,
}

/// The claims whose changes may lie in the same checkout.
fn others<'w>(world: &'w World, claim: &Claim) -> Vec<Other<'w>> {
    let met = |other: &&Claim| {
        let reads_files = other.kind_of != ClaimType::Pilot || other.exclusive;
        let meanwhile = match &other.end {
            None => true,
            Some(End::Closed { at } | End::Failed { at, .. }) => is_after(*at, claim.opened_at),
        };
        other.id != claim.id && reads_files && meanwhile && !claim.inherits.contains(&other.id)
    };
    let known = |other: &'w Claim| {
        Some(Other {
            id: &other.id,
            scope: writes(other)?,
            above: world.descends_from(claim, &other.id),
        })
    };
    world.claims.values().filter(met).filter_map(known).collect()
}

fn is_after(late: Instant, early: Instant) -> bool {
    (late.era, late.tick) > (early.era, early.tick)
}

fn not_mine(claim: &Claim, others: &[Other<'_>], change: &Change) -> Option<Left> {
    let covered = claim.scope.covers(&change.path);
    if change.at_opening == AtOpening::Same && !(claim.take_dirty && covered) {
        return Some(Left::Before);
    }
    let theirs = |other: &&Other<'_>| other.scope.covers(&change.path) && !(other.above && covered);
    if let Some(other) = others.iter().find(theirs) {
        return Some(Left::Claimed(other.id.clone()));
    }
    // What is uncommitted besides was written here, whoever committed before.
    if change.uncommitted || change.commits.is_empty() {
        return None;
    }
    let foreign = |commit: &Commit| {
        let own = commit.sessions.iter().any(|it| it == claim.id.as_str());
        match commit.sessions.first() {
            Some(session) if !own => Some(Left::Committed(session.clone())),
            None if commit.brought => Some(Left::Brought),
            _ => None,
        }
    };
    let all: Option<Vec<Left>> = change.commits.iter().map(foreign).collect();
    all?.into_iter().next()
}

/// Why the claim may not have changed this path, if so.
fn uncovered(asked: Asked<'_>, claim: &Claim, change: &Change) -> Option<String> {
    if let Some(part) = change.path.reserved() {
        return Some(format!("{part} is reserved"));
    }
    let op = if change.deleted { Op::Delete } else { Op::Write };
    let verdict =
        in_scope(asked, claim, &change.path, None).and_then(|()| in_zone(asked, claim, op, &change.path));
    match verdict {
        Ok(()) => None,
        Err(Detail::SearchReads { .. }) => {
            Some("a search claim writes only the files that it names".to_owned())
        }
        Err(Detail::KernelDeleted) => Some("deleting a kernel file needs a gate of its own".to_owned()),
        Err(Detail::Zone { zone, .. }) => Some(format!(
            "it is of zone {zone}, and the claim has no right to write there"
        )),
        Err(_) => Some("it is outside the scope".to_owned()),
    }
}

/// What a repository was for this claim at its opening: with what it took over from claims before it.
///
/// What a superseded claim had left in its scope is the successor's own work, though it was there when
/// the successor was opened.
pub fn opening(
    world: &World,
    claim: &Claim,
    repo: &str,
    place: impl Fn(&str) -> LogicalPath,
) -> Option<Base> {
    let mut base = claim.base.get(repo)?.clone();
    let mut line: Vec<&SessId> = claim.inherits.iter().collect();
    let mut seen = 0;
    while let Some(id) = line.get(seen) {
        seen += 1;
        let Some(before) = world.claims.get(*id) else {
            continue;
        };
        let further: Vec<&SessId> = before.inherits.iter().filter(|id| !line.contains(id)).collect();
        line.extend(further);
        let Some(theirs) = before.base.get(repo) else {
            continue;
        };
        let taken: Vec<String> = base
            .dirty
            .keys()
            .filter(|path| before.scope.covers(&place(path)) && claim.scope.covers(&place(path)))
            .cloned()
            .collect();
        for path in taken {
            match theirs.dirty.get(&path) {
                Some(was) => base.dirty.insert(path, was.clone()),
                None => base.dirty.remove(&path),
            };
        }
    }
    Some(base)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{Command, OpenClaim};
    use crate::event::Entry;
    use crate::facts::caller::{Caller, TokenDigest};
    use crate::facts::claim::{FailedBy, Level, Owner};
    use crate::facts::kind::Kind;
    use crate::facts::path::Fold;
    use crate::facts::policy::Policy;
    use crate::facts::span::Span;
    use crate::facts::zone::{ZoneLists, Zones};
    use crate::rules::decide;

    fn path(text: &str) -> LogicalPath {
        LogicalPath::from_tree(text, Fold::Exact).unwrap()
    }

    fn changed(text: &str) -> Change {
        Change {
            path: path(text),
            deleted: false,
            uncommitted: true,
            at_opening: AtOpening::Clean,
            commits: Vec::new(),
        }
    }

    fn committed(text: &str, commits: &[(&str, bool)]) -> Change {
        let commits = commits.iter().map(|(session, brought)| Commit {
            sessions: session.split_whitespace().map(str::to_owned).collect(),
            brought: *brought,
        });
        Change {
            uncommitted: false,
            commits: commits.collect(),
            ..changed(text)
        }
    }

    /// Opens claims in order, and says in one word for each change whose it is for the first of them.
    struct Story {
        world: World,
        policy: Policy,
        caller: Caller,
        tick: u64,
    }

    impl Story {
        fn new() -> Story {
            Story {
                world: World::default(),
                policy: Policy {
                    zones: Zones::new(&ZoneLists::default(), false, &[], Fold::Exact).unwrap(),
                    kerneluser: true,
                    fails_max: 3,
                    exit_is_enough: Vec::new(),
                    stale_grace: Span::from_ms(1_000_000),
                    fold: Fold::Exact,
                    digest: String::new(),
                },
                caller: Caller::plain("ana", "here"),
                tick: 1,
            }
        }

        fn now(&self) -> Instant {
            Instant {
                era: 1,
                tick: self.tick,
                wall: 0,
            }
        }

        fn id(name: &str) -> SessId {
            SessId::parse(&format!("sess-20261130-1030-{name}")).unwrap()
        }

        fn give(&mut self, command: &Command) {
            self.tick += 10;
            let asked = Asked {
                world: &self.world,
                caller: &self.caller,
                policy: &self.policy,
                now: self.now(),
            };
            let (events, actor) = (decide(asked, command).unwrap(), crate::rules::who::actor(asked));
            for event in events {
                let entry = Entry {
                    seq: self.world.head + 1,
                    at: self.now(),
                    actor: actor.clone(),
                    key: None,
                    event,
                };
                self.world.apply(&entry);
            }
        }

        fn open(&mut self, name: &str, scope: &str, change: impl FnOnce(&mut OpenClaim)) {
            let mut ask = OpenClaim {
                id: Some(Story::id(name)),
                satellite_type: Kind::BrainWrite,
                ..OpenClaim::new(
                    name,
                    name,
                    Scope::parse(scope.split(' '), Fold::Exact).unwrap(),
                    "",
                    Owner {
                        user: "ana".to_owned(),
                        host: "here".to_owned(),
                        process: None,
                        host_session: None,
                    },
                    TokenDigest(name.to_owned()),
                )
            };
            change(&mut ask);
            self.give(&Command::OpenClaim(ask));
        }

        fn whose(&self, name: &str, change: Change) -> String {
            self.with_leave(name, None, change)
        }

        fn with_leave(&self, name: &str, leave: Option<&str>, change: Change) -> String {
            let asked = Asked {
                world: &self.world,
                caller: &self.caller,
                policy: &self.policy,
                now: self.now(),
            };
            let leave = leave.map(|leave| Scope::parse([leave], Fold::Exact).unwrap());
            let claim = &self.world.claims[&Story::id(name)];
            let sorted = attribute(asked, claim, leave.as_ref(), &[change]);
            match (
                sorted.mine.as_slice(),
                sorted.strays.as_slice(),
                sorted.left.as_slice(),
            ) {
                ([0], [], []) => "mine".to_owned(),
                ([], [(0, stray)], []) => format!("stray: {}", stray.why),
                ([], [], [(0, left)]) => format!("left: {left}"),
                other => panic!("{other:?}"),
            }
        }
    }

    const STRAY: &str = "stray: it is outside the scope";

    #[test]
    fn what_nobody_claims_is_mine_and_must_be_covered() {
        let mut story = Story::new();
        story.open("me", "src/ !src/gen/", |_| {});
        assert_eq!(story.whose("me", changed("src/a")), "mine");
        assert_eq!(story.whose("me", changed("src/gen/a")), STRAY);
        assert_eq!(story.whose("me", changed("lib/a")), STRAY);
        assert_eq!(
            story.with_leave("me", Some("lib/*"), changed("lib/a")),
            "left: a human said to leave it"
        );
        assert_eq!(story.with_leave("me", Some("lib/*"), changed("lib/a/b")), STRAY);
        assert!(
            story
                .whose("me", changed("src/.git/hooks/x"))
                .contains("reserved")
        );
    }

    #[test]
    fn what_was_there_is_left_unless_it_was_taken_over_or_changed() {
        for take_dirty in [false, true] {
            let mut story = Story::new();
            story.open("me", "src/", |ask| ask.take_dirty = take_dirty);
            let at = |path: &str, at_opening| Change {
                at_opening,
                ..changed(path)
            };
            let before = "left: it was there when the claim was opened";
            let inside = if take_dirty { "mine" } else { before };
            assert_eq!(story.whose("me", at("src/a", AtOpening::Same)), inside);
            assert_eq!(story.whose("me", at("lib/a", AtOpening::Same)), before);
            assert_eq!(story.whose("me", at("src/a", AtOpening::Changed)), "mine");
            assert_eq!(story.whose("me", at("lib/a", AtOpening::Changed)), STRAY);
        }
    }

    #[test]
    fn claims_that_were_live_meanwhile_have_what_is_theirs() {
        let mut story = Story::new();
        story.open("before", "old/", |_| {});
        story.give(&Command::Abort {
            id: Story::id("before"),
            why: "x".to_owned(),
        });
        story.open("earlier", "lib/", |_| {});
        story.open("reader", "docs/ docs/named.md", |ask| {
            ask.satellite_type = Kind::Search
        });
        story.open("me", "src/", |_| {});
        story.open("later", "etc/", |_| {});
        story.give(&Command::Abort {
            id: Story::id("earlier"),
            why: "x".to_owned(),
        });
        assert_eq!(story.whose("me", changed("old/a")), STRAY);
        assert!(
            story
                .whose("me", changed("lib/a"))
                .starts_with("left: it lies in the scope of")
        );
        assert!(
            story
                .whose("me", changed("etc/a"))
                .starts_with("left: it lies in the scope of")
        );
        assert_eq!(story.whose("me", changed("docs/a")), STRAY);
        assert!(story.whose("me", changed("docs/named.md")).starts_with("left:"));
        assert_eq!(
            story.whose("later", changed("src/a")),
            format!("left: it lies in the scope of {}", Story::id("me"))
        );
    }

    #[test]
    fn a_family_gives_away_downwards_and_keeps_the_rest() {
        let mut story = Story::new();
        story.open("top", ".", |ask| ask.kind_of = ClaimType::Pilot);
        story.open("mid", "src/", |ask| {
            ask.kind_of = ClaimType::Satellite;
            ask.satellite_level = Level::Domain;
            ask.parent = Some(Story::id("top"));
        });
        story.open("low", "src/api/", |ask| {
            ask.kind_of = ClaimType::Satellite;
            ask.parent = Some(Story::id("mid"));
        });
        assert_eq!(story.whose("low", changed("src/api/a")), "mine");
        assert_eq!(
            story.whose("low", changed("src/b")),
            format!("left: it lies in the scope of {}", Story::id("mid"))
        );
        assert_eq!(
            story.whose("low", changed("lib/b")),
            STRAY,
            "a pilot claims attention, not files"
        );
        assert_eq!(story.whose("mid", changed("src/b")), "mine");
        assert_eq!(
            story.whose("mid", changed("src/api/a")),
            format!("left: it lies in the scope of {}", Story::id("low"))
        );
        assert_eq!(story.whose("top", changed("lib/a")), "mine");
    }

    #[test]
    fn a_commit_says_whose_it_is_unless_more_was_written_on_top() {
        let mut story = Story::new();
        story.open("me", "src/", |_| {});
        let me = Story::id("me");
        let of = |commits: &[(&str, bool)]| story.whose("me", committed("lib/a", commits));
        assert_eq!(of(&[("sess-x", false)]), "left: sess-x committed it");
        assert_eq!(of(&[("", true)]), "left: a pull or merge brought it");
        assert_eq!(
            of(&[("", true), ("sess-x", true)]),
            "left: a pull or merge brought it"
        );
        assert_eq!(of(&[("", false)]), STRAY);
        assert_eq!(of(&[("", true), ("", false)]), STRAY, "one of them was made here");
        assert_eq!(
            of(&[(me.as_str(), true)]),
            STRAY,
            "its own name counts wherever it was made"
        );
        assert_eq!(of(&[(&format!("sess-x {me}"), false)]), STRAY);
        let on_top = Change {
            uncommitted: true,
            ..committed("lib/a", &[("sess-x", false)])
        };
        assert_eq!(story.whose("me", on_top), STRAY);
        assert_eq!(story.whose("me", committed("src/a", &[("", false)])), "mine");
    }

    #[test]
    fn a_zone_without_the_right_makes_a_stray_of_what_the_scope_covers() {
        let mut story = Story::new();
        story.open("me", ". CLAUDE.md", |_| {});
        assert_eq!(story.whose("me", changed("CLAUDE.md")), "mine");
        assert!(story.whose("me", changed("AGENTS.md")).contains("zone kernel"));
        assert!(story.whose("me", changed("a/.env")).contains("zone secret"));
        let deleted = Change {
            deleted: true,
            ..changed("CLAUDE.md")
        };
        assert_eq!(
            story.whose("me", deleted),
            "stray: deleting a kernel file needs a gate of its own"
        );
    }

    #[test]
    fn what_was_taken_over_is_compared_with_what_the_first_one_met() {
        let mut story = Story::new();
        let base = |dirty: &[(&str, &str)]| {
            let dirty = dirty
                .iter()
                .map(|(path, was)| ((*path).to_owned(), (*was).to_owned()));
            [(
                ".".to_owned(),
                Base {
                    dirty: dirty.collect(),
                    ..Base::default()
                },
            )]
            .into()
        };
        story.open("first", "src/", |ask| {
            ask.ttl = Some(Span::from_ms(1_000));
            ask.base = base(&[("src/human", "1"), ("lib/human", "1")]);
        });
        story.tick += 5_000;
        let met = [
            ("src/human", "1"),
            ("src/half", "2"),
            ("src/both", "3"),
            ("lib/human", "1"),
            ("lib/x", "9"),
        ];
        story.open("second", "src/", |ask| ask.base = base(&met));
        let second = &story.world.claims[&Story::id("second")];
        let first = &story.world.claims[&Story::id("first")];
        assert!(matches!(
            &first.end,
            Some(End::Failed {
                by: FailedBy::Superseded(_),
                ..
            })
        ));
        let found = opening(&story.world, second, ".", path).unwrap().dirty;
        let left: Vec<&str> = found.keys().map(String::as_str).collect();
        assert_eq!(left, ["lib/human", "lib/x", "src/human"]);
    }
}
