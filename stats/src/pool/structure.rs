//! Comparability of players.
//!
//! The likelihood has its maximum at finite ratings exactly if the graph "scored against" is strongly connected
//! (Zermelo 1929; Ford 1957). Its strongly connected parts are the **blocks**; within them ratings are estimates.
//! Between blocks that met, one side won everything, and only a bound is known. Blocks without a path between them
//! are not comparable: they are separate **components**.

use super::results::{GameCounts, Sorted};
use crate::reachability::Reachability;

/// The blocks and components of a pool.
#[derive(Clone, Debug)]
pub struct Structure {
    /// The players of each block, ascending.
    pub blocks: Vec<Vec<usize>>,
    /// The block of each player.
    pub block_of: Vec<usize>,
    /// The components, the one with the anchor or the largest block first.
    pub components: Vec<Component>,
}

/// Comparable blocks.
#[derive(Clone, Debug)]
pub struct Component {
    /// The block to which the others are compared.
    pub reference: usize,
    /// Blocks with winning paths to the reference, nearer ones first.
    pub above: Vec<usize>,
    /// Blocks with losing paths to the reference, nearer ones first.
    pub below: Vec<usize>,
}

impl Structure {
    /// Computes the structure of results. References are the block of the `anchor`, else the largest block, then that
    /// with the most games, then that with the first name.
    pub fn new(results: &Sorted, anchor: Option<usize>) -> Self {
        let players = results.names.len();
        let scored_against = results.pairings.iter().flat_map(|pairing| {
            let [losses, draws, wins] = pairing.tally().total();
            let (one, other) = (pairing.one, pairing.other);
            [(one, other, wins + draws), (other, one, losses + draws)]
        });
        let reach = Reachability::new(
            players,
            scored_against.filter(|&(.., points)| points > 0.0).map(|(from, to, _)| (from, to)),
        );
        let mut blocks: Vec<Vec<usize>> = Vec::new();
        let mut block_of = vec![usize::MAX; players];
        for player in 0..players {
            if block_of[player] == usize::MAX {
                let members: Vec<usize> = (player..players)
                    .filter(|&other| other == player || reach.mutual(player, other))
                    .collect();
                members.iter().for_each(|&member| block_of[member] = blocks.len());
                blocks.push(members);
            }
        }
        let mut games = vec![0.0; blocks.len()];
        for pairing in &results.pairings {
            let count: f64 = pairing.tally().total().iter().sum();
            games[block_of[pairing.one]] += count;
            games[block_of[pairing.other]] += count;
        }
        let mut order: Vec<usize> = (0..blocks.len()).collect();
        order.sort_by(|&a, &b| {
            let anchored = |block: usize| anchor.is_some_and(|player| block_of[player] == block);
            (anchored(b).cmp(&anchored(a)))
                .then(blocks[b].len().cmp(&blocks[a].len()))
                .then(games[b].total_cmp(&games[a]))
                .then(a.cmp(&b))
        });
        let components = Self::components(&blocks, &reach, order);
        Structure { blocks, block_of, components }
    }

    /// Creates one block of all players: a prior connects everybody through a common opponent.
    pub fn joined(players: usize) -> Self {
        let component = Component { reference: 0, above: Vec::new(), below: Vec::new() };
        let (blocks, components) = if players == 0 {
            (Vec::new(), Vec::new())
        } else {
            (vec![(0..players).collect()], vec![component])
        };
        Structure { blocks, block_of: vec![0; players], components }
    }

    fn components(blocks: &[Vec<usize>], reach: &Reachability, mut remaining: Vec<usize>) -> Vec<Component> {
        // Of two blocks above, the farther one reaches more players, so these counts sort blocks by their distance.
        let scored_on = |block: usize| reach.count_from(blocks[block][0]);
        let scored_by = |block: usize| reach.count_to(blocks[block][0]);
        let mut components = Vec::new();
        while let Some(&reference) = remaining.first() {
            let here = blocks[reference][0];
            let select = |reaches: &dyn Fn(usize) -> bool| -> Vec<usize> {
                let others = remaining.iter().copied().filter(|&block| block != reference);
                others.filter(|&block| reaches(blocks[block][0])).collect()
            };
            let mut above = select(&|player| reach.reaches(player, here));
            let mut below = select(&|player| reach.reaches(here, player));
            above.sort_by_key(|&block| (scored_on(block), block));
            below.sort_by_key(|&block| (scored_by(block), block));
            remaining.retain(|block| *block != reference && !above.contains(block) && !below.contains(block));
            components.push(Component { reference, above, below });
        }
        components
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

    #[test]
    fn cycles_and_draws_make_blocks() {
        let structure = Structure::new(&results(&["a > b", "b > c", "c > a", "c = d"]), None);
        assert_eq!(structure.blocks, [[0, 1, 2, 3]]);
        assert_eq!(structure.components.len(), 1);
    }

    #[test]
    fn undefeated_players_are_above() {
        // b and c are a block; a beat it, z beat a; d lost to it, e to d.
        let structure =
            Structure::new(&results(&["b > c", "c > b", "a > b", "z > a", "c > d", "d > e"]), None);
        assert_eq!(structure.blocks, [vec![0], vec![1, 2], vec![3], vec![4], vec![5]]);
        let component = &structure.components[0];
        assert_eq!(
            (component.reference, &component.above[..], &component.below[..]),
            (1, &[0, 4][..], &[2, 3][..])
        );
        assert_eq!(structure.components.len(), 1);
    }

    /// Two winners over the same loser, and players who never met, cannot be compared.
    #[test]
    fn incomparable_players_are_separate() {
        let structure = Structure::new(&results(&["a > c", "a > c", "b > c", "x = y"]), None);
        let members: Vec<(Vec<usize>, usize, usize)> = structure
            .components
            .iter()
            .map(|c| (structure.blocks[c.reference].clone(), c.above.len(), c.below.len()))
            .collect();
        // The largest block, then c, which had the most games, with both who beat it.
        assert_eq!(members, [(vec![3, 4], 0, 0), (vec![2], 2, 0)]);
        let anchored = Structure::new(&results(&["a > c", "a > c", "b > c", "x = y"]), Some(1));
        assert_eq!(anchored.blocks[anchored.components[0].reference], [1]);
        assert_eq!(anchored.components.len(), 3);
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
