//! `agon list-algorithms`: the search algorithms and their options.

use std::io::{self, Write};

use agon_arena::{ALGORITHMS, AlgorithmInfo, Family};
use agon_games::schema::hint;
use clap::Args;
use serde::Serialize;

use crate::fail::{Outcome, bail_usage};
use crate::table::{Align, Table, folded, print, sentence_width};

#[derive(Args)]
pub struct ListAlgorithms {
    /// Describe this algorithm
    #[arg(value_name = "ALGORITHM")]
    algorithm: Option<String>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Document {
    algorithms: Vec<Algorithm>,
}

#[derive(Serialize)]
struct Algorithm {
    name: &'static str,
    about: &'static str,
    fits: Vec<&'static str>,
    options: Vec<OptionJson>,
}

#[derive(Serialize)]
struct OptionJson {
    name: &'static str,
    default: String,
    allowed: String,
    about: &'static str,
}

/// Returns the name of a family.
fn family_name(family: Family) -> &'static str {
    match family {
        Family::Duel => "duel",
        Family::Many => "many",
        Family::Chance => "chance",
    }
}

impl From<&AlgorithmInfo> for Algorithm {
    fn from(info: &AlgorithmInfo) -> Algorithm {
        let options = info.options.iter().map(|option| OptionJson {
            name: option.name,
            default: option.default_toml(),
            allowed: option.domain.as_toml(),
            about: option.about,
        });
        Algorithm {
            name: info.name,
            about: info.about,
            fits: info.families.iter().copied().map(family_name).collect(),
            options: options.collect(),
        }
    }
}

impl ListAlgorithms {
    pub fn run(self) -> Outcome {
        if let Some(name) = &self.algorithm
            && !ALGORITHMS.iter().any(|info| info.name == name)
        {
            let hint = hint(name, ALGORITHMS.iter().map(|info| info.name));
            bail_usage!("there is no algorithm `{name}`{hint} `agon list-algorithms` lists them");
        }
        let chosen = |info: &&AlgorithmInfo| self.algorithm.as_ref().is_none_or(|name| name == info.name);
        let algorithms: Vec<Algorithm> = ALGORITHMS.iter().filter(chosen).map(Algorithm::from).collect();
        let document = Document { algorithms };
        print(self.json, &document, |out| match &document.algorithms[..] {
            [algorithm] => describe(algorithm, out),
            algorithms => list(algorithms, out),
        })
    }
}

fn list(algorithms: &[Algorithm], out: &mut impl Write) -> io::Result<()> {
    let mut table = Table::new(&[("algorithm", Align::Left), ("fits", Align::Left), ("", Align::Prose)]);
    for algorithm in algorithms {
        table.row([algorithm.name.to_string(), algorithm.fits.join(", "), algorithm.about.to_string()]);
    }
    table.write(out)?;
    writeln!(out, "\n`agon list-algorithms ALGORITHM` lists its options.")
}

fn describe(algorithm: &Algorithm, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{}: {}", algorithm.name, algorithm.about)?;
    writeln!(out, "fits: {}", algorithm.fits.join(", "))?;
    for option in &algorithm.options {
        writeln!(out, "\n{} = {}", option.name, option.default)?;
        for text in [option.about, option.allowed.as_str()] {
            writeln!(out, "  {}", folded(text, sentence_width() - 2).join("\n  "))?;
        }
    }
    Ok(())
}
