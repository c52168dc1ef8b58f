//! Engines in specs: what is read, what is rejected, and which runs are repeatable.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

use agon_arena::{EngineConfig, PlayerConfig, Spec, SpecError, SpecSource};

/// A spec whose second player is an engine.
fn with_engine(engine: &str, top: &str) -> Result<Spec, SpecError> {
    let text = format!(
        "name = \"engines\"\ngame = \"chess\"\nlimit = {{ nodes = 5 }}\n{top}\n[tournament]\nformat = \"round-robin\"\nbouts = 2\n\
         [[player]]\nname = \"a\"\nsearch = {{ algorithm = \"pvs\" }}\n[[player]]\nname = \"b\"\nengine = {{ {engine} }}\n"
    );
    Spec::parse(&SpecSource { text, ..SpecSource::default() })
}

#[test]
fn reads_engines() {
    let engine = r#"protocol = "uci", command = "sf", args = ["-x"], options = { Hash = 16, "Skill Level" = 3, Ponder = false }, grace_ms = 5"#;
    let spec = with_engine(engine, "").unwrap();
    let config = &spec.players[1].config;
    assert_eq!(
        config.to_toml(&spec.game),
        format!(
            "engine = {{ {} }}\n",
            r#"protocol = "uci", command = "sf", args = ["-x"], options = { "Hash" = 16, "Ponder" = false, "Skill Level" = 3 }, grace_ms = 5"#
        )
    );
    let again = PlayerConfig::parse(&spec.game, &config.to_toml(&spec.game)).unwrap();
    assert_eq!(again, *config);
    assert_eq!(spec.engine_command().map(EngineConfig::name), Some("sf"));
    let named = with_engine(r#"protocol = "agon", name = "bot""#, "").unwrap();
    assert_eq!((named.engine_names().collect::<Vec<_>>(), named.engine_command()), (vec!["bot"], None));
}

#[test]
fn runs_with_engines_are_repeatable_only_by_promise() {
    let engine = r#"protocol = "uci", name = "sf""#;
    assert!(!with_engine(engine, "").unwrap().is_repeatable());
    assert!(with_engine(engine, "deterministic = true").unwrap().is_repeatable());
    let timed = with_engine(
        r#"protocol = "uci", name = "sf" }
limit = { ms = 5"#,
        "deterministic = true",
    );
    let error = timed.unwrap_err().to_string();
    assert!(error.contains("a promise for engines with a limit of nodes or depth"), "{error}");
}

#[test]
fn rejects_invalid_engines_with_all_errors() {
    for (engine, expected) in [
        (r#"protocol = "uci", nam = "x""#, "did you mean `name`?"),
        (r#"protocol = "uci""#, "either a `name`, which workers map to a command, or a `command`"),
        (r#"protocol = "uci", name = "x", args = ["y"]"#, "`args` goes with `command`"),
        (r#"protocol = "gtp", name = "x", options = { a = 1 }"#, "gtp has no options"),
        (r#"protocol = "gtp", name = "x""#, "\"gtp\" is a protocol for go and othello, not for chess"),
        (r#"protocol = "uci", name = "a b""#, "`name` of engine must be a word"),
        (
            r#"protocol = "uci", name = "x", options = { a = [1] }"#,
            "the option `a` must be a number, a text, true or false",
        ),
        (
            r#"protocol = "uci", name = "x", grace_ms = -1"#,
            "`grace_ms` of engine must be a whole number from 0",
        ),
    ] {
        let error = with_engine(engine, "").unwrap_err().to_string();
        assert!(error.contains(expected), "{engine}: {error}");
    }
    let error = with_engine(r#"protocol = "usi", nam = "x", grace_ms = true"#, "").unwrap_err();
    assert_eq!(error.problems.len(), 4, "{error}");
}
