//! What can be compared: the graph of who came before whom, its strong components, and what follows for strengths.
//!
//! The strengths of maximal likelihood are finite just where from every player to every other there is a path of
//! "came before in some game" (Hunter, "MM algorithms for generalized Bradley-Terry models", 2004, assumption 1).

use super::likelihood::{Kind, seats_of};

/// Where a strong component stands to the core of its component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// It is the core.
    Core,
    /// It came before players of the core and never after.
    Above,
    /// It came after players of the core and never before.
    Below,
}

/// Players whose strengths are finite relative to each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Block {
    pub members: Vec<usize>,
    pub side: Side,
    /// The blocks' members that move along when this block moves away from the core: those still farther out.
    pub outward: Vec<usize>,
}

/// Players who can be compared: a core and those who are only known to be above or below it. The blocks nearer to the
/// core come first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Component {
    pub blocks: Vec<Block>,
}

impl Component {
    /// All its players, in order.
    pub fn members(&self) -> Vec<usize> {
        let mut members: Vec<usize> = self.blocks.iter().flat_map(|block| block.members.clone()).collect();
        members.sort_unstable();
        members
    }
}

/// The components of a pool of `players` players, the first by their smallest player first.
pub(super) fn components<'a>(players: usize, kinds: impl Iterator<Item = &'a Kind>) -> Vec<Component> {
    let reaches = reachability(players, kinds);
    let mutual = |a: usize, b: usize| reaches[a][b] && reaches[b][a];
    let mut left: Vec<usize> = (0..players).collect();
    let mut found = Vec::new();
    while !left.is_empty() {
        // The core is the largest strong component of those left, the one with the smallest player among equals.
        let strong = |&a: &usize| left.iter().copied().filter(|&b| mutual(a, b)).collect::<Vec<_>>();
        let core = left.iter().map(strong).rev().max_by_key(Vec::len).expect("a player is left");
        let centre = core[0];
        let side_of = |player: usize| match (reaches[player][centre], reaches[centre][player]) {
            (true, true) => Some(Side::Core),
            (true, false) => Some(Side::Above),
            (false, true) => Some(Side::Below),
            (false, false) => None,
        };
        let mut blocks: Vec<Block> = Vec::new();
        for &player in &left {
            let Some(side) = side_of(player) else { continue };
            if blocks.iter().any(|block| mutual(block.members[0], player)) {
                continue;
            }
            let members = strong(&player);
            let farther = |&other: &usize| match side {
                Side::Core => false,
                Side::Above => reaches[other][player] && !reaches[player][other],
                Side::Below => reaches[player][other] && !reaches[other][player],
            };
            let outward = left.iter().copied().filter(farther).collect();
            blocks.push(Block { members, side, outward });
        }
        // What lies farther out than a block has fewer players farther out still.
        blocks.sort_by_key(|block| (block.side != Side::Core, std::cmp::Reverse(block.outward.len())));
        left.retain(|&player| side_of(player).is_none());
        found.push(Component { blocks });
    }
    found.sort_by_key(Component::members);
    found
}

/// `reaches[a][b]`: there is a path of "came before or shared a place" from a to b. Every player reaches itself.
fn reachability<'a>(players: usize, kinds: impl Iterator<Item = &'a Kind>) -> Vec<Vec<bool>> {
    let mut reaches: Vec<Vec<bool>> = (0..players).map(|a| (0..players).map(|b| a == b).collect()).collect();
    for kind in kinds {
        for (place, &group) in kind.groups.iter().enumerate() {
            let last = place + 1 == kind.groups.len();
            for seat in seats_of(group) {
                let after = kind.groups[place + 1..].iter().fold(0, |set, later| set | later);
                let tied = if last && kind.last_undecided { 0 } else { group };
                for other in seats_of(after | tied) {
                    reaches[kind.players[seat]][kind.players[other]] = true;
                }
            }
        }
    }
    // Warshall's closure.
    for middle in 0..players {
        let onward = reaches[middle].clone();
        for from in &mut reaches {
            if from[middle] {
                from.iter_mut().zip(&onward).for_each(|(to, reached)| *to |= reached);
            }
        }
    }
    reaches
}

#[cfg(test)]
mod tests {
    use super::*;

    fn duel(winner: usize, loser: usize) -> Kind {
        Kind { players: vec![winner, loser], groups: vec![1, 2], last_undecided: false }
    }

    #[test]
    fn cores_and_what_is_beyond_them() {
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
    }

    #[test]
    fn players_below_a_common_winner_are_not_compared() {
        let games = [duel(0, 1), duel(1, 0), duel(2, 1), duel(2, 3)];
        let members: Vec<_> = components(4, games.iter()).iter().map(Component::members).collect();
        assert_eq!(members, [vec![0, 1, 2], vec![3]]);
    }

    #[test]
    fn undecided_places_compare_nobody_and_ties_both_ways() {
        let kind = |last_undecided| Kind { players: vec![0, 1, 2], groups: vec![1, 6], last_undecided };
        let decided = reachability(3, [kind(false)].iter());
        assert!(decided[1][2] && decided[2][1] && decided[0][1] && !decided[1][0]);
        let undecided = reachability(3, [kind(true)].iter());
        assert!(!undecided[1][2] && !undecided[2][1] && undecided[0][2]);
    }
}
