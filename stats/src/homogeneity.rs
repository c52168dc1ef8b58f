//! Whether all workers report the same game: outcomes by worker within each pairing, compared by chi-square.
//!
//! An honest worker's bouts are a random share of its pairing's bouts, so given the totals its counts are
//! hypergeometric. The statistic of a worker is the quadratic form of its excess over the rest, summed over pairings;
//! it sees any departure, whichever player it favours. What is done about a worker that is flagged is not decided here.

use std::collections::{BTreeMap, BTreeSet};

use rand::RngExt as _;

use crate::distribution::{Random, chi_square_tail, normal_quantile};
use crate::replicas::replicate;

/// The probability that an honest fleet is ever flagged, over all workers and all looks.
pub const FALSE_ALARM: f64 = 0.05;

/// A departure that is so many times rarer than what flags a worker is certain: an honest fleet has one once in ten
/// thousand.
pub const CERTAINTY: f64 = 500.0;

/// Rows with an expected count of this or less are left out: chi-square is not their distribution.
const LEAST_EXPECTED: f64 = 5.0;

/// The bouts of one pairing that one worker played, by outcome for the pairing's first player.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// The pairing's number.
    pub pairing: usize,
    /// The worker's number.
    pub worker: usize,
    /// Bouts won, lost and drawn: scored above, below and at one half.
    pub outcomes: [u64; 3],
}

/// How one worker stands to the others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WorkerReport {
    /// The worker's number.
    pub worker: usize,
    /// The chi-square of this worker against the rest, summed over its pairings.
    pub chi_square: f64,
    /// Its degrees of freedom; 0 where the worker has too few bouts to be compared.
    pub degrees: f64,
    /// The probability that an honest worker departs so far, for one worker at one look.
    pub probability: f64,
    /// The greatest standardised excess among won, lost and drawn bouts, summed over pairings, with its sign; for
    /// reading, not for flagging.
    pub residual: f64,
    /// Whether the departure is beyond the Bonferroni limit.
    pub flagged: bool,
    /// Whether it is beyond that by [`CERTAINTY`].
    pub certain: bool,
}

/// How homogeneous a fleet is.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The chi-square of outcomes by worker, summed over pairings.
    pub chi_square: f64,
    /// Its degrees of freedom.
    pub degrees: f64,
    /// The probability that an honest fleet departs so far at one look.
    pub probability: f64,
    /// Whether that is less than this look may spend: somebody departs, though perhaps nobody can be named.
    pub heterogeneous: bool,
    /// The limit that a worker's probability is held against in this look, before any worker was set aside.
    pub limit: f64,
    /// That limit as a two-sided standard normal: what a residual would be compared with.
    pub residual_limit: f64,
    /// By worker, in order.
    pub workers: Vec<WorkerReport>,
}

/// The share of [`FALSE_ALARM`] that look number `look`, counted from 1, may spend: 6 / (pi look)^2.
///
/// The shares of all looks sum to one, so by Bonferroni the probability of ever flagging an honest fleet stays below
/// [`FALSE_ALARM`] however long a run goes on. A look at which nothing can be compared yet (no degrees of freedom) need
/// not be counted: that depends on the totals alone. Look at each doubling of the bouts, so that looks stay few.
pub fn spent_at_look(look: u32) -> f64 {
    let number = f64::from(look.max(1));
    FALSE_ALARM * 6.0 / (std::f64::consts::PI * number).powi(2)
}

/// Compares the workers of a fleet, at look number `look` of this run.
///
/// The worst worker beyond the limit is flagged and set aside, and the others are compared again without it, since what
/// it made up is in the totals that they were compared with. Of two workers alone nobody can say which is wrong: both
/// are flagged.
pub fn compare(cells: &[Cell], look: u32) -> Report {
    let mut tables: BTreeMap<usize, BTreeMap<usize, [u64; 3]>> = BTreeMap::new();
    for cell in cells {
        let counts = tables.entry(cell.pairing).or_default().entry(cell.worker).or_insert([0; 3]);
        counts.iter_mut().zip(cell.outcomes).for_each(|(sum, count)| *sum += count);
    }
    let workers: BTreeSet<usize> = cells.iter().map(|cell| cell.worker).collect();
    let all: Vec<Table> = tables.values().filter_map(|rows| Table::new(rows, &BTreeSet::new())).collect();
    let (chi_square, degrees) = all.iter().map(Table::chi_square).fold((0.0, 0.0), add);
    let mut reports: Vec<WorkerReport> = workers.iter().map(|&worker| report(worker, &all)).collect();
    let limit = limit(&reports, look);

    let mut flagged = BTreeSet::new();
    loop {
        let left: Vec<Table> = tables.values().filter_map(|rows| Table::new(rows, &flagged)).collect();
        let waiting = workers.iter().filter(|worker| !flagged.contains(*worker));
        let compared: Vec<WorkerReport> =
            waiting.map(|&worker| report(worker, &left)).filter(|report| report.degrees > 0.0).collect();
        let beyond = self::limit(&compared, look);
        let worst = compared.iter().min_by(|first, second| {
            first
                .probability
                .total_cmp(&second.probability)
                .then(second.chi_square.total_cmp(&first.chi_square))
        });
        let Some(worst) = worst.filter(|worst| worst.probability < beyond) else { break };
        if let [first, second] = compared.as_slice() {
            flagged.extend([first.worker, second.worker]);
        } else {
            flagged.insert(worst.worker);
        }
    }
    for report in &mut reports {
        report.flagged = flagged.contains(&report.worker);
        report.certain = report.flagged && report.probability * CERTAINTY < limit;
    }
    let probability = chi_square_tail(chi_square, degrees);
    Report {
        chi_square,
        degrees,
        probability,
        heterogeneous: probability < spent_at_look(look),
        limit,
        residual_limit: -normal_quantile(limit / 2.0),
        workers: reports,
    }
}

/// Bonferroni over the workers that are compared.
fn limit(reports: &[WorkerReport], look: u32) -> f64 {
    let compared = reports.iter().filter(|report| report.degrees > 0.0).count();
    spent_at_look(look) / compared.max(1) as f64
}

fn add(first: (f64, f64), second: (f64, f64)) -> (f64, f64) {
    (first.0 + second.0, first.1 + second.1)
}

fn report(worker: usize, tables: &[Table]) -> WorkerReport {
    let (chi_square, degrees) =
        tables.iter().map(|table| table.against_the_rest(worker)).fold((0.0, 0.0), add);
    let residual = (0..3).map(|outcome| {
        let excesses = tables.iter().filter_map(|table| table.excess(worker, outcome));
        let (excess, variance) = excesses.fold((0.0, 0.0), add);
        if variance > 0.0 { excess / variance.sqrt() } else { 0.0 }
    });
    WorkerReport {
        worker,
        chi_square,
        degrees,
        probability: chi_square_tail(chi_square, degrees),
        residual: residual.fold(0.0, |most: f64, next| if next.abs() > most.abs() { next } else { most }),
        flagged: false,
        certain: false,
    }
}

/// The outcomes of one pairing by worker, without rows and columns that are too thin.
#[derive(Clone, Debug)]
struct Table {
    rows: BTreeMap<usize, [f64; 3]>,
    columns: [f64; 3],
    total: f64,
}

impl Table {
    /// `None` where fewer than two rows or two columns are left.
    ///
    /// A column so rare that no row could expect more than five of it is left out first: the rows are then compared by
    /// the other outcomes. What remains thin costs its row, and since that lessens the totals, it is looked at again.
    fn new(counts: &BTreeMap<usize, [u64; 3]>, without: &BTreeSet<usize>) -> Option<Self> {
        let kept = counts.iter().filter(|(worker, _)| !without.contains(worker));
        let rows = kept.map(|(&worker, row)| (worker, row.map(|count| count as f64))).collect();
        let mut table = Table { rows, columns: [0.0; 3], total: 0.0 };
        loop {
            table.sum();
            let largest = table.rows.values().map(row_sum).fold(0.0, f64::max);
            let rare = |table: &Table, outcome: usize| {
                let column = table.columns[outcome];
                column > 0.0 && largest * column / table.total <= LEAST_EXPECTED
            };
            if let Some(outcome) = (0..3).find(|&outcome| rare(&table, outcome)) {
                table.rows.values_mut().for_each(|row| row[outcome] = 0.0);
                continue;
            }
            let least =
                table.columns.iter().copied().filter(|column| *column > 0.0).fold(f64::INFINITY, f64::min);
            let (before, total) = (table.rows.len(), table.total);
            table.rows.retain(|_, row| row_sum(row) * least / total > LEAST_EXPECTED);
            if table.rows.len() == before {
                break;
            }
        }
        (table.rows.len() > 1 && table.outcomes() > 1).then_some(table)
    }

    fn sum(&mut self) {
        self.columns = [0, 1, 2].map(|outcome| self.rows.values().map(|row| row[outcome]).sum());
        self.total = self.columns.iter().sum();
    }

    fn outcomes(&self) -> usize {
        self.columns.iter().filter(|column| **column > 0.0).count()
    }

    /// Pearson's chi-square of the whole table, with its degrees of freedom.
    fn chi_square(&self) -> (f64, f64) {
        let mut sum = 0.0;
        for row in self.rows.values() {
            for (observed, column) in row.iter().zip(self.columns).filter(|(_, column)| *column > 0.0) {
                let expected = row_sum(row) * column / self.total;
                sum += (observed - expected) * (observed - expected) / expected;
            }
        }
        (sum, ((self.rows.len() - 1) * (self.outcomes() - 1)) as f64)
    }

    /// The quadratic form of one row's excess over its hypergeometric expectation, with its degrees of freedom.
    ///
    /// Given the totals, the covariance of the row is n (N - n) / (N - 1) (diag(q) - q q'), whose generalised inverse
    /// on excesses (they sum to 0) is diag(1/q): Pearson's sum, scaled.
    fn against_the_rest(&self, worker: usize) -> (f64, f64) {
        let Some(row) = self.rows.get(&worker) else { return (0.0, 0.0) };
        let size = row_sum(row);
        let scale = size * (self.total - size) / (self.total - 1.0);
        let part = |(observed, column): (&f64, &f64)| {
            let share = column / self.total;
            let excess = observed - size * share;
            if share > 0.0 { excess * excess / share / scale } else { 0.0 }
        };
        (row.iter().zip(&self.columns).map(part).sum(), (self.outcomes() - 1) as f64)
    }

    /// A worker's excess in one outcome, and its hypergeometric variance.
    fn excess(&self, worker: usize, outcome: usize) -> Option<(f64, f64)> {
        let row = self.rows.get(&worker)?;
        let (size, share) = (row_sum(row), self.columns[outcome] / self.total);
        let variance = size * (self.total - size) / (self.total - 1.0) * share * (1.0 - share);
        Some((row[outcome] - size * share, variance))
    }
}

fn row_sum(row: &[f64; 3]) -> f64 {
    row.iter().sum()
}

/// How often simulated fleets were flagged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FleetRow {
    /// How many workers each fleet has.
    pub workers: usize,
    /// How many bouts each worker has in each pairing.
    pub bouts: u64,
    /// The share of fleets in which an honest worker was flagged at any look.
    pub false_alarms: f64,
    /// The share of fleets in which an honest worker's departure was certain at any look.
    pub certain_alarms: f64,
    /// The share of fleets in which the fabricating worker was flagged at any look.
    pub caught: f64,
    /// The share of fleets in which its departure was certain at any look.
    pub certain_caught: f64,
    /// The bouts that it had played when it was first flagged and when it was first certain, in the middle fleet; none
    /// where most fleets did not catch it.
    pub bouts_until: [Option<u64>; 2],
}

/// Draws `fleets` fleets that play three pairings of unlike strength, and looks at each after every doubling of its
/// bouts. In each fleet worker 0 replaces a share `fabricated` of its bouts by wins of the pairing's first player.
pub fn simulate_fleets(workers: usize, bouts: u64, fabricated: f64, fleets: u64, seed: u64) -> FleetRow {
    // Won, lost, drawn.
    let pairings = [[0.3, 0.3, 0.4], [0.6, 0.25, 0.15], [0.2, 0.75, 0.05]];
    let outcomes = replicate(seed, fleets as usize, |random| {
        // When honest workers and the fabricator were first flagged and first certain, in bouts of a worker.
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

/// An outcome drawn by its probabilities, or a win where it is forged.
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
    use super::*;

    fn cell(pairing: usize, worker: usize, outcomes: [u64; 3]) -> Cell {
        Cell { pairing, worker, outcomes }
    }

    /// A textbook table: 3 rows, 3 columns, by hand.
    #[test]
    fn chi_square_of_a_known_table() {
        let cells = [cell(0, 0, [20, 30, 50]), cell(0, 1, [30, 30, 40]), cell(0, 2, [40, 30, 30])];
        let report = compare(&cells, 1);
        // Each row expects 30, 30 and 40; the first and the last are off by ten in two columns.
        let expected = 2.0 * 100.0 / 30.0 + 2.0 * 100.0 / 40.0;
        assert!((report.chi_square - expected).abs() < 1e-12, "{report:?}");
        assert_eq!(report.degrees, 4.0);
        // A row against the rest is the chi-square of the 2 by 3 table, less one bout in N.
        let merged =
            Table::new(&BTreeMap::from([(0, [20, 30, 50]), (1, [70, 60, 70])]), &BTreeSet::new()).unwrap();
        let against = report.workers[0].chi_square * 300.0 / 299.0;
        assert!((against - merged.chi_square().0).abs() < 1e-12, "{against}");
        // Haberman's adjusted residual (1973) of the first column, -10 / sqrt(30 (1 - 100/300) (1 - 90/300)), less one
        // bout in N.
        let residual = report.workers[0].residual / (299.0_f64 / 300.0).sqrt();
        let haberman = -10.0 / (30.0_f64 * (2.0 / 3.0) * 0.7).sqrt();
        assert!((residual - haberman).abs() < 1e-12, "{residual} {haberman}");
    }

    #[test]
    fn pairings_are_summed_and_thin_rows_left_out() {
        let one = compare(&[cell(0, 0, [20, 30, 50]), cell(0, 1, [30, 30, 40])], 1);
        let two = [
            cell(0, 0, [20, 30, 50]),
            cell(0, 1, [30, 30, 40]),
            cell(1, 0, [20, 30, 50]),
            cell(1, 1, [30, 30, 40]),
        ];
        let two = compare(&two, 1);
        assert!((two.chi_square - 2.0 * one.chi_square).abs() < 1e-12);
        assert_eq!(two.degrees, 4.0);
        // A worker with ten bouts expects three draws, so its row is left out.
        let thin = compare(&[cell(0, 0, [20, 30, 50]), cell(0, 1, [30, 30, 40]), cell(0, 2, [10, 0, 0])], 1);
        assert_eq!((thin.chi_square, thin.degrees), (one.chi_square, one.degrees));
        assert_eq!(thin.workers[2].degrees, 0.0);
        // Hardly any draws: rows are compared by wins and losses instead of not at all.
        let decided = compare(&[cell(0, 0, [50, 50, 1]), cell(0, 1, [90, 10, 2])], 1);
        assert_eq!(decided.degrees, 1.0);
        assert!(decided.workers.iter().all(|worker| worker.flagged), "of two nobody can say which");
        for empty in [&[][..], &[cell(0, 0, [9, 9, 9])], &[cell(0, 0, [0; 3]), cell(0, 1, [0; 3])]] {
            let report = compare(empty, 1);
            assert_eq!((report.chi_square, report.degrees, report.probability), (0.0, 0.0, 1.0));
        }
    }

    #[test]
    fn the_shares_of_all_looks_sum_to_the_false_alarm_rate() {
        let sum: f64 = (1..100_000).map(spent_at_look).sum();
        assert!(sum < FALSE_ALARM && sum > 0.9999 * FALSE_ALARM, "{sum}");
    }

    /// A worker that favours one player is seen although the player is first in one pairing and second in the other.
    #[test]
    fn only_the_fabricator_is_flagged() {
        let mut cells = Vec::new();
        for worker in 0..4 {
            let (first, second) =
                if worker == 3 { ([90, 40, 70], [40, 90, 70]) } else { ([60, 70, 70], [70, 60, 70]) };
            cells.extend([cell(0, worker, first), cell(1, worker, second)]);
        }
        let report = compare(&cells, 1);
        let flagged: Vec<usize> =
            report.workers.iter().filter(|worker| worker.flagged).map(|worker| worker.worker).collect();
        assert_eq!(flagged, [3], "{report:?}");
        assert!(report.heterogeneous);
    }

    /// The most of `draws` that an event of this probability has, but once in a thousand.
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

    /// With 10,000 fleets 3.1 to 3.7 % of honest ones were flagged, from 3 workers with 300 bouts to 40 with 100, and of
    /// 50,000 hardly one was certain: the table is in docs/statistics.md.
    #[test]
    fn honest_fleets_are_left_alone() {
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

    /// The more a worker makes up, the sooner it is caught, and never is it certain before it is noted.
    #[test]
    fn fabricators_are_caught() {
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
