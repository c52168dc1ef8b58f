//! `agon token`: makes, lists and revokes the tokens that a coordinator asks for.
//!
//! It changes the tokens file and asks no coordinator: one that runs reads the file again when it has changed.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::SystemTime;

use agon_transport::tokens::TokenFile;
use agon_transport::{CredentialError, Role, write_secret};
use anyhow::Context as _;
use clap::{Args, Subcommand, ValueEnum};

use crate::fail::{Outcome, WrongCall};
use crate::settings::Layers;
use crate::table::{Align, Table, utc, write_json};

/// What is done with tokens.
#[derive(Subcommand)]
pub enum Token {
    /// Create a token and print it once
    Create(Create),
    /// List tokens
    List(List),
    /// Revoke a token and close its connections within a second
    Revoke(Revoke),
}

/// The arguments of `agon token create`.
#[derive(Args)]
pub struct Create {
    /// Unique name of the token
    name: String,
    /// Role that the token grants
    #[arg(long)]
    role: RoleName,
    #[command(flatten)]
    file: File,
    /// Write the token to this file, readable by its owner only, and do not print it
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum RoleName {
    /// Lease bouts and return results
    Worker,
    /// Submit, control and inspect runs and workers
    Operator,
    /// Inspect runs and workers
    Viewer,
}

impl From<RoleName> for Role {
    fn from(name: RoleName) -> Role {
        match name {
            RoleName::Worker => Role::Worker,
            RoleName::Operator => Role::Operator,
            RoleName::Viewer => Role::Viewer,
        }
    }
}

/// The arguments of `agon token list`.
#[derive(Args)]
pub struct List {
    #[command(flatten)]
    file: File,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// The arguments of `agon token revoke`.
#[derive(Args)]
pub struct Revoke {
    /// Its name
    name: String,
    #[command(flatten)]
    file: File,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Which tokens.
#[derive(Args)]
struct File {
    /// The tokens file, as the coordinator is given it [default: coordinator.tokens of the configuration file, else
    /// tokens.toml]
    #[arg(long, value_name = "FILE")]
    tokens: Option<PathBuf>,
    /// A configuration file under it [env: AGON_CONFIG]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl File {
    fn path(self) -> anyhow::Result<PathBuf> {
        Layers::open(self.config.as_deref())?.path_or("coordinator.tokens", self.tokens, "tokens.toml")
    }
}

/// Where a file lies or will lie, however it is called.
fn place(path: &Path) -> PathBuf {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf());
    path.canonicalize().unwrap_or_else(|_| folder.join(path.file_name().unwrap_or_default()))
}

impl Token {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        match self {
            Token::Create(command) => command.run(),
            Token::List(command) => command.run(),
            Token::Revoke(command) => command.run(),
        }
    }
}

fn wrong(error: CredentialError) -> WrongCall {
    WrongCall(error.0)
}

impl Create {
    fn run(self) -> Outcome {
        if self.output.as_ref().is_some_and(|output| output.exists()) {
            let reason =
                "there is such a file already; a token is not written over anything, choose another --output";
            return Err(WrongCall(reason.to_string()).into());
        }
        let tokens = self.file.path()?;
        if self.output.as_ref().is_some_and(|output| place(output) == place(&tokens)) {
            let reason = "the token would be written over the tokens file; choose another --output";
            return Err(WrongCall(reason.to_string()).into());
        }
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let created = utc(i64::try_from(now.as_micros()).unwrap_or(i64::MAX));
        let role = Role::from(self.role);
        let make = |file: &mut TokenFile| file.create(&self.name, role, &created);
        let secret = TokenFile::change(&tokens, make).map_err(wrong)?;
        if let Some(output) = &self.output {
            // A token that nobody has is of no use.
            write_secret(output, &format!("{secret}\n")).or_else(|error| {
                TokenFile::change(&tokens, |file| file.revoke(&self.name)).map_err(wrong)?;
                Err(error).with_context(|| format!("{} cannot be written", output.display()))
            })?;
        }
        let mut out = io::stdout().lock();
        let place = self.output.as_ref().map(|output| output.display().to_string());
        if self.json {
            let printed = self.output.is_none().then_some(&secret);
            let told = serde_json::json!({
                "name": self.name, "role": role.name(), "created": created, "token": printed, "output": place,
            });
            write_json(&told, &mut out)?;
        } else if let Some(place) = place {
            writeln!(out, "the token `{}` ({}) is in {place}", self.name, role.name())?;
        } else {
            writeln!(out, "{secret}")?;
            let note = "it is not shown again; keep it in a file of its own, for --token-file";
            let _ = writeln!(io::stderr(), "the token `{}` ({}): {note}", self.name, role.name());
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl List {
    fn run(self) -> Outcome {
        let file = TokenFile::read(&self.file.path()?).map_err(wrong)?;
        let mut out = io::stdout().lock();
        if self.json {
            let entry = |entry: &agon_transport::tokens::Entry| serde_json::json!({ "name": entry.name, "role": entry.role.name(), "created": entry.created });
            let tokens: Vec<_> = file.entries.iter().map(entry).collect();
            write_json(&serde_json::json!({ "tokens": tokens }), &mut out)?;
        } else if file.entries.is_empty() {
            writeln!(out, "there is no token; make one with `agon token create`")?;
        } else {
            let mut table =
                Table::new(&[("name", Align::Left), ("role", Align::Left), ("created", Align::Left)]);
            for entry in file.entries {
                table.row([entry.name, entry.role.name().to_string(), entry.created]);
            }
            table.write(&mut out)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Revoke {
    fn run(self) -> Outcome {
        let tokens = self.file.path()?;
        let file = tokens.display();
        if !tokens.exists() {
            return Err(WrongCall(format!("there is no {file}")).into());
        }
        TokenFile::change(&tokens, |file| file.revoke(&self.name)).map_err(wrong)?;
        let mut out = io::stdout().lock();
        if self.json {
            let file = file.to_string();
            write_json(&serde_json::json!({ "name": self.name, "revoked": true, "tokens": file }), &mut out)?;
        } else {
            let what = "a coordinator with that file ends what it opened within a second";
            writeln!(out, "the token `{}` is no more in {file}: {what}", self.name)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
