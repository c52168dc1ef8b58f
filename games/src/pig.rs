//! Pig: roll for more, or hold what the turn has brought.
//!
//! A turn begins with a roll of one die. A 1 loses the turn's total and the turn; another number is added to the total,
//! and the player rolls again or holds: the total goes to the score and the turn to the other side. Who holds with
//! score and total at `target` (100) or more wins. Nothing is held before the first roll of a turn, and nothing is
//! rolled once the target is reached: those plies have one move, as the other could do no good. After 50 plies for
//! each point of the target the game is drawn, `ply limit`.
//!
//! Decisions are `roll` and `hold`; the die, a ply of its own, is `1` to `6`.
//!
//! A position is the scores of seat 0 and seat 1, the turn's total, whose turn it is (0 or 1), `decide` or `die` for
//! what is next, and the plies played: `57 32 11 0 decide 40`.
//!
//! A few small numbers, so that copying is all there is to undo.
//!
//! With the best play the first player wins 0.5306 of the games to 100 (Neller and Presser, "Optimal Play of the
//! Dice Game Pig", The UMAP Journal 25.1, 2004).

use crate::game::{
    Chance, Duel, Feature, FeatureSet, Features, Game, Keyed, Notation, Ordered, Payoffs, Seat, Turn,
};
use crate::random::{Random, below, mix};
use crate::setup::{Domain, Parameter, Parameters, Setup, SetupError, Turns};

/// A position.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pig {
    scores: [u16; 2],
    /// What the turn has brought so far.
    total: u16,
    target: u16,
    plies: u16,
    mover: Seat,
    /// Whether the die is in the air.
    rolling: bool,
}

/// A decision or the die.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Move {
    /// To take the turn's total.
    Hold,
    /// To throw the die.
    Roll,
    /// What the die shows, 1 to 6.
    Die(u8),
}

const FACES: u8 = 6;
const PLIES_A_POINT: u16 = 50;
const MAX_TARGET: u16 = 1000;

impl Pig {
    fn ply_limit(&self) -> u16 {
        const { assert!(MAX_TARGET.checked_mul(PLIES_A_POINT).is_some(), "the plies fit their type") };
        self.target * PLIES_A_POINT
    }

    fn may_hold(&self) -> bool {
        self.total > 0
    }

    fn may_roll(&self) -> bool {
        self.scores[self.mover.index()] + self.total < self.target
    }

    /// Only who has just held can have won.
    fn won(&self) -> bool {
        self.scores[self.mover.other().index()] >= self.target
    }
}

impl Game for Pig {
    type Move = Move;
    const SEATS: usize = 2;
    const PAYOFFS: Payoffs = Payoffs::DUEL;

    #[inline]
    fn turn(&self) -> Turn {
        if self.won() || self.plies >= self.ply_limit() {
            Turn::Over
        } else if self.rolling {
            Turn::Chance
        } else {
            Turn::Player(self.mover)
        }
    }

    fn moves(&self, out: &mut Vec<Move>) {
        match self.turn() {
            Turn::Chance => out.extend((1..=FACES).map(Move::Die)),
            Turn::Player(_) => {
                out.extend(self.may_hold().then_some(Move::Hold));
                out.extend(self.may_roll().then_some(Move::Roll));
            }
            Turn::Over => {}
        }
    }

    #[inline]
    fn play(&mut self, mv: Move) {
        self.plies += 1;
        match mv {
            Move::Roll => self.rolling = true,
            Move::Die(face) if face > 1 => {
                self.rolling = false;
                self.total += u16::from(face);
            }
            Move::Hold | Move::Die(_) => {
                if mv == Move::Hold {
                    self.scores[self.mover.index()] += self.total;
                }
                self.rolling = false;
                self.total = 0;
                self.mover = self.mover.other();
            }
        }
    }

    fn payoff(&self, seat: Seat) -> i32 {
        let reached = |seat: Seat| i32::from(self.scores[seat.index()] >= self.target);
        reached(seat) - reached(seat.other())
    }

    fn ply_bound(&self) -> u32 {
        u32::from(self.ply_limit())
    }

    fn count(&self, _scratch: &mut Vec<Move>) -> u64 {
        match self.turn() {
            Turn::Chance => u64::from(FACES),
            Turn::Player(_) => u64::from(self.may_hold()) + u64::from(self.may_roll()),
            Turn::Over => 0,
        }
    }

    #[inline]
    fn sample(&self, random: &mut Random, _scratch: &mut Vec<Move>) -> Move {
        if self.rolling {
            Move::Die(below(random, usize::from(FACES)) as u8 + 1)
        } else if !self.may_hold() {
            Move::Roll
        } else if !self.may_roll() || below(random, 2) == 0 {
            Move::Hold
        } else {
            Move::Roll
        }
    }
}

impl Duel for Pig {}

impl Chance for Pig {
    fn total_weight(&self) -> u32 {
        u32::from(FACES)
    }

    fn weight(&self, _outcome: Move) -> u32 {
        1
    }
}

impl Keyed for Pig {
    fn key(&self) -> u64 {
        let [first, second] = self.scores.map(u64::from);
        let turn = u64::from(self.mover.0) | u64::from(self.rolling) << 1;
        mix(first | second << 16 | u64::from(self.total) << 32, turn)
    }
}

impl Ordered for Pig {
    const SLOTS: usize = 8;

    fn slot(&self, mv: Move) -> usize {
        match mv {
            Move::Hold => 0,
            Move::Die(face) => usize::from(face),
            Move::Roll => 7,
        }
    }

    /// To hold at 20 or more, or to win: at 20 a roll gains 20/6 and loses as much by a 1 (Knizia, "Dice Games Properly
    /// Explained", 1999).
    fn promise(&self, mv: Move) -> i32 {
        let enough = !self.may_roll() || self.total >= 20;
        i32::from((mv == Move::Hold) == enough)
    }
}

/// What scores are worth to the first of them, in thousandths of a win: a lead counts against the spread of what is
/// still to come, which grows with the root of what the leader has to go. The numbers 40 and 8 and the weights are
/// least squares over the exact values of positions of games to 100.
fn standing(own: u16, other: u16, target: u16) -> i32 {
    if own >= target {
        return 1000;
    }
    let lead = f64::from(own) - f64::from(other);
    let to_go = f64::from(target - own.max(other.min(target)));
    (1000.0 * lead / (lead * lead + 40.0 * (to_go + 8.0)).sqrt()) as i32
}

/// What a turn brings on average, by the rule of holding at 20.
const FAIR_TURN: u16 = 8;

impl Features for Pig {
    const FEATURES: &'static [Feature] = &[
        Feature { name: "score", weight: 0.00097, about: "the lead, in thousandths of a win" },
        Feature { name: "turn_total", weight: 0.00067, about: "what holding the turn's total adds to that" },
        Feature { name: "at_risk", weight: -0.00005, about: "the same while the die rolls, else 0" },
        Feature { name: "tempo", weight: 0.0005, about: "what eight more points add, for whose turn it is" },
    ];

    fn features(&self, seat: Seat, _wanted: FeatureSet, values: &mut [i32]) {
        let (own, other) = (self.scores[self.mover.index()], self.scores[self.mover.other().index()]);
        let worth = |own: u16| standing(own, other, self.target);
        let (score, held) = (worth(own), worth(own + self.total));
        let more = worth(own + self.total + FAIR_TURN);
        let at_risk = if self.rolling { held - score } else { 0 };
        let sign = if seat == self.mover { 1 } else { -1 };
        for (value, seen) in values.iter_mut().zip([score, held - score, at_risk, more - held]) {
            *value = sign * seen;
        }
    }
}

impl Notation for Pig {
    fn write_move(&self, mv: Move, out: &mut String) {
        match mv {
            Move::Hold => out.push_str("hold"),
            Move::Roll => out.push_str("roll"),
            Move::Die(face) => out.push(char::from(b'0' + face)),
        }
    }

    fn board(&self) -> String {
        let line = |seat: Seat| {
            let score = self.scores[seat.index()];
            let bar = "#".repeat(usize::from(score.min(self.target)) * 40 / usize::from(self.target));
            let turn = if self.turn() == Turn::Over || self.mover != seat {
                String::new()
            } else {
                let next = if self.rolling { "the die rolls" } else { "to decide" };
                format!("  +{} {next}", self.total)
            };
            format!("seat {} {score:>4} of {} |{bar:40}|{turn}", seat.0, self.target)
        };
        format!("{}\n{}", line(Seat::FIRST), line(Seat::SECOND))
    }

    fn position(&self) -> String {
        let [first, second] = self.scores;
        let next = if self.rolling { "die" } else { "decide" };
        format!("{first} {second} {} {} {next} {}", self.total, self.mover.0, self.plies)
    }

    fn ending(&self) -> &'static str {
        if self.won() { "target reached" } else { "ply limit" }
    }
}

impl Setup for Pig {
    const NAME: &'static str = "pig";
    const SUMMARY: &'static str = "roll for more or hold what the turn has brought; a 1 loses it";
    const PARAMETERS: &'static [Parameter] = &[Parameter {
        name: "target",
        default: "100",
        domain: Domain::Integer { min: 2, max: MAX_TARGET as u64 },
        about: "the score that wins",
    }];
    const TURNS: Turns = Turns::Dice;

    fn initial(parameters: &Parameters) -> Result<Self, SetupError> {
        let target = parameters.integer("target") as u16;
        Ok(Pig { scores: [0; 2], total: 0, target, plies: 0, mover: Seat::FIRST, rolling: false })
    }

    fn from_position(parameters: &Parameters, text: &str) -> Result<Self, SetupError> {
        read_position(parameters.integer("target") as u16, text).map_err(|reason| SetupError::Position {
            game: Self::NAME,
            reason,
            form: "the scores, the turn's total, whose turn it is, decide or die, and the plies, \
                   as in 57 32 11 0 decide 40",
        })
    }
}

fn read_position(target: u16, text: &str) -> Result<Pig, String> {
    let fields: Vec<&str> = text.split(' ').collect();
    let [first, second, total, mover, next, plies] = fields[..] else {
        return Err(format!("it has {} fields instead of 6", fields.len()));
    };
    let number = |text: &str| {
        let number = crate::text::number(text).and_then(|number| u16::try_from(number).ok());
        number.ok_or_else(|| format!("`{text}` is not a number"))
    };
    let scores = [number(first)?, number(second)?];
    let (total, plies) = (number(total)?, number(plies)?);
    let mover = match mover {
        "0" => Seat::FIRST,
        "1" => Seat::SECOND,
        _ => return Err("whose turn it is must be 0 or 1".to_string()),
    };
    let rolling = match next {
        "die" => true,
        "decide" => false,
        _ => return Err("what is next must be decide or die".to_string()),
    };
    if scores.contains(&1) || total == 1 {
        return Err("a score or a total cannot be 1, for a 1 counts nothing".to_string());
    }
    let own = scores[mover.index()];
    let most = target - 1 + u16::from(FACES);
    if scores.iter().any(|&score| score > most) || own.saturating_add(total) > most {
        return Err(format!("a score or a score with its total is beyond {most}, the most that one can get"));
    }
    if own >= target {
        return Err("who has reached the target has no turn".to_string());
    }
    let position = Pig { scores, total, target, plies, mover, rolling };
    if position.won() && (total > 0 || rolling) {
        return Err("the target is reached, so the game is over and nothing is rolled".to_string());
    }
    if rolling && !position.may_roll() {
        return Err("with the target reached the die is not rolled".to_string());
    }
    if plies > position.ply_limit() {
        return Err(format!("the plies are a number up to {}", position.ply_limit()));
    }
    if u32::from(plies) < fewest_plies(&position) {
        return Err("the plies are too few for these scores".to_string());
    }
    Ok(position)
}

/// A number that no way to a position can do with less: two plies for each six points, one for each score that was
/// held, and the first turn of seat 0 before any of seat 1.
fn fewest_plies(position: &Pig) -> u32 {
    let rolls = |points: u16| 2 * u32::from(points.div_ceil(u16::from(FACES)));
    let held = position.scores.map(|score| rolls(score) + u32::from(score > 0));
    let passed = if position.scores[0] == 0 && (position.mover == Seat::SECOND || position.scores[1] > 0) {
        2
    } else {
        0
    };
    held[0] + held[1] + passed + rolls(position.total) + u32::from(position.rolling)
}
