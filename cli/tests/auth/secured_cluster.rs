//! A coordinator with TLS, client certificates and tokens, and a run that no rejected call may change.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use agon_transport::authority::{Authority, Pair, Validity};
use agon_transport::tokens::TokenFile;
use agon_transport::{ClientCredentials, Connector, Role, write_secret};
use serde_json::Value;

use crate::binary::{Answer, agon};
use crate::processes::Cluster;

/// The run that everybody finds.
pub const SPEC: &str = r#"
name = "auth"
game = "connect-four"
seed = 5
limit = { nodes = 60 }
openings = { random_plies = 4 }
[tournament]
format = "round-robin"
bouts = 4
[[player]]
name = "pvs"
search = { algorithm = "pvs", table_mb = 1 }
[[player]]
name = "uct"
search = { algorithm = "uct" }
"#;

/// A year is enough for a test.
pub fn valid() -> Validity {
    Validity::of(Duration::from_secs(365 * 86_400))
}

/// The coordinator and everything that opens it.
pub struct SecuredCluster {
    /// The coordinator; what it is asked for, an operator asks.
    pub cluster: Cluster,
    /// Who signs what it trusts.
    pub authority: Authority,
    credentials: tempfile::TempDir,
    run: String,
    secure: bool,
}

impl SecuredCluster {
    /// Opens a secured with TLS, certificates and tokens, and hands in a run. `more` is told to the coordinator beside.
    pub fn open(more: &[&str]) -> SecuredCluster {
        SecuredCluster::with(more, true)
    }

    /// The same with tokens alone: what is said can be written by hand.
    pub fn plain(more: &[&str]) -> SecuredCluster {
        SecuredCluster::with(more, false)
    }

    fn with(more: &[&str], secure: bool) -> SecuredCluster {
        let credentials = tempfile::tempdir().unwrap();
        let (authority, pair) = Authority::create().unwrap();
        pair.write(credentials.path(), "ca").unwrap();
        let hosts = ["localhost", "127.0.0.1"].map(str::to_string);
        authority.coordinator(&hosts, valid()).unwrap().write(credentials.path(), "coordinator").unwrap();
        authority.client("somebody", valid()).unwrap().write(credentials.path(), "client").unwrap();
        let path = |name: &str| credentials.path().join(name).to_str().unwrap().to_string();
        let asked = [
            ["--tls-cert", &path("coordinator.pem")],
            ["--tls-key", &path("coordinator.key")],
            ["--tls-client-ca", &path("ca.pem")],
            ["--tokens", &path("tokens.toml")],
        ];
        let asked = if secure { &asked[..] } else { &asked[3..] };
        let flags = asked.concat().into_iter().chain(more.iter().copied()).map(str::to_string).collect();
        let mut secured = SecuredCluster {
            cluster: Cluster::prepare(Duration::from_secs(60)),
            authority,
            credentials,
            run: String::new(),
            secure,
        };
        for (name, role) in [("op", Role::Operator), ("looks", Role::Viewer), ("plays", Role::Worker)] {
            secured.token(name, role);
        }
        let client = secured.flags(Some("op"), Some("client"));
        secured.cluster = secured.cluster.with_flags(flags, client);
        secured.cluster.restart();
        secured.run = secured.cluster.submit(SPEC);
        secured
    }

    /// A path among the credentials.
    pub fn path(&self, name: &str) -> String {
        self.credentials.path().join(name).to_str().unwrap().to_string()
    }

    /// The folder of the credentials.
    pub fn folder(&self) -> &Path {
        self.credentials.path()
    }

    /// Makes a token; its secret is in a file of its name.
    pub fn token(&self, name: &str, role: Role) {
        let file = self.path("tokens.toml");
        let secret = TokenFile::change(Path::new(&file), |file| file.create(name, role, "now")).unwrap();
        write_secret(Path::new(&self.path(&format!("{name}.token"))), &secret).unwrap();
    }

    /// Takes a token away.
    pub fn revoke(&self, name: &str) {
        TokenFile::change(Path::new(&self.path("tokens.toml")), |file| file.revoke(name)).unwrap();
    }

    /// Puts a certificate and its key among the credentials.
    pub fn keep(&self, pair: &Pair, name: &str) {
        pair.write(self.credentials.path(), name).unwrap();
    }

    /// What somebody shows: a token and a certificate, by their names.
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

    /// A call of somebody who shows this.
    pub fn call(&self, command: &[&str], token: Option<&str>, certificate: Option<&str>) -> Answer {
        let flags = self.flags(token, certificate);
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        agon(&[command, &["--coordinator", &self.cluster.address()], &flags].concat())
    }

    /// A way in for a program in the test.
    pub fn connector(&self, token: &str) -> Connector {
        let path = |name: &str| Some(self.credentials.path().join(name));
        let secret = |name: &str| path(name).filter(|_| self.secure);
        let credentials = ClientCredentials {
            authority: secret("ca.pem"),
            certificate: secret("client.pem"),
            key: secret("client.key"),
            token: path(&format!("{token}.token")),
        };
        Connector::new(&self.cluster.address(), credentials).unwrap()
    }

    /// The id of the run.
    pub fn run(&self) -> &str {
        &self.run
    }

    /// Where it listens.
    pub fn socket(&self) -> SocketAddr {
        let address = self.cluster.address();
        address.rsplit('/').next().unwrap().parse().unwrap()
    }

    /// What an operator sees of runs, workers, who of them is in quarantine, and what was written down, without what the
    /// clock changes.
    pub fn state(&self) -> (Value, Vec<String>, Value) {
        let mut runs = self.cluster.json(&["list"]);
        for run in runs["runs"].as_array_mut().unwrap() {
            for clocked in ["games_per_second", "seconds_left"] {
                run[clocked] = Value::Null;
            }
        }
        let workers = self.cluster.json(&["workers"])["workers"].as_array().unwrap().clone();
        let told =
            |worker: &Value| format!("{} {} {}", worker["worker"], worker["committed"], worker["flag"]);
        (runs, workers.iter().map(told).collect(), self.cluster.json(&["audit"]))
    }
}

/// A call that fails with this sentence, and with this exit code.
pub fn fails(what: &str, answer: &Answer, code: i32, sentence: &str) {
    assert!(answer.code == code && answer.err.contains(sentence), "{what}: {} {}", answer.code, answer.err);
    assert!(
        answer.out.is_empty() && !answer.err.contains("panicked"),
        "{what}: {} {}",
        answer.out,
        answer.err
    );
    println!("{what} | {}", answer.err.trim());
}
