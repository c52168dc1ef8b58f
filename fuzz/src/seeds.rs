//! Writes the initial corpus: real specs, messages, lines of play and Parquet files.

use std::fs;
use std::path::{Path, PathBuf};

use agon_fuzz::{PROBE, TOURNAMENT, bout, encoded, messages, played, spec};
// Links the runtime for the instrumentation of the other crates.
use agon_games::Turn;
use agon_games::random::{below, seeded};
use agon_games::registry::{GAMES, GameSpec};
use libfuzzer_sys as _;

fn main() -> std::io::Result<()> {
    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    let write = |target: &str, name: &str, bytes: &[u8]| -> std::io::Result<()> {
        let folder = home.join("corpus").join(target);
        fs::create_dir_all(&folder)?;
        fs::write(folder.join(name), bytes)
    };
    // 1. Specs: the examples and the specs of the other targets.
    for (number, text) in [TOURNAMENT, PROBE].iter().enumerate() {
        write("spec", &format!("own-{number}"), text.as_bytes())?;
    }
    let mut folders: Vec<PathBuf> = vec![home.join("../examples")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_dir() {
                folders.push(path);
            } else if name.ends_with(".toml") {
                write("spec", &name, &fs::read(&path)?)?;
            }
        }
    }
    // 2. Messages and Parquet files of a played bout.
    let spec = spec(TOURNAMENT);
    let rows = played(&spec, &bout());
    let sent = messages(&spec, &bout(), &rows).expect("a played bout can be sent");
    write("wire", "tournament", &[&[0], &encoded(&sent)[..]].concat())?;
    let parts = [
        agon_records::write_games(&rows.games).expect("rows are a table"),
        agon_records::write_moves(&rows.moves).expect("rows are a table"),
        agon_records::write_probes(&rows.probes).expect("rows are a table"),
    ];
    for (table, part) in parts.iter().enumerate() {
        write("records", &format!("table-{table}"), &[&[table as u8], &part[..]].concat())?;
        // Every column, with its own type and with values.
        let plan = [&[129 + table as u8], &[1, 77, 3, 9, 2][..]].concat();
        write("records", &format!("plan-{table}"), &plan.into_iter().chain([77; 400]).collect::<Vec<u8>>())?;
    }
    // 3. Lines of play of every game, from the first and from a later position.
    for (number, game) in GAMES.iter().enumerate() {
        let spec = GameSpec::parse(game.name).expect("a listed game");
        let mut position = spec.start(None).expect("every game has a first position");
        let mut random = seeded(number as u64);
        let mut line = Vec::new();
        while position.turn() != Turn::Over && line.len() < 40 {
            let legal = position.legal();
            let word = legal[below(&mut random, legal.len())].clone();
            position.play(line.len() + 1, &word).expect("it is legal");
            line.push(word);
        }
        write("moves", game.name, format!("{}\n\n{}", game.name, line.join(" ")).as_bytes())?;
        let later = format!("{}\n{}\n{}", game.name, position.position(), position.legal().join(" "));
        write("moves", &format!("{}-later", game.name), later.as_bytes())?;
    }
    Ok(())
}
