//! The specs that tests share, and a builder for variations of them.

use std::fmt::Display;
use std::ops::Deref;
use std::sync::Arc;

use agon_arena::{Spec, SpecSource};

/// A tournament of two quick searches, each bout with an opening of its own.
pub const PVS_VS_UCT: &str = r#"
name = "pvs-vs-uct"
game = "connect-four"
seed = 5
limit = { nodes = 60 }
openings = { random_plies = 4 }
[tournament]
format = "round-robin"
bouts = 4
[[player]]
name = "pvs"
search = { algorithm = "pvs", table_mb = 1 }
[[player]]
name = "uct"
search = { algorithm = "uct" }
"#;

/// Three bouts of two games; as a sample dataset it has two parts.
pub const TOURNAMENT: &str = r#"
name = "small"
game = "connect-four"
seed = 7
limit = { nodes = 60 }
openings = { random_plies = 3 }
[tournament]
format = "round-robin"
bouts = 3
[[player]]
name = "deep"
search = { algorithm = "pvs" }
[[player]]
name = "wide"
search = { algorithm = "uct" }
"#;

/// Two players that search three positions.
pub const PROBE: &str = r#"
name = "probe"
game = "connect-four"
limit = { depth = 3 }
[probe]
positions = { random = 3, plies = [2, 5] }
[[player]]
name = "plain"
search = { algorithm = "minimax" }
[[player]]
name = "pruned"
search = { algorithm = "alpha-beta" }
"#;

/// Three players in three seats.
pub const THREE_SEATS: &str = r#"
name = "three"
game = { name = "virus", seats = 3, size = 5 }
seed = 7
limit = { nodes = 40 }
openings = { random_plies = 3 }
[tournament]
format = "round-robin"
bouts = 8
[[player]]
name = "a"
search = { algorithm = "paranoid" }
[[player]]
name = "b"
search = { algorithm = "max-n" }
[[player]]
name = "c"
search = { algorithm = "greedy" }
"#;

/// A tournament without openings; one player's name is not ASCII and one player has a limit of its own.
pub const KALAH: &str = r#"
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

/// A probe of another game than [`PROBE`], with a seed.
pub const OTHELLO_PROBE: &str = r#"
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

/// Tunes one parameter of one player.
pub const SPSA: &str = r#"
name = "spsa"
game = "connect-four"
seed = 5
limit = { nodes = 30 }
openings = { random_plies = 4 }
[tune]
player = "uct"
method = "spsa"
bouts = 180
pairs = 3
window = 5
rate = 0.3
validation = { bouts = 20 }
[[tune.parameter]]
path = "search.c"
start = 4
min = 0.1
max = 8
scale = "log"
step = 1.4
[[player]]
name = "uct"
search = { algorithm = "uct" }
"#;

/// A spec under construction; reads as its text.
#[derive(Clone)]
pub struct Variation(String);

/// Begins a variation of a spec.
pub fn vary(text: &str) -> Variation {
    Variation(text.to_string())
}

impl Variation {
    /// Sets the name of the run.
    pub fn name(self, name: &str) -> Variation {
        self.set("name", format!("{name:?}"))
    }

    /// Sets the limit of all players, such as `nodes = 60`.
    pub fn limit(self, limit: &str) -> Variation {
        self.set("limit", format!("{{ {limit} }}"))
    }

    pub fn seed(self, seed: u64) -> Variation {
        self.set("seed", seed)
    }

    pub fn bouts(self, bouts: u64) -> Variation {
        self.set("bouts", bouts)
    }

    /// Replaces the value of the first line with this key.
    pub fn set(self, key: &str, value: impl Display) -> Variation {
        self.replace_line(key, &format!("{key} = {value}\n"))
    }

    /// Removes the first line with this key.
    pub fn without(self, key: &str) -> Variation {
        self.replace_line(key, "")
    }

    fn replace_line(self, key: &str, line: &str) -> Variation {
        let begin = self.0.find(&format!("\n{key} = ")).unwrap_or_else(|| panic!("no key `{key}`")) + 1;
        let end = begin + self.0[begin..].find('\n').unwrap() + 1;
        let mut text = self.0;
        text.replace_range(begin..end, line);
        Variation(text)
    }

    /// Replaces text that must occur.
    pub fn replace(self, from: &str, to: &str) -> Variation {
        assert!(self.0.contains(from), "`{from}` does not occur in the spec");
        Variation(self.0.replace(from, to))
    }

    /// Adds a player.
    pub fn player(self, name: &str, search: &str) -> Variation {
        Variation(format!("{}[[player]]\nname = {name:?}\nsearch = {{ {search} }}\n", self.0))
    }

    pub fn text(self) -> String {
        self.0
    }
}

impl Deref for Variation {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

/// Parses a valid spec.
pub fn parse(text: &str) -> Arc<Spec> {
    Arc::new(Spec::parse(&SpecSource { text: text.to_string(), ..SpecSource::default() }).unwrap())
}
