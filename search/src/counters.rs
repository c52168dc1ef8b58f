//! The counters of a search: one list that rows, the wire, digests, Parquet columns and JSON follow.
//!
//! To add a counter, append it to the list and increment it where it is counted. The order is part of the dataset,
//! the wire and the digests: counters are appended, never moved or removed.

use serde::Serialize;

/// The name and the meaning of a counter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CounterInfo {
    /// The name, also of the dataset column.
    pub name: &'static str,
    /// The unit; empty for events.
    pub unit: &'static str,
    /// The description.
    pub description: &'static str,
}

macro_rules! counters {
    ($($name:ident, $unit:literal, $description:literal;)*) => {
        /// The counters of a search, summed over its iterations.
        #[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
        pub struct Counters {
            $(#[doc = $description] pub $name: u64,)*
        }

        impl Counters {
            /// All counters, in order.
            pub const LIST: &'static [CounterInfo] = &[
                $(CounterInfo { name: stringify!($name), unit: $unit, description: $description },)*
            ];

            /// Returns the values in order.
            pub fn values(&self) -> [u64; Counters::COUNT] {
                [$(self.$name,)*]
            }

            /// Creates counters from values in order.
            pub fn from_values([$($name,)*]: [u64; Counters::COUNT]) -> Counters {
                Counters { $($name,)* }
            }
        }
    };
}

counters! {
    nodes, "nodes", "positions entered: root, leaves and quiescence included, summed over iterations";
    leaves, "nodes", "static evaluations and ends";
    quiescence_nodes, "nodes", "positions entered by quiescence search";
    cutoffs, "nodes", "nodes left early because a move was too good";
    first_move_cutoffs, "nodes", "those of them where it was the first move";
    table_probes, "", "looks into the transposition table";
    table_hits, "", "looks that found the position";
    table_stores, "", "entries written";
    researches, "", "searches repeated with another window";
    simulations, "", "playouts or descents of a sampling search";
    tree_nodes, "nodes", "nodes in the tree of a sampling search at its end";
    playout_plies, "plies", "plies played in playouts";
    proven_plies, "plies", "plies within which the value is proven; 0 if it is not";
}

impl Counters {
    /// The number of counters.
    pub const COUNT: usize = Counters::LIST.len();

    /// The number of counters that every dataset and build has. Later counters read as 0 in older datasets, and a
    /// value of 0 leaves digests and signatures unchanged.
    pub const ORIGINAL: usize = 12;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_keep_list_order() {
        let values = std::array::from_fn(|index| index as u64 + 1);
        let counters = Counters::from_values(values);
        assert_eq!(counters.values(), values);
        assert_eq!((counters.nodes, counters.playout_plies), (1, Counters::ORIGINAL as u64));
        assert_eq!(counters.proven_plies, Counters::ORIGINAL as u64 + 1);
        assert_eq!(Counters::LIST[Counters::ORIGINAL - 1].name, "playout_plies");
    }
}
