//! Rows as named cells, for JSON, for comparing datasets and for the digest of games and probes.
//!
//! Each row is destructured completely, so that a new field without a cell does not compile.

use std::fmt;

use agon_games::exchange::UtcDateTime;
use agon_search::Counters;
use serde::{Serialize, Serializer};

use crate::rows::{GameRow, MoveRow, ProbeRow, SearchRow};
use crate::schema::Table;

/// The value of a column in a row.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[serde(untagged)]
pub enum Cell<'a> {
    /// No value.
    Null,
    /// An unsigned integer.
    Unsigned(u64),
    /// A float.
    Float(f64),
    /// A text.
    Text(&'a str),
    /// Microseconds since 1970, UTC.
    Timestamp(#[serde(serialize_with = "moment_text")] i64),
    /// A text for each seat.
    TextList(&'a [String]),
    /// A signed integer for each seat.
    I32List(&'a [i32]),
    /// An unsigned integer for each depth, or for each seat.
    U64List(&'a [u64]),
}

/// The cells of a row with the names of their columns, in the order of the schema.
pub type Cells<'a> = Vec<(&'static str, Cell<'a>)>;

fn moment_text<S: Serializer>(microseconds: &i64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&UtcDateTime::from_unix_microseconds(*microseconds))
}

/// Quotes texts, so that none reads as a number or as null. Writes the shortest text of a float that parses to the same bits.
impl fmt::Display for Cell<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cell::Null => f.write_str("null"),
            Cell::Unsigned(number) => write!(f, "{number}"),
            Cell::Float(number) => write!(f, "{number:?}"),
            Cell::Text(text) => write!(f, "{text:?}"),
            Cell::Timestamp(microseconds) => write!(f, "{microseconds}"),
            Cell::TextList(texts) => write!(f, "{texts:?}"),
            Cell::I32List(numbers) => write!(f, "{numbers:?}"),
            Cell::U64List(numbers) => write!(f, "{numbers:?}"),
        }
    }
}

fn small<'a>(number: u16) -> Cell<'a> {
    Cell::Unsigned(u64::from(number))
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
            detail,
            engine_cpu_us,
        } = self;
        vec![
            ("bout", Cell::Unsigned(*bout)),
            ("game", small(*game)),
            ("rules", Cell::Text(rules)),
            ("variant", Cell::Text(variant)),
            ("opening", Cell::Text(opening)),
            ("players", Cell::TextList(players)),
            ("payoffs", Cell::I32List(payoffs)),
            ("plies", Cell::Unsigned(u64::from(*plies))),
            ("ending", Cell::Text(ending)),
            ("seed", Cell::Unsigned(*seed)),
            ("worker", Cell::Text(worker)),
            ("build", Cell::Text(build)),
            ("started", Cell::Timestamp(*started)),
            ("duration_us", Cell::Unsigned(*duration_us)),
            ("speed_factor", Cell::Float(*speed_factor)),
            ("settings", Cell::TextList(settings)),
            ("detail", Cell::Text(detail)),
            ("engine_cpu_us", Cell::U64List(engine_cpu_us)),
        ]
    }
}

impl MoveRow {
    /// Returns the cells of the row. Without a search, the cells from the player on are null.
    pub fn cells(&self) -> Cells<'_> {
        let MoveRow { bout, game, ply, seat, mv, legal, search } = self;
        let mut cells = vec![
            ("bout", Cell::Unsigned(*bout)),
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
        cells.extend(names.zip(counters.values().map(Cell::Unsigned)));
        cells.extend([
            ("depth_nodes", Cell::U64List(depth_nodes)),
            ("depth_time_us", Cell::U64List(depth_time_us)),
            ("score", Cell::Float(*score)),
            ("pv", Cell::Text(pv)),
            ("time_us", Cell::Unsigned(*time_us)),
            ("overshoot_us", Cell::Unsigned(*overshoot_us)),
            ("limit_kind", Cell::Text(limit_kind.name())),
            ("limit_value", Cell::Unsigned(*limit_value)),
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
    use crate::samples::RandomRows;

    fn names(cells: Cells<'_>) -> Vec<&'static str> {
        cells.into_iter().map(|(name, _)| name).collect()
    }

    #[test]
    fn cells_match_the_columns_of_the_table() {
        let columns = |table: Table| table.columns().map(|column| column.name).collect::<Vec<_>>();
        let mut random = RandomRows::new(8);
        let mut probe = random.probe();
        for search in [None, Some(random.search())] {
            probe.decision.search = search;
            assert_eq!(names(probe.cells()), columns(Table::Probes));
            assert_eq!(names(probe.decision.cells()), columns(Table::Moves));
        }
        assert_eq!(names(random.game().cells()), columns(Table::Games));
    }

    #[test]
    fn displays_the_sign_of_zero() {
        assert_ne!(Cell::Float(0.0).to_string(), Cell::Float(-0.0).to_string());
    }
}
