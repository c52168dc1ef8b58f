//! All algorithms, one entry each: what they are called, which games they fit, which options they have.
//!
//! The entries feed validation, help texts and pages. `player.rs` has the arm for each that makes a search of it.

use agon_games::GameInfo;

use crate::settings::{Domain, OptionInfo};

/// The kinds of games that differ in which algorithms fit them.
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
    /// The family of a game with so many seats.
    pub fn of(info: &GameInfo, seats: usize) -> Family {
        match (info.chance, seats) {
            (true, _) => Family::Chance,
            (false, 2) => Family::Duel,
            (false, _) => Family::Many,
        }
    }

    /// What games of the family are called in a sentence.
    pub fn describe(self) -> &'static str {
        match self {
            Family::Duel => "duels without chance",
            Family::Many => "games of three or more seats",
            Family::Chance => "games with chance",
        }
    }
}

/// An algorithm as configurations know it.
#[derive(Clone, Copy, Debug)]
pub struct AlgorithmInfo {
    /// Its name.
    pub name: &'static str,
    /// What it is, in a line.
    pub about: &'static str,
    /// The families it fits.
    pub families: &'static [Family],
    /// Its options.
    pub options: &'static [OptionInfo],
    /// Whether it evaluates positions.
    pub evaluates: bool,
    /// Whether it samples: its limit of nodes counts simulations, and a limit of depth means nothing to it.
    pub samples: bool,
    /// Whether it draws: another seed may make it play otherwise.
    pub draws: bool,
}

const ALL: &[Family] = &[Family::Duel, Family::Many, Family::Chance];
const DUEL: &[Family] = &[Family::Duel];
const WITHOUT_CHANCE: &[Family] = &[Family::Duel, Family::Many];
const CHANCE: &[Family] = &[Family::Chance];

const ORDER: OptionInfo = OptionInfo {
    name: "order",
    default: r#"["table", "pv", "values", "static", "killers", "history"]"#,
    domain: Domain::Words(&["table", "pv", "values", "static", "killers", "history"]),
    about: "stages of move ordering, the first decides first",
};
const ORDER_WITHOUT_TABLE: OptionInfo = OptionInfo {
    default: r#"["pv", "values", "static", "killers", "history"]"#,
    domain: Domain::Words(&["pv", "values", "static", "killers", "history"]),
    ..ORDER
};
const ORDER_OF_CHANCE: OptionInfo = OptionInfo {
    default: r#"["pv", "static", "killers", "history"]"#,
    domain: Domain::Words(&["pv", "static", "killers", "history"]),
    ..ORDER
};
const TABLE_MB: OptionInfo = OptionInfo {
    name: "table_mb",
    default: "16",
    domain: Domain::Whole { min: 0, max: 4096 },
    about: "megabytes of the transposition table, 0 for none",
};
const TABLE_HITS: OptionInfo = OptionInfo {
    name: "table_hits",
    default: r#""equal""#,
    domain: Domain::Word(&["equal", "deeper"]),
    about: "entries of equal depth only, or also deeper ones",
};
const ASPIRATION: OptionInfo = OptionInfo {
    name: "aspiration",
    default: "0",
    domain: Domain::Number { min: 0.0, max: 100_000.0 },
    about: "half the width of the window around the last value, 0 for an open window",
};
const QUIESCENCE: OptionInfo = OptionInfo {
    name: "quiescence",
    default: "false",
    domain: Domain::Flag,
    about: "follow noisy moves beyond the horizon",
};
const NULL_MOVE: OptionInfo = OptionInfo {
    name: "null_move",
    default: "false",
    domain: Domain::Flag,
    about: "cut off where even passing is too good: tic-tac-toe, chess, chinese-checkers",
};
const LATE_MOVE_REDUCTIONS: OptionInfo = OptionInfo {
    name: "late_move_reductions",
    default: "false",
    domain: Domain::Flag,
    about: "search late moves less deep at first",
};
const KEEP: OptionInfo = OptionInfo {
    name: "keep",
    default: "true",
    domain: Domain::Flag,
    about: "keep the table or the tree from move to move",
};
const ROLLOUT: OptionInfo = OptionInfo {
    name: "rollout",
    default: r#""uniform""#,
    domain: Domain::Word(&["uniform", "greedy"]),
    about: "how playouts choose moves: the game's light policy, or the most promising",
};
const ROLLOUT_PLIES: OptionInfo = OptionInfo {
    name: "rollout_plies",
    default: "0",
    domain: Domain::Whole { min: 0, max: 100_000 },
    about: "plies after which a playout is cut off and evaluated, 0 for never",
};
const ROLLOUT_SCALE: OptionInfo = OptionInfo {
    name: "rollout_scale",
    default: "4.0",
    domain: Domain::Number { min: 0.001, max: 100_000.0 },
    about: "units of the evaluation that make odds of e to 1 at the cut",
};

/// Every algorithm.
pub static ALGORITHMS: &[AlgorithmInfo] = &[
    AlgorithmInfo {
        name: "random",
        about: "any legal move",
        families: ALL,
        options: &[],
        evaluates: false,
        samples: false,
        draws: true,
    },
    AlgorithmInfo {
        name: "greedy",
        about: "the best evaluation one ply ahead",
        families: ALL,
        options: &[],
        evaluates: true,
        samples: false,
        draws: false,
    },
    AlgorithmInfo {
        name: "minimax",
        about: "full width",
        families: DUEL,
        options: &[],
        evaluates: true,
        samples: false,
        draws: false,
    },
    AlgorithmInfo {
        name: "alpha-beta",
        about: "fail-soft alpha-beta",
        families: DUEL,
        options: &[
            ORDER,
            TABLE_MB,
            TABLE_HITS,
            ASPIRATION,
            QUIESCENCE,
            NULL_MOVE,
            LATE_MOVE_REDUCTIONS,
            KEEP,
        ],
        evaluates: true,
        samples: false,
        draws: false,
    },
    AlgorithmInfo {
        name: "pvs",
        about: "principal variation search (NegaScout)",
        families: DUEL,
        options: &[
            ORDER,
            TABLE_MB,
            TABLE_HITS,
            ASPIRATION,
            QUIESCENCE,
            NULL_MOVE,
            LATE_MOVE_REDUCTIONS,
            KEEP,
        ],
        evaluates: true,
        samples: false,
        draws: false,
    },
    AlgorithmInfo {
        name: "mtd",
        about: "memory-enhanced test drivers",
        families: DUEL,
        options: &[
            OptionInfo {
                name: "driver",
                default: r#""f""#,
                domain: Domain::Word(&["f", "sss", "dual", "bisection"]),
                about: "where to ask next",
            },
            ORDER,
            OptionInfo { domain: Domain::Whole { min: 1, max: 4096 }, ..TABLE_MB },
            TABLE_HITS,
            QUIESCENCE,
            NULL_MOVE,
            LATE_MOVE_REDUCTIONS,
            KEEP,
        ],
        evaluates: true,
        samples: false,
        draws: false,
    },
    AlgorithmInfo {
        name: "paranoid",
        about: "all opponents play against the mover",
        families: WITHOUT_CHANCE,
        options: &[ORDER_WITHOUT_TABLE],
        evaluates: true,
        samples: false,
        draws: false,
    },
    AlgorithmInfo {
        name: "max-n",
        about: "everybody plays for themselves",
        families: WITHOUT_CHANCE,
        options: &[
            OptionInfo {
                name: "values",
                default: r#""raw""#,
                domain: Domain::Word(&["raw", "shares"]),
                about: "evaluations as they are, or as shares of a constant sum",
            },
            OptionInfo {
                name: "pruning",
                default: "false",
                domain: Domain::Flag,
                about: "shallow pruning; sound with shares and a static order only",
            },
            OptionInfo { default: r#"["static"]"#, ..ORDER_WITHOUT_TABLE },
        ],
        evaluates: true,
        samples: false,
        draws: false,
    },
    AlgorithmInfo {
        name: "best-reply",
        about: "one opponent answers, the one who hurts most",
        families: WITHOUT_CHANCE,
        options: &[
            OptionInfo {
                name: "threat_ads",
                default: r#""none""#,
                domain: Domain::Word(&["none", "move-to-front", "transpose"]),
                about: "adaptive list of opponents",
            },
            ORDER_WITHOUT_TABLE,
        ],
        evaluates: true,
        samples: false,
        draws: false,
    },
    AlgorithmInfo {
        name: "expectiminimax",
        about: "full width with chance nodes",
        families: CHANCE,
        options: &[],
        evaluates: true,
        samples: false,
        draws: false,
    },
    AlgorithmInfo {
        name: "star1",
        about: "expectiminimax that leaves decided chance nodes",
        families: CHANCE,
        options: &[ORDER_OF_CHANCE],
        evaluates: true,
        samples: false,
        draws: false,
    },
    AlgorithmInfo {
        name: "star2",
        about: "Star1 after a look below each outcome",
        families: CHANCE,
        options: &[ORDER_OF_CHANCE],
        evaluates: true,
        samples: false,
        draws: false,
    },
    AlgorithmInfo {
        name: "monte-carlo",
        about: "playouts for each move, no tree",
        families: ALL,
        options: &[ROLLOUT, ROLLOUT_PLIES, ROLLOUT_SCALE],
        evaluates: true,
        samples: true,
        draws: true,
    },
    AlgorithmInfo {
        name: "uct",
        about: "Monte Carlo tree search by upper confidence bounds",
        families: ALL,
        options: &[
            OptionInfo {
                name: "c",
                default: "1.0",
                domain: Domain::Number { min: 0.0, max: 1_000.0 },
                about: "weight of exploration",
            },
            OptionInfo {
                name: "first_play",
                default: "-1.0",
                domain: Domain::Number { min: -1.0, max: 1_000.0 },
                about: "value of a child not visited yet, below 0 to visit all first",
            },
            ROLLOUT,
            ROLLOUT_PLIES,
            ROLLOUT_SCALE,
            OptionInfo {
                name: "final",
                default: r#""value""#,
                domain: Domain::Word(&["value", "visits"]),
                about: "which child is played",
            },
            OptionInfo {
                name: "solver",
                default: "false",
                domain: Domain::Flag,
                about: "prove ends upwards (duels without chance)",
            },
            KEEP,
            OptionInfo {
                name: "memory_mb",
                default: "256",
                domain: Domain::Whole { min: 1, max: 65_536 },
                about: "the most memory for the tree",
            },
        ],
        evaluates: true,
        samples: true,
        draws: true,
    },
];

/// The algorithms that fit a family.
pub fn fitting(family: Family) -> impl Iterator<Item = &'static AlgorithmInfo> {
    ALGORITHMS.iter().filter(move |algorithm| algorithm.families.contains(&family))
}
