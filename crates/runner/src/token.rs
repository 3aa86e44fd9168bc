//! Session tokens: made here, kept in a file that only the user can read, known to the store as a digest.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use protocol::facts::caller::TokenDigest;

/// The digest by which the store knows a token.
pub fn digest(token: &str) -> TokenDigest {
    TokenDigest(blake3::hash(token.trim().as_bytes()).to_hex().as_str()[..40].to_owned())
}

/// Writes a fresh token, readable by the user alone, and gives its digest. A file that is there is replaced.
///
/// # Errors
///
/// What the operating system says.
pub fn write(file: &Path) -> io::Result<TokenDigest> {
    let token = fresh()?;
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let fresh = file.with_extension("new");
    let _ = std::fs::remove_file(&fresh);
    let mut out = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh)?;
    out.write_all(token.as_bytes())?;
    out.sync_all()?;
    std::fs::rename(&fresh, file)?;
    Ok(digest(&token))
}

/// Reads a token back.
///
/// # Errors
///
/// What the operating system says.
pub fn read(file: &Path) -> io::Result<String> {
    std::fs::read_to_string(file).map(|token| token.trim().to_owned())
}

/// 32 bytes of the operating system's randomness, in hex.
fn fresh() -> io::Result<String> {
    let mut bytes = [0; 32];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
