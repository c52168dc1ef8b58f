//! `agon completions` and `agon man`: made from the command line's own description.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;

use crate::fail::Outcome;

/// The arguments of `agon completions`.
#[derive(Args)]
pub struct Completions {
    /// Shell
    shell: clap_complete::Shell,
}

impl Completions {
    /// Runs the command.
    pub fn run(self, command: &mut clap::Command) -> Outcome {
        // The generator panics where it cannot write, and a Vec takes everything.
        let mut script = Vec::new();
        clap_complete::generate(self.shell, command, "agon", &mut script);
        let mut out = io::stdout().lock();
        out.write_all(&script)?;
        out.flush()?;
        Ok(ExitCode::SUCCESS)
    }
}

/// The arguments of `agon man`.
#[derive(Args)]
pub struct Man {
    /// Folder for the pages, created if missing [default: print the first page]
    #[arg(value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

impl Man {
    /// Runs the command.
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
        let made = fs::create_dir_all(&folder).and_then(|()| clap_mangen::generate_to(command, &folder));
        made.with_context(|| {
            format!("cannot write manual pages to {}; name a folder you can write to", folder.display())
        })?;
        // Where standard error cannot be written, there is nobody left to tell.
        let _ = writeln!(io::stderr(), "wrote {pages} manual pages to {}", folder.display());
        Ok(ExitCode::SUCCESS)
    }
}

/// How many pages there are: one a command, commands of commands included.
fn pages(command: &clap::Command) -> usize {
    1 + command.get_subcommands().filter(|inner| !inner.is_hide_set()).map(pages).sum::<usize>()
}
