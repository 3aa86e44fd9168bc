//! Randomness of the operating system, the only kind that secrets and codes are made of.

use std::fs::File;
use std::io::{self, Read};

/// Returns so many random bytes.
///
/// # Errors
///
/// Whatever keeps `/dev/urandom` from being read: nothing weaker is put in its place.
pub fn bytes<const N: usize>() -> io::Result<[u8; N]> {
    #[cfg(feature = "testkit")]
    if let Some(bytes) = from_test() {
        return Ok(bytes);
    }
    let mut bytes = [0; N];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Returns what the test's `BRAIN_TEST_SEED` gives: other bytes with each call, the same in each process.
#[cfg(feature = "testkit")]
fn from_test<const N: usize>() -> Option<[u8; N]> {
    use std::sync::atomic::{AtomicU64, Ordering};
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let seed = std::env::var("BRAIN_TEST_SEED").ok()?;
    let mut hash = blake3::Hasher::new();
    hash.update(seed.as_bytes());
    hash.update(&CALLS.fetch_add(1, Ordering::Relaxed).to_le_bytes());
    let mut bytes = [0; N];
    hash.finalize_xof().fill(&mut bytes);
    Some(bytes)
}

/// Writes bytes as small hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble)]);
    bytes
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)])
        .collect()
}

/// Reads exactly `N` bytes back from hexadecimal digits.
pub fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.as_bytes();
    let mut bytes = [0; N];
    if digits.len() != 2 * N {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        let nibble = |digit: u8| char::from(digit).to_digit(16);
        *byte = u8::try_from(nibble(pair[0])? << 4 | nibble(pair[1])?).ok()?;
    }
    Some(bytes)
}
