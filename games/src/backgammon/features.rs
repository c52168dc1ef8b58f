//! What a programmer of backgammon looks at, for the linear evaluation.
//!
//! The weighted sum estimates the expected payoff: the weights are least squares over the payoffs of games that the
//! evaluation played against itself, repeated until it settled. So `anchors` is negative: an anchor is a safe place
//! to land, but who needs one against a strong home board is losing more often than the pips say.

use super::Backgammon;
use super::side::{BAR, BAR_PLACE, HOME, POINTS, Side, mirrored};
use crate::game::{Feature, FeatureSet, Features, Seat};

const SHOTS: usize = 1;
const RACE: usize = 2;
const TURN: usize = 3;
/// Where the features begin that [`view`] gives.
const VIEW: usize = 4;

impl Features for Backgammon {
    const FEATURES: &'static [Feature] = &[
        Feature {
            name: "pip_count",
            weight: 0.0115,
            about: "pips that the other side has more to go, up to 100",
        },
        Feature {
            name: "shots",
            weight: 0.0038,
            about: "of 36 rolls those that hit, for the side whose turn it is",
        },
        Feature {
            name: "race",
            weight: 0.0022,
            about: "without contact: the lead in hundredths of its deviation",
        },
        Feature { name: "turn", weight: 0.055, about: "1 if it is one's turn, else -1" },
        Feature { name: "borne_off", weight: 0.075, about: "checkers borne off" },
        Feature { name: "saved", weight: 0.15, about: "1 with a checker borne off: no gammon is lost" },
        Feature { name: "bar", weight: 0.035, about: "checkers of the other side on the bar" },
        Feature {
            name: "back_checkers",
            weight: 0.05,
            about: "the other side's checkers on the bar or in one's home",
        },
        Feature { name: "blots", weight: 0.02, about: "blots of the other side that may still be hit" },
        Feature { name: "home_points", weight: 0.09, about: "points held at home" },
        Feature { name: "outer_points", weight: 0.024, about: "points held outside both homes" },
        Feature {
            name: "anchors",
            weight: -0.03,
            about: "with an anchor in the other side's home: the points held there against it",
        },
        Feature {
            name: "prime",
            weight: 0.0155,
            about: "the longest row of points held before a checker of the other side, squared",
        },
        Feature {
            name: "shut_out",
            weight: 0.01,
            about: "points held at home with the other side on the bar",
        },
    ];

    fn features(&self, seat: Seat, wanted: FeatureSet, values: &mut [i32]) {
        let (own, other) = (&self.sides[seat.index()], &self.sides[seat.other().index()]);
        let turn = if self.mover() == seat { 1 } else { -1 };
        let contact = highest(own) + highest(other) > BAR_PLACE;
        let (pips, other_pips) = (own.pips() as i32, other.pips() as i32);
        let lead = other_pips - pips;
        values[0] = lead.clamp(-100, 100);
        values[TURN] = turn;
        values[SHOTS] = 0;
        values[RACE] = 0;
        if !contact {
            values[RACE] = race(lead + 4 * turn, pips + other_pips);
        } else if wanted.has(SHOTS) {
            values[SHOTS] = turn * shots(self.own(), self.other()) as i32;
        }
        if (VIEW..values.len()).any(|index| wanted.has(index)) {
            let views = view(own, other, contact).into_iter().zip(view(other, own, contact));
            for (value, (own, other)) in values[VIEW..].iter_mut().zip(views) {
                *value = own - other;
            }
        }
    }
}

/// The highest place with a checker, 0 if all are off.
fn highest(side: &Side) -> u32 {
    side.occupied().checked_ilog2().unwrap_or(0)
}

/// The lead in a race in hundredths of its standard deviation, up to two deviations. A roll moves 49/6 pips with a
/// deviation of 4.3; both sides together need `pips`. Being on roll is worth half a roll.
fn race(lead: i32, pips: i32) -> i32 {
    let deviation = 1.0 + 4.3 * (f64::from(pips) * 6.0 / 49.0).sqrt();
    ((100.0 * f64::from(lead) / deviation) as i32).clamp(-200, 200)
}

/// The features that look the same for both sides, of one of them.
fn view(side: &Side, against: &Side, contact: bool) -> [i32; 10] {
    let count = |places: u32| places.count_ones() as i32;
    let far = mirrored(HOME);
    let points = side.points();
    let home_points = count(points & HOME);
    let on_bar = against.occupied() & BAR != 0;
    // The points that the rearmost checker against this side has still to pass.
    let enemies = mirrored(against.occupied());
    let rearmost = if on_bar { 1 } else { enemies & enemies.wrapping_neg() };
    let ahead = POINTS & rearmost.wrapping_neg();
    let mut row = points & ahead;
    let mut prime = 0;
    while row != 0 {
        prime += 1;
        row &= row >> 1;
    }
    [
        side.off() as i32,
        i32::from(side.off() > 0),
        -(side.count(BAR_PLACE) as i32),
        -(side.sum(far | BAR) as i32),
        -count(side.blots() & ahead),
        home_points,
        count(points & !HOME & !far),
        if contact && points & far != 0 { count(against.points() & HOME) } else { 0 },
        prime * prime,
        if on_bar { home_points } else { 0 },
    ]
}

/// How many of the 36 rolls let `own` hit a blot, however it is played. That both dice must be played is not looked at.
fn shots(own: &Side, other: &Side) -> u32 {
    let blots = mirrored(other.blots());
    if blots == 0 {
        return 0;
    }
    let open = POINTS & !mirrored(other.points());
    let on_bar = own.count(BAR_PLACE);
    let field = own.occupied() & POINTS;
    let step = |from: u32, die: u32| from >> die & open;
    // Where `dice` played in their order may land. All on the bar enter first.
    let reached = |dice: &[u32]| {
        let (mut from, mut waiting, mut reached) = (field, on_bar, 0);
        for &die in dice {
            let landed = if waiting > 0 { step(BAR, die) } else { step(from, die) };
            if landed == 0 {
                break;
            }
            reached |= landed;
            // With the last one entered any checker may go on; else only one that has moved need be followed.
            from = if waiting > 0 { field | landed } else { landed };
            waiting = waiting.saturating_sub(1);
        }
        reached
    };
    let mut shots = 0;
    for larger in 1..=6 {
        shots += u32::from(reached(&[larger; 4]) & blots != 0);
        for smaller in 1..larger {
            let landed = reached(&[larger, smaller]) | reached(&[smaller, larger]);
            shots += 2 * u32::from(landed & blots != 0);
        }
    }
    shots
}
