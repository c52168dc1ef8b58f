//! The configuration of a player: a built-in search with its evaluation, or an engine; read from TOML and checked against a
//! game.

use std::time::Duration;

use agon_games::schema::{
    ConfigError, Domain, Input, Problems, Scope, Value, Values, hint, suggest, unknown,
};
use agon_games::{GAMES, GameInfo, GameSpec};
use agon_search::Limit;
use agon_search::evaluate::WEIGHT_UNIT;
use agon_search::ordering::Stage;
use toml::de::DeTable;

use crate::algorithms::{ALGORITHMS, AlgorithmInfo, Family, MaxNValues, PLAYOUTS_PER_MOVE, fitting};
use crate::engine::EngineConfig;
use crate::section::{Found, Section, Toml};

/// The greatest weight of a feature.
const LARGEST_WEIGHT: f64 = 1e6;

/// Why games with chance have no `rollout_scale`.
const UNSCALED: &str = "the evaluation of a game with chance is an expected payoff and needs no scale; leave `rollout_scale` out";

/// A valid player of a game.
#[derive(Clone, PartialEq, Debug)]
pub enum PlayerConfig {
    /// A built-in search.
    Search(SearchConfig),
    /// A program of its own.
    Engine(EngineConfig),
}

/// A valid built-in search of a game: algorithm, options, evaluation weights.
#[derive(Clone, Debug)]
pub struct SearchConfig {
    /// The algorithm.
    pub algorithm: &'static AlgorithmInfo,
    /// The values of all options.
    pub settings: Values,
    /// A weight for each feature of the game.
    pub weights: Vec<f64>,
}

impl PartialEq for SearchConfig {
    fn eq(&self, other: &SearchConfig) -> bool {
        let SearchConfig { algorithm, settings, weights } = self;
        algorithm.name == other.algorithm.name && *settings == other.settings && *weights == other.weights
    }
}

/// A numeric setting of a player.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Target {
    /// The weight of the feature with this index.
    Weight(usize),
    /// An option of the search that takes any number.
    Number(&'static str),
    /// An option of the search that takes whole numbers.
    Whole(&'static str),
    /// An option of an engine.
    Option(String),
}

/// The start of the paths to options of engines.
const ENGINE_OPTIONS: &str = "engine.options.";

impl PlayerConfig {
    /// Returns the built-in search, if the player is one.
    pub fn search(&self) -> Option<&SearchConfig> {
        match self {
            PlayerConfig::Search(search) => Some(search),
            PlayerConfig::Engine(_) => None,
        }
    }

    /// Returns the engine, if the player is one.
    pub fn engine(&self) -> Option<&EngineConfig> {
        match self {
            PlayerConfig::Search(_) => None,
            PlayerConfig::Engine(engine) => Some(engine),
        }
    }

    /// Returns the margin beyond a limit of time that an engine has; none for a built-in search.
    pub fn margin(&self) -> Option<Duration> {
        self.engine().map(|engine| engine.grace)
    }

    /// Returns the name of the algorithm or of the engine.
    pub fn name(&self) -> &str {
        match self {
            PlayerConfig::Search(search) => search.algorithm.name,
            PlayerConfig::Engine(engine) => engine.name(),
        }
    }

    /// Resolves a path such as `search.c`, `evaluation.mobility` or `engine.options.Hash` to a number of this player and its
    /// bounds.
    pub fn target(&self, game: &GameSpec, path: &str) -> Result<(Target, [f64; 2]), String> {
        match (self, path.strip_prefix(ENGINE_OPTIONS)) {
            (PlayerConfig::Engine(_), Some(option)) if !option.is_empty() && !option.contains('=') => {
                Ok((Target::Option(option.to_string()), [-LARGEST_WEIGHT, LARGEST_WEIGHT]))
            }
            (PlayerConfig::Engine(_), _) => Err(format!(
                "`{path}` is no path into an engine; write `{ENGINE_OPTIONS}` and the name of an option"
            )),
            (PlayerConfig::Search(search), _) => search.target(game, path),
        }
    }

    /// Returns the value of a target; none if it is an option that the spec does not set.
    pub fn number(&self, target: &Target) -> Option<f64> {
        match (self, target) {
            (PlayerConfig::Engine(engine), Target::Option(name)) => engine.number(name),
            (PlayerConfig::Search(search), target) => Some(search.number(target)),
            (PlayerConfig::Engine(_), target) => unreachable!("an engine has no {target:?}"),
        }
    }

    /// Sets a target. Precondition: the number lies within its bounds.
    pub fn set(&mut self, target: &Target, number: f64) {
        match (self, target) {
            (PlayerConfig::Engine(engine), Target::Option(name)) => engine.set(name, number),
            (PlayerConfig::Search(search), target) => search.set(target, number),
            (PlayerConfig::Engine(_), target) => unreachable!("an engine has no {target:?}"),
        }
    }

    /// Writes the player as lines of a spec: its search with the options that differ from the defaults, and its weights if
    /// it uses them.
    pub fn to_toml(&self, game: &GameSpec) -> String {
        match self {
            PlayerConfig::Search(search) => search.to_toml(game),
            PlayerConfig::Engine(engine) => engine.to_toml(),
        }
    }

    /// Reads a player from TOML text such as `search = { algorithm = "pvs" }`. Reports all problems at once.
    pub fn parse(game: &GameSpec, text: &str) -> Result<PlayerConfig, ConfigError> {
        let table = DeTable::parse(text).map_err(|error| {
            ConfigError::new(error.span(), format!("this is not TOML: {}", error.message().trim_end()))
        })?;
        let problems = Problems::default();
        let section = Section { table: table.get_ref(), name: "a player", start: None, problems: &problems };
        let read = PlayerConfig::read(game, section, &["search", "evaluation", "engine"], false);
        problems.finish(read)
    }

    /// Reads a player from a table with the key `search` and optionally `evaluation`, or with the key `engine`. The caller
    /// reads the other `allowed` keys. `deterministic` is the promise of the spec for its engines.
    pub(crate) fn read(
        game: &GameSpec,
        section: Section<'_, '_>,
        allowed: &[&str],
        deterministic: bool,
    ) -> Found<PlayerConfig> {
        section.allow(allowed);
        if !section.has("engine") {
            return SearchConfig::read(game, section).map(PlayerConfig::Search);
        }
        for key in ["search", "evaluation"].into_iter().filter(|key| section.has(key)) {
            section
                .reject::<()>(key, format!("an engine has no `{key}`; leave it out, or leave `engine` out"));
        }
        let engine = section.section("engine", "engine")?.expect("the key is present");
        EngineConfig::read(game.name(), deterministic, engine).map(PlayerConfig::Engine)
    }

    /// Returns whether the player is a search that samples.
    pub fn samples(&self) -> bool {
        self.search().is_some_and(|search| !search.algorithm.has_depth())
    }

    /// Returns the most playouts for each move, if the options of a search limit them.
    pub fn playouts_per_move(&self) -> Option<u64> {
        self.search()?.playouts_per_move()
    }

    /// Checks that the player supports a limit.
    pub fn check_limit(&self, limit: Limit) -> Result<(), ConfigError> {
        match self {
            PlayerConfig::Search(search) => search.check_limit(limit),
            PlayerConfig::Engine(engine) => engine.check_limit(limit),
        }
    }
}

impl SearchConfig {
    fn target(&self, game: &GameSpec, path: &str) -> Result<(Target, [f64; 2]), String> {
        let info = game_info(game);
        let algorithm = self.algorithm;
        let unknown = |table: &str, name: &str, known: &mut dyn Iterator<Item = &'static str>| {
            let known: Vec<&str> = known.collect();
            let near = suggest(name, known.iter().copied());
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
                    |domain: &Domain| matches!(domain, Domain::Integer { .. } | Domain::Number { .. });
                let option =
                    algorithm.options.iter().find(|option| option.name == name).ok_or_else(|| {
                        let numbers = algorithm.options.iter().filter(|option| numeric(&option.domain));
                        let place = format!("search `{}`: ", algorithm.name);
                        place + &unknown("search", name, &mut numbers.map(|option| option.name))
                    })?;
                if name == "rollout_scale" {
                    self.uses_evaluation()?;
                    if info.chance {
                        return Err(UNSCALED.to_string());
                    }
                }
                match option.domain {
                    Domain::Number { min, max } => Ok((Target::Number(option.name), [min, max])),
                    // Zero disables such an option and changes the meaning of others.
                    Domain::Integer { min, max } => {
                        Ok((Target::Whole(option.name), [min.max(1) as f64, max as f64]))
                    }
                    domain => Err(format!("`{path}` is {}, and only numbers can be tuned", domain.as_toml())),
                }
            }
            _ => Err(format!(
                "`{path}` is no path into a player; write `evaluation.` and a feature or `search.` and an option"
            )),
        }
    }

    /// Checks that the player uses its weights.
    fn uses_evaluation(&self) -> Result<(), String> {
        if !self.algorithm.evaluates {
            return Err(format!(
                "`{}` evaluates nothing, so that it would change nothing",
                self.algorithm.name
            ));
        }
        if !self.algorithm.evaluates_with(&self.settings) {
            let reason =
                "playouts are evaluated only where they are cut off; give the player `rollout_plies`";
            return Err(reason.to_string());
        }
        Ok(())
    }

    fn number(&self, target: &Target) -> f64 {
        match target {
            Target::Weight(index) => self.weights[*index],
            Target::Number(name) => self.settings.number(name),
            Target::Whole(name) => self.settings.integer(name) as f64,
            Target::Option(name) => unreachable!("a search has no engine's option {name}"),
        }
    }

    fn set(&mut self, target: &Target, number: f64) {
        match target {
            Target::Option(name) => unreachable!("a search has no engine's option {name}"),
            Target::Weight(index) => self.weights[*index] = number,
            Target::Number(name) => self.settings.set(name, Value::Number(number)),
            Target::Whole(name) => self.settings.set(name, Value::Integer(number as u64)),
        }
    }

    fn to_toml(&self, game: &GameSpec) -> String {
        let info = game_info(game);
        let changed = self.settings.changed(self.algorithm.options);
        let search: String = changed.map(|(name, value)| format!(", {name} = {}", value.as_toml())).collect();
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

    /// Reads a search from a player's table with the key `search` and optionally `evaluation`.
    fn read(game: &GameSpec, section: Section<'_, '_>) -> Found<SearchConfig> {
        let info = game_info(game);
        let family = Family::of(info, game.parameters().seats());
        let search = read_search(game, info, family, section);
        let weights = read_evaluation(info, search.as_ref(), section);
        let ((algorithm, settings), weights) = search.zip(weights)?;
        Some(SearchConfig { algorithm, settings, weights })
    }

    /// Returns the most playouts for each move, if the options limit them.
    pub(crate) fn playouts_per_move(&self) -> Option<u64> {
        let is_limited = self.algorithm.options.iter().any(|option| option.name == PLAYOUTS_PER_MOVE.name);
        is_limited.then(|| self.settings.integer(PLAYOUTS_PER_MOVE.name)).filter(|&playouts| playouts > 0)
    }

    fn check_limit(&self, limit: Limit) -> Result<(), ConfigError> {
        if !self.algorithm.has_depth() && matches!(limit, Limit::Depth(_)) {
            let reason = format!(
                "`{}` has no depth to limit; give ms, cpu_ms or nodes, which counts simulations",
                self.algorithm.name
            );
            return Err(ConfigError::new(None, reason));
        }
        Ok(())
    }
}

fn game_info(game: &GameSpec) -> &'static GameInfo {
    GAMES.iter().find(|info| info.name == game.name()).expect("a GameSpec names a listed game")
}

fn read_search(
    game: &GameSpec,
    info: &GameInfo,
    family: Family,
    player: Section<'_, '_>,
) -> Found<(&'static AlgorithmInfo, Values)> {
    let seats = game.parameters().seats();
    let names = || fitting(info, seats).map(|algorithm| algorithm.name).collect::<Vec<_>>().join(", ");
    let section = player.section("search", "search")?;
    let Some((section, value)) = section.and_then(|section| Some((section, section.value("algorithm")?)))
    else {
        let reason = format!("a player needs search = {{ algorithm = ... }}; for {game}: {}", names());
        player.problems.add(player.start(), reason);
        return None;
    };
    let Some(name) = value.as_str() else {
        return section.reject("algorithm", format!("`algorithm` must be a word; for {game}: {}", names()));
    };
    let Some(algorithm) = ALGORITHMS.iter().find(|algorithm| algorithm.name == name) else {
        let hint = hint(name, fitting(info, seats).map(|algorithm| algorithm.name));
        let reason = format!("there is no algorithm `{name}`{hint} for {game}: {}", names());
        return section.reject("algorithm", reason);
    };
    if !algorithm.families.contains(&family) {
        let fits: Vec<&str> = algorithm.families.iter().map(|family| family.describe()).collect();
        let reason = format!(
            "`{name}` does not fit {game}: it searches {}; what fits: {}",
            fits.join(" and "),
            names()
        );
        return section.reject("algorithm", reason);
    }
    if !algorithm.suits(info, seats) {
        let reason = format!(
            "`{name}` does not fit {game}: it lets an opponent answer each move, and here a seat may move several times \
             in a row; what fits: {}",
            names()
        );
        return section.reject("algorithm", reason);
    }
    let before = section.problems.count();
    let place = format!("search `{name}`");
    let scope = Scope { place: &place, noun: "option", also: &["algorithm"] };
    let settings = Values::read(scope, algorithm.options, section.entries(scope), section.problems);
    if section.problems.count() == before {
        check_together(algorithm, &settings, info, family, section);
    }
    (section.problems.count() == before).then_some((algorithm, settings))
}

/// Reports options that are each allowed but contradict each other or the game.
fn check_together(
    algorithm: &AlgorithmInfo,
    settings: &Values,
    info: &GameInfo,
    family: Family,
    section: Section<'_, '_>,
) {
    let is_on = |name: &str| settings.has(name) && settings.flag(name);
    let refuse = |name: &str, reason: String| {
        let span = section.table.get_key_value(name).map(|(key, _)| key.span());
        section.problems.add(span, reason);
    };
    if is_on("quiescence") && !info.noisy {
        refuse("quiescence", format!("{} has no noisy moves; leave `quiescence` out", info.name));
    }
    if is_on("null_move") && !info.passing_hurts {
        let allowed: Vec<&str> =
            GAMES.iter().filter(|info| info.passing_hurts).map(|info| info.name).collect();
        let reason = format!(
            "in {} passing can be better than every move, so that a null move proves nothing; leave `null_move` out, \
             which is for {}",
            info.name,
            allowed.join(", ")
        );
        refuse("null_move", reason);
    }
    if is_on("pruning") {
        if settings.choice::<MaxNValues>("values") != MaxNValues::Shares {
            let reason = "max-n prunes soundly only where values sum to a constant; write values = \"shares\" beside it";
            refuse("pruning", reason.to_string());
        }
        if settings.choices::<Stage>("order").iter().any(|stage| *stage != Stage::Static) {
            let reason =
                "max-n with pruning keeps its ties only in a static order; write order = [\"static\"] or []";
            refuse("pruning", reason.to_string());
        }
    }
    if is_on("solver") && family != Family::Duel {
        refuse("solver", format!("the solver proves {} only; leave it out", Family::Duel.describe()));
    }
    if settings.has("table_mb") && settings.integer("table_mb") == 0 {
        if section.has("order") && settings.choices("order").contains(&Stage::Table) {
            let reason = "the stage `table` needs a table; take it out of `order` or give `table_mb`";
            refuse("order", reason.to_string());
        }
        for name in ["table_hits", "keep"].into_iter().filter(|name| section.has(name)) {
            let reason = "needs a table; leave it out or give `table_mb`";
            refuse(name, format!("`{name}` {reason}"));
        }
    }
    if section.has("rollout_scale") && !algorithm.evaluates_with(settings) {
        let reason =
            "playouts are evaluated only where they are cut off; give `rollout_plies` beside `rollout_scale`";
        refuse("rollout_scale", reason.to_string());
    } else if section.has("rollout_scale") && family == Family::Chance {
        refuse("rollout_scale", UNSCALED.to_string());
    }
}

/// Reads the weights. Features that the table does not name have weight 0; without a table all have their defaults.
fn read_evaluation(
    info: &GameInfo,
    search: Option<&(&'static AlgorithmInfo, Values)>,
    player: Section<'_, '_>,
) -> Found<Vec<f64>> {
    let Some(section) = player.section("evaluation", "evaluation")? else {
        return Some(info.features.iter().map(|feature| feature.weight).collect());
    };
    let before = section.problems.count();
    if let Some((algorithm, settings)) = search {
        let unused = if !algorithm.evaluates {
            Some(format!("`{}` evaluates nothing; leave `evaluation` out", algorithm.name))
        } else if !algorithm.evaluates_with(settings) {
            let reason = "playouts are evaluated only where they are cut off; give `rollout_plies` beside `evaluation`";
            Some(reason.to_string())
        } else {
            None
        };
        unused.into_iter().for_each(|reason| section.problems.add(section.start(), reason));
    }
    let place = format!("the evaluation of {}", info.name);
    let least = 1.0 / WEIGHT_UNIT as f64;
    let mut weights = vec![0.0; info.features.len()];
    for (key, value) in section.table {
        let name: &str = key.get_ref();
        let Some(index) = info.features.iter().position(|feature| feature.name == name) else {
            let known = info.features.iter().map(|feature| feature.name);
            section.problems.add(Some(key.span()), unknown(&place, "feature", name, known));
            continue;
        };
        let counts = |weight: &f64| *weight == 0.0 || (least..=LARGEST_WEIGHT).contains(&weight.abs());
        match Toml(value.get_ref()).number().filter(counts) {
            Some(weight) => weights[index] = weight,
            None => section.problems.add(
                Some(value.span()),
                format!(
                    "the weight of `{name}` must be 0 or a number from {least} to {LARGEST_WEIGHT}, of either sign"
                ),
            ),
        }
    }
    (section.problems.count() == before).then_some(weights)
}
