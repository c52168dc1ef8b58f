//! Client connections to a coordinator.
//!
//! Credential files are read for every connection, so that renewed ones take effect on reconnect.

use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use http::header::AUTHORIZATION;
use http::{HeaderValue, Request, Response, Uri};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;
use tonic::body::Body;
use tonic::transport::{Channel, Endpoint};
use tower_service::Service;

use crate::error_text::{client_error_text, root_cause};
use crate::files::read_secret;
use crate::stream::ByteStream;
use crate::tls::client_config;
use crate::tokens::PREFIX;

/// The credential files of a client.
#[derive(Clone, Default, Debug)]
pub struct ClientCredentials {
    /// The authority of the coordinator's certificate.
    pub authority: Option<PathBuf>,
    /// The client certificate, if the coordinator requires one.
    pub certificate: Option<PathBuf>,
    /// The key of the client certificate.
    pub key: Option<PathBuf>,
    /// The token file, if the coordinator requires a token.
    pub token: Option<PathBuf>,
}

/// A failed connection attempt.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// An invalid address or credential file.
    #[error("{0}")]
    Credentials(String),
    /// The server was reached but the connection could not be established.
    #[error("cannot connect to {url}: {reason}")]
    Handshake {
        /// The coordinator's URL.
        url: String,
        /// The cause and its remedy.
        reason: String,
    },
    /// The server could not be reached.
    #[error("cannot reach {url}: {reason}")]
    Unreachable {
        /// The coordinator's URL.
        url: String,
        /// The operating system's error.
        reason: String,
    },
}

/// The reason why the stream failed. A call that starts at that moment receives only "connection closed" from HTTP/2.
type FailureReason = Arc<OnceLock<String>>;

/// A connection that adds its token to every call.
#[derive(Clone)]
pub struct Connection {
    channel: Channel,
    token: Option<HeaderValue>,
    failure: FailureReason,
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;

impl Service<Request<Body>> for Connection {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.channel.poll_ready(cx).map_err(|error| with_reason(error, &self.failure))
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        if let Some(token) = &self.token {
            request.headers_mut().insert(AUTHORIZATION, token.clone());
        }
        let (response, failure) = (self.channel.call(request), Arc::clone(&self.failure));
        Box::pin(async move { response.await.map_err(|error| with_reason(error, &failure)) })
    }
}

fn with_reason(error: tonic::transport::Error, failure: &FailureReason) -> BoxError {
    match failure.get() {
        Some(reason) => Box::new(ExplainedError(reason.clone())),
        None => error.into(),
    }
}

/// The address of a coordinator and the credentials for it.
#[derive(Clone, Debug)]
pub struct Connector {
    endpoint: Endpoint,
    credentials: ClientCredentials,
}

impl From<Endpoint> for Connector {
    /// Connects without credentials.
    fn from(endpoint: Endpoint) -> Connector {
        Connector { endpoint, credentials: ClientCredentials::default() }
    }
}

impl Connector {
    /// Creates a connector. An address without a scheme uses TLS if there is an authority.
    pub fn new(address: &str, credentials: ClientCredentials) -> Result<Connector, ConnectError> {
        let invalid = |reason: String| Err(ConnectError::Credentials(reason));
        let secure = credentials.authority.is_some();
        let url = if address.contains("://") {
            address.to_string()
        } else {
            format!("{}://{address}", if secure { "https" } else { "http" })
        };
        let Ok(endpoint) = Endpoint::from_shared(url) else {
            return invalid(format!(
                "invalid address `{address}`; use http://host:7400 or https://host:7400"
            ));
        };
        let (scheme, host) = (endpoint.uri().scheme_str(), endpoint.uri().host());
        match (scheme, host) {
            (_, None) => return invalid(format!("address `{address}` has no host; use https://host:7400")),
            (Some("https"), _) if !secure => {
                return invalid(
                    "an https:// coordinator requires --tls-ca, the ca.pem of `agon certs`".to_string(),
                );
            }
            (Some("http"), _) if secure || credentials.certificate.is_some() || credentials.key.is_some() => {
                return invalid(format!(
                    "`{address}` does not use TLS; use https://, or omit --tls-ca, --tls-cert and --tls-key"
                ));
            }
            (Some("http" | "https"), _) => {}
            _ => {
                return invalid(format!(
                    "invalid address `{address}`; the scheme must be http:// or https://"
                ));
            }
        }
        Ok(Connector { endpoint, credentials })
    }

    /// Configures the endpoint, such as its timeouts.
    pub fn with(self, configure: impl FnOnce(Endpoint) -> Endpoint) -> Connector {
        Connector { endpoint: configure(self.endpoint), credentials: self.credentials }
    }

    /// Returns the coordinator's URL.
    pub fn url(&self) -> String {
        self.endpoint.uri().to_string().trim_end_matches('/').to_string()
    }

    /// Returns whether a token would cross a network unencrypted.
    pub fn sends_token_unencrypted(&self) -> bool {
        let host = host(self.endpoint.uri());
        let is_local = host == "localhost" || host.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback());
        self.credentials.token.is_some() && self.credentials.authority.is_none() && !is_local
    }

    /// Validates the credential files.
    pub fn check(&self) -> Result<(), ConnectError> {
        authorization(&self.credentials)
            .and(self.stream_connector(&FailureReason::default()).map(|_| ()))
            .map_err(ConnectError::Credentials)
    }

    /// Reads the credential files and connects.
    pub async fn connect(&self) -> Result<Connection, ConnectError> {
        let token = authorization(&self.credentials).map_err(ConnectError::Credentials)?;
        let failure = FailureReason::default();
        let connector = self.stream_connector(&failure).map_err(ConnectError::Credentials)?;
        let channel = self.endpoint.connect_with_connector(connector).await;
        let channel = channel.map_err(|error| {
            let (url, reason) = (self.url(), root_cause(&error));
            if is_explained(&error) {
                ConnectError::Handshake { url, reason }
            } else {
                ConnectError::Unreachable { url, reason }
            }
        })?;
        Ok(Connection { channel, token, failure })
    }

    fn stream_connector(&self, failure: &FailureReason) -> Result<StreamConnector, String> {
        let failure = Arc::clone(failure);
        if self.credentials.authority.is_none() {
            return Ok(StreamConnector { tls: None, failure });
        }
        let config = client_config(&self.credentials).map_err(|error| error.0)?;
        let host = host(self.endpoint.uri());
        let name =
            ServerName::try_from(host.to_string()).map_err(|_| format!("invalid host name `{host}`"))?;
        Ok(StreamConnector { tls: Some((config, name)), failure })
    }
}

/// Returns whether an error or one of its sources was explained by this module.
fn is_explained(error: &(dyn std::error::Error + 'static)) -> bool {
    std::iter::successors(Some(error), |error| error.source()).any(|error| {
        let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        matches!(inner, Some(inner) if inner.is::<ExplainedError>())
    })
}

/// An error message with its remedy.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct ExplainedError(String);

fn explained(kind: io::ErrorKind, message: &str) -> io::Error {
    io::Error::new(kind, ExplainedError(message.to_string()))
}

fn explain_tls(error: io::Error) -> io::Error {
    match client_error_text(&error) {
        Some(message) => explained(error.kind(), &message),
        None => error,
    }
}

/// Explains that the server closed the connection before its first byte.
fn explain_disconnect(error: io::Error) -> io::Error {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    match error.kind() {
        kind @ (UnexpectedEof | ConnectionReset | ConnectionAborted | BrokenPipe) => explained(
            kind,
            "the server closed the connection without a response: the coordinator has reached --max-connections or has \
             just stopped; retry later",
        ),
        _ => error,
    }
}

/// Explains that an established connection was cut off: rustls refers to its manual instead.
fn explain_cut(error: io::Error) -> io::Error {
    match error.kind() {
        kind @ io::ErrorKind::UnexpectedEof => explained(
            kind,
            "the connection was cut off: the coordinator was killed, or the network between both machines failed",
        ),
        _ => error,
    }
}

/// The maximum length of a token; longer files are not token files.
const MAX_TOKEN_BYTES: usize = 1024;

/// Reads the token file into an `Authorization` header.
fn authorization(credentials: &ClientCredentials) -> Result<Option<HeaderValue>, String> {
    let Some(path) = &credentials.token else { return Ok(None) };
    let text = read_secret(path, "token file").map_err(|error| error.0)?;
    let secret = text.trim();
    let is_token = secret.len() <= MAX_TOKEN_BYTES
        && secret.starts_with(PREFIX)
        && !secret.contains(char::is_whitespace);
    match HeaderValue::try_from(format!("Bearer {secret}")) {
        Ok(mut header) if is_token => {
            header.set_sensitive(true);
            Ok(Some(header))
        }
        _ => Err(format!(
            "{} contains no token; it must hold the one line printed by `agon token create`, which starts with {PREFIX}",
            path.display()
        )),
    }
}

/// Returns the host of a URI, without the brackets of an IPv6 address.
fn host(uri: &Uri) -> &str {
    uri.host().unwrap_or_default().trim_matches(['[', ']'])
}

/// Opens the TCP or TLS stream of a channel.
struct StreamConnector {
    tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
    failure: FailureReason,
}

impl Service<Uri> for StreamConnector {
    type Response = TokioIo<ClientStream>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<TokioIo<ClientStream>>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let (tls, failure) = (self.tls.clone(), Arc::clone(&self.failure));
        Box::pin(async move {
            let is_tls = tls.is_some();
            let port = uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
            let tcp = TcpStream::connect((host(&uri), port)).await?;
            tcp.set_nodelay(true)?;
            let stream: Box<dyn ByteStream> = match tls {
                None => Box::new(tcp),
                Some((config, name)) => {
                    let stream = TlsConnector::from(config).connect(name, tcp).await;
                    Box::new(stream.map_err(|error| explain_tls(explain_disconnect(error)))?)
                }
            };
            Ok(TokioIo::new(ClientStream { stream, is_tls, received: false, failure }))
        })
    }
}

/// A client's connection. It explains the errors of the first read, and keeps them for pending calls.
struct ClientStream {
    stream: Box<dyn ByteStream>,
    is_tls: bool,
    /// Whether the server has sent any bytes.
    received: bool,
    failure: FailureReason,
}

/// The first byte from a TLS server that received plain HTTP/2: a TLS alert.
const TLS_ALERT: u8 = 0x15;
/// The first byte from an HTTP/2 server: the high byte of a small frame's length.
const HTTP2_FIRST_BYTE: u8 = 0;

impl ClientStream {
    /// Explains the result of the first read, whose first byte is `first`.
    fn explain_first_read(&self, read: io::Result<()>, first: Option<u8>) -> io::Result<()> {
        let message = match (read, first) {
            (Err(error), _) => return Err(explain_disconnect(error)),
            (Ok(()), None) => return Err(explain_disconnect(io::ErrorKind::UnexpectedEof.into())),
            (Ok(()), Some(HTTP2_FIRST_BYTE)) => return Ok(()),
            (Ok(()), Some(TLS_ALERT)) if !self.is_tls => {
                "the coordinator requires TLS; use https:// and set --tls-ca to the ca.pem of `agon certs`"
            }
            (Ok(()), Some(_)) => {
                "the server is not a coordinator; set --coordinator to the address of one, such as \
                 http://127.0.0.1:7400"
            }
        };
        Err(explained(io::ErrorKind::InvalidData, message))
    }
}

impl AsyncRead for ClientStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let Poll::Ready(mut read) = Pin::new(&mut self.stream).poll_read(cx, buffer) else {
            return Poll::Pending;
        };
        if self.is_tls {
            read = read.map_err(explain_tls);
        }
        if self.received {
            read = read.map_err(explain_cut);
        } else {
            read = self.explain_first_read(read, buffer.filled().get(before).copied());
            self.received = read.is_ok();
        }
        if let Err(error) = &read {
            let _ = self.failure.set(error.to_string());
        }
        Poll::Ready(read)
    }
}

impl AsyncWrite for ClientStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, data)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, data)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
