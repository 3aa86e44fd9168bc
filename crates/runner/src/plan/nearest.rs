//! The word that was probably meant.

/// Finds the candidate nearest to a word, when it is near enough to be a slip.
///
/// A slip is a letter too many, too few, another, or two swapped; one for every three letters of the word. The
/// first of equally near ones is taken, so that the answer is always the same.
pub(super) fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word: Vec<char> = word
        .chars()
        .take(WORD_MAX + 1)
        .flat_map(char::to_lowercase)
        .collect();
    if word.len() > WORD_MAX {
        return None;
    }
    let limit = (word.len() / 3).max(1);
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        let other: Vec<char> = candidate.chars().flat_map(char::to_lowercase).collect();
        if other.len().abs_diff(word.len()) > limit {
            continue;
        }
        let distance = distance(&word, &other);
        if distance <= limit && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// Longer words are no slips of a key or an id.
const WORD_MAX: usize = 64;

/// The optimal string alignment distance: Damerau's, no letter edited twice.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before = vec![0; b.len() + 1];
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let change = usize::from(a[i - 1] != b[j - 1]);
            row[j] = (above[j] + 1).min(row[j - 1] + 1).min(above[j - 1] + change);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut above, row);
    }
    above[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_its_word_and_another_word_does_not() {
        let keys = ["scope", "secrets", "story_angle", "type"];
        for (word, found) in [
            ("scpoe", Some("scope")),
            ("Scope", Some("scope")),
            ("secret", Some("secrets")),
            ("story-angel", Some("story_angle")),
            ("tpye", Some("type")),
            ("window", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, keys), found, "{word}");
        }
        assert_eq!(nearest("2", ["1", "3"]), Some("1"));
    }
}
