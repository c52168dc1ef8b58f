//! Sections on results and games: ratings, head-to-head results, the games themselves, and how to reproduce the run.

use agon_stats::elo::LARGEST_DIFFERENCE;

use super::figures::{figure, interval_figure, line_figure};
use super::html::{
    Column, LONG_NAME, Section, available, columns, escape, heading, paragraph, table, value_table,
};
use super::play_statistics::{GameLengths, GameSummary};
use super::ratings::{Crosstable, PairRecord, RatedPlayer, RatingHistory, Ratings};
use super::svg::{self, Axis, Line, MOST_CELLS, Row};
use super::{Availability, DecisiveMoment, Question, Report, SearchedPly, estimate_text, interval_text};
use crate::format::{fixed, likelihood, percent, signed};
use crate::pruning::Interval;

const ELO: Axis<'_> = Axis { label: "Elo (relative to the mean)", log: false, whole: false, mark: Some(0.0) };

/// Number of rows by player in the table of rating histories.
const HISTORY_ROWS: usize = 6;

/// Renders the state of a sequential test.
pub(super) fn test(report: &Report) -> Option<Section> {
    let test = report.test.as_ref()?;
    let [first, second] = test.bounds.map(|bound| signed(bound, 1));
    let stronger = format!("{} is stronger", test.player);
    let rows = [
        ("hypotheses", format!("{first} or {second} {} Elo", test.model)),
        ("error rates", format!("alpha {}, beta {}", test.alpha, test.beta)),
        (
            "log-likelihood ratio",
            format!(
                "{} (thresholds {} and {})",
                signed(test.llr, 2),
                signed(test.lower, 2),
                signed(test.upper, 2)
            ),
        ),
        ("bouts used", test.looked_at.to_string()),
        score_counts(test.pairs),
        ("difference", test.elo.map_or("not estimable".to_string(), |elo| estimate_text(&elo, 1, " Elo"))),
        (stronger.as_str(), test.los.map_or("not estimable".to_string(), likelihood)),
    ];
    let caption = "The test uses the bouts in schedule order and stops at the first that decides";
    let body = value_table(caption, rows);
    Some(Section { id: "test", title: "Sequential test", full: true, body })
}

/// Returns a row with the bouts by score.
pub(super) fn score_counts(pairs: [u64; 5]) -> (&'static str, String) {
    ("bouts by score 0, 1/2, 1, 3/2, 2", pairs.map(|count| count.to_string()).join(", "))
}

/// Renders the ratings with their intervals.
pub(super) fn ratings(report: &Report) -> Option<Section> {
    (report.question != Question::Probe).then(|| Section {
        id: "ratings",
        title: "Ratings",
        full: false,
        body: available(&report.ratings, rating_figure),
    })
}

fn rating_figure(ratings: &Ratings) -> String {
    let row = |player: &RatedPlayer| {
        let Interval { value, low, high } = player.interval();
        Row {
            name: player.name.clone(),
            value: Some(value),
            low,
            high,
            extreme: None,
            text: player.elo_text(),
        }
    };
    let rows: Vec<Row> = ratings.players.iter().map(row).collect();
    let mut caption = format!("Ratings with 95 % intervals from {} bootstrap replicas.", ratings.replicas);
    if ratings.players.iter().any(|player| player.bound.is_some()) {
        caption.push_str(" A player that won or lost every game has only a bound.");
    }
    let columns =
        columns(&["player"], &["#", "Elo", "95 %", "games", "won", "drawn", "lost", "score", "beats next"]);
    let cells: Vec<Vec<String>> = ratings.players.iter().map(rating_cells).collect();
    let data = table("Ratings, and each player's likelihood of superiority over the next", &columns, &cells);
    let mut body =
        interval_figure(&rows, ELO, ("Elo ratings with 95 % intervals", &caption), "players", &data);
    body.push_str("<ul>\n");
    for fact in facts(ratings) {
        body.push_str(&format!("<li>{}</li>\n", escape(&fact)));
    }
    body.push_str("</ul>\n");
    body
}

fn rating_cells(player: &RatedPlayer) -> Vec<String> {
    vec![
        player.name.clone(),
        player.rank.to_string(),
        player.elo_text(),
        interval_text(&player.interval(), |end| signed(end, 0)),
        player.games.to_string(),
        player.wins.to_string(),
        player.draws.to_string(),
        player.losses.to_string(),
        player.score.map_or("-".to_string(), percent),
        player.los_next.map_or("-".to_string(), likelihood),
    ]
}

/// Lists the other estimates of the rating model.
fn facts(ratings: &Ratings) -> Vec<String> {
    let mut facts = Vec::new();
    if let Some(advantage) = &ratings.seat_advantage {
        let limit = if advantage.value.abs() > LARGEST_DIFFERENCE - 1.0 { " Elo or more" } else { " Elo" };
        facts.push(format!("Moving first is worth {}.", estimate_text(advantage, 0, limit)));
    }
    if !ratings.seat_effects.is_empty() {
        let effects: Vec<String> = ratings
            .seat_effects
            .iter()
            .enumerate()
            .map(|(seat, effect)| format!("seat {seat} {}", estimate_text(effect, 0, "")))
            .collect();
        facts.push(format!("Elo effect of each seat against the mean of all seats: {}.", effects.join(", ")));
    }
    if let Some(rate) = ratings.draw_rate {
        facts.push(format!("Estimated draw rate between equal players: {}.", percent(rate)));
    }
    facts.push(match ratings.transitivity {
        Some(p) if p < 0.01 => {
            format!("A single rating per player does not explain all results (p = {}).", fixed(p, 4))
        }
        Some(p) => format!("Results are consistent with a single rating per player (p = {}).", fixed(p, 2)),
        None => "Whether a single rating per player explains the results was not tested.".to_string(),
    });
    facts.push("The unit of resampling is the bout: all seatings of one opening.".to_string());
    facts
}

/// Renders the head-to-head results.
pub(super) fn crosstable(report: &Report) -> Option<Section> {
    let Availability::Available(table) = &report.crosstable else { return None };
    (table.names.len() > 1).then(|| Section {
        id: "crosstable",
        title: "Head-to-head results",
        full: false,
        body: crosstable_figure(table),
    })
}

fn crosstable_figure(crosstable: &Crosstable) -> String {
    let Crosstable { names, cells } = crosstable;
    let numbers: Vec<String> = (1..=names.len()).map(|number| number.to_string()).collect();
    let columns = columns(&["player"], &numbers.iter().map(String::as_str).collect::<Vec<_>>());
    let rows: Vec<Vec<String>> = names
        .iter()
        .zip(cells)
        .enumerate()
        .map(|(index, (name, row))| {
            let cell = |(column, cell): (usize, &Option<PairRecord>)| match cell {
                _ if column == index => String::new(),
                Some(cell) => {
                    format!("{} +{} ={} -{}", percent(cell.score()), cell.wins, cell.draws, cell.losses)
                }
                None => "-".to_string(),
            };
            let own = std::iter::once(format!("{} {name}", index + 1));
            own.chain(row.iter().enumerate().map(cell)).collect()
        })
        .collect();
    let data = table(
        "Share of the points of the row's player against the column's; games won, drawn, lost",
        &columns,
        &rows,
    );
    if names.len() > MOST_CELLS {
        return data;
    }
    let shares: Vec<Vec<Option<f64>>> =
        cells.iter().map(|row| row.iter().map(|cell| cell.map(|cell| cell.score())).collect()).collect();
    let alternative =
        "Heat map of each player's share of the points against each other; the data table has the numbers";
    let caption = "Percentage of the points that the row's player scored against the column's. Blue is more than half, orange less; an empty frame is a pair that never met.";
    figure(&svg::heat_map(names, &shares, alternative), caption, &data)
}

/// Renders ratings over growing prefixes of the schedule.
pub(super) fn convergence(report: &Report) -> Option<Section> {
    if report.question == Question::Probe || report.ratings.get().is_none() {
        return None;
    }
    let body = available(&report.convergence, |histories| convergence_figure(histories));
    Some(Section { id: "convergence", title: "Convergence of the ratings", full: false, body })
}

fn convergence_figure(histories: &[RatingHistory]) -> String {
    // The first ratings may be far off: the scale fits those from a quarter of the bouts on.
    let points = || histories.iter().flat_map(|history| &history.points);
    let last = points().map(|point| point.0).max().unwrap_or(0);
    let (low, high) = points()
        .filter(|point| point.0 * 4 >= last)
        .flat_map(|(_, elo)| [Some(elo.value), elo.low, elo.high])
        .flatten()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), elo| (low.min(elo), high.max(elo)));
    let line = |history: &RatingHistory| {
        let drawn = history.points.iter().filter(|(_, elo)| (low..=high).contains(&elo.value));
        let band =
            |(bouts, elo): &(u64, Interval)| Some((*bouts as f64, elo.low?.max(low), elo.high?.min(high)));
        Line {
            name: history.player.clone(),
            points: drawn.clone().map(|(bouts, elo)| (*bouts as f64, elo.value)).collect(),
            band: drawn.filter_map(band).collect(),
            ..Line::default()
        }
    };
    let lines: Vec<Line> = histories.iter().map(line).collect();
    let ends: Vec<String> = histories
        .iter()
        .filter_map(|history| {
            let [first, last] =
                [history.points.first()?, history.points.last()?].map(|(_, elo)| signed(elo.value, 0));
            Some(format!("{} from {first} to {last}", history.player))
        })
        .collect();
    let mut rows = Vec::new();
    for history in histories {
        let step = history.points.len().div_ceil(HISTORY_ROWS).max(1);
        for (index, (bouts, elo)) in history.points.iter().enumerate() {
            if index % step == 0 || index + 1 == history.points.len() {
                let interval = interval_text(elo, |end| signed(end, 0));
                rows.push(vec![history.player.clone(), bouts.to_string(), signed(elo.value, 0), interval]);
            }
        }
    }
    let bouts = Axis { label: "bouts", log: false, whole: true, mark: None };
    let elo = Axis { label: "Elo", ..ELO };
    line_figure(
        &lines,
        [bouts, elo],
        &format!("Ratings over the bouts played: {}", ends.join("; ")),
        "Ratings from the first bouts of the schedule, with 95 % bands. Early ratings that are far off are not drawn.",
        &table("Ratings from the first bouts", &columns(&["player"], &["bouts", "Elo", "95 %"]), &rows),
    )
}

/// Renders the lengths and endings of games.
pub(super) fn lengths(report: &Report) -> Option<Section> {
    let lengths = report.lengths.as_ref()?;
    Some(Section { id: "games", title: "Games", full: true, body: length_tables(lengths) })
}

fn length_tables(lengths: &GameLengths) -> String {
    let (longest, shortest) = (lengths.longest.first(), lengths.shortest.first());
    let example = longest.map_or(String::new(), game_number);
    let equal = longest.map(|game| game.plies) == shortest.map(|game| game.plies);
    let plies = match equal {
        true => format!("{} plies each", fixed(lengths.mean_plies, 0)),
        false => format!("{} plies on average", fixed(lengths.mean_plies, 1)),
    };
    let mut body = format!(
        "<p>{} games of {plies}. <code>agon games</code> lists them, <code>agon games --show {}</code> shows one ply by ply.</p>\n",
        lengths.games,
        escape(&example)
    );
    let columns = [
        ("game", Column::Word),
        ("plies", Column::Number),
        ("players by seat, with payoffs", Column::Words),
        ("ending", Column::Words),
    ];
    let row = |game: &GameSummary| {
        vec![game_number(game), game.plies.to_string(), seats(game), game.ending.clone()]
    };
    let rows = |games: &[GameSummary]| games.iter().map(row).collect::<Vec<_>>();
    if !equal {
        body.push_str("<div class=\"pair\">\n");
        body.push_str(&table("The longest games", &columns, &rows(&lengths.longest)));
        body.push_str(&table("The shortest games", &columns, &rows(&lengths.shortest)));
        body.push_str("</div>\n");
    }
    let columns = [("ending", Column::Words), ("games", Column::Number), ("share", Column::Number)];
    let row = |(ending, count): &(String, u64)| {
        vec![ending.clone(), count.to_string(), percent(*count as f64 / lengths.games.max(1) as f64)]
    };
    let rows: Vec<Vec<String>> = lengths.endings.iter().map(row).collect();
    body.push_str(&table("How games ended", &columns, &rows));
    body
}

/// Returns the number of a game within its run, as `agon games` takes it.
fn game_number(game: &GameSummary) -> String {
    format!("{}.{}", game.bout, game.game)
}

fn seats(game: &GameSummary) -> String {
    let signed = game.payoffs.iter().any(|payoff| *payoff < 0);
    let seat = |(name, payoff): (&String, &i32)| match signed {
        true => format!("{name} {payoff:+}"),
        false => format!("{name} {payoff}"),
    };
    game.players.iter().zip(&game.payoffs).map(seat).collect::<Vec<_>>().join(", ")
}

/// Names the winners and the losers of a game.
fn outcome(game: &GameSummary) -> String {
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

/// Renders the boards of decisive moments.
pub(super) fn moments(report: &Report) -> Option<Section> {
    report.lengths.as_ref()?;
    let body = match report.moments.first() {
        None => {
            paragraph("No decisive moment: no loser evaluated its position as ahead and later as behind.")
        }
        Some(first) => {
            let intro = match first.duel {
                true => {
                    "The last positions that the loser evaluated as ahead, with the largest drops of its score until its next move. Drops are in units of the player's mean change between its moves."
                }
                false => {
                    "The largest drops of the score of a player that did not win, from one of its moves to its next, in units of the player's mean change. With more than two seats, a score does not show who is ahead."
                }
            };
            let articles: String = report.moments.iter().map(moment).collect();
            format!("{}<div class=\"moments\">\n{articles}</div>\n", paragraph(intro))
        }
    };
    Some(Section { id: "moments", title: "Decisive moments", full: true, body })
}

fn moment(moment: &DecisiveMoment) -> String {
    let DecisiveMoment { game, loser, steps, board, plies, .. } = moment;
    let value = |ply: Option<&SearchedPly>| ply.and_then(|ply| ply.worth.clone()).unwrap_or_default();
    let (before, after) = (plies.first(), plies.last());
    let description = format!(
        "Ply {}, {loser} to move: {}. Its next move, ply {}: {}. The change is {} times its mean change.",
        before.map_or(0, |ply| ply.ply),
        value(before),
        after.map_or(0, |ply| ply.ply),
        value(after),
        fixed(*steps, 1)
    );
    let long = plies.iter().any(|ply| ply.player.as_ref().is_some_and(|name| name.len() > LONG_NAME));
    let columns = [
        ("ply", Column::Number),
        ("player", if long { Column::Words } else { Column::Word }),
        ("move", Column::Word),
        ("search", Column::Words),
    ];
    let row = |ply: &SearchedPly| {
        let depth = ply.depth.map_or(String::new(), |depth| format!(", depth {depth}"));
        let search = match &ply.worth {
            Some(value) => format!("{value}{depth}{}", line_start(&ply.line)),
            None => "-".to_string(),
        };
        vec![ply.ply.to_string(), ply.player.clone().unwrap_or("chance".to_string()), ply.mv.clone(), search]
    };
    let rows: Vec<Vec<String>> = plies.iter().map(row).collect();
    format!(
        "<article>\n<h3>Game {}: {}</h3>\n{}<pre>{}</pre>\n{}</article>\n",
        escape(&game_number(game)),
        heading(&outcome(game)),
        paragraph(&description),
        escape(board),
        table("Moves and search results", &columns, &rows)
    )
}

/// Formats the first moves of a principal variation.
fn line_start(line: &str) -> String {
    const SHOWN: usize = 5;
    let moves: Vec<&str> = line.split_whitespace().collect();
    match moves.len() {
        0 | 1 => String::new(),
        count if count > SHOWN => format!(", line {} ..", moves[..SHOWN].join(" ")),
        _ => format!(", line {}", moves.join(" ")),
    }
}

/// Renders the spec and the commands that reproduce the run.
pub(super) fn reproduction(report: &Report) -> Section {
    let reproduction = &report.reproduction;
    let players: Vec<Vec<String>> = report
        .players
        .iter()
        .map(|player| vec![player.name.clone(), player.algorithm.clone(), player.limit.clone()])
        .collect();
    let mut body = table("Players", &columns(&["player", "algorithm", "limit per move"], &[]), &players);
    let repeatable = match reproduction.repeatable {
        true => {
            "All players are limited by nodes or depth: the same spec plays the same games on any machine, and replay compares them bit by bit."
        }
        false => {
            "Some players are limited by time: the same spec plays the same openings but not the same games. Replay needs players limited by nodes or depth."
        }
    };
    body.push_str(&paragraph(repeatable));
    let run = shell_word(&report.run);
    body.push_str(&format!(
        "<pre>agon run spec.toml      # with the spec below saved as spec.toml: repeats the run\nagon replay {run}\nagon verify {run}\nagon report {run}</pre>\n",
        run = escape(&run)
    ));
    let played = match &reproduction.played_by[..] {
        [] => String::new(),
        builds => format!(" Played by agon {}.", builds.join(", ")),
    };
    body.push_str(&paragraph(&format!(
        "Coordinated by agon {}.{played} Spec digest: {}.",
        reproduction.build, reproduction.digest
    )));
    if !reproduction.files.is_empty() {
        let files: Vec<String> =
            reproduction.files.iter().map(|(name, size)| format!("{name} ({size} bytes)")).collect();
        body.push_str(&paragraph(&format!(
            "Files named by the spec, included in the dataset's runs/{}.json: {}.",
            report.run,
            files.join(", ")
        )));
    }
    body.push_str(&format!("<pre>{}</pre>\n", escape(reproduction.spec.trim_end())));
    Section { id: "reproduction", title: "Spec and reproduction", full: true, body }
}

/// Quotes a word for a shell if needed.
fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    if word.chars().all(plain) { word.to_string() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}
