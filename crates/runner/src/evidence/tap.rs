//! TAP 12, 13 and 14: numbered test points, a plan, and whole streams further in as subtests.

use protocol::facts::report::{Format, Report};

use super::text::number;

/// How far subtests are followed; what lies deeper is told by the point above it.
const DEPTH_MAX: usize = 16;

/// Reads one or several TAP streams.
///
/// A point that has subtests is not counted besides them. What a plan promises and does not come failed, and so
/// does a stream without a plan, one with more points than planned, and one that bails out.
pub(super) fn read(text: &str) -> Option<Report> {
    let mut stream = Stream {
        levels: vec![Level::new()],
        version: false,
        points: false,
    };
    // The indentation of a YAML block that is being passed.
    let mut block: Option<usize> = None;
    for line in text.lines() {
        let content = line.trim_start_matches(' ');
        let indent = line.len() - content.len();
        let content = content.trim_end();
        if let Some(open) = block {
            // It ends with `...`, or where a text stands further out than it may.
            if indent >= open || content.is_empty() {
                if indent == open && content == "..." {
                    block = None;
                }
                continue;
            }
            block = None;
        }
        if content == "---" && indent >= 2 {
            block = Some(indent);
        } else if indent % 4 == 0 && indent / 4 < DEPTH_MAX {
            stream.line(indent / 4, content);
        }
    }
    stream.end()
}

struct Stream {
    /// The stream and the subtests that are open in it, outermost first; never empty.
    levels: Vec<Level>,
    version: bool,
    points: bool,
}

/// One stream, or one run of subtests.
struct Level {
    plan: Option<u64>,
    seen: u64,
    report: Report,
    /// What the subtests reported for the point that comes next.
    below: Option<Report>,
}

/// A test point.
struct Point<'a> {
    ok: bool,
    number: Option<u64>,
    name: &'a str,
    /// `# SKIP` or `# TODO`.
    excused: bool,
}

impl Stream {
    fn line(&mut self, depth: usize, content: &str) {
        if let Some(why) = content.strip_prefix("Bail out!") {
            let level = self.level(0);
            level.report.fail(1);
            level.report.name_failure(&format!("Bail out!{why}"));
        } else if depth == 0 && content.starts_with("TAP version ") {
            self.version = true;
            self.next_stream();
        } else if let Some((count, skipped)) = plan(content) {
            // A plan further in than any point is text.
            if depth > self.levels.len() {
                return;
            }
            let another = if depth == 0 {
                self.levels[0].plan.is_some()
            } else {
                self.is_complete()
            };
            if another {
                self.next_stream();
            }
            let level = self.level(depth);
            level.plan = Some(count);
            if skipped {
                level.report.skip(1);
                self.points = true;
            }
        } else if let Some(point) = Point::read(content) {
            self.points |= depth == 0;
            // What `prove -v` says of a whole file, below its points.
            if self.is_complete() && content == "ok" {
                return;
            }
            if self.is_complete() && (depth > 0 || point.number == Some(1)) {
                self.next_stream();
            }
            self.level(depth).point(&point);
        }
    }

    /// Tells whether the stream has all that its plan promised: what comes then is another one.
    fn is_complete(&self) -> bool {
        let Level { plan, seen, .. } = self.levels[0];
        plan.is_some_and(|plan| seen > 0 && seen >= plan)
    }

    /// Gives the level of a depth, all deeper ones folded into it and missing ones made.
    fn level(&mut self, depth: usize) -> &mut Level {
        while self.levels.len() > depth + 1 {
            self.fold();
        }
        while self.levels.len() < depth + 1 {
            self.levels.push(Level::new());
        }
        &mut self.levels[depth]
    }

    /// Ends the deepest level and hands what it reported to the one above.
    fn fold(&mut self) {
        let Some(level) = self.levels.pop() else { return };
        let report = level.end();
        if let Some(above) = self.levels.last_mut() {
            match &mut above.below {
                Some(below) => merge(below, report),
                None => above.below = Some(report),
            }
        }
    }

    /// Ends the stream so far, and begins another whose counts are added to it.
    fn next_stream(&mut self) {
        self.level(0);
        let level = &mut self.levels[0];
        if level.plan.is_some() || level.seen > 0 || level.below.is_some() {
            let ended = std::mem::replace(level, Level::new());
            level.report = ended.end();
        }
    }

    fn end(mut self) -> Option<Report> {
        self.level(0);
        let level = self.levels.pop()?;
        let planned = level.plan.is_some();
        let report = level.end();
        (self.version || (self.points && planned)).then_some(report)
    }
}

impl Level {
    const fn new() -> Self {
        Self {
            plan: None,
            seen: 0,
            report: Report::empty(Format::Tap),
            below: None,
        }
    }

    fn point(&mut self, point: &Point<'_>) {
        self.seen += 1;
        let below = self.below.take().filter(|below| below.total > 0);
        match below {
            Some(mut below) if point.excused => {
                below.skipped += std::mem::take(&mut below.failed);
                below.failures.clear();
                merge(&mut self.report, below);
            }
            Some(below) => {
                let told = below.failed > 0;
                merge(&mut self.report, below);
                if !point.ok && !told {
                    self.fail(point.name);
                }
            }
            None if point.excused => self.report.skip(1),
            None if point.ok => self.report.pass(1),
            None => self.fail(point.name),
        }
    }

    fn fail(&mut self, name: &str) {
        self.report.fail(1);
        self.report
            .name_failure(if name.is_empty() { "(no name)" } else { name });
    }

    /// Counts what was promised and did not come.
    fn end(mut self) -> Report {
        if let Some(below) = self.below.take() {
            merge(&mut self.report, below);
        }
        match self.plan {
            Some(plan) if plan > self.seen => {
                self.report.fail(plan - self.seen);
                self.report.name_failure(&format!(
                    "({} of {plan} planned tests are missing)",
                    plan - self.seen
                ));
            }
            Some(plan) if plan < self.seen => self.fail("(more tests than planned)"),
            None if self.seen > 0 => self.fail("(the plan is missing)"),
            _ => {}
        }
        self.report
    }
}

fn merge(into: &mut Report, from: Report) {
    into.pass(from.passed);
    into.fail(from.failed);
    into.skip(from.skipped);
    from.failures.iter().for_each(|name| into.name_failure(name));
}

/// Reads `1..5`, and whether it is `1..0 # SKIP why`.
fn plan(content: &str) -> Option<(u64, bool)> {
    let (count, rest) = number(content.strip_prefix("1..")?)?;
    let rest = rest.trim();
    let skipped = count == 0 && directive(rest).is_some_and(|word| word == "skip");
    (rest.is_empty() || rest.starts_with('#')).then_some((count, skipped))
}

impl<'a> Point<'a> {
    /// Reads `ok 1 - name # SKIP why`.
    fn read(content: &'a str) -> Option<Self> {
        let (ok, rest) = match content.strip_prefix("not ok") {
            Some(rest) => (false, rest),
            None => (true, content.strip_prefix("ok")?),
        };
        if !rest.is_empty() && !rest.starts_with(' ') {
            return None;
        }
        let rest = rest.trim_start();
        let (number, rest) = number(rest).map_or((None, rest), |(number, rest)| (Some(number), rest));
        let rest = rest.trim_start();
        let rest = rest.strip_prefix("- ").unwrap_or(rest);
        // The last `#` that is not escaped begins the directive, if it is one.
        let hash = rest
            .rmatch_indices('#')
            .map(|(at, _)| at)
            .find(|at| !rest[..*at].ends_with('\\'));
        let word = hash.and_then(|at| directive(&rest[at..]));
        let name = hash
            .filter(|_| word.is_some())
            .map_or(rest, |at| &rest[..at])
            .trim();
        Some(Self {
            ok,
            number,
            name,
            excused: word.is_some(),
        })
    }
}

/// Reads `# SKIP …` or `# TODO …` in any case; `# skipped` counts as well.
fn directive(text: &str) -> Option<&'static str> {
    let word = text
        .strip_prefix('#')?
        .trim_start()
        .get(..4)?
        .to_ascii_lowercase();
    ["skip", "todo"].into_iter().find(|known| *known == word)
}
