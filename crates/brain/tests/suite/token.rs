//! Tokens, and the file that each is kept in.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use protocol::facts::id::SessId;
use runner::token::Token;

#[test]
fn a_token_is_kept_for_its_user_alone_and_handed_to_a_child() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path();
    let id = SessId::parse("sess-20261130-1030-api").unwrap();
    assert!(Token::find(state, &id).unwrap().is_none());
    let first = Token::mint().unwrap();
    first.keep(state, &id).unwrap();
    let second = Token::mint().unwrap();
    second.keep(state, &id).unwrap();
    assert_ne!(first.digest(), second.digest());
    assert_eq!(
        Token::find(state, &id).unwrap().unwrap().digest(),
        second.digest()
    );
    let file = state.join("tokens").join(id.as_str());
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(
        fs::metadata(state.join("tokens")).unwrap().permissions().mode() & 0o777,
        0o700
    );
    assert_eq!(
        fs::read_dir(state.join("tokens")).unwrap().count(),
        1,
        "no draft is left"
    );
    let mut child = Command::new("printenv");
    second.hand_to(child.arg("BRAIN_TOKEN"));
    let given = String::from_utf8(child.output().unwrap().stdout).unwrap();
    assert_eq!(Token::read(&given).unwrap().digest(), second.digest());
    assert!(!second.digest().0.contains(given.trim()));
    fs::write(&file, "garbage").unwrap();
    assert!(Token::find(state, &id).is_err());
    Token::forget(state, &id).unwrap();
    Token::forget(state, &id).unwrap();
    assert!(Token::find(state, &id).unwrap().is_none());
}

#[test]
fn what_is_no_token_is_none() {
    for bad in [
        "",
        "abc",
        &"g".repeat(64),
        &"a".repeat(63),
        &"a".repeat(65),
        &"é".repeat(32),
    ] {
        assert!(Token::read(bad).is_none(), "{bad}");
    }
}
