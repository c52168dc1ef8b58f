//! Verification of a run's dataset: every bout once, every game complete, every ply legal.
//!
//! All faults are collected as [`Problem`]s. Games are checked against the schedule of the run's own spec by the referee
//! that the coordinator uses. Deliberately not here: the search results, which only [`mod@crate::replay`] can check.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use agon_arena::spec::Plan;
use agon_arena::{Bout, GameRequest, Spec};
use agon_records::{BoutRows, MoveRow, Plies, ReadError, Table, check_game, check_probe, content_digest};
use agon_schedule::schedule::Schedule;
use agon_storage::bout_ranges::BoutRanges;
use agon_storage::completeness::missing;
use bytes::Bytes;
use serde::Serialize;

use crate::dataset::{Dataset, DatasetError, Part, Run};
use crate::tune::feed_results;

/// BLAKE3 context of a run's content digest.
const CONTENT: &str = "agon run content, version 1";

/// Length of the content digest in hexadecimal digits.
const CONTENT_LENGTH: usize = 32;

/// The result of verifying a run.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize)]
pub struct Verified {
    /// The run.
    pub run: String,
    /// Distinct bouts found.
    pub bouts: u64,
    /// Rows of games.
    pub games: u64,
    /// Rows of moves.
    pub moves: u64,
    /// Rows of probes.
    pub probes: u64,
    /// Digest of the content: equal for two datasets whose bouts have the same numbers and content, regardless of workers,
    /// times and parts.
    pub content: String,
    /// All problems found.
    pub problems: Vec<Problem>,
}

/// A fault and its location.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Problem {
    /// File within the data folder; `None` for the run as a whole.
    pub file: Option<String>,
    /// The bout.
    pub bout: Option<u64>,
    /// Game of the bout, or search of the probe.
    pub game: Option<u16>,
    /// Description.
    pub reason: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let location = [
            self.file.clone(),
            self.bout.map(|bout| format!("bout {bout}")),
            self.game.map(|game| format!("game {game}")),
        ];
        for location in location.into_iter().flatten() {
            write!(f, "{location}: ")?;
        }
        f.write_str(&self.reason)
    }
}

impl Verified {
    /// Returns whether there are no problems.
    pub fn is_ok(&self) -> bool {
        self.problems.is_empty()
    }
}

/// Verifies every run of a dataset, and reports runs without a manifest.
pub fn verify_all(dataset: &Dataset) -> Vec<Verified> {
    let mut all: Vec<Verified> = dataset.ids().iter().map(|id| verify(dataset, id)).collect();
    let reason = "this run has parts, but no manifest in `runs`".to_string();
    match dataset.orphaned_runs() {
        Ok(ids) => all.extend(ids.into_iter().map(|id| only_problem(id, reason.clone()))),
        Err(error) => all.push(only_problem(String::new(), error.to_string())),
    }
    all
}

/// Verifies the run with exactly this id.
pub fn verify(dataset: &Dataset, id: &str) -> Verified {
    let checked = dataset.run(id).map_err(|error| error.to_string()).and_then(|run| {
        let mut verifier = Verifier::new(run)?;
        verifier.run(dataset).map_err(|error| error.to_string())?;
        Ok(verifier.verified)
    });
    checked.unwrap_or_else(|reason| only_problem(id.to_string(), reason))
}

fn only_problem(run: String, reason: String) -> Verified {
    let problem = Problem { file: None, bout: None, game: None, reason };
    Verified { run, problems: vec![problem], ..Verified::default() }
}

struct Verifier {
    run: Run,
    schedule: Schedule,
    /// Names of parts, by their number in `seen`.
    files: Vec<String>,
    seen: BoutRanges,
    content: blake3::Hasher,
    verified: Verified,
}

impl Verifier {
    fn new(run: Run) -> Result<Verifier, String> {
        let spec = Spec::parse(&run.source).map_err(|error| format!("cannot parse the spec: {error}"))?;
        let schedule =
            Schedule::new(spec).map_err(|error| format!("the spec cannot be scheduled: {error}"))?;
        let verified = Verified { run: run.id.clone(), ..Verified::default() };
        let content = blake3::Hasher::new_derive_key(CONTENT);
        Ok(Verifier { run, schedule, files: Vec::new(), seen: BoutRanges::default(), content, verified })
    }

    fn problem(&mut self, part: Option<&Part>, bout: Option<u64>, game: Option<u16>, reason: String) {
        let file = part.map(|part| part.name.clone());
        self.verified.problems.push(Problem { file, bout, game, reason });
    }

    fn run(&mut self, dataset: &Dataset) -> Result<(), DatasetError> {
        // 1. The manifest. The bouts of a tune depend on the results before them, and so may their number. Unreadable parts are
        // reported below.
        let _ = feed_results(dataset, &self.run, &mut self.schedule);
        self.check_manifest();
        // 2. Games with their moves, part by part.
        let moves = dataset.parts(&self.run, Table::Moves)?;
        let mut moves: BTreeMap<String, Part> =
            moves.into_iter().map(|part| (part.file_name().to_string(), part)).collect();
        let games = dataset.parts(&self.run, Table::Games)?;
        let probes = dataset.parts(&self.run, Table::Probes)?;
        let last = games.iter().chain(&probes).filter_map(|part| part.bouts).map(|(first, _)| first).max();
        for part in &games {
            self.check_games(part, moves.remove(part.file_name()).as_ref());
        }
        // 3. Moves are published before their games, so they may be alone in an open run.
        for part in moves.values().filter(|_| !self.run.state.is_open()).collect::<Vec<_>>() {
            self.problem(Some(part), None, None, "the part of games for these moves is missing".to_string());
        }
        // 4. Probes.
        for part in &probes {
            self.check_probes(part);
        }
        // 5. Missing bouts.
        self.verified.bouts = self.seen.bouts();
        self.verified.content = self.content.finalize().to_hex()[..CONTENT_LENGTH].to_string();
        let missing = missing(&self.run, self.schedule.bouts(), &self.seen, last.unwrap_or(0));
        if let Some(reason) = missing {
            self.problem(None, None, None, reason);
        }
        Ok(())
    }

    fn check_manifest(&mut self) {
        let canonical = self.run.source.canonical().unwrap_or_default();
        if blake3::hash(canonical.as_bytes()).to_hex().as_str() != self.run.digest {
            self.problem(None, None, None, "the digest in the manifest is not that of its spec".to_string());
        }
        let (manifest, scheduled) = (self.run.bouts, self.schedule.bouts());
        if manifest != scheduled {
            let reason = format!("the manifest has {manifest} bouts, the spec has {scheduled}");
            self.problem(None, None, None, reason);
        }
    }

    /// Reads the rows of a part, or reports why it cannot be read.
    fn rows<T>(
        &mut self,
        part: &Part,
        decoder: impl Fn(Bytes) -> Result<Vec<T>, ReadError>,
    ) -> Option<Vec<T>> {
        match part.read(decoder) {
            Ok(rows) => Some(rows),
            Err(error) => {
                // The problem already names the file.
                let reason = match error {
                    DatasetError::Part { source, .. } => source.to_string(),
                    error => error.to_string(),
                };
                self.problem(Some(part), None, None, reason);
                None
            }
        }
    }

    fn check_games(&mut self, games_part: &Part, moves_part: Option<&Part>) {
        let games = self.rows(games_part, agon_records::read_games);
        let moves = match moves_part {
            Some(part) => self.rows(part, agon_records::read_moves),
            None => {
                let reason = "the part of moves for these games is missing".to_string();
                self.problem(Some(games_part), None, None, reason);
                None
            }
        };
        self.verified.games += games.as_ref().map_or(0, |rows| rows.len() as u64);
        self.verified.moves += moves.as_ref().map_or(0, |rows| rows.len() as u64);
        let number = self.files.len();
        self.files.push(games_part.name.clone());
        // If either part is unreadable, the bouts of the games are still recorded as seen.
        let (Some(games), Some(moves)) = (&games, moves) else {
            let bouts: Vec<u64> = games.iter().flatten().map(|row| row.bout).collect();
            for bout in bouts.chunk_by(PartialEq::eq).map(|same| same[0]) {
                self.scheduled(games_part, number, bout);
            }
            return;
        };
        let moves_part = moves_part.expect("moves were read from a part");
        for (bout, rows) in BoutRows::by_bout(games.iter().cloned(), moves, []) {
            if rows.games.is_empty() {
                let reason = "moves without a game".to_string();
                self.problem(Some(moves_part), Some(bout), None, reason);
                continue;
            }
            let Some(scheduled) = self.scheduled(games_part, number, bout) else { continue };
            self.add_content(bout, &rows);
            self.check_bout(&scheduled, &rows, games_part, moves_part);
        }
    }

    /// Records a bout as seen and returns what the schedule has there.
    fn scheduled(&mut self, part: &Part, number: usize, bout: u64) -> Option<Bout> {
        if bout >= self.schedule.bouts() {
            let reason = format!("the run has only {} bouts, counted from 0", self.schedule.bouts());
            self.problem(Some(part), Some(bout), None, reason);
            return None;
        }
        if let Some(other) = self.seen.add(bout, number) {
            let reason = format!("duplicate bout; the first is in {}", self.files[other]);
            self.problem(Some(part), Some(bout), None, reason);
            return None;
        }
        if !part.may_contain(bout) {
            let reason = "the bout is outside the range in the file name".to_string();
            self.problem(Some(part), Some(bout), None, reason);
        }
        match self.schedule.draw_bout(bout) {
            Ok(scheduled) => Some(scheduled),
            Err(error) => {
                self.problem(Some(part), Some(bout), None, error.to_string());
                None
            }
        }
    }

    /// Adds a bout to the content digest. Precondition: bouts are added in ascending order.
    fn add_content(&mut self, bout: u64, rows: &BoutRows) {
        self.content.update(&bout.to_le_bytes()).update(&content_digest(rows));
    }

    fn check_bout(&mut self, bout: &Bout, rows: &BoutRows, games_part: &Part, moves_part: &Part) {
        let index = Some(bout.index);
        if let Plan::Probe(_) = self.schedule.spec().plan {
            self.problem(Some(games_part), index, None, "a probe has no games".to_string());
            return;
        }
        let requests: Vec<GameRequest> = self.schedule.spec().games(bout, 1.0).collect();
        let numbers: Vec<usize> = rows.games.iter().map(|row| usize::from(row.game)).collect();
        if !numbers.iter().copied().eq(0..requests.len()) {
            let reason =
                format!("its games are {numbers:?}, expected each once from 0 to {}", requests.len() - 1);
            self.problem(Some(games_part), index, None, reason);
            return;
        }
        let mut moves: HashMap<u16, &[MoveRow]> = rows
            .moves
            .chunk_by(|one, next| one.game == next.game)
            .map(|moves| (moves[0].game, moves))
            .collect();
        for (request, row) in requests.iter().zip(&rows.games) {
            let own = moves.remove(&row.game).unwrap_or_default();
            let (spec, referee) = (self.schedule.spec(), self.schedule.referee());
            let settings = spec.settings(&bout.values, &request.seats);
            if row.settings != settings {
                let (found, expected) = (row.settings.join("; "), settings.join("; "));
                let reason =
                    format!("the settings of the players are `{found}`, the tune expects `{expected}`");
                self.problem(Some(games_part), index, Some(row.game), reason);
                continue;
            }
            let plies: Plies = own.iter().collect();
            if let Err(fault) = check_game(spec, referee, request, row, &plies, plies.indices()) {
                let part = if fault.table == Table::Games { games_part } else { moves_part };
                self.problem(Some(part), index, Some(row.game), fault.reason);
            }
        }
        for game in moves.into_keys() {
            self.problem(Some(moves_part), index, Some(game), "moves without a game".to_string());
        }
    }

    fn check_probes(&mut self, part: &Part) {
        let rows = self.rows(part, agon_records::read_probes);
        let number = self.files.len();
        self.files.push(part.name.clone());
        let Some(rows) = rows else { return };
        self.verified.probes += rows.len() as u64;
        for (index, bout) in BoutRows::by_bout([], [], rows) {
            let Some(scheduled) = self.scheduled(part, number, index) else { continue };
            self.add_content(index, &bout);
            let numbers: Vec<usize> = bout.probes.iter().map(|row| usize::from(row.decision.game)).collect();
            let players = self.schedule.spec().players.len();
            if !matches!(self.schedule.spec().plan, Plan::Probe(_)) || !numbers.iter().copied().eq(0..players)
            {
                let reason = format!("its searches are {numbers:?}, expected each player's once");
                self.problem(Some(part), Some(index), None, reason);
                continue;
            }
            for row in &bout.probes {
                let Bout { players, opening, .. } = &scheduled;
                let (spec, referee) = (self.schedule.spec(), self.schedule.referee());
                if let Err(reason) = check_probe(spec, referee, players, opening, row) {
                    self.problem(Some(part), Some(index), Some(row.decision.game), reason);
                }
            }
        }
    }
}
