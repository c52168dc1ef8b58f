//! The options of a player's algorithm, as other programs see and set them.

use agon_arena::{PlayerConfig, SearchConfig};
use agon_games::GameSpec;
use agon_games::schema::{Domain, Key, Value, unknown};

/// The options that limit memory, which protocols call `Hash`.
const MEMORY: [&str; 2] = ["table_mb", "memory_mb"];

/// Returns the name of an option in the protocol uci.
fn uci_name(key: &Key) -> &'static str {
    if MEMORY.contains(&key.name) { "Hash" } else { key.name }
}

/// Returns the declarations of all options in the protocol uci, with the player's values as defaults.
pub fn uci_declarations(player: &SearchConfig) -> impl Iterator<Item = String> {
    player.algorithm.options.iter().map(|key| {
        let (name, value) = (uci_name(key), player.settings.value(key.name));
        match (key.domain, value) {
            (Domain::Integer { min, max }, _) => {
                format!("option name {name} type spin default {value} min {min} max {max}")
            }
            (Domain::Flag, _) => format!("option name {name} type check default {value}"),
            (Domain::Choice(words), _) => {
                let words: String = words.iter().map(|word| format!(" var {word}")).collect();
                format!("option name {name} type combo default {value}{words}")
            }
            (_, Value::Choices(words)) if words.is_empty() => {
                format!("option name {name} type string default <empty>")
            }
            // The protocol has no decimals and no lists.
            _ => format!("option name {name} type string default {value}"),
        }
    })
}

/// Sets an option by its name in the protocol uci, whose names ignore case.
pub fn set_uci(player: &mut SearchConfig, name: &str, text: &str) -> Result<(), String> {
    let key = player.algorithm.options.iter().find(|key| uci_name(key).eq_ignore_ascii_case(name));
    let text = if text == "<empty>" { "" } else { text };
    set(player, key, name, text, uci_name)
}

/// Sets an option by its name in specs.
pub fn set_by_name(player: &mut SearchConfig, name: &str, text: &str) -> Result<(), String> {
    let key = player.algorithm.options.iter().find(|key| key.name == name);
    set(player, key, name, text, |key| key.name)
}

fn set(
    player: &mut SearchConfig,
    key: Option<&'static Key>,
    name: &str,
    text: &str,
    name_of: fn(&Key) -> &'static str,
) -> Result<(), String> {
    let algorithm = player.algorithm;
    let Some(key) = key else {
        let known = algorithm.options.iter().map(name_of);
        return Err(unknown(&format!("search `{}`", algorithm.name), "option", name, known));
    };
    let is_empty_list = text.is_empty() && matches!(key.domain, Domain::Choices(_));
    let value = if is_empty_list { Some(Value::Choices(Vec::new())) } else { key.domain.read(&text) };
    let value = value.ok_or_else(|| format!("`{name}` cannot be `{text}`; it must be {}", key.domain))?;
    player.settings.set(key.name, value);
    Ok(())
}

/// Checks that the options do not contradict each other or the game.
pub fn check(game: &GameSpec, player: &SearchConfig) -> Result<(), String> {
    let text = PlayerConfig::Search(player.clone()).to_toml(game);
    PlayerConfig::parse(game, &text).map(drop).map_err(|error| error.to_string())
}
