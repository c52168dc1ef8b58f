//! Checks of single fields. Each error names the field and the violated bound.

use std::ops::RangeInclusive;

use agon_games::printable::is_unprintable;

use crate::error::WireError;
use crate::limits::MAX_REASON;
use crate::session::clean_reason;

/// Requires a field.
pub(crate) fn required<T>(field: &'static str, value: Option<T>) -> Result<T, WireError> {
    value.ok_or(WireError::Missing { field })
}

/// Checks the length of a reason, and makes it one printable line.
pub(crate) fn reason(field: &'static str, reason: &str) -> Result<String, WireError> {
    length(field, reason.len(), MAX_REASON)?;
    Ok(clean_reason(reason))
}

/// Checks the length of a text, which may be empty and have several lines.
pub(crate) fn text(field: &'static str, text: String, most: usize) -> Result<String, WireError> {
    length(field, text.len(), most)?;
    Ok(text)
}

/// Checks a length in bytes.
pub(crate) fn length(field: &'static str, found: usize, most: usize) -> Result<(), WireError> {
    if found > most { Err(WireError::TooLong { field, found, most }) } else { Ok(()) }
}

/// Checks a text of one printable line, which may be empty.
pub(crate) fn line(field: &'static str, line: String, most: usize) -> Result<String, WireError> {
    let line = text(field, line, most)?;
    if line.contains('\n') {
        return Err(WireError::Unprintable { field });
    }
    lines(field, &line)?;
    Ok(line)
}

/// Rejects unprintable characters other than line breaks.
pub(crate) fn lines(field: &'static str, lines: &str) -> Result<(), WireError> {
    // ASCII texts, the most frequent, are scanned many bytes at a time.
    let is_clean = if lines.is_ascii() {
        lines.bytes().all(|byte| !byte.is_ascii_control() || byte == b'\n')
    } else {
        lines.chars().all(|c| !is_unprintable(c) || c == '\n')
    };
    if is_clean { Ok(()) } else { Err(WireError::Unprintable { field }) }
}

/// Checks a line that must not be empty.
pub(crate) fn name(field: &'static str, name: String, most: usize) -> Result<String, WireError> {
    if name.is_empty() {
        return Err(WireError::Missing { field });
    }
    line(field, name, most)
}

/// Checks a number of entries.
pub(crate) fn count(
    field: &'static str,
    found: usize,
    bounds: RangeInclusive<usize>,
) -> Result<(), WireError> {
    let (least, most) = bounds.into_inner();
    if (least..=most).contains(&found) {
        Ok(())
    } else {
        Err(WireError::WrongCount { field, found, least, most })
    }
}

/// Checks a number and converts it to the type of its bounds.
pub(crate) fn number<T, N>(field: &'static str, found: N, bounds: RangeInclusive<T>) -> Result<T, WireError>
where
    T: Copy + Into<i128> + TryFrom<i128>,
    N: Into<i128>,
{
    let found = found.into();
    let (least, most) = ((*bounds.start()).into(), (*bounds.end()).into());
    let wrong =
        || WireError::OutOfRange { field, found: found.into(), least: least.into(), most: most.into() };
    if found < least || found > most {
        return Err(wrong());
    }
    T::try_from(found).map_err(|_| wrong())
}

/// Checks that a number is finite.
pub(crate) fn finite(field: &'static str, found: f64) -> Result<f64, WireError> {
    if found.is_finite() { Ok(found) } else { Err(WireError::NotFinite { field, found: found.to_string() }) }
}

/// Checks that a number is finite, not negative and at most `most`.
pub(crate) fn at_most(field: &'static str, found: f64, most: u64) -> Result<f64, WireError> {
    if (0.0..=most as f64).contains(&finite(field, found)?) {
        return Ok(found);
    }
    // Away from zero, so that a number just outside is not shown as one within.
    let rounded = found.signum() * found.abs().ceil();
    let (found, least, most) = ((rounded as i128).into(), 0.into(), i128::from(most).into());
    Err(WireError::OutOfRange { field, found, least, most })
}
