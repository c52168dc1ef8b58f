//! `agon list-algorithms`: what a player's search can be, and its options.

use std::io::{self, Write};
use std::process::ExitCode;

use agon_arena::{ALGORITHMS, AlgorithmInfo, Family};
use agon_games::schema::hint;
use clap::Args;
use serde::Serialize;

use crate::fail::{Outcome, WrongCall};
use crate::table::{Align, Table, write_json};

/// The arguments of `agon list-algorithms`.
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
    options: Vec<Choice>,
}

#[derive(Serialize)]
struct Choice {
    name: &'static str,
    default: String,
    allowed: String,
    about: &'static str,
}

/// A family in a word.
fn family_name(family: Family) -> &'static str {
    match family {
        Family::Duel => "duel",
        Family::Many => "many",
        Family::Chance => "chance",
    }
}

impl From<&AlgorithmInfo> for Algorithm {
    fn from(info: &AlgorithmInfo) -> Algorithm {
        let options = info.options.iter().map(|option| Choice {
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
    /// Runs the command.
    pub fn run(self) -> Outcome {
        if let Some(name) = &self.algorithm
            && !ALGORITHMS.iter().any(|info| info.name == name)
        {
            let hint = hint(name, ALGORITHMS.iter().map(|info| info.name));
            let reason = format!("there is no algorithm `{name}`{hint} `agon list-algorithms` lists them");
            return Err(WrongCall(reason).into());
        }
        let chosen = |info: &&AlgorithmInfo| self.algorithm.as_ref().is_none_or(|name| name == info.name);
        let algorithms: Vec<Algorithm> = ALGORITHMS.iter().filter(chosen).map(Algorithm::from).collect();
        let mut out = io::stdout().lock();
        if self.json {
            write_json(&Document { algorithms }, &mut out)?;
        } else if self.algorithm.is_some() {
            algorithms.iter().try_for_each(|algorithm| describe(algorithm, &mut out))?;
        } else {
            list(&algorithms, &mut out)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn list(algorithms: &[Algorithm], out: &mut impl Write) -> io::Result<()> {
    let mut table = Table::new(&[("algorithm", Align::Left), ("fits", Align::Left), ("", Align::Left)]);
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
        writeln!(out, "  {}", option.about)?;
        writeln!(out, "  {}", option.allowed)?;
    }
    Ok(())
}
