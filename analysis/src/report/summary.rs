//! The answer of a report in one sentence, with the sentences that qualify it.
//!
//! Every sentence is a function of the report, and states what is unknown.

use agon_stats::comparison::{Comparison, Verdict};
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
    let (counted, bouts) = (report.counted, report.bouts);
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
    let number = players.len();
    let Some(first) = players.first() else {
        return ("No games have been played yet.".to_string(), Vec::new());
    };
    if ratings.components.len() > 1 {
        let groups = ratings.components.iter().map(|group| group.join(", ")).collect::<Vec<_>>().join("; ");
        let answer = "No strongest player: the results do not connect all players.".to_string();
        return (answer, vec![format!("Ratings are comparable only within each of these groups: {groups}.")]);
    }
    let next = players.get(1);
    if let (Some(difference), Some(next), Some(los)) = (ratings.difference, next, first.los_next) {
        return stronger(first, next, difference, los, ratings.enough);
    }
    if players.iter().all(|player| player.wins + player.losses == 0) {
        let answer = "No strongest player: every game was drawn.".to_string();
        return (answer, vec![format!("All {games} games were drawn, so all ratings are equal.")]);
    }
    let title = if number == 2 {
        "the stronger of two players".to_string()
    } else {
        format!("the strongest of {number} players")
    };
    let adjective = if number == 2 { "stronger" } else { "strongest" };
    let answer = match (first.los_next.map(Verdict::of), next) {
        (Some(Verdict::Stronger), _) => format!("{} is {title}.", first.name),
        (_, Some(next)) if !ratings.enough => {
            format!("Too few games to call {} or {} the {adjective} player.", first.name, next.name)
        }
        (Some(Verdict::ProbablyStronger), _) => format!("{} is probably {title}.", first.name),
        (_, Some(next)) if is_equal(first, next) => {
            format!("No {adjective} player: {} and {} have equal ratings.", first.name, next.name)
        }
        (_, Some(next)) => {
            format!(
                "No clearly {adjective} player: {} leads, but {} may be as strong.",
                first.name, next.name
            )
        }
        (_, None) => format!("{} is the only player.", first.name),
    };
    let mut remarks = vec![rating_remark(first, ratings.seat_effects.len())];
    if let Some(next) = next.filter(|next| !is_equal(first, next)) {
        let los = first.los_next.map_or(String::new(), |los| {
            format!(", with a likelihood of superiority of {}", likelihood(los))
        });
        remarks.push(format!(
            "The difference to {}, the next player, is {} Elo{los}.",
            next.name,
            signed(first.elo - next.elo, 0)
        ));
    }
    let estimable = |player: &Standing| player.low.or(player.high).is_some();
    if number > 1 && !players.iter().any(estimable) {
        remarks.push("There are too few bouts for intervals.".to_string());
    }
    if ratings.transitivity.is_some_and(|p| p < 0.01) {
        remarks.push("A single rating per player does not explain all results: they depend on the pairing, see the head-to-head results.".to_string());
    }
    (answer, remarks)
}

/// Compares two players by their difference.
fn stronger(
    first: &Standing,
    next: &Standing,
    difference: Interval,
    los: f64,
    enough: bool,
) -> (String, Vec<String>) {
    let Interval { value: elo, low, high } = difference;
    let compared = Comparison { elo, low, high, los, enough };
    let sentence = compared.sentence(&first.name, &next.name);
    // A sentence that begins with a name keeps the spelling of the name.
    let sentence = if sentence.starts_with(&first.name) { sentence } else { capitalised(&sentence) };
    let answer =
        format!("{sentence}: {}.", estimate_text(&difference, 0, &format!(" Elo for {}", first.name)));
    let mut remarks = vec![format!(
        "{} scored {} of the points in {} games; its likelihood of superiority is {}.",
        first.name,
        first.score.map_or("none".to_string(), percent),
        count(first.games),
        likelihood(los)
    )];
    if !enough {
        remarks.push("Even if one player had won all these games, the other might be stronger.".to_string());
    }
    (answer, remarks)
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
        test.looked_at,
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
            ratio.positions
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

    fn pool(players: Vec<Standing>) -> Ratings {
        Ratings {
            components: vec![players.iter().map(|player| player.name.clone()).collect()],
            players,
            difference: None,
            enough: true,
            seat_advantage: None,
            seat_effects: Vec::new(),
            draw_rate: None,
            transitivity: None,
            replicas: 1,
        }
    }

    /// Winning every game is no proof by itself: the words follow the likelihood of superiority.
    #[test]
    fn clean_sweep_needs_enough_games() {
        let sweep = |los: f64, enough: bool, low: f64| {
            let [mut a, b] = [
                rated("a", 91.0, Some(Bound::AtLeast), [4, 0, 0]),
                rated("b", -91.0, Some(Bound::AtMost), [0, 0, 4]),
            ];
            a.los_next = Some(los);
            let difference = Some(Interval { value: 182.0, low: Some(low), high: None });
            strongest(&Ratings { difference, enough, ..pool(vec![a, b]) }, 4)
        };
        let (answer, remarks) = sweep(0.8, false, -150.0);
        assert_eq!(answer, "Too few results to call a or b stronger: +182 Elo for a (95 %: at least -150).");
        assert_eq!(
            remarks,
            [
                "a scored 50.0 % of the points in 4 games; its likelihood of superiority is 80.0 %.",
                "Even if one player had won all these games, the other might be stronger."
            ]
        );
        let (answer, remarks) = sweep(0.99, true, 25.0);
        assert_eq!(answer, "a is stronger than b: +182 Elo for a (95 %: at least +25).");
        assert_eq!(remarks.len(), 1);
    }

    #[test]
    fn few_games_of_many_seats_prove_nothing() {
        let [mut a, b] = [rated("a", 90.0, None, [5, 0, 3]), rated("b", 0.0, None, [2, 0, 6])];
        a.los_next = Some(0.9);
        let players = vec![a, b, rated("c", -90.0, None, [1, 0, 7])];
        let (answer, _) = strongest(&Ratings { enough: false, ..pool(players.clone()) }, 8);
        assert_eq!(answer, "Too few games to call a or b the strongest player.");
        let (answer, _) = strongest(&pool(players), 8);
        assert_eq!(answer, "a is probably the strongest of 3 players.");
    }

    #[test]
    fn equal_ratings_have_no_leader() {
        let level = vec![rated("a", 0.0, None, [5, 0, 5]), rated("b", 0.0, None, [5, 0, 5])];
        let (answer, remarks) = strongest(&pool(level), 10);
        assert_eq!(answer, "No stronger player: a and b have equal ratings.");
        assert!(remarks.iter().all(|remark| !remark.contains("difference to")), "{remarks:?}");
    }

    #[test]
    fn score_in_many_seats_states_even_share() {
        assert!(
            rating_remark(&rated("a", 1.0, None, [1, 0, 3]), 4).ends_with(", where an even share is 25.0 %.")
        );
        assert!(rating_remark(&rated("a", 1.0, None, [1, 0, 3]), 0).ends_with("in 4 games."));
    }
}
