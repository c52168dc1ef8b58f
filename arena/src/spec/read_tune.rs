//! From a `[tune]` table to a tune: every key with its limits and a sentence, and the players that a tune adds.

use toml::de::{DeTable, DeValue};

use super::SpecPlayer;
use super::read::{Found, Head, LONGEST_NAME, MOST_BOUTS, Part, span_of, text};
use super::tune::{MILLION, Method, Parameter, Roles, Tune, decimal, number as number_of};
use crate::config::Target;
use crate::error::ConfigError;
use crate::settings::{number, whole};

const KEYS: [&str; 10] =
    ["player", "method", "bouts", "pairs", "window", "rate", "batch", "opponents", "validation", "parameter"];
const METHODS: [&str; 2] = ["spsa", "bayes"];
/// Results are kept for as long as the run goes on, one a bout.
const MOST_TUNING_BOUTS: u64 = 1_000_000;
const MOST_PARAMETERS: usize = 64;
/// The most trials of a Gaussian process, whose cost grows with the cube of their number.
const MOST_TRIALS: u64 = 1000;
const MOST_DIMENSIONS: usize = 6;

/// Reads a tune. Returns it with the players of the spec: the tuned one begins where the tune starts, and those that the
/// tune adds stand behind the others.
pub(super) fn tune(
    root: Part<'_, '_>,
    part: Part<'_, '_>,
    head: &Head,
    players: &[SpecPlayer],
    seats: usize,
) -> Found<(Tune, Vec<SpecPlayer>)> {
    let part = part.allow(&KEYS)?;
    if seats != 2 {
        let reason = "a tune is of a game with two seats".to_string();
        return Err(ConfigError { span: part.start.map(|start| start..start), reason });
    }
    // 1. Who.
    let names: Vec<&str> = players.iter().map(|player| player.name.as_str()).collect();
    let form = format!("the name of a player: {}", names.join(", "));
    let named = |value: &DeValue<'_>| names.iter().position(|&name| Some(name) == text(value));
    let player = part.need("player", &form, named)?;
    let list_form = format!("a list of names of players: {}", names.join(", "));
    let opponents = part.maybe("opponents", &list_form, |value| {
        let list: Vec<usize> =
            value.as_array()?.iter().map(|name| named(name.get_ref())).collect::<Option<_>>()?;
        let repeated = (1..list.len()).any(|index| list[..index].contains(&list[index]));
        (!list.is_empty() && !repeated).then_some(list)
    })?;
    // 2. How.
    let form = format!("one of {}", METHODS.map(|name| format!("\"{name}\"")).join(", "));
    let name = part.need("method", &form, |value| text(value).filter(|name| METHODS.contains(name)))?;
    let (others, method): (&[&str], Method) = match name {
        "spsa" => {
            (&["batch"], Method::Spsa { window: part.count_or("window", 1..=10_000, 16)?, rate: rate(part)? })
        }
        _ => (&["window", "rate"], Method::Bayes { batch: part.count_or("batch", 1..=256, 8)? }),
    };
    if let Some(key) = others.iter().find(|key| part.value(key).is_some()) {
        let reason = format!("`{key}` is nothing to \"{name}\"; leave it out");
        return Err(ConfigError { span: span_of(part, key), reason });
    }
    let opponents = match (&method, opponents) {
        (_, Some(list)) => list,
        // The two sides of an iteration meet each other; a trial needs somebody else, who is the start.
        (Method::Spsa { .. }, None) => Vec::new(),
        (Method::Bayes { .. }, None) => vec![player],
    };
    for (index, other) in players.iter().enumerate() {
        if index != player && !opponents.contains(&index) {
            let reason = format!(
                "`{}` has nothing to do in this tune; name it in `opponents` or leave it out",
                other.name
            );
            return Err(ConfigError { span: part.start.map(|start| start..start), reason });
        }
    }
    // 3. How much.
    let bouts = part.count("bouts", 1..=MOST_TUNING_BOUTS)?;
    let pairs =
        part.count_or("pairs", 1..=10_000, if matches!(method, Method::Bayes { .. }) { 16 } else { 1 })?;
    let step_bouts =
        if matches!(method, Method::Spsa { .. }) && !opponents.is_empty() { 2 * pairs } else { pairs };
    if bouts % step_bouts != 0 {
        let what = if step_bouts == pairs { "" } else { ", each against plus and minus" };
        let less = bouts - bouts % step_bouts;
        let reason = format!(
            "`bouts` must be a multiple of {step_bouts}, which is what one step plays ({pairs} openings{what}); write {}",
            if less == 0 { step_bouts } else { less }
        );
        return Err(ConfigError { span: span_of(part, "bouts"), reason });
    }
    if let Method::Bayes { .. } = method
        && bouts / pairs > MOST_TRIALS
    {
        let reason = format!(
            "{} trials are more than {MOST_TRIALS}, which a Gaussian process can digest; give each more `pairs`",
            bouts / pairs
        );
        return Err(ConfigError { span: span_of(part, "bouts"), reason });
    }
    let form = "{ bouts = 200 }: tuned against start, on openings that the tune never used";
    let proof = part.part("validation", "validation")?.ok_or_else(|| part.missing("validation", form))?;
    let validation = proof.allow(&["bouts"])?.count("bouts", 1..=MOST_BOUTS)?;
    // 4. What.
    let parameters = parameters(root, part, head, &players[player], method)?;
    // 5. The players that it adds.
    let base = players.len();
    let minus = matches!(method, Method::Spsa { .. }).then_some(base + 1);
    let tuned = base + 1 + usize::from(minus.is_some());
    let roles = Roles { plus: base, minus, tuned };
    let tune = Tune { player, parameters, method, bouts, pairs, opponents, validation, roles };
    let mut all = players.to_vec();
    all[player].config = tune.configure(&all[player].config, &tune.start());
    let endings = ["+", "-", "-tuned"].into_iter().filter(|&ending| ending != "-" || minus.is_some());
    for ending in endings {
        let name = format!("{}{ending}", players[player].name);
        if name.chars().count() > LONGEST_NAME || names.contains(&name.as_str()) {
            let reason =
                format!("a tune calls a player `{name}`; give the tuned one a shorter or another name");
            return Err(ConfigError { span: span_of(part, "player"), reason });
        }
        let added = SpecPlayer { name, ..all[player].clone() };
        all.push(added);
    }
    Ok((tune, all))
}

fn rate(part: Part<'_, '_>) -> Found<f64> {
    let form = "a number above 0 and up to 10: how far the last iterations move, in steps a win";
    let given =
        part.maybe("rate", form, |value| number(value).filter(|rate| *rate > 0.0 && *rate <= 10.0))?;
    Ok(given.unwrap_or(0.02))
}

fn parameters(
    root: Part<'_, '_>,
    part: Part<'_, '_>,
    head: &Head,
    player: &SpecPlayer,
    method: Method,
) -> Found<Vec<Parameter>> {
    let form = "one [[tune.parameter]] for each number that is tuned";
    let list = part.need("parameter", form, DeValue::as_array)?;
    let most = if matches!(method, Method::Bayes { .. }) { MOST_DIMENSIONS } else { MOST_PARAMETERS };
    if list.is_empty() || list.len() > most {
        let more = if most == MOST_DIMENSIONS { "; tune more with \"spsa\"" } else { "" };
        return Err(part.wrong("parameter", &format!("1 to {most} parameters{more}")));
    }
    let written = written(root, &player.name);
    let mut parameters: Vec<Parameter> = Vec::new();
    for item in list {
        let DeValue::Table(table) = item.get_ref() else { return Err(part.wrong("parameter", form)) };
        let inner = Part { table, place: "a parameter", start: Some(item.span().start) };
        let parameter = parameter(inner, head, player, method, written)?;
        if parameters.iter().any(|known| known.path == parameter.path) {
            let reason = format!("`{}` is tuned twice; leave one out", parameter.path);
            return Err(ConfigError { span: span_of(inner, "path"), reason });
        }
        parameters.push(parameter);
    }
    Ok(parameters)
}

/// The table of a player as it is written.
fn written<'t, 's>(root: Part<'t, 's>, name: &str) -> Option<&'t DeTable<'s>> {
    let tables = root.value("player")?.as_array()?.iter().filter_map(|item| match item.get_ref() {
        DeValue::Table(table) => Some(table),
        _ => None,
    });
    tables.into_iter().find(|table| table.get("name").and_then(|value| text(value.get_ref())) == Some(name))
}

fn parameter(
    part: Part<'_, '_>,
    head: &Head,
    player: &SpecPlayer,
    method: Method,
    written: Option<&DeTable<'_>>,
) -> Found<Parameter> {
    let part = part.allow(&["path", "start", "min", "max", "kind", "scale", "step"])?;
    let refuse = |key: &str, reason: String| Err(ConfigError { span: span_of(part, key), reason });
    // 1. What it is.
    let path = part.need("path", "a path into the player, as \"search.c\"", text)?;
    let (target, domain) = match player.config.target(&head.game, path) {
        Ok(found) => found,
        Err(reason) => return refuse("path", format!("player `{}`: {reason}", player.name)),
    };
    let kinds = ["integer", "real"];
    let kind = part
        .maybe("kind", "\"integer\" or \"real\"", |value| text(value).filter(|kind| kinds.contains(kind)))?;
    let must_be_whole = matches!(target, Target::Whole(_));
    if must_be_whole && kind == Some("real") {
        return refuse("kind", format!("`{path}` is a whole number; write kind = \"integer\""));
    }
    let whole_only = must_be_whole || kind == Some("integer");
    // 2. Its bounds and its start.
    let form =
        if whole_only { "a whole number" } else { "a number with at most six digits behind its point" };
    let value = |key: &str| part.maybe(key, form, |value| exact(value, whole_only));
    let needed = |key: &str| value(key).and_then(|value| value.ok_or_else(|| part.missing(key, form)));
    let bounds = [needed("min")?, needed("max")?];
    if bounds[0] >= bounds[1] {
        let reason = format!("`min` of `{path}` must be less than `max`");
        return refuse("min", reason);
    }
    for (key, bound) in ["min", "max"].into_iter().zip(bounds) {
        if !(domain[0]..=domain[1]).contains(&number_of(bound)) {
            let reason = format!(
                "`{key}` of `{path}` must be from {} to {}, not {}",
                domain[0],
                domain[1],
                decimal(bound)
            );
            return refuse(key, reason);
        }
    }
    let configured = (player.config.number(target) * MILLION as f64).round() as i64;
    let start = value("start")?;
    if let (Some(start), Some((key, other))) = (start, written_number(written, path))
        && number(other) != Some(number_of(start))
    {
        let reason = format!(
            "player `{}` says another `{key}` than `start` of `{path}`, which is {}; leave one of them out",
            player.name,
            decimal(start)
        );
        return refuse("start", reason);
    }
    let start_value = start.unwrap_or(configured);
    if !(bounds[0]..=bounds[1]).contains(&start_value) {
        let reason = format!(
            "`{path}` must start from {} to {}, and not at {}",
            decimal(bounds[0]),
            decimal(bounds[1]),
            decimal(start_value)
        );
        return refuse(if start.is_some() { "start" } else { "path" }, reason);
    }
    if whole_only && start_value % MILLION != 0 {
        return refuse(
            "path",
            format!("`{path}` starts at {}, which is not whole; give `start`", decimal(start_value)),
        );
    }
    // 3. How it moves.
    let scales = ["linear", "log"];
    let scale = part.maybe("scale", "\"linear\" or \"log\"", |value| {
        text(value).filter(|scale| scales.contains(scale))
    })?;
    let log = scale == Some("log");
    if log && bounds[0] <= 0 {
        let reason = format!(
            "a logarithmic scale needs a `min` above 0, and that of `{path}` is {}",
            decimal(bounds[0])
        );
        return refuse("scale", reason);
    }
    let range = number_of(bounds[1]) - number_of(bounds[0]);
    let ratio = number_of(bounds[1]) / number_of(bounds[0]);
    let (form, least, most) = if log {
        (
            format!("a ratio above 1 and at most {ratio:.6}, by which it is changed in the last iteration"),
            1.0,
            ratio,
        )
    } else {
        (
            format!("a number above 0 and at most {range}, by which it is changed in the last iteration"),
            0.0,
            range,
        )
    };
    let step =
        part.maybe("step", &form, |value| number(value).filter(|step| *step > least && *step <= most))?;
    match (method, step) {
        (Method::Spsa { .. }, None) => return Err(part.missing("step", &form)),
        (Method::Bayes { .. }, Some(_)) => {
            return refuse(
                "step",
                "`step` is nothing to \"bayes\", which looks everywhere; leave it out".to_string(),
            );
        }
        _ => {}
    }
    Ok(Parameter { path: path.to_string(), target, start: start_value, bounds, whole: whole_only, log, step })
}

/// The number that stands at a path of a player's table, if one does.
fn written_number<'t, 's>(
    player: Option<&'t DeTable<'s>>,
    path: &'t str,
) -> Option<(&'t str, &'t DeValue<'s>)> {
    let (table, key) = path.split_once('.')?;
    let DeValue::Table(inner) = player?.get(table)?.get_ref() else { return None };
    inner.get(key).map(|value| (key, value.get_ref()))
}

/// The millionths of a number, where they say exactly what it is.
fn exact(value: &DeValue<'_>, whole_only: bool) -> Option<i64> {
    let number = number(value).filter(|number| number.abs() <= 1e9)?;
    let millionths = (number * MILLION as f64).round() as i64;
    let unit = if whole_only { MILLION } else { 1 };
    (number_of(millionths) == number && millionths % unit == 0).then_some(millionths)
}

impl Part<'_, '_> {
    /// A whole number that need not be there.
    fn count_or(self, key: &str, range: std::ops::RangeInclusive<u64>, default: u64) -> Found<u64> {
        let form = format!("a whole number from {} to {}", range.start(), range.end());
        Ok(self
            .maybe(key, &form, |value| whole(value).filter(|number| range.contains(number)))?
            .unwrap_or(default))
    }
}
