//! `agon certs`: the certificates of a private cluster.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use agon_transport::authority::{Authority, Validity, check_host, hosts};
use agon_transport::tokens::check_name;
use anyhow::Context as _;
use clap::Args;

use crate::fail::{Outcome, WrongCall};
use crate::table::write_json;

/// The arguments of `agon certs`.
#[derive(Args)]
pub struct Certs {
    /// Folder for ca, coordinator and client certificates (.pem) and keys (.key); existing certificates are renewed
    folder: PathBuf,
    /// Additional host name or address of the coordinator; repeatable
    #[arg(long = "host", value_name = "NAME")]
    hosts: Vec<String>,
    /// Client to create NAME.pem and NAME.key for, instead of client.pem and client.key; repeatable
    #[arg(long = "client", value_name = "NAME")]
    clients: Vec<String>,
    /// Validity of the coordinator and client certificates, in days
    #[arg(long, default_value_t = 365, value_parser = clap::value_parser!(u32).range(1..=3650))]
    days: u32,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// What every coordinator can be called on its own machine.
const LOCAL: [&str; 3] = ["localhost", "127.0.0.1", "::1"];
/// The client that nobody named, and what is no name of one.
const CLIENT: &str = "client";
const TAKEN: [&str; 2] = ["ca", "coordinator"];

impl Certs {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let wrong = |error: agon_transport::CredentialError| WrongCall(error.0);
        let [certificate, key, coordinator] =
            ["ca.pem", "ca.key", "coordinator.pem"].map(|name| self.folder.join(name));
        let before = if coordinator.exists() { hosts(&coordinator).map_err(wrong)? } else { Vec::new() };
        let mut hosts: Vec<String> = LOCAL.map(str::to_string).to_vec();
        for host in before.iter().chain(&self.hosts) {
            check_host(host).map_err(wrong)?;
            if !hosts.contains(host) {
                hosts.push(host.clone());
            }
        }
        let clients = if self.clients.is_empty() { vec![CLIENT.to_string()] } else { self.clients.clone() };
        for name in &clients {
            check_name(name).map_err(WrongCall)?;
            if TAKEN.contains(&name.as_str()) {
                return Err(WrongCall(format!("{name}.pem is not a client's; choose another name")).into());
            }
        }
        std::fs::create_dir_all(&self.folder)
            .with_context(|| format!("{} cannot be made", self.folder.display()))?;
        // The authority stays: whoever knows it already knows what it signs from now on.
        let (authority, renewed) = match (certificate.exists(), key.exists()) {
            (true, true) => (Authority::open(&certificate, &key).map_err(wrong)?, true),
            (false, false) => {
                let (authority, pair) = Authority::create()?;
                pair.write(&self.folder, "ca")?;
                (authority, false)
            }
            _ => {
                let reason = format!(
                    "{} has one of ca.pem and ca.key and not the other; bring it back, or choose an empty folder",
                    self.folder.display()
                );
                return Err(WrongCall(reason).into());
            }
        };
        let validity = Validity::of(Duration::from_secs(u64::from(self.days) * 86_400));
        authority.coordinator(&hosts, validity).map_err(wrong)?.write(&self.folder, "coordinator")?;
        for name in &clients {
            let subject = if name == CLIENT { "agon client" } else { name };
            authority.client(subject, validity)?.write(&self.folder, name)?;
        }

        let mut out = io::stdout().lock();
        let folder = self.folder.display();
        if self.json {
            let folder = folder.to_string();
            let told = serde_json::json!({
                "folder": folder, "hosts": hosts, "clients": clients, "days": self.days, "renewed": renewed,
            });
            write_json(&told, &mut out)?;
            return Ok(ExitCode::SUCCESS);
        }
        let what =
            if renewed { "renewed, by the authority that was there" } else { "made, with a new authority" };
        writeln!(out, "certificates for {} days in {folder}: {what}", self.days)?;
        writeln!(out, "the coordinator may be called: {}", hosts.join(", "))?;
        writeln!(out, "  ca.pem                            everybody: by it they know each other")?;
        writeln!(out, "  coordinator.pem, coordinator.key  the coordinator alone")?;
        for name in &clients {
            let files = format!("{name}.pem, {name}.key");
            let whose = if name == CLIENT { "workers and operators" } else { name };
            writeln!(out, "  {files:32}  {whose}")?;
        }
        writeln!(out, "  ca.key                            nobody: keep it where it is safe")?;
        Ok(ExitCode::SUCCESS)
    }
}
