//! Reads a `[tune]` table: the allowed values of every key with their error texts, and the players that a tuning run adds.
//!
//! As in `read.rs`, a function that finds a problem reports it and returns none, and its caller continues as far as it can.

use agon_games::schema::{Choice, Input};
use agon_games::{GameSpec, choices};
use toml::de::{DeTable, DeValue};

use super::SpecPlayer;
use super::read::{Files, MAX_BOUTS, MAX_NAME_LENGTH, MAX_REPORTED, PlayerEntry, named, names, text};
use super::read_trials::trials;
use super::subtable;
use super::tune::{
    FEW_PARAMETERS, ImportedTrial, MILLION, Method, Parameter, Roles, Tune, Validation, decimal,
    number as from_millionths,
};
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
    "repeats",
    "precision",
    "import",
    "validation",
    "parameter",
];
/// The word in `opponents` for the other side of an iteration.
const SELF: &str = "self";
const MAX_REPEATS: u64 = 100;
/// The most bouts of a tuning run, which keeps their results in memory.
const MAX_TUNING_BOUTS: u64 = 1_000_000;
const MAX_SPSA_PARAMETERS: usize = 64;
/// The most trials of a Gaussian process, whose cost grows with the cube of their number.
const MAX_TRIALS: u64 = 1000;
const MAX_BAYES_PARAMETERS: usize = 6;
/// The bouts from which `auto` prefers SPSA for few parameters too: measured at 200 and 800 (docs/studies/tuning.md).
const BOUTS_FOR_SPSA: u64 = 400;

#[derive(Clone, Copy, PartialEq)]
enum MethodName {
    Auto,
    Spsa,
    Bayes,
}

choices!(MethodName { Auto = "auto", Spsa = "spsa", Bayes = "bayes" });

#[derive(Clone, Copy, PartialEq)]
enum ParameterKind {
    Integer,
    Real,
}

choices!(ParameterKind { Integer = "integer", Real = "real" });

#[derive(Clone, Copy, PartialEq)]
enum Scale {
    Linear,
    Log,
}

choices!(Scale { Linear = "linear", Log = "log" });

/// Reads the settings of a tuning run. Returns them with all players of the run: those of the spec, where the tuned player has
/// the start values, then those that the tuning run adds.
pub(super) fn tune(
    root: Section<'_, '_>,
    section: Section<'_, '_>,
    files: &Files<'_>,
    players: &[PlayerEntry<'_>],
) -> Found<(Tune, Vec<SpecPlayer>)> {
    section.allow(KEYS);
    let (game, seats) = files.game_and_seats()?;
    // 1. The player and its opponents.
    let form = format!("the name of a player: {}", names(players).join(", "));
    let player = section.need("player", &form, |name| named(players, name));
    // 2. The method, and the keys that do not depend on it. Without a valid method, the others are not checked.
    let validation = player.map(|player| validation(section, player, players));
    let asked = section.choice_or("method", MethodName::Auto);
    let bouts = section.count("bouts", 1..=MAX_TUNING_BOUTS);
    let repeats = section.count_or("repeats", 1..=MAX_REPEATS, 1);
    let precision = precision(section);
    let (method_name, why) = match asked? {
        MethodName::Auto => chosen_method(section, bouts?),
        named => (named, None),
    };
    let (inapplicable, method): (&[(&str, &str)], Found<Method>) = match method_name {
        MethodName::Auto | MethodName::Spsa => {
            let (window, rate) = (section.count_or("window", 1..=10_000, 16), rate(section));
            let inapplicable = &[
                ("batch", "leave it out"),
                ("precision", "whose answer has no interval; leave it out"),
                (
                    "import",
                    "which follows its own path; leave it out, and start at the values that `agon tune` prints",
                ),
            ];
            (inapplicable, window.zip(rate).map(|(window, rate)| Method::Spsa { window, rate }))
        }
        MethodName::Bayes => {
            let batch = section.count_or("batch", 1..=256, 8);
            let inapplicable = &[("window", "leave it out"), ("rate", "leave it out")];
            (inapplicable, batch.map(|batch| Method::Bayes { batch }))
        }
    };
    for (key, remedy) in inapplicable.iter().filter(|(key, _)| section.has(key)) {
        let comma = if remedy.starts_with("wh") { "," } else { ";" };
        let reason = format!("`{key}` does not apply to \"{}\"{comma} {remedy}", method_name.name());
        section.reject::<()>(key, reason);
    }
    let opponents = player.and_then(|player| opponents(section, players, player, method_name, seats));
    if let Some(((player, opponents), Some(validation))) =
        player.zip(opponents.as_ref()).zip(validation.as_ref())
    {
        for (index, other) in players.iter().enumerate() {
            let takes_part =
                index == player || opponents.contains(&Some(index)) || validation.opponents.contains(&index);
            if let Some(other) = other.name.filter(|_| !takes_part) {
                let reason = format!(
                    "`{other}` plays no part in this tune; name it in `opponents` or in `against` of `validation`, or leave it out"
                );
                section.problems.add(section.start(), reason);
            }
        }
    }
    // 3. The parameters, and trials at their values.
    let tuned_player = player.and_then(|player| players[player].player.as_ref());
    let parameters =
        tuned_player.and_then(|tuned_player| parameters(root, section, game, tuned_player, method_name));
    let imported = match &parameters {
        Some(parameters) => imported(section, files, parameters),
        None => None,
    };
    // 4. The added players.
    let usual_pairs = match (method_name, bouts) {
        (MethodName::Bayes, Some(bouts)) => pairs_of_trials(bouts),
        _ => 1,
    };
    let pairs = section.count_or("pairs", 1..=10_000, usual_pairs);
    let (player, tuned_player, repeats) = (player?, tuned_player?, repeats?);
    let plus = players.len();
    let minus = (method_name != MethodName::Bayes).then_some(plus + 1);
    let roles = Roles { plus, minus, tuned: plus + 1 + usize::from(minus.is_some()) };
    let sides = ["+", "-"].into_iter().filter(|&suffix| suffix != "-" || minus.is_some());
    let tuned = (1..=repeats)
        .map(|repeat| if repeats == 1 { "-tuned".to_string() } else { format!("-tuned-{repeat}") });
    let suffixes = sides.map(str::to_string).chain(tuned);
    let added: Vec<String> = suffixes.map(|suffix| format!("{}{suffix}", tuned_player.name)).collect();
    for name in &added {
        if name.chars().count() > MAX_NAME_LENGTH || players.iter().any(|entry| entry.name == Some(name)) {
            let reason =
                format!("the tune adds a player `{name}`; give the tuned one a shorter or another name");
            section.reject::<()>("player", reason);
        }
    }
    // 5. The number of bouts, which depends on all others.
    let tune = Tune {
        player,
        parameters: parameters?,
        method: method?,
        why,
        bouts: bouts?,
        pairs: pairs?,
        opponents: opponents?,
        repeats,
        precision: precision?,
        imported: imported?,
        validation: validation??,
        roles,
        seats,
    };
    check_bouts(section, &tune)?;
    let mut all: Vec<SpecPlayer> = players.iter().map(|entry| entry.player.clone()).collect::<Option<_>>()?;
    all[player].config = tune.configure(&all[player].config, &tune.start());
    let template = all[player].clone();
    all.extend(added.into_iter().map(|name| SpecPlayer { name, ..template.clone() }));
    Some((tune, all))
}

/// Chooses the method by the number of parameters and of bouts, and returns the reason.
fn chosen_method(section: Section<'_, '_>, bouts: u64) -> (MethodName, Option<String>) {
    let tables = section.value("parameter").and_then(DeValue::as_array);
    let parameters = || tables.into_iter().flatten().map(toml::Spanned::get_ref);
    let count = parameters().count();
    let stepped =
        parameters().any(|item| matches!(item, DeValue::Table(table) if table.contains_key("step")));
    let of_bayes = ["batch", "precision", "import"].into_iter().find(|key| section.has(key));
    let (method, reason) = match of_bayes {
        Some(key) => (MethodName::Bayes, format!("`{key}` is set")),
        None if section.has("window") || section.has("rate") || stepped => {
            (MethodName::Spsa, "`window`, `rate` or `step` is set".to_string())
        }
        None if count > FEW_PARAMETERS => {
            let reason = format!(
                "{count} parameters are more than the {FEW_PARAMETERS} whose whole range a Gaussian process can search"
            );
            (MethodName::Spsa, reason)
        }
        None if bouts >= BOUTS_FOR_SPSA => {
            (MethodName::Spsa, format!("{bouts} bouts suffice to follow the slope, which then loses less"))
        }
        None => {
            let reason = format!(
                "{bouts} bouts are few: a Gaussian process, which tries the whole range, errs less at worst"
            );
            (MethodName::Bayes, reason)
        }
    };
    (method, Some(format!("\"{}\" was chosen because {reason}", method.name())))
}

/// Returns the number of bouts of a trial, a divisor of all bouts: 50 trials of 4 of 200, 100 trials of 8 of 800.
fn pairs_of_trials(bouts: u64) -> u64 {
    let wanted = (bouts as f64 / 12.5).sqrt().max(1.0);
    let divisors = (1..=bouts.min(10_000)).filter(|pairs| bouts.is_multiple_of(*pairs));
    let far = |pairs: &u64| (*pairs as f64 / wanted).ln().abs();
    divisors.min_by(|one, other| far(one).total_cmp(&far(other))).unwrap_or(1)
}

/// Reads the opponents of the candidates.
fn opponents(
    section: Section<'_, '_>,
    players: &[PlayerEntry<'_>],
    player: usize,
    method: MethodName,
    seats: usize,
) -> Found<Vec<Option<usize>>> {
    let listed = names(players).join(", ");
    let is_self = |name: &DeValue<'_>| text(name) == Some(SELF) && named(players, name).is_none();
    let read = |value: &DeValue<'_>| {
        let opponent =
            |name: &DeValue<'_>| if is_self(name) { Some(None) } else { named(players, name).map(Some) };
        let list: Vec<Option<usize>> =
            value.as_array()?.iter().map(|name| opponent(name.get_ref())).collect::<Option<_>>()?;
        let repeated = (1..list.len()).any(|index| list[..index].contains(&list[index]));
        (!list.is_empty() && !repeated).then_some(list)
    };
    let form =
        format!("a list of names of players: {listed}; and \"{SELF}\" for the other side with \"spsa\"");
    let written = section.maybe("opponents", &form, read)?;
    if written.as_ref().is_some_and(|list| list.contains(&None)) {
        let name = players[player].name.unwrap_or_default();
        if method == MethodName::Bayes {
            let reason =
                format!("a trial has no other side; name the player with its start values, `{name}`");
            return section.reject("opponents", reason);
        }
        if seats != 2 {
            let reason = format!(
                "with {seats} seats the two sides of an iteration meet the same opponents; name them, such as `{name}`"
            );
            return section.reject("opponents", reason);
        }
    }
    Some(written.unwrap_or_else(|| match method {
        // The two candidates of an SPSA iteration play each other; a trial plays the tuned player with its start values.
        MethodName::Auto | MethodName::Spsa if seats == 2 => vec![None],
        _ => vec![Some(player)],
    }))
}

/// Reads the settings of the validation.
fn validation(section: Section<'_, '_>, player: usize, players: &[PlayerEntry<'_>]) -> Found<Validation> {
    let form = "{ bouts = 200 }: tuned against start, on openings that the tuning does not use";
    let Some(inner) = section.section("validation", "validation")? else {
        return section.missing("validation", form);
    };
    inner.allow(&["bouts", "against"]);
    let listed = names(players).join(", ");
    let read = |value: &DeValue<'_>| {
        let list: Vec<usize> =
            value.as_array()?.iter().map(|name| named(players, name.get_ref())).collect::<Option<_>>()?;
        let repeated = (1..list.len()).any(|index| list[..index].contains(&list[index]));
        (!repeated).then_some(list)
    };
    let form = format!("a list of names of players beside the start: {listed}");
    let against = inner.maybe("against", &form, read);
    let bouts = inner.count("bouts", 1..=MAX_BOUTS);
    // The start is always among the opponents, and the first.
    let others = against?.unwrap_or_default().into_iter().filter(|other| *other != player);
    Some(Validation { bouts: bouts?, opponents: std::iter::once(player).chain(others).collect() })
}

/// Reads the precision at which the tuning ends.
fn precision(section: Section<'_, '_>) -> Found<Option<f64>> {
    let form = "a number of Elo from 1 to 1000: the tuning ends when the 95 % interval of its answer is this narrow to either side";
    section.maybe("precision", form, |value| {
        Toml(value).number().filter(|precision| (1.0..=1000.0).contains(precision))
    })
}

/// Reads the trials of other runs.
fn imported(
    section: Section<'_, '_>,
    files: &Files<'_>,
    parameters: &[Parameter],
) -> Found<Vec<ImportedTrial>> {
    let Some(name) = section.maybe("import", "the name of a file with trials", text)? else {
        return Some(Vec::new());
    };
    let content = files.content(section, "import", name)?;
    match trials(content, parameters) {
        Ok(trials) => Some(trials),
        Err(problems) => {
            for (line, reason) in problems.iter().take(MAX_REPORTED) {
                files.reject_line::<()>(name, *line, reason);
            }
            None
        }
    }
}

/// Reads the learning rate of SPSA, which finds it if there is none.
fn rate(section: Section<'_, '_>) -> Found<Option<f64>> {
    let form = "a number above 0 and up to 10: the change in the last iterations, in steps per win";
    let read = |value| Toml(value).number().filter(|rate| *rate > 0.0 && *rate <= 10.0);
    section.maybe("rate", form, read)
}

/// Rejects a number of bouts that is not a multiple of the bouts of a step, and too many bouts or trials.
fn check_bouts(section: Section<'_, '_>, tune: &Tune) -> Found<()> {
    let Tune { bouts, pairs, opponents, .. } = tune;
    if opponents.contains(&None) && !pairs.is_multiple_of(opponents.len() as u64) {
        let count = opponents.len();
        let reason = format!(
            "`pairs` must be a multiple of {count}, so that a step meets each of its {count} opponents equally often; write {}",
            pairs.next_multiple_of(count as u64)
        );
        return section.reject("pairs", reason);
    }
    let step_bouts = tune.step_bouts();
    if !bouts.is_multiple_of(step_bouts) {
        let what = if step_bouts == *pairs { "" } else { ", each against plus and minus" };
        let less = bouts - bouts % step_bouts;
        let reason = format!(
            "`bouts` must be a multiple of {step_bouts}, the bouts of one step ({pairs} openings{what}); write {}",
            if less == 0 { step_bouts } else { less }
        );
        return section.reject("bouts", reason);
    }
    if matches!(tune.method, Method::Bayes { .. }) && bouts / pairs > MAX_TRIALS {
        let reason = format!(
            "{} trials are more than {MAX_TRIALS}, the limit of a Gaussian process; give each more `pairs`",
            bouts / pairs
        );
        return section.reject("bouts", reason);
    }
    if bouts * tune.repeats > MAX_TUNING_BOUTS {
        let reason = format!("{} repeats of {bouts} bouts are more than {MAX_TUNING_BOUTS}", tune.repeats);
        return section.reject("repeats", reason + "; ask for fewer");
    }
    Some(())
}

/// Reads the tuned parameters.
fn parameters(
    root: Section<'_, '_>,
    section: Section<'_, '_>,
    game: &GameSpec,
    player: &SpecPlayer,
    method: MethodName,
) -> Found<Vec<Parameter>> {
    let form = "one [[tune.parameter]] for each number that is tuned";
    let list = section.need("parameter", form, DeValue::as_array)?;
    let (most, hint) = match method {
        MethodName::Auto | MethodName::Spsa => (MAX_SPSA_PARAMETERS, ""),
        MethodName::Bayes => {
            (MAX_BAYES_PARAMETERS, "; tune more with \"spsa\", or fit them with `agon tune --from`")
        }
    };
    if list.is_empty() || list.len() > most {
        return section.wrong("parameter", &format!("1 to {most} parameters{hint}"));
    }
    let player_table = player_table(root, &player.name);
    let mut parameters: Vec<Found<Parameter>> = Vec::new();
    let mut paths: Vec<&str> = Vec::new();
    for item in list {
        let DeValue::Table(table) = item.get_ref() else { return section.wrong("parameter", form) };
        let inner = Section { table, name: "a parameter", start: Some(item.span().start), ..section };
        parameters.push(parameter(inner, game, player, method, player_table));
        if let Some(path) = inner.value("path").and_then(text) {
            if paths.contains(&path) {
                inner.reject::<()>("path", format!("`{path}` is tuned twice; leave one out"));
            }
            paths.push(path);
        }
    }
    parameters.into_iter().collect()
}

/// Returns the table of the player with this name.
fn player_table<'t, 's>(root: Section<'t, 's>, name: &str) -> Option<&'t DeTable<'s>> {
    let tables = root.value("player")?.as_array()?.iter().filter_map(|item| match item.get_ref() {
        DeValue::Table(table) => Some(table),
        _ => None,
    });
    tables.into_iter().find(|table| table.get("name").and_then(|value| text(value.get_ref())) == Some(name))
}

/// Reads a tuned parameter.
fn parameter(
    section: Section<'_, '_>,
    game: &GameSpec,
    player: &SpecPlayer,
    method: MethodName,
    player_table: Option<&DeTable<'_>>,
) -> Found<Parameter> {
    section.allow(&["path", "start", "min", "max", "kind", "scale", "step"]);
    // 1. The setting that is tuned, and whether its values are whole.
    let scale = section.choice_or("scale", Scale::Linear);
    let kind = section.has("kind").then(|| section.choice::<ParameterKind>("kind"));
    let path = section.need("path", "a path into the player, as \"search.c\"", text)?;
    let (target, allowed) = match player.config.target(game, path) {
        Ok(found) => found,
        Err(reason) => return section.reject("path", format!("player `{}`: {reason}", player.name)),
    };
    let must_be_whole = matches!(target, Target::Whole(_));
    let whole = match kind {
        None => must_be_whole || matches!(target, Target::Option(_)),
        Some(kind) => kind? == ParameterKind::Integer,
    };
    if must_be_whole && !whole {
        return section.reject("kind", format!("`{path}` is a whole number; write kind = \"integer\""));
    }
    // 2. Its bounds and its start.
    let form = if whole { "a whole number" } else { "a number with at most six digits behind its point" };
    let start = section.maybe("start", form, |value| exact(value, whole));
    let [min, max] = ["min", "max"].map(|key| {
        let bound = section.need(key, form, |value| exact(value, whole))?;
        if !(allowed[0]..=allowed[1]).contains(&from_millionths(bound)) {
            let reason = format!(
                "`{key}` of `{path}` must be from {} to {}, not {}",
                allowed[0],
                allowed[1],
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
    let setting = BoundedSetting { path, target: &target, bounds, whole };
    let start = start_value(section, player, player_table, &setting, start?);
    // 3. Its scale and its step.
    let log = scale? == Scale::Log;
    if log && bounds[0] <= 0 {
        let reason = format!(
            "a logarithmic scale needs a `min` above 0, and that of `{path}` is {}",
            decimal(bounds[0])
        );
        return section.reject("scale", reason);
    }
    let step = step(section, method, bounds, log);
    Some(Parameter { path: path.to_string(), target, start: start?, bounds, whole, log, step: step? })
}

/// A tuned setting of a player with its bounds in millionths.
struct BoundedSetting<'a> {
    path: &'a str,
    target: &'a Target,
    bounds: [i64; 2],
    whole: bool,
}

/// Returns the start value of a parameter in millionths: the given one, or that of the player. Rejects a start that the player
/// contradicts or the bounds exclude.
fn start_value(
    section: Section<'_, '_>,
    player: &SpecPlayer,
    player_table: Option<&DeTable<'_>>,
    setting: &BoundedSetting<'_>,
    given: Option<i64>,
) -> Found<i64> {
    let BoundedSetting { path, target, bounds, whole } = *setting;
    if let (Some(start), Some((key, written))) = (given, written_number(player_table, path))
        && Toml(written).number() != Some(from_millionths(start))
    {
        let reason = format!(
            "player `{}` has a `{key}` that differs from `start` of `{path}`, which is {}; leave one of them out",
            player.name,
            decimal(start)
        );
        return section.reject("start", reason);
    }
    let configured = player.config.number(target).map(|number| (number * MILLION as f64).round() as i64);
    let Some(start) = given.or(configured) else {
        let reason =
            format!("`{path}` has no value to start from; give `start`, or the option in the player");
        return section.reject("path", reason);
    };
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

/// Reads the step of SPSA, which finds it if there is none. A Gaussian process has none.
fn step(section: Section<'_, '_>, method: MethodName, bounds: [i64; 2], log: bool) -> Found<Option<f64>> {
    let [min, max] = bounds.map(from_millionths);
    let (unit, least, most) = if log { ("a ratio", 1.0, max / min) } else { ("a number", 0.0, max - min) };
    let shown = if log { format!("{most:.6}") } else { most.to_string() };
    let form =
        format!("{unit} above {least} and at most {shown}, by which it is changed in the last iteration");
    let read = |value| Toml(value).number().filter(|step| *step > least && *step <= most);
    match method {
        MethodName::Auto | MethodName::Spsa => section.maybe("step", &form, read),
        MethodName::Bayes if section.has("step") => section.reject(
            "step",
            "`step` does not apply to \"bayes\", which searches the whole range; leave it out",
        ),
        MethodName::Bayes => Some(None),
    }
}

/// Returns the last key of a path and its value in a player's table, if the table has it.
fn written_number<'t, 's>(
    player_table: Option<&'t DeTable<'s>>,
    path: &'t str,
) -> Option<(&'t str, &'t DeValue<'s>)> {
    let (table, key) = path.split_once('.')?;
    let inner = subtable(player_table?, table)?;
    let (inner, key) = match key.strip_prefix("options.") {
        Some(option) if table == "engine" => (subtable(inner, "options")?, option),
        _ => (inner, key),
    };
    inner.get(key).map(|value| (key, value.get_ref()))
}

/// Returns a number in millionths. Rejects more than a billion, more than six decimals and, if `whole` is set, a fraction.
fn exact(value: &DeValue<'_>, whole: bool) -> Option<i64> {
    let number = Toml(value).number().filter(|number| number.abs() <= 1e9)?;
    let millionths = (number * MILLION as f64).round() as i64;
    let unit = if whole { MILLION } else { 1 };
    (from_millionths(millionths) == number && millionths % unit == 0).then_some(millionths)
}
