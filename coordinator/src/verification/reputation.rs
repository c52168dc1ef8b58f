//! Behaviour counters of a worker and their limits. Pure.

/// The maximum number of bouts that a worker failed and another worker played.
pub const MAX_CRASHES: u64 = 3;
/// The minimum number of games before time forfeits are judged.
pub const FORFEIT_GAMES: u64 = 20;
/// The limit of time forfeits: one in this many games.
pub const FORFEIT_SHARE: u64 = 10;

/// The behaviour of a worker since the coordinator started.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Reputation {
    /// Committed bouts.
    pub bouts: u64,
    /// Games in them since it was last trusted.
    pub games: u64,
    /// Games lost on time since it was last trusted.
    pub forfeits: u64,
    /// Bouts that it failed and another worker played since it was last trusted; a bout that all workers fail does not
    /// count.
    pub crashes: u64,
    /// Searches measured.
    pub moves: u64,
    /// Their total time over the limit, in microseconds.
    pub overshoot_us: u64,
}

impl Reputation {
    /// Returns why the worker should be quarantined, if it should.
    pub fn fault(&self) -> Option<String> {
        if self.crashes > MAX_CRASHES {
            return Some(format!("failed {} bouts that other workers played", self.crashes));
        }
        if self.games >= FORFEIT_GAMES && self.forfeits * FORFEIT_SHARE > self.games {
            return Some(format!(
                "lost {} of {} games on time: the machine is overloaded or too slow for the time limits",
                self.forfeits, self.games
            ));
        }
        None
    }

    /// Forgives what led to a quarantine. What the worker has done stays counted.
    pub fn pardon(&mut self) {
        (self.games, self.forfeits, self.crashes) = (0, 0, 0);
    }

    /// Returns the mean time of a search over its limit, in microseconds.
    pub fn mean_overshoot_us(&self) -> f64 {
        if self.moves == 0 { 0.0 } else { self.overshoot_us as f64 / self.moves as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quarantines_above_the_limits_only() {
        let fine = Reputation { games: 20, forfeits: 2, crashes: 3, ..Reputation::default() };
        assert_eq!(fine.fault(), None);
        assert!(Reputation { crashes: 4, ..fine }.fault().is_some());
        assert!(Reputation { forfeits: 3, ..fine }.fault().is_some());
        assert_eq!(
            Reputation { games: 19, forfeits: 19, ..Reputation::default() }.fault(),
            None,
            "too few games"
        );
        let mut pardoned =
            Reputation { bouts: 9, games: 30, forfeits: 30, crashes: 9, moves: 5, overshoot_us: 7 };
        pardoned.pardon();
        assert_eq!(pardoned, Reputation { bouts: 9, moves: 5, overshoot_us: 7, ..Reputation::default() });
    }
}
