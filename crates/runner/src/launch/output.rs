//! What a child prints: filtered, counted, cut at its limit, and written to the log.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::sync::mpsc::Sender;

use super::watch::Event;

/// Stands between what a child prints and its log: masks secrets.
pub trait Filter: Send {
    /// Takes what was printed and appends what may be written; what may be the beginning of a secret is
    /// kept until the rest is known.
    fn pass(&mut self, printed: &[u8], log: &mut Vec<u8>);

    /// Appends what was kept: nothing more will come.
    fn finish(&mut self, log: &mut Vec<u8>);
}

/// Makes a shim's filter from the variables that `Spec.masked` names.
pub type NewFilter = fn(&[(OsString, OsString)]) -> Box<dyn Filter>;

/// The filter that lets everything pass.
pub fn unfiltered(_secrets: &[(OsString, OsString)]) -> Box<dyn Filter> {
    struct Unfiltered;
    impl Filter for Unfiltered {
        fn pass(&mut self, printed: &[u8], log: &mut Vec<u8>) {
            log.extend_from_slice(printed);
        }
        fn finish(&mut self, _log: &mut Vec<u8>) {}
    }
    Box::new(Unfiltered)
}

/// Copies all that a child prints to its log until nobody can print any more; gives the number of bytes.
///
/// Past the limit the child is drained and not written, so that it does not hang in a full pipe while it is
/// being ended. A log that cannot be written (a full disk) ends the child like one that printed too much:
/// what it does would not be known.
pub(super) fn copy(
    mut from: io::PipeReader,
    mut log: File,
    mut filter: Box<dyn Filter>,
    limit: Option<u64>,
    events: &Sender<Event>,
) -> u64 {
    let limit = limit.unwrap_or(u64::MAX);
    let mut chunk = vec![0; 64 * 1024];
    let mut kept = Vec::new();
    let (mut printed, mut is_full) = (0_u64, false);
    loop {
        let read = match from.read(&mut chunk) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => break,
        };
        let room = usize::try_from(limit.saturating_sub(printed)).unwrap_or(usize::MAX);
        printed += read as u64;
        if !is_full {
            kept.clear();
            filter.pass(&chunk[..read.min(room)], &mut kept);
            is_full = printed > limit;
            if is_full {
                filter.finish(&mut kept);
            }
            is_full |= log.write_all(&kept).is_err();
            let event = if is_full { Event::TooMuch } else { Event::Printed };
            let _ = events.send(event);
        }
    }
    if !is_full {
        kept.clear();
        filter.finish(&mut kept);
        let _ = log.write_all(&kept);
    }
    let _ = log.sync_data();
    printed
}
