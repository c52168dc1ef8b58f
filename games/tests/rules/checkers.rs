//! Checkers: slow rules on a grid of letters, and tests of each rule that is easy to get wrong.

use std::collections::BTreeMap;

use agon_games::checkers::Checkers;
use agon_games::random::{Random, below, seeded};
use agon_games::{Game, Keyed, Noisy, Notation, Parameters, Reseat, Seat, Setup, Turn};

use crate::harness::{Slow, Variant, agree, perft_lines, slow_perft_agrees};

pub const VARIANTS: &[Variant] = &[("checkers", 250)];

/// The slow rules: a grid of letters, paths of squares, and all positions of the game.
#[derive(Clone)]
struct SlowCheckers {
    /// `b`, `w` for men, `B`, `W` for kings, `.` for an empty square; row 0 is Black's.
    grid: [[char; 8]; 8],
    black_to_move: bool,
    quiet_plies: u32,
    /// All boards with the side to move.
    seen: Vec<([[char; 8]; 8], bool)>,
}

type Place = (i32, i32);

/// Returns the dark squares in the order of their numbers.
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

impl SlowCheckers {
    fn start() -> SlowCheckers {
        let mut grid = [['.'; 8]; 8];
        for (row, column) in places() {
            match row {
                0..=2 => grid[row as usize][column as usize] = 'b',
                5..=7 => grid[row as usize][column as usize] = 'w',
                _ => {}
            }
        }
        SlowCheckers::of(grid, true, 0)
    }

    /// Reads a position text without checking it.
    fn read(text: &str) -> SlowCheckers {
        let mut grid = [['.'; 8]; 8];
        let (fen, clock) = text.split_once(' ').unwrap_or((text, "0"));
        let parts: Vec<&str> = fen.split(':').collect();
        for (man, list) in [('w', &parts[1][1..]), ('b', &parts[2][1..])] {
            for item in list.split(',') {
                let (row, column) = place_of(item.trim_start_matches('K').parse().unwrap());
                let piece = if item.starts_with('K') { man.to_ascii_uppercase() } else { man };
                grid[row as usize][column as usize] = piece;
            }
        }
        SlowCheckers::of(grid, parts[0] == "B", clock.parse().unwrap())
    }

    fn of(grid: [[char; 8]; 8], black_to_move: bool, quiet_plies: u32) -> SlowCheckers {
        SlowCheckers { grid, black_to_move, quiet_plies, seen: vec![(grid, black_to_move)] }
    }

    /// Returns the content of a place, if it is on the board.
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
        piece != '.' && SlowCheckers::is_black(piece) == self.black_to_move
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

    /// Finds all continuations of a capture by a lifted `piece` from the end of `path`, with the captured places.
    fn jumps(
        &self,
        piece: char,
        path: &[Place],
        captured: &[Place],
        found: &mut Vec<(Vec<Place>, Vec<Place>)>,
    ) {
        let (row, column) = *path.last().unwrap();
        let crowned = path.len() > 1 && SlowCheckers::crowns(piece, (row, column));
        let mut ended = true;
        for (down, right) in SlowCheckers::directions(piece) {
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

    /// Returns every path of every capture.
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
                for (down, right) in SlowCheckers::directions(piece) {
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
                piece != '.' && SlowCheckers::is_black(piece) == black
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

impl Slow for SlowCheckers {
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
        // Paths with equal ends and captures are one move, named by the lexicographically first path.
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
        self.put(to, if SlowCheckers::crowns(piece, to) { piece.to_ascii_uppercase() } else { piece });
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

/// Returns the texts of the legal moves, sorted.
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
fn agrees_with_slow_rules() {
    agree("checkers", &SlowCheckers::start(), 5, 200);
}

#[test]
fn perft_agrees_with_slow_rules() {
    slow_perft_agrees("checkers", &SlowCheckers::start(), 6);
}

#[test]
fn perft_from_other_positions_agrees_with_slow_rules() {
    fn leaves(position: &SlowCheckers, depth: u32) -> u64 {
        let after = |text: &String| {
            let mut next = position.clone();
            next.play(text);
            leaves(&next, depth - 1)
        };
        if depth == 0 { 1 } else { position.legal().iter().map(after).sum() }
    }
    let lines = perft_lines("checkers");
    let mut checked = 0;
    for line in lines.iter().filter(|line| line.leaves < 30_000) {
        let Some(text) = &line.position else { continue };
        assert_eq!(leaves(&SlowCheckers::read(text), line.depth), line.leaves, "{text}, depth {}", line.depth);
        checked += 1;
    }
    assert!(checked > 10);
}

/// Creates random placings with many kings, which have long, circular and ambiguous captures.
fn random_placing(random: &mut Random) -> SlowCheckers {
    let mut grid = [['.'; 8]; 8];
    let king_share = below(random, 5);
    // In every second placing all white pieces are where a black king on the other squares can jump them.
    let lattice = below(random, 2) == 0;
    let counts = if lattice { [2, 4 + below(random, 8)] } else { [1 + below(random, 12), 1 + below(random, 12)] };
    for (side, count) in counts.into_iter().enumerate() {
        let inside = |&(row, column): &Place| row % 2 == 1 && row < 7 && column > 0;
        let allowed: Vec<Place> =
            places().into_iter().filter(|place| !lattice || inside(place) == (side == 1)).collect();
        for _ in 0..count {
            let (row, column) = allowed[below(random, allowed.len())];
            let man = ['b', 'w'][side];
            let king = below(random, 4) < king_share || SlowCheckers::crowns(man, (row, column));
            if grid[row as usize][column as usize] == '.' {
                grid[row as usize][column as usize] = if king { man.to_ascii_uppercase() } else { man };
            }
        }
    }
    SlowCheckers::of(grid, below(random, 2) == 0, 0)
}

#[test]
fn random_placings_agree_with_slow_rules() {
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
            // Every path is read as its move.
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
    assert!(ambiguous > 100 && longest >= 6, "{ambiguous} ambiguous paths, longest {longest}");
}

#[test]
fn perft_agrees_without_bulk_counting() {
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
fn first_moves_match_published_ones() {
    assert_eq!(legal(&start()), ["10-14", "10-15", "11-15", "11-16", "12-16", "9-13", "9-14"]);
    assert_eq!(start().turn(), Turn::Player(Seat::FIRST));
    assert_eq!(
        start().position(),
        "B:W21,22,23,24,25,26,27,28,29,30,31,32:B1,2,3,4,5,6,7,8,9,10,11,12 0"
    );
}

#[test]
fn captures_are_compulsory_and_completed() {
    // 11-15 22-18 offers a man, which must be captured and recaptured.
    let mut position = start();
    play(&mut position, "11-15 22-18");
    assert_eq!(legal(&position), ["15x22"]);
    assert!(!position.may_stand_pat());
    play(&mut position, "15x22");
    assert_eq!(legal(&position), ["25x18", "26x17"]);
    // A double jump must be completed; other captures remain a choice.
    let position = read("W:W22,32:B18,11,28");
    assert_eq!(legal(&position), ["22x15x8"]);
    let position = read("W:W22,24:B18,11,20,19");
    assert_eq!(legal(&position), ["22x15x8", "24x15x8"]);
}

#[test]
fn crowned_man_stops() {
    // A king could continue from 31 over 27.
    let mut position = read("B:W26,27,10:B22,1");
    assert_eq!(legal(&position), ["22x31"]);
    play(&mut position, "22x31");
    assert_eq!(position.position(), "W:W10,27:B1,K31 0");
    // Crowning by a step.
    let mut position = read("W:W5:B12,20");
    play(&mut position, "5-1 12-16");
    assert_eq!(legal(&position), ["1-5", "1-6"]);
}

#[test]
fn men_do_not_move_backward() {
    assert_eq!(legal(&read("B:W10,30:B15")), ["15-18", "15-19"]);
    assert_eq!(legal(&read("B:W10,30:BK15")), ["15x6"]);
    assert_eq!(legal(&read("W:W15:B19,2")), ["15-10", "15-11"]);
    assert_eq!(legal(&read("W:WK15:B19,2")), ["15x24"]);
}

#[test]
fn round_trip_is_one_move_for_all_paths() {
    // The king returns to its square over the same four men in either direction.
    let position = read("B:W6,7,14,15,32:BK9");
    assert_eq!(legal(&position), ["9x2x11x18x9"]);
    assert_eq!(position.count(&mut Vec::new()), 1);
    let mv = position.parse_move("9x2x11x18x9");
    assert_eq!(position.parse_move("9x18x11x2x9"), mv);
    assert_eq!(position.parse_move("9x9"), mv);
    for wrong in ["9x2", "9x2x11", "9x18x9", "9-9", "9x2x9x2x11x18x9", "9x11x9", "9x2x11x18x9x2", "9"] {
        assert_eq!(position.parse_move(wrong), None, "{wrong}");
    }
    let mut after = position.clone();
    after.play(mv.unwrap());
    assert_eq!(after.position(), "W:W32:BK9 0");
}

#[test]
fn reads_unique_short_forms() {
    let position = read("B:W6,14,32:B2,12");
    assert_eq!(legal(&position), ["2x9x18"]);
    assert_eq!(position.parse_move("2x18"), position.parse_move("2x9x18"));
    // Two paths to the same square over different men.
    let position = read("B:W6,7,14,15,32:B2,12");
    assert_eq!(legal(&position), ["2x11x18", "2x9x18"]);
    assert_eq!(position.parse_move("2x18"), None);
    assert_ne!(position.parse_move("2x11x18"), position.parse_move("2x9x18"));
    for wrong in ["2-18", "02x18", "2x+18", "2x9x18x", "x18", "2x33", "2x0", "12-16", "2x9", "2-9-18"] {
        assert_eq!(position.parse_move(wrong), None, "{wrong}");
    }
}

#[test]
fn side_that_cannot_move_has_lost() {
    for (text, ending) in [("W:WK29:BK22,K25", "no move left"), ("W:W:B1 0", "no piece left")] {
        let position = read(text);
        assert_eq!((position.turn(), position.ending()), (Turn::Over, ending), "{text}");
        assert_eq!((position.payoff(Seat::FIRST), position.payoff(Seat::SECOND)), (1, -1), "{text}");
    }
    // This precedes the draw by the clock.
    let mut position = read("B:WK29:BK22,K30 79");
    play(&mut position, "30-25");
    assert!(position.position().ends_with(" 80"));
    assert_eq!((position.turn(), position.ending()), (Turn::Over, "no move left"));
    assert_eq!((position.payoff(Seat::FIRST), position.payoff(Seat::SECOND)), (1, -1));
}

/// Finds a step allowed by `allow` after which the game continues and nothing can be jumped.
fn peaceful(
    position: &mut Checkers,
    random: &mut Random,
    allow: impl Fn(&Checkers) -> bool,
) -> Option<<Checkers as Game>::Move> {
    let mut moves = Vec::new();
    position.moves(&mut moves);
    moves.retain(|&mv| position.after(mv, |next| next.may_stand_pat() && allow(next)));
    (!moves.is_empty()).then(|| moves[below(random, moves.len())])
}

#[test]
fn forty_quiet_moves_per_side_are_a_draw() {
    let mut random = seeded(3);
    let mut position = read("B:WK29,K30,K31:BK2,K3,K4");
    for clock in 0..80 {
        assert!(position.position().ends_with(&format!(" {clock}")));
        assert_ne!(position.turn(), Turn::Over, "{clock}");
        let mv = peaceful(&mut position, &mut random, |next| clock == 79 || next.turn() != Turn::Over);
        position.play(mv.expect("six kings have room"));
    }
    assert_eq!((position.turn(), position.ending()), (Turn::Over, "forty quiet moves a side"));
    assert_eq!((position.payoff(Seat::FIRST), position.payoff(Seat::SECOND)), (0, 0));
    assert_eq!((legal(&position).len(), position.count(&mut Vec::new())), (0, 0));
    let read_back = read(&position.position());
    assert_eq!((read_back.turn(), read_back.ending()), (Turn::Over, "forty quiet moves a side"));
}

#[test]
fn man_moves_and_captures_reset_the_clock() {
    let mut position = read("B:WK29,K22:BK4,K15,1 78");
    play(&mut position, "1-5");
    assert!(position.position().ends_with(" 0"));
    play(&mut position, "29-25");
    assert!(position.position().ends_with(" 1"));
    let mut position = read("B:WK29,K22:BK4,K17,1 79");
    play(&mut position, "17x26");
    assert!(position.position().ends_with(" 0"));
    assert_ne!(position.turn(), Turn::Over);
}

const THERE_AND_BACK: &str = "1-5 32-28 5-1 28-32";

#[test]
fn threefold_repetition_is_a_draw() {
    let mut position = read("B:WK32:BK1");
    play(&mut position, THERE_AND_BACK);
    play(&mut position, "1-5 32-28 5-1");
    assert_ne!(position.turn(), Turn::Over);
    play(&mut position, "28-32");
    assert_eq!((position.turn(), position.ending()), (Turn::Over, "threefold repetition"));
    assert_eq!((position.payoff(Seat::FIRST), position.payoff(Seat::SECOND)), (0, 0));
    assert!(legal(&position).is_empty());
    // Other positions in between do not count, and an earlier first occurrence does.
    let mut position = read("B:WK32:BK1");
    play(&mut position, THERE_AND_BACK);
    play(&mut position, "1-6 32-27 6-10 27-24 10-6 24-27 6-1");
    assert_ne!(position.turn(), Turn::Over);
    play(&mut position, "27-32");
    assert_eq!((position.turn(), position.ending()), (Turn::Over, "threefold repetition"));
    // A man's move makes all positions new.
    let mut position = read("B:WK32:BK1,K3,12");
    play(&mut position, THERE_AND_BACK);
    play(&mut position, "12-16 32-28 1-5 28-32 5-1 32-28 1-5 28-32");
    assert_ne!(position.turn(), Turn::Over);
    play(&mut position, "5-1");
    assert_eq!((position.turn(), position.ending()), (Turn::Over, "threefold repetition"));
}

#[test]
fn position_text_has_no_history() {
    let mut position = read("B:WK32:BK1");
    play(&mut position, THERE_AND_BACK);
    let mut again = read(&position.position());
    assert_ne!(again, position);
    assert_eq!(again.key(), position.key());
    play(&mut position, THERE_AND_BACK);
    play(&mut again, THERE_AND_BACK);
    assert_eq!((position.turn(), again.turn()), (Turn::Over, Turn::Player(Seat::FIRST)));
    play(&mut again, THERE_AND_BACK);
    assert_eq!(again.turn(), Turn::Over);
}

/// Follows a long line by nested visits, together with the slow rules. Each visited position is also played to the end of
/// a random game and must be restored afterwards. Returns the length of the line.
fn dive(position: &mut Checkers, slow: &SlowCheckers, random: &mut Random) -> u32 {
    let over = position.turn() == Turn::Over;
    assert_eq!(over, slow.turn() == "over", "{}", slow.fen());
    if over {
        return 0;
    }
    let before = position.clone();
    // Prefer king moves, so that the clock runs out.
    let late = before.position().split(' ').next_back().unwrap().parse::<u32>().unwrap() > 70;
    let on = |next: &Checkers| next.turn() != Turn::Over && (late || !next.position().ends_with(" 0"));
    let Some(mv) = peaceful(position, random, on).or_else(|| peaceful(position, random, |_| true)) else {
        return 0;
    };
    assert!(*position == before);
    let mut slow = slow.clone();
    slow.play(&before.move_text(mv));
    let mut played = before.clone();
    played.play(mv);
    let length = position.after(mv, |next| {
        assert!(*next == played);
        let length = dive(next, &slow, random);
        assert!(*next == played);
        let reseated = next.clone().reseat(before_seat(&before));
        let visited = next.after_reseat(before_seat(&before), |there| {
            let there_first = there.clone();
            play_out(there, random);
            there_first
        });
        assert!(visited == reseated && *next == played);
        play_out(next, random);
        length + 1
    });
    assert!(*position == before);
    length
}

fn before_seat(position: &Checkers) -> Seat {
    match position.turn() {
        Turn::Player(seat) => seat,
        other => panic!("{other:?}"),
    }
}

fn play_out(position: &mut Checkers, random: &mut Random) {
    let mut scratch = Vec::new();
    while position.turn() != Turn::Over {
        let mv = position.sample(random, &mut scratch);
        position.play(mv);
    }
}

#[test]
fn history_survives_deep_visits() {
    // A large stack for hundreds of nested visits.
    let deep = std::thread::Builder::new().stack_size(64 << 20).spawn(deep_visits).unwrap();
    deep.join().unwrap();
}

fn deep_visits() {
    let mut random = seeded(21);
    let mut longest = 0;
    for _ in 0..6 {
        let text = "B:W21,K29,K30,K31:B12,K2,K3,K4";
        let length = dive(&mut read(text), &SlowCheckers::read(text), &mut random);
        longest = longest.max(length);
    }
    assert!(longest > 200, "the longest line has {longest} plies");
}

#[test]
fn reseat_gives_the_turn_away() {
    let mut position = start();
    let other = position.reseat(Seat::SECOND).unwrap();
    assert_eq!(legal(&other), ["21-17", "22-17", "22-18", "23-18", "23-19", "24-19", "24-20"]);
    assert_ne!(other.key(), position.key());
    assert_eq!(other.reseat(Seat::FIRST).unwrap(), position);
    assert_eq!(position.reseat(Seat::FIRST).unwrap(), position);
    assert_eq!(position.after_reseat(Seat::SECOND, |there| there.position()), Some(other.position()));
    assert_eq!(position, start());
    // Not to a seat without a move.
    assert_eq!(read("B:WK29:BK22,K25").reseat(Seat::SECOND), None);
    assert_eq!(read("B:WK29:BK22,K25").after_reseat(Seat::SECOND, |_| ()), None);
    // The clock continues, and earlier positions do not count.
    let mut position = read("B:WK32:BK1 40");
    play(&mut position, THERE_AND_BACK);
    let mut position = position.reseat(Seat::SECOND).unwrap().reseat(Seat::FIRST).unwrap();
    assert!(position.position().ends_with(" 44"));
    play(&mut position, THERE_AND_BACK);
    assert_ne!(position.turn(), Turn::Over);
    play(&mut position, THERE_AND_BACK);
    assert_eq!(position.turn(), Turn::Over);
}

#[test]
fn noisy_moves_are_the_captures() {
    let mut noisy = Vec::new();
    start().noisy_moves(&mut noisy);
    assert!(noisy.is_empty() && start().may_stand_pat());
    let position = read("W:W22,24:B18,11,20,19");
    position.noisy_moves(&mut noisy);
    assert!(noisy.len() == legal(&position).len() && !position.may_stand_pat());
}

#[test]
fn rejects_impossible_positions() {
    let parameters = Parameters::defaults(Checkers::PARAMETERS);
    for (text, reason) in [
        ("", "three parts"),
        ("B", "three parts"),
        ("B:W1:B2:B3", "three parts"),
        ("R:W21:B1", "side to move"),
        ("b:W21:B1", "side to move"),
        ("B:21:B1", "begin with its letter"),
        ("B:\u{e9}:B1", "begin with its letter"),
        ("B::B1", "begin with its letter"),
        ("B:W21:W22", "listed twice"),
        ("B:W21,:B1", "not a square"),
        ("B:W33:B1", "not a square"),
        ("B:W0:B1", "not a square"),
        ("B:W+9:B1", "not a square"),
        ("B:W09:B1", "not a square"),
        ("B:WKK9:B1", "not a square"),
        ("B:Wk9:B1", "not a square"),
        ("B:W99999999999:B1", "not a square"),
        ("B:W9,9:B1", "two pieces"),
        ("B:W9:B9", "two pieces"),
        ("B:W3:B1", "would have become a king"),
        ("B:W13:B30", "would have become a king"),
        ("B:W5,6,7,8,9,10,11,12,13,14,15,16,17:B1", "more than twelve"),
        ("B:W:B1", "has no pieces"),
        ("W:W:B", "has no pieces"),
        ("B:W21:B1 81", "0 to 80"),
        ("B:W21:B1 -1", "0 to 80"),
        ("B:W21:B1 007", "0 to 80"),
        ("B:W21:B1 ", "0 to 80"),
        ("B:W21:B1 0 0", "0 to 80"),
        ("B:W21:B1 1", "no king"),
        ("B:WK21:B1 2", "no king"),
        ("W:WK21:B1 1", "no king"),
    ] {
        let error = Checkers::from_position(&parameters, text).expect_err(text).to_string();
        assert!(error.contains(reason), "{text}: {error}");
    }
    assert_eq!(read("B:B1,K2:WK21").position(), "B:WK21:B1,K2 0");
    assert_eq!(read("B:WK21:B1 1").position(), "B:WK21:B1 1");
}

#[test]
fn garbled_texts_never_panic() {
    let parameters = Parameters::defaults(Checkers::PARAMETERS);
    let mut random = seeded(4);
    let letters: Vec<char> = "BWK:,-x 0123456789\u{e9}".chars().collect();
    for round in 0..20_000 {
        let mut slow = random_placing(&mut random);
        slow.quiet_plies = below(&mut random, 90) as u32;
        let mut text: Vec<char> = slow.fen().chars().collect();
        for _ in 0..below(&mut random, 4) {
            let place = below(&mut random, text.len());
            match below(&mut random, 3) {
                0 => text[place] = letters[below(&mut random, letters.len())],
                1 => text.insert(place, letters[below(&mut random, letters.len())]),
                _ => drop(text.remove(place)),
            }
        }
        let text: String = text.into_iter().collect();
        if let Ok(position) = Checkers::from_position(&parameters, &text) {
            assert_eq!(read(&position.position()), position, "{text}");
            legal(&position);
            position.board();
        }
        let mv: String = (0..below(&mut random, 9)).map(|_| letters[below(&mut random, letters.len())]).collect();
        if let Some(mv) = start().parse_move(&mv) {
            assert!(legal(&start()).contains(&start().move_text(mv)), "round {round}");
        }
    }
}
