//! Opening claims (section 5).

use testkit::story::check;

#[test]
fn two_that_write_the_same_files_are_never_live_together() {
    check(
        "
        ana opens src            -> yes
        ben opens src            -> claim.scope_overlaps
        ben opens src/api        -> claim.scope_overlaps
        ben opens .              -> claim.scope_overlaps
        ben opens src/**/*.rs    -> claim.scope_overlaps
        ben opens src-old docs   -> yes
    ",
    );
}

#[test]
fn a_list_of_entries_is_opened_as_a_whole_or_not_at_all() {
    check(
        "
        ana opens src/a.rs       -> yes
        ben opens docs src/a.rs  -> claim.scope_overlaps
        cleo opens docs          -> yes
    ",
    );
}

#[test]
fn what_is_taken_away_does_not_conflict() {
    check(
        "
        ana opens src !src/gen   -> yes
        ben opens src/gen        -> yes
        cleo opens src/gen/x.rs  -> claim.scope_overlaps
    ",
    );
}

#[test]
fn two_files_of_one_folder_do_not_overlap() {
    check(
        "
        ana opens notes/a.md     -> yes
        ben opens notes/b.md     -> yes
        cleo opens notes         -> claim.scope_overlaps
    ",
    );
}

#[test]
fn an_entry_that_does_not_exist_yet_is_a_file_and_a_folder() {
    check(
        "
        ana opens src/new        -> yes
        ana writes src/new       -> yes
        ana writes src/new/x.rs  -> yes
        ben opens src/new/x.rs   -> claim.scope_overlaps
    ",
    );
}

#[test]
fn scopes_of_two_zones_do_not_meet() {
    check(
        "
        ana opens .              -> yes
        ben opens KERNEL.md      -> yes
        cleo opens agents        -> yes
        dan opens agents/x.md    -> claim.scope_overlaps
    ",
    );
}

#[test]
fn every_kind_but_search_conflicts_with_every_kind_but_search() {
    for a in ["code", "brain-write", "test", "deploy", "domain"] {
        for b in ["code", "brain-write", "test", "deploy", "domain"] {
            check(&format!(
                "
                ana opens src kind {a}      -> yes
                ben opens src/api kind {b}  -> claim.scope_overlaps
            "
            ));
        }
        check(&format!(
            "
            ana opens src kind {a}          -> yes
            ben opens src/ kind search      -> yes
            cleo opens src/ kind search     -> yes
        "
        ));
    }
}

#[test]
fn a_search_counts_as_a_writer_of_the_files_that_it_names() {
    check(
        "
        ana opens src/ notes/found.md kind search  -> yes
        ben opens src                              -> yes
        cleo opens notes/found.md                  -> claim.scope_overlaps
        cleo opens notes                           -> claim.scope_overlaps
        dan opens notes/found.md kind search       -> claim.scope_overlaps
        dan opens notes/ kind search               -> yes
    ",
    );
}

#[test]
fn a_pilot_claims_attention_and_not_files() {
    check(
        "
        ana opens src as pilot       -> yes
        ben opens src                -> yes
        cleo opens src/api as pilot  -> claim.scope_overlaps
        cleo opens docs as pilot     -> yes
    ",
    );
}

#[test]
fn an_exclusive_pilot_keeps_everyone_out() {
    check(
        "
        ana opens src as pilot exclusive  -> yes
        ben opens src/api                 -> claim.scope_overlaps
        ana launches cleo src/api         -> yes
        cleo writes src/api/x.rs          -> yes
        ben opens docs                    -> yes
        dan opens docs as pilot exclusive -> claim.scope_overlaps
    ",
    );
}

#[test]
fn an_exclusive_pilot_does_not_conflict_with_a_reader() {
    check(
        "
        ana opens src as pilot exclusive -> yes
        ben opens src/ kind search       -> yes
        ben writes src/x.rs              -> 1 claim.search_reads
    ",
    );
}

#[test]
fn delegation_never_conflicts_with_ancestors_and_siblings_do() {
    check(
        "
        ana opens src as pilot           -> yes
        ana launches ben src/api         -> yes
        ana launches cleo src/api/x.rs   -> claim.scope_overlaps
        ana launches cleo src/web        -> yes
    ",
    );
}

#[test]
fn a_grandchild_works_inside_its_domain() {
    check(
        "
        ana opens . as pilot                   -> yes
        ana launches dom src kind domain domain -> yes
        dom launches ben src/api               -> yes
        dom launches cleo docs                 -> claim.outside_domain
        dom launches cleo src/api/x            -> claim.scope_overlaps
        ben writes src/api/x                   -> yes
        dom writes src/api/x                   -> 2 claim.held_by_other
        dom writes src/web/x                   -> yes
    ",
    );
}

#[test]
fn a_pilot_in_between_is_no_way_out_of_a_domain() {
    check(
        "
        ana opens . as pilot             -> yes
        ana launches dom src domain      -> yes
        dom launches pil src/x as pilot  -> yes
        pil launches ben docs            -> claim.outside_domain
        pil launches ben src/y           -> yes
    ",
    );
}

#[test]
fn a_kind_alone_makes_a_domain() {
    check(
        "
        ana opens . as pilot              -> yes
        ana launches dom src kind domain  -> yes
        dom launches ben src/api          -> yes
        dom launches cleo docs            -> claim.outside_domain
    ",
    );
}

#[test]
fn a_leaf_launches_nothing() {
    check(
        "
        ana opens src                -> yes
        ana launches ben src/api     -> claim.leaf_has_no_children
        cleo opens . as pilot        -> yes
        cleo launches dan docs       -> yes
        dan launches eve docs/x      -> claim.leaf_has_no_children
    ",
    );
}

#[test]
fn a_child_opens_only_under_an_open_parent() {
    check(
        "
        @plain launches ben src                      -> claim.unknown
        ana opens . as pilot 1h                      -> yes
        ana asks                                     -> yes
        ana launches ben src                         -> claim.parent_not_open
        @human approves ana                          -> yes
        @human pauses ana                            -> yes
        ana launches ben src                         -> claim.parent_not_open
        @human resumes ana                           -> yes
        x waits 61m
        ana launches ben src                         -> claim.parent_not_open
        ana renews                                   -> yes
        ana launches ben src                         -> yes
        @human aborts ana                            -> yes
        ana launches cleo docs                       -> claim.parent_not_open
    ",
    );
}

#[test]
fn a_question_above_holds_the_launches_below() {
    check(
        "
        ana opens . as pilot 1h                -> yes
        ana launches dom src domain 5h         -> yes
        ana asks                               -> yes
        dom launches ben src/api               -> claim.parent_not_open
        @human approves ana                    -> yes
        x waits 61m
        ana is stale
        dom launches ben src/api               -> yes
    ",
    );
}

#[test]
fn a_satellite_opens_only_its_own_children() {
    check(
        "
        ana opens . as pilot            -> yes
        ana launches dom src domain     -> yes
        ana launches ben docs           -> yes
        ben opens web                   -> claim.only_own_children
        dom opens web                   -> claim.only_own_children
        dom launches cleo src/api       -> yes
        cleo opens web                  -> claim.only_own_children
        @plain/cleo opens web           -> claim.only_own_children
        @plain!cleo opens web           -> claim.only_own_children
        @plain opens web                -> yes
    ",
    );
}

#[test]
fn a_token_binds_also_after_its_claim_has_ended() {
    check(
        "
        ana opens . as pilot       -> yes
        ana launches ben src       -> yes
        @plain!ben closes ben      -> yes
        @plain!ben opens docs      -> claim.only_own_children
    ",
    );
}

#[test]
fn a_pilot_that_opened_its_satellites_itself_is_still_the_pilot() {
    check(
        "
        ana opens . as pilot         -> yes
        ana launches ben src itself  -> yes
        ana launches cleo docs itself -> yes
    ",
    );
}

#[test]
fn an_exact_id_is_taken_once_and_a_composed_one_is_counted_on() {
    check(
        "
        ana opens src id sess-20261130-1400-work    -> yes
        ben opens docs id sess-20261130-1400-work   -> claim.id_taken
        ana closes sess-20261130-1400-work          -> yes
        ben opens docs id sess-20261130-1400-work   -> claim.id_taken
        work opens docs                             -> yes
        cleo writes docs/x as work                  -> yes
    ",
    );
}

#[test]
fn a_time_to_live_has_bounds_and_defaults() {
    check(
        "
        ana opens src 999ms  -> claim.ttl
        ana opens src 31d    -> claim.ttl
        ana opens src 30d    -> yes
        ben opens docs       -> yes
        ben left 4h
        cleo opens . as pilot -> yes
        cleo left 12h
        dan opens web 1s     -> yes
        dan left 1s
    ",
    );
}

#[test]
fn a_task_is_one_line() {
    check(
        "
        ana opens src task \"\"       -> text.bad
        ana opens src task \" \"      -> text.bad
        ana opens src task \"a\u{7}b\" -> text.bad
        ana opens src task \"mend it\" -> yes
    ",
    );
}

#[test]
fn a_detached_head_needs_a_branch_but_for_a_search() {
    check(
        "
        ana opens src detached               -> claim.detached_head
        ana opens src detached branch main   -> yes
        ben opens docs detached kind search  -> yes
        ben writes docs branch -             -> yes
    ",
    );
}

#[test]
fn a_command_that_hides_its_status_is_refused_where_it_is_written() {
    check(
        "
        ana opens src tests \"npm test | tail -1\"   -> tests.status_hidden
        ana opens src tests \"npm test || true\"     -> tests.status_hidden
        ana opens src tests \"npm ci && npm test\"   -> yes
    ",
    );
}

#[test]
fn opening_over_a_stale_claim_supersedes_it() {
    check(
        "
        ana opens src 30m        -> yes
        ben opens src/api        -> claim.scope_overlaps
        x waits 31m
        ana is stale
        ben opens src/api        -> yes
        ana is failed by ben
        ben inherits ana
        ana writes src/web/x     -> 4 claim.superseded
        ana renews               -> claim.superseded
        ana closes               -> claim.superseded
        ana locks src/web/x      -> claim.superseded
    ",
    );
}

#[test]
fn a_stale_claim_with_a_live_child_is_not_superseded() {
    check(
        "
        ana opens src as pilot exclusive 30m   -> yes
        ana launches ben src/api 5h            -> yes
        x waits 31m
        ana is stale
        cleo opens src/web                     -> claim.scope_overlaps
        ben closes                             -> yes
        cleo opens src/web                     -> yes
        ana is failed by cleo
    ",
    );
}

#[test]
fn a_stale_family_is_superseded_as_a_whole() {
    check(
        "
        ana opens src as pilot exclusive 30m   -> yes
        ana launches ben src/api 30m           -> yes
        x waits 31m
        ben is stale
        cleo opens src                         -> yes
        ana is failed by cleo
        ben is failed by cleo
        ben writes src/api/x                   -> 4 claim.superseded
        cleo inherits ben ana
    ",
    );
}

#[test]
fn a_stale_bystander_stays() {
    check(
        "
        ana opens src 30m  -> yes
        ben opens docs 30m -> yes
        x waits 31m
        cleo opens src     -> yes
        ana is failed by cleo
        ben is stale
        ben renews         -> yes
    ",
    );
}

#[test]
fn a_waiting_or_paused_claim_holds_its_scope() {
    check(
        "
        ana opens src 30m   -> yes
        ana asks            -> yes
        x waits 10h
        ana is waiting_human
        ben opens src       -> claim.scope_overlaps
        @human approves ana -> yes
        @human pauses ana   -> yes
        x waits 10h
        ben opens src       -> claim.scope_overlaps
        @human resumes ana  -> yes
        ana is open
        ana left 30m
    ",
    );
}

#[test]
fn a_closed_or_failed_claim_holds_nothing() {
    check(
        "
        ana opens src       -> yes
        ana closes          -> yes
        ben opens src       -> yes
        @human aborts ben   -> yes
        cleo opens src      -> yes
    ",
    );
}
