//! How one comes in: a connection to a coordinator with everything that it asks for.
//!
//! Files are read at every connection, so that a certificate that was renewed or a token that was replaced counts from
//! the next one on.

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
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;
use tonic::body::Body;
use tonic::transport::{Channel, Endpoint};
use tower_service::Service;

use crate::error_text::{client_error_text, root_cause};
use crate::files::read_secret;
use crate::tls::client_config;
use crate::tokens::PREFIX;

/// What a client shows, and by what it knows the coordinator.
#[derive(Clone, Default, Debug)]
pub struct ClientCredentials {
    /// The authority of the coordinator's certificate.
    pub authority: Option<PathBuf>,
    /// A certificate, where the coordinator asks for one.
    pub certificate: Option<PathBuf>,
    /// Its key.
    pub key: Option<PathBuf>,
    /// A file with a token, where the coordinator asks for one.
    pub token: Option<PathBuf>,
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// A setting or a file makes no sense.
    #[error("{0}")]
    Credentials(String),
    /// Somebody answers, and the two do not come together.
    #[error("no connection to {url}: {reason}")]
    Handshake {
        /// Where.
        url: String,
        /// A sentence with its remedy.
        reason: String,
    },
    /// Nobody answers.
    #[error("nobody answers at {url}: {reason}")]
    Unreachable {
        /// Where.
        url: String,
        /// What the system says.
        reason: String,
    },
}

/// What became of a connection, as soon as anybody knows: an error of the bytes may kill it while a call is only being
/// made, which then hears of a closed connection and nothing else.
type FailureReason = Arc<OnceLock<String>>;

/// A connection that shows its token with every call.
#[derive(Clone)]
pub struct Connection {
    channel: Channel,
    token: Option<HeaderValue>,
    failure: FailureReason,
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

impl Service<Request<Body>> for Connection {
    type Response = Response<Body>;
    type Error = Failure;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Failure>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        self.channel.poll_ready(cx).map_err(|error| explained(error, &self.failure))
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        if let Some(token) = &self.token {
            request.headers_mut().insert(AUTHORIZATION, token.clone());
        }
        let (answer, failure) = (self.channel.call(request), Arc::clone(&self.failure));
        Box::pin(async move { answer.await.map_err(|error| explained(error, &failure)) })
    }
}

fn explained(error: tonic::transport::Error, failure: &FailureReason) -> Failure {
    match failure.get() {
        Some(sentence) => Box::new(Explained(sentence.clone())),
        None => error.into(),
    }
}

/// Where a coordinator is, and what to show it.
#[derive(Clone, Debug)]
pub struct Connector {
    endpoint: Endpoint,
    credentials: ClientCredentials,
}

impl From<Endpoint> for Connector {
    /// A coordinator that asks for nothing.
    fn from(endpoint: Endpoint) -> Connector {
        Connector { endpoint, credentials: ClientCredentials::default() }
    }
}

impl Connector {
    /// A coordinator by its address; one without a scheme is meant without TLS, unless there are credentials of it.
    pub fn new(address: &str, credentials: ClientCredentials) -> Result<Connector, ConnectError> {
        let wrong = |reason: String| Err(ConnectError::Credentials(reason));
        let secure = credentials.authority.is_some();
        let url = if address.contains("://") {
            address.to_string()
        } else {
            format!("{}://{address}", if secure { "https" } else { "http" })
        };
        let Ok(endpoint) = Endpoint::from_shared(url) else {
            return wrong(format!(
                "`{address}` is no address; give one as http://host:7400 or https://host:7400"
            ));
        };
        let (scheme, host) = (endpoint.uri().scheme_str(), endpoint.uri().host());
        match (scheme, host) {
            (_, None) => return wrong(format!("`{address}` names no host; give one as https://host:7400")),
            (Some("https"), _) if !secure => {
                return wrong(
                    "an https:// coordinator needs --tls-ca, the ca.pem of `agon certs`, to know it by"
                        .to_string(),
                );
            }
            (Some("http"), _) if secure || credentials.certificate.is_some() || credentials.key.is_some() => {
                return wrong(format!(
                    "certificates do nothing over `{address}`; say https://, or leave out --tls-ca, --tls-cert and \
                     --tls-key"
                ));
            }
            (Some("http" | "https"), _) => {}
            _ => return wrong(format!("`{address}` is neither http:// nor https://")),
        }
        Ok(Connector { endpoint, credentials })
    }

    /// Changes how the connection is kept.
    pub fn with(self, change: impl FnOnce(Endpoint) -> Endpoint) -> Connector {
        Connector { endpoint: change(self.endpoint), credentials: self.credentials }
    }

    /// Where the coordinator is.
    pub fn url(&self) -> String {
        self.endpoint.uri().to_string().trim_end_matches('/').to_string()
    }

    /// Whether a token would cross a network that others can read.
    pub fn sends_token_unencrypted(&self) -> bool {
        let host = self.endpoint.uri().host().unwrap_or_default().trim_matches(['[', ']']);
        let near = host == "localhost" || host.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback());
        self.credentials.token.is_some() && self.credentials.authority.is_none() && !near
    }

    /// Whether every file can be read and makes sense.
    pub fn check(&self) -> Result<(), ConnectError> {
        token(&self.credentials)
            .and(self.connector(&FailureReason::default()).map(|_| ()))
            .map_err(ConnectError::Credentials)
    }

    /// Connects.
    pub async fn connect(&self) -> Result<Connection, ConnectError> {
        let credentials = |reason: String| ConnectError::Credentials(reason);
        let token = token(&self.credentials).map_err(credentials)?;
        let failure = FailureReason::default();
        let connector = self.connector(&failure).map_err(credentials)?;
        let channel = self.endpoint.connect_with_connector(connector).await;
        let channel = channel.map_err(|error| {
            let (url, reason) = (self.url(), root_cause(&error));
            if is_sentence(&error) {
                ConnectError::Handshake { url, reason }
            } else {
                ConnectError::Unreachable { url, reason }
            }
        })?;
        Ok(Connection { channel, token, failure })
    }

    fn connector(&self, failure: &FailureReason) -> Result<StreamConnector, String> {
        let failure = Arc::clone(failure);
        if self.credentials.authority.is_none() {
            return Ok(StreamConnector { tls: None, failure });
        }
        let config = client_config(&self.credentials).map_err(|error| error.0)?;
        let host = self.endpoint.uri().host().unwrap_or_default().trim_matches(['[', ']']).to_string();
        let name =
            ServerName::try_from(host.clone()).map_err(|_| format!("`{host}` is no name of a host"))?;
        Ok(StreamConnector { tls: Some((config, name)), failure })
    }
}

/// Whether an error was made into a sentence where it happened.
fn is_sentence(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        if inner.and_then(|inner| inner.downcast_ref::<Explained>()).is_some() {
            return true;
        }
        next = error.source();
    }
    false
}

/// A sentence in the slot of an error.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Explained(String);

fn told(error: io::Error) -> io::Error {
    match client_error_text(&error) {
        Some(sentence) => io::Error::new(error.kind(), Explained(sentence)),
        None => error,
    }
}

/// Whatever is longer is another file.
const MAX_TOKEN_BYTES: usize = 1024;

/// The header that shows a token.
fn token(credentials: &ClientCredentials) -> Result<Option<HeaderValue>, String> {
    let Some(path) = &credentials.token else { return Ok(None) };
    let text = read_secret(path, "the token file").map_err(|error| error.0)?;
    let secret = text.trim();
    let is_token = secret.len() <= MAX_TOKEN_BYTES && secret.starts_with(PREFIX);
    let header = HeaderValue::try_from(format!("Bearer {secret}"));
    match header {
        Ok(mut header) if is_token && !secret.contains(char::is_whitespace) => {
            header.set_sensitive(true);
            Ok(Some(header))
        }
        _ => Err(format!(
            "{} has no token: it must hold the one line that `agon token create` printed, which begins with {PREFIX}",
            path.display()
        )),
    }
}

/// Makes the connection of a channel.
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
            let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_string();
            let port = uri.port_u16().unwrap_or(if tls.is_some() { 443 } else { 80 });
            let stream = TcpStream::connect((host, port)).await?;
            stream.set_nodelay(true)?;
            let bytes = match tls {
                None => Bytes::Plain(stream),
                Some((config, name)) => {
                    let stream = TlsConnector::from(config).connect(name, stream).await;
                    Bytes::Secure(Box::new(stream.map_err(|error| told(explain_disconnect(error)))?))
                }
            };
            Ok(TokioIo::new(ClientStream { bytes, received: false, failure }))
        })
    }
}

/// The bytes of a connection; what goes wrong is status_text in sentences.
struct ClientStream {
    bytes: Bytes,
    /// Whether anything was answered.
    received: bool,
    failure: FailureReason,
}

enum Bytes {
    Plain(TcpStream),
    Secure(Box<TlsStream<TcpStream>>),
}

/// The first byte of what TLS says to somebody who does not speak it: an alert.
const TLS_ALERT: u8 = 0x15;
/// The first byte of what a coordinator says: that of the length of a frame, which is short.
const HTTP2_FIRST_BYTE: u8 = 0;

fn sentence(kind: io::ErrorKind, text: &str) -> io::Error {
    io::Error::new(kind, Explained(text.to_string()))
}

/// What it means that somebody took the connection and hung up without a word.
fn explain_disconnect(error: io::Error) -> io::Error {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    match error.kind() {
        kind @ (UnexpectedEof | ConnectionReset | ConnectionAborted | BrokenPipe) => sentence(
            kind,
            "whoever is there hung up without a word: the coordinator has as many connections as it takes \
             (--max-connections), or it has just ended; try again in a moment",
        ),
        _ => error,
    }
}

impl AsyncRead for ClientStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let ClientStream { bytes, received, failure } = self.get_mut();
        let before = buffer.filled().len();
        let read = match bytes {
            Bytes::Plain(stream) => Pin::new(stream).poll_read(cx, buffer),
            Bytes::Secure(stream) => Pin::new(stream).poll_read(cx, buffer).map_err(told),
        };
        let read = match (read, buffer.filled().get(before)) {
            (Poll::Ready(Ok(())), Some(&TLS_ALERT)) if !*received && matches!(bytes, Bytes::Plain(_)) => {
                Poll::Ready(Err(sentence(
                    io::ErrorKind::InvalidData,
                    "the coordinator speaks TLS; say https:// and give --tls-ca, the ca.pem of `agon certs`",
                )))
            }
            (Poll::Ready(Ok(())), Some(&first)) if !*received && first != HTTP2_FIRST_BYTE => {
                Poll::Ready(Err(sentence(
                    io::ErrorKind::InvalidData,
                    "whoever answers there is no coordinator; say where one is with --coordinator, such as \
                 http://127.0.0.1:7400",
                )))
            }
            (Poll::Ready(Ok(())), None) if !*received => {
                Poll::Ready(Err(explain_disconnect(io::ErrorKind::UnexpectedEof.into())))
            }
            (Poll::Ready(Err(error)), _) if !*received => Poll::Ready(Err(explain_disconnect(error))),
            (read, first) => {
                *received |= first.is_some();
                read
            }
        };
        if let Poll::Ready(Err(error)) = &read {
            let _ = failure.set(error.to_string());
        }
        read
    }
}

impl AsyncWrite for ClientStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().bytes {
            Bytes::Plain(stream) => Pin::new(stream).poll_write(cx, data),
            Bytes::Secure(stream) => Pin::new(stream).poll_write(cx, data),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().bytes {
            Bytes::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Bytes::Secure(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().bytes {
            Bytes::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Bytes::Secure(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().bytes {
            Bytes::Plain(stream) => Pin::new(stream).poll_write_vectored(cx, data),
            Bytes::Secure(stream) => Pin::new(stream).poll_write_vectored(cx, data),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match &self.bytes {
            Bytes::Plain(stream) => stream.is_write_vectored(),
            Bytes::Secure(stream) => stream.is_write_vectored(),
        }
    }
}
