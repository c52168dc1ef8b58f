//! Who calls, as far as the door could tell.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use tokio::sync::watch;

/// What a token allows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// To take bouts and bring them back.
    Worker,
    /// Everything that operators do.
    Operator,
    /// To look.
    Viewer,
}

impl Role {
    /// All of them.
    pub const ALL: [Role; 3] = [Role::Worker, Role::Operator, Role::Viewer];

    /// Its name in files and calls.
    pub fn name(self) -> &'static str {
        match self {
            Role::Worker => "worker",
            Role::Operator => "operator",
            Role::Viewer => "viewer",
        }
    }
}

/// What somebody showed.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Credential {
    /// Nothing, since nothing is asked for.
    Nothing,
    /// A certificate, by its subject: one that was renewed is the same.
    Certificate(String),
    /// A token, by its name.
    Token(String),
}

/// Who makes a call. Two calls with the same credential are of the same caller. It is in the extensions of every
/// request that came through a door.
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

impl std::hash::Hash for Caller {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.credential.hash(state);
    }
}

impl Caller {
    fn new(credential: Credential) -> Caller {
        Caller { credential, revoked: Arc::new(watch::Sender::new(false)) }
    }

    /// Somebody who showed nothing.
    pub fn anonymous() -> Caller {
        Caller::new(Credential::Nothing)
    }

    /// Whoever has this certificate.
    pub(crate) fn certificate(subject: String) -> Caller {
        Caller::new(Credential::Certificate(subject))
    }

    /// Whoever has this token.
    pub(crate) fn token(name: &str) -> Caller {
        Caller::new(Credential::Token(name.to_string()))
    }

    /// Who made a request; whoever did not come through a door showed nothing.
    pub fn of<T>(request: &tonic::Request<T>) -> Caller {
        request.extensions().get::<Caller>().cloned().unwrap_or_else(Caller::anonymous)
    }

    /// Whether anything was shown.
    pub fn is_authenticated(&self) -> bool {
        self.credential != Credential::Nothing
    }

    /// Whether what was shown still counts.
    pub fn is_valid(&self) -> bool {
        !*self.revoked.borrow()
    }

    /// Whether this is the same credential, and not another one of the same name.
    pub(crate) fn is_same_credential(&self, other: &Caller) -> bool {
        self == other && (!self.is_authenticated() || Arc::ptr_eq(&self.revoked, &other.revoked))
    }

    /// What was shown counts no more.
    pub(crate) fn revoke(&self) {
        self.revoked.send_replace(true);
    }

    /// Ready when what was shown counts no more.
    pub(crate) fn until_revoked(&self) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let mut revoked = self.revoked.subscribe();
        // The sender lives in this clone for as long as somebody waits.
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
            Credential::Nothing => f.write_str("nobody in particular"),
            Credential::Certificate(subject) => write!(f, "the certificate of `{subject}`"),
            Credential::Token(name) => write!(f, "the token `{name}`"),
        }
    }
}
