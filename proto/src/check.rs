//! Checks of single fields. Each error names the field and the violated bound.

use std::ops::RangeInclusive;

use crate::error::WireError;

/// Requires a field.
pub(crate) fn required<T>(field: &'static str, value: Option<T>) -> Result<T, WireError> {
    value.ok_or(WireError::Missing { field })
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

/// Checks a text of one line without control characters, which may be empty.
pub(crate) fn line(field: &'static str, line: String, most: usize) -> Result<String, WireError> {
    let line = text(field, line, most)?;
    if line.contains('\n') {
        return Err(WireError::ControlCharacter { field });
    }
    lines(field, &line)?;
    Ok(line)
}

/// Rejects control characters other than line breaks.
pub(crate) fn lines(field: &'static str, lines: &str) -> Result<(), WireError> {
    // ASCII texts, the most frequent, are scanned many bytes at a time.
    let is_printable = if lines.is_ascii() {
        lines.bytes().all(|byte| !byte.is_ascii_control() || byte == b'\n')
    } else {
        lines.chars().all(|c| !c.is_control() || c == '\n')
    };
    if is_printable { Ok(()) } else { Err(WireError::ControlCharacter { field }) }
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

/// Checks that a number is finite and not negative.
pub(crate) fn not_negative(field: &'static str, found: f64) -> Result<f64, WireError> {
    if finite(field, found)? < 0.0 {
        let (found, least, most) = ((found as i128).into(), 0.into(), i128::MAX.into());
        return Err(WireError::OutOfRange { field, found, least, most });
    }
    Ok(found)
}
