//! The maximum likelihood of a pool: Newton's method on all ratings, the first seat's advantage and the draw rate.
//!
//! Within a component only differences matter, so each component's mean is held at zero. The advantage and the draw rate are
//! held within a box: data in which the first seat always wins, or everything is drawn, would diverge, and get the
//! edge of the box instead. Data without draws have a draw rate of zero.

use nalgebra::{Cholesky, DMatrix, DVector};

use super::model::PairingTerms;
use super::results::GameCounts;
use crate::elo::{LARGEST_DIFFERENCE, POINTS_PER_LOGIT, logistic};

/// The largest advantage of the first seat, in log-odds.
const LARGEST_ADVANTAGE: f64 = LARGEST_DIFFERENCE / POINTS_PER_LOGIT;

/// The log-odds of the smallest and the largest draw rate: 1e-13 and all but a millionth.
const DRAW_LOG_ODDS: (f64, f64) = (-30.0, 13.8);

/// The box of the shared parameters: the advantage and the draw rate's log-odds.
const BOX: [(f64, f64); 2] = [(-LARGEST_ADVANTAGE, LARGEST_ADVANTAGE), DRAW_LOG_ODDS];

/// The largest change of a parameter per step, in log-odds: farther away the quadratic model fails.
const LARGEST_STEP: f64 = 2.0;

/// The decrement (the squared error of the parameters in standard errors) below which full steps converge
/// quadratically, and the one below which a step is the last.
const SURE: f64 = 1e-4;
const DONE: f64 = 1e-10;

/// The relative rounding error of a sum of many logarithms.
const ROUNDING: f64 = 1e-13;

/// An iteration limit that an increasing likelihood never reaches.
const ITERATIONS: usize = 200;

/// The problem to maximise.
#[derive(Clone, Debug)]
pub struct Problem {
    /// The number of players.
    pub players: usize,
    /// The pairings.
    pub pairings: Vec<(usize, usize)>,
    /// The players of each component, whose mean rating is held at zero.
    pub components: Vec<Vec<usize>>,
    /// Whether the first seat's advantage is fitted; otherwise it is 0.
    pub advantage: bool,
    /// Whether the draw rate is fitted; otherwise it is 0.
    pub draws: bool,
    /// Imaginary wins, and as many losses, of each player against an opponent rated 0, who is then the scale's
    /// origin: no mean is held.
    pub prior: f64,
}

/// The fitted parameters, in log-odds.
#[derive(Clone, Debug)]
pub struct Parameters {
    /// The ratings.
    pub ratings: Vec<f64>,
    /// The first seat's advantage.
    pub advantage: f64,
    /// The draw rate of equal players; minus infinity without draws.
    pub draw: f64,
}

impl Parameters {
    /// Returns the draw rate of equal players.
    pub fn draw_rate(&self) -> f64 {
        logistic(self.draw)
    }
}

impl Problem {
    /// Returns the number of free parameters.
    pub fn freedom(&self) -> usize {
        let held = if self.prior > 0.0 { 0 } else { self.components.len() };
        self.players - held + usize::from(self.advantage) + usize::from(self.draws)
    }

    /// Returns the starting point: equal players and the overall draw rate.
    pub fn start(&self, tallies: &[GameCounts]) -> Parameters {
        let mut totals = [0.0; 3];
        for tally in tallies {
            totals.iter_mut().zip(tally.total()).for_each(|(total, games)| *total += games);
        }
        let [losses, draws, wins] = totals;
        let draw = if self.draws {
            (draws / (wins + losses)).ln().clamp(DRAW_LOG_ODDS.0, DRAW_LOG_ODDS.1)
        } else {
            f64::NEG_INFINITY
        };
        Parameters { ratings: vec![0.0; self.players], advantage: 0.0, draw }
    }

    /// Returns the parameters that maximise the likelihood of `tallies`, one per pairing.
    pub fn maximise(&self, tallies: &[GameCounts], start: Parameters) -> Parameters {
        let mut here = start;
        let mut slopes = self.slopes(tallies, &here, Curvature::Observed);
        for _ in 0..ITERATIONS {
            // Far from the maximum the likelihood may not be concave; its expected curvature always is.
            let step = self
                .step(&slopes, &here)
                .or_else(|| self.step(&self.slopes(tallies, &here, Curvature::Expected), &here));
            let Some(mut step) = step else { break };
            let decrement = step.dot(&slopes.gradient);
            let share = here.share_within_box(&step).min(LARGEST_STEP / step.amax());
            step *= share.min(1.0);
            let mut there = here.moved(&step);
            if decrement < DONE && share >= 1.0 {
                return there;
            }
            let mut slopes_there = self.slopes(tallies, &there, Curvature::Observed);
            // Far from the maximum a step may overshoot.
            let least = slopes.value - ROUNDING * slopes.value.abs();
            while decrement > SURE && slopes_there.value < least && step.amax() > 1e-12 {
                step *= 0.5;
                there = here.moved(&step);
                slopes_there = self.slopes(tallies, &there, Curvature::Observed);
            }
            (here, slopes) = (there, slopes_there);
        }
        here
    }

    /// Returns whether the advantage and the draw rate are fixed: not fitted, or at an edge of their box.
    pub fn held(&self, at: &Parameters) -> [bool; 2] {
        let [advantage, draw] = at.at_edge();
        [!self.advantage || advantage, !self.draws || draw]
    }

    /// Returns whether the advantage or the draw rate was fitted and ended at an edge of its box.
    pub fn diverged(&self, at: &Parameters) -> bool {
        let [advantage, draw] = at.at_edge();
        (self.advantage && advantage) || (self.draws && draw)
    }

    /// Returns Newton's step; `None` if the information is not positive definite. A parameter that would leave its
    /// box is held and the step is computed again, because the other steps account for its change.
    fn step(&self, slopes: &Slopes, at: &Parameters) -> Option<DVector<f64>> {
        let mut held = [!self.advantage, !self.draws];
        loop {
            let Slopes { gradient, information, .. } = slopes.clone().holding(held);
            let step = Cholesky::new(information)?.solve(&gradient);
            let outward = at.leaves_box(&step);
            if (0..2).all(|shared| held[shared] || !outward[shared]) {
                return Some(step);
            }
            held = std::array::from_fn(|shared| held[shared] || outward[shared]);
        }
    }

    /// Returns the log-likelihood with its gradient and information (the negated curvature). Each component's
    /// mean has its own information, which makes the matrix regular.
    pub fn slopes(&self, tallies: &[GameCounts], at: &Parameters, curvature: Curvature) -> Slopes {
        let (advantage, draw) = (self.players, self.players + 1);
        let mut value = 0.0;
        let mut gradient = DVector::zeros(self.players + 2);
        let mut information = DMatrix::zeros(self.players + 2, self.players + 2);
        let rate = at.draw_rate();
        for (&(one, other), tally) in self.pairings.iter().zip(tallies) {
            let terms = PairingTerms::new(at.ratings[one] - at.ratings[other], at.advantage, rate, tally);
            let second = match curvature {
                Curvature::Observed => &terms.hessian,
                Curvature::Expected => &terms.expected,
            };
            value += terms.value;
            gradient[one] += terms.gradient[0];
            gradient[other] -= terms.gradient[0];
            gradient[advantage] += terms.gradient[1];
            gradient[draw] += terms.gradient[2];
            // Only the lower triangle is used.
            information[(one, one)] -= second[0][0];
            information[(other, other)] -= second[0][0];
            information[(one.max(other), one.min(other))] += second[0][0];
            for (row, second) in [(advantage, second[0][1]), (draw, second[0][2])] {
                information[(row, one)] -= second;
                information[(row, other)] += second;
            }
            information[(advantage, advantage)] -= second[1][1];
            information[(draw, advantage)] -= second[1][2];
            information[(draw, draw)] -= second[2][2];
        }
        if self.prior > 0.0 {
            for (player, &rating) in at.ratings.iter().enumerate() {
                let (score, against) = (logistic(rating), logistic(-rating));
                value += self.prior * (score * against).ln();
                gradient[player] += self.prior * (against - score);
                information[(player, player)] += 2.0 * self.prior * score * against;
            }
        } else {
            self.hold_means(&mut information);
        }
        Slopes { value, gradient, information }
    }

    /// Adds the square of each component's sum. Gradients have no component along it, so steps have none either.
    fn hold_means(&self, information: &mut DMatrix<f64>) {
        let largest = (0..self.players).map(|player| information[(player, player)]).fold(1.0, f64::max);
        for members in &self.components {
            let weight = largest / members.len() as f64;
            for (index, &column) in members.iter().enumerate() {
                for &row in &members[index..] {
                    information[(row, column)] += weight;
                }
            }
        }
    }
}

/// The second derivatives to use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Curvature {
    /// Of the data.
    Observed,
    /// Their expectation.
    Expected,
}

/// A log-likelihood with its derivatives.
#[derive(Clone, Debug)]
pub struct Slopes {
    pub value: f64,
    /// The derivatives by the ratings, the advantage and the draw rate.
    pub gradient: DVector<f64>,
    /// The information in the same order; the lower triangle.
    pub information: DMatrix<f64>,
}

impl Slopes {
    /// Returns the derivatives with held parameters removed from every step.
    pub fn holding(mut self, held: [bool; 2]) -> Self {
        let players = self.gradient.len() - held.len();
        for (index, _) in (players..).zip(held).filter(|(_, held)| *held) {
            self.gradient[index] = 0.0;
            self.information.row_mut(index).fill(0.0);
            self.information.column_mut(index).fill(0.0);
            self.information[(index, index)] = 1.0;
        }
        self
    }
}

impl Parameters {
    /// Returns the parameters after a step, the shared ones within their box.
    pub fn moved(&self, step: &DVector<f64>) -> Self {
        let players = self.ratings.len();
        let shared: [f64; 2] = std::array::from_fn(|index| {
            let (value, (low, high)) = (self.shared()[index], BOX[index]);
            if value.is_finite() { (value + step[players + index]).clamp(low, high) } else { value }
        });
        Parameters {
            ratings: self.ratings.iter().zip(step.iter()).map(|(rating, step)| rating + step).collect(),
            advantage: shared[0],
            draw: shared[1],
        }
    }

    /// Returns whether the advantage and the draw rate are at an edge of their box.
    fn at_edge(&self) -> [bool; 2] {
        std::array::from_fn(|index| {
            let (value, (low, high)) = (self.shared()[index], BOX[index]);
            value <= low || value >= high
        })
    }

    fn shared(&self) -> [f64; 2] {
        [self.advantage, self.draw]
    }

    /// Returns whether the step takes the advantage and the draw rate out of their box.
    fn leaves_box(&self, step: &DVector<f64>) -> [bool; 2] {
        std::array::from_fn(|index| {
            let (value, (low, high)) = (self.shared()[index], BOX[index]);
            let step = step[self.ratings.len() + index];
            (value <= low && step < 0.0) || (value >= high && step > 0.0)
        })
    }

    /// Returns the share of a step up to the first edge of the box.
    fn share_within_box(&self, step: &DVector<f64>) -> f64 {
        let share = |index: usize| {
            let (value, (low, high)) = (self.shared()[index], BOX[index]);
            let step = step[self.ratings.len() + index];
            let room = if step > 0.0 { high - value } else { value - low };
            if step == 0.0 { f64::INFINITY } else { room / step.abs() }
        };
        share(0).min(share(1))
    }
}
