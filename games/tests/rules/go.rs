//! Go: slow rules with flood fills on text, scripted games, and published counts of legal positions.

use agon_games::go::Go;
use agon_games::random::{below, mix, seeded};
use agon_games::{Game, GameSpec, Noisy, Notation, Ordered, Seat, Setup, Turn};

use crate::harness::{Slow, Variant, agree, perft_lines, slow_perft_agrees, spec};

pub const VARIANTS: &[Variant] = &[
    ("go", 40),
    ("go:size=2,komi=0", 300),
    ("go:size=3,komi=1", 200),
    ("go:size=4,komi=-0.5", 100),
    ("go:size=5,komi=3", 60),
    ("go:size=13,komi=6.5", 4),
    ("go:size=19", 2),
];

/// Rows of text from the top; everything is computed by flood fills.
#[derive(Clone)]
struct SlowGo {
    size: usize,
    komi: f64,
    rows: Vec<Vec<char>>,
    seen: Vec<Vec<Vec<char>>>,
    black_to_move: bool,
    passes: u32,
    plies: usize,
}

impl SlowGo {
    fn new(size: usize, komi: f64) -> SlowGo {
        let rows = vec![vec!['.'; size]; size];
        SlowGo { size, komi, seen: vec![rows.clone()], rows, black_to_move: true, passes: 0, plies: 0 }
    }

    fn beside(&self, (row, column): (usize, usize)) -> Vec<(usize, usize)> {
        let mut beside = Vec::new();
        if row > 0 {
            beside.push((row - 1, column));
        }
        if column > 0 {
            beside.push((row, column - 1));
        }
        if row + 1 < self.size {
            beside.push((row + 1, column));
        }
        if column + 1 < self.size {
            beside.push((row, column + 1));
        }
        beside
    }

    /// Returns the connected points with the same content, and the contents adjacent to them.
    fn region(&self, rows: &[Vec<char>], from: (usize, usize)) -> (Vec<(usize, usize)>, Vec<char>) {
        let kind = rows[from.0][from.1];
        let (mut region, mut touched) = (vec![from], Vec::new());
        let mut next = 0;
        while next < region.len() {
            for point in self.beside(region[next]) {
                let there = rows[point.0][point.1];
                if there != kind {
                    touched.push(there);
                } else if !region.contains(&point) {
                    region.push(point);
                }
            }
            next += 1;
        }
        (region, touched)
    }

    /// Returns the board after a stone, unless that is suicide or a repetition.
    fn with_stone(&self, point: (usize, usize)) -> Option<Vec<Vec<char>>> {
        let (own, other) = if self.black_to_move { ('X', 'O') } else { ('O', 'X') };
        let mut rows = self.rows.clone();
        if rows[point.0][point.1] != '.' {
            return None;
        }
        rows[point.0][point.1] = own;
        for beside in self.beside(point) {
            if rows[beside.0][beside.1] == other {
                let (chain, touched) = self.region(&rows, beside);
                if !touched.contains(&'.') {
                    for (row, column) in chain {
                        rows[row][column] = '.';
                    }
                }
            }
        }
        let alive = self.region(&rows, point).1.contains(&'.');
        (alive && !self.seen.contains(&rows)).then_some(rows)
    }

    fn name(&self, (row, column): (usize, usize)) -> String {
        let letter = "ABCDEFGHJKLMNOPQRST".chars().nth(column).unwrap();
        format!("{letter}{}", self.size - row)
    }

    fn points(&self) -> Vec<(usize, usize)> {
        (0..self.size).flat_map(|row| (0..self.size).map(move |column| (row, column))).collect()
    }

    /// Copies the rows and the clock of a position text.
    fn set_up(&mut self, text: &str) {
        let parts: Vec<&str> = text.split(' ').collect();
        self.rows = parts[0].split('/').map(|row| row.chars().collect()).collect();
        self.seen = vec![self.rows.clone()];
        self.black_to_move = parts[1] == "X";
        self.passes = parts[2].parse().unwrap();
        self.plies = parts[3].parse().unwrap();
    }

    fn over(&self) -> bool {
        self.passes == 2 || self.plies == (2 * self.size * self.size).max(50)
    }
}

impl Slow for SlowGo {
    fn turn(&self) -> String {
        let turn = match (self.over(), self.black_to_move) {
            (true, _) => "over",
            (false, true) => "seat 0",
            (false, false) => "seat 1",
        };
        turn.to_string()
    }

    fn legal(&self) -> Vec<String> {
        if self.over() {
            return Vec::new();
        }
        let stones = self.points().into_iter().filter(|&point| self.with_stone(point).is_some());
        stones.map(|point| self.name(point)).chain(["pass".to_string()]).collect()
    }

    fn play(&mut self, text: &str) {
        if text == "pass" {
            self.passes += 1;
        } else {
            let point = self.points().into_iter().find(|&point| self.name(point) == text).unwrap();
            self.rows = self.with_stone(point).unwrap();
            self.seen.push(self.rows.clone());
            self.passes = 0;
        }
        self.black_to_move = !self.black_to_move;
        self.plies += 1;
    }

    fn payoffs(&self) -> Vec<i32> {
        let (mut black, mut white) = (0.0, self.komi);
        for point in self.points() {
            match self.rows[point.0][point.1] {
                'X' => black += 1.0,
                'O' => white += 1.0,
                _ => {
                    let touched = self.region(&self.rows, point).1;
                    match (touched.contains(&'X'), touched.contains(&'O')) {
                        (true, false) => black += 1.0,
                        (false, true) => white += 1.0,
                        _ => {}
                    }
                }
            }
        }
        if black > white {
            vec![1, -1]
        } else if black < white {
            vec![-1, 1]
        } else {
            vec![0, 0]
        }
    }
}

#[test]
fn agrees_with_slow_rules() {
    for (size, komi, games) in
        [(2, 0.0, 500), (2, 1.0, 100), (3, 1.0, 500), (3, -2.5, 50), (4, -0.5, 200), (5, 3.0, 100), (9, 7.5, 15)]
    {
        agree(&format!("go:size={size},komi={komi}"), &SlowGo::new(size, komi), 5, games);
    }
}

#[test]
fn perft_agrees_with_slow_rules() {
    for (size, depth) in [(2, 8), (3, 4), (4, 3), (5, 2), (9, 2), (19, 1)] {
        slow_perft_agrees(&format!("go:size={size}"), &SlowGo::new(size, 7.5), depth);
    }
    count_table(20_000);
}

/// Checks the lines of the perft table with at most `most` leaves.
fn count_table(most: u64) {
    for line in perft_lines("go").into_iter().filter(|line| line.leaves <= most) {
        let size = line.game.parameters().integer("size") as usize;
        let mut slow = SlowGo::new(size, 7.5);
        if let Some(text) = &line.position {
            slow.set_up(text);
        }
        assert_eq!(count(&slow, line.depth), line.leaves, "{} {:?} {}", line.game, line.position, line.depth);
    }
}

fn count(slow: &SlowGo, depth: u32) -> u64 {
    let legal = slow.legal();
    if depth == 1 {
        return legal.len() as u64;
    }
    let after = |text: &String| {
        let mut next = slow.clone();
        next.play(text);
        next
    };
    legal.iter().map(|text| count(&after(text), depth - 1)).sum()
}

fn parameters(game: &str) -> (GameSpec, usize) {
    let spec = spec(game);
    let size = spec.parameters().integer("size") as usize;
    (spec, size)
}

/// Reads a position on a board of the text's size.
fn position(text: &str) -> Go {
    let size = text.split('/').next().unwrap().len();
    let (spec, _) = parameters(&format!("go:size={size}"));
    Go::from_position(spec.parameters(), text).unwrap_or_else(|error| panic!("{error}"))
}

/// Plays moves, each of which must be legal.
fn play(mut position: Go, moves: &str) -> Go {
    for text in moves.split_whitespace() {
        let mv = position.parse_move(text).unwrap_or_else(|| panic!("{text} in\n{}", position.board()));
        position.play(mv);
    }
    position
}

fn refuses(position: &Go, text: &str) -> bool {
    position.parse_move(text).is_none()
}

/// Returns the rows of a position, from the top.
fn rows(position: &Go) -> String {
    position.position().split(' ').next().unwrap().to_string()
}

/// The published numbers of legal positions: Tromp and Farnebäck (2007), table 1.
#[test]
fn small_boards_have_published_numbers_of_legal_positions() {
    for (size, legal) in [(2, 57), (3, 12_675)] {
        let (spec, _) = parameters(&format!("go:size={size}"));
        let points = size * size;
        let accepted = (0..3u32.pow(points)).filter(|&number| {
            let symbol = |point: u32| ['.', 'X', 'O'][(number / 3u32.pow(point) % 3) as usize];
            let rows: Vec<String> =
                (0..size).map(|row| (0..size).map(|column| symbol(row * size + column)).collect()).collect();
            let rows = rows.join("/");
            // The side that placed the last stone has one on the board: try both, and the empty board.
            ["X 0 0", "O 0 41", "X 0 40"]
                .iter()
                .any(|clock| Go::from_position(spec.parameters(), &format!("{rows} {clock}")).is_ok())
        });
        assert_eq!(accepted.count(), legal, "{size}x{size}");
    }
}

#[test]
fn rejects_immediate_ko_recapture() {
    let start = position(".XO../X.XO./.XO../...../..... O 0 9");
    let taken = play(start, "B4");
    assert_eq!(rows(&taken), ".XO../XO.O./.XO../...../.....");
    assert!(refuses(&taken, "C4"));
    // After an exchange elsewhere the board differs.
    let retaken = play(taken, "A1 E1 C4");
    assert_eq!(rows(&retaken), ".XO../X.XO./.XO../...../X...O");
    assert!(refuses(&retaken, "B4"));
}

/// Comparing with the last move would miss this: two stones are sacrificed and one is recaptured.
#[test]
fn rejects_send_two_return_one() {
    let start = position("...../...../...../XXOO./.O.O. O 0 9");
    let captured = play(start.clone(), "A1 C1");
    assert_eq!(rows(&captured), "...../...../...../XXOO./..XO.");
    assert!(refuses(&captured, "B1"));
    // The adjacent point makes another board, as does the same stone after an exchange elsewhere.
    assert!(!refuses(&captured, "A1"));
    assert!(!refuses(&play(captured, "E5 A5"), "B1"));
}

/// The board recurs by a stone without a capture, so checking captures is not enough.
#[test]
fn rejects_quiet_stone_that_recreates_the_board() {
    let start = position("...../...../...../XXOO./OO.O. X 0 10");
    let cycle = play(start, "C1 B1 pass");
    assert_eq!(rows(&cycle), "...../...../...../XXOO./.O.O.");
    assert!(refuses(&cycle, "A1"));
}

#[test]
fn rejects_suicide_but_not_capture() {
    let corner = position(".X.../X..../...../...../....O O 0 5");
    assert!(refuses(&corner, "A5"));
    // Three stones that fill their own last liberty.
    let chain = position(".OX../OXX../X..../...../..... O 0 9");
    assert!(refuses(&chain, "A5"));
    // The same point is allowed where it captures.
    let capture = position(".OX../OXX../X..../...../..... X 0 10");
    assert_eq!(rows(&play(capture, "A5")), "X.X../.XX../X..../...../.....");
    let eye = position(".XO../XO.../O..../...../..... O 0 7");
    assert_eq!(rows(&play(eye, "A5")), "O.O../.O.../O..../...../.....");
}

/// White captures the sacrificed stone and thereby fills a liberty; Black recaptures three stones on the same point.
#[test]
fn snapback_captures() {
    let start = position("...../...../XX.../OOX../..X.. X 0 8");
    let taken = play(start, "A1 B1");
    assert_eq!(rows(&taken), "...../...../XX.../OOX../.OX..");
    assert_eq!(rows(&play(taken, "A1")), "...../...../XX.../..X../X.X..");
}

#[test]
fn stone_captures_four_chains() {
    let start = position("..X../.XOX./XO.OX/.XOX./..X.. X 0 20");
    let mut noisy = Vec::new();
    start.noisy_moves(&mut noisy);
    let noisy: Vec<String> = noisy.into_iter().map(|mv| start.move_text(mv)).collect();
    assert_eq!(noisy, ["C3"]);
    let taken = play(start, "C3");
    assert_eq!(rows(&taken), "..X../.X.X./X.X.X/.X.X./..X..");
    // The four points are now Black's eyes, where White may not play.
    assert!(["C4", "B3", "D3", "C2"].iter().all(|text| refuses(&taken, text)));
}

fn lead(game: &str, text: &str) -> i32 {
    let (spec, _) = parameters(game);
    let over = Go::from_position(spec.parameters(), text).unwrap();
    assert_eq!(over.turn(), Turn::Over);
    assert_eq!(over.payoff(Seat::FIRST), -over.payoff(Seat::SECOND));
    over.payoff(Seat::FIRST)
}

/// Columns A and B are Black's, D and E White's, and column C, which touches both, is neutral.
#[test]
fn points_that_touch_both_colours_are_neutral() {
    let even = ".X.O./.X.O./.X.O./.X.O./.X.O. X 2 12";
    assert_eq!(lead("go:size=5,komi=0", even), 0);
    assert_eq!(lead("go:size=5,komi=0.5", even), -1);
    assert_eq!(lead("go:size=5,komi=-0.5", even), 1);
    let two_more = ".X.O./.X.O./.XXO./.XXO./.X.O. X 2 16";
    assert_eq!(lead("go:size=5,komi=1.5", two_more), 1);
    assert_eq!(lead("go:size=5,komi=2", two_more), 0);
    assert_eq!(lead("go:size=5,komi=2.5", two_more), -1);
    // An empty board has no owner; a single stone owns all of it.
    assert_eq!(lead("go:size=5,komi=0", "...../...../...../...../..... X 2 2"), 0);
    assert_eq!(lead("go:size=5,komi=24.5", "...../...../..X../...../..... O 2 3"), 1);
    // No stone is dead: White's single stone keeps Black's corner from counting.
    assert_eq!(lead("go:size=3,komi=3.5", "..X/.OX/XXX X 2 20"), 1);
}

#[test]
fn game_ends_at_ply_limit() {
    for (size, limit) in [(2, 50), (5, 50), (6, 72), (9, 162), (19, 722)] {
        let (spec, _) = parameters(&format!("go:size={size}"));
        let start = Go::initial(spec.parameters()).unwrap();
        assert_eq!(start.ply_bound(), limit);
        let row = ".".repeat(size - 2);
        let rest = vec![".".repeat(size); size - 1].join("/");
        let late = format!("X{row}O/{rest} O 0 {}", limit - 1);
        let last = Go::from_position(spec.parameters(), &late).unwrap();
        let end = play(last, "pass");
        assert_eq!((end.turn(), end.ending()), (Turn::Over, "ply limit"));
    }
}

#[test]
fn reads_moves_in_either_case_only() {
    let (spec, _) = parameters("go");
    let start = Go::initial(spec.parameters()).unwrap();
    for (text, name) in [("c3", "C3"), ("j9", "J9"), ("PASS", "pass"), ("Pass", "pass"), ("A1", "A1")] {
        assert_eq!(start.move_text(start.parse_move(text).unwrap()), name);
    }
    for text in ["I5", "K1", "A10", "A0", "A01", "A+1", "A", "1A", "A1 ", " A1", "passs", "Ä1", "A1é"] {
        assert!(refuses(&start, text), "{text}");
    }
    assert!(refuses(&play(start, "C3"), "C3"));
}

#[test]
fn rejects_impossible_positions() {
    let (spec, _) = parameters("go:size=3");
    for (text, reason) in [
        ("... ... ... X 0 0", "it has 6 fields instead of 4"),
        (".../.../... X 0", "it has 3 fields instead of 4"),
        (".../.../...  X 0 0", "it has 5 fields instead of 4"),
        (".../... X 0 0", "3 rows of 3"),
        (".../..../... X 0 0", "3 rows of 3"),
        (".../.x./... O 0 1", "X, O or ."),
        (".../.\u{e9}./... O 0 1", "X, O or ."),
        (".../.\u{e9}/... O 0 1", "3 rows of 3"),
        (".../.../... x 0 0", "the seat to move is X or O"),
        (".../.../... X 3 4", "passes are"),
        (".../.../... X -1 0", "passes are"),
        (".../.../... X 00 0", "passes are"),
        (".../.../... X 0 51", "from 0 to 50"),
        (".../.../... X 0 +2", "from 0 to 50"),
        (".../.X./... X 0 1", "even number"),
        (".../.../... O 2 1", "more passes"),
        ("XX./.../... X 0 2", "more stones"),
        (".X./.../... O 1 1", "more stones"),
        (".../.O./... O 0 1", "more stones"),
        (".../.O./... O 0 3", "placed the last stone has none"),
        (".../.../... O 0 1", "placed the last stone has none"),
        ("XO./OX./... X 0 40", "no liberty"),
    ] {
        let error = Go::from_position(spec.parameters(), text).unwrap_err().to_string();
        assert!(error.contains(reason), "{text}: {error}");
    }
}

/// Edited texts are rejected or read as a position that writes exactly the same text.
#[test]
fn edited_positions_never_panic() {
    let (spec, _) = parameters("go:size=5");
    let mut random = seeded(3);
    let signs = ['.', 'X', 'O', '/', ' ', '0', '1', '2', '9', '-', '\u{e9}'];
    for _ in 0..20_000 {
        let mut text: Vec<char> = ".XO../X.XO./.XO../...../..... O 0 9".chars().collect();
        for _ in 0..=below(&mut random, 3) {
            let (at, sign) = (below(&mut random, text.len()), signs[below(&mut random, signs.len())]);
            match below(&mut random, 3) {
                0 => text[at] = sign,
                1 => text.insert(at, sign),
                _ => drop(text.remove(at)),
            }
        }
        let text: String = text.into_iter().collect();
        if let Ok(read) = Go::from_position(spec.parameters(), &text) {
            assert_eq!(read.position(), text);
        }
    }
}

/// Checks that moves are drawn uniformly: chi-square must be below its 99.99 % point.
fn assert_uniform(what: &str, expected: &[String], draw: impl Fn(u64) -> String) {
    const SHARE: u32 = 400;
    let mut seen = vec![0u32; expected.len()];
    for number in 0..u64::from(SHARE) * expected.len() as u64 {
        let text = draw(number);
        seen[expected.iter().position(|known| *known == text).unwrap_or_else(|| panic!("{what}: {text}"))] += 1;
    }
    let share = f64::from(SHARE);
    let chi_square: f64 = seen.iter().map(|&n| (f64::from(n) - share).powi(2) / share).sum();
    let freedom = expected.len() as f64 - 1.0;
    let shift = 2.0 / (9.0 * freedom.max(1.0));
    let bound = freedom * (1.0 - shift + 3.719 * shift.sqrt()).powi(3);
    assert!(chi_square <= bound, "{what}: {seen:?}");
}

/// Samples are uniform over the legal moves, playouts over those that do not fill an eye.
#[test]
fn moves_are_drawn_uniformly() {
    for (game, seed, every) in [("go", 1, 23), ("go:size=4,komi=0", 2, 5), ("go:size=2,komi=0", 3, 1)] {
        let (spec, _) = parameters(game);
        let mut position = Go::initial(spec.parameters()).unwrap();
        let (mut random, mut scratch) = (seeded(seed), Vec::new());
        let mut ply = 0;
        while position.turn() != Turn::Over {
            if ply % every == 0 {
                let mut legal = Vec::new();
                position.moves(&mut legal);
                let texts: Vec<String> = legal.iter().map(|&mv| position.move_text(mv)).collect();
                assert_uniform("sample", &texts, |number| {
                    position.move_text(position.sample(&mut seeded(mix(seed, number)), &mut Vec::new()))
                });
                // The ordering rates only moves that fill an own eye below the pass.
                legal.retain(|&mv| position.promise(mv) > -50);
                let mut texts: Vec<String> = legal.iter().map(|&mv| position.move_text(mv)).collect();
                if texts.is_empty() {
                    texts.push("pass".to_string());
                }
                assert_uniform("rollout", &texts, |number| {
                    position.move_text(position.rollout(&mut seeded(mix(seed, number)), &mut Vec::new()))
                });
            }
            let mv = position.rollout(&mut random, &mut scratch);
            position.play(mv);
            ply += 1;
        }
    }
}
