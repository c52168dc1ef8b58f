//! The log-likelihood of a ranking, with gradient and Hessian in the utilities of the seats.
//!
//! With utilities u and the sum L(S) of exp(u) over a set S of seats, an order of the seats a, b, c, ... has the
//! log-likelihood sum u - ln L(all) - ln L(all but a) - ... A tied group counts with the mean over its orders. In t!
//! orders a subset of size s is first in s! (t - s)! of them, so the mean needs no enumeration of orders: each subset
//! S of the placed group has the weight 1 / binomial(t, s) and the term ln L(the rest without S).

use nalgebra::{DMatrix, DVector};

/// A distinct game: equal games have equal likelihoods and are counted together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Kind {
    /// The player of each seat.
    pub players: Vec<usize>,
    /// The sets of tied seats as bits, from the first place to the last.
    pub groups: Vec<u8>,
    /// Whether the order within the last group is undecided; its likelihood is then one.
    pub last_undecided: bool,
}

/// A weighted term ln L(set) of a log-likelihood.
#[derive(Clone, Copy, Debug)]
struct Term {
    set: u8,
    weight: f64,
}

/// A prepared game: log-likelihood = sum over `placed` of u - sum over `terms` of weight ln L(set).
#[derive(Clone, Debug)]
pub(super) struct Prepared {
    /// The player of each seat.
    players: Vec<usize>,
    /// The seats with a decided place.
    placed: u8,
    terms: Vec<Term>,
}

/// Returns the seats of a set.
pub(super) fn seats_of(set: u8) -> impl Iterator<Item = usize> {
    (0..8).filter(move |seat| set >> seat & 1 == 1)
}

impl Prepared {
    pub fn new(kind: &Kind) -> Self {
        let mut remaining = kind.groups.iter().fold(0, |all, group| all | group);
        let (mut placed, mut terms) = (0, Vec::new());
        for (place, &group) in kind.groups.iter().enumerate() {
            if kind.last_undecided && place + 1 == kind.groups.len() {
                break;
            }
            let size = group.count_ones();
            // All proper subsets of the group, starting with the empty set.
            let mut subset = 0u8;
            while subset != group {
                let weight = 1.0 / binomial(size, subset.count_ones());
                terms.push(Term { set: remaining & !subset, weight });
                subset = subset.wrapping_sub(group) & group;
            }
            placed |= group;
            remaining &= !group;
        }
        Prepared { players: kind.players.clone(), placed, terms }
    }

    /// Returns the utility of each seat in nats, the player's strength plus the seat's effect, relative to the
    /// greatest.
    fn utilities(&self, strengths: &[f64], effects: &[f64]) -> [f64; 8] {
        let mut utilities = [f64::NEG_INFINITY; 8];
        for (seat, &player) in self.players.iter().enumerate() {
            utilities[seat] = strengths[player] + effects[seat];
        }
        let greatest = utilities.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        utilities.map(|utility| utility - greatest)
    }

    /// Returns the log-likelihood.
    pub fn value(&self, strengths: &[f64], effects: &[f64]) -> f64 {
        // The origin cancels: there are as many placed seats as the weights' sum.
        let utilities = self.utilities(strengths, effects);
        let weights = utilities.map(f64::exp);
        let decided: f64 = seats_of(self.placed).map(|seat| utilities[seat]).sum();
        let sum = |set: u8| seats_of(set).map(|seat| weights[seat]).sum::<f64>();
        decided - self.terms.iter().map(|term| term.weight * sum(term.set).ln()).sum::<f64>()
    }

    /// Adds `count` times the gradient and the negative Hessian over the players' strengths and then the seats'
    /// effects.
    pub fn add_derivatives(
        &self,
        (strengths, effects): (&[f64], &[f64]),
        count: f64,
        gradient: &mut DVector<f64>,
        information: &mut DMatrix<f64>,
    ) {
        let utilities = self.utilities(strengths, effects);
        let weights = utilities.map(f64::exp);
        let (mut first, mut second) = ([0.0; 8], [[0.0; 8]; 8]);
        for seat in seats_of(self.placed) {
            first[seat] += 1.0;
        }
        for term in &self.terms {
            // Loops of fixed length over whole arrays: seats outside the set have the share 0.
            let mut shares = [0.0; 8];
            for seat in 0..8 {
                shares[seat] = if term.set >> seat & 1 == 1 { weights[seat] } else { 0.0 };
            }
            let scale = 1.0 / shares.iter().sum::<f64>();
            shares.iter_mut().for_each(|share| *share *= scale);
            for seat in 0..8 {
                let weighted = term.weight * shares[seat];
                first[seat] -= weighted;
                second[seat][seat] += weighted;
                for other in 0..8 {
                    second[seat][other] -= weighted * shares[other];
                }
            }
        }
        let players = strengths.len();
        for (seat, &player) in self.players.iter().enumerate() {
            gradient[player] += count * first[seat];
            gradient[players + seat] += count * first[seat];
            for (other, &opponent) in self.players.iter().enumerate() {
                let entry = count * second[seat][other];
                information[(player, opponent)] += entry;
                information[(player, players + other)] += entry;
                information[(players + seat, opponent)] += entry;
                information[(players + seat, players + other)] += entry;
            }
        }
    }
}

fn binomial(n: u32, k: u32) -> f64 {
    (0..k).fold(1.0, |product, i| product * f64::from(n - i) / f64::from(i + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distribution::seeded;
    use crate::plackett_luce::ranking::read;
    use crate::plackett_luce::{Game, LowestPlaces};
    use rand::RngExt as _;

    /// Returns all orders of the items.
    fn orders(items: &[usize]) -> Vec<Vec<usize>> {
        if items.is_empty() {
            return vec![Vec::new()];
        }
        let mut all = Vec::new();
        for (place, &first) in items.iter().enumerate() {
            let mut rest = items.to_vec();
            rest.remove(place);
            all.extend(orders(&rest).into_iter().map(|order| [vec![first], order].concat()));
        }
        all
    }

    /// Returns the probability of exactly this order of the seats.
    fn order_probability(order: &[usize], utilities: &[f64]) -> f64 {
        let weight = |seat: &usize| utilities[*seat].exp();
        (0..order.len()).map(|i| weight(&order[i]) / order[i..].iter().map(weight).sum::<f64>()).product()
    }

    /// Returns the log-likelihood by definition: the mean over orders of tied groups of the logarithm of the sum over
    /// orders of the undecided.
    fn enumerated(game: &Game, lowest: LowestPlaces, utilities: &[f64]) -> f64 {
        let mut paid = game.payoffs.clone();
        paid.sort_unstable();
        paid.dedup();
        let last = paid[0];
        let mut beginnings = vec![Vec::new()];
        let mut endings = vec![Vec::new()];
        for payoff in paid.iter().rev() {
            let group: Vec<usize> =
                (0..game.payoffs.len()).filter(|&seat| game.payoffs[seat] == *payoff).collect();
            if *payoff == last && lowest == LowestPlaces::Undecided && paid.len() > 1 {
                endings = orders(&group);
            } else {
                let extend = |beginning: &Vec<usize>| {
                    orders(&group)
                        .into_iter()
                        .map(|order| [beginning.clone(), order].concat())
                        .collect::<Vec<_>>()
                };
                beginnings = beginnings.iter().flat_map(extend).collect();
            }
        }
        let logarithm = |beginning: &Vec<usize>| {
            let whole = endings.iter().map(|ending| [beginning.clone(), ending.clone()].concat());
            whole.map(|order| order_probability(&order, utilities)).sum::<f64>().ln()
        };
        beginnings.iter().map(logarithm).sum::<f64>() / beginnings.len() as f64
    }

    fn random_game(seats: usize, stream: u64) -> (Game, Vec<f64>, Vec<f64>) {
        let mut random = seeded(21, stream);
        let players = (0..seats).map(|_| random.random_range(0..4)).collect();
        let payoffs = (0..seats).map(|_| random.random_range(0..3)).collect();
        let strengths = (0..4).map(|_| random.random_range(-2.0..2.0)).collect();
        let effects = (0..seats).map(|_| random.random_range(-1.0..1.0)).collect();
        (Game { players, payoffs }, strengths, effects)
    }

    #[test]
    fn likelihood_matches_enumerated_orders() {
        for seats in 2..=6 {
            for stream in 0..30 {
                let (game, strengths, effects) = random_game(seats, stream);
                let seat_utility = |(seat, player): (usize, &usize)| strengths[*player] + effects[seat];
                let utilities: Vec<f64> = game.players.iter().enumerate().map(seat_utility).collect();
                for lowest in [LowestPlaces::Decided, LowestPlaces::Undecided] {
                    let kind = read(&game, 4, seats, lowest).unwrap();
                    let value = Prepared::new(&kind).value(&strengths, &effects);
                    let expected = enumerated(&game, lowest, &utilities);
                    assert!((value - expected).abs() < 1e-10, "{game:?} {lowest:?}: {value} not {expected}");
                }
            }
        }
    }

    #[test]
    fn full_tie_ignores_lowest_places() {
        let game = Game { players: vec![0, 1, 2], payoffs: vec![1, 1, 1] };
        let decided = read(&game, 3, 3, LowestPlaces::Decided).unwrap();
        assert_eq!(decided, read(&game, 3, 3, LowestPlaces::Undecided).unwrap());
        assert_eq!(Prepared::new(&decided).placed, 0b111);
    }

    #[test]
    fn eight_tied_seats_need_255_terms() {
        let game = Game { players: vec![0; 8], payoffs: vec![0; 8] };
        let prepared = Prepared::new(&read(&game, 1, 8, LowestPlaces::Decided).unwrap());
        assert_eq!(prepared.terms.len(), 255);
        // Equal utilities: every order has probability 1/8!.
        assert!((prepared.value(&[0.3], &[0.0; 8]) + 40_320_f64.ln()).abs() < 1e-10);
    }

    #[test]
    fn derivatives_match_finite_differences() {
        for seats in 2..=5 {
            for stream in 0..10 {
                let (game, strengths, effects) = random_game(seats, stream);
                let kind = read(&game, 4, seats, LowestPlaces::Undecided).unwrap();
                let prepared = Prepared::new(&kind);
                let size = 4 + seats;
                let at = |point: &[f64]| {
                    let (mut gradient, mut information) = (DVector::zeros(size), DMatrix::zeros(size, size));
                    prepared.add_derivatives(point.split_at(4), 2.0, &mut gradient, &mut information);
                    (2.0 * prepared.value(&point[..4], &point[4..]), gradient, information)
                };
                let point = [strengths, effects].concat();
                let (_, gradient, information) = at(&point);
                for i in 0..size {
                    let (mut above, mut below) = (point.clone(), point.clone());
                    above[i] += 1e-5;
                    below[i] -= 1e-5;
                    let (value_above, gradient_above, _) = at(&above);
                    let (value_below, gradient_below, _) = at(&below);
                    assert!((gradient[i] - (value_above - value_below) / 2e-5).abs() < 1e-8);
                    for j in 0..size {
                        let slope = (gradient_above[j] - gradient_below[j]) / 2e-5;
                        assert!((information[(i, j)] + slope).abs() < 1e-8);
                    }
                }
            }
        }
    }
}
