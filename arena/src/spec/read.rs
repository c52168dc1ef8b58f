//! From TOML tables to a spec: every key with its limits and a sentence.

use std::ops::{Range, RangeInclusive};

use agon_games::GameSpec;
use agon_games::exchange::Start;
use agon_search::Limit;
use toml::de::{DeTable, DeValue};

use super::openings::{Form, is_chess, read};
use super::{Format, Openings, Plan, Positions, Spec, SpecError, SpecPlayer, SpecSource, SprtSettings};
use super::{printable, read_tune};
use crate::arena::{Arena, Opening, PlayError, Surroundings};
use crate::config::PlayerConfig;
use crate::error::ConfigError;
use crate::limit::read_limit;
use crate::settings::{number, whole};

const KEYS: [&str; 10] =
    ["name", "game", "seed", "limit", "normalise", "openings", "tournament", "probe", "tune", "player"];
const FORMATS: [&str; 3] = ["round-robin", "gauntlet", "sprt"];
pub(super) const LONGEST_NAME: usize = 60;
const MOST_PLAYERS: usize = 1000;
pub(super) const MOST_BOUTS: u64 = 1_000_000_000;
const MOST_PLIES: u64 = 1000;

pub(super) type Found<T> = Result<T, ConfigError>;

/// A table with the name that errors call it by.
#[derive(Clone, Copy)]
pub(super) struct Part<'t, 's> {
    pub(super) table: &'t DeTable<'s>,
    pub(super) place: &'t str,
    /// Where the table itself begins, for keys that are missing.
    pub(super) start: Option<usize>,
}

impl<'t, 's> Part<'t, 's> {
    pub(super) fn allow(self, known: &[&str]) -> Found<Self> {
        match self.table.iter().find(|(key, _)| !known.contains(&&**key.get_ref())) {
            None => Ok(self),
            Some((key, _)) => {
                let known = known.iter().copied();
                Err(ConfigError::unknown_key(key.span(), self.place, "key", key.get_ref(), known))
            }
        }
    }

    pub(super) fn missing(self, key: &str, form: &str) -> ConfigError {
        ConfigError {
            span: self.start.map(|start| start..start),
            reason: format!("{} needs `{key}`: {form}", self.place),
        }
    }

    pub(super) fn wrong(self, key: &str, form: &str) -> ConfigError {
        let span = self.table.get(key).map(toml::Spanned::span);
        ConfigError { span, reason: format!("`{key}` of {} must be {form}", self.place) }
    }

    pub(super) fn value(self, key: &str) -> Option<&'t DeValue<'s>> {
        self.table.get(key).map(toml::Spanned::get_ref)
    }

    /// A value that is read by `read`; none where the key is not there.
    pub(super) fn maybe<T>(
        self,
        key: &str,
        form: &str,
        read: impl Fn(&'t DeValue<'s>) -> Option<T>,
    ) -> Found<Option<T>> {
        self.value(key).map(|value| read(value).ok_or_else(|| self.wrong(key, form))).transpose()
    }

    /// A value that must be there.
    pub(super) fn need<T>(
        self,
        key: &str,
        form: &str,
        read: impl Fn(&'t DeValue<'s>) -> Option<T>,
    ) -> Found<T> {
        self.maybe(key, form, read)?.ok_or_else(|| self.missing(key, form))
    }

    pub(super) fn count(self, key: &str, range: RangeInclusive<u64>) -> Found<u64> {
        let form = format!("a whole number from {} to {}", range.start(), range.end());
        self.need(key, &form, |value| whole(value).filter(|number| range.contains(number)))
    }

    /// The part of a key that is a table.
    pub(super) fn part(self, key: &str, place: &'t str) -> Found<Option<Part<'t, 's>>> {
        match self.table.get_key_value(key) {
            None => Ok(None),
            Some((word, value)) => match value.get_ref() {
                DeValue::Table(table) => Ok(Some(Part { table, place, start: Some(word.span().start) })),
                _ => Err(self.wrong(key, "a table")),
            },
        }
    }
}

pub(super) fn text<'t>(value: &'t DeValue<'_>) -> Option<&'t str> {
    value.as_str()
}

/// Whether a text can be a part of file names and addresses.
fn is_name(text: &str) -> bool {
    let known = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    (1..=LONGEST_NAME).contains(&text.len()) && text.chars().all(known) && !text.starts_with('-')
}

/// Whether a text can be a player's name: one word that neither a list nor a table can tear apart.
fn is_player_name(text: &str) -> bool {
    let known = |c: char| c.is_alphanumeric() || "-_.+=:%@/()".contains(c);
    (1..=LONGEST_NAME).contains(&text.chars().count()) && text.chars().all(known)
}

pub(super) fn spec(table: &DeTable<'_>, source: &SpecSource) -> Result<Spec, SpecError> {
    let located = |error: ConfigError| SpecError::at(&source.text, error.span, &error.reason);
    let root = Part { table, place: "the spec", start: None }.allow(&KEYS).map_err(located)?;
    let head = head(root).map_err(located)?;
    let mut players = players(root, &head).map_err(located)?;
    let referee = Arena::new(&head.game, &[], Surroundings::system())
        .map_err(|error| located(ConfigError { span: span_of(root, "game"), reason: error.to_string() }))?;
    let files = Files { source, game: &head.game, referee: &referee };
    let openings = files.openings(root)?;
    let parts = ["tournament", "probe", "tune"].map(|key| root.value(key).map(|_| key));
    let plan = match parts {
        [Some(key), None, None] => {
            let part = root.part(key, "[tournament]").map_err(located)?;
            let part = part.expect("the key is there");
            Plan::Tournament(format(part, &players, referee.seats()).map_err(located)?)
        }
        [None, Some(key), None] => {
            let part = root.part(key, "[probe]").map_err(located)?.expect("the key is there");
            if root.value("openings").is_some() {
                let reason = "a probe has `positions` and no `openings`; leave `openings` out".to_string();
                return Err(located(ConfigError { span: span_of(root, "openings"), reason }));
            }
            Plan::Probe(files.positions(part, &players)?)
        }
        [None, None, Some(key)] => {
            let part = root.part(key, "[tune]").map_err(located)?.expect("the key is there");
            let (tune, more) =
                read_tune::tune(root, part, &head, &players, referee.seats()).map_err(located)?;
            players = more;
            if openings == Openings::None {
                let reason = "a tune needs `openings`, as in openings = { random_plies = 4 }: it is proved on some that \
                              it never used"
                    .to_string();
                return Err(located(ConfigError { span: span_of(root, key), reason }));
            }
            Plan::Tune(tune)
        }
        [_, probe, tune] => {
            let reason = "a spec has either a [tournament], a [probe] or a [tune]".to_string();
            let span = tune.or(probe).and_then(|key| span_of(root, key));
            return Err(located(ConfigError { span, reason }));
        }
    };
    let normalise = normalise(root, &players).map_err(located)?;
    Ok(Spec { name: head.name, game: head.game, seed: head.seed, normalise, openings, players, plan })
}

/// Whether limits of time are scaled by the speed of whoever plays.
fn normalise(root: Part<'_, '_>, players: &[SpecPlayer]) -> Found<bool> {
    let wanted = root.maybe("normalise", "true or false", DeValue::as_bool)?.unwrap_or(false);
    if wanted && players.iter().all(SpecPlayer::is_repeatable) {
        let reason = "`normalise` scales limits of time, and no player has one; leave it out".to_string();
        return Err(ConfigError { span: span_of(root, "normalise"), reason });
    }
    Ok(wanted)
}

pub(super) fn span_of(part: Part<'_, '_>, key: &str) -> Option<Range<usize>> {
    part.table.get(key).map(toml::Spanned::span)
}

/// What stands above the players.
pub(super) struct Head {
    name: String,
    pub(super) game: GameSpec,
    seed: u64,
    limit: Option<Limit>,
}

fn head(root: Part<'_, '_>) -> Found<Head> {
    let form = format!("a word of at most {LONGEST_NAME} small letters, digits and hyphens");
    let name = root.need("name", &form, |value| text(value).filter(|name| is_name(name)))?.to_string();
    let seed = match root.value("seed") {
        None => 0,
        Some(_) => root.count("seed", 0..=i64::MAX as u64)?,
    };
    Ok(Head { name, game: game(root)?, seed, limit: limit(root)? })
}

fn limit(part: Part<'_, '_>) -> Found<Option<Limit>> {
    let Some(inner) = part.part("limit", "limit")? else { return Ok(None) };
    let place =
        |error: ConfigError| ConfigError { span: error.span.or_else(|| span_of(part, "limit")), ..error };
    read_limit(inner.table).map(Some).map_err(place)
}

fn game(root: Part<'_, '_>) -> Found<GameSpec> {
    let form = "a name such as \"othello\", or a table such as { name = \"virus\", seats = 4 }";
    let parsed = match root.value("game") {
        None => return Err(root.missing("game", form)),
        Some(DeValue::String(name)) => GameSpec::parse(name),
        Some(DeValue::Table(table)) => {
            let start = span_of(root, "game").map(|span| span.start);
            let part = Part { table, place: "game", start };
            let name = part.need("name", "the name of a game", text)?;
            let mut pairs = Vec::new();
            for (key, value) in table.iter().filter(|(key, _)| &**key.get_ref() != "name") {
                let written = match value.get_ref() {
                    DeValue::String(word) => word.to_string(),
                    DeValue::Boolean(flag) => flag.to_string(),
                    DeValue::Integer(number) => number.as_str().to_string(),
                    DeValue::Float(number) => number.as_str().to_string(),
                    _ => return Err(part.wrong(key.get_ref(), "a number, a word, true or false")),
                };
                pairs.push((key.get_ref().to_string(), written));
            }
            GameSpec::new(name, pairs.iter().map(|(key, value)| (key.as_str(), value.as_str())))
        }
        Some(_) => return Err(root.wrong("game", form)),
    };
    parsed.map_err(|error| ConfigError { span: span_of(root, "game"), reason: error.to_string() })
}

fn players(root: Part<'_, '_>, head: &Head) -> Found<Vec<SpecPlayer>> {
    let form = "one [[player]] for each player";
    let list = root.need("player", form, DeValue::as_array)?;
    if list.len() > MOST_PLAYERS {
        return Err(root.wrong("player", &format!("at most {MOST_PLAYERS} players")));
    }
    let mut players: Vec<SpecPlayer> = Vec::new();
    for item in list {
        let span = item.span();
        let DeValue::Table(table) = item.get_ref() else { return Err(root.wrong("player", form)) };
        let part = Part { table, place: "a player", start: Some(span.start) };
        let form = format!("a word of at most {LONGEST_NAME} letters, digits and -_.+=:%@/()");
        let name = part.need("name", &form, |value| text(value).filter(|name| is_player_name(name)))?;
        if players.iter().any(|player| player.name == name) {
            let reason = format!("two players are called `{name}`; names must differ");
            return Err(ConfigError { span: span_of(part, "name"), reason });
        }
        let config = PlayerConfig::read(&head.game, table, &["name", "limit", "search", "evaluation"])
            .map_err(|error| ConfigError {
                span: error.span.or(Some(span.clone())),
                reason: format!("player `{name}`: {}", error.reason),
            })?;
        let missing = || ConfigError {
            span: Some(span.clone()),
            reason: format!(
                "player `{name}` has no limit; give `limit` at the top, as in limit = {{ ms = 50 }}, or in the player"
            ),
        };
        let limit = limit(part)?.or(head.limit).ok_or_else(missing)?;
        config.check_limit(limit).map_err(|error| ConfigError {
            span: span_of(part, "limit").or(Some(span.clone())),
            reason: format!("player `{name}`: {}", error.reason),
        })?;
        players.push(SpecPlayer { name: name.to_string(), config, limit });
    }
    let limits_given = list.iter().all(|item| match item.get_ref() {
        DeValue::Table(table) => table.contains_key("limit"),
        _ => false,
    });
    if limits_given && head.limit.is_some() {
        let reason = "every player has a limit of its own; leave the one at the top out".to_string();
        return Err(ConfigError { span: span_of(root, "limit"), reason });
    }
    Ok(players)
}

fn format(part: Part<'_, '_>, players: &[SpecPlayer], seats: usize) -> Found<Format> {
    let form = format!("one of {}", FORMATS.map(|name| format!("\"{name}\"")).join(", "));
    let name = part.need("format", &form, |value| text(value).filter(|name| FORMATS.contains(name)))?;
    if players.len() < 2 {
        let reason = "a tournament needs at least two players".to_string();
        return Err(ConfigError { span: span_of(part, "format"), reason });
    }
    match name {
        "round-robin" => {
            part.allow(&["format", "bouts"])?;
            Ok(Format::RoundRobin { bouts: part.count("bouts", 1..=MOST_BOUTS)? })
        }
        "gauntlet" => {
            part.allow(&["format", "bouts", "hero"])?;
            let names: Vec<&str> = players.iter().map(|player| player.name.as_str()).collect();
            let form = format!("the name of a player: {}", names.join(", "));
            let find = |value| names.iter().position(|&name| Some(name) == text(value));
            Ok(Format::Gauntlet {
                hero: part.need("hero", &form, find)?,
                bouts: part.count("bouts", 1..=MOST_BOUTS)?,
            })
        }
        _ => sprt(part, players, seats).map(Format::Sprt),
    }
}

fn sprt(part: Part<'_, '_>, players: &[SpecPlayer], seats: usize) -> Found<SprtSettings> {
    if let Some(span) = span_of(part, "bouts") {
        let reason = "a sequential test ends when it has decided and has no `bouts`; say with `max_bouts` how many it may \
                      take at most"
            .to_string();
        return Err(ConfigError { span: Some(span), reason });
    }
    part.allow(&["format", "bounds", "model", "alpha", "beta", "max_bouts"])?;
    if players.len() != 2 || seats != 2 {
        let reason = "a sequential test is between exactly two players of a game with two seats".to_string();
        return Err(ConfigError { span: span_of(part, "format"), reason });
    }
    let pair = |value: &DeValue<'_>| {
        let [low, high] = value.as_array()?.iter().collect::<Vec<_>>()[..] else { return None };
        let (low, high) = (number(low.get_ref())?, number(high.get_ref())?);
        (low < high && low >= -1000.0 && high <= 1000.0).then_some([low, high])
    };
    let bounds = part.need("bounds", "two numbers of Elo, the smaller first, as in [0, 5]", pair)?;
    let models = ["normalised", "logistic"];
    let model = part.maybe("model", "\"normalised\" or \"logistic\"", |value| {
        text(value).filter(|model| models.contains(model))
    })?;
    let share = |key: &str| {
        let form = "a number above 0 and below 0.5";
        let given = part.maybe(key, form, |value| number(value).filter(|share| *share > 0.0 && *share < 0.5));
        given.map(|share| share.unwrap_or(0.05))
    };
    Ok(SprtSettings {
        bounds,
        normalised: model != Some("logistic"),
        alpha: share("alpha")?,
        beta: share("beta")?,
        max_bouts: part.count("max_bouts", 1..=MOST_BOUTS)?,
    })
}

/// Reads what may stand in files.
struct Files<'a> {
    source: &'a SpecSource,
    game: &'a GameSpec,
    referee: &'a Arena,
}

impl Files<'_> {
    fn located(&self, error: ConfigError) -> SpecError {
        SpecError::at(&self.source.text, error.span, &error.reason)
    }

    /// The openings of a file, each of which can be played from.
    fn book(&self, part: Part<'_, '_>) -> Result<Vec<Opening>, SpecError> {
        let located = |error| self.located(error);
        part.allow(&["file", "plies"]).map_err(located)?;
        let name = part.need("file", "the name of a file", text).map_err(located)?;
        let form = Form::of(name);
        if let Some(of_chess) = form.of_chess()
            && !is_chess(self.game)
        {
            let reason = format!(
                "`{name}` is {of_chess} by its ending, which is chess alone; for {} give lines of moves in a file \
                 with another ending",
                self.game.name()
            );
            return Err(located(ConfigError { span: span_of(part, "file"), reason }));
        }
        if form != Form::Pgn && part.value("plies").is_some() {
            let reason = "`plies` goes with a file of PGN, whose games it cuts; leave it out".to_string();
            return Err(located(ConfigError { span: span_of(part, "plies"), reason }));
        }
        let plies = match part.value("plies") {
            None => None,
            Some(_) => Some(part.count("plies", 1..=MOST_PLIES).map_err(located)? as usize),
        };
        let Some(content) = self.source.files.get(name) else {
            let reason = format!("the file `{name}` is not at hand; it is looked for beside the spec");
            return Err(located(ConfigError { span: span_of(part, "file"), reason }));
        };
        let wrong = |line: usize, reason: String| SpecError {
            file: Some(name.to_string()),
            line: Some(line),
            reason: printable(&reason),
        };
        let starts =
            read(form, self.game, content, plies).map_err(|error| wrong(error.line, error.reason))?;
        let settle = |start: Start| {
            let opening = Opening { position: start.position, moves: start.moves };
            self.referee.settle(&opening).map_err(|error| match error {
                PlayError::NothingToSearch { .. } if form == Form::Pgn => wrong(
                    start.line,
                    "the moves of this game lead to its end; cut them with `plies`, as in \
                     { file = \"games.pgn\", plies = 8 }"
                        .to_string(),
                ),
                error => wrong(start.line, error.to_string()),
            })
        };
        starts.into_iter().map(settle).collect()
    }

    fn openings(&self, root: Part<'_, '_>) -> Result<Openings, SpecError> {
        let located = |error| self.located(error);
        let Some(part) = root.part("openings", "openings").map_err(located)? else {
            return Ok(Openings::None);
        };
        part.allow(&["random_plies", "file", "plies"]).map_err(located)?;
        match (part.value("random_plies"), part.value("file")) {
            (Some(_), None) => {
                part.allow(&["random_plies"]).map_err(located)?;
                let plies = part.count("random_plies", 1..=MOST_PLIES).map_err(located)? as u32;
                Ok(Openings::Random { plies })
            }
            (None, Some(_)) => self.book(part).map(Openings::Lines),
            _ => {
                let reason =
                    "openings are { random_plies = 6 }, or { file = \"lines\" }, or left out".to_string();
                Err(located(ConfigError { span: span_of(root, "openings"), reason }))
            }
        }
    }

    fn positions(&self, probe: Part<'_, '_>, players: &[SpecPlayer]) -> Result<Positions, SpecError> {
        let located = |error| self.located(error);
        probe.allow(&["positions"]).map_err(located)?;
        if let Some(player) = players.iter().find(|player| !player.is_repeatable()) {
            let reason = format!(
                "a probe compares counts, which a limit of time makes different each time; give `{}` depth or nodes",
                player.name
            );
            let span = probe.start.map(|start| start..start);
            return Err(located(ConfigError { span, reason }));
        }
        let form = "{ random = 200, plies = [4, 40] }, { file = \"lines\" } or { play = \"random\", turns = 5, games = 50 }";
        let part = probe
            .part("positions", "positions")
            .and_then(|part| part.ok_or_else(|| probe.missing("positions", form)))
            .map_err(located)?;
        if part.value("file").is_some() {
            return self.book(part).map(Positions::Lines);
        }
        if part.value("play").is_some() {
            part.allow(&["play", "turns", "after", "games"]).map_err(located)?;
            part.need("play", "\"random\"", |value| text(value).filter(|&word| word == "random"))
                .map_err(located)?;
            let after = |value: &DeValue<'_>| {
                whole(value).filter(|turns| *turns <= MOST_PLIES).map(|turns| turns as u32)
            };
            let after_form = format!("a whole number up to {MOST_PLIES}");
            return Ok(Positions::Play {
                games: part.count("games", 1..=MOST_BOUTS).map_err(located)?,
                turns: part.count("turns", 1..=MOST_PLIES).map_err(located)? as u32,
                after: part.maybe("after", &after_form, after).map_err(located)?.unwrap_or(0),
            });
        }
        part.allow(&["random", "plies"]).map_err(located)?;
        let pair = |value: &DeValue<'_>| {
            let [low, high] = value.as_array()?.iter().collect::<Vec<_>>()[..] else { return None };
            let (low, high) = (whole(low.get_ref())?, whole(high.get_ref())?);
            (low <= high && high <= MOST_PLIES).then_some([low as u32, high as u32])
        };
        let plies_form = format!("two whole numbers up to {MOST_PLIES}, the smaller first, as in [4, 40]");
        Ok(Positions::Random {
            count: part.count("random", 1..=MOST_BOUTS).map_err(located)?,
            plies: part.need("plies", &plies_form, pair).map_err(located)?,
        })
    }
}
