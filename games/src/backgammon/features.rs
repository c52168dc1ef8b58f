//! The features of the linear evaluation.
//!
//! The weighted sum estimates the expected payoff. The weights are a least-squares fit to payoffs of self-play games,
//! repeated until convergence. `anchors` is negative because a side that needs an anchor against a strong home board
//! loses more often than the pip count suggests. From `borne_off` on, a value is the difference between the two sides.

use super::Backgammon;
use super::side::{BAR, BAR_PLACE, HOME, POINTS, Side, mirrored};
use crate::game::{Feature, FeatureSet, Features, Seat, features, sign};

features! {
    LEAD = "pip_count", 0.0115, "the lead in pips, up to 100";
    SHOTS = "shots", 0.0038, "rolls of 36 that hit a blot, for the side to move";
    RACE = "race", 0.0022, "without contact, the lead in hundredths of its standard deviation";
    TURN = "turn", 0.055, "1 for the side to move, else -1";
    BORNE_OFF = "borne_off", 0.075, "checkers borne off";
    _ = "saved", 0.15, "1 after bearing off a checker, which averts a gammon";
    _ = "bar", 0.035, "checkers of the other side on the bar";
    _ = "back_checkers", 0.05, "the other side's checkers on the bar or in this side's home";
    _ = "blots", 0.02, "blots of the other side that can still be hit";
    _ = "home_points", 0.09, "points held at home";
    _ = "outer_points", 0.024, "points held outside both homes";
    _ = "anchors", -0.03, "with an anchor in the other side's home, the points that side holds there";
    _ = "prime", 0.0155, "the longest run of held points ahead of a checker of the other side, squared";
    _ = "shut_out", 0.01, "points held at home while the other side is on the bar";
}

impl Features for Backgammon {
    const FEATURES: &'static [Feature] = FEATURES;

    fn features(&self, seat: Seat, wanted: FeatureSet, values: &mut [i32]) {
        let (own, other) = (&self.sides[seat.index()], &self.sides[seat.other().index()]);
        let turn = sign(self.mover() == seat);
        let contact = highest(own) + highest(other) > BAR_PLACE;
        let (pips, other_pips) = (own.pips() as i32, other.pips() as i32);
        let lead = other_pips - pips;
        values[LEAD] = lead.clamp(-100, 100);
        values[TURN] = turn;
        values[SHOTS] = 0;
        values[RACE] = 0;
        if !contact {
            // The next roll is worth half a roll, about 4 pips, to the side to move.
            values[RACE] = race(lead + 4 * turn, pips + other_pips);
        } else if wanted.has(SHOTS) {
            values[SHOTS] = turn * shots(self.own(), self.other()) as i32;
        }
        if (BORNE_OFF..values.len()).any(|index| wanted.has(index)) {
            let sides = side_values(own, other, contact).into_iter().zip(side_values(other, own, contact));
            for (value, (own, other)) in values[BORNE_OFF..].iter_mut().zip(sides) {
                *value = own - other;
            }
        }
    }
}

/// Returns the highest place with a checker, 0 if all are borne off.
fn highest(side: &Side) -> u32 {
    side.occupied().checked_ilog2().unwrap_or(0)
}

/// Returns the lead in a race in hundredths of its standard deviation, up to two deviations. A roll moves 49/6 pips with
/// a deviation of 4.3; both sides together need `pips`.
fn race(lead: i32, pips: i32) -> i32 {
    let deviation = 1.0 + 4.3 * (f64::from(pips) * 6.0 / 49.0).sqrt();
    ((100.0 * f64::from(lead) / deviation) as i32).clamp(-200, 200)
}

/// Returns one side's values of the features from `BORNE_OFF` on.
fn side_values(side: &Side, against: &Side, contact: bool) -> [i32; FEATURES.len() - BORNE_OFF] {
    let count = |places: u32| places.count_ones() as i32;
    let other_home = mirrored(HOME);
    let points = side.points();
    let home_points = count(points & HOME);
    let on_bar = against.occupied() & BAR != 0;
    // The points that the rearmost enemy checker still has to pass.
    let enemies = mirrored(against.occupied());
    let rearmost = if on_bar { 1 } else { enemies & enemies.wrapping_neg() };
    let ahead = POINTS & rearmost.wrapping_neg();
    // Each step shortens every run of held points by one, so the steps count the longest.
    let mut runs = points & ahead;
    let mut prime = 0;
    while runs != 0 {
        prime += 1;
        runs &= runs >> 1;
    }
    [
        side.off() as i32,
        i32::from(side.off() > 0),
        -(side.count(BAR_PLACE) as i32),
        -(side.sum(other_home | BAR) as i32),
        -count(side.blots() & ahead),
        home_points,
        count(points & !HOME & !other_home),
        if contact && points & other_home != 0 { count(against.points() & HOME) } else { 0 },
        prime * prime,
        if on_bar { home_points } else { 0 },
    ]
}

/// Counts the rolls of 36 with which `own` can hit a blot. Ignores the rule that both dice must be played if possible.
fn shots(own: &Side, other: &Side) -> u32 {
    let blots = mirrored(other.blots());
    if blots == 0 {
        return 0;
    }
    let open = POINTS & !mirrored(other.points());
    let on_bar = own.count(BAR_PLACE);
    let field = own.occupied() & POINTS;
    let step = |from: u32, die: u32| from >> die & open;
    // Returns the points that can be reached with `dice` in this order. Checkers on the bar enter first.
    let reachable = |dice: &[u32]| {
        let (mut from, mut waiting, mut reached) = (field, on_bar, 0);
        for &die in dice {
            let landed = if waiting > 0 { step(BAR, die) } else { step(from, die) };
            if landed == 0 {
                break;
            }
            reached |= landed;
            // After an entry any checker may play the next die. Otherwise it is enough to follow the checker that moved: the
            // other order of the dice covers the rest.
            from = if waiting > 0 { field | landed } else { landed };
            waiting = waiting.saturating_sub(1);
        }
        reached
    };
    let mut shots = 0;
    for larger in 1..=6 {
        shots += u32::from(reachable(&[larger; 4]) & blots != 0);
        for smaller in 1..larger {
            let landed = reachable(&[larger, smaller]) | reachable(&[smaller, larger]);
            shots += 2 * u32::from(landed & blots != 0);
        }
    }
    shots
}
