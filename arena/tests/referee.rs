//! The referee accepts every game that the arena plays and rejects every changed one, and every impossible number of a
//! search.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::time::Duration;

use agon_arena::adjudication::{Draw, Resign};
use agon_arena::algorithms::fitting;
use agon_arena::{
    Adjudication, Arena, Bout, Claim, Environment, GameRecord, GameRequest, MoveRecord, Opening,
    PlayerConfig, PlyClaim, SearchClaim, SearchRecord, SeedPath,
};
use agon_games::random::{Random, below, seeded};
use agon_games::{GAMES, GameSpec};
use agon_search::bounds::BOUNDS;
use agon_search::{Counters, Limit, SearchNumbers};

/// Returns every game with default parameters, and some with other numbers of seats.
fn games() -> Vec<GameSpec> {
    let others = ["rolit:seats=3", "virus:seats=4,size=6", "focus:seats=4", "chinese-checkers:seats=3"];
    let names = GAMES.iter().map(|info| info.name).chain(others);
    names.map(|name| GameSpec::parse(name).unwrap()).collect()
}

fn player(game: &GameSpec, algorithm: &str) -> PlayerConfig {
    configured(game, algorithm, "").unwrap()
}

/// Returns the player with these options, if the algorithm has them and the game allows them.
fn configured(game: &GameSpec, algorithm: &str, options: &str) -> Option<PlayerConfig> {
    PlayerConfig::parse(game, &format!("search = {{ algorithm = \"{algorithm}\"{options} }}")).ok()
}

/// Returns the games of a bout of two players with an opening of three plies.
fn games_of(arena: &Arena, limits: [Limit; 2], number: u64) -> Vec<GameRequest> {
    let seed_path = SeedPath { run: 9, bout: number, game: 0 };
    let opening = Opening { position: None, moves: arena.random_opening(seed_path, 3).unwrap() };
    let players = (0..arena.seats()).map(|seat| seat % 2).collect();
    let bout = Bout { index: number, players, opening, values: Vec::new() };
    bout.games(9, limits.to_vec(), vec![None; 2], Adjudication::default()).collect()
}

/// Returns the claim of a record. Leaks its lists, so that claims can be changed freely.
fn claim<'a>(record: &'a GameRecord, players: &[PlayerConfig]) -> Claim<'a> {
    let plies = record.moves.iter().map(|mv| PlyClaim {
        mv: &mv.mv,
        seat: mv.seat,
        player: mv.player,
        legal: mv.legal,
        search: mv.search.as_ref().zip(mv.player).map(|(search, player)| claimed(search, &players[player])),
    });
    Claim {
        plies: plies.collect(),
        payoffs: &record.payoffs,
        ending: &record.ending,
        seed: record.seed,
        duration_us: microseconds(record.time),
    }
}

fn microseconds(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap()
}

fn claimed(search: &SearchRecord, player: &PlayerConfig) -> SearchClaim<'static> {
    let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap();
    SearchClaim {
        numbers: SearchNumbers {
            counters: search.counters,
            depth: search.depth,
            selective_depth: search.selective_depth,
            depth_nodes: search.iterations.iter().map(|iteration| iteration.nodes).collect::<Vec<_>>().leak(),
            depth_time_us: search
                .iterations
                .iter()
                .map(|iteration| microseconds(iteration.time))
                .collect::<Vec<_>>()
                .leak(),
            pv: search.line.len() as u64,
            score: search.value.number,
            time_us: microseconds(search.time),
            overshoot_us: microseconds(search.overshoot),
        },
        samples: player.samples(),
        playouts_per_move: player.playouts_per_move(),
        limit_value: match search.limit {
            Limit::Wall(time) | Limit::Cpu(time) | Limit::Clock { remaining: time, .. } => milliseconds(time),
            Limit::Nodes(nodes) => nodes,
            Limit::Depth(depth) => depth.into(),
        },
    }
}

/// Options under which searches count differently.
const OPTIONS: &[&str] = &[
    "",
    ", quiescence = true",
    ", quiescence = true, null_move = true, late_move_reductions = true, aspiration = 0.01",
    ", null_move = true, table_hits = \"deeper\", table_mb = 1, order = \"\"",
    ", table_mb = 0, late_move_reductions = true",
    ", driver = \"dual\", quiescence = true",
    ", values = \"shares\", pruning = true",
    ", threat_ads = \"transpose\"",
    ", playouts_per_move = 2, rollout = \"greedy\"",
    ", playouts = 3, solver = true, rollout_plies = 2",
    ", memory_mb = 1, first_play = 0.0",
    ", keep = false",
];

/// Every kind of limit.
fn limits() -> impl Iterator<Item = Limit> {
    let short = Duration::from_micros(150);
    let nodes = [0, 1, 2, 9, 300].map(Limit::Nodes);
    let depths = [0, 1, 2].map(Limit::Depth);
    let times = [Duration::ZERO, short].into_iter().flat_map(|time| [Limit::Wall(time), Limit::Cpu(time)]);
    let clocks = [(0, 0), (3, 0), (1, 20), (1000, 1)].map(|(remaining, increment)| {
        let [remaining, increment] = [remaining, increment].map(|time| short * time);
        Limit::Clock { remaining, increment }
    });
    nodes.into_iter().chain(depths).chain(times).chain(clocks)
}

#[test]
fn accepts_games_of_every_algorithm_and_limit() {
    let (mut wrong, mut games_played, mut searches) = (Vec::new(), 0, 0);
    for game in games() {
        let info = GAMES.iter().find(|info| info.name == game.name()).unwrap();
        let referee = Arena::new(&game, &[], Environment::system()).unwrap();
        for algorithm in fitting(info, game.parameters().seats()) {
            let players = [player(&game, algorithm.name), player(&game, "random")];
            let mut arena = Arena::new(&game, &players, Environment::system()).unwrap();
            for (number, limit) in limits().enumerate() {
                let is_long = matches!(limit, Limit::Nodes(300) | Limit::Depth(2));
                if is_long || (!algorithm.has_depth() && matches!(limit, Limit::Depth(_))) {
                    continue;
                }
                let request = games_of(&arena, [limit, Limit::Nodes(1)], number as u64).remove(0);
                let record = arena.play(&request, &mut |_| ()).unwrap();
                games_played += 1;
                searches += record.moves.iter().filter(|mv| mv.search.is_some()).count();
                if let Err(fault) = referee.verify(&request, &claim(&record, &players)) {
                    wrong.push(format!("{game}: {} within {limit:?}: {fault}", algorithm.name));
                }
            }
        }
    }
    println!("{games_played} games with {searches} searches");
    assert!(wrong.is_empty(), "{} games: {}", wrong.len(), wrong.join("\n"));
}

/// The laws of every number of a search: no bound refuses what an honest search counts.
#[test]
fn accepts_searches_with_every_option_and_limit() {
    let (mut wrong, mut searches) = (Vec::new(), 0);
    for game in games() {
        let info = GAMES.iter().find(|info| info.name == game.name()).unwrap();
        let referee = Arena::new(&game, &[], Environment::system()).unwrap();
        for algorithm in fitting(info, game.parameters().seats()) {
            for options in OPTIONS {
                let Some(player) = configured(&game, algorithm.name, options) else { continue };
                let mut arena =
                    Arena::new(&game, std::slice::from_ref(&player), Environment::system()).unwrap();
                for (number, limit) in limits().enumerate() {
                    let seed_path = SeedPath { run: 3, bout: number as u64, game: 0 };
                    // The shortest games are searched from their first position.
                    let moves = arena.random_decision(seed_path, number as u32 % 6).unwrap_or_default();
                    let opening = Opening { position: None, moves };
                    if !algorithm.has_depth() && matches!(limit, Limit::Depth(_)) {
                        continue;
                    }
                    let record = arena.search(0, &opening, limit, 1, &mut |_| ()).unwrap();
                    searches += 1;
                    let claim = claimed(&record, &player);
                    if let Err(fault) = referee.verify_answer(&opening, &record.mv, limit, &claim) {
                        wrong.push(format!("{game}: {}{options} within {limit:?}: {fault}", algorithm.name));
                    }
                }
            }
        }
    }
    println!("{searches} searches");
    assert!(wrong.is_empty(), "{} searches: {}", wrong.len(), wrong.join("\n"));
}

/// A change that makes a number of a search impossible, and the error.
type Absurdity = (&'static str, fn(&mut SearchClaim<'static>), &'static str);

fn counters<'a>(search: &'a mut SearchClaim<'static>) -> &'a mut Counters {
    &mut search.numbers.counters
}

/// Impossible numbers of a search to depth 1 of 300 nodes at most.
const OF_TREES: &[Absurdity] = &[
    (
        "nodes",
        |search| counters(search).nodes = 1 << 53,
        "`nodes` is 9007199254740992, and it must be at most 300",
    ),
    (
        "leaves",
        |search| counters(search).leaves = 1 << 53,
        "`leaves` is 9007199254740992, and it must be at most",
    ),
    ("quiescence_nodes", |search| counters(search).quiescence_nodes = 301, "`quiescence_nodes` is 301"),
    ("cutoffs", |search| counters(search).cutoffs = 301, "`cutoffs` is 301"),
    (
        "first_move_cutoffs",
        |search| counters(search).first_move_cutoffs = counters(search).cutoffs + 1,
        "`first_move_cutoffs` is",
    ),
    ("table_probes", |search| counters(search).table_probes = 601, "`table_probes` is 601"),
    (
        "table_hits",
        |search| (counters(search).table_probes, counters(search).table_hits) = (0, 7),
        "`table_hits` is 7, and it must be at most 0: the table probes",
    ),
    (
        "table_stores",
        |search| counters(search).table_stores = counters(search).table_probes + 1,
        "`table_stores` is",
    ),
    ("researches", |search| counters(search).researches = 301, "`researches` is 301"),
    (
        "simulations",
        |search| counters(search).simulations = 1,
        "`simulations` is 1, and it must be at most 0",
    ),
    (
        "playout_plies",
        |search| counters(search).playout_plies = 1,
        "`playout_plies` is 1, and it must be at most 0",
    ),
    ("tree_nodes", |search| counters(search).tree_nodes = 1, "`tree_nodes` is 1, and it must be at most 0"),
    ("proven_plies", |search| counters(search).proven_plies = 65_536, "`proven_plies` is 65536"),
    ("depth", |search| search.numbers.depth = 1024, "`depth` is 1024, and it must be at most"),
    ("depth", |search| search.numbers.depth += 1, "`depth` is"),
    ("selective_depth", |search| search.numbers.selective_depth = 251, "`selective_depth` is 251"),
    (
        "depth_nodes",
        |search| search.numbers.depth_nodes = &[1; 1024],
        "`depth_nodes` is 1024, and it must be at most",
    ),
    ("depth_nodes", |search| search.numbers.depth_nodes = &[u64::MAX; 1], "`depth_nodes` is"),
    ("depth_time_us", |search| search.numbers.depth_time_us = &[1; 1024], "`depth_time_us` is 1024"),
    ("depth_time_us", |search| search.numbers.depth_time_us = &[u64::MAX; 1], "`depth_time_us` is"),
    ("pv", |search| search.numbers.pv = 5_000_000, "`pv` is 5000000"),
    ("score", |search| search.numbers.score = -1e300, "`score` is"),
    (
        "overshoot_us",
        |search| search.numbers.overshoot_us = 253_402_300_799_999_999,
        "`overshoot_us` is 253402300799999999, and it must be at most 0",
    ),
    (
        "time_us",
        |search| search.numbers.time_us = 253_402_300_799_999_999,
        "`time_us` is 253402300799999999, and it must be at most 31536000000000: a year",
    ),
    ("time_us", |search| search.numbers.time_us = 31_000_000_000_000, "the sum of `time_us` is 31000000"),
];

/// Impossible numbers of a sampling search of 300 simulations at most.
const OF_SAMPLES: &[Absurdity] = &[
    ("nodes", |search| counters(search).nodes = 1 << 40, "`nodes` is 1099511627776, and it must be at most"),
    (
        "simulations",
        |search| counters(search).simulations = 301,
        "`simulations` is 301, and it must be at most 300",
    ),
    ("leaves", |search| counters(search).leaves = counters(search).simulations + 1, "`leaves` is"),
    ("quiescence_nodes", |search| counters(search).quiescence_nodes = 1, "`quiescence_nodes` is 1"),
    ("cutoffs", |search| counters(search).cutoffs = 1, "`cutoffs` is 1"),
    ("table_probes", |search| counters(search).table_probes = 1, "`table_probes` is 1"),
    ("researches", |search| counters(search).researches = 1, "`researches` is 1"),
    ("playout_plies", |search| counters(search).playout_plies = counters(search).nodes, "`playout_plies` is"),
    ("tree_nodes", |search| counters(search).tree_nodes = 1 << 32, "`tree_nodes` is 4294967296"),
    ("depth", |search| search.numbers.depth = 1, "`depth` is 1, and it must be at most 0"),
    ("selective_depth", |search| search.numbers.selective_depth = 60_000, "`selective_depth` is 60000"),
];

#[test]
fn rejects_impossible_numbers_of_searches() {
    let game = GameSpec::parse("connect-four").unwrap();
    let referee = Arena::new(&game, &[], Environment::system()).unwrap();
    let mut bounded: Vec<&str> = Vec::new();
    for (algorithm, absurdities) in [("pvs", OF_TREES), ("uct", OF_SAMPLES)] {
        let players = [player(&game, algorithm), player(&game, "random")];
        let mut arena = Arena::new(&game, &players, Environment::system()).unwrap();
        let request = games_of(&arena, [Limit::Nodes(300), Limit::Nodes(1)], 1).remove(0);
        let record = leak(arena.play(&request, &mut |_| ()).unwrap());
        assert_eq!(referee.verify(&request, &claim(record, &players)), Ok(()));
        for (name, change, expected) in absurdities {
            let mut changed = claim(record, &players);
            let search = changed
                .plies
                .iter_mut()
                .filter(|ply| ply.player == Some(0))
                .find_map(|ply| ply.search.as_mut());
            change(search.unwrap());
            let fault = referee.verify(&request, &changed).expect_err(name).to_string();
            assert!(fault.contains(expected), "{algorithm}: {name}: {fault}, expected {expected}");
            bounded.push(name);
        }
    }
    for (name, _) in BOUNDS {
        assert!(bounded.contains(name), "no test exceeds the bound of `{name}`");
    }
}

#[test]
fn rejects_more_depth_playouts_or_time_than_allowed() {
    let game = GameSpec::parse("connect-four").unwrap();
    let clock = Limit::Clock { remaining: Duration::from_secs(60), increment: Duration::from_millis(100) };
    /// Algorithm, options, limit, lie and expected error.
    type Case = (&'static str, &'static str, Limit, fn(&mut SearchClaim<'static>), &'static str);
    let cases: [Case; 7] = [
        (
            "pvs",
            "",
            Limit::Depth(1),
            |search| search.numbers.depth = 2,
            "`depth` is 2, and it must be at most 1",
        ),
        (
            "monte-carlo",
            ", playouts_per_move = 3",
            Limit::Nodes(300),
            |search| search.numbers.counters.simulations = 22,
            "`simulations` is 22, and it must be at most 21: the playouts that the options allow",
        ),
        (
            "pvs",
            "",
            Limit::Wall(Duration::from_millis(1)),
            |search| search.numbers.counters.nodes = 1 << 50,
            "`nodes` is 1125899906842624, and it must be at most",
        ),
        (
            "pvs",
            "",
            Limit::Wall(Duration::from_millis(1)),
            |search| search.numbers.overshoot_us = 2_000_000,
            "`overshoot_us` is 2000000, and it must be at most",
        ),
        (
            "random",
            "",
            clock,
            |search| search.limit_value = 60_001,
            "`limit_value` is 60001, and the clock shows 60000 to 60000 ms",
        ),
        (
            "random",
            "",
            clock,
            |search| search.numbers.time_us = 60_000_001,
            "`time_us` is 60000001, with 60000 ms on the clock, and it did not run out",
        ),
        (
            "random",
            "",
            Limit::Wall(Duration::from_millis(1)),
            |search| (search.numbers.time_us, search.numbers.overshoot_us) = (900_000, 899_000),
            "`overshoot_us` is 899000, and it must be at most",
        ),
    ];
    let referee = Arena::new(&game, &[], Environment::system()).unwrap();
    for (algorithm, options, limit, change, expected) in cases {
        let players = [configured(&game, algorithm, options).unwrap(), player(&game, "random")];
        let mut arena = Arena::new(&game, &players, Environment::system()).unwrap();
        let request = games_of(&arena, [limit, Limit::Nodes(1)], 1).remove(0);
        let record = leak(arena.play(&request, &mut |_| ()).unwrap());
        let mut changed = claim(record, &players);
        let search =
            changed.plies.iter_mut().filter(|ply| ply.player == Some(0)).find_map(|ply| ply.search.as_mut());
        change(search.unwrap());
        let fault = referee.verify(&request, &changed).expect_err(expected).to_string();
        assert!(fault.contains(expected), "{algorithm}: {fault}, expected {expected}");
    }
    // The clocks of a claim without a search that took its time.
    let players = [player(&game, "random"), player(&game, "random")];
    let mut arena = Arena::new(&game, &players, Environment::system()).unwrap();
    let request = games_of(&arena, [clock; 2], 1).remove(0);
    let record = leak(arena.play(&request, &mut |_| ()).unwrap());
    let mut changed = claim(record, &players);
    changed.duration_us = 253_402_300_799_999_999;
    assert_eq!(
        referee.verify(&request, &changed).unwrap_err().to_string(),
        "`duration_us` is 253402300799999999, and it must be at most 31536000000000: a year"
    );
    let mut changed = claim(record, &players);
    let search = changed.plies.iter_mut().filter_map(|ply| ply.search.as_mut()).nth(4);
    search.unwrap().limit_value -= 100;
    let fault = referee.verify(&request, &changed).unwrap_err().to_string();
    assert!(fault.contains("and the clock shows"), "{fault}");
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
        claim.plies[0].search = Some(claim.plies.last()?.search?);
        Some(())
    }),
    ("more nodes than allowed", |claim, ply, request| {
        let player = claim.plies[ply].player?;
        let Limit::Nodes(most) = request.limits[player] else { return None };
        counters(claim.plies[ply].search.as_mut()?).simulations = most + 1;
        counters(claim.plies[ply].search.as_mut()?).nodes = most + 1;
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

/// The ending by the rules of adjudication after these plies, derived from all of their searches at once.
fn adjudicated(rules: Adjudication, plies: &[MoveRecord], seats: usize) -> Option<&'static str> {
    let scores = |seat: usize| -> Vec<f64> {
        let own = plies.iter().filter(|mv| mv.seat == Some(seat)).filter_map(|mv| mv.search.as_ref());
        own.filter(|search| search.depth > 0).map(|search| search.value.number).collect()
    };
    let last = |seat: usize, moves: u32, holds: &dyn Fn(f64) -> bool| {
        let scores = scores(seat);
        scores.len() >= moves as usize && scores.iter().rev().take(moves as usize).all(|score| holds(*score))
    };
    let lost = |seat: usize, rule: Resign| {
        last(seat, rule.moves, &|score| score <= -rule.score)
            && (!rule.both || last(1 - seat, rule.moves, &|score| score >= rule.score))
    };
    if rules.resign.is_some_and(|rule| (0..seats).any(|seat| lost(seat, rule))) {
        return Some("adjudicated: resignation");
    }
    let level =
        |rule: Draw| (0..seats).all(|seat| last(seat, rule.moves, &|score| score.abs() <= rule.score));
    if rules.draw.is_some_and(|rule| plies.len() >= rule.after as usize && level(rule)) {
        return Some("adjudicated: draw");
    }
    let too_long = rules.max_plies.is_some_and(|most| plies.len() >= most as usize);
    too_long.then_some("adjudicated: ply limit")
}

#[test]
fn adjudication_follows_from_the_record() {
    let resign = |both| Adjudication {
        resign: Some(Resign { score: 0.5, moves: 2, both }),
        ..Adjudication::default()
    };
    let draw =
        Adjudication { draw: Some(Draw { score: 0.4, moves: 2, after: 9 }), ..Adjudication::default() };
    let short = Adjudication { max_plies: Some(12), ..Adjudication::default() };
    let all = Adjudication { resign: resign(true).resign, draw: draw.draw, max_plies: Some(40) };
    let mut endings = std::collections::BTreeMap::new();
    for (name, one, other) in [
        ("chess", "pvs", "greedy"),
        ("othello", "pvs", "alpha-beta"),
        ("connect-four", "pvs", "uct"),
        ("backgammon", "greedy", "star1"),
        ("virus:seats=4,size=6", "greedy", "paranoid"),
    ] {
        let game = GameSpec::parse(name).unwrap();
        let players = [player(&game, one), player(&game, other)];
        let mut arena = Arena::new(&game, &players, Environment::system()).unwrap();
        let referee = Arena::new(&game, &[], Environment::system()).unwrap();
        let seats = arena.seats();
        for rules in [resign(false), resign(true), draw, short, all] {
            if seats != 2 && rules.resign.is_some() {
                continue;
            }
            for number in 0..3 {
                for request in games_of(&arena, [Limit::Nodes(80), Limit::Nodes(120)], number) {
                    let ruled = GameRequest { adjudication: rules, ..request.clone() };
                    let record = arena.play(&ruled, &mut |_| ()).unwrap();
                    assert_eq!(
                        referee.verify(&ruled, &claim(&record, &players)),
                        Ok(()),
                        "{name}: {rules:?}"
                    );
                    let opening = request.opening.moves.split(' ').count();
                    for plies in opening..record.moves.len() {
                        let ending = adjudicated(rules, &record.moves[..plies], seats);
                        assert_eq!(ending, None, "{name}: {rules:?}: ply {plies}");
                    }
                    *endings.entry(record.ending.clone()).or_insert(0) += 1;
                    if !record.ending.starts_with("adjudicated") {
                        continue;
                    }
                    let ending = adjudicated(rules, &record.moves, seats);
                    assert_eq!(ending, Some(record.ending.as_str()), "{name}: {rules:?}");
                    let sum: i32 = record.payoffs.iter().sum();
                    match record.ending.as_str() {
                        "adjudicated: resignation" => assert_eq!(sum.abs() + record.payoffs[0].abs(), 1),
                        _ => assert!(record.payoffs.iter().all(|payoff| *payoff == record.payoffs[0])),
                    }
                    // A spec without the rule has no such ending, and one with it no longer game.
                    let fault = referee.verify(&request, &claim(&record, &players)).unwrap_err();
                    assert!(fault.reason.contains("it is not over"), "{fault}");
                    let whole = arena.play(&request, &mut |_| ()).unwrap();
                    let fault = referee.verify(&ruled, &claim(&whole, &players)).unwrap_err();
                    assert!(fault.reason.contains("the game ended before, adjudicated"), "{fault}");
                    assert_eq!(fault.ply, Some(record.moves.len()));
                    for other in ["adjudicated: draw", "adjudicated: resignation", "repetition"] {
                        let changed = Claim { ending: other, ..claim(&record, &players) };
                        assert_eq!(referee.verify(&ruled, &changed).is_ok(), other == record.ending);
                    }
                }
            }
        }
    }
    println!("{endings:?}");
    for ending in ["adjudicated: resignation", "adjudicated: draw", "adjudicated: ply limit"] {
        assert!(endings.contains_key(ending), "{endings:?}");
    }
}
