//! From a configuration to a search: one arm an algorithm, one function a family.

use agon_games::{ChanceGame, Complete, DuelGame, ManyGame};
use agon_search::Searcher;
use agon_search::baseline::{Greedy, RandomPlayer};
use agon_search::chance::{self, ChanceSearch};
use agon_search::duel::{self, Driver, DuelSearch, TableHits};
use agon_search::evaluate::Linear;
use agon_search::many::{self, ManySearch, ThreatRule, Values};
use agon_search::ordering::{Order, Stage};
use agon_search::sampling::monte_carlo::MonteCarlo;
use agon_search::sampling::uct::{self, Final, Uct};
use agon_search::sampling::{Playout, Rollout};
use agon_search::searcher::Deepening;
use agon_search::value::{Score, UNIT};

use crate::config::PlayerConfig;
use crate::settings::Settings;

/// A search of one game behind the boundary of a move.
pub(crate) type Player<G> = Box<dyn Searcher<G>>;

/// A player for a duel without chance.
pub(crate) fn duel_player<G: DuelGame>(config: &PlayerConfig) -> Player<G> {
    let duel = |algorithm| -> Player<G> {
        Box::new(Deepening(DuelSearch::new(duel_options(algorithm, &config.settings), evaluator(config))))
    };
    match config.algorithm.name {
        "minimax" => {
            let options = duel::Options::plain(duel::Algorithm::Minimax);
            Box::new(Deepening(DuelSearch::new(options, evaluator(config))))
        }
        "alpha-beta" => duel(duel::Algorithm::AlphaBeta),
        "pvs" => duel(duel::Algorithm::Pvs),
        "mtd" => duel(duel::Algorithm::Mtd(match config.settings.word("driver") {
            "sss" => Driver::Sss,
            "dual" => Driver::Dual,
            "bisection" => Driver::Bisection,
            _ => Driver::F,
        })),
        _ => many_player(config),
    }
}

/// A player for any game without chance.
pub(crate) fn many_player<G: ManyGame>(config: &PlayerConfig) -> Player<G> {
    let settings = &config.settings;
    let many = |algorithm| -> Player<G> {
        Box::new(Deepening(ManySearch::new(algorithm, order(settings), evaluator(config))))
    };
    match config.algorithm.name {
        "paranoid" => many(many::Algorithm::Paranoid),
        "max-n" => many(many::Algorithm::MaxN(match settings.word("values") {
            "shares" => Values::Shares { pruning: settings.flag("pruning") },
            _ => Values::Raw,
        })),
        "best-reply" => many(many::Algorithm::BestReply(match settings.word("threat_ads") {
            "move-to-front" => ThreatRule::MoveToFront,
            "transpose" => ThreatRule::Transpose,
            _ => ThreatRule::None,
        })),
        _ => any_player(config),
    }
}

/// A player for a duel with chance.
pub(crate) fn chance_player<G: ChanceGame>(config: &PlayerConfig) -> Player<G> {
    let chance = |algorithm, order| -> Player<G> {
        Box::new(Deepening(ChanceSearch::new(algorithm, order, evaluator(config))))
    };
    match config.algorithm.name {
        "expectiminimax" => chance(chance::Algorithm::Expectiminimax, Order::NONE),
        "star1" => chance(chance::Algorithm::Star1, order(&config.settings)),
        "star2" => chance(chance::Algorithm::Star2, order(&config.settings)),
        _ => any_player(config),
    }
}

/// A player that fits every game.
fn any_player<G: Complete>(config: &PlayerConfig) -> Player<G> {
    let settings = &config.settings;
    match config.algorithm.name {
        "random" => Box::new(RandomPlayer),
        "greedy" => Box::new(Greedy::new(evaluator(config))),
        "monte-carlo" => Box::new(MonteCarlo::new(playout(settings), evaluator(config))),
        "uct" => {
            let first_play = Some(settings.number("first_play")).filter(|value| *value >= 0.0);
            let options = uct::Options {
                c: settings.number("c"),
                first_play,
                playout: playout(settings),
                choice: if settings.word("final") == "visits" { Final::Visits } else { Final::Value },
                solver: settings.flag("solver"),
                keep: settings.flag("keep"),
                memory_mb: settings.whole("memory_mb") as usize,
            };
            Box::new(Uct::new(options, evaluator(config)))
        }
        name => unreachable!("a configuration names an algorithm that fits its game, not {name}"),
    }
}

fn evaluator(config: &PlayerConfig) -> Linear {
    Linear::new(&config.weights)
}

fn duel_options(algorithm: duel::Algorithm, settings: &Settings) -> duel::Options {
    // The drivers' windows have no width; they alone have no aspiration.
    let aspiration = match algorithm {
        duel::Algorithm::Mtd(_) => None,
        _ => Some(settings.number("aspiration")).filter(|width| *width > 0.0),
    };
    duel::Options {
        algorithm,
        order: order(settings),
        table_mb: settings.whole("table_mb") as usize,
        table_hits: if settings.word("table_hits") == "deeper" {
            TableHits::Deeper
        } else {
            TableHits::Equal
        },
        aspiration: aspiration.map(|width| (width * f64::from(UNIT)).round().max(1.0) as Score),
        quiescence: settings.flag("quiescence"),
        null_move: settings.flag("null_move"),
        late_move_reductions: settings.flag("late_move_reductions"),
        keep: settings.flag("keep"),
    }
}

fn order(settings: &Settings) -> Order {
    let stage = |word: &&str| Stage::ALL.iter().find(|(_, name)| name == word).map(|(stage, _)| *stage);
    let stages: Vec<Stage> = settings.words("order").iter().filter_map(stage).collect();
    Order::new(&stages)
}

fn playout(settings: &Settings) -> Playout {
    Playout {
        rollout: if settings.word("rollout") == "greedy" { Rollout::Greedy } else { Rollout::Uniform },
        plies: settings.whole("rollout_plies") as u32,
        scale: settings.number("rollout_scale"),
    }
}
