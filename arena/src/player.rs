//! Makes a search from a configuration: one function for each family, one arm for each algorithm.

use agon_games::schema::Values as Settings;
use agon_games::{ChanceGame, Complete, DuelGame, ManyGame};
use agon_search::Searcher;
use agon_search::baseline::{Greedy, RandomPlayer};
use agon_search::chance::{self, ChanceSearch};
use agon_search::duel::{self, DuelSearch};
use agon_search::evaluate::Linear;
use agon_search::many::{self, ManySearch, Values};
use agon_search::ordering::{Order, Stage};
use agon_search::sampling::monte_carlo::MonteCarlo;
use agon_search::sampling::uct::{self, Uct};
use agon_search::sampling::{Estimate, Playout};
use agon_search::searcher::Deepening;
use agon_search::value::{Score, UNIT};

use crate::algorithms::{Algorithm, MaxNValues};
use crate::config::SearchConfig;

/// A search of one game, called once for each move.
pub(crate) type Player<G> = Box<dyn Searcher<G>>;

/// Makes a player for a duel without chance.
pub(crate) fn duel_player<G: DuelGame>(config: &SearchConfig) -> Player<G> {
    let duel = |algorithm| -> Player<G> {
        Box::new(Deepening(DuelSearch::new(duel_options(algorithm, &config.settings), evaluator(config))))
    };
    match config.algorithm.id {
        Algorithm::Minimax => {
            let quiescence = config.settings.flag("quiescence");
            let options = duel::Options { quiescence, ..duel::Options::plain(duel::Algorithm::Minimax) };
            Box::new(Deepening(DuelSearch::new(options, evaluator(config))))
        }
        Algorithm::AlphaBeta => duel(duel::Algorithm::AlphaBeta),
        Algorithm::Pvs => duel(duel::Algorithm::Pvs),
        Algorithm::Mtd => duel(duel::Algorithm::Mtd(config.settings.choice("driver"))),
        Algorithm::Paranoid
        | Algorithm::MaxN
        | Algorithm::BestReply
        | Algorithm::Expectiminimax
        | Algorithm::Star1
        | Algorithm::Star2
        | Algorithm::Random
        | Algorithm::Greedy
        | Algorithm::MonteCarlo
        | Algorithm::Uct => many_player(config),
    }
}

/// Makes a player for any game without chance.
pub(crate) fn many_player<G: ManyGame>(config: &SearchConfig) -> Player<G> {
    let settings = &config.settings;
    let many = |algorithm| -> Player<G> {
        Box::new(Deepening(ManySearch::new(algorithm, order(settings), evaluator(config))))
    };
    match config.algorithm.id {
        Algorithm::Paranoid => many(many::Algorithm::Paranoid),
        Algorithm::MaxN => many(many::Algorithm::MaxN(match settings.choice("values") {
            MaxNValues::Raw => Values::Raw,
            MaxNValues::Shares => Values::Shares { pruning: settings.flag("pruning") },
        })),
        Algorithm::BestReply => many(many::Algorithm::BestReply(settings.choice("threat_ads"))),
        Algorithm::Minimax
        | Algorithm::AlphaBeta
        | Algorithm::Pvs
        | Algorithm::Mtd
        | Algorithm::Expectiminimax
        | Algorithm::Star1
        | Algorithm::Star2
        | Algorithm::Random
        | Algorithm::Greedy
        | Algorithm::MonteCarlo
        | Algorithm::Uct => any_player(config, Estimate::Odds),
    }
}

/// Makes a player for a duel with chance.
pub(crate) fn chance_player<G: ChanceGame>(config: &SearchConfig) -> Player<G> {
    let chance = |algorithm, order| -> Player<G> {
        Box::new(Deepening(ChanceSearch::new(algorithm, order, evaluator(config))))
    };
    match config.algorithm.id {
        Algorithm::Expectiminimax => chance(chance::Algorithm::Expectiminimax, Order::NONE),
        Algorithm::Star1 => chance(chance::Algorithm::Star1, order(&config.settings)),
        Algorithm::Star2 => chance(chance::Algorithm::Star2, order(&config.settings)),
        Algorithm::Minimax
        | Algorithm::AlphaBeta
        | Algorithm::Pvs
        | Algorithm::Mtd
        | Algorithm::Paranoid
        | Algorithm::MaxN
        | Algorithm::BestReply
        | Algorithm::Random
        | Algorithm::Greedy
        | Algorithm::MonteCarlo
        // Evaluations of games with chance are expected payoffs and have no scale.
        | Algorithm::Uct => any_player(config, |_| Estimate::Payoff),
    }
}

/// Makes a player that fits every game. `estimate` makes rewards of evaluations, given `rollout_scale`.
fn any_player<G: Complete>(config: &SearchConfig, estimate: fn(f64) -> Estimate) -> Player<G> {
    let settings = &config.settings;
    let playout = || Playout {
        rollout: settings.choice("rollout"),
        plies: settings.integer("rollout_plies") as u32,
        estimate: estimate(settings.number("rollout_scale")),
    };
    match config.algorithm.id {
        Algorithm::Random => Box::new(RandomPlayer),
        Algorithm::Greedy => Box::new(Greedy::new(evaluator(config))),
        Algorithm::MonteCarlo => {
            Box::new(MonteCarlo::new(config.playouts_per_move(), playout(), evaluator(config)))
        }
        Algorithm::Uct => {
            let first_play = Some(settings.number("first_play")).filter(|value| *value >= 0.0);
            let options = uct::Options {
                c: settings.number("c"),
                first_play,
                playouts: settings.integer("playouts"),
                playout: playout(),
                choice: settings.choice("final"),
                solver: settings.flag("solver"),
                keep: settings.flag("keep"),
                memory_mb: settings.integer("memory_mb") as usize,
            };
            Box::new(Uct::new(options, evaluator(config)))
        }
        Algorithm::Minimax
        | Algorithm::AlphaBeta
        | Algorithm::Pvs
        | Algorithm::Mtd
        | Algorithm::Paranoid
        | Algorithm::MaxN
        | Algorithm::BestReply
        | Algorithm::Expectiminimax
        | Algorithm::Star1
        | Algorithm::Star2 => {
            unreachable!(
                "a configuration names an algorithm that fits its game, not {}",
                config.algorithm.name
            )
        }
    }
}

fn evaluator(config: &SearchConfig) -> Linear {
    Linear::new(&config.weights)
}

fn duel_options(algorithm: duel::Algorithm, settings: &Settings) -> duel::Options {
    // The drivers' windows have no width; they alone have no aspiration.
    let aspiration = match algorithm {
        duel::Algorithm::Mtd(_) => None,
        duel::Algorithm::Minimax | duel::Algorithm::AlphaBeta | duel::Algorithm::Pvs => {
            Some(settings.number("aspiration")).filter(|width| *width > 0.0)
        }
    };
    duel::Options {
        algorithm,
        order: order(settings),
        table_mb: settings.integer("table_mb") as usize,
        table_hits: settings.choice("table_hits"),
        aspiration: aspiration.map(|width| (width * f64::from(UNIT)).round().max(1.0) as Score),
        quiescence: settings.flag("quiescence"),
        null_move: settings.flag("null_move"),
        late_move_reductions: settings.flag("late_move_reductions"),
        keep: settings.flag("keep"),
    }
}

fn order(settings: &Settings) -> Order {
    Order::new(&settings.choices::<Stage>("order"))
}
