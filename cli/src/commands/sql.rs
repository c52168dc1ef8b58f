//! `agon sql`: a question in SQL to one run. The engine is DataFusion, behind the feature `sql`, since its build takes longer
//! than all the rest; without it the command says how to get it.

#[cfg(feature = "sql")]
mod answer;

use std::path::PathBuf;

use clap::Args;

use crate::fail::Outcome;
use crate::number::whole;

/// Rows that people are shown where they do not say how many.
const SHOWN: usize = 100;

/// The arguments of `agon sql`.
#[derive(Args)]
#[command(after_help = "The tables are games, moves and probes; docs/dataset.md has every column.\n\
                  Example: agon sql latest \"select player, avg(nodes) from moves group by player\"")]
#[cfg_attr(not(feature = "sql"), allow(dead_code, reason = "the call is read and checked all the same"))]
pub struct Sql {
    /// The run: its id or name, the beginning of one, or latest
    #[arg(value_name = "RUN")]
    run: String,
    /// The question
    #[arg(value_name = "SELECT")]
    question: String,
    /// The data folder
    #[arg(long, value_name = "DIR", default_value = "agon-data")]
    data: PathBuf,
    /// Show at most so many rows
    #[arg(long, value_name = "N", default_value_t = SHOWN, value_parser = whole::<usize>("the number of rows", 1, u64::from(u32::MAX)), allow_negative_numbers = true, conflicts_with_all = ["json", "csv"])]
    rows: usize,
    /// Megabytes of memory that sorting, grouping and joining may take
    #[arg(long, value_name = "MB", default_value_t = 500, value_parser = whole::<usize>("the memory", 16, 1 << 20), allow_negative_numbers = true)]
    memory: usize,
    /// Print comma-separated values, the names of the columns first
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

impl Sql {
    /// Runs the command.
    #[cfg(not(feature = "sql"))]
    pub fn run(self) -> Outcome {
        anyhow::bail!(
            "this agon was built without SQL; `cargo build --release --features sql` builds it with it, which takes some \
             minutes more, and docs/dataset.md asks the same with DuckDB and Polars"
        )
    }

    /// Runs the command.
    #[cfg(feature = "sql")]
    pub fn run(self) -> Outcome {
        answer::answer(&self)
    }
}
