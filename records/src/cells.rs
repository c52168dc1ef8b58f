//! Rows as named cells: what JSON, the comparison of two datasets and the digest of games and probes read.
//!
//! A row is taken apart field by field, so that a new column does not compile until it is in this list.

use std::fmt;

use agon_games::exchange::Moment;
use agon_search::Counters;
use serde::{Serialize, Serializer};

use crate::rows::{GameRow, MoveRow, ProbeRow, SearchRow};
use crate::schema::Table;

/// The value of one column in one row.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[serde(untagged)]
pub enum Cell<'a> {
    /// No value.
    Null,
    /// A whole number.
    Whole(u64),
    /// A decimal.
    Decimal(f64),
    /// A text.
    Text(&'a str),
    /// Microseconds since 1970, UTC.
    Moment(#[serde(serialize_with = "moment_text")] i64),
    /// Texts, by seat.
    Texts(&'a [String]),
    /// Numbers with a sign, by seat.
    Integers(&'a [i32]),
    /// Whole numbers, by depth.
    Wholes(&'a [u64]),
}

/// The cells of a row with the names of their columns, in the order of the table.
pub type Cells<'a> = Vec<(&'static str, Cell<'a>)>;

fn moment_text<S: Serializer>(microseconds: &i64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&Moment::from_unix_microseconds(*microseconds))
}

/// Texts are quoted, so that none reads as a number or as null; a decimal is the shortest text that reads back as the same
/// bits.
impl fmt::Display for Cell<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cell::Null => f.write_str("null"),
            Cell::Whole(number) => write!(f, "{number}"),
            Cell::Decimal(number) => write!(f, "{number:?}"),
            Cell::Text(text) => write!(f, "{text:?}"),
            Cell::Moment(microseconds) => write!(f, "{microseconds}"),
            Cell::Texts(texts) => write!(f, "{texts:?}"),
            Cell::Integers(numbers) => write!(f, "{numbers:?}"),
            Cell::Wholes(numbers) => write!(f, "{numbers:?}"),
        }
    }
}

fn small<'a>(number: u16) -> Cell<'a> {
    Cell::Whole(u64::from(number))
}

impl GameRow {
    /// Returns the cells of the row.
    pub fn cells(&self) -> Cells<'_> {
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
            worker,
            build,
            started,
            duration_us,
            speed_factor,
            settings,
        } = self;
        vec![
            ("bout", Cell::Whole(*bout)),
            ("game", small(*game)),
            ("rules", Cell::Text(rules)),
            ("variant", Cell::Text(variant)),
            ("opening", Cell::Text(opening)),
            ("players", Cell::Texts(players)),
            ("payoffs", Cell::Integers(payoffs)),
            ("plies", Cell::Whole(u64::from(*plies))),
            ("ending", Cell::Text(ending)),
            ("seed", Cell::Whole(*seed)),
            ("worker", Cell::Text(worker)),
            ("build", Cell::Text(build)),
            ("started", Cell::Moment(*started)),
            ("duration_us", Cell::Whole(*duration_us)),
            ("speed_factor", Cell::Decimal(*speed_factor)),
            ("settings", Cell::Texts(settings)),
        ]
    }
}

impl MoveRow {
    /// Returns the cells of the row. Without a search, everything from the player on is null.
    pub fn cells(&self) -> Cells<'_> {
        let MoveRow { bout, game, ply, seat, mv, legal, search } = self;
        let mut cells = vec![
            ("bout", Cell::Whole(*bout)),
            ("game", small(*game)),
            ("ply", small(*ply)),
            ("seat", seat.map_or(Cell::Null, small)),
            ("move", Cell::Text(mv)),
            ("legal", small(*legal)),
        ];
        match search {
            Some(search) => search.add_cells(&mut cells),
            None => {
                cells
                    .extend(Table::Moves.columns().skip(cells.len()).map(|column| (column.name, Cell::Null)));
            }
        }
        cells
    }
}

impl SearchRow {
    fn add_cells<'a>(&'a self, cells: &mut Cells<'a>) {
        let SearchRow {
            player,
            depth,
            selective_depth,
            counters,
            depth_nodes,
            depth_time_us,
            score,
            pv,
            time_us,
            overshoot_us,
            limit_kind,
            limit_value,
        } = self;
        cells.extend([
            ("player", Cell::Text(player)),
            ("depth", small(*depth)),
            ("selective_depth", small(*selective_depth)),
        ]);
        let names = Counters::LIST.iter().map(|counter| counter.name);
        cells.extend(names.zip(counters.values().map(Cell::Whole)));
        cells.extend([
            ("depth_nodes", Cell::Wholes(depth_nodes)),
            ("depth_time_us", Cell::Wholes(depth_time_us)),
            ("score", Cell::Decimal(*score)),
            ("pv", Cell::Text(pv)),
            ("time_us", Cell::Whole(*time_us)),
            ("overshoot_us", Cell::Whole(*overshoot_us)),
            ("limit_kind", Cell::Text(limit_kind.name())),
            ("limit_value", Cell::Whole(*limit_value)),
        ]);
    }
}

impl ProbeRow {
    /// Returns the cells of the row.
    pub fn cells(&self) -> Cells<'_> {
        let ProbeRow { position, moves, decision } = self;
        let mut cells = vec![("position", Cell::Text(position)), ("moves", Cell::Text(moves))];
        cells.extend(decision.cells());
        cells
    }
}

impl Serialize for GameRow {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.cells())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::Source;

    fn names(cells: Cells<'_>) -> Vec<&'static str> {
        cells.into_iter().map(|(name, _)| name).collect()
    }

    #[test]
    fn cells_are_the_columns_of_the_table() {
        let columns = |table: Table| table.columns().map(|column| column.name).collect::<Vec<_>>();
        let mut source = Source::new(8);
        let mut probe = source.probe();
        for search in [None, Some(source.search())] {
            probe.decision.search = search;
            assert_eq!(names(probe.cells()), columns(Table::Probes));
            assert_eq!(names(probe.decision.cells()), columns(Table::Moves));
        }
        assert_eq!(names(source.game().cells()), columns(Table::Games));
    }

    #[test]
    fn zeros_with_different_signs_differ() {
        assert_ne!(Cell::Decimal(0.0).to_string(), Cell::Decimal(-0.0).to_string());
    }
}
