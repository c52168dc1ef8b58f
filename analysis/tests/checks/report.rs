//! The report page is well-formed, self-contained, names every player and shows only finite numbers, for any run.

use std::num::NonZeroUsize;

use agon_analysis::Dataset;
use agon_analysis::report::{Availability, Question, Report, Settings};
use serde_json::json;

use agon_testing::sample::SampleDataset;
use agon_testing::specs::{PROBE, TOURNAMENT, vary};

/// A game with four seats and two players.
const FOUR_SEATS: &str = r#"
name = "four"
game = { name = "virus", seats = 4, size = 6 }
seed = 3
limit = { nodes = 40 }
openings = { random_plies = 4 }
[tournament]
format = "round-robin"
bouts = 2
[[player]]
name = "max-n"
search = { algorithm = "max-n" }
[[player]]
name = "uct"
search = { algorithm = "uct" }
"#;

/// A sequential test that ends undecided.
const TEST: &str = r#"
name = "test"
game = "connect-four"
seed = 5
limit = { nodes = 80 }
openings = { random_plies = 4 }
[tournament]
format = "sprt"
bounds = [0, 50]
model = "normalised"
alpha = 0.05
beta = 0.05
max_bouts = 6
[[player]]
name = "deep"
search = { algorithm = "pvs" }
[[player]]
name = "shallow"
limit = { depth = 2 }
search = { algorithm = "alpha-beta" }
"#;

/// Players that do not search by depth.
const SAMPLING: &str = r#"
name = "sampling"
game = "tic-tac-toe"
seed = 5
limit = { nodes = 50 }
openings = { random_plies = 2 }
[tournament]
format = "round-robin"
bouts = 4
[[player]]
name = "c-1"
search = { algorithm = "uct", c = 1.0 }
[[player]]
name = "c-2"
search = { algorithm = "uct", c = 2.0 }
[[player]]
name = "chance"
search = { algorithm = "random" }
"#;

fn read(sample: &SampleDataset) -> Report {
    let dataset = Dataset::open(sample.folder()).unwrap();
    let run = dataset.find("latest").unwrap();
    let settings = Settings {
        replicas: NonZeroUsize::new(50).unwrap(),
        seed: 1,
        threads: NonZeroUsize::new(2).unwrap(),
    };
    Report::read(&dataset, &run, &settings, &|_| ()).unwrap()
}

/// Elements without an end tag.
const VOID: [&str; 2] = ["meta", "br"];

/// Checks that elements are nested correctly and attributes are quoted.
fn check_well_formed(page: &str) {
    let mut open: Vec<&str> = Vec::new();
    let body = page.strip_prefix("<!doctype html>\n").unwrap();
    // Style is not markup.
    let (before, rest) = body.split_once("<style>").unwrap();
    let (_, after) = rest.split_once("</style>").unwrap();
    for text in [before, after] {
        for (index, piece) in text.split('<').enumerate().skip(1) {
            let (tag, words) =
                piece.split_once('>').unwrap_or_else(|| panic!("piece {index} has no end: {piece}"));
            assert!(!words.contains('>'), "a stray > in {words:?}");
            let quotes = tag.matches('"').count();
            assert!(quotes % 2 == 0, "{tag}");
            // Every second piece is a quoted value; the others are attribute names.
            for name in tag.split('"').step_by(2) {
                assert!(!name.trim_end_matches('=').contains('='), "{tag}");
            }
            if let Some(name) = tag.strip_prefix('/') {
                assert_eq!(open.pop(), Some(name), "in {tag}");
            } else if !tag.ends_with('/') {
                let name = tag.split_whitespace().next().unwrap();
                if !VOID.contains(&name) {
                    open.push(name);
                }
            }
        }
    }
    assert_eq!(open, Vec::<&str>::new());
    for reference in page.split('&').skip(1) {
        let name = reference.split(';').next().unwrap();
        assert!(["amp", "lt", "gt", "quot", "#39"].contains(&name), "&{name}");
    }
}

/// Checks the properties of every page and returns its text.
fn check(report: &Report) -> String {
    let page = report.page();
    check_well_formed(&page);
    // Saved images name the namespace of SVG, which is no address to load.
    let addresses = page.replace("http://www.w3.org/2000/svg", "");
    for forbidden in ["http", " src=", "<script", "url(", "@import", "<link", "<img", "<iframe"] {
        assert!(!addresses.contains(forbidden), "{forbidden}");
    }
    let links = page.split("href=\"").skip(1).map(|link| link.split('"').next().unwrap());
    for link in links.filter(|link| !link.starts_with("data:")) {
        let name = link.strip_prefix('#').expect("all links are within the page");
        assert_eq!(page.matches(&format!(" id=\"{name}\"")).count(), 1, "{name}");
    }
    let words = words(&page);
    for word in words.split(|c: char| !c.is_alphanumeric()) {
        assert!(!["nan", "inf", "infinity"].contains(&word.to_lowercase().as_str()), "{words}");
    }
    for player in &report.players {
        assert!(words.contains(&player.name), "{}", player.name);
    }
    assert!(words.contains(&report.run) && words.contains(&report.answer));
    for svg in page.split("<svg ").skip(1) {
        let label = svg.split("aria-label=\"").nth(1).unwrap().split('"').next().unwrap();
        assert!(label.len() > 10, "a chart without a text alternative: {label}");
    }
    assert_eq!(page.matches("<table>").count(), page.matches("<caption>").count());
    let boards = page.matches("<figure class=\"board\">").count();
    let (charts, tables) = (page.matches("<svg ").count() - boards, page.matches("<details>").count());
    assert_eq!(charts, tables, "every chart has a data table");
    check_players(report, &page);
    check_files(&page, charts, boards);
    check_numbers(&page);
    assert!(page.len() < 1_000_000, "{} bytes", page.len());
    let json = serde_json::to_string(report).unwrap();
    assert!(!json.contains("NaN"));
    words
}

/// Checks that each player has one colour in all charts and tables, and that all of them list the players in one order.
fn check_players(report: &Report, page: &str) {
    let order: Vec<&str> = report.players.iter().map(|player| player.name.as_str()).collect();
    if let Availability::Available(ratings) = &report.ratings {
        let rated: Vec<&str> = ratings.players.iter().map(|player| player.name.as_str()).collect();
        assert_eq!(order, rated, "the players are in the order of the ratings");
    }
    let mut colours: Vec<(String, &str)> = Vec::new();
    let mut see = |class: &'static str, name: &str| match colours.iter().find(|known| known.0 == name) {
        Some((_, known)) => assert_eq!(*known, class, "{name}"),
        None => colours.push((name.to_string(), class)),
    };
    let series = |class: &str| {
        ["s0", "s1", "s2", "s3", "s4", "s5"].into_iter().find(|known| class.starts_with(known)).unwrap()
    };
    for table in page.split("<table>").skip(1) {
        let table = table.split("</table>").next().unwrap();
        let mut listed: Vec<&str> = Vec::new();
        for cell in table.split("<span class=\"swatch ").skip(1) {
            let (class, name) = cell.split_once("\"></span>").unwrap();
            see(series(class), name.split('<').next().unwrap());
        }
        for row in table.split("<tr><th scope=\"row\"").skip(1) {
            let head = row.split("</th>").next().unwrap();
            let Some((_, name)) = head.split_once("</span>") else { continue };
            if listed.last() != Some(&name) {
                listed.push(name);
            }
        }
        // Pairs of a probe and plies of a game are in an order of their own.
        let listed: Vec<usize> =
            listed.iter().filter_map(|name| order.iter().position(|known| known == name)).collect();
        assert!(listed.is_sorted(), "{listed:?} of {order:?} in {table}");
    }
    for svg in page.split("<svg ").skip(1) {
        let svg = svg.split("</svg>").next().unwrap();
        for label in svg.split("<text class=\"label ").skip(1) {
            let (class, rest) = label.split_once('"').unwrap();
            let text = rest.split_once('>').unwrap().1.split('<').next().unwrap();
            // The rows of a heat map are numbered.
            let name = text.split_once(' ').filter(|(number, _)| number.parse::<usize>().is_ok());
            let name = name.map_or(text, |(_, name)| name);
            if order.contains(&name) {
                see(series(class), name);
            }
        }
    }
    for name in order {
        assert!(colours.iter().any(|(known, _)| known == name), "{name} has a colour");
    }
}

/// Returns the text that a link saves.
fn decoded(link: &str) -> String {
    let (_, data) = link.split_once(',').unwrap();
    let mut pieces = data.split('%');
    let mut bytes = pieces.next().unwrap().as_bytes().to_vec();
    for piece in pieces {
        bytes.push(u8::from_str_radix(&piece[..2], 16).unwrap());
        bytes.extend(&piece.as_bytes()[2..]);
    }
    String::from_utf8(bytes).unwrap()
}

/// Checks that each chart can be saved as an image, and its table as CSV with the same numbers.
fn check_files(page: &str, charts: usize, boards: usize) {
    assert_eq!(page.matches(".svg\" href=\"data:image/svg+xml").count(), charts + boards);
    assert_eq!(page.matches(".csv\" href=\"data:text/csv").count(), charts);
    for figure in page.split("<figure").skip(1) {
        let figure = figure.split("</figure>").next().unwrap();
        let saved = |ending: &str| {
            let (_, link) = figure.split_once(&format!(".{ending}\" href=\""))?;
            Some(decoded(link.split('"').next()?))
        };
        let image = saved("svg").unwrap();
        assert!(image.starts_with("<svg xmlns=\"") && image.ends_with("</svg>"), "{image}");
        assert!(!image.contains("var("), "the colours have values: {image}");
        let Some(csv) = saved("csv") else { continue };
        let cells = |row: &str| -> Vec<String> {
            let cells = row.split("</th>").flat_map(|cells| cells.split("</td>"));
            cells.map(|cell| words(cell).trim().to_string()).filter(|cell| !cell.is_empty()).collect()
        };
        let rows = figure.split("<tr>").skip(1).map(|row| cells(row.split("</tr>").next().unwrap()));
        let rows: Vec<Vec<String>> = rows.collect();
        let lines: Vec<&str> = csv.trim_end().split("\r\n").collect();
        assert_eq!(lines.len(), rows.len(), "{csv}");
        for (line, row) in lines.iter().zip(&rows) {
            if line.contains('"') {
                continue;
            }
            for (field, cell) in line.split(',').zip(row) {
                let shown = if field.is_empty() { "-" } else { field };
                assert_eq!(shown, cell.replace(',', "").trim_start_matches('+'), "{line}");
            }
        }
    }
}

/// Checks that the tables and charts have no number in scientific notation and separate thousands.
fn check_numbers(page: &str) {
    let tables = page.split("<tbody>").skip(1).map(|table| table.split("</tbody>").next().unwrap());
    let charts = page.split("<svg ").skip(1).map(|svg| svg.split("</svg>").next().unwrap());
    for text in tables.chain(charts).map(words) {
        for (index, _) in text.match_indices('e') {
            let (before, after) = (text[..index].chars().last(), text[index + 1..].trim_start_matches('-'));
            let number =
                before.is_some_and(|c| c.is_ascii_digit()) && after.starts_with(|c: char| c.is_ascii_digit());
            assert!(!number, "scientific notation in {text}");
        }
    }
    for cell in page.split("<td>").skip(1).map(|cell| cell.split('<').next().unwrap()) {
        let digits = cell.trim_start_matches(['+', '-']).split('.').next().unwrap();
        assert!(digits.split(',').all(|group| group.len() <= 3) || digits.contains(' '), "{cell}");
    }
}

/// Returns the visible text of a page.
fn words(page: &str) -> String {
    let body = match page.split_once("<style>") {
        Some((before, rest)) => format!("{before}{}", rest.split_once("</style>").unwrap().1),
        None => format!(">{page}"),
    };
    let text: String =
        body.split('<').filter_map(|piece| piece.split_once('>')).map(|(_, words)| words).collect();
    text.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&#39;", "'")
        .replace("&amp;", "&")
}

#[test]
fn reports_tournament() {
    let report = read(&SampleDataset::play(TOURNAMENT));
    let words = check(&report);
    assert_eq!(
        (report.question, report.complete, report.counted, report.bouts),
        (Question::Tournament, true, 3, 3)
    );
    assert_eq!(report.lengths.as_ref().unwrap().games, 6);
    assert!(words.contains("deep") && words.contains("agon replay small-"), "{words}");
    assert!(words.contains("search = { algorithm = \"uct\" }"), "the spec is whole");
    // Efforts and pruning statistics cover the same searches.
    for (effort, measured) in report.efforts.iter().zip(&report.pruning.players) {
        assert_eq!((&effort.player, effort.searches), (&measured.player, measured.searches));
    }
}

#[test]
fn differing_options_are_listed() {
    let spec = vary(TOURNAMENT).bouts(1).player("tuned", "algorithm = \"uct\", c = 2.5");
    let report = read(&SampleDataset::play(&spec));
    let page = check(&report);
    let options = |name: &str| {
        let player = report.players.iter().find(|player| player.name == name).unwrap();
        player.options.iter().map(|(name, value)| format!("{name} = {value}")).collect::<Vec<_>>().join(", ")
    };
    assert_eq!(["deep", "wide", "tuned"].map(options), ["", "", "c = 2.5"]);
    assert!(page.contains("uct, c = 2.5"), "{page}");
}

#[test]
fn reports_four_seats() {
    let report = read(&SampleDataset::play(FOUR_SEATS));
    let words = check(&report);
    let Availability::Available(ratings) = &report.ratings else { panic!("{:?}", report.ratings) };
    assert_eq!(ratings.seat_effects.len(), 4);
    assert!(words.contains("against the mean of all seats"), "{words}");
    assert!(report.moments.iter().all(|moment| !moment.duel));
}

#[test]
fn reports_sequential_test() {
    let report = read(&SampleDataset::play(TEST));
    let words = check(&report);
    assert_eq!(report.question, Question::Test);
    let test = report.test.as_ref().unwrap();
    assert_eq!((test.player.as_str(), test.against.as_str()), ("deep", "shallow"));
    assert!(words.contains("log-likelihood ratio"), "{words}");
    assert_eq!(test.verdict, "undecided");
    assert!(report.answer.starts_with("Undecided whether deep is stronger"), "{}", report.answer);
}

#[test]
fn reports_probe() {
    let report = read(&SampleDataset::play(PROBE));
    let words = check(&report);
    assert_eq!((report.question, report.counted, report.lengths.is_none()), (Question::Probe, 3, true));
    assert!(report.answer.starts_with("pruned needs the fewest nodes to depth 3"), "{}", report.answer);
    assert!(words.contains("times the nodes of plain"), "{words}");
    for absent in ["Ratings", "Head-to-head results", "Decisive moments", "The longest games"] {
        assert!(!words.contains(absent), "{absent}");
    }
}

#[test]
fn reports_probe_of_one_player() {
    let (alone, _) = PROBE.rsplit_once("[[player]]").unwrap();
    let report = read(&SampleDataset::play(alone));
    check(&report);
    assert_eq!(report.answer, "plain is the only player, so there is no comparison.");
}

#[test]
fn reports_players_without_depth() {
    let report = read(&SampleDataset::play(SAMPLING));
    let words = check(&report);
    assert!(words.contains("No player searched by depth"), "{words}");
    assert!(!words.contains("Nodes by depth") && !words.contains("Depth by ply"), "{words}");
}

#[test]
fn reports_drawn_games() {
    let mut sample = SampleDataset::play(TOURNAMENT);
    for rows in sample.bouts.values_mut() {
        rows.games.iter_mut().for_each(|game| game.payoffs = vec![0, 0]);
    }
    sample.write();
    let report = read(&sample);
    check(&report);
    assert!(
        report.answer.starts_with("Too few results to call"),
        "a few draws prove nothing: {}",
        report.answer
    );
    assert!(report.moments.is_empty());
}

/// For both players as the reference of the scale.
#[test]
fn reports_perfect_score() {
    for winner in ["deep", "wide"] {
        let mut sample = SampleDataset::play(TOURNAMENT);
        for rows in sample.bouts.values_mut() {
            for game in &mut rows.games {
                let won = |name: &String| if name == winner { 1 } else { -1 };
                game.payoffs = game.players.iter().map(won).collect();
            }
        }
        sample.write();
        let report = read(&sample);
        let words = check(&report);
        let loser = if winner == "deep" { "wide" } else { "deep" };
        let few = format!("Too few results to call {winner} or {loser} stronger: +");
        assert!(report.answer.starts_with(&few), "{}", report.answer);
        assert!(report.answer.contains(&format!(" Elo for {winner} (95 %: at least -")), "{}", report.answer);
        assert!(words.contains("the other might be stronger"), "{words}");
        // The difference is to the right of the line of equal players.
        let chart = report.page();
        let chart = chart.split("<section id=\"ratings\"").nth(1).unwrap().split("</svg>").next().unwrap();
        let at = |class: &str, key: &str| -> f64 {
            let element = chart.split(&format!("class=\"{class}")).nth(1).unwrap();
            element.split(&format!(" {key}=\"")).nth(1).unwrap().split('"').next().unwrap().parse().unwrap()
        };
        assert!(at("dot ", "cx") > at("zero", "x1"), "{chart}");
    }
}

/// The line goes through the points of the depths that most searches completed.
#[test]
fn rare_depths_are_rings() {
    let report = read(&SampleDataset::play(&TOURNAMENT.replace("nodes = 60", "nodes = 150")));
    let by_depth = &report.pruning.by_depth;
    let most = |name: &str| by_depth.iter().filter(|row| row.player == name).map(|row| row.searches).max();
    let few = by_depth.iter().filter(|row| most(&row.player).is_some_and(|most| 2 * row.searches < most));
    let (few, page) = (few.count(), report.page());
    assert!(few > 0, "{by_depth:?}");
    let chart = page.split("<section id=\"depths\"").nth(1).unwrap().split("</svg>").next().unwrap();
    assert_eq!(
        (chart.matches("\"ring ").count(), chart.matches("class=\"dot s").count()),
        (few, by_depth.len() - few)
    );
    let numbers = |text: &str| -> Vec<String> {
        text.split(|c: char| !c.is_ascii_digit() && c != '.')
            .filter(|n| !n.is_empty())
            .map(String::from)
            .collect()
    };
    let curves: Vec<String> = chart
        .split("class=\"curve ")
        .skip(1)
        .flat_map(|curve| numbers(curve.split(" d=\"").nth(1).unwrap().split('"').next().unwrap()))
        .collect();
    let dots: Vec<String> = chart
        .split("class=\"dot ")
        .skip(1)
        .flat_map(|dot| {
            let dot = dot.split(" cx=").nth(1).unwrap().split(" r=").next().unwrap();
            numbers(&dot.replace("cy", ""))
        })
        .collect();
    assert_eq!(curves, dots);
}

#[test]
fn reports_unfinished_runs() {
    let mut sample = SampleDataset::play(TOURNAMENT);
    sample.bouts.remove(&2);
    sample.manifest["state"] = json!("running");
    sample.manifest["committed"] = json!(2);
    sample.write();
    let report = read(&sample);
    let words = check(&report);
    assert!(!report.complete && words.contains("Unfinished (running): 2 of 3 bouts"), "{words}");
    // No bout yet.
    sample.bouts.clear();
    sample.manifest["committed"] = json!(0);
    sample.write();
    let words = check(&read(&sample));
    assert!(words.contains("0 of 3 bouts are in the dataset so far"), "{words}");
    let mut sample = SampleDataset::play(PROBE);
    sample.bouts.clear();
    sample.manifest["state"] = json!("running");
    sample.manifest["committed"] = json!(0);
    sample.write();
    let report = read(&sample);
    check(&report);
    assert_eq!(report.answer, "No position has been searched yet.");
}

#[test]
fn voided_bouts_are_excluded() {
    let mut sample = SampleDataset::play(TOURNAMENT);
    sample.manifest["voided"] = json!([1]);
    sample.write_manifest();
    let report = read(&sample);
    check(&report);
    assert_eq!((report.counted, report.voided, report.lengths.as_ref().unwrap().games), (2, 1, 4));
    assert!(report.moments.iter().all(|moment| moment.game.bout != 1));
}

/// Specs reject such names, but the page does not rely on it.
#[test]
fn names_are_escaped() {
    let mut report = read(&SampleDataset::play(TOURNAMENT));
    let hostile = "<b onload=\"x\">&amp;'</b></style></svg>";
    report.run = hostile.to_string();
    report.answer = hostile.to_string();
    report.game = hostile.to_string();
    report.reproduction.spec = hostile.to_string();
    report.players[0].name = hostile.to_string();
    report.efforts[0].player = hostile.to_string();
    report.pruning.players[0].player = hostile.to_string();
    report.pruning.by_depth.iter_mut().for_each(|row| row.player = hostile.to_string());
    if let Availability::Available(ratings) = &mut report.ratings {
        ratings.players.iter_mut().for_each(|player| player.name = hostile.to_string());
    }
    if let Availability::Available(table) = &mut report.crosstable {
        table.names[0] = hostile.to_string();
    }
    for moment in &mut report.moments {
        moment.board = hostile.to_string();
        moment.position = hostile.to_string();
        moment.loser = hostile.to_string();
        moment.game.ending = hostile.to_string();
    }
    let page = report.page();
    check_well_formed(&page);
    assert!(!page.contains("<b ") && page.contains("&lt;b onload"), "{page}");
}

#[test]
fn reports_twelve_players() {
    let head = TOURNAMENT.split("[[player]]").next().unwrap();
    let mut text = head.replace("bouts = 3", "bouts = 1").replace("limit = { nodes = 60 }\n", "");
    for index in 0..12 {
        let name = if index % 4 == 0 { "a-name-that-is-rather-long-for-a-player" } else { "p" };
        text.push_str(&format!(
            "[[player]]\nname = \"{name}-{index}\"\nlimit = {{ nodes = {} }}\nsearch = {{ algorithm = \"pvs\" }}\n",
            20 + 10 * index
        ));
    }
    let report = read(&SampleDataset::play(&text));
    check(&report);
    let Availability::Available(ratings) = &report.ratings else { panic!("{:?}", report.ratings) };
    assert_eq!(ratings.players.len(), 12);
}

#[test]
fn page_does_not_depend_on_threads() {
    let sample = SampleDataset::play(TOURNAMENT);
    let dataset = Dataset::open(sample.folder()).unwrap();
    let run = dataset.find("latest").unwrap();
    let page = |threads: usize| {
        let (replicas, threads) = (NonZeroUsize::new(50).unwrap(), NonZeroUsize::new(threads).unwrap());
        Report::read(&dataset, &run, &Settings { replicas, seed: 1, threads }, &|_| ()).unwrap().page()
    };
    assert_eq!(page(1), page(4));
}

#[test]
fn damaged_part_is_named() {
    let sample = SampleDataset::play(TOURNAMENT);
    let file = sample.part_file("moves", 0);
    let mut bytes = std::fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..].iter_mut().for_each(|byte| *byte = 0);
    std::fs::write(&file, bytes).unwrap();
    let dataset = Dataset::open(sample.folder()).unwrap();
    let run = dataset.find("latest").unwrap();
    let settings = Settings { replicas: NonZeroUsize::MIN, seed: 1, threads: NonZeroUsize::MIN };
    let error = Report::read(&dataset, &run, &settings, &|_| ()).unwrap_err().to_string();
    assert!(error.contains(file.file_name().unwrap().to_str().unwrap()), "{error}");
}
