//! `brain log`: what happened, from the journal.

use protocol::event::Entry;
use protocol::facts::time::rfc3339;
use store::{Only, Store};

use crate::advice::escaped;
use crate::cli::Log;
use crate::commands::span;
use crate::context::{Context, Typed};
use crate::failure::Failure;
use crate::wire;

/// Entries read at a time.
const PAGE: usize = 256;

/// Carries out `brain log`.
pub fn log(cx: &mut Context, args: &Log) -> Result<u8, Failure> {
    let claim = args
        .claim
        .as_deref()
        .map(|id| cx.claim_id(id, Typed::Part))
        .transpose()?;
    let since = args
        .since
        .as_deref()
        .map(|text| span(text, "--since"))
        .transpose()?;
    let (_, now) = cx.look(&Vec::new())?;
    let since_wall = since.map(|span| now.wall - i64::try_from(span.as_ms()).unwrap_or(i64::MAX));
    let only = Only { claim, since_wall };
    let mut after = 0;
    let mut listing = cx.out.listing(args.jsonl, "entries");
    'pages: loop {
        let page = cx.store.journal(after, PAGE, &only)?;
        let Some(last) = page.last() else { break };
        after = last.seq;
        for entry in &page {
            if !listing.add(|| wire::entry(entry), || line(entry)) {
                break 'pages;
            }
        }
    }
    listing.end(&cx.out, "nothing happened");
    Ok(0)
}

/// One entry on a line.
pub fn line(entry: &Entry) -> String {
    let shown = wire::entry(entry);
    let name = shown["event"].as_str().unwrap_or_default().replace('_', " ");
    let claim = entry
        .event
        .claim()
        .map(|id| format!("  {id}"))
        .unwrap_or_default();
    let by = entry
        .actor
        .claim
        .as_ref()
        .map_or_else(|| entry.actor.user.clone(), ToString::to_string);
    let why = ["why", "summary", "words"]
        .iter()
        .find_map(|key| shown["data"][key].as_str())
        .unwrap_or_default();
    let why = if why.is_empty() {
        String::new()
    } else {
        format!("  {}", escaped(why))
    };
    format!(
        "{:>5}  {}  {name}{claim}  by {by} ({}){why}",
        entry.seq,
        rfc3339(entry.at.wall),
        entry.actor.nature
    )
}
