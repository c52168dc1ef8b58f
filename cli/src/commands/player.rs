//! The arguments that name a player and a limit, shared by all commands that search.

use agon_arena::{ConfigError, Family, PlayerConfig};
use agon_games::schema::Problem;
use agon_games::{GAMES, GameSpec};

use crate::fail::WrongCall;

/// A player as the call names it.
pub struct NamedPlayer {
    /// What tables call it.
    pub name: String,
    /// Its configuration.
    pub config: PlayerConfig,
}

/// Reads a player: the name of an algorithm with its defaults, or TOML such as
/// `search = { algorithm = "uct", c = 1.2 }`.
pub fn read_player(game: &GameSpec, text: &str) -> Result<NamedPlayer, WrongCall> {
    let toml =
        if text.contains('=') { text.to_string() } else { format!("search = {{ algorithm = {text:?} }}") };
    let config = PlayerConfig::parse(game, &toml).map_err(|error| wrong(&toml, text, &error))?;
    Ok(NamedPlayer { name: config.algorithm.name.to_string(), config })
}

/// Lists every problem of a player. Names line and column where the call gives TOML.
fn wrong(toml: &str, text: &str, error: &ConfigError) -> WrongCall {
    let problem = |problem: &Problem| match problem.place(toml).filter(|_| toml == text) {
        Some((line, column)) => format!("player, line {line}, column {column}: {}", problem.reason),
        None => format!("player: {}", problem.reason),
    };
    WrongCall(error.problems.iter().map(problem).collect::<Vec<_>>().join("\n"))
}

/// The player for those who name none: a strong one that fits.
pub fn default_player(game: &GameSpec) -> &'static str {
    let info = GAMES.iter().find(|info| info.name == game.name()).expect("a GameSpec names a listed game");
    match Family::of(info, game.parameters().seats()) {
        Family::Duel => "pvs",
        Family::Many => "best-reply",
        Family::Chance => "star1",
    }
}

/// Reads a limit such as `ms=50` or `depth=6`.
pub fn read_limit(text: &str) -> Result<agon_search::Limit, WrongCall> {
    agon_arena::parse_limit(text).map_err(|error| WrongCall(format!("--limit: {error}")))
}
