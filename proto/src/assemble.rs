//! The receiving end of a submission: checks the messages of one bout and collects them into columns.
//!
//! The order is fixed: the head, then the plies and the end of each game (or the searches of a probe), then the end of the
//! bout with its digests. A message in another order, for another lease or beyond a limit is rejected, and only a complete
//! bout is returned.

use std::sync::Arc;

use agon_arena::Spec;
use agon_arena::limit::FACTORS;
use agon_arena::roster::rotations;
use agon_arena::spec::Plan;
use agon_records::rows::opening_text;
use agon_records::{BoutColumns, GameRow, MoveRow, Plies, ProbeRow};
use agon_search::bounds::MAX_DURATION_US;
use prost::Message;
use prost::bytes::Bytes;

use crate::bout::LeasedBout;
use crate::check;
use crate::error::WireError;
use crate::lease::Lease;
use crate::limits::{
    MAX_BATCH_MOVES, MAX_BOUT_BYTES, MAX_BUILD, MAX_COUNT, MAX_ENDING, MAX_PAYOFF, MAX_PLIES, MAX_REASON,
    MAX_SUBMISSION_BYTES, MAX_TIME_US, MAX_WORKER_NAME,
};
use crate::plies;
use crate::v1;
use crate::v1::submission::Kind;

/// The greatest factor of time limits.
const MAX_FACTOR: u64 = *FACTORS.end() as u64;

/// The outcome of a submission.
#[derive(Clone, PartialEq, Debug)]
pub enum Assembled {
    /// The bout arrived completely.
    Complete(Box<CompleteBout>),
    /// The worker could not play the bout.
    Failed {
        /// The worker's reason.
        reason: String,
    },
}

/// A completely received bout.
#[derive(Clone, PartialEq, Debug)]
pub struct CompleteBout {
    /// Its games, plies and probes.
    pub bout: BoutColumns,
    /// The digest of its content.
    pub content_digest: [u8; 32],
    /// The digest of its messages.
    pub bytes_digest: [u8; 32],
}

/// Collects the messages of one bout. After an error the bout must be sent again from its head.
pub struct Assembler {
    spec: Arc<Spec>,
    leased: LeasedBout,
    /// The players by seat of each game; a probe has no games.
    seatings: Vec<Vec<usize>>,
    state: State,
    columns: BoutColumns,
    /// The number of plies of the current game.
    plies: usize,
    worker: String,
    build: String,
    /// The encoded messages; the last is added once its digests match.
    encoded: Vec<u8>,
}

/// The expected messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Head,
    Play,
    /// None: the bout is complete, failed or rejected.
    Over,
}

impl Assembler {
    /// Creates an assembler that expects the head of a bout.
    pub fn new(spec: Arc<Spec>, leased: LeasedBout) -> Result<Assembler, WireError> {
        leased.check(&spec)?;
        let seatings = match spec.plan {
            Plan::Tournament(_) | Plan::Tune(_) => rotations(&leased.bout.players).collect(),
            Plan::Probe(_) => Vec::new(),
        };
        Ok(Assembler {
            spec,
            leased,
            seatings,
            state: State::Head,
            columns: BoutColumns::default(),
            plies: 0,
            worker: String::new(),
            build: String::new(),
            encoded: Vec::new(),
        })
    }

    /// Returns the leased bout.
    pub fn leased(&self) -> &LeasedBout {
        &self.leased
    }

    /// Returns the spec.
    pub fn spec(&self) -> &Arc<Spec> {
        &self.spec
    }

    /// Returns the worker and the build of the head; empty before it.
    pub fn played_by(&self) -> (&str, &str) {
        (&self.worker, &self.build)
    }

    /// Decodes a bout from its [encoded](Assembler::into_encoded) messages, with all checks.
    pub fn read(spec: Arc<Spec>, leased: LeasedBout, mut encoded: &[u8]) -> Result<BoutColumns, WireError> {
        let mut assembler = Assembler::new(spec, leased)?;
        while !encoded.is_empty() {
            let message = v1::Submission::decode_length_delimited(&mut encoded);
            let message = message.map_err(|_| WireError::Digest { what: "messages" })?;
            if let Some(Assembled::Complete(complete)) = assembler.accept(message)? {
                return Ok(complete.bout);
            }
        }
        let (found, expected) = ("no more messages".to_string(), assembler.expected());
        Err(WireError::OutOfOrder { found, expected })
    }

    /// Returns all messages so far, each encoded after its length as a varint.
    pub fn into_encoded(self) -> Vec<u8> {
        self.encoded
    }

    /// Takes the next message. Returns the outcome after the last.
    pub fn accept(&mut self, submission: v1::Submission) -> Result<Option<Assembled>, WireError> {
        let before = std::mem::replace(&mut self.state, State::Over);
        let outcome = self.step(before, submission)?;
        if outcome.is_none() {
            self.state = State::Play;
        }
        Ok(outcome)
    }

    /// Returns the digests of the content and of the messages so far.
    pub(crate) fn digests(&self) -> ([u8; 32], [u8; 32]) {
        (self.columns.content_digest(), *blake3::hash(&self.encoded).as_bytes())
    }

    fn step(&mut self, state: State, submission: v1::Submission) -> Result<Option<Assembled>, WireError> {
        self.append(&submission)?;
        let lease = Lease::required(submission.lease)?;
        if lease != self.leased.lease {
            let (found, expected) = (lease.to_string(), self.leased.lease.to_string());
            return Err(WireError::AnotherLease { found, expected });
        }
        match (state, check::required("kind", submission.kind)?) {
            (State::Over, kind) => Err(self.out_of_order(&kind, "no more messages")),
            (_, Kind::Failure(failure)) => {
                let reason = check::reason("reason", &failure.reason)?;
                Ok(Some(Assembled::Failed { reason }))
            }
            (State::Head, Kind::Head(head)) => {
                self.worker = check::name("worker", head.worker, MAX_WORKER_NAME)?;
                self.build = check::name("build", head.build, MAX_BUILD)?;
                Ok(None)
            }
            (State::Head, kind) => Err(self.out_of_order(&kind, "the head")),
            (State::Play, Kind::Moves(batch)) => self.moves(&batch).map(|()| None),
            (State::Play, Kind::GameEnd(end)) => self.game_end(end).map(|()| None),
            (State::Play, Kind::Probes(batch)) => self.probes(&batch).map(|()| None),
            (State::Play, Kind::End(end)) => self.end(&end).map(Some),
            (State::Play, kind @ Kind::Head(_)) => Err(self.out_of_order(&kind, &self.expected())),
        }
    }

    /// Checks the size of a message and keeps it, except the last.
    fn append(&mut self, submission: &v1::Submission) -> Result<(), WireError> {
        let found = submission.encoded_len();
        if found > MAX_SUBMISSION_BYTES {
            return Err(WireError::TooLong { field: "submission", found, most: MAX_SUBMISSION_BYTES });
        }
        let all = self.encoded.len() + found;
        if all > MAX_BOUT_BYTES {
            return Err(WireError::TooLong { field: "bout", found: all, most: MAX_BOUT_BYTES });
        }
        if !matches!(submission.kind, Some(Kind::End(_))) {
            submission.encode_length_delimited(&mut self.encoded).expect("a vector grows as needed");
        }
        Ok(())
    }

    fn moves(&mut self, batch: &[u8]) -> Result<(), WireError> {
        let mut moves = std::mem::take(&mut self.columns.moves);
        let locate = |game| Ok((self.leased.lease.bout, self.current_game("plies", game)?, self.plies));
        let games = self.seatings.len();
        self.plies += plies::from_wire(batch, locate, games, &self.spec.players, &mut moves)?;
        self.columns.moves = moves;
        Ok(())
    }

    /// Adds plies of the current game and returns their message.
    pub(crate) fn write_moves(&mut self, game: u16, rows: &[MoveRow]) -> Result<v1::Submission, WireError> {
        let first = self.plies;
        let game = self.current_game("plies", game.into())?;
        check::count("moves", rows.len(), 1..=MAX_BATCH_MOVES)?;
        check::count("plies", first + rows.len(), 1..=MAX_PLIES)?;
        let moves = &mut self.columns.moves;
        let (row, search) = (moves.len(), moves.searches.player.len());
        rows.iter().for_each(|row| moves.push(row));
        // The numbers that the receiver will assign.
        moves.bout[row..].fill(self.leased.lease.bout);
        moves.game[row..].fill(game);
        for (number, ply) in (first as u64..).zip(&mut moves.ply[row..]) {
            *ply = number as u16;
        }
        self.plies += rows.len();
        let batch = plies::to_wire(&self.columns.moves, row, search, game, &self.spec.players)?;
        self.submission(Kind::Moves(batch.into()))
    }

    /// Adds searches of a probe and returns their message.
    pub(crate) fn write_probes<'a>(
        &mut self,
        rows: impl IntoIterator<Item = &'a ProbeRow>,
    ) -> Result<v1::Submission, WireError> {
        let searches: Plies = rows.into_iter().map(|row| &row.decision).collect();
        let batch = plies::to_wire(&searches, 0, 0, 0, &self.spec.players)?;
        self.add_probes(&searches)?;
        self.submission(Kind::Probes(batch.into()))
    }

    fn submission(&mut self, kind: Kind) -> Result<v1::Submission, WireError> {
        if self.state != State::Play {
            return Err(self.out_of_order(&kind, "the head"));
        }
        let submission = v1::Submission { lease: Some((&self.leased.lease).into()), kind: Some(kind) };
        self.append(&submission)?;
        Ok(submission)
    }

    fn game_end(&mut self, end: v1::GameEnd) -> Result<(), WireError> {
        let game = self.current_game("the end", end.game.into())?;
        let seats = &self.seatings[usize::from(game)];
        check::count("payoffs", end.payoffs.len(), seats.len()..=seats.len())?;
        for &payoff in &end.payoffs {
            check::number("payoffs", payoff, -MAX_PAYOFF..=MAX_PAYOFF)?;
        }
        if !end.engine_cpu_us.is_empty() {
            check::count("engine_cpu_us", end.engine_cpu_us.len(), seats.len()..=seats.len())?;
        }
        for &time in &end.engine_cpu_us {
            check::number("engine_cpu_us", time, 0..=MAX_COUNT)?;
        }
        let row = GameRow {
            bout: self.leased.lease.bout,
            game,
            rules: self.spec.game.name().to_string(),
            variant: self.spec.game.parameters().to_string(),
            opening: opening_text(&self.leased.bout.opening),
            players: seats.iter().map(|&player| self.spec.players[player].name.clone()).collect(),
            payoffs: end.payoffs,
            plies: u32::try_from(self.plies).expect("a game has at most 65536 plies"),
            ending: check::name("ending", end.ending, MAX_ENDING)?,
            seed: end.seed,
            worker: self.worker.clone(),
            build: self.build.clone(),
            started: check::number("started_us", end.started_us, 0..=MAX_TIME_US as i64)?,
            duration_us: check::number("duration_us", end.duration_us, 0..=MAX_DURATION_US)?,
            speed_factor: check::at_most("speed_factor", end.speed_factor, MAX_FACTOR)?,
            settings: self.spec.settings(&self.leased.bout.values, seats),
            detail: check::line("detail", end.detail, MAX_REASON)?,
            engine_cpu_us: end.engine_cpu_us,
        };
        self.columns.games.push(row);
        self.plies = 0;
        Ok(())
    }

    fn probes(&mut self, batch: &Bytes) -> Result<(), WireError> {
        if !matches!(self.spec.plan, Plan::Probe(_)) {
            return Err(self.out_of_order(&Kind::Probes(batch.clone()), &self.expected()));
        }
        let mut searches = Plies::default();
        let locate = |_| Ok((self.leased.lease.bout, 0, 0));
        plies::from_wire(batch, locate, 1, &self.spec.players, &mut searches)?;
        self.add_probes(&searches)
    }

    fn add_probes(&mut self, searches: &Plies) -> Result<(), WireError> {
        let left = self.leased.bout.players.len() - self.columns.probes.len();
        check::count("searches", searches.len(), 1..=left)?;
        let ply = self.leased.bout.opening.moves.split_ascii_whitespace().count();
        let ply = check::number("ply", ply as u64, 0..=u16::MAX)?;
        for decision in searches.rows() {
            let index = self.columns.probes.len();
            let decision = MoveRow { bout: self.leased.lease.bout, game: index as u16, ply, ..decision };
            self.check_searcher(&decision, self.leased.bout.players[index])?;
            self.columns.probes.push(ProbeRow {
                position: self.leased.bout.opening.position.clone().unwrap_or_default(),
                moves: self.leased.bout.opening.moves.clone(),
                decision,
            });
        }
        Ok(())
    }

    /// The search of a probe is that of the player whose turn it is to search.
    fn check_searcher(&self, row: &MoveRow, expected: usize) -> Result<(), WireError> {
        let search = check::required("search", row.search.as_ref())?;
        check::required("seat", row.seat)?;
        let expected = &self.spec.players[expected].name;
        if search.player == *expected {
            return Ok(());
        }
        let found = format!("a search of `{}`", search.player);
        Err(WireError::OutOfOrder { found, expected: format!("one of `{expected}`") })
    }

    fn end(&mut self, end: &v1::BoutEnd) -> Result<Assembled, WireError> {
        let is_complete = match self.spec.plan {
            Plan::Tournament(_) | Plan::Tune(_) => {
                self.columns.games.len() == self.seatings.len() && self.plies == 0
            }
            Plan::Probe(_) => self.columns.probes.len() == self.leased.bout.players.len(),
        };
        if !is_complete {
            return Err(self.out_of_order(&Kind::End(end.clone()), &self.expected()));
        }
        let (content_digest, bytes_digest) = self.digests();
        if end.bytes_digest != bytes_digest {
            return Err(WireError::Digest { what: "messages" });
        }
        if end.content_digest != content_digest {
            return Err(WireError::Digest { what: "content" });
        }
        let bout = std::mem::take(&mut self.columns);
        let (lease, kind) = (Some((&self.leased.lease).into()), Some(Kind::End(end.clone())));
        let last = v1::Submission { lease, kind };
        last.encode_length_delimited(&mut self.encoded).expect("a vector grows as needed");
        Ok(Assembled::Complete(Box::new(CompleteBout { bout, content_digest, bytes_digest })))
    }

    /// Returns the number of the current game, which must be that of the message.
    fn current_game(&self, what: &str, game: u64) -> Result<u16, WireError> {
        let current = self.columns.games.len();
        if current < self.seatings.len() && game == current as u64 {
            return Ok(u16::try_from(current).expect("a bout has as many games as seats"));
        }
        let found = format!("{what} of game {game}");
        Err(WireError::OutOfOrder { found, expected: self.expected() })
    }

    /// Describes the expected message.
    fn expected(&self) -> String {
        match self.spec.plan {
            Plan::Tournament(_) | Plan::Tune(_) if self.columns.games.len() < self.seatings.len() => {
                format!("plies or the end of game {}", self.columns.games.len())
            }
            Plan::Probe(_) if self.columns.probes.len() < self.leased.bout.players.len() => {
                let player = self.leased.bout.players[self.columns.probes.len()];
                format!("the search of `{}`", self.spec.players[player].name)
            }
            _ => "the end of the bout".to_string(),
        }
    }

    fn out_of_order(&self, kind: &Kind, expected: &str) -> WireError {
        let found = match kind {
            Kind::Head(_) => "the head",
            Kind::Moves(_) => "plies",
            Kind::GameEnd(_) => "the end of a game",
            Kind::Probes(_) => "searches of a probe",
            Kind::End(_) => "the end of the bout",
            Kind::Failure(_) => "a failure",
        };
        WireError::OutOfOrder { found: found.to_string(), expected: expected.to_string() }
    }
}
