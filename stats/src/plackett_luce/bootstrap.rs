//! Intervals by resampling bouts: the games of one bout share their opening and are drawn together.
//!
//! Within a roster, as many bouts are drawn with replacement as were played, so that the schedule is kept. Rosters of
//! few bouts share a stratum: alone, a single bout would always be drawn and seem certain. In a replica in which a
//! core player never loses, the ridge stops that player at about 2000 Elo and the mean moves along; an interval that
//! ends so far out means that the data do not bound the strength on that side.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;

use rand::RngExt as _;

use super::Pool;
use super::fit::{Anchor, Model, anchor_strengths};
use super::graph::{Component, Side, components};
use crate::comparison::SURE;
use crate::distribution::{Random, seeded};
use crate::elo::POINTS_PER_LOGIT;
use crate::pairs::sweep_superiority;
use crate::parallel;
use crate::replicas::{Measure, likelihood_above, percentile_interval};

/// The default number of replicas, enough for two digits of an interval.
pub const DEFAULT_REPLICAS: NonZeroUsize = NonZeroUsize::new(1000).expect("one thousand is not zero");

/// Rosters of fewer bouts share a stratum.
const FEWEST_BOUTS: u64 = 8;

/// The fitted strengths and seat effects of every replica, on the Elo scale.
#[derive(Clone, Debug, PartialEq)]
pub struct Replicas {
    /// The fit of the data: strengths, then seat effects.
    fitted: Vec<f64>,
    /// The fit of each replica.
    drawn: Vec<Vec<f64>>,
    components: Vec<Component>,
    /// The evidence for each player.
    evidence: Vec<Evidence>,
    /// The evidence of all bouts.
    all_evidence: Evidence,
}

/// The number of bouts, and of strata they were drawn from.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Evidence {
    bouts: usize,
    strata: usize,
}

impl Replicas {
    /// Returns a player's strength with its interval. `None` if there is only a bound or fewer than two bouts.
    pub fn strength(&self, player: usize) -> Option<Measure> {
        component_of(&self.components, player)?;
        self.measure(player, self.evidence[player])
    }

    /// Returns a seat's effect with its interval. `None` with fewer than two bouts.
    pub fn seat_effect(&self, seat: usize) -> Option<Measure> {
        let place = self.evidence.len() + seat;
        (place < self.fitted.len()).then(|| self.measure(place, self.all_evidence))?
    }

    /// Returns the likelihood of superiority: the share of replicas in which `first` is stronger than `second`, equality
    /// counting half, as widened as their intervals, and no more than a clean sweep of two seats would give after as many
    /// bouts. `None` if the two cannot be compared or have too few bouts.
    pub fn superiority(&self, first: usize, second: usize) -> Option<f64> {
        if !self.components.iter().any(|component| component.compares(first, second)) {
            return None;
        }
        let ahead = self.drawn.iter().map(|replica| match replica[first].total_cmp(&replica[second]) {
            std::cmp::Ordering::Less => 0.0,
            std::cmp::Ordering::Equal => 0.5,
            std::cmp::Ordering::Greater => 1.0,
        });
        let Evidence { bouts, strata } = self.evidence_of(&[first, second])?;
        let most = sweep_superiority(bouts as f64);
        let likelihood = likelihood_above(ahead.sum(), self.drawn.len(), bouts, strata)?;
        Some(likelihood.clamp(1.0 - most, most))
    }

    /// Returns whether two players have enough bouts to call one of them stronger.
    pub fn suffice(&self, first: usize, second: usize) -> bool {
        let evidence = self.evidence_of(&[first, second]);
        evidence.is_some_and(|evidence| sweep_superiority(evidence.bouts as f64) >= SURE)
    }

    /// Returns the least evidence among players.
    fn evidence_of(&self, players: &[usize]) -> Option<Evidence> {
        let evidence = players.iter().filter_map(|&player| self.evidence.get(player).copied());
        evidence.min_by_key(|evidence| evidence.bouts)
    }

    /// Returns the interval of a weighted sum of strengths, widened as that of the player with the least evidence among
    /// them. `None` with too little evidence.
    pub fn contrast(&self, weights: &[f64]) -> Option<(f64, f64)> {
        let sum = |point: &Vec<f64>| -> f64 { point.iter().zip(weights).map(|(x, weight)| x * weight).sum() };
        let involved: Vec<usize> = (0..self.evidence.len())
            .filter(|&player| weights.get(player).is_some_and(|w| *w != 0.0))
            .collect();
        let evidence = self.evidence_of(&involved)?;
        let values = self.drawn.iter().map(sum).collect();
        let measure = percentile_interval(sum(&self.fitted), values, evidence.bouts, evidence.strata)?;
        Some((measure.low, measure.high))
    }

    fn measure(&self, place: usize, evidence: Evidence) -> Option<Measure> {
        let values = self.drawn.iter().map(|replica| replica[place]).collect();
        percentile_interval(self.fitted[place], values, evidence.bouts, evidence.strata)
    }
}

/// The bouts of one roster, or of several small ones, for resampling.
#[derive(Default)]
struct Stratum<'a> {
    /// The players of the rosters.
    players: BTreeSet<usize>,
    /// The distinct bouts.
    kinds: Vec<&'a [usize]>,
    /// The index of each bout's kind: drawing from this list is drawing by count.
    bouts: Vec<u32>,
}

impl<'a> Stratum<'a> {
    fn add(&mut self, roster: &[usize], bouts: &'a BTreeMap<Vec<usize>, u64>) {
        self.players.extend(roster);
        for (games, &count) in bouts {
            let kind = u32::try_from(self.kinds.len()).expect("kinds of bouts are fewer than 2^32");
            self.kinds.push(games);
            self.bouts.extend((0..count).map(|_| kind));
        }
    }

    /// Draws as many bouts as there are and counts their games.
    fn resample(&self, random: &mut Random, counts: &mut [f64]) {
        let mut drawn = vec![0u32; self.kinds.len()];
        for _ in 0..self.bouts.len() {
            drawn[self.bouts[random.random_range(0..self.bouts.len())] as usize] += 1;
        }
        for (games, count) in self.kinds.iter().zip(drawn) {
            for &game in *games {
                counts[game] += f64::from(count);
            }
        }
    }
}

pub(super) fn bootstrap(
    pool: &Pool,
    anchor: Anchor,
    seed: u64,
    replicas: usize,
    threads: NonZeroUsize,
    on_replica: &(dyn Fn() + Sync),
) -> Replicas {
    let components = components(pool.players, pool.kinds.iter());
    let (model, whole) = Model::fitted(pool, &components);
    let (mut strata, mut small) = (Vec::new(), Stratum::default());
    for (roster, bouts) in &pool.rosters {
        if bouts.values().sum::<u64>() < FEWEST_BOUTS {
            small.add(roster, bouts);
        } else {
            let mut stratum = Stratum::default();
            stratum.add(roster, bouts);
            strata.push(stratum);
        }
    }
    if !small.bouts.is_empty() {
        strata.push(small);
    }
    let shown = |mut point: Vec<f64>| {
        anchor_strengths(&mut point[..pool.players], &components, anchor);
        point.iter_mut().for_each(|parameter| *parameter *= POINTS_PER_LOGIT);
        point
    };
    let drawn = parallel::map(replicas as u64, threads, |replica| {
        let mut counts = vec![0.0; pool.kinds.len()];
        let random = &mut seeded(seed, replica);
        strata.iter().for_each(|stratum| stratum.resample(random, &mut counts));
        let drawn = shown(model.maximise(&counts, whole.clone()));
        on_replica();
        drawn
    });

    let mut evidence = vec![Evidence::default(); pool.players];
    for (roster, kinds) in &pool.rosters {
        let played: u64 = kinds.values().sum();
        roster.iter().for_each(|&player| evidence[player].bouts += played as usize);
    }
    for player in strata.iter().flat_map(|stratum| &stratum.players) {
        evidence[*player].strata += 1;
    }
    let all_evidence = Evidence { bouts: pool.bouts() as usize, strata: strata.len() };
    Replicas { fitted: shown(whole), drawn, components, evidence, all_evidence }
}

/// Returns the component whose core contains the player.
fn component_of(components: &[Component], player: usize) -> Option<usize> {
    components.iter().position(|component| {
        component.blocks.iter().any(|block| block.side == Side::Core && block.members.contains(&player))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plackett_luce::{Game, LowestPlaces};

    /// The interval has the width of the known standard error of duels in bouts of two.
    #[test]
    fn intervals_match_binomial_error() {
        let mut pool = Pool::new(2, 2, LowestPlaces::Decided).unwrap();
        // Bouts won, shared and lost 100, 200 and 100 times, like independent games at even odds.
        for (first, second, count) in [(1, -1, 100), (1, 1, 100), (-1, -1, 100), (-1, 1, 100)] {
            for _ in 0..count {
                let game = |players: [usize; 2], payoff| Game {
                    players: players.into(),
                    payoffs: vec![payoff, -payoff],
                };
                pool.add(&[game([0, 1], first), game([1, 0], second)]).unwrap();
            }
        }
        let replicas = pool.bootstrap(Anchor::Player(1), 3, 1000);
        let measure = replicas.strength(0).unwrap();
        let expected = 1.96 * POINTS_PER_LOGIT / (800.0_f64 / 4.0).sqrt();
        let half = (measure.high - measure.low) / 2.0;
        assert!(measure.value.abs() < 1e-6 && (half / expected - 1.0).abs() < 0.08, "{measure:?} {expected}");
        let superiority = replicas.superiority(0, 1).unwrap();
        assert!((superiority - 0.5).abs() < 0.06, "{superiority}");
        assert_eq!(replicas, pool.bootstrap(Anchor::Player(1), 3, 1000));
        assert!(replicas.seat_effect(1).is_some() && replicas.seat_effect(2).is_none());
    }

    #[test]
    fn bounded_and_unconnected_players_have_no_interval() {
        let mut pool = Pool::new(4, 2, LowestPlaces::Decided).unwrap();
        for (players, payoff) in
            [([0, 1], 1), ([0, 1], -1), ([2, 1], 1), ([1, 0], 1), ([1, 0], -1), ([2, 0], 1)]
        {
            pool.add(&[Game { players: players.into(), payoffs: vec![payoff, -payoff] }]).unwrap();
        }
        let replicas = pool.bootstrap(Anchor::Mean, 1, 50);
        assert!(replicas.strength(0).is_some());
        assert_eq!(replicas.strength(2), None, "only a bound");
        assert_eq!(replicas.strength(3), None, "no bouts");
        assert_eq!(replicas.strength(4), None, "no such player");
        assert_eq!(replicas.superiority(0, 3), None, "never met");
        let ahead = replicas.superiority(2, 0).unwrap();
        assert!(ahead > 0.6 && ahead < 0.975, "always ahead, but in two games: {ahead}");
    }

    /// One player of three is first in every game, the others in turns.
    #[test]
    fn few_bouts_do_not_prove_strength() {
        for (bouts, proves) in [(1, false), (2, false), (5, false), (6, true), (20, true)] {
            for always in [true, false] {
                let mut pool = Pool::new(3, 3, LowestPlaces::Decided).unwrap();
                for bout in 0..bouts {
                    let games = [[0, 1, 2], [1, 2, 0], [2, 0, 1]].map(|players: [usize; 3]| {
                        // Player 0 is first, or now and then in the first bouts second.
                        let loses = !always && bout < 2 && players[0] == 1;
                        let worth = |player: usize| match player {
                            0 => 2,
                            1 if loses => 3,
                            other => i32::from(other % 2 == (bout % 2) as usize),
                        };
                        Game { players: players.into(), payoffs: players.map(worth).to_vec() }
                    });
                    pool.add(&games).unwrap();
                }
                let replicas = pool.bootstrap(Anchor::Mean, 1, 400);
                let likelihood = replicas.superiority(0, 1);
                assert_eq!(likelihood.is_none(), bouts == 1, "{bouts} {always}");
                assert_eq!(likelihood.is_some_and(|los| los >= SURE), proves, "{bouts}: {likelihood:?}");
                assert_eq!(replicas.suffice(0, 1), bouts >= 6);
            }
        }
    }
}
