//! The columns of an encoded message, read and written in place: no vector is made of a column that is copied into another
//! at once.
//!
//! This is as much of the encoding of protobuf as a message of packed columns needs. What it does not expect is refused:
//! a field that is there twice, a column that is not packed, a number that does not end.

use crate::check;
use crate::error::WireError;

/// The fields of a message by their numbers, the first `FIELDS` of them. Those that are not there are empty.
pub(crate) struct Fields<'a, const FIELDS: usize> {
    what: &'static str,
    lengthy: [&'a [u8]; FIELDS],
    numbers: [u64; FIELDS],
}

/// A column of numbers.
#[derive(Clone, Copy)]
pub(crate) struct Column<'a> {
    field: &'static str,
    bytes: &'a [u8],
}

impl<'a, const FIELDS: usize> Fields<'a, FIELDS> {
    /// Reads a message, which errors call `what`. Fields of higher numbers are left out: a later version has them.
    pub(crate) fn read(what: &'static str, mut bytes: &'a [u8]) -> Result<Fields<'a, FIELDS>, WireError> {
        let mut fields = Fields { what, lengthy: [&[]; FIELDS], numbers: [0; FIELDS] };
        let mut seen = [false; FIELDS];
        while !bytes.is_empty() {
            let key = fields.varint(&mut bytes)?;
            let number = usize::try_from(key >> 3).unwrap_or(usize::MAX);
            if number == 0 {
                return Err(fields.garbled("a field has the number 0"));
            }
            if let Some(seen) = seen.get_mut(number)
                && std::mem::replace(seen, true)
            {
                return Err(fields.garbled("a field is there twice"));
            }
            match key & 7 {
                0 => {
                    let value = fields.varint(&mut bytes)?;
                    if let Some(place) = fields.numbers.get_mut(number) {
                        *place = value;
                    }
                }
                2 => {
                    let length = usize::try_from(fields.varint(&mut bytes)?).unwrap_or(usize::MAX);
                    let Some((value, rest)) = bytes.split_at_checked(length) else {
                        return Err(fields.garbled("a field is longer than the message"));
                    };
                    bytes = rest;
                    if let Some(place) = fields.lengthy.get_mut(number) {
                        *place = value;
                    }
                }
                _ => return Err(fields.garbled("a field is of a kind that nothing here has")),
            }
        }
        Ok(fields)
    }

    /// A number.
    pub(crate) fn number(&self, number: usize) -> u64 {
        self.numbers[number]
    }

    /// A text.
    pub(crate) fn text(&self, number: usize) -> Result<&'a str, WireError> {
        str::from_utf8(self.lengthy[number]).map_err(|_| self.garbled("a text is not UTF-8"))
    }

    /// A column, which errors call `field`.
    pub(crate) fn column(&self, number: usize, field: &'static str) -> Column<'a> {
        Column { field, bytes: self.lengthy[number] }
    }

    fn varint(&self, bytes: &mut &'a [u8]) -> Result<u64, WireError> {
        varint(bytes).ok_or_else(|| self.garbled("a number does not end"))
    }

    fn garbled(&self, reason: &'static str) -> WireError {
        WireError::Garbled { field: self.what, reason }
    }
}

/// The number at the front, which is taken off.
fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for (place, &byte) in bytes.iter().take(10).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * place);
        if byte < 0x80 {
            // The tenth byte has room for one bit.
            let fits = place < 9 || byte < 2;
            *bytes = &bytes[place + 1..];
            return fits.then_some(value);
        }
    }
    None
}

impl Column<'_> {
    /// Its numbers, of which there must be so many, or none where all are 0.
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
            let reason = "a number does not end";
            take(varint(&mut bytes).ok_or(WireError::Garbled { field, reason })?);
        }
        Ok(())
    }

    /// Adds its numbers, so many and none larger than `most`, to a column.
    pub(crate) fn add(&self, count: usize, most: u64, to: &mut Vec<u64>) -> Result<(), WireError> {
        let before = to.len();
        to.reserve(count);
        self.each(count, |number| to.push(number))?;
        self.at_most(to[before..].iter().copied().max(), most)
    }

    /// Adds its numbers to a column of small ones.
    pub(crate) fn add_small(&self, count: usize, to: &mut Vec<u16>) -> Result<(), WireError> {
        let mut largest = 0;
        to.reserve(count);
        self.each(count, |number| {
            largest = largest.max(number);
            to.push(number as u16);
        })?;
        self.at_most(Some(largest), u64::from(u16::MAX))
    }

    /// Its numbers of eight bytes each as floats.
    pub(crate) fn add_doubles(&self, count: usize, to: &mut Vec<f64>) -> Result<(), WireError> {
        if self.bytes.is_empty() {
            to.resize(to.len() + count, 0.0);
            return Ok(());
        }
        let (doubles, rest) = self.bytes.as_chunks::<8>();
        if !rest.is_empty() {
            return Err(WireError::Garbled { field: self.field, reason: "a number does not end" });
        }
        check::count(self.field, doubles.len(), count..=count)?;
        to.reserve(count);
        for bytes in doubles {
            to.push(check::finite(self.field, f64::from_le_bytes(*bytes))?);
        }
        Ok(())
    }

    /// Refuses a column whose largest number is too large.
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

/// The fields of a message, written in the order of their numbers. What is 0 or empty is left out.
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
        self.lengthy(number, text.as_bytes());
    }

    /// Writes a column of numbers, of which none may be larger than `most`; errors call it `field`.
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
            self.lengthy(number, &packed);
        }
        self.packed = packed;
        Column { field, bytes: &[] }.at_most(Some(largest), most)
    }

    /// Writes a column of small numbers.
    pub(crate) fn small(
        &mut self,
        number: usize,
        field: &'static str,
        values: &[u16],
    ) -> Result<(), WireError> {
        self.column(number, field, u64::MAX, values.iter().map(|&value| value.into()))
    }

    /// Writes a column of floats, eight bytes each. By their bits: a negative zero is not left out.
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
            self.lengthy(number, &bytes);
        }
        Ok(())
    }

    /// Returns the encoded message.
    pub(crate) fn finish(self) -> Vec<u8> {
        self.message
    }

    fn lengthy(&mut self, number: usize, bytes: &[u8]) {
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
    fn fields_are_found_by_their_numbers() {
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
        let said = |result: Result<(), WireError>| result.unwrap_err().to_string();
        assert_eq!(
            said(fields.column(3, "c").add(3, 300, &mut numbers)),
            "`c` has 2 entries, and it must have 3 to 3"
        );
        assert_eq!(
            said(fields.column(3, "c").add(2, 299, &mut numbers)),
            "`c` is 300, and it must be from 0 to 299"
        );
    }

    #[test]
    fn what_does_not_decode_is_refused() {
        let cases: [(&[u8], &str); 7] = [
            (&[0x80], "a number does not end"),
            (&[18, 3, 1, 2], "a field is longer than the message"),
            (&[18, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1], "longer than the message"),
            (&[8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2], "a number does not end"),
            (&[8, 1, 8, 1], "a field is there twice"),
            (&[9, 0, 0, 0, 0, 0, 0, 0, 0], "of a kind that nothing here has"),
            (&[0, 0], "a field has the number 0"),
        ];
        for (bytes, said) in cases {
            let error = read(bytes).err().unwrap().to_string();
            assert!(error.starts_with("`batch` cannot be decoded: ") && error.contains(said), "{error}");
        }
        let largest = [8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
        assert_eq!(read(&largest).unwrap().number(1), u64::MAX);
        assert!(read(&[18, 1, 0xff]).unwrap().text(2).is_err());
        // A column that ends within a number.
        let fields = read(&[26, 2, 1, 0x80]).unwrap();
        assert!(fields.column(3, "c").add(1, 9, &mut Vec::new()).is_err());
    }
}
