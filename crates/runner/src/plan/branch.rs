//! Names of branches, by git's own rules.

/// Tells why git would refuse a branch of this name (`git check-ref-format --branch`); nothing when it would not.
pub(super) fn fault(name: &str) -> Option<&'static str> {
    let bad = |c: char| c.is_control() || matches!(c, ' ' | '~' | '^' | ':' | '?' | '*' | '[' | '\\');
    let part = |part: &str| part.is_empty() || part.starts_with('.') || part.ends_with(".lock");
    if name.is_empty() {
        Some("a branch has a name")
    } else if name == "@" || name == "HEAD" || name.starts_with('-') {
        Some("git takes this for something else")
    } else if name.contains(bad) {
        Some("a branch holds no blank and none of ~^:?*[\\")
    } else if name.contains("..") || name.contains("@{") || name.ends_with('.') {
        Some("a branch holds no `..` or `@{` and does not end in `.`")
    } else if name.split('/').any(part) {
        Some("no part of a branch is empty, begins with `.` or ends in `.lock`")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_judged_as_git_judges_them() {
        for name in [
            "main",
            "theme/superoauth-tier3",
            "a.b",
            "été",
            "a@b",
            "feature/x_1",
        ] {
            assert_eq!(fault(name), None, "{name}");
        }
        let refused = [
            "", "-x", "@", "HEAD", "a b", "a..b", "a~1", "a^", "a:b", "a?", "a*", "a[", "a\\b", "a//b", "/a",
            "a/", ".a", "a/.b", "a.lock", "a.lock/b", "a.", "a@{1}", "a\u{7}",
        ];
        for name in refused {
            assert!(fault(name).is_some(), "{name}");
        }
    }
}
