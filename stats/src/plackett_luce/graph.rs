//! Comparability: the graph of "placed ahead of", its strong components, and the bounds that follow.
//!
//! Strengths of maximum likelihood are finite exactly if the graph has a path from every player to every other
//! (Hunter, "MM algorithms for generalized Bradley-Terry models", 2004, assumption 1).

use super::likelihood::{Kind, seats_of};
use crate::reachability::Reachability;

/// The side of a component's core on which a block lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// The block is the core.
    Core,
    /// The block placed ahead of core players and never behind.
    Above,
    /// The block placed behind core players and never ahead.
    Below,
}

/// Players whose strengths are finite relative to each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Block {
    pub members: Vec<usize>,
    pub side: Side,
    /// The players that move along when this block moves away from the core: those farther out.
    pub outward: Vec<usize>,
}

/// Comparable players: a core and the blocks only known to be above or below it, the nearest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Component {
    pub blocks: Vec<Block>,
}

impl Component {
    /// Returns all players in order.
    pub fn members(&self) -> Vec<usize> {
        let mut members: Vec<usize> = self.blocks.iter().flat_map(|block| block.members.clone()).collect();
        members.sort_unstable();
        members
    }

    /// Returns whether results order two players, directly or through others. Players of different blocks on the same side
    /// may have met the core only.
    pub fn compares(&self, one: usize, other: usize) -> bool {
        let block = |player| self.blocks.iter().find(|block| block.members.contains(&player));
        let (Some(first), Some(second)) = (block(one), block(other)) else { return false };
        first.side != second.side
            || first == second
            || first.outward.contains(&other)
            || second.outward.contains(&one)
    }
}

/// Returns the components of a pool, ordered by their smallest players.
pub(super) fn components<'a>(players: usize, kinds: impl Iterator<Item = &'a Kind>) -> Vec<Component> {
    let graph = reachability(players, kinds);
    let mut left: Vec<usize> = (0..players).collect();
    let mut found = Vec::new();
    while !left.is_empty() {
        // The core is the largest remaining strong component, among equals that with the smallest player.
        let strong = |&a: &usize| left.iter().copied().filter(|&b| graph.mutual(a, b)).collect::<Vec<_>>();
        let core = left.iter().map(strong).rev().max_by_key(Vec::len).expect("a player is left");
        let centre = core[0];
        let side_of = |player: usize| match (graph.reaches(player, centre), graph.reaches(centre, player)) {
            (true, true) => Some(Side::Core),
            (true, false) => Some(Side::Above),
            (false, true) => Some(Side::Below),
            (false, false) => None,
        };
        let mut blocks: Vec<Block> = Vec::new();
        for &player in &left {
            let Some(side) = side_of(player) else { continue };
            if blocks.iter().any(|block| graph.mutual(block.members[0], player)) {
                continue;
            }
            let members = strong(&player);
            let farther = |&other: &usize| match side {
                Side::Core => false,
                Side::Above => graph.reaches(other, player) && !graph.reaches(player, other),
                Side::Below => graph.reaches(player, other) && !graph.reaches(other, player),
            };
            let outward = left.iter().copied().filter(farther).collect();
            blocks.push(Block { members, side, outward });
        }
        // A block farther out has fewer players beyond it.
        blocks.sort_by_key(|block| (block.side != Side::Core, std::cmp::Reverse(block.outward.len())));
        left.retain(|&player| side_of(player).is_none());
        found.push(Component { blocks });
    }
    found.sort_by_key(Component::members);
    found
}

/// Returns the closure of "placed ahead of or tied with". Every player reaches itself.
fn reachability<'a>(players: usize, kinds: impl Iterator<Item = &'a Kind>) -> Reachability {
    let mut edges: Vec<(usize, usize)> = (0..players).map(|player| (player, player)).collect();
    for kind in kinds {
        for (place, &group) in kind.groups.iter().enumerate() {
            let last = place + 1 == kind.groups.len();
            let after = kind.groups[place + 1..].iter().fold(0, |set, later| set | later);
            let tied = if last && kind.last_undecided { 0 } else { group };
            for seat in seats_of(group) {
                edges.extend(seats_of(after | tied).map(|other| (kind.players[seat], kind.players[other])));
            }
        }
    }
    Reachability::new(players, edges)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn duel(winner: usize, loser: usize) -> Kind {
        Kind { players: vec![winner, loser], groups: vec![1, 2], last_undecided: false }
    }

    #[test]
    fn finds_cores_and_outer_blocks() {
        // 0 and 1 beat each other; 2 always beats 1; 3 always beats 2; 4 always loses to 0; 5 and 6 play apart.
        let games = [duel(0, 1), duel(1, 0), duel(2, 1), duel(3, 2), duel(0, 4), duel(5, 6), duel(6, 5)];
        let found = components(8, games.iter());
        let members: Vec<_> = found.iter().map(Component::members).collect();
        assert_eq!(members, [vec![0, 1, 2, 3, 4], vec![5, 6], vec![7]]);
        let blocks: Vec<_> =
            found[0].blocks.iter().map(|b| (b.members.clone(), b.side, b.outward.clone())).collect();
        assert_eq!(
            blocks,
            [
                (vec![0, 1], Side::Core, vec![]),
                (vec![2], Side::Above, vec![3]),
                (vec![3], Side::Above, vec![]),
                (vec![4], Side::Below, vec![]),
            ]
        );
        assert!(found[0].compares(0, 1) && found[0].compares(2, 3) && found[0].compares(4, 3));
        assert!(!found[0].compares(0, 5));
    }

    #[test]
    fn winners_that_never_met_are_not_compared() {
        let found = components(4, [duel(0, 1), duel(1, 0), duel(2, 1), duel(3, 1)].iter());
        assert!(found[0].compares(2, 0) && found[0].compares(0, 3) && !found[0].compares(2, 3));
    }

    #[test]
    fn players_below_a_common_winner_are_not_compared() {
        let games = [duel(0, 1), duel(1, 0), duel(2, 1), duel(2, 3)];
        let members: Vec<_> = components(4, games.iter()).iter().map(Component::members).collect();
        assert_eq!(members, [vec![0, 1, 2], vec![3]]);
    }

    #[test]
    fn undecided_places_are_not_compared() {
        let kind = |last_undecided| Kind { players: vec![0, 1, 2], groups: vec![1, 6], last_undecided };
        let decided = reachability(3, [kind(false)].iter());
        assert!(
            decided.reaches(1, 2) && decided.reaches(2, 1) && decided.reaches(0, 1) && !decided.reaches(1, 0)
        );
        let undecided = reachability(3, [kind(true)].iter());
        assert!(!undecided.reaches(1, 2) && !undecided.reaches(2, 1) && undecided.reaches(0, 2));
    }
}
