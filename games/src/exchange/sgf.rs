//! Writer for go as SGF, FF[4] (Hollosi 2006): board, komi, players, result, and moves with comments.
//!
//! A comment has the value from the mover's view, the depth or the simulations, the nodes and the time; in the opening it
//! is `book`. SGF cannot express the passes and plies before a given first position.

use std::fmt::Write as _;

use super::{ScoreSheet, SearchSummary, WriteError, first, legal};
use crate::game::{Game, Notation, Seat, Turn};
use crate::go::Go;
use crate::setup::Parameters;
use crate::text::Labels;

pub(super) fn write(
    parameters: &Parameters,
    sheet: &ScoreSheet<'_>,
    out: &mut String,
) -> Result<(), WriteError> {
    let mut position = first::<Go>(parameters, sheet)?;
    let size = parameters.integer("size") as usize;
    let mut moves = String::new();
    let [black, white] = [0, 1].map(|seat: usize| &sheet.seats[seat]);
    let setup = setup_stones(&position, sheet, size);
    let mut colour = if position.turn() == Turn::Player(Seat::SECOND) { 'W' } else { 'B' };
    for (index, ply) in sheet.plies.iter().enumerate() {
        let mv = legal(&position, index, ply)?;
        let point = point(&position.move_text(mv), size);
        writeln!(moves, ";{colour}[{point}]C[{}]", escape(&comment(ply.search))).expect(TAKES_TEXT);
        position.play(mv);
        colour = if colour == 'B' { 'W' } else { 'B' };
    }
    let result = match (black.payoff.signum(), sheet.forfeit) {
        (0, _) => "0".to_string(),
        (sign, forfeit) => {
            let winner = if sign > 0 { 'B' } else { 'W' };
            let lead = match sheet.ending {
                _ if forfeit => "T".to_string(),
                "crash" | "illegal move" => "F".to_string(),
                ending if ending == "resigned" || ending.starts_with("adjudicated") => "R".to_string(),
                _ => halves(position.lead().abs()),
            };
            format!("{winner}+{lead}")
        }
    };
    let started = sheet.started;
    writeln!(out, "(;FF[4]GM[1]CA[UTF-8]AP[Agon:{}]", env!("CARGO_PKG_VERSION")).expect(TAKES_TEXT);
    let komi = halves(parameters.halves("komi"));
    writeln!(out, "SZ[{size}]KM[{komi}]RU[area scoring, positional superko, no suicide]").expect(TAKES_TEXT);
    writeln!(out, "EV[{}]RO[{}]", escape(sheet.event), escape(sheet.round)).expect(TAKES_TEXT);
    writeln!(out, "DT[{:04}-{:02}-{:02}]", started.year, started.month, started.day).expect(TAKES_TEXT);
    writeln!(out, "PB[{}]PW[{}]RE[{result}]", escape(black.player), escape(white.player)).expect(TAKES_TEXT);
    let limits = format!("Black {}, White {}; {}", black.limit, white.limit, sheet.ending);
    writeln!(out, "GC[{}]", escape(&limits)).expect(TAKES_TEXT);
    out.push_str(&setup);
    out.push_str(&moves);
    out.push_str(")\n\n");
    Ok(())
}

const TAKES_TEXT: &str = "a String takes all text";

/// Returns the properties for the stones and the mover of a given first position.
fn setup_stones(position: &Go, sheet: &ScoreSheet<'_>, size: usize) -> String {
    let mut text = String::new();
    if sheet.position.is_none() {
        return text;
    }
    for (property, symbol) in [("AB", 'X'), ("AW", 'O')] {
        let stones: Vec<String> = (0..size * size)
            .map(|point| (point % size, point / size))
            .filter(|&(column, row)| position.symbol(size - 1 - row, column) == symbol)
            .map(|(column, row)| format!("[{}{}]", letter(column), letter(row)))
            .collect();
        if !stones.is_empty() {
            writeln!(text, "{property}{}", stones.concat()).expect(TAKES_TEXT);
        }
    }
    let mover = if position.turn() == Turn::Player(Seat::SECOND) { 'W' } else { 'B' };
    writeln!(text, "PL[{mover}]").expect(TAKES_TEXT);
    text
}

/// Converts a move from GTP to SGF: column and row from the top left, or empty for a pass.
fn point(mv: &str, size: usize) -> String {
    let mut characters = mv.chars();
    let column = characters.next().and_then(|name| Labels::Go.column_named(name, size));
    let row = characters.as_str().parse::<usize>().ok();
    match (column, row) {
        (Some(column), Some(row)) => format!("{}{}", letter(column), letter(size - row)),
        _ => String::new(),
    }
}

fn letter(index: usize) -> char {
    char::from(b'a' + index as u8)
}

fn halves(halves: i32) -> String {
    (f64::from(halves) / 2.0).to_string()
}

fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace(']', "\\]")
}

fn comment(search: Option<SearchSummary>) -> String {
    let Some(SearchSummary { value, depth, nodes, simulations, time }) = search else {
        return "book".to_string();
    };
    let effort =
        if simulations > 0 { format!("{simulations} simulations") } else { format!("depth {depth}") };
    format!("value {value}, {effort}, {nodes} nodes, {:.3} s", time.as_secs_f64())
}
