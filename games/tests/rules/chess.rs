//! Chess: endings compared with slow rules on FEN texts, scripted games, notation, and rejected positions.

use agon_games::chess::Chess;
use agon_games::random::{mix, seeded};
use agon_games::{
    FeatureSet, Features, Game, Keyed, Noisy, Notation, Ordered, Parameters, Reseat, Seat, Setup, Turn,
};
use cozy_chess::Board;
use cozy_chess::util::display_uci_move;

use crate::harness::{Variant, spec};

pub const VARIANTS: &[Variant] = &[("chess", 12), ("chess:ply_limit=80", 30)];

fn start() -> Chess {
    Chess::initial(&Parameters::defaults(Chess::PARAMETERS)).unwrap()
}

fn read(fen: &str) -> Result<Chess, String> {
    Chess::from_position(&Parameters::defaults(Chess::PARAMETERS), fen).map_err(|error| error.to_string())
}

fn position(fen: &str) -> Chess {
    read(fen).unwrap_or_else(|error| panic!("{fen}: {error}"))
}

/// Plays moves. The game must not be over before the last one.
fn play(position: &mut Chess, moves: &str) {
    for text in moves.split_whitespace() {
        assert_ne!(position.turn(), Turn::Over, "{} before {text}", position.position());
        let mv = position.parse_move(text);
        position.play(mv.unwrap_or_else(|| panic!("{text} in {}", position.position())));
    }
}

fn ended(position: &Chess) -> (&'static str, i32) {
    assert_eq!(position.turn(), Turn::Over, "{}", position.position());
    (position.ending(), position.payoff(Seat::FIRST))
}

/// The slow rules for endings, from FEN texts. Only the legal moves come from the library.
struct Account {
    board: Board,
    /// The first four fields of every position, with the en passant square only where a pawn can capture there.
    seen: Vec<String>,
    /// The plies since the last capture or pawn move.
    quiet: u32,
    plies: usize,
    limit: usize,
}

impl Account {
    fn new(fen: &str, limit: usize) -> Account {
        let mut account =
            Account { board: fen.parse().unwrap(), seen: Vec::new(), quiet: 0, plies: 0, limit };
        account.see();
        account
    }

    fn legal(&self) -> Vec<String> {
        let mut texts = Vec::new();
        self.board.generate_moves(|moves| {
            texts.extend(moves.into_iter().map(|mv| display_uci_move(&self.board, mv).to_string()));
            false
        });
        texts.sort_unstable();
        texts
    }

    fn symbol(&self, square: &str) -> char {
        let square = square.parse().unwrap();
        self.board.piece_on(square).map_or('.', char::from)
    }

    fn see(&mut self) {
        let fen = self.board.to_string();
        let mut fields: Vec<&str> = fen.split(' ').take(4).collect();
        let captured = |text: &String| text[2..] == *fields[3] && self.symbol(&text[..2]) == 'p';
        if !self.legal().iter().any(captured) {
            fields[3] = "-";
        }
        let text = fields.join(" ");
        self.seen.push(text);
    }

    fn play(&mut self, text: &str) {
        let pieces = self.board.occupied().len();
        let pawn = self.symbol(&text[..2]) == 'p';
        let mv = cozy_chess::util::parse_uci_move(&self.board, text).unwrap();
        self.board.play(mv);
        let irreversible = pawn || self.board.occupied().len() != pieces;
        self.quiet = if irreversible { 0 } else { self.quiet + 1 };
        self.plies += 1;
        self.see();
    }

    fn dead(&self) -> bool {
        let placement = self.seen.last().unwrap().split(' ').next().unwrap().to_string();
        let pieces: String = placement.chars().filter(char::is_ascii_alphabetic).collect();
        let minors: String = pieces.to_lowercase().replace('k', "");
        let mut shades = Vec::new();
        for (row, text) in placement.split('/').enumerate() {
            let mut column = 0;
            for symbol in text.chars() {
                if symbol.eq_ignore_ascii_case(&'b') {
                    shades.push((row + column) % 2);
                }
                column += symbol.to_digit(10).unwrap_or(1) as usize;
            }
        }
        let one_shade = shades.windows(2).all(|pair| pair[0] == pair[1]);
        minors.is_empty() || minors == "n" || minors.chars().all(|c| c == 'b') && one_shade
    }

    fn ending(&self) -> Option<&'static str> {
        let now = self.seen.last().unwrap();
        if self.legal().is_empty() {
            return Some(if self.board.checkers().is_empty() { "stalemate" } else { "checkmate" });
        }
        if self.dead() {
            return Some("insufficient material");
        }
        if self.quiet >= 100 {
            return Some("fifty moves");
        }
        if self.seen.iter().filter(|seen| *seen == now).count() >= 3 {
            return Some("threefold repetition");
        }
        (self.plies >= self.limit).then_some("ply limit")
    }
}

#[test]
fn endings_agree_with_slow_rules() {
    let full = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1";
    let starts = [
        (full, 1000, 20),
        (full, 60, 10),
        // Few pieces: repetitions, fifty moves, dead positions.
        ("4k3/8/8/8/8/8/8/R3K3 w Q - 0 1", 1000, 30),
        ("r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1", 1000, 20),
        ("8/8/8/2k5/8/8/1PP5/2K5 w - - 0 1", 1000, 30),
        ("k1b5/8/8/8/8/8/8/K1B2B2 w - - 0 1", 1000, 20),
        ("kn6/8/8/8/8/8/8/KN6 w - - 0 1", 1000, 20),
        // Locked pawns that may step twice, for en passant rights.
        ("4k3/3p1p2/8/4P3/4p3/8/3P1P2/4K3 w - - 0 1", 1000, 30),
        ("8/1k1p4/8/p1p1p3/P1P1P3/8/1K1P4/8 w - - 0 1", 300, 20),
    ];
    let mut seen = std::collections::BTreeMap::new();
    for (fen, limit, games) in starts {
        let text = format!("chess:ply_limit={limit}");
        let first = Chess::from_position(spec(&text).parameters(), fen).unwrap();
        for game in 0..games {
            let mut random = seeded(mix(3, game));
            let mut scratch = Vec::new();
            let (mut fast, mut slow) = (first.clone(), Account::new(fen, limit));
            loop {
                let ending = (fast.turn() == Turn::Over).then(|| fast.ending());
                assert_eq!(ending, slow.ending(), "{}", fast.position());
                assert_eq!(
                    fast.position().split(' ').take(4).collect::<Vec<_>>().join(" "),
                    *slow.seen.last().unwrap()
                );
                if let Some(ending) = ending {
                    assert_eq!(fast.payoff(Seat::FIRST).abs(), i32::from(ending == "checkmate"));
                    *seen.entry(ending).or_insert(0) += 1;
                    break;
                }
                let mut legal = Vec::new();
                fast.moves(&mut legal);
                let mut texts: Vec<String> = legal.iter().map(|&mv| fast.move_text(mv)).collect();
                texts.sort_unstable();
                assert_eq!(texts, slow.legal());
                let mv = fast.sample(&mut random, &mut scratch);
                slow.play(&fast.move_text(mv));
                fast.play(mv);
            }
        }
    }
    println!("{seen:?}");
    assert_eq!(seen.len(), 6, "every ending must have come up: {seen:?}");
}

#[test]
fn checkmate_wins() {
    let mut fool = start();
    play(&mut fool, "f2f3 e7e5 g2g4 Qh4#");
    assert_eq!(ended(&fool), ("checkmate", -1));
    assert_eq!((fool.payoff(Seat::SECOND), fool.parse_move("e2e4")), (1, None));
    let mut scholar = start();
    play(&mut scholar, "e4 e5 Qh5 Nc6 Bc4 Nf6 Qxf7");
    assert_eq!(ended(&scholar), ("checkmate", 1));
    // Mate takes precedence on the hundredth quiet ply and on the last ply.
    let mut late = position("7k/8/6K1/8/8/8/8/R7 w - - 99 90");
    play(&mut late, "a1a8");
    assert_eq!(ended(&late), ("checkmate", 1));
    let limited = spec("chess:ply_limit=4");
    let mut last = Chess::initial(limited.parameters()).unwrap();
    play(&mut last, "f3 e5 g4 Qh4");
    assert_eq!(ended(&last), ("checkmate", -1));
}

#[test]
fn stalemate_is_a_draw() {
    // Sam Loyd's shortest stalemate, ten moves.
    let mut loyd = start();
    play(&mut loyd, "e3 a5 Qh5 Ra6 Qxa5 h5 Qxc7 Rah6 h4 f6 Qxd7+ Kf7 Qxb7 Qd3 Qxb8 Qh7 Qxc8 Kg6 Qe6");
    assert_eq!(ended(&loyd), ("stalemate", 0));
}

#[test]
fn threefold_repetition_is_a_draw() {
    let mut knights = start();
    play(&mut knights, "Nf3 Nf6 Ng1 Ng8 Nf3 Nf6 Ng1 Ng8");
    assert_eq!(ended(&knights), ("threefold repetition", 0));

    // The first double step allows no en passant capture, so the position after it counts.
    let mut step = start();
    play(&mut step, "e4 Nf6 Nf3 Ng8 Ng1 Nf6 Nf3 Ng8 Ng1");
    assert_eq!(ended(&step), ("threefold repetition", 0));

    // Here it does, and the position counts from its second occurrence on.
    let mut capture = position("4k3/8/8/8/3p4/8/4P3/4K3 w - - 0 1");
    play(&mut capture, "e4 Kd7 Kd1 Ke8 Ke1 Kd7 Kd1 Ke8 Ke1");
    assert_ne!(capture.turn(), Turn::Over);
    play(&mut capture, "Kd7");
    assert_eq!(ended(&capture), ("threefold repetition", 0));

    // Here the capturing pawn is pinned, so there is no right.
    let mut pinned = position("8/8/8/8/k2p3R/8/4P3/4K3 w - - 0 1");
    play(&mut pinned, "e4 Ka5 Kd1 Ka4 Ke1 Ka5 Kd1 Ka4 Ke1");
    assert_eq!(ended(&pinned), ("threefold repetition", 0));

    // Castling rights distinguish positions: the king's first trip loses them.
    let mut rights = position("4k3/8/8/8/8/8/8/4K2R w K - 0 1");
    play(&mut rights, "Ke2 Ke7 Ke1 Ke8 Ke2 Ke7 Ke1 Ke8");
    assert_ne!(rights.turn(), Turn::Over);
    play(&mut rights, "Ke2");
    assert_eq!(ended(&rights), ("threefold repetition", 0));

    // The position text has no history.
    let mut fresh = position("7k/8/8/8/8/8/8/K4R2 w - - 20 30");
    play(&mut fresh, "Ka2 Kg8 Ka1 Kh8 Ka2 Kg8 Ka1");
    assert_ne!(fresh.turn(), Turn::Over);
    play(&mut fresh, "Kh8");
    assert_eq!(ended(&fresh), ("threefold repetition", 0));
}

#[test]
fn fifty_moves_are_a_draw() {
    let mut rooks = position("7k/8/8/8/8/8/8/K5R1 w - - 98 90");
    play(&mut rooks, "Rg2 Kh7");
    assert_eq!(ended(&rooks), ("fifty moves", 0));
    let mut capture = position("7k/8/8/8/8/8/7p/K6R w - - 98 90");
    play(&mut capture, "Rxh2 Kg8 Rh3");
    assert_ne!(capture.turn(), Turn::Over);
}

#[test]
fn ply_limit_is_a_draw() {
    let limited = spec("chess:ply_limit=3");
    let mut short = Chess::initial(limited.parameters()).unwrap();
    assert_eq!(short.ply_bound(), 3);
    play(&mut short, "e4 e5 Nf3");
    assert_eq!(ended(&short), ("ply limit", 0));
    let text = short.position();
    assert_eq!(text, "rnbqkbnr/pppp1ppp/8/4p3/4P3/5N2/PPPP1PPP/RNBQKB1R b KQkq - 1 2");
    assert_eq!(ended(&Chess::from_position(limited.parameters(), &text).unwrap()), ("ply limit", 0));
    let beyond = text.replace("- 1 2", "- 1 3");
    let error = Chess::from_position(limited.parameters(), &beyond).unwrap_err().to_string();
    assert!(error.contains("beyond the limit of 3 plies"), "{error}");
}

#[test]
fn insufficient_material_is_a_draw() {
    let board = |pieces: &str| format!("{pieces} w - - 0 1");
    for dead in [
        "8/8/4k3/8/8/3K4/8/8",
        "8/8/4k3/8/8/3K4/8/6N1",
        "8/8/4k3/8/8/3K4/8/6b1",
        // All bishops on one colour, of either side.
        "8/8/4k3/8/8/3K4/8/B1B1b3",
    ] {
        assert_eq!(ended(&position(&board(dead))), ("insufficient material", 0), "{dead}");
    }
    for alive in [
        "8/8/4k3/8/8/3K4/8/5NN1",
        "8/8/4k3/8/8/3K4/8/5Nn1",
        "8/8/4k3/8/8/3K4/8/5Nb1",
        "8/8/4k3/8/8/3K4/8/5Bb1",
        "8/8/4k3/8/8/3K4/8/5BB1",
        "8/8/4k3/8/8/3K4/8/6R1",
        "8/8/4k3/8/8/3K4/6P1/8",
    ] {
        assert_ne!(position(&board(alive)).turn(), Turn::Over, "{alive}");
    }
    let mut last_pawn = position("8/8/4k3/8/8/3K4/3p4/8 w - - 0 1");
    play(&mut last_pawn, "Kxd2");
    assert_eq!(ended(&last_pawn), ("insufficient material", 0));
    let mut knight = position("8/P7/4k3/8/8/3K4/8/8 w - - 0 1");
    play(&mut knight, "a8=N");
    assert_eq!(ended(&knight), ("insufficient material", 0));
}

#[test]
fn castling_is_written_as_king_move() {
    let both = position("r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1");
    let mut legal = Vec::new();
    both.moves(&mut legal);
    let texts: Vec<String> = legal.iter().map(|&mv| both.move_text(mv)).collect();
    assert!(texts.contains(&"e1g1".to_string()) && texts.contains(&"e1c1".to_string()));
    assert!(!texts.contains(&"e1h1".to_string()));
    for (text, after) in [
        ("e1g1", "r3k2r/8/8/8/8/8/8/R4RK1 b kq - 1 1"),
        ("O-O", "r3k2r/8/8/8/8/8/8/R4RK1 b kq - 1 1"),
        ("0-0-0", "r3k2r/8/8/8/8/8/8/2KR3R b kq - 1 1"),
    ] {
        let mut position = both.clone();
        play(&mut position, text);
        assert_eq!(position.position(), after);
    }
    // A rook's move between the castling squares is not castling.
    let mut rook = position("k7/8/8/8/8/8/8/4R1K1 w - - 0 1");
    play(&mut rook, "e1c1");
    assert_eq!(rook.position(), "k7/8/8/8/8/8/8/2R3K1 b - - 1 1");
}

#[test]
fn san_reads_and_writes() {
    for (fen, uci, san) in [
        ("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1", "g1f3", "Nf3"),
        ("r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1", "e1c1", "O-O-O"),
        ("5k2/8/8/8/8/8/8/4K2R w K - 0 1", "e1g1", "O-O+"),
        // By file, by row, by both.
        ("k7/8/8/8/8/8/8/K1R2R2 w - - 0 1", "c1d1", "Rcd1"),
        ("k7/2R5/8/8/8/8/8/K1R5 w - - 0 1", "c7c4", "R7c4"),
        ("8/8/k7/8/4Q2Q/8/8/K6Q w - - 0 1", "h4e1", "Qh4e1"),
        // A pinned knight does not make the other's move ambiguous.
        ("k3r3/8/8/8/4N3/8/8/1N2K3 w - - 0 1", "b1c3", "Nc3"),
        ("4k3/8/8/3p4/4P3/8/8/4K3 w - - 0 1", "e4d5", "exd5"),
        ("4k3/8/8/3pP3/8/8/8/4K3 w - d6 0 1", "e5d6", "exd6"),
        ("8/4P1k1/8/8/8/8/8/4K3 w - - 0 1", "e7e8q", "e8=Q"),
        ("3r4/4P1k1/8/8/8/8/8/4K3 w - - 0 1", "e7d8n", "exd8=N"),
        ("7k/8/6K1/8/8/8/8/R7 w - - 0 1", "a1a8", "Ra8#"),
    ] {
        let position = position(fen);
        let mv = position.parse_move(uci).unwrap_or_else(|| panic!("{uci} in {fen}"));
        assert_eq!((position.move_text(mv).as_str(), position.san(mv).as_str()), (uci, san), "{fen}");
        assert_eq!(position.parse_move(san), Some(mv), "{san} in {fen}");
        assert_eq!(position.parse_move(san.trim_end_matches(['+', '#'])), Some(mv), "{san} in {fen}");
    }
    let ambiguous = position("k7/8/8/8/8/8/8/K1R2R2 w - - 0 1");
    let castling = position("r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1");
    for (position, text) in [
        (&ambiguous, "Rd1"),
        (&ambiguous, "Rcd9"),
        (&ambiguous, "a1a2q"),
        (&ambiguous, "a1a2k"),
        (&castling, "Kh1"),
        (&castling, "Kxa1"),
        (&castling, "e1h1"),
        (&castling, "e1g1q"),
        (&castling, "O-O-O-O"),
        (&castling, "O"),
    ] {
        assert_eq!(position.parse_move(text), None, "{text}");
    }
}

#[test]
fn san_round_trips_in_random_games() {
    let mut random = seeded(5);
    let mut scratch = Vec::new();
    for _ in 0..10 {
        let mut position = start();
        while position.turn() != Turn::Over {
            let mut legal = Vec::new();
            position.moves(&mut legal);
            let mut texts: Vec<String> = legal.iter().map(|&mv| position.san(mv)).collect();
            for (&mv, text) in legal.iter().zip(&texts) {
                assert_eq!(position.parse_move(text), Some(mv), "{}", position.position());
            }
            texts.sort_unstable();
            texts.dedup();
            assert_eq!(texts.len(), legal.len(), "{}", position.position());
            let mv = position.sample(&mut random, &mut scratch);
            position.play(mv);
        }
    }
}

#[test]
fn keys_include_en_passant_only_if_legal() {
    // No piece is adjacent; only a queen is adjacent; the king would be left in check along a row or a diagonal.
    for idle in [
        "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq e3 0 1",
        "8/8/7k/8/5pP1/8/8/2B1K3 b - g3 0 1",
        "rnbqkb1r/ppp1pppp/5n2/3pQ3/8/8/PPPP1PPP/RNB1KBNR w KQkq d6 0 3",
        "8/8/8/8/k2pP2R/8/8/4K3 b - e3 0 1",
    ] {
        let fields: Vec<&str> = idle.split(' ').collect();
        let without = [fields[0], fields[1], fields[2], "-", fields[4], fields[5]].join(" ");
        assert_eq!(position(idle), position(&without));
        assert_eq!(position(idle).key(), position(&without).key());
        assert_eq!(position(idle).position(), without);
    }
    let real = "4k3/8/8/8/3pP3/8/8/4K3 b - e3 0 1";
    assert_ne!(position(real).key(), position(&real.replace("e3", "-")).key());
    assert_eq!(position(real).position(), real);
    // The turn cannot be given away if that right would be lost.
    assert!(position(real).reseat(Seat::FIRST).is_none());
    assert!(position(&real.replace("e3", "-")).reseat(Seat::FIRST).is_some());
}

#[test]
fn history_survives_visits() {
    let mut position = start();
    play(&mut position, "Nf3 Nf6 Ng1 Ng8 Nf3 Nf6 Ng1");
    let before = position.clone();
    let mv = position.parse_move("b8c6").unwrap();
    position.after(mv, |next| play(next, "e4 e5 Nf3 Bc5"));
    assert_eq!(position, before);
    let mut copy = start();
    copy.clone_from(&position);
    assert_eq!(copy, position);
    play(&mut copy, "Ng8");
    assert_eq!(ended(&copy), ("threefold repetition", 0));
}

#[test]
fn reseat_gives_the_turn_away() {
    let check = position("4k3/8/8/8/8/8/4r3/4K3 w - - 0 1");
    assert!(check.reseat(Seat::SECOND).is_none());
    assert_eq!(check.reseat(Seat::FIRST), Some(check.clone()));
    let open = start().reseat(Seat::SECOND).unwrap();
    assert_eq!(open.turn(), Turn::Player(Seat::SECOND));
    // Not if the other side would be stalemated or the clock would run out.
    assert!(position("7k/5Q2/8/8/8/8/8/K7 w - - 0 1").reseat(Seat::SECOND).is_none());
    assert!(position("7k/8/8/8/8/8/8/KQ6 w - - 99 80").reseat(Seat::SECOND).is_none());
}

#[test]
fn noisy_moves_are_captures_and_queens() {
    let noisy = |fen: &str| {
        let position = position(fen);
        let mut moves = Vec::new();
        position.noisy_moves(&mut moves);
        let mut texts: Vec<String> = moves.into_iter().map(|mv| position.san(mv)).collect();
        texts.sort_unstable();
        texts.join(" ")
    };
    assert_eq!(noisy("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"), "");
    assert_eq!(noisy("4k3/2r5/8/3pP3/8/8/3nK3/7R w - d6 0 1"), "Kxd2 exd6");
    assert_eq!(noisy("1n2k3/P7/8/8/8/8/8/4K3 w - - 0 1"), "a8=Q axb8=Q+");
    let check = "4k3/8/8/8/8/8/4r3/4K3 w - - 0 1";
    assert_eq!(noisy(check), "Kd1 Kf1 Kxe2");
    assert!(!position(check).may_stand_pat());
}

/// Sampling without listing counts four moves per promotion.
#[test]
fn moves_are_drawn_uniformly() {
    let position = position("1n2k3/P7/8/8/8/8/8/4K2R w K - 0 1");
    let mut legal = Vec::new();
    position.moves(&mut legal);
    let mut drawn = vec![0; legal.len()];
    let (mut random, mut scratch) = (seeded(2), Vec::new());
    for _ in 0..1000 * legal.len() {
        let mv = position.sample(&mut random, &mut scratch);
        drawn[legal.iter().position(|known| *known == mv).unwrap()] += 1;
    }
    assert!(drawn.iter().all(|count| (850..1150).contains(count)), "{drawn:?}");
}

#[test]
fn captures_are_ordered_first() {
    let position = position("1n2k3/P7/3q4/4p3/3P1R2/8/8/R3K3 w Q - 0 1");
    let promise = |text: &str| position.promise(position.parse_move(text).unwrap());
    let order = ["axb8=Q", "a8=Q", "dxe5", "Rf8+", "a8=R"].map(promise);
    assert!(order.is_sorted_by(|a, b| a > b), "{order:?}");
    assert!(promise("O-O-O") > promise("Kd2"));
}

#[test]
fn features_of_known_positions() {
    let values = |fen: &str| {
        let position = position(fen);
        let mut values = vec![0; Chess::FEATURES.len()];
        position.features(Seat::FIRST, FeatureSet::ALL, &mut values);
        move |name: &str| values[Chess::FEATURES.iter().position(|feature| feature.name == name).unwrap()]
    };
    let start = values("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1");
    for feature in Chess::FEATURES {
        assert_eq!(start(feature.name), i32::from(feature.name == "tempo"), "{}", feature.name);
    }
    let pawns = values("4k3/p6p/8/3P4/8/P7/P1P5/4K3 b - - 0 1");
    assert_eq!(["pawns", "doubled_pawns", "isolated_pawns", "tempo"].map(pawns), [2, 1, 0, -1]);
    // d5 has advanced four rows and c2 one: 16 and 1. The h-pawn is also passed: 1.
    let pawns = values("4k3/p6p/8/3P4/8/P7/P1P5/4K3 b - - 0 1");
    assert_eq!(pawns("passed_pawns"), 16 + 1 - 1);
    let pieces = values("4k2r/6pp/8/8/8/8/8/RRB1KB2 w k - 0 1");
    assert_eq!(["rooks", "bishops", "bishop_pair", "rook_files"].map(pieces), [1, 2, 1, 4]);
    // The bishop on c1 attacks 7 squares, the knight in the corner 2, one of them guarded by a pawn.
    let mobility = values("4k3/8/8/8/2p5/8/8/N1B1K3 w - - 0 1");
    assert_eq!(mobility("mobility"), 7 + 1);
    let shelter = values("3qk3/8/8/8/8/6P1/5P1P/3Q2K1 w - - 0 1");
    assert_eq!(shelter("king_shelter"), 5);
    // Queen 5 and rook 3; beside h8 the queen attacks g7 and g8, the rook g7 and h7: 12 units.
    let attack = values("7k/R7/8/6Q1/8/8/8/K7 w - - 0 1");
    assert_eq!(attack("king_safety"), 12 * 12 / 6);
}

#[test]
fn rejects_impossible_positions() {
    for (fen, reason) in [
        ("8/8/8/3kK3/8/8/8/8 w - - 0 1", "kings stand next"),
        ("8/8/8/8/8/8/8/K7 w - - 0 1", "one king a side"),
        ("k6K/8/8/8/8/8/8/P7 w - - 0 1", "no pawn on the first"),
        ("k7/8/K7 w - - 0 1", "canonical form"),
        ("k7/8/8/8/8/8/8 w - - 0 1", "eight rows"),
        ("8/8/8/8/k7/8/8 w - - 0 1", "eight rows"),
        ("k7/8/44/8/8/8/8/7K w - - 0 1", "canonical form"),
        ("k7/8/80/8/8/8/8/7K w - - 0 1", "canonical form"),
        ("k6R/8/8/8/8/8/8/7K w - - 0 1", "must not be in check"),
        ("k7/8/8/8/8/8/8/7K x - - 0 1", "w or b"),
        ("r3k2r/8/8/8/8/8/8/3K3R w K - 0 1", "first squares"),
        ("r3k2r/8/8/8/8/8/8/R3K2R w kqKQ - 0 1", "canonical form"),
        ("r3k2r/8/8/8/8/8/8/R3K2R w HAha - 0 1", "first squares"),
        ("4k3/8/8/8/3pP3/8/8/4K3 b - e4 0 1", "double step"),
        ("4k3/8/8/8/3pP3/8/4N3/4K3 b - e3 0 1", "double step"),
        ("4k3/8/8/8/3pP3/8/8/4K3 b - e3 3 9", "the halfmove clock is 0"),
        ("k7/8/8/8/8/8/8/7K w - - 101 1", "0 to 100"),
        ("k7/8/8/8/8/8/8/7K w - - +1 1", "canonical form"),
        ("k7/8/8/8/8/8/8/7K w - - 0 0", "from 1"),
        ("k7/8/8/8/8/8/8/7K w - - 0 65536", "from 1"),
        ("k7/8/8/8/8/8/8/7K w - - 0 900", "beyond the limit of 1000 plies"),
        ("k7/8/8/8/8/8/8/7K w - -", "4 fields instead of 6"),
        ("k7/8/8/8/8/8/8/7K w - - 0 1 1", "7 fields instead of 6"),
        ("k7/8/8/8/8/8/8/7K  w - - 0 1", "single spaces"),
        ("k7/pppppppp/8/8/8/8/8/QQ5K w - - 0 1", ""),
        ("7k/8/8/8/8/8/PPPPPPPP/QQ5K w - - 0 1", "could have become"),
    ] {
        match read(fen) {
            Err(error) => assert!(!reason.is_empty() && error.contains(reason), "{fen}: {error}"),
            Ok(_) => assert!(reason.is_empty(), "{fen} is accepted"),
        }
    }
}

/// Every edited text is rejected or is a position that round-trips, without a panic.
#[test]
fn edited_texts_never_panic() {
    let seeds = [
        "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
        "rnbqkb1r/ppp1pppp/5n2/3pP3/8/8/PPPP1PPP/RNBQKBNR w KQkq d6 0 3",
        "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 b - - 99 400",
    ];
    let letters: Vec<char> = "pnbrqkPNBRQK12345678/ -wbKQkqabcdefgh09+é".chars().collect();
    let mut random = seeded(9);
    let mut accepted = 0;
    for round in 0..20_000 {
        let mut text: Vec<char> = seeds[round % seeds.len()].chars().collect();
        for _ in 0..=agon_games::random::below(&mut random, 3) {
            let place = agon_games::random::below(&mut random, text.len());
            let letter = letters[agon_games::random::below(&mut random, letters.len())];
            match agon_games::random::below(&mut random, 3) {
                0 => text[place] = letter,
                1 => text.insert(place, letter),
                _ => drop(text.remove(place)),
            }
        }
        let text: String = text.into_iter().collect();
        let Ok(position) = read(&text) else { continue };
        accepted += 1;
        assert_eq!(read(&position.position()).as_ref(), Ok(&position), "{text}");
        let mut legal = Vec::new();
        position.moves(&mut legal);
        assert_eq!(legal.is_empty(), position.turn() == Turn::Over, "{text}");
        for mv in legal {
            let mut next = position.clone();
            next.play(mv);
            let _ = (next.turn(), next.key(), next.position());
        }
    }
    assert!(accepted > 300, "{accepted}");
}
