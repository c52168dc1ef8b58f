//! Rankings from the payoffs of a game: places, ties and undecided places.

use thiserror::Error;

use super::likelihood::Kind;

/// The minimum number of seats.
pub const FEWEST_SEATS: usize = 2;
/// The maximum number of seats: sets of seats are bytes.
pub const MOST_SEATS: usize = 8;

/// One game: the players by seat and their payoffs.
///
/// With fewer players than seats, a player sits in several seats of one game. It has the same strength in all of
/// them, so comparisons between its own seats only inform about the seats.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Game {
    /// The player of each seat.
    pub players: Vec<usize>,
    /// The payoff of each seat; greater is better.
    pub payoffs: Vec<i32>,
}

/// The meaning of equal payoffs at the bottom. Elsewhere equal payoffs are a tie, and if all payoffs are equal the
/// whole game is a tie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LowestPlaces {
    /// A tie: the rules rank these seats equal. The log-likelihood is its mean over their orders.
    Decided,
    /// Undecided: the rules only pay the upper places, as where the winners share one unit. The likelihood is the sum
    /// over the orders of these seats: only their coming last is counted.
    Undecided,
}

/// A game that cannot be ranked.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RankingError {
    /// An unsupported number of seats.
    #[error("rankings are for {FEWEST_SEATS} to {MOST_SEATS} seats, not for {seats}")]
    Seats {
        /// The number of seats.
        seats: usize,
    },
    /// A game with another number of seats than the pool's.
    #[error(
        "a game of this pool has {seats} seats, but this one has {players} players and {payoffs} payoffs"
    )]
    Shape {
        /// The pool's number of seats.
        seats: usize,
        /// The number of players in the game.
        players: usize,
        /// The number of payoffs in the game.
        payoffs: usize,
    },
    /// A player who is not in the pool.
    #[error("player {player} is not one of the pool's {players} players, which are numbered from 0")]
    Player {
        /// The player's number.
        player: usize,
        /// The number of players in the pool.
        players: usize,
    },
}

/// Reads a game as the players by seat and the tied groups of seats, the first place first.
pub(super) fn read(
    game: &Game,
    players: usize,
    seats: usize,
    lowest: LowestPlaces,
) -> Result<Kind, RankingError> {
    if game.players.len() != seats || game.payoffs.len() != seats {
        let (players, payoffs) = (game.players.len(), game.payoffs.len());
        return Err(RankingError::Shape { seats, players, payoffs });
    }
    if let Some(&player) = game.players.iter().find(|&&player| player >= players) {
        return Err(RankingError::Player { player, players });
    }
    let mut paid = game.payoffs.clone();
    paid.sort_unstable();
    paid.dedup();
    let group = |payoff: &i32| {
        let equal = game.payoffs.iter().enumerate().filter(|(_, other)| *other == payoff);
        equal.fold(0u8, |set, (seat, _)| set | 1 << seat)
    };
    let groups: Vec<u8> = paid.iter().rev().map(group).collect();
    let last_undecided = lowest == LowestPlaces::Undecided && groups.len() > 1;
    Ok(Kind { players: game.players.clone(), groups, last_undecided })
}
