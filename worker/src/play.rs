//! One bout: the arena plays it, and its messages go out while it is played.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use agon_arena::spec::Plan;
use agon_arena::{Arena, PlayError, SeedPath, Spec};
use agon_proto::limits::BATCH_MOVES;
use agon_proto::v1::Submission;
use agon_proto::{Bout, BoutWriter, WireError};
use agon_records::{GameHead, GameRow, MoveRow, ProbeRow, RowError};

/// The longest that a ply waits for others before it is sent.
const BATCH_TIME: Duration = Duration::from_millis(250);

/// A bout to play.
pub(crate) struct Job {
    /// The run.
    pub(crate) spec: Arc<Spec>,
    /// The bout, which fits the spec.
    pub(crate) bout: Bout,
}

/// Who plays, as the rows name it.
#[derive(Clone)]
pub(crate) struct Identity {
    /// The name of the worker.
    pub(crate) worker: String,
    /// The version of the program.
    pub(crate) build: String,
}

/// What was played.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Played {
    /// Games, or searches of a probe.
    pub(crate) games: u64,
    /// Plies of all games.
    pub(crate) plies: u64,
}

/// Why a bout cannot be played.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PlayFault {
    /// The arena cannot.
    #[error(transparent)]
    Play(#[from] PlayError),
    /// What was played does not fit into the dataset.
    #[error(transparent)]
    Row(#[from] RowError),
    /// What was played does not fit the wire.
    #[error(transparent)]
    Wire(#[from] WireError),
}

/// How far a slot is: the game and the plies of it, in one number that another thread may read at any time.
#[derive(Default)]
pub(crate) struct Tally(AtomicU64);

impl Tally {
    fn set(&self, game: u32, ply: u32) {
        self.0.store(u64::from(game) << 32 | u64::from(ply), Ordering::Relaxed);
    }

    /// A new bout begins.
    pub(crate) fn reset(&self) {
        self.set(0, 0);
    }

    /// The game and the plies of it.
    pub(crate) fn read(&self) -> (u32, u32) {
        let both = self.0.load(Ordering::Relaxed);
        ((both >> 32) as u32, both as u32)
    }
}

/// Plays a bout. `send` gets its messages in their order, all but the last, which is returned. The head goes out before
/// the players are seated, so that even a failure there says whose it is. Limits of time are multiplied by `factor`.
pub(crate) fn play(
    job: &Job,
    seat: impl FnOnce() -> Result<Arena, PlayError>,
    identity: &Identity,
    factor: f64,
    tally: &Tally,
    send: &mut dyn FnMut(Submission),
) -> Result<(Played, Submission, Arena), PlayFault> {
    let mut writer = BoutWriter::new(Arc::clone(&job.spec), job.bout.clone())?;
    send(writer.head(&identity.worker, &identity.build)?);
    let mut arena = seat()?;
    for (player, config) in job.spec.configured(&job.bout.values) {
        arena.configure(player, config);
    }
    let played = match job.spec.plan {
        Plan::Tournament(_) | Plan::Tune(_) => {
            games(job, &mut arena, identity, factor, tally, &mut writer, send)?
        }
        Plan::Probe(_) => searches(job, &mut arena, tally, &mut writer, send)?,
    };
    Ok((played, writer.end()?, arena))
}

fn games(
    job: &Job,
    arena: &mut Arena,
    identity: &Identity,
    factor: f64,
    tally: &Tally,
    writer: &mut BoutWriter,
    send: &mut dyn FnMut(Submission),
) -> Result<Played, PlayFault> {
    let (spec, bout) = (&job.spec, &job.bout);
    let names: Vec<String> = spec.players.iter().map(|player| player.name.clone()).collect();
    let mut played = Played { games: 0, plies: 0 };
    for (index, request) in bout.request(spec).scaled(factor).games().enumerate() {
        let index = u16::try_from(index).expect("a bout has as many games as seats");
        tally.set(u32::from(index), 0);
        let started = microseconds_since_1970();
        let mut sheet = Sheet { writer, send, game: index, moves: Vec::new(), sent: Instant::now() };
        let mut fault = None;
        let record = arena.play(&request, &mut |mv| {
            tally.set(u32::from(index), mv.ply + 1);
            if fault.is_none() {
                let row = MoveRow::new(bout.lease.bout, index, mv, &names).map_err(PlayFault::from);
                fault = row.and_then(|row| sheet.add(row)).err();
            }
        })?;
        if let Some(fault) = fault {
            return Err(fault);
        }
        sheet.flush()?;
        let settings = spec.settings(&bout.values, &request.seats);
        let head = GameHead {
            game: &spec.game,
            names: &names,
            opening: &bout.opening,
            bout: bout.lease.bout,
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

/// The plies of a game that are not yet sent.
struct Sheet<'a> {
    writer: &'a mut BoutWriter,
    send: &'a mut dyn FnMut(Submission),
    game: u16,
    moves: Vec<MoveRow>,
    sent: Instant,
}

impl Sheet<'_> {
    fn add(&mut self, row: MoveRow) -> Result<(), PlayFault> {
        self.moves.push(row);
        if self.moves.len() >= BATCH_MOVES || self.sent.elapsed() >= BATCH_TIME {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), PlayFault> {
        if !self.moves.is_empty() {
            (self.send)(self.writer.moves(self.game, &self.moves)?);
            self.moves.clear();
        }
        self.sent = Instant::now();
        Ok(())
    }
}

/// A probe: every player of it searches the position, each with the same seed.
fn searches(
    job: &Job,
    arena: &mut Arena,
    tally: &Tally,
    writer: &mut BoutWriter,
    send: &mut dyn FnMut(Submission),
) -> Result<Played, PlayFault> {
    let (spec, bout) = (&job.spec, &job.bout);
    let seed = SeedPath { run: spec.seed, bout: bout.lease.bout, game: 0 }.game_seed();
    let decision = arena.decision(&bout.opening)?;
    for (index, &number) in bout.players.iter().enumerate() {
        let player = &spec.players[number];
        let record = arena.search(number, &bout.opening, player.limit, seed, &mut |_| ())?;
        let index = index as u16;
        tally.set(u32::from(index) + 1, 0);
        let name = player.name.clone();
        let row = ProbeRow::new(bout.lease.bout, index, &bout.opening, decision, name, &record)?;
        send(writer.probes([&row])?);
    }
    Ok(Played { games: bout.players.len() as u64, plies: 0 })
}

fn microseconds_since_1970() -> i64 {
    let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}
