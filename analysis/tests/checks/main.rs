//! Datasets that are as they should be pass, and each way to spoil one is named.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

use agon_testing::sample;

mod dataset;
mod pruning;
mod replay;
mod report;
mod results;
mod verify;
