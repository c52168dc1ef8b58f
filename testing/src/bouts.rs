//! Bouts played by the arena, and the messages that submit them.

use std::sync::Arc;

use agon_arena::{Arena, Bout, Environment, PlayerConfig, Spec};
use agon_proto::v1::Submission;
use agon_proto::{BoutWriter, LeasedBout, WireError};
use agon_records::{BoutRows, GameHead, MoveRow};

/// The microsecond at which the first game of a bout starts in [`play`].
pub const STARTED: i64 = 1_700_000_000_000_000;

/// Makes an arena with the players of a spec.
pub fn arena(spec: &Spec) -> Arena {
    let configs: Vec<PlayerConfig> = spec.players.iter().map(|player| player.config.clone()).collect();
    Arena::new(&spec.game, &configs, Environment::system()).unwrap()
}

/// Plays a leased bout and returns its rows; each game starts a microsecond after the one before.
pub fn play(spec: &Spec, bout: &LeasedBout, worker: &str, build: &str) -> BoutRows {
    play_on(&mut arena(spec), spec, bout, worker, build)
}

/// Plays a leased bout like [`play`], on an existing arena for the spec.
pub fn play_on(arena: &mut Arena, spec: &Spec, leased: &LeasedBout, worker: &str, build: &str) -> BoutRows {
    play_games(spec, arena, &leased.bout, [worker, build], |game| STARTED + i64::from(game))
}

/// Plays the games of a bout and returns their rows.
pub fn play_games(
    spec: &Spec,
    arena: &mut Arena,
    bout: &Bout,
    [worker, build]: [&str; 2],
    started: impl Fn(u16) -> i64,
) -> BoutRows {
    let names: Vec<String> = spec.players.iter().map(|player| player.name.clone()).collect();
    let mut rows = BoutRows::default();
    for (request, index) in spec.games(bout, 1.0).zip(0..) {
        let record = arena.play(&request, &mut |_| ()).unwrap();
        let head = GameHead {
            game: &spec.game,
            names: &names,
            opening: &bout.opening,
            bout: bout.index,
            index,
            worker,
            build,
            started: started(index),
            speed_factor: 1.0,
            settings: &[],
        };
        rows.add_game(&head, &record).unwrap();
    }
    rows
}

/// Encodes a bout, with at most `batch` moves per message.
pub fn messages(
    spec: &Arc<Spec>,
    bout: &LeasedBout,
    rows: &BoutRows,
    batch: usize,
    [worker, build]: [&str; 2],
) -> Result<Vec<Submission>, WireError> {
    let mut writer = BoutWriter::new(Arc::clone(spec), bout.clone())?;
    let mut messages = vec![writer.head(worker, build)?];
    for game in &rows.games {
        let moves: Vec<MoveRow> = rows.moves.iter().filter(|row| row.game == game.game).cloned().collect();
        for batch in moves.chunks(batch) {
            messages.push(writer.moves(game.game, batch)?);
        }
        messages.push(writer.game_end(game)?);
    }
    for probe in &rows.probes {
        messages.push(writer.probes([probe])?);
    }
    messages.push(writer.end()?);
    Ok(messages)
}
