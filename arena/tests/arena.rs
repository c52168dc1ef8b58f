//! Games are reproducible, limits are kept, and invalid configurations are rejected with an error.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use agon_arena::algorithms::fitting;
use agon_arena::defaults::default_player;
use agon_arena::limit::{FACTORS, REFERENCE_SPEED, scaled, speed_factor};
use agon_arena::{
    Adjudication, Arena, Bout, Environment, GameRecord, GameRequest, LineEnd, Opening, PlayError,
    PlayerConfig, SeedPath,
};
use agon_games::{GAMES, GameSpec};
use agon_search::Limit;
use agon_search::clock::Clock;

fn game(text: &str) -> GameSpec {
    GameSpec::parse(text).unwrap()
}

fn player(spec: &GameSpec, text: &str) -> PlayerConfig {
    let toml =
        if text.contains('=') { text.to_string() } else { format!("search = {{ algorithm = \"{text}\" }}") };
    PlayerConfig::parse(spec, &toml).unwrap_or_else(|error| panic!("{toml}: {error}"))
}

/// Returns the record without times: the part that a replay must reproduce.
fn without_times(record: &GameRecord) -> GameRecord {
    let mut record = record.clone();
    record.time = Duration::ZERO;
    for search in record.moves.iter_mut().filter_map(|mv| mv.search.as_mut()) {
        search.time = Duration::ZERO;
        search.overshoot = Duration::ZERO;
        search.iterations.iter_mut().for_each(|iteration| iteration.time = Duration::ZERO);
    }
    record
}

/// Returns the games of a bout with a random opening of three plies.
fn games_of(arena: &Arena, players: usize, limit: Limit, number: u64) -> Vec<GameRequest> {
    let seed_path = SeedPath { run: 5, bout: number, game: 0 };
    let opening = Opening { position: None, moves: arena.random_opening(seed_path, 3).unwrap() };
    let players_by_seat = (0..arena.seats()).map(|seat| seat % players).collect();
    let bout = Bout { index: number, players: players_by_seat, opening, values: Vec::new() };
    bout.games(5, vec![limit; players], vec![None; players], Adjudication::default()).collect()
}

#[test]
fn random_keys_are_those_of_the_random_lines() {
    for info in GAMES {
        let arena = Arena::new(&GameSpec::parse(info.name).unwrap(), &[], Environment::system()).unwrap();
        for bout in 0..20 {
            let seed_path = SeedPath { run: 3, bout, game: 0 };
            for end in
                [LineEnd::Position { plies: 4 }, LineEnd::Decision { plies: 3 }, LineEnd::Turn { turn: 1 }]
            {
                let (line, found) = (arena.random_line(seed_path, end), arena.random_key(seed_path, end));
                let Ok(moves) = line else {
                    assert_eq!(found.err(), line.err());
                    continue;
                };
                let (found, opening) = (found.unwrap(), Opening { position: None, moves });
                assert_eq!(found.key, arena.decision_key(&opening).unwrap(), "{}: {opening:?}", info.name);
                assert!(found.plies >= opening.moves.split(' ').count() as u64 || opening.moves.is_empty());
            }
        }
    }
}

/// Pairs of algorithms play bouts twice, in another order and in another thread.
#[test]
fn games_are_reproducible() {
    let mut games = 0;
    for (name, nodes) in [
        ("tic-tac-toe", 300),
        ("connect-four", 300),
        ("kalah:holes=3,seeds=3", 200),
        ("othello", 60),
        ("checkers", 60),
        ("go:size=4", 40),
        ("nim", 200),
        ("backgammon", 60),
        ("pig:target=20", 60),
        ("rolit:seats=3", 60),
        ("virus:seats=4,size=5", 40),
    ] {
        let spec = game(name);
        let info = GAMES.iter().find(|info| info.name == spec.name()).unwrap();
        let algorithms: Vec<&str> =
            fitting(info, spec.parameters().seats()).map(|algorithm| algorithm.name).collect();
        for pair in algorithms.windows(2) {
            let players = [player(&spec, pair[0]), player(&spec, pair[1])];
            let play = |order: &[u64]| -> Vec<(u64, Vec<GameRecord>)> {
                let mut arena = Arena::new(&spec, &players, Environment::system()).unwrap();
                let mut played: Vec<(u64, Vec<GameRecord>)> = order
                    .iter()
                    .map(|&number| {
                        let games = games_of(&arena, 2, Limit::Nodes(nodes), number);
                        let record = |game| without_times(&arena.play(game, &mut |_| ()).unwrap());
                        (number, games.iter().map(record).collect())
                    })
                    .collect();
                played.sort_by_key(|(number, _)| *number);
                played
            };
            let first = play(&[0, 1]);
            let second = std::thread::scope(|scope| scope.spawn(|| play(&[1, 0])).join().unwrap());
            assert_eq!(first, second, "{name}, {pair:?}");
            games += first.iter().map(|(_, games)| games.len()).sum::<usize>();
        }
    }
    println!("{games} games played again");
}

#[test]
fn single_searches_are_reproducible_without_keep() {
    let spec = game("connect-four");
    let players = [
        player(&spec, r#"search = { algorithm = "pvs", keep = false }"#),
        player(&spec, r#"search = { algorithm = "uct", keep = false }"#),
    ];
    let mut arena = Arena::new(&spec, &players, Environment::system()).unwrap();
    let limit = Limit::Nodes(2_000);
    let request = games_of(&arena, 2, limit, 3).remove(0);
    let record = arena.play(&request, &mut |_| ()).unwrap();
    let mut checked = 0;
    for mv in &record.moves {
        let (Some(player), Some(search)) = (mv.player, &mv.search) else { continue };
        let before: Vec<&str> = record.moves[..mv.ply as usize].iter().map(|mv| mv.mv.as_str()).collect();
        let opening = Opening { position: None, moves: before.join(" ") };
        let seed = request.seed_path.ply_seed(mv.ply);
        let again = arena.search(player, &opening, limit, seed, &mut |_| ()).unwrap();
        assert_eq!((&again.mv, again.counters, again.value), (&search.mv, search.counters, search.value));
        checked += 1;
    }
    assert!(checked > 4);
}

#[test]
fn successive_searches_keep_what_a_game_keeps() {
    for name in ["connect-four", "backgammon", "virus:seats=3,size=5"] {
        let spec = game(name);
        let algorithms: &[&str] = if name == "connect-four" { &["pvs", "uct"] } else { &["uct"] };
        for algorithm in algorithms {
            let players = [player(&spec, algorithm), player(&spec, "random")];
            let mut arena = Arena::new(&spec, &players, Environment::system()).unwrap();
            let seats = (0..arena.seats()).map(|seat| seat % 2).collect();
            let request = GameRequest { seats, ..games_of(&arena, 2, Limit::Nodes(500), 3).remove(0) };
            for _ in 0..2 {
                let record = arena.play(&request, &mut |_| ()).unwrap();
                for mv in &record.moves {
                    let (Some(0), Some(search)) = (mv.player, &mv.search) else { continue };
                    let before: Vec<&str> =
                        record.moves[..mv.ply as usize].iter().map(|mv| mv.mv.as_str()).collect();
                    let line = Opening { position: None, moves: before.join(" ") };
                    let seed = request.seed_path.ply_seed(mv.ply);
                    let again = arena.search_next(0, &line, Limit::Nodes(500), seed, &mut |_| ()).unwrap();
                    assert_eq!(
                        (&again.mv, again.counters),
                        (&search.mv, search.counters),
                        "{name} {algorithm}"
                    );
                }
            }
        }
    }
}

/// A clock that advances by a fixed step at each reading.
struct Stepping {
    step: Duration,
    readings: AtomicU64,
}

impl Clock for Stepping {
    fn now(&self) -> Duration {
        self.step * self.readings.fetch_add(1, Ordering::Relaxed) as u32
    }
}

fn stepping(step: Duration) -> Environment {
    let clock = || Arc::new(Stepping { step, readings: AtomicU64::new(0) });
    Environment { wall: clock(), cpu: clock(), ..Environment::system() }
}

#[test]
fn limits_are_kept_and_zero_limits_give_a_legal_move() {
    for name in ["othello", "backgammon", "rolit:seats=4"] {
        let spec = game(name);
        let info = GAMES.iter().find(|info| info.name == spec.name()).unwrap();
        for algorithm in fitting(info, spec.parameters().seats()) {
            let mut arena =
                Arena::new(&spec, &[player(&spec, algorithm.name)], stepping(Duration::from_millis(1)))
                    .unwrap();
            let opening = Opening {
                position: None,
                moves: arena.random_decision(SeedPath { run: 1, bout: 2, game: 0 }, 6).unwrap(),
            };
            let mut search = |limit| arena.search(0, &opening, limit, 1, &mut |_| ());
            for limit in [
                Limit::Nodes(0),
                Limit::Nodes(1),
                Limit::Nodes(777),
                Limit::Wall(Duration::ZERO),
                Limit::Cpu(Duration::from_millis(20)),
                Limit::Clock { remaining: Duration::ZERO, increment: Duration::ZERO },
                Limit::Clock { remaining: Duration::from_secs(2), increment: Duration::from_millis(10) },
                Limit::Depth(0),
                Limit::Depth(1),
            ] {
                let record = match (algorithm.has_depth(), limit) {
                    (false, Limit::Depth(_)) => {
                        assert!(matches!(search(limit), Err(PlayError::Limit(_))));
                        continue;
                    }
                    _ => search(limit).unwrap(),
                };
                let mut legal = arena_legal(&spec, &opening.moves);
                legal.retain(|word| *word == record.mv);
                assert_eq!(legal.len(), 1, "{name}, {}, {limit:?}: {}", algorithm.name, record.mv);
                if let Limit::Nodes(limit) = limit {
                    let counters = record.counters;
                    let spent = if algorithm.has_depth() { counters.nodes } else { counters.simulations };
                    assert!(spent <= limit.max(1), "{name}, {}: {spent} of {limit}", algorithm.name);
                }
                if let Limit::Depth(depth) = limit {
                    assert!(record.depth <= depth.max(1));
                }
                if let Some(time) = limit.time() {
                    assert!(record.time <= time + Duration::from_millis(200), "{name}, {}", algorithm.name);
                }
            }
        }
    }
}

fn arena_legal(spec: &GameSpec, moves: &str) -> Vec<String> {
    struct Legal<'a>(&'a str);
    impl agon_games::UniformVisitor for Legal<'_> {
        type Output = Vec<String>;
        fn visit<G: agon_games::Complete>(self, parameters: &agon_games::Parameters) -> Vec<String> {
            let mut position = G::initial(parameters).unwrap();
            agon_games::line::follow(&mut position, self.0).unwrap();
            agon_games::line::legal_texts(&position)
        }
    }
    spec.visit_any(Legal(moves))
}

#[test]
fn running_out_of_time_loses() {
    let spec = game("othello");
    let players = [player(&spec, "pvs"), player(&spec, "random")];
    // Each reading takes a second; the search reads the clock a few times per move, the random player hardly.
    let mut arena = Arena::new(&spec, &players, stepping(Duration::from_secs(1))).unwrap();
    let limits = vec![
        Limit::Clock { remaining: Duration::from_secs(30), increment: Duration::ZERO },
        Limit::Clock { remaining: Duration::from_secs(100_000), increment: Duration::ZERO },
    ];
    let seed_path = SeedPath { run: 1, bout: 0, game: 0 };
    let engines = vec![None; 2];
    let adjudication = Adjudication::default();
    let request = GameRequest {
        opening: Opening::default(),
        seats: vec![0, 1],
        limits,
        engines,
        adjudication,
        seed_path,
    };
    let record = arena.play(&request, &mut |_| ()).unwrap();
    assert_eq!((record.ending.as_str(), &record.payoffs[..]), ("time forfeit", &[-1, 1][..]));
}

#[test]
fn interrupt_ends_a_game() {
    let spec = game("othello");
    let environment = Environment::system();
    let control = Arc::clone(&environment.control);
    let mut arena = Arena::new(&spec, &[player(&spec, "pvs")], environment).unwrap();
    let request = GameRequest {
        opening: Opening::default(),
        seats: vec![0, 0],
        limits: vec![Limit::Nodes(100)],
        engines: vec![None],
        adjudication: Adjudication::default(),
        seed_path: SeedPath { run: 1, bout: 0, game: 0 },
    };
    let mut plies = 0;
    let outcome = arena.play(&request, &mut |_| {
        plies += 1;
        if plies == 5 {
            control.interrupt();
        }
    });
    assert_eq!((outcome, plies), (Err(PlayError::Interrupted), 5));
}

#[test]
fn rejects_invalid_configurations_with_the_allowed_values() {
    for (name, text, expected) in [
        ("othello", "", "a player needs search = { algorithm = ... }; for othello: random, greedy, minimax"),
        ("othello", "search = 3", "`search` of a player must be a table"),
        ("othello", "search = {}", "a player needs search"),
        ("othello", "search = { algorithm = 3 }", "`algorithm` must be a word"),
        ("othello", "search = { algorithm = \"pvss\" }", "there is no algorithm `pvss`: did you mean `pvs`?"),
        (
            "othello",
            "search = { algorithm = \"star1\" }",
            "`star1` does not fit othello: it searches games with chance",
        ),
        (
            "rolit:seats=4",
            "search = { algorithm = \"alpha-beta\" }",
            "what fits: random, greedy, paranoid, max-n",
        ),
        ("backgammon", "search = { algorithm = \"pvs\" }", "does not fit backgammon"),
        ("othello", "search = { algorithm = \"pvs\", c = 1 }", "search `pvs` has no option `c`"),
        ("othello", "search = { algorithm = \"random\", c = 1 }", "search `random` has no option `c`"),
        (
            "othello",
            "search = { algorithm = \"pvs\", table_mb = -1 }",
            "`table_mb` must be a whole number from 0 to 4096",
        ),
        ("othello", "search = { algorithm = \"pvs\", table_mb = 1.5 }", "`table_mb` must be a whole number"),
        (
            "othello",
            "search = { algorithm = \"mtd\", table_mb = 0 }",
            "`table_mb` must be a whole number from 1",
        ),
        (
            "othello",
            "search = { algorithm = \"pvs\", order = [\"tabel\"] }",
            "`order` must be a list of any of \"table\"",
        ),
        ("othello", "search = { algorithm = \"pvs\", order = [\"pv\", \"pv\"] }", "each at most once"),
        (
            "othello",
            "search = { algorithm = \"pvs\", table_mb = 0, order = [\"table\"] }",
            "the stage `table` needs a table",
        ),
        ("othello", "search = { algorithm = \"pvs\", quiescence = 1 }", "`quiescence` must be true or false"),
        (
            "tic-tac-toe",
            "search = { algorithm = \"pvs\", quiescence = true }",
            "tic-tac-toe has no noisy moves",
        ),
        (
            "othello",
            "search = { algorithm = \"pvs\", null_move = true }",
            "in othello passing can be better than every move, so that a null move proves nothing; leave `null_move` out, which is for tic-tac-toe, chess, chinese-checkers",
        ),
        ("othello", "search = { algorithm = \"uct\", c = nan }", "`c` must be a number from 0 to 1000"),
        ("othello", "search = { algorithm = \"uct\", c = -1 }", "`c` must be a number from 0 to 1000"),
        (
            "rolit:seats=4",
            "search = { algorithm = \"uct\", solver = true }",
            "the solver proves duels without chance only",
        ),
        (
            "rolit:seats=4",
            "search = { algorithm = \"max-n\", pruning = true }",
            "write values = \"shares\" beside it",
        ),
        (
            "rolit:seats=4",
            "search = { algorithm = \"max-n\", pruning = true, values = \"shares\", order = [\"history\"] }",
            "static order",
        ),
        (
            "othello",
            "search = { algorithm = \"random\" }\nevaluation = { discs = 1 }",
            "`random` evaluates nothing",
        ),
        ("othello", "search = { algorithm = \"pvs\" }\nevaluation = { disks = 1 }", "did you mean `discs`?"),
        (
            "othello",
            "search = { algorithm = \"pvs\" }\nevaluation = { discs = \"1\" }",
            "the weight of `discs` must be 0 or a number from 0.000001 to 1000000",
        ),
        (
            "othello",
            "search = { algorithm = \"pvs\" }\nevaluation = { discs = 1e300 }",
            "the weight of `discs` must be 0 or a number from 0.000001 to 1000000",
        ),
        (
            "othello",
            "search = { algorithm = \"pvs\" }\nevaluation = { discs = 1e-9 }",
            "the weight of `discs` must be 0 or",
        ),
        (
            "othello",
            "search = { algorithm = \"uct\" }\nevaluation = { discs = 1 }",
            "give `rollout_plies` beside",
        ),
        ("othello", "search = { algorithm = \"uct\", rollout_scale = 2 }", "give `rollout_plies` beside"),
        ("kalah", "search = { algorithm = \"best-reply\" }", "a seat may move several times in a row"),
        (
            "pig",
            "search = { algorithm = \"uct\", rollout_plies = 4, rollout_scale = 2 }",
            "is an expected payoff and needs no scale",
        ),
        ("othello", "search = { algorithm = \"pvs\", table_mb = 0, keep = true }", "`keep` needs a table"),
        ("othello", "serch = { algorithm = \"pvs\" }", "did you mean `search`?"),
        ("othello", "search = { algorithm = ", "this is not TOML"),
    ] {
        let error = PlayerConfig::parse(&game(name), text).unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
}

#[test]
fn null_move_is_allowed_for_the_games_that_its_help_names() {
    for info in GAMES.iter().filter(|info| !info.chance) {
        let spec = game(&if info.seats.len() > 1 {
            format!("{}:seats=2", info.name)
        } else {
            info.name.to_string()
        });
        for algorithm in fitting(info, 2) {
            let Some(option) = algorithm.options.iter().find(|option| option.name == "null_move") else {
                continue;
            };
            let text = format!("search = {{ algorithm = \"{}\", null_move = true }}", algorithm.name);
            assert_eq!(PlayerConfig::parse(&spec, &text).is_ok(), info.passing_hurts, "{}", info.name);
            let mut named = option.about.split([' ', ',']);
            assert_eq!(named.any(|word| word == info.name), info.passing_hurts, "{}", info.name);
        }
    }
}

#[test]
fn all_problems_of_a_player_are_reported_at_once() {
    let text = "serch = 1\nsearch = { algorithm = \"mtd\", driver = \"g\", order = [\"pv\", \"pvs\"], keep = 1 }\n\
                evaluation = { disks = 1, discs = \"x\" }";
    let error = PlayerConfig::parse(&game("othello"), text).unwrap_err();
    let mut places: Vec<_> = error.problems.iter().map(|problem| problem.place(text).unwrap().0).collect();
    places.sort_unstable();
    assert_eq!(places, [1, 2, 2, 2, 3, 3], "{error}");
    for expected in [
        "did you mean `search`?",
        "search `mtd`: `driver` must be one of \"f\", \"sss\", \"dual\", \"bisection\"",
        "`order` must be a list of any of",
        "`keep` must be true or false",
        "did you mean `discs`?",
        "the weight of `discs` must be 0 or",
    ] {
        assert!(error.to_string().contains(expected), "{error} and not: {expected}");
    }
}

#[test]
fn errors_have_a_line_and_column() {
    let text = "search = { algorithm = \"pvs\" }\nevaluation = { discs = 1,\n  disks = 2 }";
    let error = PlayerConfig::parse(&game("othello"), text).unwrap_err();
    assert_eq!(error.problems[0].place(text), Some((3, 3)));
}

#[test]
fn time_limits_scale_inversely_with_speed() {
    assert_eq!(speed_factor(REFERENCE_SPEED), 1.0);
    assert_eq!(speed_factor(2.0 * REFERENCE_SPEED), 0.5);
    assert_eq!(speed_factor(REFERENCE_SPEED / 3.0), 3.0);
    for speed in [0.0, 1.0, 1e3, 1e6, 1e9, f64::MAX] {
        assert!(FACTORS.contains(&speed_factor(speed)), "{speed}");
    }
    let time = Duration::from_millis(30);
    assert_eq!(scaled(Limit::Wall(time), 0.5), Limit::Wall(Duration::from_millis(15)));
    assert_eq!(scaled(Limit::Cpu(time), 2.0), Limit::Cpu(Duration::from_millis(60)));
    let clock =
        |ms| Limit::Clock { remaining: Duration::from_millis(ms), increment: Duration::from_millis(ms / 10) };
    assert_eq!(scaled(clock(100), 1.5), clock(150));
    for limit in [Limit::Nodes(7), Limit::Depth(3)] {
        assert_eq!(scaled(limit, 0.5), limit, "only time limits are scaled");
    }
}

/// The queen must not take a pawn that another pawn protects, even one ply deep.
#[test]
fn default_chess_player_keeps_its_queen() {
    let spec = game("chess");
    let config = PlayerConfig::parse(&spec, default_player(&spec)).unwrap();
    let mut arena = Arena::new(&spec, &[config], Environment::system()).unwrap();
    let position = Some("4k3/8/2p5/3p4/8/8/3Q4/4K3 w - - 0 1".to_string());
    let opening = Opening { position, moves: String::new() };
    for depth in 1..=4 {
        let record = arena.search(0, &opening, Limit::Depth(depth), 1, &mut |_| ()).unwrap();
        assert_ne!(record.mv, "d2d5", "depth {depth}");
    }
}

#[test]
fn options_of_playouts_and_quiescence_take_effect() {
    let search = |name: &str, toml: &str, limit| {
        let spec = game(name);
        let mut arena = Arena::new(&spec, &[player(&spec, toml)], Environment::system()).unwrap();
        arena.search(0, &Opening::default(), limit, 1, &mut |_| ()).unwrap().counters
    };
    let flat = r#"search = { algorithm = "monte-carlo", playouts_per_move = 50 }"#;
    assert_eq!(search("tic-tac-toe", flat, Limit::Nodes(10_000)).simulations, 9 * 50);
    let tree = |playouts| format!("search = {{ algorithm = \"uct\", playouts = {playouts} }}");
    let nodes = |playouts| search("othello", &tree(playouts), Limit::Nodes(800)).tree_nodes;
    assert!(nodes(8) < nodes(1));
    for (toml, quiet) in [("", false), (", quiescence = true", true)] {
        let toml = format!("search = {{ algorithm = \"minimax\"{toml} }}");
        assert_eq!(search("chess", &toml, Limit::Depth(2)).quiescence_nodes > 0, quiet);
    }
}
