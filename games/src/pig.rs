//! Pig: roll for more points, or hold the points of the turn.
//!
//! A turn begins with a roll of one die. A 1 loses the turn's total and ends the turn. Another number is added to the
//! total, and the player rolls again or holds; holding adds the total to the score and ends the turn. A player who holds
//! with score and total at `target` (100) or more wins. Two useless decisions are not legal: holding before the first
//! roll of a turn, and rolling once the target is reached. After 50 plies per point of the target the game is drawn,
//! `ply limit`.
//!
//! Decisions are `roll` and `hold`; the die, a ply of its own, is `1` to `6`.
//!
//! A position is the scores of seat 0 and seat 1, the turn's total, the seat to move (0 or 1), `decide` or `die` for the
//! next ply, and the plies played: `57 32 11 0 decide 40`. Moves are undone by copying.
//!
//! With optimal play the first player wins 0.5306 of the games to 100 (Neller and Presser, "Optimal Play of the Dice
//! Game Pig", The UMAP Journal 25.1, 2004).

use crate::game::{
    Chance, Duel, Feature, FeatureSet, Features, Game, Keyed, Notation, Ordered, Payoffs, Seat, Turn,
    features, write_for_mover,
};
use crate::random::{Random, below, mix};
use crate::setup::{Domain, Parameter, Parameters, Setup, SetupError, Turns};
use crate::text::{SEAT_DIGITS, fields, number, read_mover, read_plies};

/// A position.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pig {
    scores: [u16; 2],
    /// The points of the turn so far.
    total: u16,
    target: u16,
    plies: u16,
    mover: Seat,
    /// Whether the next ply is the die.
    rolling: bool,
}

/// A decision or the die.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Move {
    /// Add the turn's total to the score.
    Hold,
    /// Roll the die.
    Roll,
    /// The number on the die, 1 to 6.
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

    /// Returns whether the player who has just held has won.
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

    /// Prefers holding at 20 or more, or to win: at 20 the expected gain of a roll equals the expected loss by a 1
    /// (Knizia, "Dice Games Properly Explained", 1999).
    fn promise(&self, mv: Move) -> i32 {
        let enough = !self.may_roll() || self.total >= 20;
        i32::from((mv == Move::Hold) == enough)
    }
}

/// Returns the value of the scores for `own`, in thousandths of a win: the lead relative to the spread of the future
/// scores, which grows with the square root of the leader's distance to the target. The constants 40 and 8 and the
/// weights are a least-squares fit to exact values of positions in games to 100.
fn score_value(own: u16, other: u16, target: u16) -> i32 {
    if own >= target {
        return 1000;
    }
    let lead = f64::from(own) - f64::from(other);
    let to_go = f64::from(target - own.max(other.min(target)));
    (1000.0 * lead / (lead * lead + 40.0 * (to_go + 8.0)).sqrt()) as i32
}

/// The mean points of a turn under the rule of holding at 20.
const FAIR_TURN: u16 = 8;

features! {
    "score", 0.00097, "the lead, in thousandths of a win";
    "turn_total", 0.00067, "the gain in `score` by holding";
    "at_risk", -0.00005, "`turn_total` while the die rolls, else 0";
    "tempo", 0.0005, "for the side to move, the gain of eight more points";
}

impl Features for Pig {
    const FEATURES: &'static [Feature] = FEATURES;

    fn features(&self, seat: Seat, _wanted: FeatureSet, values: &mut [i32]) {
        let (own, other) = (self.scores[self.mover.index()], self.scores[self.mover.other().index()]);
        let worth = |own: u16| score_value(own, other, self.target);
        let (score, held) = (worth(own), worth(own + self.total));
        let more = worth(own + self.total + FAIR_TURN);
        let at_risk = if self.rolling { held - score } else { 0 };
        write_for_mover(values, seat == self.mover, [score, held - score, at_risk, more - held]);
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
    const SUMMARY: &'static str = "roll for more or hold the points of the turn; a 1 loses them";
    const PARAMETERS: &'static [Parameter] = &[Parameter {
        name: "target",
        default: "100",
        domain: Domain::Integer { min: 2, max: MAX_TARGET as u64 },
        about: "the score that wins",
    }];
    const TURNS: Turns = Turns::Dice;
    const POSITION_FORM: &'static str = "the scores, the turn's total, the seat to move, decide or die, and the plies, \
         as in 57 32 11 0 decide 40";

    fn initial(parameters: &Parameters) -> Result<Self, SetupError> {
        let target = parameters.integer("target") as u16;
        Ok(Pig { scores: [0; 2], total: 0, target, plies: 0, mover: Seat::FIRST, rolling: false })
    }

    fn read_position(start: &Self, text: &str) -> Result<Self, String> {
        let target = start.target;
        let [first, second, total, mover, next, plies] = fields(text)?;
        let number = |text: &str| number::<u16>(text).ok_or_else(|| format!("`{text}` is not a number"));
        let scores = [number(first)?, number(second)?];
        let total = number(total)?;
        let mover = read_mover(mover, &SEAT_DIGITS[..2])?;
        let plies = read_plies(plies, start.ply_limit())?;
        let rolling = match next {
            "die" => true,
            "decide" => false,
            _ => return Err("the next ply is decide or die".to_string()),
        };
        if scores.contains(&1) || total == 1 {
            return Err("a score or a total cannot be 1, because a roll of 1 scores nothing".to_string());
        }
        let own = scores[mover.index()];
        let most = target - 1 + u16::from(FACES);
        if scores.iter().any(|&score| score > most) || own.saturating_add(total) > most {
            return Err(format!("a score with its total is beyond {most}, the greatest possible"));
        }
        if own >= target {
            return Err("a side that has reached the target has no turn".to_string());
        }
        let position = Pig { scores, total, target, plies, mover, rolling };
        if position.won() && (total > 0 || rolling) {
            return Err(
                "the target is reached, so the game is over and there is no total and no roll".to_string()
            );
        }
        if rolling && !position.may_roll() {
            return Err("once the total reaches the target the die is not rolled".to_string());
        }
        if u32::from(plies) < fewest_plies(&position) {
            return Err("there are too few plies for these scores".to_string());
        }
        Ok(position)
    }
}

/// Returns a lower bound on the plies that lead to a position: two per six points, one per held score, and a first turn
/// of seat 0 before any of seat 1.
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
