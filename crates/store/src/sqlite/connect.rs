//! Opening the file: what SQLite must be told, and where it may not lie.

use std::path::Path;
use std::time::{Duration, Instant as Stopwatch};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::SqliteOptions;
use crate::Fault;

/// The pause between two tries for the write turn, constant so that nobody starves (R23).
const PAUSE: Duration = Duration::from_micros(700);

/// How many statements stay prepared: all that there are.
const STATEMENTS: usize = 128;

/// Opens a connection and tells SQLite how to behave.
pub fn open(path: &Path, create: bool, deadline: Duration) -> Result<Connection, Fault> {
    let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    flags.set(OpenFlags::SQLITE_OPEN_CREATE, create);
    let fault = |error| fault("opening", path, deadline, error);
    let mut connection = Connection::open_with_flags(path, flags).map_err(fault)?;
    set_busy_handler(&mut connection, deadline).map_err(fault)?;
    connection
        .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
        .map_err(fault)?;
    // A statement stays as it was prepared, whatever is bound to it: else some are prepared anew each time.
    connection
        .set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)
        .map_err(fault)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    let mode: String = if create {
        connection
            .query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))
            .map_err(fault)?
    } else {
        connection
            .query_row("PRAGMA journal_mode", [], |row| row.get(0))
            .map_err(fault)?
    };
    // What does not keep a write-ahead log cannot carry several processes (R21).
    if !mode.eq_ignore_ascii_case("wal") {
        return Err(Fault::Filesystem {
            path: path.to_owned(),
            kind: format!("a file in {mode} mode"),
        });
    }
    Ok(connection)
}

/// Sets the handler that waits for the write turn; SQLite's own backs off and starves (R23).
pub fn set_busy_handler(connection: &mut Connection, deadline: Duration) -> rusqlite::Result<()> {
    let mut began = Stopwatch::now();
    connection.busy_handler(Some(move |asked: i32| {
        if asked == 0 {
            began = Stopwatch::now();
        }
        if began.elapsed() >= deadline {
            return false;
        }
        std::thread::sleep(PAUSE + jitter());
        true
    }))
}

/// Up to half a millisecond from the low bits of the clock: it keeps waiters out of step.
pub fn jitter() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    Duration::from_micros(now.tv_nsec as u64 % 500)
}

/// Waits for nobody from now on.
pub fn clear_busy_handler(connection: &mut Connection) -> rusqlite::Result<()> {
    connection.busy_handler(None::<fn(i32) -> bool>)
}

/// The device and number of the file, to notice its replacement without opening it (R25, R29).
pub fn identity(path: &Path) -> Result<(u64, u64), Fault> {
    use std::os::unix::fs::MetadataExt;
    match std::fs::metadata(path) {
        Ok(data) => Ok((data.dev(), data.ino())),
        Err(_) => Err(Fault::Replaced(path.to_owned())),
    }
}

/// Refuses file systems on which locks or shared memory do not hold between machines (R21).
pub fn refuse_network(path: &Path, options: &SqliteOptions) -> Result<(), Fault> {
    const BAD: [(u64, &str); 9] = [
        (0x6969, "NFS"),
        (0xFF53_4D42, "CIFS"),
        (0xFE53_4D42, "SMB2"),
        (0x517B, "SMB"),
        (0x0102_1997, "9p"),
        (0x6573_5546, "FUSE"),
        (0x00C3_6400, "Ceph"),
        (0x5346_414F, "AFS"),
        (0x786F_4256, "a shared folder of VirtualBox"),
    ];
    let kind = (options.filesystem)(path);
    match BAD.iter().find(|(bad, _)| Some(*bad) == kind) {
        Some((_, name)) => Err(Fault::Filesystem {
            path: path.to_owned(),
            kind: (*name).to_owned(),
        }),
        None => Ok(()),
    }
}

/// The number by which the kernel names the file system of a path.
#[cfg(target_os = "linux")]
pub fn filesystem(path: &Path) -> Option<u64> {
    let stat = rustix::fs::statfs(path).ok()?;
    Some(stat.f_type as u64 & 0xFFFF_FFFF)
}

/// Elsewhere no such number tells a network apart.
#[cfg(not(target_os = "linux"))]
pub fn filesystem(_: &Path) -> Option<u64> {
    None
}

/// Turns SQLite's words into ours.
pub fn fault(doing: &'static str, path: &Path, deadline: Duration, error: rusqlite::Error) -> Fault {
    let why = error.to_string();
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            let waited_ms = u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX);
            Fault::Busy { doing, waited_ms }
        }
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Fault::Damaged {
            path: path.to_owned(),
            why,
        },
        Some(
            ErrorCode::DiskFull
            | ErrorCode::ReadOnly
            | ErrorCode::SystemIoFailure
            | ErrorCode::PermissionDenied,
        ) => Fault::Disk { doing, why },
        Some(ErrorCode::CannotOpen) => Fault::Disk { doing, why },
        _ => Fault::Database { doing, why },
    }
}
