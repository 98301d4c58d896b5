//! Where a stream stands, small enough to go into every checkpoint, and whether it fits the stream it is given to.

use serde::{Deserialize, Serialize};

/// The state's version.
pub const VERSION: u32 = 1;

/// Where a stream stands: the next triple to be shown, in all tasks alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Position {
    /// Epochs completed.
    pub epoch: u64,
    /// Triples of the current epoch already shown.
    pub triple: u64,
}

/// What a stream's order depends on. Two streams with equal orders give equal batches at equal positions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fingerprint {
    /// Digest of the shard index.
    pub index: String,
    /// Seed of the order.
    pub seed: u64,
    /// How tasks take turns.
    pub schedule: String,
    /// Triples of a step.
    pub batch: usize,
    /// Row groups shuffled together.
    pub window: usize,
}

/// Where a stream stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// The state's version.
    pub version: u32,
    /// The order that the position belongs to.
    pub order: Fingerprint,
    /// The next triple.
    pub position: Position,
}

/// Why a state is refused.
#[derive(Debug, thiserror::Error)]
#[error(
    "this stream state does not fit: {field} was {was} when it was saved and is {is} now; rows would be lost or repeated. \
     Resume with the same shards and settings, or start anew"
)]
pub struct Mismatch {
    field: &'static str,
    was: String,
    is: String,
}

impl State {
    /// Checks that the state was saved by a stream with this order over `triples` triples.
    ///
    /// # Errors
    /// Names the first thing that differs.
    pub fn check(&self, order: &Fingerprint, triples: u64) -> Result<(), Mismatch> {
        let (was, is) = (&self.order, order);
        if self.version == VERSION && was == is && self.position.triple >= triples {
            let (was, is) = (self.position.triple.to_string(), format!("below {triples}"));
            return Err(Mismatch { field: "position", was, is });
        }
        let fields = [
            ("version", self.version.to_string(), VERSION.to_string()),
            ("shard index", was.index.clone(), is.index.clone()),
            ("seed", was.seed.to_string(), is.seed.to_string()),
            ("schedule", was.schedule.clone(), is.schedule.clone()),
            ("batch", was.batch.to_string(), is.batch.to_string()),
            ("window", was.window.to_string(), is.window.to_string()),
        ];
        match fields.into_iter().find(|(_, was, is)| was != is) {
            Some((field, was, is)) => Err(Mismatch { field, was, is }),
            None => Ok(()),
        }
    }
}
