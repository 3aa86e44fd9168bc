//! A phase's scope entries, from the project's folder to the root.

/// Why an entry cannot be joined to its project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Astray {
    Empty,
    Outside,
    Control,
}

/// Joins an entry as written to the folder of its project; `.` is the project, and `!` stays in front.
///
/// Only the text is looked at: what links lead elsewhere is found when the claim is opened.
pub(super) fn join(project: &str, entry: &str) -> Result<String, Astray> {
    let (not, path) = match entry.strip_prefix('!') {
        Some(path) => ("!", path),
        None => ("", entry),
    };
    if path.trim().is_empty() {
        return Err(Astray::Empty);
    }
    if path.contains(char::is_control) {
        return Err(Astray::Control);
    }
    let inside = normal(path)?;
    let folder = if path.ends_with('/') && !inside.is_empty() {
        "/"
    } else {
        ""
    };
    Ok(match (project.is_empty(), inside.is_empty()) {
        (true, true) => format!("{not}."),
        (true, false) => format!("{not}{inside}{folder}"),
        (false, true) => format!("{not}{}/", literal(project)),
        (false, false) => format!("{not}{}/{inside}{folder}", literal(project)),
    })
}

/// Takes `.`, `..` and empty components out of a relative path; it must not climb above where it begins.
pub(super) fn normal(path: &str) -> Result<String, Astray> {
    if path.starts_with('/') {
        return Err(Astray::Outside);
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            // What a pattern matched cannot be gone back from by text.
            ".." => match parts.pop() {
                Some(parent) if !parent.contains(['*', '?']) => {}
                _ => return Err(Astray::Outside),
            },
            part => parts.push(part),
        }
    }
    Ok(parts.join("/"))
}

/// Escapes what would be a pattern, in a path that is none.
fn literal(path: &str) -> String {
    let mut text = String::with_capacity(path.len());
    for (at, c) in path.char_indices() {
        if matches!(c, '*' | '?' | '\\') || (c == '!' && at == 0) {
            text.push('\\');
        }
        text.push(c);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_joined_and_never_leave_the_project() {
        for (project, entry, joined) in [
            ("github/app", "src/", Ok("github/app/src/")),
            ("github/app", "./src//a.rs", Ok("github/app/src/a.rs")),
            ("github/app", "src/../lib/", Ok("github/app/lib/")),
            ("github/app", ".", Ok("github/app/")),
            ("github/app", "./", Ok("github/app/")),
            ("github/app", "!src/x", Ok("!github/app/src/x")),
            ("github/app", "**/*.sql", Ok("github/app/**/*.sql")),
            ("a*b", "\\!x", Ok("a\\*b/\\!x")),
            ("", "src/#internal", Ok("src/#internal")),
            ("", ".", Ok(".")),
            ("github/app", "../other/", Err(Astray::Outside)),
            ("github/app", "src/../../other", Err(Astray::Outside)),
            ("github/app", "*/../..", Err(Astray::Outside)),
            ("github/app", "/etc/", Err(Astray::Outside)),
            ("", "/", Err(Astray::Outside)),
            ("", "!../x", Err(Astray::Outside)),
            ("", "!", Err(Astray::Empty)),
            ("", " ", Err(Astray::Empty)),
            ("", "a\u{7}b", Err(Astray::Control)),
        ] {
            assert_eq!(
                join(project, entry).as_deref(),
                joined.as_ref().map(|text| *text),
                "{project} {entry}"
            );
        }
    }
}
