//! A position of whatever game, spoken to in words.
//!
//! Behind [`AnyGame`] the game is no type parameter any more, so that code which shows, follows and counts is compiled once
//! and not once a game. A call costs little more than the same call of the game; moves are texts. Deliberately not
//! here: anything a search needs.

use crate::game::{Feature, FeatureSet, Seat, Turn};
use crate::line::{MoveError, follow, legal_texts};
use crate::perft::perft;
use crate::random::Random;
use crate::registry::{ChanceGame, Complete, DuelGame, GameSpec, ManyGame, Visitor};
use crate::setup::{Parameters, SetupError};

/// A position of some game.
pub trait AnyGame: Send + Sync {
    /// The same position once more.
    fn copy(&self) -> Box<dyn AnyGame>;
    /// How many seats there are.
    fn seats(&self) -> usize;
    /// The sum of the payoffs of all seats, the same at every end.
    fn payoff_sum(&self) -> i32;
    /// The features with their default weights.
    fn features(&self) -> &'static [Feature];
    /// What the features count from the view of a seat, in their order. Precondition: the game is not over.
    fn feature_values(&self, seat: Seat) -> Vec<i32>;
    /// Who moves.
    fn turn(&self) -> Turn;
    /// Whatever may come next, in words: moves, or outcomes of chance.
    fn legal(&self) -> Vec<String>;
    /// The weights of those outcomes; none where chance does not decide.
    fn weights(&self) -> Vec<u32>;
    /// Plays the words of a line and returns how many there were. Stops at the first that is no legal move.
    fn follow(&mut self, line: &str) -> Result<usize, MoveError>;
    /// Plays the move that a word names, at a ply counted from 1, and returns the text of that move.
    fn play(&mut self, ply: usize, word: &str) -> Result<String, MoveError>;
    /// Plays what chance decides and returns its text. Precondition: chance decides.
    fn draw(&mut self, random: &mut Random) -> String;
    /// What each seat gets; none before the end.
    fn payoffs(&self) -> Option<Vec<i32>>;
    /// Why the game is over; none before the end.
    fn ending(&self) -> Option<&'static str>;
    /// A board of several lines.
    fn board(&self) -> String;
    /// The position in one line.
    fn position(&self) -> String;
    /// The key of what the board shows.
    fn key(&self) -> u64;
    /// Every move with its text and the position after it.
    fn children(&self) -> Vec<(String, Box<dyn AnyGame>)>;
    /// The number of sequences of exactly so many plies.
    fn perft(&self, depth: u32) -> u64;
    /// Plays so many random games to their ends and returns the number of plies: moves evenly drawn, or as playouts draw
    /// them.
    fn random_games(&self, games: u64, random: &mut Random, rollout: bool) -> u64;
}

impl GameSpec {
    /// The position that a text describes, or the first.
    pub fn start(&self, position: Option<&str>) -> Result<Box<dyn AnyGame>, SetupError> {
        self.visit(Begin { position })
    }
}

struct Begin<'a> {
    position: Option<&'a str>,
}

impl Begin<'_> {
    fn begin<G: Complete>(
        self,
        parameters: &Parameters,
        weight: fn(&G, G::Move) -> u32,
    ) -> Result<Box<dyn AnyGame>, SetupError> {
        let position = match self.position {
            Some(text) => G::from_position(parameters, text)?,
            None => G::initial(parameters)?,
        };
        Ok(Box::new(Spoken { position, weight }))
    }
}

impl Visitor for Begin<'_> {
    type Output = Result<Box<dyn AnyGame>, SetupError>;

    fn duel<G: DuelGame>(self, parameters: &Parameters) -> Self::Output {
        self.begin::<G>(parameters, |_, _| 1)
    }

    fn many<G: ManyGame>(self, parameters: &Parameters) -> Self::Output {
        self.begin::<G>(parameters, |_, _| 1)
    }

    fn chance<G: ChanceGame>(self, parameters: &Parameters) -> Self::Output {
        self.begin::<G>(parameters, G::weight)
    }
}

#[derive(Clone)]
struct Spoken<G: Complete> {
    position: G,
    /// Of an outcome of chance.
    weight: fn(&G, G::Move) -> u32,
}

impl<G: Complete> Spoken<G> {
    fn moves(&self) -> Vec<G::Move> {
        let mut moves = Vec::new();
        self.position.moves(&mut moves);
        moves
    }

    fn is_over(&self) -> bool {
        self.position.turn() == Turn::Over
    }
}

impl<G: Complete> AnyGame for Spoken<G> {
    fn copy(&self) -> Box<dyn AnyGame> {
        Box::new(self.clone())
    }

    fn seats(&self) -> usize {
        G::SEATS
    }

    fn payoff_sum(&self) -> i32 {
        G::PAYOFFS.sum
    }

    fn features(&self) -> &'static [Feature] {
        G::FEATURES
    }

    fn feature_values(&self, seat: Seat) -> Vec<i32> {
        let mut values = vec![0; G::FEATURES.len()];
        self.position.features(seat, FeatureSet::ALL, &mut values);
        values
    }

    fn turn(&self) -> Turn {
        self.position.turn()
    }

    fn legal(&self) -> Vec<String> {
        legal_texts(&self.position)
    }

    fn weights(&self) -> Vec<u32> {
        match self.turn() {
            Turn::Chance => {
                self.moves().into_iter().map(|outcome| (self.weight)(&self.position, outcome)).collect()
            }
            Turn::Player(_) | Turn::Over => Vec::new(),
        }
    }

    fn follow(&mut self, line: &str) -> Result<usize, MoveError> {
        follow(&mut self.position, line)
    }

    fn play(&mut self, ply: usize, word: &str) -> Result<String, MoveError> {
        let mv = self.position.parse_move(word).ok_or_else(|| MoveError::new(&self.position, ply, word))?;
        let text = self.position.move_text(mv);
        self.position.play(mv);
        Ok(text)
    }

    fn draw(&mut self, random: &mut Random) -> String {
        let outcome = self.position.sample(random, &mut Vec::new());
        let text = self.position.move_text(outcome);
        self.position.play(outcome);
        text
    }

    fn payoffs(&self) -> Option<Vec<i32>> {
        self.is_over().then(|| Seat::all(G::SEATS).map(|seat| self.position.payoff(seat)).collect())
    }

    fn ending(&self) -> Option<&'static str> {
        self.is_over().then(|| self.position.ending())
    }

    fn board(&self) -> String {
        self.position.board()
    }

    fn position(&self) -> String {
        self.position.position()
    }

    fn key(&self) -> u64 {
        self.position.key()
    }

    fn children(&self) -> Vec<(String, Box<dyn AnyGame>)> {
        let child = |mv: G::Move| {
            let mut next = self.clone();
            next.position.play(mv);
            (self.position.move_text(mv), Box::new(next) as Box<dyn AnyGame>)
        };
        self.moves().into_iter().map(child).collect()
    }

    fn perft(&self, depth: u32) -> u64 {
        perft(&mut self.position.clone(), depth, &mut Vec::new())
    }

    fn random_games(&self, games: u64, random: &mut Random, rollout: bool) -> u64 {
        let mut scratch = Vec::new();
        let mut position = self.position.clone();
        let mut plies = 0;
        for _ in 0..games {
            position.clone_from(&self.position);
            while position.turn() != Turn::Over {
                let mv = if rollout {
                    position.rollout(random, &mut scratch)
                } else {
                    position.sample(random, &mut scratch)
                };
                position.play(mv);
                plies += 1;
            }
        }
        plies
    }
}
