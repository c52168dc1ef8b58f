//! Threat-ADS (Polk and Oommen 2013): an adaptive list of the opponents, the most threatening first.
//!
//! The opponent with the most damaging move at a node is accessed, and the list moves it by its rule. The list lives
//! for one search, across iterations.

use agon_games::Seat;

use crate::value::MAX_SEATS;

/// How the list moves an accessed opponent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ThreatRule {
    /// Not at all: opponents stay in turn order.
    None,
    /// To the front.
    MoveToFront,
    /// One place forward.
    Transpose,
}

agon_games::choices!(ThreatRule { None = "none", MoveToFront = "move-to-front", Transpose = "transpose" });

/// The opponents of a hero in the order in which their moves are tried.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ThreatList {
    seats: [Seat; MAX_SEATS],
    count: usize,
}

impl ThreatList {
    /// Creates the list in turn order after the hero.
    pub fn new(seats: usize, hero: Seat) -> ThreatList {
        let mut list = ThreatList { seats: [hero; MAX_SEATS], count: seats - 1 };
        let mut seat = hero;
        for place in 0..list.count {
            seat = seat.next(seats);
            list.seats[place] = seat;
        }
        list
    }

    /// Returns the opponents, the most threatening first.
    pub fn seats(&self) -> &[Seat] {
        &self.seats[..self.count]
    }

    /// Moves an opponent by the rule.
    pub fn access(&mut self, seat: Seat, rule: ThreatRule) {
        let Some(place) = self.seats().iter().position(|&known| known == seat) else { return };
        match rule {
            ThreatRule::None => {}
            ThreatRule::MoveToFront => self.seats[..=place].rotate_right(1),
            ThreatRule::Transpose if place > 0 => self.seats.swap(place - 1, place),
            ThreatRule::Transpose => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_move_accessed_opponent() {
        let order = |rule, accessed: &[u8]| {
            let mut list = ThreatList::new(5, Seat(1));
            accessed.iter().for_each(|&seat| list.access(Seat(seat), rule));
            list.seats().iter().map(|seat| seat.0).collect::<Vec<_>>()
        };
        assert_eq!(order(ThreatRule::None, &[4]), [2, 3, 4, 0]);
        assert_eq!(order(ThreatRule::MoveToFront, &[4]), [4, 2, 3, 0]);
        assert_eq!(order(ThreatRule::MoveToFront, &[4, 0]), [0, 4, 2, 3]);
        assert_eq!(order(ThreatRule::Transpose, &[4]), [2, 4, 3, 0]);
        assert_eq!(order(ThreatRule::Transpose, &[2]), [2, 3, 4, 0]);
    }
}
