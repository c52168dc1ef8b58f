//! The identity of a caller, by its credential.

use std::future::Future;
use std::hash::{Hash, Hasher};
use std::pin::Pin;
use std::sync::Arc;

use tokio::sync::watch;

/// The role of a token.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Plays bouts.
    Worker,
    /// Reads and changes everything.
    Operator,
    /// Reads only.
    Viewer,
}

impl Role {
    /// All roles.
    pub const ALL: [Role; 3] = [Role::Worker, Role::Operator, Role::Viewer];

    /// Returns the name used in files and flags.
    pub fn name(self) -> &'static str {
        match self {
            Role::Worker => "worker",
            Role::Operator => "operator",
            Role::Viewer => "viewer",
        }
    }
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Credential {
    None,
    /// A certificate, by its subject, so that a renewed one is the same credential.
    Certificate(String),
    /// A token, by its name.
    Token(String),
}

/// The caller of a request, compared by credential. Every authenticated request has one in its extensions.
#[derive(Clone, Debug)]
pub struct Caller {
    credential: Credential,
    revoked: Arc<watch::Sender<bool>>,
}

impl PartialEq for Caller {
    fn eq(&self, other: &Caller) -> bool {
        self.credential == other.credential
    }
}

impl Eq for Caller {}

impl Hash for Caller {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.credential.hash(state);
    }
}

impl Caller {
    fn new(credential: Credential) -> Caller {
        Caller { credential, revoked: Arc::new(watch::Sender::new(false)) }
    }

    /// Returns a caller without a credential.
    pub fn anonymous() -> Caller {
        Caller::new(Credential::None)
    }

    pub(crate) fn certificate(subject: String) -> Caller {
        Caller::new(Credential::Certificate(subject))
    }

    pub(crate) fn token(name: &str) -> Caller {
        Caller::new(Credential::Token(name.to_string()))
    }

    /// Returns the caller of a request; anonymous if the request bypassed the listener.
    pub fn of<T>(request: &tonic::Request<T>) -> Caller {
        request.extensions().get::<Caller>().cloned().unwrap_or_else(Caller::anonymous)
    }

    /// Returns whether the caller presented a credential.
    pub fn is_authenticated(&self) -> bool {
        self.credential != Credential::None
    }

    /// Returns whether the credential has not been revoked.
    pub fn is_valid(&self) -> bool {
        !*self.revoked.borrow()
    }

    /// Returns whether both are the same credential, not a revoked one and its successor with the same name.
    pub(crate) fn is_same_credential(&self, other: &Caller) -> bool {
        self == other && (!self.is_authenticated() || Arc::ptr_eq(&self.revoked, &other.revoked))
    }

    pub(crate) fn revoke(&self) {
        self.revoked.send_replace(true);
    }

    /// Completes when the credential is revoked.
    pub(crate) fn until_revoked(&self) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let mut revoked = self.revoked.subscribe();
        // `wait_for` fails once all senders are dropped.
        let sender = Arc::clone(&self.revoked);
        Box::pin(async move {
            let _ = revoked.wait_for(|revoked| *revoked).await;
            drop(sender);
        })
    }
}

impl std::fmt::Display for Caller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.credential {
            Credential::None => f.write_str("an unauthenticated caller"),
            Credential::Certificate(subject) => write!(f, "certificate `{subject}`"),
            Credential::Token(name) => write!(f, "token `{name}`"),
        }
    }
}
