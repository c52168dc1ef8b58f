//! The conclusion of a tournament: the one place that says who is strongest, for every command and the report.

use super::TournamentRatings;
use crate::comparison::{Comparison, Verdict, too_few};

/// What the results of a tournament show about its strongest player.
#[derive(Clone, PartialEq, Debug)]
pub struct Conclusion {
    /// The conclusion, without a full stop.
    pub sentence: String,
    /// The likelihood that the first player of the standings is stronger than the second, if they can be compared.
    pub los: Option<f64>,
    /// The warning that the results are too few, if they are.
    pub caution: Option<String>,
}

impl TournamentRatings {
    /// Returns the conclusion. `None` for a game of many seats that was rated without resampling, so that nothing is known
    /// about the uncertainty.
    pub fn conclusion(&self) -> Option<Conclusion> {
        let rows = self.standings();
        let [first, next, ..] = rows else { return None };
        let sentence = |text: &str| Conclusion { sentence: text.to_string(), los: None, caution: None };
        if first.component != rows[rows.len() - 1].component {
            return Some(sentence("no player is the strongest, as the results do not connect all players"));
        }
        let compared = self.compare(0, 1);
        if compared.is_none() && !self.has_uncertainty() {
            return None;
        }
        let los = compared.map(|compared| compared.los);
        let is_enough = compared.is_some_and(|compared| compared.enough);
        let caution = (!is_enough).then(|| too_few(self.unit()));
        let sentence = match (rows.len(), compared) {
            (2, Some(compared)) => compared.sentence(&first.name, &next.name),
            _ if rows.iter().all(|row| row.draws == row.games) => {
                "no player is the strongest, as every game was drawn".to_string()
            }
            (players, _) => {
                let is_level = (first.elo - next.elo).abs() < 0.05;
                leader(compared, is_level, players, &first.name, &next.name)
            }
        };
        Some(Conclusion { sentence, los, caution })
    }

    /// Returns the unit of evidence: `bout`, or `game` if the games were rated without bouts.
    pub fn unit(&self) -> &'static str {
        if self.bouts_only() { "bout" } else { "game" }
    }
}

/// Words the comparison of the two best of several players.
fn leader(compared: Option<Comparison>, is_level: bool, players: usize, one: &str, other: &str) -> String {
    match compared {
        Some(compared) if compared.verdict() == Verdict::Stronger => {
            format!("{one} is the strongest of {players} players")
        }
        Some(compared) if compared.enough => match compared.verdict() {
            Verdict::ProbablyStronger => format!("{one} is probably the strongest of {players} players"),
            _ if is_level => format!("{one} and {other} have equal ratings"),
            _ => format!("{one} leads, but {other} may be as strong"),
        },
        _ => format!("too few results to call {one} or {other} the strongest of {players} players"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plackett_luce::Game;
    use crate::tournament::{BoutCounts, Options};

    /// Rates bouts of two games with the first of two players' half points in all of them.
    fn conclusion(bouts: &[(usize, usize, u64, u64)]) -> Conclusion {
        let mut counts = BoutCounts::new(["a", "b", "c", "d"].map(str::to_string).to_vec());
        for &(one, other, wins, losses) in bouts {
            for (payoff, count) in [(1, wins), (-1, losses)] {
                let games = [
                    Game { players: vec![one, other], payoffs: vec![payoff, -payoff] },
                    Game { players: vec![other, one], payoffs: vec![-payoff, payoff] },
                ];
                counts.add(&games, count).unwrap();
            }
        }
        counts.rate(&Options::default(), &|| ()).unwrap().conclusion().unwrap()
    }

    #[test]
    fn two_players_are_compared_by_their_difference() {
        let few = conclusion(&[(0, 1, 4, 0)]);
        assert_eq!(few.sentence, "too few results to call a or b stronger");
        assert!(few.caution.is_some_and(|text| text.starts_with("The bouts are too few")));
        let many = conclusion(&[(1, 0, 20, 2)]);
        assert_eq!((many.sentence.as_str(), many.caution), ("b is stronger than a", None));
        assert!(many.los > Some(0.975));
    }

    #[test]
    fn pools_name_the_strongest_player_if_results_suffice() {
        let few = conclusion(&[(0, 1, 1, 1), (1, 2, 1, 1), (0, 2, 2, 0)]);
        assert!(few.sentence.starts_with("too few results to call a or "), "{few:?}");
        assert!(few.caution.is_some());
        let many = conclusion(&[(0, 1, 300, 100), (1, 2, 220, 180), (0, 2, 300, 100)]);
        assert_eq!((many.sentence.as_str(), many.caution), ("a is the strongest of 3 players", None));
        let level = conclusion(&[(0, 1, 50, 50), (1, 2, 50, 50), (0, 2, 50, 50)]);
        assert_eq!(level.sentence, "a and b have equal ratings");
        let apart = conclusion(&[(0, 1, 50, 50), (2, 3, 50, 50)]);
        assert_eq!(apart.sentence, "no player is the strongest, as the results do not connect all players");
    }
}
