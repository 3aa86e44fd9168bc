//! Identifiers, checked where they enter so that they can stand in file names, SQL and shell words.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::time::{Instant, civil};

/// The longest session id, in characters.
pub const SESS_ID_MAX: usize = 96;

/// Names a session's claim: `sess-YYYYMMDD-HHMM-<slug>` in UTC (section 5).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SessId(String);

/// Says that a text is no session id.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NotASessId(pub String);

impl fmt::Display for NotASessId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} is no session id; it looks like sess-20261130-1400-my-task",
            self.0
        )
    }
}

impl std::error::Error for NotASessId {}

impl SessId {
    /// Reads an id exactly as given: nothing is trimmed, so that a stray line break is an error.
    pub fn parse(text: &str) -> Result<SessId, NotASessId> {
        let fail = || NotASessId(text.to_owned());
        if text.len() > SESS_ID_MAX {
            return Err(fail());
        }
        let rest = text.strip_prefix("sess-").ok_or_else(fail)?;
        let mut parts = rest.splitn(3, '-');
        let day = parts.next().unwrap_or_default();
        let minute = parts.next().unwrap_or_default();
        let slug = parts.next().unwrap_or_default();
        let digits = |part: &str, n| part.len() == n && part.bytes().all(|b| b.is_ascii_digit());
        let slug_ok = !slug.is_empty()
            && slug
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
        if digits(day, 8) && digits(minute, 4) && slug_ok {
            Ok(SessId(text.to_owned()))
        } else {
            Err(fail())
        }
    }

    /// Composes the id of a session that starts at `now`; `nth` above 1 is appended when it is taken.
    pub fn compose(now: Instant, slug: &str, nth: u32) -> SessId {
        let (year, month, day, hour, minute, _) = civil(now.wall);
        let tail = if nth > 1 { format!("-{nth}") } else { String::new() };
        let head = format!("sess-{year:04}{month:02}{day:02}-{hour:02}{minute:02}-");
        let room = SESS_ID_MAX - head.len() - tail.len();
        let slug = slug_of(slug);
        let slug = slug[..slug.len().min(room)].trim_end_matches('-');
        SessId(format!("{head}{slug}{tail}"))
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The part after date and time.
    pub fn slug(&self) -> &str {
        self.0.splitn(4, '-').nth(3).unwrap_or_default()
    }
}

/// Turns any text into `[a-z0-9-]`, never empty: what an id, a branch or a folder may carry of a name.
pub fn slug_of(text: &str) -> String {
    let mut slug = String::new();
    for c in text.chars().flat_map(char::to_lowercase) {
        if c.is_ascii_lowercase() || c.is_ascii_digit() {
            slug.push(c);
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
        if slug.len() >= 40 {
            break;
        }
    }
    let slug = slug.trim_matches('-');
    if slug.is_empty() {
        "work".to_owned()
    } else {
        slug.to_owned()
    }
}

impl TryFrom<String> for SessId {
    type Error = NotASessId;
    fn try_from(text: String) -> Result<SessId, NotASessId> {
        SessId::parse(&text)
    }
}

impl From<SessId> for String {
    fn from(id: SessId) -> String {
        id.0
    }
}

impl fmt::Display for SessId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A number in Crockford's base 32, lower case, seven digits at the least: it sorts as it counts.
fn sortable(n: u64) -> String {
    const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
    let mut digits: Vec<u8> = Vec::new();
    let mut rest = n;
    while rest > 0 || digits.len() < 7 {
        digits.push(DIGITS[(rest % 32) as usize]);
        rest /= 32;
    }
    digits.iter().rev().map(|&b| b as char).collect()
}

macro_rules! numbered_id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Mints the id from the number of the event that brings the thing about, so that ids never collide.
            pub fn mint(seq: u64) -> $name {
                $name(format!(concat!($prefix, "-{}"), sortable(seq)))
            }

            /// Reads an id that someone typed; `None` when it lacks the prefix or holds anything odd.
            pub fn parse(text: &str) -> Option<$name> {
                let rest = text.strip_prefix(concat!($prefix, "-"))?;
                let good = !rest.is_empty()
                    && rest.len() <= 64
                    && rest.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
                good.then(|| $name(text.to_owned()))
            }

            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

numbered_id!(
    /// Names a human gate.
    GateId,
    "gate"
);
numbered_id!(
    /// Names a run of a plan.
    RunId,
    "run"
);
numbered_id!(
    /// Names a signal.
    SigId,
    "sig"
);
numbered_id!(
    /// Names one attempt at a phase.
    AttemptId,
    "att"
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn o_02_an_option_is_no_session() {
        let long = format!("sess-20261130-1400-{}", "x".repeat(300));
        for bad in [
            "--type",
            "pilote",
            "sess-",
            "sess-a b",
            "sess-../x",
            "sess-x;id",
            "sess-20261130-1400-x\n",
            "sess-20261130-1400-x\r",
            "",
            "sess-20261130-1400-",
            "sess-20261130-140-x",
            "sess-20261130-1400-É",
            &long,
        ] {
            assert!(SessId::parse(bad).is_err(), "{bad:?}");
        }
        assert!(SessId::parse("sess-20261130-1400-pilote-x").is_ok());
    }

    #[test]
    fn a_composed_id_is_an_id() {
        let now = Instant {
            era: 1,
            tick: 0,
            wall: 1_796_047_200_000,
        };
        for (slug, nth) in [
            ("src/auth/", 1),
            ("", 2),
            ("été à la plage", 12),
            (&"y".repeat(300), 345),
        ] {
            let id = SessId::compose(now, slug, nth);
            assert_eq!(SessId::parse(id.as_str()).as_ref(), Ok(&id));
        }
        assert_eq!(
            SessId::compose(now, "src/auth/", 2).as_str(),
            "sess-20261130-1400-src-auth-2"
        );
    }

    #[test]
    fn minted_ids_sort_as_they_were_made() {
        let ids: Vec<GateId> = [1, 31, 32, 33, 1024, 1 << 40].map(GateId::mint).into();
        assert!(ids.is_sorted());
        assert!(
            ids.iter()
                .all(|id| GateId::parse(id.as_str()).as_ref() == Some(id))
        );
        assert_eq!(GateId::parse("gate-../x"), None);
    }
}
