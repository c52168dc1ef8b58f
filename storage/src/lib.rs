//! Where a dataset is stored, on this machine or in an object store.
//!
//! [`location`] names the place, [`layout`] the files in it, [`reader`] reads them and [`mod@write`] replaces them atomically.
//! [`ownership`] keeps a second writer away from an object store. [`bout_ranges`] and [`completeness`] find missing bouts.

pub mod bout_ranges;
pub mod completeness;
pub mod layout;
pub mod location;
pub mod ownership;
pub mod reader;
pub mod summary;
pub mod write;

pub use location::{Location, LocationError};
pub use summary::summarise;
