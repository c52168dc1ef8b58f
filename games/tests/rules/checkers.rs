//! Checkers: a second implementation on a plain grid, and the rules where programs go wrong one by one.

use std::collections::BTreeMap;

use agon_games::checkers::Checkers;
use agon_games::random::{Random, below, mix, seeded};
use agon_games::{Game, Keyed, Noisy, Notation, Parameters, Reseat, Seat, Setup, Turn};

use crate::harness::{Slow, Variant, agree, slow_perft_agrees};

pub const VARIANTS: &[Variant] = &[("checkers", 60)];

/// The rules as a player reads them: a grid of letters, paths of squares, and every position of the game kept.
#[derive(Clone)]
struct Plain {
    /// `b`, `w` for men, `B`, `W` for kings, `.` for an empty square; row 0 is Black's.
    grid: [[char; 8]; 8],
    black_to_move: bool,
    quiet_plies: u32,
    /// Everything that stood on the board, with who was to move.
    seen: Vec<([[char; 8]; 8], bool)>,
}

type Place = (i32, i32);

/// The dark squares in the order of their numbers.
fn places() -> Vec<Place> {
    let all = (0..8).flat_map(|row| (0..8).map(move |column| (row, column)));
    all.filter(|(row, column)| (row + column) % 2 == 1).collect()
}

fn number_of(place: Place) -> usize {
    places().iter().position(|&known| known == place).unwrap() + 1
}

fn place_of(number: usize) -> Place {
    places()[number - 1]
}

impl Plain {
    fn start() -> Plain {
        let mut grid = [['.'; 8]; 8];
        for (row, column) in places() {
            match row {
                0..=2 => grid[row as usize][column as usize] = 'b',
                5..=7 => grid[row as usize][column as usize] = 'w',
                _ => {}
            }
        }
        Plain::of(grid, true, 0)
    }

    fn of(grid: [[char; 8]; 8], black_to_move: bool, quiet_plies: u32) -> Plain {
        Plain { grid, black_to_move, quiet_plies, seen: vec![(grid, black_to_move)] }
    }

    /// What stands on a place, if it is on the board.
    fn at(&self, (row, column): Place) -> Option<char> {
        self.grid.get(usize::try_from(row).ok()?)?.get(usize::try_from(column).ok()?).copied()
    }

    fn put(&mut self, (row, column): Place, piece: char) {
        self.grid[row as usize][column as usize] = piece;
    }

    fn is_black(piece: char) -> bool {
        piece.eq_ignore_ascii_case(&'b')
    }

    fn is_own(&self, piece: char) -> bool {
        piece != '.' && Plain::is_black(piece) == self.black_to_move
    }

    fn directions(piece: char) -> Vec<(i32, i32)> {
        let all = [(1, -1), (1, 1), (-1, -1), (-1, 1)];
        all.into_iter()
            .filter(|&(down, _)| match piece {
                'b' => down == 1,
                'w' => down == -1,
                _ => true,
            })
            .collect()
    }

    fn crowns(piece: char, (row, _): Place) -> bool {
        piece == 'b' && row == 7 || piece == 'w' && row == 0
    }

    /// All ways for `piece`, which stands nowhere, to jump on from `path`'s last place, each with what it captures.
    fn jumps(
        &self,
        piece: char,
        path: &[Place],
        captured: &[Place],
        found: &mut Vec<(Vec<Place>, Vec<Place>)>,
    ) {
        let (row, column) = *path.last().unwrap();
        let crowned = path.len() > 1 && Plain::crowns(piece, (row, column));
        let mut ended = true;
        for (down, right) in Plain::directions(piece) {
            let over = (row + down, column + right);
            let landing = (row + 2 * down, column + 2 * right);
            let enemy = self.at(over).is_some_and(|other| other != '.' && !self.is_own(other));
            if enemy && !captured.contains(&over) && self.at(landing) == Some('.') && !crowned {
                ended = false;
                self.jumps(piece, &[path, &[landing]].concat(), &[captured, &[over]].concat(), found);
            }
        }
        if ended && path.len() > 1 {
            found.push((path.to_vec(), captured.to_vec()));
        }
    }

    /// Every path of every capture.
    fn capture_paths(&self) -> Vec<(Vec<Place>, Vec<Place>)> {
        let mut found = Vec::new();
        for place in places() {
            let piece = self.at(place).unwrap();
            if self.is_own(piece) {
                let mut lifted = self.clone();
                lifted.put(place, '.');
                lifted.jumps(piece, &[place], &[], &mut found);
            }
        }
        found
    }

    fn steps(&self) -> Vec<(Place, Place)> {
        let mut found = Vec::new();
        for (row, column) in places() {
            let piece = self.at((row, column)).unwrap();
            if self.is_own(piece) {
                for (down, right) in Plain::directions(piece) {
                    let to = (row + down, column + right);
                    if self.at(to) == Some('.') {
                        found.push(((row, column), to));
                    }
                }
            }
        }
        found
    }

    fn drawn(&self) -> bool {
        let now = (self.grid, self.black_to_move);
        self.quiet_plies >= 80 || self.seen.iter().filter(|&&then| then == now).count() >= 3
    }

    fn stuck(&self) -> bool {
        self.capture_paths().is_empty() && self.steps().is_empty()
    }

    fn fen(&self) -> String {
        let list = |black: bool| {
            let mine = places().into_iter().filter(|&place| {
                let piece = self.at(place).unwrap();
                piece != '.' && Plain::is_black(piece) == black
            });
            let texts = mine.map(|place| {
                let king = if self.at(place).unwrap().is_uppercase() { "K" } else { "" };
                format!("{king}{}", number_of(place))
            });
            texts.collect::<Vec<_>>().join(",")
        };
        let mover = if self.black_to_move { "B" } else { "W" };
        format!("{mover}:W{}:B{} {}", list(false), list(true), self.quiet_plies)
    }
}

fn path_text(path: &[Place]) -> String {
    path.iter().map(|&place| number_of(place).to_string()).collect::<Vec<_>>().join("x")
}

impl Slow for Plain {
    fn turn(&self) -> String {
        if self.stuck() || self.drawn() {
            "over".to_string()
        } else {
            format!("seat {}", u8::from(!self.black_to_move))
        }
    }

    fn legal(&self) -> Vec<String> {
        if self.drawn() {
            return Vec::new();
        }
        // Paths with the same ends over the same pieces are one move, named by the path with the smallest numbers.
        let mut captures: BTreeMap<(Place, Place, Vec<Place>), Vec<usize>> = BTreeMap::new();
        for (path, mut captured) in self.capture_paths() {
            captured.sort_unstable();
            let numbers: Vec<usize> = path.iter().map(|&place| number_of(place)).collect();
            let best = captures
                .entry((path[0], *path.last().unwrap(), captured))
                .or_insert_with(|| numbers.clone());
            if numbers < *best {
                *best = numbers;
            }
        }
        if captures.is_empty() {
            let steps = self.steps().into_iter();
            return steps.map(|(from, to)| format!("{}-{}", number_of(from), number_of(to))).collect();
        }
        captures
            .values()
            .map(|numbers| numbers.iter().map(usize::to_string).collect::<Vec<_>>().join("x"))
            .collect()
    }

    fn play(&mut self, text: &str) {
        let path: Vec<Place> = text.split(['-', 'x']).map(|part| place_of(part.parse().unwrap())).collect();
        let (from, to) = (path[0], *path.last().unwrap());
        let piece = self.at(from).unwrap();
        self.put(from, '.');
        for jump in path.windows(2).filter(|_| text.contains('x')) {
            self.put(((jump[0].0 + jump[1].0) / 2, (jump[0].1 + jump[1].1) / 2), '.');
        }
        self.put(to, if Plain::crowns(piece, to) { piece.to_ascii_uppercase() } else { piece });
        let quiet = text.contains('-') && piece.is_uppercase();
        self.quiet_plies = if quiet { self.quiet_plies + 1 } else { 0 };
        self.black_to_move = !self.black_to_move;
        self.seen.push((self.grid, self.black_to_move));
    }

    fn payoffs(&self) -> Vec<i32> {
        match (self.stuck(), self.black_to_move) {
            (false, _) => vec![0, 0],
            (true, true) => vec![-1, 1],
            (true, false) => vec![1, -1],
        }
    }
}

fn read(text: &str) -> Checkers {
    let parameters = Parameters::defaults(Checkers::PARAMETERS);
    Checkers::from_position(&parameters, text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn start() -> Checkers {
    Checkers::initial(&Parameters::defaults(Checkers::PARAMETERS)).unwrap()
}

/// The texts of the legal moves, sorted.
fn legal(position: &Checkers) -> Vec<String> {
    let mut moves = Vec::new();
    position.moves(&mut moves);
    let mut texts: Vec<String> = moves.iter().map(|&mv| position.move_text(mv)).collect();
    texts.sort_unstable();
    texts
}

fn play(position: &mut Checkers, moves: &str) {
    for text in moves.split_whitespace() {
        let mv = position.parse_move(text);
        position.play(mv.unwrap_or_else(|| panic!("{text} in {}", position.position())));
    }
}

#[test]
fn the_plain_rules_agree_along_random_games() {
    agree("checkers", &Plain::start(), 5, 40);
}

#[test]
fn the_plain_rules_agree_on_perft() {
    slow_perft_agrees("checkers", &Plain::start(), 5);
}

/// Random placings with many kings: captures that wind, circle and meet are rare in games and common here.
fn random_placing(random: &mut Random) -> Plain {
    let mut grid = [['.'; 8]; 8];
    let sides = [1 + below(random, 12), 1 + below(random, 12)];
    let king_share = below(random, 5);
    for (side, count) in sides.into_iter().enumerate() {
        for _ in 0..count {
            let (row, column) = place_of(1 + below(random, 32));
            let man = ['b', 'w'][side];
            let king = below(random, 4) < king_share || Plain::crowns(man, (row, column));
            if grid[row as usize][column as usize] == '.' {
                grid[row as usize][column as usize] = if king { man.to_ascii_uppercase() } else { man };
            }
        }
    }
    Plain::of(grid, below(random, 2) == 0, 0)
}

#[test]
fn the_plain_rules_agree_on_random_placings() {
    let mut random = seeded(8);
    let mut scratch = Vec::new();
    let (mut ambiguous, mut longest) = (0, 0);
    for _ in 0..4000 {
        let mut slow = random_placing(&mut random);
        let parameters = Parameters::defaults(Checkers::PARAMETERS);
        let Ok(mut fast) = Checkers::from_position(&parameters, &slow.fen()) else { continue };
        for _ in 0..6 {
            let mut expected = slow.legal();
            expected.sort_unstable();
            assert_eq!(legal(&fast), expected, "{}", slow.fen());
            let over = fast.turn() == Turn::Over;
            assert_eq!(over, slow.turn() == "over", "{}", slow.fen());
            assert_eq!(fast.position(), slow.fen());
            if over {
                break;
            }
            // Every path is understood as the move that it makes.
            let paths = slow.capture_paths();
            ambiguous += paths.len() - if paths.is_empty() { 0 } else { expected.len() };
            for (path, _) in paths {
                longest = longest.max(path.len() - 1);
                let mv = fast.parse_move(&path_text(&path)).expect("a path is a move");
                let mut after = slow.clone();
                after.play(&path_text(&path));
                assert_eq!(fast.after(mv, |next| next.position()), after.fen(), "{}", path_text(&path));
            }
            let mv = fast.sample(&mut random, &mut scratch);
            slow.play(&fast.move_text(mv));
            fast.play(mv);
        }
    }
    assert!(ambiguous > 20 && longest >= 6, "{ambiguous} ambiguous paths, longest {longest}");
}

#[test]
fn perft_without_bulk_counting_is_the_same() {
    fn walk(position: &Checkers, depth: u32) -> u64 {
        if depth == 0 {
            return 1;
        }
        let mut moves = Vec::new();
        position.moves(&mut moves);
        let leaves = moves.into_iter().map(|mv| {
            let mut next = position.clone();
            next.play(mv);
            walk(&next, depth - 1)
        });
        leaves.sum()
    }
    assert_eq!(walk(&start(), 8), 845_931);
}

#[test]
fn first_moves_are_those_of_the_books() {
    assert_eq!(legal(&start()), ["10-14", "10-15", "11-15", "11-16", "12-16", "9-13", "9-14"]);
    assert_eq!(start().turn(), Turn::Player(Seat::FIRST));
    assert_eq!(
        start().position(),
        "B:W21,22,23,24,25,26,27,28,29,30,31,32:B1,2,3,4,5,6,7,8,9,10,11,12 0"
    );
}

#[test]
fn captures_are_compulsory_and_completed() {
    // 11-15 22-18 offers a man: nothing but to take it, and then to take back.
    let mut position = start();
    play(&mut position, "11-15 22-18");
    assert_eq!(legal(&position), ["15x22"]);
    assert!(!position.may_stand_pat());
    play(&mut position, "15x22");
    assert_eq!(legal(&position), ["25x18", "26x17"]);
    // A double jump cannot be broken off, and other captures remain a choice.
    let position = read("W:W22,32:B18,11,28");
    assert_eq!(legal(&position), ["22x15x8"]);
    let position = read("W:W22,24:B18,11,20,19");
    assert_eq!(legal(&position), ["22x15x8", "24x15x8"]);
}

#[test]
fn a_man_that_is_crowned_stops() {
    // As a king it could go on from 31 over 26 or 27.
    let mut position = read("B:W27,26,18:B22,24");
    assert_eq!(legal(&position), ["22x15", "22x31", "24x31"].map(String::from)[1..].to_vec());
    play(&mut position, "22x31");
    assert_eq!(position.position(), "W:W18,27:B24,K31 0");
}

#[test]
fn men_do_not_go_back() {
    assert_eq!(legal(&read("B:W10,30:B15")), ["15-18", "15-19"]);
    assert_eq!(legal(&read("B:W10,30:BK15")), ["15x6"]);
    assert_eq!(legal(&read("W:W15:B19,2")), ["15-10", "15-11"]);
    assert_eq!(legal(&read("W:WK15:B19,2")), ["15x24"]);
}

#[test]
fn a_round_trip_is_one_move_however_it_is_walked() {
    // The king comes back to its square over four men, in two directions.
    let mut position = read("B:W6,7,14,15,32:BK1");
    assert_eq!(legal(&position), ["1x10x3", "1x10x17x26"].map(String::from)[..0].to_vec());
    play(&mut position, "");
}
