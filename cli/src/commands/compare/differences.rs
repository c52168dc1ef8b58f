//! The differences of two specs, key by key.

use std::collections::BTreeSet;

use agon_arena::spec::{Format, Openings, Plan, SpecPlayer};
use agon_arena::{EngineConfig, PlayerConfig, SearchConfig, Spec};
use agon_games::GAMES;
use serde::Serialize;

use super::super::games::limit_text;
use super::super::runs::LoadedRun;

/// A difference of two specs.
#[derive(Serialize)]
pub struct Difference {
    /// The name of the key.
    pub what: String,
    /// The value in the first spec.
    pub first: String,
    /// The value in the second spec.
    pub second: String,
}

/// Returns the differences of the builds and specs of two runs.
pub fn differences(first: &LoadedRun, second: &LoadedRun) -> Vec<Difference> {
    let mut found = Differences(Vec::new());
    found.compare("build", &first.run.build, &second.run.build);
    let (one, other) = (&first.spec, &second.spec);
    found.compare("game", &one.game.to_string(), &other.game.to_string());
    found.compare("seed", &one.seed.to_string(), &other.seed.to_string());
    found.compare("normalise", &one.normalise.to_string(), &other.normalise.to_string());
    if one.openings != other.openings {
        let (one, other) = (openings(&one.openings), openings(&other.openings));
        let other_lines = if one == other { " (other ones)" } else { "" };
        found.0.push(Difference { what: "openings".to_string(), first: one, second: other + other_lines });
    }
    found.compare("tournament", &plan(one), &plan(other));
    // The features of different games are not comparable.
    let features = if one.game.name() == other.game.name() { features(one) } else { Vec::new() };
    let namesake = |player: &SpecPlayer| other.players.iter().find(|known| known.name == player.name);
    let both: Vec<(&SpecPlayer, &SpecPlayer)> =
        one.players.iter().filter_map(|player| Some((player, namesake(player)?))).collect();
    // A limit that all players share is listed once.
    let shared =
        both.iter().all(|(one, other)| (one.limit, other.limit) == (both[0].0.limit, both[0].1.limit));
    if shared && let Some((one, other)) = both.first() {
        found.compare("limit", &limit_text(one.limit), &limit_text(other.limit));
    }
    for (one, other) in both {
        if !shared {
            found.compare(
                &format!("limit of {}", one.name),
                &limit_text(one.limit),
                &limit_text(other.limit),
            );
        }
        found.player(one, other, &features);
    }
    found.0
}

struct Differences(Vec<Difference>);

impl Differences {
    fn compare(&mut self, what: &str, first: &str, second: &str) {
        if first != second {
            let (what, first, second) = (what.to_string(), first.to_string(), second.to_string());
            self.0.push(Difference { what, first, second });
        }
    }

    fn player(&mut self, one: &SpecPlayer, other: &SpecPlayer, features: &[&str]) {
        let what = |key: &str| format!("{key} of {}", one.name);
        let (first, second) = match (&one.config, &other.config) {
            (PlayerConfig::Search(first), PlayerConfig::Search(second)) => (first, second),
            (PlayerConfig::Engine(first), PlayerConfig::Engine(second)) => {
                self.compare(&what("engine"), first.name(), second.name());
                let names: BTreeSet<&String> = first.options.keys().chain(second.options.keys()).collect();
                for name in names {
                    let value = |engine: &EngineConfig| {
                        engine
                            .options
                            .get(name)
                            .map_or_else(|| "its default".to_string(), ToString::to_string)
                    };
                    self.compare(&what(name), &value(first), &value(second));
                }
                return;
            }
            (first, second) => return self.compare(&what("player"), first.name(), second.name()),
        };
        self.compare(&what("algorithm"), first.algorithm.name, second.algorithm.name);
        if first.algorithm.name == second.algorithm.name {
            for option in first.algorithm.options {
                let value = |config: &SearchConfig| config.settings.value(option.name).to_string();
                self.compare(&what(option.name), &value(first), &value(second));
            }
        }
        for (feature, (first, second)) in features.iter().zip(first.weights.iter().zip(&second.weights)) {
            self.compare(&what(feature), &first.to_string(), &second.to_string());
        }
    }
}

/// Returns the features of a spec's game.
fn features(spec: &Spec) -> Vec<&'static str> {
    let info = GAMES.iter().find(|info| info.name == spec.game.name());
    info.map_or_else(Vec::new, |info| info.features.iter().map(|feature| feature.name).collect())
}

fn openings(openings: &Openings) -> String {
    match openings {
        Openings::None => "none".to_string(),
        Openings::Random { plies } => format!("{plies} random plies"),
        Openings::Lines(lines) => format!("a file with {} openings", lines.len()),
    }
}

fn plan(spec: &Spec) -> String {
    match &spec.plan {
        Plan::Tournament(Format::RoundRobin { bouts }) => format!("round-robin, {bouts} bouts per pairing"),
        Plan::Tournament(Format::Gauntlet { hero, bouts }) => {
            format!("gauntlet of {}, {bouts} bouts per pairing", spec.players[*hero].name)
        }
        Plan::Tournament(Format::Sprt(test)) => {
            format!("sequential test of {} against {}", test.bounds[0], test.bounds[1])
        }
        Plan::Probe(_) => "probe".to_string(),
        Plan::Tune(tune) => format!("tune of {} by {}", spec.players[tune.player].name, tune.method.name()),
    }
}
