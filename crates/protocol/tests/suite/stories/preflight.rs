//! The check before each write (section 7) and the zones (section 4).

use testkit::story::check;

#[test]
fn the_first_failing_check_is_the_exit_code() {
    check(
        "
        policy fails 1
        ana opens src             -> yes
        ben opens src/../KERNEL.md src-old agents rendering -> yes
        ben fails                 -> yes
        ben writes docs/x branch other  -> 1 claim.not_covering
        ben writes agents/x branch other -> 5 zone.kernel
        ben writes src-old/x branch other -> 2 lock.required
        ben locks src-old/x       -> yes
        ben writes src-old/x branch other -> 3 breaker.open
        @human resets ben         -> yes
        ben writes src-old/x branch other -> 6 branch.wrong
        ben writes src-old/x branch main  -> 0 yes
        @human pauses ben         -> yes
        ben writes docs/x         -> 4 claim.not_open
    ",
    );
}

#[test]
fn each_path_has_its_verdict_and_the_first_refusal_counts() {
    check(
        "
        ana opens src agents          -> yes
        ana writes src/a src/b        -> 0 yes
        ana writes src/a agents/x docs/y -> 5 zone.kernel partly
        ana writes docs/y agents/x src/a -> 1 claim.not_covering partly
    ",
    );
}

#[test]
fn the_claim_is_judged_first() {
    check(
        "
        ana writes src/a              -> 4 claim.unknown
        @plain writes src/a           -> 4 claim.unknown
        ana opens src                 -> yes
        ana asks                      -> yes
        ana writes docs/x             -> 4 claim.not_open
        @human approves ana           -> yes
        ana closes                    -> yes
        ana writes src/a              -> 4 claim.not_open
    ",
    );
}

#[test]
fn a_token_of_nobody_is_outdated() {
    check(
        "
        ana opens src                 -> yes
        @plain!ana writes src/a as ana -> yes
        @plain!old writes src/a as ana -> 4 claim.outdated
    ",
    );
}

#[test]
fn anyone_may_ask() {
    check(
        "
        ana opens src              -> yes
        ben writes src/a as ana    -> yes
        @agent writes src/a as ana -> yes
        @plain writes src/a as ana -> yes
        @human writes src/a as ana -> yes
    ",
    );
}

#[test]
fn every_ancestor_is_looked_at() {
    check(
        "
        ana opens . as pilot           -> yes
        ana launches dom src domain    -> yes
        dom launches ben src/api       -> yes
        ben writes src/api/x           -> 0 yes
        ana asks                       -> yes
        ben is open
        ben writes src/api/x           -> 4 claim.ancestor_not_open
        @human approves ana            -> yes
        dom asks                       -> yes
        ben writes src/api/x           -> 4 claim.ancestor_not_open
        @human answers dom skip        -> yes
        ben writes src/api/x           -> 0 yes
    ",
    );
}

#[test]
fn a_stale_ancestor_holds_nothing_back() {
    check(
        "
        ana opens . as pilot 1h    -> yes
        ana launches ben src 5h    -> yes
        x waits 2h
        ana is stale
        ben writes src/x           -> 0 yes
    ",
    );
}

#[test]
fn only_what_lies_inside_may_be_written() {
    check(
        "
        ana opens src                    -> yes
        ana writes ../x                  -> 1 path.outside
        ana writes /etc/passwd           -> 1 path.outside
        ana writes src/../../x           -> 1 path.outside
        ana writes src/.git/config       -> 1 path.reserved
        ana writes src/.BRAIN/x          -> 1 path.reserved
        ana writes src/x linked          -> 1 path.hard_linked
        ana writes src/x looping         -> 1 path.links
        ana writes src-old/x             -> 1 claim.not_covering
        ana writes ./src//a/../b         -> 0 yes
    ",
    );
}

#[test]
fn a_search_writes_the_files_that_it_names_and_no_others() {
    check(
        "
        ana opens src/ notes/found.md kind search -> yes
        ana writes notes/found.md                -> yes
        ana writes notes/found.md/x              -> 1 claim.search_reads
        ana writes src/a                         -> 1 claim.search_reads
        ana writes docs/x                        -> 1 claim.not_covering
        ana locks src/a                          -> lock.not_covered
        ana locks notes/found.md/x               -> lock.not_covered
        ana locks notes/found.md                 -> yes
    ",
    );
}

#[test]
fn a_pilot_yields_to_whoever_holds_a_path() {
    check(
        "
        ana opens . as pilot      -> yes
        ana writes src/a          -> yes
        ben opens src             -> yes
        ana writes src/a          -> 2 claim.held_by_other
        ana writes docs/a         -> yes
        ben writes src/a          -> yes
        cleo opens notes.md kind search -> yes
        ana writes notes.md       -> 2 claim.held_by_other
    ",
    );
}

#[test]
fn a_parent_gave_away_what_its_child_holds() {
    check(
        "
        ana opens . as pilot       -> yes
        ana launches ben src       -> yes
        ana writes src/a           -> 2 claim.held_by_other
        ben closes                 -> yes
        ana writes src/a           -> yes
        ana launches cleo docs 1h  -> yes
        x waits 2h
        ana writes docs/a          -> yes
    ",
    );
}

#[test]
fn a_pilot_bars_nobody() {
    check(
        "
        ana opens src as pilot -> yes
        ben opens src          -> yes
        ben writes src/a       -> yes
    ",
    );
}

#[test]
fn a_lock_of_another_session_bars_the_path_and_all_below() {
    check(
        "
        @plain locks src as ci     -> yes
        ana opens . as pilot       -> yes
        ana writes src/a           -> 2 lock.held
        ana writes src             -> 2 lock.held
        ana writes srcx            -> yes
        @plain releases src as ci  -> yes
        ana writes src/a           -> yes
    ",
    );
}

#[test]
fn deleting_a_folder_looks_below() {
    check(
        "
        @plain locks src/a as ci   -> yes
        ana opens . as pilot       -> yes
        ana writes src             -> yes
        ana deletes src            -> 2 lock.held
        ana writes src folder      -> 2 lock.held
        @plain releases src/a as ci -> yes
        ana deletes src            -> yes
        ben opens src/api/x        -> yes
        ana deletes src            -> 2 claim.held_by_other
        ana writes src             -> yes
        ana deletes docs           -> yes
    ",
    );
}

#[test]
fn in_rendering_every_write_needs_the_lock() {
    check(
        "
        ana opens src rendering  -> yes
        ana writes src/a         -> 2 lock.required
        ana locks src/a 10m      -> yes
        ana writes src/a         -> yes
        ana writes src/b         -> 2 lock.required
        x waits 10m
        ana writes src/a         -> 2 lock.required
        ana locks src            -> yes
        ana writes src/b         -> yes
    ",
    );
}

#[test]
fn the_repository_must_be_on_the_claims_branch() {
    check(
        "
        ana opens src                         -> yes
        ana writes src/x branch main          -> yes
        ana writes src/x branch other         -> 6 branch.wrong
        ana writes src/x branch -             -> 6 branch.wrong
        ana writes src/x checkout /elsewhere  -> 6 branch.other_checkout
        ana writes src/x repo vendor branch x -> yes
        ana writes src/x branch other submodule -> yes
        ben opens docs branch feature         -> yes
        ben writes docs/x branch main         -> 6 branch.wrong
        ben writes docs/x branch feature      -> yes
        cleo opens web theme theme/x worktree /wt -> yes
        cleo writes web/x branch theme/x      -> 6 branch.other_checkout
        cleo writes web/x branch theme/x checkout /wt -> yes
    ",
    );
}

#[test]
fn a_path_in_no_repository_passes_the_last_check() {
    check(
        "
        ana opens src branch feature -> yes
        ana writes src/x             -> yes
        ana writes src/x branch main -> 6 branch.wrong
    ",
    );
}

#[test]
fn the_kernel_is_written_by_human_claims_that_name_it() {
    check(
        "
        @human opens KERNEL.md named mia     -> yes
        @human writes KERNEL.md as mia       -> yes
        @plain opens agents named cid        -> yes
        @plain writes agents/x.md as cid     -> yes
        ana opens CLAUDE.md                  -> yes
        ana writes CLAUDE.md                 -> 5 zone.kernel
        @human opens . as pilot named pia    -> yes
        @human writes PATHS.md as pia        -> 5 zone.kernel
        @human opens AGENTS.md as satellite under pia named sat -> yes
        @human writes AGENTS.md as sat       -> 5 zone.kernel
    ",
    );
}

#[test]
fn without_a_kernel_user_nobody_writes_there() {
    check(
        "
        policy kerneluser off
        @human opens KERNEL.md named mia     -> yes
        @human writes KERNEL.md as mia       -> 5 zone.kernel
        @human asks for mia zone about kernel -> yes
        @human approves mia                  -> yes
        @human writes KERNEL.md as mia       -> 5 zone.kernel
    ",
    );
}

#[test]
fn a_gate_gives_one_claim_the_right_to_a_zone() {
    check(
        "
        ana opens KERNEL.md progression    -> yes
        ana writes KERNEL.md               -> 5 zone.kernel
        ana writes progression/x           -> 5 zone.personal
        ana asks zone about kernel         -> yes
        @human approves ana                -> yes
        ana writes KERNEL.md               -> yes
        ana writes progression/x           -> 5 zone.personal
        ana asks zone about personal       -> yes
        @human approves ana                -> yes
        ana writes progression/x           -> yes
        ana closes                         -> yes
        ben opens KERNEL.md                -> yes
        ben writes KERNEL.md               -> 5 zone.kernel
    ",
    );
}

#[test]
fn a_right_reaches_only_what_the_scope_names() {
    check(
        "
        ana opens . KERNEL.md       -> yes
        ana asks zone about kernel  -> yes
        @human approves ana         -> yes
        ana writes KERNEL.md        -> yes
        ana writes AGENTS.md        -> 5 zone.kernel
        ana writes progression/x    -> 5 zone.personal
    ",
    );
}

#[test]
fn skip_takes_the_request_back() {
    check(
        "
        ana opens KERNEL.md          -> yes
        ana asks zone about kernel   -> yes
        @human answers ana skip      -> yes
        ana is open
        ana writes KERNEL.md         -> 5 zone.kernel
    ",
    );
}

#[test]
fn a_human_has_no_right_to_personal_files_either() {
    check(
        "
        @human opens progression named mia  -> yes
        @human writes progression/x as mia  -> 5 zone.personal
    ",
    );
}

#[test]
fn a_secret_is_never_written() {
    check(
        "
        @human opens .env MYSECRETS named mia   -> yes
        @human writes .env as mia               -> 5 zone.secret
        @human asks for mia zone about secret   -> yes
        @human approves mia saying secret       -> yes
        @human writes .env as mia               -> 5 zone.secret
        @human deletes MYSECRETS as mia         -> 5 zone.secret
        ana opens .                             -> yes
        ana writes a/.env.local                 -> 5 zone.secret
        ana writes a/.env.example               -> yes
    ",
    );
}

#[test]
fn a_secret_is_never_read_by_a_satellite_or_below() {
    check(
        "
        ana opens . as pilot          -> yes
        ana launches dom src domain   -> yes
        dom launches ben src/api      -> yes
        ana reads .env                -> yes
        @agent reads .env             -> yes
        @plain reads .env             -> yes
        @human reads .env             -> yes
        dom reads .env                -> 5 zone.secret
        ben reads src/.env            -> 5 zone.secret
        ana reads .env as ben         -> 5 zone.secret
        @plain/ben reads .env         -> 5 zone.secret
        @plain!ben reads .env         -> 5 zone.secret
        ben reads src/.env.example    -> yes
        ben reads docs/x              -> yes
        ben reads ../x                -> yes
        @plain!ben closes ben         -> yes
        @plain!ben reads .env         -> 5 zone.secret
    ",
    );
}

#[test]
fn a_kernel_file_is_deleted_only_with_its_path_as_the_words() {
    check(
        "
        @human opens KERNEL.md agents named mia        -> yes
        @human deletes KERNEL.md as mia                -> 5 zone.kernel_deleted
        @human asks for mia zone about KERNEL.md       -> yes
        @human approves mia                            -> gate.words
        @human approves mia saying yes                 -> gate.words
        @human approves mia saying KERNEL.md           -> yes
        @human deletes ./KERNEL.md as mia              -> yes
        @human deletes agents/x as mia                 -> 5 zone.kernel_deleted
        @human asks for mia zone about agents/x        -> yes
        @human rejects mia                             -> yes
        mia is failed
    ",
    );
}

#[test]
fn a_path_that_only_an_entry_of_another_zone_covers_fails_the_zone() {
    check(
        "
        policy project agents/free/
        @human opens agents named mia     -> yes
        @human writes agents/x as mia     -> yes
        @human writes agents/free/x as mia -> 5 zone.project
        ana opens agents/free             -> yes
        ana writes agents/free/x          -> yes
    ",
    );
}

#[test]
fn a_claim_on_everything_does_not_hold_the_kernel() {
    check(
        "
        ana opens .                       -> yes
        @human opens KERNEL.md named mia  -> yes
        @human writes KERNEL.md as mia    -> yes
        @human locks KERNEL.md as mia     -> yes
        ana locks PATHS.md                -> lock.not_covered
        @plain locks PATHS.md as ci       -> yes
    ",
    );
}
