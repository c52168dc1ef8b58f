//! Properties of rows, Parquet files and digests together.

use std::collections::BTreeSet;
use std::sync::Arc;

use agon_search::Counters;
use arrow::array::{ArrayRef, RecordBatch, RecordBatchReader, StringArray};
use arrow::datatypes::{Field, Schema};
use bytes::Bytes;
use expect_test::expect;
use parquet::arrow::ArrowWriter;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::statistics::Statistics;

use crate::samples::{RandomRows, played};
use crate::schema::{NOT_IN_DIGEST, TABLE_KEY, VERSION_KEY};
use crate::{
    BoutRows, GameRow, Groups, LimitKind, MoveRow, ReadError, RowRange, SCHEMA_VERSION, SearchRow, Table,
    content_digest, read_batches, read_games, read_moves, read_probes, sealed, stream_games, stream_results,
    write_games, write_moves, write_probes,
};

/// Formats rows for comparison: the text distinguishes -0 from 0.
fn debug_text(rows: impl std::fmt::Debug) -> String {
    format!("{rows:?}")
}

#[test]
fn rows_survive_parquet() {
    let mut random = RandomRows::new(1);
    for size in [0, 1, 2, 7, 100, 1000] {
        let mut games: Vec<_> = (0..size).map(|_| random.game()).collect();
        let mut moves: Vec<_> = (0..size).map(|_| random.ply()).collect();
        let mut probes: Vec<_> = (0..size).map(|_| random.probe()).collect();
        let bytes = [write_games(&games), write_moves(&moves), write_probes(&probes)];
        let [games_bytes, moves_bytes, probes_bytes] = bytes.map(|bytes| Bytes::from(bytes.unwrap()));
        games.sort_by_key(|row| (row.bout, row.game));
        moves.sort_by_key(|row| (row.bout, row.game, row.ply));
        probes.sort_by_key(|row| (row.decision.bout, row.decision.game));
        let mut results = Vec::new();
        for batch in stream_results(games_bytes.clone()).unwrap() {
            let batch = batch.unwrap();
            results.extend((0..batch.len()).map(|row| {
                let players: Vec<String> = batch.players(row).map(str::to_string).collect();
                (batch.key(row), players, batch.payoffs(row).to_vec())
            }));
        }
        let expected: Vec<_> = games
            .iter()
            .map(|row| ((row.bout, row.game), row.players.clone(), row.payoffs.clone()))
            .collect();
        assert_eq!(results, expected);
        assert_eq!(debug_text(read_games(games_bytes).unwrap()), debug_text(games));
        assert_eq!(debug_text(read_moves(moves_bytes).unwrap()), debug_text(moves));
        assert_eq!(debug_text(read_probes(probes_bytes).unwrap()), debug_text(probes));
    }
}

#[test]
fn bytes_do_not_depend_on_the_order_of_rows() {
    let mut random = RandomRows::new(2);
    let mut rows: Vec<MoveRow> = (0..500).map(|_| random.ply()).collect();
    for (index, row) in rows.iter_mut().enumerate() {
        row.bout = index as u64;
    }
    let bytes = write_moves(&rows).unwrap();
    assert_eq!(write_moves(&rows).unwrap(), bytes);
    assert_eq!(write_moves(rows.iter().rev()).unwrap(), bytes);
}

/// A part that is written again after a crash must have the same bytes. A new column changes them; renew with
/// `UPDATE_EXPECT=1`.
#[test]
fn bytes_of_a_part_are_pinned() {
    let mut random = RandomRows::new(3);
    let games: Vec<_> = (0..50).map(|_| random.game()).collect();
    let moves: Vec<_> = (0..50).map(|_| random.ply()).collect();
    let digest = |bytes: Vec<u8>| blake3::hash(&bytes).to_hex().to_string();
    let digests = [digest(write_games(&games).unwrap()), digest(write_moves(&moves).unwrap())].join("\n");
    expect![[r#"
        027814e92efbb152046779862562aa0d37951eb5d81583bd0650ef6ecde9e099
        11e014d509cce59c1b0fc72ece349bc0e8ca38d312e10ec18cc08011b243a15d"#]]
    .assert_eq(&digests);
}

#[test]
fn row_groups_are_ranges_of_bouts() {
    let row = RandomRows::new(4).ply();
    let rows: Vec<MoveRow> = (0..130_000).map(|bout| MoveRow { bout, ..row.clone() }).collect();
    let bytes = Bytes::from(write_moves(&rows).unwrap());
    let reader = SerializedFileReader::new(bytes.clone()).unwrap();
    let ranges: Vec<_> = reader
        .metadata()
        .row_groups()
        .iter()
        .map(|group| match group.column(0).statistics() {
            Some(Statistics::Int64(bouts)) => (*bouts.min_opt().unwrap(), *bouts.max_opt().unwrap()),
            other => panic!("no statistics of bouts: {other:?}"),
        })
        .collect();
    assert_eq!(ranges, [(0, 122_879), (122_880, 129_999)]);
    let file = reader.metadata().file_metadata();
    assert_eq!(file.created_by(), Some("agon"));
    let mut count = 0;
    for batch in read_batches(bytes, Table::Moves, &["bout", "nodes"]).unwrap() {
        let batch = batch.unwrap();
        assert_eq!(batch.num_columns(), 2);
        count += batch.num_rows();
    }
    assert_eq!(count, rows.len());
}

/// The columns of a file.
type Columns = Vec<(Field, ArrayRef)>;

/// Writes one row of a table with changed columns and metadata.
fn variant_of(table: Table, version: Option<&str>, name: &str, change: impl Fn(&mut Columns)) -> Bytes {
    let mut random = RandomRows::new(5);
    let bytes = match table {
        Table::Games => write_games(&[random.game()]),
        Table::Moves => write_moves(&[random.ply()]),
        Table::Probes => write_probes(&[random.probe()]),
    };
    let batch = read_batches(Bytes::from(bytes.unwrap()), table, &[]).unwrap().next().unwrap().unwrap();
    let fields = batch.schema().fields().iter().map(|field| field.as_ref().clone()).collect::<Vec<_>>();
    let mut columns: Vec<_> = fields.into_iter().zip(batch.columns().iter().cloned()).collect();
    change(&mut columns);
    let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = columns.into_iter().unzip();
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).unwrap();
    let mut metadata = vec![KeyValue::new(TABLE_KEY.to_string(), name.to_string())];
    metadata.extend(version.map(|version| KeyValue::new(VERSION_KEY.to_string(), version.to_string())));
    let properties = WriterProperties::builder().set_key_value_metadata(Some(metadata)).build();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    Bytes::from(sealed(writer.into_inner().unwrap()).unwrap())
}

#[test]
fn reader_ignores_unknown_columns_and_order() {
    let bytes = variant_of(Table::Games, Some("1"), "games", |columns| {
        let array: ArrayRef = Arc::new(StringArray::from(vec!["?"]));
        columns.insert(0, (Field::new("added", array.data_type().clone(), true), array));
        columns.reverse();
    });
    assert_eq!(read_games(bytes).unwrap(), [RandomRows::new(5).game()]);
}

/// Returns a part of an earlier build: `earlier-*` are from before counters became a list, `games-without-settings` has
/// the games of these in the layout before the column `settings`. The files never change.
fn earlier_part(name: &str) -> Bytes {
    Bytes::from(std::fs::read(format!("{}/tests/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap())
}

fn earlier_bouts() -> Vec<BoutRows> {
    let games = read_games(earlier_part("earlier-games.parquet")).unwrap();
    let moves = read_moves(earlier_part("earlier-moves.parquet")).unwrap();
    BoutRows::by_bout(games, moves, []).into_values().collect()
}

#[test]
fn digests_of_earlier_builds_are_unchanged() {
    assert_pinned(
        &earlier_bouts().iter().map(content_digest).collect::<Vec<_>>(),
        &[
            "3e7c8f8b41cdf23ca85294938897af99dbcc9dc6e474f69aeab0181de2dc4d9d",
            "3d3e71d8c14013633f8d12fe84ba0686ae8b2999250845271cdbce73c4c4136b",
        ],
    );
}

#[test]
fn a_part_without_a_later_column_reads_as_its_default() {
    let part = earlier_part("games-without-settings.parquet");
    let rows = read_games(part.clone()).unwrap();
    assert_eq!(rows, read_games(earlier_part("earlier-games.parquet")).unwrap());
    assert!(rows.iter().all(|row| row.settings.is_empty() && row.detail.is_empty()));
    assert!(rows.iter().all(|row| row.engine_cpu_us.is_empty()));
    let streamed = stream_games(part.clone(), &RowRange::default()).unwrap();
    assert_eq!(streamed.map(Result::unwrap).collect::<Vec<_>>().concat(), rows);
    let results = stream_results(part).unwrap().map(|batch| batch.unwrap().len());
    assert_eq!(results.sum::<usize>(), rows.len());
}

#[test]
fn read_errors_name_the_cause() {
    let error_text = |bytes: Bytes| read_moves(bytes).unwrap_err().to_string();
    let same = |_: &mut Columns| ();
    let newer = (SCHEMA_VERSION + 1).to_string();
    let file = |version, name, change: &dyn Fn(&mut Columns)| variant_of(Table::Moves, version, name, change);
    let find = |columns: &[(Field, ArrayRef)], name: &str| {
        columns.iter().position(|(field, _)| field.name() == name).unwrap()
    };
    let cases = [
        (Bytes::from_static(b"PAR1 and nothing else"), "it has no seal of agon"),
        (Bytes::new(), "it has no seal of agon"),
        (file(None, "moves", &same), "is not a part of an agon dataset"),
        (file(Some("one"), "moves", &same), "is not a part of an agon dataset"),
        (
            file(Some(&newer), "moves", &same),
            "the file has schema version 2, and this program supports up to 1",
        ),
        (file(Some("1"), "games", &same), "this is a part of `games`, not of `moves`"),
        (
            file(Some("1"), "moves", &|columns| {
                columns.remove(find(columns, "cutoffs"));
            }),
            "the column `cutoffs` is missing",
        ),
        (
            file(Some("1"), "moves", &|columns| {
                let index = find(columns, "legal");
                let array: ArrayRef = Arc::new(StringArray::from(vec!["?"]));
                columns[index] = (Field::new("legal", array.data_type().clone(), true), array);
            }),
            "the column `legal` has the type Utf8, not u16",
        ),
        (
            file(Some("1"), "moves", &|columns| {
                let index = find(columns, "move");
                let array: ArrayRef = Arc::new(StringArray::new_null(1));
                columns[index] = (Field::new("move", array.data_type().clone(), true), array);
            }),
            "the column `move` is null in a row that does not allow it",
        ),
    ];
    for (bytes, expected) in cases {
        let error = error_text(bytes);
        assert!(error.contains(expected), "{error}");
    }
}

/// A search is complete or absent.
#[test]
fn rejects_incomplete_searches() {
    let bytes = variant_of(Table::Moves, Some("1"), "moves", |columns| {
        for (field, array) in columns {
            if field.name() == "player" {
                let other: [Option<&str>; 1] = [array.is_null(0).then_some("nobody")];
                *array = Arc::new(StringArray::from_iter(other));
                *field = Field::new("player", array.data_type().clone(), true);
            }
        }
    });
    assert!(matches!(read_moves(bytes), Err(ReadError::Null { .. })));
}

#[test]
fn detects_every_flipped_bit() {
    let mut random = RandomRows::new(6);
    let rows: Vec<MoveRow> = (0..60).map(|_| random.ply()).collect();
    let bytes = write_moves(&rows).unwrap();
    let seal = bytes.windows(16).position(|window| window == b"agon part seal 1").unwrap();
    for place in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[place] ^= 1 << random.below(8);
        let error = read_moves(Bytes::from(damaged)).unwrap_err();
        // The pages, the mark of the seal, its two digests, the footer, its length and the mark at the end.
        let fits = match place {
            _ if place < seal => matches!(error, ReadError::DamagedPages),
            _ if place < seal + 16 => matches!(error, ReadError::NoSeal),
            _ if place < seal + 48 => matches!(error, ReadError::DamagedPages),
            _ if place < bytes.len() - 8 => matches!(error, ReadError::DamagedFooter),
            _ => matches!(error, ReadError::NoSeal),
        };
        assert!(fits, "byte {place}: {error}");
    }
}

#[test]
fn rejects_truncated_parts() {
    let mut random = RandomRows::new(6);
    let rows: Vec<MoveRow> = (0..20).map(|_| random.ply()).collect();
    let bytes = write_moves(&rows).unwrap();
    for length in 0..bytes.len() {
        let cut = Bytes::copy_from_slice(&bytes[..length]);
        assert!(matches!(read_moves(cut), Err(ReadError::NoSeal)), "{length} bytes");
    }
}

/// With this damaged footer, Parquet's reader would skip lists of two billion empty elements. Found by fuzzing.
#[test]
fn rejects_damaged_footer_before_parsing() {
    let part = Bytes::from_static(include_bytes!("../tests/astray.parquet"));
    for table in Table::ALL {
        let refused = match table {
            Table::Games => read_games(part.clone()).err(),
            Table::Moves => read_moves(part.clone()).err(),
            Table::Probes => read_probes(part.clone()).err(),
        };
        assert!(matches!(refused, Some(ReadError::NoSeal)), "{refused:?}");
        assert!(matches!(Groups::open(&part, table, &["bout"]), Err(ReadError::NoSeal)));
    }
}

// ------------------------------------------------------------------------------------------------------ digests

/// Returns a small bout with a value in every column.
fn bout() -> BoutRows {
    let mut random = RandomRows::new(7);
    let ply = MoveRow { seat: Some(1), search: Some(random.search()), ..random.ply() };
    let mut probe = random.probe();
    probe.decision = ply.clone();
    BoutRows { games: vec![random.game()], moves: vec![ply], probes: vec![probe] }
}

fn change_game(row: &mut GameRow, column: &str) {
    match column {
        "bout" => row.bout ^= 1,
        "game" => row.game ^= 1,
        "rules" => row.rules.push('x'),
        "variant" => row.variant.push('x'),
        "opening" => row.opening.push('x'),
        "players" => row.players.push(String::new()),
        "payoffs" => row.payoffs.push(0),
        "plies" => row.plies ^= 1,
        "ending" => row.ending.push('x'),
        "seed" => row.seed ^= 1,
        "worker" => row.worker.push('x'),
        "build" => row.build.push('x'),
        "started" => row.started ^= 1,
        "duration_us" => row.duration_us ^= 1,
        "speed_factor" => row.speed_factor += 1.0,
        "settings" => row.settings.push(String::new()),
        "detail" => row.detail.push('x'),
        "engine_cpu_us" => row.engine_cpu_us.push(0),
        unknown => panic!("the test does not change the column `{unknown}`"),
    }
}

fn change_move(row: &mut MoveRow, column: &str) {
    let search = row.search.as_mut().unwrap();
    match column {
        "bout" => row.bout ^= 1,
        "game" => row.game ^= 1,
        "ply" => row.ply ^= 1,
        "seat" => row.seat = None,
        "move" => row.mv.push('x'),
        "legal" => row.legal ^= 1,
        "player" => search.player.push('x'),
        "depth" => search.depth ^= 1,
        "selective_depth" => search.selective_depth ^= 1,
        "depth_nodes" => search.depth_nodes.push(0),
        "depth_time_us" => search.depth_time_us.push(0),
        "score" => search.score = -1.25,
        "pv" => search.pv.push('x'),
        "time_us" => search.time_us ^= 1,
        "overshoot_us" => search.overshoot_us ^= 1,
        "limit_kind" => {
            let other = LimitKind::ALL.into_iter().find(|&kind| kind != search.limit_kind);
            search.limit_kind = other.unwrap();
        }
        "limit_value" => search.limit_value ^= 1,
        name => {
            let index = Counters::LIST.iter().position(|counter| counter.name == name);
            let mut counts = search.counters.values();
            counts[index.unwrap_or_else(|| panic!("the test does not change the column `{name}`"))] ^= 1;
            search.counters = Counters::from_values(counts);
        }
    }
}

#[test]
fn digest_covers_exactly_the_compared_columns() {
    let original = bout();
    let mut seen = BTreeSet::from([content_digest(&original)]);
    for table in Table::ALL {
        for column in table.columns() {
            let mut changed = original.clone();
            match (table, column.name) {
                (Table::Games, name) => change_game(&mut changed.games[0], name),
                (Table::Moves, name) => change_move(&mut changed.moves[0], name),
                (Table::Probes, "position") => changed.probes[0].position.push('x'),
                (Table::Probes, "moves") => changed.probes[0].moves.push('x'),
                (Table::Probes, name) => change_move(&mut changed.probes[0].decision, name),
            }
            assert_ne!(changed, original, "{} of {table:?}", column.name);
            let counts = !NOT_IN_DIGEST.contains(&column.name);
            let new = seen.insert(content_digest(&changed));
            assert_eq!(new, counts, "{} of {table:?}", column.name);
        }
    }
    let mut without = original.clone();
    without.moves[0].search = None;
    assert!(seen.insert(content_digest(&without)));
}

/// Content cannot move between adjacent fields, lists or tables without a change of the digest.
#[test]
fn digest_covers_the_ends_of_fields() {
    let digest = |change: &dyn Fn(&mut BoutRows)| {
        let mut bout = bout();
        change(&mut bout);
        content_digest(&bout)
    };
    let search =
        |bout: &mut BoutRows, change: &dyn Fn(&mut SearchRow)| change(bout.moves[0].search.as_mut().unwrap());
    let texts = |rules: &str, variant: &str| {
        digest(&|bout| {
            bout.games[0].rules = rules.to_string();
            bout.games[0].variant = variant.to_string();
        })
    };
    assert_ne!(texts("ab", "c"), texts("a", "bc"));
    let players = |names: &[&str]| {
        digest(&|bout| bout.games[0].players = names.iter().copied().map(String::from).collect())
    };
    assert_ne!(players(&["ab"]), players(&["a", "b"]));
    assert_ne!(players(&[]), players(&[""]));
    let score = |score: f64| digest(&|bout| search(bout, &|columns| columns.score = score));
    assert_ne!(score(0.0), score(-0.0));
    let twice = |bout: &mut BoutRows| bout.moves.push(bout.moves[0].clone());
    assert_ne!(digest(&twice), digest(&|_| ()));
}

/// Compares digests with constants, which `UPDATE_EXPECT=1` deliberately does not renew.
fn assert_pinned(digests: &[[u8; 32]], pinned: &[&str]) {
    let hex = |digest: &[u8; 32]| digest.map(|byte| format!("{byte:02x}")).concat();
    assert_eq!(
        digests.iter().map(hex).collect::<Vec<_>>(),
        pinned,
        "the digests of existing rows have changed, and datasets, states and workers of other builds hold the old ones. If \
         the encoding has to change, raise the version in `DOMAIN` in digest.rs and replace these constants; a new counter \
         or column must not change them"
    );
}

#[test]
fn digest_is_pinned() {
    // Counters that were added later are 0, as in rows of earlier builds.
    let mut original = bout();
    let searches = original.moves.iter_mut().chain(original.probes.iter_mut().map(|row| &mut row.decision));
    for search in searches.filter_map(|row| row.search.as_mut()) {
        let mut counts = search.counters.values();
        counts[Counters::ORIGINAL..].fill(0);
        search.counters = Counters::from_values(counts);
    }
    let set = |settings: &[&str]| {
        let mut bout = original.clone();
        bout.games[0].settings = settings.iter().copied().map(String::from).collect();
        content_digest(&bout)
    };
    // The first two come from builds without settings.
    assert_pinned(
        &[content_digest(&BoutRows::default()), set(&[]), set(&["search.c=1", ""])],
        &[
            "c75482192cb5a267e8ac9c9326630a046e587bfc846dd267102dd619c6d7835a",
            "a6cf532bebb85ac5757d06dce4ae4311aa87dfd22970e5e6f8168d662ca3317e",
            "54fd123be0a089a12997aec8fa8e00edfa687792b9edcd0a49dc06262910ba7a",
        ],
    );
}

#[test]
fn digests_of_played_bouts_survive_parquet() {
    let bouts = played("tic-tac-toe", ["alpha-beta", "uct"], "nodes=60", 12);
    let games = Bytes::from(write_games(bouts.iter().flat_map(|bout| &bout.games)).unwrap());
    let moves = Bytes::from(write_moves(bouts.iter().flat_map(|bout| &bout.moves)).unwrap());
    let back = BoutRows::by_bout(read_games(games).unwrap(), read_moves(moves).unwrap(), []);
    assert_eq!(back.into_values().collect::<Vec<_>>(), bouts);
    let again = played("tic-tac-toe", ["alpha-beta", "uct"], "nodes=60", 12);
    let digests = |bouts: &[BoutRows]| bouts.iter().map(content_digest).collect::<Vec<_>>();
    assert_eq!(digests(&bouts), digests(&again));
}

// ---------------------------------------------------------------------------------------------- documentation

/// Returns the list of a table's columns for the documentation.
fn documentation(table: Table) -> String {
    let mut text =
        String::from("| column | type | null | unit | meaning |\n| --- | --- | --- | --- | --- |\n");
    for column in table.columns() {
        let null = if column.nullable { "yes" } else { "" };
        let row = format!(
            "| `{}` | {} | {null} | {} | {} |\n",
            column.name,
            column.column_type.name(),
            column.unit,
            column.description
        );
        text.push_str(&row.replace("|  |", "| |").replace("|  |", "| |"));
    }
    text
}

/// `UPDATE_EXPECT=1` renews the lists.
#[test]
fn documentation_lists_the_columns() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/reference/dataset.md");
    let text = std::fs::read_to_string(path).unwrap();
    let mut renewed = text.clone();
    for table in Table::ALL {
        let begin = format!("<!-- columns of {} -->\n", table.name());
        let start = renewed.find(&begin).expect("the page has a list for each table") + begin.len();
        let end = start + renewed[start..].find("<!-- end -->").unwrap();
        renewed.replace_range(start..end, &documentation(table));
    }
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(path, renewed).unwrap();
    } else {
        assert!(text == renewed, "{path} is outdated; run the tests with UPDATE_EXPECT=1");
    }
}

#[test]
fn arrow_schema_matches_the_columns() {
    for table in Table::ALL {
        let schema = table.schema();
        assert_eq!(schema.metadata()[VERSION_KEY], SCHEMA_VERSION.to_string());
        for (field, column) in schema.fields().iter().zip(table.columns()) {
            assert_eq!(field.metadata()["description"], column.description);
            assert_eq!(field.metadata().get("unit").map_or("", String::as_str), column.unit);
            assert_eq!(field.is_nullable(), column.nullable);
        }
        // Names are unique, keys are columns, and types survive a file.
        let names: BTreeSet<_> = table.columns().map(|column| column.name).collect();
        assert_eq!(names.len(), table.columns().count());
        assert!(table.key().iter().all(|key| names.contains(key)));
        let bytes = match table {
            Table::Games => write_games([]),
            Table::Moves => write_moves([]),
            Table::Probes => write_probes([]),
        };
        let reader = read_batches(Bytes::from(bytes.unwrap()), table, &[]).unwrap();
        let types = |schema: &Schema| {
            schema
                .fields()
                .iter()
                .map(|field| (field.name().clone(), field.data_type().to_string()))
                .collect::<Vec<_>>()
        };
        assert_eq!(types(&reader.schema()), types(&schema));
    }
    let uncounted: BTreeSet<_> = NOT_IN_DIGEST.iter().copied().collect();
    let all: BTreeSet<_> =
        Table::ALL.into_iter().flat_map(Table::columns).map(|column| column.name).collect();
    assert!(uncounted.is_subset(&all));
}
