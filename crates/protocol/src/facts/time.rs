//! Instants of the store's clock, the only one that all sessions share.

use serde::{Deserialize, Serialize};

use super::span::Span;

/// A moment as the store saw it.
///
/// `tick` counts milliseconds of a clock that no one can set and that runs on in suspend; `era` numbers
/// the boots of the machine that it ran on (a shared store has one era). `wall` is for people: nothing
/// is ever decided by it (section 6, R1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Instant {
    /// The boot in which the clock ran.
    pub era: u32,
    /// Milliseconds since that clock's start.
    pub tick: u64,
    /// Milliseconds since 1970 in UTC, for display.
    pub wall: i64,
}

impl Instant {
    /// How long ago `earlier` was; `None` when another boot lies between.
    pub fn since(self, earlier: Instant) -> Option<Span> {
        (self.era == earlier.era).then(|| Span::from_ms(self.tick.saturating_sub(earlier.tick)))
    }

    /// The moment `span` later.
    pub fn plus(self, span: Span) -> Instant {
        Instant {
            tick: self.tick.saturating_add(span.as_ms()),
            wall: self
                .wall
                .saturating_add(i64::try_from(span.as_ms()).unwrap_or(i64::MAX)),
            ..self
        }
    }

    /// Whether this moment lies at or before `other`; never across a boot.
    pub fn reached_by(self, other: Instant) -> bool {
        self.era != other.era || self.tick <= other.tick
    }
}

/// Splits milliseconds since 1970 into year, month, day, hour, minute and second of UTC.
pub fn civil(wall: i64) -> (i64, u32, u32, u32, u32, u32) {
    let seconds = wall.div_euclid(1000);
    let (days, rest) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // Days are counted from 0000-03-01, so that the leap day is the last of its year.
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let doe = z.rem_euclid(146_097);
    let yoe = (doe - doe / 1_460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let day = (doy - (153 * mp + 2) / 5 + 1) as u32;
    let month = (if mp < 10 { mp + 3 } else { mp - 9 }) as u32;
    let year = yoe + era * 400 + i64::from(month <= 2);
    (
        year,
        month,
        day,
        (rest / 3600) as u32,
        (rest % 3600 / 60) as u32,
        (rest % 60) as u32,
    )
}

/// Writes milliseconds since 1970 as RFC 3339 in UTC, to the second.
pub fn rfc3339(wall: i64) -> String {
    let (year, month, day, hour, minute, second) = civil(wall);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn civil_dates_are_right_around_leap_days_and_the_epoch() {
        for (wall, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399_000, "2000-02-28T23:59:59Z"),
            (951_782_400_000, "2000-02-29T00:00:00Z"),
            (1_709_164_800_000, "2024-02-29T00:00:00Z"),
            (1_709_251_200_000, "2024-03-01T00:00:00Z"),
            (1_796_083_199_000, "2026-11-30T23:59:59Z"),
            (-1, "1969-12-31T23:59:59Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(rfc3339(wall), text);
        }
    }

    #[test]
    fn another_boot_is_always_reached() {
        let old = Instant {
            era: 1,
            tick: 900,
            wall: 0,
        };
        assert!(old.reached_by(Instant {
            era: 2,
            tick: 1,
            wall: 0
        }));
        assert!(!old.reached_by(Instant {
            era: 1,
            tick: 899,
            wall: i64::MAX
        }));
        assert_eq!(
            Instant {
                era: 2,
                tick: 950,
                wall: 0
            }
            .since(old),
            None
        );
    }
}
