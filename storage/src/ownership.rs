//! Who may write to a prefix of an object store.
//!
//! A folder is held by a lock; an object store has none. There the object `agon.json` names the one state that the
//! dataset belongs to, and how often that state has been opened. It is created only where there is none, and replaced
//! only by a writer that has read its current version. The store must keep both conditions. Some stores claim to and do not,
//! so a store is tested before it is used.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use object_store::path::Path;
use object_store::{Error, ObjectStore, ObjectStoreExt as _, PutMode, PutOptions, UpdateVersion};
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;

use crate::location::in_a_line;

/// The name of the object that says whose the dataset is.
const NAME: &str = "agon.json";
/// The version of the dataset's layout.
const FORMAT: u64 = 1;
/// How many writers race for one name when a store is tried.
const RACERS: usize = 8;
/// How often a store that does not answer is tried, and how long it is left alone in between.
const ATTEMPTS: u64 = 5;
const PAUSE: Duration = Duration::from_millis(500);

/// What the object says.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Owner {
    /// The version of the layout.
    pub format: u64,
    /// The id of the state that the dataset belongs to.
    pub state: String,
    /// How often that state had been opened when this was written.
    pub epoch: u64,
}

impl Owner {
    fn text(&self) -> Bytes {
        let text = serde_json::to_string(self).expect("an owner is plain data");
        Bytes::from(text + "\n")
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "state {} in its life {}", self.state.get(..8).unwrap_or(&self.state), self.epoch)
    }
}

/// Why a prefix of a store cannot be worked with.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OwnerError {
    /// It cannot be reached, or refuses.
    #[error(
        "the store does not do what it is asked: {0}; check address and credentials (s3: AWS_ACCESS_KEY_ID, \
         AWS_SECRET_ACCESS_KEY, AWS_REGION, AWS_ENDPOINT_URL, AWS_ALLOW_HTTP=true where it speaks no TLS; gs: GOOGLE_*; \
         az: AZURE_*)"
    )]
    Unreachable(String),
    /// It lets a second writer through.
    #[error(
        "the store does not keep its promise: {0}. Two coordinators could write over each other there; use a store that \
         has conditional writes"
    )]
    Lies(&'static str),
    /// The object is no owner.
    #[error("{NAME} there is not of agon ({0}); give another prefix with --data")]
    Foreign(String),
    /// A newer program wrote it.
    #[error("the dataset is of format {0} and this program knows {FORMAT}; use the program that made it")]
    Newer(u64),
    /// Another coordinator owns it.
    #[error(
        "the dataset belongs to another coordinator ({0}); use that one, give another prefix with --data, or, if it is gone \
         for good, say --take-over"
    )]
    Others(Owner),
    /// The state is older than the dataset.
    #[error(
        "the state here is older than the dataset, which has seen {0}: it was restored from a backup, or a copy of it works \
         elsewhere. Make sure that nobody else works with it, then say --take-over"
    )]
    Older(Owner),
    /// There is no dataset where there should be one.
    #[error(
        "the state has exported bouts, and there is no dataset of agon; give the place that they were exported to with \
         --data, or say --take-over if it is gone for good"
    )]
    Missing,
    /// Another writer was first.
    #[error("another coordinator took the dataset at the same moment; start again if it should be this one")]
    Raced,
    /// Another coordinator has taken it.
    #[error("the dataset was taken over by another coordinator ({0}); stop this one")]
    Lost(String),
}

impl From<Error> for OwnerError {
    fn from(error: Error) -> OwnerError {
        OwnerError::Unreachable(in_a_line(&error))
    }
}

/// What a state says of itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Identity {
    /// Its id, which a copy shares.
    pub id: String,
    /// How often it has been opened.
    pub epoch: u64,
    /// Whether bouts of it are in a dataset.
    pub has_exported: bool,
}

/// A prefix that is looked at and not yet taken.
pub struct Found {
    store: Arc<dyn ObjectStore>,
    before: Option<(Owner, UpdateVersion)>,
}

/// A prefix that is ours.
pub struct Held {
    store: Arc<dyn ObjectStore>,
    owner: Owner,
}

/// Reads who owns a prefix.
pub async fn find(store: Arc<dyn ObjectStore>) -> Result<Found, OwnerError> {
    let before = match read(&store, &Path::from(NAME)).await {
        Ok((text, version)) => Some((understood(&text)?, version)),
        Err(Error::NotFound { .. }) => None,
        Err(error) => return Err(error.into()),
    };
    Ok(Found { store, before })
}

fn understood(text: &[u8]) -> Result<Owner, OwnerError> {
    let told: serde_json::Value =
        serde_json::from_slice(text).map_err(|error| OwnerError::Foreign(error.to_string()))?;
    match told["format"].as_u64() {
        Some(FORMAT) => serde_json::from_value(told).map_err(|error| OwnerError::Foreign(error.to_string())),
        Some(format) => Err(OwnerError::Newer(format)),
        None => Err(OwnerError::Foreign("it has no format".to_string())),
    }
}

async fn read(store: &Arc<dyn ObjectStore>, path: &Path) -> object_store::Result<(Bytes, UpdateVersion)> {
    let answer = store.get(path).await?;
    let version = UpdateVersion { e_tag: answer.meta.e_tag.clone(), version: answer.meta.version.clone() };
    Ok((answer.bytes().await?, version))
}

impl Found {
    /// Whether a state may have the prefix, and the epoch that it must be beyond.
    pub fn judge(&self, state: &Identity, take_over: bool) -> Result<u64, OwnerError> {
        match &self.before {
            _ if take_over => {}
            None if state.has_exported => return Err(OwnerError::Missing),
            Some((owner, _)) if owner.state != state.id => return Err(OwnerError::Others(owner.clone())),
            Some((owner, _)) if owner.epoch > state.epoch => return Err(OwnerError::Older(owner.clone())),
            Some(_) | None => {}
        }
        Ok(self.before.as_ref().map_or(0, |(owner, _)| owner.epoch))
    }

    /// Takes the prefix, where nobody has changed it since it was looked at.
    pub async fn take(self, state: &str, epoch: u64) -> Result<Held, OwnerError> {
        let owner = Owner { format: FORMAT, state: state.to_string(), epoch };
        let mode = match self.before {
            Some((_, version)) => PutMode::Update(version),
            None => PutMode::Create,
        };
        let put = self.store.put_opts(&Path::from(NAME), owner.text().into(), PutOptions::from(mode)).await;
        // A put that was not answered, or answered after it was repeated, may have worked: what is there decides.
        if let Err(error) = put {
            match read(&self.store, &Path::from(NAME)).await {
                Ok((text, _)) if text == owner.text() => {}
                Ok(_) if is_refusal(&error) => return Err(OwnerError::Raced),
                Ok(_) | Err(_) => return Err(error.into()),
            }
        }
        Ok(Held { store: self.store, owner })
    }
}

impl Held {
    /// Fails if another coordinator has taken the prefix.
    pub async fn check(&self) -> Result<(), OwnerError> {
        match read(&self.store, &Path::from(NAME)).await {
            Ok((text, _)) if text == self.owner.text() => Ok(()),
            Ok((text, _)) => Err(OwnerError::Lost(
                understood(&text).map_or_else(|error| error.to_string(), |owner| owner.to_string()),
            )),
            Err(Error::NotFound { .. }) => Err(OwnerError::Lost(format!("{NAME} is gone"))),
            Err(error) => Err(error.into()),
        }
    }
}

/// Whether the store says that a condition does not hold.
fn is_refusal(error: &Error) -> bool {
    matches!(error, Error::AlreadyExists { .. } | Error::Precondition { .. })
}

/// Tries whether the store keeps conditions, by writing to names that nobody else uses.
pub async fn try_conditions(store: &Arc<dyn ObjectStore>, name: &str) -> Result<(), OwnerError> {
    let mut last = None;
    for attempt in 0..ATTEMPTS {
        let path = Path::from(format!("agon-probe/{name}-{attempt}"));
        let tried = try_once(store, &path).await;
        // What is left behind harms nobody; a store that does not let us delete is still a store.
        let _ = store.delete(&path).await;
        match tried {
            Ok(()) => return Ok(()),
            Err(OwnerError::Unreachable(error)) => last = Some(error),
            Err(error) => return Err(error),
        }
        tokio::time::sleep(PAUSE).await;
    }
    Err(OwnerError::Unreachable(last.expect("at least one attempt was made")))
}

/// One try. A store that does not answer has not lied: that is [`OwnerError::Unreachable`].
async fn try_once(store: &Arc<dyn ObjectStore>, path: &Path) -> Result<(), OwnerError> {
    let put = |text: String, mode: PutMode| {
        let (store, path) = (Arc::clone(store), path.clone());
        async move { store.put_opts(&path, text.into(), PutOptions::from(mode)).await }
    };
    // 1. Many create the same object at once: the stored text is that of the one whose call succeeded.
    let mut race = JoinSet::new();
    for racer in 0..RACERS {
        let attempt = put(racer.to_string(), PutMode::Create);
        race.spawn(async move { (racer.to_string(), attempt.await) });
    }
    let (mut winners, mut failure) = (Vec::new(), None);
    for (text, outcome) in race.join_all().await {
        match outcome {
            Ok(_) => winners.push(text),
            Err(error) if is_refusal(&error) && failure.is_some() => {}
            Err(error) => failure = Some(error),
        }
    }
    let there = match read(store, path).await {
        Ok((text, _)) => text,
        Err(Error::NotFound { .. }) if !winners.is_empty() => {
            return Err(OwnerError::Lies("what it said was written is not there"));
        }
        Err(error) => return Err(failure.unwrap_or(error).into()),
    };
    if winners.iter().any(|winner| winner.as_bytes() != there) {
        return Err(OwnerError::Lies(
            "several writers made the same object, each told that it was the first",
        ));
    }
    // 2. The same, one after the other.
    must_refuse(
        put("late".to_string(), PutMode::Create).await,
        "an object that is there was written over by a put that must not",
    )?;
    // 3. Changes are made only by who has read what is there.
    let (_, version) = read(store, path).await?;
    if version.e_tag.is_none() && version.version.is_none() {
        return Err(OwnerError::Lies("its objects have no tags, by which changes could be noticed"));
    }
    if let Err(error) = put("changed".to_string(), PutMode::Update(version.clone())).await {
        // It may have worked; then what is there says so.
        let there = read(store, path).await?.0;
        if there != "changed".as_bytes() {
            return Err(error.into());
        }
    }
    must_refuse(
        put("stale".to_string(), PutMode::Update(version)).await,
        "an object was changed by a put whose condition did not hold any more",
    )
}

fn must_refuse<T>(outcome: object_store::Result<T>, lie: &'static str) -> Result<(), OwnerError> {
    match outcome {
        Ok(_) => Err(OwnerError::Lies(lie)),
        Err(error) if is_refusal(&error) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object_store::memory::InMemory;

    fn identity(id: &str, epoch: u64, has_exported: bool) -> Identity {
        Identity { id: id.to_string(), epoch, has_exported }
    }

    async fn start(
        store: &Arc<dyn ObjectStore>,
        state: &Identity,
        take_over: bool,
    ) -> Result<(Held, u64), OwnerError> {
        let found = find(Arc::clone(store)).await?;
        let epoch = found.judge(state, take_over)?.max(state.epoch) + 1;
        Ok((found.take(&state.id, epoch).await?, epoch))
    }

    #[tokio::test]
    async fn one_state_has_a_prefix_and_others_need_the_operators_word() {
        let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let refused = |outcome: Result<(Held, u64), OwnerError>| outcome.err().unwrap();
        // 1. It is free, unless the state knows better.
        assert!(matches!(refused(start(&store, &identity("a", 3, true), false).await), OwnerError::Missing));
        let (first, epoch) = start(&store, &identity("a", 3, false), false).await.unwrap();
        assert_eq!(epoch, 4);
        first.check().await.unwrap();
        // 2. The same state goes on; the previous owner notices.
        let (second, epoch) = start(&store, &identity("a", 4, true), false).await.unwrap();
        assert_eq!(epoch, 5);
        second.check().await.unwrap();
        assert!(matches!(first.check().await, Err(OwnerError::Lost(_))));
        // 3. A copy from an earlier time, and another state, are refused until the operator overrides it.
        assert!(matches!(refused(start(&store, &identity("a", 4, true), false).await), OwnerError::Older(_)));
        assert!(matches!(
            refused(start(&store, &identity("b", 9, false), false).await),
            OwnerError::Others(_)
        ));
        second.check().await.unwrap();
        let (third, epoch) = start(&store, &identity("a", 2, true), true).await.unwrap();
        assert_eq!(epoch, 6);
        let (fourth, epoch) = start(&store, &identity("b", 0, false), true).await.unwrap();
        assert_eq!(epoch, 7);
        assert!(matches!(third.check().await, Err(OwnerError::Lost(_))));
        fourth.check().await.unwrap();
        // 4. Of two that look at the same moment one comes too late.
        let (one, other) = (find(Arc::clone(&store)).await.unwrap(), find(Arc::clone(&store)).await.unwrap());
        one.take("b", 8).await.unwrap();
        assert!(matches!(other.take("c", 8).await.err(), Some(OwnerError::Raced)));
    }

    #[tokio::test]
    async fn what_is_no_owner_is_refused() {
        for (text, newer) in
            [("{\"format\": 7}", true), ("{}", false), ("dear mother", false), ("{\"format\": 1}", false)]
        {
            let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
            store.put(&Path::from(NAME), text.into()).await.unwrap();
            let error = find(store).await.err().unwrap();
            assert_eq!(matches!(error, OwnerError::Newer(7)), newer, "{text}: {error}");
            assert_eq!(matches!(error, OwnerError::Foreign(_)), !newer, "{text}: {error}");
        }
    }

    #[tokio::test]
    async fn an_honest_store_passes_and_is_left_clean() {
        let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        try_conditions(&store, "x").await.unwrap();
        assert!(store.list_with_delimiter(None).await.unwrap().common_prefixes.is_empty());
    }
}
