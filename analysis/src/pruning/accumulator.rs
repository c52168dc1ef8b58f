//! Sums over the searches of a run, by player and cluster.
//!
//! A cluster is the unit of the bootstrap: a bout, a probe position or all positions of one game. Above [`CLUSTERS`] clusters
//! their numbers are hashed into groups, which bounds memory: sums over random groups are as independent as those over
//! bouts, and an interval from 1024 groups has a standard error of about 2 % of its width (Wolter, "Introduction to variance
//! estimation", 2007, chapter 2). Logarithms and branching factors are added as multiples of 2^-24, so all sums are exact
//! and independent of the order of rows, parts and threads.

use std::collections::BTreeMap;

use agon_records::{Batch, ReadError, Table};
use agon_stats::branching::{effective_branching_factor, minimal_leaves};

/// Maximum number of clusters per player.
const CLUSTERS: u64 = 1024;

/// Lower limit of that maximum with many players.
const FEWEST_CLUSTERS: u64 = 64;

/// Total number of clusters over all players.
const ALL_CLUSTERS: u64 = 1 << 17;

/// Number of players above which only the first is compared with the others.
const COMPARED: usize = 32;

/// Maximum recorded depth.
const DEPTHS: usize = 128;

/// Fixed-point representation of 1 in sums of fractions.
pub(super) const ONE: f64 = (1 << 24) as f64;

/// Indices into [`Sums`].
pub(super) mod sum {
    pub const SEARCHES: usize = 0;
    pub const NODES: usize = 1;
    pub const SIMULATIONS: usize = 2;
    pub const TIME_US: usize = 3;
    pub const CUTOFFS: usize = 4;
    pub const FIRST_MOVE_CUTOFFS: usize = 5;
    pub const TABLE_PROBES: usize = 6;
    pub const TABLE_HITS: usize = 7;
    /// Searches with a completed depth.
    pub const DEEPENED: usize = 8;
    pub const DEPTH: usize = 9;
    pub const BRANCHING: usize = 10;
    /// Sum and count of ln(nodes(d) / nodes(d - 1)).
    pub const GROWTH: usize = 11;
    pub const STEPS: usize = 12;
    /// Sum and count of ln(leaves / leaves of the minimal tree).
    pub const MINIMAL: usize = 13;
    pub const MINIMAL_COUNT: usize = 14;
    /// Sum and count of ln(nodes / nodes of the unpruned search).
    pub const MINIMAX: usize = 15;
    pub const MINIMAX_COUNT: usize = 16;
    pub const COUNT: usize = 17;
}

/// The sums of a cluster.
pub(super) type Sums = [i64; sum::COUNT];

/// A sum and a count.
pub(super) type Mean = [i64; 2];

/// The players, clusters and columns of a scan.
pub(super) struct Layout {
    /// Player names in spec order.
    pub names: Vec<String>,
    /// Whether all players search the same positions.
    pub probe: bool,
    /// Whether the game has two seats and no chance, for which the minimal tree is defined.
    pub duel: bool,
    /// The player that does not prune.
    pub unpruned: Option<usize>,
    /// Interval of the probe positions kept for counting unpruned trees; 0 for none.
    pub sampled_step: u64,
    /// Number of consecutive bouts in a cluster.
    bouts_per_cluster: u64,
    clusters: u64,
    hashed: bool,
}

impl Layout {
    /// Creates a layout for a run of `bouts` bouts.
    pub fn new(names: Vec<String>, bouts: u64, bouts_per_cluster: u64) -> Layout {
        let units = bouts.div_ceil(bouts_per_cluster);
        let most = (ALL_CLUSTERS / names.len().max(1) as u64).clamp(FEWEST_CLUSTERS, CLUSTERS);
        let (clusters, hashed) = (units.clamp(1, most), units > most);
        Layout {
            names,
            probe: false,
            duel: false,
            unpruned: None,
            sampled_step: 0,
            bouts_per_cluster,
            clusters,
            hashed,
        }
    }

    /// Returns the columns to read.
    pub fn columns(&self) -> Vec<&'static str> {
        let mut columns = vec![
            "bout",
            "legal",
            "player",
            "depth",
            "nodes",
            "leaves",
            "cutoffs",
            "first_move_cutoffs",
            "table_probes",
            "table_hits",
            "simulations",
            "depth_nodes",
            "time_us",
        ];
        if self.sampled_step > 0 {
            columns.extend(["position", "moves"]);
        }
        columns
    }

    /// Returns the table to read.
    pub fn table(&self) -> Table {
        if self.probe { Table::Probes } else { Table::Moves }
    }

    /// Returns the cluster of a bout.
    pub fn cluster(&self, bout: u64) -> usize {
        let unit = bout / self.bouts_per_cluster;
        let unit = if self.hashed { mix(unit) } else { unit };
        (unit % self.clusters) as usize
    }
}

/// Hashes a number with the finaliser of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
fn mix(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// Nodes by depth of the searches of one position, with their players.
type PositionSearches = Vec<(usize, Vec<u64>)>;

/// A position kept for counting its unpruned tree.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Sampled {
    /// Start position; empty for the standard one.
    pub position: String,
    /// Moves from the start position.
    pub moves: String,
    pub searches: PositionSearches,
}

/// The bouts that were read, as ranges: rows of a bout are consecutive, and most bouts follow each other.
#[derive(Default)]
pub(super) struct BoutSet(Vec<(u64, u64)>);

impl BoutSet {
    /// Adds a bout.
    fn add(&mut self, bout: u64) {
        match self.0.last_mut() {
            Some((first, last)) if (*first..=*last).contains(&bout) => {}
            Some((_, last)) if *last + 1 == bout => *last = bout,
            _ => self.0.push((bout, bout)),
        }
    }

    /// Adds the bouts of another set.
    fn merge(&mut self, other: BoutSet) {
        self.0.extend(other.0);
    }

    /// Returns the number of different bouts.
    pub fn count(&self) -> u64 {
        let mut ranges = self.0.clone();
        ranges.sort_unstable();
        let mut next = 0;
        ranges.into_iter().fold(0, |count, (first, last)| {
            let first = first.max(next);
            next = next.max(last + 1);
            count + (last + 1).saturating_sub(first)
        })
    }
}

/// The sums of a player.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct PlayerSums {
    /// Sums by cluster; empty without searches.
    pub clusters: Vec<Sums>,
    /// Nodes by depth, from depth 1, and cluster.
    pub depths: Vec<Vec<Mean>>,
}

/// Sums over a part of the rows of a run.
pub(super) struct Accumulator<'a> {
    layout: &'a Layout,
    /// Sums by player.
    pub players: Vec<PlayerSums>,
    /// Log ratios of the nodes of two players, by (first player, second player, depth) and cluster.
    pub pairs: BTreeMap<(usize, usize, usize), Vec<Mean>>,
    /// Positions that some players' searches are still missing for.
    open: BTreeMap<u64, PositionSearches>,
    /// Kept positions by bout.
    pub sampled: BTreeMap<u64, Sampled>,
    /// The bouts that were read.
    pub bouts: BoutSet,
    /// A player name that is not in the spec.
    pub unknown_player: Option<String>,
    /// Cached logarithms of the leaves of minimal trees, by branching and depth.
    minimal_logs: Vec<f64>,
}

/// Limits of the branching and depth of cached minimal trees.
const CACHED: [usize; 2] = [256, 32];

impl<'a> Accumulator<'a> {
    /// Creates an empty accumulator.
    pub fn new(layout: &'a Layout) -> Accumulator<'a> {
        Accumulator {
            layout,
            players: vec![PlayerSums::default(); layout.names.len()],
            pairs: BTreeMap::new(),
            open: BTreeMap::new(),
            sampled: BTreeMap::new(),
            bouts: BoutSet::default(),
            unknown_player: None,
            minimal_logs: vec![f64::NAN; CACHED[0] * CACHED[1]],
        }
    }

    /// Adds the rows of a batch.
    pub fn add(&mut self, batch: &Batch) -> Result<(), ReadError> {
        let layout = self.layout;
        let names = batch.names("player")?;
        let number = |name: &str| layout.names.iter().position(|known| known == name);
        let numbers: Vec<Option<usize>> = names.values().map(number).collect();
        let (bouts, legal) = (batch.numbers("bout")?, batch.smalls("legal")?);
        bouts.iter().for_each(|&bout| self.bouts.add(bout));
        let depth = batch.searched_smalls("depth", &names)?;
        let column = |name| batch.searched_numbers(name, &names);
        let (nodes, leaves, simulations) = (column("nodes")?, column("leaves")?, column("simulations")?);
        let (cutoffs, first_move_cutoffs) = (column("cutoffs")?, column("first_move_cutoffs")?);
        let (table_probes, table_hits) = (column("table_probes")?, column("table_hits")?);
        let time_us = column("time_us")?;
        let depth_nodes = batch.searched_lists("depth_nodes", &names)?;
        let mut unknown = None;
        names.each(|row, key| {
            let Some(player) = numbers[key] else {
                unknown = Some(key);
                return;
            };
            let by_depth = depth_nodes.of(row);
            let cluster = layout.cluster(bouts[row]);
            let minimal = match layout.duel && legal[row] > 1 && leaves[row] > 0 && nodes[row] > 0 {
                true => self.minimal_tree_ratio(leaves[row], nodes[row], legal[row], by_depth),
                false => None,
            };
            let sums = cluster_of(&mut self.players[player].clusters, cluster, layout.clusters);
            add(sums, sum::SEARCHES, 1);
            add(sums, sum::NODES, saturated(nodes[row]));
            add(sums, sum::SIMULATIONS, saturated(simulations[row]));
            add(sums, sum::TIME_US, saturated(time_us[row]));
            add(sums, sum::CUTOFFS, saturated(cutoffs[row]));
            add(sums, sum::FIRST_MOVE_CUTOFFS, saturated(first_move_cutoffs[row]));
            add(sums, sum::TABLE_PROBES, saturated(table_probes[row]));
            add(sums, sum::TABLE_HITS, saturated(table_hits[row]));
            if let Some(ratio) = minimal {
                add(sums, sum::MINIMAL, fixed(ratio));
                add(sums, sum::MINIMAL_COUNT, 1);
            }
            let (Some(&first), Some(&last)) = (by_depth.first(), by_depth.last()) else { return };
            if let Some(branching) = effective_branching_factor(last as f64, by_depth.len() as u32) {
                add(sums, sum::DEEPENED, 1);
                add(sums, sum::DEPTH, i64::from(depth[row]));
                add(sums, sum::BRANCHING, fixed(branching));
            }
            if first > 0 && last > 0 && by_depth.len() > 1 {
                // The product of the ratios telescopes.
                add(sums, sum::GROWTH, fixed((last as f64 / first as f64).ln()));
                add(sums, sum::STEPS, by_depth.len() as i64 - 1);
            }
            let depths = &mut self.players[player].depths;
            for (index, &nodes) in by_depth.iter().take(DEPTHS).enumerate() {
                if depths.len() == index {
                    depths.push(vec![[0; 2]; layout.clusters as usize]);
                }
                let [sum, count] = &mut depths[index][cluster];
                *sum = sum.saturating_add(saturated(nodes));
                *count += 1;
            }
            if layout.probe {
                self.open.entry(bouts[row]).or_default().push((player, by_depth.to_vec()));
            }
        });
        self.unknown_player =
            self.unknown_player.take().or(unknown.and_then(|key| names.values().nth(key)).map(Into::into));
        self.keep_positions(batch)?;
        self.compare_players(false);
        Ok(())
    }

    /// Returns the log ratio of the leaves of the completed depths to those of minimal trees of the same depths. Leaves are
    /// counted per search, so the share of the completed depths is estimated from their share of the nodes.
    fn minimal_tree_ratio(&mut self, leaves: u64, nodes: u64, legal: u16, by_depth: &[u64]) -> Option<f64> {
        let completed: u64 = by_depth.iter().fold(0, |sum, &nodes| sum.saturating_add(nodes));
        let depth = by_depth.len();
        if depth == 0 || completed == 0 {
            return None;
        }
        let compute = || {
            let leaves = (1..=depth as u32).map(|depth| minimal_leaves(f64::from(legal), depth));
            leaves.sum::<f64>().ln()
        };
        let minimal = if usize::from(legal) < CACHED[0] && depth < CACHED[1] {
            let cached = &mut self.minimal_logs[usize::from(legal) * CACHED[1] + depth];
            if cached.is_nan() {
                *cached = compute();
            }
            *cached
        } else {
            compute()
        };
        let share = (completed as f64 / nodes as f64).min(1.0);
        Some((leaves as f64 * share).ln() - minimal).filter(|ratio| ratio.is_finite())
    }

    /// Keeps the sampled positions for counting their unpruned trees.
    fn keep_positions(&mut self, batch: &Batch) -> Result<(), ReadError> {
        let step = self.layout.sampled_step;
        if step == 0 {
            return Ok(());
        }
        let (bouts, names) = (batch.numbers("bout")?, batch.names("player")?);
        let (positions, moves) = (batch.names("position")?, batch.names("moves")?);
        let depth_nodes = batch.searched_lists("depth_nodes", &names)?;
        for row in (0..batch.rows()).filter(|&row| bouts[row].is_multiple_of(step)) {
            let player = self.layout.names.iter().position(|name| name == names.text(row));
            let kept = self.sampled.entry(bouts[row]).or_default();
            kept.position = positions.text(row).to_string();
            kept.moves = moves.text(row).to_string();
            kept.searches.extend(player.map(|player| (player, depth_nodes.of(row).to_vec())));
        }
        Ok(())
    }

    /// Compares the players at positions that all of them have searched, or at all remaining ones.
    fn compare_players(&mut self, all: bool) {
        let players = self.layout.names.len();
        let open = std::mem::take(&mut self.open);
        for (bout, mut searches) in open {
            if !all && searches.len() < players {
                self.open.insert(bout, searches);
                continue;
            }
            searches.sort_unstable();
            let cluster = self.layout.cluster(bout);
            for (index, (first, own)) in searches.iter().enumerate() {
                if players > COMPARED && *first > 0 {
                    break;
                }
                for (second, others) in &searches[index + 1..] {
                    self.compare((*first, own), (*second, others), cluster);
                }
            }
            let unpruned = self.layout.unpruned;
            if let Some((_, unpruned)) = searches.iter().find(|(player, _)| Some(*player) == unpruned) {
                for (player, own) in &searches {
                    self.add_unpruned_ratio(*player, bout, own, unpruned);
                }
            }
        }
    }

    fn compare(&mut self, first: (usize, &[u64]), second: (usize, &[u64]), cluster: usize) {
        for (index, (&own, &other)) in first.1.iter().zip(second.1).take(DEPTHS).enumerate() {
            if own > 0 && other > 0 {
                let ratios = self.pairs.entry((first.0, second.0, index + 1)).or_default();
                let [sum, count] = cluster_of(ratios, cluster, self.layout.clusters);
                *sum += fixed((own as f64 / other as f64).ln());
                *count += 1;
            }
        }
    }

    /// Compares a search with the unpruned one at the greatest depth that both have completed.
    pub fn add_unpruned_ratio(&mut self, player: usize, bout: u64, own: &[u64], unpruned: &[u64]) {
        let Some((&own, &unpruned)) = own.iter().zip(unpruned).next_back() else { return };
        if own > 0 && unpruned > 0 {
            let clusters = &mut self.players[player].clusters;
            let sums = cluster_of(clusters, self.layout.cluster(bout), self.layout.clusters);
            add(sums, sum::MINIMAX, fixed((own as f64 / unpruned as f64).ln()));
            add(sums, sum::MINIMAX_COUNT, 1);
        }
    }

    /// Adds the sums of another accumulator.
    pub fn merge(&mut self, other: Accumulator<'_>) {
        for (own, theirs) in self.players.iter_mut().zip(other.players) {
            merge(&mut own.clusters, theirs.clusters);
            own.depths.resize(own.depths.len().max(theirs.depths.len()), Vec::new());
            for (own, theirs) in own.depths.iter_mut().zip(theirs.depths) {
                merge(own, theirs);
            }
        }
        for (key, theirs) in other.pairs {
            merge(self.pairs.entry(key).or_default(), theirs);
        }
        for (bout, theirs) in other.open {
            self.open.entry(bout).or_default().extend(theirs);
        }
        for (bout, theirs) in other.sampled {
            let own = self.sampled.entry(bout).or_default();
            (own.position, own.moves) = (theirs.position, theirs.moves);
            own.searches.extend(theirs.searches);
        }
        self.bouts.merge(other.bouts);
        self.unknown_player = self.unknown_player.take().or(other.unknown_player);
        self.compare_players(false);
    }

    /// Compares the remaining positions. Precondition: all rows have been added.
    pub fn finish(&mut self) {
        self.compare_players(true);
    }
}

/// Returns a cluster, after creating all of them if there are none.
fn cluster_of<T: Clone + Default>(clusters: &mut Vec<T>, cluster: usize, count: u64) -> &mut T {
    if clusters.is_empty() {
        clusters.resize(count as usize, T::default());
    }
    &mut clusters[cluster]
}

fn merge<const N: usize>(own: &mut Vec<[i64; N]>, theirs: Vec<[i64; N]>) {
    if own.is_empty() {
        *own = theirs;
        return;
    }
    for (own, theirs) in own.iter_mut().zip(theirs) {
        for (own, theirs) in own.iter_mut().zip(theirs) {
            *own = own.saturating_add(theirs);
        }
    }
}

fn add(sums: &mut Sums, index: usize, number: i64) {
    sums[index] = sums[index].saturating_add(number);
}

/// Converts a count, saturating at the maximum.
fn saturated(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Converts a fraction to fixed point.
fn fixed(number: f64) -> i64 {
    (number * ONE).round() as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bouts_are_counted_once() {
        let set = |bouts: &[u64]| {
            let mut set = BoutSet::default();
            bouts.iter().for_each(|&bout| set.add(bout));
            set
        };
        assert_eq!(set(&[]).count(), 0);
        assert_eq!(set(&[0, 0, 1, 2, 2, 7]).count(), 4);
        // Two threads read rows of the same bout.
        let mut merged = set(&[3, 4, 5, 9]);
        merged.merge(set(&[0, 1, 2, 3, 5, 6]));
        assert_eq!(merged.count(), 8);
    }
}
