//! Sections on results and games: ratings, head-to-head results, the games themselves, and how to reproduce the run.

use agon_stats::pool::{Meeting, Standing};

use super::boards::Picture;
use super::figures::{BOARDS, CHARTS, Figure, saved_svg};
use super::html::{
    Cell, Column, LONG_NAME, Section, Table, available, escape, heading, paragraph, value_table,
};
use super::play_statistics::{GameLengths, ListedGame};
use super::players::Player;
use super::ratings::{Crosstable, RatingHistory, Ratings};
use super::svg::{self, Axis, Line, MAX_HEAT_MAP_PLAYERS, Row};
use super::{Availability, DecisiveMoment, Question, Report, SearchedPly, estimate_text};
use crate::format::{count, fixed, likelihood, percent, signed};
use crate::pruning::Interval;

const ELO: Axis<'_> = Axis { label: "Elo (relative to the mean)", log: false, whole: false, mark: Some(0.0) };

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
        ("bouts used", count(test.looked_at)),
        score_counts(test.pairs),
        ("difference", test.elo.map_or("not estimable".to_string(), |elo| estimate_text(&elo, 1, " Elo"))),
        (stronger.as_str(), test.los.map_or("not estimable".to_string(), likelihood)),
    ];
    let caption = "The test uses the bouts in schedule order and stops at the first that decides";
    let body = value_table(caption, rows);
    Some(Section { id: "test", title: "Sequential test", full: true, body })
}

/// Renders the players with the options in which they differ.
pub(super) fn players(report: &Report) -> String {
    let long = report.players.iter().any(|player| player.name.len() > LONG_NAME);
    let columns = [
        ("player", if long { Column::Words } else { Column::Word }),
        ("limit", Column::Word),
        ("search, and the options that differ", Column::Words),
    ];
    let row = |player: &Player| {
        let options = player.options.iter().map(|(name, value)| format!("{name} = {value}"));
        let search: Vec<String> = std::iter::once(player.algorithm.clone()).chain(options).collect();
        let limit = Cell::from(player.limit.as_str());
        vec![report.cell(&player.name), limit, Cell::Text(search.join(", "))]
    };
    let caption = match &report.ratings {
        Availability::Available(_) => "The players, best first",
        Availability::Missing { .. } => "The players",
    };
    Table::of(caption, &columns, report.players.iter().map(row).collect()).html()
}

/// Returns a row with the bouts by score.
pub(super) fn score_counts(pairs: [u64; 5]) -> (&'static str, String) {
    ("bouts by score 0, 1/2, 1, 3/2, 2", pairs.map(count).join(", "))
}

/// Renders the ratings, or the difference of two players, with their intervals.
pub(super) fn ratings(report: &Report) -> Option<Section> {
    let title = if report.is_duel() { "Difference" } else { "Ratings" };
    (report.question != Question::Probe).then(|| Section {
        id: "ratings",
        title,
        full: false,
        body: available(&report.ratings, |ratings| rating_figure(report, ratings)),
    })
}

fn rating_figure(report: &Report, ratings: &Ratings) -> String {
    let mut figure = Figure {
        name: report.file("ratings"),
        caption: match ratings.replicas {
            0 => "Ratings with 95 % intervals.".to_string(),
            replicas => {
                format!("Ratings with 95 % intervals from {} bootstrap replicas.", count(replicas as u64))
            }
        },
        data: Table::new(
            "Ratings with 95 % intervals from low to high, and each player's likelihood of superiority over the next",
            &["player"],
            &["rank", "Elo", "low", "high", "games", "won", "drawn", "lost", "score, %", "beats next, %"],
            ratings.players.iter().map(|player| rating_cells(report, player)).collect(),
        ),
    };
    let chart = match (ratings.difference, &ratings.players[..]) {
        (Some(difference), [first, next]) => {
            figure.caption = format!(
                "Elo of {} above {}, with the 95 % interval; to the right of the line {} is ahead.",
                first.name, next.name, first.name
            );
            let name = format!("{} - {}", first.name, next.name);
            let row = Row::new(name, report.class(&first.name), difference, signed(difference.value, 0));
            let axis = Axis { label: "Elo difference", ..ELO };
            figure.intervals(&[row], axis, "Elo difference with its 95 % interval", "players")
        }
        _ => {
            if ratings.players.iter().any(|player| player.bound.is_some()) {
                figure
                    .caption
                    .push_str(" The interval of a player that won or lost every game is open on one side.");
            }
            let row = |player: &Standing| {
                let class = report.class(&player.name);
                Row::new(player.name.clone(), class, player.into(), signed(player.elo, 0))
            };
            let rows: Vec<Row> = ratings.players.iter().map(row).collect();
            figure.intervals(&rows, ELO, "Elo ratings with 95 % intervals", "players")
        }
    };
    let facts: String = facts(ratings).iter().map(|fact| format!("<li>{}</li>\n", escape(fact))).collect();
    format!("{chart}<ul>\n{facts}</ul>\n")
}

fn rating_cells(report: &Report, player: &Standing) -> Vec<Cell> {
    let [elo, low, high] = Cell::interval(&player.into(), |elo| Cell::signed(elo, 0));
    let games = [player.games, player.wins, player.draws, player.losses].map(Cell::from);
    [report.cell(&player.name), Cell::from(player.rank as u64), elo, low, high]
        .into_iter()
        .chain(games)
        .chain([Cell::percent(player.score), Cell::percent(player.los_next)])
        .collect()
}

/// Lists the other estimates of the rating model.
fn facts(ratings: &Ratings) -> Vec<String> {
    let mut facts = Vec::new();
    if let Some(advantage) = &ratings.seat_advantage {
        let worth = estimate_text(advantage, 0, " Elo");
        let unsure = if advantage.low.is_none() { ", an estimate without an interval" } else { "" };
        facts.push(format!("Moving first is worth {worth}{unsure}."));
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
    facts.push("The unit of evidence is the bout: all seatings of one opening.".to_string());
    facts
}

/// Renders the head-to-head results.
pub(super) fn crosstable(report: &Report) -> Option<Section> {
    let Availability::Available(table) = &report.crosstable else { return None };
    // The results of two players are beside their difference.
    (table.names.len() > 2).then(|| Section {
        id: "crosstable",
        title: "Head-to-head results",
        full: false,
        body: crosstable_figure(report, table),
    })
}

fn crosstable_figure(report: &Report, crosstable: &Crosstable) -> String {
    let Crosstable { names, cells } = crosstable;
    let pairs = names
        .iter()
        .zip(cells)
        .flat_map(|(name, row)| names.iter().zip(row).map(move |(other, cell)| (name, other, cell.as_ref())));
    let row = |(name, other, cell): (&String, &String, &Meeting)| {
        let games = [cell.wins, cell.draws, cell.losses].map(Cell::from);
        [report.cell(name), report.cell(other)]
            .into_iter()
            .chain(games)
            .chain([Cell::percent(cell.score())])
            .collect()
    };
    let rows = pairs.filter_map(|(name, other, cell)| Some(row((name, other, cell?)))).collect();
    let figure = Figure {
        name: report.file("crosstable"),
        caption: "Percentage of the points that the row's player scored against the column's. Blue is more than half, orange less; an empty frame is a pair that never met.".to_string(),
        data: Table::new(
            "Games of each player against each other",
            &["player", "against"],
            &["won", "drawn", "lost", "score, %"],
            rows,
        ),
    };
    if names.len() > MAX_HEAT_MAP_PLAYERS {
        return figure.data.html();
    }
    let shares: Vec<Vec<Option<f64>>> =
        cells.iter().map(|row| row.iter().map(|cell| cell.and_then(|cell| cell.score())).collect()).collect();
    let players: Vec<(String, String)> =
        names.iter().map(|name| (name.clone(), report.class(name))).collect();
    let alternative =
        "Heat map of each player's share of the points against each other; the data table has the numbers";
    figure.draw(&svg::heat_map(&players, &shares, alternative))
}

/// Renders ratings over growing prefixes of the schedule.
pub(super) fn convergence(report: &Report) -> Option<Section> {
    if report.question == Question::Probe || report.ratings.get().is_none() {
        return None;
    }
    let body = available(&report.convergence, |histories| convergence_figure(report, histories));
    Some(Section { id: "convergence", title: "Convergence", full: false, body })
}

fn convergence_figure(report: &Report, histories: &[RatingHistory]) -> String {
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
        let band = |(bouts, elo): &(u64, Interval)| {
            let end = |end: Option<f64>, open: f64| end.unwrap_or(open).clamp(low, high);
            (*bouts as f64, end(elo.low, low), end(elo.high, high))
        };
        Line {
            name: history.player.clone(),
            class: report.class(&history.player),
            points: drawn.clone().map(|(bouts, elo)| (*bouts as f64, elo.value)).collect(),
            band: drawn.map(band).collect(),
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
    let cells = |history: &RatingHistory| {
        let player = report.cell(&history.player);
        let row = |(bouts, elo): &(u64, Interval)| {
            let elo = Cell::interval(elo, |elo| Cell::signed(elo, 0));
            [player.clone(), Cell::from(*bouts)].into_iter().chain(elo).collect()
        };
        history.points.iter().map(row).collect::<Vec<_>>()
    };
    let (what, label) = match &report.ratings {
        Availability::Available(Ratings { players, .. }) if report.is_duel() => {
            (format!("Elo of {} above {}", players[0].name, players[1].name), "Elo difference")
        }
        _ => ("Ratings".to_string(), "Elo"),
    };
    let figure = Figure {
        name: report.file("convergence"),
        caption: format!(
            "{what} from the first bouts of the schedule, with 95 % bands. Early values that are far off are not drawn."
        ),
        data: Table::new(
            &format!("{what} from the first bouts, with 95 % intervals from low to high"),
            &["player"],
            &["bouts", "Elo", "low", "high"],
            histories.iter().flat_map(cells).collect(),
        ),
    };
    let bouts = Axis { label: "bouts", log: false, whole: true, mark: None };
    let elo = Axis { label, ..ELO };
    figure.lines(&lines, [bouts, elo], &format!("{what} over the bouts played: {}", ends.join("; ")))
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
        count(lengths.games),
        escape(&example)
    );
    let columns = [
        ("game", Column::Word),
        ("plies", Column::Number),
        ("players by seat, with payoffs", Column::Words),
        ("ending", Column::Words),
    ];
    let row = |game: &ListedGame| {
        let ending = Cell::from(game.ending.as_str());
        vec![Cell::Text(game_number(game)), u64::from(game.plies).into(), Cell::Text(seats(game)), ending]
    };
    let table = |caption: &str, games: &[ListedGame]| {
        Table::of(caption, &columns, games.iter().map(row).collect()).html()
    };
    if !equal {
        body.push_str("<div class=\"pair\">\n");
        body.push_str(&table("The longest games", &lengths.longest));
        body.push_str(&table("The shortest games", &lengths.shortest));
        body.push_str("</div>\n");
    }
    let columns = [("ending", Column::Words), ("games", Column::Number), ("share, %", Column::Number)];
    let row = |(ending, games): &(String, u64)| {
        let share = Cell::percent(Some(*games as f64 / lengths.games.max(1) as f64));
        vec![Cell::from(ending.as_str()), Cell::from(*games), share]
    };
    let rows = lengths.endings.iter().map(row).collect();
    body.push_str(&Table::of("How games ended", &columns, rows).html());
    body
}

/// Returns the number of a game within its run, as `agon games` takes it.
fn game_number(game: &ListedGame) -> String {
    format!("{}.{}", game.bout, game.game)
}

fn seats(game: &ListedGame) -> String {
    let signed = game.payoffs.iter().any(|payoff| *payoff < 0);
    let seat = |(name, payoff): (&String, &i32)| match signed {
        true => format!("{name} {payoff:+}"),
        false => format!("{name} {payoff}"),
    };
    game.players.iter().zip(&game.payoffs).map(seat).collect::<Vec<_>>().join(", ")
}

/// Names the winners and the losers of a game.
fn outcome(game: &ListedGame) -> String {
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
            let articles: String = report.moments.iter().map(|found| moment(report, found)).collect();
            format!("{}<div class=\"moments\">\n{articles}</div>\n", paragraph(intro))
        }
    };
    Some(Section { id: "moments", title: "Decisive moments", full: true, body })
}

fn moment(report: &Report, moment: &DecisiveMoment) -> String {
    let DecisiveMoment { game, loser, steps, plies, .. } = moment;
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
        let player = ply.player.as_ref().map_or(Cell::from("chance"), |name| report.cell(name));
        vec![Cell::from(u64::from(ply.ply)), player, Cell::from(ply.mv.as_str()), Cell::Text(search)]
    };
    let rows = plies.iter().map(row).collect();
    format!(
        "<article>\n<h3>Game {}: {}</h3>\n{}{}{}</article>\n",
        escape(&game_number(game)),
        heading(&outcome(game)),
        paragraph(&description),
        board(report, moment),
        Table::of("Moves and search results", &columns, rows).html()
    )
}

/// Renders the board after the loser's move, drawn if there is a drawing for the game.
fn board(report: &Report, moment: &DecisiveMoment) -> String {
    let DecisiveMoment { game, loser, board, before, position, plies, .. } = moment;
    let Some(first) = plies.first() else { return String::new() };
    let name = report.game.split(':').next().unwrap_or_default();
    let seats: Vec<(String, String)> =
        game.players.iter().map(|player| (player.clone(), report.class(player))).collect();
    let picture = Picture { game: name, before, mv: &first.mv, position, seats: &seats };
    let Some(svg) = picture.draw() else { return format!("<pre>{}</pre>\n", escape(board)) };
    let caption = format!("After ply {}: {loser} played {}.", first.ply, first.mv);
    let file = report.file(&format!("board-{}-{}", game_number(game), first.ply));
    format!(
        "<figure class=\"board\">\n{svg}\n<figcaption>{}</figcaption>\n<p class=\"save\">Save as {}</p>\n</figure>\n",
        escape(&caption),
        saved_svg(&file, &svg, &[CHARTS, BOARDS].concat())
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
    let repeatable = match reproduction.repeatable {
        true => {
            "All players are limited by nodes or depth: the same spec plays the same games on any machine, and replay compares them bit by bit."
        }
        false => {
            "Some players are limited by time: the same spec plays the same openings but not the same games. Replay needs players limited by nodes or depth."
        }
    };
    let mut body = paragraph(repeatable);
    let run = escape(&shell_word(&report.run));
    let replay = if reproduction.repeatable { format!("agon replay {run}\n") } else { String::new() };
    body.push_str(&format!(
        "<pre>agon run spec.toml      # with the spec below saved as spec.toml: repeats the run\n{replay}agon verify {run}\nagon report {run}</pre>\n"
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
        let files: Vec<String> = reproduction
            .files
            .iter()
            .map(|(name, size)| format!("{name} ({} bytes)", count(*size)))
            .collect();
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
