//! Code shared by the targets: two specs, messages of real bouts, and values decoded from bytes.

use std::sync::Arc;

use agon_arena::{Arena, Environment, Opening, PlayerConfig, Spec, SpecSource};
use agon_proto::v1::Submission;
use agon_proto::{LeasedBout, BoutWriter, Lease, WireError};
use agon_records::{BoutRows, GameHead, MoveRow};
use prost::Message as _;

/// The spec of a tournament.
pub const TOURNAMENT: &str = r#"
name = "wire"
game = "kalah"
seed = 7
limit = { nodes = 300 }
[tournament]
format = "round-robin"
bouts = 1
[[player]]
name = "größer"
search = { algorithm = "pvs" }
[[player]]
name = "uct"
limit = { nodes = 20 }
search = { algorithm = "uct" }
"#;

/// The spec of a probe.
pub const PROBE: &str = r#"
name = "wire"
game = "othello"
seed = 7
limit = { depth = 2 }
[probe]
positions = { random = 3, plies = [4, 8] }
[[player]]
name = "a"
search = { algorithm = "alpha-beta" }
[[player]]
name = "b"
search = { algorithm = "pvs" }
"#;

/// Parses a spec that is known to be valid.
pub fn spec(text: &str) -> Arc<Spec> {
    let source = SpecSource { text: text.to_string(), ..SpecSource::default() };
    Arc::new(Spec::parse(&source).expect("the spec is valid"))
}

/// Creates a bout of [`TOURNAMENT`] or [`PROBE`].
pub fn bout() -> LeasedBout {
    let lease = Lease { run: "wire-0123abcd".to_string(), bout: 5, epoch: 3, sequence: 11 };
    LeasedBout::new(lease, vec![1, 0], Opening::default(), Vec::new())
}

/// Plays a bout and returns its rows.
pub fn played(spec: &Spec, bout: &LeasedBout) -> BoutRows {
    let configs: Vec<PlayerConfig> = spec.players.iter().map(|player| player.config.clone()).collect();
    let names: Vec<String> = spec.players.iter().map(|player| player.name.clone()).collect();
    let mut arena = Arena::new(&spec.game, &configs, Environment::system()).expect("the spec is valid");
    let mut rows = BoutRows::default();
    for (index, request) in spec.games(&bout.bout, 1.0).enumerate() {
        let record = arena.play(&request, &mut |_| ()).expect("the request is valid");
        let head = GameHead {
            game: &spec.game,
            names: &names,
            opening: &bout.bout.opening,
            bout: bout.lease.bout,
            index: index as u16,
            worker: "worker",
            build: "build",
            started: 1_700_000_000_000_000 + index as i64,
            speed_factor: 1.0,
            settings: &[],
        };
        rows.add_game(&head, &record).expect("a played game has rows");
    }
    rows
}

/// Returns the messages of a bout.
pub fn messages(spec: &Arc<Spec>, bout: &LeasedBout, rows: &BoutRows) -> Result<Vec<Submission>, WireError> {
    let mut writer = BoutWriter::new(Arc::clone(spec), bout.clone())?;
    let mut messages = vec![writer.head("worker", "build")?];
    for game in &rows.games {
        let moves: Vec<MoveRow> = rows.moves.iter().filter(|row| row.game == game.game).cloned().collect();
        for batch in moves.chunks(16) {
            messages.push(writer.moves(game.game, batch)?);
        }
        messages.push(writer.game_end(game)?);
    }
    for probe in &rows.probes {
        messages.push(writer.probes([probe])?);
    }
    messages.push(writer.end()?);
    Ok(messages)
}

/// Encodes messages, each after its length.
pub fn encoded(messages: &[Submission]) -> Vec<u8> {
    messages.iter().flat_map(|message| message.encode_length_delimited_to_vec()).collect()
}

/// Decodes values from bytes. Missing bytes are 0.
pub struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    /// Creates a decoder.
    pub fn new(bytes: &'a [u8]) -> Bytes<'a> {
        Bytes(bytes)
    }

    /// Returns the next byte.
    pub fn byte(&mut self) -> u8 {
        let (&first, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        first
    }

    /// Returns a number, usually a small one.
    pub fn number(&mut self) -> u64 {
        let length = usize::from(self.byte() % 9);
        (0..length).fold(0, |number, _| number << 8 | u64::from(self.byte()))
    }

    /// Returns a short text or a meaningful word.
    pub fn text(&mut self) -> String {
        let words = ["nodes", "depth", "ms", "pvs", "", "e2e4"];
        let choice = usize::from(self.byte());
        match words.get(choice) {
            Some(word) => word.to_string(),
            None => (0..choice % 5).map(|_| char::from(self.byte())).collect(),
        }
    }

    /// Returns a value, or rarely `None`.
    pub fn maybe<T>(&mut self, value: impl FnOnce(&mut Self) -> T) -> Option<T> {
        (self.byte() % 8 != 0).then(|| value(self))
    }
}
