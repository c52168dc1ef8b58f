//! `agon audit`: prints the audit log of workers and runs.

use std::io::Write as _;

use agon_proto::v1;
use clap::Args;
use serde::{Serialize, Serializer};

use super::client::Address;
use crate::fail::Outcome;
use crate::table::{folded, null_if_empty, print, sentence_width, utc};

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
struct Entry<'a>(#[serde(with = "EntryJson")] &'a v1::AuditEntry);

/// The JSON fields of an entry.
#[derive(Serialize)]
#[serde(remote = "v1::AuditEntry")]
struct EntryJson {
    number: u64,
    #[serde(rename = "at", serialize_with = "serialize_time")]
    at_us: i64,
    kind: String,
    #[serde(serialize_with = "null_if_empty")]
    worker: String,
    #[serde(serialize_with = "null_if_empty")]
    run: String,
    bout: Option<u64>,
    text: String,
}

fn serialize_time<S: Serializer>(at_us: &i64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&utc(*at_us))
}

impl Audit {
    pub fn run(self) -> Outcome {
        let request = v1::ListAuditRequest {
            worker: self.worker.unwrap_or_default(),
            run: self.run.unwrap_or_default(),
            limit: self.limit,
        };
        let entries = self.address.ask(async |operator| operator.list_audit(request.clone()).await)?.entries;
        let document = serde_json::json!({ "entries": entries.iter().map(Entry).collect::<Vec<_>>() });
        print(self.json, &document, |out| {
            if entries.is_empty() {
                writeln!(out, "no entries")?;
            }
            for entry in &entries {
                let mut text = format!("{} {}", utc(entry.at_us), entry.kind);
                for name in [&entry.worker, &entry.run].into_iter().filter(|name| !name.is_empty()) {
                    text.push_str(&format!(" {name}"));
                }
                if let Some(bout) = entry.bout.filter(|_| !entry.run.is_empty()) {
                    text.push_str(&format!(" bout {bout}"));
                }
                text.push_str(&format!(": {}", entry.text));
                writeln!(out, "{}", folded(&text, sentence_width() - 2).join("\n  "))?;
            }
            Ok(())
        })
    }
}
