//! Step 3, the commit: what is the claim's, inside its scope, and only that.

use git::{Commit, Message, Oid, Signature};
use protocol::command::Command;
use protocol::facts::claim::{Claim, Outcome, Tier};

use super::Notice;
use super::audit::{Found, Part};
use super::step::{Step, Stop};

impl Step<'_, '_> {
    /// Commits in every repository and writes the commits down; what is committed already is kept.
    pub fn commit(&mut self, mut found: Found) -> Result<Found, Stop> {
        let mut moved = Vec::new();
        for (at, part) in found.parts.iter().enumerate() {
            let Some(oid) = self.commit_one(part)? else {
                continue;
            };
            if part.head.as_ref() != Some(&oid) {
                moved.push((at, oid.clone()));
            }
            let (id, repo, commit) = (self.claim.id.clone(), part.checkout.repo.clone(), oid.to_string());
            if self.closing()?.commits.get(&repo) != Some(&commit) {
                self.submit(Command::RecordCommit { id, repo, commit })?;
            }
        }
        if moved.is_empty() || self.are_all(&mut found, moved)? {
            return Ok(found);
        }
        let mut found = self.audit()?;
        // What a hook left different is not the commit's any more.
        found.parts.iter_mut().for_each(|part| part.to_commit.clear());
        if self.claim.tier() == Tier::Validated {
            // A hook may have reformatted what the tests had seen.
            return self.evidence(found);
        }
        Ok(found)
    }

    /// Whether these commits are all that came since the audit, which then holds on top of them: nothing was
    /// committed beside them, and no hook took anything else in. Tests want to see what hooks left, though.
    fn are_all(&self, found: &mut Found, moved: Vec<(usize, Oid)>) -> Result<bool, Stop> {
        if self.claim.tier() == Tier::Validated {
            return Ok(false);
        }
        for (at, oid) in &moved {
            let part = &found.parts[*at];
            let is_head = part.door.head()?.oid() == Some(oid);
            if !is_head || !part.door.is_only(oid, part.head.as_ref(), &part.to_commit)? {
                return Ok(false);
            }
        }
        for (at, oid) in moved {
            let part = &mut found.parts[at];
            part.to_commit.clear();
            part.own_commit = Some(oid.clone());
            part.head = Some(oid);
        }
        Ok(true)
    }

    /// The commit of one repository: made now, or the session's own last one.
    fn commit_one(&mut self, part: &Part) -> Result<Option<Oid>, Stop> {
        if part.to_commit.is_empty() {
            return Ok(part.own_commit.clone());
        }
        let message = message(&self.claim, self.ask.at_most);
        self.act()?;
        let Commit {
            oid,
            made,
            left_dirty,
            ..
        } = if part.door.is_coordinator() {
            part.door
                .commit_as(&part.to_commit, &message, &self.signature()?)?
        } else {
            part.door.commit(&part.to_commit, &message)?
        };
        self.act()?;
        if !left_dirty.is_empty() {
            let paths = left_dirty.iter().map(|path| path.display().to_string());
            self.notices.push(Notice::LeftDirty(paths.collect()));
        }
        Ok(made.then_some(oid).or(part.own_commit.clone()))
    }

    /// Whoever git knows, at the moment when the close first began: the same twice makes the same commit.
    pub fn signature(&self) -> Result<Signature, Stop> {
        let seconds = self.closing()?.began_at.wall.div_euclid(1000);
        Ok(Signature {
            identity: None,
            seconds: u64::try_from(seconds).unwrap_or(0),
        })
    }
}

/// `code(src/auth/, +2): refresh tokens`, with the tests of tier 2 and the trailers.
pub(super) fn message(claim: &Claim, status: Outcome) -> Message {
    let entries = claim.scope.to_strings();
    let first = entries.first().map_or(".", String::as_str);
    let more = match entries.len() {
        0 | 1 => String::new(),
        all => format!(", +{}", all - 1),
    };
    let mut text = format!("{}({first}{more}): {}", claim.satellite_type, claim.story_angle);
    let evidence = claim
        .closing
        .as_ref()
        .and_then(|closing| closing.evidence.as_ref());
    if let Some(report) = evidence
        .and_then(|it| it.report.as_ref())
        .filter(|_| claim.tier() == Tier::Validated)
    {
        let mark = if report.is_green() { " ✅" } else { "" };
        text += &format!(" [tests: {}/{}{mark}]", report.passed, report.total);
    }
    Message {
        text,
        trailers: vec![
            (git::SESSION_TRAILER.to_owned(), claim.id.to_string()),
            ("Brain-Result".to_owned(), status.as_str().to_owned()),
        ],
    }
}
