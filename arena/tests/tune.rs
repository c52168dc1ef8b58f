//! Specs of tuning runs: valid ones, and the error of each kind of mistake.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

use agon_arena::spec::tune::Method;
use agon_arena::{PlayerConfig, Spec, SpecError, SpecSource};

const SPEC: &str = r#"name = "t"
game = "othello"
limit = { nodes = 50 }
openings = { random_plies = 4 }
[tune]
player = "pvs"
method = "spsa"
bouts = 40
pairs = 2
validation = { bouts = 10 }
[[tune.parameter]]
path = "evaluation.mobility"
start = 2
min = 0
max = 20
step = 0.5
[[tune.parameter]]
path = "search.aspiration"
start = 1
min = 0.5
max = 8
scale = "log"
step = 1.5
[[player]]
name = "pvs"
search = { algorithm = "pvs", table_mb = 1 }
evaluation = { discs = 1, corners = 9 }
"#;

fn read(text: &str) -> Result<Spec, SpecError> {
    Spec::parse(&SpecSource { text: text.to_string(), ..SpecSource::default() })
}

#[test]
fn reads_a_tune() {
    let spec = read(SPEC).unwrap();
    let tune = spec.tune().unwrap();
    assert_eq!(tune.method, Method::Spsa { window: 16, rate: None });
    assert_eq!((tune.bouts, tune.pairs, tune.validation.bouts, tune.step_bouts()), (40, 2, 10, 2));
    let names: Vec<&str> = spec.players.iter().map(|player| player.name.as_str()).collect();
    assert_eq!(names, ["pvs", "pvs+", "pvs-", "pvs-tuned"]);
    // All players begin with the start values.
    for player in &spec.players {
        assert_eq!(player.config.number(&tune.parameters[0].target), Some(2.0));
        assert_eq!(player.config.number(&tune.parameters[1].target), Some(1.0));
    }
    // Values are formatted and parsed without loss; other texts are rejected.
    let values = tune.playable(&[3.123_456_78, 100.0]);
    assert_eq!(values.0, [3_123_457, 8_000_000]);
    let text = tune.text(&values);
    assert_eq!(text, "evaluation.mobility=3.123457 search.aspiration=8");
    assert_eq!(tune.read(&text), Some(values.clone()));
    for wrong in
        ["", "evaluation.mobility=1", "evaluation.mobility=21 search.aspiration=8", &format!("{text} ")]
    {
        assert_eq!(tune.read(wrong), None, "{wrong}");
    }
    // The TOML of a player parses to the same player.
    let config = tune.configure(&spec.players[0].config, &values);
    let again = PlayerConfig::parse(&spec.game, &config.to_toml(&spec.game)).unwrap();
    assert_eq!(again, config);
    let bayes = SPEC.replace("\"spsa\"", "\"bayes\"").replace("step = 0.5\n", "").replace("step = 1.5\n", "");
    let bayes = read(&bayes).unwrap();
    assert_eq!(bayes.tune().unwrap().method, Method::Bayes { batch: 8 });
    assert_eq!(bayes.tune().unwrap().opponents, [Some(0)]);
    assert_eq!(bayes.players.len(), 3);
}

#[test]
fn method_is_chosen_by_parameters_and_bouts() {
    let free =
        SPEC.replace("step = 0.5\n", "").replace("step = 1.5\n", "").replace("method = \"spsa\"\n", "");
    let more: String = ["discs", "corners", "stability"]
        .map(|name| format!("[[tune.parameter]]\npath = \"evaluation.{name}\"\nmin = -20\nmax = 20\n"))
        .concat();
    let many = free.replace("[[player]]", &format!("{more}[[player]]"));
    let name = |text: &str| {
        let spec = read(text).unwrap();
        let tune = spec.tune().unwrap();
        (tune.method.name(), tune.advice().join(" "))
    };
    for (text, method, reason) in [
        (free.clone(), "bayes", "\"bayes\" was chosen because 40 bouts are few"),
        (free.replace("bouts = 40", "bouts = 400"), "spsa", "400 bouts suffice"),
        (many.clone(), "spsa", "\"spsa\" was chosen because 5 parameters are more"),
        (free.replace("pairs = 2\n", "rate = 0.1\n"), "spsa", "`rate` or `step` is set"),
        (many.replace("pairs = 2\n", "batch = 4\n"), "bayes", "`batch` is set"),
    ] {
        let (chosen, why) = name(&text);
        assert!(chosen == method && why.contains(reason), "{chosen}: {why}");
    }
    assert!(name(&many.replace("pairs = 2\n", "batch = 4\n")).1.contains("agon tune --from"));
    assert_eq!(name(SPEC), ("spsa", String::new()));
    // A trial has the divisor of all bouts that is nearest to the root of a twelfth of them.
    for (bouts, pairs) in [(200, 4), (800, 8), (3200, 16), (60, 2), (997, 1)] {
        let text = free.replace("[tune]\n", "[tune]\nmethod = \"bayes\"\n");
        let text = text.replace("pairs = 2\n", "").replace("bouts = 40", &format!("bouts = {bouts}"));
        assert_eq!(read(&text).unwrap().tune().unwrap().pairs, pairs);
    }
}

#[test]
fn every_mistake_has_a_line_and_an_error() {
    let uct = "search = { algorithm = \"uct\" }\n";
    let (_, head) = SPEC.rsplit_once("search = { algorithm").unwrap();
    let pvs = format!("search = {{ algorithm{head}");
    /// Replacements in the spec, the line of the error, and a part of its text.
    type Row<'a> = (&'a [(&'a str, &'a str)], usize, &'a str);
    let table: &[Row<'_>] = &[
        (&[("evaluation.mobility", "evaluation.mobilty")], 12, "did you mean `evaluation.mobility`?"),
        (&[("search.aspiration", "search.aspirations")], 18, "did you mean `search.aspiration`?"),
        (&[("search.aspiration", "aspiration")], 18, "is no path into a player"),
        (&[("search.aspiration", "limit.nodes")], 18, "is no path into a player"),
        (&[("search.aspiration", "search.quiescence")], 18, "true or false, and only numbers can be tuned"),
        (&[(&pvs, uct), ("search.aspiration", "search.c")], 12, "give the player `rollout_plies`"),
        (
            &[(&pvs, "search = { algorithm = \"random\" }\n")],
            12,
            "`random` evaluates nothing, so that it would change nothing",
        ),
        (&[("start = 2", "start = 21")], 13, "must be from 0 to 20, not 21"),
        (&[("start = 1\n", "")], 18, "must be from 0.5 to 8, not 0"),
        (&[("min = 0\n", "min = 20\n")], 14, "`min` of `evaluation.mobility` must be less than `max`"),
        (&[("max = 20", "max = 2e6")], 15, "must be from -1000000 to 1000000"),
        (&[("max = 20", "max = 20.0000001")], 15, "at most six digits behind its point"),
        (&[("step = 0.5", "step = 0")], 16, "a number above 0"),
        (&[("step = 1.5", "step = 1")], 23, "a ratio above 1"),
        (&[("min = 0.5", "min = 0")], 22, "a logarithmic scale needs a `min` above 0"),
        (&[("scale = \"log\"", "scale = \"square\"")], 22, "one of \"linear\", \"log\""),
        (&[("start = 2\n", "start = 2\nkind = \"whole\"\n")], 14, "one of \"integer\", \"real\""),
        (&[("min = 0\n", "min = 0.5\nkind = \"integer\"\n")], 14, "must be a whole number"),
        (
            &[("search.aspiration", "search.table_mb"), ("min = 0.5", "min = 0"), ("scale = \"log\"\n", "")],
            20,
            "must be from 1 to 4096",
        ),
        (&[("search.aspiration", "evaluation.mobility")], 18, "is tuned twice"),
        (&[("discs = 1", "mobility = 3")], 13, "has a `mobility` that differs from `start`"),
        (&[("player = \"pvs\"", "player = \"uct\"")], 6, "the name of a player: pvs"),
        (&[("\"spsa\"", "\"sps\"")], 7, "one of \"auto\", \"spsa\", \"bayes\""),
        (&[("pairs = 2", "pairs = 2\nbatch = 3")], 10, "`batch` does not apply to \"spsa\""),
        (&[("\"spsa\"", "\"bayes\"")], 16, "`step` does not apply to \"bayes\""),
        (&[("bouts = 40", "bouts = 41")], 8, "must be a multiple of 2"),
        (&[("pairs = 2", "pairs = 2\nrate = 0")], 10, "a number above 0 and up to 10"),
        (&[("pairs = 2", "pairs = 2\nwindow = 0")], 10, "a whole number from 1"),
        (&[("validation = { bouts = 10 }\n", "")], 5, "[tune] needs `validation`"),
        (&[("{ bouts = 10 }", "{ bouts = 0 }")], 10, "a whole number from 1"),
        (&[("{ bouts = 10 }", "{ rounds = 1 }")], 10, "rounds"),
        (&[("pairs = 2", "pairs = 2\nopponents = [\"nobody\"]")], 10, "a list of names of players: pvs"),
        (&[("pairs = 2", "pairs = 2\nopponents = []")], 10, "a list of names of players: pvs"),
        (&[("pairs = 2", "paris = 2")], 9, "did you mean `pairs`?"),
        (&[("pairs = 2", "pairs = 2\nrepeats = 0")], 10, "a whole number from 1 to 100"),
        (
            &[("bouts = 40", "bouts = 500000"), ("pairs = 2", "pairs = 2\nrepeats = 3")],
            10,
            "are more than 1000000",
        ),
        (
            &[("pairs = 2", "pairs = 2\nprecision = 5")],
            10,
            "`precision` does not apply to \"spsa\", whose answer",
        ),
        (&[("pairs = 2", "pairs = 2\nimport = \"a\"")], 10, "start at the values that `agon tune` prints"),
        (
            &[("\"spsa\"", "\"bayes\""), ("pairs = 2", "pairs = 2\nprecision = 0.5")],
            10,
            "a number of Elo from 1 to 1000",
        ),
        (
            &[("\"spsa\"", "\"bayes\""), ("pairs = 2", "pairs = 2\nopponents = [\"self\"]")],
            10,
            "a trial has no other side; name the player with its start values, `pvs`",
        ),
        (
            &[("pairs = 2", "pairs = 3\nopponents = [\"self\", \"pvs\"]")],
            9,
            "`pairs` must be a multiple of 2, so that a step meets each of its 2 opponents equally often; write 4",
        ),
        (&[("{ bouts = 10 }", "{ bouts = 10, against = [\"nobody\"] }")], 10, "beside the start: pvs"),
        (&[("openings = { random_plies = 4 }\n", "")], 4, "a tune needs `openings`"),
        (&[("[tune]", "[tournament]\nformat = \"sprt\"\n[tune]")], 7, "a spec has either"),
        (
            &[(
                &pvs,
                "search = { algorithm = \"pvs\" }\n[[player]]\nname = \"b\"\nsearch = { algorithm = \"pvs\" }\n",
            )],
            5,
            "`b` plays no part in this tune",
        ),
        (
            &[
                (
                    &pvs,
                    "search = { algorithm = \"pvs\" }\n[[player]]\nname = \"pvs+\"\nsearch = { algorithm = \"pvs\" }\n",
                ),
                ("pairs = 2", "pairs = 2\nopponents = [\"pvs+\"]"),
            ],
            6,
            "the tune adds a player `pvs+`",
        ),
    ];
    for (changes, line, sentence) in table {
        let mut text = SPEC.to_string();
        for (from, to) in *changes {
            assert!(text.contains(from), "{from}");
            text = text.replacen(from, to, 1);
        }
        let error = read(&text).expect_err(sentence);
        let found = error.problems.iter().find(|problem| problem.reason.contains(sentence));
        let found = found.unwrap_or_else(|| panic!("{error} and not: {sentence}"));
        assert_eq!(found.line, Some(*line), "{found}\n{text}");
    }
}

#[test]
fn reads_trials_of_a_file() {
    let spec = SPEC.replace("\"spsa\"", "\"bayes\"").replace("step = 0.5\n", "").replace("step = 1.5\n", "");
    let spec = spec.replace("pairs = 2", "pairs = 2\nimport = \"trials.csv\"");
    assert_eq!(SpecSource::needed_files(&spec).unwrap(), ["trials.csv"]);
    let read = |trials: &str| {
        let files = [("trials.csv".to_string(), trials.to_string())].into();
        Spec::parse(&SpecSource { text: spec.clone(), files })
    };
    let text = "search.aspiration, bouts, evaluation.mobility, score\n2,30,1.5,0.25\n\n8,10,20,1\n";
    let tune = read(text).unwrap().tune().unwrap().clone();
    let found: Vec<(Vec<i64>, u64, f64)> =
        tune.imported.iter().map(|trial| (trial.values.0.clone(), trial.bouts, trial.score)).collect();
    let expected = [(vec![1_500_000, 2_000_000], 30, 0.25), (vec![20_000_000, 8_000_000], 10, 1.0)];
    assert_eq!(found, expected);
    assert_eq!(tune.imported[0].variance, 0.25 * 0.75 / 2.0);
    let head = "evaluation.mobility,search.aspiration,bouts,score,variance\n";
    for (text, line, sentence) in [
        ("", 1, "the file is empty"),
        ("evaluation.mobility,bouts,score\n", 1, "the column `search.aspiration` is missing"),
        ("evaluation.mobilty,search.aspiration,bouts,score\n", 1, "did you mean `evaluation.mobility`?"),
        ("bouts,bouts\n", 1, "the column `bouts` is there twice"),
        (&format!("{head}1,1,1,0.5,0.1\n1,1,1,0.5\n"), 3, "4 values for 5 columns"),
        (&format!("{head}1,1,0,0.5,0.1\n"), 2, "`bouts` must be a whole number from 1"),
        (&format!("{head}1,1,1,1.5,0.1\n"), 2, "`score` must be a number from 0 to 1, not `1.5`"),
        (&format!("{head}1,1,1,NaN,0.1\n"), 2, "not `NaN`"),
        (&format!("{head}21,1,1,1,0.1\n"), 2, "the tune searches 0 to 20; widen the bounds"),
        (&format!("{head}x,1,1,1,0.1\n"), 2, "must be a number with at most six digits"),
    ] {
        let error = read(text).expect_err(sentence);
        let found = error.problems.iter().find(|problem| problem.reason.contains(sentence));
        let found = found.unwrap_or_else(|| panic!("{error} and not: {sentence}"));
        assert_eq!((found.file.as_deref(), found.line), (Some("trials.csv"), Some(line)), "{found}");
    }
}
