//! The other ranks: find rank 0, and do their part of the stages that it calls them to.

use std::fs;
use std::net::TcpStream;
use std::sync::Arc;

use anyhow::{Context as _, bail, ensure};
use base::frame::{hear, tell, wait};

use super::super::Engine;
use super::super::execute::context_of;
use super::super::progress::Progress;
use super::{Hello, Joined, Launch, Order, Place, lasting, pause, place};

/// Looks for rank 0, which may have to fetch what it reads first: a day.
const DAY: u32 = 1_728_000;

impl Engine {
    /// Whether this process follows rank 0.
    #[must_use]
    pub(crate) fn follows(&self) -> bool {
        self.settings.launch.as_ref().is_some_and(|launch| launch.rank > 0)
    }

    /// Of a process that follows rank 0: does its part of the stages that it is called to, until the run of rank 0 ends. `said` is told what is waited for, and
    /// what is worked on. Nothing for others.
    ///
    /// # Errors
    /// When rank 0 stops before its run has ended, a stage fails here, or somebody asks to stop.
    pub(crate) fn follow(&self, said: &dyn Fn(&str)) -> Option<anyhow::Result<()>> {
        let launch = self.settings.launch.as_ref().filter(|launch| launch.rank > 0)?;
        Some(self.follow_first(launch, said))
    }

    fn follow_first(&self, launch: &Launch, said: &dyn Fn(&str)) -> anyhow::Result<()> {
        let Launch { rank, world, .. } = *launch;
        said(&format!(
            "rank {rank} of {world} waits for rank 0 to write {}",
            place(&self.settings.out, &launch.start).display()
        ));
        let mut stream = self.reach(launch)?;
        said(&format!("rank {rank} of {world} has connected to rank 0"));
        loop {
            let order = self.heard(&mut stream).with_context(|| {
                format!("rank 0 of {world} has stopped: see its own output for the reason")
            })?;
            let Order::Work { stage, work, conversation, settings, more } = order else { return Ok(()) };
            ensure!(
                settings == self.described(&stage)?,
                "rank {rank} has other settings than rank 0 for stage {stage}, or for what it is made from: start all ranks with one configuration"
            );
            said(&format!("rank {rank} of {world} does its part of stage {stage}"));
            let stage = self.graph.stage(self.graph.find(&stage)?);
            let work = self.layout.works().join(work);
            let progress = Progress::new(
                stage.name(),
                self.settings.cancel.clone(),
                self.settings.faults.clone(),
                Arc::clone(&self.settings.clock),
            );
            let context = context_of(stage, &self.layout, &self.settings, &work, &progress);
            for (label, path) in &context.files {
                ensure!(
                    path.exists(),
                    "input file {label} is not at {} for rank {rank}: what lies outside the output folder has to be on every machine, and rank 0 alone fetches from URLs",
                    path.display()
                );
            }
            let joined = Joined { rank, world, conversation, streams: vec![stream.try_clone()?] };
            stage.follow(&context, joined, more)?;
        }
    }

    /// Connects to rank 0, as soon as it is there.
    fn reach(&self, launch: &Launch) -> anyhow::Result<TcpStream> {
        let file = place(&self.settings.out, &launch.start);
        let mut other = None;
        for _ in 0..DAY {
            self.settings.cancel.check()?;
            if let Ok(bytes) = fs::read(&file) {
                let here: Place =
                    serde_json::from_slice(&bytes).with_context(|| file.display().to_string())?;
                // An earlier start may have left the file.
                let (own, found) = ((&self.settings.version, launch.world), (&here.engraft, here.world));
                if own != found {
                    other = Some(format!("; it is of engraft {} and {} ranks", found.0, found.1));
                } else if let Ok(mut stream) = TcpStream::connect((here.address.as_str(), here.port)) {
                    lasting(&stream)?;
                    let hello = Hello { rank: launch.rank, token: here.token };
                    if tell(&mut stream, 0, &serde_json::to_string(&hello)?).is_ok() {
                        return Ok(stream);
                    }
                }
            }
            pause();
        }
        bail!("no rank 0 was found through {} for a day{}", file.display(), other.unwrap_or_default());
    }

    /// The next order. It looks now and then whether somebody asks to stop.
    fn heard(&self, stream: &mut TcpStream) -> anyhow::Result<Order> {
        wait(stream, &self.settings.cancel)?;
        Ok(serde_json::from_str(&hear(stream)?)?)
    }
}
