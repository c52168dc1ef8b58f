//! `agon completions` and `agon man`, generated from the description of the command line.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;

use crate::fail::{Outcome, note};

#[derive(Args)]
pub struct Completions {
    /// Shell
    shell: clap_complete::Shell,
}

impl Completions {
    pub fn run(self, command: &mut clap::Command) -> Outcome {
        // The generator panics if it cannot write; a Vec always accepts.
        let mut script = Vec::new();
        clap_complete::generate(self.shell, command, "agon", &mut script);
        let mut out = io::stdout().lock();
        out.write_all(&script)?;
        out.flush()?;
        Ok(ExitCode::SUCCESS)
    }
}

#[derive(Args)]
pub struct Man {
    /// Folder for the pages, created if missing [default: print the first page]
    #[arg(value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

impl Man {
    pub fn run(self, command: clap::Command) -> Outcome {
        let Some(folder) = self.folder else {
            let mut page = Vec::new();
            clap_mangen::Man::new(command.disable_help_subcommand(true)).render(&mut page)?;
            let mut out = io::stdout().lock();
            out.write_all(&page)?;
            out.flush()?;
            return Ok(ExitCode::SUCCESS);
        };
        let pages = pages(&command);
        let written = fs::create_dir_all(&folder).and_then(|()| clap_mangen::generate_to(command, &folder));
        written.with_context(|| {
            format!("cannot write manual pages to {}; name a folder you can write to", folder.display())
        })?;
        note(&format!("wrote {pages} manual pages to {}", folder.display()));
        Ok(ExitCode::SUCCESS)
    }
}

/// Counts the pages: one for each command and subcommand.
fn pages(command: &clap::Command) -> usize {
    1 + command.get_subcommands().filter(|inner| !inner.is_hide_set()).map(pages).sum::<usize>()
}
