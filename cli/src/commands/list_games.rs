//! `agon list-games`: the games with their parameters, features and algorithms.

use std::io::{self, Write};

use agon_arena::defaults::default_player;
use agon_arena::{ALGORITHMS, AlgorithmInfo};
use agon_games::{Domain, GAMES, GameInfo, GameSpec, SetupError, Turns};
use clap::Args;
use serde::Serialize;

use crate::fail::Outcome;
use crate::table::{Align, Table, print, write_sentence, write_words};

#[derive(Args)]
pub struct ListGames {
    /// Describe this game
    #[arg(value_name = "GAME")]
    game: Option<String>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Document {
    games: Vec<Game>,
}

#[derive(Serialize)]
struct Game {
    name: &'static str,
    summary: &'static str,
    seats: &'static [u32],
    kind: Vec<&'static str>,
    parameters: Vec<Parameter>,
    features: Vec<Feature>,
    algorithms: Vec<&'static str>,
}

#[derive(Serialize)]
struct Parameter {
    name: &'static str,
    default: &'static str,
    min: Option<f64>,
    max: Option<f64>,
    allowed: String,
    about: &'static str,
}

#[derive(Serialize)]
struct Feature {
    name: &'static str,
    weight: f64,
    about: &'static str,
}

impl From<&GameInfo> for Game {
    fn from(info: &GameInfo) -> Game {
        let parameters = info.parameters.iter().map(|parameter| {
            let (min, max) = bounds(parameter.domain);
            Parameter {
                name: parameter.name,
                default: parameter.default,
                min,
                max,
                allowed: parameter.domain.to_string(),
                about: parameter.about,
            }
        });
        Game {
            name: info.name,
            summary: info.summary,
            seats: info.seats,
            kind: kind(info),
            parameters: parameters.collect(),
            features: features(info.features),
            algorithms: algorithms(info, info.seats),
        }
    }
}

fn features(features: &[agon_games::Feature]) -> Vec<Feature> {
    let feature = |feature: &agon_games::Feature| Feature {
        name: feature.name,
        weight: feature.weight,
        about: feature.about,
    };
    features.iter().map(feature).collect()
}

/// Describes a game with its parameters: features and algorithms depend on the number of seats.
fn chosen(spec: &GameSpec) -> Result<Game, SetupError> {
    // Only the start of a game finds parameters that contradict each other.
    let start = spec.start(None)?;
    let info = GAMES.iter().find(|info| info.name == spec.name());
    let info = info.expect("a GameSpec names a listed game");
    let algorithms = algorithms(info, &[start.seats() as u32]);
    Ok(Game { features: features(start.features()), algorithms, ..Game::from(info) })
}

/// Returns the smallest and largest number of a domain of numbers.
fn bounds(domain: Domain) -> (Option<f64>, Option<f64>) {
    let some = |min: f64, max: f64| (Some(min), Some(max));
    match domain {
        Domain::Integer { min, max } | Domain::Integers { min, max, .. } => some(min as f64, max as f64),
        Domain::OneOf(numbers) => {
            (numbers.iter().min().map(|&n| n as f64), numbers.iter().max().map(|&n| n as f64))
        }
        Domain::Number { min, max } => some(min, max),
        Domain::Halves { min, max } => some(f64::from(min) / 2.0, f64::from(max) / 2.0),
        Domain::Choice(_) | Domain::Choices(_) | Domain::Flag => (None, None),
    }
}

/// Returns the properties of a game that decide how it is scheduled and searched.
fn kind(info: &GameInfo) -> Vec<&'static str> {
    let mut kind = vec![if info.seats.len() > 1 { "many" } else { "duel" }];
    if info.chance {
        kind.push("chance");
    }
    match info.turns {
        Turns::MoveAgain => kind.push("extra turns"),
        Turns::RotateSkippingOut => kind.push("elimination"),
        Turns::Rotate | Turns::Dice => {}
    }
    if info.path_dependent {
        kind.push("history");
    }
    if info.passing_hurts {
        kind.push("null move");
    }
    kind
}

/// Returns the algorithms that fit the game with any of these numbers of seats.
fn algorithms(info: &GameInfo, seats: &[u32]) -> Vec<&'static str> {
    let fits = |algorithm: &&AlgorithmInfo| seats.iter().any(|&seats| algorithm.suits(info, seats as usize));
    ALGORITHMS.iter().filter(fits).map(|algorithm| algorithm.name).collect()
}

fn seats_text(seats: &[u32]) -> String {
    seats.iter().map(u32::to_string).collect::<Vec<_>>().join(" ")
}

impl ListGames {
    pub fn run(self) -> Outcome {
        let game = self.game.as_deref().map(GameSpec::parse).transpose()?;
        let games: Vec<Game> = match &game {
            Some(game) => vec![chosen(game)?],
            None => GAMES.iter().map(Game::from).collect(),
        };
        let document = Document { games };
        print(self.json, &document, |out| match (&game, &document.games[..]) {
            (Some(spec), [game]) => describe(game, spec, out),
            (_, games) => list(games, out),
        })
    }
}

fn list(games: &[Game], out: &mut impl Write) -> io::Result<()> {
    let columns =
        [("game", Align::Left), ("seats", Align::Left), ("kind", Align::Left), ("parameters", Align::Prose)];
    let mut table = Table::new(&columns).optional(&["kind"]);
    for game in games {
        let parameters: Vec<String> = game
            .parameters
            .iter()
            .map(|parameter| format!("{}={}", parameter.name, parameter.default))
            .collect();
        table.row([
            game.name.to_string(),
            seats_text(game.seats),
            game.kind.join(", "),
            parameters.join(", "),
        ]);
    }
    table.write(out)?;
    writeln!(out)?;
    write_sentence("`agon list-games GAME` describes one, `agon show GAME` draws it.", out)
}

fn describe(game: &Game, spec: &GameSpec, out: &mut impl Write) -> io::Result<()> {
    let summary: Vec<&str> = game.summary.split(' ').collect();
    write_words(&format!("{}:", game.name), &summary, out)?;
    writeln!(out, "seats: {}   kind: {}", seats_text(game.seats), game.kind.join(", "))?;
    if !game.parameters.is_empty() {
        writeln!(out)?;
        let columns = [("parameter", Align::Left), ("default", Align::Left), ("", Align::Prose)];
        let mut table = Table::new(&columns);
        for parameter in &game.parameters {
            let about = format!("{}; {}", parameter.about, parameter.allowed);
            table.row([parameter.name.to_string(), parameter.default.to_string(), about]);
        }
        table.write(out)?;
    }
    writeln!(out)?;
    let mut table = Table::new(&[("feature", Align::Left), ("weight", Align::Right), ("", Align::Prose)]);
    for feature in &game.features {
        table.row([feature.name.to_string(), feature.weight.to_string(), feature.about.to_string()]);
    }
    table.write(out)?;
    writeln!(out)?;
    let title = if game.seats.len() > 1 {
        format!("algorithms for {} seats:", spec.parameters().seats())
    } else {
        "algorithms:".to_string()
    };
    write_words(&title, &game.algorithms, out)?;
    let player: Vec<&str> = default_player(spec).split(' ').collect();
    write_words("default player:", &player, out)
}
