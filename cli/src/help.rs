//! The help of the command line: one table gives the groups, their order and an example for each command.

use clap::Command;
use clap::builder::styling::Style;

/// The groups of `agon --help` with an example for each command, subcommands included. A group lists its commands in the
/// order of their first examples.
const GROUPS: [(&str, &[&str]); 7] = [
    (
        "Play",
        &[
            "agon run examples/quick-start.toml",
            "agon check examples/quick-start.toml",
            "agon duel othello --players pvs,uct",
            "agon play othello --against uct",
        ],
    ),
    (
        "Ask a run",
        &[
            "agon ratings",
            "agon crosstable",
            "agon sprt --pairs 13,37,50,25,3 --bounds=0,5",
            "agon compare quick-start gauntlet",
            "agon pruning --by-depth",
            "agon games --limit 5",
            "agon report --output report.html",
            "agon tune --from quick-start",
            "agon sql \"select player, avg(nodes) from moves group by player\"",
        ],
    ),
    (
        "Look at a game",
        &[
            "agon list-games othello",
            "agon list-algorithms pvs",
            "agon show chess --moves \"e2e4 e7e5\"",
            "agon perft chess 4",
            "agon search othello --limit depth=6",
        ],
    ),
    (
        "Cluster",
        &[
            "agon coordinator --listen 127.0.0.1:7400",
            "agon worker --name laptop-1",
            "agon submit examples/quick-start.toml",
            "agon list",
            "agon watch",
            "agon pause",
            "agon resume",
            "agon prioritise 10",
            "agon cancel latest",
        ],
    ),
    (
        "Operate",
        &[
            "agon workers",
            "agon workers list --json",
            "agon workers drain laptop-1",
            "agon workers quarantine laptop-1 --reason \"faulty memory\"",
            "agon workers trust laptop-1",
            "agon audit --limit 20",
            "agon token create laptop --role worker",
            "agon token list",
            "agon token revoke laptop",
            "agon certs certificates --host agon.example.org",
            "agon health",
            "agon config show",
            "agon config show coordinator --listen 0.0.0.0:7400",
            "agon config show worker --slots 4",
            "agon config show client",
        ],
    ),
    (
        "Data",
        &[
            "agon verify",
            "agon replay",
            "agon data backup state.sqlite",
            "agon data restore state.sqlite --data restored",
            "agon data void latest --worker laptop-1",
            "agon engine serve --protocol uci",
            "agon engine check \"sh examples/bots/bot.sh\" --protocol agon",
        ],
    ),
    (
        "More",
        &[
            "agon bench games othello",
            "agon bench search othello",
            "agon bench efficiency othello=5",
            "agon elo --score 0.75",
            "agon completions bash",
            "agon man man-pages",
        ],
    ),
];

/// What `agon` prints without a command.
pub const WELCOME: &str = "\
Agon plays games between search algorithms and measures their strength.
Three things to try:

  agon run examples/quick-start.toml    play a tournament
  agon ratings                          rate its players
  agon play othello                     play against a search yourself

`agon --help` lists all commands.
";

/// The help of `--moves` in `agon show`.
pub const SHOW_MOVES: &str = "Moves to play first, separated by spaces; `-` reads lines of moves from standard input and \
                              writes one JSON object per line";

/// Adds groups, order and examples to the description of the command line.
pub fn arrange(mut command: Command) -> Command {
    let styles = command.get_styles().clone();
    let (header, literal) = (styles.get_header(), styles.get_literal());
    let mut groups = String::new();
    let mut order = 0;
    for (group, examples) in GROUPS {
        groups.push_str(&format!("\n{header}{group}:{header:#}\n"));
        let mut previous = "";
        for example in examples {
            let words: Vec<&str> = example.split(' ').skip(1).collect();
            let name = words[0];
            order += 1;
            command = command.mut_subcommand(name, |command| {
                with_example(command.display_order(order), &words[1..], example)
            });
            if name != previous {
                groups.push_str(&line(&command, name, literal));
            }
            previous = name;
        }
    }
    let template = format!(
        "{{about}}\n\n{{usage-heading}} {{usage}}\n{groups}\n\
         GAME is a name or name:key=value,key=value, as in virus:seats=4,size=10.\n\
         `agon COMMAND --help` describes a command; `agon --version` prints the version.\n\
         Exit codes: 0 done; 1 failed, a check said no, or nothing yet; 2 wrong call.\n"
    );
    command.help_template(template)
}

/// Returns the line of a command: its name and what it does.
fn line(command: &Command, name: &str, literal: &Style) -> String {
    let about = command.find_subcommand(name).and_then(Command::get_about);
    let about = about.map(ToString::to_string).unwrap_or_default();
    format!("  {literal}{name:<15}{literal:#}  {about}\n")
}

/// Shows the example in the help of the command and of the subcommands that it names, unless they have one.
fn with_example(mut command: Command, words: &[&str], example: &str) -> Command {
    if command.get_after_help().is_none() {
        command = command.after_help(format!("Example: {example}"));
    }
    match words.split_first() {
        Some((first, rest)) if command.find_subcommand(first).is_some() => {
            command.mut_subcommand(*first, |inner| with_example(inner, rest, example))
        }
        _ => command,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;
    use crate::call;

    /// Splits an example as a shell does.
    fn words(example: &str) -> Vec<String> {
        let quoted = example.split('"').enumerate();
        quoted
            .flat_map(|(index, part)| match index % 2 {
                0 => part.split_whitespace().map(str::to_string).collect(),
                _ => vec![part.to_string()],
            })
            .collect()
    }

    fn leaves(command: &Command, path: &str, found: &mut BTreeSet<String>) {
        let path = format!("{path} {}", command.get_name());
        for inner in command.get_subcommands() {
            leaves(inner, &path, found);
        }
        if !command.is_subcommand_required_set() {
            found.insert(path.trim().to_string());
        }
    }

    #[test]
    fn every_command_is_in_one_group() {
        let names = |examples: &[&str]| examples.iter().map(|example| words(example)[1].clone()).collect();
        let groups: Vec<BTreeSet<String>> = GROUPS.iter().map(|(_, examples)| names(examples)).collect();
        let command = call::command();
        for command in command.get_subcommands() {
            let count = groups.iter().filter(|group| group.contains(command.get_name())).count();
            assert_eq!(count, 1, "{}", command.get_name());
        }
        assert_eq!(groups.iter().map(BTreeSet::len).sum::<usize>(), command.get_subcommands().count());
    }

    /// Returns every option with a heading: the heading, the option and the command.
    fn headed(command: &Command, path: &str, found: &mut Vec<[String; 3]>) {
        let path = format!("{path} {}", command.get_name());
        for argument in command.get_arguments() {
            let heading = argument.get_help_heading().map(str::to_string);
            found.extend(heading.map(|heading| [heading, argument.get_id().to_string(), path.clone()]));
        }
        command.get_subcommands().for_each(|inner| headed(inner, &path, found));
    }

    #[test]
    fn options_are_under_their_own_headings() {
        let headings = [
            ("Connection", &["coordinator", "tls_ca", "tls_cert", "tls_key", "token_file", "config"][..]),
            ("Authentication", &["tls_cert", "tls_key", "tls_client_ca", "tokens", "insecure"]),
            (
                "Limits",
                &["max_connections", "max_streams", "max_calls_per_second", "first_call_ms", "idle_ms"],
            ),
            (
                "Recorded duels, as in `agon duel A B`",
                &[
                    "engines",
                    "protocol",
                    "options",
                    "game",
                    "tc",
                    "st",
                    "nodes",
                    "depth",
                    "sprt",
                    "book",
                    "book_plies",
                    "book_order",
                    "concurrency",
                    "pgn",
                    "resign",
                    "draw",
                    "max_plies",
                    "recover",
                    "again",
                    "quiet",
                    "print_spec",
                    "data",
                ],
            ),
        ];
        let mut found = Vec::new();
        headed(&call::command(), "", &mut found);
        assert!(found.len() > 80, "{found:?}");
        for [heading, option, path] in found {
            let is_known =
                headings.iter().any(|(name, options)| *name == heading && options.contains(&&*option));
            assert!(is_known, "{path}: `{option}` is under {heading}");
        }
    }

    #[test]
    fn every_command_has_one_example_that_parses() {
        let mut wanted = BTreeSet::new();
        leaves(&call::command(), "", &mut wanted);
        wanted.remove("agon");
        for example in GROUPS.iter().flat_map(|(_, examples)| *examples) {
            let words = words(example);
            if let Err(error) = call::command().try_get_matches_from(&words) {
                panic!("{example}: {error}");
            }
            for spec in words.iter().filter(|word| word.ends_with(".toml")) {
                assert!(Path::new("..").join(spec).is_file(), "{example}");
            }
            let command = call::command();
            let (mut path, mut at) = ("agon".to_string(), &command);
            while let Some(inner) =
                words.get(path.split(' ').count()).and_then(|word| at.find_subcommand(word))
            {
                at = inner;
                path = format!("{path} {}", at.get_name());
            }
            assert!(wanted.remove(&path), "{path} has two examples");
        }
        assert!(wanted.is_empty(), "no example: {wanted:?}");
    }

    /// The example of `agon compare` works after the runs of two example specs that share players.
    #[test]
    fn compared_examples_share_players() {
        let example =
            GROUPS.iter().flat_map(|(_, examples)| *examples).find(|text| text.contains(" compare "));
        let players = |name: &str| -> BTreeSet<String> {
            let text = std::fs::read_to_string(format!("../examples/{name}.toml")).unwrap();
            let names = text.lines().filter_map(|line| line.strip_prefix("name   = "));
            names.map(str::to_string).collect()
        };
        let [first, second] = &words(example.unwrap())[2..] else { panic!("{example:?}") };
        assert!(players(first).intersection(&players(second)).count() >= 2, "{example:?}");
    }

    #[test]
    fn help_fits_one_screen() {
        let help = call::command().render_help().to_string();
        assert!(help.lines().count() <= 64, "{help}");
        for line in help.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }
}
