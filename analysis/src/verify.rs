//! Whether a run's dataset is whole and legal: every bout once, every game complete, every ply by the rules.
//!
//! Nothing stops at the first fault: each is a [`Problem`] that names its file, bout and game. Games are checked against
//! what the schedule of the run's own spec asks for, by the referee that the coordinator uses too. Deliberately not here:
//! what searches found, which only [`mod@crate::replay`] can check.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use agon_arena::spec::Plan;
use agon_arena::{GameRequest, Spec};
use agon_records::{BoutRows, MoveRow, Plies, ReadError, Table, check_game, check_probe, content_digest};
use agon_schedule::schedule::{Bout, Schedule};
use bytes::Bytes;
use serde::Serialize;

use crate::dataset::{Dataset, DatasetError, Part, Run};
use crate::tune::follow;
use agon_storage::bout_ranges::BoutRanges;
use agon_storage::completeness::missing;

/// What separates the digest of a run's content from any other use of BLAKE3.
const CONTENT: &str = "agon run content, version 1";

/// So many hexadecimal digits tell two runs apart, and fit a line.
const CONTENT_LENGTH: usize = 32;

/// What was checked of a run, and what is wrong with it.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize)]
pub struct Verified {
    /// The run.
    pub run: String,
    /// Different bouts that were found.
    pub bouts: u64,
    /// Rows of games.
    pub games: u64,
    /// Rows of moves.
    pub moves: u64,
    /// Rows of probes.
    pub probes: u64,
    /// What the run says, in one word: the same for two datasets exactly where every bout has the same number and the same
    /// content, whoever played it, when, and however it is divided into parts.
    pub content: String,
    /// Everything that is wrong.
    pub problems: Vec<Problem>,
}

/// Something wrong, and where.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Problem {
    /// The file within the data folder; none where it is the run as a whole.
    pub file: Option<String>,
    /// The bout.
    pub bout: Option<u64>,
    /// The game of the bout, or the search of a probe.
    pub game: Option<u16>,
    /// What is wrong.
    pub reason: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let places = [
            self.file.clone(),
            self.bout.map(|bout| format!("bout {bout}")),
            self.game.map(|game| format!("game {game}")),
        ];
        for place in places.into_iter().flatten() {
            write!(f, "{place}: ")?;
        }
        f.write_str(&self.reason)
    }
}

impl Verified {
    /// Whether nothing is wrong.
    pub fn is_ok(&self) -> bool {
        self.problems.is_empty()
    }
}

/// Checks every run of a dataset, and that nothing lies beside them.
pub fn verify_all(dataset: &Dataset) -> Vec<Verified> {
    let mut all: Vec<Verified> = dataset.ids().iter().map(|id| verify(dataset, id)).collect();
    let reason = "there are parts of this run, but no file in `runs` says what it is".to_string();
    match dataset.undescribed() {
        Ok(ids) => all.extend(ids.into_iter().map(|id| only_problem(id, reason.clone()))),
        Err(error) => all.push(only_problem(String::new(), error.to_string())),
    }
    all
}

/// Checks the run with exactly this id.
pub fn verify(dataset: &Dataset, id: &str) -> Verified {
    let checked = dataset.run(id).map_err(|error| error.to_string()).and_then(|run| {
        let mut check = Check::new(run)?;
        check.run(dataset).map_err(|error| error.to_string())?;
        Ok(check.verified)
    });
    checked.unwrap_or_else(|reason| only_problem(id.to_string(), reason))
}

fn only_problem(run: String, reason: String) -> Verified {
    let problem = Problem { file: None, bout: None, game: None, reason };
    Verified { run, problems: vec![problem], ..Verified::default() }
}

struct Check {
    run: Run,
    schedule: Schedule,
    /// Parts with bouts, by the numbers that `seen` uses.
    files: Vec<String>,
    seen: BoutRanges,
    content: blake3::Hasher,
    verified: Verified,
}

impl Check {
    fn new(run: Run) -> Result<Check, String> {
        let spec =
            Spec::parse(&run.source).map_err(|error| format!("the spec is not understood: {error}"))?;
        let schedule =
            Schedule::new(spec).map_err(|error| format!("the spec cannot be scheduled: {error}"))?;
        let verified = Verified { run: run.id.clone(), ..Verified::default() };
        let content = blake3::Hasher::new_derive_key(CONTENT);
        Ok(Check { run, schedule, files: Vec::new(), seen: BoutRanges::default(), content, verified })
    }

    fn problem(&mut self, part: Option<&Part>, bout: Option<u64>, game: Option<u16>, reason: String) {
        let file = part.map(|part| part.name.clone());
        self.verified.problems.push(Problem { file, bout, game, reason });
    }

    fn run(&mut self, dataset: &Dataset) -> Result<(), DatasetError> {
        // 1. What the run's file says of itself.
        self.check_description();
        // Of a tune, what its bouts play follows from those before. A part that cannot be read is told of below.
        let _ = follow(dataset, &self.run, &mut self.schedule);
        // 2. Games with the moves beside them, part by part.
        let moves = dataset.parts(&self.run, Table::Moves)?;
        let mut moves: BTreeMap<String, Part> =
            moves.into_iter().map(|part| (part.file_name().to_string(), part)).collect();
        let games = dataset.parts(&self.run, Table::Games)?;
        let probes = dataset.parts(&self.run, Table::Probes)?;
        let last = games.iter().chain(&probes).filter_map(|part| part.bouts).map(|(first, _)| first).max();
        for part in &games {
            self.check_games(part, moves.remove(part.file_name()).as_ref());
        }
        // 3. Moves are published before their games: only in a run that goes on they may be alone.
        for part in moves.values().filter(|_| !self.run.state.is_open()).collect::<Vec<_>>() {
            self.problem(Some(part), None, None, "there is no part of games to these moves".to_string());
        }
        // 4. Probes.
        for part in &probes {
            self.check_probes(part);
        }
        // 5. Bouts that are nowhere.
        self.verified.bouts = self.seen.bouts();
        self.verified.content = self.content.finalize().to_hex()[..CONTENT_LENGTH].to_string();
        let missing = missing(&self.run, self.schedule.bouts(), &self.seen, last.unwrap_or(0));
        if let Some(reason) = missing {
            self.problem(None, None, None, reason);
        }
        Ok(())
    }

    fn check_description(&mut self) {
        let canonical = self.run.source.canonical().unwrap_or_default();
        if blake3::hash(canonical.as_bytes()).to_hex().as_str() != self.run.digest {
            self.problem(None, None, None, "the spec is not the one that its digest is of".to_string());
        }
        let (told, scheduled) = (self.run.bouts, self.schedule.bouts());
        if told != scheduled {
            let reason = format!("its file says that it has {told} bouts, its spec has {scheduled}");
            self.problem(None, None, None, reason);
        }
    }

    /// The rows of a part, whose seal says that it is what was written.
    fn rows<T>(&mut self, part: &Part, read: impl Fn(Bytes) -> Result<Vec<T>, ReadError>) -> Option<Vec<T>> {
        match part.bytes().and_then(|bytes| part.read(bytes, read)) {
            Ok(rows) => Some(rows),
            Err(error) => {
                // The problem names the file; the sentence need not.
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
                let reason = "there is no part of moves to these games".to_string();
                self.problem(Some(games_part), None, None, reason);
                None
            }
        };
        self.verified.games += games.as_ref().map_or(0, |rows| rows.len() as u64);
        self.verified.moves += moves.as_ref().map_or(0, |rows| rows.len() as u64);
        let number = self.files.len();
        self.files.push(games_part.name.clone());
        // Where one of the two cannot be read, the bouts of the other are still told apart.
        let (Some(games), Some(moves)) = (&games, moves) else {
            let bouts: Vec<u64> = games.iter().flatten().map(|row| row.bout).collect();
            for bout in bouts.chunk_by(PartialEq::eq).map(|same| same[0]) {
                self.admit(games_part, number, bout);
            }
            return;
        };
        let moves_part = moves_part.expect("moves were read from a part");
        for (bout, rows) in BoutRows::by_bout(games.iter().cloned(), moves, []) {
            if rows.games.is_empty() {
                let reason = "there are moves without a game".to_string();
                self.problem(Some(moves_part), Some(bout), None, reason);
                continue;
            }
            let Some(scheduled) = self.admit(games_part, number, bout) else { continue };
            self.take(bout, &rows);
            self.check_bout(&scheduled, &rows, games_part, moves_part);
        }
    }

    /// Notes a bout, and says what the schedule asks for there.
    fn admit(&mut self, part: &Part, number: usize, bout: u64) -> Option<Bout> {
        if bout >= self.schedule.bouts() {
            let reason = format!("the run has only {} bouts, counted from 0", self.schedule.bouts());
            self.problem(Some(part), Some(bout), None, reason);
            return None;
        }
        if let Some(other) = self.seen.add(bout, number) {
            let reason = format!("the bout is there a second time; the first is in {}", self.files[other]);
            self.problem(Some(part), Some(bout), None, reason);
            return None;
        }
        if !part.may_have(bout) {
            let reason = "the bout is not one of those in the name of the file".to_string();
            self.problem(Some(part), Some(bout), None, reason);
        }
        match self.schedule.bout(bout) {
            Ok(scheduled) => Some(scheduled),
            Err(error) => {
                self.problem(Some(part), Some(bout), None, error.to_string());
                None
            }
        }
    }

    /// Takes a bout into what the run says. Bouts come in the order of their numbers.
    fn take(&mut self, bout: u64, rows: &BoutRows) {
        self.content.update(&bout.to_le_bytes()).update(&content_digest(rows));
    }

    fn check_bout(&mut self, bout: &Bout, rows: &BoutRows, games_part: &Part, moves_part: &Part) {
        let index = Some(bout.index);
        if let Plan::Probe(_) = self.schedule.spec().plan {
            self.problem(Some(games_part), index, None, "the run is a probe and has no games".to_string());
            return;
        }
        let requests: Vec<GameRequest> = self.schedule.request(bout).games().collect();
        let numbers: Vec<usize> = rows.games.iter().map(|row| usize::from(row.game)).collect();
        if !numbers.iter().copied().eq(0..requests.len()) {
            let reason = format!(
                "its games are {numbers:?}, and should be each once from 0 to {}",
                requests.len() - 1
            );
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
                let (found, asked) = (row.settings.join("; "), settings.join("; "));
                let reason = format!("its players had the values `{found}`, and the tune asks for `{asked}`");
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
            self.problem(Some(moves_part), index, Some(game), "there are moves without a game".to_string());
        }
    }

    fn check_probes(&mut self, part: &Part) {
        let rows = self.rows(part, agon_records::read_probes);
        let number = self.files.len();
        self.files.push(part.name.clone());
        let Some(rows) = rows else { return };
        self.verified.probes += rows.len() as u64;
        for (index, bout) in BoutRows::by_bout([], [], rows) {
            let Some(scheduled) = self.admit(part, number, index) else { continue };
            self.take(index, &bout);
            let numbers: Vec<usize> = bout.probes.iter().map(|row| usize::from(row.decision.game)).collect();
            let players = self.schedule.spec().players.len();
            if !matches!(self.schedule.spec().plan, Plan::Probe(_)) || !numbers.iter().copied().eq(0..players)
            {
                let reason = format!("its searches are {numbers:?}, and the spec asks for others");
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
