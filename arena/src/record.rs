//! The records of games and searches: plain data with moves as text, for every game.

use std::time::Duration;

use agon_games::Notation;
use agon_search::{Counters, Limit, SearchResult, Value};

/// The record of a search.
#[derive(Clone, PartialEq, Debug)]
pub struct SearchRecord {
    /// The chosen move.
    pub mv: String,
    /// The value for the seat that moves.
    pub value: Value,
    /// The last completed depth.
    pub depth: u32,
    /// The greatest distance from the root.
    pub selective_depth: u32,
    /// The counters.
    pub counters: Counters,
    /// The principal variation.
    pub line: Vec<String>,
    /// The completed iterations.
    pub iterations: Vec<IterationRecord>,
    /// The time taken.
    pub time: Duration,
    /// The time beyond the limit.
    pub overshoot: Duration,
    /// The limit.
    pub limit: Limit,
}

/// The record of a completed iteration.
#[derive(Clone, PartialEq, Debug)]
pub struct IterationRecord {
    /// The depth.
    pub depth: u32,
    /// The greatest distance from the root so far.
    pub selective_depth: u32,
    /// Nodes of this iteration alone.
    pub nodes: u64,
    /// Time of this iteration alone.
    pub time: Duration,
    /// The principal variation.
    pub line: Vec<String>,
    /// The value.
    pub value: Value,
}

impl IterationRecord {
    pub(crate) fn new<G: Notation>(root: &G, iteration: &agon_search::Iteration<G::Move>) -> IterationRecord {
        IterationRecord {
            depth: iteration.depth,
            selective_depth: iteration.selective_depth,
            nodes: iteration.nodes,
            time: iteration.time,
            line: line_texts(root, &iteration.line),
            value: iteration.value,
        }
    }
}

impl SearchRecord {
    pub(crate) fn new<G: Notation>(root: &G, answer: &SearchResult<G::Move>, limit: Limit) -> SearchRecord {
        SearchRecord {
            mv: root.move_text(answer.best),
            value: answer.value,
            depth: answer.depth,
            selective_depth: answer.selective_depth,
            counters: answer.counters,
            line: line_texts(root, &answer.line),
            iterations: answer
                .iterations
                .iter()
                .map(|iteration| IterationRecord::new(root, iteration))
                .collect(),
            time: answer.time,
            overshoot: answer.overshoot,
            limit,
        }
    }
}

/// Formats the moves of a line. Stops where the line leaves the game's turn order, as those of best-reply search do.
pub(crate) fn line_texts<G: Notation>(root: &G, line: &[G::Move]) -> Vec<String> {
    let mut position = root.clone();
    let mut texts = Vec::new();
    let mut legal = Vec::new();
    for &mv in line {
        legal.clear();
        position.moves(&mut legal);
        if !legal.contains(&mv) {
            break;
        }
        texts.push(position.move_text(mv));
        position.play(mv);
    }
    texts
}

/// The record of one ply.
#[derive(Clone, PartialEq, Debug)]
pub struct MoveRecord {
    /// The number of earlier plies.
    pub ply: u32,
    /// The seat that moved; none for chance.
    pub seat: Option<usize>,
    /// The number of the player that searched; none for chance and in the opening.
    pub player: Option<usize>,
    /// The text of the move.
    pub mv: String,
    /// The number of legal moves.
    pub legal: u32,
    /// The search; none for chance and in the opening.
    pub search: Option<SearchRecord>,
}

/// The record of a game.
#[derive(Clone, PartialEq, Debug)]
pub struct GameRecord {
    /// The numbers of the players by seat.
    pub players: Vec<usize>,
    /// Every ply, opening and chance included.
    pub moves: Vec<MoveRecord>,
    /// The payoffs by seat.
    pub payoffs: Vec<i32>,
    /// How it ended.
    pub ending: String,
    /// What happened, if it ended by a fault of an engine; otherwise empty.
    pub detail: String,
    /// The processor time of engines by seat, 0 for built-in players; empty without engines.
    pub engine_cpu: Vec<Duration>,
    /// The seed of the game.
    pub seed: u64,
    /// The time taken.
    pub time: Duration,
}
