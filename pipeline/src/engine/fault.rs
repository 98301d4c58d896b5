//! A testing aid: dies by SIGKILL at a named point of a named stage. Reads no environment.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::error::Error;

/// A moment in the life of a stage's run, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Point {
    /// The work folder is there and empty (or resumed).
    Start,
    /// The stage is at work: at its n-th checkpoint or step of progress.
    Working,
    /// The stage has returned; nothing is synced.
    Written,
    /// Files and folders are synced, the artifact is still the old one.
    Synced,
    /// The new artifact (or one that is restored) is on its way, the old one in place.
    Moved,
    /// Without an exchange in one step: the old artifact is moved away, and none in place.
    Aside,
    /// Without one: the new artifact is in place, the old one not yet where the exchange leaves it.
    Placed,
    /// The new artifact is in place, the old one not yet kept or removed.
    Swapped,
    /// The ledger does not know the new artifact yet.
    BeforeLedger,
    /// Half of the ledger's line is on disk.
    TornLedger,
    /// The ledger's line is on disk.
    AfterLedger,
    /// The old artifact is among the kept ones.
    Kept,
    /// Some of a file of the depot's has come: for the n-th time.
    Pulling,
    /// An artifact of the depot is downloaded, and not yet on its way to its place.
    Pulled,
    /// Some of a file has gone into the depot: for the n-th time.
    Blob,
    /// All files are in the depot, and its line is not.
    Blobs,
    /// The depot has the artifact and its line.
    Shared,
    /// `gc` has removed an object of the depot: the n-th.
    Removed,
}

impl Point {
    /// Every point that each run passes, in the order in which a run passes them.
    pub(crate) const ALL: [Self; 10] = [
        Self::Start,
        Self::Working,
        Self::Written,
        Self::Synced,
        Self::Moved,
        Self::Swapped,
        Self::BeforeLedger,
        Self::TornLedger,
        Self::AfterLedger,
        Self::Kept,
    ];

    /// Those that a stage passes whose artifact is shared.
    pub(crate) const SHARING: [Self; 5] =
        [Self::Pulling, Self::Pulled, Self::Blob, Self::Blobs, Self::Shared];

    /// Those that `gc` passes, which counts as the stage.
    const CLEARING: [Self; 1] = [Self::Removed];

    /// Those that a run may pass many times.
    const MANY: [Self; 4] = [Self::Working, Self::Pulling, Self::Blob, Self::Removed];

    /// Those that an artifact passes on a file system without an exchange in one step, which dying there supposes.
    pub(crate) const RENAMING: [Self; 2] = [Self::Aside, Self::Placed];

    /// Those that an artifact passes which is restored.
    #[cfg(test)]
    pub(crate) const RESTORING: [Self; 6] =
        [Self::Moved, Self::Swapped, Self::BeforeLedger, Self::TornLedger, Self::AfterLedger, Self::Kept];

    /// All of them.
    fn every() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().chain(Self::RENAMING).chain(Self::SHARING).chain(Self::CLEARING)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Working => "working",
            Self::Written => "written",
            Self::Synced => "synced",
            Self::Moved => "moved",
            Self::Aside => "aside",
            Self::Placed => "placed",
            Self::Swapped => "swapped",
            Self::BeforeLedger => "before-ledger",
            Self::TornLedger => "torn-ledger",
            Self::AfterLedger => "after-ledger",
            Self::Kept => "kept",
            Self::Pulling => "pulling",
            Self::Pulled => "pulled",
            Self::Blob => "blob",
            Self::Blobs => "blobs",
            Self::Shared => "shared",
            Self::Removed => "removed",
        }
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Where to die; usually nowhere.
#[derive(Clone, Debug)]
pub(crate) struct Faults(Option<Arc<Fault>>);

#[derive(Debug)]
struct Fault {
    stage: String,
    point: Point,
    /// How often the point is still passed before the process dies there.
    passes: AtomicU64,
}

impl Faults {
    /// Die nowhere.
    pub(crate) fn none() -> Self {
        Self(None)
    }

    /// Whether the process is to die while the artifact of the stage is exchanged by renames.
    pub(super) fn renames(&self, stage: &str) -> bool {
        self.0.as_ref().is_some_and(|fault| fault.stage == stage && Point::RENAMING.contains(&fault.point))
    }

    /// Dies if this is the place.
    pub(super) fn pass(&self, stage: &str, point: Point) {
        if self.is_at(stage, point) {
            die();
        }
    }

    /// Whether the process must die here; counts as a pass.
    pub(super) fn is_at(&self, stage: &str, point: Point) -> bool {
        let Some(fault) = &self.0 else { return false };
        fault.point == point
            && fault.stage == stage
            && fault.passes.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1)).is_err()
    }
}

impl FromStr for Faults {
    type Err = Error;

    fn from_str(given: &str) -> Result<Self, Error> {
        let error = || {
            Error::new(format!(
                "`{given}` names no fault: write STAGE:POINT, where POINT is one of {}, or STAGE:POINT:N with N from 1, where it is one of {}",
                names(&mut Point::every()),
                names(&mut Point::MANY.into_iter())
            ))
        };
        let mut parts = given.split(':');
        let (Some(stage), Some(point)) = (parts.next(), parts.next()) else { return Err(error()) };
        let point = Point::every().find(|p| p.name() == point).ok_or_else(error)?;
        let nth: u64 = parts.next().map_or(Ok(1), str::parse).map_err(|_| error())?;
        let passes = nth.checked_sub(1).ok_or_else(error)?;
        if stage.is_empty() || parts.next().is_some() || (passes > 0 && !Point::MANY.contains(&point)) {
            return Err(error());
        }
        Ok(Self(Some(Arc::new(Fault { stage: stage.to_owned(), point, passes: AtomicU64::new(passes) }))))
    }
}

fn names(points: &mut dyn Iterator<Item = Point>) -> String {
    points.map(Point::name).collect::<Vec<_>>().join(", ")
}

/// Ends the process as the kernel would end it: no destructor, no flush.
pub(super) fn die() -> ! {
    // Sending to oneself can fail only without a process to send to.
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    loop {
        std::thread::park();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nth_pass_of_the_named_point_is_the_one() {
        let faults: Faults = "train:working:3".parse().unwrap();
        let hits: Vec<_> = (0..3).map(|_| faults.is_at("train", Point::Working)).collect();
        assert_eq!(hits, [false, false, true]);
        assert!(!faults.is_at("world", Point::Working) && !faults.is_at("train", Point::Synced));
    }

    #[test]
    fn what_names_no_point_is_refused_with_the_list() {
        for wrong in
            ["", "world", "world:never", ":start", "world:working:0", "world:synced:2", "world:working:1:1"]
        {
            let error = wrong.parse::<Faults>().unwrap_err().to_string();
            assert!(error.contains("torn-ledger"), "{wrong}: {error}");
        }
    }
}
