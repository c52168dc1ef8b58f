//! A player's configuration: a search table and an evaluation table, read from TOML and checked against a game.

use agon_games::{Feature, GAMES, GameInfo, GameSpec};
use agon_search::Limit;
use agon_search::evaluate::WEIGHT_UNIT;
use toml::de::{DeTable, DeValue};

use crate::algorithms::{ALGORITHMS, AlgorithmInfo, Family, fitting};
use crate::error::ConfigError;
use crate::settings::{Domain, Setting, Settings, number};

/// The greatest weight of a feature.
const LARGEST_WEIGHT: f64 = 1e6;

/// A player that fits a game: algorithm, options, evaluation weights.
#[derive(Clone, Debug)]
pub struct PlayerConfig {
    /// The algorithm.
    pub algorithm: &'static AlgorithmInfo,
    /// Its options, every one with a value.
    pub settings: Settings,
    /// A weight for each feature of the game.
    pub weights: Vec<f64>,
}

/// A number in a player's configuration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    /// The weight of the feature with this number.
    Weight(usize),
    /// An option of the search that is any number.
    Number(&'static str),
    /// An option of the search that is a whole number.
    Whole(&'static str),
}

impl PlayerConfig {
    /// What a path such as `search.c` or `evaluation.mobility` means in this player, and the bounds of it. The reason why
    /// it means nothing is a sentence.
    pub fn target(&self, game: &GameSpec, path: &str) -> Result<(Target, [f64; 2]), String> {
        let info =
            GAMES.iter().find(|info| info.name == game.name()).expect("a GameSpec names a listed game");
        let algorithm = self.algorithm;
        let unknown = |table: &str, name: &str, known: &mut dyn Iterator<Item = &'static str>| {
            let known: Vec<&str> = known.collect();
            let near = agon_games::setup::suggestion(name, known.iter().copied());
            let hint = near.map(|near| format!(" did you mean `{table}.{near}`?")).unwrap_or_default();
            format!("there is no `{table}.{name}` to tune;{hint} there are: {}", known.join(", "))
        };
        match path.split_once('.') {
            Some(("evaluation", name)) => {
                let features = || info.features.iter().map(|feature| feature.name);
                let index = features().position(|feature| feature == name);
                let index = index.ok_or_else(|| unknown("evaluation", name, &mut features()))?;
                self.uses_evaluation()?;
                Ok((Target::Weight(index), [-LARGEST_WEIGHT, LARGEST_WEIGHT]))
            }
            Some(("search", name)) => {
                let numeric =
                    |domain: &Domain| matches!(domain, Domain::Whole { .. } | Domain::Number { .. });
                let option =
                    algorithm.options.iter().find(|option| option.name == name).ok_or_else(|| {
                        let numbers = algorithm.options.iter().filter(|option| numeric(&option.domain));
                        let place = format!("search `{}`: ", algorithm.name);
                        place + &unknown("search", name, &mut numbers.map(|option| option.name))
                    })?;
                if name == "rollout_scale" {
                    self.uses_evaluation()?;
                }
                match option.domain {
                    Domain::Number { min, max } => Ok((Target::Number(option.name), [min, max])),
                    // Zero turns such an option off, and with it what others mean.
                    Domain::Whole { min, max } => {
                        Ok((Target::Whole(option.name), [min.max(1) as f64, max as f64]))
                    }
                    domain => Err(format!("`{path}` is {domain}, and only numbers can be tuned")),
                }
            }
            _ => Err(format!(
                "`{path}` is no path into a player; write `evaluation.` and a feature or `search.` and an option"
            )),
        }
    }

    /// Whether the player looks at its weights, or else why not.
    fn uses_evaluation(&self) -> Result<(), String> {
        if !self.algorithm.evaluates {
            return Err(format!(
                "`{}` evaluates nothing, so that it would change nothing",
                self.algorithm.name
            ));
        }
        if self.algorithm.samples && self.settings.whole("rollout_plies") == 0 {
            let reason =
                "playouts are evaluated only where they are cut off; give the player `rollout_plies`";
            return Err(reason.to_string());
        }
        Ok(())
    }

    /// The number that a target has in this player.
    pub fn number(&self, target: Target) -> f64 {
        match target {
            Target::Weight(index) => self.weights[index],
            Target::Number(name) => self.settings.number(name),
            Target::Whole(name) => self.settings.whole(name) as f64,
        }
    }

    /// Gives a target another number, which lies within its bounds.
    pub fn set(&mut self, target: Target, number: f64) {
        match target {
            Target::Weight(index) => self.weights[index] = number,
            Target::Number(name) => self.settings.set(name, Setting::Number(number)),
            Target::Whole(name) => self.settings.set(name, Setting::Whole(number as u64)),
        }
    }

    /// The player as the lines of a spec: its search with the options that are not as usual, and its weights where it
    /// looks at them.
    pub fn to_toml(&self, game: &GameSpec) -> String {
        let info =
            GAMES.iter().find(|info| info.name == game.name()).expect("a GameSpec names a listed game");
        let options = self.settings.unusual(self.algorithm.options);
        let search: String = options.iter().map(|option| format!(", {option}")).collect();
        let mut text = format!("search = {{ algorithm = \"{}\"{search} }}\n", self.algorithm.name);
        if self.uses_evaluation().is_ok() {
            let weights = info.features.iter().zip(&self.weights);
            let used: Vec<String> = weights
                .filter(|(_, weight)| **weight != 0.0)
                .map(|(feature, weight)| format!("{} = {weight}", feature.name))
                .collect();
            text.push_str(&format!("evaluation = {{ {} }}\n", used.join(", ")));
        }
        text
    }

    /// Reads a player from TOML text such as `search = { algorithm = "pvs" }`.
    pub fn parse(game: &GameSpec, text: &str) -> Result<PlayerConfig, ConfigError> {
        let table = DeTable::parse(text).map_err(|error| ConfigError {
            span: error.span(),
            reason: format!("this is not TOML: {}", error.message().trim_end()),
        })?;
        PlayerConfig::read(game, table.get_ref(), &["search", "evaluation"])
    }

    /// Reads a player from a table with the keys `search` and, if wanted, `evaluation`; the other `allowed` keys are
    /// left to the caller.
    pub fn read(game: &GameSpec, table: &DeTable<'_>, allowed: &[&str]) -> Result<PlayerConfig, ConfigError> {
        for (key, _) in table {
            let name: &str = key.get_ref();
            if !allowed.contains(&name) {
                return Err(ConfigError::unknown_key(
                    key.span(),
                    "a player",
                    "key",
                    name,
                    allowed.iter().copied(),
                ));
            }
        }
        let info =
            GAMES.iter().find(|info| info.name == game.name()).expect("a GameSpec names a listed game");
        let family = Family::of(info, game.parameters().seats());
        let (algorithm, settings) = read_search(game, info, family, table)?;
        let weights = read_evaluation(info, algorithm, &settings, table)?;
        Ok(PlayerConfig { algorithm, settings, weights })
    }

    /// Whether the player can work with a limit.
    pub fn check_limit(&self, limit: Limit) -> Result<(), ConfigError> {
        if self.algorithm.samples && matches!(limit, Limit::Depth(_)) {
            let reason = format!(
                "`{}` has no depth to limit; give ms, cpu_ms or nodes, which counts simulations",
                self.algorithm.name
            );
            return Err(ConfigError { span: None, reason });
        }
        Ok(())
    }
}

fn sub_table<'t, 's>(table: &'t DeTable<'s>, name: &str) -> Result<Option<&'t DeTable<'s>>, ConfigError> {
    match table.get(name) {
        None => Ok(None),
        Some(value) => match value.get_ref() {
            DeValue::Table(inner) => Ok(Some(inner)),
            _ => Err(ConfigError { span: Some(value.span()), reason: format!("`{name}` must be a table") }),
        },
    }
}

fn read_search(
    game: &GameSpec,
    info: &GameInfo,
    family: Family,
    table: &DeTable<'_>,
) -> Result<(&'static AlgorithmInfo, Settings), ConfigError> {
    let names = || fitting(family).map(|algorithm| algorithm.name).collect::<Vec<_>>().join(", ");
    let missing = || ConfigError {
        span: None,
        reason: format!("a player needs search = {{ algorithm = ... }}; for {game}: {}", names()),
    };
    let search = sub_table(table, "search")?.ok_or_else(missing)?;
    let value = search.get("algorithm").ok_or_else(missing)?;
    let wrong = |reason: String| ConfigError { span: Some(value.span()), reason };
    let Some(name) = value.get_ref().as_str() else {
        return Err(wrong(format!("`algorithm` must be a word; for {game}: {}", names())));
    };
    let Some(algorithm) = ALGORITHMS.iter().find(|algorithm| algorithm.name == name) else {
        let near = agon_games::setup::suggestion(name, fitting(family).map(|algorithm| algorithm.name));
        let hint = near.map(|near| format!(" did you mean `{near}`?")).unwrap_or_default();
        return Err(wrong(format!("there is no algorithm `{name}`;{hint} for {game}: {}", names())));
    };
    if !algorithm.families.contains(&family) {
        let fits: Vec<&str> = algorithm.families.iter().map(|family| family.describe()).collect();
        return Err(wrong(format!(
            "`{name}` does not fit {game}: it searches {}; what fits: {}",
            fits.join(" and "),
            names()
        )));
    }
    let settings = Settings::read(&format!("search `{name}`"), algorithm.options, search, &["algorithm"])?;
    check_together(algorithm, &settings, info, family, search)?;
    Ok((algorithm, settings))
}

/// Options that are each allowed but do not go together, or not with the game.
fn check_together(
    algorithm: &AlgorithmInfo,
    settings: &Settings,
    info: &GameInfo,
    family: Family,
    search: &DeTable<'_>,
) -> Result<(), ConfigError> {
    let has = |name: &str| algorithm.options.iter().any(|option| option.name == name);
    let refuse = |name: &str, reason: String| {
        let span = search.get_key_value(name).map(|(key, _)| key.span());
        Err(ConfigError { span, reason })
    };
    if has("quiescence") && settings.flag("quiescence") && !info.noisy {
        return refuse("quiescence", format!("{} has no noisy moves; leave `quiescence` out", info.name));
    }
    if has("null_move") && settings.flag("null_move") && !info.passing_hurts {
        let allowed: Vec<&str> =
            GAMES.iter().filter(|info| info.passing_hurts).map(|info| info.name).collect();
        let reason = format!(
            "in {} passing can be better than every move, so that a null move proves nothing; leave `null_move` out, \
             which is for {}",
            info.name,
            allowed.join(", ")
        );
        return refuse("null_move", reason);
    }
    if has("pruning") && settings.flag("pruning") {
        if settings.word("values") != "shares" {
            let reason = "max-n prunes soundly only where values sum to a constant; write values = \"shares\" beside it";
            return refuse("pruning", reason.to_string());
        }
        if settings.words("order").iter().any(|&stage| stage != "static") {
            let reason =
                "max-n with pruning keeps its ties only in a static order; write order = [\"static\"] or []";
            return refuse("pruning", reason.to_string());
        }
    }
    if has("solver") && settings.flag("solver") && family != Family::Duel {
        return refuse("solver", format!("the solver proves {} only; leave it out", Family::Duel.describe()));
    }
    if has("table_mb") && settings.whole("table_mb") == 0 {
        if search.contains_key("order") && settings.words("order").contains(&"table") {
            let reason = "the stage `table` needs a table; take it out of `order` or give `table_mb`";
            return refuse("order", reason.to_string());
        }
        if let Some(name) = ["table_hits", "keep"].into_iter().find(|name| search.contains_key(*name)) {
            return refuse(
                name,
                format!("`{name}` is about a table and there is none; leave it out or give `table_mb`"),
            );
        }
    }
    if algorithm.samples && settings.whole("rollout_plies") == 0 && search.contains_key("rollout_scale") {
        let reason =
            "playouts are evaluated only where they are cut off; give `rollout_plies` beside `rollout_scale`";
        return refuse("rollout_scale", reason.to_string());
    }
    Ok(())
}

fn read_evaluation(
    info: &GameInfo,
    algorithm: &AlgorithmInfo,
    settings: &Settings,
    table: &DeTable<'_>,
) -> Result<Vec<f64>, ConfigError> {
    let Some(evaluation) = sub_table(table, "evaluation")? else {
        return Ok(info.features.iter().map(|feature| feature.weight).collect());
    };
    let place = || table.get_key_value("evaluation").map(|(key, _)| key.span());
    if !algorithm.evaluates {
        let reason = format!("`{}` evaluates nothing; leave `evaluation` out", algorithm.name);
        return Err(ConfigError { span: place(), reason });
    }
    if algorithm.samples && settings.whole("rollout_plies") == 0 {
        let reason =
            "playouts are evaluated only where they are cut off; give `rollout_plies` beside `evaluation`";
        return Err(ConfigError { span: place(), reason: reason.to_string() });
    }
    // Features that a configuration does not name are not used: an evaluation says all of what it is.
    let mut weights = vec![0.0; info.features.len()];
    for (key, value) in evaluation {
        let name: &str = key.get_ref();
        let Some(index) = info.features.iter().position(|feature: &Feature| feature.name == name) else {
            let known = info.features.iter().map(|feature| feature.name);
            return Err(ConfigError::unknown_key(
                key.span(),
                &format!("the evaluation of {}", info.name),
                "feature",
                name,
                known,
            ));
        };
        let limit = LARGEST_WEIGHT;
        let least = 1.0 / WEIGHT_UNIT as f64;
        let counts = |weight: &f64| *weight == 0.0 || (least..=limit).contains(&weight.abs());
        weights[index] = number(value.get_ref()).filter(counts).ok_or_else(|| ConfigError {
            span: Some(value.span()),
            reason: format!(
                "the weight of `{name}` must be 0 or a number from {least} to {limit}, of either sign"
            ),
        })?;
    }
    Ok(weights)
}
