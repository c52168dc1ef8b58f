//! `agon-bench analysis`: time and memory of queries on a large dataset.
//!
//! The dataset is a tournament of connect-four at fixed depths, repeated with other bout numbers up to the requested number
//! of rows. Pages are compressed separately, so that the repetition does not make them smaller. Each query runs in its own
//! process, whose peak memory is measured. `bench/analysis.py` compares DuckDB and Polars on the same files.

mod make;

use std::hint::black_box;
use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use agon_analysis::Dataset;
use agon_analysis::pruning::{Settings, pruning};
use agon_analysis::results::results;
use agon_analysis::scan::{scan, whole_table};
use agon_records::{Batch, ReadError, Table as Rows};
use agon_search::rate::per_second;
use agon_stats::tournament::Options;
use anyhow::{Context as _, ensure};
use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

use agon::fail::Outcome;
use agon::number::whole;
use agon::progress::Progress;
use agon::table::{Align, Table, rate, write_json};

use crate::cluster::coordinator::{memory, processor_time};

/// The arguments of `agon-bench analysis`.
#[derive(Args)]
pub struct Analysis {
    /// Rows of moves
    #[arg(long, default_value = "50000000", value_parser = whole::<u64>("the number of rows", 100_000, 10_000_000_000))]
    rows: u64,
    /// Folder of the dataset, reused if present [default: a temporary folder]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Threads [default: one per core]
    #[arg(long, value_parser = whole::<u16>("the number of threads", 1, 1024))]
    threads: Option<u16>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
    /// Measure one query in this process
    #[arg(long, hide = true)]
    query: Option<Query>,
}

/// A query.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Query {
    /// Count, mean nodes and sum of cutoffs by player and depth
    Scan,
    /// The output of `agon pruning` without intervals
    Pruning,
    /// The output of `agon ratings` with errors by formula
    Ratings,
}

/// The measurement of a query.
#[derive(Serialize, Deserialize)]
struct Measurement {
    query: String,
    rows: u64,
    seconds: f64,
    rows_per_second: f64,
    /// Processor time of all threads.
    cpu_seconds: f64,
    /// The peak memory of the process, in bytes.
    peak_memory: u64,
    /// The result of [`Query::Scan`], for comparison.
    #[serde(default)]
    groups: Vec<Group>,
}

/// A player's searches that ended at a depth.
#[derive(Serialize, Deserialize)]
struct Group {
    player: String,
    depth: u16,
    count: u64,
    mean_nodes: f64,
    cutoffs: u64,
}

#[derive(Serialize)]
struct Document {
    data: PathBuf,
    files: usize,
    rows: u64,
    bytes_per_row: f64,
    queries: Vec<Measurement>,
}

impl Analysis {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let default = || std::env::temp_dir().join(format!("agon-bench-analysis-{}", self.rows));
        let data = self.data.clone().unwrap_or_else(default);
        if let Some(query) = self.query {
            let measurement = self.measure(query, &data)?;
            serde_json::to_writer(io::stdout().lock(), &measurement)?;
            return Ok(ExitCode::SUCCESS);
        }
        if !data.join("runs").is_dir() {
            let progress = Progress::default();
            make::dataset(&data, self.rows, self.threads(), &progress)?;
        }
        let document = self.document(data)?;
        let mut out = io::stdout().lock();
        if self.json {
            write_json(&document, &mut out)?;
        } else {
            write_document(&document, &mut out)?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn threads(&self) -> NonZeroUsize {
        let cores = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        self.threads.and_then(|threads| NonZeroUsize::new(usize::from(threads))).unwrap_or(cores)
    }

    fn document(&self, data: PathBuf) -> anyhow::Result<Document> {
        let queries = [Query::Scan, Query::Pruning, Query::Ratings]
            .into_iter()
            .map(|query| self.run_query(query, &data))
            .collect::<anyhow::Result<Vec<Measurement>>>()?;
        let dataset = Dataset::open(&data)?;
        let parts = dataset.parts(&dataset.find("latest")?, Rows::Moves)?;
        let mut bytes = 0;
        for part in &parts {
            bytes += part.size()?;
        }
        let rows = queries.first().map_or(0, |measurement| measurement.rows);
        let bytes_per_row = bytes as f64 / rows.max(1) as f64;
        Ok(Document { data, files: parts.len(), rows, bytes_per_row, queries })
    }

    /// Measures a query in its own process.
    fn run_query(&self, query: Query, data: &Path) -> anyhow::Result<Measurement> {
        let program = std::env::current_exe().context("cannot find the path of this program")?;
        let name = query.to_possible_value().expect("no query is hidden");
        let output = Command::new(program)
            .args(["analysis", "--query", name.get_name(), "--threads"])
            .arg(self.threads().to_string())
            .arg("--data")
            .arg(data)
            .output()
            .context("cannot start this program again")?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr).trim_end());
        Ok(serde_json::from_slice(&output.stdout)?)
    }

    fn measure(&self, query: Query, data: &Path) -> anyhow::Result<Measurement> {
        let dataset = Dataset::open(data)?;
        let run = dataset.find("latest")?;
        let threads = self.threads();
        let started = Instant::now();
        let (name, rows, groups) = match query {
            Query::Scan => {
                let parts = whole_table(&dataset, &run, Rows::Moves)?;
                let columns = ["player", "depth", "nodes", "cutoffs"];
                let counted = scan(&run, parts, &columns, threads, Counts::default, Counts::add)?;
                let counts = counted.into_iter().fold(Counts::default(), Counts::merged);
                ("count, mean nodes, cutoffs by player, depth", counts.rows, counts.groups())
            }
            Query::Pruning => {
                let report = pruning(&dataset, &run, Settings { replicas: 0, seed: 1, threads })?;
                let searches = report.players.iter().map(|player| player.searches).sum();
                ("pruning, without intervals", searches, Vec::new())
            }
            Query::Ratings => {
                let tally = results(&dataset, &run, &run.spec()?, threads)?.tally;
                black_box(tally.rate(&Options::default(), &|| ())?);
                // Each game is in the records of both its players.
                let games = tally.records().iter().map(|record| record.games).sum::<u64>() / 2;
                ("ratings, errors by formula; a row is a game", games, Vec::new())
            }
        };
        let elapsed = started.elapsed();
        Ok(Measurement {
            query: name.to_string(),
            rows,
            seconds: elapsed.as_secs_f64(),
            rows_per_second: per_second(rows, elapsed)?,
            cpu_seconds: processor_time("self")?.as_secs_f64(),
            peak_memory: memory("self", "VmHWM:")? as u64,
            groups,
        })
    }
}

/// Sums by player and depth.
#[derive(Default)]
struct Counts {
    rows: u64,
    names: Vec<String>,
    /// Count, nodes and cutoffs, by player and depth.
    sums: Vec<Vec<[u64; 3]>>,
}

impl Counts {
    fn add(&mut self, batch: &Batch) -> Result<(), ReadError> {
        let names = batch.names("player")?;
        let depth = batch.searched_smalls("depth", &names)?;
        let nodes = batch.searched_numbers("nodes", &names)?;
        let cutoffs = batch.searched_numbers("cutoffs", &names)?;
        let numbers: Vec<usize> = names.values().map(|name| self.number(name)).collect();
        let deepest = depth.iter().max().map_or(0, |&depth| usize::from(depth));
        for sums in &mut self.sums {
            sums.resize(sums.len().max(deepest + 1), [0; 3]);
        }
        self.rows += batch.rows() as u64;
        names.each(|row, key| {
            let [count, all_nodes, all_cutoffs] = &mut self.sums[numbers[key]][usize::from(depth[row])];
            *count += 1;
            *all_nodes += nodes[row];
            *all_cutoffs += cutoffs[row];
        });
        Ok(())
    }

    fn number(&mut self, name: &str) -> usize {
        self.names.iter().position(|known| known == name).unwrap_or_else(|| {
            self.names.push(name.to_string());
            self.sums.push(Vec::new());
            self.names.len() - 1
        })
    }

    fn merged(mut self, other: Counts) -> Counts {
        self.rows += other.rows;
        for (name, theirs) in other.names.iter().zip(other.sums) {
            let number = self.number(name);
            let own = &mut self.sums[number];
            own.resize(own.len().max(theirs.len()), [0; 3]);
            for (own, theirs) in own.iter_mut().zip(theirs) {
                own.iter_mut().zip(theirs).for_each(|(own, theirs)| *own += theirs);
            }
        }
        self
    }

    fn groups(&self) -> Vec<Group> {
        let mut groups = Vec::new();
        for (player, sums) in self.names.iter().zip(&self.sums) {
            for (depth, &[count, nodes, cutoffs]) in sums.iter().enumerate().filter(|(_, sums)| sums[0] > 0) {
                let (player, depth) = (player.clone(), depth as u16);
                groups.push(Group { player, depth, count, mean_nodes: nodes as f64 / count as f64, cutoffs });
            }
        }
        groups.sort_by(|one, other| (&one.player, one.depth).cmp(&(&other.player, other.depth)));
        groups
    }
}

fn write_document(document: &Document, out: &mut impl io::Write) -> io::Result<()> {
    let Document { data, files, rows, bytes_per_row, queries } = document;
    writeln!(out, "{rows} rows of moves in {files} files, {bytes_per_row:.1} bytes per row")?;
    writeln!(out, "{}", data.display())?;
    writeln!(out)?;
    let numbers = ["seconds", "rows/s", "CPU s", "peak MB"].map(|name| (name, Align::Right));
    let mut table = Table::new(&[&[("query", Align::Left)][..], &numbers[..]].concat());
    for measurement in queries {
        table.row([
            measurement.query.clone(),
            format!("{:.2}", measurement.seconds),
            rate(measurement.rows_per_second),
            format!("{:.2}", measurement.cpu_seconds),
            format!("{:.0}", measurement.peak_memory as f64 / 1e6),
        ]);
    }
    table.write(out)
}
