//! From the payoffs of a game to its ranking: who came before whom, which places are shared, which are not decided.

use thiserror::Error;

use super::likelihood::Kind;

/// The fewest seats a ranking has.
pub const FEWEST_SEATS: usize = 2;
/// The most seats a ranking may have: sets of seats are bytes.
pub const MOST_SEATS: usize = 8;

/// One game: who sat where, and what each seat was paid.
///
/// A player may sit in several seats of one game, where there are fewer players than seats. Its strength is then the
/// same in all of them, so a comparison between its own seats tells of the seats alone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Game {
    /// The player of each seat.
    pub players: Vec<usize>,
    /// The payoff of each seat; more is better.
    pub payoffs: Vec<i32>,
}

/// What equal payoffs at the bottom mean. Everywhere else equal payoffs are a tie, and where all seats are paid the
/// same, the whole game is a tie whatever is said here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LowestPlaces {
    /// A tie: the rules rank every seat, and these are ranked equal. The likelihood's logarithm is its mean over all
    /// orders of the tied.
    Decided,
    /// Not decided: the rules pay the upper places alone, as where the winners share one unit and the others get
    /// nothing. The likelihood is the sum over all orders of these seats: only that they came last is counted.
    Undecided,
}

/// Why a game cannot be ranked.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RankingError {
    /// A number of seats that has no ranking here.
    #[error("rankings are for {FEWEST_SEATS} to {MOST_SEATS} seats, not for {seats}")]
    Seats {
        /// The number of seats as given.
        seats: usize,
    },
    /// A game of another shape than the pool's.
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
        /// The player's number as given.
        player: usize,
        /// How many players the pool has.
        players: usize,
    },
}

/// Reads a game as its kind: the players by seat and the tied groups of seats from the first place to the last.
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
