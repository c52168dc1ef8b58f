//! The list of all games.
//!
//! It is the source for help texts, validation, documentation, and the dispatch from a game's name to generic code. A
//! [`Visitor`] is such code: the registry calls the method for the game's family with the game as a type parameter.

use std::fmt;

use crate::game::{Chance, Deterministic, Duel, Feature, Features, Keyed, Noisy, Notation, Ordered, Reseat};
use crate::schema::{Entry, Problems, Scope, Values};
use crate::setup::{Parameter, Parameters, Setup, SetupError, Turns};

/// The capabilities of every game.
pub trait Complete: Setup + Notation + Features + Keyed + Ordered {}
impl<G: Setup + Notation + Features + Keyed + Ordered> Complete for G {}

/// A duel without chance, for the classical two-player searches.
pub trait DuelGame: Complete + Duel + Deterministic + Reseat + Noisy {}
impl<G: Complete + Duel + Deterministic + Reseat + Noisy> DuelGame for G {}

/// A game without chance for any number of seats, for paranoid, max-n and best-reply search. Every [`DuelGame`] is one.
pub trait ManyGame: Complete + Deterministic + Reseat {}
impl<G: Complete + Deterministic + Reseat> ManyGame for G {}

/// A duel with chance, for the expectiminimax family.
pub trait ChanceGame: Complete + Duel + Chance {}
impl<G: Complete + Duel + Chance> ChanceGame for G {}

/// Code that is generic in the game, with a method for each family.
pub trait Visitor: Sized {
    /// The result of the visit.
    type Output;
    /// Visits a duel without chance.
    fn duel<G: DuelGame>(self, parameters: &Parameters) -> Self::Output;
    /// Visits a game of three or more seats without chance.
    fn many<G: ManyGame>(self, parameters: &Parameters) -> Self::Output;
    /// Visits a duel with chance.
    fn chance<G: ChanceGame>(self, parameters: &Parameters) -> Self::Output;
}

/// Code that is generic in the game and the same for all families.
pub trait UniformVisitor: Sized {
    /// The result of the visit.
    type Output;
    /// Visits any game.
    fn visit<G: Complete>(self, parameters: &Parameters) -> Self::Output;
}

struct Uniform<V>(V);

impl<V: UniformVisitor> Visitor for Uniform<V> {
    type Output = V::Output;
    fn duel<G: DuelGame>(self, parameters: &Parameters) -> V::Output {
        self.0.visit::<G>(parameters)
    }
    fn many<G: ManyGame>(self, parameters: &Parameters) -> V::Output {
        self.0.visit::<G>(parameters)
    }
    fn chance<G: ChanceGame>(self, parameters: &Parameters) -> V::Output {
        self.0.visit::<G>(parameters)
    }
}

/// The static description of a game.
#[derive(Clone, Copy, Debug)]
pub struct GameInfo {
    /// The name.
    pub name: &'static str,
    /// The rules in one line.
    pub summary: &'static str,
    /// The possible numbers of seats.
    pub seats: &'static [u32],
    /// Whether chance decides some plies.
    pub chance: bool,
    /// The turn order.
    pub turns: Turns,
    /// Whether the rules depend on how a position was reached.
    pub path_dependent: bool,
    /// Whether the duel has noisy moves for quiescence search.
    pub noisy: bool,
    /// Whether passing in the duel would hardly ever be better than the best move.
    pub passing_hurts: bool,
    /// The parameters.
    pub parameters: &'static [Parameter],
    /// The features with their default weights.
    pub features: &'static [Feature],
}

macro_rules! info {
    ($game:ty, $seats:expr, $chance:expr, $noisy:expr, $passing_hurts:expr) => {
        GameInfo {
            name: <$game>::NAME,
            summary: <$game>::SUMMARY,
            seats: $seats,
            chance: $chance,
            turns: <$game>::TURNS,
            path_dependent: <$game>::PATH_DEPENDENT,
            noisy: $noisy,
            passing_hurts: $passing_hurts,
            parameters: <$game>::PARAMETERS,
            features: <$game>::FEATURES,
        }
    };
}

/// Registers games by family. `duel` and `chance` games have two seats. `many` games list their numbers of seats above
/// two; with two seats they are duels.
macro_rules! register {
    (
        duel: $($duel:ty),* ;
        many: $($many:ident [$($seats:literal),*]),* ;
        chance: $($chance:ty),* ;
    ) => {
        /// Every game, ordered by family.
        pub static GAMES: &[GameInfo] = &[
            $(info!($duel, &[2], false, <$duel>::NOISY, <$duel>::PASSING_HURTS),)*
            $(info!($many<2>, &[2, $($seats),*], false, <$many<2>>::NOISY, <$many<2>>::PASSING_HURTS),)*
            $(info!($chance, &[2], true, false, false),)*
        ];

        impl GameSpec {
            /// Runs `visitor` with the game as a type parameter.
            pub fn visit<V: Visitor>(&self, visitor: V) -> V::Output {
                let parameters = &self.parameters;
                let game = (self.name, parameters.seats());
                $(if game == (<$duel>::NAME, 2) {
                    return visitor.duel::<$duel>(parameters);
                })*
                $(if game == ($many::<2>::NAME, 2) {
                    return visitor.duel::<$many<2>>(parameters);
                }
                $(if game == ($many::<2>::NAME, $seats) {
                    return visitor.many::<$many<$seats>>(parameters);
                })*)*
                $(if game == (<$chance>::NAME, 2) {
                    return visitor.chance::<$chance>(parameters);
                })*
                unreachable!("a GameSpec names a registered game with a declared number of seats")
            }
        }
    };
}

use crate::backgammon::Backgammon;
use crate::checkers::Checkers;
use crate::chess::Chess;
use crate::chinese_checkers::ChineseCheckers;
use crate::connect_four::ConnectFour;
use crate::focus::Focus;
use crate::go::Go;
use crate::grundy::Grundy;
use crate::kalah::Kalah;
use crate::nim::Nim;
use crate::othello::Othello;
use crate::pig::Pig;
use crate::rolit::Rolit;
use crate::tic_tac_toe::TicTacToe;
use crate::virus::Virus;

register! {
    duel: TicTacToe, Nim, Grundy, ConnectFour, Othello, Kalah, Checkers, Chess, Go;
    many: ChineseCheckers [3, 4, 6], Focus [3, 4], Virus [3, 4, 5, 6], Rolit [3, 4];
    chance: Backgammon, Pig;
}

/// A game with its parameters, read from text. Displays as its canonical text.
#[derive(Clone, PartialEq, Debug)]
pub struct GameSpec {
    name: &'static str,
    parameters: Parameters,
}

impl GameSpec {
    /// Reads `name` or `name:key=value,key=value`. Reports all wrong parameters at once.
    pub fn parse(text: &str) -> Result<GameSpec, SetupError> {
        let (name, given) = text.split_once(':').unwrap_or((text, ""));
        let problems = Problems::default();
        let pairs = given.split(',').filter(|pair| !pair.trim().is_empty()).filter_map(|pair| {
            let split = pair.split_once('=').map(|(key, value)| (key.trim(), value.trim()));
            if split.is_none() {
                let form = "is not of the form key=value; write for example `virus:seats=4,size=10`";
                problems.add(None, format!("`{pair}` {form}"));
            }
            split
        });
        let read = GameSpec::read(name.trim(), pairs, &problems)?;
        Ok(problems.finish(Some(read))?)
    }

    /// Creates a game from its name and the texts of some of its parameters.
    pub fn new<'a>(
        name: &str,
        given: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<GameSpec, SetupError> {
        let problems = Problems::default();
        let read = GameSpec::read(name, given, &problems)?;
        Ok(problems.finish(Some(read))?)
    }

    fn read<'a>(
        name: &str,
        given: impl IntoIterator<Item = (&'a str, &'a str)>,
        problems: &Problems,
    ) -> Result<GameSpec, SetupError> {
        let info = GAMES.iter().find(|info| info.name == name);
        let info = info.ok_or_else(|| SetupError::UnknownGame { name: name.to_string() })?;
        let scope = Scope { place: info.name, noun: "parameter", also: &[] };
        let entry = |(key, value)| Entry { key, value, key_span: None, value_span: None };
        let parameters = Values::read(scope, info.parameters, given.into_iter().map(entry), problems);
        Ok(GameSpec { name: info.name, parameters })
    }

    /// Returns the game's name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the parameters, each with a value.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// Returns a remark for users of these parameters, if there is one.
    pub fn note(&self) -> Option<&'static str> {
        struct Note;
        impl UniformVisitor for Note {
            type Output = Option<&'static str>;
            fn visit<G: Complete>(self, parameters: &Parameters) -> Self::Output {
                G::note(parameters)
            }
        }
        self.visit_any(Note)
    }

    /// Runs a visitor that is the same for all families.
    pub fn visit_any<V: UniformVisitor>(&self, visitor: V) -> V::Output {
        self.visit(Uniform(visitor))
    }
}

impl fmt::Display for GameSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parameters = self.parameters.to_string();
        let colon = if parameters.is_empty() { "" } else { ":" };
        write!(f, "{}{colon}{parameters}", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seats_parameter_allows_registered_numbers_only() {
        for info in GAMES.iter().filter(|info| info.seats.len() > 1) {
            for seats in 0..=10 {
                let asked = GameSpec::parse(&format!("{}:seats={seats}", info.name));
                assert_eq!(asked.is_ok(), info.seats.contains(&seats), "{} with {seats} seats", info.name);
            }
        }
    }

    #[test]
    fn feature_names_are_unique_and_fit_a_set() {
        for info in GAMES {
            assert!((1..=64).contains(&info.features.len()), "{}", info.name);
            for (index, feature) in info.features.iter().enumerate() {
                let earlier = info.features[..index].iter().any(|other| other.name == feature.name);
                assert!(!earlier && feature.weight.is_finite(), "{}: {}", info.name, feature.name);
            }
        }
    }
}
