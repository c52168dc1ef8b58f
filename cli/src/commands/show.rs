//! `agon show`: prints a position for people, or checks lines of moves for programs that compare Agon's rules with their
//! own.

use std::io::{self, BufRead, BufReader, Write};
use std::process::ExitCode;

use agon_games::line::MoveError;
use agon_games::{AnyGame, Turn};
use clap::Args;
use serde::Serialize;

use super::position::PositionArgs;
use crate::fail::Outcome;
use crate::table::{print, stdout, write_json, write_words};

#[derive(Args)]
pub struct Show {
    #[command(flatten)]
    start: PositionArgs,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Document<'a> {
    game: &'a str,
    plies: usize,
    turn: String,
    /// What the board shows for the side to move, if that is more than its name.
    #[serde(skip)]
    mark: String,
    /// The legal moves, or the outcomes of chance.
    legal: Vec<String>,
    chance: Vec<ChanceOutcome>,
    payoffs: Option<Vec<i32>>,
    ending: Option<&'static str>,
    board: String,
    position: String,
    key: String,
}

/// A chance outcome with its weight.
#[derive(Serialize)]
struct ChanceOutcome {
    #[serde(rename = "move")]
    word: String,
    weight: u32,
}

/// The answer to an invalid line of moves.
#[derive(Serialize)]
struct InvalidLine {
    error: String,
    ply: usize,
    #[serde(rename = "move")]
    word: String,
    /// The legal moves at the failed ply.
    legal: Vec<String>,
}

impl From<MoveError> for InvalidLine {
    fn from(error: MoveError) -> InvalidLine {
        InvalidLine { error: error.to_string(), ply: error.ply, word: error.word, legal: error.legal }
    }
}

impl Show {
    pub fn run(self) -> Outcome {
        let game = self.start.game()?;
        if self.start.moves == "-" {
            return answer_lines(&game.to_string(), &*self.start.start(&game)?);
        }
        let (position, plies) = self.start.after_moves(&game)?;
        let game = game.to_string();
        let document = describe(&game, &*position, plies);
        print(self.json, &document, |out| write_position(&document, out))
    }
}

fn describe<'a>(game: &'a str, position: &dyn AnyGame, plies: usize) -> Document<'a> {
    let weights = position.weights();
    let mut legal = position.legal();
    let mut chance = Vec::new();
    if !weights.is_empty() {
        let weighed = std::mem::take(&mut legal).into_iter().zip(weights);
        chance.extend(weighed.map(|(word, weight)| ChanceOutcome { word, weight }));
    }
    Document {
        game,
        plies,
        turn: position.turn().to_string(),
        mark: match position.turn() {
            Turn::Player(seat) => Some(position.mark(seat)).filter(|mark| !mark.starts_with("seat ")),
            Turn::Chance | Turn::Over => None,
        }
        .map(|mark| format!(", {mark}"))
        .unwrap_or_default(),
        legal,
        chance,
        payoffs: position.payoffs(),
        ending: position.ending(),
        board: position.board(),
        position: position.position(),
        key: format!("{:016x}", position.key()),
    }
}

fn write_position(document: &Document<'_>, out: &mut impl Write) -> io::Result<()> {
    let plies = if document.plies == 1 { "1 ply".to_string() } else { format!("{} plies", document.plies) };
    match (&document.payoffs, document.ending) {
        (Some(payoffs), Some(ending)) => {
            let payoffs: Vec<String> =
                payoffs.iter().enumerate().map(|(seat, payoff)| format!("seat {seat}: {payoff}")).collect();
            writeln!(out, "{} after {plies}: over, {ending}; payoffs {}", document.game, payoffs.join(", "))?;
        }
        _ if !document.chance.is_empty() => writeln!(out, "{} after {plies}: chance decides", document.game)?,
        _ => writeln!(out, "{} after {plies}: {} to move{}", document.game, document.turn, document.mark)?,
    }
    writeln!(out, "\n{}\n", document.board)?;
    if document.chance.is_empty() && !document.legal.is_empty() {
        write_words(&format!("legal ({}):", document.legal.len()), &document.legal, out)?;
    } else if !document.chance.is_empty() {
        let outcomes: Vec<String> =
            document.chance.iter().map(|outcome| format!("{} x{}", outcome.word, outcome.weight)).collect();
        write_words(&format!("outcomes ({}) with weights:", outcomes.len()), &outcomes, out)?;
    }
    writeln!(out, "position: {}", document.position)
}

/// Answers each line of moves on standard input with a line of JSON.
fn answer_lines(game: &str, start: &dyn AnyGame) -> Outcome {
    let mut input = BufReader::with_capacity(1 << 16, io::stdin().lock());
    let mut out = stdout();
    let mut line = Vec::new();
    let mut all_valid = true;
    loop {
        // Flush before blocking on input: the caller may send its next line only after the answers to the previous ones.
        if !input.buffer().contains(&b'\n') {
            out.flush()?;
        }
        line.clear();
        if input.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        let mut position = start.copy();
        match position.follow(&String::from_utf8_lossy(&line)) {
            Ok(plies) => write_json(&describe(game, &*position, plies), &mut out)?,
            Err(error) => {
                all_valid = false;
                write_json(&InvalidLine::from(error), &mut out)?;
            }
        }
    }
    out.flush()?;
    Ok(if all_valid { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
