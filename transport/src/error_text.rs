//! What went wrong between two sides, as a sentence with its remedy.

use std::error::Error;
use std::io;

use tokio_rustls::rustls::{AlertDescription, CertificateError, Error as TlsError};
use tonic::Status;

/// The last cause of an error: what really happened, without what it led to.
pub fn root_cause(error: &(dyn Error + 'static)) -> String {
    let mut last = error;
    while let Some(source) = last.source() {
        last = source;
    }
    last.to_string()
}

/// What a call got, in a sentence: that of the coordinator, or what became of the connection.
pub fn status_text(status: &Status) -> String {
    status.source().map_or_else(|| status.message().to_string(), root_cause)
}

fn tls(error: &io::Error) -> Option<&TlsError> {
    error.get_ref()?.downcast_ref()
}

/// What a client is told when its connection fails; `None` where TLS has no part in it.
pub(crate) fn client_error_text(error: &io::Error) -> Option<String> {
    use AlertDescription as Alert;
    let sentence = match tls(error)? {
        TlsError::InvalidCertificate(wrong) => certificate_error_text(wrong, "the coordinator's certificate"),
        TlsError::InvalidMessage(_) => "whoever answers does not speak TLS; say http:// and not https://, or give the \
             coordinator --tls-cert and --tls-key"
            .to_string(),
        TlsError::AlertReceived(Alert::CertificateRequired | Alert::NoCertificate) => {
            "the coordinator asks for a client certificate and there was none; give --tls-cert and --tls-key, \
             client.pem and client.key of `agon certs`"
                .to_string()
        }
        TlsError::AlertReceived(Alert::CertificateExpired) => {
            "the coordinator says that our certificate has expired or is not yet valid; renew it with `agon certs`, \
             and look at the clocks of both machines"
                .to_string()
        }
        TlsError::AlertReceived(Alert::UnknownCA | Alert::DecryptError | Alert::CertificateUnknown) => {
            "the coordinator does not know the authority that signed our certificate; give one of the \
             same `agon certs` as its --tls-client-ca"
                .to_string()
        }
        TlsError::AlertReceived(Alert::BadCertificate | Alert::UnsupportedCertificate) => {
            "the coordinator does not take our certificate, which is not one for clients; give client.pem and \
             client.key of `agon certs`"
                .to_string()
        }
        other => format!("TLS failed: {other}"),
    };
    Some(sentence)
}

/// What the coordinator's log says of a handshake that failed.
pub(crate) fn server_error_text(error: &io::Error) -> String {
    match tls(error) {
        Some(TlsError::NoCertificatesPresented) => "it showed no certificate".to_string(),
        Some(TlsError::InvalidCertificate(wrong)) => certificate_error_text(wrong, "its certificate"),
        Some(TlsError::InvalidMessage(_)) => {
            "it does not speak TLS; clients say https:// to this coordinator".to_string()
        }
        Some(TlsError::AlertReceived(AlertDescription::UnknownCA | AlertDescription::DecryptError)) => {
            "it does not know the authority that signed our certificate; clients need its ca.pem as --tls-ca"
                .to_string()
        }
        Some(TlsError::AlertReceived(AlertDescription::CertificateExpired)) => {
            "it says that our certificate has expired or is not yet valid; renew it with `agon certs`"
                .to_string()
        }
        Some(TlsError::AlertReceived(AlertDescription::BadCertificate)) => {
            "our certificate is not for the name that it called us by; make one with `agon certs --host`"
                .to_string()
        }
        Some(other) => other.to_string(),
        None => error.to_string(),
    }
}

fn certificate_error_text(wrong: &CertificateError, whose: &str) -> String {
    match wrong {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            format!(
                "{whose} has expired; renew it with `agon certs`, and look at the clocks of both machines"
            )
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            format!("{whose} is not yet valid; look at the clocks of both machines")
        }
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            format!(
                "{whose} was signed by an authority that is not known here; both sides need the ca.pem of the \
                 same `agon certs`"
            )
        }
        CertificateError::NotValidForName => {
            format!("{whose} is for other names; make one with `agon certs --host NAME`")
        }
        CertificateError::NotValidForNameContext { expected, presented } => {
            let expected = expected.to_str();
            let presented = presented.iter().map(|name| host_of_name(name)).collect::<Vec<_>>().join(", ");
            format!(
                "{whose} is for {presented} and not for {expected}; call it by one of these, or make one with \
                 `agon certs --host {expected}`"
            )
        }
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            format!(
                "{whose} is for another purpose; coordinator.pem is for coordinators, client.pem for clients"
            )
        }
        other => format!("{whose} is not valid: {other}"),
    }
}

/// A name of a certificate as people write it: `DnsName("host")` is host.
pub(crate) fn host_of_name(name: &str) -> String {
    let inner = name.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')')).unwrap_or(name);
    let inner = inner.trim_matches('"');
    inner.parse::<std::net::IpAddr>().map_or_else(|_| inner.to_string(), |address| address.to_string())
}
