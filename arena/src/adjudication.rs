//! Adjudication: ends a game by its recorded scores before the rules do.
//!
//! A decision is a function of the record of the game, so the referee derives it again from a claimed game. A score counts
//! in the unit of its record, which is that of the player's evaluation: pawns for chess. A proven win or loss exceeds every
//! score. A search without a completed depth (random, UCT, Monte Carlo) has no such score; it neither adds to a sequence of
//! scores nor ends one.

use agon_games::Seat;
use agon_search::{Proof, Value};

/// The ending of a game whose loser had low scores.
pub const RESIGNATION: &str = "adjudicated: resignation";
/// The ending of a game in which all scores were near zero.
pub const DRAW: &str = "adjudicated: draw";
/// The ending of a game that reached the most plies that its spec allows.
pub const PLY_LIMIT: &str = "adjudicated: ply limit";

/// The rules of adjudication of a spec. The default has none.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Adjudication {
    /// When a player has lost.
    pub resign: Option<Resign>,
    /// When a game is drawn.
    pub draw: Option<Draw>,
    /// The plies, opening included, after which a game is drawn.
    pub max_plies: Option<u32>,
}

/// When a player has lost.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Resign {
    /// The score at whose negative, or below, a player's search counts.
    pub score: f64,
    /// The consecutive searches of the player that must count.
    pub moves: u32,
    /// Whether as many searches of the opponent must have the score or more.
    pub both: bool,
}

/// When a game is drawn.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Draw {
    /// The greatest distance of a score from zero.
    pub score: f64,
    /// The consecutive searches of each player that must have such a score.
    pub moves: u32,
    /// The plies, opening included, before which no game is drawn.
    pub after: u32,
}

/// The decision to end a game.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The player of this seat lost.
    Lost(Seat),
    /// The game is drawn because of its scores.
    Drawn,
    /// The game is drawn because of its length.
    TooLong,
}

impl Verdict {
    /// Returns the ending of the game.
    pub fn ending(self) -> &'static str {
        match self {
            Verdict::Lost(_) => RESIGNATION,
            Verdict::Drawn => DRAW,
            Verdict::TooLong => PLY_LIMIT,
        }
    }
}

/// The consecutive searches of a seat whose scores count.
#[derive(Clone, Copy, Default)]
struct Streaks {
    low: u32,
    high: u32,
    level: u32,
}

/// Follows a game and decides when it ends.
pub struct Adjudicator {
    rules: Adjudication,
    streaks: Vec<Streaks>,
}

impl Adjudicator {
    /// Creates the adjudicator of a game.
    pub fn new(rules: Adjudication, seats: usize) -> Adjudicator {
        Adjudicator { rules, streaks: vec![Streaks::default(); seats] }
    }

    /// Takes the result of a search, with the depth that it completed.
    pub fn observe(&mut self, seat: Seat, depth: u32, value: Value) {
        if depth == 0 {
            return;
        }
        let score = match value.proof {
            Some(Proof::Win(_)) => f64::INFINITY,
            Some(Proof::Loss(_)) => f64::NEG_INFINITY,
            Some(Proof::Draw(_)) => 0.0,
            Some(Proof::Exact(_)) | None => value.number,
        };
        let streaks = &mut self.streaks[seat.index()];
        let count = |streak: &mut u32, counts: bool| *streak = if counts { *streak + 1 } else { 0 };
        if let Some(Resign { score: limit, .. }) = self.rules.resign {
            count(&mut streaks.low, score <= -limit);
            count(&mut streaks.high, score >= limit);
        }
        if let Some(Draw { score: limit, .. }) = self.rules.draw {
            count(&mut streaks.level, score.abs() <= limit);
        }
    }

    /// Decides whether a game that the rules let continue ends after its first `plies` plies.
    pub fn verdict(&self, plies: usize) -> Option<Verdict> {
        let Adjudication { resign, draw, max_plies } = self.rules;
        let resigned = resign.and_then(|Resign { moves, both, .. }| {
            Seat::all(self.streaks.len()).find(|&seat| {
                let mut others = Seat::all(self.streaks.len()).filter(|&other| other != seat);
                self.streaks[seat.index()].low >= moves
                    && (!both || others.all(|other| self.streaks[other.index()].high >= moves))
            })
        });
        let drawn = draw.is_some_and(|Draw { moves, after, .. }| {
            plies >= after as usize && self.streaks.iter().all(|streaks| streaks.level >= moves)
        });
        let too_long = max_plies.is_some_and(|most| plies >= most as usize);
        resigned
            .map(Verdict::Lost)
            .or(drawn.then_some(Verdict::Drawn))
            .or(too_long.then_some(Verdict::TooLong))
    }
}
