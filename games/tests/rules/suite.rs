//! The laws of every game, checked along random games.
//!
//! A violation names the law, the game, the seed and the moves that lead to it; `agon show GAME --moves "..."` shows the
//! position.

use std::collections::HashMap;
use std::fmt;

use agon_games::random::{below, mix, seeded};
use agon_games::{
    ChanceGame, Complete, DuelGame, FeatureSet, GameSpec, ManyGame, Parameters, Seat, Turn, Turns, Visitor,
};

/// The extent of a check.
#[derive(Clone, Copy, Default, Debug)]
pub struct Coverage {
    /// The number of games.
    pub games: u64,
    /// The number of visited positions.
    pub positions: u64,
    /// The number of moves played and undone.
    pub moves: u64,
    /// The longest game in plies.
    pub longest: u32,
}

/// A violated law.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// The law, in a sentence.
    pub law: &'static str,
    /// The observation that contradicts the law.
    pub seen: String,
    /// The game in canonical text.
    pub game: String,
    /// The seed of the random game, derived from the seed of the check.
    pub seed: u64,
    /// The moves from the first position to the violation.
    pub moves: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Violation { law, seen, game, seed, moves } = self;
        write!(f, "{game}: broken: {law}\n  seen: {seen}\n  seed: {seed}\n  moves: {moves}")
    }
}

impl std::error::Error for Violation {}

/// Checks all laws of a game along `games` random games.
pub fn check(spec: &GameSpec, seed: u64, games: u64) -> Result<Coverage, Box<Violation>> {
    spec.visit(Check { spec, seed, games })
}

struct Check<'a> {
    spec: &'a GameSpec,
    seed: u64,
    games: u64,
}

impl Visitor for Check<'_> {
    type Output = Result<Coverage, Box<Violation>>;

    fn duel<G: DuelGame>(self, parameters: &Parameters) -> Self::Output {
        self.run::<G>(parameters, |position, legal| {
            duel_laws(position)?;
            reseat_laws(position)?;
            noisy_laws(position, legal)
        })
    }

    fn many<G: ManyGame>(self, parameters: &Parameters) -> Self::Output {
        self.run::<G>(parameters, |position, _| reseat_laws(position))
    }

    fn chance<G: ChanceGame>(self, parameters: &Parameters) -> Self::Output {
        self.run::<G>(parameters, |position, legal| {
            if position.turn() == Turn::Chance { chance_laws(position, legal) } else { duel_laws(position) }
        })
    }
}

/// A law and the observation that contradicts it.
type Broken = (&'static str, String);
type Lawful = Result<(), Broken>;

/// Checks a law. Calls `seen` only if it is violated.
fn hold(law: &'static str, holds: bool, seen: impl FnOnce() -> String) -> Lawful {
    if holds { Ok(()) } else { Err((law, seen())) }
}

impl Check<'_> {
    fn run<G: Complete>(
        self,
        parameters: &Parameters,
        family: impl Fn(&G, &[G::Move]) -> Lawful,
    ) -> Result<Coverage, Box<Violation>> {
        let start = G::initial(parameters).expect("the laws are checked on parameters that go together");
        let mut games = RandomGames {
            parameters,
            family,
            keys: Keys::default(),
            coverage: Coverage::default(),
            played: Vec::new(),
        };
        for game in 0..self.games {
            let seed = mix(self.seed, game);
            // Every second game is played by the playout policy.
            games.game(&start, seed, !game.is_multiple_of(2)).map_err(|(law, seen)| {
                let game = self.spec.to_string();
                Box::new(Violation { law, seen, game, seed, moves: games.played.join(" ") })
            })?;
        }
        Ok(games.coverage)
    }
}

/// Random games in which every law is checked at every position.
struct RandomGames<'a, F> {
    parameters: &'a Parameters,
    /// The laws of the game's family.
    family: F,
    keys: Keys,
    coverage: Coverage,
    /// The moves of the current game.
    played: Vec<String>,
}

impl<F> RandomGames<'_, F> {
    fn game<G: Complete>(&mut self, start: &G, seed: u64, rollout: bool) -> Lawful
    where
        F: Fn(&G, &[G::Move]) -> Lawful,
    {
        let mut random = seeded(seed);
        let mut position = start.clone();
        let mut out = [false; 64];
        let mut legal = Vec::new();
        let mut scratch = Vec::new();
        self.played.clear();
        loop {
            let turn = position.turn();
            legal.clear();
            position.moves(&mut legal);
            self.coverage.positions += 1;
            self.coverage.moves += legal.len() as u64;
            move_laws(&position, &legal)?;
            let texts = notation_laws(&position, &legal)?;
            text_laws(&position, self.parameters, &legal)?;
            undo_laws(&mut position, &legal)?;
            self.keys.check(&position, &texts)?;
            if turn == Turn::Over {
                payoff_laws(&position)?;
                self.coverage.games += 1;
                self.coverage.longest = self.coverage.longest.max(self.played.len() as u32);
                return Ok(());
            }
            feature_laws(&position, below(&mut random, 64))?;
            (self.family)(&position, &legal)?;
            let bound = position.ply_bound();
            hold("the game ends within its bound of plies", self.played.len() < bound as usize, || {
                format!("the bound is {bound} plies")
            })?;
            let mv = if rollout {
                position.rollout(&mut random, &mut scratch)
            } else {
                position.sample(&mut random, &mut scratch)
            };
            hold("a sampled move is legal", legal.contains(&mv), || format!("{mv:?}"))?;
            self.played.push(position.move_text(mv));
            position.play(mv);
            turn_laws::<G>(turn, position.turn(), &mut out)?;
        }
    }
}

fn move_laws<G: Complete>(position: &G, legal: &[G::Move]) -> Lawful {
    hold(
        "there are moves exactly when the game is not over",
        legal.is_empty() == (position.turn() == Turn::Over),
        || format!("turn {:?} with {} moves", position.turn(), legal.len()),
    )?;
    let mut again = legal.to_vec();
    position.moves(&mut again);
    hold(
        "listing moves appends, in the same order each time",
        again.len() == 2 * legal.len() && again[..legal.len()] == *legal && again[legal.len()..] == *legal,
        || format!("{again:?}"),
    )?;
    again.clear();
    let count = position.count(&mut again);
    hold("the count of moves is the number listed", count == legal.len() as u64 && again.is_empty(), || {
        format!("count {count}, listed {}", legal.len())
    })?;
    for (index, mv) in legal.iter().enumerate() {
        hold("no legal move is listed twice", !legal[..index].contains(mv), || format!("{mv:?}"))?;
        let slot = position.slot(*mv);
        hold("a move's slot lies within the table", slot < G::SLOTS, || format!("{mv:?} has slot {slot}"))?;
    }
    let mut promises = Vec::new();
    position.promises(legal, |index, promise| promises.push((index, promise)));
    let each: Vec<(usize, i32)> = legal.iter().map(|&mv| position.promise(mv)).enumerate().collect();
    hold("promises together are those of each move", promises == each, || {
        format!("{promises:?}, not {each:?}")
    })?;
    match position.turn() {
        Turn::Player(seat) => {
            hold("a seat lies within the seats", seat.index() < G::SEATS, || format!("{seat:?}"))
        }
        _ => Ok(()),
    }
}

fn notation_laws<G: Complete>(position: &G, legal: &[G::Move]) -> Result<Vec<String>, Broken> {
    let mut texts: Vec<String> = legal.iter().map(|&mv| position.move_text(mv)).collect();
    for (text, &mv) in texts.iter().zip(legal) {
        let plain = !text.is_empty() && text.chars().all(|c| c.is_ascii_graphic());
        hold("a move's text is ASCII without spaces", plain, || format!("{text:?}"))?;
        let parsed = position.parse_move(text);
        hold("a move's text is read back as that move", parsed == Some(mv), || {
            format!("{text} of {mv:?} is read as {parsed:?}")
        })?;
    }
    for nonsense in ["", " ", "zz9", "\u{1f600}", "-", "99999999999999999999"] {
        hold("nonsense names no move", position.parse_move(nonsense).is_none(), || format!("{nonsense:?}"))?;
    }
    texts.sort_unstable();
    let repeated = texts.windows(2).find(|pair| pair[0] == pair[1]);
    hold("different moves have different texts", repeated.is_none(), || format!("{repeated:?}"))?;
    Ok(texts)
}

fn text_laws<G: Complete>(position: &G, parameters: &Parameters, legal: &[G::Move]) -> Lawful {
    let text = position.position();
    let fresh = match G::from_position(parameters, &text) {
        Ok(fresh) => fresh,
        Err(error) => return Err(("a position's text is read back", format!("{text}: {error}"))),
    };
    hold("a position read back writes the same text", fresh.position() == text, || {
        format!("{text} became {}", fresh.position())
    })?;
    hold("a position's text is one line", !text.contains('\n'), || text.clone())?;
    hold("an incremental key equals the recomputed key", fresh.key() == position.key(), || text.clone())?;
    hold("a position read back draws the same board", fresh.board() == position.board(), || text.clone())?;
    if !G::PATH_DEPENDENT {
        hold("a position read back is equal", fresh == *position, || {
            format!("{text}: {fresh:?}, not {position:?}")
        })?;
        let mut moves = Vec::new();
        fresh.moves(&mut moves);
        hold("a position read back has the same moves", moves == *legal, || format!("{text}: {moves:?}"))?;
    }
    if position.turn() != Turn::Over && fresh.turn() != Turn::Over {
        for seat in Seat::all(G::SEATS) {
            let (kept, recomputed) = (values(position, seat), values(&fresh, seat));
            hold("incremental features equal recomputed ones", kept == recomputed, || {
                format!("{text}, {seat:?}: {kept:?}, recomputed {recomputed:?}")
            })?;
        }
    }
    let first = text.find(|c: char| c.is_ascii_digit());
    let last = text.rfind(|c: char| c.is_ascii_digit());
    for place in first.into_iter().chain(last) {
        let (before, after) = text.split_at(place);
        let padded = format!("{before}0{after}");
        if let Ok(read) = G::from_position(parameters, &padded) {
            hold("a position has one text", read.position() == padded, || {
                format!("{padded} became {}", read.position())
            })?;
        }
    }
    let broken = [&text[..text.len() / 2], "", "?", "0 0 0 0 0 0 0 0"];
    for bad in broken {
        // Must not panic, and an accepted text must be a position.
        if let Ok(read) = G::from_position(parameters, bad) {
            let again = G::from_position(parameters, &read.position());
            hold("an accepted position round-trips", again.is_ok(), || bad.to_string())?;
        }
    }
    Ok(())
}

fn undo_laws<G: Complete>(position: &mut G, legal: &[G::Move]) -> Lawful {
    let before = position.clone();
    let mut inner = Vec::new();
    for &mv in legal {
        let mut played = before.clone();
        played.play(mv);
        let equal = position.after(mv, |next| {
            let equal = *next == played && next.key() == played.key();
            // A nested visit.
            inner.clear();
            next.moves(&mut inner);
            if let Some(&reply) = inner.first() {
                next.after(reply, |_| ());
            }
            let restored = *next == played;
            // The visitor may continue without undoing anything.
            play_on(next, &mut inner);
            equal && restored
        });
        hold("visiting the position after a move equals playing it", equal, || format!("{mv:?}"))?;
        hold("play then undo restores", *position == before && position.key() == before.key(), || {
            format!("{mv:?}")
        })?;
    }
    Ok(())
}

/// Plays a few plies, from the front, the middle and the end of the list of moves.
fn play_on<G: Complete>(position: &mut G, moves: &mut Vec<G::Move>) {
    for place in 0..4 {
        moves.clear();
        position.moves(moves);
        if let Some(&mv) = moves.get(place * moves.len().saturating_sub(1) / 3) {
            position.play(mv);
        }
    }
}

fn values<G: Complete>(position: &G, seat: Seat) -> Vec<i32> {
    let mut values = vec![0; G::FEATURES.len()];
    position.features(seat, FeatureSet::ALL, &mut values);
    values
}

fn feature_laws<G: Complete>(position: &G, pick: usize) -> Lawful {
    for seat in Seat::all(G::SEATS) {
        let all = values(position, seat);
        let one = pick % G::FEATURES.len();
        let mut alone = vec![0; G::FEATURES.len()];
        position.features(seat, FeatureSet::NONE.with(one), &mut alone);
        hold("a feature asked for alone has the same value", alone[one] == all[one], || {
            format!("{}: {} alone, {} with all", G::FEATURES[one].name, alone[one], all[one])
        })?;
    }
    Ok(())
}

fn duel_laws<G: Complete>(position: &G) -> Lawful {
    let (first, second) = (values(position, Seat::FIRST), values(position, Seat::SECOND));
    let opposite = first.iter().zip(&second).all(|(a, b)| *a == -*b);
    hold("in a duel the features of one seat are the negated ones of the other", opposite, || {
        format!("{first:?} and {second:?}")
    })
}

fn reseat_laws<G: ManyGame>(position: &G) -> Lawful {
    let Turn::Player(mover) = position.turn() else { return Ok(()) };
    for seat in Seat::all(G::SEATS) {
        let Some(other) = position.reseat(seat) else {
            hold("the mover can be given the turn", seat != mover, || format!("{seat:?}"))?;
            continue;
        };
        hold("giving the turn to a seat gives it the turn", other.turn() == Turn::Player(seat), || {
            format!("{:?} instead of {seat:?}", other.turn())
        })?;
        hold("the key includes the mover", (other.key() == position.key()) == (seat == mover), || {
            format!("{seat:?} and {mover:?}")
        })?;
        let mut visited = position.clone();
        let equal = visited.after_reseat(seat, |there| {
            let equal = *there == other;
            play_on(there, &mut Vec::new());
            equal
        });
        let equal = equal == Some(true) && visited == *position && visited.key() == position.key();
        hold("visiting with the turn given away equals giving it, and restores", equal, || {
            format!("{seat:?}")
        })?;
        let back = other.reseat(mover).map(|back| back.key());
        hold("the turn given back gives the same key", back.is_none_or(|key| key == position.key()), || {
            format!("{seat:?} and {mover:?}")
        })?;
        let mut moves = Vec::new();
        other.moves(&mut moves);
        hold("a seat given the turn has a move", !moves.is_empty(), || format!("{seat:?}"))?;
        for mv in moves {
            let mut next = other.clone();
            next.play(mv);
            next.turn();
        }
    }
    Ok(())
}

fn noisy_laws<G: DuelGame>(position: &G, legal: &[G::Move]) -> Lawful {
    let mut noisy = Vec::new();
    position.noisy_moves(&mut noisy);
    hold("a game without noisy moves lists none", G::NOISY || noisy.is_empty(), || format!("{noisy:?}"))?;
    let stray = noisy.iter().find(|mv| !legal.contains(mv));
    hold("a noisy move is legal", stray.is_none(), || format!("{stray:?}"))?;
    for (index, mv) in noisy.iter().enumerate() {
        hold("no noisy move is listed twice", !noisy[..index].contains(mv), || format!("{mv:?}"))?;
    }
    hold(
        "where standing pat is no choice every legal move is noisy",
        position.may_stand_pat() || noisy.len() == legal.len(),
        || format!("{} of {}", noisy.len(), legal.len()),
    )
}

fn chance_laws<G: ChanceGame>(position: &G, legal: &[G::Move]) -> Lawful {
    let weights: Vec<u32> = legal.iter().map(|&outcome| position.weight(outcome)).collect();
    hold("every outcome has weight", weights.iter().all(|&weight| weight > 0), || format!("{weights:?}"))?;
    hold("chance weights sum to their total", weights.iter().sum::<u32>() == position.total_weight(), || {
        format!("{weights:?} and {}", position.total_weight())
    })
}

fn turn_laws<G: Complete>(before: Turn, after: Turn, out: &mut [bool; 64]) -> Lawful {
    let seen = || format!("{before:?}, then {after:?}");
    match (G::TURNS, before, after) {
        (_, _, Turn::Over) => Ok(()),
        (Turns::Rotate, Turn::Player(seat), _) => {
            hold("seats move in rotation", after == Turn::Player(seat.next(G::SEATS)), seen)
        }
        (Turns::RotateSkippingOut, Turn::Player(seat), Turn::Player(to)) => {
            let mut next = seat.next(G::SEATS);
            while next != to && next != seat {
                out[next.index()] = true;
                next = next.next(G::SEATS);
            }
            hold("a seat that was skipped is out", !out[to.index()], seen)
        }
        (Turns::MoveAgain, _, Turn::Player(_)) => Ok(()),
        (Turns::Dice, Turn::Chance, _) => hold("a player follows chance", after != Turn::Chance, seen),
        (Turns::Dice, _, _) => Ok(()),
        _ => Err(("the turn order is as stated", seen())),
    }
}

fn payoff_laws<G: Complete>(position: &G) -> Lawful {
    let payoffs: Vec<i32> = Seat::all(G::SEATS).map(|seat| position.payoff(seat)).collect();
    let in_range = payoffs.iter().all(|payoff| (G::PAYOFFS.min..=G::PAYOFFS.max).contains(payoff));
    hold("payoffs lie in their range", in_range, || format!("{payoffs:?}"))?;
    let sum: i32 = payoffs.iter().sum();
    hold("payoffs sum to the constant", sum == G::PAYOFFS.sum, || format!("{payoffs:?}"))?;
    hold("the ending has a name", !position.ending().is_empty(), || format!("{payoffs:?}"))
}

/// The observations for each key and each text, over all games of a check.
#[derive(Default)]
struct Keys {
    by_key: HashMap<u64, Appearance>,
    by_text: HashMap<String, u64>,
}

/// The properties that positions with equal keys share.
#[derive(PartialEq, Debug)]
struct Appearance {
    turn: Turn,
    board: String,
    /// The texts of the moves, unless they depend on the path.
    moves: Option<Vec<String>>,
    /// The whole position, where the key decides the future.
    position: Option<String>,
}

impl Keys {
    fn check<G: Complete>(&mut self, position: &G, texts: &[String]) -> Lawful {
        let key = position.key();
        let turn = position.turn();
        let moves = (!G::PATH_DEPENDENT).then(|| texts.to_vec());
        // The end by a clock or by repetition is not part of the key.
        if turn != Turn::Over {
            let whole = G::KEY_DECIDES.then(|| position.position());
            let appearance = Appearance { turn, board: position.board(), moves, position: whole };
            if let Some(earlier) = self.by_key.get(&key) {
                hold("positions with equal keys look alike", *earlier == appearance, || {
                    format!("key {key:x}: {earlier:?} and {appearance:?}")
                })?;
            } else {
                self.by_key.insert(key, appearance);
            }
        }
        let known = *self.by_text.entry(position.position()).or_insert(key);
        hold("equal positions have equal keys", known == key, || format!("{known:x} and {key:x}"))
    }
}
