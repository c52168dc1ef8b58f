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
use crate::files::{read, read_secret, warn_if_readable};
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

/// The texts of TLS files, each read once.
struct TlsTexts {
    certificate: Result<String, CredentialError>,
    key: Result<String, CredentialError>,
    client_authority: Option<Result<String, CredentialError>>,
}

impl TlsFiles {
    fn read(&self) -> TlsTexts {
        TlsTexts {
            certificate: read(&self.certificate, "certificate"),
            key: read(&self.key, "key"),
            client_authority: self.client_authority.as_deref().map(|path| read(path, "certificate")),
        }
    }

    /// Builds the configuration from the texts of the files.
    fn config(&self, texts: TlsTexts) -> Result<Arc<ServerConfig>, CredentialError> {
        let provider = Arc::new(default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| CredentialError(error.to_string()))?;
        let builder = match (&self.client_authority, texts.client_authority) {
            (Some(path), Some(text)) => {
                let roots = Arc::new(authorities(path, &text?)?);
                let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider)
                    .build()
                    .map_err(|error| CredentialError(format!("{}: {error}", path.display())))?;
                builder.with_client_cert_verifier(verifier)
            }
            _ => builder.with_no_client_auth(),
        };
        let chain = parse_certificates(&self.certificate, &texts.certificate?)?;
        warn_if_readable(&self.key);
        let mut config = builder
            .with_single_cert(chain, parse_key(&self.key, &texts.key?)?)
            .map_err(|error| mismatch(&self.certificate, &self.key, &error))?;
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(Arc::new(config))
    }
}

impl TlsTexts {
    /// Returns the digest of the texts, or of why they cannot be read. Times are not compared: a mounted secret changes
    /// behind a link.
    fn digest(&self) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new();
        for text in
            [Some(&self.certificate), Some(&self.key), self.client_authority.as_ref()].into_iter().flatten()
        {
            let (is_read, text) = match text {
                Ok(text) => (1, text),
                Err(error) => (0, &error.0),
            };
            hasher.update(&[is_read]).update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
        }
        hasher.finalize()
    }
}

/// The TLS configuration of a running coordinator.
pub(crate) struct ServerTls {
    files: TlsFiles,
    /// The digest of what was read last.
    seen: Mutex<blake3::Hash>,
    config: Mutex<Arc<ServerConfig>>,
}

impl ServerTls {
    /// Loads the files.
    pub(crate) fn open(files: TlsFiles) -> Result<ServerTls, CredentialError> {
        let texts = files.read();
        let seen = Mutex::new(texts.digest());
        Ok(ServerTls { config: Mutex::new(files.config(texts)?), seen, files })
    }

    pub(crate) fn requires_client_certificates(&self) -> bool {
        self.files.client_authority.is_some()
    }

    /// Returns the configuration for the next handshake.
    pub(crate) fn current(&self) -> Arc<ServerConfig> {
        Arc::clone(&lock(&self.config))
    }

    /// Reloads the files if they changed, and returns whether they did. Files that are unreadable or invalid, such as in the
    /// middle of an update, change nothing; each such state is one error.
    pub(crate) fn refresh(&self) -> Result<bool, CredentialError> {
        // One read for the comparison and for the configuration: a second one may fail, and the change would be lost.
        let texts = self.files.read();
        let digest = texts.digest();
        if std::mem::replace(&mut *lock(&self.seen), digest) == digest {
            return Ok(false);
        }
        let config = self.files.config(texts)?;
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
        .with_root_certificates(authorities(authority, &read(authority, "certificate")?)?);
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
    let secret = parse_key(key, &read_secret(key, "key")?)?;
    Ok((chain, secret))
}

/// Parses the private key in the text of a file.
fn parse_key(path: &Path, text: &str) -> Result<PrivateKeyDer<'static>, CredentialError> {
    PrivateKeyDer::from_pem_slice(text.as_bytes())
        .map_err(|_| CredentialError(format!("{} contains no PEM private key", path.display())))
}

/// Reads the certificates of a file; at least one.
pub(crate) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, CredentialError> {
    parse_certificates(path, &read(path, "certificate")?)
}

/// Parses the certificates in the text of a file; at least one.
fn parse_certificates(path: &Path, text: &str) -> Result<Vec<CertificateDer<'static>>, CredentialError> {
    let list: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text.as_bytes()).collect();
    let list = list.unwrap_or_default();
    if list.is_empty() {
        return Err(CredentialError(format!("{} contains no PEM certificate", path.display())));
    }
    Ok(list)
}

/// Returns the authorities in the text of a file.
fn authorities(path: &Path, text: &str) -> Result<RootCertStore, CredentialError> {
    let mut roots = RootCertStore::empty();
    for certificate in parse_certificates(path, text)? {
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

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use std::fs;
    use std::time::Duration;

    use super::*;
    use crate::authority::{Authority, Validity};

    const DAY: Duration = Duration::from_secs(86_400);

    #[test]
    fn unreadable_files_delay_a_reload_and_do_not_lose_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let (authority, one) = Authority::create().unwrap();
        one.write(folder.path(), "ca").unwrap();
        let server = authority.issue_server(&["localhost".to_string()], Validity::lasting(DAY));
        server.unwrap().write(folder.path(), "server").unwrap();
        let files = TlsFiles {
            certificate: path("server.pem"),
            key: path("server.key"),
            client_authority: Some(path("ca.pem")),
        };
        let tls = ServerTls::open(files.clone()).unwrap();
        assert!(!tls.refresh().unwrap());
        let before = tls.current();
        // What was read is what is used: the files change after they were read.
        let other = Authority::create().unwrap().1.certificate;
        fs::write(path("ca.pem"), &other).unwrap();
        let texts = files.read();
        fs::remove_file(path("ca.pem")).unwrap();
        assert!(files.config(texts).is_ok());
        // Each state that cannot be used is one error.
        for broken in [None, Some(""), Some("-----BEGIN CERTIFICATE-----")] {
            if let Some(text) = broken {
                fs::write(path("ca.pem"), text).unwrap();
            }
            assert!(tls.refresh().is_err(), "{broken:?}");
            assert!(!tls.refresh().unwrap(), "{broken:?}");
            assert!(Arc::ptr_eq(&tls.current(), &before));
        }
        fs::write(path("ca.pem"), &other).unwrap();
        assert!(tls.refresh().unwrap());
        assert!(!Arc::ptr_eq(&tls.current(), &before));
    }
}
