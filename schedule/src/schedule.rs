//! The schedule: maps a spec and a number to a bout. The same number always gives the same bout, in any order of calls.
//!
//! Openings are drawn without replacement, compared by position key, and every pairing plays the same ones. Where players
//! would only repeat themselves, no opening is used twice.

use std::collections::HashSet;

use agon_arena::spec::{Format, Openings, Plan, Positions};
use agon_arena::{Arena, Bout, Environment, Opening, PlayError, Roster, RosterError, SeedPath, Spec};
use agon_games::GAMES;
use agon_games::random::mix;

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
    /// The settings of a sequential test contradict each other.
    #[error(transparent)]
    Sprt(#[from] agon_stats::sprt::BoundsError),
    /// The run has too many bouts.
    #[error("{0} bouts are too many for one run; ask for fewer")]
    TooMany(u64),
}

/// The consecutive draws without a new opening after which drawing ends.
const MAX_REPEATED_DRAWS: u64 = 1000;
/// The most bouts of a run.
const MAX_BOUTS: u128 = 1 << 48;

/// All bouts of a run.
pub struct Schedule {
    spec: Spec,
    referee: Arena,
    order: Order,
    bouts: u64,
    openings: DrawnOpenings,
}

/// The source of the players of a bout.
enum Order {
    Roster(Roster),
    Probe,
    Tuning(Box<Tuning>),
}

/// The openings drawn so far.
#[derive(Default)]
struct DrawnOpenings {
    lines: Vec<Opening>,
    keys: HashSet<u64>,
    /// The number of draws.
    draws: u64,
    exhausted: bool,
}

impl Schedule {
    /// Creates the schedule of a spec and rejects it where it would count the same evidence twice.
    pub fn new(spec: Spec) -> Result<Schedule, ScheduleError> {
        let mut schedule = Schedule::resume(spec)?;
        schedule.check()?;
        Ok(schedule)
    }

    /// Creates the schedule of a spec that [`Schedule::new`] accepted before. Draws openings on demand.
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
        Ok(Schedule { spec, referee, order, bouts: total as u64, openings: DrawnOpenings::default() })
    }

    /// Rejects a schedule that would count the same evidence twice.
    fn check(&mut self) -> Result<(), ScheduleError> {
        let found = |schedule: &mut Schedule, wanted: u64| -> Result<u64, ScheduleError> {
            schedule.draw(wanted)?;
            Ok(schedule.openings.lines.len() as u64)
        };
        match &self.order {
            Order::Probe => {
                let (wanted, found) = (self.bouts, found(self, self.bouts)?);
                if found < wanted {
                    return Err(ScheduleError::TooFewPositions { wanted, found });
                }
            }
            Order::Tuning(tuning) => {
                let validation = tuning.tune().validation;
                let found = found(self, validation + 1)?;
                if found <= validation {
                    return Err(ScheduleError::TooFewToValidate { validation, found });
                }
            }
            Order::Roster(roster) => {
                let wanted = self.bouts / roster.pairings().max(1);
                if let Some(player) = self.deterministic_player() {
                    let found = found(self, wanted)?.max(1);
                    if found < wanted {
                        return Err(ScheduleError::TooFewOpenings { wanted, found, player });
                    }
                }
            }
        }
        // Every schedule needs its first opening.
        self.opening(0).map(|_| ())
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
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// Returns the referee of the game.
    pub fn referee(&self) -> &Arena {
        &self.referee
    }

    /// Returns the number of bouts.
    pub fn bouts(&self) -> u64 {
        self.bouts
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

    /// Returns the bout with this number, which is below [`Schedule::bouts`].
    pub fn bout(&mut self, index: u64) -> Result<Bout, ScheduleError> {
        let bout = match &self.order {
            Order::Probe => {
                let players = (0..self.spec.players.len()).collect();
                Bout { index, players, opening: index, values: Vec::new() }
            }
            Order::Roster(roster) => roster.bout(index),
            Order::Tuning(tuning) => tuning.bout(index).ok_or(ScheduleError::NotYet(index))?,
        };
        let opening = self.opening(bout.opening)?;
        Ok(bout.with_opening(opening))
    }

    /// Returns the opening with this number. Beyond the last one, openings repeat.
    fn opening(&mut self, number: u64) -> Result<Opening, ScheduleError> {
        self.draw(number + 1)?;
        let lines = &self.openings.lines;
        if lines.is_empty() {
            return Ok(Opening::default());
        }
        // The first openings of a tuning run belong to its validation and never repeat.
        let once = self.tuning().map_or(0, |tuning| tuning.tune().validation).min(lines.len() as u64 - 1);
        let line =
            number.checked_sub(once).map_or(number, |later| once + later % (lines.len() as u64 - once));
        Ok(lines[line as usize].clone())
    }

    /// Draws until there are `wanted` different openings, or no more exist.
    fn draw(&mut self, wanted: u64) -> Result<(), ScheduleError> {
        let mut repeated = 0;
        // The turns of one game count as one piece of evidence, so they stay together even if another game shares one.
        let whole_games =
            matches!(&self.spec.plan, Plan::Probe(positions) if positions.positions_per_game() > 1);
        while (self.openings.lines.len() as u64) < wanted && !self.openings.exhausted {
            let Some(opening) = self.candidate(self.openings.draws)? else {
                self.openings.exhausted = true;
                break;
            };
            self.openings.draws += 1;
            if self.openings.keys.insert(self.referee.decision_key(&opening)?) || whole_games {
                self.openings.lines.push(opening);
                repeated = 0;
            } else {
                repeated += 1;
                self.openings.exhausted = repeated >= MAX_REPEATED_DRAWS;
            }
        }
        Ok(())
    }

    /// Returns the opening of one draw; none after the last of a finite list.
    fn candidate(&self, draw: u64) -> Result<Option<Opening>, ScheduleError> {
        let seed_path = SeedPath { run: self.spec.seed, bout: draw, game: 0 };
        let line = |moves: String| Some(Opening { position: None, moves });
        Ok(match &self.spec.plan {
            Plan::Tournament(_) | Plan::Tune(_) => match &self.spec.openings {
                Openings::None => None,
                Openings::Random { plies } => line(self.referee.random_opening(seed_path, *plies)?),
                Openings::Lines(lines) => lines.get(draw as usize).cloned(),
            },
            Plan::Probe(Positions::Lines(lines) | Positions::Recorded { lines, .. }) => {
                lines.get(draw as usize).cloned()
            }
            Plan::Probe(Positions::Random { plies: [least, most], .. }) => {
                let span = u64::from(most - least) + 1;
                let plies = least + (mix(seed_path.opening_seed(), PROBE_PLIES) % span) as u32;
                line(self.referee.random_decision(seed_path, plies)?)
            }
            Plan::Probe(Positions::Play { turns, after, .. }) => {
                let seed_path = SeedPath { bout: draw / u64::from(*turns), ..seed_path };
                line(self.referee.random_turn(seed_path, after + (draw % u64::from(*turns)) as u32)?)
            }
        })
    }
}

/// Separates the draw of a probe's number of plies from the draw of its line.
const PROBE_PLIES: u64 = 3;

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
    use std::collections::BTreeSet;

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
        let bouts: Vec<Bout> = (0..forwards.bouts()).map(|index| forwards.bout(index).unwrap()).collect();
        for index in (0..backwards.bouts()).rev() {
            assert_eq!(backwards.bout(index).unwrap(), bouts[index as usize]);
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
            let [first, second] = [0, 1].map(|turn| probe.bout(2 * game + turn).unwrap().opening.moves);
            assert_eq!(first, "", "the first turn is at the first position");
            assert_eq!(second.split_whitespace().count(), 2);
        }
    }

    #[test]
    fn probes_search_distinct_positions() {
        let text = "name = \"p\"\ngame = \"connect-four\"\nlimit = { depth = 3 }\n[probe]\n\
                    positions = { random = 50, plies = [2, 9] }\n[[player]]\nname = \"a\"\n\
                    search = { algorithm = \"alpha-beta\" }\n";
        let mut probe = schedule(text).unwrap();
        let positions: Vec<String> = (0..50).map(|index| probe.bout(index).unwrap().opening.moves).collect();
        assert_eq!(positions.iter().collect::<HashSet<_>>().len(), 50);
        let lengths: HashSet<usize> = positions.iter().map(|moves| moves.split(' ').count()).collect();
        assert!(lengths.iter().all(|plies| (2..=9).contains(plies)) && lengths.len() > 4);
        let error = schedule(&text.replace("50, plies = [2, 9]", "50, plies = [0, 1]")).err().unwrap();
        assert_eq!(error, ScheduleError::TooFewPositions { wanted: 50, found: 8 });
    }
}
