//! What a run delivered, as text, Markdown, HTML or data (`hypervisor.md`, 6 and 10).

use protocol::facts::claim::{Claim, Outcome};
use protocol::facts::gate::{About, Choice, Gate};
use protocol::facts::run::{PhaseRun, Run, RunEnd, Standing};
use protocol::rules::run::phase_of;
use protocol::world::World;
use serde_json::{Value, json};

use crate::{advice, show, wire};

/// The phases of a run, in the plan's order.
pub fn phases<'w>(world: &'w World, run: &Run) -> Vec<&'w PhaseRun> {
    run.phases
        .iter()
        .filter_map(|phase| phase_of(world, &run.id, phase))
        .collect()
}

struct Row {
    phase: String,
    title: String,
    state: String,
    attempts: usize,
    took_ms: Option<u64>,
    tests: String,
    files: usize,
    why: String,
}

fn row(world: &World, it: &PhaseRun) -> Row {
    let last = it.last();
    let claim: Option<&Claim> = last.and_then(|attempt| world.claims.get(&attempt.claim));
    let result = claim.and_then(|claim| claim.result.as_ref());
    let report = result
        .and_then(|result| result.tests.as_ref())
        .and_then(|tests| tests.report.as_ref());
    let took = it
        .attempts
        .iter()
        .filter_map(|attempt| attempt.ended_at?.since(attempt.began_at));
    let (standing, outcome) = wire::standing(&it.standing);
    Row {
        phase: it.phase.id.to_string(),
        title: it.phase.title.clone(),
        state: outcome.unwrap_or(standing).to_owned(),
        attempts: it.attempts.len(),
        took_ms: last
            .and_then(|attempt| attempt.ended_at)
            .map(|_| took.map(|span| span.as_ms()).sum()),
        tests: report.map_or_else(
            || "–".to_owned(),
            |report| format!("{}/{}", report.passed, report.total),
        ),
        files: result.map_or(0, |result| result.files_modified.len()),
        why: last.and_then(|attempt| attempt.why.clone()).unwrap_or_default(),
    }
}

/// Gates that a human answered with anything but continue: they changed the plan's course.
fn turned<'w>(world: &'w World, run: &Run) -> Vec<&'w Gate> {
    let of_run = |gate: &&Gate| matches!(&gate.about, About::Phase(of, _) | About::Run(of) if *of == run.id);
    let changed = |gate: &&Gate| gate.choice().is_some_and(|choice| choice != Choice::Continue);
    world.gates.values().filter(of_run).filter(changed).collect()
}

/// The report as data.
pub fn document(world: &World, run: &Run) -> Value {
    let phases = phases(world, run);
    let count =
        |standing: &dyn Fn(&Standing) -> bool| phases.iter().filter(|it| standing(&it.standing)).count();
    json!({
        "run": wire::run(run, &phases),
        "end": wire::end_word(run),
        "delivered": count(&|it| *it == Standing::Accepted(Outcome::Ok)),
        "partial": count(&|it| *it == Standing::Accepted(Outcome::Partial)),
        "skipped": count(&|it| *it == Standing::Skipped),
        "failed": count(&|it| *it == Standing::Failed),
        "landings": run.landings.iter().map(|(repo, landing)| json!({
            "repo": repo, "branch": landing.target, "commit": landing.new, "done": landing.done,
        })).collect::<Vec<_>>(),
        "gates": turned(world, run).iter().map(|gate| wire::gate(gate)).collect::<Vec<_>>(),
    })
}

/// The report in this form: `text`, `markdown`, `html` or `json`.
pub fn render(world: &World, run: &Run, form: &str) -> String {
    let rows: Vec<Row> = phases(world, run).into_iter().map(|it| row(world, it)).collect();
    match form {
        "json" => serde_json::to_string_pretty(&document(world, run)).unwrap_or_default(),
        "markdown" => markdown(world, run, &rows),
        "html" => html(world, run, &rows),
        _ => text(world, run, &rows),
    }
}

fn took(row: &Row) -> String {
    row.took_ms.map_or_else(|| "–".to_owned(), show::rough)
}

fn landings(run: &Run) -> Vec<String> {
    let done = run.landings.iter().filter(|(_, landing)| landing.done);
    done.map(|(repo, landing)| {
        let branch = landing.target.trim_start_matches("refs/heads/");
        let repo = if repo == "." {
            String::new()
        } else {
            format!(" of {repo}")
        };
        format!(
            "{} is in {branch}{repo} at {}",
            run.theme,
            landing.new.get(..7).unwrap_or(&landing.new)
        )
    })
    .collect()
}

fn text(world: &World, run: &Run, rows: &[Row]) -> String {
    let mut lines = vec![format!("{} {}: {}", run.plan, wire::end_word(run), counts(rows))];
    for row in rows {
        let tries = if row.attempts == 1 {
            String::new()
        } else {
            format!(", {} attempts", row.attempts)
        };
        let why = if row.why.is_empty() {
            String::new()
        } else {
            format!("  {}", advice::escaped(&row.why))
        };
        lines.push(format!(
            "  {:<10} {:<8} {} files, tests {}, {}{tries}  {}{why}",
            row.phase,
            row.state,
            row.files,
            row.tests,
            took(row),
            row.title
        ));
    }
    lines.extend(
        turned(world, run)
            .iter()
            .map(|gate| format!("  {}", show::gate_line(gate))),
    );
    lines.extend(landings(run).iter().map(|line| format!("  {line}")));
    if run.end == Some(RunEnd::Finished) {
        if !run.merge {
            lines.push(format!("  {} is kept, not merged", run.theme));
        }
        lines.push("Plan finished — wrap up?".to_owned());
    }
    lines.join("\n")
}

fn counts(rows: &[Row]) -> String {
    let count = |state: &str| rows.iter().filter(|row| row.state == state).count();
    format!(
        "{} delivered, {} partial, {} skipped, {} failed",
        count("ok"),
        count("partial"),
        count("skipped"),
        count("failed")
    )
}

fn markdown(world: &World, run: &Run, rows: &[Row]) -> String {
    let cell = |text: &str| advice::escaped(text).replace('|', "\\|");
    let mut lines = vec![
        format!("# {} — {}", cell(&run.plan), wire::end_word(run)),
        String::new(),
        counts(rows),
        String::new(),
        "| phase | | result | files | tests | attempts | time |".to_owned(),
        "| --- | --- | --- | --- | --- | --- | --- |".to_owned(),
    ];
    for row in rows {
        lines.push(format!(
            "| {} | {} | {} | {} | {} | {} | {} |",
            cell(&row.phase),
            cell(&row.title),
            row.state,
            row.files,
            row.tests,
            row.attempts,
            took(row)
        ));
    }
    let extra: Vec<String> = turned(world, run)
        .iter()
        .map(|gate| format!("- {}", cell(&show::gate_line(gate))))
        .chain(landings(run).iter().map(|it| format!("- {it}")))
        .collect();
    if !extra.is_empty() {
        lines.push(String::new());
        lines.extend(extra);
    }
    lines.join("\n")
}

fn html(world: &World, run: &Run, rows: &[Row]) -> String {
    let safe = |text: &str| {
        advice::escaped(text)
            .replace('&', "&amp;")
            .replace('<', "&lt;")
            .replace('>', "&gt;")
            .replace('"', "&quot;")
    };
    let body: String = rows
        .iter()
        .map(|row| {
            format!(
                "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
                safe(&row.phase),
                safe(&row.title),
                row.state,
                row.files,
                row.tests,
                row.attempts,
                took(row)
            )
        })
        .collect();
    let extra: String = turned(world, run)
        .iter()
        .map(|gate| show::gate_line(gate))
        .chain(landings(run))
        .map(|line| format!("<li>{}</li>\n", safe(&line)))
        .collect();
    format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>{plan}</title>\n\
         <style>body{{font:15px system-ui;margin:2em}}td,th{{padding:.2em .8em;text-align:left}}</style>\n\
         <h1>{plan} — {end}</h1>\n<p>{counts}</p>\n<table><tr><th>phase<th><th>result<th>files<th>tests<th>attempts<th>time</tr>\n\
         {body}</table>\n<ul>\n{extra}</ul></html>",
        plan = safe(&run.plan),
        end = wire::end_word(run),
        counts = counts(rows),
    )
}
