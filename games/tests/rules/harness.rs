//! Test support shared by all games.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use agon_games::perft::perft;
use agon_games::random::{mix, seeded};
use agon_games::{
    ChanceGame, Complete, DuelGame, FeatureSet, GameSpec, ManyGame, Parameters, Seat, Turn, UniformVisitor,
    Visitor,
};

/// A variant to check: the game's text and the number of random games for the laws.
pub type Variant = (&'static str, u64);

pub fn spec(text: &str) -> GameSpec {
    GameSpec::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Checks the laws along random games.
pub fn laws(variants: &[Variant]) {
    for &(text, games) in variants {
        let coverage =
            crate::suite::check(&spec(text), 1, games).unwrap_or_else(|violation| panic!("{violation}"));
        println!(
            "{text}: {} games, {} positions, {} moves, longest {} plies",
            coverage.games, coverage.positions, coverage.moves, coverage.longest
        );
        assert_eq!(coverage.games, games);
    }
}

/// Returns the path of a file of this crate.
fn file(folder: &str, name: &str, ending: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(folder).join(format!("{name}.{ending}"))
}

/// A line of a perft table: the first position, the depth, and the number of leaves.
pub struct PerftLine {
    pub game: GameSpec,
    pub position: Option<String>,
    pub depth: u32,
    pub leaves: u64,
}

/// Reads `perft/<game>.perft`: `game SPEC`, then `DEPTH LEAVES` lines, with `position TEXT` between them for other first positions.
pub fn perft_lines(game: &str) -> Vec<PerftLine> {
    let path = file("perft", game, "perft");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut current = None;
    let mut position = None;
    let mut lines = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (word, rest) =
            line.split_once(' ').unwrap_or_else(|| panic!("{line}: not a line of a perft table"));
        match word {
            "game" => (current, position) = (Some(spec(rest)), None),
            "position" => position = Some(rest.to_string()),
            depth => lines.push(PerftLine {
                game: current.clone().expect("a `game` line comes first"),
                position: position.clone(),
                depth: depth.parse().expect("a depth"),
                leaves: rest.trim().replace('_', "").parse().expect("a number of leaves"),
            }),
        }
    }
    assert!(!lines.is_empty(), "{}: no lines", path.display());
    lines
}

struct Perft<'a>(&'a PerftLine);

impl UniformVisitor for Perft<'_> {
    type Output = u64;
    fn visit<G: Complete>(self, parameters: &Parameters) -> u64 {
        let mut start = match &self.0.position {
            Some(text) => G::from_position(parameters, text),
            None => G::initial(parameters),
        }
        .unwrap_or_else(|error| panic!("{error}"));
        perft(&mut start, self.0.depth, &mut Vec::new())
    }
}

/// Checks every line of the game's perft table.
pub fn perft_table(variants: &[Variant]) {
    for line in perft_lines(spec(variants[0].0).name()) {
        let leaves = line.game.visit_any(Perft(&line));
        let place = line.position.as_deref().unwrap_or("the start");
        assert_eq!(leaves, line.leaves, "{} from {place}, depth {}", line.game, line.depth);
    }
}

/// Compares a random game of each variant with `playthroughs/<game>.txt`. `UPDATE_EXPECT=1` rewrites the file.
pub fn playthrough(variants: &[Variant]) {
    let name = spec(variants[0].0).name();
    let text: String = variants.iter().map(|(text, _)| spec(text).visit_any(Record(text))).collect();
    expect_test::expect_file![file("playthroughs", name, "txt")].assert_eq(&text);
}

struct Record(&'static str);

impl UniformVisitor for Record {
    type Output = String;
    fn visit<G: Complete>(self, parameters: &Parameters) -> String {
        let mut position = G::initial(parameters).unwrap_or_else(|error| panic!("{error}"));
        let mut random = seeded(7);
        let mut scratch = Vec::new();
        let mut text = format!("game {}\n{}\n", self.0, position.board());
        let mut ply = 0u32;
        while position.turn() != Turn::Over {
            let mv = position.sample(&mut random, &mut scratch);
            let turn = position.turn();
            let legal = position.count(&mut scratch);
            let mut values = vec![0; G::FEATURES.len()];
            position.features(Seat::FIRST, FeatureSet::ALL, &mut values);
            writeln!(
                text,
                "{ply} {turn} {} of {legal}, key {:016x}, features {values:?}",
                position.move_text(mv),
                position.key()
            )
            .unwrap();
            position.play(mv);
            ply += 1;
            if ply.is_multiple_of(25) {
                writeln!(text, "{}", position.position()).unwrap();
            }
        }
        let payoffs: Vec<i32> = Seat::all(G::SEATS).map(|seat| position.payoff(seat)).collect();
        let (board, ending) = (position.board(), position.ending());
        writeln!(text, "{board}\n{}\nover: {ending}, payoffs {payoffs:?}\n", position.position()).unwrap();
        text
    }
}

/// A second implementation of a game's rules, written for clarity instead of speed.
pub trait Slow: Clone {
    /// Returns `seat 0`, `chance` or `over`.
    fn turn(&self) -> String;
    /// Returns the texts of the legal moves, in any order.
    fn legal(&self) -> Vec<String>;
    /// Plays a legal move.
    fn play(&mut self, text: &str);
    /// Returns the payoffs by seat. Precondition: the game is over.
    fn payoffs(&self) -> Vec<i32>;
}

/// Compares turn, legal moves and payoffs of the fast and the slow rules at each ply of random games.
pub fn agree<S: Slow>(game: &str, slow: &S, seed: u64, games: u64) {
    spec(game).visit_any(Agree { game, slow, seed, games });
}

struct Agree<'a, S> {
    game: &'a str,
    slow: &'a S,
    seed: u64,
    games: u64,
}

impl<S: Slow> UniformVisitor for Agree<'_, S> {
    type Output = ();
    fn visit<G: Complete>(self, parameters: &Parameters) {
        let start = G::initial(parameters).unwrap_or_else(|error| panic!("{error}"));
        let mut legal = Vec::new();
        for game in 0..self.games {
            let mut random = seeded(mix(self.seed, game));
            let mut fast = start.clone();
            let mut slow = self.slow.clone();
            let mut played: Vec<String> = Vec::new();
            loop {
                let place = || format!("{} after \"{}\"", self.game, played.join(" "));
                assert_eq!(fast.turn().to_string(), slow.turn(), "turn in {}", place());
                legal.clear();
                fast.moves(&mut legal);
                let mut texts: Vec<String> = legal.iter().map(|&mv| fast.move_text(mv)).collect();
                let mut expected = slow.legal();
                texts.sort_unstable();
                expected.sort_unstable();
                assert_eq!(texts, expected, "legal moves in {}", place());
                if fast.turn() == Turn::Over {
                    let payoffs: Vec<i32> = Seat::all(G::SEATS).map(|seat| fast.payoff(seat)).collect();
                    assert_eq!(payoffs, slow.payoffs(), "payoffs in {}", place());
                    break;
                }
                let mv = fast.sample(&mut random, &mut legal);
                let text = fast.move_text(mv);
                fast.play(mv);
                slow.play(&text);
                played.push(text);
            }
        }
    }
}

/// Compares the perft of the slow rules with the lines of the table up to `depth`.
pub fn slow_perft_agrees<S: Slow>(game: &str, slow: &S, depth: u32) {
    let game = spec(game);
    let lines = perft_lines(game.name());
    let table: BTreeMap<u32, u64> = lines
        .iter()
        .filter(|line| line.game == game && line.position.is_none())
        .map(|line| (line.depth, line.leaves))
        .collect();
    for depth in 1..=depth {
        assert_eq!(Some(&slow_perft(slow, depth)), table.get(&depth), "{game}, depth {depth}");
    }
}

fn slow_perft<S: Slow>(slow: &S, depth: u32) -> u64 {
    let legal = slow.legal();
    if depth == 1 {
        return legal.len() as u64;
    }
    let leaves = legal.iter().map(|text| {
        let mut next = slow.clone();
        next.play(text);
        slow_perft(&next, depth - 1)
    });
    leaves.sum()
}

/// Compares the frequencies of drawn moves and outcomes with their weights, in positions along random games: chi-square
/// must be below its 99.999 % point.
pub fn sampling(variants: &[Variant]) {
    for (text, _) in variants {
        spec(text).visit(Frequencies(text));
    }
}

struct Frequencies<'a>(&'a str);

impl Frequencies<'_> {
    fn check<G: Complete>(&self, parameters: &Parameters, weight: impl Fn(&G, G::Move) -> u32) {
        let mut random = seeded(11);
        let mut scratch = Vec::new();
        let start = G::initial(parameters).unwrap_or_else(|error| panic!("{error}"));
        for game in 0..3 {
            let mut position = start.clone();
            for ply in 0.. {
                let turn = position.turn();
                if turn == Turn::Over {
                    break;
                }
                // The first plies and some later ones.
                if ply < 2 + game || ply % 23 == 5 * game {
                    let mut moves = Vec::new();
                    position.moves(&mut moves);
                    let weights: Vec<f64> = moves
                        .iter()
                        .map(|&mv| if turn == Turn::Chance { f64::from(weight(&position, mv)) } else { 1.0 })
                        .collect();
                    let draws = 200 * moves.len().min(50);
                    let mut seen = vec![0u32; moves.len()];
                    for _ in 0..draws {
                        let drawn = position.sample(&mut random, &mut scratch);
                        seen[moves.iter().position(|known| *known == drawn).expect("a legal move")] += 1;
                    }
                    let total: f64 = weights.iter().sum();
                    let chi_square: f64 = weights.iter().zip(&seen).fold(0.0, |sum, (weight, &seen)| {
                        let expected = draws as f64 * weight / total;
                        sum + (f64::from(seen) - expected).powi(2) / expected
                    });
                    if moves.len() > 1 {
                        // Wilson and Hilferty's approximation of the point.
                        let freedom = moves.len() as f64 - 1.0;
                        let shift = 2.0 / (9.0 * freedom);
                        let bound = freedom * (1.0 - shift + 4.265 * shift.sqrt()).powi(3);
                        let place = position.position();
                        assert!(
                            chi_square < bound,
                            "{} {place}: {seen:?}: {chi_square} above {bound}",
                            self.0
                        );
                    }
                }
                let mv = position.sample(&mut random, &mut scratch);
                position.play(mv);
            }
        }
    }
}

impl Visitor for Frequencies<'_> {
    type Output = ();
    fn duel<G: DuelGame>(self, parameters: &Parameters) {
        self.check::<G>(parameters, |_, _| 1);
    }
    fn many<G: ManyGame>(self, parameters: &Parameters) {
        self.check::<G>(parameters, |_, _| 1);
    }
    fn chance<G: ChanceGame>(self, parameters: &Parameters) {
        self.check::<G>(parameters, |position: &G, outcome| position.weight(outcome));
    }
}

/// Plays a random game and returns the texts of its moves and the last position.
pub fn random_game<G: Complete>(start: &G, seed: u64) -> (Vec<String>, G) {
    let mut random = seeded(seed);
    let mut scratch = Vec::new();
    let mut position = start.clone();
    let mut played = Vec::new();
    while position.turn() != Turn::Over {
        let mv = position.sample(&mut random, &mut scratch);
        played.push(position.move_text(mv));
        position.play(mv);
    }
    (played, position)
}
