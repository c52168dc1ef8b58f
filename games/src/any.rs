//! Positions as trait objects, with moves as text.
//!
//! [`AnyGame`] hides the type of the game, so that code that shows, plays and counts moves is compiled once and not once
//! per game. Deliberately not here: anything that a search needs.

use crate::game::{Feature, FeatureSet, Seat, Turn};
use crate::line::{MoveError, follow, legal_texts};
use crate::perft::perft;
use crate::random::Random;
use crate::registry::{ChanceGame, Complete, DuelGame, GameSpec, ManyGame, Visitor};
use crate::setup::{Parameters, SetupError};

/// A position of some game.
pub trait AnyGame: Send + Sync {
    /// Clones the position.
    fn copy(&self) -> Box<dyn AnyGame>;
    /// Returns the number of seats.
    fn seats(&self) -> usize;
    /// Returns the sum of the payoffs of all seats, the same for every ending.
    fn payoff_sum(&self) -> i32;
    /// Returns the features with their default weights.
    fn features(&self) -> &'static [Feature];
    /// Returns the features' values from the view of a seat. Precondition: the game is not over.
    fn feature_values(&self, seat: Seat) -> Vec<i32>;
    /// Returns the side that decides the next ply.
    fn turn(&self) -> Turn;
    /// Returns the texts of the legal moves or of the outcomes of chance.
    fn legal(&self) -> Vec<String>;
    /// Returns the weights of the outcomes of chance; empty if a player is to move.
    fn weights(&self) -> Vec<u32>;
    /// Plays the moves of a line and returns their number. Stops at the first illegal move.
    fn follow(&mut self, line: &str) -> Result<usize, MoveError>;
    /// Plays the move named by a word, at a ply counted from 1, and returns the canonical text of that move.
    fn play(&mut self, ply: usize, word: &str) -> Result<String, MoveError>;
    /// Plays a random outcome of chance and returns its text. Precondition: the turn is [`Turn::Chance`].
    fn draw(&mut self, random: &mut Random) -> String;
    /// Returns the payoff of each seat once the game is over.
    fn payoffs(&self) -> Option<Vec<i32>>;
    /// Returns the reason for the end once the game is over.
    fn ending(&self) -> Option<&'static str>;
    /// Draws the board in several lines.
    fn board(&self) -> String;
    /// Returns what the board shows for a seat, or the name of the seat if that is nothing.
    fn mark(&self, seat: Seat) -> String;
    /// Returns the position in one line.
    fn position(&self) -> String;
    /// Returns the [`Keyed::key`](crate::Keyed::key) of the position.
    fn key(&self) -> u64;
    /// Returns the text of every move with the position after it.
    fn children(&self) -> Vec<(String, Box<dyn AnyGame>)>;
    /// Counts the sequences of exactly `depth` plies.
    fn perft(&self, depth: u32) -> u64;
    /// Plays random games to their ends, by uniform moves or by the playout policy, and returns the number of plies.
    fn random_games(&self, games: u64, random: &mut Random, rollout: bool) -> u64;
}

impl GameSpec {
    /// Reads a position, or creates the first one.
    pub fn start(&self, position: Option<&str>) -> Result<Box<dyn AnyGame>, SetupError> {
        self.visit(Start { position })
    }
}

struct Start<'a> {
    position: Option<&'a str>,
}

impl Start<'_> {
    fn boxed<G: Complete>(
        self,
        parameters: &Parameters,
        weight: fn(&G, G::Move) -> u32,
    ) -> Result<Box<dyn AnyGame>, SetupError> {
        let position = match self.position {
            Some(text) => G::from_position(parameters, text)?,
            None => G::initial(parameters)?,
        };
        Ok(Box::new(Boxed { position, weight }))
    }
}

impl Visitor for Start<'_> {
    type Output = Result<Box<dyn AnyGame>, SetupError>;

    fn duel<G: DuelGame>(self, parameters: &Parameters) -> Self::Output {
        self.boxed::<G>(parameters, |_, _| 1)
    }

    fn many<G: ManyGame>(self, parameters: &Parameters) -> Self::Output {
        self.boxed::<G>(parameters, |_, _| 1)
    }

    fn chance<G: ChanceGame>(self, parameters: &Parameters) -> Self::Output {
        self.boxed::<G>(parameters, G::weight)
    }
}

#[derive(Clone)]
struct Boxed<G: Complete> {
    position: G,
    /// The weight of an outcome of chance.
    weight: fn(&G, G::Move) -> u32,
}

impl<G: Complete> Boxed<G> {
    fn moves(&self) -> Vec<G::Move> {
        let mut moves = Vec::new();
        self.position.moves(&mut moves);
        moves
    }

    fn is_over(&self) -> bool {
        self.position.turn() == Turn::Over
    }
}

impl<G: Complete> AnyGame for Boxed<G> {
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

    fn mark(&self, seat: Seat) -> String {
        G::MARKS.get(seat.index()).map_or_else(|| Turn::Player(seat).to_string(), ToString::to_string)
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
