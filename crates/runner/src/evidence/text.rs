//! What all readers of printed text need.

/// Takes terminal escape sequences out of a text.
pub(super) fn without_colours(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\u{1b}' {
            clean.push(c);
            continue;
        }
        match chars.next() {
            // CSI: parameters, then one final character.
            Some('[') => while chars.next_if(|c| matches!(c, ' '..='?')).is_some() {},
            // OSC: up to the bell or the string terminator.
            Some(']') => {
                while chars
                    .next_if(|c| !matches!(c, '\u{7}' | '\u{1b}' | '\n'))
                    .is_some()
                {}
                if chars.next_if_eq(&'\u{1b}').is_some() {
                    chars.next_if_eq(&'\\');
                } else {
                    chars.next_if_eq(&'\u{7}');
                }
                continue;
            }
            // Others: intermediates, then one final character.
            Some(' '..='/') => while chars.next_if(|c| matches!(c, ' '..='/')).is_some() {},
            _ => continue,
        }
        chars.next_if(|c| matches!(c, '0'..='~'));
    }
    clean
}

/// Reads the number that a text begins with, and gives what follows it.
pub(super) fn number(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    Some((text[..end].parse().ok()?, &text[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_go_and_text_stays() {
        for (text, clean) in [
            ("\u{1b}[32mok\u{1b}(B\u{1b}[m", "ok"),
            ("\u{1b}[1;38;5;9mé\u{1b}[0m!", "é!"),
            ("\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{7}!", "link!"),
            ("a\u{1b}", "a"),
            ("a\u{1b}[", "a"),
            ("a\u{1b}[3\nb", "a\nb"),
        ] {
            assert_eq!(without_colours(text), clean);
        }
    }
}
