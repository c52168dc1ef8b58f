//! Search and pruning statistics of a run: one scan over its moves or probes, then measures with bootstrap intervals.
//!
//! docs/reference/statistics.md defines the measures. `accumulator.rs` sums by cluster; `unpruned.rs` counts full trees if no
//! player searched them. Measures that do not apply to a player are absent, with a note where the reason is not obvious.
//! Deliberately not here: playing strength.

mod accumulator;
mod unpruned;

use std::num::NonZeroUsize;

use agon_arena::spec::Plan;
use agon_arena::{Family, Opening, PlayError, Spec, SpecError};
use agon_games::{GAMES, SetupError};
use agon_stats::replicas::{percentile_interval, resampled_sums};
use serde::Serialize;

use crate::dataset::{Dataset, DatasetError, Run};
use crate::scan::{scan, whole_table};
use accumulator::{Accumulator, Layout, Mean, ONE, PlayerSums, sum};

/// An error while computing the statistics.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PruningError {
    /// From the dataset.
    #[error(transparent)]
    Dataset(#[from] DatasetError),
    /// The spec cannot be parsed.
    #[error("cannot parse the spec of the run: {0}")]
    Spec(#[from] SpecError),
    /// A search by a player that is not in the spec.
    #[error(
        "the dataset has searches of `{name}`, which is not a player of the run; run `agon verify` for details"
    )]
    UnknownPlayer {
        /// The name.
        name: String,
    },
    /// A position cannot be searched.
    #[error("cannot search a position of the probe: {0}")]
    Play(#[from] PlayError),
    /// The game cannot be set up.
    #[error(transparent)]
    Setup(#[from] SetupError),
}

/// Options of the statistics.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// Bootstrap replicas; 0 for no intervals.
    pub replicas: usize,
    /// Seed of the resampling.
    pub seed: u64,
    /// Number of threads.
    pub threads: NonZeroUsize,
}

/// A value with its 95 % interval, if there are replicas and at least two clusters.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Interval {
    /// The value.
    pub value: f64,
    /// Lower end.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
}

impl Interval {
    /// Returns both ends, if known.
    pub fn ends(&self) -> Option<(f64, f64)> {
        self.low.zip(self.high)
    }

    /// Multiplies the value and both ends by a positive number.
    #[must_use]
    pub fn scaled(&self, factor: f64) -> Interval {
        let scaled = |end: f64| factor * end;
        Interval { value: scaled(self.value), low: self.low.map(scaled), high: self.high.map(scaled) }
    }
}

/// Search statistics of a player.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PlayerPruning {
    /// Player name.
    pub player: String,
    /// The game.
    pub game: String,
    /// Number of searches.
    pub searches: u64,
    /// Nodes per second.
    pub nps: Option<Interval>,
    /// Simulations per second of a sampling search.
    pub sps: Option<Interval>,
    /// Mean of the last completed depth.
    pub mean_depth: Option<Interval>,
    /// Mean effective branching factor of the last completed depth.
    pub ebf: Option<Interval>,
    /// Geometric mean of nodes(d) / nodes(d - 1).
    pub growth: Option<Interval>,
    /// Share of cutoffs by the first move.
    pub first_move_share: Option<Interval>,
    /// Share of table probes that hit.
    pub hit_rate: Option<Interval>,
    /// Nodes ÷ nodes of a search without pruning, at equal depth on the same positions.
    pub vs_minimax: Option<Interval>,
    /// Leaves ÷ minimal-tree leaves.
    pub vs_minimal: Option<Interval>,
}

/// Node ratio of two players, to the same depth at the same positions.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Ratio {
    /// The first player.
    pub a: String,
    /// The second player.
    pub b: String,
    /// The depth.
    pub depth: usize,
    /// Geometric mean of nodes of the first ÷ nodes of the second.
    pub ratio: f64,
    /// Lower end of the interval.
    pub low: Option<f64>,
    /// Upper end of the interval.
    pub high: Option<f64>,
    /// Number of positions at which both completed the depth.
    pub positions: u64,
}

impl Ratio {
    /// Returns the ratio with its interval.
    pub fn interval(&self) -> Interval {
        Interval { value: self.ratio, low: self.low, high: self.high }
    }

    /// Returns the ratio of the second player to the first.
    pub fn inverse(&self) -> Ratio {
        let inverse = |number: f64| 1.0 / number;
        Ratio {
            a: self.b.clone(),
            b: self.a.clone(),
            ratio: inverse(self.ratio),
            low: self.high.map(inverse),
            high: self.low.map(inverse),
            ..*self
        }
    }
}

/// Nodes of one depth of a player.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct DepthNodes {
    /// The player.
    pub player: String,
    /// The depth.
    pub depth: usize,
    /// Mean over the searches that completed it.
    pub nodes: Interval,
    /// Number of those searches.
    pub searches: u64,
}

/// A remark on a measure.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Note {
    /// The measure.
    pub measure: &'static str,
    /// The remark.
    pub note: String,
}

/// Search and pruning statistics of a run.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Pruning {
    /// The run.
    pub run: String,
    /// Whether no more bouts will be added.
    pub complete: bool,
    /// Bouts, or positions, whose searches were read.
    pub bouts: u64,
    /// Scheduled bouts or positions.
    pub scheduled: u64,
    /// Whether all players search the same positions.
    pub probe: bool,
    /// Unit of the bootstrap: bouts, positions or games.
    pub unit: &'static str,
    /// The players in spec order.
    pub players: Vec<PlayerPruning>,
    /// Node ratios between the players of a probe.
    pub ratios: Vec<Ratio>,
    /// Nodes by depth.
    pub by_depth: Vec<DepthNodes>,
    /// Remarks on the measures.
    pub notes: Vec<Note>,
}

/// Computes the search and pruning statistics of a run.
pub fn pruning(dataset: &Dataset, run: &Run, settings: Settings) -> Result<Pruning, PruningError> {
    let spec = Spec::parse(&run.source)?;
    let info = GAMES.iter().find(|info| info.name == spec.game.name());
    let info = info.expect("a spec names a listed game");
    let family = Family::of(info, spec.game.parameters().seats());
    let layout = layout(&spec, family, run.bouts);

    // 1. Scan all searches.
    let parts = whole_table(dataset, run, layout.table())?;
    let columns = layout.columns();
    let shares =
        scan(run, parts, &columns, settings.threads, || Accumulator::new(&layout), Accumulator::add)?;
    let mut accumulator = Accumulator::new(&layout);
    for share in shares {
        accumulator.merge(share);
    }
    accumulator.finish();
    if let Some(name) = accumulator.unknown_player {
        return Err(PruningError::UnknownPlayer { name });
    }

    // 2. Count unpruned trees at the sampled positions.
    let sampled = std::mem::take(&mut accumulator.sampled);
    let positions: Vec<(Opening, usize)> = sampled.values().map(opening).collect();
    let counted = unpruned::count(&spec, family, &positions, settings.threads)?;
    for ((&bout, position), unpruned) in sampled.iter().zip(&counted) {
        for (player, own) in &position.searches {
            accumulator.add_unpruned_ratio(*player, bout, own, unpruned);
        }
    }
    let deepest = counted.iter().map(Vec::len).max().unwrap_or(0);

    // 3. Compute the measures.
    let statistics = |(name, sums): (&String, &PlayerSums)| player_pruning(name, &spec, sums, settings);
    let players: Vec<PlayerPruning> = layout.names.iter().zip(&accumulator.players).map(statistics).collect();
    let notes = notes(&layout, family, &players, positions.len(), deepest);
    Ok(Pruning {
        run: run.id.clone(),
        complete: !run.state.is_open(),
        bouts: accumulator.bouts.count(),
        scheduled: run.bouts,
        probe: layout.probe,
        unit: match &spec.plan {
            Plan::Probe(positions) if positions.positions_per_game() > 1 => "games",
            Plan::Probe(_) => "positions",
            _ => "bouts",
        },
        ratios: ratios(&layout, &accumulator, settings),
        by_depth: by_depth(&layout, &accumulator, settings),
        players,
        notes,
    })
}

fn layout(spec: &Spec, family: Family, bouts: u64) -> Layout {
    let names = spec.players.iter().map(|player| player.name.clone()).collect();
    let bouts_per_cluster = match &spec.plan {
        Plan::Probe(positions) => positions.positions_per_game(),
        _ => 1,
    };
    let mut layout = Layout::new(names, bouts, bouts_per_cluster);
    layout.duel = family == Family::Duel;
    layout.probe = matches!(spec.plan, Plan::Probe(_));
    let unpruned = unpruned::algorithm(family);
    layout.unpruned = spec.players.iter().position(|player| player.config.name() == unpruned);
    if layout.probe && layout.unpruned.is_none() {
        layout.sampled_step = bouts.div_ceil(unpruned::POSITIONS).max(1);
    }
    layout
}

/// Returns a sampled position and the greatest depth that a player completed there.
fn opening(sampled: &accumulator::Sampled) -> (Opening, usize) {
    let position = Some(sampled.position.clone()).filter(|text| !text.is_empty());
    let depth = sampled.searches.iter().map(|(_, by_depth)| by_depth.len()).max().unwrap_or(0);
    (Opening { position, moves: sampled.moves.clone() }, depth)
}

/// Minimum mean time of searches whose speed is computed; times are rounded down to microseconds.
const LEAST_TIME_US: f64 = 5.0;

/// A measure defined by the ratio of two sums.
struct Formula {
    numerator: usize,
    denominator: usize,
    /// Factor of the ratio.
    unit: f64,
    /// Whether the ratio is a mean of logarithms.
    logarithm: bool,
}

impl Formula {
    /// Returns the value, if defined.
    fn value(&self, sums: &[f64]) -> Option<f64> {
        let (numerator, denominator) = (sums[self.numerator], sums[self.denominator]);
        let ratio = numerator / denominator * self.unit;
        let value = if self.logarithm { ratio.exp() } else { ratio };
        (denominator > 0.0 && value.is_finite()).then_some(value)
    }

    /// Computes the value over all clusters and its interval from the replicas.
    fn measure<const N: usize>(&self, clusters: &[[f64; N]], replicas: &[[f64; N]]) -> Option<Interval> {
        let mut total = [0.0; N];
        for cluster in clusters {
            total.iter_mut().zip(cluster).for_each(|(sum, value)| *sum += value);
        }
        let value = self.value(&total)?;
        let informed = clusters.iter().filter(|cluster| cluster[self.denominator] > 0.0).count();
        let drawn: Vec<f64> = replicas.iter().filter_map(|sums| self.value(sums)).collect();
        let interval = percentile_interval(value, drawn, informed, 1);
        let (low, high) = interval.map(|interval| (interval.low, interval.high)).unzip();
        Some(Interval { value, low, high })
    }
}

/// Returns the clusters with a nonzero count, as floating-point numbers.
fn nonempty<const N: usize>(clusters: &[[i64; N]], count: usize) -> Vec<[f64; N]> {
    clusters.iter().filter(|sums| sums[count] > 0).map(|sums| sums.map(|sum| sum as f64)).collect()
}

fn player_pruning(name: &str, spec: &Spec, sums: &PlayerSums, settings: Settings) -> PlayerPruning {
    let clusters = nonempty(&sums.clusters, sum::SEARCHES);
    let replicas = resampled_sums(&clusters, settings.seed, settings.replicas);
    let measure = |numerator, denominator, unit, logarithm| {
        Formula { numerator, denominator, unit, logarithm }.measure(&clusters, &replicas)
    };
    let samples = clusters.iter().any(|sums| sums[sum::SIMULATIONS] > 0.0);
    let total = |index: usize| clusters.iter().map(|sums| sums[index]).sum::<f64>();
    let measurable = total(sum::TIME_US) >= LEAST_TIME_US * total(sum::SEARCHES);
    PlayerPruning {
        player: name.to_string(),
        game: spec.game.to_string(),
        searches: sums.clusters.iter().map(|sums| sums[sum::SEARCHES] as u64).sum(),
        nps: if measurable { measure(sum::NODES, sum::TIME_US, 1e6, false) } else { None },
        sps: if samples && measurable { measure(sum::SIMULATIONS, sum::TIME_US, 1e6, false) } else { None },
        mean_depth: measure(sum::DEPTH, sum::DEEPENED, 1.0, false),
        ebf: measure(sum::BRANCHING, sum::DEEPENED, 1.0 / ONE, false),
        growth: measure(sum::GROWTH, sum::STEPS, 1.0 / ONE, true),
        first_move_share: measure(sum::FIRST_MOVE_CUTOFFS, sum::CUTOFFS, 1.0, false),
        hit_rate: measure(sum::TABLE_HITS, sum::TABLE_PROBES, 1.0, false),
        vs_minimax: measure(sum::MINIMAX, sum::MINIMAX_COUNT, 1.0 / ONE, true),
        vs_minimal: measure(sum::MINIMAL, sum::MINIMAL_COUNT, 1.0 / ONE, true),
    }
}

/// Returns the mean with its interval from sums and counts by cluster, and the total count.
fn mean(means: &[Mean], unit: f64, logarithm: bool, settings: Settings) -> Option<(Interval, u64)> {
    let clusters = nonempty(means, 1);
    let replicas = resampled_sums(&clusters, settings.seed, settings.replicas);
    let interval = Formula { numerator: 0, denominator: 1, unit, logarithm }.measure(&clusters, &replicas)?;
    Some((interval, means.iter().map(|mean| mean[1] as u64).sum()))
}

fn ratios(layout: &Layout, accumulator: &Accumulator<'_>, settings: Settings) -> Vec<Ratio> {
    let pairs = accumulator.pairs.iter();
    let ratio = |(&(first, second, depth), means): (&(usize, usize, usize), &Vec<Mean>)| {
        let (Interval { value, low, high }, positions) = mean(means, 1.0 / ONE, true, settings)?;
        let (a, b) = (layout.names[first].clone(), layout.names[second].clone());
        Some(Ratio { a, b, depth, ratio: value, low, high, positions })
    };
    pairs.filter_map(ratio).collect()
}

fn by_depth(layout: &Layout, accumulator: &Accumulator<'_>, settings: Settings) -> Vec<DepthNodes> {
    let mut all = Vec::new();
    for (name, sums) in layout.names.iter().zip(&accumulator.players) {
        for (index, means) in sums.depths.iter().enumerate() {
            let row = mean(means, 1.0, false, settings).map(|(nodes, searches)| DepthNodes {
                player: name.clone(),
                depth: index + 1,
                nodes,
                searches,
            });
            all.extend(row);
        }
    }
    all
}

fn notes(
    layout: &Layout,
    family: Family,
    players: &[PlayerPruning],
    counted: usize,
    deepest: usize,
) -> Vec<Note> {
    let mut notes = Vec::new();
    let mut add = |measure, note: String| notes.push(Note { measure, note });
    if players.iter().all(|player| player.searches == 0) {
        return notes;
    }
    let unpruned = unpruned::algorithm(family);
    let deepens = players.iter().any(|player| player.mean_depth.is_some());
    if !deepens {
        add("mean_depth", "no search of the run completed a depth".to_string());
    } else if !layout.probe {
        let note = format!(
            "the players of a tournament search different positions; measure it with a probe that includes {unpruned}"
        );
        add("vs_minimax", note);
    } else if let Some(player) = layout.unpruned {
        let note = format!("measured: {} searched the same positions", layout.names[player]);
        add("vs_minimax", note);
    } else if deepest > 0 {
        let note = format!(
            "unpruned trees were counted at {counted} positions, at most to depth {deepest} within the budget"
        );
        add("vs_minimax", note);
    } else {
        add("vs_minimax", "no unpruned tree could be counted within the budget".to_string());
    }
    if deepens && !layout.duel {
        let note = "the minimal tree is defined only for two seats without chance".to_string();
        add("vs_minimal", note);
    }
    notes
}

#[cfg(test)]
mod tests {
    use agon_games::random::{Random, below, seeded};

    use super::*;

    /// Returns the nodes and searches of a random bout; bouts differ in nodes per search.
    fn bout(random: &mut Random) -> Mean {
        let (searches, speed) = (1 + below(random, 20), 500 + below(random, 1001));
        [(searches * speed) as i64, searches as i64]
    }

    /// Returns how often the interval covers the true 1000 nodes per search.
    fn coverage(bouts: u64, runs: u64) -> f64 {
        let layout = Layout::new(vec!["a".to_string()], bouts, 1);
        let mut covered = 0;
        for run in 0..runs {
            let mut random = seeded(run);
            let mut means = vec![[0; 2]; bouts.min(1024) as usize];
            for index in 0..bouts {
                let [sum, count] = bout(&mut random);
                let mean = &mut means[layout.cluster(index)];
                *mean = [mean[0] + sum, mean[1] + count];
            }
            let settings = Settings { replicas: 200, seed: run, threads: NonZeroUsize::MIN };
            let (interval, _) = mean(&means, 1.0, false, settings).unwrap();
            covered += u64::from(interval.low.unwrap() <= 1000.0 && interval.high.unwrap() >= 1000.0);
        }
        covered as f64 / runs as f64
    }

    /// Within three standard errors of the simulation, with single bouts and with hashed groups as clusters.
    #[test]
    fn intervals_cover_true_value() {
        let runs = 400;
        let error = (0.95 * 0.05 / runs as f64).sqrt();
        for bouts in [20, 50, 3000] {
            let share = coverage(bouts, runs);
            println!("{bouts} bouts: {share}");
            assert!((share - 0.95).abs() <= 3.0 * error, "{bouts} bouts: {share}");
        }
    }

    #[test]
    fn bouts_are_hashed_into_groups_above_limit() {
        let layout = Layout::new(vec![String::new(); 2], 1000, 1);
        assert!((0..1000).all(|bout| layout.cluster(bout) == bout as usize));
        let games = Layout::new(vec![String::new(); 2], 1000, 5);
        assert!(
            (0..1000).all(|bout| games.cluster(bout) == bout as usize / 5),
            "positions of a game share a cluster"
        );
        let layout = Layout::new(vec![String::new(); 2], 100_000, 1);
        let mut sizes = vec![0; 1024];
        (0..100_000).for_each(|bout| sizes[layout.cluster(bout)] += 1);
        // A group has 98 +- 10 bouts.
        assert!(sizes.iter().all(|&size| (50..150).contains(&size)), "{sizes:?}");
        // Bouts at equal distances, like those of a pairing, are spread over the groups.
        for step in [6, 1024] {
            let mut hit = vec![false; 1024];
            (0..100_000).step_by(step).for_each(|bout| hit[layout.cluster(bout)] = true);
            assert!(hit.iter().filter(|hit| **hit).count() > 80);
        }
    }

    #[test]
    fn mean_without_data_is_absent() {
        let settings = Settings { replicas: 50, seed: 1, threads: NonZeroUsize::MIN };
        assert_eq!(mean(&[], 1.0, false, settings), None);
        assert_eq!(mean(&[[0, 0]; 3], 1.0, true, settings), None);
        let one = mean(&[[6, 2], [0, 0]], 1.0, false, settings).unwrap();
        assert_eq!(one, (Interval { value: 3.0, low: None, high: None }, 2));
    }
}
