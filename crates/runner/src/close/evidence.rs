//! Step 2, the evidence: tests that brain ran itself, bound to the tree that the commit has (T24).

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use git::{Oid, Repository};
use protocol::command::Command;
use protocol::facts::claim::{Evidence, EvidenceSource};
use protocol::facts::gate::GateKind;
use protocol::facts::report::Report;
use protocol::facts::tests::{Tests, hides_status};
use protocol::refusal::Refusal;
use protocol::rules::close::{TESTS, Worth, weigh};
use protocol::rules::who;
use protocol::world::{Pick, green_key};

use super::audit::{Found, Part};
use super::run::Ran;
use super::step::{Step, Stop};
use crate::evidence::{detect, read_file};

/// The tree of what lies in no repository.
const UNVERSIONED: &str = "unversioned";

/// What a test runner says that found nothing to run and calls that an error.
const NO_TESTS: [&str; 4] = [
    "no test specified",
    "no tests ran",
    "No tests found",
    "No test files found",
];

impl Step<'_, '_> {
    /// Makes sure that what is to be committed is green, or that a human lets it pass.
    ///
    /// A test command that changes what is to be committed runs once more on that, and what was found is
    /// then looked at anew.
    pub fn evidence(&mut self, mut found: Found) -> Result<Found, Stop> {
        let commands = self.commands(&found)?;
        if let Some(file) = self.ask.tests.clone() {
            if who::is_human_or_plain(self.asked()) {
                self.take_file(&found, commands.first(), &file)?;
                return Ok(found);
            }
            self.check_own_report(&found, commands.first(), &file)?;
        }
        if commands.is_empty() {
            let shown = format!("no test command, {}", self.shown(&found)?);
            self.gate(
                GateKind::Close,
                TESTS,
                "no test command is known",
                Vec::new(),
                &shown,
            )?;
        }
        for (repo, tests) in commands {
            found = self.prove(found, &repo, &tests)?;
        }
        Ok(found)
    }

    /// The test commands in their order of precedence, each with the repository that it runs in: one of
    /// the claim or its phase, else one for each repository that was changed.
    fn commands(&self, found: &Found) -> Result<Vec<(String, Tests)>, Stop> {
        let changed: Vec<&str> = found
            .parts
            .iter()
            .filter(|part| !part.own.is_empty())
            .map(|part| part.checkout.repo.as_str())
            .collect();
        let first = changed
            .first()
            .copied()
            .or(found.parts.first().map(|part| part.checkout.repo.as_str()));
        let first = first.unwrap_or(".").to_owned();
        let repos = match changed.as_slice() {
            [] => vec![first.as_str()],
            _ if self.own_tests().is_some() => vec![first.as_str()],
            changed => changed.to_vec(),
        };
        let known = repos
            .into_iter()
            .filter_map(|repo| Some((repo.to_owned(), self.tests_in(repo)?)));
        let commands: Vec<(String, Tests)> = known.collect();
        for (_, tests) in &commands {
            if let Some(hides) = hides_status(&tests.run) {
                return Err(Stop::refused(Refusal::TestsHidden {
                    command: tests.run.clone(),
                    by: hides.what.to_owned(),
                    column: hides.column,
                }));
            }
        }
        Ok(commands)
    }

    /// The command of the claim, or of the phase that it works on.
    fn own_tests(&self) -> Option<Tests> {
        let phase = || {
            let of = self.claim.workflow.as_ref()?;
            let phase = self.world.phases.get(&(of.run.clone(), of.phase.clone()))?;
            phase.phase.tests.clone()
        };
        self.claim.tests.clone().or_else(phase)
    }

    /// The command that counts for a repository: the claim's, the phase's, the project's, the root's.
    fn tests_in(&self, repo: &str) -> Option<Tests> {
        let settings = self.door.settings;
        let configured = || settings.projects.get(repo).or(settings.tests.as_ref()).cloned();
        self.own_tests().or_else(configured)
    }

    /// Runs one command until what it vouches for is what will be committed.
    fn prove(&mut self, mut found: Found, repo: &str, tests: &Tests) -> Result<Found, Stop> {
        for _ in 0..2 {
            let (tree, foreign) = match found.part(repo) {
                Some(part) => (part.tree()?.to_string(), part.foreign),
                None => (UNVERSIONED.to_owned(), 0),
            };
            if self.is_proven(repo, tests, &tree)? {
                return Ok(found);
            }
            let trial = match found.part(repo) {
                Some(part) if self.door.settings.clean => self.trial(part, &tree)?,
                _ => None,
            };
            let folder = match (&trial, found.part(repo)) {
                (Some(trial), _) => trial.repository().toplevel(),
                (None, Some(part)) => Some(part.checkout.folder()),
                (None, None) => None,
            };
            let folder = folder.unwrap_or(self.door.root).to_owned();
            let evidence = Evidence {
                repo: repo.to_owned(),
                tree: tree.clone(),
                foreign: if trial.is_some() { 0 } else { foreign },
                ..nothing_yet(tests)
            };
            let (evidence, no_tests) = self.take(evidence, tests, &folder)?;
            if let (Some(_), Some(part)) = (&trial, found.part(repo)) {
                part.door.trial_remove(&folder)?;
            }
            found = self.audit()?;
            let now = found.part(repo).map(Part::tree).transpose()?;
            let stable = now.is_none_or(|now| now.as_str() == tree);
            self.judge(&evidence, no_tests, stable)?;
            if stable {
                return Ok(found);
            }
        }
        let id = self.claim.id.clone();
        Err(Stop::refused(Refusal::WroteMeanwhile { id }))
    }

    /// Runs a command in a checkout of one commit, which is not the one that the claim works in.
    pub fn prove_commit(&mut self, part: &Part, commit: &Oid) -> Result<(), Stop> {
        let repo = part.checkout.repo.as_str();
        let Some(tests) = self.tests_in(repo) else {
            return Ok(()); // a human has let it pass without
        };
        let tree = part.door.tree(commit)?;
        if self.is_proven(repo, &tests, tree.as_str())? {
            return Ok(());
        }
        let at = self.trial_folder();
        let trial = part.door.trial_add(&at, commit, &tree)?;
        let folder = trial.repository().toplevel().unwrap_or(&at).to_owned();
        let evidence = Evidence {
            repo: repo.to_owned(),
            tree: tree.to_string(),
            ..nothing_yet(&tests)
        };
        let (evidence, no_tests) = self.take(evidence, &tests, &folder)?;
        part.door.trial_remove(&at)?;
        self.judge(&evidence, no_tests, true)
    }

    /// Whether evidence for this tree is written down already, green or let go on by a human.
    fn is_proven(&mut self, repo: &str, tests: &Tests, tree: &str) -> Result<bool, Stop> {
        let Some(known) = self.closing()?.evidence.clone() else {
            return Ok(false);
        };
        if known.repo != repo || known.command != tests.run || known.tree != tree {
            return Ok(false);
        }
        Ok(match self.weigh(&known)? {
            Worth::Green => true,
            Worth::Ask(_) => self.is_allowed(GateKind::Close, TESTS, &known.shown())?,
            Worth::Red | Worth::NoTests => false,
        })
    }

    fn weigh(&mut self, evidence: &Evidence) -> Result<Worth, Stop> {
        let key = green_key(&evidence.repo, &evidence.command);
        let (world, _) = self.door.store.look(&vec![Pick::Green(key.clone())])?;
        let enough = self.door.policy.exit_is_enough.contains(&evidence.command);
        Ok(weigh(evidence, world.greens.get(&key).copied(), enough))
    }

    /// Runs the command and writes down what it showed; says too whether it ended since nothing was there
    /// to be run.
    fn take(&mut self, evidence: Evidence, tests: &Tests, folder: &Path) -> Result<(Evidence, bool), Stop> {
        self.note_before_run()?;
        self.act()?;
        self.stay_alive()?;
        let report = tests.report.as_ref().map(|report| folder.join(report));
        let before = report.as_deref().map(stamp);
        let Ran {
            exit,
            output,
            took_ms,
        } = self.run(&tests.run, folder)?;
        self.act()?;
        // A report that the run has not written is an older one's.
        let written = report.filter(|report| Some(stamp(report)) != before);
        let counts = written
            .and_then(|report| fs::read(report).ok())
            .and_then(|bytes| read_file(&bytes, tests.format).ok())
            .or_else(|| match tests.format {
                Some(format) => read_file(&output, Some(format)).ok(),
                None => detect(&output),
            });
        let text = String::from_utf8_lossy(&output);
        let no_tests = exit != Some(0)
            && counts.is_none()
            && (NO_TESTS.iter().any(|words| text.contains(words))
                || exit == Some(5) && tests.run.contains("pytest"));
        let evidence = Evidence {
            exit,
            report: counts,
            took_ms,
            artifacts: self.artifacts()?.into_iter().collect(),
            ..evidence
        };
        self.record_evidence(&evidence)?;
        Ok((evidence, no_tests))
    }

    fn record_evidence(&mut self, evidence: &Evidence) -> Result<(), Stop> {
        let id = self.claim.id.clone();
        let evidence = evidence.clone();
        self.submit(Command::RecordEvidence { id, evidence })?;
        self.forget_before_run()
    }

    /// Refuses red, asks about what is neither; `stable` says whether it speaks of what is there now.
    fn judge(&mut self, evidence: &Evidence, no_tests: bool, stable: bool) -> Result<(), Stop> {
        let (id, command, exit) = (self.claim.id.clone(), evidence.command.clone(), evidence.exit);
        match self.weigh(evidence)? {
            Worth::Green => Ok(()),
            Worth::NoTests => Err(Stop::refused(Refusal::NoTests { id, command, exit })),
            Worth::Red if no_tests => Err(Stop::refused(Refusal::NoTests { id, command, exit })),
            Worth::Red => Err(Stop::refused(Refusal::TestsRed {
                id,
                command,
                exit,
                report: evidence.report.clone(),
            })),
            Worth::Ask(_) if !stable => Ok(()),
            Worth::Ask(why) => {
                let known = vec![
                    ("command".to_owned(), evidence.command.clone()),
                    ("tests".to_owned(), counted(evidence.report.as_ref())),
                    ("tree".to_owned(), evidence.tree.clone()),
                ];
                self.gate(GateKind::Close, TESTS, &why, known, &evidence.shown())
            }
        }
    }

    /// Takes a report that a plain or human caller hands in.
    fn take_file(&mut self, found: &Found, of: Option<&(String, Tests)>, file: &Path) -> Result<(), Stop> {
        let id = self.claim.id.clone();
        let reject = |why: &str| {
            let (id, why) = (id.clone(), why.to_owned());
            Stop::refused(Refusal::ReportRejected { id, why })
        };
        let part = of.map_or(found.parts.first(), |(repo, _)| found.part(repo));
        let part = part.ok_or_else(|| reject("the claim has no repository"))?;
        let named = Tests {
            run: of.map_or("--tests", |(_, tests)| tests.run.as_str()).to_owned(),
            report: None,
            format: None,
        };
        let (repo, tree) = (part.checkout.repo.as_str(), part.tree()?.to_string());
        if self.is_proven(repo, &named, &tree)? {
            return Ok(());
        }
        let elsewhere =
            Repository::find(file).is_some_and(|it| it.common_dir() != part.checkout.repository.common_dir());
        if elsewhere {
            return Err(reject("it lies in another repository"));
        }
        let written = modified(file).ok_or_else(|| reject("it cannot be read"))?;
        let folder = part.checkout.folder();
        let changed = part.own.values().map(|path| folder.join(path));
        if changed
            .filter_map(|path| modified(&path))
            .any(|change| change > written)
        {
            return Err(reject(
                "it was written before the newest change that it is to vouch for",
            ));
        }
        let bytes = fs::read(file).map_err(Stop::io("reading a report"))?;
        let report = read_file(&bytes, None).map_err(|error| reject(&error.to_string()))?;
        let evidence = Evidence {
            repo: repo.to_owned(),
            tree,
            exit: Some(i32::from(report.failed > 0)),
            source: EvidenceSource::File,
            report: Some(report.clone()),
            foreign: part.foreign,
            artifacts: self.artifacts()?.into_iter().collect(),
            ..nothing_yet(&named)
        };
        self.record_evidence(&evidence)?;
        if report.total == 0 {
            return Err(Stop::refused(Refusal::NoTests {
                id,
                command: evidence.command,
                exit: None,
            }));
        }
        self.judge(&evidence, false, true)
    }

    /// An agent may name only the file that brain's own run writes: the run decides then, as always.
    fn check_own_report(&self, found: &Found, of: Option<&(String, Tests)>, file: &Path) -> Result<(), Stop> {
        let own = of.and_then(|(repo, tests)| {
            let folder = found.part(repo)?.checkout.folder();
            Some(folder.join(tests.report.as_ref()?))
        });
        if own.as_deref() == Some(file) {
            return Ok(());
        }
        let why = "an agent hands in no report: brain runs the tests itself".to_owned();
        let id = self.claim.id.clone();
        Err(Stop::refused(Refusal::ReportRejected { id, why }))
    }

    /// A checkout of exactly the tree that will be committed; none before the first commit.
    fn trial(&self, part: &Part, tree: &str) -> Result<Option<git::Door>, Stop> {
        let (Some(head), Some(tree)) = (&part.head, Oid::parse(tree)) else {
            return Ok(None);
        };
        Ok(Some(part.door.trial_add(&self.trial_folder(), head, &tree)?))
    }

    fn trial_folder(&self) -> PathBuf {
        self.folder().join(format!("{}.trial", self.claim.id))
    }

    /// Notes what git does not know before the tests run, so that what they leave is told apart from the
    /// session's own files even if the close is cut off.
    fn note_before_run(&self) -> Result<(), Stop> {
        let known = self.artifacts()?;
        let before: BTreeSet<String> = self.untracked()?.difference(&known).cloned().collect();
        let mut text = self.run_mark();
        for path in before {
            text.push('\0');
            text.push_str(&path);
        }
        fs::create_dir_all(self.folder())
            .and_then(|()| fs::write(self.run_note(), text))
            .map_err(Stop::io("noting what is there before the tests"))
    }

    /// What git did not know before a run that was never written down.
    pub fn before_run(&self) -> Option<BTreeSet<String>> {
        let text = fs::read_to_string(self.run_note()).ok()?;
        let (mark, before) = text.split_once('\0').unwrap_or((&text, ""));
        (mark == self.run_mark()).then(|| before.split('\0').map(str::to_owned).collect())
    }

    fn forget_before_run(&self) -> Result<(), Stop> {
        match fs::remove_file(self.run_note()) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(Stop::io("forgetting what was there before the tests")(error))
            }
            _ => Ok(()),
        }
    }

    fn run_note(&self) -> PathBuf {
        self.folder().join(format!("{}.before", self.claim.id))
    }

    /// Tells the evidence that was written down last: a note from before it is outdated.
    fn run_mark(&self) -> String {
        let closing = self.claim.closing.as_ref();
        match closing.and_then(|it| Some((it.began_at, it.evidence.as_ref()?))) {
            Some((began, last)) => format!("{} {} {}", began.wall, last.took_ms, last.shown()),
            None => "first".to_owned(),
        }
    }
}

fn nothing_yet(tests: &Tests) -> Evidence {
    Evidence {
        command: tests.run.clone(),
        repo: String::new(),
        tree: String::new(),
        exit: None,
        report: None,
        source: EvidenceSource::Run,
        took_ms: 0,
        foreign: 0,
        artifacts: Vec::new(),
    }
}

fn counted(report: Option<&Report>) -> String {
    report.map_or_else(
        || "no readable count".to_owned(),
        |it| {
            format!(
                "{} passed, {} failed, {} skipped",
                it.passed, it.failed, it.skipped
            )
        },
    )
}

/// What changes when a file is written, whatever its clock says.
fn stamp(file: &Path) -> Option<(u64, i64, i64, i64, i64, u64)> {
    let it = fs::metadata(file).ok()?;
    Some((
        it.ino(),
        it.mtime(),
        it.mtime_nsec(),
        it.ctime(),
        it.ctime_nsec(),
        it.len(),
    ))
}

fn modified(file: &Path) -> Option<SystemTime> {
    file.symlink_metadata().and_then(|it| it.modified()).ok()
}
