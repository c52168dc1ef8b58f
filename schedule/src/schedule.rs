//! The schedule: from a spec and a number to a bout. Pure: the same number is the same bout on any day, in any order.
//!
//! Openings are drawn without replacement, told apart by the keys of their positions, and each pairing plays the same
//! ones. Where players would only repeat themselves, no opening is used twice.

use std::collections::HashSet;

use agon_arena::spec::{Format, Openings, Plan, Positions, Values};
use agon_arena::{Arena, BoutRequest, Environment, Opening, PlayError, Roster, RosterError, SeedPath, Spec};
use agon_games::GAMES;
use agon_games::random::mix;

use crate::tuning::{Score, Tuning, TuningBout, TuningError};

/// Why a spec cannot be scheduled.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScheduleError {
    /// Who meets whom cannot be said.
    #[error(transparent)]
    Roster(#[from] RosterError),
    /// A position cannot be had.
    #[error(transparent)]
    Play(#[from] PlayError),
    /// The same games would be counted as fresh evidence.
    #[error(
        "{wanted} bouts a pairing are more than the {found} different openings there are, and `{player}` and its \
         opponents would play the same games again; ask for at most {found} bouts, or give openings more random plies"
    )]
    TooFewOpenings {
        /// Bouts a pairing.
        wanted: u64,
        /// Different openings.
        found: u64,
        /// A player that repeats itself.
        player: String,
    },
    /// The same position would be searched twice.
    #[error("only {found} different positions were found, not {wanted}; ask for fewer or give more plies")]
    TooFewPositions {
        /// How many were asked for.
        wanted: u64,
        /// How many there are.
        found: u64,
    },
    /// The validation of a tune would be over openings that the tune used.
    #[error(
        "the validation needs {validation} openings that the tune does not use, and there are only {found} different \
         ones; ask for at most {} bouts of validation, or give openings more random plies", .found.saturating_sub(1)
    )]
    TooFewToValidate {
        /// Bouts of the validation.
        validation: u64,
        /// Different openings.
        found: u64,
    },
    /// The settings of a tune do not go together.
    #[error(transparent)]
    Tuning(#[from] TuningError),
    /// What the bout plays follows from bouts that are not known.
    #[error("what bout {0} of the tune plays follows from bouts that are not played yet")]
    NotYet(u64),
    /// The numbers of a sequential test do not go together.
    #[error(transparent)]
    Sprt(#[from] agon_stats::sprt::BoundsError),
    /// There are more bouts than can be numbered.
    #[error("{0} bouts are too many for one run; ask for fewer")]
    TooMany(u64),
}

/// One bout of a schedule, or one position of a probe.
#[derive(Clone, PartialEq, Debug)]
pub struct Bout {
    /// Its number.
    pub index: u64,
    /// Who meets whom: the same number for all bouts of a pairing.
    pub pairing: u64,
    /// The players of the first game by seat; of a probe, all players.
    pub players: Vec<usize>,
    /// Where it starts.
    pub opening: Opening,
    /// In a tune, the values of players that have others than the spec says.
    pub values: Vec<(usize, Values)>,
}

/// The draws in a row without a new opening after which drawing ends.
const FRUITLESS: u64 = 1000;
/// No run has more bouts than this.
const MOST_BOUTS: u128 = 1 << 48;

/// All bouts of a run.
pub struct Schedule {
    spec: Spec,
    referee: Arena,
    order: Order,
    bouts: u64,
    book: Book,
}

/// Where the players of a bout come from.
enum Order {
    Roster(Roster),
    Probe,
    Tuning(Box<Tuning>),
}

/// The openings drawn so far.
#[derive(Default)]
struct Book {
    lines: Vec<Opening>,
    keys: HashSet<u64>,
    /// Draws made.
    draws: u64,
    exhausted: bool,
}

impl Schedule {
    /// The schedule of a spec, refused where it would count the same thing twice.
    pub fn new(spec: Spec) -> Result<Schedule, ScheduleError> {
        let mut schedule = Schedule::resume(spec)?;
        schedule.check()?;
        Ok(schedule)
    }

    /// The schedule of a spec that was found sound before. Openings are drawn when they are needed.
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
        if total > MOST_BOUTS {
            return Err(ScheduleError::TooMany(u64::try_from(total).unwrap_or(u64::MAX)));
        }
        Ok(Schedule { spec, referee, order, bouts: total as u64, book: Book::default() })
    }

    /// Refuses what would count the same thing twice.
    fn check(&mut self) -> Result<(), ScheduleError> {
        let found = |schedule: &mut Schedule, wanted: u64| -> Result<u64, ScheduleError> {
            schedule.draw(wanted)?;
            Ok(schedule.book.lines.len() as u64)
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
                if let Some(player) = self.repeats() {
                    let found = found(self, wanted)?.max(1);
                    if found < wanted {
                        return Err(ScheduleError::TooFewOpenings { wanted, found, player });
                    }
                }
            }
        }
        // Whatever the number, the first opening must exist.
        self.opening(0).map(|_| ())
    }

    /// A player of a pairing that would play the same game whenever it starts from the same opening.
    fn repeats(&self) -> Option<String> {
        let chance = GAMES.iter().any(|info| info.name == self.spec.game.name() && info.chance);
        let mut same = self.spec.players.iter().filter(|player| player.is_deterministic());
        let needed = self.referee.seats().min(self.spec.players.len());
        let hero_draws = match &self.spec.plan {
            Plan::Tournament(Format::Gauntlet { hero, .. }) => !self.spec.players[*hero].is_deterministic(),
            _ => false,
        };
        let enough = same.clone().count() >= needed && !chance && !hero_draws;
        same.next().filter(|_| enough).map(|player| player.name.clone())
    }

    /// The spec.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// The referee of the game.
    pub fn referee(&self) -> &Arena {
        &self.referee
    }

    /// How many bouts there are.
    pub fn bouts(&self) -> u64 {
        self.bouts
    }

    /// How many pairings meet over each opening; none in a probe.
    pub fn pairings(&self) -> Option<u64> {
        if let Order::Roster(roster) = &self.order { Some(roster.pairings()) } else { None }
    }

    /// The tuning of a tune.
    pub fn tuning(&self) -> Option<&Tuning> {
        if let Order::Tuning(tuning) = &self.order { Some(tuning) } else { None }
    }

    /// The tuning of a tune, to be told what came out.
    pub fn tuning_mut(&mut self) -> Option<&mut Tuning> {
        if let Order::Tuning(tuning) = &mut self.order { Some(tuning) } else { None }
    }

    /// Notes what a bout came to, where later bouts follow from it.
    pub fn learn(&mut self, bout: u64, score: Score) {
        if let Some(tuning) = self.tuning_mut() {
            tuning.record(bout, score);
        }
    }

    /// Every bout below can be made: all of them but in a tune, where they follow from each other.
    pub fn known(&self) -> u64 {
        self.tuning().map_or(self.bouts, Tuning::known)
    }

    /// The bout with this number, below [`Schedule::bouts`].
    pub fn bout(&mut self, index: u64) -> Result<Bout, ScheduleError> {
        let (pairing, players, opening, values) = match &self.order {
            Order::Probe => (0, (0..self.spec.players.len()).collect(), index, Vec::new()),
            Order::Roster(roster) => {
                let table = roster.table(index);
                (table.pairing, table.circle, table.opening, Vec::new())
            }
            Order::Tuning(tuning) => {
                let TuningBout { players, values, opening } =
                    tuning.bout(index).ok_or(ScheduleError::NotYet(index))?;
                (0, players, opening, values)
            }
        };
        Ok(Bout { index, pairing, players, opening: self.opening(opening)?, values })
    }

    /// What a worker is asked to play for a bout of a tournament.
    pub fn request(&self, bout: &Bout) -> BoutRequest {
        BoutRequest {
            opening: bout.opening.clone(),
            players: bout.players.clone(),
            limits: self.spec.players.iter().map(|player| player.limit).collect(),
            run_seed: self.spec.seed,
            bout: bout.index,
        }
    }

    /// Returns the opening of this number; beyond the last one they repeat.
    fn opening(&mut self, number: u64) -> Result<Opening, ScheduleError> {
        self.draw(number + 1)?;
        let lines = &self.book.lines;
        if lines.is_empty() {
            return Ok(Opening::default());
        }
        // The first openings of a tune are those of its validation, and never come again.
        let once = self.tuning().map_or(0, |tuning| tuning.tune().validation).min(lines.len() as u64 - 1);
        let line =
            number.checked_sub(once).map_or(number, |later| once + later % (lines.len() as u64 - once));
        Ok(lines[line as usize].clone())
    }

    /// Draws until there are this many different openings, or no more.
    fn draw(&mut self, wanted: u64) -> Result<(), ScheduleError> {
        let mut fruitless = 0;
        // The turns of a game stay together, also where another game has one of them: they count as one piece of evidence.
        let whole_games = matches!(&self.spec.plan, Plan::Probe(positions) if positions.together() > 1);
        while (self.book.lines.len() as u64) < wanted && !self.book.exhausted {
            let Some(opening) = self.candidate(self.book.draws)? else {
                self.book.exhausted = true;
                break;
            };
            self.book.draws += 1;
            if self.book.keys.insert(self.referee.decision_key(&opening)?) || whole_games {
                self.book.lines.push(opening);
                fruitless = 0;
            } else {
                fruitless += 1;
                self.book.exhausted = fruitless >= FRUITLESS;
            }
        }
        Ok(())
    }

    /// The opening of one draw; none after the last of a finite list.
    fn candidate(&self, draw: u64) -> Result<Option<Opening>, ScheduleError> {
        let seed_path = SeedPath { run: self.spec.seed, bout: draw, game: 0 };
        let line = |moves: String| Some(Opening { position: None, moves });
        Ok(match &self.spec.plan {
            Plan::Tournament(_) | Plan::Tune(_) => match &self.spec.openings {
                Openings::None => None,
                Openings::Random { plies } => line(self.referee.random_opening(seed_path, *plies)?),
                Openings::Lines(lines) => lines.get(draw as usize).cloned(),
            },
            Plan::Probe(Positions::Lines(lines)) => lines.get(draw as usize).cloned(),
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

/// Tells the draw of a probe's number of plies from the draw of its line.
const PROBE_PLIES: u64 = 3;

fn probe_size(positions: &Positions) -> u64 {
    match positions {
        Positions::Random { count, .. } => *count,
        Positions::Lines(lines) => lines.len() as u64,
        Positions::Play { games, turns, .. } => games.saturating_mul(u64::from(*turns)),
    }
}

/// The bounds of a sequential test.
pub fn sprt_bounds(
    settings: &agon_arena::spec::SprtSettings,
) -> Result<agon_stats::sprt::Bounds, agon_stats::sprt::BoundsError> {
    use agon_stats::sprt::{Bounds, Model};
    let model = if settings.normalised { Model::Normalised } else { Model::Logistic };
    Bounds::new(settings.bounds[0], settings.bounds[1], model, settings.alpha, settings.beta)
}

#[cfg(test)]
mod tests {
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
    fn a_bout_is_a_function_of_its_number() {
        let text = tournament("othello", 6, 40, &[PVS, UCT, "algorithm = \"random\""]);
        let mut forwards = schedule(&text).unwrap();
        let mut backwards = schedule(&text).unwrap();
        let bouts: Vec<Bout> = (0..forwards.bouts()).map(|index| forwards.bout(index).unwrap()).collect();
        for index in (0..backwards.bouts()).rev() {
            assert_eq!(backwards.bout(index).unwrap(), bouts[index as usize]);
        }
        // Three pairings over forty openings, no two openings alike, each met by every pairing.
        assert_eq!(bouts.len(), 120);
        let lines: HashSet<&str> = bouts.iter().map(|bout| bout.opening.moves.as_str()).collect();
        assert_eq!(lines.len(), 40);
        for trio in bouts.chunks(3) {
            assert!(trio.iter().all(|bout| bout.opening == trio[0].opening));
            assert_eq!(trio.iter().map(|bout| bout.pairing).collect::<Vec<_>>(), [0, 1, 2]);
        }
    }

    #[test]
    fn games_are_not_counted_twice() {
        // Nine first moves of tic-tac-toe are three positions of nine, told apart by keys: all nine differ.
        assert_eq!(schedule(&tournament("tic-tac-toe", 1, 9, &[PVS, PVS])).unwrap().bouts(), 9);
        let error = schedule(&tournament("tic-tac-toe", 1, 10, &[PVS, PVS])).err().unwrap();
        assert!(error.to_string().contains("the 9 different openings"), "{error}");
        // Who draws may meet over the same opening again, and so may all where chance plays.
        assert_eq!(schedule(&tournament("tic-tac-toe", 1, 10, &[PVS, UCT])).unwrap().bouts(), 10);
        let expectiminimax = "algorithm = \"expectiminimax\"";
        let pig = tournament("pig", 1, 10_000, &[expectiminimax, expectiminimax]);
        assert_eq!(schedule(&pig).unwrap().bouts(), 10_000);
    }

    /// Every game of a probe has all its turns, one after the other, also where games begin alike.
    #[test]
    fn the_turns_of_a_game_stay_together() {
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
    fn probes_have_different_positions() {
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
