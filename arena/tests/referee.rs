//! The referee accepts every game that the arena plays and rejects every changed one.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

use agon_arena::algorithms::fitting;
use agon_arena::{
    Arena, Bout, Claim, Environment, GameRecord, GameRequest, Opening, PlayerConfig, PlyClaim, SearchClaim,
    SeedPath,
};
use agon_games::random::{Random, below, seeded};
use agon_games::{GAMES, GameSpec};
use agon_search::Limit;

/// Returns every game with default parameters, and some with other numbers of seats.
fn games() -> Vec<GameSpec> {
    let others = ["rolit:seats=3", "virus:seats=4,size=6", "focus:seats=4", "chinese-checkers:seats=3"];
    let names = GAMES.iter().map(|info| info.name).chain(others);
    names.map(|name| GameSpec::parse(name).unwrap()).collect()
}

fn player(game: &GameSpec, algorithm: &str) -> PlayerConfig {
    PlayerConfig::parse(game, &format!("search = {{ algorithm = \"{algorithm}\" }}")).unwrap()
}

/// Returns the games of a bout of two players with an opening of three plies.
fn games_of(arena: &Arena, limits: [Limit; 2], number: u64) -> Vec<GameRequest> {
    let seed_path = SeedPath { run: 9, bout: number, game: 0 };
    let opening = Opening { position: None, moves: arena.random_opening(seed_path, 3).unwrap() };
    let players = (0..arena.seats()).map(|seat| seat % 2).collect();
    let bout = Bout { index: number, players, opening, values: Vec::new() };
    bout.games(9, limits.to_vec()).collect()
}

fn claim<'a>(record: &'a GameRecord, players: &[PlayerConfig]) -> Claim<'a> {
    let plies = record.moves.iter().map(|mv| PlyClaim {
        mv: &mv.mv,
        seat: mv.seat,
        player: mv.player,
        legal: mv.legal,
        search: mv.search.as_ref().zip(mv.player).map(|(search, player)| SearchClaim {
            spent: players[player].algorithm.limit_unit.spent(&search.counters),
            depth: search.depth,
        }),
    });
    Claim { plies: plies.collect(), payoffs: &record.payoffs, ending: &record.ending, seed: record.seed }
}

#[test]
fn accepts_games_of_every_algorithm_and_limit() {
    let mut wrong = Vec::new();
    for game in games() {
        let info = GAMES.iter().find(|info| info.name == game.name()).unwrap();
        let referee = Arena::new(&game, &[], Environment::system()).unwrap();
        for algorithm in fitting(info, game.parameters().seats()) {
            for limit in [Limit::Nodes(0), Limit::Nodes(1), Limit::Nodes(9), Limit::Depth(0), Limit::Depth(1)]
            {
                if !algorithm.has_depth() && matches!(limit, Limit::Depth(_)) {
                    continue;
                }
                let players = [player(&game, algorithm.name), player(&game, "random")];
                let mut arena = Arena::new(&game, &players, Environment::system()).unwrap();
                let request = games_of(&arena, [limit, Limit::Nodes(1)], 1).remove(0);
                let record = arena.play(&request, &mut |_| ()).unwrap();
                if let Err(fault) = referee.verify(&request, &claim(&record, &players)) {
                    wrong.push(format!("{game}: {} within {limit:?}: {fault}", algorithm.name));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A change of a claim near a given ply. Returns none if it does not apply.
type Corruption = fn(&mut Claim<'static>, usize, &GameRequest) -> Option<()>;

/// Every way to change a game.
const CORRUPTIONS: &[(&str, Corruption)] = &[
    ("another seed", |claim, _, _| {
        claim.seed ^= 1;
        Some(())
    }),
    ("an unknown move", |claim, ply, _| {
        claim.plies[ply].mv = "nowhere";
        Some(())
    }),
    ("an empty move", |claim, ply, _| {
        claim.plies[ply].mv = "";
        Some(())
    }),
    ("another move in the opening", |claim, ply, request| {
        let words: Vec<&str> = request.opening.moves.split(' ').collect();
        let ply = ply % words.len();
        let other = claim.plies[(ply + 1) % words.len()].mv;
        (other != claim.plies[ply].mv).then_some(())?;
        claim.plies[ply].mv = other;
        Some(())
    }),
    ("another seat", |claim, ply, request| {
        let seat = claim.plies[ply].seat?;
        claim.plies[ply].seat = Some((seat + 1) % request.seats.len());
        Some(())
    }),
    ("chance for a seat", |claim, ply, _| {
        claim.plies[ply].seat.take()?;
        Some(())
    }),
    ("a seat for chance", |claim, ply, _| {
        claim.plies[ply].seat.is_none().then_some(())?;
        claim.plies[ply].seat = Some(0);
        Some(())
    }),
    ("one legal move more", |claim, ply, _| {
        claim.plies[ply].legal += 1;
        Some(())
    }),
    ("no legal move", |claim, ply, _| {
        claim.plies[ply].legal = 0;
        Some(())
    }),
    ("another player", |claim, ply, _| {
        claim.plies[ply].player = Some(1 - claim.plies[ply].player?);
        Some(())
    }),
    ("a missing search", |claim, ply, _| {
        claim.plies[ply].search.take()?;
        claim.plies[ply].player = None;
        Some(())
    }),
    ("a search in the opening", |claim, _, _| {
        claim.plies[0].player = Some(0);
        claim.plies[0].search = Some(SearchClaim { spent: 1, depth: 1 });
        Some(())
    }),
    ("more nodes than allowed", |claim, ply, request| {
        let player = claim.plies[ply].player?;
        let Limit::Nodes(most) = request.limits[player] else { return None };
        claim.plies[ply].search.as_mut()?.spent = most + 1;
        Some(())
    }),
    ("the last ply is missing", |claim, _, _| claim.plies.pop().map(drop)),
    // After the opening, the remaining plies may be another legal game.
    ("a ply of the opening is missing", |claim, ply, request| {
        let words = request.opening.moves.split(' ').count();
        let gone = claim.plies.remove(ply % words);
        (claim.plies.get(ply % words)?.mv != gone.mv).then_some(())
    }),
    ("a ply after the end", |claim, _, _| {
        claim.plies.push(*claim.plies.last()?);
        Some(())
    }),
    ("another ending", |claim, _, _| {
        claim.ending = "boredom";
        Some(())
    }),
    ("a forfeit where there is no clock", |claim, _, _| {
        claim.ending = "time forfeit";
        Some(())
    }),
];

/// Leaks a record, so that claims about it have a static lifetime.
fn leak(record: GameRecord) -> &'static GameRecord {
    Box::leak(Box::new(record))
}

fn check(
    referee: &Arena,
    request: &GameRequest,
    record: &'static GameRecord,
    players: &[PlayerConfig],
    random: &mut Random,
    game: &GameSpec,
) {
    for (name, corrupt) in CORRUPTIONS {
        let mut changed = claim(record, players);
        let ply = below(random, changed.plies.len());
        let before = changed.clone();
        if corrupt(&mut changed, ply, request).is_none() || changed == before {
            continue;
        }
        let fault = referee.verify(request, &changed);
        let fault = fault
            .expect_err(&format!("{game}: {name} at ply {ply} of {} is not detected", record.moves.len()));
        assert!(!fault.reason.is_empty());
    }
    let mut payoffs = record.payoffs.clone();
    for seat in 0..payoffs.len() {
        payoffs[seat] += 1;
        let changed = Claim { payoffs: &payoffs, ..claim(record, players) };
        assert!(
            referee.verify(request, &changed).is_err(),
            "{game}: another payoff of seat {seat} is not detected"
        );
        payoffs[seat] -= 1;
    }
    let changed = Claim { payoffs: &payoffs[1..], ..claim(record, players) };
    assert!(referee.verify(request, &changed).is_err(), "{game}: a missing payoff is not detected");
}

#[test]
fn rejects_every_change_of_a_game() {
    let mut random = seeded(3);
    for game in games() {
        let players = [player(&game, "greedy"), player(&game, "monte-carlo")];
        let mut arena = Arena::new(&game, &players, Environment::system()).unwrap();
        let referee = Arena::new(&game, &[], Environment::system()).unwrap();
        for number in 0..2 {
            for request in games_of(&arena, [Limit::Nodes(5000), Limit::Nodes(1)], number) {
                let record = leak(arena.play(&request, &mut |_| ()).unwrap());
                assert_eq!(referee.verify(&request, &claim(record, &players)), Ok(()), "{game}");
                for _ in 0..4 {
                    check(&referee, &request, record, &players, &mut random, &game);
                }
            }
        }
    }
}

#[test]
fn openings_accept_other_notations_and_records_do_not() {
    let game = GameSpec::parse("go:size=5").unwrap();
    let players = [player(&game, "random"), player(&game, "random")];
    let mut arena = Arena::new(&game, &players, Environment::system()).unwrap();
    let mut request = games_of(&arena, [Limit::Nodes(1); 2], 1).remove(0);
    request.opening.moves = "c3 PASS b2".to_string();
    let record = arena.play(&request, &mut |_| ()).unwrap();
    assert_eq!(arena.verify(&request, &claim(&record, &players)), Ok(()));
    let small: Vec<String> = record.moves.iter().map(|mv| mv.mv.to_lowercase()).collect();
    let mut changed = claim(&record, &players);
    let index = record.moves.iter().rposition(|mv| mv.mv.to_lowercase() != mv.mv).unwrap();
    changed.plies[index].mv = &small[index];
    assert!(arena.verify(&request, &changed).unwrap_err().reason.contains("the move is written"));
}
