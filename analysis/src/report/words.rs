//! The answer in words: who is strongest and how sure that is, what a test says, who needs fewest nodes.
//!
//! Every sentence is a function of the report. What is not known is said to be so.

use super::standing::{Rated, Ratings, Test};
use super::{Question, Report, Told, tuning};
use crate::format::{fixed, signed};
use crate::pruning::Ratio;

/// Beyond this a player is called stronger without reserve: a two-sided 95 %.
const SURE: f64 = 0.975;
/// Beyond this it is called stronger with some.
const LIKELY: f64 = 0.8;

/// The answer, and what is to be said of it.
pub(super) fn answer(report: &Report) -> (String, Vec<String>) {
    let (answer, mut remarks) = match report.question {
        Question::Probe => fewest_nodes(report),
        Question::Test => match &report.test {
            Some(test) => verdict(test),
            None => ("The test has no results yet.".to_string(), Vec::new()),
        },
        Question::Tune => match &report.tuning {
            Some(tuning) => tuning::answer(tuning),
            None => ("The tune has no results yet.".to_string(), Vec::new()),
        },
        Question::Tournament => match &report.ratings {
            Told::There(ratings) => strongest(ratings, games(report)),
            Told::Not { why } => (why.clone(), Vec::new()),
        },
    };
    remarks.extend(progress(report));
    (answer, remarks)
}

fn games(report: &Report) -> u64 {
    report.lengths.as_ref().map_or(0, |lengths| lengths.games)
}

/// What is missing of the run, if anything.
fn progress(report: &Report) -> Option<String> {
    let what = if report.question == Question::Probe { "positions" } else { "bouts" };
    let (counted, bouts) = (report.counted, report.bouts);
    match report.state {
        "done" | "decided" => None,
        "cancelled" => {
            Some(format!("Cancelled: {counted} of {bouts} {what} are in the dataset; no more will come."))
        }
        state => {
            Some(format!("Unfinished ({state}): {counted} of {bouts} {what} are in the dataset so far."))
        }
    }
}

fn strongest(ratings: &Ratings, games: u64) -> (String, Vec<String>) {
    let players = &ratings.players;
    let count = players.len();
    let Some(first) = players.first() else {
        return ("Nobody has played yet.".to_string(), Vec::new());
    };
    if ratings.components.len() > 1 {
        let groups = ratings.components.iter().map(|group| group.join(", ")).collect::<Vec<_>>().join("; ");
        let answer = "Nobody can be called strongest: results do not connect all players.".to_string();
        return (
            answer,
            vec![format!("Ratings can be compared only within each of these groups: {groups}.")],
        );
    }
    if players.iter().all(|player| player.wins + player.losses == 0) {
        let answer = "Nothing separates the players: every game was drawn.".to_string();
        return (
            answer,
            vec![format!("All {games} games ended without a winner, so that all ratings are equal.")],
        );
    }
    let next = players.get(1);
    let all = if count == 2 {
        "the stronger of two players".to_string()
    } else {
        format!("the strongest of {count} players")
    };
    let short = if count == 2 { "the stronger" } else { "the strongest" };
    let perfect = first.draws + first.losses == 0;
    let answer = match (first.los_next, next) {
        _ if perfect => format!("{} is {all}: it won every game.", first.name),
        (Some(los), _) if los >= SURE => format!("{} is {all}.", first.name),
        (Some(los), _) if los >= LIKELY => format!("{} is probably {all}.", first.name),
        (_, Some(next)) if is_level(first, next) => {
            format!("Nobody is {short}: {} and {} are level.", first.name, next.name)
        }
        (_, Some(next)) => {
            format!("Nobody is clearly {short}: {} leads, and {} may be as good.", first.name, next.name)
        }
        (_, None) => format!("{} is the only player.", first.name),
    };
    let mut remarks = vec![rating(first, ratings.seat_effects.len())];
    if let Some(next) = next.filter(|next| !is_level(first, next)) {
        let gap = fixed(first.elo - next.elo, 0);
        match first.los_next {
            Some(los) => remarks.push(format!(
                "It is {gap} Elo above {}, the next, and stronger than it with a likelihood of {}.",
                next.name,
                likelihood(los)
            )),
            None if perfect => remarks.push(format!(
                "It is at least {gap} Elo above {}, the next: were it less, so many wins would have a probability below 5 %.",
                next.name
            )),
            None => {}
        }
    }
    let compared = players.iter().filter(|player| player.bound.is_none()).count() > 1;
    if first.bound.is_none() && first.low.is_none() && compared {
        remarks.push("All bouts came out alike, which does not tell how sure that is.".to_string());
    }
    if ratings.transitivity.is_some_and(|p| p < 0.01) {
        remarks.push("One number a player does not explain all results: who beats whom depends on the pairing, see the crosstable.".to_string());
    }
    (answer, remarks)
}

/// Whether two have the same rating, as far as anybody reads it.
fn is_level(first: &Rated, next: &Rated) -> bool {
    (first.elo - next.elo).abs() < 0.05 && first.bound.is_none() && next.bound.is_none()
}

/// A player's rating in a sentence. Where there are more than two seats, so many are given.
fn rating(player: &Rated, seats: usize) -> String {
    let elo = match player.bound {
        Some("at_most") => format!("at most {}", signed(player.elo, 0)),
        Some(_) => format!("at least {}", signed(player.elo, 0)),
        None => signed(player.elo, 0),
    };
    let interval = match (player.low, player.high, player.bound) {
        (Some(low), Some(high), None) => {
            format!(", with 95 % certainty between {} and {}", signed(low, 0), signed(high, 0))
        }
        _ => String::new(),
    };
    let even = match seats {
        0..=2 => String::new(),
        seats => format!(", where an even share is {}", percent(1.0 / seats as f64)),
    };
    let score =
        player.score.map(|score| format!("{} of the points in {} games{even}", percent(score), player.games));
    let score = score.unwrap_or_default();
    // Without an interval its rating is only what the bounds of the others are measured from.
    match player.low.or(player.high) {
        None => format!("It made {score}."),
        Some(_) => format!("Its rating is {elo} Elo where the mean of all is 0{interval}; it made {score}."),
    }
}

fn verdict(test: &Test) -> (String, Vec<String>) {
    let Test { player, against, bounds: [first, second], .. } = test;
    let unit = if test.model == "normalised" { "normalised Elo" } else { "Elo" };
    let (low, high) = (signed(*first, 1), signed(*second, 1));
    let answer = match test.verdict {
        "H1" => {
            format!("{player} is stronger than {against}: the test decided for {high} {unit} against {low}.")
        }
        "H0" => {
            format!("{player} is not stronger than {against} by {high} {unit}: the test decided for {low}.")
        }
        _ => format!(
            "Not decided yet whether {player} is stronger than {against} by {high} {unit} or by {low}."
        ),
    };
    let mut remarks = Vec::new();
    if let Some(elo) = test.elo {
        let ends = match (elo.low, elo.high) {
            (Some(low), Some(high)) => format!(" (95 %: {} to {})", signed(low, 1), signed(high, 1)),
            _ => String::new(),
        };
        let bias =
            if test.verdict == "continue" { "" } else { "; a test that has stopped overstates it a little" };
        remarks.push(format!("The difference so far is {} Elo{ends}{bias}.", signed(elo.value, 1)));
    }
    remarks.push(format!(
        "The log-likelihood ratio is {} after {} bouts; below {} it is the first hypothesis, above {} the second.",
        signed(test.llr, 2),
        test.looked_at,
        signed(test.lower, 2),
        signed(test.upper, 2)
    ));
    (answer, remarks)
}

fn fewest_nodes(report: &Report) -> (String, Vec<String>) {
    let ratios = &report.pruning.ratios;
    let Some(depth) = common_depth(ratios) else {
        let answer = match report.players.len() {
            _ if report.counted == 0 => "No position has been searched yet.".to_string(),
            1 => format!("{} searched alone: there is nobody to compare it with.", report.players[0].name),
            _ => "The players have no depth in common at which their nodes could be compared.".to_string(),
        };
        return (answer, Vec::new());
    };
    let at: Vec<&Ratio> = ratios.iter().filter(|ratio| ratio.depth == depth).collect();
    // Geometric means of ratios on the same positions order the players without contradiction; a win is a ratio below one.
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
        let Some((ratio, low, high, positions)) = of(&at, best, other) else { continue };
        let ends = match (low, high) {
            (Some(low), Some(high)) => format!(" (95 %: {} to {})", fixed(low, 3), fixed(high, 3)),
            _ => String::new(),
        };
        if high.is_none_or(|high| high >= 1.0) {
            unclear.push(*other);
        }
        remarks.push(format!(
            "To depth {depth} it needs {} times the nodes of {other}{ends}, at {positions} positions that both searched.",
            fixed(ratio, 3)
        ));
    }
    let answer = match &unclear[..] {
        [] => format!("{best} needs the fewest nodes to depth {depth}."),
        others => {
            format!(
                "{best} needs the fewest nodes to depth {depth}, though not clearly fewer than {}.",
                others.join(", ")
            )
        }
    };
    (answer, remarks)
}

/// The greatest depth at which most pairs of players can be compared.
pub(super) fn common_depth(ratios: &[Ratio]) -> Option<usize> {
    let depths = ratios.iter().map(|ratio| ratio.depth);
    let pairs = |depth: usize| ratios.iter().filter(|ratio| ratio.depth == depth).count();
    depths.max_by_key(|&depth| (pairs(depth), depth))
}

/// The nodes of one player against another's, with the ends of the interval and the positions.
fn of(ratios: &[&Ratio], one: &str, other: &str) -> Option<(f64, Option<f64>, Option<f64>, u64)> {
    ratios.iter().find_map(|ratio| {
        let inverse = |value: f64| 1.0 / value;
        if ratio.a == one && ratio.b == other {
            Some((ratio.ratio, ratio.low, ratio.high, ratio.positions))
        } else if ratio.a == other && ratio.b == one {
            Some((inverse(ratio.ratio), ratio.high.map(inverse), ratio.low.map(inverse), ratio.positions))
        } else {
            None
        }
    })
}

/// A share in percent.
pub(super) fn percent(share: f64) -> String {
    format!("{} %", fixed(share * 100.0, 1))
}

/// A likelihood in percent, which resampling never makes certain.
pub(super) fn likelihood(share: f64) -> String {
    match share {
        share if share > 0.9995 => "more than 99.9 %".to_string(),
        share if share < 0.0005 => "less than 0.1 %".to_string(),
        share => percent(share),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rated(name: &str, elo: f64, bound: Option<&'static str>, [wins, draws, losses]: [u64; 3]) -> Rated {
        Rated {
            rank: 1,
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

    fn pool(players: Vec<Rated>) -> Ratings {
        Ratings {
            components: vec![players.iter().map(|player| player.name.clone()).collect()],
            players,
            seat_advantage: None,
            seat_effects: Vec::new(),
            draw_rate: None,
            transitivity: None,
            replicas: 1,
        }
    }

    /// A bound is that of a group: who leads it has not won every game.
    #[test]
    fn only_who_won_every_game_is_said_to() {
        let top = |draws| {
            vec![
                rated("a", 300.0, Some("at_least"), [20, draws, 0]),
                rated("b", 290.0, Some("at_least"), [20, draws, 0]),
                rated("c", 0.0, None, [10, 0, 20]),
            ]
        };
        let (answer, _) = strongest(&pool(top(4)), 60);
        assert_eq!(answer, "Nobody is clearly the strongest: a leads, and b may be as good.");
        let (answer, remarks) = strongest(&pool(top(0)), 60);
        assert_eq!(answer, "a is the strongest of 3 players: it won every game.");
        assert!(remarks[1].starts_with("It is at least 10 Elo above b"), "{remarks:?}");
    }

    #[test]
    fn who_is_level_does_not_lead() {
        let level = vec![rated("a", 0.0, None, [5, 0, 5]), rated("b", 0.0, None, [5, 0, 5])];
        let (answer, remarks) = strongest(&pool(level), 10);
        assert_eq!(answer, "Nobody is the stronger: a and b are level.");
        assert!(remarks.iter().all(|remark| !remark.contains("Elo above")), "{remarks:?}");
    }

    #[test]
    fn a_share_of_many_seats_has_its_measure() {
        assert!(rating(&rated("a", 1.0, None, [1, 0, 3]), 4).ends_with(", where an even share is 25.0 %."));
        assert!(rating(&rated("a", 1.0, None, [1, 0, 3]), 0).ends_with("in 4 games."));
    }
}
