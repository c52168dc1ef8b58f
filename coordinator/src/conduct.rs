//! How a worker has behaved, and when that is enough to set it aside. Pure.

/// More bouts than this that a worker failed at and another played are too many.
pub const CRASHES: u64 = 3;
/// Time forfeits are judged after so many games.
pub const FORFEIT_GAMES: u64 = 20;
/// More than one in so many games lost on time are too many.
pub const FORFEIT_SHARE: u64 = 10;

/// What is known of a worker's behaviour since the coordinator started.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Conduct {
    /// Bouts that count.
    pub bouts: u64,
    /// Their games.
    pub games: u64,
    /// Games that ended because a clock ran out.
    pub forfeits: u64,
    /// Bouts that it failed at and another worker played. A bout at which everybody fails is nobody's fault.
    pub crashes: u64,
    /// Searches that were counted.
    pub moves: u64,
    /// Microseconds over their limits.
    pub overshoot_us: u64,
}

impl Conduct {
    /// Why the worker should be given nothing more, where it should not.
    pub fn fault(&self) -> Option<String> {
        if self.crashes > CRASHES {
            return Some(format!("it failed at {} bouts that others played", self.crashes));
        }
        if self.games >= FORFEIT_GAMES && self.forfeits * FORFEIT_SHARE > self.games {
            return Some(format!(
                "{} of its {} games ended because a clock ran out: it is too busy or too slow for its limits",
                self.forfeits, self.games
            ));
        }
        None
    }

    /// The mean of what searches took beyond their limits, in microseconds.
    pub fn mean_overshoot_us(&self) -> f64 {
        if self.moves == 0 { 0.0 } else { self.overshoot_us as f64 / self.moves as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_is_set_aside_beyond_the_limits_and_not_at_them() {
        let fine = Conduct { games: 20, forfeits: 2, crashes: 3, ..Conduct::default() };
        assert_eq!(fine.fault(), None);
        assert!(Conduct { crashes: 4, ..fine }.fault().is_some());
        assert!(Conduct { forfeits: 3, ..fine }.fault().is_some());
        assert_eq!(Conduct { games: 19, forfeits: 19, ..Conduct::default() }.fault(), None, "too few to say");
    }
}
