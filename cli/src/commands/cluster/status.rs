//! The status of a run as text and JSON.

use std::io::{self, Write};

use agon_proto::v1;
use serde::{Serialize, Serializer};

use crate::commands::counts::pentanomial;
use crate::table::{
    Table, capitalised, folded, likelihood, null_if_empty, percent, rate, sentence_width, signed,
};

/// Returns the name of a run's state.
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

/// Returns whether a run still needs bouts.
pub fn is_open(status: &v1::RunStatus) -> bool {
    matches!(status.state(), v1::RunState::Running | v1::RunState::Paused)
}

/// The status of a run as JSON.
#[derive(Serialize)]
pub struct RunJson<'a> {
    run: &'a str,
    /// The state's name, which `agon run` replaces when it is interrupted.
    pub state: &'static str,
    bouts: u64,
    games: u64,
    data: &'a str,
    game: &'a str,
    total: u64,
    failed: u64,
    leased: u64,
    exported: u64,
    workers: u32,
    games_per_second: f64,
    seconds_left: Option<f64>,
    #[serde(serialize_with = "null_if_empty")]
    waiting: &'a str,
    abandoned: u64,
    priority: i32,
    voided: u64,
    checked: u64,
    disputed: u64,
    standings: Vec<Standing<'a>>,
    /// What the standings show about the strongest player.
    verdict: Option<&'a str>,
    los: Option<f64>,
    #[serde(serialize_with = "null_if_empty")]
    caution: &'a str,
    sprt: Option<Sprt<'a>>,
    tune: Option<Tune<'a>>,
}

#[derive(Serialize)]
struct Standing<'a>(#[serde(with = "StandingJson")] &'a v1::Standing);

#[derive(Serialize)]
struct Sprt<'a>(#[serde(with = "SprtJson")] &'a v1::Sprt);

#[derive(Serialize)]
struct Tune<'a>(#[serde(with = "TuneJson")] &'a v1::TuneStatus);

#[derive(Serialize)]
struct Parameter<'a>(#[serde(with = "ParameterJson")] &'a v1::TunedParameter);

/// The JSON fields of a tuning run.
#[derive(Serialize)]
#[serde(remote = "v1::TuneStatus")]
struct TuneJson {
    method: String,
    step: u64,
    steps: u64,
    tuning_bouts: u64,
    #[serde(serialize_with = "serialize_parameters")]
    parameters: Vec<v1::TunedParameter>,
    recent_score: Option<f64>,
    recent_bouts: u64,
}

/// The JSON fields of a tuned parameter.
#[derive(Serialize)]
#[serde(remote = "v1::TunedParameter")]
struct ParameterJson {
    path: String,
    start: f64,
    value: f64,
}

fn serialize_parameters<S: Serializer>(
    parameters: &[v1::TunedParameter],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(parameters.iter().map(Parameter))
}

/// The JSON fields of a player's standing.
#[derive(Serialize)]
#[serde(remote = "v1::Standing")]
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

/// The JSON fields of a sequential test.
#[derive(Serialize)]
#[serde(remote = "v1::Sprt")]
struct SprtJson {
    llr: f64,
    lower: f64,
    upper: f64,
    verdict: String,
    pairs: Vec<u64>,
    prefix: u64,
}

impl<'a> From<&'a v1::RunStatus> for RunJson<'a> {
    fn from(status: &'a v1::RunStatus) -> RunJson<'a> {
        RunJson {
            run: &status.run,
            state: state_name(status),
            bouts: status.committed,
            games: status.games,
            data: &status.data,
            game: &status.game,
            total: status.bouts,
            failed: status.failed,
            leased: status.leased,
            exported: status.exported,
            workers: status.workers,
            games_per_second: status.games_per_second,
            seconds_left: status.seconds_left,
            waiting: &status.waiting,
            abandoned: status.abandoned,
            priority: status.priority,
            voided: status.voided,
            checked: status.checked,
            disputed: status.disputed,
            standings: status.standings.iter().map(Standing).collect(),
            verdict: status.verdict.as_deref(),
            los: status.los,
            caution: &status.caution,
            sprt: status.sprt.as_ref().map(Sprt),
            tune: status.tune.as_ref().map(Tune),
        }
    }
}

/// Formats seconds as `h:mm:ss` or `m:ss`.
pub fn clock(seconds: f64) -> String {
    let seconds = seconds.max(0.0).round() as u64;
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes}:{seconds:02}") }
}

/// Describes the progress of a run in one line.
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

/// Formats a rating and its interval, which is open for a player who won or lost everything and has no width for the zero
/// of the scale.
fn rating(row: &v1::Standing) -> (String, String) {
    let Some(elo) = row.elo else { return ("-".to_string(), String::new()) };
    let interval = match (row.low, row.high) {
        (Some(low), Some(high)) if low == high => String::new(),
        (Some(low), Some(high)) => format!("{} to {}", signed(low, 0), signed(high, 0)),
        (Some(low), None) => format!("at least {}", signed(low, 0)),
        (None, Some(high)) => format!("at most {}", signed(high, 0)),
        (None, None) => "-".to_string(),
    };
    (signed(elo, 0), interval)
}

/// Formats the mean depth; sampling searches have none.
fn depth(row: &v1::Standing) -> String {
    if row.mean_depth == 0.0 { "-".to_string() } else { format!("{:.1}", row.mean_depth) }
}

/// Returns the standings of a run as a table of at most `most` players.
pub fn standings(status: &v1::RunStatus, most: usize) -> Table {
    let probe = status.probe;
    let numbers: &[&str] = if probe {
        &["searches", "nodes", "depth"]
    } else {
        &["Elo", "95 %", "score", "W", "D", "L", "nodes", "depth"]
    };
    let mut table = Table::of_numbers("player", numbers).optional(&["depth", "nodes", "L", "D", "W"]);
    for row in status.standings.iter().take(most) {
        let (elo, interval) = rating(row);
        let name = row.player.clone();
        let effort = [rate(row.mean_nodes).trim_end().to_string(), depth(row)];
        let cells = if probe {
            vec![name, row.moves.to_string()]
        } else {
            let score = if row.games == 0 { "-".to_string() } else { percent(row.score) };
            let counts = [row.wins, row.draws, row.losses].map(|count| count.to_string());
            [vec![name, elo, interval, score], counts.to_vec()].concat()
        };
        table.row(cells.into_iter().chain(effort));
    }
    table
}

/// Returns what the standings show: the verdict with the likelihood of superiority, and whether the bouts are too few.
pub fn conclusion(status: &v1::RunStatus) -> Option<String> {
    let verdict = capitalised_except(status.verdict.as_ref()?, &status.standings);
    let los = status.los.map_or(String::new(), |los| format!(" (LOS {})", likelihood(los)));
    let text = format!("{verdict}{los}. {}", status.caution);
    Some(folded(text.trim_end(), sentence_width()).join("\n"))
}

/// Returns a sentence with a capital letter, unless it begins with the name of a player.
fn capitalised_except(sentence: &str, standings: &[v1::Standing]) -> String {
    let names_player = standings.iter().any(|row| sentence.starts_with(&row.player));
    if names_player { sentence.to_string() } else { capitalised(sentence) }
}

/// Describes the progress of a tuning run: its step, its recent score, and its parameters.
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

/// Formats a value with few digits.
fn short(value: f64) -> String {
    let digits = if value.abs() >= 100.0 { 1 } else { 3 };
    let text = format!("{value:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_string() } else { text }
}

/// Describes the state of a sequential test, if the run is one.
pub fn sprt_lines(status: &v1::RunStatus) -> Option<String> {
    let sprt = status.sprt.as_ref()?;
    let ratio = format!(
        "LLR {:+.2} of {:+.2} to {:+.2} after {} bouts",
        sprt.llr, sprt.lower, sprt.upper, sprt.prefix
    );
    let hypotheses = status.hypotheses.clone().unwrap_or_default();
    let unit = if hypotheses.normalised { "nElo" } else { "Elo" };
    let accepted = |name: &str, one: f64, other: f64| {
        format!(
            "{ratio}: {name} is accepted: {} is {one} {unit} stronger than {} rather than {other}",
            hypotheses.player, hypotheses.against
        )
    };
    let text = match sprt.verdict.as_str() {
        "H1" => accepted("H1", hypotheses.high, hypotheses.low),
        "H0" => accepted("H0", hypotheses.low, hypotheses.high),
        "undecided" => format!("{ratio}: undecided, as no bouts are left"),
        _ => format!("{ratio}: continues"),
    };
    let counts = pentanomial(&sprt.pairs).map(|counts| format!("\n{counts}")).unwrap_or_default();
    Some(folded(&text, sentence_width()).join("\n") + &counts)
}

/// Writes the result of a run: progress, standings and sequential test.
pub fn write_result(status: &v1::RunStatus, state: &str, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{} ({}): {state}", status.run, status.game)?;
    writeln!(out, "{}\n", progress_line(status))?;
    if let Some(tune) = &status.tune {
        writeln!(out, "{}\n", tune_lines(tune))?;
    }
    standings(status, usize::MAX).write(out)?;
    if let Some(conclusion) = conclusion(status) {
        writeln!(out, "\n{conclusion}")?;
    }
    if let Some(test) = sprt_lines(status) {
        writeln!(out, "\n{test}")?;
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    fn text(status: &v1::RunStatus) -> String {
        let mut text = Vec::new();
        write_result(status, "done", &mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    fn row(player: &str, elo: f64, low: Option<f64>, high: Option<f64>) -> v1::Standing {
        v1::Standing { player: player.to_string(), elo: Some(elo), low, high, ..v1::Standing::default() }
    }

    #[test]
    fn result_states_the_verdict_and_too_few_bouts() {
        let status = v1::RunStatus {
            standings: vec![row("a", 182.0, Some(-150.0), None), row("b", 0.0, Some(0.0), Some(0.0))],
            verdict: Some("too few results to call a or b stronger".to_string()),
            los: Some(0.801),
            caution: "The bouts are too few: even if one player won all, the other might be stronger."
                .to_string(),
            ..v1::RunStatus::default()
        };
        let text = text(&status);
        assert!(text.contains("a       +182  at least -150"), "{text}");
        let zero = text.lines().find(|line| line.starts_with("b ")).unwrap();
        assert_eq!(zero.split_whitespace().take(3).collect::<Vec<_>>(), ["b", "0", "-"], "{text}");
        let words = text.replace('\n', " ");
        assert!(
            words.contains(
                "Too few results to call a or b stronger (LOS 80.1 %). The bouts are too few: even if"
            ),
            "{text}"
        );
    }

    #[test]
    fn verdict_keeps_the_spelling_of_a_name() {
        let standings = vec![row("pvs", 60.0, Some(40.0), Some(80.0)), row("uct", 0.0, None, None)];
        let verdict = Some("pvs is stronger than uct".to_string());
        let status = v1::RunStatus { standings, verdict, los: Some(1.0), ..v1::RunStatus::default() };
        assert_eq!(conclusion(&status).unwrap(), "pvs is stronger than uct (LOS > 99.9 %).");
    }
}
