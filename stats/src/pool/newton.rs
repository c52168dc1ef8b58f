//! The largest likelihood of a pool: Newton's method on all players' ratings, the first seat's advantage and the draw rate
//! together.
//!
//! Within a block only differences count, so that each block's mean is held at zero. The advantage and the draw rate are
//! held within a box: data in which the first seat always wins, or everything is drawn, have their largest likelihood at
//! infinity, and get the edge of the box instead. Data without a draw have a draw rate of zero.

use nalgebra::{Cholesky, DMatrix, DVector};

use super::model::PairingTerms;
use super::results::Tally;
use crate::elo::{LARGEST_DIFFERENCE, POINTS_PER_LOGIT, logistic};

/// The largest advantage of the first seat, in log-odds.
const LARGEST_ADVANTAGE: f64 = LARGEST_DIFFERENCE / POINTS_PER_LOGIT;

/// The log-odds of the smallest and of the largest draw rate: a millionth of a millionth of a tenth, and all but a
/// millionth.
const DRAW_LOG_ODDS: (f64, f64) = (-30.0, 13.8);

/// The box of the parameters that all games share: the advantage and the draw rate's log-odds.
const BOX: [(f64, f64); 2] = [(-LARGEST_ADVANTAGE, LARGEST_ADVANTAGE), DRAW_LOG_ODDS];

/// A step changes no parameter by more, in log-odds: further away the quadratic model says nothing.
const LARGEST_STEP: f64 = 2.0;

/// A decrement (the squared error of the parameters in standard errors) below which a full step is sure to be one of
/// Newton's quadratic convergence, and one below which that step is the last.
const SURE: f64 = 1e-4;
const DONE: f64 = 1e-10;

/// What of a sum of many logarithms is noise.
const ROUNDING: f64 = 1e-13;

/// A bound on the iterations that is never met by a likelihood that rises with each.
const ITERATIONS: usize = 200;

/// What is fitted.
#[derive(Clone, Debug)]
pub struct Problem {
    /// How many players there are.
    pub players: usize,
    /// Who met whom, within blocks only: between blocks one side won everything, which the largest likelihood gives
    /// probability one.
    pub pairings: Vec<(usize, usize)>,
    /// The players whose mean rating is held at zero, for each block.
    pub blocks: Vec<Vec<usize>>,
    /// Whether the first seat's advantage is fitted; otherwise it is zero.
    pub advantage: bool,
    /// Whether the draw rate is fitted; otherwise nothing is drawn.
    pub draws: bool,
    /// Wins, and as many losses, of each player against a common opponent rated 0, who is then the scale's origin: no
    /// mean is held.
    pub prior: f64,
}

/// Values of everything that is fitted, in log-odds.
#[derive(Clone, Debug)]
pub struct Parameters {
    /// Of each player.
    pub ratings: Vec<f64>,
    /// What the first seat is worth.
    pub advantage: f64,
    /// Of the draw rate of equal players; minus infinity where nothing is drawn.
    pub draw: f64,
}

impl Parameters {
    /// The draw rate of equal players.
    pub fn draw_rate(&self) -> f64 {
        logistic(self.draw)
    }
}

impl Problem {
    /// How many parameters are free.
    pub fn freedom(&self) -> usize {
        let held = if self.prior > 0.0 { 0 } else { self.blocks.len() };
        self.players - held + usize::from(self.advantage) + usize::from(self.draws)
    }

    /// Where to start from without knowing better: equal players and the overall draw rate.
    pub fn start(&self, tallies: &[Tally]) -> Parameters {
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

    /// The parameters of the largest likelihood of `tallies`, one for each pairing.
    pub fn maximise(&self, tallies: &[Tally], start: Parameters) -> Parameters {
        let mut here = start;
        let mut slopes = self.slopes(tallies, &here, Curvature::Observed);
        for _ in 0..ITERATIONS {
            // Away from the summit the likelihood need not be concave; its expected curvature always is.
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
            // Far from the summit a step may overshoot it.
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

    /// Whether the advantage and the draw rate do not move: they are not fitted, or at an edge of their box.
    pub fn held(&self, at: &Parameters) -> [bool; 2] {
        let [advantage, draw] = at.at_edge();
        [!self.advantage || advantage, !self.draws || draw]
    }

    /// Newton's step. A parameter at the edge of its box that would leave it is held, and the others step without it:
    /// cutting it off alone would leave them where its change was to make up for theirs. Nothing where the information is
    /// not positive definite.
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

    /// The log-likelihood at some parameters, with its gradient and negated curvature, the information. Each
    /// block's mean has an information of its own, which makes the whole regular.
    pub fn slopes(&self, tallies: &[Tally], at: &Parameters, curvature: Curvature) -> Slopes {
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
            // The lower triangle is enough.
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

    /// Adds a square of each block's sum: gradients have no part along it, so that steps have none either.
    fn hold_means(&self, information: &mut DMatrix<f64>) {
        let largest = (0..self.players).map(|player| information[(player, player)]).fold(1.0, f64::max);
        for block in &self.blocks {
            let weight = largest / block.len() as f64;
            for (index, &column) in block.iter().enumerate() {
                for &row in &block[index..] {
                    information[(row, column)] += weight;
                }
            }
        }
    }
}

/// Which second derivatives to take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Curvature {
    /// Those of the data.
    Observed,
    /// Their expectation.
    Expected,
}

/// A log-likelihood with its derivatives.
#[derive(Clone, Debug)]
pub struct Slopes {
    pub value: f64,
    /// By the ratings, the advantage and the draw rate, in this order.
    pub gradient: DVector<f64>,
    /// In the same order; the lower triangle.
    pub information: DMatrix<f64>,
}

impl Slopes {
    /// The same with the advantage, the draw rate or both taken out of every step.
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
    /// The parameters a step away, the shared ones within their box.
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

    /// Whether the advantage and the draw rate are at an edge of their box.
    fn at_edge(&self) -> [bool; 2] {
        std::array::from_fn(|index| {
            let (value, (low, high)) = (self.shared()[index], BOX[index]);
            value <= low || value >= high
        })
    }

    fn shared(&self) -> [f64; 2] {
        [self.advantage, self.draw]
    }

    /// Whether the advantage and the draw rate are at an edge that a step crosses.
    fn leaves_box(&self, step: &DVector<f64>) -> [bool; 2] {
        std::array::from_fn(|index| {
            let (value, (low, high)) = (self.shared()[index], BOX[index]);
            let step = step[self.ratings.len() + index];
            (value <= low && step < 0.0) || (value >= high && step > 0.0)
        })
    }

    /// The share of a step that ends at the first edge it meets.
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
