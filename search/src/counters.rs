//! The counters of a search: the one list that rows, the wire, digests, Parquet columns and JSON follow.
//!
//! A new counter is one line at the end of the list and the place that counts it. The order is part of the dataset, of the
//! wire and of the digests: counters are appended, never moved or removed.

use serde::Serialize;

/// The name and the meaning of a counter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CounterInfo {
    /// Its name, which is also that of its column.
    pub name: &'static str,
    /// The unit; empty for events.
    pub unit: &'static str,
    /// What it counts.
    pub description: &'static str,
}

macro_rules! counters {
    ($($name:ident, $unit:literal, $description:literal;)*) => {
        /// What a search counted, summed over its iterations.
        #[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
        pub struct Counters {
            $(#[doc = $description] pub $name: u64,)*
        }

        impl Counters {
            /// Every counter, in the order of the list.
            pub const LIST: &'static [CounterInfo] = &[
                $(CounterInfo { name: stringify!($name), unit: $unit, description: $description },)*
            ];

            /// Returns the values, in the order of the list.
            pub fn values(&self) -> [u64; Counters::COUNT] {
                [$(self.$name,)*]
            }

            /// Returns counters of these values, in the order of the list.
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
}

impl Counters {
    /// The number of counters.
    pub const COUNT: usize = Counters::LIST.len();

    /// The number of counters that every dataset and every build has. Those behind them in the list were added later: a
    /// dataset without them reads as 0, and a value of 0 leaves digests and signatures as they were.
    pub const ORIGINAL: usize = 12;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_keep_the_order_of_the_list() {
        let values = std::array::from_fn(|index| index as u64 + 1);
        let counters = Counters::from_values(values);
        assert_eq!(counters.values(), values);
        assert_eq!((counters.nodes, counters.playout_plies), (1, Counters::ORIGINAL as u64));
        assert_eq!(Counters::LIST[Counters::ORIGINAL - 1].name, "playout_plies");
    }
}
