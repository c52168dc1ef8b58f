//! The checks that conversions are made of: each names the field and the bound that it breaks.

use std::ops::RangeInclusive;

use crate::error::WireError;

/// A message that must be there.
pub(crate) fn required<T>(field: &'static str, value: Option<T>) -> Result<T, WireError> {
    value.ok_or(WireError::Missing { field })
}

/// A text that is not too long. It may be empty and have several lines.
pub(crate) fn text(field: &'static str, text: String, most: usize) -> Result<String, WireError> {
    if text.len() > most {
        return Err(WireError::TooLong { field, found: text.len(), most });
    }
    Ok(text)
}

/// A text of one line without control characters. It may be empty.
pub(crate) fn line(field: &'static str, line: String, most: usize) -> Result<String, WireError> {
    let line = text(field, line, most)?;
    if line.chars().any(char::is_control) {
        return Err(WireError::ControlCharacter { field });
    }
    Ok(line)
}

/// A line that is not empty.
pub(crate) fn name(field: &'static str, name: String, most: usize) -> Result<String, WireError> {
    if name.is_empty() {
        return Err(WireError::Missing { field });
    }
    line(field, name, most)
}

/// A number of entries within bounds.
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

/// A number within bounds, as the type that holds them.
pub(crate) fn number<T, N>(field: &'static str, found: N, bounds: RangeInclusive<T>) -> Result<T, WireError>
where
    T: Copy + Into<i128> + TryFrom<i128>,
    N: Into<i128>,
{
    let found = found.into();
    let (least, most) = ((*bounds.start()).into(), (*bounds.end()).into());
    let wrong = WireError::OutOfRange { field, found, least, most };
    if found < least || found > most {
        return Err(wrong);
    }
    T::try_from(found).map_err(|_| wrong)
}

/// A finite number.
pub(crate) fn finite(field: &'static str, found: f64) -> Result<f64, WireError> {
    if found.is_finite() { Ok(found) } else { Err(WireError::NotFinite { field, found: found.to_string() }) }
}

/// A finite number that is not negative.
pub(crate) fn not_negative(field: &'static str, found: f64) -> Result<f64, WireError> {
    if finite(field, found)? < 0.0 {
        let (found, least, most) = (found as i128, 0, i128::MAX);
        return Err(WireError::OutOfRange { field, found, least, most });
    }
    Ok(found)
}
