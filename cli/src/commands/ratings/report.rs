//! The answer of `agon ratings` as text.

use std::io::{self, Write};

use agon_stats::pool::Standing;

use super::document::{Difference, RatedPool};
use crate::commands::counts::{pentanomial, plus_minus};
use crate::table::{
    Align, Table, fixed, likelihood, percent, rate, shortened, signed, write_facts, write_sentence,
};
use crate::terminal::width_of_stdout;

/// The longest name beside a matrix.
const LABEL: usize = 20;

/// The p-value below which one rating per player is rejected.
const SIGNIFICANT: f64 = 0.01;

/// Writes the standings and the requested tables.
pub fn write(document: &RatedPool, out: &mut impl Write) -> io::Result<()> {
    let groups = document.components.len();
    if groups > 1 {
        write_sentence(
            &format!(
                "No results connect these {groups} groups of players. Each group is rated separately: ratings of different \
                 groups are not comparable."
            ),
            out,
        )?;
    }
    for component in 0..groups {
        if groups > 1 {
            writeln!(out, "\ngroup {}", component + 1)?;
        }
        let players: Vec<&Standing> =
            document.players.iter().filter(|player| player.component == component).collect();
        write_standings(&players, out)?;
    }
    writeln!(out)?;
    write_facts(&facts(document), out)?;
    document.cautions.iter().try_for_each(|caution| write_sentence(caution, out))?;
    write_crosstable(document, out)?;
    write_superiority(document, out)?;
    write_residuals(document, out)
}

fn write_standings(players: &[&Standing], out: &mut impl Write) -> io::Result<()> {
    const HEADER: [&str; 11] = ["#", "player", "Elo", "+", "-", "games", "W", "D", "L", "score", "LOS"];
    let columns = HEADER.map(|name| (name, if name == "player" { Align::Left } else { Align::Right }));
    let mut table = Table::new(&columns).optional(&["L", "D", "W", "games", "#"]);
    players.iter().for_each(|player| table.row(cells(player)));
    table.write(out)
}

fn cells(player: &Standing) -> [String; 11] {
    let error =
        |end: Option<f64>| end.map_or_else(String::new, |end| format!("{:.1}", (end - player.elo).abs()));
    // The zero of the scale has an interval without width.
    let error = |end: Option<f64>| error(end.filter(|end| *end != player.elo));
    [
        player.rank.to_string(),
        player.name.clone(),
        fixed(player.elo, 1),
        error(player.high),
        error(player.low),
        count(player.games),
        count(player.wins),
        count(player.draws),
        count(player.losses),
        player.score.map_or_else(String::new, percent),
        player.los_next.map_or_else(String::new, likelihood),
    ]
}

/// Formats a count; shortens it if it would not fit.
fn count(games: u64) -> String {
    if games < 10_000_000 { games.to_string() } else { rate(games as f64) }
}

/// Describes the pool as a whole.
fn facts(document: &RatedPool) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    let players = document.players.len();
    facts.extend(document.runs.iter().map(|run| ("run", format!("{}: {}", run.run, run.progress))));
    facts.extend(document.game.iter().map(|game| ("game", game.clone())));
    facts.push((
        "games",
        format!("{} of {players} players; the unit of evidence is the {}", document.games, document.unit),
    ));
    facts.extend(document.difference.iter().map(|difference| {
        let Difference { elo, low, high, los, verdict } = difference;
        let interval = plus_minus(*elo, *low, *high);
        ("difference", format!("{interval} Elo, LOS {}: {verdict}", likelihood(*los)))
    }));
    if let (Some(pairs), [first, ..]) = (&document.pairs, &document.players[..]) {
        facts.extend(pentanomial(pairs).map(|counts| ("pairs", format!("{counts} for {}", first.name))));
    }
    if document.difference.is_none() {
        let los = document.los_first.map_or(String::new(), |los| format!(" (LOS {})", likelihood(los)));
        facts.extend(document.verdict.iter().map(|verdict| ("verdict", format!("{verdict}{los}"))));
    }
    if !document.seat_effects.is_empty() {
        let effects = document.seat_effects.iter().map(|effect| match (effect.low, effect.high) {
            (Some(low), Some(high)) => format!(
                "seat {} {} ({} to {})",
                effect.seat,
                signed(effect.elo, 1),
                signed(low, 1),
                signed(high, 1)
            ),
            _ => format!("seat {} {}", effect.seat, signed(effect.elo, 1)),
        });
        facts.push((
            "seats",
            format!("in Elo against their mean: {}", effects.collect::<Vec<_>>().join(", ")),
        ));
    }
    let two_seats = document.seat_effects.is_empty();
    facts.extend(two_seats.then(|| {
        (
            "first seat",
            match (document.seat_advantage, document.seat_advantage_interval) {
                (Some(elo), Some((low, high))) => {
                    format!("worth {} Elo ({} to {})", signed(elo, 1), signed(low, 1), signed(high, 1))
                }
                (Some(elo), None) => format!("worth some {} Elo, interval not estimable", signed(elo, 0)),
                (None, _) => "its advantage is not modelled, or not separable from the ratings".to_string(),
            },
        )
    }));
    let draws =
        document.draw_rate.map(|rate| format!("{} of the games between equal players", percent(rate)));
    facts.extend(draws.map(|draws| ("draws", draws)));
    let unit = document.unit;
    facts.extend(document.transitivity.as_ref().map(|test| {
        (
            "transitivity",
            match test.p_value {
                None => format!("not testable: the test needs cycles of pairings with ten {unit}s each"),
                Some(p) if p < SIGNIFICANT => format!(
                    "results contradict a single rating per player ({}); --residuals lists the pairings",
                    probability(p)
                ),
                Some(p) => {
                    format!("results are consistent with a single rating per player ({})", probability(p))
                }
            },
        )
    }));
    let is_zero = |name: &str| document.players.iter().any(|row| row.name == name && row.elo == 0.0);
    let zero = match (&document.anchor, document.average) {
        (Some(anchor), _) if document.difference.is_some() && is_zero(anchor) => {
            format!("the rating of {anchor} is fixed at 0, so that the other's is the difference")
        }
        (Some(anchor), _) => format!("the rating of {anchor} is fixed"),
        (None, average) => format!("the mean rating is {}", average.unwrap_or(0.0)),
    };
    let errors = match (document.replicas, two_seats) {
        (0, true) => "to the ends of the 95 % interval".to_string(),
        (0, false) => "not computed: more than two seats need --replicas 1000".to_string(),
        (replicas, _) => format!("to the ends of the 95 % interval, from {replicas} resampled pools"),
    };
    facts.push(("scale", zero));
    facts.push(("+ and -", errors));
    let skipped = &document.skipped;
    let counts = [
        (skipped.malformed, "malformed games"),
        (skipped.unfinished, "unfinished games"),
        (skipped.left_out as u64, "players with too few games"),
    ];
    let words: Vec<String> =
        counts.iter().filter(|count| count.0 > 0).map(|(count, what)| format!("{count} {what}")).collect();
    if !words.is_empty() {
        facts.push(("left out", words.join(", ")));
    }
    facts
}

fn write_heading(text: &str, out: &mut impl Write) -> io::Result<()> {
    writeln!(out)?;
    write_sentence(text, out)
}

fn probability(p: f64) -> String {
    if p < 0.0001 { "p < 0.0001".to_string() } else { format!("p = {p:.4}") }
}

/// Writes the crosstable, if requested.
pub fn write_crosstable(document: &RatedPool, out: &mut impl Write) -> io::Result<()> {
    let Some(table) = &document.crosstable else { return Ok(()) };
    if document.seat_effects.is_empty() {
        write_heading("won-drawn-lost by the row against the column", out)?;
    } else {
        write_heading("ahead-level-behind of the row against the column, in games that either won", out)?;
    }
    write_matrix(document, out, |row, column| {
        table[row][column].map_or_else(String::new, |m| format!("{}-{}-{}", m.wins, m.draws, m.losses))
    })
}

/// Writes the scores of the crosstable, if requested.
pub fn write_scores(document: &RatedPool, out: &mut impl Write) -> io::Result<()> {
    let Some(table) = &document.crosstable else { return Ok(()) };
    write_heading("score of the row against the column, in %", out)?;
    write_matrix(document, out, |row, column| {
        let score = table[row][column].and_then(|meeting| meeting.score());
        score.map_or_else(String::new, |score| format!("{:.1}", 100.0 * score))
    })
}

fn write_superiority(document: &RatedPool, out: &mut impl Write) -> io::Result<()> {
    let Some(table) = &document.los else { return Ok(()) };
    write_heading("likelihood that the row is stronger than the column", out)?;
    write_matrix(document, out, |row, column| table[row][column].map_or_else(String::new, likelihood))
}

/// Writes a matrix of the players in bands of columns that fit the width. Columns have the numbers of the rows.
fn write_matrix(
    document: &RatedPool,
    out: &mut impl Write,
    cell: impl Fn(usize, usize) -> String,
) -> io::Result<()> {
    let players = document.players.len();
    let labels: Vec<String> = document
        .players
        .iter()
        .enumerate()
        .map(|(row, player)| format!("{} {}", row + 1, shortened(&player.name, LABEL)))
        .collect();
    let all = || (0..players).flat_map(|row| (0..players).map(move |column| (row, column)));
    let width =
        all().map(|(row, column)| cell(row, column).len()).max().unwrap_or(0).max(players.to_string().len());
    let label = labels.iter().map(|label| label.chars().count()).max().unwrap_or(0);
    let band = (width_of_stdout().unwrap_or(usize::MAX).saturating_sub(label) / (width + 2))
        .clamp(1, players.max(1));
    let numbers: Vec<String> = (1..=players).map(|number| number.to_string()).collect();
    for start in (0..players).step_by(band) {
        let columns = start..(start + band).min(players);
        let header = [("", Align::Left)].into_iter();
        let header: Vec<_> =
            header.chain(columns.clone().map(|column| (numbers[column].as_str(), Align::Right))).collect();
        let mut table = Table::new(&header);
        for (row, label) in labels.iter().enumerate() {
            table.row([label.clone()].into_iter().chain(columns.clone().map(|column| cell(row, column))));
        }
        table.write(out)?;
    }
    Ok(())
}

fn write_residuals(document: &RatedPool, out: &mut impl Write) -> io::Result<()> {
    let Some(residuals) = &document.residuals else { return Ok(()) };
    write_heading("scored and expected points, with the deviation in standard deviations", out)?;
    let mut table = Table::new(&[
        ("player", Align::Left),
        ("against", Align::Left),
        ("games", Align::Right),
        ("scored", Align::Right),
        ("expected", Align::Right),
        ("deviations", Align::Right),
    ]);
    for residual in residuals {
        table.row([
            residual.one.clone(),
            residual.other.clone(),
            residual.games.to_string(),
            format!("{:.1}", residual.observed),
            format!("{:.1}", residual.expected),
            residual.deviations.map_or_else(String::new, |deviations| signed(deviations, 1)),
        ]);
    }
    table.write(out)
}
