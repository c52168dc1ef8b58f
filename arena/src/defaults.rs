//! The default players: for each game the leader of its tournament in `docs/studies/defaults.md`, at 10 ms a move. Games that
//! every full search solves in that time have none.

use agon_games::{GAMES, GameSpec};

use crate::algorithms::Family;

/// Games with two seats whose best player is not that of their family.
const DUELS: &[(&str, &str)] = &[
    (
        "chess",
        r#"search = { algorithm = "mtd", quiescence = true, null_move = true, late_move_reductions = true }"#,
    ),
    ("othello", r#"search = { algorithm = "pvs", quiescence = true }"#),
    ("checkers", r#"search = { algorithm = "pvs", quiescence = true, late_move_reductions = true }"#),
    ("kalah", r#"search = { algorithm = "pvs", quiescence = true }"#),
    ("go", r#"search = { algorithm = "uct", c = 0.5 }"#),
    ("virus", r#"search = { algorithm = "pvs", late_move_reductions = true }"#),
    ("chinese-checkers", r#"search = { algorithm = "pvs", late_move_reductions = true }"#),
    ("focus", r#"search = { algorithm = "pvs", quiescence = true }"#),
];

/// Games with more seats whose best player is not that of their family.
const MANY: &[(&str, &str)] =
    &[("virus", r#"search = { algorithm = "paranoid" }"#), ("rolit", r#"search = { algorithm = "uct" }"#)];

/// Returns the default player of a game as TOML.
pub fn default_player(game: &GameSpec) -> &'static str {
    let info = GAMES.iter().find(|info| info.name == game.name()).expect("a GameSpec names a listed game");
    let family = Family::of(info, game.parameters().seats());
    let (chosen, otherwise) = match family {
        Family::Duel => (DUELS, r#"search = { algorithm = "pvs" }"#),
        Family::Many => (MANY, r#"search = { algorithm = "best-reply" }"#),
        Family::Chance => (DUELS, r#"search = { algorithm = "star1" }"#),
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

    #[test]
    fn default_players_played_in_the_tournament_of_their_game() {
        const SOLVED: [&str; 3] = ["tic-tac-toe", "nim", "grundy"];
        for info in GAMES.iter().filter(|info| !SOLVED.contains(&info.name)) {
            let most = info.seats.iter().copied().max().expect("a game has seats");
            for (seats, suffix) in [(2, ""), (most, if most == 2 { "" } else { "-many" })] {
                let text =
                    if most == 2 { info.name.to_string() } else { format!("{}:seats={seats}", info.name) };
                let player = default_player(&GameSpec::parse(&text).unwrap());
                let path = format!("../examples/studies/defaults-{}{suffix}.toml", info.name);
                let spec = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
                assert!(spec.lines().any(|line| line == player), "{path} has no player `{player}`");
            }
        }
    }
}
