//! A small dataset in a temporary folder: played by the arena, written by the records, laid out as a coordinator does.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use agon_arena::spec::Plan;
use agon_arena::{Arena, Environment, PlayerConfig, SeedPath, Spec, SpecSource};
use agon_records::{BoutRows, GameHead, MoveRow, ProbeRow, SearchRow};
use agon_schedule::schedule::{Bout, Schedule};
use serde_json::{Value, json};

/// Bouts of a part.
pub const PART: u64 = 2;

/// Two players, one of whom draws, over three openings: three bouts of two games, in two parts.
pub const TOURNAMENT: &str = r#"
name = "small"
game = "connect-four"
seed = 7
limit = { nodes = 60 }
openings = { random_plies = 3 }
[tournament]
format = "round-robin"
bouts = 3
[[player]]
name = "deep"
search = { algorithm = "pvs" }
[[player]]
name = "wide"
search = { algorithm = "uct" }
"#;

/// Two players search three positions.
pub const PROBE: &str = r#"
name = "probe"
game = "connect-four"
limit = { depth = 3 }
[probe]
positions = { random = 3, plies = [2, 5] }
[[player]]
name = "plain"
search = { algorithm = "minimax" }
[[player]]
name = "pruned"
search = { algorithm = "alpha-beta" }
"#;

/// Three players in three seats.
pub const THREE_SEATS: &str = r#"
name = "three"
game = "virus:seats=3,size=5"
seed = 7
limit = { nodes = 40 }
openings = { random_plies = 3 }
[tournament]
format = "round-robin"
bouts = 8
[[player]]
name = "a"
search = { algorithm = "paranoid" }
[[player]]
name = "b"
search = { algorithm = "max-n" }
[[player]]
name = "c"
search = { algorithm = "greedy" }
"#;

pub struct SampleDataset {
    folder: tempfile::TempDir,
    pub id: String,
    pub bouts: BTreeMap<u64, BoutRows>,
    /// The run's manifest.
    pub manifest: Value,
}

impl SampleDataset {
    /// Plays every bout of a spec and writes the dataset.
    pub fn play(text: &str) -> SampleDataset {
        let source = SpecSource { text: text.to_string(), ..SpecSource::default() };
        let mut schedule = Schedule::new(Spec::parse(&source).unwrap()).unwrap();
        let spec = schedule.spec().clone();
        let configs: Vec<PlayerConfig> = spec.players.iter().map(|player| player.config.clone()).collect();
        let mut arena = Arena::new(&spec.game, &configs, Environment::system()).unwrap();
        let mut bouts = BTreeMap::new();
        for index in 0..schedule.bouts() {
            let bout = schedule.bout(index).unwrap();
            let rows = match spec.plan {
                Plan::Tournament(_) | Plan::Tune(_) => games(&schedule, &bout, &mut arena),
                Plan::Probe(_) => searches(&spec, &bout, &mut arena),
            };
            bouts.insert(index, rows);
        }
        let digest = blake3::hash(source.canonical().unwrap().as_bytes()).to_hex().to_string();
        let id = format!("{}-{}", spec.name, &digest[..8]);
        let manifest = json!({
            "run": id, "spec": text, "files": {}, "digest": digest, "build": env!("CARGO_PKG_VERSION"), "signature": "",
            "bouts": schedule.bouts(), "committed": schedule.bouts(), "failed": 0, "state": "done",
            "submitted_us": 1, "voided": [],
        });
        let sample = SampleDataset { folder: tempfile::tempdir().unwrap(), id, bouts, manifest };
        sample.write();
        sample
    }

    /// Plays thirty bouts of three players, in parts of two bouts.
    pub fn of_three_players() -> SampleDataset {
        let third = "[[player]]\nname = \"greedy\"\nsearch = { algorithm = \"greedy\" }\n";
        SampleDataset::play(&(TOURNAMENT.replace("bouts = 3", "bouts = 10") + third))
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The path of a part within the folder.
    pub fn name(&self, table: &str, first: u64) -> String {
        let last = first + PART - 1;
        format!("{table}/run={}/part-{first:010}-{last:010}.parquet", self.id)
    }

    pub fn file(&self, table: &str, first: u64) -> PathBuf {
        self.folder().join(self.name(table, first))
    }

    /// Writes everything afresh.
    pub fn write(&self) {
        for table in ["games", "moves", "probes", "runs"] {
            let _ = fs::remove_dir_all(self.folder().join(table));
        }
        let mut parts: BTreeMap<u64, BoutRows> = BTreeMap::new();
        for (&bout, rows) in &self.bouts {
            let part = parts.entry(bout / PART * PART).or_default();
            part.games.extend(rows.games.clone());
            part.moves.extend(rows.moves.clone());
            part.probes.extend(rows.probes.clone());
        }
        for (&first, rows) in &parts {
            if !rows.games.is_empty() || !rows.moves.is_empty() {
                put(&self.file("games", first), &agon_records::write_games(&rows.games).unwrap());
                put(&self.file("moves", first), &agon_records::write_moves(&rows.moves).unwrap());
            }
            if !rows.probes.is_empty() {
                put(&self.file("probes", first), &agon_records::write_probes(&rows.probes).unwrap());
            }
        }
        self.write_run();
    }

    /// Writes the run's file.
    pub fn write_run(&self) {
        put(&self.folder().join(format!("runs/{}.json", self.id)), self.manifest.to_string().as_bytes());
    }

    pub fn bout(&mut self, bout: u64) -> &mut BoutRows {
        self.bouts.get_mut(&bout).unwrap()
    }

    /// The first search of a game in a bout.
    pub fn search(&mut self, bout: u64, game: u16) -> &mut SearchRow {
        let searched = |mv: &&mut MoveRow| mv.game == game && mv.search.is_some();
        self.bout(bout).moves.iter_mut().find(searched).unwrap().search.as_mut().unwrap()
    }
}

pub fn put(file: &Path, bytes: &[u8]) {
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, bytes).unwrap();
}

fn games(schedule: &Schedule, bout: &Bout, arena: &mut Arena) -> BoutRows {
    let spec = schedule.spec();
    let names: Vec<String> = spec.players.iter().map(|player| player.name.clone()).collect();
    let mut rows = BoutRows::default();
    for (index, request) in schedule.request(bout).games().enumerate() {
        let record = arena.play(&request, &mut |_| ()).unwrap();
        let head = GameHead {
            game: &spec.game,
            names: &names,
            opening: &bout.opening,
            bout: bout.index,
            index: index as u16,
            worker: "sample",
            build: "1",
            started: 5,
            speed_factor: 1.0,
            settings: &[],
        };
        rows.add_game(&head, &record).unwrap();
    }
    rows
}

/// In connect-four seats alternate, and so few plies fill no column.
fn searches(spec: &Spec, bout: &Bout, arena: &mut Arena) -> BoutRows {
    let seed = SeedPath { run: spec.seed, bout: bout.index, game: 0 }.game_seed();
    let plies = bout.opening.moves.split(' ').count() as u16;
    let search = |(index, player): (usize, &agon_arena::spec::SpecPlayer)| {
        let record = arena.search(index, &bout.opening, player.limit, seed, &mut |_| ()).unwrap();
        let name = player.name.clone();
        let decision = agon_arena::Decision { seat: usize::from(plies % 2), legal: 7 };
        ProbeRow::new(bout.index, index as u16, &bout.opening, decision, name, &record).unwrap()
    };
    BoutRows { probes: spec.players.iter().enumerate().map(search).collect(), ..BoutRows::default() }
}
