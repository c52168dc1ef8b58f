//! The referee: checks a claimed game by the rules, without searching.
//!
//! It checks the request, the legality of every move, the draws of chance by the seed, node and depth limits, and the ending.
//! It cannot check the results of searches.

use agon_games::random::seeded;
use agon_games::{Complete, Seat, Turn};
use agon_search::Limit;

use crate::arena::{GameRequest, TIME_FORFEIT, end_payoff};

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
    /// The effort of the search, if there was one.
    pub search: Option<SearchClaim>,
}

/// The claimed effort of a search.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SearchClaim {
    /// Nodes or simulations: the unit of the player's node limit.
    pub spent: u64,
    /// The last completed depth.
    pub depth: u32,
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
    for (ply, claimed) in claim.plies.iter().enumerate() {
        let wrong = |reason: String| Fault { ply: Some(ply), reason };
        let turn = position.turn();
        // 1. Whose turn it is, and how many moves there are.
        let seat = match turn {
            Turn::Over => return Err(wrong("the game was over before".to_string())),
            Turn::Chance => None,
            Turn::Player(seat) => Some(seat),
        };
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
        if let (Some(player), Some(search)) = (searched, claimed.search) {
            check_spent(request.limits[player], search).map_err(wrong)?;
        }
        // 4. A clock that runs out ends the game before the move is played.
        if ply + 1 == claim.plies.len() && claim.ending == TIME_FORFEIT {
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

/// Checks a node or depth limit.
fn check_spent(limit: Limit, search: SearchClaim) -> Result<(), String> {
    // Every search needs a move: it may always enter one node and complete one ply.
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
