//! `agon sql`: SQL queries over one run. The engine, DataFusion, is behind the feature `sql` because its build takes longer
//! than that of everything else; without it the command explains how to build it.

#[cfg(feature = "sql")]
mod answer;

use agon_storage::location::Location;
use clap::Args;

use crate::fail::{Outcome, bail_usage};
use crate::number::whole;

/// The default number of rows in a table.
const SHOWN: usize = 100;

#[derive(Args)]
#[command(allow_missing_positional = true)]
#[cfg_attr(not(feature = "sql"), allow(dead_code, reason = "arguments are checked in every build"))]
pub struct Sql {
    /// Run id, name or unique prefix, or `latest`
    #[arg(value_name = "RUN", default_value = "latest")]
    run: String,
    /// Query over the tables games, moves and probes; docs/reference/dataset.md lists the columns
    #[arg(value_name = "SELECT")]
    question: String,
    /// Maximum number of rows to show
    #[arg(long, value_name = "N", default_value_t = SHOWN, value_parser = whole::<usize>("the number of rows", 1, u64::from(u32::MAX)), allow_negative_numbers = true, conflicts_with_all = ["json", "csv"])]
    rows: usize,
    /// Print CSV with a header
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
    /// Data folder
    #[arg(long, value_name = "DIR", default_value = "agon-data")]
    data: Location,
    /// Memory limit for sorting, grouping and joining, in MB
    #[arg(long, value_name = "MB", default_value_t = 500, value_parser = whole::<usize>("the memory", 16, 1 << 20), allow_negative_numbers = true)]
    memory: usize,
}

impl Sql {
    /// Returns the data folder. Rejects object stores, which the engine does not read.
    fn folder(&self) -> anyhow::Result<&Location> {
        if let Location::Store(store) = &self.data {
            bail_usage!(
                "agon sql reads folders, not {store}; copy the dataset to a folder, or query it with DuckDB"
            );
        }
        Ok(&self.data)
    }

    #[cfg(not(feature = "sql"))]
    pub fn run(self) -> Outcome {
        self.folder()?;
        anyhow::bail!(
            "this agon was built without SQL; build it with `cargo build --release --features sql`, or query the dataset \
             with DuckDB or Polars as in docs/reference/dataset.md"
        )
    }

    #[cfg(feature = "sql")]
    pub fn run(self) -> Outcome {
        answer::answer(&self)
    }
}
