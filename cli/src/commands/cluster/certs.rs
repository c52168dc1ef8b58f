//! `agon certs`: creates and renews the certificates of a private cluster.

use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use agon_transport::authority::{Authority, Validity, certificate_hosts, validate_host};
use agon_transport::tokens::validate_name;
use anyhow::Context as _;
use clap::Args;

use crate::fail::{Outcome, UsageError, bail_usage};
use crate::table::print;

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

/// The names of a coordinator on its own machine.
const LOCAL: [&str; 3] = ["localhost", "127.0.0.1", "::1"];
/// The default client.
const CLIENT: &str = "client";
/// The names that other certificates have.
const RESERVED: [&str; 2] = ["ca", "coordinator"];

impl Certs {
    pub fn run(self) -> Outcome {
        let wrong = |error: agon_transport::CredentialError| UsageError(error.0);
        let [certificate, key, coordinator] =
            ["ca.pem", "ca.key", "coordinator.pem"].map(|name| self.folder.join(name));
        let before =
            if coordinator.exists() { certificate_hosts(&coordinator).map_err(wrong)? } else { Vec::new() };
        let mut hosts: Vec<String> = LOCAL.map(str::to_string).to_vec();
        for host in before.iter().chain(&self.hosts) {
            validate_host(host).map_err(wrong)?;
            if !hosts.contains(host) {
                hosts.push(host.clone());
            }
        }
        let clients = if self.clients.is_empty() { vec![CLIENT.to_string()] } else { self.clients.clone() };
        for name in &clients {
            validate_name(name).map_err(UsageError)?;
            if RESERVED.contains(&name.as_str()) {
                bail_usage!("`{name}` is reserved; choose another client name");
            }
        }
        std::fs::create_dir_all(&self.folder)
            .with_context(|| format!("cannot create {}", self.folder.display()))?;
        // Renewal keeps the authority, so that peers accept the new certificates.
        let (authority, renewed) = match (certificate.exists(), key.exists()) {
            (true, true) => (Authority::open(&certificate, &key).map_err(wrong)?, true),
            (false, false) => {
                let (authority, pair) = Authority::create()?;
                pair.write(&self.folder, "ca")?;
                (authority, false)
            }
            _ => {
                bail_usage!(
                    "{} has only one of ca.pem and ca.key; restore the other, or choose an empty folder",
                    self.folder.display()
                );
            }
        };
        let validity = Validity::lasting(Duration::from_secs(u64::from(self.days) * 86_400));
        authority.issue_server(&hosts, validity).map_err(wrong)?.write(&self.folder, "coordinator")?;
        for name in &clients {
            let subject = if name == CLIENT { "agon client" } else { name };
            authority.issue_client(subject, validity)?.write(&self.folder, name)?;
        }

        let folder = self.folder.display().to_string();
        let document = serde_json::json!({
            "folder": folder, "hosts": hosts, "clients": clients, "days": self.days, "renewed": renewed,
        });
        print(self.json, &document, |out| {
            let what =
                if renewed { "renewed by the existing authority" } else { "created with a new authority" };
            writeln!(out, "certificates for {} days in {folder}: {what}", self.days)?;
            writeln!(out, "names of the coordinator: {}", hosts.join(", "))?;
            let mut line = |files: &str, holder: &str| writeln!(out, "  {files:32}  {holder}");
            line("ca.pem", "every machine of the cluster")?;
            line("coordinator.pem, coordinator.key", "the coordinator only")?;
            for name in &clients {
                let holder = if name == CLIENT { "workers and operators" } else { name };
                line(&format!("{name}.pem, {name}.key"), holder)?;
            }
            line("ca.key", "no machine of the cluster: keep it safe")
        })
    }
}
