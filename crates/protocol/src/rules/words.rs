//! What every text that someone types must be.

use crate::refusal::Refusal;

/// Refuses a text that is empty, has a line break or control character, or is too long.
pub(crate) fn one_line(field: &str, text: &str, most: usize) -> Result<(), Refusal> {
    let why = if text.trim().is_empty() {
        "it is empty".to_owned()
    } else if text.chars().any(char::is_control) {
        "it must be one line without control characters".to_owned()
    } else if text.chars().count() > most {
        format!("it is longer than {most} characters")
    } else {
        return Ok(());
    };
    Err(Refusal::BadText {
        field: field.to_owned(),
        why,
    })
}
