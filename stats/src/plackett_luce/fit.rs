//! Maximum likelihood by Newton's method, and bounds for players whose strength has no maximum.
//!
//! The log-likelihood is concave in strengths and seat effects (Hunter 2004, section 3). A ridge far below one game's
//! information makes its maximum unique and finite: it centres parameters of which only differences matter, keeps
//! seat effects small where the schedule confounds them with players, and stops divergent strengths at about 2000
//! Elo. Those are estimated with a prior instead, and bounded on one side.

use nalgebra::{DMatrix, DVector};

use super::Pool;
use super::graph::{Block, Component, Side, components};
use super::likelihood::Prepared;
use crate::elo::{LARGEST_DIFFERENCE, POINTS_PER_LOGIT};
use crate::pool::Bound;

/// The weight of half the squared parameters, in nats.
const RIDGE: f64 = 1e-6;

/// The same for a normal prior of some 550 Elo, for players who were always ahead or always behind.
const PRIOR: f64 = 0.1;

/// The allowed error of the maximum in nats: a hundred-thousandth of an Elo.
const PRECISION: f64 = 5e-8;

/// The origin of the scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// The mean of each component's core, that is of players without a bound.
    Mean,
    /// This player in its own component; the means elsewhere.
    Player(usize),
}

/// A player's strength.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Strength {
    /// The strength on the Elo scale, relative to the same component.
    pub elo: f64,
    /// The open side and the limit on the other, if the likelihood has no maximum: the strength at which the likelihood
    /// of the player's record is 5 % of its greatest, all else as fitted.
    pub bound: Option<(Bound, f64)>,
    /// The player's component.
    pub component: usize,
}

/// Fitted strengths and seat effects.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// The strengths by player.
    pub strengths: Vec<Strength>,
    /// The effects by seat on the Elo scale, with mean 0, shared by all components.
    pub seat_effects: Vec<f64>,
    /// The players of each component. Only strengths within a component can be compared.
    pub components: Vec<Vec<usize>>,
    /// The log-likelihood at its maximum, in nats.
    pub log_likelihood: f64,
}

/// The likelihood of a pool's games, without their counts.
pub(super) struct Model {
    players: usize,
    seats: usize,
    prepared: Vec<Prepared>,
    ridge: f64,
}

impl Model {
    pub fn new(pool: &Pool) -> Self {
        let prepared = pool.kinds.iter().map(Prepared::new).collect();
        Model { players: pool.players, seats: pool.seats, prepared, ridge: RIDGE }
    }

    /// Returns the model of a pool and its maximum, with a prior if strengths or seat effects have no maximum.
    pub fn fitted(pool: &Pool, components: &[Component]) -> (Self, Vec<f64>) {
        let mut model = Model::new(pool);
        let counts = pool.counts();
        let point = model.maximise(&counts, vec![0.0; model.size()]);
        let one_sided =
            components.iter().flat_map(|component| &component.blocks).any(|block| block.side != Side::Core);
        let largest = LARGEST_DIFFERENCE / POINTS_PER_LOGIT;
        if !one_sided && point[pool.players..].iter().all(|effect| effect.abs() < largest) {
            return (model, point);
        }
        model.ridge = PRIOR;
        let point = model.maximise(&counts, vec![0.0; model.size()]);
        (model, point)
    }

    /// Returns the number of parameters: strengths, then seat effects.
    pub fn size(&self) -> usize {
        self.players + self.seats
    }

    fn log_likelihood(&self, counts: &[f64], point: &[f64]) -> f64 {
        let (strengths, effects) = point.split_at(self.players);
        let played = self.prepared.iter().zip(counts).filter(|(_, count)| **count > 0.0);
        played.map(|(kind, count)| count * kind.value(strengths, effects)).sum()
    }

    fn objective(&self, counts: &[f64], point: &[f64]) -> f64 {
        let squares: f64 = point.iter().map(|parameter| parameter * parameter).sum();
        self.log_likelihood(counts, point) - self.ridge / 2.0 * squares
    }

    /// Returns the parameters of maximum likelihood, in nats, from a starting point.
    pub fn maximise(&self, counts: &[f64], mut point: Vec<f64>) -> Vec<f64> {
        // Newton's method needs few steps; the limit only stops rounding noise.
        for _ in 0..200 {
            let step = self.newton_step(counts, &point);
            let longest = step.iter().fold(0.0, |longest: f64, part| longest.max(part.abs()));
            let moved = |share: f64| -> Vec<f64> {
                point.iter().zip(step.iter()).map(|(from, part)| from + share * part).collect()
            };
            // Short steps converge quadratically; long ones are halved until they do not descend.
            let mut share = 1.0;
            if longest > 0.25 {
                share = f64::min(1.0, 4.0 / longest);
                let here = self.objective(counts, &point);
                while share > 1e-6 && self.objective(counts, &moved(share)) < here {
                    share /= 2.0;
                }
            }
            point = moved(share);
            // Near the maximum the error after a step is about the square of its length.
            if longest * longest < PRECISION {
                break;
            }
        }
        point
    }

    fn newton_step(&self, counts: &[f64], point: &[f64]) -> DVector<f64> {
        let size = self.size();
        let parts = point.split_at(self.players);
        let (mut gradient, mut information) = (DVector::zeros(size), DMatrix::zeros(size, size));
        for (kind, &count) in self.prepared.iter().zip(counts).filter(|(_, count)| **count > 0.0) {
            kind.add_derivatives(parts, count, &mut gradient, &mut information);
        }
        for (i, parameter) in point.iter().enumerate() {
            gradient[i] -= self.ridge * parameter;
            information[(i, i)] += self.ridge;
        }
        // A common shift of all strengths, or of all effects, only changes the ridge, whose maximum has the sum 0.
        // Curvature along both directions keeps the matrix well conditioned and the maximum in place.
        let curvature = 1.0 + information.trace() / size as f64;
        for (range, members) in [(0..self.players, self.players), (self.players..size, self.seats)] {
            let excess: f64 = point[range.clone()].iter().sum::<f64>() / members as f64;
            for i in range.clone() {
                gradient[i] -= curvature * excess / members as f64;
                for j in range.clone() {
                    information[(i, j)] += curvature / (members * members) as f64;
                }
            }
        }
        information.cholesky().expect("the ridge makes the information positive definite").solve(&gradient)
    }
}

/// Shifts each component so that its anchor is at 0.
pub(super) fn anchor_strengths(strengths: &mut [f64], components: &[Component], anchor: Anchor) {
    for component in components {
        let members = component.members();
        let origin = match anchor {
            Anchor::Player(player) if members.contains(&player) => strengths[player],
            _ => {
                let core = &component.blocks[0].members;
                core.iter().map(|&player| strengths[player]).sum::<f64>() / core.len() as f64
            }
        };
        members.iter().for_each(|&player| strengths[player] -= origin);
    }
}

pub(super) fn fit(pool: &Pool, anchor: Anchor) -> Fit {
    let components = components(pool.players, pool.kinds.iter());
    let (model, mut point) = Model::fitted(pool, &components);
    let counts = pool.counts();
    let log_likelihood = model.log_likelihood(&counts, &point);
    let seat_effects = point[pool.players..].iter().map(|nats| POINTS_PER_LOGIT * nats).collect();

    let mut shown = point[..pool.players].to_vec();
    let mut bounds = vec![None; pool.players];
    for component in &components {
        let members = component.members();
        // A bound depends on the games among the component's own players.
        let within = pool.kinds.iter().map(|kind| kind.players.iter().all(|player| members.contains(player)));
        let counts: Vec<f64> =
            within.zip(&counts).map(|(within, &count)| if within { count } else { 0.0 }).collect();
        for block in &component.blocks {
            place_at_bound(&model, &counts, &mut point, block);
            let bound = match block.side {
                Side::Core => continue,
                Side::Above => Bound::AtLeast,
                Side::Below => Bound::AtMost,
            };
            block.members.iter().for_each(|&player| bounds[player] = Some((bound, point[player])));
        }
    }
    for (strength, bound) in shown.iter_mut().zip(&bounds) {
        match bound {
            None => {}
            Some((Bound::AtLeast, limit)) => *strength = limit.max(*strength),
            Some((Bound::AtMost, limit)) => *strength = limit.min(*strength),
        }
    }
    let before = shown.clone();
    anchor_strengths(&mut shown, &components, anchor);
    let component_of = |player| components.iter().position(|component| component.members().contains(&player));
    let strength = |player: usize| {
        let moved = shown[player] - before[player];
        Strength {
            elo: POINTS_PER_LOGIT * shown[player],
            bound: bounds[player].map(|(bound, limit)| (bound, POINTS_PER_LOGIT * (limit + moved))),
            component: component_of(player).expect("every player is in a component"),
        }
    };
    Fit {
        strengths: (0..pool.players).map(strength).collect(),
        seat_effects,
        components: components.iter().map(Component::members).collect(),
        log_likelihood,
    }
}

/// Moves a block outside the core, with all blocks farther out, to where the likelihood is 5 % of its limit at
/// infinity.
fn place_at_bound(model: &Model, counts: &[f64], point: &mut [f64], block: &Block) {
    let outwards = match block.side {
        Side::Core => return,
        Side::Above => 1.0,
        Side::Below => -1.0,
    };
    // In nats; farther out a game's likelihood differs from its limit by less than rounding.
    let far = 60.0;
    let moved = |distance: f64| {
        let mut moved = point.to_vec();
        for &player in block.members.iter().chain(&block.outward) {
            moved[player] += outwards * distance;
        }
        moved
    };
    let target = model.log_likelihood(counts, &moved(far)) + 0.05_f64.ln();
    let (mut near, mut beyond) = (-far, far);
    while beyond - near > PRECISION {
        let middle = f64::midpoint(near, beyond);
        // The likelihood increases outwards: no player farther in ever placed ahead of the block.
        if model.log_likelihood(counts, &moved(middle)) < target {
            near = middle;
        } else {
            beyond = middle;
        }
    }
    let placed = moved(beyond);
    point.copy_from_slice(&placed);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distribution::seeded;
    use crate::plackett_luce::{Game, LowestPlaces};
    use rand::RngExt as _;

    fn duels(players: usize, results: &[(usize, usize, i32, usize)]) -> Pool {
        let mut pool = Pool::new(players, 2, LowestPlaces::Decided).unwrap();
        for &(first, second, payoff, count) in results {
            for _ in 0..count {
                pool.add(&[Game { players: vec![first, second], payoffs: vec![payoff, -payoff] }]).unwrap();
            }
        }
        pool
    }

    fn elo(fit: &Fit) -> Vec<f64> {
        fit.strengths.iter().map(|strength| strength.elo).collect()
    }

    /// With two seats the fit is a logistic regression of the score, here by slow gradient ascent.
    #[test]
    fn two_seats_match_bradley_terry() {
        let mut random = seeded(4, 0);
        let mut results = Vec::new();
        for first in 0..4 {
            for second in (0..4).filter(|&second| second != first) {
                results.extend([1, 0, -1].map(|payoff| (first, second, payoff, random.random_range(1..9))));
            }
        }
        let fit = duels(4, &results).fit(Anchor::Player(2));
        let (mut strengths, mut advantage) = ([0.0_f64; 4], 0.0_f64);
        for _ in 0..20_000 {
            let (mut gradient, mut slope) = ([0.0; 4], 0.0);
            for &(first, second, payoff, count) in &results {
                let expected = 1.0 / (1.0 + (strengths[second] - strengths[first] - advantage).exp());
                let excess = count as f64 * (f64::from(payoff + 1) / 2.0 - expected);
                gradient[first] += excess;
                gradient[second] -= excess;
                slope += excess;
            }
            strengths.iter_mut().zip(gradient).for_each(|(strength, part)| *strength += 0.01 * part);
            advantage += 0.01 * slope;
        }
        for player in 0..4 {
            let expected = POINTS_PER_LOGIT * (strengths[player] - strengths[2]);
            assert!((fit.strengths[player].elo - expected).abs() < 1e-3, "{fit:?} {strengths:?}");
        }
        let fitted = fit.seat_effects[0] - fit.seat_effects[1];
        assert!((fitted - POINTS_PER_LOGIT * advantage).abs() < 1e-3);
        assert!((fit.seat_effects[0] + fit.seat_effects[1]).abs() < 1e-6);
    }

    /// 60 wins, 30 draws, 10 losses are a score of 0.75: 190.85 Elo.
    #[test]
    fn three_quarter_score_is_191_elo() {
        let half = [(0, 1, 1, 30), (0, 1, 0, 15), (0, 1, -1, 5), (1, 0, -1, 30), (1, 0, 0, 15), (1, 0, 1, 5)];
        let fit = duels(2, &half).fit(Anchor::Player(1));
        assert!((fit.strengths[0].elo - 190.85).abs() < 0.005, "{fit:?}");
        assert!(fit.seat_effects[0].abs() < 1e-3);
        let centred = duels(2, &half).fit(Anchor::Mean);
        assert!((centred.strengths[0].elo + centred.strengths[1].elo).abs() < 1e-6);
    }

    /// Winning all of n games has probability 5 % where each is won with probability 0.05^(1/n).
    #[test]
    fn clean_record_gives_bound() {
        let pool = duels(3, &[(0, 1, 1, 10), (1, 0, 1, 10), (2, 1, 1, 10), (1, 2, -1, 10)]);
        let fit = pool.fit(Anchor::Player(1));
        assert_eq!(fit.strengths[0].bound, None);
        let Some((Bound::AtLeast, limit)) = fit.strengths[2].bound else { panic!("{fit:?}") };
        assert!(fit.strengths[2].elo > limit && fit.strengths[2].elo < 1500.0, "{fit:?}");
        assert_eq!(fit.components, [vec![0, 1, 2]]);
        // Seat effects make the two colours differ: solve for the bound directly.
        let advantage = (fit.seat_effects[0] - fit.seat_effects[1]) / POINTS_PER_LOGIT;
        let won = |nats: f64| 1.0 / (1.0 + (-nats).exp());
        let strength = limit / POINTS_PER_LOGIT;
        let probability = (won(strength + advantage) * won(strength - advantage)).powi(10);
        assert!((probability - 0.05).abs() < 1e-5, "{probability}");
        let lost = duels(3, &[(0, 1, 1, 10), (1, 0, 1, 10), (2, 1, -1, 10), (1, 2, 1, 10)]);
        let lost = lost.fit(Anchor::Player(1));
        let Some((Bound::AtMost, most)) = lost.strengths[2].bound else { panic!("{lost:?}") };
        assert!((most + limit).abs() < 1e-3);
        assert!((lost.strengths[2].elo + fit.strengths[2].elo).abs() < 1e-3);
    }

    #[test]
    fn chain_of_winners_has_increasing_bounds() {
        let pool = duels(4, &[(0, 1, 0, 20), (2, 1, 1, 10), (0, 2, -1, 10), (3, 2, 1, 10), (2, 3, -1, 10)]);
        let fit = pool.fit(Anchor::Player(0));
        let elo = elo(&fit);
        assert!(elo[2] > 0.0 && elo[3] > elo[2] && elo[3] < 1500.0, "{elo:?}");
        assert!(matches!(fit.strengths[3].bound, Some((Bound::AtLeast, _))));
    }

    #[test]
    fn components_are_rated_separately() {
        let apart = [(0, 1, 1, 6), (0, 1, -1, 2), (2, 3, 1, 1), (2, 3, -1, 1)];
        let mirrored: Vec<_> = apart.iter().map(|&(a, b, payoff, count)| (b, a, -payoff, count)).collect();
        let fit = duels(5, &[&apart[..], &mirrored].concat()).fit(Anchor::Player(1));
        assert_eq!(fit.components, [vec![0, 1], vec![2, 3], vec![4]]);
        let elo = elo(&fit);
        assert!((elo[0] - POINTS_PER_LOGIT * 3.0_f64.ln()).abs() < 1e-3 && elo[1] == 0.0, "{elo:?}");
        assert!(elo[2].abs() < 1e-3 && elo[3].abs() < 1e-3 && elo[4] == 0.0, "{elo:?}");
        assert_eq!(fit.strengths[3].component, 1);
    }

    #[test]
    fn empty_pool_and_winning_seat_stay_finite() {
        assert_eq!(elo(&duels(3, &[]).fit(Anchor::Mean)), [0.0; 3]);
        let fit = duels(2, &[(0, 1, 1, 50), (1, 0, 1, 50)]).fit(Anchor::Mean);
        assert!(elo(&fit).iter().all(|elo| elo.abs() < 1e-3), "{fit:?}");
        assert!(fit.seat_effects[0] > 200.0 && fit.seat_effects[0] < 1000.0, "{fit:?}");
    }

    /// A player in several seats is compared with the others, and its own seats with each other.
    #[test]
    fn rates_fewer_players_than_seats() {
        let mut pool = Pool::new(2, 3, LowestPlaces::Undecided).unwrap();
        for winner in [0, 0, 0, 1, 2] {
            let mut payoffs = vec![0; 3];
            payoffs[winner] = 1;
            pool.add(&[Game { players: vec![0, 0, 0], payoffs }]).unwrap();
        }
        let alone = pool.fit(Anchor::Mean);
        assert!(elo(&alone).iter().all(|elo| elo.abs() < 1e-6), "{alone:?}");
        let odds = alone.seat_effects[0] - alone.seat_effects[1];
        assert!((odds - POINTS_PER_LOGIT * 3.0_f64.ln()).abs() < 1e-2, "{alone:?}");
        // Player 1 in one of three seats wins half of the games: it is twice as strong as each of the other seats.
        let mut mixed = Pool::new(2, 3, LowestPlaces::Undecided).unwrap();
        for seat in 0..3 {
            for winner in [seat, seat, (seat + 1) % 3, (seat + 2) % 3] {
                let (mut players, mut payoffs) = (vec![0; 3], vec![0; 3]);
                players[seat] = 1;
                payoffs[winner] = 1;
                mixed.add(&[Game { players, payoffs }]).unwrap();
            }
        }
        let fit = mixed.fit(Anchor::Player(0));
        assert!((fit.strengths[1].elo - POINTS_PER_LOGIT * 2.0_f64.ln()).abs() < 1e-3, "{fit:?}");
    }

    #[test]
    fn rejects_mismatched_games() {
        assert!(Pool::new(3, 9, LowestPlaces::Decided).is_err());
        assert!(Pool::new(3, 1, LowestPlaces::Decided).is_err());
        let mut pool = Pool::new(3, 3, LowestPlaces::Decided).unwrap();
        for (players, payoffs, message) in [
            (vec![0, 1], vec![1, 0, 0], "3 seats, but this one has 2 players and 3 payoffs"),
            (vec![0, 1, 3], vec![1, 0, 0], "player 3 is not one of"),
        ] {
            let error = pool.add(&[Game { players, payoffs }]).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
        assert_eq!(pool.bouts(), 0);
    }
}
