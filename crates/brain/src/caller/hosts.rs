//! The agent hosts that are known, and how each shows.

/// One host of agents.
#[derive(Debug)]
pub struct Host {
    /// What its agents are called in a claim.
    pub agent: &'static str,
    /// Variables that it sets in every command it runs.
    pub marks: &'static [&'static str],
    /// The variable that holds its session's id.
    pub session: Option<&'static str>,
    /// The names of its programs, as the kernel shows them.
    pub programs: &'static [&'static str],
    /// What stands in the path of its script, where an interpreter runs it.
    pub script: Option<&'static str>,
}

/// Every host, the mark that is nearest to a certainty first. An editor is none (its terminal is a human's):
/// the mark that its agent sets in a command is.
pub const HOSTS: [Host; 10] = [
    Host {
        agent: "claude-code",
        marks: &[
            "CLAUDECODE",
            "CLAUDE_CODE_SESSION_ID",
            "CLAUDE_CODE_CHILD_SESSION",
        ],
        session: Some("CLAUDE_CODE_SESSION_ID"),
        programs: &["claude"],
        script: Some("/claude-code/"),
    },
    Host {
        agent: "codex",
        marks: &["CODEX_THREAD_ID", "CODEX_SANDBOX"],
        session: Some("CODEX_THREAD_ID"),
        programs: &["codex", "codex-exec"],
        script: Some("/@openai/codex/"),
    },
    Host {
        agent: "gemini",
        marks: &["GEMINI_CLI", "GEMINI_SESSION_ID"],
        session: Some("GEMINI_SESSION_ID"),
        programs: &["gemini"],
        script: Some("/gemini-cli/"),
    },
    Host {
        agent: "antigravity",
        marks: &[],
        session: None,
        programs: &["agy"],
        script: None,
    },
    Host {
        agent: "cursor",
        marks: &["CURSOR_AGENT", "CURSOR_TRANSCRIPT_PATH"],
        session: None,
        programs: &["cursor-agent"],
        script: Some("/cursor-agent/"),
    },
    Host {
        agent: "opencode",
        marks: &["OPENCODE"],
        session: None,
        programs: &["opencode"],
        script: Some("/opencode-ai/"),
    },
    Host {
        agent: "aider",
        marks: &[],
        session: None,
        programs: &["aider"],
        script: Some("/bin/aider"),
    },
    Host {
        agent: "copilot",
        marks: &[],
        session: None,
        programs: &["copilot"],
        script: Some("/@github/copilot/"),
    },
    Host {
        agent: "qwen",
        marks: &["QWEN_CODE"],
        session: None,
        programs: &["qwen"],
        script: Some("/qwen-code/"),
    },
    Host {
        agent: "droid",
        marks: &[],
        session: None,
        programs: &["droid"],
        script: None,
    },
];

/// The variable by which a host that is not known says what it is: `name_version_…`.
pub const ANY_AGENT: &str = "AI_AGENT";

/// Programs whose name says nothing: what they run is looked at.
const INTERPRETERS: [&str; 6] = ["node", "MainThread", "bun", "deno", "python", "python3"];

/// What watches an attempt of a run: whatever descends from it works for that attempt, whatever it unsets.
static ATTEMPT: Host = Host {
    agent: "satellite",
    marks: &[],
    session: None,
    programs: &[],
    script: None,
};

/// Recognises a host by the name of a process; `arguments` are asked for only where that says nothing.
pub fn recognise(name: &str, arguments: impl FnOnce() -> Vec<String>) -> Option<&'static Host> {
    if let Some(host) = HOSTS.iter().find(|host| host.programs.contains(&name)) {
        return Some(host);
    }
    if name == "brain" {
        return (arguments().get(1).map(String::as_str) == Some(crate::ATTEMPT)).then_some(&ATTEMPT);
    }
    let interprets = INTERPRETERS.contains(&name) || name.starts_with("python3.");
    if !interprets {
        return None;
    }
    // The script is the first argument that is no option.
    let arguments = arguments();
    let script = arguments.iter().skip(1).find(|word| !word.starts_with('-'))?;
    let program = script.rsplit('/').next().unwrap_or(script);
    HOSTS.iter().find(|host| {
        host.programs.contains(&program) || host.script.is_some_and(|part| script.contains(part))
    })
}
