//! Homogeneity of workers: outcomes by worker within each pairing, compared by chi-square.
//!
//! An honest worker's bouts are a random share of its pairing's bouts, so given the totals its counts are
//! hypergeometric. A worker's statistic is the quadratic form of its excess over the rest, summed over pairings; it
//! detects any departure, whichever player it favours. What to do about a flagged worker is decided elsewhere.

use std::collections::{BTreeMap, BTreeSet};

use crate::distribution::{chi_square_tail, normal_quantile};

/// The probability that an honest fleet is ever flagged, over all workers and all looks.
pub const FALSE_ALARM: f64 = 0.05;

/// How many times rarer than the flagging limit a certain departure is: an honest fleet has one with probability
/// 1/10,000.
pub const CERTAINTY: f64 = 500.0;

/// Rows whose least expected count is not above this are left out, because the chi-square approximation fails.
const LEAST_EXPECTED: f64 = 5.0;

/// One worker's bouts in one pairing, by outcome for the pairing's first player.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// The pairing's number.
    pub pairing: usize,
    /// The worker's number.
    pub worker: usize,
    /// Bouts won, lost and drawn: scored above, below and at one half.
    pub outcomes: [u64; 3],
}

/// The comparison of one worker with the others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WorkerReport {
    /// The worker's number.
    pub worker: usize,
    /// The chi-square of this worker against the rest, summed over its pairings.
    pub chi_square: f64,
    /// The degrees of freedom; 0 if the worker has too few bouts.
    pub degrees: f64,
    /// The probability of such a departure of an honest worker, for one worker at one look.
    pub probability: f64,
    /// The greatest standardised excess among won, lost and drawn bouts, summed over pairings, with its sign. For
    /// display, not for flagging.
    pub residual: f64,
    /// Whether the departure exceeds the Bonferroni limit.
    pub flagged: bool,
    /// Whether it exceeds the limit by [`CERTAINTY`].
    pub certain: bool,
}

/// The homogeneity of a fleet.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The chi-square of outcomes by worker, summed over pairings.
    pub chi_square: f64,
    /// The degrees of freedom.
    pub degrees: f64,
    /// The probability of such a departure of an honest fleet at one look.
    pub probability: f64,
    /// Whether the probability is below this look's share: some worker departs, even if none is flagged.
    pub heterogeneous: bool,
    /// The probability limit of each worker at this look, before any worker is excluded.
    pub limit: f64,
    /// The limit as a two-sided standard normal quantile, to compare residuals with.
    pub residual_limit: f64,
    /// By worker, in order.
    pub workers: Vec<WorkerReport>,
}

/// Returns the share of [`FALSE_ALARM`] that look number `look`, counted from 1, may spend: 6 / (pi look)^2.
///
/// The shares of all looks sum to one, so by Bonferroni the probability of ever flagging an honest fleet stays below
/// [`FALSE_ALARM`]. A look without degrees of freedom need not be counted, because that depends on the totals alone.
/// Look at each doubling of the bouts, so that looks stay few.
pub fn spent_at_look(look: u32) -> f64 {
    let number = f64::from(look.max(1));
    FALSE_ALARM * 6.0 / (std::f64::consts::PI * number).powi(2)
}

/// Compares the workers of a fleet, at look number `look` of this run.
///
/// The worst worker beyond the limit is flagged and excluded, and the others are compared again, because its
/// fabricated outcomes distort the totals. Of only two workers, both are flagged.
pub fn compare(cells: &[Cell], look: u32) -> Report {
    let mut tables: BTreeMap<usize, BTreeMap<usize, [u64; 3]>> = BTreeMap::new();
    for cell in cells {
        let counts = tables.entry(cell.pairing).or_default().entry(cell.worker).or_insert([0; 3]);
        counts.iter_mut().zip(cell.outcomes).for_each(|(sum, count)| *sum += count);
    }
    let workers: BTreeSet<usize> = cells.iter().map(|cell| cell.worker).collect();
    let all: Vec<ContingencyTable> =
        tables.values().filter_map(|rows| ContingencyTable::new(rows, &BTreeSet::new())).collect();
    let (chi_square, degrees) = all.iter().map(ContingencyTable::chi_square).fold((0.0, 0.0), add);
    let mut reports: Vec<WorkerReport> = workers.iter().map(|&worker| report(worker, &all)).collect();
    let limit = limit(&reports, look);

    let mut flagged = BTreeSet::new();
    loop {
        let left: Vec<ContingencyTable> =
            tables.values().filter_map(|rows| ContingencyTable::new(rows, &flagged)).collect();
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

/// Returns the Bonferroni limit of each compared worker.
fn limit(reports: &[WorkerReport], look: u32) -> f64 {
    let compared = reports.iter().filter(|report| report.degrees > 0.0).count();
    spent_at_look(look) / compared.max(1) as f64
}

fn add(first: (f64, f64), second: (f64, f64)) -> (f64, f64) {
    (first.0 + second.0, first.1 + second.1)
}

fn report(worker: usize, tables: &[ContingencyTable]) -> WorkerReport {
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

/// The outcomes of one pairing by worker, without sparse rows and columns.
#[derive(Clone, Debug)]
struct ContingencyTable {
    rows: BTreeMap<usize, [f64; 3]>,
    columns: [f64; 3],
    total: f64,
}

impl ContingencyTable {
    /// Creates the table. `None` if fewer than two rows or two columns are left.
    ///
    /// First, columns so rare that no row can expect more than five are left out, so that rows are compared by the
    /// other outcomes. Then sparse rows are left out, which reduces the totals, until nothing changes.
    fn new(counts: &BTreeMap<usize, [u64; 3]>, without: &BTreeSet<usize>) -> Option<Self> {
        let kept = counts.iter().filter(|(worker, _)| !without.contains(worker));
        let rows = kept.map(|(&worker, row)| (worker, row.map(|count| count as f64))).collect();
        let mut table = ContingencyTable { rows, columns: [0.0; 3], total: 0.0 };
        loop {
            table.sum();
            let largest = table.rows.values().map(row_sum).fold(0.0, f64::max);
            let rare = |table: &ContingencyTable, outcome: usize| {
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

    /// Returns Pearson's chi-square of the whole table with its degrees of freedom.
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

    /// Returns the quadratic form of one row's excess over its hypergeometric expectation, with its degrees of
    /// freedom.
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

    /// Returns a worker's excess in one outcome and its hypergeometric variance.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(pairing: usize, worker: usize, outcomes: [u64; 3]) -> Cell {
        Cell { pairing, worker, outcomes }
    }

    /// A textbook table of 3 rows and 3 columns.
    #[test]
    fn chi_square_of_known_table() {
        let cells = [cell(0, 0, [20, 30, 50]), cell(0, 1, [30, 30, 40]), cell(0, 2, [40, 30, 30])];
        let report = compare(&cells, 1);
        // Each row expects 30, 30 and 40; the first and the last are off by ten in two columns.
        let expected = 2.0 * 100.0 / 30.0 + 2.0 * 100.0 / 40.0;
        assert!((report.chi_square - expected).abs() < 1e-12, "{report:?}");
        assert_eq!(report.degrees, 4.0);
        // A row against the rest is the chi-square of the 2 by 3 table, less one bout in N.
        let merged =
            ContingencyTable::new(&BTreeMap::from([(0, [20, 30, 50]), (1, [70, 60, 70])]), &BTreeSet::new())
                .unwrap();
        let against = report.workers[0].chi_square * 300.0 / 299.0;
        assert!((against - merged.chi_square().0).abs() < 1e-12, "{against}");
        // Haberman's adjusted residual (1973) of the first column, -10 / sqrt(30 (1 - 100/300) (1 - 90/300)), less one
        // bout in N.
        let residual = report.workers[0].residual / (299.0_f64 / 300.0).sqrt();
        let haberman = -10.0 / (30.0_f64 * (2.0 / 3.0) * 0.7).sqrt();
        assert!((residual - haberman).abs() < 1e-12, "{residual} {haberman}");
    }

    #[test]
    fn sums_pairings_and_skips_sparse_rows() {
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
        // With hardly any draws, rows are compared by wins and losses.
        let decided = compare(&[cell(0, 0, [50, 50, 1]), cell(0, 1, [90, 10, 2])], 1);
        assert_eq!(decided.degrees, 1.0);
        assert!(decided.workers.iter().all(|worker| worker.flagged), "of two nobody can say which");
        for empty in [&[][..], &[cell(0, 0, [9, 9, 9])], &[cell(0, 0, [0; 3]), cell(0, 1, [0; 3])]] {
            let report = compare(empty, 1);
            assert_eq!((report.chi_square, report.degrees, report.probability), (0.0, 0.0, 1.0));
        }
    }

    #[test]
    fn look_shares_sum_to_false_alarm_rate() {
        let sum: f64 = (1..100_000).map(spent_at_look).sum();
        assert!(sum < FALSE_ALARM && sum > 0.9999 * FALSE_ALARM, "{sum}");
    }

    /// A worker that favours one player is detected even if that player is first in one pairing and second in the
    /// other.
    #[test]
    fn flags_only_the_fabricator() {
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
}
