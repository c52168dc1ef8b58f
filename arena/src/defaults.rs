//! The default players: for each game the best that the tournaments of `docs/studies/defaults.md` found at 10 ms a move.

use agon_games::{GAMES, GameSpec};

use crate::algorithms::Family;

/// Games with two seats whose best player is not that of their family.
const DUELS: &[(&str, &str)] = &[
    (
        "chess",
        r#"search = { algorithm = "pvs", quiescence = true, null_move = true, late_move_reductions = true }"#,
    ),
    ("checkers", r#"search = { algorithm = "pvs", quiescence = true, late_move_reductions = true }"#),
    ("go", r#"search = { algorithm = "uct", c = 0.5 }"#),
];

/// Games with more seats whose best player is not that of their family.
const MANY: &[(&str, &str)] =
    &[("virus", r#"search = { algorithm = "max-n" }"#), ("rolit", r#"search = { algorithm = "uct" }"#)];

/// Returns the default player of a game as TOML.
pub fn default_player(game: &GameSpec) -> &'static str {
    let info = GAMES.iter().find(|info| info.name == game.name()).expect("a GameSpec names a listed game");
    let family = Family::of(info, game.parameters().seats());
    let (chosen, otherwise) = match family {
        Family::Duel => (DUELS, r#"search = { algorithm = "pvs" }"#),
        Family::Many => (MANY, r#"search = { algorithm = "best-reply" }"#),
        Family::Chance => (DUELS, r#"search = { algorithm = "star2" }"#),
    };
    chosen.iter().find(|(name, _)| *name == info.name).map_or(otherwise, |(_, player)| player)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PlayerConfig;

    #[test]
    fn every_game_has_a_valid_default_player() {
        for info in GAMES {
            for seats in info.seats {
                let several = info.seats.len() > 1;
                let text =
                    if several { format!("{}:seats={seats}", info.name) } else { info.name.to_string() };
                let game = GameSpec::parse(&text).unwrap();
                let player = default_player(&game);
                assert!(PlayerConfig::parse(&game, player).is_ok(), "{text}: {player}");
            }
        }
        for (name, _) in DUELS.iter().chain(MANY) {
            assert!(GAMES.iter().any(|info| info.name == *name), "{name}");
        }
    }
}
