//! One walk over the games of a run, or over the searches of a probe, that notes what the page tells beside ratings and
//! pruning: time, depth by ply, how games ended and how long they were, and where they were decided.
//!
//! What is kept does not grow with the number of games. Deliberately not here: results, which are counted elsewhere.

use std::collections::BTreeMap;

use agon_records::{GameRow, LimitKind, SearchRow, Table};
use serde::Serialize;

use super::Question;
use super::moments::{Candidates, Place};
use crate::dataset::{Dataset, DatasetError, Run};
use crate::games::{Query, Recording, Recordings};

/// How many of the longest and of the shortest games are told.
const EXTREMES: usize = 3;
/// The most ways to end that are told one by one.
const ENDINGS: usize = 12;

/// What was seen on the way.
pub(super) struct Survey {
    /// By player, in the order of the spec.
    pub efforts: Vec<Effort>,
    /// None where there are no games.
    pub lengths: Option<Lengths>,
    /// Where games were decided, the clearest first.
    pub turning_points: Vec<Place>,
    /// Different versions of the program that played.
    pub builds: Vec<String>,
}

/// What a player spent on its searches.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Effort {
    /// Who.
    pub player: String,
    /// Its searches.
    pub searches: u64,
    /// Positions that they entered.
    pub nodes: u64,
    /// Playouts or descents, where it is a sampling search.
    pub simulations: u64,
    /// The time of all of them, in microseconds.
    pub time_us: u64,
    /// Half of its searches took at most so long, in microseconds; of these, to about a twentieth.
    pub median_us: Option<f64>,
    /// The time that one in twenty searches stayed below, and that one in twenty took longer than.
    pub range_us: Option<[f64; 2]>,
    /// The longest search, in microseconds.
    pub longest_us: u64,
    /// Whether time was what limited it.
    pub timed: bool,
    /// Searches beyond their limit of time.
    pub overshoots: u64,
    /// By how much all of them together, in microseconds.
    pub overshoot_us: u64,
    /// The most that one went beyond its limit, in microseconds.
    pub most_overshoot_us: u64,
    /// The mean of the last completed depths, where it searches by depth.
    pub mean_depth: Option<f64>,
    /// The same by ply: ply, mean, searches. Neighbouring plies are put together where there are many.
    pub depth_by_ply: Vec<(f64, f64, u64)>,
}

/// How long games were and how they ended.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Lengths {
    /// Games.
    pub games: u64,
    /// Their mean number of plies.
    pub mean_plies: f64,
    /// The longest, the very longest first.
    pub longest: Vec<GameLine>,
    /// The shortest, the very shortest first.
    pub shortest: Vec<GameLine>,
    /// How games ended, the most common first; what is rare is put together.
    pub endings: Vec<(String, u64)>,
}

/// A game in a line.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct GameLine {
    /// Its bout.
    pub bout: u64,
    /// Its number there.
    pub game: u16,
    /// The players by seat.
    pub players: Vec<String>,
    /// The payoffs by seat.
    pub payoffs: Vec<i32>,
    /// Its plies.
    pub plies: u32,
    /// How it ended.
    pub ending: String,
}

impl From<&GameRow> for GameLine {
    fn from(row: &GameRow) -> GameLine {
        GameLine {
            bout: row.bout,
            game: row.game,
            players: row.players.clone(),
            payoffs: row.payoffs.clone(),
            plies: row.plies,
            ending: row.ending.clone(),
        }
    }
}

/// Walks over the run: over the games of a tournament, or the searches of a probe. `seen` is told their number after each.
pub(super) fn survey(
    dataset: &Dataset,
    run: &Run,
    players: &[String],
    question: Question,
    seen: &mut dyn FnMut(u64),
) -> Result<Survey, DatasetError> {
    let mut notes = Notes::new(players);
    let mut count = 0;
    if question != Question::Probe {
        for recording in Recordings::new(dataset, run, &Query::default())? {
            notes.game(&recording?);
            count += 1;
            seen(count);
        }
        return Ok(notes.finish());
    }
    for part in dataset.parts(run, Table::Probes)? {
        for probe in part.probes()?.iter().filter(|probe| !run.voided.contains(&probe.decision.bout)) {
            if let Some(search) = &probe.decision.search {
                notes.search(search, probe.decision.ply);
            }
            count += 1;
        }
        seen(count);
    }
    Ok(notes.finish())
}

/// What is kept on the way.
struct Notes<'a> {
    players: &'a [String],
    efforts: Vec<Sums>,
    candidates: Candidates,
    games: u64,
    plies: u64,
    longest: Vec<GameLine>,
    shortest: Vec<GameLine>,
    endings: BTreeMap<String, u64>,
    builds: Vec<String>,
}

#[derive(Clone, Default)]
struct Sums {
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
    /// By ply, the sum of depths and the number of searches that have one.
    depths: Vec<(u64, u64)>,
}

impl<'a> Notes<'a> {
    fn new(players: &'a [String]) -> Notes<'a> {
        Notes {
            players,
            efforts: vec![Sums::default(); players.len()],
            candidates: Candidates::new(players.len()),
            games: 0,
            plies: 0,
            longest: Vec::new(),
            shortest: Vec::new(),
            endings: BTreeMap::new(),
            builds: Vec::new(),
        }
    }

    fn game(&mut self, recording: &Recording) {
        let row = &recording.game;
        self.games += 1;
        self.plies += u64::from(row.plies);
        keep(&mut self.longest, row, |line| (std::cmp::Reverse(line.plies), line.bout, line.game));
        keep(&mut self.shortest, row, |line| {
            (std::cmp::Reverse(u32::MAX - line.plies), line.bout, line.game)
        });
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
                self.search(search, row.ply);
            }
        }
        self.candidates.look(self.players, recording);
    }

    fn search(&mut self, search: &SearchRow, ply: u16) {
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

    fn finish(self) -> Survey {
        let mut endings: Vec<(String, u64)> = self.endings.into_iter().collect();
        endings.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
        if endings.len() > ENDINGS {
            let rest = endings.split_off(ENDINGS - 1).into_iter().map(|(_, count)| count).sum();
            endings.push(("other".to_string(), rest));
        }
        let lengths = (self.games > 0).then(|| Lengths {
            games: self.games,
            mean_plies: self.plies as f64 / self.games as f64,
            longest: self.longest,
            shortest: self.shortest,
            endings,
        });
        let efforts = self.players.iter().zip(self.efforts).map(|(name, sums)| sums.effort(name)).collect();
        Survey { efforts, lengths, turning_points: self.candidates.best(), builds: self.builds }
    }
}

/// Keeps the first few by a key.
fn keep<K: Ord>(kept: &mut Vec<GameLine>, row: &GameRow, key: impl Fn(&GameLine) -> K) {
    let line = GameLine::from(row);
    let place = kept.partition_point(|other| key(other) <= key(&line));
    if place < EXTREMES {
        kept.insert(place, line);
        kept.truncate(EXTREMES);
    }
}

impl Sums {
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

/// The most points of a line of depths.
const POINTS: usize = 48;

/// Means by ply, neighbours put together until there are few enough.
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

/// Counts of times in classes that are a twelfth of a doubling wide, so that a quantile is right to about 3 %.
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

    /// The middle of the class that the quantile is in.
    fn quantile(&self, share: f64) -> Option<f64> {
        let wanted = ((self.total as f64 * share).ceil() as u64).max(1);
        let mut below = 0;
        for (class, count) in self.counts.iter().enumerate() {
            below += count;
            if below >= wanted {
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
    fn quantiles_are_near_those_of_the_sorted_values() {
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
    fn means_by_ply_keep_every_search() {
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
