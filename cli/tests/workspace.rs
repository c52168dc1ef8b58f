//! Tests across crates: their dependencies, and results that two of them compute.

#![allow(clippy::unwrap_used, reason = "a failing test panics")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;

use agon_analysis::Dataset;
use agon_analysis::results::results;
use agon_coordinator::standings::{RunTotals, Standings};
use agon_stats::plackett_luce::DEFAULT_REPLICAS;
use agon_stats::tournament::{Options, Resampling};
use agon_storage::summarise;
use agon_testing::sample::SampleDataset;
use agon_testing::specs::THREE_SEATS;

/// The crates of the workspace, each with the crates that it may depend on. A crate depends only on crates above it.
const PERMITTED: &[(&str, &[&str])] = &[
    ("files", &[]),
    ("games", &[]),
    ("stats", &[]),
    ("search", &["games"]),
    ("arena", &["games", "search"]),
    ("records", &["games", "search", "arena"]),
    ("schedule", &["games", "stats", "arena"]),
    ("storage", &["files", "arena", "records", "schedule"]),
    ("analysis", &["games", "stats", "search", "arena", "records", "schedule", "storage"]),
    ("proto/codegen", &[]),
    ("proto", &["games", "search", "arena", "records"]),
    ("transport", &["games", "files"]),
    ("worker", &["games", "search", "arena", "records", "schedule", "proto", "transport"]),
    (
        "coordinator",
        &["games", "stats", "search", "arena", "records", "schedule", "storage", "proto", "transport"],
    ),
    ("simulation", &["stats"]),
    ("testing", &["arena", "records", "schedule", "analysis", "proto", "transport"]),
    (
        "cli",
        &[
            "files",
            "games",
            "stats",
            "search",
            "arena",
            "records",
            "schedule",
            "storage",
            "analysis",
            "proto",
            "transport",
            "worker",
            "coordinator",
        ],
    ),
    (
        "bench",
        &[
            "stats",
            "simulation",
            "search",
            "arena",
            "records",
            "schedule",
            "storage",
            "analysis",
            "proto",
            "transport",
            "worker",
            "coordinator",
            "testing",
            "cli",
        ],
    ),
];

/// The number of crates, from the first, that are pure or only read and write files.
const READERS: usize = 9;
/// External crates that those must not depend on.
const SERVICES: [&str; 4] = ["rusqlite", "tonic", "prost", "prometheus-client"];

#[test]
fn crates_depend_only_on_permitted_crates() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let manifest = |folder: &str| -> toml::Table {
        fs::read_to_string(root.join(folder).join("Cargo.toml")).unwrap().parse().unwrap()
    };
    let workspace = manifest(".");
    let members = workspace["workspace"]["members"].as_array().unwrap();
    let members: BTreeSet<&str> = members.iter().map(|member| member.as_str().unwrap()).collect();
    let permitted: BTreeMap<&str, &[&str]> = PERMITTED.iter().copied().collect();
    assert_eq!(members, permitted.keys().copied().collect());
    for (number, (name, allowed)) in PERMITTED.iter().enumerate() {
        let above: BTreeSet<&str> = PERMITTED[..number].iter().map(|(name, _)| *name).collect();
        assert!(allowed.iter().all(|allowed| above.contains(allowed)), "{name} depends on a crate below it");
        let manifest = manifest(name);
        let Some(dependencies) = manifest.get("dependencies").and_then(toml::Value::as_table) else {
            continue;
        };
        for dependency in dependencies.keys() {
            if let Some(member) = dependency.strip_prefix("agon-") {
                assert!(allowed.contains(&member), "{name} must not depend on {dependency}");
            }
            let is_service = SERVICES.contains(&dependency.as_str());
            assert!(!is_service || number >= READERS, "{name} must not depend on {dependency}");
        }
    }
}

/// The live standings and the ratings of the dataset are the same numbers.
#[test]
fn live_standings_equal_dataset_ratings() {
    let threads = |count| NonZeroUsize::new(count).unwrap();
    for sample in [SampleDataset::three_players(), SampleDataset::play(THREE_SEATS)] {
        let dataset = Dataset::open(sample.folder()).unwrap();
        let run = dataset.find("latest").unwrap();
        let spec = run.spec().unwrap();
        let mut live = Standings::new(&spec, RunTotals::default()).unwrap();
        for (bout, rows) in &sample.bouts {
            live.add(*bout, &summarise(&spec, &rows.into()));
        }
        let resampling = Some(Resampling { replicas: DEFAULT_REPLICAS, seed: 1, threads: threads(1) });
        let options = Options { resampling, ..Options::default() };
        let counted = results(&dataset, &run, &spec, threads(2)).unwrap().tally;
        let answer = counted.rate(&options, &|| ()).unwrap();
        let (table, conclusion) = live.table(true);
        assert_eq!(table.len(), 3);
        assert_eq!(conclusion, answer.conclusion(), "one verdict, live and from a dataset");
        for (live, row) in table.iter().zip(answer.standings()) {
            assert_eq!(
                (&live.player, live.elo, live.low, live.high),
                (&row.name, Some(row.elo), row.low, row.high)
            );
            assert_eq!(
                (live.games, live.wins, live.draws, live.losses, Some(live.score)),
                (row.games, row.wins, row.draws, row.losses, row.score)
            );
        }
    }
}
