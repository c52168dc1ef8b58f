//! Openings of a spec from files: the extension determines the format, and errors name the line.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

use agon_arena::spec::{Openings, Plan, Positions};
use agon_arena::{Opening, Spec, SpecError, SpecSource};

fn read(game: &str, openings: &str, file: &str, content: &str) -> Result<Spec, SpecError> {
    let text = format!(
        "name = \"x\"\ngame = \"{game}\"\nlimit = {{ nodes = 10 }}\nopenings = {openings}\n\
         [tournament]\nformat = \"round-robin\"\nbouts = 1\n\
         [[player]]\nname = \"a\"\nsearch = {{ algorithm = \"uct\" }}\n\
         [[player]]\nname = \"b\"\nsearch = {{ algorithm = \"uct\" }}\n"
    );
    let files = [(file.to_string(), content.to_string())].into_iter().collect();
    Spec::parse(&SpecSource { text, files })
}

fn openings(game: &str, openings: &str, file: &str, content: &str) -> Vec<Opening> {
    match read(game, openings, file, content).unwrap().openings {
        Openings::Lines(lines) => lines,
        other => panic!("{other:?}"),
    }
}

fn opening(position: Option<&str>, moves: &str) -> Opening {
    Opening { position: position.map(str::to_string), moves: moves.to_string() }
}

const ROOK: &str = "4k3/8/8/8/8/8/8/4K2R w K - 0 1";

#[test]
fn lines_are_rewritten_in_the_notation_of_the_game() {
    // Records use this notation, and the referee compares them.
    assert_eq!(
        openings("chess", "{ file = \"x\" }", "x", "e4 c7c5 Nf3\n[4k3/8/8/8/8/8/8/4K2R w K - 0 1] O-O\n"),
        [opening(None, "e2e4 c7c5 g1f3"), opening(Some(ROOK), "e1g1")]
    );
    assert_eq!(openings("go", "{ file = \"x\" }", "x", "c3 PASS\n"), [opening(None, "C3 pass")]);
}

#[test]
fn reads_epd_and_pgn_by_extension() {
    let epd = "4k3/8/8/8/8/8/8/4K2R w K - id \"rook\"; fmvn 7;\n";
    let moved = "4k3/8/8/8/8/8/8/4K2R w K - 0 7";
    assert_eq!(openings("chess", "{ file = \"x.epd\" }", "x.epd", epd), [opening(Some(moved), "")]);
    let games = format!("[White \"a\"]\n\n1. e4 e5 2. Nf3 *\n\n[FEN \"{ROOK}\"]\n\n1. O-O Ke7 *\n");
    assert_eq!(
        openings("chess", "{ file = \"x.PGN\" }", "x.PGN", &games),
        [opening(None, "e2e4 e7e5 g1f3"), opening(Some(ROOK), "e1g1 e8e7")]
    );
    assert_eq!(
        openings("chess", "{ file = \"x.pgn\", plies = 1 }", "x.pgn", &games),
        [opening(None, "e2e4"), opening(Some(ROOK), "e1g1")]
    );
}

#[test]
fn probes_read_positions_from_files() {
    let text = "name = \"x\"\ngame = \"chess\"\nlimit = { nodes = 10 }\n\
                [probe]\npositions = { file = \"x.pgn\", plies = 2 }\n\
                [[player]]\nname = \"a\"\nsearch = { algorithm = \"pvs\" }\n";
    assert_eq!(SpecSource::needed_files(text).unwrap(), ["x.pgn"]);
    let files = [("x.pgn".to_string(), "1. d4 d5 2. c4".to_string())].into_iter().collect();
    let spec = Spec::parse(&SpecSource { text: text.to_string(), files }).unwrap();
    assert_eq!(spec.plan, Plan::Probe(Positions::Lines(vec![opening(None, "d2d4 d7d5")])));
}

/// Reads a probe of recorded games.
fn recorded(positions: &str, content: &str) -> Result<Spec, SpecError> {
    let text = format!(
        "name = \"x\"\ngame = {{ name = \"virus\", seats = 4, size = 5 }}\nlimit = {{ nodes = 10 }}\n\
         [probe]\npositions = {positions}\n[[player]]\nname = \"a\"\nsearch = {{ algorithm = \"best-reply\" }}\n"
    );
    let files = [("x.games".to_string(), content.to_string())].into_iter().collect();
    Spec::parse(&SpecSource { text, files })
}

/// Two games of virus with the hero in the first and in the third seat.
const GAMES: &str = "0.0\thero r1 r2 r3\t1 0 0 0\tply limit\t50\tb1 e4 e2 b5 b3 d5 e4 b4 c4\n\
                     0.1\tr2 r3 hero r1\t0 0 1 0\tply limit\t50\tb1 d5 d1 b5 c1 c5 c2 c4 c1 e4 d3\n";

#[test]
fn probes_read_the_turns_of_a_player_in_recorded_games() {
    let positions = "{ file = \"x.games\", player = \"hero\", turns = 2 }";
    let spec = recorded(positions, GAMES).unwrap();
    let lines = ["", "b1 e4 e2 b5", "b1 d5", "b1 d5 d1 b5 c1 c5"].map(|moves| opening(None, moves)).to_vec();
    let expected = Positions::Recorded { lines, turns: 2 };
    assert_eq!(expected.positions_per_game(), 2);
    assert_eq!(spec.plan, Plan::Probe(expected));

    let positions = "{ file = \"x.games\", player = \"hero\", turns = 1, after = 2 }";
    let spec = recorded(positions, GAMES).unwrap();
    let lines =
        ["b1 e4 e2 b5 b3 d5 e4 b4", "b1 d5 d1 b5 c1 c5 c2 c4 c1 e4"].map(|moves| opening(None, moves));
    assert_eq!(spec.plan, Plan::Probe(Positions::Recorded { lines: lines.to_vec(), turns: 1 }));
}

#[test]
fn recorded_games_that_do_not_fit_are_rejected_by_line() {
    for (player, turns, content, expected) in [
        (
            "hero",
            4,
            GAMES,
            "line 1: `hero` has 3 turns in this game, not 4; ask for fewer, or leave the game out",
        ),
        ("nobody", 1, GAMES, "line 2: `nobody` is not among the players r2, r3, hero, r1"),
        ("hero", 1, "b1 e4", "line 1: a game has six parts separated by tabs, as `agon games --export text`"),
        ("hero", 2, "0\thero r1 r2 r3\t\t\t\tb1 b1", "line 1: ply 2: `b1` is not a legal move"),
        ("hero", 1, "# no game\n", "there is no game in `x.games`; give a file with games"),
    ] {
        let positions = format!("{{ file = \"x.games\", player = \"{player}\", turns = {turns} }}");
        let error = recorded(&positions, content).unwrap_err().to_string();
        assert!(error.contains(expected), "{expected}: {error}");
    }
    let error = recorded("{ file = \"y\", player = \"hero\", turns = 1 }", "").unwrap_err().to_string();
    assert!(error.contains("the file `y` was not found"), "{error}");
}

#[test]
fn recorded_turns_have_bounded_lines() {
    let text = "name = \"x\"\ngame = { name = \"pig\", target = 1000 }\nlimit = { nodes = 10 }\n\
                [probe]\npositions = { file = \"x\", player = \"hero\", turns = 1000, after = 1000 }\n\
                [[player]]\nname = \"a\"\nsearch = { algorithm = \"expectiminimax\" }\n";
    let read = |games: usize| {
        let game = format!("0.0\thero r1\t1 0\twon\t50\t{}\n", "roll 1 ".repeat(4000));
        let files = [("x".to_string(), game.repeat(games))].into_iter().collect();
        Spec::parse(&SpecSource { text: text.to_string(), files })
    };
    assert!(read(3).is_ok());
    let error = read(4).unwrap_err().to_string();
    assert!(
        error.contains("line 4: the moves before all turns up to this game are more than 64 MB"),
        "{error}"
    );
}

#[test]
fn errors_name_file_line_and_remedy() {
    let mate = "1. e4 *\n\n[Event \"x\"]\n\n1. f3 e5 2. g4 Qh4# 0-1\n";
    for (game, table, file, content, line, expected) in [
        ("chess", "{ file = \"x.epd\" }", "x.epd", "# a\n4k3 w -", Some(2), "the position has 3 fields"),
        ("chess", "{ file = \"x.epd\" }", "x.epd", "4k3/8/8/8/8/8/8/4K3 w - -", Some(1), "nothing to search"),
        ("chess", "{ file = \"x.epd\" }", "x.epd", "\n", Some(1), "there is no position in it; "),
        (
            "chess",
            "{ file = \"x.pgn\" }",
            "x.pgn",
            "1. e4\ne6 e7",
            Some(2),
            "ply 3: `e7` is not a legal move",
        ),
        ("chess", "{ file = \"x.pgn\" }", "x.pgn", mate, Some(3), "lead to its end; cut them with `plies`"),
        ("chess", "{ file = \"x.pgn\" }", "x.pgn", "", Some(1), "there is no game in it; "),
        ("chess", "{ file = \"x\" }", "x", "e2e4\ne2e5", Some(2), "ply 1: `e2e5` is not a legal move"),
        (
            "othello",
            "{ file = \"x.pgn\" }",
            "x.pgn",
            "",
            None,
            "`x.pgn` has the extension of PGN, a format for chess only",
        ),
        ("chess", "{ file = \"x.epd\", plies = 3 }", "x.epd", "", None, "`plies` is only for PGN"),
        (
            "chess",
            "{ file = \"x.pgn\", plies = 0 }",
            "x.pgn",
            "",
            None,
            "must be a whole number from 1 to 1000",
        ),
        ("chess", "{ random_plies = 4, plies = 3 }", "x", "", None, "`plies`"),
        ("chess", "{ file = \"y.pgn\" }", "x.pgn", "", None, "the file `y.pgn` was not found"),
    ] {
        let error = read(game, table, file, content).unwrap_err();
        let [problem] = &error.problems[..] else { panic!("one problem: {error}") };
        let place = problem.file.as_deref().zip(problem.line).map(|(_, line)| line);
        assert_eq!((place, problem.file.as_deref()), (line, line.map(|_| file)), "{error}");
        assert!(problem.reason.contains(expected), "{error}");
    }
}

/// A Polyglot book with 1. e4 and 1. d4, a character for each byte.
fn polyglot_book() -> String {
    let key = 0x463b_9618_1691_fc9c_u64.to_be_bytes();
    let entry = |mv: [u8; 2]| [&key[..], &mv, &[0, 1, 0, 0, 0, 0]].concat();
    [entry([0x03, 0x1c]), entry([0x02, 0xdb])].concat().into_iter().map(char::from).collect()
}

#[test]
fn reads_polyglot_books() {
    let read_book = |openings: &str| read("chess", openings, "x.bin", &polyglot_book());
    let lines = openings("chess", "{ file = \"x.bin\", plies = 4 }", "x.bin", &polyglot_book());
    assert_eq!(lines, [opening(None, "d2d4"), opening(None, "e2e4")]);
    let error = read_book("{ file = \"x.bin\" }").unwrap_err().to_string();
    assert!(error.contains("line 4: openings needs `plies`"), "{error}");
    let error = read("othello", "{ file = \"x.bin\", plies = 4 }", "x.bin", "").unwrap_err().to_string();
    assert!(error.contains("the extension of Polyglot books, a format for chess only"), "{error}");
}

#[test]
fn random_order_is_a_shuffle_by_the_seed() {
    let content: String = ('a'..='h').map(|file| format!("{file}2{file}3\n{file}2{file}4\n")).collect();
    let lines = |order: &str| {
        let text = format!("{{ file = \"x\"{order} }}");
        openings("chess", &text, "x", &content)
    };
    let sequential = lines("");
    assert_eq!(lines(", order = \"sequential\""), sequential);
    let mut random = lines(", order = \"random\"");
    assert_eq!(lines(", order = \"random\""), random);
    let other = lines(", order = \"random\" }\nseed = 2 #");
    assert!(random != sequential && other != random && other != sequential);
    let sorted = |lines: &[Opening]| {
        let mut moves: Vec<String> = lines.iter().map(|line| line.moves.clone()).collect();
        moves.sort();
        moves
    };
    random.reverse();
    assert_eq!(sorted(&random), sorted(&sequential));
    let error = read("chess", "{ file = \"x\", order = \"rnd\" }", "x", "e2e4").unwrap_err().to_string();
    assert!(error.contains("`order` of openings must be one of \"sequential\", \"random\""), "{error}");
}
