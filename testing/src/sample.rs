//! A small dataset in a temporary folder: played by the arena, with the layout that a coordinator writes.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use agon_arena::spec::Plan;
use agon_arena::{Arena, Bout, SeedPath, Spec, SpecSource};
use agon_records::{BoutRows, MoveRow, ProbeRow, SearchRow};
use agon_schedule::schedule::Schedule;
use serde_json::{Value, json};

use crate::bouts::{arena, play_games};
use crate::specs::{TOURNAMENT, vary};

/// Bouts per part.
pub const PART: u64 = 2;

/// A run in a temporary folder.
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
        let mut arena = arena(&spec);
        let mut bouts = BTreeMap::new();
        for index in 0..schedule.bouts() {
            let bout = schedule.draw_bout(index).unwrap();
            let rows = match spec.plan {
                Plan::Tournament(_) | Plan::Tune(_) => play_bout(&schedule, &bout, &mut arena),
                Plan::Probe(_) => search_position(&spec, &bout, &mut arena),
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

    /// Plays thirty bouts of three players.
    pub fn three_players() -> SampleDataset {
        SampleDataset::play(&vary(TOURNAMENT).bouts(10).player("greedy", "algorithm = \"greedy\""))
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the path of a part within the folder.
    pub fn part_name(&self, table: &str, first: u64) -> String {
        let last = first + PART - 1;
        format!("{table}/run={}/part-{first:010}-{last:010}.parquet", self.id)
    }

    pub fn part_file(&self, table: &str, first: u64) -> PathBuf {
        self.folder().join(self.part_name(table, first))
    }

    /// Writes the whole dataset anew.
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
                write_file(&self.part_file("games", first), &agon_records::write_games(&rows.games).unwrap());
                write_file(&self.part_file("moves", first), &agon_records::write_moves(&rows.moves).unwrap());
            }
            if !rows.probes.is_empty() {
                write_file(
                    &self.part_file("probes", first),
                    &agon_records::write_probes(&rows.probes).unwrap(),
                );
            }
        }
        self.write_manifest();
    }

    /// Writes the run's manifest.
    pub fn write_manifest(&self) {
        write_file(
            &self.folder().join(format!("runs/{}.json", self.id)),
            self.manifest.to_string().as_bytes(),
        );
    }

    pub fn bout(&mut self, bout: u64) -> &mut BoutRows {
        self.bouts.get_mut(&bout).unwrap()
    }

    /// Returns the first search of a game.
    pub fn first_search(&mut self, bout: u64, game: u16) -> &mut SearchRow {
        let searched = |mv: &&mut MoveRow| mv.game == game && mv.search.is_some();
        self.bout(bout).moves.iter_mut().find(searched).unwrap().search.as_mut().unwrap()
    }
}

pub fn write_file(file: &Path, bytes: &[u8]) {
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, bytes).unwrap();
}

fn play_bout(schedule: &Schedule, bout: &Bout, arena: &mut Arena) -> BoutRows {
    play_games(schedule.spec(), arena, bout, ["sample", "1"], |_| 5)
}

/// Searches the position of a bout. In connect-four seats alternate, and a few plies fill no column.
fn search_position(spec: &Spec, bout: &Bout, arena: &mut Arena) -> BoutRows {
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
