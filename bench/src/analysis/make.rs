//! The dataset for the queries: real games, repeated with other bout numbers.

use std::fs;
use std::io::ErrorKind;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use agon_arena::{Spec, SpecSource};
use agon_records::{BoutRows, GameRow, MoveRow, Table, write_games, write_moves_in_groups};
use agon_schedule::{RunManifest, RunState, Schedule};
use agon_storage::layout::{manifest_name, part_name};
use agon_testing::bouts::{self, play_games};
use anyhow::Context as _;

use agon::progress::Progress;

/// The number of files per table.
const FILES: u64 = 20;

/// The number of played rows of moves, the size of a row group.
const PLAYED: usize = 122_000;

/// The run's id.
const RUN: &str = "bench-00000000";

/// Returns the spec of the tournament with this many bouts for each of its six pairings.
fn spec(bouts: u64) -> String {
    let player = |depth: u32| {
        format!(
            "[[player]]\nname = \"depth-{depth}\"\nlimit = {{ depth = {depth} }}\nsearch = {{ algorithm = \"pvs\" }}\n"
        )
    };
    let players: String = (1..=4).map(player).collect();
    format!(
        "name = \"bench\"\ngame = \"connect-four\"\nseed = 1\nopenings = {{ random_plies = 8 }}\n\
         [tournament]\nformat = \"round-robin\"\nbouts = {bouts}\n{players}"
    )
}

/// The repeated bouts.
struct Played {
    games: Vec<GameRow>,
    moves: Vec<MoveRow>,
    bouts: u64,
}

/// Writes a dataset with about this many rows of moves.
pub(super) fn dataset(
    folder: &Path,
    rows: u64,
    threads: NonZeroUsize,
    progress: &Progress,
) -> anyhow::Result<()> {
    // Removes an incomplete dataset of an earlier call.
    for table in ["moves", "games"] {
        match fs::remove_dir_all(folder.join(table).join(format!("run={RUN}"))) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
    }
    progress.announce("playing the games of the dataset");
    let played = play()?;
    let repeats = rows.div_ceil(played.moves.len() as u64).max(1);
    let files = FILES.min(repeats);
    let (next, failed) = (AtomicU64::new(0), Mutex::new(Ok(())));
    std::thread::scope(|scope| {
        for _ in 0..threads.get() {
            scope.spawn(|| {
                loop {
                    let file = next.fetch_add(1, Ordering::Relaxed);
                    if file >= files {
                        return;
                    }
                    progress.show(|| format!("writing file {} of {files}", file + 1));
                    let (first, end) = (repeats * file / files, repeats * (file + 1) / files);
                    if let Err(error) = write_part(folder, &played, first..end)
                        && let Ok(mut failed) = failed.lock()
                    {
                        *failed = Err(error);
                    }
                }
            });
        }
    });
    failed.into_inner().unwrap_or(Ok(()))?;
    let bouts = repeats * played.bouts;
    let text = spec(bouts / 6 + 1);
    let manifest = RunManifest {
        id: RUN.to_string(),
        source: SpecSource { text, ..SpecSource::default() },
        build: env!("CARGO_PKG_VERSION").to_string(),
        bouts,
        committed: bouts,
        state: RunState::Done,
        ..RunManifest::default()
    };
    write_file(&folder.join(manifest_name(RUN)), &serde_json::to_vec(&manifest)?)
}

fn write_file(file: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let parent = file.parent().expect("every file of a dataset is in a folder");
    let write = || fs::create_dir_all(parent).and_then(|()| fs::write(file, bytes));
    write().with_context(|| format!("cannot write {}", file.display()))
}

/// Writes a part with some of the repetitions.
fn write_part(folder: &Path, played: &Played, repeats: std::ops::Range<u64>) -> anyhow::Result<()> {
    let (first, end) = (repeats.start * played.bouts, repeats.end * played.bouts);
    let file = |table| folder.join(part_name(table, RUN, first, end - 1));
    let mut rows = played.moves.clone();
    let bytes = write_moves_in_groups(|write| {
        for repeat in repeats.clone() {
            for (row, original) in rows.iter_mut().zip(&played.moves) {
                row.bout = original.bout + repeat * played.bouts;
            }
            write(&rows)?;
        }
        Ok(())
    })?;
    write_file(&file(Table::Moves), &bytes)?;
    let games = repeats.flat_map(|repeat| {
        let again = move |game: &GameRow| GameRow { bout: game.bout + repeat * played.bouts, ..game.clone() };
        played.games.iter().map(again)
    });
    let games: Vec<GameRow> = games.collect();
    write_file(&file(Table::Games), &write_games(&games)?)
}

/// Plays bouts until they fill a row group.
fn play() -> anyhow::Result<Played> {
    let source = SpecSource { text: spec(1000), ..SpecSource::default() };
    let mut schedule = Schedule::new(Spec::parse(&source)?)?;
    let spec = schedule.spec().clone();
    let mut arena = bouts::arena(&spec);
    let mut played = BoutRows::default();
    let mut bouts = 0;
    while bouts < schedule.bouts() {
        let bout = schedule.draw_bout(bouts)?;
        let build = env!("CARGO_PKG_VERSION");
        let mut rows = play_games(&spec, &mut arena, &bout, ["bench", build], |_| 0);
        if played.moves.len() + rows.moves.len() > PLAYED {
            break;
        }
        played.games.append(&mut rows.games);
        played.moves.append(&mut rows.moves);
        bouts += 1;
    }
    Ok(Played { games: played.games, moves: played.moves, bouts })
}
