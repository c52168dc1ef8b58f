//! Leases: the right of a worker to play a bout.

use std::fmt;

use crate::check;
use crate::error::WireError;
use crate::limits::{MAX_LEASES, MAX_RUN_ID};
use crate::v1;

/// The lease of one bout to one worker. Two leases of the same bout have different numbers.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Lease {
    /// The run.
    pub run: String,
    /// The number of the bout in the run.
    pub bout: u64,
    /// The epoch of the coordinator that granted it.
    pub epoch: u64,
    /// The number of the lease, unique in its epoch.
    pub sequence: u64,
}

impl fmt::Display for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "bout {} of {} (lease {}.{})", self.bout, self.run, self.epoch, self.sequence)
    }
}

impl From<&Lease> for v1::LeaseRef {
    fn from(lease: &Lease) -> v1::LeaseRef {
        v1::LeaseRef {
            run: lease.run.clone(),
            bout: lease.bout,
            epoch: lease.epoch,
            sequence: lease.sequence,
        }
    }
}

impl TryFrom<v1::LeaseRef> for Lease {
    type Error = WireError;

    fn try_from(lease: v1::LeaseRef) -> Result<Lease, WireError> {
        Ok(Lease {
            run: check::name("run", lease.run, MAX_RUN_ID)?,
            bout: lease.bout,
            epoch: lease.epoch,
            sequence: lease.sequence,
        })
    }
}

impl Lease {
    /// Converts the required lease of a message.
    pub fn required(lease: Option<v1::LeaseRef>) -> Result<Lease, WireError> {
        check::required("lease", lease)?.try_into()
    }

    /// Converts the leases of a message.
    pub fn from_messages(leases: Vec<v1::LeaseRef>) -> Result<Vec<Lease>, WireError> {
        check::count("leases", leases.len(), 0..=MAX_LEASES)?;
        leases.into_iter().map(Lease::try_from).collect()
    }

    /// Converts leases for a message.
    pub fn to_messages<'a>(leases: impl IntoIterator<Item = &'a Lease>) -> Vec<v1::LeaseRef> {
        leases.into_iter().map(v1::LeaseRef::from).collect()
    }
}
