//! Parsers of players and limits on the command line.

use agon_arena::{ConfigError, PlayerConfig};
use agon_games::GameSpec;
use agon_games::schema::Problem;

use crate::fail::UsageError;

/// A player with its name in tables.
pub struct NamedPlayer {
    /// The name of the algorithm.
    pub name: String,
    /// The configuration.
    pub config: PlayerConfig,
}

/// Parses a player: the name of an algorithm with its defaults, or TOML such as
/// `search = { algorithm = "uct", c = 1.2 }`.
pub fn read_player(game: &GameSpec, text: &str) -> Result<NamedPlayer, UsageError> {
    let toml =
        if text.contains('=') { text.to_string() } else { format!("search = {{ algorithm = {text:?} }}") };
    let config = PlayerConfig::parse(game, &toml).map_err(|error| invalid(&toml, text, &error))?;
    Ok(NamedPlayer { name: config.name().to_string(), config })
}

/// Lists every problem of a player, with line and column in given TOML.
fn invalid(toml: &str, text: &str, error: &ConfigError) -> UsageError {
    let problem = |problem: &Problem| match problem.place(toml).filter(|_| toml == text) {
        Some((line, column)) => format!("player, line {line}, column {column}: {}", problem.reason),
        None => format!("player: {}", problem.reason),
    };
    UsageError(error.problems.iter().map(problem).collect::<Vec<_>>().join("\n"))
}

/// Parses a limit such as `ms=50` or `depth=6`.
pub fn read_limit(text: &str) -> Result<agon_search::Limit, UsageError> {
    agon_arena::parse_limit(text).map_err(|error| UsageError(format!("--limit: {error}")))
}
