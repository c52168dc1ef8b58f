//! The mathematics every answer rests on: ratings, sequential tests, pruning measures, tuning steps.
//!
//! Pure: no I/O, no clock, no hidden randomness; whatever draws takes a seed. Every formula names its source. The unit
//! of evidence is the **bout** (all seatings of one opening), never the single game, wherever bouts are known.

pub mod acquisition;
pub mod branching;
pub mod distribution;
pub mod elo;
pub mod gaussian_process;
pub mod homogeneity;
pub mod logistic;
pub mod multinomial;
pub mod outcome;
pub mod pairs;
mod parallel;
pub mod plackett_luce;
pub mod pool;
pub mod replicas;
pub mod scale;
pub mod simulate;
pub mod simulate_tuning;
pub mod sprt;
pub mod spsa;
pub mod tournament;
