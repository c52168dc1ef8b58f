//! What the tests of all games share.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use agon_games::perft::perft;
use agon_games::random::{mix, seeded};
use agon_games::{
    ChanceGame, Complete, DuelGame, FeatureSet, GameSpec, ManyGame, Parameters, Seat, Turn, UniformVisitor,
    Visitor,
};

/// A variant to check: the game's text and how many random games the laws are followed through.
pub type Variant = (&'static str, u64);

pub fn spec(text: &str) -> GameSpec {
    GameSpec::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// The laws along random play.
pub fn laws(variants: &[Variant]) {
    for &(text, games) in variants {
        let tally =
            agon_games::laws::check(&spec(text), 1, games).unwrap_or_else(|violation| panic!("{violation}"));
        println!(
            "{text}: {} games, {} positions, {} moves, longest {} plies",
            tally.games, tally.positions, tally.moves, tally.longest
        );
        assert_eq!(tally.games, games);
    }
}

/// A file of this crate.
fn file(folder: &str, name: &str, ending: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(folder).join(format!("{name}.{ending}"))
}

/// A line of a perft table: where to start, how deep, and how many leaves there are.
pub struct PerftLine {
    pub game: GameSpec,
    pub position: Option<String>,
    pub depth: u32,
    pub leaves: u64,
}

/// Reads `perft/<game>.perft`: `game SPEC`, then `DEPTH LEAVES` lines, with `position TEXT` between for other starts.
pub fn perft_lines(game: &str) -> Vec<PerftLine> {
    let path = file("perft", game, "perft");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut current = None;
    let mut position = None;
    let mut lines = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (word, rest) = line.split_once(' ').unwrap_or_else(|| panic!("{line}: not understood"));
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

/// Counts every line of the game's table.
pub fn perft_table(variants: &[Variant]) {
    for line in perft_lines(spec(variants[0].0).name()) {
        let leaves = line.game.visit_any(Perft(&line));
        let place = line.position.as_deref().unwrap_or("the start");
        assert_eq!(leaves, line.leaves, "{} from {place}, depth {}", line.game, line.depth);
    }
}

/// One recorded random game a variant, compared with `playthroughs/<game>.txt`. `UPDATE_EXPECT=1` rewrites it.
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

/// A second implementation of a game's rules, written for clearness and not for speed.
#[allow(dead_code, reason = "used by the games without published tables")]
pub trait Slow: Clone {
    /// `seat 0`, `chance` or `over`.
    fn turn(&self) -> String;
    /// The texts of the legal moves, in any order.
    fn legal(&self) -> Vec<String>;
    /// Plays a legal move.
    fn play(&mut self, text: &str);
    /// The payoffs by seat, at the end.
    fn payoffs(&self) -> Vec<i32>;
}

/// Follows random games of the fast rules with the slow ones and compares turn, legal moves and payoffs at each ply.
#[allow(dead_code, reason = "used by the games without published tables")]
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

/// The slow rules' own perft, for the lines of the table that start where `slow` does and are not deeper than `depth`.
#[allow(dead_code, reason = "used by the games without published tables")]
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

/// How often each outcome of chance is drawn against its weight: chi-square below its 99.99 % point.
#[allow(dead_code, reason = "used by the games with chance")]
pub fn chance_frequencies(game: &str, draws: u32) {
    spec(game).visit(Frequencies(draws));
}

struct Frequencies(u32);

impl Visitor for Frequencies {
    type Output = ();
    fn duel<G: DuelGame>(self, _: &Parameters) {}
    fn many<G: ManyGame>(self, _: &Parameters) {}
    fn chance<G: ChanceGame>(self, parameters: &Parameters) {
        let mut random = seeded(11);
        let mut scratch = Vec::new();
        let mut position = G::initial(parameters).unwrap_or_else(|error| panic!("{error}"));
        let mut checked = 0;
        while position.turn() != Turn::Over && checked < 3 {
            if position.turn() == Turn::Chance {
                let mut outcomes = Vec::new();
                position.moves(&mut outcomes);
                let mut seen = vec![0u32; outcomes.len()];
                for _ in 0..self.0 {
                    let outcome = position.sample(&mut random, &mut scratch);
                    seen[outcomes.iter().position(|known| *known == outcome).expect("a listed outcome")] += 1;
                }
                let chi_square: f64 = outcomes.iter().zip(&seen).fold(0.0, |sum, (&outcome, &seen)| {
                    let share = f64::from(position.weight(outcome)) / f64::from(position.total_weight());
                    let expected = share * f64::from(self.0);
                    sum + (f64::from(seen) - expected).powi(2) / expected
                });
                // Wilson and Hilferty's approximation of the 99.99 % point.
                let freedom = outcomes.len() as f64 - 1.0;
                let shift = 2.0 / (9.0 * freedom);
                let bound = freedom * (1.0 - shift + 3.719 * shift.sqrt()).powi(3);
                assert!(chi_square < bound, "{seen:?}: chi-square {chi_square}, bound {bound}");
                checked += 1;
            }
            let mv = position.sample(&mut random, &mut scratch);
            position.play(mv);
        }
        assert_eq!(checked, 3);
    }
}
