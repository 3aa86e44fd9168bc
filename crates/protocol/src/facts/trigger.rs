//! What a claim or a phase sets off when it ends: `on_done`, `on_partial`, `on_fail`.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::kind::Kind;
use super::signal_kind::SignalKind;

/// One exit trigger (protocol, 12), parsed from its line and written back in its canonical form.
///
/// `→`, `->` and plain blanks are the same between the verb and what follows. It is stored as text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Trigger {
    /// `trigger → type:test scope:brain-engine/`: launches a satellite, its task the closing one's result.
    Launch {
        /// What the satellite is for.
        kind: Kind,
        /// The entries of its scope as written, at least one; `scope:` is repeated for several.
        scope: Vec<String>,
    },
    /// `trigger:next`: the next phase of the plan.
    Next,
    /// `trigger:3`: a phase of the plan by its id.
    Phase(String),
    /// `signal → BLOCKED_ON pilot`: sends a signal.
    Signal {
        /// The signal's type.
        kind: SignalKind,
        /// Whom it goes to.
        to: String,
    },
    /// `gate:human → "deploy?"`: waits for a human before closing.
    HumanGate {
        /// What the human is asked; may be empty.
        text: String,
    },
    /// `notify → pilot`: an INFO that blocks nothing.
    Notify {
        /// Whom it goes to.
        to: String,
    },
    /// `abort`: launches nothing more of this run.
    Abort,
}

/// The addresses that are no session's id.
const ADDRESSES: [&str; 4] = ["pilot", "parent", "human", "all"];

impl Trigger {
    /// Reads one trigger; `pilote` is `pilot`.
    ///
    /// # Errors
    ///
    /// [`TriggerError`] with the column, counted in characters from 1, of what does not parse.
    pub fn parse(text: &str) -> Result<Self, TriggerError> {
        if let Some(at) = text.find(char::is_control) {
            return Err(Words { text, at }.fault(at, TriggerFault::Control));
        }
        let mut words = Words { text, at: 0 };
        let (start, head) = words.head();
        let (verb, after) = match head.split_once(':') {
            Some((verb, after)) => (verb, Some((start + verb.len() + 1, after))),
            None => (head, None),
        };
        let trigger = match (verb, after) {
            ("trigger", None) => words.launch()?,
            ("trigger", Some(which)) => {
                let (start, id) = words.after_colon(which);
                match id {
                    "" => return Err(words.fault(start, TriggerFault::NoPhase)),
                    "next" => Self::Next,
                    id => Self::Phase(id.to_owned()),
                }
            }
            ("gate", Some(which)) => {
                let (start, who) = words.after_colon(which);
                if who != "human" {
                    return Err(words.fault(start, TriggerFault::GateNotHuman));
                }
                Self::HumanGate {
                    text: words.gate_text()?,
                }
            }
            ("signal", None) => {
                words.arrow();
                let (start, kind) = words.word();
                let kind = SignalKind::parse(kind)
                    .ok_or_else(|| words.fault(start, TriggerFault::UnknownSignal(kind.to_owned())))?;
                Self::Signal {
                    kind,
                    to: words.address()?,
                }
            }
            ("notify", None) => Self::Notify { to: words.address()? },
            ("abort", None) => Self::Abort,
            ("", None) => return Err(words.fault(start, TriggerFault::Empty)),
            _ => return Err(words.fault(start, TriggerFault::UnknownVerb(head.to_owned()))),
        };
        match words.word() {
            (_, "") => Ok(trigger),
            (start, more) => Err(words.fault(start, TriggerFault::Trailing(more.to_owned()))),
        }
    }
}

/// The text of a trigger and how far it was read, in bytes.
struct Words<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Words<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn blanks(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    /// Skips blanks, and one arrow between them.
    fn arrow(&mut self) {
        self.blanks();
        for arrow in ["→", "->"] {
            if self.rest().starts_with(arrow) {
                self.at += arrow.len();
                self.blanks();
                return;
            }
        }
    }

    /// Takes what stands before the next blank or arrow.
    fn head(&mut self) -> (usize, &'a str) {
        self.blanks();
        let rest = self.rest();
        let ends = [rest.find(char::is_whitespace), rest.find('→'), rest.find("->")];
        self.take(ends.into_iter().flatten().min())
    }

    /// Takes what stands before the next blank.
    fn word(&mut self) -> (usize, &'a str) {
        self.blanks();
        self.take(self.rest().find(char::is_whitespace))
    }

    fn take(&mut self, length: Option<usize>) -> (usize, &'a str) {
        let (start, rest) = (self.at, self.rest());
        let word = &rest[..length.unwrap_or(rest.len())];
        self.at += word.len();
        (start, word)
    }

    /// Takes what follows a colon: in the same word, or in the next after a blank.
    fn after_colon(&mut self, same_word: (usize, &'a str)) -> (usize, &'a str) {
        if same_word.1.is_empty() {
            self.head()
        } else {
            same_word
        }
    }

    fn launch(&mut self) -> Result<Trigger, TriggerError> {
        self.arrow();
        let (mut kind, mut scope) = (None, Vec::new());
        loop {
            self.blanks();
            let start = self.at;
            let rest = self.rest();
            if rest.is_empty() {
                break;
            } else if rest.starts_with("type:") {
                self.at += "type:".len();
                let (at, value) = self.value()?;
                let read =
                    Kind::parse(&value).ok_or_else(|| self.fault(at, TriggerFault::UnknownKind(value)))?;
                if kind.replace(read).is_some() {
                    return Err(self.fault(start, TriggerFault::TypeTwice));
                }
            } else if rest.starts_with("scope:") {
                self.at += "scope:".len();
                let (at, value) = self.value()?;
                if value.is_empty() {
                    return Err(self.fault(at, TriggerFault::NoScope));
                }
                scope.push(value);
            } else {
                let (_, word) = self.word();
                return Err(self.fault(start, TriggerFault::NotTypeOrScope(word.to_owned())));
            }
        }
        let kind = kind.ok_or_else(|| self.fault(self.at, TriggerFault::NoType))?;
        if scope.is_empty() {
            return Err(self.fault(self.at, TriggerFault::NoScope));
        }
        Ok(Trigger::Launch { kind, scope })
    }

    /// Takes a value after its colon, in double quotes or up to the next blank.
    fn value(&mut self) -> Result<(usize, String), TriggerError> {
        self.blanks();
        if self.rest().starts_with('"') {
            let start = self.at;
            return self.quoted('"').map(|value| (start, value));
        }
        let (start, word) = self.word();
        Ok((start, word.to_owned()))
    }

    fn address(&mut self) -> Result<String, TriggerError> {
        self.arrow();
        let (start, to) = self.word();
        let to = if to == "pilote" { "pilot" } else { to };
        let session = to.strip_prefix("sess-").is_some_and(|id| {
            !id.is_empty() && id.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
        });
        match to {
            "" => Err(self.fault(start, TriggerFault::NoAddress)),
            to if session || ADDRESSES.contains(&to) => Ok(to.to_owned()),
            to => Err(self.fault(start, TriggerFault::UnknownAddress(to.to_owned()))),
        }
    }

    /// Takes the words of a gate: quoted, or all that is left of the line.
    fn gate_text(&mut self) -> Result<String, TriggerError> {
        self.arrow();
        match self.rest().chars().next() {
            Some(quote @ ('"' | '\'')) => self.quoted(quote),
            _ => {
                let (_, text) = self.take(None);
                Ok(text.trim_end().to_owned())
            }
        }
    }

    /// Takes a quoted text; within double quotes `\"` and `\\` stand for themselves.
    fn quoted(&mut self, quote: char) -> Result<String, TriggerError> {
        let start = self.at;
        let mut text = String::new();
        let mut chars = self.rest().char_indices().skip(1);
        while let Some((at, c)) = chars.next() {
            match c {
                '\\' if quote == '"' => match chars.next() {
                    Some((_, escaped @ ('"' | '\\'))) => text.push(escaped),
                    Some((_, plain)) => text.extend(['\\', plain]),
                    None => break,
                },
                c if c == quote => {
                    self.at += at + c.len_utf8();
                    return Ok(text);
                }
                c => text.push(c),
            }
        }
        Err(self.fault(start, TriggerFault::OpenQuote))
    }

    fn fault(&self, at: usize, kind: TriggerFault) -> TriggerError {
        TriggerError {
            column: self.text[..at].chars().count() + 1,
            kind,
        }
    }
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Launch { kind, scope } => {
                write!(f, "trigger → type:{kind}")?;
                scope.iter().try_for_each(|entry| {
                    f.write_str(" scope:")?;
                    if entry.starts_with('"') || entry.contains(char::is_whitespace) {
                        quote(f, entry)
                    } else {
                        f.write_str(entry)
                    }
                })
            }
            Self::Next => f.write_str("trigger:next"),
            Self::Phase(id) => write!(f, "trigger:{id}"),
            Self::Signal { kind, to } => write!(f, "signal → {kind} {to}"),
            Self::HumanGate { text } if text.is_empty() => f.write_str("gate:human"),
            Self::HumanGate { text } => {
                f.write_str("gate:human → ")?;
                quote(f, text)
            }
            Self::Notify { to } => write!(f, "notify → {to}"),
            Self::Abort => f.write_str("abort"),
        }
    }
}

fn quote(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    write!(f, "\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

impl Serialize for Trigger {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Trigger {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

/// A text that is no trigger, and where it stops being one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TriggerError {
    /// The column of the fault in the trigger's own text, in characters from 1.
    pub column: usize,
    /// What is wrong there.
    pub kind: TriggerFault,
}

/// What is wrong in a trigger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TriggerFault {
    /// Nothing is written.
    Empty,
    /// It holds a control character; a trigger is one line.
    Control,
    /// The first word is none of the verbs.
    UnknownVerb(String),
    /// `trigger:` names no phase.
    NoPhase,
    /// `gate:` names someone else than a human.
    GateNotHuman,
    /// The signal's type is none of the protocol's.
    UnknownSignal(String),
    /// The address is missing.
    NoAddress,
    /// The address is neither a session nor one of the four words.
    UnknownAddress(String),
    /// The satellite's type is none of the kinds.
    UnknownKind(String),
    /// A `trigger` without `type:`.
    NoType,
    /// A `trigger` with two types.
    TypeTwice,
    /// A `trigger` without `scope:`.
    NoScope,
    /// A word of a `trigger` that is neither `type:` nor `scope:`.
    NotTypeOrScope(String),
    /// A quote is not closed.
    OpenQuote,
    /// Words after the end of the trigger.
    Trailing(String),
}

impl fmt::Display for TriggerFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("no trigger is written"),
            Self::Control => f.write_str("a trigger is one line without control characters"),
            Self::UnknownVerb(word) => write!(
                f,
                "`{word}` is no trigger: trigger, trigger:next, trigger:<phase>, signal, gate:human, notify, abort"
            ),
            Self::NoPhase => f.write_str("`trigger:` names no phase"),
            Self::GateNotHuman => f.write_str("a gate in a trigger is `gate:human`"),
            Self::UnknownSignal(word) => {
                write!(f, "`{word}` is no signal type:")?;
                SignalKind::ALL.iter().try_for_each(|kind| write!(f, " {kind}"))
            }
            Self::NoAddress => {
                f.write_str("it does not say to whom: pilot, parent, human, all, or a session")
            }
            Self::UnknownAddress(word) => {
                write!(
                    f,
                    "`{word}` is no address: pilot, parent, human, all, or a session (sess-…)"
                )
            }
            Self::UnknownKind(word) => {
                write!(f, "`{word}` is no type:")?;
                Kind::ALL.iter().try_for_each(|kind| write!(f, " {kind}"))
            }
            Self::NoType => f.write_str("`type:` is missing"),
            Self::TypeTwice => f.write_str("`type:` stands twice"),
            Self::NoScope => f.write_str("`scope:` is missing or empty"),
            Self::NotTypeOrScope(word) => write!(
                f,
                "`{word}` is neither `type:` nor `scope:` (each entry has its own `scope:`, one with blanks in quotes)"
            ),
            Self::OpenQuote => f.write_str("the quote is not closed"),
            Self::Trailing(word) => write!(f, "`{word}` stands after the end of the trigger"),
        }
    }
}

impl fmt::Display for TriggerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "column {}: {}", self.column, self.kind)
    }
}

impl std::error::Error for TriggerError {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn launch(kind: Kind, scope: &[&str]) -> Trigger {
        Trigger::Launch {
            kind,
            scope: scope.iter().map(|entry| (*entry).to_owned()).collect(),
        }
    }

    #[test]
    fn the_forms_of_the_protocol_are_read() {
        let pilot = || "pilot".to_owned();
        for (text, trigger) in [
            (
                "trigger → type:test scope:brain-engine/",
                launch(Kind::Test, &["brain-engine/"]),
            ),
            ("trigger:next", Trigger::Next),
            ("trigger:3", Trigger::Phase("3".to_owned())),
            (
                "signal  → BLOCKED_ON pilot",
                Trigger::Signal {
                    kind: SignalKind::BlockedOn,
                    to: pilot(),
                },
            ),
            (
                "gate:human → \"tests green — deploy?\"",
                Trigger::HumanGate {
                    text: "tests green — deploy?".to_owned(),
                },
            ),
            ("notify  → pilot", Trigger::Notify { to: pilot() }),
            ("abort", Trigger::Abort),
        ] {
            assert_eq!(Trigger::parse(text).as_ref(), Ok(&trigger), "{text}");
        }
    }

    #[test]
    fn the_arrow_may_be_two_signs_or_a_blank_and_may_touch_the_words() {
        for text in [
            "signal → INFO pilot",
            "signal -> INFO pilot",
            "signal INFO pilot",
            "signal→INFO pilot",
            "signal->INFO → pilot",
            "  signal   INFO   pilote  ",
        ] {
            assert_eq!(
                Trigger::parse(text).unwrap().to_string(),
                "signal → INFO pilot",
                "{text}"
            );
        }
        for text in [
            "gate:human deploy?",
            "gate: human -> 'deploy?'",
            "gate:human→\"deploy?\"",
        ] {
            assert_eq!(
                Trigger::parse(text).unwrap().to_string(),
                "gate:human → \"deploy?\"",
                "{text}"
            );
        }
        assert_eq!(Trigger::parse("trigger: next"), Ok(Trigger::Next));
        assert_eq!(
            Trigger::parse("trigger scope:\"my docs/\" scope:src/ type:code"),
            Ok(launch(Kind::Code, &["my docs/", "src/"]))
        );
    }

    #[test]
    fn the_french_pilot_is_the_pilot() {
        assert_eq!(
            Trigger::parse("notify → pilote").unwrap().to_string(),
            "notify → pilot"
        );
    }

    #[test]
    fn what_does_not_parse_is_told_with_its_column() {
        for (text, column, kind) in [
            ("", 1, TriggerFault::Empty),
            ("   ", 4, TriggerFault::Empty),
            ("launch x", 1, TriggerFault::UnknownVerb("launch".to_owned())),
            ("abort:now", 1, TriggerFault::UnknownVerb("abort:now".to_owned())),
            ("trigger:", 9, TriggerFault::NoPhase),
            ("trigger →", 10, TriggerFault::NoType),
            (
                "trigger → type:tests scope:a",
                16,
                TriggerFault::UnknownKind("tests".to_owned()),
            ),
            ("trigger → type:test type:code", 21, TriggerFault::TypeTwice),
            ("trigger → type:test", 20, TriggerFault::NoScope),
            ("trigger → scope:a/", 19, TriggerFault::NoType),
            (
                "trigger → type:test scope:a/ b/",
                30,
                TriggerFault::NotTypeOrScope("b/".to_owned()),
            ),
            ("gate:robot → x", 6, TriggerFault::GateNotHuman),
            ("gate:human → \"open", 14, TriggerFault::OpenQuote),
            ("gate:human → \"a\" b", 18, TriggerFault::Trailing("b".to_owned())),
            (
                "signal → BLOCKED pilot",
                10,
                TriggerFault::UnknownSignal("BLOCKED".to_owned()),
            ),
            ("signal → INFO", 14, TriggerFault::NoAddress),
            ("notify → bob", 10, TriggerFault::UnknownAddress("bob".to_owned())),
            ("notify pilot now", 14, TriggerFault::Trailing("now".to_owned())),
            ("é → x", 1, TriggerFault::UnknownVerb("é".to_owned())),
            ("abort\nabort", 6, TriggerFault::Control),
        ] {
            assert_eq!(Trigger::parse(text), Err(TriggerError { column, kind }), "{text}");
        }
    }

    #[test]
    fn a_trigger_is_stored_as_its_text() {
        let trigger = Trigger::parse("gate:human → say \"go\"").unwrap();
        let json = serde_json::to_string(&trigger).unwrap();
        assert_eq!(json, r#""gate:human → \"say \\\"go\\\"\"""#);
        assert_eq!(serde_json::from_str::<Trigger>(&json).unwrap(), trigger);
        assert!(serde_json::from_str::<Trigger>("\"nonsense\"").is_err());
    }

    proptest! {
        #[test]
        fn no_text_panics_and_what_parses_reads_back(
            text in "(trigger|gate:human|signal|notify|abort|trigger:)?( ?(→|->) ?| )?[ -~→é\\\\\"]{0,30}"
        ) {
            if let Ok(trigger) = Trigger::parse(&text) {
                prop_assert_eq!(Trigger::parse(&trigger.to_string()), Ok(trigger));
            }
        }

        #[test]
        fn arbitrary_text_never_panics(text in "\\PC{0,40}|.{0,40}") {
            if let Err(error) = Trigger::parse(&text) {
                prop_assert!(error.column <= text.chars().count() + 1);
            }
        }
    }
}
