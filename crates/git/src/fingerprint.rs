//! What a file is right now, short enough to be written down and compared later.

use crate::command::Git;
use crate::door::Door;
use crate::{Error, Oid, Repository};
use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// How often files are looked at again when they change under the look.
const LOOKS_MAX: usize = 3;

/// The content and kind of a path. Two are equal only if nothing that git would record differs.
///
/// Its text form (`Display`, `FromStr`) is one word, to be stored.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Fingerprint {
    /// Nothing is there.
    Absent,
    /// A regular file: the hash of its bytes, unfiltered, and whether it is executable.
    File {
        /// Git's name for the bytes.
        oid: Oid,
        /// The owner may execute it.
        executable: bool,
    },
    /// A link, with where it leads (in hexadecimal digits, since it need not be text).
    Link(String),
    /// A folder with a repository in it, at this commit.
    Repository(Option<Oid>),
    /// Something else, or unreadable: equal to itself, so never proof that nothing changed.
    Other,
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fingerprint::Absent => f.write_str("absent"),
            Fingerprint::File {
                oid,
                executable: false,
            } => write!(f, "100644:{oid}"),
            Fingerprint::File {
                oid,
                executable: true,
            } => write!(f, "100755:{oid}"),
            Fingerprint::Link(to) => write!(f, "120000:{to}"),
            Fingerprint::Repository(Some(at)) => write!(f, "160000:{at}"),
            Fingerprint::Repository(None) => f.write_str("160000:"),
            Fingerprint::Other => f.write_str("other"),
        }
    }
}

impl FromStr for Fingerprint {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let file = |oid, executable| {
            Oid::parse(oid)
                .map(|oid| Fingerprint::File { oid, executable })
                .ok_or(())
        };
        match text.split_once(':') {
            None if text == "absent" => Ok(Fingerprint::Absent),
            None if text == "other" => Ok(Fingerprint::Other),
            Some(("100644", oid)) => file(oid, false),
            Some(("100755", oid)) => file(oid, true),
            Some(("120000", to)) => Ok(Fingerprint::Link(to.to_owned())),
            Some(("160000", "")) => Ok(Fingerprint::Repository(None)),
            Some(("160000", at)) => Oid::parse(at)
                .map(|at| Fingerprint::Repository(Some(at)))
                .ok_or(()),
            _ => Err(()),
        }
    }
}

impl Door {
    /// Fingerprints everything that is not as in the last commit: what `claim open` notes.
    ///
    /// Starts git once when all is clean, twice otherwise. Both sides of a rename are in it.
    ///
    /// # Errors
    ///
    /// Those of [`Door::status`] and [`Door::fingerprints`].
    pub fn dirty(&self) -> Result<BTreeMap<PathBuf, Fingerprint>, Error> {
        let status = self.status()?;
        self.fingerprints(
            status
                .entries
                .into_iter()
                .flat_map(|entry| [Some(entry.path), entry.from])
                .flatten(),
        )
    }

    /// Fingerprints these paths, relative to the checkout, whatever their names contain.
    ///
    /// Starts git at most once (a few times if files change meanwhile), never when none is a regular file.
    ///
    /// # Errors
    ///
    /// [`Kind::NoCheckout`](crate::Kind::NoCheckout) in a bare repository.
    pub fn fingerprints(
        &self,
        paths: impl IntoIterator<Item = PathBuf>,
    ) -> Result<BTreeMap<PathBuf, Fingerprint>, Error> {
        const DOING: &str = "hashing files";
        let top = self.repository().checkout(DOING)?;
        let mut found = BTreeMap::new();
        let mut files: Vec<(PathBuf, bool)> = Vec::new();
        for path in paths {
            match look(&top.join(&path)) {
                Look::Is(print) => {
                    found.insert(path, print);
                }
                Look::File { executable } => files.push((path, executable)),
            }
        }
        for _ in 0..LOOKS_MAX {
            if files.is_empty() {
                return Ok(found);
            }
            let git = self
                .git(DOING)
                .args(["hash-object", "--no-filters", "--stdin-paths"]);
            let output = with_quoted_paths(git, files.iter().map(|(path, _)| path.as_path())).output()?;
            let oids: Vec<Oid> = output
                .stdout
                .split(|b| *b == b'\n')
                .filter_map(Oid::from_bytes)
                .collect();
            if output.status.success() && oids.len() == files.len() {
                for ((path, executable), oid) in files.drain(..).zip(oids) {
                    found.insert(path, Fingerprint::File { oid, executable });
                }
                return Ok(found);
            }
            // One went away or cannot be read. Git stops at the first, so look at all of them again.
            files.retain_mut(|(path, executable)| match look(&top.join(&*path)) {
                Look::File { executable: now } => {
                    *executable = now;
                    true
                }
                Look::Is(print) => {
                    found.insert(path.clone(), print);
                    false
                }
            });
        }
        found.extend(files.into_iter().map(|(path, _)| (path, Fingerprint::Other)));
        Ok(found)
    }
}

enum Look {
    File { executable: bool },
    Is(Fingerprint),
}

fn look(file: &Path) -> Look {
    let found = match fs::symlink_metadata(file) {
        Ok(found) => found,
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Look::Is(Fingerprint::Absent);
        }
        Err(_) => return Look::Is(Fingerprint::Other),
    };
    if found.is_symlink() {
        let hex = |to: PathBuf| {
            to.as_os_str()
                .as_bytes()
                .iter()
                .map(|b| format!("{b:02x}"))
                .collect()
        };
        return Look::Is(fs::read_link(file).map_or(Fingerprint::Other, |to| Fingerprint::Link(hex(to))));
    }
    if found.is_dir() {
        // A folder that git names as such holds a repository; one that took a file's place does not.
        let repository = Repository::at(file);
        let at = repository.and_then(|inside| inside.head_from_files()?.oid().cloned());
        return Look::Is(Fingerprint::Repository(at));
    }
    if found.is_file() && fs::File::open(file).is_ok() {
        return Look::File {
            executable: found.permissions().mode() & 0o100 != 0,
        };
    }
    Look::Is(Fingerprint::Other)
}

/// Gives paths one a line, the way `--stdin-paths` reads them: quoted where a name holds what would end
/// or change the line.
pub(crate) fn with_quoted_paths<'d, 'p>(git: Git<'d>, paths: impl Iterator<Item = &'p Path>) -> Git<'d> {
    let mut input = Vec::new();
    for path in paths {
        let bytes = path.as_os_str().as_bytes();
        match bytes.iter().any(|b| *b < 0x20 || *b == b'"' || *b == b'\\') {
            false => input.extend_from_slice(bytes),
            true => {
                input.push(b'"');
                for b in bytes {
                    match b {
                        b'"' | b'\\' => input.extend([b'\\', *b]),
                        b if *b < 0x20 => input.extend(format!("\\{b:03o}").bytes()),
                        b => input.push(*b),
                    }
                }
                input.push(b'"');
            }
        }
        input.push(b'\n');
    }
    git.input(input)
}
