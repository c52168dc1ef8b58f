//! Comparability of players.
//!
//! The likelihood has its maximum at finite ratings exactly if the graph "scored against" is strongly connected
//! (Zermelo 1929; Ford 1957). Its strongly connected parts are the **blocks**. Between blocks that met, one side won
//! everything, and the difference is bounded on one side only. Players without a path of results between them are not
//! comparable: they are in separate **components**.

use super::results::{GameCounts, Sorted};
use crate::reachability::Reachability;

/// The components of a pool.
#[derive(Clone, Debug)]
pub struct Structure {
    /// The component of each player.
    pub component_of: Vec<usize>,
    /// The components, the one with the anchor or the largest block first.
    pub components: Vec<Component>,
    /// For each player whether results bound the rating from below and from above, relative to the component's zero.
    pub bounded: Vec<[bool; 2]>,
}

/// Comparable players.
#[derive(Clone, Debug)]
pub struct Component {
    /// The players, ascending.
    pub members: Vec<usize>,
    /// The players whose mean rating is zero: the largest block, or all players if no block has two.
    pub zero: Vec<usize>,
}

impl Structure {
    /// Computes the structure of results. With a common opponent (`joined`) everybody is comparable.
    pub fn new(results: &Sorted, anchor: Option<usize>, joined: bool) -> Self {
        let players = results.names.len();
        let edges = results.pairings.iter().flat_map(|pairing| {
            let [losses, draws, wins] = pairing.tally().total();
            let (one, other) = (pairing.one, pairing.other);
            [(one, other, wins + draws), (other, one, losses + draws)]
        });
        let scored = edges.filter(|&(.., points)| points > 0.0).map(|(from, to, _)| (from, to));
        let scored: Vec<(usize, usize)> = scored.collect();
        let reach = Reachability::new(players, scored.iter().copied());
        let met =
            Reachability::new(players, scored.iter().flat_map(|&(one, other)| [(one, other), (other, one)]));
        let same_block = |one: usize, other: usize| joined || one == other || reach.mutual(one, other);
        let same_component = |one: usize, other: usize| joined || one == other || met.reaches(one, other);
        let block = |player: usize| -> Vec<usize> {
            (0..players).filter(|&other| same_block(player, other)).collect()
        };
        let mut games = vec![0.0; players];
        for pairing in &results.pairings {
            let count: f64 = pairing.tally().total().iter().sum();
            games[pairing.one] += count;
            games[pairing.other] += count;
        }
        // One player of each block: the anchor, then of the largest block, then of that with the most games.
        let mut order: Vec<usize> =
            (0..players).filter(|&player| block(player).first() == Some(&player)).collect();
        let key = |player: usize| {
            let block = block(player);
            let anchored = anchor.is_some_and(|anchor| block.contains(&anchor));
            (anchored, block.len(), block.iter().map(|&member| games[member]).sum::<f64>())
        };
        let mut keys: Vec<((bool, usize, f64), usize)> =
            order.drain(..).map(|player| (key(player), player)).collect();
        keys.sort_by(|(one, a), (other, b)| {
            (other.0.cmp(&one.0)).then(other.1.cmp(&one.1)).then(other.2.total_cmp(&one.2)).then(a.cmp(b))
        });
        let mut structure = Structure {
            component_of: vec![usize::MAX; players],
            components: Vec::new(),
            bounded: vec![[true; 2]; players],
        };
        for (_, player) in keys {
            if structure.component_of[player] != usize::MAX {
                continue;
            }
            let members: Vec<usize> = (0..players).filter(|&other| same_component(player, other)).collect();
            for &member in &members {
                structure.component_of[member] = structure.components.len();
                if !same_block(player, member) {
                    // A path of points in one direction alone bounds the rating from that side.
                    structure.bounded[member] =
                        [reach.reaches(member, player), reach.reaches(player, member)];
                }
            }
            let mut zero = block(player);
            if zero.len() == 1 {
                // The player by whom the others are judged is bounded as they are, seen from the other side.
                let others = members.iter().filter(|&&member| member != player);
                structure.bounded[player] = [
                    others.clone().any(|&other| reach.reaches(player, other)),
                    others.clone().any(|&other| reach.reaches(other, player)),
                ];
                zero = members.clone();
            }
            structure.components.push(Component { members, zero });
        }
        structure
    }

    /// Returns whether some results are all won by one side, so that the likelihood has no maximum.
    pub fn is_separated(&self) -> bool {
        self.bounded.iter().any(|bounded| *bounded != [true; 2])
    }
}

/// Returns whether the first seat's advantage is identifiable: it is not if some ratings give every first seat the
/// same head start, as where one player always sits first.
pub fn advantage_is_identifiable<'a>(
    players: usize,
    pairings: impl Iterator<Item = (usize, usize, &'a GameCounts)>,
) -> bool {
    let mut steps: Vec<Vec<(usize, i64)>> = vec![Vec::new(); players];
    for (one, other, tally) in pairings {
        for (games, head_start) in [(tally.first, 1), (tally.second, -1)] {
            if games.iter().sum::<f64>() > 0.0 {
                steps[one].push((other, -head_start));
                steps[other].push((one, head_start));
            }
        }
    }
    let mut potential: Vec<Option<i64>> = vec![None; players];
    for start in 0..players {
        if potential[start].is_some() {
            continue;
        }
        let mut stack = vec![(start, 0)];
        while let Some((player, value)) = stack.pop() {
            match potential[player] {
                Some(known) if known != value => return true,
                Some(_) => {}
                None => {
                    potential[player] = Some(value);
                    stack.extend(steps[player].iter().map(|&(next, step)| (next, value + step)));
                }
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Outcome;
    use crate::pool::results::Results;

    /// Parses results such as `winner > loser` and `one = other`.
    fn results(games: &[&str]) -> Sorted {
        let mut results = Results::default();
        for game in games {
            let (one, outcome, other) = match game.split_once(" > ") {
                Some((one, other)) => (one, Outcome::Win, other),
                None => {
                    let (one, other) = game.split_once(" = ").unwrap();
                    (one, Outcome::Draw, other)
                }
            };
            let (one, other) = (results.player(one), results.player(other));
            results.add_games(one, other, outcome, 1).unwrap();
        }
        results.sorted()
    }

    fn structure(games: &[&str], anchor: Option<usize>) -> Structure {
        Structure::new(&results(games), anchor, false)
    }

    #[test]
    fn cycles_and_draws_make_blocks() {
        let structure = structure(&["a > b", "b > c", "c > a", "c = d"], None);
        assert_eq!((structure.components.len(), structure.is_separated()), (1, false));
        assert_eq!(structure.components[0].zero, [0, 1, 2, 3]);
    }

    #[test]
    fn undefeated_players_are_bounded_from_below() {
        // b and c are a block; a beat it, z beat a; d lost to it, e to d.
        let structure = structure(&["b > c", "c > b", "a > b", "z > a", "c > d", "d > e"], None);
        let (low, high, both) = ([true, false], [false, true], [true, true]);
        assert_eq!(structure.bounded, [low, both, both, high, high, low]);
        assert_eq!((&structure.components[0].zero[..], structure.components.len()), (&[1, 2][..], 1));
    }

    /// Winners over the same loser are comparable; players whom no results connect are not.
    #[test]
    fn unconnected_players_are_separate() {
        let games = ["a > c", "a > c", "b > c", "x = y"];
        let structure = structure(&games, None);
        assert_eq!(structure.component_of, [1, 1, 1, 0, 0]);
        assert_eq!(structure.components[0].zero, [3, 4]);
        assert_eq!(structure.components[1].zero, [0, 1, 2], "no block has two players");
        assert_eq!(structure.bounded[..3], [[true, false], [true, false], [false, true]]);
        let anchored = Structure::new(&results(&games), Some(1), false);
        assert_eq!(anchored.component_of, [0, 0, 0, 1, 1]);
        let joined = Structure::new(&results(&games), None, true);
        assert_eq!((joined.components.len(), joined.is_separated()), (1, false));
    }

    #[test]
    fn advantage_requires_both_seats() {
        let identifiable = |games: &[&str]| {
            let results = results(games);
            let tallies: Vec<GameCounts> =
                results.pairings.iter().map(super::super::results::Pairing::tally).collect();
            let pairings = results.pairings.iter().zip(&tallies);
            advantage_is_identifiable(results.names.len(), pairings.map(|(p, tally)| (p.one, p.other, tally)))
        };
        assert!(!identifiable(&["a > b", "b > c"]));
        assert!(identifiable(&["a > b", "b > a"]));
        // a sits first against c, so that the head starts do not add up.
        assert!(identifiable(&["a > b", "b > c", "a > c"]));
        assert!(!identifiable(&["a > b", "b > c", "a > d", "d > c"]));
    }
}
