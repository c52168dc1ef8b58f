//! The answer of a report in one sentence, with the sentences that qualify it.
//!
//! Every sentence is a function of the report, and states what is unknown.

use agon_stats::pool::Standing;

use super::ratings::{Ratings, SequentialTest};
use super::{Availability, Question, Report, estimate_text, interval_text, tuning};
use crate::format::{capitalised, count, fixed, likelihood, percent, signed};
use crate::pruning::{Interval, Ratio};

/// Returns the answer and its remarks.
pub(super) fn summarise(report: &Report) -> (String, Vec<String>) {
    let (answer, mut remarks) = match report.question {
        Question::Probe => fewest_nodes(report),
        Question::Test => match &report.test {
            Some(test) => verdict(test),
            None => ("The test has no results yet.".to_string(), Vec::new()),
        },
        Question::Tune => match &report.tuning {
            Some(tuning) => tuning::summarise(tuning),
            None => ("The tune has no results yet.".to_string(), Vec::new()),
        },
        Question::Tournament => match &report.ratings {
            Availability::Available(ratings) => {
                let games = report.lengths.as_ref().map_or(0, |lengths| lengths.games);
                strongest(ratings, games)
            }
            Availability::Missing { why } => (why.clone(), Vec::new()),
        },
    };
    remarks.extend(progress(report));
    (answer, remarks)
}

/// Describes what is missing from an unfinished run.
fn progress(report: &Report) -> Option<String> {
    let noun = if report.question == Question::Probe { "positions" } else { "bouts" };
    let (counted, bouts) = (count(report.counted), count(report.bouts));
    match report.state {
        "done" | "decided" => None,
        "cancelled" => Some(format!("Cancelled with {counted} of {bouts} {noun} in the dataset.")),
        state => {
            Some(format!("Unfinished ({state}): {counted} of {bouts} {noun} are in the dataset so far."))
        }
    }
}

/// Names the strongest player, or why there is none.
fn strongest(ratings: &Ratings, games: u64) -> (String, Vec<String>) {
    let players = &ratings.players;
    let Some(first) = players.first() else {
        return ("No games have been played yet.".to_string(), Vec::new());
    };
    let verdict = sentence(&ratings.verdict, players);
    if ratings.components.len() > 1 {
        let groups = ratings.components.iter().map(|group| group.join(", ")).collect::<Vec<_>>().join("; ");
        let remark = format!("Ratings are comparable only within each of these groups: {groups}.");
        return (format!("{verdict}."), vec![remark]);
    }
    let next = players.get(1);
    let (answer, mut remarks) = match ratings.difference {
        Some(difference) => stronger(&verdict, first, &difference, ratings.los),
        None if players.iter().all(|player| player.wins + player.losses == 0) => {
            let remark = format!("All {} games were drawn, so all ratings are equal.", count(games));
            return (format!("{verdict}."), vec![remark]);
        }
        None => {
            let mut remarks = vec![rating_remark(first, ratings.seat_effects.len())];
            if let Some(next) = next.filter(|next| !is_equal(first, next)) {
                let los = ratings.los.map_or(String::new(), |los| {
                    format!(", with a likelihood of superiority of {}", likelihood(los))
                });
                remarks.push(format!(
                    "The difference to {}, the next player, is {} Elo{los}.",
                    next.name,
                    signed(first.elo - next.elo, 0)
                ));
            }
            (format!("{verdict}."), remarks)
        }
    };
    remarks.extend(ratings.caution.clone());
    let estimable = |player: &Standing| player.low.or(player.high).is_some();
    if players.len() > 1 && !players.iter().any(estimable) {
        remarks.push("There are too few bouts for intervals.".to_string());
    }
    if ratings.transitivity.is_some_and(|p| p < 0.01) {
        remarks.push("A single rating per player does not explain all results: they depend on the pairing, see the head-to-head results.".to_string());
    }
    (answer, remarks)
}

/// Returns a conclusion as the beginning of a sentence; a name keeps its spelling.
fn sentence(verdict: &str, players: &[Standing]) -> String {
    let names_player = players.iter().any(|player| verdict.starts_with(&player.name));
    if names_player { verdict.to_string() } else { capitalised(verdict) }
}

/// Compares two players by their difference.
fn stronger(
    verdict: &str,
    first: &Standing,
    difference: &Interval,
    los: Option<f64>,
) -> (String, Vec<String>) {
    let answer = format!("{verdict}: {}.", estimate_text(difference, 0, &format!(" Elo for {}", first.name)));
    let los =
        los.map_or(String::new(), |los| format!("; its likelihood of superiority is {}", likelihood(los)));
    let score = first.score.map_or("none".to_string(), percent);
    let remark = format!("{} scored {score} of the points in {} games{los}.", first.name, count(first.games));
    (answer, vec![remark])
}

/// Returns whether two ratings are equal when rounded for display.
fn is_equal(first: &Standing, next: &Standing) -> bool {
    (first.elo - next.elo).abs() < 0.05
}

/// Describes a player's rating, and the even share of the points if there are more than two `seats`.
fn rating_remark(player: &Standing, seats: usize) -> String {
    let even = match seats {
        0..=2 => String::new(),
        seats => format!(", where an even share is {}", percent(1.0 / seats as f64)),
    };
    let score = player
        .score
        .map(|score| format!("{} of the points in {} games{even}", percent(score), count(player.games)));
    let score = score.unwrap_or_default();
    format!(
        "Its rating is {} relative to the mean; it scored {score}.",
        estimate_text(&player.into(), 0, " Elo")
    )
}

/// States which hypothesis a sequential test accepted.
fn verdict(test: &SequentialTest) -> (String, Vec<String>) {
    let SequentialTest { player, against, bounds: [first, second], .. } = test;
    let unit = if test.model == "normalised" { "normalised Elo" } else { "Elo" };
    let (low, high) = (signed(*first, 1), signed(*second, 1));
    let answer = match test.verdict {
        "H1" => {
            format!("{player} is stronger than {against}: the test accepted {high} {unit} over {low}.")
        }
        "H0" => {
            format!("{player} is not stronger than {against} by {high} {unit}: the test accepted {low}.")
        }
        verdict => {
            let decided = if verdict == "undecided" { "Undecided" } else { "Not decided yet" };
            format!("{decided} whether {player} is stronger than {against} by {high} {unit} or by {low}.")
        }
    };
    let mut remarks = Vec::new();
    if let Some(elo) = test.elo {
        let stopped = ["H0", "H1"].contains(&test.verdict);
        let bias = if stopped { "; a stopped test slightly overestimates it" } else { "" };
        remarks.push(format!("The difference so far is {}{bias}.", estimate_text(&elo, 1, " Elo")));
    }
    remarks.push(format!(
        "The log-likelihood ratio is {} after {} bouts; the first hypothesis is accepted below {}, the second above {}.",
        signed(test.llr, 2),
        count(test.looked_at),
        signed(test.lower, 2),
        signed(test.upper, 2)
    ));
    (answer, remarks)
}

/// Names the player that needs the fewest nodes to the depth at which most players can be compared.
fn fewest_nodes(report: &Report) -> (String, Vec<String>) {
    let ratios = &report.pruning.ratios;
    let Some(depth) = common_depth(ratios) else {
        let answer = match report.players.len() {
            _ if report.counted == 0 => "No position has been searched yet.".to_string(),
            1 => format!("{} is the only player, so there is no comparison.", report.players[0].name),
            _ => "The players completed no common depth at which their nodes can be compared.".to_string(),
        };
        return (answer, Vec::new());
    };
    let at: Vec<&Ratio> = ratios.iter().filter(|ratio| ratio.depth == depth).collect();
    // Geometric mean ratios on the same positions are transitive, so the number of ratios below one orders the players.
    let wins = |name: &str| {
        at.iter()
            .filter(|ratio| (ratio.a == name && ratio.ratio < 1.0) || (ratio.b == name && ratio.ratio > 1.0))
            .count()
    };
    let mut names: Vec<&str> = report.players.iter().map(|player| player.name.as_str()).collect();
    names.sort_by_key(|name| std::cmp::Reverse(wins(name)));
    let best = names[0];
    let mut remarks = Vec::new();
    let mut unclear = Vec::new();
    for other in &names[1..] {
        let Some(ratio) = ratio_between(&at, best, other) else { continue };
        let interval = ratio.interval();
        let ends = match interval.ends() {
            Some(_) => format!(" (95 %: {})", interval_text(&interval, |end| fixed(end, 3))),
            None => String::new(),
        };
        if interval.high.is_none_or(|high| high >= 1.0) {
            unclear.push(*other);
        }
        remarks.push(format!(
            "To depth {depth} it needs {} times the nodes of {other}{ends}, at {} positions that both searched.",
            fixed(interval.value, 3),
            count(ratio.positions)
        ));
    }
    let answer = match &unclear[..] {
        [] => format!("{best} needs the fewest nodes to depth {depth}."),
        others => {
            format!(
                "{best} needs the fewest nodes to depth {depth}, but not significantly fewer than {}.",
                others.join(", ")
            )
        }
    };
    (answer, remarks)
}

/// Returns the depth at which most pairs of players can be compared, the greatest of several.
pub(super) fn common_depth(ratios: &[Ratio]) -> Option<usize> {
    let depths = ratios.iter().map(|ratio| ratio.depth);
    let pairs = |depth: usize| ratios.iter().filter(|ratio| ratio.depth == depth).count();
    depths.max_by_key(|&depth| (pairs(depth), depth))
}

/// Returns the node ratio of two players in the given order.
fn ratio_between(ratios: &[&Ratio], first: &str, second: &str) -> Option<Ratio> {
    ratios.iter().find_map(|ratio| match (&*ratio.a, &*ratio.b) {
        pair if pair == (first, second) => Some((*ratio).clone()),
        pair if pair == (second, first) => Some(ratio.inverse()),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use agon_stats::pool::Bound;

    use super::*;

    fn rated(name: &str, elo: f64, bound: Option<Bound>, [wins, draws, losses]: [u64; 3]) -> Standing {
        Standing {
            rank: 1,
            component: 0,
            name: name.to_string(),
            elo,
            low: None,
            high: None,
            bound,
            games: wins + draws + losses,
            wins,
            draws,
            losses,
            score: Some(0.5),
            los_next: None,
        }
    }

    fn pool(players: Vec<Standing>, verdict: &str, los: f64) -> Ratings {
        Ratings {
            components: vec![players.iter().map(|player| player.name.clone()).collect()],
            players,
            difference: None,
            verdict: verdict.to_string(),
            los: Some(los),
            caution: None,
            seat_advantage: None,
            seat_effects: Vec::new(),
            draw_rate: None,
            transitivity: None,
            replicas: 1,
        }
    }

    /// The answer is the shared verdict; the warning that results are too few is among the remarks.
    #[test]
    fn difference_of_two_players_follows_the_verdict() {
        let players = vec![
            rated("a", 182.0, Some(Bound::AtLeast), [4, 0, 0]),
            rated("b", 0.0, Some(Bound::AtMost), [0, 0, 4]),
        ];
        let ratings = Ratings {
            difference: Some(Interval { value: 182.0, low: Some(-150.0), high: None }),
            caution: Some("The bouts are too few.".to_string()),
            ..pool(players, "too few results to call a or b stronger", 0.8)
        };
        let (answer, remarks) = strongest(&ratings, 4);
        assert_eq!(answer, "Too few results to call a or b stronger: +182 Elo for a (95 %: at least -150).");
        assert_eq!(
            remarks[..2],
            [
                "a scored 50.0 % of the points in 4 games; its likelihood of superiority is 80.0 %.",
                "The bouts are too few."
            ]
        );
    }

    #[test]
    fn names_keep_their_spelling() {
        let players = vec![rated("uct", 90.0, None, [5, 0, 3]), rated("b", 0.0, None, [2, 0, 6])];
        let (answer, _) = strongest(&pool(players, "uct is the strongest of 3 players", 0.99), 8);
        assert_eq!(answer, "uct is the strongest of 3 players.");
    }

    #[test]
    fn equal_ratings_have_no_difference() {
        let level = vec![rated("a", 0.0, None, [5, 0, 5]), rated("b", 0.0, None, [5, 0, 5])];
        let (_, remarks) = strongest(&pool(level, "a and b have equal ratings", 0.5), 10);
        assert!(remarks.iter().all(|remark| !remark.contains("difference to")), "{remarks:?}");
    }

    #[test]
    fn thousands_are_separated_in_sentences() {
        let drawn = vec![rated("a", 0.0, None, [0, 1200, 0]), rated("b", 0.0, None, [0, 1200, 0])];
        let (_, remarks) = strongest(&pool(drawn, "no player is the strongest", 0.5), 1200);
        assert_eq!(remarks, ["All 1,200 games were drawn, so all ratings are equal."]);
    }

    #[test]
    fn score_in_many_seats_states_even_share() {
        assert!(
            rating_remark(&rated("a", 1.0, None, [1, 0, 3]), 4).ends_with(", where an even share is 25.0 %.")
        );
        assert!(rating_remark(&rated("a", 1.0, None, [1, 0, 3]), 0).ends_with("in 4 games."));
    }
}
