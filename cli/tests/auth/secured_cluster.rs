//! A coordinator with TLS, client certificates and tokens, and a run that no rejected call may change.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use agon_testing::specs::{PVS_VS_UCT, vary};
use agon_transport::authority::{Authority, CertifiedKey, Validity};
use agon_transport::tokens::TokenFile;
use agon_transport::{ClientCredentials, Connector, Role, write_secret};
use serde_json::Value;

use agon_testing::binary::{Answer, agon};
use agon_testing::folder::Folder;
use agon_testing::processes::{Cluster, Process, wait_until};

/// The spec of the cluster's run.
pub fn spec(name: &str, bouts: u64) -> String {
    vary(PVS_VS_UCT).name(name).bouts(bouts).text()
}

/// Returns a validity of one year.
pub fn valid() -> Validity {
    Validity::lasting(Duration::from_secs(365 * 86_400))
}

/// The cluster with the credentials for it.
pub struct SecuredCluster {
    /// The cluster; its calls use an operator's credentials.
    pub cluster: Cluster,
    /// The certificate authority that the coordinator trusts.
    pub authority: Authority,
    credentials: Folder,
    run: String,
    secure: bool,
}

impl SecuredCluster {
    /// Starts a coordinator with TLS, client certificates, tokens and additional flags, and submits a run.
    pub fn start(more: &[&str]) -> SecuredCluster {
        SecuredCluster::with(more, true)
    }

    /// Starts a coordinator with tokens and without TLS, so that a test can write to the socket.
    pub fn start_plaintext(more: &[&str]) -> SecuredCluster {
        SecuredCluster::with(more, false)
    }

    fn with(more: &[&str], secure: bool) -> SecuredCluster {
        let credentials = Folder::new();
        let (authority, pair) = Authority::create().unwrap();
        pair.write(credentials.as_path(), "ca").unwrap();
        let hosts = ["localhost", "127.0.0.1"].map(str::to_string);
        authority.issue_server(&hosts, valid()).unwrap().write(credentials.as_path(), "coordinator").unwrap();
        authority.issue_client("user", valid()).unwrap().write(credentials.as_path(), "client").unwrap();
        let path = |name: &str| credentials.path(name);
        let flags = [
            ["--tls-cert", &path("coordinator.pem")],
            ["--tls-key", &path("coordinator.key")],
            ["--tls-client-ca", &path("ca.pem")],
            ["--tokens", &path("tokens.toml")],
        ];
        let flags = if secure { &flags[..] } else { &flags[3..] };
        let flags = flags.concat().into_iter().chain(more.iter().copied()).map(str::to_string).collect();
        let mut secured = SecuredCluster {
            cluster: Cluster::new(Duration::from_secs(60)),
            authority,
            credentials,
            run: String::new(),
            secure,
        };
        for (name, role) in [("op", Role::Operator), ("looks", Role::Viewer), ("plays", Role::Worker)] {
            secured.create_token(name, role);
        }
        let client = secured.flags(Some("op"), Some("client"));
        secured.cluster = secured.cluster.with_flags(flags, client);
        secured.cluster.restart();
        secured.run = secured.cluster.submit(&spec("auth", 4));
        secured
    }

    /// Returns a path in the folder of the credentials.
    pub fn path(&self, name: &str) -> String {
        self.credentials.path(name)
    }

    /// Creates a token and writes its secret to `NAME.token`.
    pub fn create_token(&self, name: &str, role: Role) {
        let file = self.path("tokens.toml");
        let secret = TokenFile::update(Path::new(&file), |file| file.create(name, role, "now")).unwrap();
        write_secret(Path::new(&self.path(&format!("{name}.token"))), &secret).unwrap();
    }

    /// Revokes a token.
    pub fn revoke(&self, name: &str) {
        TokenFile::update(Path::new(&self.path("tokens.toml")), |file| file.revoke(name)).unwrap();
    }

    /// Writes a certificate and its key to the folder of the credentials.
    pub fn write_pair(&self, pair: &CertifiedKey, name: &str) {
        pair.write(self.credentials.as_path(), name).unwrap();
    }

    /// Returns the flags for a token and a client certificate, given by their names.
    pub fn flags(&self, token: Option<&str>, certificate: Option<&str>) -> Vec<String> {
        let mut flags = Vec::new();
        if self.secure {
            flags.extend(["--tls-ca".to_string(), self.path("ca.pem")]);
        }
        if let Some(name) = certificate.filter(|_| self.secure) {
            flags.extend(["--tls-cert".to_string(), self.path(&format!("{name}.pem"))]);
            flags.extend(["--tls-key".to_string(), self.path(&format!("{name}.key"))]);
        }
        if let Some(name) = token {
            flags.extend(["--token-file".to_string(), self.path(&format!("{name}.token"))]);
        }
        flags
    }

    /// Calls the binary with a token and a client certificate.
    pub fn call(&self, command: &[&str], token: Option<&str>, certificate: Option<&str>) -> Answer {
        let flags = self.flags(token, certificate);
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        agon(&[command, &["--coordinator", &self.cluster.address()], &flags].concat())
    }

    /// Starts the binary with a token and a client certificate, and logs to `TOKEN.log`.
    pub fn start_process(&self, command: &[&str], token: &str, certificate: &str) -> Process {
        let flags = self.flags(Some(token), Some(certificate));
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let address = self.cluster.address();
        let call = [command, &["--coordinator", &address], &flags].concat();
        Process::start_logged(&call, self.path(&format!("{token}.log")).into())
    }

    /// Starts a worker with one slot and the token `plays`.
    pub fn start_worker(&self, name: &str, certificate: &str) -> Process {
        self.start_process(&["worker", "--name", name, "--slots", "1"], "plays", certificate)
    }

    /// Waits until a worker is connected.
    pub fn wait_for_worker(&self, name: &str) {
        wait_until("the worker is connected", || {
            self.cluster.worker_status(name)["connected"].as_bool().filter(|connected| *connected)
        });
    }

    /// Returns a connector with a token and the client certificate.
    pub fn connector(&self, token: &str) -> Connector {
        let path = |name: &str| Some(self.credentials.path(name).into());
        let secret = |name: &str| path(name).filter(|_| self.secure);
        let credentials = ClientCredentials {
            authority: secret("ca.pem"),
            certificate: secret("client.pem"),
            key: secret("client.key"),
            token: path(&format!("{token}.token")),
        };
        Connector::new(&self.cluster.address(), credentials).unwrap()
    }

    /// Returns the id of the run.
    pub fn run(&self) -> &str {
        &self.run
    }

    /// Returns the address that the coordinator listens on.
    pub fn socket(&self) -> SocketAddr {
        let address = self.cluster.address();
        address.rsplit('/').next().unwrap().parse().unwrap()
    }

    /// Returns the runs, workers and audit entries that an operator sees, without values that change with time.
    pub fn state(&self) -> (Value, Vec<String>, Value) {
        let mut runs = self.cluster.json(&["list"]);
        for run in runs["runs"].as_array_mut().unwrap() {
            for clocked in ["games_per_second", "seconds_left"] {
                run[clocked] = Value::Null;
            }
        }
        let workers = self.cluster.json(&["workers"])["workers"].as_array().unwrap().clone();
        let describe =
            |worker: &Value| format!("{} {} {}", worker["worker"], worker["committed"], worker["flag"]);
        (runs, workers.iter().map(describe).collect(), self.cluster.json(&["audit"]))
    }
}

/// Asserts that a call failed with this exit code and message.
#[track_caller]
pub fn assert_fails(what: &str, answer: &Answer, code: i32, message: &str) {
    assert!(answer.code == code && answer.err.contains(message), "{what}: {} {}", answer.code, answer.err);
    assert!(
        answer.out.is_empty() && !answer.err.contains("panicked"),
        "{what}: {} {}",
        answer.out,
        answer.err
    );
    println!("{what} | {}", answer.err.trim());
}
