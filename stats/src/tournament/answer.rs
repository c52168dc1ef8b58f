//! The ratings of a tournament and what is asked beside them, in one form for any number of seats.
//!
//! Players are in the order of the standings everywhere. Who has no games has no row. What cannot be told is nothing here:
//! no number is infinite or undefined.

use std::num::NonZeroUsize;

use thiserror::Error;

use super::tally::{Record, Tally};
use crate::plackett_luce::{self, Anchor, RankingError, Replicas};
use crate::pool::{
    Bound, Fit, Meeting, RatingError, Residual, Results, Standing, Transitivity, Uncertainty, with_spread,
};

/// How intervals are told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Errors {
    /// At once, by the sandwich formula. It is for two seats: with more there are no intervals.
    Sandwich,
    /// By so many resampled tournaments, drawn from the seed.
    Bootstrap {
        /// How many.
        replicas: NonZeroUsize,
        /// Where they are drawn from.
        seed: u64,
        /// How many are made at once; what comes out does not depend on it.
        threads: NonZeroUsize,
    },
}

/// How a tournament is rated.
#[derive(Clone, PartialEq, Debug)]
pub struct Options {
    /// The model, see [`pool::Options`](crate::pool::Options). With more than two seats only an anchor can be asked for.
    pub model: crate::pool::Options,
    /// How intervals are told.
    pub errors: Errors,
}

/// Why a tournament cannot be rated as asked.
#[derive(Clone, PartialEq, Debug, Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// There are no games.
    #[error("there are no games to rate")]
    NoGames,
    /// All games are one player's.
    #[error("`{0}` is the only player who has games; a rating compares at least two")]
    OnePlayer(String),
    /// The model of two seats does not allow it.
    #[error(transparent)]
    Rating(#[from] RatingError),
    /// The model of many seats does not allow it.
    #[error(transparent)]
    Ranking(#[from] RankingError),
    /// Games of many seats have no prior.
    #[error("a prior is for games of two seats; leave it out here")]
    Prior,
    /// Games of many seats have effects of their seats.
    #[error("the effects of seats can be left out of the model for games of two seats only")]
    Seats,
}

/// What a seat is worth.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Effect {
    /// In Elo.
    pub elo: f64,
    /// The ends of the interval of 95 %, where there is one.
    pub interval: Option<(f64, f64)>,
}

/// A rated tournament.
#[derive(Clone, Debug)]
pub struct Answer {
    standings: Vec<Standing>,
    /// For each of the standings, the player's number in the fit.
    order: Vec<usize>,
    rated: Rated,
}

#[derive(Clone, Debug)]
enum Rated {
    Duels { fit: Box<Fit>, uncertainty: Uncertainty },
    Rankings { fit: plackett_luce::Fit, replicas: Option<Replicas>, crosstable: Vec<Vec<Meeting>> },
}

impl Tally {
    /// Rates the players who have games. `made_one` is called after each replica, for those who show how far it is.
    pub fn answer(&self, options: &Options, made_one: &(dyn Fn() + Sync)) -> Result<Answer, AnswerError> {
        let seats = self.seats().ok_or(AnswerError::NoGames)?;
        let records = self.records();
        let mut played = (0..records.len()).filter(|&player| records[player].games > 0);
        if let (Some(player), None) = (played.next(), played.next()) {
            return Err(AnswerError::OnePlayer(self.names()[player].clone()));
        }
        if seats == 2 {
            return Answer::of_duels(&self.results(), options, made_one);
        }
        Answer::of_rankings(self, seats, &records, options, made_one)
    }
}

impl Answer {
    /// Rates the results of games of two seats, whether their bouts are known or not.
    pub fn of_duels(
        results: &Results,
        options: &Options,
        made_one: &(dyn Fn() + Sync),
    ) -> Result<Answer, AnswerError> {
        let fit = Fit::new(results, &options.model)?;
        let uncertainty = match options.errors {
            Errors::Sandwich => fit.sandwich(),
            Errors::Bootstrap { replicas, seed, threads } => {
                fit.bootstrap_watched(replicas, seed, threads, made_one)
            }
        };
        let standings = fit.standings(&uncertainty);
        let place = |standing: &Standing| {
            fit.names().binary_search(&standing.name).expect("everybody in the standings is in the fit")
        };
        let order = standings.iter().map(place).collect();
        Ok(Answer { standings, order, rated: Rated::Duels { fit: Box::new(fit), uncertainty } })
    }

    fn of_rankings(
        tally: &Tally,
        seats: usize,
        records: &[Record],
        options: &Options,
        made_one: &(dyn Fn() + Sync),
    ) -> Result<Answer, AnswerError> {
        if options.model.prior > 0.0 {
            return Err(AnswerError::Prior);
        }
        if !options.model.seat_advantage {
            return Err(AnswerError::Seats);
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
        let replicas = match options.errors {
            Errors::Sandwich => None,
            Errors::Bootstrap { replicas, seed, threads } => {
                Some(pool.bootstrap_watched(anchor, seed, replicas.get(), threads, made_one))
            }
        };
        let order = ranked(&fit, |player| name(player));
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
            let bound = strength.bound.map(bound_of);
            let rated = |other: &&plackett_luce::Strength| {
                other.component == strength.component && other.bound.is_none()
            };
            let alone = fit.strengths.iter().filter(rated).count() == 1;
            let (low, high) = match bound {
                Some(Bound::AtLeast) => (Some(strength.elo), None),
                Some(Bound::AtMost) => (None, Some(strength.elo)),
                None if alone => (None, None),
                // The anchor's strength is given, and certain.
                None if anchor == Anchor::Player(player) => ends.map(|ends| (ends.low, ends.high)).unzip(),
                None => ends.and_then(|ends| with_spread((ends.low, ends.high))).unzip(),
            };
            let Record { games, wins, draws, losses, points } = records[played[player]];
            Standing {
                rank,
                component: strength.component,
                name: name(player).clone(),
                elo: strength.elo,
                bound,
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
        Ok(Answer { standings, order, rated: Rated::Rankings { fit, replicas, crosstable } })
    }

    /// The standings, component by component, each from the first rank to the last.
    pub fn standings(&self) -> &[Standing] {
        &self.standings
    }

    /// The names of players that results connect, group by group. Ratings of different groups cannot be compared.
    pub fn components(&self) -> Vec<Vec<String>> {
        let groups = self.standings.chunk_by(|one, next| one.component == next.component);
        groups.map(|group| group.iter().map(|standing| standing.name.clone()).collect()).collect()
    }

    /// Whether every result was a whole bout; otherwise single games count as independent.
    pub fn bouts_only(&self) -> bool {
        match &self.rated {
            Rated::Duels { fit, .. } => fit.bouts_only(),
            Rated::Rankings { .. } => true,
        }
    }

    /// What the first of two seats is worth against the second; nothing where it is not in the model or cannot be told, and
    /// with more seats.
    pub fn seat_advantage(&self) -> Option<Effect> {
        match &self.rated {
            Rated::Duels { fit, uncertainty } => {
                fit.seat_advantage().map(|elo| Effect { elo, interval: uncertainty.seat_advantage })
            }
            Rated::Rankings { .. } => None,
        }
    }

    /// What each of many seats is worth against the mean of all; nothing with two.
    pub fn seat_effects(&self) -> Vec<Effect> {
        match &self.rated {
            Rated::Duels { .. } => Vec::new(),
            Rated::Rankings { fit, replicas, .. } => {
                let interval = |seat: usize| {
                    let ends = replicas.as_ref()?.seat_effect(seat)?;
                    with_spread((ends.low, ends.high))
                };
                let effects = fit.seat_effects.iter().enumerate();
                effects.map(|(seat, &elo)| Effect { elo, interval: interval(seat) }).collect()
            }
        }
    }

    /// The share of draws between equal players of two seats. With more seats draws are not in the model.
    pub fn draw_rate(&self) -> Option<f64> {
        match &self.rated {
            Rated::Duels { fit, .. } => Some(fit.draw_rate()),
            Rated::Rankings { .. } => None,
        }
    }

    /// Whether one number a player is enough; not tested with more than two seats.
    pub fn transitivity(&self) -> Option<Transitivity> {
        match &self.rated {
            Rated::Duels { fit, .. } => Some(fit.transitivity()),
            Rated::Rankings { .. } => None,
        }
    }

    /// Who did what against whom: a row for each of the standings, a column for each opponent.
    pub fn crosstable(&self) -> Vec<Vec<Meeting>> {
        match &self.rated {
            Rated::Duels { fit, .. } => self.ordered(&fit.crosstable()),
            Rated::Rankings { crosstable, .. } => self.ordered(crosstable),
        }
    }

    /// The likelihood of superiority of each of the standings over each other, nothing where it cannot be told.
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

    /// Points made against points expected of each pairing of two seats, players numbered as in the standings. With more
    /// seats there are no pairings.
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

    /// The rating of a player of the standings against the mean of others, with its standard deviation. Nothing where one of
    /// them has only a bound, where nothing connects them, and without intervals.
    pub fn relative(&self, player: usize, others: &[usize]) -> Option<(f64, f64)> {
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
        let value = others.iter().map(|&other| self.standings[other].elo).sum::<f64>() * share;
        let variance = match &self.rated {
            Rated::Duels { uncertainty, .. } => {
                let row = |one: usize| -> f64 {
                    let row = weights.iter().enumerate();
                    row.map(|(other, weight)| weight * uncertainty.covariance[(one, other)]).sum()
                };
                weights.iter().enumerate().map(|(one, weight)| weight * row(one)).sum()
            }
            Rated::Rankings { replicas, .. } => replicas.as_ref()?.variance(&weights)?,
        };
        Some((self.standings[player].elo - value, f64::max(variance, 0.0).sqrt()))
    }

    /// A matrix of the fit in the order of the standings.
    fn ordered<T: Copy>(&self, matrix: &[Vec<T>]) -> Vec<Vec<T>> {
        let row = |&one: &usize| self.order.iter().map(|&other| matrix[one][other]).collect();
        self.order.iter().map(row).collect()
    }
}

fn bound_of(bound: plackett_luce::Bound) -> Bound {
    match bound {
        plackett_luce::Bound::AtLeast => Bound::AtLeast,
        plackett_luce::Bound::AtMost => Bound::AtMost,
    }
}

/// The players of a fit in the order of the standings: that of [`Fit::standings`].
fn ranked<'a>(fit: &plackett_luce::Fit, name: impl Fn(usize) -> &'a String) -> Vec<usize> {
    let class = |player: usize| match fit.strengths[player].bound {
        Some(plackett_luce::Bound::AtLeast) => 0,
        None => 1,
        Some(plackett_luce::Bound::AtMost) => 2,
    };
    let mut order: Vec<usize> = (0..fit.strengths.len()).collect();
    order.sort_by(|&one, &other| {
        let (a, b) = (fit.strengths[one], fit.strengths[other]);
        (a.component.cmp(&b.component))
            .then(class(one).cmp(&class(other)))
            .then(b.elo.total_cmp(&a.elo))
            .then_with(|| name(one).cmp(name(other)))
    });
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plackett_luce::Game;

    fn options(anchor: Option<&str>) -> Options {
        let model = crate::pool::Options { anchor: anchor.map(str::to_string), ..Default::default() };
        Options { model, errors: Errors::Sandwich }
    }

    fn bootstrap() -> Options {
        let replicas = NonZeroUsize::new(200).unwrap();
        let errors = Errors::Bootstrap { replicas, seed: 1, threads: NonZeroUsize::new(2).unwrap() };
        Options { errors, ..options(None) }
    }

    fn rated(tally: &Tally, options: &Options) -> Result<Answer, AnswerError> {
        tally.answer(options, &|| ())
    }

    fn duels(bouts: &[(usize, usize, i32, i32, u64)]) -> Tally {
        let mut tally = Tally::new(["a", "b", "c", "d", "idle"].map(str::to_string).to_vec());
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
    fn two_players_are_as_far_apart_as_their_score() {
        let tally =
            duels(&[(0, 1, 1, 1, 25), (0, 1, 1, 0, 5), (0, 1, 0, 1, 5), (0, 1, 0, 0, 10), (0, 1, -1, -1, 5)]);
        let answer = rated(&tally, &options(Some("b"))).unwrap();
        let [first, second] = answer.standings() else { panic!("{answer:?}") };
        assert_eq!((first.name.as_str(), first.wins, first.draws, first.losses), ("a", 60, 30, 10));
        assert!((first.elo - 190.85).abs() < 0.005 && second.elo == 0.0, "{first:?}");
        assert!(answer.bouts_only() && answer.seat_effects().is_empty());
        assert_eq!(answer.components(), [["a", "b"]]);
        let (difference, deviation) = answer.relative(0, &[1]).unwrap();
        assert!((difference - first.elo).abs() < 1e-9);
        assert!((1.959_964 * deviation - (first.high.unwrap() - first.elo)).abs() < 1e-3);
        assert_eq!(answer.crosstable()[1][0], Meeting { wins: 10, draws: 30, losses: 60 });
    }

    /// Two players who share every bout are level, and nothing tells how sure that is.
    #[test]
    fn what_does_not_vary_has_no_interval() {
        let tally = duels(&[(0, 1, 1, -1, 5)]);
        for options in [bootstrap(), options(None)] {
            let answer = rated(&tally, &options).unwrap();
            for row in answer.standings() {
                assert!(row.elo.abs() < 1e-6, "{row:?}");
                assert_eq!((row.bound, row.low, row.high), (None, None, None));
            }
            assert_eq!(answer.seat_advantage().unwrap().interval, None);
        }
        // Given is given.
        let anchored = rated(&tally, &options(Some("b"))).unwrap();
        assert_eq!(anchored.standings().iter().find(|row| row.name == "b").unwrap().low, Some(0.0));
        let varied = duels(&[(0, 1, 1, -1, 5), (0, 1, 1, 1, 1), (0, 1, -1, -1, 1)]);
        assert!(rated(&varied, &bootstrap()).unwrap().standings()[0].low.unwrap() < 0.0);
    }

    /// Three seats, with the second of three players twice as strong: known in closed form where seats do not matter.
    fn three_seats() -> Tally {
        let mut tally = Tally::new(["a", "b", "c"].map(str::to_string).to_vec());
        for (winner, count) in [(0, 10), (1, 20), (2, 10)] {
            let games = [0, 1, 2].map(|rotation: usize| {
                let players: Vec<usize> = (0..3).map(|seat| (seat + rotation) % 3).collect();
                let payoffs = players.iter().map(|&player| if player == winner { 60 } else { 0 }).collect();
                Game { players, payoffs }
            });
            tally.add(&games, count).unwrap();
        }
        tally
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
        // Who wins a bout wins it from every seat, so that nothing varies which would tell what seats are worth.
        assert!(
            answer.seat_effects().iter().all(|effect| effect.elo.abs() < 0.01 && effect.interval.is_none())
        );
        // A game that c won says nothing of a and b.
        assert_eq!(answer.crosstable()[0][1], Meeting { wins: 60, draws: 0, losses: 30 });
        assert_eq!((answer.draw_rate(), answer.residuals()), (None, vec![]));
        let (difference, deviation) = answer.relative(0, &[0, 1, 2]).unwrap();
        assert!((difference - rows[0].elo).abs() < 1e-6 && deviation > 10.0, "{difference} {deviation}");
        let anchored = rated(&three_seats(), &options(Some("c"))).unwrap();
        assert_eq!(anchored.standings()[2].elo, 0.0);
        assert_eq!(anchored.standings()[0].low, None, "there is no formula");
        assert_eq!(rated(&three_seats(), &bootstrap()).unwrap().standings(), rows);
    }

    #[test]
    fn what_was_won_or_lost_altogether_is_a_bound() {
        let tally = duels(&[(0, 1, 1, -1, 5), (0, 1, -1, 1, 5), (2, 0, 1, 1, 3), (1, 3, 1, 1, 3)]);
        let answer = rated(&tally, &options(None)).unwrap();
        let names: Vec<&str> = answer.standings().iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names, ["c", "a", "b", "d"], "who has no games has no row");
        let row = &answer.standings()[0];
        assert_eq!((row.bound, row.low, row.high), (Some(Bound::AtLeast), Some(row.elo), None));
        assert_eq!(answer.relative(0, &[1]), None);
        assert!(answer.relative(1, &[2]).is_some());
    }

    #[test]
    fn what_cannot_be_rated_is_named() {
        assert_eq!(rated(&duels(&[]), &options(None)).unwrap_err(), AnswerError::NoGames);
        let mut alone = duels(&[]);
        alone.add(&[Game { players: vec![1, 1], payoffs: vec![1, -1] }], 3).unwrap();
        assert_eq!(rated(&alone, &options(None)).unwrap_err(), AnswerError::OnePlayer("b".to_string()));
        let error = rated(&three_seats(), &options(Some("z"))).unwrap_err().to_string();
        assert_eq!(error, "the anchor `z` is none of the players: a, b, c");
        let prior = crate::pool::Options { prior: 1.0, ..Default::default() };
        let asked = Options { model: prior, errors: Errors::Sandwich };
        assert_eq!(rated(&three_seats(), &asked).unwrap_err(), AnswerError::Prior);
        let seats = crate::pool::Options { seat_advantage: false, ..Default::default() };
        let asked = Options { model: seats, errors: Errors::Sandwich };
        assert_eq!(rated(&three_seats(), &asked).unwrap_err(), AnswerError::Seats);
        let apart = duels(&[(0, 1, 1, -1, 5), (2, 3, 0, 0, 5)]);
        assert_eq!(rated(&apart, &options(None)).unwrap().components(), [["a", "b"], ["c", "d"]]);
    }
}
