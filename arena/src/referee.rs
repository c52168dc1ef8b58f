//! The referee: checks a claimed game by the rules, without searching.
//!
//! It checks the request, the legality of every move, the draws of chance by the seed, limits and clocks, the ending, adjudication by the recorded scores, and that
//! every number of a search is possible (`search/src/bounds.rs`). It cannot check the results of searches.

use std::time::Duration;

use agon_games::random::seeded;
use agon_games::{Complete, Seat, Turn};
use agon_search::bounds::{CLOCK_TICK_US, MAX_DURATION_US};
use agon_search::{Allowance, Limit, SearchNumbers};

use crate::adjudication::Adjudicator;
use crate::board::{TIME_FORFEIT, end_payoff};
use crate::bout::GameRequest;
use crate::external::ENGINE_ENDINGS;

/// A claimed game.
#[derive(Clone, PartialEq, Debug)]
pub struct Claim<'a> {
    /// Every ply, opening and chance included.
    pub plies: Vec<PlyClaim<'a>>,
    /// The payoffs by seat.
    pub payoffs: &'a [i32],
    /// How it ended.
    pub ending: &'a str,
    /// The seed.
    pub seed: u64,
    /// The duration in microseconds.
    pub duration_us: u64,
}

/// A claimed ply.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PlyClaim<'a> {
    /// The text of the move.
    pub mv: &'a str,
    /// The seat that moved; none for chance.
    pub seat: Option<usize>,
    /// The player that searched; none for chance and in the opening.
    pub player: Option<usize>,
    /// The number of legal moves.
    pub legal: u32,
    /// The search, if there was one.
    pub search: Option<SearchClaim<'a>>,
}

/// A claimed search.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SearchClaim<'a> {
    /// Its numbers.
    pub numbers: SearchNumbers<'a>,
    /// Whether the algorithm of the player samples.
    pub samples: bool,
    /// The most playouts for each legal move, if the player's options limit them.
    pub playouts_per_move: Option<u64>,
    /// The limit; of a game clock, the time that was left in milliseconds.
    pub limit_value: u64,
}

/// Why a claimed game is impossible.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{}{reason}", .ply.map(|ply| format!("ply {ply}: ")).unwrap_or_default())]
pub struct Fault {
    /// The wrong ply, from 0; none if the fault concerns the whole game.
    pub ply: Option<usize>,
    /// The reason.
    pub reason: String,
}

impl Fault {
    pub(crate) fn of_game(reason: String) -> Fault {
        Fault { ply: None, reason }
    }
}

/// Replays the claim from the start position of the request.
pub(crate) fn verify<G: Complete>(
    mut position: G,
    request: &GameRequest,
    claim: &Claim<'_>,
) -> Result<(), Fault> {
    let opening: Vec<&str> = request.opening.moves.split_ascii_whitespace().collect();
    if claim.seed != request.seed_path.game_seed() {
        return Err(Fault::of_game(format!(
            "the seed is {}, not {}",
            claim.seed,
            request.seed_path.game_seed()
        )));
    }
    let (mut scratch, mut written) = (Vec::new(), String::new());
    let mut forfeit = None;
    let mut clocks: Vec<Option<GameClock>> =
        request.seats.iter().map(|&player| GameClock::new(request.limits[player])).collect();
    let is_engine = |player: usize| request.engines[player].is_some();
    let late_ply = late_ply(request, claim);
    let mut expansions = vec![0; request.limits.len()];
    let mut searched_us: u64 = 0;
    let ply_bound = position.ply_bound();
    let mut adjudicator = Adjudicator::new(request.adjudication, G::SEATS);
    for (ply, claimed) in claim.plies.iter().enumerate() {
        let wrong = |reason: String| Fault { ply: Some(ply), reason };
        let turn = position.turn();
        // 1. Whose turn it is, and how many moves there are.
        let seat = match turn {
            Turn::Over => return Err(wrong("the game was over before".to_string())),
            Turn::Chance => None,
            Turn::Player(seat) => Some(seat),
        };
        if ply >= opening.len()
            && let Some(verdict) = adjudicator.verdict(ply)
        {
            return Err(wrong(format!("the game ended before, {}", verdict.ending())));
        }
        if claimed.seat != seat.map(Seat::index) {
            return Err(wrong(format!("the turn is {turn}, not seat {:?}", claimed.seat)));
        }
        scratch.clear();
        let legal = position.count(&mut scratch);
        if u64::from(claimed.legal) != legal {
            return Err(wrong(format!("{legal} moves are legal, not {}", claimed.legal)));
        }
        // 2. The move is legal, and that of the opening or of chance where no player decides.
        let mv =
            position.parse_move(claimed.mv).ok_or_else(|| wrong(format!("`{}` is not legal", claimed.mv)))?;
        written.clear();
        position.write_move(mv, &mut written);
        if written != claimed.mv {
            return Err(wrong(format!("the move is written `{written}`, not `{}`", claimed.mv)));
        }
        let searched = match (opening.get(ply), seat) {
            (Some(&word), _) => {
                if word != claimed.mv && position.parse_move(word) != Some(mv) {
                    return Err(wrong(format!("the opening plays `{word}`, not `{}`", claimed.mv)));
                }
                None
            }
            (None, None) => {
                let drawn =
                    position.sample(&mut seeded(request.seed_path.ply_seed(ply as u32)), &mut scratch);
                if mv != drawn {
                    return Err(wrong(format!(
                        "chance draws `{}`, not `{}`",
                        position.move_text(drawn),
                        claimed.mv
                    )));
                }
                None
            }
            (None, Some(seat)) => Some(request.seats[seat.index()]),
        };
        // 3. Who searched, and within which limit.
        if claimed.player != searched || claimed.search.is_some() != searched.is_some() {
            return Err(wrong(format!("the player is {searched:?}, not {:?}", claimed.player)));
        }
        if let (Some(player), Some(seat), Some(search)) = (searched, seat, claimed.search) {
            let numbers = &search.numbers;
            let mut limit = request.limits[player];
            let in_time = late_ply != Some(ply);
            let grace = request.engines[player];
            if let Some(clock) = &mut clocks[seat.index()] {
                let grace = grace.unwrap_or_default();
                limit = clock.check(search.limit_value, numbers.time_us, in_time, grace).map_err(wrong)?;
            }
            match grace {
                Some(grace) => check_engine(numbers, limit, grace).map_err(wrong)?,
                None => {
                    expansions[player] += numbers.counters.simulations.saturating_add(1);
                    let given = search.allowance(limit, claimed.legal, ply_bound, expansions[player]);
                    numbers.check(&given).map_err(|error| wrong(error.to_string()))?;
                }
            }
            adjudicator.observe(seat, numbers.depth, numbers.value());
            searched_us = searched_us.saturating_add(numbers.time_us);
            check_part("`overshoot_us`", numbers.overshoot_us, claim.duration_us).map_err(wrong)?;
        }
        // 4. A clock that runs out ends the game before the move is played.
        if late_ply == Some(ply) {
            let timed = searched.is_some_and(|player| matches!(request.limits[player], Limit::Clock { .. }));
            if !timed {
                return Err(wrong("no clock could have run out".to_string()));
            }
            forfeit = seat;
            break;
        }
        position.play(mv);
    }
    // 5. The end.
    if claim.duration_us > MAX_DURATION_US {
        let reason = format!(
            "`duration_us` is {}, and it must be at most {MAX_DURATION_US}: a year",
            claim.duration_us
        );
        return Err(Fault::of_game(reason));
    }
    check_part("the sum of `time_us`", searched_us, claim.duration_us).map_err(Fault::of_game)?;
    if claim.plies.len() < opening.len() {
        return Err(Fault::of_game("it ends within its opening".to_string()));
    }
    let mut verdict = None;
    // An engine's fault ends the game before its ply.
    if let (None, Turn::Player(seat)) = (forfeit, position.turn())
        && is_engine(request.seats[seat.index()])
        && ENGINE_ENDINGS.contains(&claim.ending)
    {
        forfeit = Some(seat);
    }
    if forfeit.is_none() {
        let ending = if position.turn() == Turn::Over {
            position.ending()
        } else {
            verdict = adjudicator.verdict(claim.plies.len());
            let unfinished = || Fault::of_game(format!("it is not over: the turn is {}", position.turn()));
            verdict.ok_or_else(unfinished)?.ending()
        };
        if claim.ending != ending {
            return Err(Fault::of_game(format!("it ends by {ending}, not by {}", claim.ending)));
        }
    }
    let payoffs: Vec<i32> =
        Seat::all(G::SEATS).map(|seat| end_payoff(&position, forfeit, verdict, seat)).collect();
    if claim.payoffs != payoffs {
        return Err(Fault::of_game(format!("the payoffs are {payoffs:?}, not {:?}", claim.payoffs)));
    }
    Ok(())
}

/// Returns the last ply if it is a search that was too late and is not played: that of a built-in player which lost the game
/// on time. The forfeit of an engine has no ply.
fn late_ply(request: &GameRequest, claim: &Claim<'_>) -> Option<usize> {
    let ply = claim.plies.len().checked_sub(1).filter(|_| claim.ending == TIME_FORFEIT)?;
    let PlyClaim { player, seat, .. } = claim.plies[ply];
    let is_engine = request.engines.get(player?).is_none_or(Option::is_some);
    let without_engines = request.engines.iter().all(Option::is_none);
    let lost = claim.payoffs.get(seat?).is_some_and(|payoff| Some(payoff) == claim.payoffs.iter().min());
    (!is_engine && (lost || without_engines)).then_some(ply)
}

/// Checks the search of an engine: Agon measured the time, and the engine says the rest.
fn check_engine(numbers: &SearchNumbers<'_>, limit: Limit, grace: Duration) -> Result<(), String> {
    let microseconds = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    let most = match limit {
        Limit::Wall(time) | Limit::Cpu(time) => microseconds(time + grace),
        Limit::Clock { .. } | Limit::Nodes(_) | Limit::Depth(_) => MAX_DURATION_US,
    };
    if numbers.time_us > most {
        return Err(format!("`time_us` is {}, and the limit with its margin is {most}", numbers.time_us));
    }
    if numbers.overshoot_us > numbers.time_us {
        return Err(format!("`overshoot_us` is {}, and the time {}", numbers.overshoot_us, numbers.time_us));
    }
    Ok(())
}

/// Checks the single search of a position, which starts with a full clock.
pub(crate) fn verify_answer<G: Complete>(
    position: &G,
    mv: &str,
    limit: Limit,
    search: &SearchClaim<'_>,
) -> Result<(), String> {
    if position.parse_move(mv).is_none() {
        return Err(format!("`{mv}` is not legal"));
    }
    if let Some(mut clock) = GameClock::new(limit) {
        clock.check(search.limit_value, 0, true, Duration::ZERO)?;
    }
    let legal = u32::try_from(position.count(&mut Vec::new())).unwrap_or(u32::MAX);
    let expansions = search.numbers.counters.simulations.saturating_add(1);
    let given = search.allowance(limit, legal, position.ply_bound(), expansions);
    search.numbers.check(&given).map_err(|error| error.to_string())
}

impl SearchClaim<'_> {
    /// Returns what the search was allowed to spend. `expansions` are the searches and simulations of the player in the
    /// game so far.
    pub(crate) fn allowance(&self, limit: Limit, legal: u32, ply_bound: u32, expansions: u64) -> Allowance {
        let playouts = self.playouts_per_move.map(|playouts| playouts.saturating_mul(legal.into()));
        Allowance { limit, samples: self.samples, playouts, ply_bound, expansions }
    }
}

/// Checks that a time in microseconds is part of the duration of a game. Processor time is measured by another clock,
/// which may run faster by a hundredth.
fn check_part(name: &str, time_us: u64, duration_us: u64) -> Result<(), String> {
    let most = duration_us.saturating_add(duration_us / 100).saturating_add(CLOCK_TICK_US);
    if time_us <= most {
        return Ok(());
    }
    Err(format!(
        "{name} is {time_us}, and it must be at most {most}: the duration of the game and a hundredth"
    ))
}

/// The bounds of the time left on the clock of a seat, in microseconds: times in records are rounded down.
struct GameClock {
    least: u64,
    most: u64,
    increment: Duration,
}

impl GameClock {
    fn new(limit: Limit) -> Option<GameClock> {
        let Limit::Clock { remaining, increment } = limit else { return None };
        let [least, most] = rounded(remaining);
        Some(GameClock { least, most, increment })
    }

    /// Checks the time that was left before a search, in milliseconds, and takes the time of the search off. A search that
    /// was not `in_time` took more than was left, others at most `grace` more. Returns the limit of the search.
    fn check(&mut self, left_ms: u64, time_us: u64, in_time: bool, grace: Duration) -> Result<Limit, String> {
        let (least, most) = (self.least / 1000, self.most / 1000);
        if !(least..=most).contains(&left_ms) {
            return Err(format!("`limit_value` is {left_ms}, and the clock shows {least} to {most} ms"));
        }
        let [_, grace] = rounded(grace);
        let possible =
            if in_time { time_us <= self.most.saturating_add(grace) } else { time_us >= self.least };
        if !possible {
            let outcome = if in_time { "and it did not run out" } else { "and it ran out" };
            return Err(format!("`time_us` is {time_us}, with {left_ms} ms on the clock, {outcome}"));
        }
        let [least, most] = rounded(self.increment);
        self.least = self.least.saturating_sub(time_us.saturating_add(1)).saturating_add(least);
        self.most = self.most.saturating_sub(time_us).saturating_add(most);
        Ok(Limit::Clock { remaining: Duration::from_millis(left_ms), increment: self.increment })
    }
}

/// Returns a duration in microseconds, rounded down and up.
fn rounded(time: Duration) -> [u64; 2] {
    let nanoseconds = time.as_nanos();
    [nanoseconds / 1000, nanoseconds.div_ceil(1000)].map(|time| u64::try_from(time).unwrap_or(u64::MAX))
}
