//! The openings of a run, drawn without replacement.
//!
//! A draw is a function of the spec and its number. An opening is a draw that finds a position which no earlier draw found.
//! A schedule keeps only which draws these are, so that it makes any opening in constant time. The positions themselves are
//! kept by a `Drawer`, which a [`Preparation`] carries away from the schedule, so that a caller never draws under a lock.

use std::collections::HashSet;
use std::sync::Arc;

use agon_arena::spec::{Openings, Plan, Positions};
use agon_arena::{Arena, LineEnd, Opening, RandomKey, SeedPath, Spec};
use agon_games::random::mix;

use crate::schedule::ScheduleError;

/// The most openings that are compared with each other. Later draws are openings even if they repeat a position. Bounds the
/// memory for positions to 150 MB, or 230 MB while it grows.
pub const MAX_COMPARED: u64 = 10_000_000;
/// The most random plies for the openings of a spec that is checked.
pub const MAX_CHECKED_PLIES: u64 = 100_000_000;
/// The consecutive draws without a new opening after which drawing ends.
const MAX_REPEATED_DRAWS: u64 = 1000;
/// Separates the draw of a probe's number of plies from the draw of its line.
const PROBE_PLIES: u64 = 3;

/// One draw.
enum Draw<'s> {
    /// A line of the spec.
    Line(&'s Opening),
    /// A random line.
    Random(SeedPath, LineEnd),
}

fn line(lines: &[Opening], number: u64) -> Option<Draw<'_>> {
    lines.get(usize::try_from(number).ok()?).map(Draw::Line)
}

/// Returns the draw with this number; none after the last of a finite list.
fn draw(spec: &Spec, number: u64) -> Option<Draw<'_>> {
    let seed_path = SeedPath { run: spec.seed, bout: number, game: 0 };
    let random = |end| Some(Draw::Random(seed_path, end));
    match &spec.plan {
        Plan::Tournament(_) | Plan::Tune(_) => match &spec.openings {
            Openings::None => None,
            Openings::Random { plies } => random(LineEnd::Position { plies: *plies }),
            Openings::Lines(lines) => line(lines, number),
        },
        Plan::Probe(Positions::Lines(lines) | Positions::Recorded { lines, .. }) => line(lines, number),
        Plan::Probe(Positions::Random { plies: [least, most], .. }) => {
            let span = u64::from(most - least) + 1;
            let plies = least + (mix(seed_path.opening_seed(), PROBE_PLIES) % span) as u32;
            random(LineEnd::Decision { plies })
        }
        Plan::Probe(Positions::Play { turns, after, .. }) => {
            let seed_path = SeedPath { bout: number / u64::from(*turns), ..seed_path };
            let turn = after + (number % u64::from(*turns)) as u32;
            Some(Draw::Random(seed_path, LineEnd::Turn { turn }))
        }
    }
}

/// Returns the opening of one draw; none after the last of a finite list.
pub(crate) fn opening(spec: &Spec, referee: &Arena, number: u64) -> Result<Option<Opening>, ScheduleError> {
    Ok(match draw(spec, number) {
        None => None,
        Some(Draw::Line(line)) => Some(line.clone()),
        Some(Draw::Random(seed_path, end)) => {
            Some(Opening { position: None, moves: referee.random_line(seed_path, end)? })
        }
    })
}

/// The draws that are openings, as far as they are known.
#[derive(Clone, Default, Debug)]
pub(crate) struct KnownOpenings {
    /// The number of openings.
    found: u64,
    /// Where draws repeated earlier ones: the number of the next opening, and the number of repeats before it.
    repeats: Vec<(u64, u64)>,
    /// There are no more than these.
    exhausted: bool,
    /// All later draws are openings.
    open_ended: bool,
}

impl KnownOpenings {
    /// Returns the openings known without a draw.
    pub(crate) fn new(spec: &Spec) -> KnownOpenings {
        // The turns of one game count as one piece of evidence, so they stay together even if another game shares one.
        let whole_games = matches!(&spec.plan, Plan::Probe(positions) if positions.positions_per_game() > 1);
        KnownOpenings { open_ended: whole_games, ..KnownOpenings::default() }
    }

    /// Returns the number of different openings.
    pub(crate) fn found(&self) -> u64 {
        self.found
    }

    /// Returns whether all openings are known without a draw.
    pub(crate) fn is_open_ended(&self) -> bool {
        self.open_ended
    }

    /// Returns whether the draw of this opening is known.
    pub(crate) fn knows(&self, opening: u64) -> bool {
        opening < self.found || self.exhausted || self.open_ended
    }

    /// Returns the draw of an opening; none if there are no openings. Beyond the last one, all but the first `once` repeat.
    /// Precondition: it is known.
    pub(crate) fn draw(&self, opening: u64, once: u64) -> Option<u64> {
        let opening = if opening < self.found || self.open_ended {
            opening
        } else {
            let once = once.min(self.found.checked_sub(1)?);
            opening.checked_sub(once).map_or(opening, |later| once + later % (self.found - once))
        };
        let before = self.repeats.partition_point(|(next, _)| *next <= opening);
        Some(opening + before.checked_sub(1).map_or(0, |last| self.repeats[last].1))
    }

    /// Adds the openings that were drawn after these.
    pub(crate) fn extend(&mut self, later: KnownOpenings) {
        let mut repeats = std::mem::take(&mut self.repeats);
        if repeats.is_empty() {
            *self = later;
            return;
        }
        repeats.extend(later.repeats);
        *self = KnownOpenings { repeats, ..later };
    }
}

/// The state of drawing.
pub(crate) struct Drawer {
    spec: Arc<Spec>,
    referee: Arena,
    /// The positions that were found.
    keys: HashSet<u64>,
    draws: u64,
    /// The random plies of all draws.
    plies: u64,
    /// The number of openings of the run.
    last: u64,
    /// The known openings, with the repeats that the schedule does not have yet.
    known: KnownOpenings,
}

impl Drawer {
    /// Creates the drawer of a run with `last` openings.
    pub(crate) fn new(spec: Arc<Spec>, referee: Arena, last: u64) -> Drawer {
        let known = KnownOpenings::new(&spec);
        Drawer { spec, referee, keys: HashSet::new(), draws: 0, plies: 0, last, known }
    }

    /// Draws until there are `wanted` different openings, or no more exist. Fails after `most_plies` random plies.
    fn draw(&mut self, wanted: u64, most_plies: u64) -> Result<(), ScheduleError> {
        let mut repeated = 0;
        let known = &mut self.known;
        while known.found < wanted && !known.exhausted && !known.open_ended {
            let (key, plies) = match draw(&self.spec, self.draws) {
                None => {
                    known.exhausted = true;
                    break;
                }
                Some(Draw::Line(line)) => (self.referee.decision_key(line)?, 0),
                Some(Draw::Random(seed_path, end)) => {
                    let RandomKey { key, plies } = self.referee.random_key(seed_path, end)?;
                    (key, plies)
                }
            };
            self.draws += 1;
            self.plies += plies;
            if self.keys.insert(key) {
                if repeated > 0 {
                    known.repeats.push((known.found, self.draws - 1 - known.found));
                }
                known.found += 1;
                known.open_ended = known.found == MAX_COMPARED;
                repeated = 0;
            } else {
                repeated += 1;
                known.exhausted = repeated == MAX_REPEATED_DRAWS;
            }
            if self.plies > most_plies {
                return Err(ScheduleError::TooManyPlies { wanted, found: known.found });
            }
        }
        if known.exhausted || known.open_ended || known.found >= self.last {
            self.keys = HashSet::new();
        }
        Ok(())
    }

    /// Returns the mean number of random plies in a draw.
    pub(crate) fn mean_plies(&self) -> u64 {
        self.plies / self.draws.max(1)
    }

    /// Returns the known openings; each repeat is returned once.
    pub(crate) fn take_known(&mut self) -> KnownOpenings {
        KnownOpenings { repeats: std::mem::take(&mut self.known.repeats), ..self.known }
    }
}

/// Openings of a schedule that are still to be drawn.
pub struct Preparation {
    drawer: Box<Drawer>,
    wanted: u64,
    /// Bounds the cost of a spec that is not known to be playable.
    most_plies: u64,
}

/// Openings that were drawn for a schedule.
pub struct Prepared {
    drawer: Box<Drawer>,
    result: Result<(), ScheduleError>,
}

impl Preparation {
    pub(crate) fn new(drawer: Box<Drawer>, wanted: u64, most_plies: u64) -> Preparation {
        Preparation { drawer, wanted, most_plies }
    }

    /// Draws the openings. Takes seconds for millions of them. Give the result to
    /// [`Schedule::finish`](crate::Schedule::finish).
    pub fn run(mut self) -> Prepared {
        let result = self.drawer.draw(self.wanted, self.most_plies);
        Prepared { drawer: self.drawer, result }
    }
}

impl Prepared {
    pub(crate) fn into_parts(self) -> (Box<Drawer>, Result<(), ScheduleError>) {
        (self.drawer, self.result)
    }
}
