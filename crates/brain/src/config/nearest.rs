//! The key that was probably meant.

/// Finds the candidate nearest to a word, when it is near enough to be a slip: one letter too many, too few
/// or another for every three letters of the word.
pub(super) fn nearest<'a>(word: &str, candidates: &[&'a str]) -> Option<&'a str> {
    let word: Vec<char> = word.chars().take(WORD_MAX + 1).collect();
    if word.len() > WORD_MAX {
        return None;
    }
    let limit = (word.len() / 3).max(1);
    candidates
        .iter()
        .map(|candidate| (distance(&word, candidate), *candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Longer words are no slips of a key.
const WORD_MAX: usize = 64;

/// Levenshtein's distance.
fn distance(word: &[char], candidate: &str) -> usize {
    let candidate: Vec<char> = candidate.chars().collect();
    let mut above: Vec<usize> = (0..=candidate.len()).collect();
    for (i, a) in word.iter().enumerate() {
        let mut before = i;
        above[0] = i + 1;
        for (j, b) in candidate.iter().enumerate() {
            let change = before + usize::from(!a.eq_ignore_ascii_case(b));
            before = above[j + 1];
            above[j + 1] = change.min(before + 1).min(above[j] + 1);
        }
    }
    above[candidate.len()]
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_slip_finds_its_key_and_another_word_finds_none() {
        let keys = ["max_consecutive_fails", "signed", "signers", "timeout"];
        assert_eq!(
            nearest("max_consecutive_fail", &keys),
            Some("max_consecutive_fails")
        );
        assert_eq!(nearest("Signed", &keys), Some("signed"));
        assert_eq!(nearest("tiemout", &keys), Some("timeout"));
        assert_eq!(nearest("password", &keys), None);
        assert_eq!(nearest(&"x".repeat(10_000), &keys), None);
    }
}
