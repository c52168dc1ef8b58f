//! The players of a report: their configuration, their order and their colours.
//!
//! The order is that of the ratings and the same throughout the page; the colour is that of the player's number in the spec, so
//! that it stays the same while results come in.

use agon_arena::spec::SpecPlayer;
use agon_arena::{LimitUnit, PlayerConfig, Spec};
use agon_games::GAMES;
use agon_records::LimitKind;
use serde::Serialize;

use super::html::Cell;
use super::svg::series;
use super::{Availability, Report};
use crate::format::count;

/// A player's configuration in brief.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Player {
    /// Name.
    pub name: String,
    /// Number in the spec, from 0, which is also that of its colour.
    pub number: usize,
    /// Search algorithm.
    pub algorithm: String,
    /// Limit per move.
    pub limit: String,
    /// Options that are not the default and not the same for all players, and the weights if they are not the default.
    pub options: Vec<(String, String)>,
}

/// A setting of a player that is not the default: name and value.
type Setting = (String, String);

/// Reads the players in spec order.
pub(super) fn read(spec: &Spec) -> Vec<Player> {
    let settings: Vec<Vec<Setting>> = spec.players.iter().map(|player| settings(spec, player)).collect();
    let differs = |setting: &&Setting| settings.iter().any(|other| !other.contains(setting));
    let player = |(number, player): (usize, &SpecPlayer)| Player {
        name: player.name.clone(),
        number,
        algorithm: player.config.name().to_string(),
        limit: limit_text(LimitKind::of(player.limit), limit_unit(&player.config)),
        options: settings[number].iter().filter(differs).cloned().collect(),
    };
    spec.players.iter().enumerate().map(player).collect()
}

/// Returns what a limit of nodes counts.
fn limit_unit(config: &PlayerConfig) -> LimitUnit {
    config.search().map_or(LimitUnit::Nodes, |search| search.algorithm.limit_unit)
}

/// Formats a limit per move of a search whose limit of nodes has this unit.
fn limit_text((kind, value): (LimitKind, u64), unit: LimitUnit) -> String {
    let value = count(value);
    match kind {
        LimitKind::Nodes if unit == LimitUnit::Simulations => format!("{value} simulations"),
        LimitKind::Nodes => format!("{value} nodes"),
        LimitKind::Depth => format!("depth {value}"),
        LimitKind::Ms => format!("{value} ms"),
        LimitKind::CpuMs => format!("{value} ms of CPU time"),
        kind => format!("{} {value}", kind.name()),
    }
}

/// Lists the options of a player that are not the default, and its weights if they are not.
fn settings(spec: &Spec, player: &SpecPlayer) -> Vec<Setting> {
    let config = match &player.config {
        PlayerConfig::Search(config) => config,
        PlayerConfig::Engine(engine) => {
            let options = engine.options.iter();
            return options.map(|(name, value)| (name.clone(), value.to_string())).collect();
        }
    };
    let changed = config.settings.changed(config.algorithm.options);
    let mut settings: Vec<Setting> =
        changed.map(|(name, value)| (name.to_string(), value.as_toml())).collect();
    let features = GAMES.iter().find(|info| info.name == spec.game.name()).map(|info| info.features);
    let weights = || features.unwrap_or_default().iter().zip(&config.weights);
    if config.algorithm.evaluates_with(&config.settings)
        && weights().any(|(feature, weight)| feature.weight != *weight)
    {
        let used = weights().filter(|(_, weight)| **weight != 0.0);
        settings.extend(used.map(|(feature, weight)| (feature.name.to_string(), weight.to_string())));
    }
    settings
}

/// Puts the players of the whole report in the order of the ratings.
pub(super) fn order(report: &mut Report) {
    let Availability::Available(ratings) = &report.ratings else { return };
    let rank = |name: &str| ratings.players.iter().position(|player| player.name == name);
    report.players.sort_by_key(|player| rank(&player.name));
    report.efforts.sort_by_key(|effort| rank(&effort.player));
    report.pruning.players.sort_by_key(|player| rank(&player.player));
    report.pruning.by_depth.sort_by_key(|row| rank(&row.player));
}

impl Report {
    /// Returns the class of a player's colour.
    pub(super) fn class(&self, name: &str) -> String {
        series(self.players.iter().find(|player| player.name == name).map_or(0, |player| player.number))
    }

    /// Returns a table cell with a player's name and colour.
    pub(super) fn cell(&self, name: &str) -> Cell {
        Cell::Player(name.to_string(), self.class(name))
    }

    /// Returns whether two players were compared, so that their difference says everything.
    pub(super) fn is_duel(&self) -> bool {
        self.ratings.get().is_some_and(|ratings| ratings.difference.is_some())
    }

    /// Returns the name of a file that a chart is saved as, without its ending.
    pub(super) fn file(&self, chart: &str) -> String {
        format!("{}-{chart}", self.run)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_have_units_and_separated_thousands() {
        let text = |kind, unit| limit_text((kind, 100_000), unit);
        assert_eq!(text(LimitKind::Nodes, LimitUnit::Nodes), "100,000 nodes");
        assert_eq!(text(LimitKind::Nodes, LimitUnit::Simulations), "100,000 simulations");
        assert_eq!(text(LimitKind::Ms, LimitUnit::Nodes), "100,000 ms");
        assert_eq!(limit_text((LimitKind::Depth, 6), LimitUnit::Nodes), "depth 6");
    }
}
