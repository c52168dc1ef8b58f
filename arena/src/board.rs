//! The board of a game of any type: what an arena does, compiled for one game.

use std::sync::Arc;
use std::time::Duration;

use agon_games::line::{MoveError, follow};
use agon_games::perft::perft;
use agon_games::random::seeded;
use agon_games::{
    ChanceGame, Complete, DuelGame, Game, GameSpec, ManyGame, Parameters, Payoffs, Seat, SetupError, Turn,
    Visitor,
};
use agon_search::{Limit, Value};

use crate::adjudication::{Adjudicator, Verdict};
use crate::arena::{Decision, Environment, LineEnd, PlayError, RandomKey};
use crate::bout::{GameRequest, Opening};
use crate::competitor::{Competitor, EngineSeat, Texts};
use crate::config::{PlayerConfig, SearchConfig};
use crate::external::{EngineFault, PlayedMove, Request};
use crate::player::{Player, chance_player, duel_player, many_player};
use crate::record::{GameRecord, IterationRecord, MoveRecord, SearchRecord};
use crate::referee::{self, Claim, Fault, SearchClaim};

/// The interface of [`Arena`](crate::Arena) to a game of any type.
pub(crate) trait Board: Send {
    fn configure(&mut self, player: usize, config: &PlayerConfig);

    fn seats(&self) -> usize;

    fn ply_bound(&self) -> u32;

    /// Shows a player the moves between two lines of a game, or starts a new game if `line` does not continue `before`.
    fn follow_game(
        &mut self,
        player: usize,
        before: Option<&Opening>,
        line: &Opening,
    ) -> Result<(), PlayError>;

    fn search(
        &mut self,
        player: usize,
        opening: &Opening,
        limit: Limit,
        seed: u64,
        report: &mut dyn FnMut(&IterationRecord),
    ) -> Result<SearchRecord, PlayError>;

    fn play(
        &mut self,
        request: &GameRequest,
        watch: &mut dyn FnMut(&MoveRecord),
    ) -> Result<GameRecord, PlayError>;

    fn random_line(&self, seed: u64, end: LineEnd) -> Option<String>;

    fn random_key(&self, seed: u64, end: LineEnd) -> Option<RandomKey>;

    fn canonical(&self, opening: &Opening) -> Result<Opening, PlayError>;

    fn turns(&self, game: &Opening, seats: &[usize], most: usize) -> Result<Vec<Opening>, PlayError>;

    fn decision_key(&self, opening: &Opening) -> Result<u64, PlayError>;

    fn decision(&self, opening: &Opening) -> Result<Decision, PlayError>;

    fn perft(&self, opening: &Opening, plies: u32) -> Result<u64, PlayError>;

    fn verify_answer(
        &self,
        opening: &Opening,
        mv: &str,
        limit: Limit,
        claim: &SearchClaim<'_>,
    ) -> Result<(), Fault>;

    fn verify(&self, request: &GameRequest, claim: &Claim<'_>) -> Result<(), Fault>;
}

/// Creates the board of a game with its players.
pub(crate) struct BoardBuilder<'a> {
    pub(crate) game: &'a GameSpec,
    pub(crate) players: &'a [PlayerConfig],
    pub(crate) environment: Environment,
}

impl BoardBuilder<'_> {
    fn board<G: Complete>(
        self,
        parameters: &Parameters,
        player: fn(&SearchConfig) -> Player<G>,
    ) -> Result<Box<dyn Board>, SetupError> {
        Ok(Box::new(TypedBoard::<G> {
            start: G::initial(parameters)?,
            game: self.game.clone(),
            players: self.players.iter().map(|config| competitor(config, player)).collect(),
            make_player: player,
            environment: self.environment,
        }))
    }
}

impl Visitor for BoardBuilder<'_> {
    type Output = Result<Box<dyn Board>, SetupError>;

    fn duel<G: DuelGame>(self, parameters: &Parameters) -> Self::Output {
        self.board::<G>(parameters, duel_player)
    }

    fn many<G: ManyGame>(self, parameters: &Parameters) -> Self::Output {
        self.board::<G>(parameters, many_player)
    }

    fn chance<G: ChanceGame>(self, parameters: &Parameters) -> Self::Output {
        self.board::<G>(parameters, chance_player)
    }
}

/// A board of a game of type `G`.
struct TypedBoard<G: Complete> {
    start: G,
    game: GameSpec,
    players: Vec<Competitor<G>>,
    /// Makes a search for the game's family.
    make_player: fn(&SearchConfig) -> Player<G>,
    environment: Environment,
}

fn competitor<G: Complete>(config: &PlayerConfig, search: fn(&SearchConfig) -> Player<G>) -> Competitor<G> {
    match config {
        PlayerConfig::Search(config) => Competitor::Search(search(config)),
        PlayerConfig::Engine(config) => Competitor::Engine(Box::new(EngineSeat::new(config.clone()))),
    }
}

impl<G: Complete> TypedBoard<G> {
    fn start_position(&self, opening: &Opening) -> Result<G, SetupError> {
        match &opening.position {
            Some(text) => G::from_position(self.game.parameters(), text),
            None => Ok(self.start.clone()),
        }
    }

    fn after_opening(&self, opening: &Opening) -> Result<G, PlayError> {
        let mut position = self.start_position(opening)?;
        follow(&mut position, &opening.moves)?;
        Ok(position)
    }
}

fn nothing_to_search<G: Game>(position: &G, remedy: &'static str) -> PlayError {
    let turn = match position.turn() {
        Turn::Over => "the game is over",
        Turn::Chance => "chance moves next",
        Turn::Player(_) => "a player is to move",
    };
    PlayError::NothingToSearch { turn, remedy }
}

impl<G: Complete> Board for TypedBoard<G> {
    fn configure(&mut self, player: usize, config: &PlayerConfig) {
        match (&mut self.players[player], config) {
            // Its process goes on and gets the new options.
            (Competitor::Engine(engine), PlayerConfig::Engine(config)) => engine.config = config.clone(),
            (player, config) => *player = competitor(config, self.make_player),
        }
    }

    fn seats(&self) -> usize {
        G::SEATS
    }

    fn ply_bound(&self) -> u32 {
        self.start.ply_bound()
    }

    fn follow_game(
        &mut self,
        player: usize,
        before: Option<&Opening>,
        line: &Opening,
    ) -> Result<(), PlayError> {
        let Some((before, next)) = before.and_then(|before| Some((before, line.since(before)?))) else {
            self.players[player].new_game();
            return Ok(());
        };
        let mut position = self.after_opening(before)?;
        for (index, word) in next.split_ascii_whitespace().enumerate() {
            let Some(mv) = position.parse_move(word) else {
                return Err(MoveError::new(&position, index + 1, word).into());
            };
            self.players[player].observe(mv);
            position.play(mv);
        }
        Ok(())
    }

    fn search(
        &mut self,
        player: usize,
        opening: &Opening,
        limit: Limit,
        seed: u64,
        report: &mut dyn FnMut(&IterationRecord),
    ) -> Result<SearchRecord, PlayError> {
        let position = self.after_opening(opening)?;
        let seat = match position.turn() {
            Turn::Player(seat) => seat.index(),
            Turn::Chance => return Err(nothing_to_search(&position, "add an outcome to the moves")),
            Turn::Over => return Err(nothing_to_search(&position, "leave out the last moves")),
        };
        let start = self.start_position(opening)?;
        match &mut self.players[player] {
            Competitor::Search(searcher) => {
                let budget = self.environment.budget(limit);
                let answer = searcher.search(&position, budget, seed, &mut |iteration| {
                    report(&IterationRecord::new(&position, iteration));
                });
                Ok(SearchRecord::new(&position, &answer, limit))
            }
            Competitor::Engine(engine) => {
                let moves = played(&start, &opening.moves);
                let request = Request {
                    start: opening.position.as_deref(),
                    moves: &moves.iter().map(|(seat, mv)| PlayedMove { seat: *seat, mv }).collect::<Vec<_>>(),
                    seat,
                    limits: &vec![limit; G::SEATS],
                    position: &Texts(&position),
                };
                let decided = engine.decide(&position, &request, &self.game, &self.environment)?;
                let failed = |fault: EngineFault| PlayError::Engine { reason: fault.detail };
                decided.map(|(_, record)| record).map_err(failed)
            }
        }
    }

    fn play(
        &mut self,
        request: &GameRequest,
        watch: &mut dyn FnMut(&MoveRecord),
    ) -> Result<GameRecord, PlayError> {
        let clock = Arc::clone(&self.environment.wall);
        let started = clock.now();
        let mut position = self.start_position(&request.opening)?;
        let mut log = MoveLog { moves: Vec::new(), scratch: Vec::new() };
        for player in &mut self.players {
            player.new_game();
        }
        // 1. The opening: plies without a search.
        let mut ahead = position.clone();
        follow(&mut ahead, &request.opening.moves)?;
        for word in request.opening.moves.split_ascii_whitespace() {
            let mv = position.parse_move(word).expect("`follow` accepted the line");
            log.write(&position, mv, None, None, watch);
            position.play(mv);
        }
        // 2. Ply after ply until the game is over or adjudicated, a clock has run out or an engine is at fault.
        let mut limits: Vec<Limit> = request.seats.iter().map(|&player| request.limits[player]).collect();
        let mut adjudicator = Adjudicator::new(request.adjudication, G::SEATS);
        let mut forfeit = None;
        let mut verdict = None;
        let mut fault = None;
        loop {
            if self.environment.interrupted() {
                return Err(PlayError::Interrupted);
            }
            if position.turn() != Turn::Over {
                verdict = adjudicator.verdict(log.moves.len());
                if verdict.is_some() {
                    break;
                }
            }
            let seed = request.seed_path.ply_seed(log.moves.len() as u32);
            let mv = match position.turn() {
                Turn::Over => break,
                Turn::Chance => {
                    let mv = position.sample(&mut seeded(seed), &mut log.scratch);
                    log.write(&position, mv, None, None, watch);
                    mv
                }
                Turn::Player(seat) => {
                    let player = request.seats[seat.index()];
                    let limit = limits[seat.index()];
                    let is_engine = matches!(self.players[player], Competitor::Engine(_));
                    let decided = match &mut self.players[player] {
                        Competitor::Search(searcher) => {
                            let budget = self.environment.budget(limit);
                            let answer = searcher.search(&position, budget, seed, &mut |_| ());
                            Ok((answer.best, SearchRecord::new(&position, &answer, limit)))
                        }
                        Competitor::Engine(engine) => {
                            let request = Request {
                                start: request.opening.position.as_deref(),
                                moves: &log.played(),
                                seat: seat.index(),
                                limits: &limits,
                                position: &Texts(&position),
                            };
                            engine.decide(&position, &request, &self.game, &self.environment)?
                        }
                    };
                    let (mv, record) = match decided {
                        Ok(decided) => decided,
                        Err(found) => {
                            (forfeit, fault) = (Some(seat), Some(found));
                            break;
                        }
                    };
                    if let Limit::Clock { remaining, increment } = limit {
                        limits[seat.index()] = Limit::Clock {
                            remaining: remaining.saturating_sub(record.time) + increment,
                            increment,
                        };
                        // An engine that is late by less than its margin plays on.
                        if record.time > remaining && !is_engine {
                            forfeit = Some(seat);
                        }
                    }
                    let proven = record.counters.proven_plies.try_into().unwrap_or(u32::MAX);
                    // The referee has only what is recorded.
                    adjudicator.observe(seat, record.depth, Value::recorded(record.value.number, proven));
                    log.write(&position, mv, Some(player), Some(record), watch);
                    mv
                }
            };
            if forfeit.is_some() {
                break;
            }
            position.play(mv);
            // A player in several seats observes each move once, also its own.
            for player in &mut self.players {
                player.observe(mv);
            }
        }
        // 3. The end.
        let payoffs: Vec<i32> =
            Seat::all(G::SEATS).map(|seat| end_payoff(&position, forfeit, verdict, seat)).collect();
        let ending = match (&fault, forfeit, verdict) {
            (Some(fault), _, _) => fault.kind.ending(),
            (None, Some(_), _) => TIME_FORFEIT,
            (None, None, Some(verdict)) => verdict.ending(),
            (None, None, None) => position.ending(),
        };
        let engine_cpu = self.end_game(&request.seats, &payoffs, ending);
        Ok(GameRecord {
            players: request.seats.clone(),
            moves: log.moves,
            payoffs,
            ending: ending.to_string(),
            detail: fault.map(|fault| fault.detail).unwrap_or_default(),
            engine_cpu,
            seed: request.seed_path.game_seed(),
            time: clock.now().saturating_sub(started),
        })
    }

    fn random_line(&self, seed: u64, end: LineEnd) -> Option<String> {
        let mut words = Vec::new();
        self.random_walk(seed, end, |played, position, mv| {
            words.truncate(played);
            words.push(position.move_text(mv));
        })?;
        Some(words.join(" "))
    }

    fn random_key(&self, seed: u64, end: LineEnd) -> Option<RandomKey> {
        let mut plies = 0;
        let position = self.random_walk(seed, end, |_, _, _| plies += 1)?;
        Some(RandomKey { key: position.key(), plies })
    }

    fn canonical(&self, opening: &Opening) -> Result<Opening, PlayError> {
        let mut position = self.start_position(opening)?;
        let mut moves = String::new();
        for (index, word) in opening.moves.split_ascii_whitespace().enumerate() {
            let Some(mv) = position.parse_move(word) else {
                return Err(MoveError::new(&position, index + 1, word).into());
            };
            if index > 0 {
                moves.push(' ');
            }
            position.write_move(mv, &mut moves);
            position.play(mv);
        }
        if position.turn() == Turn::Over {
            return Err(nothing_to_search(&position, "leave out the last moves"));
        }
        Ok(Opening { position: opening.position.clone(), moves })
    }

    fn turns(&self, game: &Opening, seats: &[usize], most: usize) -> Result<Vec<Opening>, PlayError> {
        let mut position = self.start_position(game)?;
        let mut moves = String::new();
        let mut turns = Vec::new();
        let mut words = game.moves.split_ascii_whitespace().enumerate();
        loop {
            if let Turn::Player(seat) = position.turn()
                && seats.contains(&seat.index())
            {
                turns.push(Opening { position: game.position.clone(), moves: moves.clone() });
            }
            if turns.len() >= most {
                return Ok(turns);
            }
            let Some((index, word)) = words.next() else { return Ok(turns) };
            let Some(mv) = position.parse_move(word) else {
                return Err(MoveError::new(&position, index + 1, word).into());
            };
            if index > 0 {
                moves.push(' ');
            }
            position.write_move(mv, &mut moves);
            position.play(mv);
        }
    }

    fn decision_key(&self, opening: &Opening) -> Result<u64, PlayError> {
        let position = self.after_opening(opening)?;
        match position.turn() {
            Turn::Over => Err(nothing_to_search(&position, "leave out the last moves")),
            _ => Ok(position.key()),
        }
    }

    fn decision(&self, opening: &Opening) -> Result<Decision, PlayError> {
        let position = self.after_opening(opening)?;
        let Turn::Player(seat) = position.turn() else {
            return Err(nothing_to_search(&position, "name a position where a player decides"));
        };
        Ok(Decision { seat: seat.index(), legal: position.count(&mut Vec::new()) })
    }

    fn perft(&self, opening: &Opening, plies: u32) -> Result<u64, PlayError> {
        Ok(perft(&mut self.after_opening(opening)?, plies, &mut Vec::new()))
    }

    fn verify_answer(
        &self,
        opening: &Opening,
        mv: &str,
        limit: Limit,
        claim: &SearchClaim<'_>,
    ) -> Result<(), Fault> {
        let position = self.after_opening(opening).map_err(|error| Fault::of_game(error.to_string()))?;
        referee::verify_answer(&position, mv, limit, claim).map_err(Fault::of_game)
    }

    fn verify(&self, request: &GameRequest, claim: &Claim<'_>) -> Result<(), Fault> {
        let first =
            self.start_position(&request.opening).map_err(|error| Fault::of_game(error.to_string()))?;
        referee::verify(first, request, claim)
    }
}

impl<G: Complete> TypedBoard<G> {
    /// Tells engines the end of a game. Returns their processor time by seat; nothing without engines.
    fn end_game(&mut self, seats: &[usize], payoffs: &[i32], ending: &str) -> Vec<Duration> {
        let mut times = vec![Duration::ZERO; seats.len()];
        let mut any = false;
        for (number, player) in self.players.iter_mut().enumerate() {
            // The time of a player in several seats is that of the first.
            if let (Competitor::Engine(engine), Some(seat)) =
                (player, seats.iter().position(|&seated| seated == number))
            {
                times[seat] = engine.end_game(payoffs, ending);
                any = true;
            }
        }
        if any { times } else { Vec::new() }
    }

    /// Plays random plies to the end of a line. Calls `watch` before each with the number of plies of the same game so far.
    /// Starts again, at most a thousand times, if the game ends before.
    fn random_walk(&self, seed: u64, end: LineEnd, mut watch: impl FnMut(usize, &G, G::Move)) -> Option<G> {
        let mut random = seeded(seed);
        let mut scratch = Vec::new();
        for _ in 0..1000 {
            let mut position = self.start.clone();
            let (mut played, mut turns) = (0, 0);
            loop {
                let turn = position.turn();
                let own = turn == Turn::Player(Seat::FIRST);
                turns += u32::from(own);
                let done = match end {
                    LineEnd::Position { plies } => played >= plies as usize && turn != Turn::Over,
                    LineEnd::Decision { plies } => {
                        played >= plies as usize && matches!(turn, Turn::Player(_))
                    }
                    LineEnd::Turn { turn } => own && turns > turn,
                };
                if done {
                    return Some(position);
                }
                if turn == Turn::Over {
                    break;
                }
                let mv = position.sample(&mut random, &mut scratch);
                watch(played, &position, mv);
                position.play(mv);
                played += 1;
            }
        }
        None
    }
}

/// The ending of a game that was lost on time. Its last move was too late and is not played.
pub const TIME_FORFEIT: &str = "time forfeit";

/// Returns the payoff of a seat: by the rules, shared by all others if a seat lost on time, by a fault or by adjudication, or shared by
/// all if the game was adjudicated a draw.
pub(crate) fn end_payoff<G: Complete>(
    position: &G,
    forfeit: Option<Seat>,
    verdict: Option<Verdict>,
    seat: Seat,
) -> i32 {
    let all = (1 << G::SEATS) - 1;
    let winners = match (forfeit, verdict) {
        (None, None) => return position.payoff(seat),
        (Some(loser), _) | (None, Some(Verdict::Lost(loser))) => all & !(1 << loser.0),
        (None, Some(Verdict::Drawn | Verdict::TooLong)) => all,
    };
    Payoffs::of_winners(G::SEATS, winners, seat)
}

/// Returns the moves of a line that is legal, with their seats.
fn played<G: Complete>(start: &G, line: &str) -> Vec<(Option<usize>, String)> {
    let mut position = start.clone();
    let mut moves = Vec::new();
    for word in line.split_ascii_whitespace() {
        let mv = position.parse_move(word).expect("the line was played before");
        let seat = if let Turn::Player(seat) = position.turn() { Some(seat.index()) } else { None };
        moves.push((seat, position.move_text(mv)));
        position.play(mv);
    }
    moves
}

/// The record of a game's moves.
struct MoveLog<G: Complete> {
    moves: Vec<MoveRecord>,
    scratch: Vec<G::Move>,
}

impl<G: Complete> MoveLog<G> {
    fn played(&self) -> Vec<PlayedMove<'_>> {
        self.moves.iter().map(|ply| PlayedMove { seat: ply.seat, mv: &ply.mv }).collect()
    }

    fn write(
        &mut self,
        position: &G,
        mv: G::Move,
        player: Option<usize>,
        search: Option<SearchRecord>,
        watch: &mut dyn FnMut(&MoveRecord),
    ) {
        let seat = if let Turn::Player(seat) = position.turn() { Some(seat.index()) } else { None };
        self.scratch.clear();
        let record = MoveRecord {
            ply: self.moves.len() as u32,
            seat,
            player,
            mv: position.move_text(mv),
            legal: position.count(&mut self.scratch) as u32,
            search,
        };
        watch(&record);
        self.moves.push(record);
    }
}
