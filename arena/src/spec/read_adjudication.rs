//! Reads an `[adjudication]` table: the allowed values of every key with their error texts.

use agon_games::schema::Input;
use toml::de::DeValue;

use super::SpecPlayer;
use crate::adjudication::{Adjudication, Draw, Resign};
use crate::section::{Found, Section, Toml};

/// The greatest score of a rule; a proven win exceeds it.
const MAX_SCORE: f64 = 1_000_000.0;
const MAX_MOVES: u64 = 1000;
const MAX_PLIES: u64 = 1_000_000;

/// Reads the rules of adjudication; none if the spec has no table. Rejects rules without effect.
pub(super) fn adjudication(
    root: Section<'_, '_>,
    players: Option<&[SpecPlayer]>,
    seats: Option<usize>,
) -> Found<Adjudication> {
    let Some(section) = root.section("adjudication", "[adjudication]")? else {
        return Some(Adjudication::default());
    };
    section.allow(&["resign", "draw", "max_plies"]);
    if root.has("probe") {
        return root.reject("adjudication", "a probe plays no games that could be adjudicated; leave it out");
    }
    if section.table.is_empty() {
        let reason = "give at least one of `resign`, `draw` and `max_plies`, or leave [adjudication] out";
        return root.reject("adjudication", reason);
    }
    let scored = players.map(|players| players.iter().filter(|player| player.has_scores()).count());
    let needs_scores = |key: &str, least: usize| {
        if section.has(key) && scored.is_some_and(|scored| scored < least) {
            let reason = format!(
                "`{key}` needs {}: random, UCT and Monte Carlo have no scores in evaluation units",
                if least == 1 { "a player with scores" } else { "two players with scores" }
            );
            section.reject::<()>(key, reason);
        }
    };
    needs_scores("resign", 1);
    needs_scores("draw", 2);
    if section.has("resign") && seats.is_some_and(|seats| seats != 2) {
        section.reject::<()>("resign", "`resign` is for games with two seats; leave it out");
    }
    let resign = rule(section, "resign", "resign = { score = 6.0, moves = 4 }", |rule| {
        rule.allow(&["score", "moves", "both"]);
        let score = score(rule, f64::MIN_POSITIVE, "a number above 0");
        let moves = rule.count("moves", 1..=MAX_MOVES);
        let both = rule.maybe("both", "true or false", DeValue::as_bool)?.unwrap_or(false);
        Some(Resign { score: score?, moves: moves? as u32, both })
    });
    let draw = rule(section, "draw", "draw = { score = 0.1, moves = 8, after = 80 }", |rule| {
        rule.allow(&["score", "moves", "after"]);
        let score = score(rule, 0.0, "a number from 0");
        let moves = rule.count("moves", 1..=MAX_MOVES);
        let after = rule.count_or("after", 0..=MAX_PLIES, 0);
        Some(Draw { score: score?, moves: moves? as u32, after: after? as u32 })
    });
    let max_plies = match section.has("max_plies") {
        true => section.count("max_plies", 1..=MAX_PLIES).map(|plies| Some(plies as u32)),
        false => Some(None),
    };
    if let (Some(Some(resign)), Some(Some(draw))) = (resign, draw)
        && draw.score >= resign.score
    {
        section.reject::<()>("draw", "the `score` of `draw` must be below that of `resign`");
    }
    Some(Adjudication { resign: resign?, draw: draw?, max_plies: max_plies? })
}

/// Reads the table of a rule; none if it is missing.
fn rule<'t, 's, T>(
    section: Section<'t, 's>,
    key: &'static str,
    form: &str,
    read: impl Fn(Section<'t, 's>) -> Found<T>,
) -> Found<Option<T>> {
    match section.value(key) {
        None => Some(None),
        Some(DeValue::Table(_)) => section.section(key, key)?.and_then(read).map(Some),
        Some(_) => section.reject(key, format!("`{key}` must be a table, as in {form}")),
    }
}

fn score(rule: Section<'_, '_>, least: f64, form: &str) -> Found<f64> {
    let read = |value| Toml(value).number().filter(|score| (least..=MAX_SCORE).contains(score));
    rule.need("score", &format!("{form} in the unit of the players' scores"), read)
}
