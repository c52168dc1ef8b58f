//! Search algorithms, generic in the game, with node counts, budgets and reproducible results.
//!
//! Deliberately not here: the rules of any game, configuration files, threads, unseeded randomness.

pub mod baseline;
pub mod bounds;
pub mod budget;
pub mod chance;
pub mod clock;
pub mod counters;
pub mod deepening;
pub mod duel;
pub mod effort;
pub mod evaluate;
pub mod many;
mod memory;
pub mod ordering;
pub mod pv;
pub mod rate;
pub mod report;
pub mod sampling;
pub mod searcher;
pub mod table;
pub mod value;

pub use bounds::{Allowance, BoundExceeded, SearchNumbers};
pub use budget::{Budget, BudgetExhausted, Limit, SearchControl};
pub use counters::{CounterInfo, Counters};
pub use report::{Iteration, SearchResult};
pub use searcher::Searcher;
pub use value::{Proof, Score, Value};
