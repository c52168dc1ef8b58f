//! Reads a spec from its TOML tables: every key with its limits and its error text.
//!
//! All problems are collected. A part that depends on a rejected part is read as far as possible.

use std::cell::RefCell;

use agon_games::exchange::{ReadError, Start};
use agon_games::printable::printable;
use agon_games::schema::{Input, Problems};
use agon_games::{GameSpec, SetupError, choices};
use agon_search::Limit;
use toml::de::{DeTable, DeValue};

use super::openings::{Form, Order, RecordedGame, games, is_chess, read};
use super::{
    Format, Openings, Plan, Positions, Spec, SpecError, SpecPlayer, SpecProblem, SpecSource, SprtSettings,
};
use super::{read_adjudication, read_tune};
use crate::arena::{Arena, Environment, PlayError};
use crate::bout::Opening;
use crate::config::PlayerConfig;
use crate::limit::read_limit;
use crate::section::{Found, Section, Toml};

const KEYS: &[&str] = &[
    "name",
    "game",
    "seed",
    "limit",
    "normalise",
    "deterministic",
    "openings",
    "adjudication",
    "tournament",
    "probe",
    "tune",
    "player",
];
pub(super) const MAX_NAME_LENGTH: usize = 60;
const MAX_PLAYERS: usize = 1000;
pub(super) const MAX_BOUTS: u64 = 1_000_000_000;
const MAX_PLIES: u64 = 1000;
/// The most bytes of the lines to all turns of recorded games. Each turn has its own line, so that they grow with the square
/// of a game's length.
const MAX_RECORDED_BYTES: usize = 64 << 20;
/// The most openings of a file that are reported as wrong.
pub(super) const MAX_REPORTED: usize = 10;

#[derive(Clone, Copy)]
enum FormatName {
    RoundRobin,
    Gauntlet,
    Sprt,
}

choices!(FormatName { RoundRobin = "round-robin", Gauntlet = "gauntlet", Sprt = "sprt" });

#[derive(Clone, Copy, PartialEq)]
enum EloModel {
    Normalised,
    Logistic,
}

choices!(EloModel { Normalised = "normalised", Logistic = "logistic" });

#[derive(Clone, Copy)]
enum PlayedBy {
    Random,
}

choices!(PlayedBy { Random = "random" });

pub(super) fn text<'t>(value: &'t DeValue<'_>) -> Option<&'t str> {
    value.as_str()
}

/// Returns whether a text can be part of file names and addresses.
fn is_name(text: &str) -> bool {
    let known = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    (1..=MAX_NAME_LENGTH).contains(&text.len()) && text.chars().all(known) && !text.starts_with('-')
}

/// Returns whether a text can be a player's name: one word without separators of lists and tables.
fn is_player_name(text: &str) -> bool {
    let known = |c: char| c.is_alphanumeric() || "-_.+=:%@/()".contains(c);
    (1..=MAX_NAME_LENGTH).contains(&text.chars().count()) && text.chars().all(known)
}

/// Reads a spec, or returns all its problems.
pub(super) fn spec(table: &DeTable<'_>, source: &SpecSource) -> Result<Spec, SpecError> {
    let (problems, file_problems) = (Problems::default(), RefCell::default());
    let root = Section { table, name: "the spec", start: None, problems: &problems };
    let read = read_spec(root, source, &file_problems);
    let mut found: Vec<SpecProblem> =
        problems.into_vec().iter().map(|problem| SpecProblem::new(&source.text, problem)).collect();
    found.sort_by_key(|problem| problem.line);
    found.extend(file_problems.into_inner());
    match read {
        Some(spec) if found.is_empty() => Ok(spec),
        _ => Err(SpecError { problems: found }),
    }
}

fn read_spec(
    root: Section<'_, '_>,
    source: &SpecSource,
    problems: &RefCell<Vec<SpecProblem>>,
) -> Found<Spec> {
    root.allow(KEYS);
    let form = format!("a word of at most {MAX_NAME_LENGTH} small letters, digits and hyphens");
    let name = root.need("name", &form, |value| text(value).filter(|name| is_name(name)));
    let seed = root.count_or("seed", 0..=i64::MAX as u64, 0);
    let game = game(root).and_then(|game| match Arena::new(&game, &[], Environment::system()) {
        Ok(referee) => Some((game, referee)),
        Err(error) => root.reject("game", error.to_string()),
    });
    let seats = game.as_ref().map(|(_, referee)| referee.seats());
    let deterministic = root.maybe("deterministic", "true or false", DeValue::as_bool);
    let promised = deterministic.flatten().unwrap_or(false);
    let players = players(root, game.as_ref().map(|(game, _)| game), limit(root), promised);
    let files = Files { source, game: game.as_ref(), problems };
    let openings = files.openings(root, seed);
    let parts = ["tournament", "probe", "tune"].map(|key| root.has(key).then_some(key));
    let listed = players.as_deref().unwrap_or_default();
    let mut tuned = None;
    let plan = match parts {
        [Some(key), None, None] => {
            let part = root.section(key, "[tournament]").flatten();
            let players = players.as_deref();
            part.and_then(|part| format(part, players, seats)).map(Plan::Tournament)
        }
        [None, Some(key), None] => {
            if root.has("openings") {
                let reason = "a probe has `positions` and no `openings`; leave `openings` out";
                root.reject::<()>("openings", reason);
            }
            let part = root.section(key, "[probe]").flatten();
            part.and_then(|part| files.positions(part, listed)).map(Plan::Probe)
        }
        [None, None, Some(key)] => {
            if openings == Some(Openings::None) {
                let reason = "a tune needs `openings`, as in openings = { random_plies = 4 }: its validation uses \
                              openings that the tuning does not";
                root.problems.add(root.span(key), reason);
            }
            let part = root.section(key, "[tune]").flatten();
            let read = part.and_then(|part| read_tune::tune(root, part, &files, players.as_deref()?));
            read.map(|(tune, players)| {
                tuned = Some(players);
                Plan::Tune(tune)
            })
        }
        [_, probe, tune] => {
            let span = tune.or(probe).and_then(|key| root.span(key));
            root.problems.add(span, "a spec has either a [tournament], a [probe] or a [tune]");
            None
        }
    };
    let written: Found<Vec<SpecPlayer>> =
        players.and_then(|players| players.into_iter().map(|entry| entry.player).collect());
    let players = tuned.or(written);
    let normalise = normalise(root, players.as_deref());
    let adjudication = read_adjudication::adjudication(root, players.as_deref(), seats);
    check_promise(root, promised, players.as_deref());
    let (game, _) = game?;
    deterministic?;
    Some(Spec {
        name: name?.to_string(),
        game,
        seed: seed?,
        normalise: normalise?,
        openings: openings?,
        adjudication: adjudication?,
        players: players?,
        plan: plan?,
    })
}

/// Reads whether time limits are scaled by the speed of the worker.
fn normalise(root: Section<'_, '_>, players: Option<&[SpecPlayer]>) -> Found<bool> {
    let wanted = root.maybe("normalise", "true or false", DeValue::as_bool)?.unwrap_or(false);
    if wanted && players.is_some_and(|players| !players.iter().any(SpecPlayer::has_time_limit)) {
        let reason = "`normalise` scales limits of time, and no player has one; leave it out";
        return root.reject("normalise", reason);
    }
    Some(wanted)
}

/// Reports a promise for engines that concerns none.
fn check_promise(root: Section<'_, '_>, promised: bool, players: Option<&[SpecPlayer]>) {
    let concerned = |player: &SpecPlayer| player.config.engine().is_some() && !player.has_time_limit();
    if promised && players.is_some_and(|players| !players.iter().any(concerned)) {
        let reason = "`deterministic` is a promise for engines with a limit of nodes or depth, and there is none; leave it out";
        root.reject::<()>("deterministic", reason);
    }
}

fn limit(section: Section<'_, '_>) -> Found<Option<Limit>> {
    let Some(inner) = section.section("limit", "a limit")? else { return Some(None) };
    let start = section.span("limit").map(|span| span.start);
    read_limit(Section { start, ..inner }).map(Some)
}

fn game(root: Section<'_, '_>) -> Found<GameSpec> {
    let form = "a name such as \"othello\", or a table such as { name = \"virus\", seats = 4 }";
    let parsed = match root.value("game") {
        None => return root.missing("game", form),
        Some(DeValue::String(name)) => GameSpec::parse(name),
        Some(DeValue::Table(table)) => {
            let start = root.span("game").map(|span| span.start);
            let section = Section { table, name: "game", start, ..root };
            let name = section.need("name", "the name of a game", text);
            let mut pairs = Vec::new();
            for (key, value) in table.iter().filter(|(key, _)| &**key.get_ref() != "name") {
                let written = match value.get_ref() {
                    DeValue::String(word) => Some(word.to_string()),
                    DeValue::Boolean(flag) => Some(flag.to_string()),
                    DeValue::Integer(number) => Some(number.as_str().to_string()),
                    DeValue::Float(number) => Some(number.as_str().to_string()),
                    DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => {
                        section.wrong(key.get_ref(), "a number, a word, true or false")
                    }
                };
                pairs.push(written.map(|written| (key.get_ref().to_string(), written)));
            }
            let pairs: Vec<(String, String)> = pairs.into_iter().collect::<Option<_>>()?;
            GameSpec::new(name?, pairs.iter().map(|(key, value)| (key.as_str(), value.as_str())))
        }
        Some(_) => return root.wrong("game", form),
    };
    match parsed {
        Ok(game) => Some(game),
        Err(SetupError::Parameters(error)) => {
            error
                .problems
                .into_iter()
                .for_each(|problem| root.problems.add(root.span("game"), problem.reason));
            None
        }
        Err(error) => root.reject("game", error.to_string()),
    }
}

/// A player's table as far as it could be read.
pub(super) struct PlayerEntry<'t> {
    pub(super) name: Found<&'t str>,
    pub(super) player: Found<SpecPlayer>,
}

/// Returns the names of the players that have a valid one.
pub(super) fn names<'t>(players: &[PlayerEntry<'t>]) -> Vec<&'t str> {
    players.iter().filter_map(|entry| entry.name).collect()
}

/// Returns the index of the player with a name.
pub(super) fn named(players: &[PlayerEntry<'_>], value: &DeValue<'_>) -> Option<usize> {
    let name = text(value)?;
    players.iter().position(|entry| entry.name == Some(name))
}

fn players<'t>(
    root: Section<'t, '_>,
    game: Option<&GameSpec>,
    common: Found<Option<Limit>>,
    deterministic: bool,
) -> Found<Vec<PlayerEntry<'t>>> {
    let form = "one [[player]] for each player";
    let list = root.need("player", form, DeValue::as_array)?;
    if list.len() > MAX_PLAYERS {
        return root.wrong("player", &format!("at most {MAX_PLAYERS} players"));
    }
    let mut players: Vec<PlayerEntry<'t>> = Vec::new();
    let mut own_limits = 0;
    for item in list {
        let DeValue::Table(table) = item.get_ref() else { return root.wrong("player", form) };
        let section = Section { table, name: "a player", start: Some(item.span().start), ..root };
        let form = format!("a word of at most {MAX_NAME_LENGTH} letters, digits and -_.+=:%@/()");
        let name = section.need("name", &form, |value| text(value).filter(|name| is_player_name(name)));
        if let Some(name) = name
            && players.iter().any(|entry| entry.name == Some(name))
        {
            section.reject::<()>("name", format!("two players are called `{name}`; names must differ"));
        }
        own_limits += usize::from(section.has("limit"));
        players.push(PlayerEntry { name, player: player(section, game, name, common, deterministic) });
    }
    if own_limits == list.len() && root.has("limit") {
        let reason = "every player has a limit of its own; leave the one at the top out";
        root.reject::<()>("limit", reason);
    }
    Some(players)
}

/// Reads a player's configuration and limit. Problems of the configuration are prefixed by the player's name.
fn player(
    section: Section<'_, '_>,
    game: Option<&GameSpec>,
    name: Found<&str>,
    common: Found<Option<Limit>>,
    deterministic: bool,
) -> Found<SpecPlayer> {
    let called = name.map_or_else(|| "a player".to_string(), |name| format!("player `{name}`"));
    let keys = ["name", "limit", "search", "evaluation", "engine"];
    let inner = Problems::default();
    let config = match game {
        Some(game) => PlayerConfig::read(game, Section { problems: &inner, ..section }, &keys, deterministic),
        None => {
            Section { problems: &inner, ..section }.allow(&keys);
            None
        }
    };
    for problem in inner.into_vec() {
        let span = problem.span.or_else(|| section.start());
        section.problems.add(span, format!("{called}: {}", problem.reason));
    }
    let limit = match (limit(section)?, common) {
        (Some(limit), _) | (None, Some(Some(limit))) => limit,
        (None, None) => return None,
        (None, Some(None)) => {
            let reason = format!(
                "{called} has no limit; give `limit` at the top, as in limit = {{ ms = 50 }}, or in the player"
            );
            return section.reject("limit", reason);
        }
    };
    let config = config?;
    if let Err(error) = config.check_limit(limit) {
        return section.reject("limit", format!("{called}: {error}"));
    }
    Some(SpecPlayer { name: name?.to_string(), config, limit })
}

fn format(
    section: Section<'_, '_>,
    players: Option<&[PlayerEntry<'_>]>,
    seats: Option<usize>,
) -> Found<Format> {
    let name: FormatName = section.choice("format")?;
    if players.is_some_and(|players| players.len() < 2) {
        section.reject::<()>("format", "a tournament needs at least two players");
    }
    match name {
        FormatName::RoundRobin => {
            section.allow(&["format", "bouts"]);
            Some(Format::RoundRobin { bouts: section.count("bouts", 1..=MAX_BOUTS)? })
        }
        FormatName::Gauntlet => {
            section.allow(&["format", "bouts", "hero"]);
            let bouts = section.count("bouts", 1..=MAX_BOUTS);
            let players = players?;
            let form = format!("the name of a player: {}", names(players).join(", "));
            let hero = section.need("hero", &form, |value| named(players, value));
            Some(Format::Gauntlet { hero: hero?, bouts: bouts? })
        }
        FormatName::Sprt => sprt(section, players, seats).map(Format::Sprt),
    }
}

fn sprt(
    section: Section<'_, '_>,
    players: Option<&[PlayerEntry<'_>]>,
    seats: Option<usize>,
) -> Found<SprtSettings> {
    if section.has("bouts") {
        let reason = "a sequential test ends when it has decided and has no `bouts`; give the most that it may play as \
                      `max_bouts`";
        section.reject::<()>("bouts", reason);
    }
    section.allow(&["format", "bounds", "model", "alpha", "beta", "max_bouts", "bouts"]);
    if players.is_some_and(|players| players.len() != 2) || seats.is_some_and(|seats| seats != 2) {
        let reason = "a sequential test is between exactly two players of a game with two seats";
        section.reject::<()>("format", reason);
    }
    let pair = |value: &DeValue<'_>| {
        let [low, high] = Toml(value).items(' ')?[..] else { return None };
        let (low, high) = (low.number()?, high.number()?);
        (low < high && low >= -1000.0 && high <= 1000.0).then_some([low, high])
    };
    let bounds = section.need("bounds", "two numbers of Elo, the smaller first, as in [0, 5]", pair);
    let model = section.choice_or("model", EloModel::Normalised);
    let share = |key: &str| {
        let form = "a number above 0 and below 0.5";
        let read = |value| Toml(value).number().filter(|share| *share > 0.0 && *share < 0.5);
        Some(section.maybe(key, form, read)?.unwrap_or(0.05))
    };
    let (alpha, beta) = (share("alpha"), share("beta"));
    let max_bouts = section.count("max_bouts", 1..=MAX_BOUTS);
    Some(SprtSettings {
        bounds: bounds?,
        normalised: model? == EloModel::Normalised,
        alpha: alpha?,
        beta: beta?,
        max_bouts: max_bouts?,
    })
}

/// The reader of openings and positions, which may stand in files.
pub(super) struct Files<'a> {
    source: &'a SpecSource,
    game: Option<&'a (GameSpec, Arena)>,
    /// Problems of the files' own lines.
    problems: &'a RefCell<Vec<SpecProblem>>,
}

impl Files<'_> {
    /// Reads the openings of a file and checks that each can be played from.
    fn book(&self, section: Section<'_, '_>) -> Found<Vec<Opening>> {
        let name = section.need("file", "the name of a file", text)?;
        let form = Form::of(name);
        let has_plies = matches!(form, Form::Pgn | Form::Polyglot);
        if !has_plies && section.has("plies") {
            let reason = "`plies` is only for PGN and Polyglot books, whose lines it cuts; leave it out";
            return section.reject("plies", reason);
        }
        if form == Form::Polyglot && !section.has("plies") {
            return section.missing("plies", "the length of the lines through a Polyglot book");
        }
        let plies = match section.has("plies") {
            true => Some(section.count("plies", 1..=MAX_PLIES)? as usize),
            false => None,
        };
        let (game, referee) = self.game?;
        if let Some(of_chess) = form.of_chess()
            && !is_chess(game)
        {
            let reason = format!(
                "`{name}` has the extension of {of_chess}, a format for chess only; for {} give lines of moves in a file \
                 with another extension",
                game.name()
            );
            return section.reject("file", reason);
        }
        let content = self.content(section, "file", name)?;
        let starts = match read(form, game, content, plies) {
            Ok(starts) => starts,
            Err(error) => return self.reject_line(name, error.line, &error.reason),
        };
        let canonical = |start: Start| {
            let opening = Opening { position: start.position, moves: start.moves };
            referee.canonical(&opening).map_err(|error| match error {
                PlayError::NothingToSearch { .. } if form == Form::Pgn => (
                    start.line,
                    "the moves of this game lead to its end; cut them with `plies`, as in \
                     { file = \"games.pgn\", plies = 8 }"
                        .to_string(),
                ),
                error => (start.line, error.to_string()),
            })
        };
        self.collect(name, starts.into_iter().map(canonical))
    }

    /// Reads the turns of a player in recorded games.
    fn recorded(&self, section: Section<'_, '_>) -> Found<Positions> {
        section.allow(&["file", "player", "turns", "after"]);
        let name = section.need("file", "the name of a file", text);
        let player = section.need("player", "the name of a player of the recorded games", text);
        let turns = section.count("turns", 1..=MAX_PLIES);
        let after = section.count_or("after", 0..=MAX_PLIES, 0);
        let (name, player, turns, after) = (name?, player?, turns? as usize, after? as usize);
        let (_, referee) = self.game?;
        let mut bytes = 0;
        let of_game = |game: Result<RecordedGame<'_>, ReadError>| {
            let RecordedGame { players, start } = game.map_err(|error| (error.line, error.reason))?;
            let line = start.line;
            let seats: Vec<usize> = (0..players.len()).filter(|&seat| players[seat] == player).collect();
            if seats.is_empty() {
                return Err((line, format!("`{player}` is not among the players {}", players.join(", "))));
            }
            let opening = Opening { position: start.position, moves: start.moves };
            let mut lines =
                referee.turns(&opening, &seats, after + turns).map_err(|error| (line, error.to_string()))?;
            if lines.len() < after + turns {
                let found = lines.len();
                let reason = format!("`{player}` has {found} turns in this game, not {}", after + turns);
                return Err((line, format!("{reason}; ask for fewer, or leave the game out")));
            }
            let lines = lines.split_off(after);
            bytes += lines.iter().map(|line| size_of::<Opening>() + line.moves.len()).sum::<usize>();
            if bytes > MAX_RECORDED_BYTES {
                let most = MAX_RECORDED_BYTES >> 20;
                let reason = format!("the moves before all turns up to this game are more than {most} MB");
                return Err((line, format!("{reason}; ask for fewer turns, or leave games out")));
            }
            Ok(lines)
        };
        let lines = self.collect(name, games(self.content(section, "file", name)?).map(of_game))?.concat();
        if lines.is_empty() {
            return section.reject("file", format!("there is no game in `{name}`; give a file with games"));
        }
        Some(Positions::Recorded { lines, turns: turns as u32 })
    }

    /// Returns the game with the number of its seats.
    pub(super) fn game_and_seats(&self) -> Found<(&GameSpec, usize)> {
        self.game.map(|(game, referee)| (game, referee.seats()))
    }

    /// Returns the content of a file that the section names with `key`.
    pub(super) fn content(&self, section: Section<'_, '_>, key: &str, name: &str) -> Found<&str> {
        match self.source.files.get(name) {
            Some(content) => Some(content),
            None => {
                let reason = format!("the file `{name}` was not found; it must be in the folder of the spec");
                section.reject(key, reason)
            }
        }
    }

    /// Collects what the lines of a file say, or reports the first problems, each with the number of its line.
    fn collect<T>(
        &self,
        name: &str,
        read: impl Iterator<Item = Result<T, (usize, String)>>,
    ) -> Found<Vec<T>> {
        let (mut collected, mut wrong) = (Vec::new(), 0);
        for item in read {
            match item {
                Ok(item) => collected.push(item),
                Err((line, reason)) => {
                    self.reject_line::<T>(name, line, &reason);
                    wrong += 1;
                }
            }
            if wrong == MAX_REPORTED {
                break;
            }
        }
        (wrong == 0).then_some(collected)
    }

    /// Reports a problem of a line of a file.
    pub(super) fn reject_line<T>(&self, name: &str, line: usize, reason: &str) -> Found<T> {
        let (file, line, reason) = (Some(name.to_string()), Some(line), printable(reason).into_owned());
        self.problems.borrow_mut().push(SpecProblem { file, line, reason });
        None
    }

    fn openings(&self, root: Section<'_, '_>, seed: Found<u64>) -> Found<Openings> {
        let Some(section) = root.section("openings", "openings")? else { return Some(Openings::None) };
        match (section.has("random_plies"), section.has("file")) {
            (true, false) => {
                section.allow(&["random_plies"]);
                Some(Openings::Random { plies: section.count("random_plies", 1..=MAX_PLIES)? as u32 })
            }
            (false, true) => {
                section.allow(&["file", "plies", "order"]);
                let order = section.choice_or("order", Order::Sequential);
                let mut lines = self.book(section)?;
                order?.apply(&mut lines, seed?);
                Some(Openings::Lines(lines))
            }
            (true, true) | (false, false) => {
                section.allow(&["random_plies", "file", "plies", "order"]);
                let reason = "openings are { random_plies = 6 }, or { file = \"lines\" }, or left out";
                root.reject("openings", reason)
            }
        }
    }

    fn positions(&self, probe: Section<'_, '_>, players: &[PlayerEntry<'_>]) -> Found<Positions> {
        probe.allow(&["positions"]);
        let read = || players.iter().filter_map(|entry| entry.player.as_ref());
        for player in read().filter(|player| player.config.engine().is_some()) {
            let reason = format!(
                "a probe compares the counts of built-in searches, and `{}` is an engine; leave it out",
                player.name
            );
            probe.problems.add(probe.start(), reason);
        }
        for player in read().filter(|player| player.has_time_limit()) {
            let reason = format!(
                "a probe compares counts, which a limit of time makes different each time; give `{}` depth or nodes",
                player.name
            );
            probe.problems.add(probe.start(), reason);
        }
        let form = "{ random = 200, plies = [4, 40] }, { file = \"lines\" } or { play = \"random\", turns = 5, games = 50 }";
        let Some(section) = probe.section("positions", "positions")? else {
            return probe.missing("positions", form);
        };
        if section.has("player") {
            return self.recorded(section);
        }
        if section.has("file") {
            section.allow(&["file", "plies"]);
            return self.book(section).map(Positions::Lines);
        }
        if section.has("play") {
            section.allow(&["play", "turns", "after", "games"]);
            let play: Found<PlayedBy> = section.choice("play");
            let games = section.count("games", 1..=MAX_BOUTS);
            let turns = section.count("turns", 1..=MAX_PLIES);
            let after = section.count_or("after", 0..=MAX_PLIES, 0);
            let PlayedBy::Random = play?;
            return Some(Positions::Play { games: games?, turns: turns? as u32, after: after? as u32 });
        }
        section.allow(&["random", "plies"]);
        let pair = |value: &DeValue<'_>| {
            let [low, high] = Toml(value).items(' ')?[..] else { return None };
            let (low, high) = (low.integer()?, high.integer()?);
            (low <= high && high <= MAX_PLIES).then_some([low as u32, high as u32])
        };
        let plies_form = format!("two whole numbers up to {MAX_PLIES}, the smaller first, as in [4, 40]");
        let count = section.count("random", 1..=MAX_BOUTS);
        let plies = section.need("plies", &plies_form, pair);
        Some(Positions::Random { count: count?, plies: plies? })
    }
}
