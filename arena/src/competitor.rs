//! A player at a board: a built-in search, or an engine with its process.
//!
//! What an engine says is checked here: its move by the rules, its numbers against what records can hold. Its faults are results
//! and not errors.

use std::time::Duration;

use agon_games::printable::printable;
use agon_games::{Complete, GameSpec};
use agon_search::value::{UNIT, WIN};
use agon_search::{Counters, Limit, Value};

use crate::arena::{Environment, PlayError};
use crate::engine::{EngineConfig, EngineOptions};
use crate::external::{
    EngineError, EngineFault, ExternalMove, ExternalPlayer, FaultKind, PositionText, Request,
};
use crate::player::Player;
use crate::record::{SearchRecord, line_texts};

/// The largest counter of a record, which is exact as a float.
const MAX_COUNT: u64 = 1 << 53;

/// The most moves of an engine's line on record.
const MAX_LINE: usize = 128;

/// The most bytes of the detail of a fault on record.
const MAX_DETAIL: usize = 2000;

/// A player at a board.
pub(crate) enum Competitor<G: Complete> {
    /// A built-in search.
    Search(Player<G>),
    /// An engine.
    Engine(Box<EngineSeat>),
}

impl<G: Complete> Competitor<G> {
    /// Discards everything learnt in earlier games.
    pub(crate) fn new_game(&mut self) {
        match self {
            Competitor::Search(player) => player.new_game(),
            Competitor::Engine(engine) => engine.prepared = false,
        }
    }

    /// Follows a move played in the game by any seat. Engines receive all moves with each request.
    pub(crate) fn observe(&mut self, mv: G::Move) {
        if let Competitor::Search(player) = self {
            player.observe(mv);
        }
    }
}

/// A move with its record, or a fault with which the engine loses.
pub(crate) type Decided<G> = Result<(<G as agon_games::Game>::Move, SearchRecord), EngineFault>;

/// An engine at a board. Its process starts when it is first asked for a move.
pub(crate) struct EngineSeat {
    pub(crate) config: EngineConfig,
    running: Option<Running>,
    /// Whether the process knows the current game.
    prepared: bool,
}

/// A running engine.
struct Running {
    player: Box<dyn ExternalPlayer>,
    /// The options that it has.
    options: EngineOptions,
    /// Its processor time before the current game.
    cpu_before: Duration,
}

impl EngineSeat {
    pub(crate) fn new(config: EngineConfig) -> EngineSeat {
        EngineSeat { config, running: None, prepared: false }
    }

    /// Chooses a move.
    pub(crate) fn decide<G: Complete>(
        &mut self,
        position: &G,
        request: &Request<'_>,
        game: &GameSpec,
        environment: &Environment,
    ) -> Result<Decided<G>, PlayError> {
        let answer = self.ask(request, game, environment);
        let decided = answer.and_then(|answer| Ok(self.accept(position, request.limit(), &answer)?));
        match decided {
            Ok(decided) => Ok(Ok(decided)),
            Err(EngineError::Fault(EngineFault { kind, detail })) => {
                if !matches!(kind, FaultKind::Late | FaultKind::Resigned) {
                    self.running = None;
                }
                Ok(Err(EngineFault { kind, detail: shortened(&detail) }))
            }
            Err(EngineError::Interrupted) => {
                // It may still be searching.
                self.running = None;
                Err(PlayError::Interrupted)
            }
            Err(EngineError::Unavailable(reason)) => Err(PlayError::Engine { reason }),
        }
    }

    /// Tells the engine the end of a game in which it has moved. Returns the processor time that it used in it.
    pub(crate) fn end_game(&mut self, payoffs: &[i32], ending: &str) -> Duration {
        match &mut self.running {
            Some(running) if self.prepared => {
                running.player.end_game(payoffs, ending);
                running.player.cpu_time().saturating_sub(running.cpu_before)
            }
            _ => Duration::ZERO,
        }
    }

    fn ask(
        &mut self,
        request: &Request<'_>,
        game: &GameSpec,
        environment: &Environment,
    ) -> Result<ExternalMove, EngineError> {
        let EngineSeat { config, running, prepared } = self;
        let running = match running {
            Some(running) => running,
            None => {
                let player = environment.engines.start(config, game, &environment.control)?;
                *prepared = false;
                let options = config.options.clone();
                running.insert(Running { player, options, cpu_before: Duration::ZERO })
            }
        };
        if !*prepared {
            if running.options != config.options {
                running.player.set_options(&config.options)?;
                running.options.clone_from(&config.options);
            }
            running.cpu_before = running.player.cpu_time();
            running.player.new_game(request.start, request.seat)?;
            *prepared = true;
        }
        running.player.choose(request)
    }

    /// Checks an answer by the rules and by the clock.
    fn accept<G: Complete>(
        &self,
        position: &G,
        limit: Limit,
        answer: &ExternalMove,
    ) -> Result<(G::Move, SearchRecord), EngineFault> {
        let Some(mv) = position.parse_move(&answer.mv) else {
            let detail = format!("it played `{}`, which is not legal", answer.mv);
            return Err(EngineFault { kind: FaultKind::IllegalMove, detail });
        };
        if let Some(allowed) = allowed_time(limit)
            && answer.time > allowed + self.config.grace
        {
            let detail = format!(
                "it played `{}` after {:.1} ms; the limit is {:.1} ms and the margin {} ms",
                answer.mv,
                answer.time.as_secs_f64() * 1e3,
                allowed.as_secs_f64() * 1e3,
                self.config.grace.as_millis()
            );
            return Err(EngineFault { kind: FaultKind::Late, detail });
        }
        let overshoot = match limit {
            Limit::Wall(time) | Limit::Cpu(time) => answer.time.saturating_sub(time),
            Limit::Clock { .. } | Limit::Nodes(_) | Limit::Depth(_) => Duration::ZERO,
        };
        let bound = f64::from(WIN) / f64::from(UNIT);
        let number =
            if answer.value.number.is_nan() { 0.0 } else { answer.value.number.clamp(-bound, bound) };
        let depth = |depth: u32| depth.min(u16::MAX.into());
        let record = SearchRecord {
            mv: position.move_text(mv),
            value: Value { number, ..answer.value },
            depth: depth(answer.depth),
            selective_depth: depth(answer.selective_depth),
            counters: Counters::from_values(answer.counters.values().map(|count| count.min(MAX_COUNT))),
            line: legal_line(position, &answer.line),
            iterations: Vec::new(),
            time: answer.time,
            overshoot,
            limit,
        };
        Ok((mv, record))
    }
}

/// Returns the time after which a move is too late; none without a limit of time.
fn allowed_time(limit: Limit) -> Option<Duration> {
    match limit {
        Limit::Wall(time) | Limit::Cpu(time) => Some(time),
        Limit::Clock { remaining, .. } => Some(remaining),
        Limit::Nodes(_) | Limit::Depth(_) => None,
    }
}

/// Returns the moves of a line up to the first that is not legal, in the game's own notation.
fn legal_line<G: Complete>(root: &G, words: &[String]) -> Vec<String> {
    let mut position = root.clone();
    let mut line = Vec::new();
    for word in words.iter().take(MAX_LINE) {
        let Some(mv) = position.parse_move(word) else { break };
        line.push(mv);
        position.play(mv);
    }
    line_texts(root, &line)
}

/// Returns a text as one printable line of bounded length.
fn shortened(text: &str) -> String {
    let text = printable(text.trim());
    let mut end = text.len().min(MAX_DETAIL);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_string()
}

/// A position of any game, formatted on demand.
pub(crate) struct Texts<'a, G>(pub(crate) &'a G);

impl<G: Complete> PositionText for Texts<'_, G> {
    fn legal(&self) -> Vec<String> {
        let mut moves = Vec::new();
        self.0.moves(&mut moves);
        moves.into_iter().map(|mv| self.0.move_text(mv)).collect()
    }

    fn board(&self) -> String {
        self.0.board()
    }

    fn position(&self) -> String {
        self.0.position()
    }
}
