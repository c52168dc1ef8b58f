//! How the players of a run search and prune: one scan over its moves or probes, then measures with intervals.
//!
//! What each measure means is in docs/statistics.md. Intervals come from resampling bouts, or of a probe positions or whole games,
//! whose sums `tally.rs` keeps; `full_width.rs` counts whole trees where nobody searched them. Measures that do not apply
//! to a player are absent, and a note says why where that is not plain. Deliberately not here: who plays better.

mod full_width;
mod tally;

use std::num::NonZeroUsize;

use agon_arena::spec::Plan;
use agon_arena::{Family, Opening, PlayError, Spec, SpecError};
use agon_games::{GAMES, SetupError};
use agon_stats::replicas::{percentile_interval, resampled_sums};
use serde::Serialize;

use crate::dataset::{Dataset, DatasetError, Run};
use crate::scan::{scan, whole_table};
use tally::{Frame, Mean, ONE, PlayerSums, Tally, sum};

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PruningError {
    /// The dataset.
    #[error(transparent)]
    Dataset(#[from] DatasetError),
    /// The spec of the run.
    #[error("the spec of the run is not understood: {0}")]
    Spec(#[from] SpecError),
    /// A search by somebody who is not in the spec.
    #[error("the dataset has searches of `{name}`, who is no player of the run; `agon verify` says more")]
    Stranger {
        /// The name.
        name: String,
    },
    /// A position that cannot be searched.
    #[error("a position of the probe cannot be searched again: {0}")]
    Play(#[from] PlayError),
    /// The game cannot be set up.
    #[error(transparent)]
    Setup(#[from] SetupError),
}

/// How an answer is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// How often clusters are resampled; 0 for no intervals.
    pub replicas: usize,
    /// Where the resampling draws from.
    pub seed: u64,
    /// How many threads read.
    pub threads: NonZeroUsize,
}

/// A value with the ends of its 95 % interval, where there are two clusters or more and replicas were asked for.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Interval {
    /// The value.
    pub value: f64,
    /// The lower end.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
}

/// How a player searches.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PlayerPruning {
    /// Its name.
    pub player: String,
    /// The game.
    pub game: String,
    /// How many searches of it were read.
    pub searches: u64,
    /// Nodes a second.
    pub nps: Option<Interval>,
    /// Simulations a second, of a search that samples.
    pub sps: Option<Interval>,
    /// The mean of the last completed depth.
    pub mean_depth: Option<Interval>,
    /// The mean effective branching factor of the last completed depth.
    pub ebf: Option<Interval>,
    /// The geometric mean of nodes(d) / nodes(d - 1).
    pub growth: Option<Interval>,
    /// The share of cutoffs by the first move.
    pub first_move_share: Option<Interval>,
    /// The share of looks into the table that found the position.
    pub hit_rate: Option<Interval>,
    /// Nodes as a ratio to those of a search without pruning at equal depth on the same positions.
    pub vs_minimax: Option<Interval>,
    /// Leaves as a ratio to those of the minimal tree.
    pub vs_minimal: Option<Interval>,
}

/// Nodes of one player as a ratio to another's, to the same depth at the same positions.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Ratio {
    /// The first player.
    pub a: String,
    /// The second, whose nodes are one.
    pub b: String,
    /// The depth.
    pub depth: usize,
    /// The geometric mean of the ratios.
    pub ratio: f64,
    /// The lower end of its interval.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
    /// At how many positions both have completed the depth.
    pub positions: u64,
}

/// Nodes of a depth alone.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct DepthNodes {
    /// The player.
    pub player: String,
    /// The depth.
    pub depth: usize,
    /// The mean over the searches that completed it.
    pub nodes: Interval,
    /// How many these are.
    pub searches: u64,
}

/// Something to know about a measure.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Note {
    /// The measure.
    pub measure: &'static str,
    /// What there is to know.
    pub note: String,
}

/// How the players of a run search and prune.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Pruning {
    /// The run.
    pub run: String,
    /// Whether nothing will be added to it.
    pub complete: bool,
    /// The bouts, or positions, that were done when the run's file was written.
    pub bouts: u64,
    /// Those of its schedule.
    pub scheduled: u64,
    /// Whether players searched the same positions.
    pub probe: bool,
    /// What is resampled for the intervals: bouts, positions or games.
    pub unit: &'static str,
    /// The players in the order of the spec.
    pub players: Vec<PlayerPruning>,
    /// Ratios between players, of a probe.
    pub ratios: Vec<Ratio>,
    /// Nodes by depth.
    pub by_depth: Vec<DepthNodes>,
    /// What there is to know about the measures.
    pub notes: Vec<Note>,
}

/// Asks how the players of a run search and prune.
pub fn pruning(dataset: &Dataset, run: &Run, settings: Settings) -> Result<Pruning, PruningError> {
    let spec = Spec::parse(&run.source)?;
    let info = GAMES.iter().find(|info| info.name == spec.game.name());
    let info = info.expect("a spec names a listed game");
    let family = Family::of(info, spec.game.parameters().seats());
    let frame = frame(&spec, family, run.bouts);

    // 1. Everything goes by once.
    let parts = whole_table(dataset, run, frame.table())?;
    let columns = frame.columns();
    let tallies = scan(run, parts, &columns, settings.threads, || Tally::new(&frame), Tally::add)?;
    let mut tally = Tally::new(&frame);
    for other in tallies {
        tally.merge(other);
    }
    tally.finish();
    if let Some(name) = tally.stranger {
        return Err(PruningError::Stranger { name });
    }

    // 2. Whole trees that nobody searched are counted at some positions.
    let sampled = std::mem::take(&mut tally.sampled);
    let positions: Vec<(Opening, usize)> = sampled.values().map(opening).collect();
    let counted = full_width::count(&spec, family, &positions, settings.threads)?;
    for ((&bout, position), full) in sampled.iter().zip(&counted) {
        for (player, own) in &position.searches {
            tally.add_full_width(*player, bout, own, full);
        }
    }
    let deepest = counted.iter().map(Vec::len).max().unwrap_or(0);

    // 3. Sums become measures.
    let answer = |(name, sums): (&String, &PlayerSums)| measures(name, &spec, sums, settings);
    let players: Vec<PlayerPruning> = frame.names.iter().zip(&tally.players).map(answer).collect();
    let notes = notes(&frame, family, &players, positions.len(), deepest);
    Ok(Pruning {
        run: run.id.clone(),
        complete: !run.state.is_open(),
        bouts: run.committed,
        scheduled: run.bouts,
        probe: frame.probe,
        unit: match &spec.plan {
            Plan::Probe(positions) if positions.together() > 1 => "games",
            Plan::Probe(_) => "positions",
            _ => "bouts",
        },
        ratios: ratios(&frame, &tally, settings),
        by_depth: by_depth(&frame, &tally, settings),
        players,
        notes,
    })
}

fn frame(spec: &Spec, family: Family, bouts: u64) -> Frame {
    let names = spec.players.iter().map(|player| player.name.clone()).collect();
    let together = match &spec.plan {
        Plan::Probe(positions) => positions.together(),
        _ => 1,
    };
    let mut frame = Frame::new(names, bouts, together);
    frame.duel = family == Family::Duel;
    frame.probe = matches!(spec.plan, Plan::Probe(_));
    let full = full_width::algorithm(family);
    frame.full_width = spec.players.iter().position(|player| player.config.algorithm.name == full);
    if frame.probe && frame.full_width.is_none() {
        frame.sampled_step = bouts.div_ceil(full_width::POSITIONS).max(1);
    }
    frame
}

/// A position, and the greatest depth that anybody completed there.
fn opening(sampled: &tally::Sampled) -> (Opening, usize) {
    let position = Some(sampled.position.clone()).filter(|text| !text.is_empty());
    let depth = sampled.searches.iter().map(|(_, by_depth)| by_depth.len()).max().unwrap_or(0);
    (Opening { position, moves: sampled.moves.clone() }, depth)
}

/// Searches that take less than this on average have no speed: times are kept in whole microseconds, rounded down.
const LEAST_TIME_US: f64 = 5.0;

/// A measure that is a function of the ratio of two sums.
struct Formula {
    above: usize,
    below: usize,
    /// What the ratio is multiplied by.
    unit: f64,
    /// Whether it is a mean of logarithms.
    logarithm: bool,
}

impl Formula {
    /// The value, where it is defined.
    fn of(&self, sums: &[f64]) -> Option<f64> {
        let (above, below) = (sums[self.above], sums[self.below]);
        let ratio = above / below * self.unit;
        let value = if self.logarithm { ratio.exp() } else { ratio };
        (below > 0.0 && value.is_finite()).then_some(value)
    }

    /// The value of all clusters, and its interval by the replicas.
    fn measure<const N: usize>(&self, clusters: &[[f64; N]], replicas: &[[f64; N]]) -> Option<Interval> {
        let mut total = [0.0; N];
        for cluster in clusters {
            total.iter_mut().zip(cluster).for_each(|(sum, value)| *sum += value);
        }
        let value = self.of(&total)?;
        let informed = clusters.iter().filter(|cluster| cluster[self.below] > 0.0).count();
        let drawn: Vec<f64> = replicas.iter().filter_map(|sums| self.of(sums)).collect();
        let interval = percentile_interval(value, drawn, informed, 1);
        let (low, high) = interval.map(|interval| (interval.low, interval.high)).unzip();
        Some(Interval { value, low, high })
    }
}

/// Clusters that have something, as numbers that can be resampled.
fn informed<const N: usize>(clusters: &[[i64; N]], count: usize) -> Vec<[f64; N]> {
    clusters.iter().filter(|sums| sums[count] > 0).map(|sums| sums.map(|sum| sum as f64)).collect()
}

fn measures(name: &str, spec: &Spec, sums: &PlayerSums, settings: Settings) -> PlayerPruning {
    let clusters = informed(&sums.clusters, sum::SEARCHES);
    let replicas = resampled_sums(&clusters, settings.seed, settings.replicas);
    let measure = |above, below, unit, logarithm| {
        Formula { above, below, unit, logarithm }.measure(&clusters, &replicas)
    };
    let samples = clusters.iter().any(|sums| sums[sum::SIMULATIONS] > 0.0);
    let total = |of: usize| clusters.iter().map(|sums| sums[of]).sum::<f64>();
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

/// The measure of sums and counts by cluster, and how many there are in all.
fn mean(means: &[Mean], unit: f64, logarithm: bool, settings: Settings) -> Option<(Interval, u64)> {
    let clusters = informed(means, 1);
    let replicas = resampled_sums(&clusters, settings.seed, settings.replicas);
    let interval = Formula { above: 0, below: 1, unit, logarithm }.measure(&clusters, &replicas)?;
    Some((interval, means.iter().map(|mean| mean[1] as u64).sum()))
}

fn ratios(frame: &Frame, tally: &Tally<'_>, settings: Settings) -> Vec<Ratio> {
    let pairs = tally.pairs.iter();
    let ratio = |(&(first, second, depth), means): (&(usize, usize, usize), &Vec<Mean>)| {
        let (Interval { value, low, high }, positions) = mean(means, 1.0 / ONE, true, settings)?;
        let (a, b) = (frame.names[first].clone(), frame.names[second].clone());
        Some(Ratio { a, b, depth, ratio: value, low, high, positions })
    };
    pairs.filter_map(ratio).collect()
}

fn by_depth(frame: &Frame, tally: &Tally<'_>, settings: Settings) -> Vec<DepthNodes> {
    let mut all = Vec::new();
    for (name, sums) in frame.names.iter().zip(&tally.players) {
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
    frame: &Frame,
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
    let full = full_width::algorithm(family);
    let deepens = players.iter().any(|player| player.mean_depth.is_some());
    if !deepens {
        add("mean_depth", "no search of the run completed a depth".to_string());
    } else if !frame.probe {
        let note = format!(
            "no two players search the same positions of a tournament; a probe with {full} among its players measures it"
        );
        add("vs_minimax", note);
    } else if let Some(player) = frame.full_width {
        let note = format!("measured: {} searched the same positions", frame.names[player]);
        add("vs_minimax", note);
    } else if deepest > 0 {
        let note = format!(
            "whole trees were counted at {counted} positions, as deep as was affordable: to depth {deepest} at most"
        );
        add("vs_minimax", note);
    } else {
        add("vs_minimax", "no whole tree could be counted at an affordable cost".to_string());
    }
    if deepens && !frame.duel {
        let note = "the minimal tree is that of two seats without chance, which this game is not".to_string();
        add("vs_minimal", note);
    }
    notes
}

#[cfg(test)]
mod tests {
    use agon_games::random::{Random, below, seeded};

    use super::*;

    /// Searches of a bout, and their nodes together: bouts differ in how fast their positions are searched.
    fn bout(random: &mut Random) -> Mean {
        let (searches, speed) = (1 + below(random, 20), 500 + below(random, 1001));
        [(searches * speed) as i64, searches as i64]
    }

    /// How often the interval of 1000 nodes a search has the truth, over runs of so many bouts.
    fn coverage(bouts: u64, runs: u64) -> f64 {
        let frame = Frame::new(vec!["a".to_string()], bouts, 1);
        let mut covered = 0;
        for run in 0..runs {
            let mut random = seeded(run);
            let mut means = vec![[0; 2]; bouts.min(1024) as usize];
            for index in 0..bouts {
                let [sum, count] = bout(&mut random);
                let mean = &mut means[frame.cluster(index)];
                *mean = [mean[0] + sum, mean[1] + count];
            }
            let settings = Settings { replicas: 200, seed: run, threads: NonZeroUsize::MIN };
            let (interval, _) = mean(&means, 1.0, false, settings).unwrap();
            covered += u64::from(interval.low.unwrap() <= 1000.0 && interval.high.unwrap() >= 1000.0);
        }
        covered as f64 / runs as f64
    }

    /// Within three standard errors of the simulation, for bouts one by one and for groups of them.
    #[test]
    fn intervals_cover_the_truth() {
        let runs = 400;
        let error = (0.95 * 0.05 / runs as f64).sqrt();
        for bouts in [20, 50, 3000] {
            let share = coverage(bouts, runs);
            println!("{bouts} bouts: {share}");
            assert!((share - 0.95).abs() <= 3.0 * error, "{bouts} bouts: {share}");
        }
    }

    #[test]
    fn bouts_have_clusters_of_their_own_until_there_are_too_many() {
        let frame = Frame::new(vec![String::new(); 2], 1000, 1);
        assert!((0..1000).all(|bout| frame.cluster(bout) == bout as usize));
        let games = Frame::new(vec![String::new(); 2], 1000, 5);
        assert!(
            (0..1000).all(|bout| games.cluster(bout) == bout as usize / 5),
            "turns of a game belong together"
        );
        let frame = Frame::new(vec![String::new(); 2], 100_000, 1);
        let mut sizes = vec![0; 1024];
        (0..100_000).for_each(|bout| sizes[frame.cluster(bout)] += 1);
        // A group has some 98 bouts, give or take 10.
        assert!(sizes.iter().all(|&size| (50..150).contains(&size)), "{sizes:?}");
        // Bouts of a pairing stand in a row or at equal distances: they are spread over the groups all the same.
        for step in [6, 1024] {
            let mut hit = vec![false; 1024];
            (0..100_000).step_by(step).for_each(|bout| hit[frame.cluster(bout)] = true);
            assert!(hit.iter().filter(|hit| **hit).count() > 80);
        }
    }

    #[test]
    fn what_has_no_value_has_no_number() {
        let settings = Settings { replicas: 50, seed: 1, threads: NonZeroUsize::MIN };
        assert_eq!(mean(&[], 1.0, false, settings), None);
        assert_eq!(mean(&[[0, 0]; 3], 1.0, true, settings), None);
        let one = mean(&[[6, 2], [0, 0]], 1.0, false, settings).unwrap();
        assert_eq!(one, (Interval { value: 3.0, low: None, high: None }, 2));
    }
}
