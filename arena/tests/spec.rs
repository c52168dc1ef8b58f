//! Damaged specs never panic, and every error is a sentence with a line.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use agon_arena::adjudication::Resign;
use agon_arena::{Adjudication, Arena, Environment, SeedPath, Spec, SpecError, SpecProblem, SpecSource};
use agon_games::GameSpec;
use agon_games::random::{Random, below, seeded};

/// Specs that together use every key.
const SPECS: &[&str] = &[
    r#"
name = "sink-1"            # a comment
game = { name = "virus", seats = 3, size = 6 }
seed = 0x7f
openings = { file = "lines" }
[tournament]
format = "gauntlet"
hero = "größer"
bouts = 1_000
[[player]]
name = "größer"
search = { algorithm = "max-n", values = "shares", order = ["static"], pruning = true }
evaluation = { }
limit = { nodes = 10 }
[[player]]
name = "b(1)"
limit = { depth = 3 }
search = { algorithm = "paranoid" }
[[player]]
name = "c"
limit = { ms = 5 }
search = { algorithm = "uct", c = 1.5, rollout_plies = 4 }
"#,
    r#"
name = 'sink-2'
game = "chess:ply_limit=200"
seed = 9223372036854775807
limit = { clock_ms = 10_000, increment_ms = 100 }
[tournament]
format = "sprt"
bounds = [-1.5, 5e0]
model = "logistic"
alpha = 0.05
beta = 0.1
max_bouts = 4
[adjudication]
resign = { score = 6.5, moves = 4, both = true }
draw = { score = 0.1, moves = 8, after = 60 }
max_plies = 150
[[player]]
name = "a"
search = { algorithm = "pvs", quiescence = true, table_mb = 8, null_move = true }
evaluation = { pawns = 1, knights = 3.25 }
[[player]]
name = "b"
limit = { cpu_ms = 5 }
search = { algorithm = "mtd", driver = "sss" }
"#,
    r#"
name = "sink-3"
game = "othello"
limit = { depth = 2 }
[probe]
positions = { file = "lines" }
[[player]]
name = "a"
[player.search]
algorithm = "alpha-beta"
table_mb = 0
"#,
    r#"
name = "sink-4"
game = "backgammon"
limit = { nodes = 100 }
openings = { random_plies = 2 }
[tournament]
format = "round-robin"
bouts = 2
[[player]]
name = "a"
search = { algorithm = "star2" }
[[player]]
name = "b"
search = { algorithm = "monte-carlo" }
"#,
    r#"
name = "sink-5"
game = "othello"
limit = { nodes = 100 }
openings = { random_plies = 2 }
[tune]
player = "a"
method = "spsa"
bouts = 40
pairs = 5
window = 3
rate = 0.1
opponents = ["b"]
validation = { bouts = 2 }
[[tune.parameter]]
path = "evaluation.corners"
start = 2.5
min = 0
max = 1e2
step = 1
[[tune.parameter]]
path = "search.table_mb"
min = 1
max = 64
kind = "integer"
scale = "log"
step = 2
[[player]]
name = "a"
search = { algorithm = "pvs", table_mb = 1 }
[[player]]
name = "b"
search = { algorithm = "uct" }
"#,
];

/// Replacements for values.
const VALUES: &[&str] = &[
    "",
    "0",
    "-1",
    "1",
    "true",
    "\"\"",
    "\"pvs\"",
    "[]",
    "{}",
    "[[]]",
    "{ a = { a = { a = 1 } } }",
    "nan",
    "-inf",
    "1e308",
    "1e400",
    "-0.0",
    "18446744073709551615",
    "18446744073709551616",
    "99999999999999999999999999999999",
    "0x",
    "0b12",
    "1979-05-27T07:32:00Z",
    "\"\\u0000\"",
    "\"\\u001b[31mred\"",
    "\"\\ud800\"",
    "\"\u{202e}\u{1f600}\"",
    "'''",
    "\"\"\"",
    "{ nodes = 1, nodes = 2 }",
    "{ file = \"nowhere\" }",
    "{ file = \"lines\" }",
    "[1, \"a\", {}]",
    "\"virus:seats=4,seats=5\"",
    "\"go:size=99999999999999999999\"",
];

/// Texts to insert anywhere.
const SCRAPS: &[&str] = &[
    "\0",
    "\u{1b}",
    "\u{7f}",
    "\u{85}",
    "\u{2028}",
    "\u{feff}",
    "\r",
    "\r\n",
    "\t",
    "=",
    "\"",
    "'",
    "[",
    "]",
    "[[",
    "{",
    "}",
    "#",
    "\\",
    "ß",
    "\u{1f600}",
    ",",
];

/// Lines to insert.
const LINES: &[&str] = &[
    "[tournament]",
    "[probe]",
    "[tune]",
    "[[tune.parameter]]",
    "path = \"search.c\"",
    "[[player]]",
    "[player]",
    "[player.search]",
    "limit = { ms = 1 }",
    "unknown = 1",
    "name = 1",
    "\"\\u0007\" = 1",
    "positions = { play = \"random\", turns = 5, games = 50 }",
    "positions = { play = \"random\", turns = 5, after = 10, games = 50 }",
    "positions = { file = \"lines\", player = \"a\", turns = 5, after = 10 }",
    "positions = { random = 3, plies = [9, 4] }",
    "a.b.c = 1",
];

/// Returns the last character boundary up to an index.
fn boundary(text: &str, mut index: usize) -> usize {
    while !text.is_char_boundary(index) {
        index -= 1;
    }
    index
}

fn pick<'a>(random: &mut Random, from: &[&'a str]) -> &'a str {
    from[below(random, from.len())]
}

/// Damages a text once.
fn damage(text: &str, random: &mut Random) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_string).collect();
    if lines.is_empty() {
        return pick(random, VALUES).to_string();
    }
    let (line, other) = (below(random, lines.len()), below(random, lines.len()));
    match below(random, 10) {
        0 => drop(lines.remove(line)),
        1 => lines.insert(other, lines[line].clone()),
        2 => lines.swap(line, other),
        3 => lines.insert(line, pick(random, LINES).to_string()),
        4 | 5 => {
            // The value of a key, on its own line or within a table.
            let equals: Vec<usize> = lines[line].match_indices('=').map(|(place, _)| place).collect();
            if !equals.is_empty() {
                let start = equals[below(random, equals.len())] + 1;
                let rest = &lines[line][start..];
                let end = start + rest.find([',', '}']).unwrap_or(rest.len());
                lines[line].replace_range(start..end, &format!(" {} ", pick(random, VALUES)));
            }
        }
        6 => {
            let place = boundary(&lines[line], below(random, lines[line].len() + 1));
            lines[line].insert_str(place, pick(random, SCRAPS));
        }
        7 => {
            // One letter of a word is another.
            let place = boundary(&lines[line], below(random, lines[line].len() + 1));
            let letter = (b'a' + below(random, 26) as u8) as char;
            if let Some(old) = lines[line][place..].chars().next() {
                lines[line].replace_range(place..place + old.len_utf8(), &letter.to_string());
            }
        }
        8 => {
            // The longest number, the longest word, the deepest nesting.
            let long = match below(random, 4) {
                0 => "9".repeat(5000),
                1 => format!("\"{}\"", "x".repeat(5000)),
                2 => "[".repeat(3000),
                _ => "{ a = ".repeat(500),
            };
            let place = lines[line].find('=').map_or(0, |place| place + 1);
            lines[line].insert_str(place, &long);
        }
        _ => {
            let whole = lines.join("\n");
            let end = boundary(&whole, below(random, whole.len() + 1));
            return whole[..end].to_string();
        }
    }
    lines.join("\n")
}

/// Returns the specs above and every example, with the files that they name.
fn sources() -> Vec<SpecSource> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
    let mut texts: Vec<String> = SPECS.iter().map(ToString::to_string).collect();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            texts.push(std::fs::read_to_string(path).unwrap());
        }
    }
    let virus = GameSpec::parse("virus:seats=3,size=6").unwrap();
    let arena = Arena::new(&virus, &[], Environment::system()).unwrap();
    let opening = arena.random_opening(SeedPath { run: 1, bout: 1, game: 0 }, 3).unwrap();
    let lines = |text: &str| match text.contains("virus") {
        true => format!("# one\n{opening}\n"),
        false => "d3 c5\n\nd3 e3 f4\n".to_string(),
    };
    texts
        .into_iter()
        .map(|text| {
            let mut files = BTreeMap::new();
            for name in SpecSource::needed_files(&text).unwrap() {
                files.insert(name, lines(&text));
            }
            SpecSource { text, files }
        })
        .collect()
}

fn check_error(error: &SpecError, source: &SpecSource) {
    assert!(!error.problems.is_empty(), "rejected without a problem:\n{}", source.text);
    for problem in &error.problems {
        check_problem(problem, source);
    }
}

fn check_problem(error: &SpecProblem, source: &SpecSource) {
    let reason = &error.reason;
    assert!(reason.contains(' ') && !reason.trim().is_empty(), "no sentence: {reason:?}");
    assert!(!reason.chars().any(char::is_control), "control characters: {reason:?}");
    assert!(!reason.contains("unwrap") && !reason.contains("panick"), "{reason}");
    let text = match &error.file {
        Some(name) => &source.files[name],
        None => &source.text,
    };
    match error.line {
        Some(line) => {
            assert!((1..=text.split('\n').count()).contains(&line), "line {line} of {text:?}: {reason}");
        }
        // Missing keys of the spec itself have no line.
        None => assert!(
            reason.starts_with("the spec needs `") || reason.starts_with("a spec has either"),
            "no line: {reason}\n{text}"
        ),
    }
}

#[test]
fn all_problems_of_a_spec_are_reported_at_once() {
    let text = r#"
name = "Bad Name"
game = "othello"
sed = 1
limit = { nodes = 0 }
openings = { random_plies = 0 }
[tournament]
format = "round-robin"
bouts = 0
[[player]]
name = "a"
search = { algorithm = "pvs", table_mb = -1, c = 1 }
[[player]]
name = "a"
search = { algorithm = "pvss" }
"#;
    let error = Spec::parse(&SpecSource { text: text.to_string(), ..SpecSource::default() }).unwrap_err();
    let lines: Vec<usize> = error.problems.iter().filter_map(|problem| problem.line).collect();
    assert_eq!(lines, [2, 4, 5, 6, 9, 12, 12, 14, 15], "{error}");
    for expected in
        ["did you mean `seed`?", "player `a`: there is no algorithm `pvss`", "two players are called `a`"]
    {
        assert!(error.to_string().contains(expected), "{error} and not: {expected}");
    }
}

#[test]
fn checks_everything_else_without_a_valid_game() {
    let text = "name = \"x\"\ngame = \"otello\"\n[tournament]\nformat = \"sprt\"\nmodel = \"bayes\"\n\
                [[player]]\nname = \"a\"\nspeed = 3\n";
    let error = Spec::parse(&SpecSource { text: text.to_string(), ..SpecSource::default() }).unwrap_err();
    for expected in [
        "line 2: there is no game `otello`: did you mean `othello`?",
        "`model` of [tournament] must be one of \"normalised\", \"logistic\"",
        "[tournament] needs `bounds`",
        "[tournament] needs `max_bouts`",
        "player `a`: a player has no key `speed`",
        "player `a` has no limit",
    ] {
        assert!(error.to_string().contains(expected), "{error} and not: {expected}");
    }
}

#[test]
fn rejects_adjudication_without_effect() {
    let spec = |game: &str, players: [&str; 2], rules: &str| {
        let [one, other] = players;
        let text = format!(
            "name = \"x\"\ngame = \"{game}\"\nlimit = {{ nodes = 9 }}\n[tournament]\nformat = \"round-robin\"\n\
             bouts = 1\n[[player]]\nname = \"a\"\nsearch = {{ algorithm = \"{one}\" }}\n[[player]]\nname = \"b\"\n\
             search = {{ algorithm = \"{other}\" }}\n[adjudication]\n{rules}\n"
        );
        Spec::parse(&SpecSource { text, ..SpecSource::default() }).map_err(|error| error.to_string())
    };
    let spec_of_pvs = |rules| spec("othello", ["pvs", "pvs"], rules);
    let read = spec_of_pvs("resign = { score = 3, moves = 2 }\nmax_plies = 9").unwrap().adjudication;
    let resign = Resign { score: 3.0, moves: 2, both: false };
    assert_eq!(read, Adjudication { resign: Some(resign), draw: None, max_plies: Some(9) });
    spec("othello", ["pvs", "uct"], "resign = { score = 3, moves = 2 }").unwrap();
    spec("virus:seats=4", ["max-n", "greedy"], "draw = { score = 3, moves = 2 }").unwrap();
    for (answer, expected) in [
        (spec_of_pvs(""), "line 13: give at least one of `resign`, `draw` and `max_plies`"),
        (spec_of_pvs("resing = {}"), "did you mean `resign`?"),
        (spec_of_pvs("resign = 600"), "line 14: `resign` must be a table, as in resign = { score ="),
        (spec_of_pvs("resign = { score = 0, moves = 0 }"), "`score` of resign must be a number above 0"),
        (spec_of_pvs("resign = { score = 1, moves = 0 }"), "`moves` of resign must be a whole number from 1"),
        (spec_of_pvs("draw = { moves = 3, afer = 9 }"), "did you mean `after`?"),
        (spec_of_pvs("draw = { moves = 3 }"), "draw needs `score`"),
        (
            spec_of_pvs("draw = { score = 2, moves = 3 }\nresign = { score = 2, moves = 3 }"),
            "the `score` of `draw` must be below that of `resign`",
        ),
        (
            spec("othello", ["random", "uct"], "resign = { score = 1, moves = 1 }"),
            "needs a player with scores",
        ),
        (spec("othello", ["pvs", "uct"], "draw = { score = 1, moves = 1 }"), "needs two players with scores"),
        (
            spec("virus:seats=4", ["max-n", "greedy"], "resign = { score = 1, moves = 1 }"),
            "`resign` is for games with two seats",
        ),
    ] {
        let error = answer.unwrap_err();
        assert!(error.contains(expected), "{error}\nand not: {expected}");
    }
}

#[test]
fn rejects_damaged_specs_with_a_line_and_an_error() {
    let sources = sources();
    assert!(sources.len() >= 12, "the examples are not found");
    let (mut right, mut wrong) = (0, 0);
    for (number, source) in sources.iter().enumerate() {
        Spec::parse(source).unwrap_or_else(|error| panic!("{error}:\n{}", source.text));
        for seed in 0..400 {
            let mut random = seeded(seed * 100 + number as u64);
            let mut damaged = source.clone();
            for _ in 0..=below(&mut random, 3) {
                match damaged.files.values_mut().next() {
                    Some(file) if below(&mut random, 4) == 0 => *file = damage(file, &mut random),
                    _ => damaged.text = damage(&damaged.text, &mut random),
                }
            }
            let read = catch_unwind(AssertUnwindSafe(|| {
                let canonical = damaged.canonical();
                let needed = SpecSource::needed_files(&damaged.text);
                (Spec::parse(&damaged), canonical, needed)
            }));
            let Ok((parsed, canonical, needed)) = read else {
                panic!("spec {number} with seed {seed} panics:\n{}", damaged.text);
            };
            match parsed {
                Ok(_) => {
                    right += 1;
                    assert!(canonical.is_ok() && needed.is_ok());
                }
                Err(error) => {
                    wrong += 1;
                    check_error(&error, &damaged);
                }
            }
        }
    }
    // Both outcomes are frequent.
    assert!(right > 300 && wrong > 3000, "{right} right, {wrong} wrong");
}
