//! What the starter hands to the shim through a pipe because it may be secret.

use std::ffi::OsString;
use std::io::{self, BufRead, Read as _, Write};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;

use super::{Brief, Command, Error, MARK, Spec};

/// The child's image: everything about it that is no limit.
pub(super) struct Parcel {
    /// Where it works.
    pub cwd: PathBuf,
    /// Program and arguments.
    pub argv: Vec<OsString>,
    /// Its whole environment.
    pub env: Vec<(OsString, OsString)>,
    /// What it reads from its standard input.
    pub stdin: Vec<u8>,
}

/// Opens every parcel, so that another one's words are not taken for it.
const HEAD: &str = "brain-parcel";

/// The longest environment, argument list or brief: far above what any system takes, far below what hurts.
const MOST: usize = 256 * 1024 * 1024;

impl Parcel {
    /// Packs what a spec asks for, with the value of [`MARK`].
    ///
    /// # Errors
    ///
    /// [`Error::Spec`] for a name or value that no environment can hold.
    pub fn pack(spec: &Spec, mark: PathBuf) -> Result<Parcel, Error> {
        let mut argv = match &spec.command {
            // `sh` is `$0`: what the shell calls itself when it complains.
            Command::Shell(text) => vec!["sh".into(), "-c".into(), text.into(), "sh".into()],
            Command::Program(argv) => argv.clone(),
        };
        let stdin = match &spec.brief {
            Brief::None => Vec::new(),
            Brief::Stdin(bytes) => bytes.clone(),
            Brief::Argument(text) => {
                argv.push(text.clone());
                Vec::new()
            }
        };
        if argv.first().is_none_or(|program| program.is_empty()) {
            return Err(Error::Spec("a child without a program".to_owned()));
        }
        if argv.iter().any(|word| word.as_bytes().contains(&0)) {
            return Err(Error::Spec("an argument cannot hold a NUL byte".to_owned()));
        }
        let mark = (OsString::from(MARK), mark.into_os_string());
        let given = spec
            .env
            .iter()
            .map(|(name, value)| (OsString::from(name), value.clone()));
        let env = spec.base.build(std::env::vars_os(), given.chain([mark]));
        for (name, value) in &env {
            if name.is_empty() || name.as_bytes().iter().any(|byte| matches!(byte, 0 | b'=')) {
                return Err(Error::Spec(format!(
                    "`{}` cannot name a variable",
                    name.display()
                )));
            }
            // The value may be a secret: only its name is told.
            if value.as_bytes().contains(&0) {
                return Err(Error::Spec(format!(
                    "the value of {} holds a NUL byte, which no environment can",
                    name.display()
                )));
            }
        }
        Ok(Parcel {
            cwd: spec.cwd.clone(),
            argv,
            env,
            stdin,
        })
    }

    /// Writes it so that the reader knows whether it got all of it: a line of lengths, then the bytes.
    pub fn send(&self, to: &mut impl Write) -> io::Result<()> {
        let argv = ended(self.argv.iter().map(|word| word.as_bytes().to_vec()));
        let env = ended(self.env.iter().map(|(name, value)| {
            let mut pair = name.as_bytes().to_vec();
            pair.push(b'=');
            pair.extend_from_slice(value.as_bytes());
            pair
        }));
        let parts = [self.cwd.as_os_str().as_bytes(), &argv, &env, &self.stdin];
        let lengths: Vec<_> = parts.iter().map(|part| part.len().to_string()).collect();
        let mut bytes = format!("{HEAD} {}\n", lengths.join(" ")).into_bytes();
        for part in parts {
            bytes.extend_from_slice(part);
        }
        to.write_all(&bytes)?;
        to.flush()
    }

    /// Reads it; an error when the sender died in the middle.
    pub fn receive(from: &mut impl BufRead) -> io::Result<Parcel> {
        let torn = || io::Error::new(io::ErrorKind::InvalidData, "no parcel, or a torn one");
        let mut head = String::new();
        from.take(128).read_line(&mut head)?;
        let lengths = head
            .strip_suffix('\n')
            .and_then(|head| head.strip_prefix(HEAD))
            .ok_or_else(torn)?
            .split_whitespace()
            .map(|length| length.parse().ok().filter(|length| *length <= MOST))
            .collect::<Option<Vec<usize>>>()
            .ok_or_else(torn)?;
        let [cwd, argv, env, stdin] = lengths[..] else {
            return Err(torn());
        };
        let mut part = |length| {
            let mut bytes = vec![0; length];
            from.read_exact(&mut bytes).map(|()| bytes)
        };
        Ok(Parcel {
            cwd: PathBuf::from(OsString::from_vec(part(cwd)?)),
            argv: split(&part(argv)?).map(OsString::from_vec).collect(),
            env: split(&part(env)?)
                .map(|mut pair| {
                    let at = pair.iter().position(|byte| *byte == b'=').ok_or_else(torn)?;
                    let value = pair.split_off(at + 1);
                    pair.pop();
                    Ok((OsString::from_vec(pair), OsString::from_vec(value)))
                })
                .collect::<io::Result<_>>()?,
            stdin: part(stdin)?,
        })
    }
}

/// Joins texts, a NUL after each.
fn ended(texts: impl Iterator<Item = Vec<u8>>) -> Vec<u8> {
    texts
        .flat_map(|mut text| {
            text.push(0);
            text
        })
        .collect()
}

/// Takes apart what [`ended`] joined.
fn split(joined: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    joined
        .split_inclusive(|byte| *byte == 0)
        .map(|text| text.strip_suffix(&[0]).unwrap_or(text).to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parcel() -> Parcel {
        Parcel {
            cwd: "/a b".into(),
            argv: vec!["sh".into(), String::new().into(), "x\ny".into()],
            env: vec![
                ("A".into(), OsString::from_vec(vec![0xff, b'=', b'\n'])),
                ("EMPTY".into(), "".into()),
            ],
            stdin: b"brief\0\n".to_vec(),
        }
    }

    #[test]
    fn a_parcel_arrives_byte_for_byte() {
        let (mut sent, parcel) = (Vec::new(), parcel());
        parcel.send(&mut sent).unwrap();
        let got = Parcel::receive(&mut &sent[..]).unwrap();
        assert_eq!(got.cwd, parcel.cwd);
        assert_eq!(got.argv, parcel.argv);
        assert_eq!(got.env, parcel.env);
        assert_eq!(got.stdin, parcel.stdin);
    }

    #[test]
    fn a_parcel_torn_anywhere_is_refused() {
        let mut sent = Vec::new();
        parcel().send(&mut sent).unwrap();
        for end in 0..sent.len() {
            assert!(Parcel::receive(&mut &sent[..end]).is_err(), "torn at {end}");
        }
    }
}
