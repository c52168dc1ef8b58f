//! The games of a run as a table, or as JSON.

use std::io::Write;

use agon_analysis::games::Games;
use agon_analysis::results::results;
use agon_analysis::{Dataset, Query, Run};
use agon_records::GameRow;

use super::super::runs::not_over;
use super::game_name;
use crate::number::cores;
use crate::table::{Align, Table, write_sentence};

/// Writes `{"run", "complete", "games": [...]}`, game by game.
pub(super) fn write_json(
    dataset: &Dataset,
    run: &Run,
    query: &Query,
    limit: usize,
    out: &mut impl Write,
) -> anyhow::Result<()> {
    let games = Games::new(dataset, run, query)?;
    write!(
        out,
        "{{\"run\":{},\"complete\":{},\"games\":[",
        serde_json::to_string(&run.id)?,
        run.is_complete()
    )?;
    for (index, row) in games.take(limit).enumerate() {
        let row = row?;
        if index > 0 {
            out.write_all(b",")?;
        }
        serde_json::to_writer(&mut *out, &row)?;
    }
    writeln!(out, "]}}")?;
    Ok(())
}

/// Writes the first games, and the number of the others.
pub(super) fn write_table(
    dataset: &Dataset,
    run: &Run,
    query: &Query,
    limit: usize,
    out: &mut impl Write,
) -> anyhow::Result<()> {
    let mut listed = Vec::new();
    let mut found = 0;
    for row in Games::new(dataset, run, query)? {
        let row = row?;
        found += 1;
        if listed.len() < limit {
            listed.push(row);
        }
    }
    if listed.is_empty() {
        write_sentence(&format!("{} has no such game", run.id), out)?;
    } else {
        table(&listed).write(out)?;
    }
    if found > listed.len() {
        let more = found - listed.len();
        let games = if more == 1 { "game" } else { "games" };
        write_sentence(&format!("and {more} more {games}; --limit {found} lists them all"), out)?;
    }
    if run.state.is_open() {
        let bouts = results(dataset, run, &run.spec()?, cores())?.found;
        write_sentence(&not_over(bouts, run.bouts, "bouts"), out)?;
    }
    Ok(())
}

/// Returns a table with a row for each game.
fn table(rows: &[GameRow]) -> Table {
    let is_pair = rows.iter().all(|row| row.players.len() == 2);
    let seats: &[&str] = if is_pair { &["seat 0", "seat 1"] } else { &["players by seat"] };
    let seats: Vec<(&str, Align)> = seats.iter().map(|&seat| (seat, Align::Left)).collect();
    let rest = [("payoffs", Align::Right), ("plies", Align::Right)];
    let texts = ["ending", "opening"].map(|text| (text, Align::Left));
    let mut table = Table::new(&[&[("game", Align::Right)], &seats[..], &rest, &texts].concat())
        .optional(&["opening", "plies", "ending"]);
    for row in rows {
        let players = if is_pair { row.players.clone() } else { vec![row.players.join(" ")] };
        let number = game_name(row.bout, row.game);
        let rest =
            [payoffs_text(&row.payoffs), row.plies.to_string(), row.ending.clone(), row.opening.clone()];
        table.row([number].into_iter().chain(players).chain(rest));
    }
    table
}

/// Formats payoffs by seat, with signs if any is negative.
pub(super) fn payoffs_text(payoffs: &[i32]) -> String {
    let signed = payoffs.iter().any(|&payoff| payoff < 0);
    let text = |payoff: &i32| if signed { format!("{payoff:+}") } else { payoff.to_string() };
    payoffs.iter().map(text).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(bout: u64, players: &[&str], payoffs: &[i32], ending: &str, opening: &str) -> GameRow {
        GameRow {
            bout,
            game: 1,
            rules: "chess".to_string(),
            variant: String::new(),
            opening: opening.to_string(),
            players: players.iter().map(ToString::to_string).collect(),
            payoffs: payoffs.to_vec(),
            plies: 1000,
            ending: ending.to_string(),
            seed: 0,
            worker: String::new(),
            build: String::new(),
            started: 0,
            duration_us: 0,
            speed_factor: 1.0,
            settings: Vec::new(),
            detail: String::new(),
            engine_cpu_us: Vec::new(),
        }
    }

    fn text(rows: &[GameRow]) -> String {
        let mut text = Vec::new();
        table(rows).write_within(Some(80), &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        text
    }

    #[test]
    fn tables_fit_eighty_columns() {
        let long = "a-player-with-a-name-of-some-forty-letters";
        let opening = "e2e4 e7e5 g1f3 b8c6 f1b5 a7a6 b5a4 g8f6 e1g1 f8e7";
        text(&[row(1_000_000, &[long, long], &[-1, 1], "forty quiet moves a side", opening)]);
        text(&[row(1_000_000, &[long; 6], &[60, 0, 0, 0, 0, 0], "no move left", opening)]);
        text(&[row(1, &["a", "b"], &[1, -1], "checkmate", opening), row(2, &["b", "a"], &[0, 0], "x", "")]);
    }

    #[test]
    fn prints_one_row_per_game() {
        expect_test::expect![[r#"
            game  seat 0  seat 1  payoffs  plies  ending     opening
             1.1  full    plain     +1 -1   1000  checkmate  e2e4
            12.1  plain   full        0 0   1000  stalemate  [4k3/8/8/8/8/8/8/4K2R w K - 0..
        "#]]
        .assert_eq(&text(&[
            row(1, &["full", "plain"], &[1, -1], "checkmate", "e2e4"),
            row(12, &["plain", "full"], &[0, 0], "stalemate", "[4k3/8/8/8/8/8/8/4K2R w K - 0 1] e1g1"),
        ]));
    }
}
