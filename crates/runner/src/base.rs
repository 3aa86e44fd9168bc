//! Repositories as a claim meets them: what a close compares with (protocol, section 5, `base`).

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use git::{Fingerprint, Repository};
use protocol::facts::claim::Base;
use protocol::facts::path::{Fold, LogicalPath};
use protocol::facts::policy::Policy;
use protocol::facts::zone::Zone;

/// How much of a guarded file is hashed; of a larger one size and time stand for the rest.
const HASHED_MAX: u64 = 16 << 20;

/// One checkout of a repository of the brain.
#[derive(Clone, Debug)]
pub struct Checkout {
    /// The repository, by its main checkout's path below the root; `.` for the one that holds the root.
    pub repo: String,
    /// The checkout.
    pub repository: Repository,
    /// Where its files are, logically.
    place: Place,
}

/// How a repository lies to the brain root.
#[derive(Clone, Debug)]
enum Place {
    /// At it or below it, at this path.
    Below(PathBuf),
    /// Above it: the root is this folder of it.
    Above(PathBuf),
}

impl Checkout {
    /// Finds the checkout that a folder lies in; `None` without one, and for one elsewhere than the root.
    ///
    /// Both paths are absolute with their links followed. Starts nothing.
    pub fn find(root: &Path, folder: &Path) -> Option<Checkout> {
        let repository = Repository::find(folder)?;
        repository.toplevel()?;
        let home = git::logical(repository.home());
        let place = match (home.strip_prefix(root), root.strip_prefix(&home)) {
            (Ok(below), _) => Place::Below(below.to_owned()),
            (_, Ok(above)) => Place::Above(above.to_owned()),
            _ => return None,
        };
        let repo = match &place {
            Place::Below(path) if !path.as_os_str().is_empty() => path.to_string_lossy().into_owned(),
            _ => ".".to_owned(),
        };
        Some(Checkout {
            repo,
            repository,
            place,
        })
    }

    /// Returns the folder of the checkout.
    pub fn folder(&self) -> &Path {
        self.repository.toplevel().unwrap_or(self.repository.home())
    }

    /// Returns the logical path of a file of the checkout; `None` for one outside the brain root.
    pub fn logical(&self, path: &Path, fold: Fold) -> Option<LogicalPath> {
        let text = match &self.place {
            Place::Below(prefix) => prefix.join(path),
            Place::Above(root) => path.strip_prefix(root).ok()?.to_owned(),
        };
        LogicalPath::from_tree(&text.to_string_lossy(), fold).ok()
    }
}

/// Notes the repositories that a claim is opened over: the one that holds the root, and the projects'.
///
/// Starts git once per repository where nothing is dirty.
///
/// # Errors
///
/// Whatever keeps git from answering: what cannot be compared later must not be opened over.
pub fn bases<'p>(
    root: &'p Path,
    projects: impl IntoIterator<Item = &'p Path>,
    policy: &Policy,
    open: &dyn Fn(Repository) -> git::Door,
) -> Result<BTreeMap<String, Base>, git::Error> {
    let mut found = BTreeMap::new();
    for folder in std::iter::once(root).chain(projects) {
        let Some(checkout) = Checkout::find(root, folder) else {
            continue;
        };
        if let Entry::Vacant(vacant) = found.entry(checkout.repo.clone()) {
            let door = open(checkout.repository.clone());
            vacant.insert(base(&checkout, &door, policy)?);
        }
    }
    Ok(found)
}

/// Notes one checkout as it is now.
///
/// # Errors
///
/// Whatever keeps git from answering.
pub fn base(checkout: &Checkout, door: &git::Door, policy: &Policy) -> Result<Base, git::Error> {
    let (status, ignored) = door.status_with_ignored()?;
    let paths = status.entries.into_iter();
    let dirty = door.fingerprints(paths.flat_map(|entry| [Some(entry.path), entry.from]).flatten())?;
    let dirty = dirty
        .into_iter()
        .map(|(path, print)| (stored(&path), print.to_string()));
    Ok(Base {
        commit: status.head.map(|oid| oid.to_string()),
        branch: status.branch,
        checkout: checkout.folder().to_string_lossy().into_owned(),
        dirty: dirty.collect(),
        guarded: guarded(checkout, &ignored, policy),
    })
}

/// Hashes the ignored files of zone `secret` and `kernel`, which no audit of git's would see.
///
/// Inside a folder that is ignored as a whole it looks only if the folder itself is of such a zone.
pub fn guarded(checkout: &Checkout, ignored: &[PathBuf], policy: &Policy) -> BTreeMap<String, String> {
    let is_guarded = |path: &Path| {
        let logical = checkout.logical(path, policy.fold)?;
        let zone = policy.zones.zone_of(&logical);
        (logical.reserved().is_none() && matches!(zone, Zone::Secret | Zone::Kernel)).then_some(())
    };
    let mut open: Vec<PathBuf> = ignored
        .iter()
        .filter(|it| is_guarded(it).is_some())
        .cloned()
        .collect();
    let mut hashes = BTreeMap::new();
    while let Some(path) = open.pop() {
        let on_disk = checkout.folder().join(&path);
        let below = on_disk.symlink_metadata().is_ok_and(|it| it.is_dir());
        match fs::read_dir(&on_disk) {
            Ok(entries) if below => {
                open.extend(entries.flatten().map(|entry| path.join(entry.file_name())));
            }
            _ => {
                hashes.insert(stored(&path), hash(&on_disk));
            }
        }
    }
    hashes
}

fn hash(file: &Path) -> String {
    let read = || -> io::Result<String> {
        let found = file.symlink_metadata()?;
        if found.is_symlink() {
            return Ok(format!("link {}", fs::read_link(file)?.display()));
        }
        if !found.is_file() || found.len() > HASHED_MAX {
            let changed = found.modified()?.duration_since(std::time::UNIX_EPOCH);
            return Ok(format!(
                "{} bytes at {:?}",
                found.len(),
                changed.unwrap_or_default()
            ));
        }
        Ok(blake3::hash(&fs::read(file)?).to_hex().to_string())
    };
    read().unwrap_or_else(|_| "unreadable".to_owned())
}

/// Writes a path of git's down: as it is, or in hexadecimal digits behind a `/` when it is no text.
pub(crate) fn stored(path: &Path) -> String {
    match path.to_str() {
        Some(text) => text.to_owned(),
        None => {
            let digits = path
                .as_os_str()
                .as_bytes()
                .iter()
                .map(|byte| format!("{byte:02x}"));
            std::iter::once("/".to_owned()).chain(digits).collect()
        }
    }
}

/// Reads what [`stored`] wrote.
pub(crate) fn unstored(text: &str) -> PathBuf {
    let Some(digits) = text.strip_prefix('/') else {
        return PathBuf::from(OsStr::new(text));
    };
    let byte = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
    let bytes: Vec<u8> = (0..digits.len()).step_by(2).filter_map(byte).collect();
    PathBuf::from(OsString::from_vec(bytes))
}

/// What was noted at the opening, as the audit takes it.
pub(crate) fn opening_of(base: &Base) -> git::Opening {
    let print = |text: &String| text.parse().unwrap_or(Fingerprint::Other);
    git::Opening {
        commit: base.commit.as_deref().and_then(git::Oid::parse),
        dirty: base
            .dirty
            .iter()
            .map(|(path, was)| (unstored(path), print(was)))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_no_text_is_stored_and_read_again() {
        for name in [&b"a/b c"[..], b"\xff\xfe/x", "été".as_bytes()] {
            let path = PathBuf::from(OsString::from_vec(name.to_vec()));
            assert_eq!(unstored(&stored(&path)), path);
        }
    }
}
