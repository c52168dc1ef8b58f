//! The table of all algorithms: names, suitable games and options, for validation, help texts and documentation.
//!
//! `player.rs` has one arm for each algorithm, which makes its search.

use agon_games::schema::{Choice, Domain, Key, Values};
use agon_games::setup::Turns;
use agon_games::{GameInfo, choices};
use agon_search::duel::{Driver, TableHits};
use agon_search::many::ThreatRule;
use agon_search::ordering::Stage;
use agon_search::sampling::Rollout;
use agon_search::sampling::uct::Final;

/// The families of games, which determine the suitable algorithms.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    /// Two seats, no chance.
    Duel,
    /// Three or more seats, no chance.
    Many,
    /// Two seats, with chance.
    Chance,
}

impl Family {
    /// Returns the family of a game with this number of seats.
    pub fn of(info: &GameInfo, seats: usize) -> Family {
        match (info.chance, seats) {
            (true, _) => Family::Chance,
            (false, 2) => Family::Duel,
            (false, _) => Family::Many,
        }
    }

    /// Returns the name of the family's games for sentences.
    pub fn describe(self) -> &'static str {
        match self {
            Family::Duel => "duels without chance",
            Family::Many => "games of three or more seats",
            Family::Chance => "games with chance",
        }
    }
}

/// The algorithms.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Algorithm {
    /// A random legal move.
    Random,
    /// The best evaluation one ply ahead.
    Greedy,
    /// Full-width minimax.
    Minimax,
    /// Fail-soft alpha-beta.
    AlphaBeta,
    /// Principal variation search.
    Pvs,
    /// Memory-enhanced test drivers.
    Mtd,
    /// Paranoid search.
    Paranoid,
    /// Max-n.
    MaxN,
    /// Best-reply search.
    BestReply,
    /// Full-width expectiminimax.
    Expectiminimax,
    /// Star1.
    Star1,
    /// Star2.
    Star2,
    /// Flat Monte Carlo.
    MonteCarlo,
    /// Monte Carlo tree search by upper confidence bounds.
    Uct,
}

/// The option `values` of max-n.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum MaxNValues {
    /// Evaluations as they are.
    Raw,
    /// Shares of a constant sum.
    Shares,
}

choices!(MaxNValues { Raw = "raw", Shares = "shares" });

/// The description of an algorithm.
#[derive(Clone, Copy, Debug)]
pub struct AlgorithmInfo {
    /// The algorithm.
    pub id: Algorithm,
    /// The name.
    pub name: &'static str,
    /// A description in one line.
    pub about: &'static str,
    /// The suitable families.
    pub families: &'static [Family],
    /// The options.
    pub options: &'static [Key],
    /// Whether the algorithm evaluates positions.
    pub evaluates: bool,
    /// The unit of a node limit.
    pub limit_unit: LimitUnit,
    /// Whether the algorithm draws random numbers, so that another seed may change its moves.
    pub draws: bool,
}

/// The unit of a node limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LimitUnit {
    /// Entered positions.
    Nodes,
    /// Simulations; such a search has no depth limit.
    Simulations,
}

impl AlgorithmInfo {
    /// Returns whether the algorithm suits a game with this number of seats. Best-reply search lets an opponent answer
    /// each move of the mover, which is wrong where a seat may move several times in a row.
    pub fn suits(&self, info: &GameInfo, seats: usize) -> bool {
        let takes_turns = self.id != Algorithm::BestReply || info.turns != Turns::MoveAgain;
        takes_turns && self.families.contains(&Family::of(info, seats))
    }

    /// Returns whether the algorithm supports a depth limit.
    pub fn has_depth(&self) -> bool {
        self.limit_unit == LimitUnit::Nodes
    }

    /// Returns whether the algorithm evaluates positions with these settings. Playouts are evaluated only where
    /// `rollout_plies` cuts them off.
    pub fn evaluates_with(&self, settings: &Values) -> bool {
        let has_cut = self.options.iter().any(|option| option.name == ROLLOUT_PLIES.name);
        self.evaluates && !(has_cut && settings.integer(ROLLOUT_PLIES.name) == 0)
    }
}

const ALL: &[Family] = &[Family::Duel, Family::Many, Family::Chance];
const DUEL: &[Family] = &[Family::Duel];
const WITHOUT_CHANCE: &[Family] = &[Family::Duel, Family::Many];
const CHANCE: &[Family] = &[Family::Chance];

const ORDER: Key = Key {
    name: "order",
    default: "table pv values static killers history",
    domain: Domain::Choices(Stage::NAMES),
    about: "stages of move ordering, the first decides first",
};
const ORDER_WITHOUT_TABLE: Key = Key {
    default: "pv values static killers history",
    domain: Domain::Choices(&["pv", "values", "static", "killers", "history"]),
    ..ORDER
};
const ORDER_OF_CHANCE: Key = Key {
    default: "pv static killers history",
    domain: Domain::Choices(&["pv", "static", "killers", "history"]),
    ..ORDER
};
const TABLE_MB: Key = Key {
    name: "table_mb",
    default: "16",
    domain: Domain::Integer { min: 0, max: 4096 },
    about: "megabytes of the transposition table, 0 for none",
};
const TABLE_HITS: Key = Key {
    name: "table_hits",
    default: "equal",
    domain: Domain::Choice(TableHits::NAMES),
    about: "entries of equal depth only, or also deeper ones",
};
const ASPIRATION: Key = Key {
    name: "aspiration",
    default: "0",
    domain: Domain::Number { min: 0.0, max: 100_000.0 },
    about: "half the width of the window around the last value, 0 for an open window",
};
const QUIESCENCE: Key = Key {
    name: "quiescence",
    default: "false",
    domain: Domain::Flag,
    about: "follow noisy moves beyond the horizon",
};
const NULL_MOVE: Key = Key {
    name: "null_move",
    default: "false",
    domain: Domain::Flag,
    about: "cut off where even passing is too good: tic-tac-toe, chess, chinese-checkers",
};
const LATE_MOVE_REDUCTIONS: Key = Key {
    name: "late_move_reductions",
    default: "false",
    domain: Domain::Flag,
    about: "search late moves less deep at first",
};
const KEEP: Key = Key {
    name: "keep",
    default: "true",
    domain: Domain::Flag,
    about: "keep the table or the tree from move to move",
};
pub(crate) const PLAYOUTS_PER_MOVE: Key = Key {
    name: "playouts_per_move",
    default: "0",
    domain: Domain::Integer { min: 0, max: 1_000_000_000 },
    about: "playouts for each move, after which the search ends before its limit; 0 for no such end",
};
const PLAYOUTS: Key = Key {
    name: "playouts",
    default: "1",
    domain: Domain::Integer { min: 1, max: 1_000_000 },
    about: "playouts at each new leaf, whose mean is backed up; each counts as a simulation",
};
const ROLLOUT: Key = Key {
    name: "rollout",
    default: "uniform",
    domain: Domain::Choice(Rollout::NAMES),
    about: "how playouts choose moves: the game's light policy, or the most promising",
};
const ROLLOUT_PLIES: Key = Key {
    name: "rollout_plies",
    default: "0",
    domain: Domain::Integer { min: 0, max: 100_000 },
    about: "plies after which a playout is cut off and evaluated, 0 for never",
};
const ROLLOUT_SCALE: Key = Key {
    name: "rollout_scale",
    default: "4.0",
    domain: Domain::Number { min: 0.001, max: 100_000.0 },
    about: "units of the evaluation that make odds of e to 1 at the cut (games without chance)",
};

/// The entry whose fields are the defaults of the other entries.
const MINIMAX: AlgorithmInfo = AlgorithmInfo {
    id: Algorithm::Minimax,
    name: "minimax",
    about: "full width",
    families: DUEL,
    options: &[],
    evaluates: true,
    limit_unit: LimitUnit::Nodes,
    draws: false,
};

const DUEL_OPTIONS: &[Key] =
    &[ORDER, TABLE_MB, TABLE_HITS, ASPIRATION, QUIESCENCE, NULL_MOVE, LATE_MOVE_REDUCTIONS, KEEP];

/// Every algorithm.
pub static ALGORITHMS: &[AlgorithmInfo] = &[
    AlgorithmInfo {
        id: Algorithm::Random,
        name: "random",
        about: "any legal move",
        families: ALL,
        evaluates: false,
        draws: true,
        ..MINIMAX
    },
    AlgorithmInfo {
        id: Algorithm::Greedy,
        name: "greedy",
        about: "the best evaluation one ply ahead",
        families: ALL,
        ..MINIMAX
    },
    AlgorithmInfo { options: &[QUIESCENCE], ..MINIMAX },
    AlgorithmInfo {
        id: Algorithm::AlphaBeta,
        name: "alpha-beta",
        about: "fail-soft alpha-beta",
        options: DUEL_OPTIONS,
        ..MINIMAX
    },
    AlgorithmInfo {
        id: Algorithm::Pvs,
        name: "pvs",
        about: "principal variation search (NegaScout)",
        options: DUEL_OPTIONS,
        ..MINIMAX
    },
    AlgorithmInfo {
        id: Algorithm::Mtd,
        name: "mtd",
        about: "memory-enhanced test drivers",
        options: &[
            Key {
                name: "driver",
                default: "f",
                domain: Domain::Choice(Driver::NAMES),
                about: "where to ask next",
            },
            ORDER,
            Key { domain: Domain::Integer { min: 1, max: 4096 }, ..TABLE_MB },
            TABLE_HITS,
            QUIESCENCE,
            NULL_MOVE,
            LATE_MOVE_REDUCTIONS,
            KEEP,
        ],
        ..MINIMAX
    },
    AlgorithmInfo {
        id: Algorithm::Paranoid,
        name: "paranoid",
        about: "all opponents play against the mover",
        families: WITHOUT_CHANCE,
        options: &[ORDER_WITHOUT_TABLE],
        ..MINIMAX
    },
    AlgorithmInfo {
        id: Algorithm::MaxN,
        name: "max-n",
        about: "everybody plays for themselves",
        families: WITHOUT_CHANCE,
        options: &[
            Key {
                name: "values",
                default: "raw",
                domain: Domain::Choice(MaxNValues::NAMES),
                about: "evaluations as they are, or as shares of a constant sum",
            },
            Key {
                name: "pruning",
                default: "false",
                domain: Domain::Flag,
                about: "shallow pruning; sound with shares and a static order only",
            },
            Key { default: "static", ..ORDER_WITHOUT_TABLE },
        ],
        ..MINIMAX
    },
    AlgorithmInfo {
        id: Algorithm::BestReply,
        name: "best-reply",
        about: "one opponent answers, the one who hurts most",
        families: WITHOUT_CHANCE,
        options: &[
            Key {
                name: "threat_ads",
                default: "none",
                domain: Domain::Choice(ThreatRule::NAMES),
                about: "adaptive list of opponents",
            },
            ORDER_WITHOUT_TABLE,
        ],
        ..MINIMAX
    },
    AlgorithmInfo {
        id: Algorithm::Expectiminimax,
        name: "expectiminimax",
        about: "full width with chance nodes",
        families: CHANCE,
        ..MINIMAX
    },
    AlgorithmInfo {
        id: Algorithm::Star1,
        name: "star1",
        about: "expectiminimax that leaves decided chance nodes",
        families: CHANCE,
        options: &[ORDER_OF_CHANCE],
        ..MINIMAX
    },
    AlgorithmInfo {
        id: Algorithm::Star2,
        name: "star2",
        about: "Star1 after a look below each outcome",
        families: CHANCE,
        options: &[ORDER_OF_CHANCE],
        ..MINIMAX
    },
    AlgorithmInfo {
        id: Algorithm::MonteCarlo,
        name: "monte-carlo",
        about: "playouts for each move, no tree",
        families: ALL,
        options: &[PLAYOUTS_PER_MOVE, ROLLOUT, ROLLOUT_PLIES, ROLLOUT_SCALE],
        limit_unit: LimitUnit::Simulations,
        draws: true,
        ..MINIMAX
    },
    AlgorithmInfo {
        id: Algorithm::Uct,
        name: "uct",
        about: "Monte Carlo tree search by upper confidence bounds",
        families: ALL,
        options: &[
            Key {
                name: "c",
                default: "1.0",
                domain: Domain::Number { min: 0.0, max: 1_000.0 },
                about: "weight of exploration, in differences between an ordinary win and a loss",
            },
            Key {
                name: "first_play",
                default: "-1.0",
                domain: Domain::Number { min: -1.0, max: 1_000.0 },
                about: "value of a child not visited yet, 0 a loss and 1 a win; below 0 to visit all first",
            },
            PLAYOUTS,
            ROLLOUT,
            ROLLOUT_PLIES,
            ROLLOUT_SCALE,
            Key {
                name: "final",
                default: "value",
                domain: Domain::Choice(Final::NAMES),
                about: "which child is played",
            },
            Key {
                name: "solver",
                default: "false",
                domain: Domain::Flag,
                about: "prove ends upwards (duels without chance)",
            },
            KEEP,
            Key {
                name: "memory_mb",
                default: "256",
                domain: Domain::Integer { min: 1, max: 65_536 },
                about: "the most memory for the tree",
            },
        ],
        limit_unit: LimitUnit::Simulations,
        draws: true,
        ..MINIMAX
    },
];

/// Returns the algorithms that suit a game with this number of seats.
pub fn fitting(info: &GameInfo, seats: usize) -> impl Iterator<Item = &'static AlgorithmInfo> {
    ALGORITHMS.iter().filter(move |algorithm| algorithm.suits(info, seats))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_defaults_valid() {
        for (index, info) in ALGORITHMS.iter().enumerate() {
            assert!(ALGORITHMS[..index].iter().all(|other| other.id != info.id && other.name != info.name));
            for option in info.options {
                option.default_value();
                if let Domain::Choices(words) = option.domain {
                    assert!(words.iter().all(|word| Stage::named(word).is_some()), "{}", info.name);
                }
            }
        }
    }
}
