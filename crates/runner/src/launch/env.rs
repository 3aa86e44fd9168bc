//! The environment of a child: built from nothing, so that a secret added tomorrow is kept out today (O-28).

use std::ffi::{OsStr, OsString};

/// A variable that every child is given when its parent has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Passed {
    /// Its name; with a star at its end, every name that begins so.
    pub name: &'static str,
    /// What breaks without it.
    pub why: &'static str,
}

const fn passed(name: &'static str, why: &'static str) -> Passed {
    Passed { name, why }
}

/// The fixed list. It holds names of places and of habits; what leads to a secret is not in it:
/// `SSH_AUTH_SOCK`, `DBUS_SESSION_BUS_ADDRESS` and `XDG_RUNTIME_DIR` lead to agents and keyrings, and a
/// proxy's URL often holds a password.
pub const BASE: &[Passed] = &[
    passed("PATH", "programs are found by it"),
    passed("HOME", "tools keep their configuration and caches there"),
    passed("USER", "tools ask it for the user's name"),
    passed("LOGNAME", "the same, in POSIX"),
    passed("SHELL", "what starts a shell asks which"),
    passed("LANG", "without it text is taken for ASCII"),
    passed("LANGUAGE", "the languages of messages, in order"),
    passed("LC_*", "the parts of a locale"),
    passed("TZ", "times are shown in it"),
    passed("TERM", "what a printed colour may be"),
    passed("TMPDIR", "where temporary files belong on this machine"),
    passed("XDG_CONFIG_HOME", "where HOME's configuration is instead"),
    passed("XDG_CONFIG_DIRS", "where the machine's configuration is"),
    passed("XDG_DATA_HOME", "where HOME's data is instead"),
    passed("XDG_DATA_DIRS", "where the machine's data is"),
    passed("XDG_STATE_HOME", "where HOME's state is instead"),
    passed("XDG_CACHE_HOME", "where HOME's caches are instead"),
    passed("SSL_CERT_FILE", "the certificates that this machine trusts"),
    passed("SSL_CERT_DIR", "the same, as a folder"),
    passed("NODE_EXTRA_CA_CERTS", "the same, for node"),
];

/// What a child's environment is built on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Base {
    /// The variables of [`BASE`] that its parent has.
    #[default]
    Fixed,
    /// All that its parent has: for a command that a human would otherwise run by hand.
    Whole,
}

impl Base {
    /// Builds the environment from the parent's and what is given, which holds over the parent's.
    pub(super) fn build(
        self,
        parents: impl Iterator<Item = (OsString, OsString)>,
        given: impl Iterator<Item = (OsString, OsString)>,
    ) -> Vec<(OsString, OsString)> {
        let mut built: Vec<_> = parents.filter(|(name, _)| self.passes(name)).collect();
        for (name, value) in given {
            built.retain(|(other, _)| *other != name);
            built.push((name, value));
        }
        built
    }

    fn passes(self, name: &OsStr) -> bool {
        match self {
            Base::Whole => true,
            Base::Fixed => BASE.iter().any(|passed| match passed.name.strip_suffix('*') {
                Some(stem) => name.as_encoded_bytes().starts_with(stem.as_bytes()),
                None => name == passed.name,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(text: &str) -> Vec<(OsString, OsString)> {
        text.split(' ')
            .filter_map(|pair| pair.split_once('='))
            .map(|(name, value)| (name.into(), value.into()))
            .collect()
    }

    #[test]
    fn only_listed_names_pass_and_what_is_given_holds() {
        let parents = pairs("PATH=/bin LC_ALL=C LC=no PATHX=no DATABASE_URL=u HOME=/h SSH_AUTH_SOCK=/s");
        let given = pairs("HOME=/other KEY=1 KEY=2");
        assert_eq!(
            Base::Fixed.build(parents.into_iter(), given.into_iter()),
            pairs("PATH=/bin LC_ALL=C HOME=/other KEY=2")
        );
    }

    #[test]
    fn the_whole_environment_passes_only_when_asked_for() {
        let parents = pairs("PATH=/bin DATABASE_URL=u");
        assert_eq!(
            Base::Whole.build(parents.clone().into_iter(), std::iter::empty()),
            parents
        );
    }
}
