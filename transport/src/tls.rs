//! TLS 1.3 for both sides, from files that are reloaded when they change. Sessions are never resumed, so that every
//! connection presents its certificate.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use agon_games::printable::is_printable;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use tokio_rustls::rustls::{ClientConfig, ConfigBuilder, RootCertStore, ServerConfig, client};

use crate::caller::Caller;
use crate::connector::ClientCredentials;
use crate::files::{WatchedFiles, read, read_secret};
use crate::{CredentialError, lock};

/// The ALPN name of HTTP/2.
const PROTOCOL: &[u8] = b"h2";

/// The TLS files of a coordinator.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// The server certificate and its intermediates.
    pub certificate: PathBuf,
    /// The private key.
    pub key: PathBuf,
    /// The authority of client certificates; if set, clients must present one.
    pub client_authority: Option<PathBuf>,
}

impl TlsFiles {
    fn load(&self) -> Result<Arc<ServerConfig>, CredentialError> {
        let provider = Arc::new(default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| CredentialError(error.to_string()))?;
        let builder = match &self.client_authority {
            None => builder.with_no_client_auth(),
            Some(path) => {
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(authorities(path)?), provider)
                        .build()
                        .map_err(|error| CredentialError(format!("{}: {error}", path.display())))?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let (chain, key) = identity(&self.certificate, &self.key)?;
        let mut config = builder
            .with_single_cert(chain, key)
            .map_err(|error| mismatch(&self.certificate, &self.key, &error))?;
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(Arc::new(config))
    }
}

/// The TLS configuration of a running coordinator.
pub(crate) struct ServerTls {
    files: TlsFiles,
    watched: WatchedFiles,
    config: Mutex<Arc<ServerConfig>>,
}

impl ServerTls {
    /// Loads the files.
    pub(crate) fn open(files: TlsFiles) -> Result<ServerTls, CredentialError> {
        let mut paths = vec![files.certificate.clone(), files.key.clone()];
        paths.extend(files.client_authority.clone());
        let watched = WatchedFiles::new(paths);
        Ok(ServerTls { config: Mutex::new(files.load()?), watched, files })
    }

    pub(crate) fn requires_client_certificates(&self) -> bool {
        self.files.client_authority.is_some()
    }

    /// Returns the configuration for the next handshake.
    pub(crate) fn current(&self) -> Arc<ServerConfig> {
        Arc::clone(&lock(&self.config))
    }

    /// Reloads the files if they changed, and returns whether they did. Invalid files, such as in the middle of an
    /// update, change nothing.
    pub(crate) fn refresh(&self) -> Result<bool, CredentialError> {
        if !self.watched.changed() {
            return Ok(false);
        }
        let config = self.files.load()?;
        *lock(&self.config) = config;
        Ok(true)
    }
}

/// Loads the client's configuration.
pub(crate) fn client_config(credentials: &ClientCredentials) -> Result<Arc<ClientConfig>, CredentialError> {
    let Some(authority) = &credentials.authority else {
        return Err(CredentialError(
            "an https:// coordinator requires --tls-ca, the ca.pem of `agon certs`".to_string(),
        ));
    };
    let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| CredentialError(error.to_string()))?
        .with_root_certificates(authorities(authority)?);
    let mut config = with_identity(builder, credentials)?;
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    config.resumption = client::Resumption::disabled();
    Ok(Arc::new(config))
}

fn with_identity(
    builder: ConfigBuilder<ClientConfig, client::WantsClientCert>,
    credentials: &ClientCredentials,
) -> Result<ClientConfig, CredentialError> {
    match (&credentials.certificate, &credentials.key) {
        (None, None) => Ok(builder.with_no_client_auth()),
        (Some(certificate), Some(key)) => {
            let (chain, secret) = identity(certificate, key)?;
            builder.with_client_auth_cert(chain, secret).map_err(|error| mismatch(certificate, key, &error))
        }
        _ => Err(CredentialError("--tls-cert and --tls-key belong together; give both or none".to_string())),
    }
}

fn mismatch(certificate: &Path, key: &Path, error: &tokio_rustls::rustls::Error) -> CredentialError {
    CredentialError(format!(
        "certificate {} and key {} do not match: {error}",
        certificate.display(),
        key.display()
    ))
}

fn identity(
    certificate: &Path,
    key: &Path,
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), CredentialError> {
    let chain = certificates(certificate)?;
    let text = read_secret(key, "key")?;
    let key = PrivateKeyDer::from_pem_slice(text.as_bytes())
        .map_err(|_| CredentialError(format!("{} contains no PEM private key", key.display())))?;
    Ok((chain, key))
}

/// Reads the certificates of a file; at least one.
pub(crate) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, CredentialError> {
    let text = read(path, "certificate")?;
    let list: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text.as_bytes()).collect();
    let list = list.unwrap_or_default();
    if list.is_empty() {
        return Err(CredentialError(format!("{} contains no PEM certificate", path.display())));
    }
    Ok(list)
}

fn authorities(path: &Path) -> Result<RootCertStore, CredentialError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate).map_err(|error| {
            CredentialError(format!("{} is not a certificate authority: {error}", path.display()))
        })?;
    }
    Ok(roots)
}

/// Returns the caller of a client certificate, identified by its subject.
pub(crate) fn caller(certificate: &CertificateDer<'_>) -> Caller {
    let subject = webpki::EndEntityCert::try_from(certificate).map(|parsed| parsed.subject().to_vec());
    let subject = subject.unwrap_or_else(|_| certificate.to_vec());
    let digest = blake3::hash(&subject).to_hex();
    let name = common_name(&subject).unwrap_or("unnamed");
    // The digest distinguishes subjects that share a common name.
    Caller::certificate(format!("{name} {}", &digest[..8]))
}

/// Returns the common name of a subject: the text after the object identifier 2.5.4.3, a tag and a length.
fn common_name(subject: &[u8]) -> Option<&str> {
    const COMMON_NAME_OID: [u8; 5] = [0x06, 0x03, 0x55, 0x04, 0x03];
    let position = subject.windows(COMMON_NAME_OID.len()).position(|window| window == COMMON_NAME_OID)?;
    let (&[_tag, length], rest) = subject.get(position + COMMON_NAME_OID.len()..)?.split_first_chunk()?;
    let text = rest.get(..usize::from(length)).filter(|_| length < 0x80)?;
    std::str::from_utf8(text).ok().filter(|text| is_printable(text))
}
