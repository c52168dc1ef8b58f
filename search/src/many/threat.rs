//! Threat-ADS (Polk and Oommen 2013): an adaptive list of the opponents, the most threatening first.
//!
//! Whenever an opponent's move turns out the most minimising of a node, that opponent is accessed, and the list moves it
//! by its rule. The list lives for one search and is kept through its iterations.

use agon_games::Seat;

use crate::value::MAX_SEATS;

/// How the list moves an opponent that is accessed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ThreatRule {
    /// Not at all: opponents in the order of their turns.
    None,
    /// To the front.
    MoveToFront,
    /// One place towards the front.
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
    /// The opponents in the order of their turns after the hero's.
    pub fn new(seats: usize, hero: Seat) -> ThreatList {
        let mut list = ThreatList { seats: [hero; MAX_SEATS], count: seats - 1 };
        let mut seat = hero;
        for place in 0..list.count {
            seat = seat.next(seats);
            list.seats[place] = seat;
        }
        list
    }

    /// The opponents, the most threatening first.
    pub fn seats(&self) -> &[Seat] {
        &self.seats[..self.count]
    }

    /// Accesses an opponent.
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
    fn the_rules_move_an_opponent_as_stated() {
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
