//! Statistics: ratings, sequential tests, pruning measures, tuning steps.
//!
//! Pure: no I/O, no clock; random draws take a seed. Every formula names its source. Wherever bouts are known, the
//! unit of evidence is the **bout** (all seatings of one opening), never the single game.

pub mod acquisition;
pub mod branching;
pub mod comparison;
mod dirichlet;
pub mod distribution;
pub mod elo;
pub mod gaussian_process;
pub mod homogeneity;
pub mod logistic;
pub mod multinomial;
pub mod outcome;
pub mod pairs;
pub mod parallel;
pub mod plackett_luce;
pub mod pool;
mod reachability;
pub mod replicas;
pub mod scale;
pub mod sprt;
pub mod spsa;
pub mod tournament;
