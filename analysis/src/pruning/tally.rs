//! What is kept of the searches of a run while they go by: sums of whole numbers by player and cluster.
//!
//! A cluster is what is resampled: a bout, or of a probe a position or the positions of one game. Where a run has more of them than [`CLUSTERS`], each
//! is put into one of so many groups by a hash of its number, and groups are resampled: sums over groups drawn at random
//! are as independent of each other as bouts are, memory stays the same however long the run is, and an interval from a
//! thousand groups is as wide as one from all bouts, give or take some 2 % of its width (one in the square root of twice
//! their number; Wolter, "Introduction to variance estimation", 2007, chapter 2). Logarithms and b* are added as
//! multiples of 2^-24. So all sums are exact and the same for any order of rows, parts and threads.

use std::collections::BTreeMap;

use agon_records::{Batch, ReadError, Table};
use agon_stats::branching::{effective_branching_factor, minimal_leaves};

/// The most clusters of a player.
const CLUSTERS: u64 = 1024;

/// The fewest, where there are very many players.
const FEWEST_CLUSTERS: u64 = 64;

/// Clusters of all players together.
const ALL_CLUSTERS: u64 = 1 << 17;

/// With more players than this only the first is compared with all others.
const COMPARED: usize = 32;

/// Depths beyond this are not told apart.
const DEPTHS: usize = 128;

/// One in the sums of what has a fraction.
pub(super) const ONE: f64 = (1 << 24) as f64;

/// What is summed, by its place in [`Sums`].
pub(super) mod sum {
    pub const SEARCHES: usize = 0;
    pub const NODES: usize = 1;
    pub const SIMULATIONS: usize = 2;
    pub const TIME_US: usize = 3;
    pub const CUTOFFS: usize = 4;
    pub const FIRST_MOVE_CUTOFFS: usize = 5;
    pub const TABLE_PROBES: usize = 6;
    pub const TABLE_HITS: usize = 7;
    /// Searches that completed a depth.
    pub const DEEPENED: usize = 8;
    pub const DEPTH: usize = 9;
    pub const BRANCHING: usize = 10;
    /// Logarithms of nodes(d) / nodes(d - 1), and how many.
    pub const GROWTH: usize = 11;
    pub const STEPS: usize = 12;
    /// Logarithms of leaves against the minimal tree's, and how many.
    pub const MINIMAL: usize = 13;
    pub const MINIMAL_COUNT: usize = 14;
    /// Logarithms of nodes against minimax's, and how many.
    pub const MINIMAX: usize = 15;
    pub const MINIMAX_COUNT: usize = 16;
    pub const COUNT: usize = 17;
}

/// The sums of a cluster.
pub(super) type Sums = [i64; sum::COUNT];

/// A sum and how many numbers it is of.
pub(super) type Mean = [i64; 2];

/// What is asked of a run.
pub(super) struct Frame {
    /// The players' names.
    pub names: Vec<String>,
    /// Whether players searched the same positions.
    pub probe: bool,
    /// Whether the minimal tree of two seats means something here.
    pub duel: bool,
    /// The player that searches the full width.
    pub full_width: Option<usize>,
    /// Every so manieth position of a probe is kept for the full width to be counted; 0 for none.
    pub sampled_step: u64,
    /// So many bouts in a row belong together.
    together: u64,
    clusters: u64,
    grouped: bool,
}

impl Frame {
    /// A frame for a run of so many bouts, of which `together` in a row belong together.
    pub fn new(names: Vec<String>, bouts: u64, together: u64) -> Frame {
        let units = bouts.div_ceil(together);
        let most = (ALL_CLUSTERS / names.len().max(1) as u64).clamp(FEWEST_CLUSTERS, CLUSTERS);
        let (clusters, grouped) = (units.clamp(1, most), units > most);
        Frame {
            names,
            probe: false,
            duel: false,
            full_width: None,
            sampled_step: 0,
            together,
            clusters,
            grouped,
        }
    }

    /// The columns that are read.
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

    /// The table that is read.
    pub fn table(&self) -> Table {
        if self.probe { Table::Probes } else { Table::Moves }
    }

    /// The cluster of a bout.
    pub fn cluster(&self, bout: u64) -> usize {
        let unit = bout / self.together;
        let place = if self.grouped { mixed(unit) } else { unit };
        (place % self.clusters) as usize
    }
}

/// The finaliser of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
fn mixed(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// The nodes of each completed depth of the searches of one position, by player.
type Searched = Vec<(usize, Vec<u64>)>;

/// A position that was kept.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Sampled {
    /// Where its moves start.
    pub position: String,
    /// Moves from there.
    pub moves: String,
    /// What was searched there.
    pub searches: Searched,
}

/// The sums of a player.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct PlayerSums {
    /// By cluster; empty where there is no search.
    pub clusters: Vec<Sums>,
    /// Nodes of each depth, from depth 1, by cluster.
    pub depths: Vec<Vec<Mean>>,
}

/// Sums of everything that went by.
pub(super) struct Tally<'a> {
    frame: &'a Frame,
    /// By player.
    pub players: Vec<PlayerSums>,
    /// Logarithms of the ratios of nodes of a first and a second player at a depth, by cluster.
    pub pairs: BTreeMap<(usize, usize, usize), Vec<Mean>>,
    /// Positions that not all players' searches were seen of.
    open: BTreeMap<u64, Searched>,
    /// Positions that are kept, by bout.
    pub sampled: BTreeMap<u64, Sampled>,
    /// A name that is no player's.
    pub stranger: Option<String>,
    /// Logarithms of leaves of minimal trees by branching and depth, as they were asked for.
    minimal: Vec<f64>,
}

/// The branching below which leaves of minimal trees are remembered, and the depth.
const REMEMBERED: [usize; 2] = [256, 32];

impl<'a> Tally<'a> {
    /// Nothing yet.
    pub fn new(frame: &'a Frame) -> Tally<'a> {
        Tally {
            frame,
            players: vec![PlayerSums::default(); frame.names.len()],
            pairs: BTreeMap::new(),
            open: BTreeMap::new(),
            sampled: BTreeMap::new(),
            stranger: None,
            minimal: vec![f64::NAN; REMEMBERED[0] * REMEMBERED[1]],
        }
    }

    /// Adds some rows.
    pub fn add(&mut self, batch: &Batch) -> Result<(), ReadError> {
        let frame = self.frame;
        let names = batch.names("player")?;
        let number = |name: &str| frame.names.iter().position(|known| known == name);
        let numbers: Vec<Option<usize>> = names.values().map(number).collect();
        let (bouts, legal) = (batch.numbers("bout")?, batch.smalls("legal")?);
        let depth = batch.searched_smalls("depth", &names)?;
        let column = |name| batch.searched_numbers(name, &names);
        let (nodes, leaves, simulations) = (column("nodes")?, column("leaves")?, column("simulations")?);
        let (cutoffs, first_move_cutoffs) = (column("cutoffs")?, column("first_move_cutoffs")?);
        let (table_probes, table_hits) = (column("table_probes")?, column("table_hits")?);
        let time_us = column("time_us")?;
        let depth_nodes = batch.searched_lists("depth_nodes", &names)?;
        let mut stranger = None;
        names.each(|row, key| {
            let Some(player) = numbers[key] else {
                stranger = Some(key);
                return;
            };
            let by_depth = depth_nodes.of(row);
            let cluster = frame.cluster(bouts[row]);
            let minimal = match frame.duel && legal[row] > 1 && leaves[row] > 0 && nodes[row] > 0 {
                true => self.against_minimal(leaves[row], nodes[row], legal[row], by_depth),
                false => None,
            };
            let sums = cluster_of(&mut self.players[player].clusters, cluster, frame.clusters);
            add(sums, sum::SEARCHES, 1);
            add(sums, sum::NODES, whole(nodes[row]));
            add(sums, sum::SIMULATIONS, whole(simulations[row]));
            add(sums, sum::TIME_US, whole(time_us[row]));
            add(sums, sum::CUTOFFS, whole(cutoffs[row]));
            add(sums, sum::FIRST_MOVE_CUTOFFS, whole(first_move_cutoffs[row]));
            add(sums, sum::TABLE_PROBES, whole(table_probes[row]));
            add(sums, sum::TABLE_HITS, whole(table_hits[row]));
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
                    depths.push(vec![[0; 2]; frame.clusters as usize]);
                }
                let [sum, count] = &mut depths[index][cluster];
                *sum = sum.saturating_add(whole(nodes));
                *count += 1;
            }
            if frame.probe {
                self.open.entry(bouts[row]).or_default().push((player, by_depth.to_vec()));
            }
        });
        self.stranger =
            self.stranger.take().or(stranger.and_then(|key| names.values().nth(key)).map(Into::into));
        self.sample(batch)?;
        self.close(false);
        Ok(())
    }

    /// The logarithm of the leaves of the completed depths against those of minimal trees of the same depths. Leaves are
    /// counted for the whole search: those of completed depths are taken to be their share of the nodes.
    fn against_minimal(&mut self, leaves: u64, nodes: u64, legal: u16, by_depth: &[u64]) -> Option<f64> {
        let completed: u64 = by_depth.iter().fold(0, |sum, &nodes| sum.saturating_add(nodes));
        let depth = by_depth.len();
        if depth == 0 || completed == 0 {
            return None;
        }
        let compute = || {
            let leaves = (1..=depth as u32).map(|depth| minimal_leaves(f64::from(legal), depth));
            leaves.sum::<f64>().ln()
        };
        let minimal = if usize::from(legal) < REMEMBERED[0] && depth < REMEMBERED[1] {
            let remembered = &mut self.minimal[usize::from(legal) * REMEMBERED[1] + depth];
            if remembered.is_nan() {
                *remembered = compute();
            }
            *remembered
        } else {
            compute()
        };
        let share = (completed as f64 / nodes as f64).min(1.0);
        Some((leaves as f64 * share).ln() - minimal).filter(|ratio| ratio.is_finite())
    }

    /// Keeps positions that the full width is counted at.
    fn sample(&mut self, batch: &Batch) -> Result<(), ReadError> {
        let step = self.frame.sampled_step;
        if step == 0 {
            return Ok(());
        }
        let (bouts, names) = (batch.numbers("bout")?, batch.names("player")?);
        let (positions, moves) = (batch.names("position")?, batch.names("moves")?);
        let depth_nodes = batch.searched_lists("depth_nodes", &names)?;
        for row in (0..batch.rows()).filter(|&row| bouts[row].is_multiple_of(step)) {
            let player = self.frame.names.iter().position(|name| name == names.text(row));
            let kept = self.sampled.entry(bouts[row]).or_default();
            kept.position = positions.text(row).to_string();
            kept.moves = moves.text(row).to_string();
            kept.searches.extend(player.map(|player| (player, depth_nodes.of(row).to_vec())));
        }
        Ok(())
    }

    /// Compares the players at positions that all of them have searched, or at all that are left.
    fn close(&mut self, all: bool) {
        let players = self.frame.names.len();
        let open = std::mem::take(&mut self.open);
        for (bout, mut searches) in open {
            if !all && searches.len() < players {
                self.open.insert(bout, searches);
                continue;
            }
            searches.sort_unstable();
            let cluster = self.frame.cluster(bout);
            for (index, (first, own)) in searches.iter().enumerate() {
                if players > COMPARED && *first > 0 {
                    break;
                }
                for (second, others) in &searches[index + 1..] {
                    self.compare((*first, own), (*second, others), cluster);
                }
            }
            let reference = self.frame.full_width;
            if let Some((_, reference)) = searches.iter().find(|(player, _)| Some(*player) == reference) {
                for (player, own) in &searches {
                    self.add_full_width(*player, bout, own, reference);
                }
            }
        }
    }

    fn compare(&mut self, first: (usize, &[u64]), second: (usize, &[u64]), cluster: usize) {
        for (index, (&own, &other)) in first.1.iter().zip(second.1).take(DEPTHS).enumerate() {
            if own > 0 && other > 0 {
                let ratios = self.pairs.entry((first.0, second.0, index + 1)).or_default();
                let [sum, count] = cluster_of(ratios, cluster, self.frame.clusters);
                *sum += fixed((own as f64 / other as f64).ln());
                *count += 1;
            }
        }
    }

    /// Compares a search with the full width at the greatest depth that both have completed.
    pub fn add_full_width(&mut self, player: usize, bout: u64, own: &[u64], full: &[u64]) {
        let depth = own.len().min(full.len());
        let Some((&own, &full)) = own.get(depth.wrapping_sub(1)).zip(full.get(depth.wrapping_sub(1))) else {
            return;
        };
        if own > 0 && full > 0 {
            let clusters = &mut self.players[player].clusters;
            let sums = cluster_of(clusters, self.frame.cluster(bout), self.frame.clusters);
            add(sums, sum::MINIMAX, fixed((own as f64 / full as f64).ln()));
            add(sums, sum::MINIMAX_COUNT, 1);
        }
    }

    /// Adds what another thread has seen.
    pub fn merge(&mut self, other: Tally<'_>) {
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
        self.stranger = self.stranger.take().or(other.stranger);
        self.close(false);
    }

    /// Compares what is left, after everything has gone by.
    pub fn finish(&mut self) {
        self.close(true);
    }
}

/// A cluster of some that come into being with the first of them.
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

/// A count. What no search can have counted is the most that there is.
fn whole(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// A number with a fraction, as it is summed.
fn fixed(number: f64) -> i64 {
    (number * ONE).round() as i64
}
