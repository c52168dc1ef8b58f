//! Time, depth, game lengths, endings and turning points, gathered in one pass over the games or probe searches of a run.
//!
//! Memory does not grow with the number of games. Deliberately not here: results.

use std::collections::BTreeMap;

use agon_records::{GameRow, LimitKind, SearchRow, Table};
use serde::Serialize;

use super::Question;
use super::turning_points::{TurningPoint, TurningPoints};
use crate::dataset::{Dataset, DatasetError, Run};
use crate::games::{Query, Recording, Recordings};

/// Number of longest and of shortest games shown.
const EXTREMES: usize = 3;
/// Maximum number of endings shown; rarer ones are merged.
const ENDINGS: usize = 12;

/// Statistics of a run.
pub(super) struct PlayStatistics {
    /// Effort by player, in spec order.
    pub efforts: Vec<Effort>,
    /// Lengths and endings, if there are games.
    pub lengths: Option<GameLengths>,
    /// Turning points, largest drop first.
    pub turning_points: Vec<TurningPoint>,
    /// Versions of the workers.
    pub builds: Vec<String>,
}

/// Search effort of a player.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Effort {
    /// Player name.
    pub player: String,
    /// Number of searches.
    pub searches: u64,
    /// Nodes of all searches.
    pub nodes: u64,
    /// Simulations of all searches.
    pub simulations: u64,
    /// Time of all searches in microseconds.
    pub time_us: u64,
    /// Median time in microseconds, to about 3 %.
    pub median_us: Option<f64>,
    /// 5 % and 95 % quantiles of the time in microseconds.
    pub range_us: Option<[f64; 2]>,
    /// Longest search in microseconds.
    pub longest_us: u64,
    /// Whether the player is limited by time.
    pub timed: bool,
    /// Searches that exceeded their time limit.
    pub overshoots: u64,
    /// Total overshoot in microseconds.
    pub overshoot_us: u64,
    /// Largest overshoot in microseconds.
    pub most_overshoot_us: u64,
    /// Mean completed depth, if the player searches by depth.
    pub mean_depth: Option<f64>,
    /// Ply, mean depth and number of searches; with many plies, neighbouring ones are merged.
    pub depth_by_ply: Vec<(f64, f64, u64)>,
}

/// Lengths and endings of games.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct GameLengths {
    /// Number of games.
    pub games: u64,
    /// Mean number of plies.
    pub mean_plies: f64,
    /// The longest games, longest first.
    pub longest: Vec<ListedGame>,
    /// The shortest games, shortest first.
    pub shortest: Vec<ListedGame>,
    /// Endings with their counts, most common first.
    pub endings: Vec<(String, u64)>,
}

/// A game in brief.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ListedGame {
    /// Bout.
    pub bout: u64,
    /// Game number within the bout.
    pub game: u16,
    /// Players by seat.
    pub players: Vec<String>,
    /// Payoffs by seat.
    pub payoffs: Vec<i32>,
    /// Number of plies.
    pub plies: u32,
    /// Ending.
    pub ending: String,
}

impl From<&GameRow> for ListedGame {
    fn from(row: &GameRow) -> ListedGame {
        ListedGame {
            bout: row.bout,
            game: row.game,
            players: row.players.clone(),
            payoffs: row.payoffs.clone(),
            plies: row.plies,
            ending: row.ending.clone(),
        }
    }
}

/// Reads the games of a run, or the searches of a probe, and calls `progress` with their number so far.
pub(super) fn read(
    dataset: &Dataset,
    run: &Run,
    players: &[String],
    question: Question,
    progress: &mut dyn FnMut(u64),
) -> Result<PlayStatistics, DatasetError> {
    let mut collector = Collector::new(players);
    let mut count = 0;
    if question != Question::Probe {
        for recording in Recordings::new(dataset, run, &Query::default())? {
            collector.add_game(&recording?);
            count += 1;
            progress(count);
        }
        return Ok(collector.finish());
    }
    for part in dataset.parts(run, Table::Probes)? {
        for probe in part.probes()?.iter().filter(|probe| !run.voided.contains(&probe.decision.bout)) {
            if let Some(search) = &probe.decision.search {
                collector.add_search(search, probe.decision.ply);
            }
            count += 1;
        }
        progress(count);
    }
    Ok(collector.finish())
}

/// Running state of the pass.
struct Collector<'a> {
    players: &'a [String],
    efforts: Vec<EffortSums>,
    turning_points: TurningPoints,
    games: u64,
    plies: u64,
    longest: Vec<ListedGame>,
    shortest: Vec<ListedGame>,
    endings: BTreeMap<String, u64>,
    builds: Vec<String>,
}

/// Sums over the searches of a player.
#[derive(Clone, Default)]
struct EffortSums {
    searches: u64,
    nodes: u64,
    simulations: u64,
    time_us: u64,
    times: Histogram,
    longest_us: u64,
    timed: bool,
    overshoots: u64,
    overshoot_us: u64,
    most_overshoot_us: u64,
    /// Sum of depths and number of searches by ply.
    depths: Vec<(u64, u64)>,
}

impl<'a> Collector<'a> {
    fn new(players: &'a [String]) -> Collector<'a> {
        Collector {
            players,
            efforts: vec![EffortSums::default(); players.len()],
            turning_points: TurningPoints::new(players.len()),
            games: 0,
            plies: 0,
            longest: Vec::new(),
            shortest: Vec::new(),
            endings: BTreeMap::new(),
            builds: Vec::new(),
        }
    }

    fn add_game(&mut self, recording: &Recording) {
        let row = &recording.game;
        self.games += 1;
        self.plies += u64::from(row.plies);
        keep_first(&mut self.longest, row, |game| (u32::MAX - game.plies, game.bout, game.game));
        keep_first(&mut self.shortest, row, |game| (game.plies, game.bout, game.game));
        match self.endings.get_mut(&row.ending) {
            Some(count) => *count += 1,
            None => {
                self.endings.insert(row.ending.clone(), 1);
            }
        }
        if !self.builds.contains(&row.build) {
            self.builds.push(row.build.clone());
        }
        for row in &recording.moves {
            if let Some(search) = &row.search {
                self.add_search(search, row.ply);
            }
        }
        self.turning_points.add_game(self.players, recording);
    }

    fn add_search(&mut self, search: &SearchRow, ply: u16) {
        let Some(player) = self.players.iter().position(|name| *name == search.player) else { return };
        let sums = &mut self.efforts[player];
        sums.searches += 1;
        sums.nodes += search.counters.nodes;
        sums.simulations += search.counters.simulations;
        sums.time_us += search.time_us;
        sums.times.add(search.time_us);
        sums.longest_us = sums.longest_us.max(search.time_us);
        sums.timed |= matches!(search.limit_kind, LimitKind::Ms | LimitKind::CpuMs | LimitKind::ClockMs);
        sums.overshoots += u64::from(search.overshoot_us > 0);
        sums.overshoot_us += search.overshoot_us;
        sums.most_overshoot_us = sums.most_overshoot_us.max(search.overshoot_us);
        if search.depth > 0 {
            let ply = usize::from(ply);
            if sums.depths.len() <= ply {
                sums.depths.resize(ply + 1, (0, 0));
            }
            sums.depths[ply].0 += u64::from(search.depth);
            sums.depths[ply].1 += 1;
        }
    }

    fn finish(self) -> PlayStatistics {
        let mut endings: Vec<(String, u64)> = self.endings.into_iter().collect();
        endings.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
        if endings.len() > ENDINGS {
            let rest = endings.split_off(ENDINGS - 1).into_iter().map(|(_, count)| count).sum();
            endings.push(("other".to_string(), rest));
        }
        let lengths = (self.games > 0).then(|| GameLengths {
            games: self.games,
            mean_plies: self.plies as f64 / self.games as f64,
            longest: self.longest,
            shortest: self.shortest,
            endings,
        });
        let efforts = self.players.iter().zip(self.efforts).map(|(name, sums)| sums.effort(name)).collect();
        PlayStatistics {
            efforts,
            lengths,
            turning_points: self.turning_points.largest(),
            builds: self.builds,
        }
    }
}

/// Adds a game to the first [`EXTREMES`] by a key.
fn keep_first<K: Ord>(games: &mut Vec<ListedGame>, row: &GameRow, key: impl Fn(&ListedGame) -> K) {
    let game = ListedGame::from(row);
    let index = games.partition_point(|other| key(other) <= key(&game));
    if index < EXTREMES {
        games.insert(index, game);
        games.truncate(EXTREMES);
    }
}

impl EffortSums {
    fn effort(self, name: &str) -> Effort {
        let (depths, searches) =
            self.depths.iter().fold((0, 0), |(sum, count), cell| (sum + cell.0, count + cell.1));
        let quantile = |share: f64| self.times.quantile(share);
        Effort {
            player: name.to_string(),
            searches: self.searches,
            nodes: self.nodes,
            simulations: self.simulations,
            time_us: self.time_us,
            median_us: quantile(0.5),
            range_us: quantile(0.05).zip(quantile(0.95)).map(|(low, high)| [low, high]),
            longest_us: self.longest_us,
            timed: self.timed,
            overshoots: self.overshoots,
            overshoot_us: self.overshoot_us,
            most_overshoot_us: self.most_overshoot_us,
            mean_depth: (searches > 0).then(|| depths as f64 / searches as f64),
            depth_by_ply: by_ply(&self.depths),
        }
    }
}

/// Maximum number of points of depth by ply.
const POINTS: usize = 48;

/// Returns the mean depth by ply, merging neighbouring plies above the maximum number of points.
fn by_ply(depths: &[(u64, u64)]) -> Vec<(f64, f64, u64)> {
    let width = depths.len().div_ceil(POINTS).max(1);
    let mut points = Vec::new();
    for (index, cells) in depths.chunks(width).enumerate() {
        let (sum, count) = cells.iter().fold((0, 0), |(sum, count), cell| (sum + cell.0, count + cell.1));
        if count > 0 {
            let middle = (index * width) as f64 + (cells.len() - 1) as f64 / 2.0;
            points.push((middle, sum as f64 / count as f64, count));
        }
    }
    points
}

/// Histogram with twelve classes per doubling, whose quantiles are accurate to about 3 %.
#[derive(Clone, Default)]
struct Histogram {
    counts: Vec<u64>,
    total: u64,
}

impl Histogram {
    const PER_DOUBLING: f64 = 12.0;

    fn add(&mut self, value: u64) {
        let class = ((value as f64 + 1.0).log2() * Histogram::PER_DOUBLING) as usize;
        if self.counts.len() <= class {
            self.counts.resize(class + 1, 0);
        }
        self.counts[class] += 1;
        self.total += 1;
    }

    /// Returns the middle of the class of a quantile.
    fn quantile(&self, share: f64) -> Option<f64> {
        let rank = ((self.total as f64 * share).ceil() as u64).max(1);
        let mut below = 0;
        for (class, count) in self.counts.iter().enumerate() {
            below += count;
            if below >= rank {
                let middle = ((class as f64 + 0.5) / Histogram::PER_DOUBLING).exp2() - 1.0;
                return Some(middle);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_approximate_sorted_values() {
        for seed in 1..20_u64 {
            let values: Vec<u64> =
                (0..500).map(|index| (index * seed * 7919) % 100_003 / (index % 7 + 1)).collect();
            let mut histogram = Histogram::default();
            values.iter().for_each(|&value| histogram.add(value));
            let mut sorted = values.clone();
            sorted.sort_unstable();
            for (share, index) in [(0.05, 24), (0.5, 249), (0.95, 474)] {
                let (exact, found) = (sorted[index] as f64, histogram.quantile(share).unwrap());
                assert!((found - exact).abs() <= 0.06 * exact + 1.0, "{share}: {found} for {exact}");
            }
        }
        assert_eq!(Histogram::default().quantile(0.5), None);
    }

    #[test]
    fn merged_plies_keep_every_search() {
        for plies in [0, 1, 5, 48, 49, 500] {
            let depths: Vec<(u64, u64)> = (0..plies).map(|ply| (ply * (ply % 3), ply % 3)).collect();
            let points = by_ply(&depths);
            assert!(points.len() <= POINTS, "{plies}");
            let searches: u64 = depths.iter().map(|cell| cell.1).sum();
            assert_eq!(points.iter().map(|point| point.2).sum::<u64>(), searches);
            let sum: f64 = points.iter().map(|point| point.1 * point.2 as f64).sum();
            assert!((sum - depths.iter().map(|cell| cell.0 as f64).sum::<f64>()).abs() < 1e-6);
            assert!(points.windows(2).all(|pair| pair[0].0 < pair[1].0));
        }
    }
}
