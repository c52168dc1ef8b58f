//! Othello: the published counts, famous short games, and passes.

use crate::harness::Variant;

pub const VARIANTS: &[Variant] = &[("othello", 100)];
