//! Error messages for failed connections and calls, each with its remedy.

use std::error::Error;
use std::io;

use agon_games::printable::printable;
use tokio_rustls::rustls::{AlertDescription as Alert, CertificateError, Error as TlsError};
use tonic::Status;

/// Returns the message of the innermost source.
pub fn root_cause(error: &(dyn Error + 'static)) -> String {
    let mut last = error;
    while let Some(source) = last.source() {
        last = source;
    }
    last.to_string()
}

/// Returns the message of a failed call: the coordinator's, or that of the failed connection. The server's text is made
/// printable.
pub fn status_text(status: &Status) -> String {
    printable(&status.source().map_or_else(|| status.message().to_string(), root_cause)).into_owned()
}

fn tls_error(error: &io::Error) -> Option<&TlsError> {
    error.get_ref()?.downcast_ref()
}

/// Returns the client's message for a TLS error, or `None` for any other error.
pub(crate) fn client_error_text(error: &io::Error) -> Option<String> {
    let text = match tls_error(error)? {
        TlsError::InvalidCertificate(error) => {
            return Some(certificate_error_text(error, "the coordinator's certificate"));
        }
        TlsError::InvalidMessage(_) => {
            "the server does not speak TLS; use http://, or start the coordinator with --tls-cert and --tls-key"
        }
        TlsError::AlertReceived(Alert::CertificateRequired | Alert::NoCertificate) => {
            "the coordinator requires a client certificate; set --tls-cert and --tls-key to client.pem and \
             client.key of `agon certs`"
        }
        TlsError::AlertReceived(Alert::CertificateExpired) => {
            "the client certificate has expired or is not yet valid; renew it with `agon certs`, and check the \
             clocks of both machines"
        }
        TlsError::AlertReceived(Alert::UnknownCA | Alert::DecryptError | Alert::CertificateUnknown) => {
            "the coordinator does not trust the authority of the client certificate; use one that was issued by \
             the coordinator's --tls-client-ca"
        }
        TlsError::AlertReceived(Alert::BadCertificate | Alert::UnsupportedCertificate) => {
            "the coordinator rejected the certificate, which is not a client certificate; use client.pem and \
             client.key of `agon certs`"
        }
        other => return Some(format!("TLS failed: {other}")),
    };
    Some(text.to_string())
}

/// Returns the coordinator's log text for a failed handshake.
pub(crate) fn server_error_text(error: &io::Error) -> String {
    let text = match tls_error(error) {
        Some(TlsError::NoCertificatesPresented) => "the client presented no certificate",
        Some(TlsError::InvalidCertificate(error)) => {
            return certificate_error_text(error, "the client's certificate");
        }
        Some(TlsError::InvalidMessage(_)) => "the client does not speak TLS; it must connect with https://",
        Some(TlsError::AlertReceived(Alert::UnknownCA | Alert::DecryptError)) => {
            "the client does not trust the authority of the server certificate; it needs ca.pem as --tls-ca"
        }
        Some(TlsError::AlertReceived(Alert::CertificateExpired)) => {
            "the server certificate has expired or is not yet valid; renew it with `agon certs`"
        }
        Some(TlsError::AlertReceived(Alert::BadCertificate)) => {
            "the server certificate is not valid for the name that the client used; issue one with `agon certs --host`"
        }
        Some(other) => return other.to_string(),
        None => return error.to_string(),
    };
    text.to_string()
}

fn certificate_error_text(error: &CertificateError, subject: &str) -> String {
    let problem = match error {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "has expired; renew it with `agon certs`, and check the clocks of both machines"
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "is not yet valid; check the clocks of both machines"
        }
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "was issued by an unknown authority; both sides need the ca.pem of the same `agon certs`"
        }
        CertificateError::NotValidForName => "is for other names; issue one with `agon certs --host NAME`",
        CertificateError::NotValidForNameContext { expected, presented } => {
            let expected = expected.to_str();
            let presented = presented.iter().map(|name| host_of_name(name)).collect::<Vec<_>>().join(", ");
            return format!(
                "{subject} is valid for {presented}, not for {expected}; use one of these names, or issue one with \
                 `agon certs --host {expected}`"
            );
        }
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "has the wrong purpose; coordinator.pem is for coordinators, client.pem for clients"
        }
        other => return format!("{subject} is invalid: {other}"),
    };
    format!("{subject} {problem}")
}

/// Returns the host in webpki's debug text of a subject name, such as `DnsName("host")`.
pub(crate) fn host_of_name(name: &str) -> String {
    let inner = name.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')')).unwrap_or(name);
    let inner = inner.trim_matches('"');
    inner.parse::<std::net::IpAddr>().map_or_else(|_| inner.to_string(), |address| address.to_string())
}
