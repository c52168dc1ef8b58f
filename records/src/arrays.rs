//! Converts plies to Arrow arrays, with nulls in the search columns of plies without a search.
//!
//! Batches have a fixed size, however the plies are divided: the ends of pages depend on the batches, and the bytes of a
//! part must depend on its rows alone.

use std::ops::Range;
use std::sync::Arc;

use agon_search::Counters;
use arrow::array::{ArrayRef, ListArray, PrimitiveArray, StringArray, UInt16Array, UInt64Array};
use arrow::buffer::{Buffer, NullBuffer, OffsetBuffer};
use arrow::datatypes::{ArrowPrimitiveType, Float64Type, UInt16Type, UInt64Type};

use crate::columns::{ListColumn, Plies, Searches};
use crate::schema::ColumnType;

/// A range of plies with their searches.
pub(crate) struct Span<'a> {
    plies: &'a Plies,
    rows: Range<usize>,
    searches: Range<usize>,
}

impl<'a> Span<'a> {
    /// Returns the range of all plies.
    pub(crate) fn whole(plies: &'a Plies) -> Span<'a> {
        Span { plies, rows: 0..plies.len(), searches: 0..plies.searches.player.len() }
    }

    /// Splits `rows` plies off the front.
    fn split(&mut self, rows: usize) -> Span<'a> {
        let (row, search) = (self.rows.start, self.searches.start);
        let searched = self.plies.searched[row..row + rows].iter().filter(|&&searched| searched).count();
        (self.rows.start, self.searches.start) = (row + rows, search + searched);
        Span { plies: self.plies, rows: row..row + rows, searches: search..search + searched }
    }

    /// Returns the index of each ply's search, if it has one.
    fn searches(&self) -> impl Iterator<Item = Option<usize>> + use<'a> {
        let mut numbers = self.searches.clone();
        let searched = &self.plies.searched[self.rows.clone()];
        searched.iter().map(move |&searched| if searched { numbers.next() } else { None })
    }
}

/// Calls `write` with batches of `size` plies; the last may be smaller.
pub(crate) fn batches<'a, E>(
    parts: impl IntoIterator<Item = &'a Plies>,
    size: usize,
    mut write: impl FnMut(&[Span<'a>]) -> Result<(), E>,
) -> Result<(), E> {
    let (mut batch, mut room) = (Vec::new(), size);
    for plies in parts {
        let mut rest = Span::whole(plies);
        while !rest.rows.is_empty() {
            let front = rest.split(room.min(rest.rows.len()));
            room -= front.rows.len();
            batch.push(front);
            if room == 0 {
                write(&batch)?;
                (batch, room) = (Vec::new(), size);
            }
        }
    }
    if batch.is_empty() { Ok(()) } else { write(&batch) }
}

/// Returns the arrays of plies in the order of the columns of `moves`.
pub(crate) fn ply_arrays(spans: &[Span<'_>]) -> Vec<ArrayRef> {
    let batch = Batch::new(spans);
    let number = |of: fn(&Searches) -> &[u64]| batch.searched::<UInt64Type>(of);
    let small = |of: fn(&Searches) -> &[u16]| batch.searched::<UInt16Type>(of);
    let mut arrays = vec![
        batch.each::<UInt64Type>(|plies| &plies.bout),
        batch.each::<UInt16Type>(|plies| &plies.game),
        batch.each::<UInt16Type>(|plies| &plies.ply),
        batch.seats(),
        batch.moves(),
        batch.each::<UInt16Type>(|plies| &plies.legal),
        batch.texts(Searches::player),
        small(|searches| &searches.depth),
        small(|searches| &searches.selective_depth),
    ];
    arrays.extend(
        (0..Counters::COUNT)
            .map(|index| batch.searched::<UInt64Type>(move |searches| &searches.counters[index])),
    );
    arrays.extend([
        batch.lists(|searches| &searches.depth_nodes),
        batch.lists(|searches| &searches.depth_time_us),
        batch.searched::<Float64Type>(|searches| &searches.score),
        batch.texts(|searches, index| searches.pv.get(index)),
        number(|searches| &searches.time_us),
        number(|searches| &searches.overshoot_us),
        batch.texts(|searches, index| searches.limit_kind[index].name()),
        number(|searches| &searches.limit_value),
    ]);
    arrays
}

/// The plies of one batch of arrays.
struct Batch<'a> {
    spans: &'a [Span<'a>],
    rows: usize,
    /// The nulls of all columns of searches.
    nulls: Option<NullBuffer>,
}

impl<'a> Batch<'a> {
    fn new(spans: &'a [Span<'a>]) -> Batch<'a> {
        let searched = spans.iter().flat_map(|span| &span.plies.searched[span.rows.clone()]);
        let nulls = NullBuffer::from(searched.copied().collect::<Vec<bool>>());
        let rows = nulls.len();
        Batch { spans, rows, nulls: Some(nulls).filter(|nulls| nulls.null_count() > 0) }
    }

    /// Returns a column of plies.
    fn each<T: ArrowPrimitiveType>(&self, of: fn(&Plies) -> &[T::Native]) -> ArrayRef {
        let mut values = Vec::with_capacity(self.rows);
        for span in self.spans {
            values.extend_from_slice(&of(span.plies)[span.rows.clone()]);
        }
        Arc::new(PrimitiveArray::<T>::new(values.into(), None))
    }

    fn seats(&self) -> ArrayRef {
        let seats = self.spans.iter().flat_map(|span| &span.plies.seat[span.rows.clone()]);
        Arc::new(seats.copied().collect::<UInt16Array>())
    }

    fn moves(&self) -> ArrayRef {
        let mut texts = TextValues::new(self.rows, 4);
        for span in self.spans {
            span.rows.clone().for_each(|row| texts.push(span.plies.mv.get(row)));
        }
        texts.finish(None)
    }

    /// Returns a numeric column of searches.
    fn searched<T: ArrowPrimitiveType>(&self, of: impl Fn(&Searches) -> &[T::Native]) -> ArrayRef {
        let mut values = Vec::with_capacity(self.rows);
        for span in self.spans {
            let column = of(&span.plies.searches);
            values.extend(
                span.searches().map(|search| search.map_or_else(T::Native::default, |it| column[it])),
            );
        }
        Arc::new(PrimitiveArray::<T>::new(values.into(), self.nulls.clone()))
    }

    /// Returns a text column of searches.
    fn texts(&self, of: impl Fn(&'a Searches, usize) -> &'a str) -> ArrayRef {
        let mut texts = TextValues::new(self.rows, 8);
        for span in self.spans {
            let searches = &span.plies.searches;
            span.searches().for_each(|search| texts.push(search.map_or("", |index| of(searches, index))));
        }
        texts.finish(self.nulls.clone())
    }

    /// Returns a list column of searches.
    fn lists(&self, of: fn(&Searches) -> &ListColumn) -> ArrayRef {
        let mut values = Vec::with_capacity(4 * self.rows);
        let mut lengths = Vec::with_capacity(self.rows);
        for span in self.spans {
            let lists = of(&span.plies.searches);
            for search in span.searches() {
                let list = search.map_or(&[][..], |index| lists.get(index));
                values.extend_from_slice(list);
                lengths.push(list.len());
            }
        }
        let (offsets, values) = (OffsetBuffer::from_lengths(lengths), UInt64Array::from(values));
        Arc::new(ListArray::new(ColumnType::U64List.element(), offsets, Arc::new(values), self.nulls.clone()))
    }
}

/// The texts of an array under construction.
struct TextValues {
    lengths: Vec<usize>,
    bytes: Vec<u8>,
}

impl TextValues {
    fn new(texts: usize, bytes_each: usize) -> TextValues {
        TextValues { lengths: Vec::with_capacity(texts), bytes: Vec::with_capacity(texts * bytes_each) }
    }

    fn push(&mut self, text: &str) {
        self.lengths.push(text.len());
        self.bytes.extend_from_slice(text.as_bytes());
    }

    fn finish(self, nulls: Option<NullBuffer>) -> ArrayRef {
        let offsets = OffsetBuffer::from_lengths(self.lengths);
        Arc::new(StringArray::new(offsets, Buffer::from_vec(self.bytes), nulls))
    }
}
