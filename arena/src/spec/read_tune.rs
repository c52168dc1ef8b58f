//! Reads a `[tune]` table: every key with its limits and its error text, and the players that a tuning run adds.

use agon_games::schema::{Choice, Input};
use agon_games::{GameSpec, choices};
use toml::de::{DeTable, DeValue};

use super::SpecPlayer;
use super::read::{MAX_BOUTS, MAX_NAME_LENGTH, PlayerEntry, named, names, text};
use super::tune::{MILLION, Method, Parameter, Roles, Tune, decimal, number as number_of};
use crate::config::Target;
use crate::section::{Found, Section, Toml};

const KEYS: &[&str] = &[
    "player",
    "method",
    "bouts",
    "pairs",
    "window",
    "rate",
    "batch",
    "opponents",
    "validation",
    "parameter",
];
/// The most bouts of a tuning run, which keeps their results in memory.
const MAX_TUNING_BOUTS: u64 = 1_000_000;
const MAX_PARAMETERS: usize = 64;
/// The most trials of a Gaussian process, whose cost grows with the cube of their number.
const MAX_TRIALS: u64 = 1000;
const MAX_DIMENSIONS: usize = 6;

#[derive(Clone, Copy, PartialEq)]
enum MethodName {
    Spsa,
    Bayes,
}

choices!(MethodName { Spsa = "spsa", Bayes = "bayes" });

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Integer,
    Real,
}

choices!(Kind { Integer = "integer", Real = "real" });

#[derive(Clone, Copy, PartialEq)]
enum Scale {
    Linear,
    Log,
}

choices!(Scale { Linear = "linear", Log = "log" });

/// Reads a tune and the players of the spec. The tuned player gets the start values, and the players that the tune adds
/// follow the written ones.
pub(super) fn tune(
    root: Section<'_, '_>,
    section: Section<'_, '_>,
    game: Option<&GameSpec>,
    players: &[PlayerEntry<'_>],
    seats: Option<usize>,
) -> Found<(Tune, Vec<SpecPlayer>)> {
    section.allow(KEYS);
    if seats.is_some_and(|seats| seats != 2) {
        section.problems.add(section.start(), "a tune needs a game with two seats");
    }
    // 1. The player and its opponents.
    let listed = names(players).join(", ");
    let player =
        section.need("player", &format!("the name of a player: {listed}"), |name| named(players, name));
    let given = section.maybe("opponents", &format!("a list of names of players: {listed}"), |value| {
        let list: Vec<usize> =
            value.as_array()?.iter().map(|name| named(players, name.get_ref())).collect::<Option<_>>()?;
        let repeated = (1..list.len()).any(|index| list[..index].contains(&list[index]));
        (!list.is_empty() && !repeated).then_some(list)
    });
    // 2. The method. Without one, what depends on it is not checked.
    let validation = validation(section);
    let name: Found<MethodName> = section.choice("method");
    let bouts = section.count("bouts", 1..=MAX_TUNING_BOUTS);
    let name = name?;
    let (others, method): (&[&str], Found<Method>) = match name {
        MethodName::Spsa => {
            let (window, rate) = (section.count_or("window", 1..=10_000, 16), rate(section));
            (&["batch"], window.zip(rate).map(|(window, rate)| Method::Spsa { window, rate }))
        }
        MethodName::Bayes => {
            let batch = section.count_or("batch", 1..=256, 8);
            (&["window", "rate"], batch.map(|batch| Method::Bayes { batch }))
        }
    };
    for key in others.iter().filter(|key| section.has(key)) {
        section.reject::<()>(key, format!("`{key}` does not apply to \"{}\"; leave it out", name.name()));
    }
    let opponents = player.zip(given).map(|(player, given)| match (name, given) {
        (_, Some(list)) => list,
        // The two sides of an SPSA iteration play each other; a trial plays the start.
        (MethodName::Spsa, None) => Vec::new(),
        (MethodName::Bayes, None) => vec![player],
    });
    if let Some((player, opponents)) = player.zip(opponents.as_ref()) {
        for (index, other) in players.iter().enumerate() {
            if let Some(other) = other.name
                && index != player
                && !opponents.contains(&index)
            {
                let reason =
                    format!("`{other}` plays no part in this tune; name it in `opponents` or leave it out");
                section.problems.add(section.start(), reason);
            }
        }
    }
    // 3. The number of bouts.
    let pairs = section.count_or("pairs", 1..=10_000, if name == MethodName::Bayes { 16 } else { 1 });
    if let (Some(bouts), Some(pairs), Some(opponents)) = (bouts, pairs, &opponents) {
        check_bouts(section, name, bouts, pairs, opponents.is_empty());
    }
    // 4. The parameters.
    let tuned = player.and_then(|player| players[player].player.as_ref());
    let parameters = match game.zip(tuned) {
        Some((game, tuned)) => parameters(root, section, game, tuned, name),
        None => None,
    };
    // 5. The players that it adds.
    let (player, tuned) = (player?, tuned?);
    let base = players.len();
    let minus = (name == MethodName::Spsa).then_some(base + 1);
    let roles = Roles { plus: base, minus, tuned: base + 1 + usize::from(minus.is_some()) };
    let endings = ["+", "-", "-tuned"].into_iter().filter(|&ending| ending != "-" || minus.is_some());
    let added: Vec<String> = endings.map(|ending| format!("{}{ending}", tuned.name)).collect();
    for name in &added {
        if name.chars().count() > MAX_NAME_LENGTH || players.iter().any(|entry| entry.name == Some(name)) {
            let reason =
                format!("the tune adds a player `{name}`; give the tuned one a shorter or another name");
            section.reject::<()>("player", reason);
        }
    }
    let tune = Tune {
        player,
        parameters: parameters?,
        method: method?,
        bouts: bouts?,
        pairs: pairs?,
        opponents: opponents?,
        validation: validation?,
        roles,
    };
    let mut all: Vec<SpecPlayer> = players.iter().map(|entry| entry.player.clone()).collect::<Option<_>>()?;
    all[player].config = tune.configure(&all[player].config, &tune.start());
    let start = all[player].clone();
    all.extend(added.into_iter().map(|name| SpecPlayer { name, ..start.clone() }));
    Some((tune, all))
}

fn validation(section: Section<'_, '_>) -> Found<u64> {
    let form = "{ bouts = 200 }: tuned against start, on openings that the tuning does not use";
    let Some(inner) = section.section("validation", "validation")? else {
        return section.missing("validation", form);
    };
    inner.allow(&["bouts"]);
    inner.count("bouts", 1..=MAX_BOUTS)
}

fn rate(section: Section<'_, '_>) -> Found<f64> {
    let form = "a number above 0 and up to 10: the change in the last iterations, in steps per win";
    let read = |value| Toml(value).number().filter(|rate| *rate > 0.0 && *rate <= 10.0);
    Some(section.maybe("rate", form, read)?.unwrap_or(0.02))
}

/// Reports a number of bouts that is no multiple of a step, or too many trials.
fn check_bouts(section: Section<'_, '_>, name: MethodName, bouts: u64, pairs: u64, against_itself: bool) {
    let step_bouts = if name == MethodName::Spsa && !against_itself { 2 * pairs } else { pairs };
    if !bouts.is_multiple_of(step_bouts) {
        let what = if step_bouts == pairs { "" } else { ", each against plus and minus" };
        let less = bouts - bouts % step_bouts;
        let reason = format!(
            "`bouts` must be a multiple of {step_bouts}, the bouts of one step ({pairs} openings{what}); write {}",
            if less == 0 { step_bouts } else { less }
        );
        section.reject::<()>("bouts", reason);
    } else if name == MethodName::Bayes && bouts / pairs > MAX_TRIALS {
        let reason = format!(
            "{} trials are more than {MAX_TRIALS}, the limit of a Gaussian process; give each more `pairs`",
            bouts / pairs
        );
        section.reject::<()>("bouts", reason);
    }
}

fn parameters(
    root: Section<'_, '_>,
    section: Section<'_, '_>,
    game: &GameSpec,
    player: &SpecPlayer,
    method: MethodName,
) -> Found<Vec<Parameter>> {
    let form = "one [[tune.parameter]] for each number that is tuned";
    let list = section.need("parameter", form, DeValue::as_array)?;
    let (most, more) = match method {
        MethodName::Spsa => (MAX_PARAMETERS, ""),
        MethodName::Bayes => (MAX_DIMENSIONS, "; tune more with \"spsa\""),
    };
    if list.is_empty() || list.len() > most {
        return section.wrong("parameter", &format!("1 to {most} parameters{more}"));
    }
    let written = written(root, &player.name);
    let mut parameters: Vec<Found<Parameter>> = Vec::new();
    let mut paths: Vec<&str> = Vec::new();
    for item in list {
        let DeValue::Table(table) = item.get_ref() else { return section.wrong("parameter", form) };
        let inner = Section { table, name: "a parameter", start: Some(item.span().start), ..section };
        parameters.push(parameter(inner, game, player, method, written));
        if let Some(path) = inner.value("path").and_then(text) {
            if paths.contains(&path) {
                inner.reject::<()>("path", format!("`{path}` is tuned twice; leave one out"));
            }
            paths.push(path);
        }
    }
    parameters.into_iter().collect()
}

/// Returns a player's table.
fn written<'t, 's>(root: Section<'t, 's>, name: &str) -> Option<&'t DeTable<'s>> {
    let tables = root.value("player")?.as_array()?.iter().filter_map(|item| match item.get_ref() {
        DeValue::Table(table) => Some(table),
        _ => None,
    });
    tables.into_iter().find(|table| table.get("name").and_then(|value| text(value.get_ref())) == Some(name))
}

fn parameter(
    section: Section<'_, '_>,
    game: &GameSpec,
    player: &SpecPlayer,
    method: MethodName,
    written: Option<&DeTable<'_>>,
) -> Found<Parameter> {
    section.allow(&["path", "start", "min", "max", "kind", "scale", "step"]);
    // 1. The number that is tuned.
    let scale = section.choice_or("scale", Scale::Linear);
    let kind = section.has("kind").then(|| section.choice::<Kind>("kind"));
    let path = section.need("path", "a path into the player, as \"search.c\"", text)?;
    let (target, domain) = match player.config.target(game, path) {
        Ok(found) => found,
        Err(reason) => return section.reject("path", format!("player `{}`: {reason}", player.name)),
    };
    let must_be_whole = matches!(target, Target::Whole(_));
    let whole_only = match kind {
        None => must_be_whole,
        Some(kind) => kind? == Kind::Integer,
    };
    if must_be_whole && !whole_only {
        return section.reject("kind", format!("`{path}` is a whole number; write kind = \"integer\""));
    }
    // 2. Its bounds and its start.
    let form =
        if whole_only { "a whole number" } else { "a number with at most six digits behind its point" };
    let start = section.maybe("start", form, |value| exact(value, whole_only));
    let [min, max] = ["min", "max"].map(|key| {
        let bound = section.need(key, form, |value| exact(value, whole_only))?;
        if !(domain[0]..=domain[1]).contains(&number_of(bound)) {
            let reason = format!(
                "`{key}` of `{path}` must be from {} to {}, not {}",
                domain[0],
                domain[1],
                decimal(bound)
            );
            return section.reject(key, reason);
        }
        Some(bound)
    });
    let bounds = [min?, max?];
    if bounds[0] >= bounds[1] {
        return section.reject("min", format!("`min` of `{path}` must be less than `max`"));
    }
    let number = Tuned { path, target, bounds, whole: whole_only };
    let start = start_value(section, player, written, &number, start?);
    // 3. Its steps.
    let log = scale? == Scale::Log;
    if log && bounds[0] <= 0 {
        let reason = format!(
            "a logarithmic scale needs a `min` above 0, and that of `{path}` is {}",
            decimal(bounds[0])
        );
        return section.reject("scale", reason);
    }
    let step = step(section, method, bounds, log);
    Some(Parameter {
        path: path.to_string(),
        target,
        start: start?,
        bounds,
        whole: whole_only,
        log,
        step: step?,
    })
}

/// A number of a player with the bounds of its tune.
struct Tuned<'a> {
    path: &'a str,
    target: Target,
    bounds: [i64; 2],
    whole: bool,
}

/// Returns the start of a parameter: the given one, or that of the player.
fn start_value(
    section: Section<'_, '_>,
    player: &SpecPlayer,
    written: Option<&DeTable<'_>>,
    number: &Tuned<'_>,
    given: Option<i64>,
) -> Found<i64> {
    let Tuned { path, target, bounds, whole } = *number;
    if let (Some(start), Some((key, other))) = (given, written_number(written, path))
        && Toml(other).number() != Some(number_of(start))
    {
        let reason = format!(
            "player `{}` has a `{key}` that differs from `start` of `{path}`, which is {}; leave one of them out",
            player.name,
            decimal(start)
        );
        return section.reject("start", reason);
    }
    let configured = (player.config.number(target) * MILLION as f64).round() as i64;
    let start = given.unwrap_or(configured);
    if !(bounds[0]..=bounds[1]).contains(&start) {
        let reason = format!(
            "the start of `{path}` must be from {} to {}, not {}",
            decimal(bounds[0]),
            decimal(bounds[1]),
            decimal(start)
        );
        return section.reject(if given.is_some() { "start" } else { "path" }, reason);
    }
    if whole && start % MILLION != 0 {
        let reason = format!("`{path}` starts at {}, which is not whole; give `start`", decimal(start));
        return section.reject("path", reason);
    }
    Some(start)
}

/// Reads the step, which SPSA needs and a Gaussian process does not have.
fn step(section: Section<'_, '_>, method: MethodName, bounds: [i64; 2], log: bool) -> Found<Option<f64>> {
    let [min, max] = bounds.map(number_of);
    let (what, least, most) = if log { ("a ratio", 1.0, max / min) } else { ("a number", 0.0, max - min) };
    let shown = if log { format!("{most:.6}") } else { most.to_string() };
    let form =
        format!("{what} above {least} and at most {shown}, by which it is changed in the last iteration");
    let read = |value| Toml(value).number().filter(|step| *step > least && *step <= most);
    match method {
        MethodName::Spsa => section.need("step", &form, read).map(Some),
        MethodName::Bayes if section.has("step") => section.reject(
            "step",
            "`step` does not apply to \"bayes\", which searches the whole range; leave it out",
        ),
        MethodName::Bayes => Some(None),
    }
}

/// Returns the number at a path of a player's table.
fn written_number<'t, 's>(
    player: Option<&'t DeTable<'s>>,
    path: &'t str,
) -> Option<(&'t str, &'t DeValue<'s>)> {
    let (table, key) = path.split_once('.')?;
    let DeValue::Table(inner) = player?.get(table)?.get_ref() else { return None };
    inner.get(key).map(|value| (key, value.get_ref()))
}

/// Returns a number in millionths, if they represent it exactly.
fn exact(value: &DeValue<'_>, whole_only: bool) -> Option<i64> {
    let number = Toml(value).number().filter(|number| number.abs() <= 1e9)?;
    let millionths = (number * MILLION as f64).round() as i64;
    let unit = if whole_only { MILLION } else { 1 };
    (number_of(millionths) == number && millionths % unit == 0).then_some(millionths)
}
