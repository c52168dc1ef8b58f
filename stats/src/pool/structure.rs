//! Who can be compared with whom.
//!
//! A likelihood has its largest value at finite ratings within a set of players exactly if, however the set is split in
//! two, each half scored against the other (Zermelo 1929; Ford 1957): if the graph "scored against" is strongly
//! connected. Its strongly connected parts are the **blocks**; within them ratings are estimates. Between blocks that met,
//! one side won everything, and all that is known is a bound. Blocks that neither won nor lost their way to each other
//! are not comparable at all: they are separate **components**.

use super::results::{Sorted, Tally};

/// The blocks and components of a pool.
#[derive(Clone, Debug)]
pub struct Structure {
    /// Players of each block, ascending.
    pub blocks: Vec<Vec<usize>>,
    /// The block of each player.
    pub block_of: Vec<usize>,
    /// The components, the one with the anchor or the largest block first.
    pub components: Vec<Component>,
}

/// Blocks that can be compared with one of them.
#[derive(Clone, Debug)]
pub struct Component {
    /// The block whose ratings are the scale of the others.
    pub reference: usize,
    /// Blocks that won their way to the reference, each after those it won its way through.
    pub above: Vec<usize>,
    /// Blocks that lost their way to the reference, each after those it lost its way through.
    pub below: Vec<usize>,
}

impl Structure {
    /// Of results. The block with the `anchor` is a reference; otherwise the largest block is, then that with the most
    /// games, then that with the first name.
    pub fn new(results: &Sorted, anchor: Option<usize>) -> Self {
        let players = results.names.len();
        let reach = Reach::new(players, results);
        let mut blocks: Vec<Vec<usize>> = Vec::new();
        let mut block_of = vec![usize::MAX; players];
        for player in 0..players {
            if block_of[player] == usize::MAX {
                let members: Vec<usize> =
                    (player..players).filter(|&other| other == player || reach.both(player, other)).collect();
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

    /// One block of everybody, as a prior makes it: it lets everybody win and lose against a common opponent.
    pub fn joined(players: usize) -> Self {
        let component = Component { reference: 0, above: Vec::new(), below: Vec::new() };
        let (blocks, components) = if players == 0 {
            (Vec::new(), Vec::new())
        } else {
            (vec![(0..players).collect()], vec![component])
        };
        Structure { blocks, block_of: vec![0; players], components }
    }

    fn components(blocks: &[Vec<usize>], reach: &Reach, mut remaining: Vec<usize>) -> Vec<Component> {
        // Whoever reaches more stands above whoever it reaches, so that these counts sort a block behind those between
        // it and the reference.
        let scored_on = |block: usize| reach.count_from(blocks[block][0]);
        let scored_by = |block: usize| reach.count_to(blocks[block][0]);
        let mut components = Vec::new();
        while let Some(&reference) = remaining.first() {
            let here = blocks[reference][0];
            let select = |reaches: &dyn Fn(usize) -> bool| -> Vec<usize> {
                let others = remaining.iter().copied().filter(|&block| block != reference);
                others.filter(|&block| reaches(blocks[block][0])).collect()
            };
            let mut above = select(&|player| reach.one(player, here));
            let mut below = select(&|player| reach.one(here, player));
            above.sort_by_key(|&block| (scored_on(block), block));
            below.sort_by_key(|&block| (scored_by(block), block));
            remaining.retain(|block| *block != reference && !above.contains(block) && !below.contains(block));
            components.push(Component { reference, above, below });
        }
        components
    }
}

/// Who scored against whom, directly or through others.
struct Reach {
    rows: Vec<Vec<u64>>,
}

impl Reach {
    fn new(players: usize, results: &Sorted) -> Self {
        let words = players.div_ceil(64);
        let mut rows = vec![vec![0u64; words]; players];
        for pairing in &results.pairings {
            let [losses, draws, wins] = pairing.tally().total();
            for (from, to, points) in
                [(pairing.one, pairing.other, wins + draws), (pairing.other, pairing.one, losses + draws)]
            {
                if points > 0.0 {
                    rows[from][to / 64] |= 1 << (to % 64);
                }
            }
        }
        // Warshall's closure, a row of bits at a time.
        for through in 0..players {
            let via = rows[through].clone();
            for row in &mut rows {
                if row[through / 64] >> (through % 64) & 1 == 1 {
                    row.iter_mut().zip(&via).for_each(|(word, via)| *word |= via);
                }
            }
        }
        Reach { rows }
    }

    fn one(&self, from: usize, to: usize) -> bool {
        self.rows[from][to / 64] >> (to % 64) & 1 == 1
    }

    fn both(&self, one: usize, other: usize) -> bool {
        self.one(one, other) && self.one(other, one)
    }

    fn count_from(&self, player: usize) -> usize {
        self.rows[player].iter().map(|word| word.count_ones() as usize).sum()
    }

    fn count_to(&self, player: usize) -> usize {
        (0..self.rows.len()).filter(|&other| self.one(other, player)).count()
    }
}

/// Whether the first seat's advantage can be told from the players' strengths: it cannot if some ratings give every first
/// seat the same head start, as where one player always sits first.
pub fn advantage_is_identifiable<'a>(
    players: usize,
    pairings: impl Iterator<Item = (usize, usize, &'a Tally)>,
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

    /// Results from `winner > loser` and `one = other`.
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
    fn winners_of_everything_are_above() {
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
    fn what_cannot_be_compared_is_separate() {
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
    fn an_advantage_needs_both_seats() {
        let identifiable = |games: &[&str]| {
            let results = results(games);
            let tallies: Vec<Tally> =
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
