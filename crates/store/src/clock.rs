//! The clock of a store on this machine (R1).

use std::sync::{Arc, Mutex, OnceLock};

/// Where a store reads the time. Tests turn it by hand.
#[derive(Clone, Debug)]
pub enum Clock {
    /// The kernel's boot clock with the machine's boot id, and the wall clock for display.
    System,
    /// Turned by hand.
    Hand(Arc<Mutex<Reading>>),
}

/// One reading.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reading {
    /// The boot of the machine.
    pub boot: String,
    /// Milliseconds since then, suspend included.
    pub tick: u64,
    /// Milliseconds since 1970.
    pub wall: i64,
}

impl Clock {
    /// A clock that stands still until it is turned.
    pub fn by_hand(wall: i64) -> Clock {
        Clock::Hand(Arc::new(Mutex::new(Reading {
            boot: "hand".to_owned(),
            tick: 1_000_000,
            wall,
        })))
    }

    /// A clock that stands at `boot tick wall`, as a test writes it; `None` for anything else.
    pub fn read_from(text: &str) -> Option<Clock> {
        let mut words = text.split_whitespace();
        let (boot, tick, wall) = (
            words.next()?.to_owned(),
            words.next()?.parse().ok()?,
            words.next()?.parse().ok()?,
        );
        Some(Clock::Hand(Arc::new(Mutex::new(Reading { boot, tick, wall }))))
    }

    /// Turns a clock on by so many milliseconds; the system's cannot be turned.
    pub fn turn(&self, ms: u64) {
        if let Clock::Hand(reading) = self {
            let mut reading = reading.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            reading.tick += ms;
            reading.wall += i64::try_from(ms).unwrap_or(i64::MAX);
        }
    }

    /// Sets a hand-turned clock to any reading: another boot, another wall time.
    pub fn set(&self, to: Reading) {
        if let Clock::Hand(reading) = self {
            *reading.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = to;
        }
    }

    /// Reads the clock.
    pub fn read(&self) -> Reading {
        match self {
            Clock::System => system(),
            Clock::Hand(reading) => reading
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner)
                .clone(),
        }
    }
}

fn system() -> Reading {
    let time = |id| rustix::time::clock_gettime(id);
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let ticks = time(rustix::time::ClockId::Boottime);
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let ticks = time(rustix::time::ClockId::Monotonic);
    let wall = time(rustix::time::ClockId::Realtime);
    Reading {
        boot: boot_id(),
        tick: ticks.tv_sec as u64 * 1_000 + ticks.tv_nsec as u64 / 1_000_000,
        wall: wall.tv_sec * 1_000 + wall.tv_nsec / 1_000_000,
    }
}

/// The id of this boot of the machine; it is read once, since no process outlives a boot.
pub fn boot_id() -> String {
    static BOOT: OnceLock<String> = OnceLock::new();
    BOOT.get_or_init(read_boot_id).clone()
}

fn read_boot_id() -> String {
    #[cfg(target_os = "linux")]
    if let Ok(id) = std::fs::read_to_string("/proc/sys/kernel/random/boot_id") {
        return id.trim().to_owned();
    }
    // Elsewhere the boot is told apart by the moment at which the monotonic clock started, to the minute.
    let ticks = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let wall = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    format!("boot-{}", (wall.tv_sec - ticks.tv_sec) / 60)
}
