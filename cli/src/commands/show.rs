//! `agon show`: a position for people, and for programs that check Agon's rules by their own.

use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::process::ExitCode;

use agon_games::AnyGame;
use agon_games::line::MoveError;
use clap::Args;
use serde::Serialize;

use super::position::PositionArgs;
use crate::fail::Outcome;
use crate::table::{write_json, write_words};

/// The arguments of `agon show`.
#[derive(Args)]
pub struct Show {
    #[command(flatten)]
    start: PositionArgs,
    /// Moves to play first, separated by spaces; `-` reads lines of moves from standard input and writes one JSON object
    /// per line
    #[arg(
        long,
        value_name = "MOVES",
        default_value = "",
        hide_default_value = true,
        allow_hyphen_values = true
    )]
    moves: String,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Sight<'a> {
    game: &'a str,
    plies: usize,
    turn: String,
    /// Whatever may come next: moves, or outcomes of chance.
    legal: Vec<String>,
    chance: Vec<ChanceOutcome>,
    payoffs: Option<Vec<i32>>,
    ending: Option<&'static str>,
    board: String,
    position: String,
    key: String,
}

/// An outcome of chance and its weight.
#[derive(Serialize)]
struct ChanceOutcome {
    #[serde(rename = "move")]
    word: String,
    weight: u32,
}

/// A line that is no line of moves.
#[derive(Serialize)]
struct BadLine {
    error: String,
    ply: usize,
    #[serde(rename = "move")]
    word: String,
    /// What could have been played there.
    legal: Vec<String>,
}

impl From<MoveError> for BadLine {
    fn from(error: MoveError) -> BadLine {
        BadLine { error: error.to_string(), ply: error.ply, word: error.word, legal: error.legal }
    }
}

impl Show {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let game = self.start.game_with_note()?.to_string();
        let out = io::stdout().lock();
        if self.moves == "-" {
            let start = self.start.start()?;
            return answer_lines(&game, &*start, &mut BufWriter::with_capacity(1 << 16, out));
        }
        let (position, plies) = self.start.after(&self.moves)?;
        let sight = look(&game, &*position, plies);
        let mut out = out;
        if self.json {
            write_json(&sight, &mut out)?;
        } else {
            draw(&sight, &mut out)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn look<'a>(game: &'a str, position: &dyn AnyGame, plies: usize) -> Sight<'a> {
    let weights = position.weights();
    let mut legal = position.legal();
    let mut chance = Vec::new();
    if !weights.is_empty() {
        let weighed = std::mem::take(&mut legal).into_iter().zip(weights);
        chance.extend(weighed.map(|(word, weight)| ChanceOutcome { word, weight }));
    }
    Sight {
        game,
        plies,
        turn: position.turn().to_string(),
        legal,
        chance,
        payoffs: position.payoffs(),
        ending: position.ending(),
        board: position.board(),
        position: position.position(),
        key: format!("{:016x}", position.key()),
    }
}

fn draw(sight: &Sight<'_>, out: &mut impl Write) -> io::Result<()> {
    let plies = if sight.plies == 1 { "1 ply".to_string() } else { format!("{} plies", sight.plies) };
    match (&sight.payoffs, sight.ending) {
        (Some(payoffs), Some(ending)) => {
            let payoffs: Vec<String> =
                payoffs.iter().enumerate().map(|(seat, payoff)| format!("seat {seat}: {payoff}")).collect();
            writeln!(out, "{} after {plies}: over, {ending}; payoffs {}", sight.game, payoffs.join(", "))?;
        }
        _ if !sight.chance.is_empty() => writeln!(out, "{} after {plies}: chance decides", sight.game)?,
        _ => writeln!(out, "{} after {plies}: {} to move", sight.game, sight.turn)?,
    }
    writeln!(out, "\n{}\n", sight.board)?;
    if sight.chance.is_empty() && !sight.legal.is_empty() {
        write_words(&format!("legal ({}):", sight.legal.len()), &sight.legal, out)?;
    } else if !sight.chance.is_empty() {
        let outcomes: Vec<String> =
            sight.chance.iter().map(|outcome| format!("{} x{}", outcome.word, outcome.weight)).collect();
        write_words(&format!("outcomes ({}) with weights:", outcomes.len()), &outcomes, out)?;
    }
    writeln!(out, "position: {}", sight.position)
}

/// Answers a line of moves from standard input by a line of JSON, until there are no more.
fn answer_lines(game: &str, start: &dyn AnyGame, out: &mut impl Write) -> Outcome {
    let mut input = BufReader::with_capacity(1 << 16, io::stdin().lock());
    let mut line = Vec::new();
    let mut all_good = true;
    loop {
        // What comes next may be written only after the answers to what came before. A caller that has written many
        // lines at once loses nothing: they are in the buffer, and their answers leave together.
        if !input.buffer().contains(&b'\n') {
            out.flush()?;
        }
        line.clear();
        if input.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        let mut position = start.copy();
        match position.follow(&String::from_utf8_lossy(&line)) {
            Ok(plies) => serde_json::to_writer(&mut *out, &look(game, &*position, plies))?,
            Err(error) => {
                all_good = false;
                serde_json::to_writer(&mut *out, &BadLine::from(error))?;
            }
        }
        writeln!(out)?;
    }
    out.flush()?;
    Ok(if all_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
