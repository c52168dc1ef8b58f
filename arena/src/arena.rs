//! Plays games and bouts and runs single searches.
//!
//! The interface is independent of the game's type. With a node or depth limit, results depend only on the request: tables,
//! trees and lists start empty in each game, and seeds are derived from the position in the run.

use std::sync::Arc;
use std::time::Duration;

use agon_games::line::{MoveError, follow};
use agon_games::perft::perft;
use agon_games::random::seeded;
use agon_games::schema::ConfigError;
use agon_games::{
    ChanceGame, Complete, DuelGame, Game, GameSpec, ManyGame, Parameters, Payoffs, Seat, SetupError, Turn,
    Visitor,
};
use agon_search::clock::{Clock, ThreadClock, WallClock};
use agon_search::{Budget, Limit, SearchControl, Value};

use crate::adjudication::{Adjudicator, Verdict};
use crate::bout::{GameRequest, Opening};
use crate::competitor::{Competitor, EngineSeat, Texts};
use crate::config::{PlayerConfig, SearchConfig};
use crate::external::{EngineFactory, EngineFault, NoEngines, PlayedMove, Request};
use crate::player::{Player, chance_player, duel_player, many_player};
use crate::record::{GameRecord, IterationRecord, MoveRecord, SearchRecord};
use crate::referee::{self, Claim, Fault, SearchClaim};
use crate::seeds::SeedPath;

/// Why a game cannot be played or a position not searched.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlayError {
    /// The start position is invalid.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// A line contains an illegal move.
    #[error(transparent)]
    Move(#[from] MoveError),
    /// No player decides in the position.
    #[error("there is nothing to search: {turn}; {remedy}")]
    NothingToSearch {
        /// The turn, for the message.
        turn: &'static str,
        /// The remedy, for the message.
        remedy: &'static str,
    },
    /// A player does not support the limit.
    #[error(transparent)]
    Limit(#[from] ConfigError),
    /// No random opening has the requested length.
    #[error("no random opening of {plies} plies was found in a thousand games; ask for fewer")]
    NoOpening {
        /// The requested length.
        plies: u32,
    },
    /// No random game has the requested number of turns.
    #[error("no random game in a thousand has {} turns of the first seat; ask for fewer", .turn + 1)]
    NoTurn {
        /// The requested turn, from 0.
        turn: u32,
    },
    /// This machine cannot run an engine, or the engine cannot answer.
    #[error("{reason}")]
    Engine {
        /// The reason.
        reason: String,
    },
    /// The caller interrupted the game.
    #[error("interrupted")]
    Interrupted,
}

/// The clocks and the interrupt of searches, and the engines.
#[derive(Clone)]
pub struct Environment {
    /// The wall clock.
    pub wall: Arc<dyn Clock>,
    /// The processor time of the thread that plays.
    pub cpu: Arc<dyn Clock>,
    /// Interrupts searches and games, and shows that one is running.
    pub control: Arc<SearchControl>,
    /// Starts engines.
    pub engines: Arc<dyn EngineFactory>,
}

impl Environment {
    /// Creates an environment with the clocks of this machine and without engines.
    pub fn system() -> Environment {
        Environment {
            wall: Arc::new(WallClock::start()),
            cpu: Arc::new(ThreadClock),
            control: Arc::default(),
            engines: Arc::new(NoEngines),
        }
    }

    fn budget(&self, limit: Limit) -> Budget {
        let clock = if matches!(limit, Limit::Cpu(_)) { &self.cpu } else { &self.wall };
        Budget::start(limit, Arc::clone(clock)).controlled_by(Arc::clone(&self.control))
    }

    fn interrupted(&self) -> bool {
        self.control.is_interrupted()
    }
}

/// Where a random line ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LineEnd {
    /// After exactly `plies` plies.
    Position {
        /// The number of plies.
        plies: u32,
    },
    /// At the first decision of a player after at least `plies` plies.
    Decision {
        /// The least number of plies.
        plies: u32,
    },
    /// At a turn of the first seat.
    Turn {
        /// The number of the turn, from 0.
        turn: u32,
    },
}

impl LineEnd {
    fn not_found(self) -> PlayError {
        match self {
            LineEnd::Position { plies } | LineEnd::Decision { plies } => PlayError::NoOpening { plies },
            LineEnd::Turn { turn } => PlayError::NoTurn { turn },
        }
    }
}

/// The key of a position at the end of a random line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RandomKey {
    /// The key; transpositions have the same key.
    pub key: u64,
    /// The plies drawn to find it, including those of games that ended before.
    pub plies: u64,
}

/// The decision in a position.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Decision {
    /// The seat that decides.
    pub seat: usize,
    /// The number of legal moves.
    pub legal: u64,
}

/// A game with its players.
pub struct Arena {
    board: Box<dyn Board>,
    players: Vec<PlayerConfig>,
    /// The player and the line of the last call of [`Arena::search_next`].
    searched: Option<(usize, Opening)>,
}

impl Arena {
    /// Creates an arena for a game and its players.
    pub fn new(
        game: &GameSpec,
        players: &[PlayerConfig],
        environment: Environment,
    ) -> Result<Arena, SetupError> {
        let board = game.visit(BoardBuilder { game, players, environment })?;
        Ok(Arena { board, players: players.to_vec(), searched: None })
    }

    /// Replaces the configuration of a player.
    pub fn configure(&mut self, player: usize, config: PlayerConfig) {
        self.searched = None;
        self.board.configure(player, &config);
        self.players[player] = config;
    }

    /// Searches one position as a player. Calls `report` after each completed iteration.
    pub fn search(
        &mut self,
        player: usize,
        opening: &Opening,
        limit: Limit,
        seed: u64,
        report: &mut dyn FnMut(&IterationRecord),
    ) -> Result<SearchRecord, PlayError> {
        self.searched = None;
        self.search_next(player, opening, limit, seed, report)
    }

    /// Searches the next position of a game as a player, which keeps what it has learnt if `line` continues the line of the
    /// call before and [`Arena::new_game`] was not called since.
    pub fn search_next(
        &mut self,
        player: usize,
        line: &Opening,
        limit: Limit,
        seed: u64,
        report: &mut dyn FnMut(&IterationRecord),
    ) -> Result<SearchRecord, PlayError> {
        self.players[player].check_limit(limit)?;
        let before = self.searched.take().filter(|(searcher, _)| *searcher == player);
        self.board.follow_game(player, before.as_ref().map(|(_, before)| before), line)?;
        let record = self.board.search(player, line, limit, seed, report)?;
        self.searched = Some((player, line.clone()));
        Ok(record)
    }

    /// Ends the game of [`Arena::search_next`].
    pub fn new_game(&mut self) {
        self.searched = None;
    }

    /// Plays one game. Calls `watch` after each ply.
    pub fn play(
        &mut self,
        request: &GameRequest,
        watch: &mut dyn FnMut(&MoveRecord),
    ) -> Result<GameRecord, PlayError> {
        self.searched = None;
        for &player in &request.seats {
            self.players[player].check_limit(request.limits[player])?;
        }
        self.board.play(request, watch)
    }

    /// Draws an opening of `plies` random plies. Draws again, at most a thousand times, if the game ends within them.
    pub fn random_opening(&self, seed_path: SeedPath, plies: u32) -> Result<String, PlayError> {
        self.random_line(seed_path, LineEnd::Position { plies })
    }

    /// Draws an opening of at least `plies` random plies that ends where a player decides.
    pub fn random_decision(&self, seed_path: SeedPath, plies: u32) -> Result<String, PlayError> {
        self.random_line(seed_path, LineEnd::Decision { plies })
    }

    /// Draws a random line. Draws again, at most a thousand times, if the game ends before.
    pub fn random_line(&self, seed_path: SeedPath, end: LineEnd) -> Result<String, PlayError> {
        self.board.random_line(seed_path.opening_seed(), end).ok_or(end.not_found())
    }

    /// Returns the key of the position after [`Arena::random_line`], and the plies that were drawn to find it. Much faster
    /// than the line itself.
    pub fn random_key(&self, seed_path: SeedPath, end: LineEnd) -> Result<RandomKey, PlayError> {
        self.board.random_key(seed_path.opening_seed(), end).ok_or(end.not_found())
    }

    /// Returns the opening in the game's own notation, which records use. Rejects one after which the game is over.
    pub fn canonical(&self, opening: &Opening) -> Result<Opening, PlayError> {
        self.board.canonical(opening)
    }

    /// Returns the lines to the turns of some seats in a game, in the game's own notation; at most the first `most`. Does
    /// not read the moves after them.
    pub fn turns(&self, game: &Opening, seats: &[usize], most: usize) -> Result<Vec<Opening>, PlayError> {
        self.board.turns(game, seats, most)
    }

    /// Returns the key of the position after an opening; transpositions have the same key. Rejects one after which the game
    /// is over.
    pub fn decision_key(&self, opening: &Opening) -> Result<u64, PlayError> {
        self.board.decision_key(opening)
    }

    /// Returns the decision after an opening. Rejects a position where no player decides.
    pub fn decision(&self, opening: &Opening) -> Result<Decision, PlayError> {
        self.board.decision(opening)
    }

    /// Counts the lines of exactly `plies` plies after an opening.
    pub fn perft(&self, opening: &Opening, plies: u32) -> Result<u64, PlayError> {
        self.board.perft(opening, plies)
    }

    /// Checks that the move of a single search is legal after an opening, and its numbers within the limit.
    pub fn verify_answer(
        &self,
        opening: &Opening,
        mv: &str,
        limit: Limit,
        claim: &SearchClaim<'_>,
    ) -> Result<(), Fault> {
        self.board.verify_answer(opening, mv, limit, claim)
    }

    /// Checks a claimed game against its request and by the rules. Needs no players.
    pub fn verify(&self, request: &GameRequest, claim: &Claim<'_>) -> Result<(), Fault> {
        self.board.verify(request, claim)
    }

    /// Returns the number of seats.
    pub fn seats(&self) -> usize {
        self.board.seats()
    }

    /// Returns an upper bound on the plies of a game.
    pub fn ply_bound(&self) -> u32 {
        self.board.ply_bound()
    }
}

/// The interface of [`Arena`] to a game of any type.
trait Board: Send {
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
struct BoardBuilder<'a> {
    game: &'a GameSpec,
    players: &'a [PlayerConfig],
    environment: Environment,
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
