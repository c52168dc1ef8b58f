//! `agon sql`: a question in SQL to one run. The engine is DataFusion, behind the feature `sql`, since its build takes longer
//! than all the rest; without it the command says how to get it.

#[cfg(feature = "sql")]
mod answer;

use agon_storage::location::Location;
use clap::Args;

use crate::fail::{Outcome, WrongCall};
use crate::number::whole;

/// Rows that people are shown where they do not say how many.
const SHOWN: usize = 100;

/// The arguments of `agon sql`.
#[derive(Args)]
#[command(allow_missing_positional = true)]
#[cfg_attr(not(feature = "sql"), allow(dead_code, reason = "the call is read and checked all the same"))]
pub struct Sql {
    /// Run id, name or unique prefix, or `latest`
    #[arg(value_name = "RUN", default_value = "latest")]
    run: String,
    /// Query over the tables games, moves and probes; docs/dataset.md lists the columns
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
    /// The engine reads files, and files alone.
    fn check(&self) -> Result<(), WrongCall> {
        match &self.data {
            Location::Folder(_) => Ok(()),
            store => Err(WrongCall(format!(
                "agon sql asks a folder, and {store} is none; copy the dataset to one, or ask with DuckDB"
            ))),
        }
    }

    /// Runs the command.
    #[cfg(not(feature = "sql"))]
    pub fn run(self) -> Outcome {
        self.check()?;
        anyhow::bail!(
            "this agon was built without SQL; `cargo build --release --features sql` builds it with it, which takes some \
             minutes more, and docs/dataset.md asks the same with DuckDB and Polars"
        )
    }

    /// Runs the command.
    #[cfg(feature = "sql")]
    pub fn run(self) -> Outcome {
        self.check()?;
        answer::answer(&self)
    }
}
