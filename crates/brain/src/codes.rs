//! Every dotted code with its exit code and its meaning: what `docs/exit-codes.md` is made from.
//!
//! Codes are append-only. A test holds this list against the sources and against the exit codes themselves.

use std::fmt::Write;

use crate::exit;

/// A dotted code.
pub struct Code {
    /// The code.
    pub code: &'static str,
    /// The exit code, everywhere but in `lock` and `preflight check`.
    pub exit: Option<u8>,
    /// The exit code of `preflight check`.
    pub check: Option<u8>,
    /// The exit code of `lock`, where it is another one than 2.
    pub lock: Option<u8>,
    /// What it says.
    pub meaning: &'static str,
}

const fn no(code: &'static str, exit: u8, meaning: &'static str) -> Code {
    Code {
        code,
        exit: Some(exit),
        check: None,
        lock: None,
        meaning,
    }
}

const fn both(code: &'static str, exit: u8, check: u8, meaning: &'static str) -> Code {
    Code {
        code,
        exit: Some(exit),
        check: Some(check),
        lock: None,
        meaning,
    }
}

const fn check(code: &'static str, check: u8, meaning: &'static str) -> Code {
    Code {
        code,
        exit: None,
        check: Some(check),
        lock: None,
        meaning,
    }
}

const fn lock(code: &'static str, lock: u8, meaning: &'static str) -> Code {
    Code {
        code,
        exit: None,
        check: None,
        lock: Some(lock),
        meaning,
    }
}

/// All of them.
pub const ALL: &[Code] = &[
    both("brain.stopped", exit::HUMAN_FIRST, 4, "the emergency stop stands"),
    no(
        "brain.none",
        exit::UNREACHABLE,
        "no brain at or above this folder",
    ),
    no(
        "brain.no_folder",
        exit::USAGE,
        "`--root` or `BRAIN_ROOT` names no folder",
    ),
    no("usage", exit::USAGE, "wrong usage, a bad id, a bad time"),
    no("io", exit::UNREACHABLE, "a file could not be read or written"),
    no("bug", exit::BUG, "a bug of brain's own"),
    both("claim.unknown", exit::UNKNOWN, 4, "no claim has this id"),
    no("id.unknown", exit::UNKNOWN, "no id has this part"),
    no("claim.id_taken", exit::NOT_YOURS, "the id is in use"),
    no(
        "claim.scope_overlaps",
        exit::ELSEWHERE,
        "the scope overlaps a live claim's",
    ),
    no(
        "claim.parent_not_open",
        exit::NOT_YOURS,
        "the parent cannot have children now",
    ),
    no(
        "claim.leaf_has_no_children",
        exit::NOT_YOURS,
        "a leaf launches nothing",
    ),
    no(
        "claim.outside_domain",
        exit::NOT_YOURS,
        "the scope is not inside the domain's",
    ),
    no(
        "claim.only_own_children",
        exit::NOT_YOURS,
        "a satellite opens only its own children",
    ),
    no(
        "claim.detached_head",
        exit::NOT_YOURS,
        "the head is detached and no branch was named",
    ),
    no(
        "claim.no_worktree",
        exit::NOT_YOURS,
        "a worktree cannot be made here",
    ),
    no("claim.ttl", exit::USAGE, "the time to live is outside its bounds"),
    no("claim.not_owner", exit::NOT_YOURS, "the claim is someone else's"),
    no(
        "claim.wrong_state",
        exit::NOT_YOURS,
        "the claim's state does not allow it",
    ),
    both(
        "claim.superseded",
        exit::REPLACED,
        4,
        "someone took the stale claim's scope",
    ),
    both(
        "claim.outdated",
        exit::REPLACED,
        4,
        "the token or fence is outdated",
    ),
    no(
        "claim.renewal",
        exit::BUSY,
        "the claim could not be renewed in time",
    ),
    no(
        "claim.not_paused",
        exit::NOT_YOURS,
        "nothing of the caller's pauses it",
    ),
    no(
        "claim.own_pause",
        exit::NOT_YOURS,
        "the pause stands on the caller",
    ),
    check("claim.not_open", 4, "the claim is not open"),
    check(
        "claim.expired",
        4,
        "its time is over and the caller may not renew it",
    ),
    check("claim.ancestor_not_open", 4, "a claim above it is not open"),
    check("claim.not_covering", 1, "the scope does not cover the path"),
    check(
        "claim.search_reads",
        1,
        "a search claim writes only the files that its scope names",
    ),
    check("claim.held_by_other", 2, "another live claim covers the path"),
    no("scope.bad", exit::USAGE, "an entry of the scope does not read"),
    no(
        "scope.too_complex",
        exit::USAGE,
        "the scope grows past a fixed size",
    ),
    no(
        "text.bad",
        exit::USAGE,
        "a task or reason is not one line, or too long",
    ),
    no(
        "tests.status_hidden",
        exit::USAGE,
        "the command hides the status of the tests",
    ),
    no(
        "path.bad",
        exit::USAGE,
        "the path is empty or cannot be looked at (22)",
    ),
    Code {
        code: "path.outside",
        exit: None,
        check: Some(1),
        lock: Some(2),
        meaning: "the path lies outside the root",
    },
    Code {
        code: "path.reserved",
        exit: None,
        check: Some(1),
        lock: Some(2),
        meaning: "git's or brain's own",
    },
    Code {
        code: "path.links",
        exit: None,
        check: Some(1),
        lock: Some(2),
        meaning: "more than 40 links",
    },
    check("path.hard_linked", 1, "the file has more than one name"),
    check("zone.kernel", 5, "zone kernel, without the right"),
    check("zone.personal", 5, "zone personal, without the right"),
    check("zone.project", 5, "zone project, without the right"),
    check("zone.secret", 5, "zone secret"),
    check(
        "zone.kernel_deleted",
        5,
        "a kernel file is deleted only after a gate of its own",
    ),
    Code {
        code: "lock.held",
        exit: Some(exit::ELSEWHERE),
        check: Some(2),
        lock: Some(1),
        meaning: "someone else's lock (75 of `lock run`)",
    },
    check(
        "lock.required",
        2,
        "`mode: rendering` writes only under its own lock",
    ),
    lock("lock.not_covered", 2, "the path is not the session's to lock"),
    lock("lock.path_claimed", 2, "a live claim covers the path"),
    lock("lock.not_owner", 1, "the lock is not the caller's"),
    lock(
        "lock.lost",
        2,
        "the lock had ended, and someone else may have taken it",
    ),
    lock("lock.bad_holder", exit::USAGE, "the name cannot hold a lock"),
    both(
        "breaker.open",
        exit::HUMAN_FIRST,
        3,
        "the work failed too often; only a human reopens it",
    ),
    check("branch.wrong", 6, "the repository is on another branch"),
    check(
        "branch.other_checkout",
        6,
        "the path is in another checkout than the claim's",
    ),
    no("gate.not_human", exit::NOT_YOURS, "only a human may do this"),
    no("gate.unknown", exit::UNKNOWN, "no gate has this id"),
    no("gate.none", exit::NOT_YOURS, "the claim waits at no gate"),
    no(
        "gate.not_offered",
        exit::USAGE,
        "the gate does not offer this answer",
    ),
    no(
        "gate.changed",
        exit::NOT_YOURS,
        "what was shown has changed since",
    ),
    no(
        "gate.withdrawn",
        exit::NOT_YOURS,
        "the gate ended before it was answered",
    ),
    no("gate.pending", exit::HUMAN_FIRST, "a human must answer first"),
    no("gate.words", exit::NOT_YOURS, "the words must be the path itself"),
    no(
        "gate.signature",
        exit::NOT_YOURS,
        "the answer could not be signed or verified",
    ),
    no("gate.key", exit::NOT_YOURS, "this machine's key cannot be used"),
    no("signal.unknown", exit::UNKNOWN, "no signal has this id"),
    no(
        "signal.address_unknown",
        exit::UNKNOWN,
        "the address never existed",
    ),
    no(
        "signal.not_yours",
        exit::NOT_YOURS,
        "the signal is addressed to someone else",
    ),
    no(
        "signal.sender_not_yours",
        exit::NOT_YOURS,
        "that claim is not the caller's to send from",
    ),
    no("close.out_of_scope", exit::MEND, "changes outside the scope"),
    no("close.tests_red", exit::MEND, "the tests are red"),
    no("close.no_tests", exit::MEND, "no test ran"),
    no("close.children_live", exit::MEND, "a claim below is not terminal"),
    no(
        "close.children_failed",
        exit::MEND,
        "a child failed and nobody accepted that",
    ),
    no(
        "close.wrong_place",
        exit::MEND,
        "the work lies on another branch or in another checkout",
    ),
    no(
        "close.wrote_meanwhile",
        exit::MEND,
        "the session wrote while its close was under way",
    ),
    no(
        "close.report_rejected",
        exit::MEND,
        "the report handed in does not vouch for this work",
    ),
    no(
        "close.not_closing",
        exit::NOT_YOURS,
        "no close of this claim has begun",
    ),
    no(
        "close.no_evidence",
        exit::MEND,
        "the evidence that this tier demands is missing",
    ),
    no(
        "close.failed",
        exit::UNREACHABLE,
        "a file kept the close from going on",
    ),
    no("run.unknown", exit::UNKNOWN, "no run has this id"),
    no("run.phase_unknown", exit::UNKNOWN, "no such phase in the run"),
    no(
        "run.unfinished",
        exit::NOT_YOURS,
        "a run of this plan is unfinished",
    ),
    no("run.over", exit::NOT_YOURS, "the run has ended"),
    no("run.lease_lost", exit::REPLACED, "another driver took the run"),
    no(
        "run.driven",
        exit::ELSEWHERE,
        "someone drives the run and is alive",
    ),
    no(
        "run.phase_state",
        exit::NOT_YOURS,
        "the phase's state does not allow it",
    ),
    no(
        "run.jobs_full",
        exit::ELSEWHERE,
        "as many phases are under way as are allowed",
    ),
    no(
        "run.branch_exists",
        exit::NOT_YOURS,
        "the theme's branch is there, and no run of this brain made it",
    ),
    no(
        "run.merge_conflict",
        exit::PLAN_FAILED,
        "the theme conflicts with the main branch",
    ),
    no(
        "run.would_overwrite",
        exit::PLAN_FAILED,
        "the merge would overwrite uncommitted work",
    ),
    no(
        "run.no_place",
        exit::NOT_YOURS,
        "a run has no repository, commit or branch to begin at",
    ),
    no(
        "run.phase",
        exit::UNREADABLE,
        "a phase cannot be carried out as it is written",
    ),
    no(
        "run.failed",
        exit::UNREACHABLE,
        "the world kept the run from going on",
    ),
    no("git.missing", exit::UNREACHABLE, "git is not on PATH"),
    no("git.failed", exit::UNREACHABLE, "git failed"),
    no("git.locked", exit::BUSY, "another git holds a lock"),
    no(
        "git.not_a_repository",
        exit::NOT_YOURS,
        "the folder is in no repository",
    ),
    no(
        "git.owner",
        exit::NOT_YOURS,
        "the repository belongs to another user",
    ),
    no("git.detached", exit::NOT_YOURS, "the head is detached"),
    no(
        "git.no_commit",
        exit::NOT_YOURS,
        "the repository has no commit yet",
    ),
    no(
        "git.submodules",
        exit::NOT_YOURS,
        "a submodule could not be filled",
    ),
    no(
        "git.no_identity",
        exit::NOT_YOURS,
        "git does not know who commits",
    ),
    no("git.hook_refused", exit::MEND, "a hook refused the commit"),
    no("git.key_refused", exit::MEND, "the commit could not be signed"),
    no(
        "git.filter",
        exit::MEND,
        "a filter that files need is not installed",
    ),
    no("git.conflict", exit::MEND, "merging conflicts"),
    no(
        "git.no_merge_base",
        exit::CANNOT_JUDGE,
        "history that this needs is not there",
    ),
    no("plan.unreadable", exit::UNREADABLE, "the plan cannot be read"),
    no("config.bad", exit::CONFIG, "the configuration does not read"),
    no("store.missing", exit::UNREACHABLE, "the brain has no store"),
    no("store.busy", exit::BUSY, "the store stayed busy"),
    no(
        "store.too_new",
        exit::CONFIG,
        "the store is newer than this program",
    ),
    no(
        "store.filesystem",
        exit::UNREACHABLE,
        "this file system keeps no store safe",
    ),
    no(
        "store.replaced",
        exit::UNREACHABLE,
        "the store's file was replaced while it was open",
    ),
    no("store.disk", exit::UNREACHABLE, "the disk is full or read-only"),
    no("store.damaged", exit::UNREACHABLE, "the store is damaged"),
    no(
        "store.failed",
        exit::UNREACHABLE,
        "the database failed in another way",
    ),
];

/// The page of exit codes.
pub fn page() -> String {
    let mut page = String::from(
        "# Exit codes\n\nWhat a caller should do next. The number is a family, the dotted code is exact; both are only ever added \
         to.\nSentences may change any day. This page is made from the program: `UPDATE=1 ./test` writes it anew.\n\n\
         | exit | for the caller |\n| --- | --- |\n",
    );
    for (number, meaning) in exit::TABLE {
        let _ = writeln!(page, "| {number} | {meaning} |");
    }
    page.push_str(
        "\n`lock run` passes on the exit code of its command; 126 and 127 say, as in a shell, that there was none to run.\n\
         \n## Codes\n\nThe code stands in brackets behind a message, and in `error.code` with `--json`. `preflight check` and \
         `lock` have\nexit codes of their own; `lock` ends with 2 for every refusal that is not named here.\n\n\
         | code | exit | `preflight check` | `lock` | |\n| --- | --- | --- | --- | --- |\n",
    );
    let mut all: Vec<&Code> = ALL.iter().collect();
    all.sort_by_key(|it| it.code);
    for Code {
        code,
        exit,
        check,
        lock,
        meaning,
    } in all
    {
        let cell = |number: &Option<u8>| number.map_or(String::new(), |number| number.to_string());
        let _ = writeln!(
            page,
            "| `{code}` | {} | {} | {} | {meaning} |",
            cell(exit),
            cell(check),
            cell(lock)
        );
    }
    page.push_str("\nA plan that does not read is 65 with `plan.` and what is wrong, line by line in `error.facts.problems`.\n");
    page
}
