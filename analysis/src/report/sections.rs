//! The sections on results and games: who is how strong, who did what against whom, how games went, how to repeat it.

use agon_stats::elo::LARGEST_DIFFERENCE;

use super::markup::{LONG_NAME, escape, heading};
use super::page::{Column, Section, figure, paragraph, table, told};
use super::standing::{Crosstable, Rated, Ratings, Trace};
use super::survey::{GameLine, Lengths};
use super::svg::{self, Axis, Line, MOST_CELLS, MOST_LINES, MOST_ROWS, Row};
use super::words::{likelihood, percent};
use super::{Moment, Question, Report, Thought, Told};
use crate::format::{fixed, signed};
use crate::pruning::Interval;

const ELO: Axis<'_> = Axis { label: "Elo (the mean of all is 0)", log: false, whole: false, mark: Some(0.0) };

/// What a sequential test has seen.
pub(super) fn test(report: &Report) -> Option<Section> {
    let test = report.test.as_ref()?;
    let pairs = test.pairs;
    let rows = vec![
        vec![
            "hypotheses".to_string(),
            format!("{} or {} {} Elo", signed(test.bounds[0], 1), signed(test.bounds[1], 1), test.model),
        ],
        vec!["error rates".to_string(), format!("alpha {}, beta {}", test.alpha, test.beta)],
        vec![
            "log-likelihood ratio".to_string(),
            format!(
                "{} between {} and {}",
                signed(test.llr, 2),
                signed(test.lower, 2),
                signed(test.upper, 2)
            ),
        ],
        vec!["bouts looked at".to_string(), test.looked_at.to_string()],
        vec!["bouts by score 0, 1/2, 1, 3/2, 2".to_string(), pairs.map(|count| count.to_string()).join(", ")],
        vec![
            "difference".to_string(),
            test.elo.map_or("not known".to_string(), |elo| {
                format!("{} Elo{}", signed(elo.value, 1), ends(&elo, 1))
            }),
        ],
        vec![format!("{} is stronger", test.player), test.los.map_or("not known".to_string(), likelihood)],
    ];
    let columns = [("", Column::Word), ("value", Column::Words)];
    let caption =
        "The test looks at the bouts in the order of the schedule and stops at the first that decides";
    Some(Section { id: "test", title: "The test", full: true, body: table(caption, &columns, &rows) })
}

/// Ratings with intervals.
pub(super) fn ratings(report: &Report) -> Option<Section> {
    if report.question == Question::Probe {
        return None;
    }
    let body = told(&report.ratings, rated);
    Some(Section { id: "ratings", title: "Ratings", full: false, body })
}

fn rated(ratings: &Ratings) -> String {
    let row = |player: &Rated| Row {
        name: player.name.clone(),
        value: Some(player.elo),
        low: player.low.filter(|_| player.bound.is_none()),
        high: player.high.filter(|_| player.bound.is_none()),
        extreme: None,
        text: elo_text(player),
    };
    let shown: Vec<Row> = ratings.players.iter().take(MOST_ROWS).map(row).collect();
    let alternative: Vec<String> = ratings
        .players
        .iter()
        .take(MOST_ROWS)
        .map(|player| format!("{} {}", player.name, elo_text(player)))
        .collect();
    let alternative = format!("Ratings in Elo with intervals of 95 %: {}", alternative.join("; "));
    let chart = svg::intervals(&shown, ELO, &alternative);
    let mut caption =
        format!("Ratings with intervals of 95 %, from {} resampled tournaments.", ratings.replicas);
    if ratings.players.iter().any(|player| player.bound.is_some()) {
        caption.push_str(" Who won or lost every game has only a bound.");
    }
    caption.push_str(&rest(ratings.players.len(), MOST_ROWS, "players"));
    let columns = [
        ("player", Column::Word),
        ("#", Column::Number),
        ("Elo", Column::Number),
        ("95 %", Column::Number),
        ("games", Column::Number),
        ("won", Column::Number),
        ("drawn", Column::Number),
        ("lost", Column::Number),
        ("score", Column::Number),
        ("beats next", Column::Number),
    ];
    let rows: Vec<Vec<String>> = ratings.players.iter().map(cells).collect();
    let numbers = table("Ratings, and how likely each player is stronger than the next", &columns, &rows);
    let mut body = figure(&chart, &caption, &numbers);
    body.push_str("<ul>\n");
    for fact in facts(ratings) {
        body.push_str(&format!("<li>{}</li>\n", escape(&fact)));
    }
    body.push_str("</ul>\n");
    body
}

fn cells(player: &Rated) -> Vec<String> {
    let interval = match (player.low, player.high, player.bound) {
        (Some(low), Some(high), None) => format!("{} to {}", signed(low, 0), signed(high, 0)),
        _ => "-".to_string(),
    };
    vec![
        player.name.clone(),
        player.rank.to_string(),
        elo_text(player),
        interval,
        player.games.to_string(),
        player.wins.to_string(),
        player.draws.to_string(),
        player.losses.to_string(),
        player.score.map_or("-".to_string(), percent),
        player.los_next.map_or("-".to_string(), likelihood),
    ]
}

fn elo_text(player: &Rated) -> String {
    let sign = match player.bound {
        Some("at_most") => "at most ",
        Some(_) => "at least ",
        None => "",
    };
    format!("{sign}{}", signed(player.elo, 0))
}

/// What the model found beside the ratings.
fn facts(ratings: &Ratings) -> Vec<String> {
    let mut facts = Vec::new();
    if let Some(advantage) = &ratings.seat_advantage {
        let more = if advantage.value.abs() > LARGEST_DIFFERENCE - 1.0 { " or more" } else { "" };
        facts.push(format!(
            "To move first is worth {} Elo{more}{}.",
            signed(advantage.value, 0),
            ends(advantage, 0)
        ));
    }
    if !ratings.seat_effects.is_empty() {
        let effects: Vec<String> = ratings
            .seat_effects
            .iter()
            .enumerate()
            .map(|(seat, effect)| format!("seat {seat} {}{}", signed(effect.value, 0), ends(effect, 0)))
            .collect();
        facts.push(format!(
            "What a seat is worth in Elo against the mean of all seats: {}.",
            effects.join(", ")
        ));
    }
    if let Some(rate) = ratings.draw_rate {
        facts.push(format!("Equal players would draw {} of their games.", percent(rate)));
    }
    facts.push(match ratings.transitivity {
        Some(p) if p < 0.01 => {
            format!("One number a player does not explain all results (p = {}).", fixed(p, 4))
        }
        Some(p) => format!("Nothing speaks against one number a player (p = {}).", fixed(p, 2)),
        None => "Whether one number a player is enough was not tested.".to_string(),
    });
    facts.push("The unit of evidence is the bout: all seatings of one opening.".to_string());
    facts
}

/// The interval behind a number.
pub(super) fn ends(interval: &Interval, decimals: usize) -> String {
    match (interval.low, interval.high) {
        (Some(low), Some(high)) => {
            format!(" (95 %: {} to {})", signed(low, decimals), signed(high, decimals))
        }
        _ => String::new(),
    }
}

/// What a caption says where not everything is drawn.
pub(super) fn rest(count: usize, shown: usize, what: &str) -> String {
    if count > shown { format!(" The first {shown} of {count} {what} are drawn.") } else { String::new() }
}

/// Who did what against whom.
pub(super) fn crosstable(report: &Report) -> Option<Section> {
    let Told::There(table) = &report.crosstable else { return None };
    (table.names.len() > 1).then(|| Section {
        id: "crosstable",
        title: "Who beats whom",
        full: false,
        body: crossed(table),
    })
}

fn crossed(crosstable: &Crosstable) -> String {
    let Crosstable { names, cells } = crosstable;
    let columns: Vec<String> = (1..=names.len()).map(|number| number.to_string()).collect();
    let header: Vec<(&str, Column)> = std::iter::once(("player", Column::Word))
        .chain(columns.iter().map(|number| (number.as_str(), Column::Number)))
        .collect();
    let rows: Vec<Vec<String>> = names
        .iter()
        .zip(cells)
        .enumerate()
        .map(|(index, (name, row))| {
            let cell = |(column, cell): (usize, &Option<super::Cell>)| match cell {
                _ if column == index => "".to_string(),
                Some(cell) => {
                    format!("{} +{} ={} -{}", percent(cell.score()), cell.wins, cell.draws, cell.losses)
                }
                None => "-".to_string(),
            };
            let own = std::iter::once(format!("{} {name}", index + 1));
            own.chain(row.iter().enumerate().map(cell)).collect()
        })
        .collect();
    let numbers =
        table("Share of the points of the row against the column; games won, drawn, lost", &header, &rows);
    if names.len() > MOST_CELLS {
        return numbers;
    }
    let shares: Vec<Vec<Option<f64>>> =
        cells.iter().map(|row| row.iter().map(|cell| cell.map(|cell| cell.score())).collect()).collect();
    let alternative = "Heat map of the share of the points of each player against each other; the numbers are in the table below";
    let caption = "Percent of the points that the player of the row made against the player of the column. Blue is more than half, orange less; an empty frame is a pair that never met.";
    figure(&svg::heat_map(names, &shares, alternative), caption, &numbers)
}

/// Ratings after the first bouts.
pub(super) fn convergence(report: &Report) -> Option<Section> {
    if report.question == Question::Probe || report.ratings.get().is_none() {
        return None;
    }
    let body = told(&report.convergence, |traces| settled(traces));
    Some(Section { id: "convergence", title: "How the ratings settled", full: false, body })
}

fn settled(traces: &[Trace]) -> String {
    // Ratings from the very first bouts are anywhere: what the later ones need is what is drawn.
    let last = traces.iter().flat_map(|trace| &trace.points).map(|point| point.0).max().unwrap_or(0);
    let later = traces.iter().flat_map(|trace| &trace.points).filter(|point| point.0 * 4 >= last);
    let (low, high) = later
        .flat_map(|(_, elo)| [Some(elo.value), elo.low, elo.high])
        .flatten()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), elo| (low.min(elo), high.max(elo)));
    let line = |trace: &Trace| {
        let drawn = trace.points.iter().skip_while(|(_, elo)| !(low..=high).contains(&elo.value));
        let drawn = drawn.filter(|(_, elo)| (low..=high).contains(&elo.value));
        let band =
            |(bouts, elo): &(u64, Interval)| Some((*bouts as f64, elo.low?.max(low), elo.high?.min(high)));
        Line {
            name: trace.player.clone(),
            points: drawn.clone().map(|(bouts, elo)| (*bouts as f64, elo.value)).collect(),
            band: drawn.filter_map(band).collect(),
            ..Line::default()
        }
    };
    let lines: Vec<Line> = traces.iter().take(MOST_LINES).map(line).collect();
    let ends: Vec<String> = traces
        .iter()
        .filter_map(|trace| {
            let (first, last) = (trace.points.first()?, trace.points.last()?);
            Some(format!("{} from {} to {}", trace.player, signed(first.1.value, 0), signed(last.1.value, 0)))
        })
        .collect();
    let alternative = format!("Ratings over the bouts played: {}", ends.join("; "));
    let bouts = Axis { label: "bouts", log: false, whole: true, mark: None };
    let elo = Axis { label: "Elo", ..ELO };
    let chart = svg::lines(&lines, bouts, elo, &alternative);
    let caption = format!(
        "Ratings from the first bouts of the schedule alone, with bands of 95 %. Ratings of very few bouts that lie far off are not drawn.{}",
        rest(traces.len(), MOST_LINES, "players")
    );
    let columns = [
        ("player", Column::Word),
        ("bouts", Column::Number),
        ("Elo", Column::Number),
        ("95 %", Column::Number),
    ];
    let mut rows = Vec::new();
    for trace in traces {
        // A few points tell the way; the chart has the others.
        let step = trace.points.len().div_ceil(6).max(1);
        let last = trace.points.len().saturating_sub(1);
        for (_, (bouts, elo)) in
            trace.points.iter().enumerate().filter(|(index, _)| index % step == 0 || *index == last)
        {
            let interval = match (elo.low, elo.high) {
                (Some(low), Some(high)) => format!("{} to {}", signed(low, 0), signed(high, 0)),
                _ => "-".to_string(),
            };
            rows.push(vec![trace.player.clone(), bouts.to_string(), signed(elo.value, 0), interval]);
        }
    }
    figure(&chart, &caption, &table("Ratings after the first bouts", &columns, &rows))
}

/// How long games were and how they ended.
pub(super) fn lengths(report: &Report) -> Option<Section> {
    let lengths = report.lengths.as_ref()?;
    Some(Section { id: "games", title: "The games", full: true, body: described(lengths) })
}

fn described(lengths: &Lengths) -> String {
    let (longest, shortest) = (lengths.longest.first(), lengths.shortest.first());
    let shown = longest.map_or(String::new(), place);
    let even = longest.map(|game| game.plies) == shortest.map(|game| game.plies);
    let plies = match even {
        true => format!("{} plies each", fixed(lengths.mean_plies, 0)),
        false => format!("{} plies on average", fixed(lengths.mean_plies, 1)),
    };
    let mut body = format!(
        "<p>{} games of {plies}. <code>agon games</code> lists them, <code>agon games --show {}</code> shows one ply by ply.</p>\n",
        lengths.games,
        escape(&shown)
    );
    let columns = [
        ("game", Column::Word),
        ("plies", Column::Number),
        ("players by seat, with payoffs", Column::Words),
        ("ending", Column::Words),
    ];
    let row = |game: &GameLine| vec![place(game), game.plies.to_string(), seats(game), game.ending.clone()];
    let rows = |games: &[GameLine]| games.iter().map(row).collect::<Vec<_>>();
    if !even {
        body.push_str("<div class=\"pair\">\n");
        body.push_str(&table("The longest games", &columns, &rows(&lengths.longest)));
        body.push_str(&table("The shortest games", &columns, &rows(&lengths.shortest)));
        body.push_str("</div>\n");
    }
    let columns = [("ending", Column::Words), ("games", Column::Number), ("share", Column::Number)];
    let rows: Vec<Vec<String>> = lengths
        .endings
        .iter()
        .map(|(ending, count)| {
            vec![ending.clone(), count.to_string(), percent(*count as f64 / lengths.games.max(1) as f64)]
        })
        .collect();
    body.push_str(&table("How games ended", &columns, &rows));
    body
}

/// A game's name within its run.
fn place(game: &GameLine) -> String {
    format!("{}.{}", game.bout, game.game)
}

fn seats(game: &GameLine) -> String {
    let signs = game.payoffs.iter().any(|payoff| *payoff < 0);
    let seat = |(name, payoff): (&String, &i32)| match signs {
        true => format!("{name} {payoff:+}"),
        false => format!("{name} {payoff}"),
    };
    game.players.iter().zip(&game.payoffs).map(seat).collect::<Vec<_>>().join(", ")
}

/// Who won, and against whom.
fn outcome(game: &GameLine) -> String {
    let most = game.payoffs.iter().max();
    let seats = game.players.iter().zip(&game.payoffs);
    let names = |won: bool| -> Vec<&str> {
        seats
            .clone()
            .filter(|(_, payoff)| (Some(*payoff) == most) == won)
            .map(|(name, _)| name.as_str())
            .collect()
    };
    let (winners, losers) = (names(true), names(false));
    let verb = if winners.len() == 1 { "beats" } else { "beat" };
    format!("{} {verb} {}", winners.join(" and "), losers.join(", "))
}

/// Boards of decisive moments.
pub(super) fn moments(report: &Report) -> Option<Section> {
    report.lengths.as_ref()?;
    let duel = report.moments.first().is_none_or(|moment| moment.duel);
    let body = match (&report.moments[..], duel) {
        ([], _) => paragraph("No loser thought itself ahead and then behind, so that no moment stands out."),
        (moments, duel) => {
            let intro = match duel {
                true => {
                    "The last time a loser thought itself ahead, where its score then fell furthest, measured in the player's own usual change between two of its moves."
                }
                false => {
                    "Where the score of a player who did not win fell furthest from one of its moves to its next, measured in the player's own usual change. With more than two seats a score does not say who is ahead."
                }
            };
            let articles: String = moments.iter().map(moment).collect();
            format!("{}<div class=\"moments\">\n{articles}</div>\n", paragraph(intro))
        }
    };
    Some(Section { id: "moments", title: "Decisive moments", full: true, body })
}

fn moment(moment: &Moment) -> String {
    let Moment { game, loser, steps, board, plies, .. } = moment;
    let thought =
        |thought: Option<&Thought>| thought.and_then(|thought| thought.worth.clone()).unwrap_or_default();
    let (before, after) = (plies.first(), plies.last());
    let told = format!(
        "{loser} to move at ply {} thinks: {}. At its next move, ply {}, it thinks: {}. That is {} times its usual change.",
        before.map_or(0, |thought| thought.ply),
        thought(before),
        after.map_or(0, |thought| thought.ply),
        thought(after),
        fixed(*steps, 1)
    );
    let long = plies.iter().any(|thought| thought.player.as_ref().is_some_and(|name| name.len() > LONG_NAME));
    let columns = [
        ("ply", Column::Number),
        ("player", if long { Column::Words } else { Column::Word }),
        ("move", Column::Word),
        ("thought", Column::Words),
    ];
    let row = |thought: &Thought| {
        let depth = thought.depth.map_or(String::new(), |depth| format!(", depth {depth}"));
        let line = first_moves(&thought.line);
        let worth = match &thought.worth {
            Some(worth) => format!("{worth}{depth}{line}"),
            None => "-".to_string(),
        };
        vec![
            thought.ply.to_string(),
            thought.player.clone().unwrap_or("chance".to_string()),
            thought.mv.clone(),
            worth,
        ]
    };
    let rows: Vec<Vec<String>> = plies.iter().map(row).collect();
    format!(
        "<article>\n<h3>Game {}: {}</h3>\n{}<pre>{}</pre>\n{}</article>\n",
        escape(&place(game)),
        heading(&outcome(game)),
        paragraph(&told),
        escape(board),
        table("What was played, and what was thought", &columns, &rows)
    )
}

/// The beginning of an expected line.
fn first_moves(line: &str) -> String {
    const SHOWN: usize = 5;
    let moves: Vec<&str> = line.split_whitespace().collect();
    match moves.len() {
        0 | 1 => String::new(),
        count if count > SHOWN => format!(", expecting {} ..", moves[..SHOWN].join(" ")),
        _ => format!(", expecting {}", moves.join(" ")),
    }
}

/// How to do it again.
pub(super) fn reproduction(report: &Report) -> Section {
    let again = &report.reproduction;
    let players: Vec<Vec<String>> = report
        .players
        .iter()
        .map(|player| vec![player.name.clone(), player.algorithm.clone(), player.limit.clone()])
        .collect();
    let columns = [("player", Column::Word), ("algorithm", Column::Word), ("limit for a move", Column::Word)];
    let mut body = table("The players", &columns, &players);
    let repeats = match again.repeatable {
        true => {
            "Every player is limited by nodes or depth: the same spec plays the same games on any machine, and replay compares them bit by bit."
        }
        false => {
            "Some players are limited by time: the same spec plays the same openings, but not the same games, and replay repeats only games whose players are limited by nodes or depth."
        }
    };
    body.push_str(&paragraph(repeats));
    let run = shell(&report.run);
    body.push_str(&format!(
        "<pre>agon run spec.toml      # the spec below, saved as spec.toml: the same run, from the start\nagon replay {run}\nagon verify {run}\nagon report {run}</pre>\n",
        run = escape(&run)
    ));
    let played = match &again.played_by[..] {
        [] => String::new(),
        builds => format!(" Played by agon {}.", builds.join(", ")),
    };
    body.push_str(&paragraph(&format!(
        "Coordinated by agon {}.{played} The digest of the spec is {}.",
        again.build, again.digest
    )));
    if !again.files.is_empty() {
        let files: Vec<String> =
            again.files.iter().map(|(name, size)| format!("{name} ({size} bytes)")).collect();
        body.push_str(&paragraph(&format!(
            "The spec names files, whose texts are in the dataset's runs/{}.json: {}.",
            report.run,
            files.join(", ")
        )));
    }
    body.push_str(&format!("<pre>{}</pre>\n", escape(again.spec.trim_end())));
    Section { id: "again", title: "The spec, and how to do it again", full: true, body }
}

/// A word that a shell takes as one.
fn shell(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    if word.chars().all(plain) { word.to_string() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}
