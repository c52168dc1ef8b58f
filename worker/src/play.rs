//! Plays one bout on the arena and sends its messages while it is played.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use agon_arena::spec::Plan;
use agon_arena::{Arena, PlayError, SeedPath, Spec};
use agon_proto::limits::BATCH_MOVES;
use agon_proto::v1::Submission;
use agon_proto::{BoutWriter, LeasedBout, WireError};
use agon_records::{GameHead, GameRow, MoveRow, ProbeRow, RowError};

/// The time limit for collecting moves into one message.
const BATCH_TIME: Duration = Duration::from_millis(250);

/// A bout to play.
pub(crate) struct Job {
    /// The spec of its run.
    pub(crate) spec: Arc<Spec>,
    /// The bout, checked against the spec.
    pub(crate) leased: LeasedBout,
}

/// The worker's identity in the rows.
#[derive(Clone)]
pub(crate) struct Identity {
    /// The worker's name.
    pub(crate) worker: String,
    /// The version of its program.
    pub(crate) build: String,
}

/// The size of a played bout.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Played {
    /// The number of games, or of searches for a probe.
    pub(crate) games: u64,
    /// The plies of all games.
    pub(crate) plies: u64,
}

/// The reason why a bout cannot be played.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BoutError {
    /// The arena failed.
    #[error(transparent)]
    Play(#[from] PlayError),
    /// A row does not fit the dataset.
    #[error(transparent)]
    Row(#[from] RowError),
    /// A message does not fit the protocol.
    #[error(transparent)]
    Wire(#[from] WireError),
}

/// The current game and ply of a slot, in one number that other threads may read at any time.
#[derive(Default)]
pub(crate) struct GameProgress(AtomicU64);

impl GameProgress {
    fn set(&self, game: u32, ply: u32) {
        self.0.store(u64::from(game) << 32 | u64::from(ply), Ordering::Relaxed);
    }

    /// Restarts for a new bout.
    pub(crate) fn reset(&self) {
        self.set(0, 0);
    }

    /// Returns the game and its number of plies.
    pub(crate) fn read(&self) -> (u32, u32) {
        let both = self.0.load(Ordering::Relaxed);
        ((both >> 32) as u32, both as u32)
    }
}

/// Plays a bout. `send` receives all messages in order but the last, which is returned. The head is sent before `seat`
/// creates the players, so that a failure there is attributed too. Time limits are multiplied by `factor`.
pub(crate) fn play(
    job: &Job,
    seat: impl FnOnce() -> Result<Arena, PlayError>,
    identity: &Identity,
    factor: f64,
    progress: &GameProgress,
    send: &mut dyn FnMut(Submission),
) -> Result<(Played, Submission, Arena), BoutError> {
    let mut writer = BoutWriter::new(Arc::clone(&job.spec), job.leased.clone())?;
    send(writer.head(&identity.worker, &identity.build)?);
    let mut arena = seat()?;
    for (player, config) in job.spec.configured_players(&job.leased.bout.values) {
        arena.configure(player, config);
    }
    let played = match job.spec.plan {
        Plan::Tournament(_) | Plan::Tune(_) => {
            play_games(job, &mut arena, identity, factor, progress, &mut writer, send)?
        }
        Plan::Probe(_) => search_probe(job, &mut arena, progress, &mut writer, send)?,
    };
    Ok((played, writer.end()?, arena))
}

fn play_games(
    job: &Job,
    arena: &mut Arena,
    identity: &Identity,
    factor: f64,
    progress: &GameProgress,
    writer: &mut BoutWriter,
    send: &mut dyn FnMut(Submission),
) -> Result<Played, BoutError> {
    let (spec, bout) = (&job.spec, &job.leased.bout);
    let names: Vec<String> = spec.players.iter().map(|player| player.name.clone()).collect();
    let mut played = Played { games: 0, plies: 0 };
    for (index, request) in spec.games(bout, factor).enumerate() {
        let index = u16::try_from(index).expect("a bout has as many games as seats");
        progress.set(u32::from(index), 0);
        let started = unix_microseconds();
        let mut batch = MoveBatch { writer, send, game: index, moves: Vec::new(), sent: Instant::now() };
        let mut error = None;
        let record = arena.play(&request, &mut |mv| {
            progress.set(u32::from(index), mv.ply + 1);
            if error.is_none() {
                let row = MoveRow::new(bout.index, index, mv, &names).map_err(BoutError::from);
                error = row.and_then(|row| batch.add(row)).err();
            }
        })?;
        if let Some(error) = error {
            return Err(error);
        }
        batch.flush()?;
        let settings = spec.settings(&bout.values, &request.seats);
        let head = GameHead {
            game: &spec.game,
            names: &names,
            opening: &bout.opening,
            bout: bout.index,
            index,
            worker: &identity.worker,
            build: &identity.build,
            started,
            speed_factor: factor,
            settings: &settings,
        };
        send(writer.game_end(&GameRow::new(&head, &record)?)?);
        played.games += 1;
        played.plies += record.moves.len() as u64;
    }
    Ok(played)
}

/// The moves of a game that are not yet sent.
struct MoveBatch<'a> {
    writer: &'a mut BoutWriter,
    send: &'a mut dyn FnMut(Submission),
    game: u16,
    moves: Vec<MoveRow>,
    sent: Instant,
}

impl MoveBatch<'_> {
    fn add(&mut self, row: MoveRow) -> Result<(), BoutError> {
        self.moves.push(row);
        if self.moves.len() >= BATCH_MOVES || self.sent.elapsed() >= BATCH_TIME {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), BoutError> {
        if !self.moves.is_empty() {
            (self.send)(self.writer.moves(self.game, &self.moves)?);
            self.moves.clear();
        }
        self.sent = Instant::now();
        Ok(())
    }
}

/// Searches a probe's position with each player, always with the same seed.
fn search_probe(
    job: &Job,
    arena: &mut Arena,
    progress: &GameProgress,
    writer: &mut BoutWriter,
    send: &mut dyn FnMut(Submission),
) -> Result<Played, BoutError> {
    let (spec, bout) = (&job.spec, &job.leased.bout);
    let seed = SeedPath { run: spec.seed, bout: bout.index, game: 0 }.game_seed();
    let decision = arena.decision(&bout.opening)?;
    for (index, &number) in bout.players.iter().enumerate() {
        let player = &spec.players[number];
        let record = arena.search(number, &bout.opening, player.limit, seed, &mut |_| ())?;
        let index = index as u16;
        progress.set(u32::from(index) + 1, 0);
        let name = player.name.clone();
        let row = ProbeRow::new(bout.index, index, &bout.opening, decision, name, &record)?;
        send(writer.probes([&row])?);
    }
    Ok(Played { games: bout.players.len() as u64, plies: 0 })
}

fn unix_microseconds() -> i64 {
    let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}
