//! Step 1, the audit: what changed since the opening, and whose it is.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use git::{Door, Made, Oid};
use protocol::facts::claim::Base;
use protocol::facts::path::LogicalPath;
use protocol::facts::scope::Scope;
use protocol::refusal::{self, MadeBy, Refusal, Stray};
use protocol::rules::attribute::{self, AtOpening, Change, Commit};

use super::Notice;
use super::step::{Step, Stop};
use crate::base::{Checkout, guarded, opening_of, unstored};

/// What the audit found, by repository.
pub(super) struct Found {
    pub parts: Vec<Part>,
}

/// What was found in one repository.
pub(super) struct Part {
    pub checkout: Checkout,
    pub door: Door,
    /// The commit checked out now.
    pub head: Option<Oid>,
    pub branch: Option<String>,
    pub upstream: Option<String>,
    /// The claim's own changes that are not committed, relative to the checkout.
    pub to_commit: Vec<PathBuf>,
    /// All of the claim's own changes, committed or not, with their paths relative to the checkout.
    pub own: BTreeMap<LogicalPath, PathBuf>,
    /// The newest commit that the session made itself.
    pub own_commit: Option<Oid>,
    /// Somebody else's changes, with why they are.
    pub left: Vec<(LogicalPath, attribute::Left)>,
    /// How many of those are uncommitted.
    pub foreign: u32,
}

impl Found {
    /// Whether nothing was changed, committed or not.
    pub fn is_unchanged(&self) -> bool {
        self.parts.iter().all(|part| part.own.is_empty())
    }

    /// The paths that the claim changed, for its result.
    pub fn files(&self) -> Vec<String> {
        let paths = self.parts.iter().flat_map(|part| part.own.keys());
        paths.map(|path| path.as_str().to_owned()).collect()
    }

    /// The part in a repository.
    pub fn part(&self, repo: &str) -> Option<&Part> {
        self.parts.iter().find(|part| part.checkout.repo == repo)
    }
}

impl Part {
    /// Writes the tree that a commit of the claim's changes has.
    pub fn tree(&self) -> Result<Oid, Stop> {
        Ok(self.door.tree_of(&self.to_commit)?)
    }
}

impl Step<'_, '_> {
    /// Compares every repository of the claim's base with now, and refuses what is out of scope.
    pub fn audit(&mut self) -> Result<Found, Stop> {
        let leave = match self.ask.leave.as_slice() {
            [] => None,
            entries => Some(Scope::parse(entries, self.door.policy.fold).map_err(|error| {
                let (field, why) = ("--leave".to_owned(), format!("{error:?}"));
                Stop::refused(Refusal::BadText { field, why })
            })?),
        };
        let artifacts = self.artifacts()?;
        let repos: Vec<String> = self.claim.base.keys().cloned().collect();
        let (mut parts, mut strays) = (Vec::new(), Vec::new());
        for repo in repos {
            let (part, found) = self.audit_one(&repo, leave.as_ref(), &artifacts)?;
            parts.push(part);
            strays.extend(found);
        }
        if !strays.is_empty() {
            strays.sort_by(|a, b| a.path.cmp(&b.path));
            let id = self.claim.id.clone();
            return Err(Stop::refused(Refusal::OutOfScope { id, strays }));
        }
        Ok(Found { parts })
    }

    fn audit_one(
        &self,
        repo: &str,
        leave: Option<&Scope>,
        artifacts: &BTreeSet<String>,
    ) -> Result<(Part, Vec<Stray>), Stop> {
        let fold = self.door.policy.fold;
        let noted = &self.claim.base[repo];
        let folder = Path::new(&noted.checkout);
        let checkout = Checkout::find(self.door.root, folder).filter(|it| it.folder() == folder);
        let checkout = checkout
            .filter(|it| it.repo == repo)
            .ok_or_else(|| self.wrong_place(repo, &noted.checkout, "no checkout of it is there"))?;
        let door = self.open(checkout.repository.clone())?;
        let elsewhere = self.is_elsewhere(repo, noted, &door)?;

        let place = |path: &str| {
            let logical = checkout.logical(&unstored(path), fold);
            logical.unwrap_or_else(LogicalPath::root)
        };
        let base = attribute::opening(&self.world, &self.claim, repo, place).unwrap_or_default();
        let audit = door.audit(&opening_of(&base))?;
        let touches: Vec<Commit> = audit
            .commits
            .iter()
            .map(|commit| Commit {
                sessions: commit.sessions.clone(),
                brought: commit.made == Made::Brought,
            })
            .collect();
        let (mut seen, mut changes) = (Vec::new(), Vec::new());
        for change in &audit.changes {
            let Some(path) = checkout.logical(&change.path, fold) else {
                continue; // outside the brain root
            };
            // A repository inside this one is looked at by itself; git could only commit its name. What is
            // untracked in `.brain/` is brain's own.
            let inner = change.untracked && change.is_repository();
            let own = change.untracked && path.components().next() == Some(".brain");
            if inner || own || change.untracked && artifacts.contains(path.as_str()) {
                continue;
            }
            changes.push(Change {
                path,
                deleted: change.mode.is_none(),
                uncommitted: change.is_uncommitted(),
                at_opening: match change.at_opening {
                    git::AtOpening::Clean => AtOpening::Clean,
                    git::AtOpening::DirtySame => AtOpening::Same,
                    git::AtOpening::DirtyChanged => AtOpening::Changed,
                },
                commits: change.commits.iter().map(|at| touches[*at].clone()).collect(),
            });
            seen.push(change);
        }
        let sorted = attribute::attribute(self.asked(), &self.claim, leave, &changes);
        let mut strays: Vec<Stray> = sorted
            .strays
            .into_iter()
            .map(|(at, stray)| Stray {
                made: Some(made(folder, seen[at], base.commit.as_deref())),
                ..stray
            })
            .collect();
        strays.extend(self.guarded_strays(&checkout, &audit.ignored, &base, leave)?);

        let mut part = Part {
            own: sorted
                .mine
                .iter()
                .map(|at| (changes[*at].path.clone(), seen[*at].path.clone()))
                .collect(),
            to_commit: Vec::new(),
            own_commit: None,
            left: Vec::new(),
            foreign: 0,
            head: audit.head.clone(),
            branch: audit.branch.clone(),
            upstream: audit.upstream.clone(),
            checkout,
            door,
        };
        let mut newest: Option<usize> = None;
        for at in sorted.mine {
            let change = seen[at];
            if change.is_uncommitted() {
                part.to_commit.push(change.path.clone());
            }
            let mine = |at: &&usize| {
                let commit = &audit.commits[**at];
                let named = commit.sessions.iter().any(|it| it == self.claim.id.as_str());
                named || commit.sessions.is_empty() && commit.made != Made::Brought
            };
            let first = change.commits.iter().filter(mine).min().copied();
            newest = newest.into_iter().chain(first).min();
        }
        part.own_commit = newest.map(|at| audit.commits[at].oid.clone());
        for (at, why) in sorted.left {
            part.foreign += u32::from(changes[at].uncommitted);
            part.left.push((changes[at].path.clone(), why));
        }
        if let (Some((expected, found)), false) = (elsewhere, part.own.is_empty()) {
            return Err(self.wrong_place(repo, &expected, &found));
        }
        Ok((part, strays))
    }

    /// The branch that was expected and the one that is there, where they differ.
    ///
    /// A repository that is as it was at the opening may be on a branch of its own: what counts is whether
    /// the claim worked there.
    fn is_elsewhere(&self, repo: &str, noted: &Base, door: &Door) -> Result<Option<(String, String)>, Stop> {
        let Some(expected) = self.claim.branch_in(repo) else {
            return Ok(None);
        };
        let head = door.head()?;
        let found = match (head.branch(), head.oid()) {
            (Some(branch), _) if branch == expected => return Ok(None),
            (Some(branch), _) => branch.to_owned(),
            (None, at) => format!("no branch, at {}", at.map_or("nothing", Oid::as_str)),
        };
        if head.branch() == noted.branch.as_deref() {
            return Ok(Some((expected.to_owned(), found)));
        }
        Err(self.wrong_place(repo, expected, &found))
    }

    fn wrong_place(&self, repo: &str, expected: &str, found: &str) -> Stop {
        Stop::refused(Refusal::WrongPlace {
            id: self.claim.id.clone(),
            repo: repo.to_owned(),
            expected: expected.to_owned(),
            found: found.to_owned(),
        })
    }

    /// Ignored files of zone `secret` and `kernel` that are not what they were.
    fn guarded_strays(
        &self,
        checkout: &Checkout,
        ignored: &[PathBuf],
        base: &Base,
        leave: Option<&Scope>,
    ) -> Result<Vec<Stray>, Stop> {
        let now = guarded(checkout, ignored, self.door.policy);
        let paths: BTreeSet<&String> = base.guarded.keys().chain(now.keys()).collect();
        let strays = paths
            .into_iter()
            .filter(|path| base.guarded.get(*path) != now.get(*path));
        let strays = strays.filter_map(|path| {
            let logical = checkout.logical(&unstored(path), self.door.policy.fold)?;
            let zone = self.door.policy.zones.zone_of(&logical);
            let why = format!("an ignored file of zone {zone} was changed");
            Some(Stray {
                path: logical,
                why,
                made: None,
            })
        });
        Ok(strays
            .filter(|it| leave.is_none_or(|leave| !leave.covers(&it.path)))
            .collect())
    }

    /// What names the content that is to be committed, in every repository.
    pub fn shown(&self, found: &Found) -> Result<String, Stop> {
        let trees: BTreeMap<&str, Oid> = found
            .parts
            .iter()
            .map(|part| Ok((part.checkout.repo.as_str(), part.tree()?)))
            .collect::<Result<_, Stop>>()?;
        let trees = trees.into_iter().map(|(repo, tree)| format!("{repo} {tree}"));
        Ok(trees.collect::<Vec<_>>().join(", "))
    }

    /// Entries of the scope that lie in no repository.
    pub fn unversioned(&self) -> Vec<String> {
        let entries = self.claim.scope.additions();
        let lost = entries.filter(|entry| {
            let at = self.door.root.join(entry.literal_prefix());
            Checkout::find(self.door.root, &at).is_none()
        });
        lost.map(|entry| entry.as_str().to_owned()).collect()
    }

    /// New files that the test command left in runs of this close, by their logical paths.
    pub fn artifacts(&self) -> Result<BTreeSet<String>, Stop> {
        let recorded = self.claim.closing.as_ref().and_then(|it| it.evidence.as_ref());
        let mut known: BTreeSet<String> = recorded.into_iter().flat_map(|it| it.artifacts.clone()).collect();
        // The report that a caller hands in is no work of the session.
        let handed = self.ask.tests.as_ref().and_then(|file| {
            let checkout = Checkout::find(self.door.root, file)?;
            checkout.logical(file.strip_prefix(checkout.folder()).ok()?, self.door.policy.fold)
        });
        known.extend(handed.map(|path| path.as_str().to_owned()));
        if let Some(before) = self.before_run() {
            known.extend(self.untracked()?.difference(&before).cloned());
        }
        Ok(known)
    }

    /// What git does not know in the checkouts of the claim, by logical paths.
    pub fn untracked(&self) -> Result<BTreeSet<String>, Stop> {
        let mut found = BTreeSet::new();
        for base in self.claim.base.values() {
            let Some(checkout) = Checkout::find(self.door.root, Path::new(&base.checkout)) else {
                continue;
            };
            let entries = self.open(checkout.repository.clone())?.status()?.entries;
            let new = entries.iter().filter(|entry| entry.untracked);
            let paths = new.filter_map(|entry| checkout.logical(&entry.path, self.door.policy.fold));
            let paths = paths.filter(|path| path.reserved().is_none());
            found.extend(paths.map(|path| path.as_str().to_owned()));
        }
        Ok(found)
    }

    /// Adds to the notices what the audit has to say.
    pub fn tell_of(&mut self, found: &Found, unversioned: Vec<String>) {
        let left: Vec<(String, String)> = found
            .parts
            .iter()
            .flat_map(|part| &part.left)
            // What was there before is no news to whoever opened over it.
            .filter(|(_, why)| !matches!(why, attribute::Left::Before | attribute::Left::Brought))
            .map(|(path, why)| (path.as_str().to_owned(), why.to_string()))
            .collect();
        self.notices
            .extend((!left.is_empty()).then_some(Notice::Left(left)));
        self.notices
            .extend((!unversioned.is_empty()).then_some(Notice::Unversioned(unversioned)));
        let evidence = self.claim.closing.as_ref().and_then(|it| it.evidence.as_ref());
        let artifacts = evidence.map(|it| it.artifacts.clone()).unwrap_or_default();
        self.notices
            .extend((!artifacts.is_empty()).then_some(Notice::Artifacts(artifacts)));
    }
}

/// How a change came to be where it is.
fn made(folder: &Path, change: &git::Change, base: Option<&str>) -> refusal::Made {
    let by = if change.in_commits {
        MadeBy::Commit(base.map(str::to_owned))
    } else if change.untracked {
        MadeBy::NewFile
    } else {
        MadeBy::Edit
    };
    refusal::Made {
        checkout: folder.display().to_string(),
        file: change.path.display().to_string(),
        by,
    }
}
