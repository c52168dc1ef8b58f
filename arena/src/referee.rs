//! The referee: plays a game again by the rules that somebody says was played, without searching.
//!
//! What a search found cannot be checked here, but everything else can: that it was the game that was asked for, that
//! every move was legal, that chance fell as the seed says, that limits that can be counted were kept, and how it ended.

use agon_games::random::seeded;
use agon_games::{Complete, Seat, Turn};
use agon_search::Limit;

use crate::arena::{GameRequest, TIME_FORFEIT, end_payoff};

/// A game as somebody tells it.
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
}

/// A ply as somebody tells it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PlyClaim<'a> {
    /// The move in words.
    pub mv: &'a str,
    /// The seat that moved; none for chance.
    pub seat: Option<usize>,
    /// The player who searched; none for chance and in the opening.
    pub player: Option<usize>,
    /// How many moves were legal.
    pub legal: u32,
    /// What the search spent, where there was one.
    pub search: Option<SearchClaim>,
}

/// What a search says it spent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SearchClaim {
    /// Nodes or simulations, whichever the player's limit counts.
    pub spent: u64,
    /// The last completed depth.
    pub depth: u32,
}

/// Why a game cannot have been played as it is told.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{}{reason}", .ply.map(|ply| format!("ply {ply}: ")).unwrap_or_default())]
pub struct Fault {
    /// The ply that is wrong, counted from 0; none where it is the game as a whole.
    pub ply: Option<usize>,
    /// What is wrong.
    pub reason: String,
}

impl Fault {
    pub(crate) fn of_game(reason: String) -> Fault {
        Fault { ply: None, reason }
    }
}

/// Plays the claim again from the first position of what was asked for.
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
    for (ply, told) in claim.plies.iter().enumerate() {
        let wrong = |reason: String| Fault { ply: Some(ply), reason };
        let turn = position.turn();
        // 1. Whose turn it is, and how many moves there are.
        let seat = match turn {
            Turn::Over => return Err(wrong("the game was over before".to_string())),
            Turn::Chance => None,
            Turn::Player(seat) => Some(seat),
        };
        if told.seat != seat.map(Seat::index) {
            return Err(wrong(format!("the turn is {turn}, not seat {:?}", told.seat)));
        }
        scratch.clear();
        let legal = position.count(&mut scratch);
        if u64::from(told.legal) != legal {
            return Err(wrong(format!("{legal} moves are legal, not {}", told.legal)));
        }
        // 2. The move is legal, and the one that was asked for where it was not to be chosen.
        let mv = position.parse_move(told.mv).ok_or_else(|| wrong(format!("`{}` is not legal", told.mv)))?;
        written.clear();
        position.write_move(mv, &mut written);
        if written != told.mv {
            return Err(wrong(format!("the move is written `{written}`, not `{}`", told.mv)));
        }
        let searched = match (opening.get(ply), seat) {
            (Some(&word), _) => {
                if word != told.mv && position.parse_move(word) != Some(mv) {
                    return Err(wrong(format!("the opening plays `{word}`, not `{}`", told.mv)));
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
                        told.mv
                    )));
                }
                None
            }
            (None, Some(seat)) => Some(request.seats[seat.index()]),
        };
        // 3. Who searched, and within what.
        if told.player != searched || told.search.is_some() != searched.is_some() {
            return Err(wrong(format!("the player is {searched:?}, not {:?}", told.player)));
        }
        if let (Some(player), Some(search)) = (searched, told.search) {
            check_spent(request.limits[player], search).map_err(wrong)?;
        }
        // 4. A clock that runs out ends the game before the move is played.
        if ply + 1 == claim.plies.len() && claim.ending == TIME_FORFEIT {
            let timed = searched.is_some_and(|player| matches!(request.limits[player], Limit::Clock { .. }));
            if !timed {
                return Err(wrong("there is no clock that could run out".to_string()));
            }
            forfeit = seat;
            break;
        }
        position.play(mv);
    }
    // 5. The end.
    if claim.plies.len() < opening.len() {
        return Err(Fault::of_game("it ends within its opening".to_string()));
    }
    if forfeit.is_none() {
        if position.turn() != Turn::Over {
            return Err(Fault::of_game(format!("it is not over: the turn is {}", position.turn())));
        }
        if claim.ending != position.ending() {
            return Err(Fault::of_game(format!("it ends by {}, not by {}", position.ending(), claim.ending)));
        }
    }
    let payoffs: Vec<i32> = Seat::all(G::SEATS).map(|seat| end_payoff(&position, forfeit, seat)).collect();
    if claim.payoffs != payoffs {
        return Err(Fault::of_game(format!("the payoffs are {payoffs:?}, not {:?}", claim.payoffs)));
    }
    Ok(())
}

/// Whether a limit that can be counted was kept.
fn check_spent(limit: Limit, search: SearchClaim) -> Result<(), String> {
    // Whatever the limit, a move must be found: every search may enter one node and complete one ply.
    match limit {
        Limit::Nodes(nodes) if search.spent > nodes.max(1) => {
            Err(format!("{} nodes are more than the limit of {nodes}", search.spent))
        }
        Limit::Depth(depth) if search.depth > depth.max(1) => {
            Err(format!("a depth of {} is more than the limit of {depth}", search.depth))
        }
        _ => Ok(()),
    }
}
