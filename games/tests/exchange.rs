//! Formats of other programs: written games read back, and their format is stable.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::time::Duration;

use agon_games::checkers::Checkers;
use agon_games::chess::Chess;
use agon_games::exchange::{
    Format, GamePlayer, MoveValue, Ply, ReadError, ScoreSheet, SearchSummary, Start, UtcDateTime, WriteError,
    Writer, names, pgn,
};
use agon_games::go::Go;
use agon_games::line::follow;
use agon_games::random::{Random, below, seeded};
use agon_games::{Complete, GameSpec, Notation, Parameters, Setup, Turn, UniformVisitor};
use expect_test::expect;

/// A random game: its first position and its moves.
struct Played {
    position: Option<String>,
    moves: Vec<String>,
}

/// Plays at random and omits the first plies, so that the game begins with a later position.
struct PlayRandomly<'a> {
    random: &'a mut Random,
    forgotten: usize,
}

impl UniformVisitor for PlayRandomly<'_> {
    type Output = Played;

    fn visit<G: Complete>(self, parameters: &Parameters) -> Played {
        let mut position = G::initial(parameters).unwrap();
        let mut scratch = Vec::new();
        let mut played = Played { position: None, moves: Vec::new() };
        while position.turn() != Turn::Over {
            if played.position.is_none() && played.moves.len() == self.forgotten && self.forgotten > 0 {
                played = Played { position: Some(position.position()), moves: Vec::new() };
                // The text has no history.
                position = G::from_position(parameters, played.position.as_ref().unwrap()).unwrap();
            }
            let mv = position.sample(self.random, &mut scratch);
            played.moves.push(position.move_text(mv));
            position.play(mv);
        }
        played
    }
}

fn sheet<'a>(played: &'a Played, book: usize, payoffs: [i32; 2], ending: &'a str) -> ScoreSheet<'a> {
    let search = |index: usize| SearchSummary {
        value: match index % 4 {
            0 => MoveValue::Number(0.3512 * index as f64),
            1 => MoveValue::Number(-0.004),
            2 => MoveValue::Win(5),
            _ => MoveValue::Loss(4),
        },
        depth: index as u16 % 20,
        nodes: 1000 * index as u64,
        simulations: if index.is_multiple_of(2) { 0 } else { 60 },
        time: Duration::from_millis(250),
    };
    let seat = |player, payoff| GamePlayer { player, limit: "nodes=2000", time_control: "-", payoff };
    ScoreSheet {
        event: "ladder-1a2b3c4d",
        round: "12.1",
        started: UtcDateTime::from_unix_microseconds(1_700_000_000_000_000),
        seats: vec![seat("first", payoffs[0]), seat("second", payoffs[1])],
        position: played.position.as_deref(),
        plies: played
            .moves
            .iter()
            .enumerate()
            .map(|(index, mv)| Ply { mv, search: (index >= book).then(|| search(index)) })
            .collect(),
        ending,
        forfeit: false,
    }
}

fn write(format: Format, game: &str, sheet: &ScoreSheet<'_>) -> String {
    let mut text = String::new();
    Writer::new(format, &GameSpec::parse(game).unwrap()).unwrap().write(sheet, &mut text).unwrap();
    text
}

fn random_games(game: &str, count: usize) -> Vec<Played> {
    let spec = GameSpec::parse(game).unwrap();
    let mut random = seeded(3);
    (0..count)
        .map(|_| {
            let forgotten = below(&mut random, 12);
            spec.visit_any(PlayRandomly { random: &mut random, forgotten })
        })
        .collect()
}

/// Returns the moves of PGN and PDN, without tags, comments, numbers and the result.
fn movetext(text: &str) -> Vec<String> {
    let (_, moves) = text.split_once("\n\n").unwrap();
    let mut plain = String::new();
    let mut comment = false;
    for c in moves.chars() {
        comment |= c == '{';
        if !comment {
            plain.push(c);
        }
        comment &= c != '}';
    }
    let mut words: Vec<String> =
        plain.split_whitespace().filter(|word| !word.ends_with('.')).map(str::to_string).collect();
    words.pop();
    words
}

#[test]
fn pgn_reads_back_as_openings() {
    let games = random_games("chess", 30);
    let mut text = String::new();
    for played in &games {
        text.push_str(&write(Format::Pgn, "chess", &sheet(played, 4, [0, 0], "a draw")));
    }
    assert!(text.lines().all(|line| line.len() < 80));
    let parameters = Parameters::defaults(Chess::PARAMETERS);
    for plies in [None, Some(7)] {
        let read: Vec<Start> = pgn::starts(&parameters, &text, plies).collect::<Result<_, _>>().unwrap();
        assert_eq!(read.len(), games.len());
        for (start, played) in read.iter().zip(&games) {
            let wanted = plies.unwrap_or(usize::MAX).min(played.moves.len());
            assert_eq!(start.moves, played.moves[..wanted].join(" "));
            assert_eq!(start.position, played.position);
            assert!(text.lines().nth(start.line - 1).unwrap().starts_with("[Event "));
        }
    }
}

#[test]
fn pdn_reads_back() {
    let parameters = Parameters::defaults(Checkers::PARAMETERS);
    let mut short = 0;
    for played in random_games("checkers", 60) {
        let text = write(Format::Pdn, "checkers", &sheet(&played, 2, [1, -1], "no move left"));
        let mut position = match &played.position {
            Some(text) => Checkers::from_position(&parameters, text).unwrap(),
            None => Checkers::initial(&parameters).unwrap(),
        };
        let words = movetext(&text);
        assert_eq!(words.len(), played.moves.len());
        for (word, mv) in words.iter().zip(&played.moves) {
            let read = agon_games::Notation::parse_move(&position, word).unwrap();
            assert_eq!(position.move_text(read), *mv, "{word}");
            short += usize::from(word.len() < mv.len());
            follow(&mut position, word).unwrap();
        }
    }
    assert!(short > 0, "no capture was shortened");
}

#[test]
fn sgf_reads_back() {
    for game in ["go", "go:size=19", "go:size=5,komi=0"] {
        let spec = GameSpec::parse(game).unwrap();
        let size = spec.parameters().integer("size") as u8;
        for played in random_games(game, 3) {
            let text = write(Format::Sgf, game, &sheet(&played, 2, [1, -1], "two passes"));
            let moves: Vec<String> = text
                .lines()
                .filter_map(|line| line.strip_prefix(";B[").or(line.strip_prefix(";W[")))
                .map(|rest| match rest.split_once(']').unwrap().0.as_bytes() {
                    [] => "pass".to_string(),
                    [column, row] => {
                        let column = b"ABCDEFGHJKLMNOPQRST"[usize::from(column - b'a')];
                        format!("{}{}", char::from(column), size - (row - b'a'))
                    }
                    other => panic!("{other:?}"),
                })
                .collect();
            assert_eq!(moves, played.moves);
        }
    }
}

#[test]
fn text_lines_read_back_as_openings() {
    for game in ["chess", "backgammon", "virus:seats=4,size=6", "pig", "go:size=5"] {
        for played in random_games(game, 3) {
            let text = write(Format::Text, game, &sheet(&played, 0, [1, -1], "an end"));
            let fields: Vec<&str> = text.trim_end_matches('\n').split('\t').collect();
            let [round, players, payoffs, ending, plies, line] = fields[..] else { panic!("{text}") };
            assert_eq!([round, players, payoffs, ending], ["12.1", "first second", "1 -1", "an end"]);
            assert_eq!(plies, played.moves.len().to_string());
            let expected = match &played.position {
                Some(position) => format!("[{position}] {}", played.moves.join(" ")),
                None => played.moves.join(" "),
            };
            assert_eq!(line, expected);
        }
    }
}

fn played(position: Option<&str>, line: &str) -> Played {
    let moves = line.split(' ').map(str::to_string).collect();
    Played { position: position.map(str::to_string), moves }
}

#[test]
fn pgn_format_is_stable() {
    let game = played(None, "f2f3 e7e5 g2g4 d8h4");
    expect![[r#"
        [Event "ladder-1a2b3c4d"]
        [Site "?"]
        [Date "2023.11.14"]
        [Round "12.1"]
        [White "first"]
        [Black "second"]
        [Result "0-1"]
        [PlyCount "4"]
        [UTCDate "2023.11.14"]
        [UTCTime "22:13:20"]
        [TimeControl "-"]
        [WhiteLimit "nodes=2000"]
        [BlackLimit "nodes=2000"]
        [Termination "normal"]

        1. f3 {book} 1... e5 {0.00/1 0.250s n=1000} 2. g4 {+M5/2 0.250s n=2000} 2...
        Qh4# {-M4/3 0.250s n=3000, checkmate} 0-1

    "#]]
    .assert_eq(&write(Format::Pgn, "chess", &sheet(&game, 1, [-1, 1], "checkmate")));
    let game = played(Some("4k3/8/8/8/8/8/8/4K2R b K - 3 40"), "e8e7 e1g1");
    let mut late = sheet(&game, 0, [-1, 1], "time forfeit");
    late.forfeit = true;
    late.seats[1].time_control = "10+0.1";
    late.seats[1].limit = "clock_ms=10000,increment_ms=100";
    expect![[r#"
        [Event "ladder-1a2b3c4d"]
        [Site "?"]
        [Date "2023.11.14"]
        [Round "12.1"]
        [White "first"]
        [Black "second"]
        [Result "0-1"]
        [SetUp "1"]
        [FEN "4k3/8/8/8/8/8/8/4K2R b K - 3 40"]
        [PlyCount "2"]
        [UTCDate "2023.11.14"]
        [UTCTime "22:13:20"]
        [WhiteTimeControl "-"]
        [BlackTimeControl "10+0.1"]
        [WhiteLimit "nodes=2000"]
        [BlackLimit "clock_ms=10000,increment_ms=100"]
        [Termination "time forfeit"]

        40... Ke7 {0.00/0 0.250s n=0} 41. O-O {0.00/1 0.250s n=1000, time forfeit} 0-1

    "#]]
    .assert_eq(&write(Format::Pgn, "chess", &late));
    let adjudicated = write(Format::Pgn, "chess", &sheet(&game, 1, [1, -1], "adjudicated: resignation"));
    assert!(adjudicated.contains("[Termination \"adjudication\"]"), "{adjudicated}");
    assert!(adjudicated.ends_with("n=1000, adjudicated: resignation} 1-0\n\n"), "{adjudicated}");
}

#[test]
fn pdn_format_is_stable() {
    let game = played(Some("W:W22,23:B7,14,K15 0"), "23-19 15x24 22-18 14x23");
    expect![[r#"
        [Event "ladder-1a2b3c4d"]
        [Site "?"]
        [Date "2023.11.14"]
        [Round "12.1"]
        [White "second"]
        [Black "first"]
        [Result "0-1"]
        [GameType "21"]
        [SetUp "1"]
        [FEN "W:W22,23:B7,14,K15"]
        [PlyCount "4"]
        [UTCDate "2023.11.14"]
        [UTCTime "22:13:20"]
        [TimeControl "-"]
        [WhiteLimit "nodes=2000"]
        [BlackLimit "nodes=2000"]
        [Termination "normal"]

        1... 23-19 {book} 2. 15x24 {0.00/1 0.250s n=1000} 22-18 {+M5/2 0.250s n=2000}
        3. 14x23 {-M4/3 0.250s n=3000, an end} 0-1

    "#]]
    .assert_eq(&write(Format::Pdn, "checkers", &sheet(&game, 1, [1, -1], "an end")));
}

#[test]
fn ambiguous_capture_is_not_shortened() {
    for mv in ["7x14x23", "7x16x23"] {
        let game = played(Some("B:W10,11,18,19:B7 0"), mv);
        let text = write(Format::Pdn, "checkers", &sheet(&game, 0, [1, -1], "an end"));
        assert!(text.contains(&format!("\n1. {mv} {{")), "{text}");
    }
}

#[test]
fn sgf_format_is_stable() {
    let game = played(Some(".../.X./... O 0 1"), "A1 pass pass");
    expect![[r#"
        (;FF[4]GM[1]CA[UTF-8]AP[Agon:0.1.0]
        SZ[3]KM[0.5]RU[area scoring, positional superko, no suicide]
        EV[ladder-1a2b3c4d]RO[12.1]
        DT[2023-11-14]
        PB[first]PW[second]RE[W+0.5]
        GC[Black nodes=2000, White nodes=2000; two passes]
        AB[bb]
        PL[W]
        ;W[ac]C[book]
        ;B[]C[value 0.00, 60 simulations, 1000 nodes, 0.250 s]
        ;W[]C[value +M5, depth 2, 2000 nodes, 0.250 s]
        )

    "#]]
    .assert_eq(&write(Format::Sgf, "go:size=3,komi=0.5", &sheet(&game, 1, [-1, 1], "two passes")));
}

#[test]
fn formats_belong_to_games() {
    let of = |game: &str| names(Format::of(game));
    assert_eq!(
        [of(Chess::NAME), of(Checkers::NAME), of(Go::NAME), of("othello")],
        ["pgn, text", "pdn, text", "sgf, text", "text"]
    );
    let error = Writer::new(Format::Sgf, &GameSpec::parse("chess").unwrap()).unwrap_err();
    assert_eq!(error.to_string(), "chess is not written as sgf; it has: pgn, text");
}

#[test]
fn rejects_illegal_games() {
    for (format, game, line) in [
        (Format::Pgn, "chess", "e2e4 e2e4"),
        (Format::Pdn, "checkers", "11-15 11-15"),
        (Format::Sgf, "go", "C3 C3"),
        (Format::Text, "othello", "d3 d3"),
    ] {
        let writer = Writer::new(format, &GameSpec::parse(game).unwrap()).unwrap();
        let game = played(None, line);
        let error = writer.write(&sheet(&game, 0, [0, 0], "an end"), &mut String::new()).unwrap_err();
        assert!(matches!(&error, WriteError::Move(error) if error.ply == 2), "{error}");
    }
}

fn starts(text: &str, plies: Option<usize>) -> Result<Vec<Start>, ReadError> {
    pgn::starts(&Parameters::defaults(Chess::PARAMETERS), text, plies).collect()
}

#[test]
fn reader_skips_everything_but_moves() {
    let text = "\u{feff}% for another program\n\
        [Event \"a \\\"b\\\" c\"]\r\n[Result \"*\"]\r\n\r\n\
        1.e4! {a comment\nof two [%eval 0.3] lines} e5?! $2 (1... c5 2. Nf3 {not ( this} (2. c3)) 2.Nf3\r\n\
        ; the rest of a line 2... d5\r\n\
        2... Nc6 3. Bb5 a6 4. Bxc6+ dxc6 5. 0-0 1/2-1/2 [Event \"next\"]\n\n*\n\
        [Event \"only tags\"]\n[FEN \"4k3/8/8/8/8/8/8/4K2R w K - 0 1\"]\n\n\
        [Event \"last\"]\n[Variant \"Standard\"]\n\ne2e4 12. ... c7c5";
    let read = starts(text, None).unwrap();
    let lines: Vec<(usize, &str)> = read.iter().map(|start| (start.line, start.moves.as_str())).collect();
    assert_eq!(
        lines,
        [(2, "e2e4 e7e5 g1f3 b8c6 f1b5 a7a6 b5c6 d7c6 e1g1"), (8, ""), (11, ""), (14, "e2e4 c7c5"),]
    );
    assert_eq!(read[2].position.as_deref(), Some("4k3/8/8/8/8/8/8/4K2R w K - 0 1"));
    assert_eq!(starts(text, Some(3)).unwrap()[0].moves, "e2e4 e7e5 g1f3");
    assert_eq!(starts(" \n{nothing} ; here\n", None).unwrap(), []);
}

#[test]
fn errors_name_the_line() {
    for (text, message) in [
        ("1. e4 e5\n2. Nf3 Nc3", "line 2: ply 4: `Nc3` is not a legal move"),
        ("1. e4 {never\nclosed", "line 1: the comment is not closed; add a `}`"),
        ("[Event \"x]\n\n*", "line 1: the tag is not closed; "),
        ("\n[FEN \"4k3/8 w - - 0 1\"]\n\n*", "line 2: the position is not valid: "),
        ("[Variant \"Atomic\"]\n\n*", "line 1: the variant `Atomic` has other rules; "),
        ("1. e4 } e5", "line 1: a bracket is closed that was not opened; "),
        ("1. f3 e5 2. g4 Qh4# 3. a3", "line 1: ply 5: `a3` cannot be played, the game is over (checkmate); "),
    ] {
        let error = starts(text, None).unwrap_err();
        assert!(error.to_string().starts_with(message), "{error}");
    }
    // The reader ignores everything after the wanted plies.
    assert_eq!(starts("1. e4 e5 2. Nf3 Nc3", Some(3)).unwrap()[0].moves, "e2e4 e7e5 g1f3");
}
