//! `agon coordinator`: the service that schedules runs, leases bouts and stores results.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use agon_coordinator::metrics::MAX_SCRAPES;
use agon_coordinator::{Config, CoordinatorError};
use agon_transport::tls::TlsFiles;
use agon_transport::{Limits, warn_operator};
use clap::Args;
use tokio::net::{TcpListener, TcpSocket};
use tracing::warn;

use super::storage::{Storage, TakeOver};
use super::{Log, block_on, stop_signal};
use crate::fail::{Outcome, UsageError, bail_usage};
use crate::open_files::raise_limit;
use crate::settings::{Layers, address, number};

#[derive(Args)]
pub struct Coordinator {
    /// Address to listen on [default: 127.0.0.1:7400]
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    listen: Option<SocketAddr>,
    /// Data folder (with the state), or an object store as s3://bucket/prefix [default: agon-data]
    #[arg(long, value_name = "LOCATION")]
    data: Option<PathBuf>,
    /// State folder if the dataset is in an object store [default: agon-state]
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Address that serves /metrics, /healthz and /readyz [default: none]
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    metrics: Option<SocketAddr>,
    #[command(flatten)]
    log: Log,
    /// Configuration file; flags and variables override it [env: AGON_CONFIG]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    #[command(flatten)]
    take_over: TakeOver,
    /// Lease duration without progress, in milliseconds [default: 30000]
    #[arg(long, value_name = "MS", value_parser = number::<u32>("coordinator.lease_ms"), allow_negative_numbers = true)]
    lease_ms: Option<u32>,
    /// Heartbeat interval of workers, in milliseconds [default: 5000]
    #[arg(long, value_name = "MS", value_parser = number::<u32>("coordinator.heartbeat_ms"), allow_negative_numbers = true)]
    heartbeat_ms: Option<u32>,
    /// How long a worker may play one bout, in milliseconds; then the bout fails there [default: 86400000]
    #[arg(long, value_name = "MS", value_parser = number::<u32>("coordinator.max_bout_ms"), allow_negative_numbers = true)]
    max_bout_ms: Option<u32>,
    /// Most seconds between exports to the dataset; after that, a part is written with fewer bouts [default: 10]
    #[arg(long, value_name = "S", value_parser = number::<u32>("coordinator.export_seconds"), allow_negative_numbers = true)]
    export_seconds: Option<u32>,
    /// Bouts per part of the dataset [default: 500]
    #[arg(long, value_name = "BOUTS", value_parser = number::<u32>("coordinator.part_bouts"), allow_negative_numbers = true)]
    part_bouts: Option<u32>,
    #[command(flatten)]
    auth: AuthFlags,
    #[command(flatten)]
    limits: LimitFlags,
}

/// Authentication options.
#[derive(Args)]
#[command(next_help_heading = "Authentication")]
struct AuthFlags {
    /// Server certificate, which enables TLS; coordinator.pem of `agon certs`
    #[arg(long, value_name = "FILE")]
    tls_cert: Option<PathBuf>,
    /// Key of the server certificate
    #[arg(long, value_name = "FILE")]
    tls_key: Option<PathBuf>,
    /// Require client certificates of this authority; ca.pem of `agon certs`
    #[arg(long, value_name = "FILE")]
    tls_client_ca: Option<PathBuf>,
    /// Require a token from this file, which `agon token` writes
    #[arg(long, value_name = "FILE")]
    tokens: Option<PathBuf>,
    /// Listen on a public address without authentication, or accept tokens without TLS
    #[arg(long)]
    insecure: bool,
}

/// Limits on connections and calls.
#[derive(Args)]
#[command(next_help_heading = "Limits")]
struct LimitFlags {
    /// Concurrent connections, within the open-file limit of the system [default: 16384]
    #[arg(long, value_name = "N", value_parser = number::<u32>("coordinator.limits.connections"), allow_negative_numbers = true)]
    max_connections: Option<u32>,
    /// Concurrent calls per connection [default: 128]
    #[arg(long, value_name = "N", value_parser = number::<u32>("coordinator.limits.streams"), allow_negative_numbers = true)]
    max_streams: Option<u32>,
    /// Operator calls per second and caller [default: 500]
    #[arg(long, value_name = "N", value_parser = number::<u32>("coordinator.limits.calls_per_second"), allow_negative_numbers = true)]
    max_calls_per_second: Option<u32>,
    /// Milliseconds until a new connection must make its first call [default: 10000]
    #[arg(long, value_name = "MS", value_parser = number::<u32>("coordinator.limits.first_call_ms"), allow_negative_numbers = true)]
    first_call_ms: Option<u32>,
    /// Milliseconds until an idle connection is closed [default: 300000]
    #[arg(long, value_name = "MS", value_parser = number::<u32>("coordinator.limits.idle_ms"), allow_negative_numbers = true)]
    idle_ms: Option<u32>,
}

/// Connections that may wait to be accepted; the kernel reduces it to its own maximum, 4096 on most systems.
const WAITING_CONNECTIONS: u32 = 16_384;

/// Open files other than connections: state, dataset, log, metrics.
const OTHER_FILES: u64 = 64 + MAX_SCRAPES as u64;

/// The settings of a coordinator process.
struct Settings {
    listen: SocketAddr,
    metrics: Option<SocketAddr>,
    log: Log,
    insecure: bool,
    config: Config,
}

impl Coordinator {
    pub fn run(self) -> Outcome {
        let layers = Layers::open(self.config.as_deref())?;
        let Settings { listen, metrics, log, insecure, mut config } = self.settings(&layers)?;
        log.start("info");
        check_exposure(listen, &config, insecure)?;
        if let Some(address) = metrics.filter(|address| !address.ip().is_loopback()) {
            let what =
                "/metrics, /healthz and /readyz need no credentials, even with TLS; keep the address private";
            warn_operator(&format!("{address} can be reached from other machines: {what}"));
        }
        let connections = available_connections(config.limits.connections as u64);
        config.limits.connections = usize::try_from(connections).unwrap_or(usize::MAX);
        block_on(async move {
            let bind = |address: SocketAddr, flag: &str| {
                listen_on(address).map_err(|error| {
                    anyhow::anyhow!("{address} cannot be listened on: {error}; choose another with {flag}")
                })
            };
            let listener = bind(listen, "--listen")?;
            if let Some(address) = metrics {
                config.metrics = Some(bind(address, "--metrics")?);
            }
            match agon_coordinator::run(config, listener, stop_signal()).await {
                // Unusable credential files are found before anything changes.
                Err(CoordinatorError::Credentials(error)) => Err(UsageError(error.to_string()).into()),
                ended => ended.map(|()| ExitCode::SUCCESS).map_err(Into::into),
            }
        })
    }

    /// Merges the layers into settings.
    fn settings(self, layers: &Layers) -> anyhow::Result<Settings> {
        let default = SocketAddr::from(([127, 0, 0, 1], 7400));
        let listen = layers.value_or("coordinator.listen", self.listen, address, default)?;
        let data = layers.path_or("coordinator.data", self.data, "agon-data")?;
        let storage = Storage { data: data.into(), state: layers.path("coordinator.state", self.state)? };
        let lease = layers.number("coordinator.lease_ms", self.lease_ms, 30_000)?;
        let heartbeat = layers.number("coordinator.heartbeat_ms", self.heartbeat_ms, 5000)?;
        if heartbeat.saturating_mul(3) > lease {
            bail_usage!(
                "a lease of {lease} ms is shorter than three heartbeats of {heartbeat} ms; change --lease-ms or \
                 --heartbeat-ms"
            );
        }
        let mut config = storage.config(&self.take_over)?;
        config.timing.lease = Duration::from_millis(lease.into());
        config.timing.grace = config.timing.lease;
        config.timing.heartbeat = Duration::from_millis(heartbeat.into());
        let max_bout = layers.number("coordinator.max_bout_ms", self.max_bout_ms, 24 * 3_600_000)?;
        config.timing.max_bout = Duration::from_millis(max_bout.into());
        config.export.part_bouts = layers.number("coordinator.part_bouts", self.part_bouts, 500)?.into();
        let seconds = layers.number("coordinator.export_seconds", self.export_seconds, 10)?;
        config.export.interval = Duration::from_secs(seconds.into());
        let metrics = layers.value("coordinator.metrics", self.metrics, address)?;
        let log = self.log.choose(layers, "coordinator.log")?;
        config.tls = self.auth.tls(layers)?;
        config.tokens = layers.path("coordinator.tokens", self.auth.tokens)?;
        let insecure = layers.switch("coordinator.insecure", self.auth.insecure)?;
        config.limits = self.limits.limits(layers)?;
        Ok(Settings { listen, metrics, log, insecure, config })
    }

    /// Records every setting in the layers.
    pub fn record(self, layers: &Layers) -> anyhow::Result<()> {
        self.settings(layers).map(|_| ())
    }
}

impl AuthFlags {
    fn tls(&self, layers: &Layers) -> anyhow::Result<Option<TlsFiles>> {
        let certificate = layers.path("coordinator.tls_cert", self.tls_cert.clone())?;
        let key = layers.path("coordinator.tls_key", self.tls_key.clone())?;
        let client_authority = layers.path("coordinator.tls_client_ca", self.tls_client_ca.clone())?;
        match (certificate, key, client_authority) {
            (Some(certificate), Some(key), client_authority) => {
                Ok(Some(TlsFiles { certificate, key, client_authority }))
            }
            (None, None, None) => Ok(None),
            (None, None, Some(_)) => {
                bail_usage!("--tls-client-ca needs TLS; give --tls-cert and --tls-key too")
            }
            _ => bail_usage!("--tls-cert and --tls-key belong together; give both or none"),
        }
    }
}

impl LimitFlags {
    fn limits(self, layers: &Layers) -> anyhow::Result<Limits> {
        let default = Limits::default();
        let milliseconds = |time: Duration| u32::try_from(time.as_millis()).unwrap_or(u32::MAX);
        let number = |name: &'static str, flag, default| layers.number(name, flag, default);
        let connections = u32::try_from(default.connections).unwrap_or(u32::MAX);
        let connections = number("coordinator.limits.connections", self.max_connections, connections)?;
        let streams = number("coordinator.limits.streams", self.max_streams, default.streams)?;
        let calls = self.max_calls_per_second;
        let calls_per_second =
            number("coordinator.limits.calls_per_second", calls, default.calls_per_second)?;
        let first_call = milliseconds(default.first_call);
        let first_call = number("coordinator.limits.first_call_ms", self.first_call_ms, first_call)?;
        let idle = number("coordinator.limits.idle_ms", self.idle_ms, milliseconds(default.idle))?;
        let [first_call, idle] = [first_call, idle].map(|time| Duration::from_millis(time.into()));
        let connections = connections as usize;
        Ok(Limits { connections, streams, calls_per_second, first_call, idle, ..default })
    }
}

/// Rejects a public address without authentication, or with tokens in plain text, unless `insecure`.
fn check_exposure(listen: SocketAddr, config: &Config, insecure: bool) -> anyhow::Result<()> {
    if listen.ip().is_loopback() {
        return Ok(());
    }
    let authenticates =
        config.tokens.is_some() || config.tls.as_ref().is_some_and(|tls| tls.client_authority.is_some());
    let risk = match (authenticates, config.tls.is_some()) {
        (true, true) => return Ok(()),
        (true, false) => "tokens cross the network without TLS, where others can read them",
        (false, _) => "callers are not authenticated",
    };
    if insecure {
        warn_operator(&format!("INSECURE: {listen} can be reached from other machines, and {risk}"));
        return Ok(());
    }
    bail_usage!(
        "{listen} can be reached from other machines, and {risk}: listen on 127.0.0.1; or create certificates with \
         `agon certs` and tokens with `agon token`, and give --tls-cert, --tls-key and --tokens; or give --insecure in a \
         network that you trust"
    );
}

/// Listens on an address. When a fleet reconnects at once, connections wait until they are accepted. If more wait than the
/// kernel keeps (`net.core.somaxconn` is the most), it drops handshakes, and clients that took themselves for connected are
/// reset.
fn listen_on(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // As `TcpListener::bind` does: a restarted coordinator has its port at once.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(WAITING_CONNECTIONS)
}

/// Raises the limit of open files as needed, and returns the number of connections that it allows.
fn available_connections(wanted: u64) -> u64 {
    let files = raise_limit(wanted.saturating_add(OTHER_FILES));
    let available = files.saturating_sub(OTHER_FILES).max(1).min(wanted);
    if available < wanted {
        warn!(available, wanted, files, "connections limited by the open-file limit");
    }
    available
}
