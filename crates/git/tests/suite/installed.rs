//! The git of this machine.

use std::path::Path;

use git::{Kind, knows_committer, version};

#[test]
fn git_says_its_version() {
    let version = version().unwrap();
    assert!(version.number >= (2, 30), "{version:?}");
    assert!(version.text.starts_with("git version"), "{version:?}");
}

#[test]
fn a_folder_that_is_not_there_is_not_a_missing_git() {
    let error = knows_committer(Path::new("/nowhere/at/all")).unwrap_err();
    assert!(matches!(error.kind(), Kind::NotARepository), "{error}");
}
