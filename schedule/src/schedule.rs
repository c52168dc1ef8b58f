//! The schedule: maps a spec and a number to a bout. The same number always gives the same bout, in any order of calls.
//!
//! Openings are drawn without replacement, compared by position key, and every pairing plays the same ones. Where players
//! would only repeat themselves, no opening is used twice.

use std::sync::Arc;

use agon_arena::spec::{Format, Plan, Positions};
use agon_arena::{Arena, Bout, Environment, Opening, PlayError, Roster, RosterError, Spec};
use agon_games::GAMES;

use crate::openings::{self, Drawer, KnownOpenings, MAX_CHECKED_PLIES, MAX_COMPARED, Preparation, Prepared};
use crate::tuning::{Score, Tuning, TuningError};

/// Why a spec cannot be scheduled.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScheduleError {
    /// The roster is invalid.
    #[error(transparent)]
    Roster(#[from] RosterError),
    /// A position cannot be reached.
    #[error(transparent)]
    Play(#[from] PlayError),
    /// Deterministic players would repeat games, which would count as new evidence.
    #[error(
        "{wanted} bouts a pairing are more than the {found} different openings there are, and `{player}` and its \
         opponents would play the same games again; ask for at most {found} bouts, or give openings more random plies"
    )]
    TooFewOpenings {
        /// The requested bouts per pairing.
        wanted: u64,
        /// The number of different openings.
        found: u64,
        /// A deterministic player.
        player: String,
    },
    /// A probe would search the same position twice.
    #[error("only {found} different positions were found, not {wanted}; ask for fewer or give more plies")]
    TooFewPositions {
        /// The requested number of positions.
        wanted: u64,
        /// The number of different positions.
        found: u64,
    },
    /// The validation of a tuning run would reuse openings of the tuning.
    #[error(
        "the validation needs {validation} openings that the tune does not use, and there are only {found} different \
         ones; ask for at most {} bouts of validation, or give openings more random plies", .found.saturating_sub(1)
    )]
    TooFewToValidate {
        /// The number of bouts of the validation.
        validation: u64,
        /// The number of different openings.
        found: u64,
    },
    /// The settings of a tuning run contradict each other.
    #[error(transparent)]
    Tuning(#[from] TuningError),
    /// The bout depends on results that are still missing.
    #[error("bout {0} of the tuning run depends on earlier bouts that have no result yet")]
    NotYet(u64),
    /// Finding the openings takes too long.
    #[error(
        "{found} openings took {MAX_CHECKED_PLIES} random plies, and {wanted} must be different; ask for fewer bouts, or \
         give openings fewer random plies"
    )]
    TooManyPlies {
        /// The number of different openings that are needed.
        wanted: u64,
        /// The number of those that were found.
        found: u64,
    },
    /// Nearly every random game ends before an opening.
    #[error(
        "an opening takes {plies} random plies on average, because most games end before it; give openings fewer random \
         plies"
    )]
    RareOpenings {
        /// The random plies for one opening.
        plies: u64,
    },
    /// More openings are needed than are compared with each other.
    #[error("{wanted} different openings are too many; ask for at most {MAX_COMPARED} bouts a pairing")]
    TooManyToCompare {
        /// The number of different openings that are needed.
        wanted: u64,
    },
    /// The opening of the bout is not drawn yet; [`Schedule::prepare`] draws it.
    #[error("the opening of bout {0} is not drawn yet")]
    NotPrepared(u64),
    /// The settings of a sequential test contradict each other.
    #[error(transparent)]
    Sprt(#[from] agon_stats::sprt::BoundsError),
    /// The run has too many bouts.
    #[error("{0} bouts are too many for one run; ask for fewer")]
    TooMany(u64),
}

/// The most bouts of a run.
const MAX_BOUTS: u128 = 1 << 48;
/// The openings that every check draws, to measure what an opening costs.
const SAMPLED_OPENINGS: u64 = 32;
/// The most random plies for an opening on average.
const MAX_MEAN_PLIES: u64 = 4096;

/// All bouts of a run.
///
/// A bout costs the same at any number, once its opening is prepared: [`Schedule::prepare`] returns the work, which may run
/// on another thread, and [`Schedule::finish`] takes the result. [`Schedule::draw_bout`] does all of it at once.
pub struct Schedule {
    spec: Arc<Spec>,
    referee: Arena,
    order: Order,
    bouts: u64,
    openings: KnownOpenings,
    /// None while a preparation has it.
    drawer: Option<Box<Drawer>>,
    /// Why no more openings can be drawn.
    fault: Option<ScheduleError>,
}

/// The source of the players of a bout.
enum Order {
    Roster(Roster),
    Probe,
    Tuning(Box<Tuning>),
}

impl Schedule {
    /// Creates the schedule of a spec and rejects it where it would count the same evidence twice.
    pub fn new(spec: Spec) -> Result<Schedule, ScheduleError> {
        let mut schedule = Schedule::resume(spec)?;
        schedule.check()?;
        Ok(schedule)
    }

    /// Creates the schedule of a spec that [`Schedule::new`] accepted before. Draws nothing.
    pub fn resume(spec: Spec) -> Result<Schedule, ScheduleError> {
        let referee = Arena::new(&spec.game, &[], Environment::system()).map_err(PlayError::from)?;
        let seats = referee.seats();
        let players = spec.players.len();
        let (order, rounds) = match &spec.plan {
            Plan::Tournament(Format::RoundRobin { bouts }) => {
                (Order::Roster(Roster::round_robin(seats, players)?), *bouts)
            }
            Plan::Tournament(Format::Gauntlet { hero, bouts }) => {
                (Order::Roster(Roster::gauntlet(seats, players, *hero)?), *bouts)
            }
            Plan::Tournament(Format::Sprt(settings)) => {
                sprt_bounds(settings)?;
                (Order::Roster(Roster::round_robin(seats, players)?), settings.max_bouts)
            }
            Plan::Probe(positions) => (Order::Probe, probe_size(positions)),
            Plan::Tune(tune) => {
                let tuning = Tuning::new(tune, spec.seed)?;
                let bouts = tuning.bouts();
                (Order::Tuning(Box::new(tuning)), bouts)
            }
        };
        let pairings = if let Order::Roster(roster) = &order { roster.pairings() } else { 1 };
        let total = u128::from(pairings) * u128::from(rounds);
        if total > MAX_BOUTS {
            return Err(ScheduleError::TooMany(u64::try_from(total).unwrap_or(u64::MAX)));
        }
        let bouts = total as u64;
        let last = match &order {
            Order::Probe => bouts,
            Order::Roster(_) => rounds,
            Order::Tuning(tuning) => tuning.openings(),
        };
        let spec = Arc::new(spec);
        let openings = KnownOpenings::new(&spec);
        let other = Arena::new(&spec.game, &[], Environment::system()).map_err(PlayError::from)?;
        let drawer = Some(Box::new(Drawer::new(Arc::clone(&spec), other, last)));
        Ok(Schedule { spec, referee, order, bouts, openings, drawer, fault: None })
    }

    /// Rejects a schedule that would count the same evidence twice, or whose openings cost too much to find.
    fn check(&mut self) -> Result<(), ScheduleError> {
        let deterministic = self.deterministic_player();
        let wanted = match &self.order {
            Order::Probe => self.bouts,
            Order::Tuning(tuning) => tuning.tune().validation.bouts + 1,
            Order::Roster(_) if deterministic.is_none() => 0,
            Order::Roster(roster) => self.bouts / roster.pairings().max(1),
        };
        self.sample()?;
        if self.openings.is_open_ended() {
            return Ok(());
        }
        if wanted > MAX_COMPARED {
            return Err(ScheduleError::TooManyToCompare { wanted });
        }
        self.draw(wanted, MAX_CHECKED_PLIES)?;
        let found = self.openings.found();
        match (&self.order, deterministic) {
            (Order::Probe, _) if found < wanted => Err(ScheduleError::TooFewPositions { wanted, found }),
            (Order::Tuning(_), _) if found < wanted => {
                Err(ScheduleError::TooFewToValidate { validation: wanted - 1, found })
            }
            (Order::Roster(_), Some(player)) if found.max(1) < wanted => {
                Err(ScheduleError::TooFewOpenings { wanted, found: found.max(1), player })
            }
            _ => Ok(()),
        }
    }

    /// Draws the first openings and rejects those that are hard to find.
    fn sample(&mut self) -> Result<(), ScheduleError> {
        if self.openings.is_open_ended() {
            let games = SAMPLED_OPENINGS * self.positions_per_game();
            return (0..games.min(self.bouts)).try_for_each(|number| self.opening(number).map(drop));
        }
        self.draw(SAMPLED_OPENINGS, MAX_CHECKED_PLIES)?;
        let plies = self.drawer.as_ref().map_or(0, |drawer| drawer.mean_plies());
        if plies > MAX_MEAN_PLIES { Err(ScheduleError::RareOpenings { plies }) } else { Ok(()) }
    }

    fn positions_per_game(&self) -> u64 {
        if let Plan::Probe(positions) = &self.spec.plan { positions.positions_per_game() } else { 1 }
    }

    /// Returns a player of a pairing that always plays the same game from the same opening.
    fn deterministic_player(&self) -> Option<String> {
        let chance = GAMES.iter().any(|info| info.name == self.spec.game.name() && info.chance);
        let mut deterministic = self.spec.players.iter().filter(|player| player.is_deterministic());
        let needed = self.referee.seats().min(self.spec.players.len());
        let hero_draws = match &self.spec.plan {
            Plan::Tournament(Format::Gauntlet { hero, .. }) => !self.spec.players[*hero].is_deterministic(),
            _ => false,
        };
        let repeats = deterministic.clone().count() >= needed && !chance && !hero_draws;
        deterministic.next().filter(|_| repeats).map(|player| player.name.clone())
    }

    /// Returns the spec.
    pub fn spec(&self) -> &Arc<Spec> {
        &self.spec
    }

    /// Returns the referee of the game.
    pub fn referee(&self) -> &Arena {
        &self.referee
    }

    /// Returns the number of bouts. That of a tuning run that may end early is the most that there can be.
    pub fn bouts(&self) -> u64 {
        self.tuning().map_or(self.bouts, Tuning::bouts)
    }

    /// Returns the number of pairings per opening; only a tournament has one.
    pub fn pairings(&self) -> Option<u64> {
        if let Order::Roster(roster) = &self.order { Some(roster.pairings()) } else { None }
    }

    /// Returns the state of a tuning run.
    pub fn tuning(&self) -> Option<&Tuning> {
        if let Order::Tuning(tuning) = &self.order { Some(tuning) } else { None }
    }

    /// Returns the state of a tuning run for recording results.
    pub fn tuning_mut(&mut self) -> Option<&mut Tuning> {
        if let Order::Tuning(tuning) = &mut self.order { Some(tuning) } else { None }
    }

    /// Records the score of a bout, on which later bouts of a tuning run depend.
    pub fn record(&mut self, bout: u64, score: Score) {
        if let Some(tuning) = self.tuning_mut() {
            tuning.record(bout, score);
        }
    }

    /// Returns the number of bouts that are determined: all, except in a tuning run that still misses results.
    pub fn known_bouts(&self) -> u64 {
        self.tuning().map_or(self.bouts, Tuning::known_bouts)
    }

    /// Returns the bout with this number, which is below [`Schedule::bouts`], in a time that does not depend on the number.
    /// Its opening must be prepared.
    pub fn bout(&self, index: u64) -> Result<Bout, ScheduleError> {
        let bout = match &self.order {
            Order::Probe => {
                let players = (0..self.spec.players.len()).collect();
                Bout { index, players, opening: index, values: Vec::new() }
            }
            Order::Roster(roster) => roster.bout(index),
            Order::Tuning(tuning) => tuning.bout(index).ok_or(ScheduleError::NotYet(index))?,
        };
        if !self.openings.knows(bout.opening) {
            return Err(self.fault.clone().unwrap_or(ScheduleError::NotPrepared(index)));
        }
        let opening = self.opening(bout.opening)?;
        Ok(bout.with_opening(opening))
    }

    /// Returns the bout with this number. Draws the openings up to it first, which takes seconds for millions of them; a
    /// caller that cannot wait calls [`Schedule::prepare`].
    pub fn draw_bout(&mut self, index: u64) -> Result<Bout, ScheduleError> {
        if let Some(preparation) = self.prepare(index) {
            self.finish(preparation.run());
        }
        self.bout(index)
    }

    /// Returns whether [`Schedule::bout`] needs no preparation for this number and all smaller ones. Numbers beyond the last
    /// bout stand for it.
    pub fn is_prepared(&self, index: u64) -> bool {
        self.openings.knows(self.last_opening(index))
    }

    /// Returns the work that prepares the bouts up to this number; none if they are prepared, if another preparation is
    /// under way, or if an earlier one failed.
    pub fn prepare(&mut self, index: u64) -> Option<Preparation> {
        if self.is_prepared(index) || self.fault.is_some() {
            return None;
        }
        Some(Preparation::new(self.drawer.take()?, self.last_opening(index) + 1, u64::MAX))
    }

    /// Takes the openings of a preparation of this schedule.
    pub fn finish(&mut self, prepared: Prepared) {
        let (mut drawer, result) = prepared.into_parts();
        self.openings.extend(drawer.take_known());
        self.drawer = Some(drawer);
        self.fault = result.err();
    }

    /// Draws openings at a bounded cost.
    fn draw(&mut self, wanted: u64, most_plies: u64) -> Result<(), ScheduleError> {
        if let Some(drawer) = self.drawer.take() {
            self.finish(Preparation::new(drawer, wanted, most_plies).run());
        }
        self.fault.clone().map_or(Ok(()), Err)
    }

    /// Returns the greatest number of an opening of the bouts up to this one.
    fn last_opening(&self, index: u64) -> u64 {
        let index = index.min(self.bouts().saturating_sub(1));
        match &self.order {
            Order::Probe => index,
            Order::Roster(roster) => index / roster.pairings().max(1),
            Order::Tuning(tuning) => tuning.last_opening(index),
        }
    }

    /// Returns the opening with this number, which must be known. Beyond the last one, openings repeat.
    fn opening(&self, number: u64) -> Result<Opening, ScheduleError> {
        // The first openings of a tuning run belong to its validation and never repeat.
        let once = self.tuning().map_or(0, |tuning| tuning.tune().validation.bouts);
        let Some(draw) = self.openings.draw(number, once) else { return Ok(Opening::default()) };
        Ok(openings::opening(&self.spec, &self.referee, draw)?.unwrap_or_default())
    }
}

fn probe_size(positions: &Positions) -> u64 {
    match positions {
        Positions::Random { count, .. } => *count,
        Positions::Lines(lines) | Positions::Recorded { lines, .. } => lines.len() as u64,
        Positions::Play { games, turns, .. } => games.saturating_mul(u64::from(*turns)),
    }
}

/// Returns the bounds of a sequential test.
pub fn sprt_bounds(
    settings: &agon_arena::spec::SprtSettings,
) -> Result<agon_stats::sprt::Bounds, agon_stats::sprt::BoundsError> {
    use agon_stats::sprt::{Bounds, Model};
    let model = if settings.normalised { Model::Normalised } else { Model::Logistic };
    Bounds::new(settings.bounds[0], settings.bounds[1], model, settings.alpha, settings.beta)
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeSet, HashSet};

    use agon_arena::SpecSource;

    use super::*;

    fn schedule(text: &str) -> Result<Schedule, ScheduleError> {
        let spec = Spec::parse(&SpecSource { text: text.to_string(), ..SpecSource::default() });
        Schedule::new(spec.unwrap_or_else(|error| panic!("{error}: {text}")))
    }

    fn tournament(game: &str, plies: u32, bouts: u64, players: &[&str]) -> String {
        let players: String = players
            .iter()
            .enumerate()
            .map(|(number, search)| format!("[[player]]\nname = \"p{number}\"\nsearch = {{ {search} }}\n"))
            .collect();
        format!(
            "name = \"t\"\ngame = \"{game}\"\nlimit = {{ nodes = 100 }}\nopenings = {{ random_plies = {plies} }}\n\
             [tournament]\nformat = \"round-robin\"\nbouts = {bouts}\n{players}"
        )
    }

    const PVS: &str = "algorithm = \"pvs\"";
    const UCT: &str = "algorithm = \"uct\"";

    #[test]
    fn bouts_do_not_depend_on_the_order_of_calls() {
        let text = tournament("othello", 6, 40, &[PVS, UCT, "algorithm = \"random\""]);
        let mut forwards = schedule(&text).unwrap();
        let mut backwards = schedule(&text).unwrap();
        let bouts: Vec<Bout> =
            (0..forwards.bouts()).map(|index| forwards.draw_bout(index).unwrap()).collect();
        for index in (0..backwards.bouts()).rev() {
            assert_eq!(backwards.draw_bout(index).unwrap(), bouts[index as usize]);
        }
        // Three pairings over forty different openings; every pairing plays every opening.
        assert_eq!(bouts.len(), 120);
        let lines: HashSet<&str> = bouts.iter().map(|bout| bout.opening.moves.as_str()).collect();
        assert_eq!(lines.len(), 40);
        for trio in bouts.chunks(3) {
            assert!(trio.iter().all(|bout| bout.opening == trio[0].opening));
            let pairs: HashSet<BTreeSet<usize>> =
                trio.iter().map(|bout| bout.players.iter().copied().collect()).collect();
            assert_eq!(pairs.len(), 3);
        }
    }

    #[test]
    fn rejects_more_bouts_than_openings_for_deterministic_players() {
        // Position keys do not identify symmetric positions: all nine first moves differ.
        assert_eq!(schedule(&tournament("tic-tac-toe", 1, 9, &[PVS, PVS])).unwrap().bouts(), 9);
        let error = schedule(&tournament("tic-tac-toe", 1, 10, &[PVS, PVS])).err().unwrap();
        assert!(error.to_string().contains("the 9 different openings"), "{error}");
        // Players that draw random numbers may repeat an opening, and so may all players of a game of chance.
        assert_eq!(schedule(&tournament("tic-tac-toe", 1, 10, &[PVS, UCT])).unwrap().bouts(), 10);
        let expectiminimax = "algorithm = \"expectiminimax\"";
        let pig = tournament("pig", 1, 10_000, &[expectiminimax, expectiminimax]);
        assert_eq!(schedule(&pig).unwrap().bouts(), 10_000);
    }

    #[test]
    fn a_probe_keeps_the_turns_of_a_game_together() {
        let text = "name = \"p\"\ngame = \"tic-tac-toe\"\nlimit = { depth = 1 }\n[probe]\n\
                    positions = { play = \"random\", turns = 2, games = 30 }\n\
                    [[player]]\nname = \"a\"\nsearch = { algorithm = \"pvs\" }\n";
        let mut probe = schedule(text).unwrap();
        assert_eq!(probe.bouts(), 60);
        for game in 0..30 {
            let [first, second] = [0, 1].map(|turn| probe.draw_bout(2 * game + turn).unwrap().opening.moves);
            assert_eq!(first, "", "the first turn is at the first position");
            assert_eq!(second.split_whitespace().count(), 2);
        }
    }

    #[test]
    fn a_check_draws_a_bounded_number_of_plies() {
        let text = tournament("chess", 8, 1000, &[PVS, UCT]);
        let error = schedule(&text).unwrap().draw(1000, 400).unwrap_err();
        assert_eq!(error, ScheduleError::TooManyPlies { wanted: 1000, found: 51 });
    }

    #[test]
    fn probes_search_distinct_positions() {
        let text = "name = \"p\"\ngame = \"connect-four\"\nlimit = { depth = 3 }\n[probe]\n\
                    positions = { random = 50, plies = [2, 9] }\n[[player]]\nname = \"a\"\n\
                    search = { algorithm = \"alpha-beta\" }\n";
        let mut probe = schedule(text).unwrap();
        let positions: Vec<String> =
            (0..50).map(|index| probe.draw_bout(index).unwrap().opening.moves).collect();
        assert_eq!(positions.iter().collect::<HashSet<_>>().len(), 50);
        let lengths: HashSet<usize> = positions.iter().map(|moves| moves.split(' ').count()).collect();
        assert!(lengths.iter().all(|plies| (2..=9).contains(plies)) && lengths.len() > 4);
        let error = schedule(&text.replace("50, plies = [2, 9]", "50, plies = [0, 1]")).err().unwrap();
        assert_eq!(error, ScheduleError::TooFewPositions { wanted: 50, found: 8 });
    }
}
