//! Step 4, the landing: into the theme branch and to the upstream, never by force (R11).

use std::fs::{self, File, TryLockError};
use std::thread;
use std::time::Duration;

use git::{Kind, Landing, Message, Oid, Way};
use protocol::command::Command;
use protocol::facts::claim::{self, Outcome, Tier};
use protocol::facts::gate::GateKind;

use super::Notice;
use super::audit::{Found, Part};
use super::step::{Step, Stop};

/// How often a branch that keeps moving is tried.
const ROUNDS: usize = 3;

/// How long to sleep between two looks whether it is one's turn.
const TURN: Duration = Duration::from_millis(10);
/// After how many looks a sign of life is given: every five seconds.
const SIGN_OF_LIFE: u32 = 500;

/// The subject of the gate about an upstream whose history was rewritten.
const UPSTREAM: &str = "upstream";

impl Step<'_, '_> {
    /// Brings the work where it belongs; what cannot be brought there is named and makes it partial.
    pub fn land(&mut self, found: &mut Found) -> Result<Outcome, Stop> {
        let mut status = Outcome::Ok;
        for part in &mut found.parts {
            if !self.closing()?.commits.contains_key(&part.checkout.repo) {
                continue;
            }
            if let Some(theme) = self.claim.theme_branch.clone()
                && part.branch.as_ref() != Some(&theme)
                && let Some(why) = self.land_in(part, &theme)?
            {
                self.notices.push(Notice::NotLanded(theme, why));
                status = Outcome::Partial;
            }
            if self.door.settings.push && !part.door.is_coordinator() {
                status = status.max(self.push(part)?);
            }
        }
        Ok(status)
    }

    /// Merges into a branch; says why not where the work itself is in the way.
    fn land_in(&mut self, part: &Part, theme: &str) -> Result<Option<String>, Stop> {
        let (Some(head), repo) = (&part.head, part.checkout.repo.as_str()) else {
            return Ok(None);
        };
        let target = format!("refs/heads/{theme}");
        let intended = self.closing()?.landings.get(repo).cloned();
        if let Some(intended) = intended.filter(|it| it.target == target)
            && self.is_landed(part, theme, &intended)?
        {
            return Ok(None);
        }
        let message = Message {
            text: format!("merge {} into {theme}", self.claim.id),
            trailers: vec![(git::SESSION_TRAILER.to_owned(), self.claim.id.to_string())],
        };
        let _turn = self.take_turn(part, theme)?;
        for _ in 0..ROUNDS {
            let plan = match part.door.plan_merge(head, theme, &message, &self.signature()?) {
                Ok(plan) => plan,
                Err(error) => return in_the_way(error).map(Some),
            };
            if plan.way == Way::AlreadyThere {
                return Ok(None);
            }
            match self.move_branch(part, head, &plan)? {
                Moved::Done => return Ok(None),
                Moved::Blocked(why) => return Ok(Some(why)),
                Moved::Raced => {}
            }
        }
        Ok(Some("it kept moving".to_owned()))
    }

    /// Waits for the turn to move a branch: closes that end at the same moment would outrun each other until
    /// their rounds are spent. The turn ends with the file, or with the process.
    fn take_turn(&mut self, part: &Part, branch: &str) -> Result<File, Stop> {
        let doing = Stop::io("waiting for the turn to land");
        let folder = self.door.state.join("turns");
        fs::create_dir_all(&folder).map_err(&doing)?;
        let mut named = blake3::Hasher::new();
        named
            .update(part.checkout.repo.as_bytes())
            .update(b"\n")
            .update(branch.as_bytes());
        let path = folder.join(&named.finalize().to_hex()[..16]);
        let file = File::options()
            .create(true)
            .append(true)
            .open(path)
            .map_err(&doing)?;
        let mut waited = 0;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(doing(error)),
            }
            // The tests of another's merge may take long.
            if waited % SIGN_OF_LIFE == 0 {
                self.stay_alive()?;
            }
            waited += 1;
            thread::sleep(TURN);
        }
    }

    /// Whether a move that was written down has been made; finishes the files of the branch's checkout.
    fn is_landed(&mut self, part: &Part, theme: &str, intended: &claim::Landing) -> Result<bool, Stop> {
        let (Some(old), Some(new)) = (Oid::parse(&intended.old), Oid::parse(&intended.new)) else {
            return Ok(false);
        };
        let Some(at) = part.door.branch(theme)? else {
            return Ok(false);
        };
        if at != new && !part.door.is_ancestor(&new, &at)? {
            return Ok(false);
        }
        if !intended.done {
            if at == new {
                part.door.sync_checkout(theme, &old, &new)?;
            }
            let landing = claim::Landing {
                done: true,
                ..intended.clone()
            };
            self.record(part, landing)?;
        }
        Ok(true)
    }

    /// Moves a branch as worked out: evidence where its tree is a new one, intention, act, outcome.
    fn move_branch(&mut self, part: &Part, tested: &Oid, plan: &Landing) -> Result<Moved, Stop> {
        if self.claim.tier() == Tier::Validated && part.door.tree(&plan.new)? != part.door.tree(tested)? {
            self.prove_commit(part, &plan.new)?;
        }
        let landing = |done| claim::Landing {
            target: format!("refs/heads/{}", plan.branch),
            old: plan.old.to_string(),
            new: plan.new.to_string(),
            done,
        };
        self.record(part, landing(false))?;
        self.act()?;
        match part.door.land(plan) {
            Ok(()) => {}
            Err(error) if matches!(error.kind(), Kind::NonFastForward { .. }) => return Ok(Moved::Raced),
            Err(error) => return in_the_way(error).map(Moved::Blocked),
        }
        self.act()?;
        self.record(part, landing(true))?;
        Ok(Moved::Done)
    }

    fn record(&mut self, part: &Part, landing: claim::Landing) -> Result<(), Stop> {
        let (id, repo) = (self.claim.id.clone(), part.checkout.repo.clone());
        self.submit(Command::RecordLanding { id, repo, landing })?;
        Ok(())
    }

    /// Pushes the branch that was worked on, if it has an upstream of its name.
    fn push(&mut self, part: &mut Part) -> Result<Outcome, Stop> {
        let (Some(branch), Some(upstream)) = (part.branch.clone(), part.upstream.clone()) else {
            return Ok(Outcome::Ok);
        };
        let Some((remote, name)) = upstream.split_once('/').filter(|(_, name)| *name == branch) else {
            let why = format!("its upstream {upstream} has another name");
            self.notices.push(Notice::NotPushed(branch, why));
            return Ok(Outcome::Ok);
        };
        for _ in 0..ROUNDS {
            self.act()?;
            let error = match part.door.push(remote, name, None) {
                Ok(_) => return Ok(Outcome::Ok),
                Err(error) => error,
            };
            match error.kind() {
                Kind::NonFastForward { .. } => {}
                Kind::PushRefused { .. } | Kind::Unreachable | Kind::HookRefused { .. } => {
                    self.notices
                        .push(Notice::NotPushed(branch, error.kind().to_string()));
                    return Ok(Outcome::Ok);
                }
                _ => return Err(error.into()),
            }
            if let Some(why) = self.rebase(part, remote, &branch, &upstream)? {
                self.notices.push(Notice::NotPushed(branch, why));
                return Ok(Outcome::Partial);
            }
        }
        self.notices
            .push(Notice::NotPushed(branch, "it kept moving".to_owned()));
        Ok(Outcome::Partial)
    }

    /// Puts the branch on top of what its upstream has by now; says why not where the work is in the way.
    fn rebase(
        &mut self,
        part: &mut Part,
        remote: &str,
        branch: &str,
        upstream: &str,
    ) -> Result<Option<String>, Stop> {
        let Some(tip) = part.door.fetch(remote, branch)? else {
            return Ok(Some("its upstream is gone".to_owned()));
        };
        let known = part.door.resolve(&format!("refs/remotes/{upstream}"))?;
        if let Some(known) = known
            && !part.door.is_ancestor(&known, &tip)?
        {
            let why = format!("the history of {upstream} was rewritten: put the work on top of the new one?");
            self.gate(GateKind::Close, UPSTREAM, &why, Vec::new(), tip.as_str())?;
        }
        let plan = match part.door.plan_rebase(branch, &tip, &self.signature()?) {
            Ok(plan) => plan,
            Err(error) => return in_the_way(error).map(Some),
        };
        let Some(head) = part.head.clone() else {
            return Ok(None);
        };
        match self.move_branch(part, &head, &plan)? {
            Moved::Blocked(why) => return Ok(Some(why)),
            Moved::Raced => return Ok(None),
            Moved::Done => {}
        }
        part.head = Some(plan.new.clone());
        let (id, repo, commit) = (
            self.claim.id.clone(),
            part.checkout.repo.clone(),
            plan.new.to_string(),
        );
        self.submit(Command::RecordCommit { id, repo, commit })?;
        Ok(None)
    }
}

/// How moving a branch went.
enum Moved {
    Done,
    /// Somebody else moved it first: work it out again.
    Raced,
    /// The work is in the way: why.
    Blocked(String),
}

/// What leaves the work where it is and the result partial; anything else is an error.
fn in_the_way(error: git::Error) -> Result<String, Stop> {
    match error.kind() {
        Kind::Conflict { .. } | Kind::WouldOverwrite { .. } | Kind::InProgress { .. } => {
            Ok(error.kind().to_string())
        }
        Kind::Unknown { name } => Ok(format!("there is no branch {name}")),
        _ => Err(error.into()),
    }
}
