//! Known answers: a few fixed searches and a signature over their results. Builds with different signatures search
//! differently.
//!
//! The signature does not depend on clocks, threads or machines. It is cheap enough to compute at every start. The benchmark
//! has a more thorough signature, over every game and algorithm.

use agon_games::GameSpec;
use agon_games::random::mix;
use agon_search::{Counters, Limit};

use crate::arena::{Arena, Environment, PlayError};
use crate::bout::Opening;
use crate::config::PlayerConfig;
use crate::record::SearchRecord;
use crate::seeds::SeedPath;

/// The game, the player and the limit of each search in nodes (in simulations for sampling algorithms). They cover
/// all families of algorithms, and games with passes, with chance and with more than two seats.
const SEARCHES: &[(&str, &str, u64)] = &[
    ("tic-tac-toe", r#"search = { algorithm = "alpha-beta" }"#, 2_000),
    ("othello", r#"search = { algorithm = "pvs" }"#, 20_000),
    ("connect-four", r#"search = { algorithm = "mtd" }"#, 20_000),
    ("chess", r#"search = { algorithm = "pvs", quiescence = true }"#, 20_000),
    ("backgammon", r#"search = { algorithm = "star2" }"#, 10_000),
    ("virus:seats=3", r#"search = { algorithm = "max-n" }"#, 5_000),
    ("kalah", r#"search = { algorithm = "uct" }"#, 300),
    ("pig", r#"search = { algorithm = "monte-carlo" }"#, 200),
];

/// The results of the fixed searches.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KnownAnswers {
    /// A hash of all counters, moves and values, as 16 hexadecimal digits.
    pub signature: String,
    /// The number of positions searched.
    pub nodes: u64,
}

/// Runs the fixed searches, which take a few hundredths of a second.
pub fn known_answers() -> KnownAnswers {
    let mut nodes = 0;
    let mut signature = 0;
    for &(game, player, limit) in SEARCHES {
        let record = search(game, player, limit).expect("the fixed searches are valid");
        nodes += record.counters.nodes;
        signature = sign(signature, &record);
    }
    KnownAnswers { signature: format!("{signature:016x}"), nodes }
}

/// Searches a position after three or more random plies.
fn search(game: &str, player: &str, limit: u64) -> Result<SearchRecord, PlayError> {
    let game = GameSpec::parse(game)?;
    let player = PlayerConfig::parse(&game, player)?;
    let mut arena = Arena::new(&game, &[player], Environment::system())?;
    let seed_path = SeedPath { run: 1, bout: 1, game: 0 };
    let opening = Opening { position: None, moves: arena.random_decision(seed_path, 3)? };
    arena.search(0, &opening, Limit::Nodes(limit), 1, &mut |_| ())
}

/// Mixes the counters, the move and the value of a search into a signature. A counter added after the original ones changes
/// the signature only if it is not 0, so that builds without it remain comparable.
pub fn sign(signature: u64, record: &SearchRecord) -> u64 {
    let counts = record.counters.values();
    let (original, later) = counts.split_at(Counters::ORIGINAL);
    let numbers = [u64::from(record.selective_depth), u64::from(record.depth), record.value.number.to_bits()];
    let text = record.mv.bytes().map(u64::from);
    let later = later.iter().copied().filter(|&count| count > 0);
    original.iter().copied().chain(numbers).chain(text).chain(later).fold(signature, mix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signature_is_reproducible() {
        let answers = known_answers();
        assert_eq!(answers, known_answers());
        assert_eq!(answers.signature.len(), 16);
        assert!(answers.nodes > 50_000, "{} nodes are too few to measure the speed", answers.nodes);
    }

    #[test]
    fn searches_have_distinct_signatures() {
        let all: Vec<u64> = SEARCHES
            .iter()
            .map(|&(game, player, limit)| sign(0, &search(game, player, limit).unwrap()))
            .collect();
        for (index, signature) in all.iter().enumerate() {
            assert!(!all[..index].contains(signature), "search {index}");
        }
    }
}
