//! Who is calling, as the test says: only in a binary that was built for tests.
//!
//! `BRAIN_TEST_CALLER` is `human`, `plain` or `agent`, an agent with `:` and its host's session id.
//! `BRAIN_TEST_CHAIN` are the ids of its processes, nearest first, with commas; `BRAIN_TEST_OWNER` is its owner
//! process; `BRAIN_TEST_GONE` are processes that ended; `BRAIN_TEST_USER` is its user.

use protocol::facts::caller::{Caller, Nature, Process, Proof};

use super::{Life, Probe};

/// The host of processes that a test made up.
const HOST: &str = "test";

pub(super) fn caller(probe: &Probe) -> Option<Caller> {
    let text = probe.text("BRAIN_TEST_CALLER")?;
    let (nature, session) = match text.split_once(':') {
        Some((nature, session)) => (nature, Some(session.to_owned())),
        None => (text.as_str(), None),
    };
    let user = probe.text("BRAIN_TEST_USER").unwrap_or_else(|| "ana".to_owned());
    let chain = probe.text("BRAIN_TEST_CHAIN").unwrap_or_default();
    let owner = probe.text("BRAIN_TEST_OWNER").unwrap_or_default();
    Some(Caller {
        nature: match nature {
            "human" => Nature::Human(Proof::Typed {
                terminal: HOST.to_owned(),
            }),
            "agent" => Nature::Agent {
                by: "the test".to_owned(),
            },
            _ => Nature::Plain,
        },
        token: probe.token(),
        host_session: session,
        chain: processes(&chain).collect(),
        owner: processes(&owner).next(),
        agent: (nature == "agent").then(|| "agent".to_owned()),
        ..Caller::plain(&user, HOST)
    })
}

/// Says whether a made-up process ended; real ones are looked at.
pub(super) fn life(process: &Process) -> Option<Life> {
    if process.host != HOST {
        return None;
    }
    let gone = std::env::var("BRAIN_TEST_GONE").unwrap_or_default();
    let is_gone = processes(&gone).any(|other| other.pid == process.pid);
    Some(if is_gone { Life::Gone } else { Life::Alive })
}

fn processes(list: &str) -> impl Iterator<Item = Process> {
    list.split(',').filter_map(|pid| {
        Some(Process {
            host: HOST.to_owned(),
            boot: HOST.to_owned(),
            pid_ns: 0,
            pid: pid.trim().parse().ok()?,
            start: 0,
        })
    })
}
