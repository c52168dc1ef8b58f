//! Why a configuration is refused.

use std::ops::Range;

use agon_games::setup::suggestion;

/// What is wrong with a configuration, where it stands, and what is allowed.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[error("{reason}")]
pub struct ConfigError {
    /// The bytes of the text that are meant, where they are known.
    pub span: Option<Range<usize>>,
    /// A sentence with the remedy.
    pub reason: String,
}

impl ConfigError {
    /// A key that is not known at this place; `what` says what such keys are.
    pub(crate) fn unknown_key<'a>(
        span: Range<usize>,
        place: &str,
        what: &str,
        name: &str,
        known: impl IntoIterator<Item = &'a str>,
    ) -> ConfigError {
        let known: Vec<&str> = known.into_iter().collect();
        let hint = suggestion(name, known.iter().copied())
            .map(|near| format!(": did you mean `{near}`?"))
            .unwrap_or_else(|| ";".to_string());
        let list = if known.is_empty() {
            "there is none".to_string()
        } else {
            format!("known: {}", known.join(", "))
        };
        ConfigError { span: Some(span), reason: format!("{place} has no {what} `{name}`{hint} {list}") }
    }

    /// The line and the column of the place in `text`, counted from 1.
    pub fn place(&self, text: &str) -> Option<(usize, usize)> {
        let before = text.get(..self.span.as_ref()?.start)?;
        let line = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|&c| c != '\n').count() + 1;
        Some((line, column))
    }
}
