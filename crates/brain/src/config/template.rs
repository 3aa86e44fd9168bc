//! The `brain.yml` that `brain init` writes.

/// Writes a first configuration: the id, the limits that are in force, and what is changed most often.
pub fn template(brain_id: &str) -> String {
    format!(
        "\
# How this brain judges. Versioned; brain.local.yml overrides it on one machine.
brain: {brain_id}

kerneluser: true            # a human's claim may write the kernel files that it names
stale_grace: 24h            # how long an expired claim can still be renewed
circuit_breaker:
  max_consecutive_fails: 3  # then a human has to look

# main_branch: main
# tests: npm test           # closes a claim that names no tests of its own
# zones:
#   personal: [notes/]      # written after a human agreed
# gates:
#   signed: true            # answers need an SSH signature of a listed key
#   signers: .allowed-signers
"
    )
}
