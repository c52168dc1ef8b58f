//! Reading and writing packed columns of a protobuf message without intermediate vectors.
//!
//! This implements the part of the encoding that a message of packed columns needs. Everything else is rejected: a
//! repeated field, a column that is not packed, a truncated number.

use crate::check;
use crate::error::WireError;

/// The fields of a message with numbers below `FIELDS`. Absent fields are empty.
pub(crate) struct Fields<'a, const FIELDS: usize> {
    message: &'static str,
    bytes: [&'a [u8]; FIELDS],
    numbers: [u64; FIELDS],
}

/// A column of numbers.
#[derive(Clone, Copy)]
pub(crate) struct Column<'a> {
    field: &'static str,
    bytes: &'a [u8],
}

impl<'a, const FIELDS: usize> Fields<'a, FIELDS> {
    /// Reads a message, named `message` in errors. Ignores higher field numbers, which a later version may use.
    pub(crate) fn read(message: &'static str, mut bytes: &'a [u8]) -> Result<Fields<'a, FIELDS>, WireError> {
        let mut fields = Fields { message, bytes: [&[]; FIELDS], numbers: [0; FIELDS] };
        let mut seen = [false; FIELDS];
        while !bytes.is_empty() {
            let key = fields.varint(&mut bytes)?;
            let number = usize::try_from(key >> 3).unwrap_or(usize::MAX);
            if number == 0 {
                return Err(fields.undecodable("a field has the number 0"));
            }
            if let Some(seen) = seen.get_mut(number)
                && std::mem::replace(seen, true)
            {
                return Err(fields.undecodable("a field occurs twice"));
            }
            match key & 7 {
                0 => {
                    let value = fields.varint(&mut bytes)?;
                    if let Some(field) = fields.numbers.get_mut(number) {
                        *field = value;
                    }
                }
                2 => {
                    let length = usize::try_from(fields.varint(&mut bytes)?).unwrap_or(usize::MAX);
                    let Some((value, rest)) = bytes.split_at_checked(length) else {
                        return Err(fields.undecodable("a field is longer than the message"));
                    };
                    bytes = rest;
                    if let Some(field) = fields.bytes.get_mut(number) {
                        *field = value;
                    }
                }
                _ => return Err(fields.undecodable("a field has an unsupported wire type")),
            }
        }
        Ok(fields)
    }

    /// Returns a number.
    pub(crate) fn number(&self, number: usize) -> u64 {
        self.numbers[number]
    }

    /// Returns a text.
    pub(crate) fn text(&self, number: usize) -> Result<&'a str, WireError> {
        str::from_utf8(self.bytes[number]).map_err(|_| self.undecodable("a text is not UTF-8"))
    }

    /// Returns a column, named `field` in errors.
    pub(crate) fn column(&self, number: usize, field: &'static str) -> Column<'a> {
        Column { field, bytes: self.bytes[number] }
    }

    fn varint(&self, bytes: &mut &'a [u8]) -> Result<u64, WireError> {
        varint(bytes).ok_or_else(|| self.undecodable("a number is truncated"))
    }

    fn undecodable(&self, reason: &'static str) -> WireError {
        WireError::Undecodable { field: self.message, reason }
    }
}

/// Takes a number off the front.
fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for (index, &byte) in bytes.iter().take(10).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte < 0x80 {
            // The tenth byte has room for one bit.
            let fits = index < 9 || byte < 2;
            *bytes = &bytes[index + 1..];
            return fits.then_some(value);
        }
    }
    None
}

impl Column<'_> {
    /// Passes on `count` numbers. An empty column has only zeros.
    pub(crate) fn each(&self, count: usize, mut take: impl FnMut(u64)) -> Result<(), WireError> {
        let Column { field, mut bytes } = *self;
        if bytes.is_empty() {
            (0..count).for_each(|_| take(0));
            return Ok(());
        }
        let found = bytes.iter().filter(|&&byte| byte < 0x80).count();
        check::count(field, found, count..=count)?;
        if found == bytes.len() {
            bytes.iter().for_each(|&byte| take(u64::from(byte)));
            return Ok(());
        }
        while !bytes.is_empty() {
            let reason = "a number is truncated";
            take(varint(&mut bytes).ok_or(WireError::Undecodable { field, reason })?);
        }
        Ok(())
    }

    /// Adds `count` numbers, none larger than `most`, to a column.
    pub(crate) fn add(&self, count: usize, most: u64, to: &mut Vec<u64>) -> Result<(), WireError> {
        let before = to.len();
        to.reserve(count);
        self.each(count, |number| to.push(number))?;
        self.at_most(to[before..].iter().copied().max(), most)
    }

    /// Adds `count` numbers to a column of 16 bits.
    pub(crate) fn add_small(&self, count: usize, to: &mut Vec<u16>) -> Result<(), WireError> {
        let mut largest = 0;
        to.reserve(count);
        self.each(count, |number| {
            largest = largest.max(number);
            to.push(number as u16);
        })?;
        self.at_most(Some(largest), u64::from(u16::MAX))
    }

    /// Adds `count` floats to a column.
    pub(crate) fn add_doubles(&self, count: usize, to: &mut Vec<f64>) -> Result<(), WireError> {
        if self.bytes.is_empty() {
            to.resize(to.len() + count, 0.0);
            return Ok(());
        }
        let (doubles, rest) = self.bytes.as_chunks::<8>();
        if !rest.is_empty() {
            return Err(WireError::Undecodable { field: self.field, reason: "a number is truncated" });
        }
        check::count(self.field, doubles.len(), count..=count)?;
        to.reserve(count);
        for bytes in doubles {
            to.push(check::finite(self.field, f64::from_le_bytes(*bytes))?);
        }
        Ok(())
    }

    /// Rejects a column whose largest number is too large.
    pub(crate) fn at_most(&self, largest: Option<u64>, most: u64) -> Result<(), WireError> {
        match largest {
            Some(found) if found > most => Err(WireError::OutOfRange {
                field: self.field,
                found: i128::from(found).into(),
                least: 0.into(),
                most: i128::from(most).into(),
            }),
            _ => Ok(()),
        }
    }
}

/// Writes the fields of a message in the order of their numbers. Leaves out zeros and empty fields.
#[derive(Default)]
pub(crate) struct Writer {
    message: Vec<u8>,
    packed: Vec<u8>,
}

impl Writer {
    /// Writes a number.
    pub(crate) fn number(&mut self, number: usize, value: u64) {
        if value > 0 {
            write_varint(&mut self.message, (number as u64) << 3);
            write_varint(&mut self.message, value);
        }
    }

    /// Writes a text.
    pub(crate) fn text(&mut self, number: usize, text: &str) {
        self.bytes(number, text.as_bytes());
    }

    /// Writes a column of numbers, none larger than `most`, named `field` in errors.
    pub(crate) fn column(
        &mut self,
        number: usize,
        field: &'static str,
        most: u64,
        values: impl Iterator<Item = u64>,
    ) -> Result<(), WireError> {
        let mut packed = std::mem::take(&mut self.packed);
        packed.clear();
        let mut largest = 0;
        for value in values {
            largest = largest.max(value);
            write_varint(&mut packed, value);
        }
        if largest > 0 {
            self.bytes(number, &packed);
        }
        self.packed = packed;
        Column { field, bytes: &[] }.at_most(Some(largest), most)
    }

    /// Writes a column of 16-bit numbers.
    pub(crate) fn small(
        &mut self,
        number: usize,
        field: &'static str,
        values: &[u16],
    ) -> Result<(), WireError> {
        self.column(number, field, u64::MAX, values.iter().map(|&value| value.into()))
    }

    /// Writes a column of floats. Leaves it out only if all bits are zero, which keeps negative zeros.
    pub(crate) fn doubles(
        &mut self,
        number: usize,
        field: &'static str,
        values: &[f64],
    ) -> Result<(), WireError> {
        for &value in values {
            check::finite(field, value)?;
        }
        if values.iter().any(|value| value.to_bits() != 0) {
            let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
            self.bytes(number, &bytes);
        }
        Ok(())
    }

    /// Returns the encoded message.
    pub(crate) fn finish(self) -> Vec<u8> {
        self.message
    }

    fn bytes(&mut self, number: usize, bytes: &[u8]) {
        if !bytes.is_empty() {
            write_varint(&mut self.message, (number as u64) << 3 | 2);
            write_varint(&mut self.message, bytes.len() as u64);
            self.message.extend_from_slice(bytes);
        }
    }
}

fn write_varint(to: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        to.push(value as u8 | 0x80);
        value >>= 7;
    }
    to.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Result<Fields<'_, 4>, WireError> {
        Fields::<4>::read("batch", bytes)
    }

    #[test]
    fn reads_fields_by_number() {
        // 1: 150; 2: "hi"; 3: packed 1, 300; 9 (unknown): packed; 10 (unknown): a number.
        let bytes = [8, 0x96, 1, 18, 2, b'h', b'i', 26, 3, 1, 0xac, 2, 74, 1, 5, 80, 7];
        let fields = read(&bytes).unwrap();
        assert_eq!((fields.number(1), fields.number(2)), (150, 0));
        assert_eq!(fields.text(2), Ok("hi"));
        let mut numbers = Vec::new();
        fields.column(3, "c").add(2, 300, &mut numbers).unwrap();
        assert_eq!(numbers, [1, 300]);
        fields.column(1, "none").add(2, 0, &mut numbers).unwrap();
        assert_eq!(numbers, [1, 300, 0, 0]);
        let error = |result: Result<(), WireError>| result.unwrap_err().to_string();
        assert_eq!(
            error(fields.column(3, "c").add(3, 300, &mut numbers)),
            "`c` has 2 entries, and it must have 3 to 3"
        );
        assert_eq!(
            error(fields.column(3, "c").add(2, 299, &mut numbers)),
            "`c` is 300, and it must be from 0 to 299"
        );
    }

    #[test]
    fn rejects_undecodable_messages() {
        let cases: [(&[u8], &str); 7] = [
            (&[0x80], "a number is truncated"),
            (&[18, 3, 1, 2], "a field is longer than the message"),
            (&[18, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1], "longer than the message"),
            (&[8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2], "a number is truncated"),
            (&[8, 1, 8, 1], "a field occurs twice"),
            (&[9, 0, 0, 0, 0, 0, 0, 0, 0], "a field has an unsupported wire type"),
            (&[0, 0], "a field has the number 0"),
        ];
        for (bytes, expected) in cases {
            let error = read(bytes).err().unwrap().to_string();
            assert!(error.starts_with("`batch` cannot be decoded: ") && error.contains(expected), "{error}");
        }
        let largest = [8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
        assert_eq!(read(&largest).unwrap().number(1), u64::MAX);
        assert!(read(&[18, 1, 0xff]).unwrap().text(2).is_err());
        // A column that ends inside a number.
        let fields = read(&[26, 2, 1, 0x80]).unwrap();
        assert!(fields.column(3, "c").add(1, 9, &mut Vec::new()).is_err());
    }
}
