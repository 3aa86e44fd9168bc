use crate::world::{World, executable, signature, write};
use git::Kind;
use std::fs;

/// `main` cloned from a bare `hub.git`, and `other`, a second clone.
fn shared() -> World {
    let world = World::new();
    world.git(&world.path, &["clone", "-q", "--bare", "main", "hub.git"]);
    world.git(&world.main, &["remote", "add", "origin", "../hub.git"]);
    world.git(&world.path, &["clone", "-q", "hub.git", "other"]);
    world
}

#[test]
fn a_push_goes_forward_and_a_lost_race_is_rebased_and_pushed_again() {
    let world = shared();
    let hub = world.path.join("hub.git");
    let base = world.oid(&world.main, "HEAD");
    let mine = world.commit(&world.main, "mine", "x");
    assert_eq!(world.door().push("origin", "main", Some(&base)).unwrap(), mine);
    assert_eq!(world.oid(&hub, "main"), mine);

    let other = world.path.join("other");
    world.git(&other, &["pull", "-q"]);
    let theirs = world.commit(&other, "theirs", "x");
    world.git(&other, &["push", "-q", "origin", "main"]);
    world.commit(&world.main, "again", "x");
    for expected in [None, Some(&mine)] {
        let lost = world.door().push("origin", "main", expected).unwrap_err();
        assert!(matches!(lost.kind(), Kind::NonFastForward { .. }), "{lost}");
        assert_eq!(world.oid(&hub, "main"), theirs, "never by force");
    }
    let tip = world.door().fetch("origin", "main").unwrap().unwrap();
    assert_eq!(tip, theirs);
    let landing = world.door().plan_rebase("main", &tip, &signature(1)).unwrap();
    world.door().land(&landing).unwrap();
    world.door().push("origin", "main", Some(&tip)).unwrap();
    assert_eq!(world.oid(&hub, "main"), landing.new);
    assert_eq!(world.git(&world.main, &["status", "--porcelain"]), "");
}

#[test]
fn a_lease_never_rewrites_history() {
    let world = shared();
    let hub = world.path.join("hub.git");
    let mine = world.commit(&world.main, "mine", "x");
    world.door().push("origin", "main", None).unwrap();
    world.git(&world.main, &["commit", "-q", "--amend", "-m", "rewritten"]);
    let refused = world.door().push("origin", "main", Some(&mine)).unwrap_err();
    assert!(matches!(refused.kind(), Kind::NonFastForward { .. }), "{refused}");
    assert_eq!(world.oid(&hub, "main"), mine);
}

#[test]
fn a_server_that_refuses_and_one_that_is_not_there_are_told_apart() {
    let world = shared();
    let hook = world.path.join("hub.git/hooks/pre-receive");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    write(&hook, "#!/bin/sh\necho protected >&2\nexit 1\n");
    executable(&hook);
    world.commit(&world.main, "mine", "x");
    let refused = world.door().push("origin", "main", None).unwrap_err();
    assert!(
        matches!(refused.kind(), Kind::PushRefused { reason } if reason.contains("hook")),
        "{refused}"
    );
    assert!(refused.stderr().contains("protected"));
    fs::rename(world.path.join("hub.git"), world.path.join("away")).unwrap();
    for error in [
        world.door().push("origin", "main", None).unwrap_err(),
        world.door().fetch("origin", "main").unwrap_err(),
    ] {
        assert!(matches!(error.kind(), Kind::Unreachable), "{error}");
    }
}

#[test]
fn a_pre_push_hook_that_refuses_is_named() {
    let world = shared();
    world.hook("pre-push", "echo no way; exit 1");
    world.commit(&world.main, "mine", "x");
    let refused = world.door().push("origin", "main", None).unwrap_err();
    assert!(
        matches!(refused.kind(), Kind::HookRefused { hook, .. } if hook == "pre-push"),
        "{refused}"
    );
}

#[test]
fn the_coordinator_pushes_to_an_address() {
    let world = shared();
    let hub = world.path.join("hub.git");
    let mine = world.commit(&world.main, "mine", "x");
    world.hook("pre-push", "touch ../ran; exit 1");
    let door = world.coordinator_at(&world.main);
    let unknown = door.push("origin", "main", None).unwrap_err();
    assert!(matches!(unknown.kind(), Kind::Unreachable), "{unknown}");
    door.push(hub.to_str().unwrap(), "main", None).unwrap();
    assert_eq!(world.oid(&hub, "main"), mine);
    assert!(!world.path.join("ran").exists());
}

#[test]
fn a_branch_that_the_remote_lacks_is_none_and_odd_remotes_are_refused() {
    let world = shared();
    assert_eq!(world.door().fetch("origin", "no-such").unwrap(), None);
    for remote in ["", "--upload-pack=x", "ext::sh -c x"] {
        assert!(matches!(
            world.door().fetch(remote, "main").unwrap_err().kind(),
            Kind::BadName { .. }
        ));
        assert!(matches!(
            world.door().push(remote, "main", None).unwrap_err().kind(),
            Kind::BadName { .. }
        ));
    }
    let missing = world.door().push("origin", "no-such", None).unwrap_err();
    assert!(matches!(missing.kind(), Kind::Unknown { .. }), "{missing}");
}
