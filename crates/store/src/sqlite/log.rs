//! Keeping the write-ahead log short, so that opening a store stays cheap (R24).

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::Connection;

use super::connect::{clear_busy_handler, set_busy_handler};

/// The log is folded back above this many frames.
const FRAMES_MOST: u64 = 100;

/// … by who lives long: while it has the store open, nobody has to take in the log from its beginning.
const FRAMES_MOST_LONG: u64 = 400;

/// How many more frames until the next try, where somebody was in the way.
const FRAMES_MORE: u64 = 100;

/// What one frame takes in the log's file: a page and its header.
const FRAME: u64 = 4120;

/// For how long a checkpoint waits for those who look.
const CHECKPOINT_MOST: Duration = Duration::from_millis(50);

/// What this process knows of the log that it adds to.
pub struct Log {
    /// The frames beyond which it is folded back.
    most: u64,
    /// Whether this process has folded it before.
    folded: bool,
}

impl Default for Log {
    fn default() -> Log {
        Log {
            most: FRAMES_MOST,
            folded: false,
        }
    }
}

impl Log {
    /// Folds the log back when it has grown too long. It waits a little for those who look; meanwhile they find
    /// all they need outside the log. When one looks for long, the next try comes later: not every writer waits.
    ///
    /// The first time the file is cut off, and whenever it is far too long. Without that, a process that opens the
    /// store alone would take in all that was folded before it. Whoever comes back lives long: it begins the file
    /// anew and leaves it its length, since a disk writes faster over what is there than beyond a file's end.
    ///
    /// A failure costs nothing: the log stays as it is.
    pub fn keep_short(&mut self, connection: &mut Connection, path: &Path, deadline: Duration) {
        let file = PathBuf::from(format!("{}-wal", path.display()));
        let size = std::fs::metadata(file).map_or(0, |file| file.len());
        if size <= self.usual() * FRAME {
            self.most = self.usual();
            return;
        }
        let used = frames(connection).unwrap_or(size / FRAME);
        if used <= self.most {
            return;
        }
        let _ = set_busy_handler(connection, CHECKPOINT_MOST);
        let in_the_way = match self.folded && used <= 2 * self.usual() {
            true => restart(connection),
            false => truncate(connection),
        };
        let _ = set_busy_handler(connection, deadline);
        self.folded = true;
        self.most = match in_the_way {
            Ok(false) => self.usual(),
            _ => used + FRAMES_MORE,
        };
    }

    /// Cuts the file off where this process began it anew, without waiting for anyone: whoever opens the store
    /// next may be alone with it.
    pub fn end(&self, connection: &mut Connection) {
        if self.folded && clear_busy_handler(connection).is_ok() {
            // A failure costs nothing: the next writer finds the log as it is.
            let _ = truncate(connection);
        }
    }

    fn usual(&self) -> u64 {
        if self.folded {
            FRAMES_MOST_LONG
        } else {
            FRAMES_MOST
        }
    }
}

/// How many frames of the log's file count; those behind them are of an earlier time.
fn frames(connection: &Connection) -> rusqlite::Result<u64> {
    let mut ask = connection.prepare_cached("PRAGMA wal_checkpoint(NOOP)")?;
    ask.query_row([], |row| row.get::<_, i64>(1))
        .map(|frames| u64::try_from(frames).unwrap_or(0))
}

/// Folds the log back and cuts its file off; says whether somebody was in the way.
pub fn truncate(connection: &Connection) -> rusqlite::Result<bool> {
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))
}

/// Folds the log back and begins its file anew; says whether somebody was in the way.
fn restart(connection: &Connection) -> rusqlite::Result<bool> {
    connection.query_row("PRAGMA wal_checkpoint(RESTART)", [], |row| row.get(0))
}
