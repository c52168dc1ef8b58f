//! Fleets in which one worker may fabricate outcomes: how often the homogeneity test flags which.

use agon_stats::distribution::Random;
use agon_stats::homogeneity::{Cell, compare};
use agon_stats::replicas::replicate;
use rand::RngExt as _;

/// The detection rates of simulated fleets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FleetRow {
    /// The number of workers per fleet.
    pub workers: usize,
    /// The number of bouts of each worker in each pairing.
    pub bouts: u64,
    /// The share of fleets in which an honest worker was flagged at any look.
    pub false_alarms: f64,
    /// The share of fleets in which an honest worker's departure was certain at any look.
    pub certain_alarms: f64,
    /// The share of fleets in which the fabricating worker was flagged at any look.
    pub caught: f64,
    /// The share of fleets in which its departure was certain at any look.
    pub certain_caught: f64,
    /// The fabricator's bouts when it was first flagged and first certain, in the median fleet; `None` if most fleets
    /// did not detect it.
    pub bouts_until: [Option<u64>; 2],
}

/// Simulates `fleets` fleets over three pairings of different strength, with a look after every doubling of the
/// bouts. In each fleet worker 0 replaces a share `fabricated` of its outcomes by wins of the pairing's first player.
pub fn simulate_fleets(workers: usize, bouts: u64, fabricated: f64, fleets: u64, seed: u64) -> FleetRow {
    // Won, lost, drawn.
    let pairings = [[0.3, 0.3, 0.4], [0.6, 0.25, 0.15], [0.2, 0.75, 0.05]];
    let outcomes = replicate(seed, fleets as usize, |random| {
        // The bouts of a worker when honest workers and the fabricator were first flagged and first certain.
        let (mut seen, mut look) = ([[None; 2]; 2], 0);
        let mut cells: Vec<Cell> = Vec::new();
        for pairing in 0..pairings.len() {
            cells.extend((0..workers).map(|worker| Cell { pairing, worker, outcomes: [0; 3] }));
        }
        for played in 1..=bouts {
            for cell in &mut cells {
                cell.outcomes[draw(random, &pairings[cell.pairing], cell.worker == 0, fabricated)] += 1;
            }
            if played.is_power_of_two() || played == bouts {
                let report = compare(&cells, look + 1);
                look += u32::from(report.degrees > 0.0);
                for worker in &report.workers {
                    let dishonest = usize::from(worker.worker == 0 && fabricated > 0.0);
                    for (first, now) in seen[dishonest].iter_mut().zip([worker.flagged, worker.certain]) {
                        *first = first.or(now.then_some(played * pairings.len() as u64));
                    }
                }
            }
        }
        seen
    });
    let share = |who: usize, level: usize| {
        outcomes.iter().filter(|seen| seen[who][level].is_some()).count() as f64 / fleets as f64
    };
    let middle = |level: usize| {
        let mut bouts: Vec<u64> =
            outcomes.iter().map(|seen: &[[Option<u64>; 2]; 2]| seen[1][level].unwrap_or(u64::MAX)).collect();
        bouts.sort_unstable();
        bouts.get(bouts.len() / 2).copied().filter(|&bouts| bouts < u64::MAX)
    };
    FleetRow {
        workers,
        bouts,
        false_alarms: share(0, 0),
        certain_alarms: share(0, 1),
        caught: share(1, 0),
        certain_caught: share(1, 1),
        bouts_until: [middle(0), middle(1)],
    }
}

/// Draws an outcome, or a win if it is fabricated.
fn draw(random: &mut Random, shares: &[f64; 3], forger: bool, fabricated: f64) -> usize {
    let (forge, mark): (f64, f64) = (random.random(), random.random());
    if (forger && forge < fabricated) || mark < shares[0] {
        0
    } else if mark < shares[0] + shares[1] {
        1
    } else {
        2
    }
}

#[cfg(test)]
mod tests {
    use agon_stats::homogeneity::{CERTAINTY, FALSE_ALARM};

    use super::*;

    /// Returns the 99.9 % quantile of a binomial distribution.
    fn binomial_bound(draws: u64, probability: f64) -> u64 {
        let (mut mass, mut sum, mut most) = ((1.0 - probability).powf(draws as f64), 0.0, 0);
        loop {
            sum += mass;
            if sum > 0.999 {
                return most;
            }
            most += 1;
            mass *= (draws - most + 1) as f64 / most as f64 * probability / (1.0 - probability);
        }
    }

    /// With 10,000 fleets 3.1 to 3.7 % of honest ones were flagged, from 3 workers with 300 bouts to 40 with 100, and
    /// of 50,000 hardly one was certain: see docs/reference/statistics.md.
    #[test]
    fn honest_fleets_are_rarely_flagged() {
        let fleets = 600;
        for (workers, bouts) in [(3, 300), (12, 100)] {
            let honest = simulate_fleets(workers, bouts, 0.0, fleets, 5);
            let count = |share: f64| (share * fleets as f64).round() as u64;
            assert!(count(honest.false_alarms) <= binomial_bound(fleets, FALSE_ALARM), "{honest:?}");
            let certain = binomial_bound(fleets, FALSE_ALARM / CERTAINTY);
            assert!(count(honest.certain_alarms) <= certain, "{honest:?}");
            assert_eq!((honest.caught, honest.bouts_until), (0.0, [None; 2]), "nobody fabricates");
        }
    }

    /// The more a worker fabricates, the sooner it is flagged, and it is never certain before it is flagged.
    #[test]
    fn fabricators_are_flagged() {
        let rows = [0.2, 0.3, 0.5].map(|fabricated| simulate_fleets(6, 300, fabricated, 100, 6));
        for row in rows {
            assert!(row.false_alarms < 0.12, "{row:?}");
            assert!(row.certain_caught <= row.caught, "{row:?}");
            let [noted, certain] = row.bouts_until;
            assert!(noted.unwrap() <= certain.unwrap_or(u64::MAX), "{row:?}");
        }
        assert!(rows[1].caught > 0.95 && rows[1].certain_caught > 0.5, "{rows:?}");
        assert!(rows.is_sorted_by(|a, b| a.bouts_until[0] >= b.bouts_until[0] && a.caught <= b.caught));
    }
}
