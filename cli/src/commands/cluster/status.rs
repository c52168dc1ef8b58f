//! How a run looks to people and to programs.

use std::io::{self, Write};

use agon_proto::v1;
use serde::Serialize;

use crate::table::{Align, COLUMNS, Table, folded, rate, shortened};

/// The name of a run's state.
pub fn state_name(status: &v1::RunStatus) -> &'static str {
    match status.state() {
        v1::RunState::Running => "running",
        v1::RunState::Done => "done",
        v1::RunState::Decided => "decided",
        v1::RunState::Cancelled => "cancelled",
        v1::RunState::Paused => "paused",
        v1::RunState::Unspecified => "unknown",
    }
}

/// Whether bouts of it are still wanted.
pub fn is_open(status: &v1::RunStatus) -> bool {
    matches!(status.state(), v1::RunState::Running | v1::RunState::Paused)
}

/// A run as JSON; `run` ends with the first five fields.
#[derive(Serialize)]
pub struct RunJson {
    run: String,
    state: &'static str,
    bouts: u64,
    games: u64,
    data: String,
    game: String,
    total: u64,
    failed: u64,
    leased: u64,
    exported: u64,
    workers: u32,
    games_per_second: f64,
    seconds_left: Option<f64>,
    waiting: Option<String>,
    abandoned: u64,
    priority: i32,
    voided: u64,
    checked: u64,
    disputed: u64,
    standings: Vec<StandingJson>,
    sprt: Option<SprtJson>,
    tune: Option<TuneJson>,
}

#[derive(Serialize)]
struct TuneJson {
    method: String,
    step: u64,
    steps: u64,
    tuning_bouts: u64,
    parameters: Vec<ParameterJson>,
    recent_score: Option<f64>,
    recent_bouts: u64,
}

#[derive(Serialize)]
struct ParameterJson {
    path: String,
    start: f64,
    value: f64,
}

impl From<&v1::TuneStatus> for TuneJson {
    fn from(tune: &v1::TuneStatus) -> TuneJson {
        let parameter = |parameter: &v1::TunedParameter| ParameterJson {
            path: parameter.path.clone(),
            start: parameter.start,
            value: parameter.value,
        };
        TuneJson {
            method: tune.method.clone(),
            step: tune.step,
            steps: tune.steps,
            tuning_bouts: tune.tuning_bouts,
            parameters: tune.parameters.iter().map(parameter).collect(),
            recent_score: tune.recent_score,
            recent_bouts: tune.recent_bouts,
        }
    }
}

#[derive(Serialize)]
struct StandingJson {
    player: String,
    elo: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    games: u64,
    wins: u64,
    draws: u64,
    losses: u64,
    score: f64,
    mean_nodes: f64,
    mean_depth: f64,
    mean_overshoot_us: f64,
    most_overshoot_us: u64,
}

#[derive(Serialize)]
struct SprtJson {
    llr: f64,
    lower: f64,
    upper: f64,
    verdict: String,
    pairs: Vec<u64>,
    prefix: u64,
}

impl From<&v1::RunStatus> for RunJson {
    fn from(status: &v1::RunStatus) -> RunJson {
        RunJson {
            run: status.run.clone(),
            state: state_name(status),
            bouts: status.committed,
            games: status.games,
            data: status.data.clone(),
            game: status.game.clone(),
            total: status.bouts,
            failed: status.failed,
            leased: status.leased,
            exported: status.exported,
            workers: status.workers,
            games_per_second: status.games_per_second,
            seconds_left: status.seconds_left,
            waiting: Some(status.waiting.clone()).filter(|reason| !reason.is_empty()),
            abandoned: status.abandoned,
            priority: status.priority,
            voided: status.voided,
            checked: status.checked,
            disputed: status.disputed,
            standings: status.standings.iter().map(StandingJson::from).collect(),
            sprt: status.sprt.as_ref().map(|sprt| SprtJson {
                llr: sprt.llr,
                lower: sprt.lower,
                upper: sprt.upper,
                verdict: sprt.verdict.clone(),
                pairs: sprt.pairs.clone(),
                prefix: sprt.prefix,
            }),
            tune: status.tune.as_ref().map(TuneJson::from),
        }
    }
}

impl From<&v1::Standing> for StandingJson {
    fn from(row: &v1::Standing) -> StandingJson {
        StandingJson {
            player: row.player.clone(),
            elo: row.elo,
            low: row.low,
            high: row.high,
            games: row.games,
            wins: row.wins,
            draws: row.draws,
            losses: row.losses,
            score: row.score,
            mean_nodes: row.mean_nodes,
            mean_depth: row.mean_depth,
            mean_overshoot_us: row.mean_overshoot_us,
            most_overshoot_us: row.most_overshoot_us,
        }
    }
}

/// Seconds as a clock shows them.
pub fn clock(seconds: f64) -> String {
    let seconds = seconds.max(0.0).round() as u64;
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes}:{seconds:02}") }
}

/// One line on how far a run is.
pub fn progress_line(status: &v1::RunStatus) -> String {
    let mut line = if status.probe {
        format!("{}/{} positions", status.committed, status.bouts)
    } else {
        format!("{}/{} bouts, {} games", status.committed, status.bouts, status.games)
    };
    if status.games_per_second > 0.0 && state_name(status) == "running" {
        line.push_str(&format!(", {} games/s", rate(status.games_per_second).trim_end()));
    }
    if let Some(left) = status.seconds_left {
        line.push_str(&format!(", {} left", clock(left)));
    }
    if status.voided > 0 {
        line.push_str(&format!(", {} void", status.voided));
    }
    if status.failed > 0 {
        line.push_str(&format!(", {} failed", status.failed));
    }
    if !status.waiting.is_empty() {
        line.push_str(&format!("; {}", status.waiting));
    }
    line
}

/// The rating with its interval: `+123 +-45`, or a bound.
fn rating(row: &v1::Standing) -> (String, String) {
    let Some(elo) = row.elo else { return ("-".to_string(), String::new()) };
    match (row.low, row.high) {
        (Some(low), Some(high)) => (format!("{elo:+.0}"), format!("{low:+.0} to {high:+.0}")),
        (Some(low), None) => (format!("> {low:+.0}"), "won all".to_string()),
        (None, Some(high)) => (format!("< {high:+.0}"), "lost all".to_string()),
        (None, None) => (format!("{elo:+.0}"), "-".to_string()),
    }
}

/// The mean depth; a search that samples has none.
fn depth(row: &v1::Standing) -> String {
    if row.mean_depth == 0.0 { "-".to_string() } else { format!("{:.1}", row.mean_depth) }
}

/// The longest name in the standings.
const NAME: usize = 20;

/// The standings of a run, within eighty columns.
pub fn write_standings(status: &v1::RunStatus, most: usize, out: &mut impl Write) -> io::Result<()> {
    let probe = status.probe;
    let words: &[(&str, Align)] = if probe {
        &[
            ("player", Align::Left),
            ("searches", Align::Right),
            ("nodes", Align::Right),
            ("depth", Align::Right),
        ]
    } else {
        &[
            ("player", Align::Left),
            ("Elo", Align::Right),
            ("95 %", Align::Right),
            ("score", Align::Right),
            ("W", Align::Right),
            ("D", Align::Right),
            ("L", Align::Right),
            ("nodes", Align::Right),
            ("depth", Align::Right),
        ]
    };
    let mut table = Table::new(words);
    for row in status.standings.iter().take(most) {
        let (elo, interval) = rating(row);
        let name = shortened(&row.player, NAME);
        let effort = [rate(row.mean_nodes).trim_end().to_string(), depth(row)];
        let cells = if probe {
            vec![name, row.moves.to_string()]
        } else {
            let score = if row.games == 0 { "-".to_string() } else { format!("{:.1} %", 100.0 * row.score) };
            let counts = [row.wins, row.draws, row.losses].map(|count| count.to_string());
            [vec![name, elo, interval, score], counts.to_vec()].concat()
        };
        table.row(cells.into_iter().chain(effort));
    }
    table.write(out)
}

/// How far a tune is: a line with its step and the recent score, and one for each few parameters.
pub fn tune_lines(tune: &v1::TuneStatus) -> String {
    let what = if tune.method == "spsa" { "iteration" } else { "trial" };
    let mut text = format!("{what} {} of {}", tune.step, tune.steps);
    if let Some(score) = tune.recent_score {
        let who = if tune.method == "spsa" { "plus" } else { "trials" };
        text.push_str(&format!(
            "; {who} scored {:.1} % in the last {} bouts",
            100.0 * score,
            tune.recent_bouts
        ));
    }
    let mut width = usize::MAX / 2;
    for parameter in &tune.parameters {
        let word = format!("{} {} (from {})", parameter.path, short(parameter.value), short(parameter.start));
        if width + word.len() + 2 > 78 {
            text.push_str(&format!("\n  {word}"));
            width = 2 + word.len();
        } else {
            text.push_str(&format!(", {word}"));
            width += 2 + word.len();
        }
    }
    text
}

/// A value with as many digits as people read.
fn short(value: f64) -> String {
    let digits = if value.abs() >= 100.0 { 1 } else { 3 };
    let text = format!("{value:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_string() } else { text }
}

/// How a sequential test stands, in lines of eighty columns; nothing of other runs.
pub fn sprt_lines(status: &v1::RunStatus) -> Option<String> {
    let sprt = status.sprt.as_ref()?;
    let ratio = format!(
        "LLR {:+.2} of {:+.2} to {:+.2} after {} bouts",
        sprt.llr, sprt.lower, sprt.upper, sprt.prefix
    );
    let asked = status.hypotheses.clone().unwrap_or_default();
    let unit = if asked.normalised { "nElo" } else { "Elo" };
    let accepted = |name: &str, one: f64, other: f64| {
        format!(
            "{ratio}: {name} is accepted: {} is {one} {unit} stronger than {} rather than {other}",
            asked.player, asked.against
        )
    };
    let text = match sprt.verdict.as_str() {
        "H1" => accepted("H1", asked.high, asked.low),
        "H0" => accepted("H0", asked.low, asked.high),
        _ => format!("{ratio}: undecided"),
    };
    Some(folded(&text, COLUMNS).join("\n"))
}

/// What a run that is over, or stopped for now, came to: how far it is, its standings, its test.
pub fn write_result(status: &v1::RunStatus, state: &str, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{} ({}): {state}", status.run, status.game)?;
    writeln!(out, "{}\n", progress_line(status))?;
    if let Some(tune) = &status.tune {
        writeln!(out, "{}\n", tune_lines(tune))?;
    }
    write_standings(status, usize::MAX, out)?;
    if let Some(test) = sprt_lines(status) {
        writeln!(out, "\n{test}")?;
    }
    Ok(())
}
