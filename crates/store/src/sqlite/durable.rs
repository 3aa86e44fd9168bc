//! Making what was committed durable, by SQLite's own handle of its log (R25) and outside the turn to write.
//!
//! `synchronous = FULL` would do the same inside the turn, and then everyone waits for everyone's disk. Here one
//! writer's sync runs while the next decides, and a sync covers all that was committed before it. Nothing is
//! answered before its own sync has ended, and a log is always lost from its end: who was answered stands on
//! nothing that can go without it.

use std::ptr;

use rusqlite::{Connection, ffi};

/// Waits until everything that was committed so far is on the disk.
///
/// # Errors
///
/// SQLite's, when the disk refuses: what was committed stands, and may be gone after a power cut.
#[expect(
    unsafe_code,
    reason = "the handle of the log is handed out by the C interface alone"
)]
pub fn sync_log(connection: &Connection) -> rusqlite::Result<()> {
    const FLAGS: i32 = ffi::SQLITE_SYNC_NORMAL | ffi::SQLITE_SYNC_DATAONLY;
    let mut log: *mut ffi::sqlite3_file = ptr::null_mut();
    // SAFETY: the handle is that of a living connection, which no other thread uses while it is borrowed here
    // (it is no `Sync`); the call writes one pointer.
    let found = unsafe {
        ffi::sqlite3_file_control(
            connection.handle(),
            c"main".as_ptr(),
            ffi::SQLITE_FCNTL_JOURNAL_POINTER,
            (&raw mut log).cast(),
        )
    };
    if found != ffi::SQLITE_OK {
        return Err(rusqlite::Error::SqliteFailure(ffi::Error::new(found), None));
    }
    // SAFETY: SQLite owns the file and keeps it for as long as the connection lives. One that is not open has no
    // methods.
    let sync =
        unsafe { log.as_ref().and_then(|log| log.pMethods.as_ref()) }.and_then(|methods| methods.xSync);
    let synced = match sync {
        // SAFETY: the method belongs to this file.
        Some(sync) => unsafe { sync(log, FLAGS) },
        // Whoever has committed has an open log.
        None => ffi::SQLITE_MISUSE,
    };
    match synced {
        ffi::SQLITE_OK => Ok(()),
        code => Err(rusqlite::Error::SqliteFailure(ffi::Error::new(code), None)),
    }
}
