//! A bug of ours: reported once, with where it was met, and never as anything else.

use serde_json::json;

use crate::failure::Trouble;
use crate::{cli, exit, out::Out};

/// From now on a panic, in whatever thread, is one report and exit 70.
///
/// Nothing unwinds in a released binary, so the hook itself ends the process.
pub fn report_and_exit(json: bool) {
    std::panic::set_hook(Box::new(move |panic| {
        let payload = panic.payload();
        let words = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let words = words
            .or_else(|| payload.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "a panic".to_owned());
        let place = panic
            .location()
            .map_or_else(|| "somewhere".to_owned(), ToString::to_string);
        let version = env!("CARGO_PKG_VERSION");
        let trouble = Trouble::new(
            exit::BUG,
            "bug",
            format!("brain {version} met a bug of its own at {place}: {words}"),
        )
        .facts(json!({ "place": place, "version": version }))
        .hint("what was committed before is whole; please report this line with the command that you typed");
        let globals = cli::Globals {
            json,
            ..Default::default()
        };
        let code = Out::new(&globals).fail(&trouble.into());
        std::process::exit(i32::from(code));
    }));
}

/// Panics when a test asks for it.
#[cfg(feature = "testkit")]
pub fn on_purpose() {
    assert!(std::env::var_os("BRAIN_TEST_PANIC").is_none(), "on purpose");
}
