//! Has a human prove to be one, in the way that this brain asks for, and seals what they answer.

use std::path::PathBuf;

use protocol::facts::caller::{Nature, Proof};
use protocol::refusal::Refusal;

use crate::caller::proven;
use crate::context::Context;
use crate::exit;
use crate::failure::{Failure, Trouble};
use crate::human::{Seal, sign, typed};
use crate::keys::trouble;

/// The variable that names the key with which a human signs.
const KEY: &str = "BRAIN_SIGNING_KEY";

/// Refuses an agent, before anything else is looked at; a demo answers whoever calls.
///
/// # Errors
///
/// [`Refusal::NotHuman`].
pub fn only_humans(cx: &Context, verb: &str) -> Result<(), Failure> {
    match &cx.caller.nature {
        Nature::Agent { by } if cx.keys.demo()?.is_none() => Err(Refusal::NotHuman {
            verb: verb.to_owned(),
            taken_for: format!("an agent, by {by}"),
        }
        .into()),
        _ => Ok(()),
    }
}

/// Lets the caller prove to be a human who wants this; from then on the context calls as one. Gives the seal.
///
/// # Errors
///
/// [`Refusal::NotHuman`] for an agent, before anything is asked; what kept the proof from being given.
pub fn prove(cx: &mut Context, verb: &str, shown: &str, answer: &str) -> Result<Seal, Failure> {
    only_humans(cx, verb)?;
    if let Some(seal) = given_by_test(cx, answer)? {
        return Ok(seal);
    }
    let (proof, seal) = if let Some(demo) = cx.keys.demo()? {
        (Proof::Demo, demo.seal(answer))
    } else if cx.config.gates.signed {
        let seal = sign(answer, &signing_key()).map_err(trouble)?;
        let proof = cx.keys.signers()?.verify(answer, &seal).map_err(trouble)?.ok_or_else(|| {
            Trouble::new(exit::NOT_YOURS, "gate.not_human", "the signature is of no listed key".to_owned())
                .hint("add the key to the file that `gates.signers` names, or name another with BRAIN_SIGNING_KEY")
        })?;
        (proof, seal)
    } else {
        let proof = typed(&format!("{shown}\nOnly a human may {verb}.")).map_err(trouble)?;
        (proof, cx.keys.machine()?.seal(answer))
    };
    cx.caller = proven(cx.caller.clone(), proof);
    Ok(seal)
}

/// The seal of a caller of whom a test says that it is a human, in a brain that asks for no signature.
#[cfg(feature = "testkit")]
fn given_by_test(cx: &Context, answer: &str) -> Result<Option<Seal>, Failure> {
    let human = std::env::var_os("BRAIN_TEST_CALLER").is_some_and(|caller| caller == "human");
    if human && !cx.config.gates.signed {
        Ok(Some(cx.keys.machine()?.seal(answer)))
    } else {
        Ok(None)
    }
}

#[cfg(not(feature = "testkit"))]
#[expect(clippy::unnecessary_wraps, reason = "the same shape as under testkit")]
fn given_by_test(_: &Context, _: &str) -> Result<Option<Seal>, Failure> {
    Ok(None)
}

fn signing_key() -> PathBuf {
    let home = || std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    std::env::var_os(KEY).map_or_else(|| home().join(".ssh/id_ed25519"), PathBuf::from)
}
