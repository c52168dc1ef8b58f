//! Players at a board: one search, one game, one bout.
//!
//! The game is a type inside and a text outside. With a limit of nodes or depth everything that comes out is a function
//! of what goes in: tables, trees and lists start empty in each game, and seeds are derived from the place in the run.

use std::sync::Arc;

use agon_games::line::{MoveError, follow};
use agon_games::perft::perft;
use agon_games::random::seeded;
use agon_games::schema::ConfigError;
use agon_games::{
    ChanceGame, Complete, DuelGame, Game, GameSpec, ManyGame, Parameters, Payoffs, Seat, SetupError, Turn,
    Visitor,
};
use agon_search::clock::{Clock, ThreadClock, WallClock};
use agon_search::{Budget, Limit, SearchControl};

use crate::config::PlayerConfig;
use crate::player::{Player, chance_player, duel_player, many_player};
use crate::record::{GameRecord, IterationRecord, MoveRecord, SearchRecord};
use crate::referee::{self, Claim, Fault};
use crate::roster::rotations;
use crate::seeds::SeedPath;

/// Why something cannot be played.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlayError {
    /// The first position does not exist.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// A line of moves is not legal.
    #[error(transparent)]
    Move(#[from] MoveError),
    /// There is nothing to decide.
    #[error("there is nothing to search: {turn}; {remedy}")]
    NothingToSearch {
        /// Whose turn it is, in words.
        turn: &'static str,
        /// What to do instead.
        remedy: &'static str,
    },
    /// A player cannot work with the limit.
    #[error(transparent)]
    Limit(#[from] ConfigError),
    /// No random opening is so long.
    #[error("no random opening of {plies} plies was found in a thousand games; ask for fewer")]
    NoOpening {
        /// What was asked for.
        plies: u32,
    },
    /// No random game has so many turns.
    #[error("no random game in a thousand has {} turns of the first seat; ask for fewer", .turn + 1)]
    NoTurn {
        /// What was asked for.
        turn: u32,
    },
    /// A flag was raised.
    #[error("interrupted")]
    Interrupted,
}

/// Where the time comes from and what may interrupt.
#[derive(Clone)]
pub struct Environment {
    /// The wall clock.
    pub wall: Arc<dyn Clock>,
    /// The processor time of the thread that plays.
    pub cpu: Arc<dyn Clock>,
    /// Ends a search or a game early, and shows that one is running.
    pub control: Arc<SearchControl>,
}

impl Environment {
    /// The clocks of this machine.
    pub fn system() -> Environment {
        Environment {
            wall: Arc::new(WallClock::start()),
            cpu: Arc::new(ThreadClock),
            control: Arc::default(),
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

/// Where a game starts.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Opening {
    /// The position; none for the game's first.
    pub position: Option<String>,
    /// Moves from there, separated by spaces.
    pub moves: String,
}

/// One game to play.
#[derive(Clone, PartialEq, Debug)]
pub struct GameRequest {
    /// Where it starts.
    pub opening: Opening,
    /// The number of the player in each seat.
    pub seats: Vec<usize>,
    /// The limit of each player, by its number.
    pub limits: Vec<Limit>,
    /// Where its randomness comes from.
    pub seed_path: SeedPath,
}

/// A position in which a player decides.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Decision {
    /// The seat that decides.
    pub seat: usize,
    /// How many moves it has.
    pub legal: u64,
}

/// A game and the players who know it.
pub struct Arena {
    board: Box<dyn Board>,
    players: Vec<PlayerConfig>,
}

impl Arena {
    /// Seats players at a game.
    pub fn new(
        game: &GameSpec,
        players: &[PlayerConfig],
        environment: Environment,
    ) -> Result<Arena, SetupError> {
        let board = game.visit(Seated { players, environment })?;
        Ok(Arena { board, players: players.to_vec() })
    }

    /// Gives a player another configuration; the others keep theirs.
    pub fn configure(&mut self, player: usize, config: PlayerConfig) {
        self.board.configure(player, &config);
        self.players[player] = config;
    }

    /// Lets a player search one position. `report` sees each completed iteration.
    pub fn search(
        &mut self,
        player: usize,
        opening: &Opening,
        limit: Limit,
        seed: u64,
        report: &mut dyn FnMut(&IterationRecord),
    ) -> Result<SearchRecord, PlayError> {
        self.players[player].check_limit(limit)?;
        self.board.search(player, opening, limit, seed, report)
    }

    /// Plays one game. `watch` sees each ply as it is played.
    pub fn play(
        &mut self,
        request: &GameRequest,
        watch: &mut dyn FnMut(&MoveRecord),
    ) -> Result<GameRecord, PlayError> {
        for &player in &request.seats {
            self.players[player].check_limit(request.limits[player])?;
        }
        self.board.play(request, watch)
    }

    /// The line of an opening of so many random plies. Draws again, at most a thousand times, while the game would be
    /// over by then.
    pub fn random_opening(&self, seed_path: SeedPath, plies: u32) -> Result<String, PlayError> {
        self.board.random_opening(seed_path.opening_seed(), plies).ok_or(PlayError::NoOpening { plies })
    }

    /// The same, and on to where a player decides: chance's outcomes are drawn as well.
    pub fn random_decision(&self, seed_path: SeedPath, plies: u32) -> Result<String, PlayError> {
        self.board.random_decision(seed_path.opening_seed(), plies).ok_or(PlayError::NoOpening { plies })
    }

    /// The line of a random game to the turn of the first seat with this number, counted from 0.
    pub fn random_turn(&self, seed_path: SeedPath, turn: u32) -> Result<String, PlayError> {
        self.board.random_turn(seed_path.opening_seed(), turn).ok_or(PlayError::NoTurn { turn })
    }

    /// The opening in the words that the game itself writes, where a game can go on from there. What is recorded of a
    /// game has these words.
    pub fn canonical(&self, opening: &Opening) -> Result<Opening, PlayError> {
        self.board.canonical(opening)
    }

    /// The key of the position that an opening leads to, where a game can go on from there: lines that transpose into
    /// each other have one key.
    pub fn decision_key(&self, opening: &Opening) -> Result<u64, PlayError> {
        self.board.decision_key(opening)
    }

    /// Whose decision an opening leads to. Where nobody decides there is an error.
    pub fn decision(&self, opening: &Opening) -> Result<Decision, PlayError> {
        self.board.decision(opening)
    }

    /// The number of lines of exactly so many plies from the position that an opening leads to.
    pub fn perft(&self, opening: &Opening, plies: u32) -> Result<u64, PlayError> {
        self.board.perft(opening, plies)
    }

    /// Checks by the rules that a move can be the answer to the position that an opening leads to.
    pub fn verify_answer(&self, opening: &Opening, mv: &str) -> Result<(), Fault> {
        self.board.verify_answer(opening, mv)
    }

    /// Checks by the rules a game that somebody says was played as asked. No player is needed for it.
    pub fn verify(&self, request: &GameRequest, claim: &Claim<'_>) -> Result<(), Fault> {
        self.board.verify(request, claim)
    }

    /// The number of seats.
    pub fn seats(&self) -> usize {
        self.board.seats()
    }

    /// A bound on the plies of a game.
    pub fn ply_bound(&self) -> u32 {
        self.board.ply_bound()
    }
}

/// What is asked of a game whose type is hidden.
trait Board: Send {
    fn configure(&mut self, player: usize, config: &PlayerConfig);

    fn seats(&self) -> usize;

    fn ply_bound(&self) -> u32;

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

    fn random_opening(&self, seed: u64, plies: u32) -> Option<String>;

    fn random_decision(&self, seed: u64, plies: u32) -> Option<String>;

    fn random_turn(&self, seed: u64, turn: u32) -> Option<String>;

    fn canonical(&self, opening: &Opening) -> Result<Opening, PlayError>;

    fn decision_key(&self, opening: &Opening) -> Result<u64, PlayError>;

    fn decision(&self, opening: &Opening) -> Result<Decision, PlayError>;

    fn perft(&self, opening: &Opening, plies: u32) -> Result<u64, PlayError>;

    fn verify_answer(&self, opening: &Opening, mv: &str) -> Result<(), Fault>;

    fn verify(&self, request: &GameRequest, claim: &Claim<'_>) -> Result<(), Fault>;
}

/// Makes a board of a game with its players.
struct Seated<'a> {
    players: &'a [PlayerConfig],
    environment: Environment,
}

impl Seated<'_> {
    fn board<G: Complete>(
        self,
        parameters: &Parameters,
        player: fn(&PlayerConfig) -> Player<G>,
    ) -> Result<Box<dyn Board>, SetupError> {
        Ok(Box::new(Typed::<G> {
            start: G::initial(parameters)?,
            parameters: parameters.clone(),
            players: self.players.iter().map(player).collect(),
            seat: player,
            environment: self.environment,
        }))
    }
}

impl Visitor for Seated<'_> {
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

/// A board of a game whose type is known.
struct Typed<G: Complete> {
    start: G,
    parameters: Parameters,
    players: Vec<Player<G>>,
    /// Makes a player of the game's family.
    seat: fn(&PlayerConfig) -> Player<G>,
    environment: Environment,
}

impl<G: Complete> Typed<G> {
    fn first(&self, opening: &Opening) -> Result<G, SetupError> {
        match &opening.position {
            Some(text) => G::from_position(&self.parameters, text),
            None => Ok(self.start.clone()),
        }
    }

    fn after_opening(&self, opening: &Opening) -> Result<G, PlayError> {
        let mut position = self.first(opening)?;
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

impl<G: Complete> Board for Typed<G> {
    fn configure(&mut self, player: usize, config: &PlayerConfig) {
        self.players[player] = (self.seat)(config);
    }

    fn seats(&self) -> usize {
        G::SEATS
    }

    fn ply_bound(&self) -> u32 {
        self.start.ply_bound()
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
        match position.turn() {
            Turn::Player(_) => {}
            Turn::Chance => return Err(nothing_to_search(&position, "add an outcome to the moves")),
            Turn::Over => return Err(nothing_to_search(&position, "leave out the last moves")),
        }
        let searcher = &mut self.players[player];
        searcher.new_game();
        let budget = self.environment.budget(limit);
        let answer = searcher.search(&position, budget, seed, &mut |iteration| {
            report(&IterationRecord::new(&position, iteration));
        });
        Ok(SearchRecord::new(&position, &answer, limit))
    }

    fn play(
        &mut self,
        request: &GameRequest,
        watch: &mut dyn FnMut(&MoveRecord),
    ) -> Result<GameRecord, PlayError> {
        let clock = Arc::clone(&self.environment.wall);
        let started = clock.now();
        let mut position = self.first(&request.opening)?;
        let mut game = Sheet { moves: Vec::new(), scratch: Vec::new() };
        for player in &mut self.players {
            player.new_game();
        }
        // 1. The opening: plies that nobody searches.
        let mut ahead = position.clone();
        follow(&mut ahead, &request.opening.moves)?;
        for word in request.opening.moves.split_ascii_whitespace() {
            let mv = position.parse_move(word).expect("the line has just been followed");
            game.write(&position, mv, None, None, watch);
            position.play(mv);
        }
        // 2. Ply after ply until the game is over or a clock has run out.
        let mut limits: Vec<Limit> = request.seats.iter().map(|&player| request.limits[player]).collect();
        let mut forfeit = None;
        loop {
            if self.environment.interrupted() {
                return Err(PlayError::Interrupted);
            }
            let seed = request.seed_path.ply_seed(game.moves.len() as u32);
            let mv = match position.turn() {
                Turn::Over => break,
                Turn::Chance => {
                    let mv = position.sample(&mut seeded(seed), &mut game.scratch);
                    game.write(&position, mv, None, None, watch);
                    mv
                }
                Turn::Player(seat) => {
                    let player = request.seats[seat.index()];
                    let limit = limits[seat.index()];
                    let budget = self.environment.budget(limit);
                    let answer = self.players[player].search(&position, budget, seed, &mut |_| ());
                    let record = SearchRecord::new(&position, &answer, limit);
                    if let Limit::Clock { remaining, increment } = limit {
                        limits[seat.index()] = Limit::Clock {
                            remaining: remaining.saturating_sub(record.time) + increment,
                            increment,
                        };
                        if record.time > remaining {
                            forfeit = Some(seat);
                        }
                    }
                    game.write(&position, answer.best, Some(player), Some(record), watch);
                    answer.best
                }
            };
            if forfeit.is_some() {
                break;
            }
            position.play(mv);
            // A player in several seats sees each move once; its tree follows whoever moved.
            for player in &mut self.players {
                player.observe(mv);
            }
        }
        // 3. The end.
        let payoffs: Vec<i32> =
            Seat::all(G::SEATS).map(|seat| end_payoff(&position, forfeit, seat)).collect();
        let ending = if forfeit.is_some() { TIME_FORFEIT } else { position.ending() };
        Ok(GameRecord {
            players: request.seats.clone(),
            moves: game.moves,
            payoffs,
            ending: ending.to_string(),
            seed: request.seed_path.game_seed(),
            time: clock.now().saturating_sub(started),
        })
    }

    fn random_opening(&self, seed: u64, plies: u32) -> Option<String> {
        self.random_line(seed, |position, played| played >= plies as usize && position.turn() != Turn::Over)
    }

    fn random_decision(&self, seed: u64, plies: u32) -> Option<String> {
        self.random_line(seed, |position, played| {
            played >= plies as usize && matches!(position.turn(), Turn::Player(_))
        })
    }

    fn random_turn(&self, seed: u64, turn: u32) -> Option<String> {
        let mut turns = 0;
        self.random_line(seed, |position, played| {
            turns = if played == 0 { 0 } else { turns };
            let own = position.turn() == Turn::Player(Seat::FIRST);
            turns += u32::from(own);
            own && turns > turn
        })
    }

    fn canonical(&self, opening: &Opening) -> Result<Opening, PlayError> {
        let mut position = self.first(opening)?;
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

    fn verify_answer(&self, opening: &Opening, mv: &str) -> Result<(), Fault> {
        let position = self.after_opening(opening).map_err(|error| Fault::of_game(error.to_string()))?;
        match position.parse_move(mv) {
            Some(_) => Ok(()),
            None => Err(Fault::of_game(format!("`{mv}` is not legal"))),
        }
    }

    fn verify(&self, request: &GameRequest, claim: &Claim<'_>) -> Result<(), Fault> {
        let first = self.first(&request.opening).map_err(|error| Fault::of_game(error.to_string()))?;
        referee::verify(first, request, claim)
    }
}

impl<G: Complete> Typed<G> {
    /// A random line to the first position that is `enough`. Draws again, at most a thousand times, where the game ends
    /// before.
    fn random_line(&self, seed: u64, mut enough: impl FnMut(&G, usize) -> bool) -> Option<String> {
        let mut random = seeded(seed);
        let mut scratch = Vec::new();
        for _ in 0..1000 {
            let mut position = self.start.clone();
            let mut words = Vec::new();
            loop {
                if enough(&position, words.len()) {
                    return Some(words.join(" "));
                }
                if position.turn() == Turn::Over {
                    break;
                }
                let mv = position.sample(&mut random, &mut scratch);
                words.push(position.move_text(mv));
                position.play(mv);
            }
        }
        None
    }
}

/// How a game ends whose clock ran out. The last move of such a game was too late and is not played.
pub const TIME_FORFEIT: &str = "time forfeit";

/// The payoff of a seat: by the rules, or all others share the win over the seat whose clock ran out.
pub(crate) fn end_payoff<G: Complete>(position: &G, forfeit: Option<Seat>, seat: Seat) -> i32 {
    match forfeit {
        None => position.payoff(seat),
        Some(late) => Payoffs::of_winners(G::SEATS, ((1 << G::SEATS) - 1) & !(1 << late.0), seat),
    }
}

/// The moves of a game as they are written down.
struct Sheet<G: Complete> {
    moves: Vec<MoveRecord>,
    scratch: Vec<G::Move>,
}

impl<G: Complete> Sheet<G> {
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

/// A bout: one opening, played once in each rotation of its circle of players.
#[derive(Clone, PartialEq, Debug)]
pub struct BoutRequest {
    /// Where its games start.
    pub opening: Opening,
    /// The players in the order of the seats of its first game.
    pub players: Vec<usize>,
    /// The limit of each player, by its number.
    pub limits: Vec<Limit>,
    /// The seed of the run.
    pub run_seed: u64,
    /// The number of the bout.
    pub bout: u64,
}

impl BoutRequest {
    /// The same with limits of time multiplied by a factor.
    pub fn scaled(mut self, factor: f64) -> BoutRequest {
        for limit in &mut self.limits {
            *limit = crate::limit::scaled(*limit, factor);
        }
        self
    }

    /// The games of the bout: in game `r` each player sits `r` seats further back, until everybody sits as at first.
    pub fn games(&self) -> impl Iterator<Item = GameRequest> + '_ {
        rotations(&self.players).enumerate().map(|(rotation, seats)| GameRequest {
            opening: self.opening.clone(),
            seats,
            limits: self.limits.clone(),
            seed_path: SeedPath { run: self.run_seed, bout: self.bout, game: rotation as u32 },
        })
    }
}
