//! The columns that make two datasets equal, one after another: what the digest is of and what a replay compares.
//!
//! Not counted are `worker`, `build`, `started`, `duration_us`, `time_us`, `depth_time_us`, `overshoot_us` and
//! `speed_factor`: what depends on where and when a bout was played. Rows are taken apart field by field, so that a new column does not compile until
//! it is decided whether it counts.

use crate::rows::{GameRow, MoveRow, ProbeRow, SearchColumns};

/// Takes the columns of a row in their order.
pub trait Columns {
    /// A number.
    fn number(&mut self, column: &'static str, number: u64);
    /// A text.
    fn text(&mut self, column: &'static str, text: &str);
    /// A number with a fraction.
    fn score(&mut self, column: &'static str, score: f64);
    /// A list of texts.
    fn texts(&mut self, column: &'static str, texts: &[String]);
    /// A list of numbers.
    fn numbers(&mut self, column: &'static str, numbers: &[u64]);
    /// A list of payoffs.
    fn payoffs(&mut self, column: &'static str, payoffs: &[i32]);
    /// Whether a column, and what depends on it, has a value; where it has, the value follows.
    fn present(&mut self, column: &'static str, present: bool);
}

/// The columns of a game.
pub fn game(row: &GameRow, columns: &mut impl Columns) {
    let GameRow {
        bout,
        game,
        rules,
        variant,
        opening,
        players,
        payoffs,
        plies,
        ending,
        seed,
        worker: _,
        build: _,
        started: _,
        duration_us: _,
        speed_factor: _,
        settings,
    } = row;
    columns.number("bout", *bout);
    columns.number("game", u64::from(*game));
    columns.text("rules", rules);
    columns.text("variant", variant);
    columns.text("opening", opening);
    columns.texts("players", players);
    columns.payoffs("payoffs", payoffs);
    columns.number("plies", u64::from(*plies));
    columns.text("ending", ending);
    columns.number("seed", *seed);
    columns.texts("settings", settings);
}

/// The columns of a ply. Where there was no search, `player` is missing and those behind it are left out.
pub fn ply(row: &MoveRow, columns: &mut impl Columns) {
    let MoveRow { bout, game, ply, seat, mv, legal, search: searched } = row;
    columns.number("bout", *bout);
    columns.number("game", u64::from(*game));
    columns.number("ply", u64::from(*ply));
    columns.present("seat", seat.is_some());
    if let Some(seat) = seat {
        columns.number("seat", u64::from(*seat));
    }
    columns.text("move", mv);
    columns.number("legal", u64::from(*legal));
    columns.present("player", searched.is_some());
    if let Some(searched) = searched {
        search(searched, columns);
    }
}

/// The columns of a search of a probe.
pub fn probe(row: &ProbeRow, columns: &mut impl Columns) {
    let ProbeRow { position, moves, decision } = row;
    columns.text("position", position);
    columns.text("moves", moves);
    ply(decision, columns);
}

fn search(searched: &SearchColumns, columns: &mut impl Columns) {
    let SearchColumns {
        player,
        depth,
        selective_depth,
        nodes,
        leaves,
        quiescence_nodes,
        cutoffs,
        first_move_cutoffs,
        table_probes,
        table_hits,
        table_stores,
        researches,
        simulations,
        tree_nodes,
        playout_plies,
        depth_nodes,
        depth_time_us: _,
        score,
        pv,
        time_us: _,
        overshoot_us: _,
        limit_kind,
        limit_value,
    } = searched;
    columns.text("player", player);
    columns.number("depth", u64::from(*depth));
    columns.number("selective_depth", u64::from(*selective_depth));
    columns.number("nodes", *nodes);
    columns.number("leaves", *leaves);
    columns.number("quiescence_nodes", *quiescence_nodes);
    columns.number("cutoffs", *cutoffs);
    columns.number("first_move_cutoffs", *first_move_cutoffs);
    columns.number("table_probes", *table_probes);
    columns.number("table_hits", *table_hits);
    columns.number("table_stores", *table_stores);
    columns.number("researches", *researches);
    columns.number("simulations", *simulations);
    columns.number("tree_nodes", *tree_nodes);
    columns.number("playout_plies", *playout_plies);
    columns.numbers("depth_nodes", depth_nodes);
    columns.score("score", *score);
    columns.text("pv", pv);
    columns.text("limit_kind", limit_kind.name());
    columns.number("limit_value", *limit_value);
}
