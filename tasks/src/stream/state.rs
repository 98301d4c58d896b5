//! Where a stream stands, small enough to go into every checkpoint, and whether it fits the stream it is given to.

use base::self_check::check;
use serde::{Deserialize, Serialize};

use super::lane::Position;
use crate::Error;

/// The state's version.
pub const VERSION: u32 = 2;

/// What a stream's order depends on. Two streams with equal orders give equal batches at equal positions, whatever the number of ranks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fingerprint {
    /// Digest of the shard index.
    pub index: String,
    /// Part that is streamed.
    pub part: String,
    /// Tasks in their order.
    pub tasks: String,
    /// Seed of the order.
    pub seed: u64,
    /// How tasks take turns.
    pub schedule: String,
    /// Which items make a batch.
    pub batching: String,
    /// How items are mixed.
    pub shuffle: String,
    /// How negatives are drawn.
    pub negatives: String,
}

/// Where a stream stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// The state's version.
    pub version: u32,
    /// The order that the positions belong to.
    pub order: Fingerprint,
    /// Steps taken.
    pub step: u64,
    /// Where each lane stands.
    pub lanes: Vec<Position>,
    /// XXH3 of all the above, as 16 digits.
    pub xxh3: String,
}

impl State {
    /// A state that passes its own check.
    #[must_use]
    pub fn new(order: Fingerprint, step: u64, lanes: Vec<Position>) -> Self {
        let mut state = Self { version: VERSION, order, step, lanes, xxh3: String::new() };
        state.xxh3 = state.contents();
        state
    }

    fn contents(&self) -> String {
        let Self { version, order, step, lanes, .. } = self;
        check(format!("{version} {order:?} {step} {lanes:?}").as_bytes())
    }

    /// Checks that the state is as it was saved, by a stream with this order.
    ///
    /// # Errors
    /// Names the first thing that differs.
    pub fn check(&self, is: &Fingerprint) -> Result<(), Error> {
        let was = &self.order;
        let fields = [
            ("version", self.version.to_string(), VERSION.to_string()),
            ("shard index", was.index.clone(), is.index.clone()),
            ("part", was.part.clone(), is.part.clone()),
            ("tasks", was.tasks.clone(), is.tasks.clone()),
            ("seed", was.seed.to_string(), is.seed.to_string()),
            ("schedule", was.schedule.clone(), is.schedule.clone()),
            ("batch", was.batching.clone(), is.batching.clone()),
            ("shuffle", was.shuffle.clone(), is.shuffle.clone()),
            ("negatives", was.negatives.clone(), is.negatives.clone()),
        ];
        if let Some((field, was, is)) = fields.into_iter().find(|(_, was, is)| was != is) {
            return Err(Error::Unfit(format!(
                "this stream state does not fit: {field} was {was} when it was saved and is {is} now; rows would be lost or repeated. \
                 Resume with the same shards and settings, or start anew"
            )));
        }
        let (found, expected) = (self.contents(), &self.xxh3);
        if found == *expected {
            return Ok(());
        }
        Err(Error::Unfit(format!(
            "this stream state is damaged: its contents give the check {found}, but {expected} stands in it; use an earlier one, or start anew"
        )))
    }
}
