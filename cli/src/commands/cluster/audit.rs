//! `agon audit`: what was written down about workers and runs.

use std::io::{self, Write as _};
use std::process::ExitCode;

use agon_proto::v1;
use clap::Args;
use serde::Serialize;

use super::block_on;
use super::client::{Address, told};
use crate::fail::Outcome;
use crate::table::{COLUMNS, folded, utc, write_json};

/// The arguments of `agon audit`.
#[derive(Args)]
pub struct Audit {
    /// Only entries about this run: id, unique prefix, or `latest`
    #[arg(long)]
    run: Option<String>,
    /// Only entries about this worker
    #[arg(long)]
    worker: Option<String>,
    /// Maximum number of entries, newest kept
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: u32,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    address: Address,
}

#[derive(Serialize)]
struct EntryJson {
    number: u64,
    at: String,
    kind: String,
    worker: Option<String>,
    run: Option<String>,
    bout: Option<u64>,
    text: String,
}

impl From<v1::AuditEntry> for EntryJson {
    fn from(entry: v1::AuditEntry) -> EntryJson {
        let given = |text: String| Some(text).filter(|text| !text.is_empty());
        EntryJson {
            number: entry.number,
            at: utc(entry.at_us),
            kind: entry.kind,
            worker: given(entry.worker),
            run: given(entry.run),
            bout: entry.bout,
            text: entry.text,
        }
    }
}

impl Audit {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        block_on(async move {
            let mut operator = self.address.connect().await?;
            let request = v1::ListAuditRequest {
                worker: self.worker.unwrap_or_default(),
                run: self.run.unwrap_or_default(),
                limit: self.limit,
            };
            let answer = operator.list_audit(request).await.map_err(|status| told(&status))?;
            let entries: Vec<EntryJson> =
                answer.into_inner().entries.into_iter().map(EntryJson::from).collect();
            let mut out = io::stdout().lock();
            if self.json {
                write_json(&serde_json::json!({ "entries": entries }), &mut out)?;
            } else if entries.is_empty() {
                writeln!(out, "nothing was written down")?;
            }
            for entry in entries.iter().filter(|_| !self.json) {
                let place = match (&entry.run, entry.bout) {
                    (Some(run), Some(bout)) => format!(" {run} bout {bout}"),
                    (Some(run), None) => format!(" {run}"),
                    _ => String::new(),
                };
                let worker = entry.worker.as_ref().map(|worker| format!(" {worker}")).unwrap_or_default();
                let text = format!("{} {}{worker}{place}: {}", entry.at, entry.kind, entry.text);
                // What goes on in a further line stands below the words and not below the time.
                for (index, line) in folded(&text, COLUMNS - 2).iter().enumerate() {
                    let indent = if index == 0 { "" } else { "  " };
                    writeln!(out, "{indent}{line}")?;
                }
            }
            Ok(ExitCode::SUCCESS)
        })
    }
}
