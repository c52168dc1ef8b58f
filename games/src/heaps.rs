//! Parameters and position texts shared by nim and grundy, the two games with heaps.

use crate::game::Seat;
use crate::setup::Parameters;
use crate::text::{SEAT_DIGITS, fields, number, read_mover};

/// The most stones in a heap.
pub(crate) const LARGEST: u8 = 63;

/// Returns the sizes of the first heaps.
pub(crate) fn first_heaps(parameters: &Parameters) -> Vec<u8> {
    parameters.integers("heaps").iter().map(|&heap| heap as u8).collect()
}

/// Writes the heaps and the seat to move.
pub(crate) fn write(heaps: impl Iterator<Item = u8>, mover: Seat) -> String {
    let heaps: Vec<String> = heaps.map(|heap| heap.to_string()).collect();
    format!("{} {}", heaps.join("-"), mover.0)
}

/// Reads the text of [`write()`], in which no heap is smaller than `smallest`.
pub(crate) fn read(text: &str, smallest: u8) -> Result<(Vec<u8>, Seat), String> {
    let [heaps, mover] = fields(text)?;
    let sizes = smallest..=LARGEST;
    let heap = |text: &str| number(text).filter(|size| sizes.contains(size));
    let heaps = heaps.split('-').map(heap).collect::<Option<_>>();
    let heaps = heaps.ok_or_else(|| format!("a heap is a whole number from {smallest} to {LARGEST}"))?;
    Ok((heaps, read_mover(mover, &SEAT_DIGITS[..2])?))
}
