//! What a programmer of backgammon looks at, for the linear evaluation.
//!
//! The weighted sum estimates the expected payoff.

use super::Backgammon;
use super::side::{BAR, BAR_PLACE, HOME, POINTS, Side, mirrored};
use crate::game::{Feature, FeatureSet, Features, Seat};

impl Features for Backgammon {
    const FEATURES: &'static [Feature] = &[
        Feature { name: "pip_count", weight: 0.01, about: "pips that the other side has more to go" },
        Feature { name: "race", weight: 0.0, about: "" },
        Feature { name: "borne_off", weight: 0.0, about: "checkers borne off" },
        Feature { name: "bar", weight: 0.1, about: "checkers of the other side on the bar" },
        Feature { name: "blots", weight: 0.05, about: "" },
        Feature { name: "shots", weight: 0.01, about: "" },
        Feature { name: "home_points", weight: 0.1, about: "points held at home" },
        Feature { name: "outer_points", weight: 0.05, about: "" },
        Feature { name: "anchors", weight: 0.05, about: "points held in the other side's home" },
        Feature { name: "back", weight: 0.05, about: "" },
        Feature { name: "prime", weight: 0.05, about: "" },
        Feature { name: "shut_out", weight: 0.05, about: "" },
        Feature { name: "stragglers", weight: 0.02, about: "" },
        Feature { name: "saved", weight: 0.02, about: "" },
        Feature { name: "stacks", weight: 0.02, about: "" },
        Feature { name: "turn", weight: 0.05, about: "" },
    ];

    fn features(&self, seat: Seat, wanted: FeatureSet, values: &mut [i32]) {
        let (own, other) = (&self.sides[seat.index()], &self.sides[seat.other().index()]);
        let sign = if self.mover() == seat { 1 } else { -1 };
        let (pips, other_pips) = (own.pips() as i32, other.pips() as i32);
        let lead = other_pips - pips;
        let contact = own.occupied().ilog2() + other.occupied().ilog2() > 25;
        values[0] = lead;
        values[1] = if contact { 0 } else { race(lead + 4 * sign, pips + other_pips) };
        let (a, b) = (view(own, other, contact), view(other, own, contact));
        for (value, (a, b)) in values[2..].iter_mut().zip(a.into_iter().zip(b)) {
            *value = a - b;
        }
        if wanted.has(5) {
            values[5] = if contact { sign * shots(self.own(), self.other()) as i32 } else { 0 };
        }
        values[15] = sign;
    }
}

/// The lead in a race in hundredths of its standard deviation.
fn race(lead: i32, pips: i32) -> i32 {
    // A roll moves 8.17 pips with a standard deviation of 4.3.
    let deviation = 1.5 * f64::from(pips).sqrt() + 1.0;
    ((100.0 * f64::from(lead) / deviation) as i32).clamp(-200, 200)
}

fn view(side: &Side, against: &Side, contact: bool) -> [i32; 13] {
    let count = |places: u32| places.count_ones() as i32;
    let enemies = mirrored(against.occupied());
    let on_bar = against.occupied() & BAR != 0;
    // The places that an enemy checker has still to pass.
    let ahead = if on_bar {
        POINTS
    } else {
        !((enemies & enemies.wrapping_neg()) | (enemies & enemies.wrapping_neg()).wrapping_sub(1)) & POINTS
    };
    let points = side.points();
    let home_points = count(points & HOME);
    let far = mirrored(HOME);
    let mut run = points & ahead;
    let mut prime = 0;
    while run != 0 {
        prime += 1;
        run &= run >> 1;
    }
    let stragglers =
        if contact || against.off() == 0 || side.off() > 0 { 0 } else { side.sum(POINTS & !HOME) as i32 };
    let stacks: i32 = (1..=24).map(|p| (side.count(p) as i32 - 3).max(0)).sum();
    [
        side.off() as i32,
        -(side.count(BAR_PLACE) as i32),
        -count(side.blots() & ahead),
        0,
        home_points,
        count(points & !HOME & !far),
        if contact { count(points & far) } else { 0 },
        -(side.sum(far | BAR) as i32),
        prime * prime,
        if on_bar { home_points } else { 0 },
        -stragglers,
        i32::from(side.off() > 0),
        -stacks,
    ]
}

/// How many of 36 rolls hit a blot.
fn shots(own: &Side, other: &Side) -> u32 {
    let blots = mirrored(other.blots());
    if blots == 0 {
        return 0;
    }
    let open = POINTS & !mirrored(other.points());
    let on_bar = own.count(BAR_PLACE);
    let all = own.occupied();
    let mut shots = 0;
    for larger in 1..=6u32 {
        for smaller in 1..=larger {
            let hit = if larger == smaller {
                let mut reached = 0;
                let mut from = all;
                let mut bar = on_bar;
                for _ in 0..4 {
                    if bar > 0 {
                        let entered = BAR >> larger & open;
                        reached |= entered;
                        if entered == 0 {
                            break;
                        }
                        bar -= 1;
                        from = all & !BAR | entered;
                    } else {
                        from = from >> larger & open;
                        reached |= from;
                    }
                }
                reached & blots != 0
            } else {
                let step = |from: u32, die: u32| from >> die & open;
                let reached = match on_bar {
                    0 => {
                        let (l, s) = (step(all, larger), step(all, smaller));
                        l | s | step(l, smaller) | step(s, larger)
                    }
                    1 => {
                        let (l, s) = (step(BAR, larger), step(BAR, smaller));
                        let rest = all & !BAR;
                        l | s
                            | if l != 0 { step(l | rest, smaller) } else { 0 }
                            | if s != 0 { step(s | rest, larger) } else { 0 }
                    }
                    _ => step(BAR, larger) | step(BAR, smaller),
                };
                reached & blots != 0
            };
            shots += u32::from(hit) * if larger == smaller { 1 } else { 2 };
        }
    }
    shots
}
