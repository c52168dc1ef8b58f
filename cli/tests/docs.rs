//! The documentation is correct: paths, links, commands, flags and tests that it names exist.
//!
//! `UPDATE_EXPECT=1 cargo test --release -p agon --test docs` renews docs/reference/command-line.md.

#![allow(clippy::unwrap_used, reason = "a failing test panics")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Command;
use expect_test::expect_file;

/// Paths that a reader creates: secrets, environments, and the game of the guide.
const CREATED: [&str; 3] = ["deploy/secrets", "bench/peers/.venv", "kayles"];
/// Flags of other programs that the text names alone.
const FOREIGN_FLAGS: [&str; 4] = ["--cpu-manager-policy", "--features", "--renew", "--sanitizer"];
/// The programs whose words after them are a call of `agon`.
const PROGRAMS: [&str; 3] = ["agon", "/agon", "target/release/agon"];

struct Page {
    path: PathBuf,
    text: String,
}

/// A piece of code in a page.
struct Code {
    /// The language of a block; `None` for code within a line.
    language: Option<String>,
    text: String,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap()
}

/// Returns the files below a folder with this extension.
fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path, extension));
        } else if path.extension().is_some_and(|found| found == extension) {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn pages() -> Vec<Page> {
    let named = ["README.md", "ARCHITECTURE.md", "bench/peers/README.md", "fuzz/README.md"];
    let named = named.iter().map(|name| root().join(name));
    named
        .chain(files(&root().join("docs"), "md"))
        .map(|path| Page { text: fs::read_to_string(&path).unwrap(), path })
        .collect()
}

impl Page {
    fn name(&self) -> String {
        self.path.strip_prefix(root()).unwrap().display().to_string()
    }

    /// Returns the text without code blocks, and the code.
    fn split(&self) -> (String, Vec<Code>) {
        let (mut prose, mut code) = (String::new(), Vec::new());
        let mut block: Option<Code> = None;
        for line in self.text.lines() {
            let fence = line.trim_start().strip_prefix("```");
            match (fence, &mut block) {
                (Some(_), Some(_)) => code.extend(block.take()),
                (Some(language), None) => {
                    block = Some(Code { language: Some(language.to_string()), text: String::new() });
                }
                (None, Some(block)) => block.text.push_str(&format!("{line}\n")),
                (None, None) => prose.push_str(&format!("{line}\n")),
            }
        }
        let spans = prose.split('`').skip(1).step_by(2);
        code.extend(spans.map(|text| Code { language: None, text: text.replace('\n', " ") }));
        (prose, code)
    }
}

/// Returns the anchors of a page, as GitHub derives them from its headings.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    headings
        .map(|line| {
            let title = line.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
            title.chars().filter(|c| c.is_alphanumeric() || "-_".contains(*c)).collect()
        })
        .collect()
}

/// Splits a line as a shell does, as far as the documentation needs it.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for c in line.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => words.last_mut().unwrap().push(c),
            None if c == '\'' || c == '"' => quote = Some(c),
            None if c.is_whitespace() => words.push(String::new()),
            None => words.last_mut().unwrap().push(c),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Returns the words after each `agon` in the code: up to the end of the command.
fn calls(code: &Code) -> Vec<Vec<String>> {
    let text = code.text.replace("\\\n", " ").replace("cargo run --release --", "agon");
    let lines: Vec<&str> = match code.language.as_deref() {
        Some("sh") => text.lines().collect(),
        Some("") => text.lines().filter_map(|line| line.trim_start().strip_prefix("$ ")).collect(),
        None => vec![&text],
        Some(_) => Vec::new(),
    };
    let mut calls = Vec::new();
    for line in lines {
        let words = words(line.split(" # ").next().unwrap_or_default());
        for (index, word) in words.iter().enumerate() {
            let names_a_thing = index
                .checked_sub(1)
                .is_some_and(|before| ["-n", "-p", "-t", "--protocol"].contains(&words[before].as_str()));
            if PROGRAMS.contains(&word.as_str()) && !names_a_thing && (code.language.is_some() || index == 0)
            {
                let call = words[index + 1..].iter();
                let is_end = |word: &str| ["|", "||", "&", "&&", ">", "<", ";", "#"].contains(&word);
                calls.push(call.take_while(|word| !is_end(word.as_str())).cloned().collect());
            }
        }
    }
    calls
}

fn flags(command: &Command) -> BTreeSet<String> {
    command.get_arguments().filter_map(|argument| Some(format!("--{}", argument.get_long()?))).collect()
}

fn all_flags(command: &Command, found: &mut BTreeSet<String>) {
    found.extend(flags(command));
    for inner in command.get_subcommands() {
        all_flags(inner, found);
    }
}

/// Returns the name of the flag in `[--flag`, `--flag=value` or `--flag`.
fn flag_name(word: &str) -> Option<&str> {
    let word = word.trim_start_matches('[').trim_end_matches([']', ',', '.', ')']);
    word.starts_with("--")
        .then(|| word.split('=').next().unwrap_or(word))
        .filter(|name| !name.trim_matches('-').is_empty())
}

/// Returns what the call names that does not exist.
fn unknown_word(call: &[String], command: &Command) -> Option<String> {
    let mut at = command;
    for word in call {
        if let Some(flag) = flag_name(word) {
            if !flags(at).contains(flag) {
                return Some(format!("`{}` has no flag {flag}", at.get_name()));
            }
        } else if let Some(inner) = at.find_subcommand(word) {
            at = inner;
        } else if at.is_subcommand_required_set() || at.get_name() == "agon" {
            let is_name = word.chars().all(|c| c.is_ascii_lowercase() || c == '-');
            return (is_name && !word.starts_with('-'))
                .then(|| format!("`{}` has no command {word}", at.get_name()));
        }
    }
    None
}

fn built() -> Command {
    let mut command = agon::command().term_width(100).mut_args(|argument| argument.hide_env_values(true));
    command.build();
    command
}

fn assert_none(problems: &[String]) {
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn links_resolve() {
    let mut problems = Vec::new();
    for page in pages() {
        let (prose, _) = page.split();
        for link in prose.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if link.starts_with("http") {
                continue;
            }
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = match path {
                "" => page.path.clone(),
                path => page.path.parent().unwrap().join(path),
            };
            let is_there = target.exists()
                && (anchor.is_empty() || anchors(&fs::read_to_string(&target).unwrap()).contains(anchor));
            if !is_there {
                problems.push(format!("{}: the link {link} leads nowhere", page.name()));
            }
        }
    }
    assert_none(&problems);
}

#[test]
fn paths_exist() {
    let entries =
        fs::read_dir(root()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let folders: Vec<String> =
        entries.filter(|name| name != "target" && root().join(name).is_dir()).collect();
    let mut problems = Vec::new();
    for page in pages() {
        for code in page.split().1 {
            for word in words(&code.text.replace(['`', '(', ')', ',', ';'], " ")) {
                let path = word.trim_end_matches(['.', ':', '/']);
                let is_inside =
                    path.split_once('/').is_some_and(|(top, _)| folders.iter().any(|name| name == top));
                let is_pattern = path.contains(['*', '<', '{', '=', '$', '…', '|']);
                let is_created = CREATED.iter().any(|created| path.contains(created));
                if is_inside && !is_pattern && !is_created && !root().join(path).exists() {
                    problems.push(format!("{}: {path} does not exist", page.name()));
                }
            }
        }
    }
    assert_none(&problems);
}

#[test]
fn commands_and_flags_exist() {
    let command = built();
    let mut known = BTreeSet::new();
    all_flags(&command, &mut known);
    let (mut problems, mut count) = (Vec::new(), 0);
    for page in pages() {
        for code in page.split().1 {
            for call in calls(&code) {
                count += 1;
                let problem = unknown_word(&call, &command);
                problems
                    .extend(problem.map(|text| format!("{}: agon {}: {text}", page.name(), call.join(" "))));
            }
            let alone = flag_name(&code.text).filter(|_| code.language.is_none());
            let alone = alone.and_then(|flag| flag.split_whitespace().next());
            if let Some(flag) = alone.filter(|flag| !known.contains(*flag) && !FOREIGN_FLAGS.contains(flag)) {
                problems.push(format!("{}: no command has the flag {flag}", page.name()));
            }
        }
    }
    assert_none(&problems);
    assert!(count > 150, "{count} calls");
}

#[test]
fn check_finds_misspelled_commands_and_flags() {
    let find = |line: &str| {
        let code = Code { language: Some("sh".to_string()), text: line.to_string() };
        calls(&code).iter().filter_map(|call| unknown_word(call, &built())).collect::<Vec<_>>()
    };
    assert_eq!(
        find("agon ratings --replicas 0 | agon-x\nkubectl -n agon exec x -- /agon data backup - > y").len(),
        0
    );
    assert_eq!(find("agon ratings --replica 0"), ["`ratings` has no flag --replica"]);
    assert_eq!(find("agon list && agon rating"), ["`agon` has no command rating"]);
    assert_eq!(find("cargo run --release -- data bakup x"), ["`data` has no command bakup"]);
}

/// The operations pages name tests as evidence.
#[test]
fn named_tests_exist() {
    let sources: Vec<(PathBuf, String)> =
        ["cli/tests", "cli/src", "coordinator/src", "storage/src", "transport/src"]
            .iter()
            .flat_map(|folder| files(&root().join(folder), "rs"))
            .map(|path| (path.clone(), fs::read_to_string(path).unwrap()))
            .collect();
    let (mut problems, mut count) = (Vec::new(), 0);
    for page in pages() {
        for code in page.split().1.into_iter().filter(|code| code.language.is_none()) {
            let parts: Vec<&str> = code.text.split("::").collect();
            let is_name =
                |part: &&str| !part.is_empty() && part.chars().all(|c| c.is_ascii_lowercase() || c == '_');
            if !page.name().starts_with("docs/ops") || parts.len() < 2 || !parts.iter().all(is_name) {
                continue;
            }
            count += 1;
            let (last, modules) = parts.split_last().unwrap();
            let modules: Vec<&&str> = modules.iter().filter(|module| **module != "tests").collect();
            let is_there = sources.iter().any(|(path, text)| {
                let path = path.with_extension("");
                modules.iter().all(|module| path.iter().any(|part| part == **module))
                    && (*last == "tests" || text.contains(&format!("fn {last}(")))
            });
            if !is_there {
                problems.push(format!("{}: no test is called {}", page.name(), code.text));
            }
        }
    }
    assert_none(&problems);
    assert!(count > 30, "{count} tests");
}

/// Appends the help of a command and of the commands in it.
fn write_help(command: &Command, path: &str, page: &mut String) {
    let level = "#".repeat(path.split(' ').count().min(4));
    let help = command.clone().render_help().to_string();
    let is_common = |line: &&str| line.contains("-h, --help ") || line.contains("-V, --version ");
    let help: Vec<&str> =
        help.trim_end().lines().map(str::trim_end).filter(|line| !is_common(line)).collect();
    page.push_str(&format!("\n{level} {path}\n\n```text\n{}\n```\n", help.join("\n")));
    for inner in command.get_subcommands().filter(|inner| inner.get_name() != "help") {
        write_help(inner, &format!("{path} {}", inner.get_name()), page);
    }
}

#[test]
fn command_line_page_is_current() {
    let mut page =
        "# Command line\n\nThe help of every command, as `agon COMMAND -h` prints it. Generated by \
        `UPDATE_EXPECT=1 cargo test --release -p agon --test docs`.\n"
            .to_string();
    write_help(&built(), "agon", &mut page);
    // The page has one title.
    let page = page.replacen("\n# agon\n", "\n## agon\n", 1);
    expect_file!["../../docs/reference/command-line.md"].assert_eq(&page);
}
