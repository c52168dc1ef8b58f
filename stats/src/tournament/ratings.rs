//! The ratings of a tournament and its tables, in one form for any number of seats.
//!
//! Players are in the order of the standings; players without games have no row. Values that cannot be estimated are
//! `None`: no number is infinite or undefined.

use std::num::NonZeroUsize;

use thiserror::Error;

use super::bout_counts::{BoutCounts, Record};
use crate::comparison::Comparison;
use crate::elo::{LARGEST_DIFFERENCE, LEAST_SCORE};
use crate::plackett_luce::{self, Anchor, RankingError, Replicas};
use crate::pool::{
    Bound, Fit, Meeting, RatingError, Residual, Results, Standing, Transitivity, Uncertainty, compare_ranks,
    with_spread,
};

/// The bootstrap over tournaments of more than two seats, for which there is no formula.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Resampling {
    /// The number of replicas.
    pub replicas: NonZeroUsize,
    /// The seed of the replicas.
    pub seed: u64,
    /// The number of threads, which does not change the result.
    pub threads: NonZeroUsize,
}

/// The options of a rating.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Options {
    /// The model, see [`pool::Options`](crate::pool::Options). With more than two seats only the anchor applies.
    pub model: crate::pool::Options,
    /// Resampling for the intervals of games of more than two seats; without it they have none. Intervals of two
    /// seats have a formula.
    pub resampling: Option<Resampling>,
}

/// A tournament that cannot be rated.
#[derive(Clone, PartialEq, Debug, Error)]
#[non_exhaustive]
pub enum TournamentError {
    /// There are no games.
    #[error("there are no games to rate")]
    NoGames,
    /// Only one player has games.
    #[error("`{0}` is the only player who has games; a rating compares at least two")]
    OnePlayer(String),
    /// The model of two seats rejected the options.
    #[error(transparent)]
    Rating(#[from] RatingError),
    /// The model of many seats rejected the games.
    #[error(transparent)]
    Ranking(#[from] RankingError),
    /// A prior, with many seats.
    #[error("a prior is for games of two seats; leave it out here")]
    Prior,
    /// A model without seat effects, with many seats.
    #[error("the effects of seats can be left out of the model for games of two seats only")]
    Seats,
}

/// The effect of a seat.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Effect {
    /// The effect in Elo.
    pub elo: f64,
    /// The 95 % interval, if it can be estimated.
    pub interval: Option<(f64, f64)>,
}

/// A rated tournament.
#[derive(Clone, Debug)]
pub struct TournamentRatings {
    standings: Vec<Standing>,
    /// The player's number in the fit, for each row of the standings.
    order: Vec<usize>,
    rated: Rated,
}

/// Returns the ends of a bootstrap interval, none without spread. An end farther out than any observable difference is open: in
/// the replicas there, a player or a seat never lost, so that only the ridge of the fit stopped it.
fn bounded_ends(ends: Option<(f64, f64)>) -> (Option<f64>, Option<f64>) {
    let (low, high) = ends.and_then(with_spread).unzip();
    let is_bounded = |end: &f64| end.abs() < LARGEST_DIFFERENCE;
    (low.filter(is_bounded), high.filter(is_bounded))
}

/// The fitted model: one for two seats, another for more.
#[derive(Clone, Debug)]
enum Rated {
    Duels { fit: Box<Fit>, uncertainty: Uncertainty },
    Rankings { fit: plackett_luce::Fit, replicas: Option<Replicas>, crosstable: Vec<Vec<Meeting>> },
}

impl BoutCounts {
    /// Rates the players with games. `on_replica` is called after each replica, to show progress.
    pub fn rate(
        &self,
        options: &Options,
        on_replica: &(dyn Fn() + Sync),
    ) -> Result<TournamentRatings, TournamentError> {
        let seats = self.seats().ok_or(TournamentError::NoGames)?;
        let records = self.records();
        let mut played = (0..records.len()).filter(|&player| records[player].games > 0);
        if let (Some(player), None) = (played.next(), played.next()) {
            return Err(TournamentError::OnePlayer(self.names()[player].clone()));
        }
        if seats == 2 {
            return TournamentRatings::of_duels(&self.results(), options);
        }
        TournamentRatings::of_rankings(self, seats, &records, options, on_replica)
    }
}

impl TournamentRatings {
    /// Rates results of games of two seats, with or without bouts.
    pub fn of_duels(results: &Results, options: &Options) -> Result<TournamentRatings, TournamentError> {
        let fit = Fit::new(results, &options.model)?;
        let uncertainty = fit.uncertainty();
        let standings = fit.standings(&uncertainty);
        let number = |standing: &Standing| {
            fit.names().binary_search(&standing.name).expect("the standings have the players of the fit")
        };
        let order = standings.iter().map(number).collect();
        Ok(TournamentRatings { standings, order, rated: Rated::Duels { fit: Box::new(fit), uncertainty } })
    }

    fn of_rankings(
        tally: &BoutCounts,
        seats: usize,
        records: &[Record],
        options: &Options,
        on_replica: &(dyn Fn() + Sync),
    ) -> Result<TournamentRatings, TournamentError> {
        if options.model.prior > 0.0 {
            return Err(TournamentError::Prior);
        }
        if !options.model.seat_advantage {
            return Err(TournamentError::Seats);
        }
        let (pool, played) = tally.rankings(seats)?;
        let name = |player: usize| &tally.names()[played[player]];
        let anchor = match &options.model.anchor {
            None => Anchor::Mean,
            Some(anchor) => {
                let mut players = 0..played.len();
                let unknown = || RatingError::UnknownAnchor {
                    anchor: anchor.clone(),
                    players: (0..played.len()).map(|player| name(player).clone()).collect(),
                };
                Anchor::Player(players.find(|&player| name(player) == anchor).ok_or_else(unknown)?)
            }
        };
        let fit = pool.fit(anchor);
        let replicas = options.resampling.map(|Resampling { replicas, seed, threads }| {
            pool.bootstrap_with_progress(anchor, seed, replicas.get(), threads, on_replica)
        });
        let mut order: Vec<usize> = (0..played.len()).collect();
        order.sort_by(|&one, &other| {
            let rank = |player: usize| {
                let strength = fit.strengths[player];
                (strength.component, strength.elo)
            };
            compare_ranks(rank(one), rank(other)).then_with(|| name(one).cmp(name(other)))
        });
        let all = tally.crosstable();
        let crosstable =
            played.iter().map(|&one| played.iter().map(|&other| all[one][other]).collect()).collect();
        let row = |(index, &player): (usize, &usize)| {
            let strength = fit.strengths[player];
            let component = |index: usize| order.get(index).map(|&player| fit.strengths[player].component);
            let before = order[..index].iter().rev();
            let rank =
                1 + before.take_while(|&&other| fit.strengths[other].component == strength.component).count();
            let next = (component(index + 1) == Some(strength.component)).then(|| order[index + 1]);
            let ends = replicas.as_ref().and_then(|replicas| replicas.strength(player));
            let rated = |other: &&plackett_luce::Strength| {
                other.component == strength.component && other.bound.is_none()
            };
            let alone = fit.strengths.iter().filter(rated).count() == 1;
            let (low, high) = match strength.bound {
                Some((Bound::AtLeast, low)) => (Some(low), None),
                Some((Bound::AtMost, high)) => (None, Some(high)),
                None if alone => (None, None),
                // The anchor's strength is certain: its interval has no width.
                None if anchor == Anchor::Player(player) => ends.map(|ends| (ends.low, ends.high)).unzip(),
                None => bounded_ends(ends.map(|ends| (ends.low, ends.high))),
            };
            let Record { games, wins, draws, losses, points } = records[played[player]];
            Standing {
                rank,
                component: strength.component,
                name: name(player).clone(),
                elo: strength.elo,
                bound: strength.bound.map(|(bound, _)| bound),
                low,
                high,
                games,
                wins,
                draws,
                losses,
                score: (games > 0).then(|| points / games as f64),
                los_next: next.and_then(|next| replicas.as_ref()?.superiority(player, next)),
            }
        };
        let standings = order.iter().enumerate().map(row).collect();
        Ok(TournamentRatings { standings, order, rated: Rated::Rankings { fit, replicas, crosstable } })
    }

    /// Returns the standings, component by component, in order of rank.
    pub fn standings(&self) -> &[Standing] {
        &self.standings
    }

    /// Returns the standings on the scale that is shown: of two players the second has 0, so that the rating of the first is
    /// their difference; the mean of more players is 0.
    pub fn shown_standings(&self) -> Vec<Standing> {
        let mut rows = self.standings.clone();
        if let [first, second] = &mut rows[..]
            && first.component == second.component
        {
            let compared = self.compare(0, 1);
            first.elo -= second.elo;
            (first.low, first.high) = compared.map_or((None, None), |compared| (compared.low, compared.high));
            (second.elo, second.low, second.high) = (0.0, Some(0.0), Some(0.0));
        }
        rows
    }

    /// Returns whether intervals were computed: always with two seats, with more only by resampling.
    pub(super) fn has_uncertainty(&self) -> bool {
        match &self.rated {
            Rated::Duels { .. } => true,
            Rated::Rankings { replicas, .. } => replicas.is_some(),
        }
    }

    /// Returns the names of connected players by component. Ratings of different components cannot be compared.
    pub fn components(&self) -> Vec<Vec<String>> {
        let groups = self.standings.chunk_by(|one, next| one.component == next.component);
        groups.map(|group| group.iter().map(|standing| standing.name.clone()).collect()).collect()
    }

    /// Returns whether all results were whole bouts; single games count as independent.
    pub fn bouts_only(&self) -> bool {
        match &self.rated {
            Rated::Duels { fit, .. } => fit.bouts_only(),
            Rated::Rankings { .. } => true,
        }
    }

    /// Returns the advantage of the first of two seats; `None` if it was not fitted, and with more seats.
    pub fn seat_advantage(&self) -> Option<Effect> {
        match &self.rated {
            Rated::Duels { fit, uncertainty } => {
                fit.seat_advantage().map(|elo| Effect { elo, interval: uncertainty.seat_advantage })
            }
            Rated::Rankings { .. } => None,
        }
    }

    /// Returns the effect of each seat relative to the mean with more than two seats; empty with two.
    pub fn seat_effects(&self) -> Vec<Effect> {
        match &self.rated {
            Rated::Duels { .. } => Vec::new(),
            Rated::Rankings { fit, replicas, .. } => {
                let interval = |seat: usize| {
                    let ends = replicas.as_ref()?.seat_effect(seat)?;
                    let (low, high) = bounded_ends(Some((ends.low, ends.high)));
                    low.zip(high)
                };
                let effects = fit.seat_effects.iter().enumerate();
                effects.map(|(seat, &elo)| Effect { elo, interval: interval(seat) }).collect()
            }
        }
    }

    /// Returns the share of draws between equal players of two seats. `None` if a player or a seat never lost, because such
    /// results do not determine it, and with more seats, because that model has no draws.
    pub fn draw_rate(&self) -> Option<f64> {
        // Without a loss in any drawn pairing the rate of the fit has no maximum below 1.
        let is_determined = |rate: &f64| *rate < 1.0 - LEAST_SCORE;
        match &self.rated {
            Rated::Duels { fit, .. } => (!fit.is_separated()).then(|| fit.draw_rate()).filter(is_determined),
            Rated::Rankings { .. } => None,
        }
    }

    /// Tests whether a single rating per player suffices; `None` with more than two seats.
    pub fn transitivity(&self) -> Option<Transitivity> {
        match &self.rated {
            Rated::Duels { fit, .. } => Some(fit.transitivity()),
            Rated::Rankings { .. } => None,
        }
    }

    /// Returns each player's results against each opponent, in the order of the standings; `None` if they never met.
    pub fn crosstable(&self) -> Vec<Vec<Option<Meeting>>> {
        let table = match &self.rated {
            Rated::Duels { fit, .. } => self.ordered(&fit.crosstable()),
            Rated::Rankings { crosstable, .. } => self.ordered(crosstable),
        };
        let met = |meeting: Meeting| (meeting.games() > 0).then_some(meeting);
        table.into_iter().map(|row| row.into_iter().map(met).collect()).collect()
    }

    /// Returns the likelihood of superiority of each player over each other; `None` if they are not comparable.
    pub fn superiority(&self) -> Vec<Vec<Option<f64>>> {
        match &self.rated {
            Rated::Duels { fit, uncertainty } => self.ordered(&fit.superiority(uncertainty)),
            Rated::Rankings { replicas, .. } => {
                let cell = |one: usize, other: usize| {
                    (one != other).then(|| replicas.as_ref()?.superiority(one, other)).flatten()
                };
                let row = |&one: &usize| self.order.iter().map(|&other| cell(one, other)).collect();
                self.order.iter().map(row).collect()
            }
        }
    }

    /// Returns actual and expected points of each pairing of two seats, in the order of the standings; empty with
    /// more seats.
    pub fn residuals(&self) -> Vec<Residual> {
        let Rated::Duels { fit, .. } = &self.rated else { return Vec::new() };
        let mut place = vec![0; self.order.len()];
        for (index, &player) in self.order.iter().enumerate() {
            place[player] = index;
        }
        let renumbered = |residual: Residual| Residual {
            one: place[residual.one],
            other: place[residual.other],
            ..residual
        };
        fit.residuals().into_iter().map(renumbered).collect()
    }

    /// Compares the players of two rows of the standings. `None` if they cannot be compared, or have too few bouts or no
    /// replicas in a tournament of many seats.
    pub fn compare(&self, one: usize, other: usize) -> Option<Comparison> {
        let (first, second) = (*self.order.get(one)?, *self.order.get(other)?);
        match &self.rated {
            Rated::Duels { fit, uncertainty } => uncertainty.compare(fit, first, second),
            Rated::Rankings { replicas, .. } => {
                let replicas = replicas.as_ref()?;
                let (low, high) = match self.weights(one, &[other]) {
                    Some(weights) => bounded_ends(replicas.contrast(&weights)),
                    None => (None, None),
                };
                let elo = self.standings[one].elo - self.standings[other].elo;
                let los = replicas.superiority(first, second)?;
                Some(Comparison { elo, low, high, los, enough: replicas.suffice(first, second) })
            }
        }
    }

    /// Returns whether a player or a seat of two never lost, so that estimates need imaginary bouts.
    pub fn is_separated(&self) -> bool {
        match &self.rated {
            Rated::Duels { fit, .. } => fit.is_separated(),
            Rated::Rankings { fit, .. } => fit.strengths.iter().any(|strength| strength.bound.is_some()),
        }
    }

    /// Returns the weights of all ratings in that of a player relative to the mean of others. `None` if one of them has only
    /// a bound or is not connected.
    fn weights(&self, player: usize, others: &[usize]) -> Option<Vec<f64>> {
        let component = self.standings.get(player)?.component;
        let rated = |index: &usize| {
            self.standings.get(*index).is_some_and(|row| row.bound.is_none() && row.component == component)
        };
        if others.is_empty() || !rated(&player) || !others.iter().all(rated) {
            return None;
        }
        let share = 1.0 / others.len() as f64;
        let mut weights = vec![0.0; self.order.len()];
        weights[self.order[player]] += 1.0;
        others.iter().for_each(|&other| weights[self.order[other]] -= share);
        Some(weights)
    }

    /// Returns a player's rating relative to the mean of others, with its 95 % interval if both ends can be estimated. `None`
    /// if one of them has only a bound or is not connected.
    pub fn relative(&self, player: usize, others: &[usize]) -> Option<Effect> {
        let weights = self.weights(player, others)?;
        let mean = others.iter().map(|&other| self.standings[other].elo).sum::<f64>() / others.len() as f64;
        let interval = match &self.rated {
            Rated::Duels { fit, uncertainty } => uncertainty.contrast(fit, &weights).and_then(with_spread),
            Rated::Rankings { replicas, .. } => {
                let (low, high) = bounded_ends(replicas.as_ref().and_then(|drawn| drawn.contrast(&weights)));
                low.zip(high)
            }
        };
        Some(Effect { elo: self.standings[player].elo - mean, interval })
    }

    /// Returns a matrix of the fit in the order of the standings.
    fn ordered<T: Copy>(&self, matrix: &[Vec<T>]) -> Vec<Vec<T>> {
        let row = |&one: &usize| self.order.iter().map(|&other| matrix[one][other]).collect();
        self.order.iter().map(row).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pairs::Scores;
    use crate::plackett_luce::Game;

    fn options(anchor: Option<&str>) -> Options {
        let model = crate::pool::Options { anchor: anchor.map(str::to_string), ..Default::default() };
        Options { model, resampling: None }
    }

    fn bootstrap() -> Options {
        let replicas = NonZeroUsize::new(200).unwrap();
        let threads = NonZeroUsize::new(2).unwrap();
        Options { resampling: Some(Resampling { replicas, seed: 1, threads }), ..options(None) }
    }

    fn rated(tally: &BoutCounts, options: &Options) -> Result<TournamentRatings, TournamentError> {
        tally.rate(options, &|| ())
    }

    fn duels(bouts: &[(usize, usize, i32, i32, u64)]) -> BoutCounts {
        let mut tally = BoutCounts::new(["a", "b", "c", "d", "idle"].map(str::to_string).to_vec());
        for &(one, other, first, second, count) in bouts {
            let games = [
                Game { players: vec![one, other], payoffs: vec![first, -first] },
                Game { players: vec![other, one], payoffs: vec![-second, second] },
            ];
            tally.add(&games, count).unwrap();
        }
        tally
    }

    /// Sixty wins, thirty draws and ten losses are 190.85 Elo.
    #[test]
    fn two_players_differ_by_their_score() {
        let tally =
            duels(&[(0, 1, 1, 1, 25), (0, 1, 1, 0, 5), (0, 1, 0, 1, 5), (0, 1, 0, 0, 10), (0, 1, -1, -1, 5)]);
        let answer = rated(&tally, &options(Some("b"))).unwrap();
        let [first, second] = answer.standings() else { panic!("{answer:?}") };
        assert_eq!((first.name.as_str(), first.wins, first.draws, first.losses), ("a", 60, 30, 10));
        assert!((first.elo - 190.85).abs() < 0.005 && second.elo == 0.0, "{first:?}");
        assert!(answer.bouts_only() && answer.seat_effects().is_empty());
        assert_eq!(answer.components(), [["a", "b"]]);
        let relative = answer.relative(0, &[1]).unwrap();
        assert!((relative.elo - first.elo).abs() < 1e-9);
        assert_eq!(relative.interval, first.low.zip(first.high));
        let same = Scores::from(tally.pairs(0, 1)).compare().unwrap();
        assert_eq!(answer.compare(0, 1), Some(same), "ratings and tests show the same numbers");
        assert_eq!((first.low, first.high, first.los_next), (same.low, same.high, Some(same.los)));
        let halved = rated(&tally, &options(None)).unwrap();
        assert_eq!(halved.standings()[0].low, same.low.map(|low| low / 2.0));
        assert_eq!(
            halved.relative(0, &[0, 1]).unwrap().interval,
            same.low.map(|low| low / 2.0).zip(same.high.map(|high| high / 2.0))
        );
        assert_eq!(answer.crosstable()[1][0], Some(Meeting { wins: 10, draws: 30, losses: 60 }));
    }

    /// Two players who share every bout are equal, within an interval; of the first seat, which always won, only the
    /// sign is known.
    #[test]
    fn constant_results_have_interval() {
        let tally = duels(&[(0, 1, 1, -1, 5)]);
        let answer = rated(&tally, &options(None)).unwrap();
        let [first, second] = answer.standings() else { panic!("{answer:?}") };
        assert_eq!((first.elo, second.elo, first.los_next, first.bound), (0.0, 0.0, Some(0.5), None));
        let (low, high) = first.low.zip(first.high).unwrap();
        assert!(low < -20.0 && (low + high).abs() < 1e-6, "{first:?}");
        let advantage = answer.seat_advantage().unwrap();
        assert!(
            advantage.elo > 100.0 && advantage.elo < 1000.0 && advantage.interval.is_none(),
            "{advantage:?}"
        );
        assert!(answer.is_separated());
        // The anchor's rating is certain.
        let anchored = rated(&tally, &options(Some("b"))).unwrap();
        assert_eq!(anchored.standings().iter().find(|row| row.name == "b").unwrap().low, Some(0.0));
    }

    /// The winner of every game is ahead by more than nothing, and its interval ends on one side only.
    #[test]
    fn winner_of_all_games_is_ahead() {
        for bouts in [1, 2, 6, 40] {
            let answer = rated(&duels(&[(0, 1, 1, 1, bouts)]), &options(None)).unwrap();
            let [winner, loser] = answer.standings() else { panic!("{answer:?}") };
            assert_eq!((winner.name.as_str(), winner.bound, winner.high), ("a", Some(Bound::AtLeast), None));
            assert_eq!((loser.bound, loser.low), (Some(Bound::AtMost), None));
            assert!(winner.elo > loser.elo + 200.0 && winner.elo > winner.low.unwrap(), "{winner:?}");
            assert_eq!(winner.los_next.unwrap() >= 0.975, winner.low.unwrap() >= 0.0, "{winner:?}");
            assert_eq!(winner.los_next.unwrap() >= 0.975, bouts >= 6, "{winner:?}");
        }
    }

    /// Bouts of three seats, by the player who won from every seat.
    fn won_by(winners: &[(usize, u64)]) -> BoutCounts {
        let mut tally = BoutCounts::new(["a", "b", "c"].map(str::to_string).to_vec());
        for &(winner, count) in winners {
            let games = [0, 1, 2].map(|rotation: usize| {
                let players: Vec<usize> = (0..3).map(|seat| (seat + rotation) % 3).collect();
                let payoffs = players.iter().map(|&player| if player == winner { 60 } else { 0 }).collect();
                Game { players, payoffs }
            });
            tally.add(&games, count).unwrap();
        }
        tally
    }

    /// Three seats with one player twice as strong as the others: closed form, because seats do not matter.
    fn three_seats() -> BoutCounts {
        won_by(&[(0, 10), (1, 20), (2, 10)])
    }

    /// Without one or two of these seven bouts the results bound a strength on one side only: no end is a number of thousands.
    #[test]
    fn interval_is_open_where_bouts_do_not_bound_it() {
        let answer = rated(&won_by(&[(0, 5), (1, 1), (2, 1)]), &bootstrap()).unwrap();
        let rows = answer.standings();
        let compared = answer.compare(0, 1).unwrap();
        assert_eq!((rows[0].name.as_str(), rows[0].bound, rows[0].high), ("a", None, None), "{rows:?}");
        assert!(rows[0].low.unwrap() > -LARGEST_DIFFERENCE && rows[2].low.is_none(), "{rows:?}");
        assert!(compared.low.is_some() && compared.high.is_none(), "{compared:?}");
        assert_eq!(answer.relative(0, &[1, 2]).unwrap().interval, None);
    }

    #[test]
    fn draw_rate_needs_losses() {
        let rate = |bouts| rated(&duels(bouts), &options(None)).unwrap().draw_rate();
        assert_eq!(rate(&[(0, 1, 1, 0, 5)]), None);
        assert!(rate(&[(0, 1, 1, 0, 5), (0, 1, -1, 0, 5)]).unwrap() > 0.4);
    }

    #[test]
    fn few_bouts_of_many_seats_are_not_enough() {
        for bouts in [1, 2, 10] {
            let answer = rated(&won_by(&[(0, bouts)]), &bootstrap()).unwrap();
            let compared = answer.compare(0, 1);
            assert_eq!(compared.map(|compared| compared.enough), (bouts > 1).then_some(bouts == 10));
            assert_eq!(compared.map(|compared| compared.los), answer.standings()[0].los_next);
            assert_eq!(compared.is_some_and(|compared| compared.los >= 0.975), bouts == 10, "{compared:?}");
        }
    }

    #[test]
    fn many_seats_are_ranked() {
        let answer = rated(&three_seats(), &bootstrap()).unwrap();
        let rows = answer.standings();
        assert_eq!(rows.iter().map(|row| row.name.as_str()).collect::<Vec<_>>(), ["b", "a", "c"]);
        assert_eq!(rows.iter().map(|row| row.rank).collect::<Vec<_>>(), [1, 2, 3]);
        assert!((rows[0].elo - rows[1].elo - 400.0 * 2.0_f64.log10()).abs() < 0.01, "{rows:?}");
        assert_eq!((rows[0].wins, rows[0].draws, rows[0].losses, rows[0].score), (60, 0, 60, Some(0.5)));
        assert!(rows[0].low.unwrap() < rows[0].elo && rows[0].elo < rows[0].high.unwrap());
        assert!(rows[0].los_next.unwrap() > 0.9);
        assert_eq!(answer.seat_effects().len(), 3);
        // A bout's winner wins from every seat, so that seat effects do not vary.
        assert!(
            answer.seat_effects().iter().all(|effect| effect.elo.abs() < 0.01 && effect.interval.is_none())
        );
        // A game that c won does not compare a and b.
        assert_eq!(answer.crosstable()[0][1], Some(Meeting { wins: 60, draws: 0, losses: 30 }));
        assert_eq!((answer.draw_rate(), answer.residuals()), (None, vec![]));
        let relative = answer.relative(0, &[0, 1, 2]).unwrap();
        let (low, high) = relative.interval.unwrap();
        assert!((relative.elo - rows[0].elo).abs() < 1e-6 && high - low > 40.0, "{relative:?}");
        let anchored = rated(&three_seats(), &options(Some("c"))).unwrap();
        assert_eq!(anchored.standings()[2].elo, 0.0);
        assert_eq!(anchored.standings()[0].low, None, "there is no formula");
        assert_eq!(rated(&three_seats(), &bootstrap()).unwrap().standings(), rows);
    }

    #[test]
    fn clean_records_are_bounds() {
        let tally = duels(&[(0, 1, 1, -1, 5), (0, 1, -1, 1, 5), (2, 0, 1, 1, 3), (1, 3, 1, 1, 3)]);
        let answer = rated(&tally, &options(None)).unwrap();
        let names: Vec<&str> = answer.standings().iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names, ["c", "a", "b", "d"], "who has no games has no row");
        let row = &answer.standings()[0];
        assert_eq!((row.bound, row.high), (Some(Bound::AtLeast), None));
        assert!(row.low.unwrap() < row.elo && row.elo < 1000.0, "{row:?}");
        assert_eq!(answer.relative(0, &[1]), None);
        assert!(answer.relative(1, &[2]).is_some());
    }

    #[test]
    fn rejects_unratable_tournaments() {
        assert_eq!(rated(&duels(&[]), &options(None)).unwrap_err(), TournamentError::NoGames);
        let mut alone = duels(&[]);
        alone.add(&[Game { players: vec![1, 1], payoffs: vec![1, -1] }], 3).unwrap();
        assert_eq!(rated(&alone, &options(None)).unwrap_err(), TournamentError::OnePlayer("b".to_string()));
        let error = rated(&three_seats(), &options(Some("z"))).unwrap_err().to_string();
        assert_eq!(error, "the anchor `z` is not among the players: a, b, c");
        let prior = crate::pool::Options { prior: 1.0, ..Default::default() };
        let asked = Options { model: prior, resampling: None };
        assert_eq!(rated(&three_seats(), &asked).unwrap_err(), TournamentError::Prior);
        let seats = crate::pool::Options { seat_advantage: false, ..Default::default() };
        let asked = Options { model: seats, resampling: None };
        assert_eq!(rated(&three_seats(), &asked).unwrap_err(), TournamentError::Seats);
        let apart = duels(&[(0, 1, 1, -1, 5), (2, 3, 0, 0, 5)]);
        assert_eq!(rated(&apart, &options(None)).unwrap().components(), [["a", "b"], ["c", "d"]]);
    }
}
