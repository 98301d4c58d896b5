//! Rank 0: says where it is, has the others do their part of a stage, and lets them go.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use base::cancel::CancelToken;
use base::frame::{hear, tell};
use base::whole::write_with_folder;

use super::super::describe::Description;
use super::super::digest::Digest;
use super::super::error::Error;
use super::super::{Engine, Settings, failure};
use super::{Hello, Joined, Launch, Order, Place, lasting, pause, place};

/// Looks for ranks that are missing at the end of a run: a minute.
const LATE: u32 = 1_200;
/// Looks for ranks that are missing when a stage calls them: half an hour.
const LOOKS: u32 = 36_000;

/// The other ranks, for rank 0.
#[derive(Debug)]
pub(crate) struct Others {
    world: usize,
    listener: TcpListener,
    file: PathBuf,
    token: String,
    cancel: CancelToken,
    connected: Mutex<Connected>,
    /// Digests of settings, by stage.
    described: BTreeMap<String, String>,
    /// Held while the others do their part of a stage.
    turn: Mutex<()>,
}

#[derive(Debug)]
struct Connected {
    /// By rank, from 1.
    streams: Vec<Option<TcpStream>>,
    conversations: u32,
    /// The stage in whose work the others were lost.
    lost_in: Option<String>,
}

impl Others {
    /// Says in the output folder where the other ranks find this one.
    ///
    /// # Errors
    /// When no port can be had, or the folder not be written.
    pub(crate) fn await_in(
        out: &Path,
        launch: &Launch,
        version: &str,
        cancel: &CancelToken,
        described: BTreeMap<String, String>,
    ) -> anyhow::Result<Self> {
        let listener = TcpListener::bind(("0.0.0.0", 0))
            .context("rank 0 gets no port to wait for the other ranks on")?;
        listener.set_nonblocking(true)?;
        let token = format!("{:032x}", u128::from_le_bytes(random()?));
        let file = place(out, &launch.start);
        let here = Place {
            engraft: version.to_owned(),
            address: launch.address.clone(),
            port: listener.local_addr()?.port(),
            world: launch.world,
            token: token.clone(),
        };
        write_with_folder(&file, &serde_json::to_vec_pretty(&here)?)?;
        let streams = (1..launch.world).map(|_| None).collect();
        let connected = Mutex::new(Connected { streams, conversations: 0, lost_in: None });
        Ok(Others {
            world: launch.world,
            listener,
            file,
            token,
            cancel: cancel.clone(),
            connected,
            described,
            turn: Mutex::new(()),
        })
    }

    /// How many ranks there are.
    pub(crate) fn world(&self) -> usize {
        self.world
    }

    /// The others' time, which one stage has at a time.
    pub(crate) fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the others do their part of a stage that works in the folder `work`, once all of them are there; `more` is what the stage tells them.
    ///
    /// # Errors
    /// When a rank cannot be reached, or somebody asks to stop.
    pub(crate) fn call(&self, stage: &str, work: &Path, more: serde_json::Value) -> anyhow::Result<Joined> {
        let mut connected = self.connected.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lost_in) = &connected.lost_in {
            bail!("the other ranks have stopped with stage {lost_in}: start all of them again");
        }
        let mut looks = 0;
        while !self.all_are_there(&mut connected)? {
            self.cancel.check()?;
            looks += 1;
            if looks > LOOKS {
                let missing = (1..).zip(&connected.streams).filter(|(_, stream)| stream.is_none());
                let missing: Vec<String> = missing.map(|(rank, _): (usize, _)| rank.to_string()).collect();
                let (missing, world) = (missing.join(", "), self.world);
                bail!(
                    "half an hour has gone, and of {world} ranks these have not connected: {missing}; see their own output for the reason"
                );
            }
            pause();
        }
        connected.conversations += 1;
        let conversation = connected.conversations;
        let work = work.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let settings = self.described.get(stage).cloned().unwrap_or_default();
        let order = Order::Work { stage: stage.to_owned(), work, conversation, settings, more };
        let order = serde_json::to_string(&order)?;
        let mut streams = vec![];
        for stream in connected.streams.iter_mut().flatten() {
            // Of one that is gone the first sum tells, and then all others hear of it.
            let _ = tell(stream, conversation, &order);
            streams.push(stream.try_clone()?);
        }
        Ok(Joined { rank: 0, world: self.world, conversation, streams })
    }

    /// Lets the others go after a stage that has failed: who waits for a sum, or still sends to one, hears that there is none.
    pub(crate) fn release(&self, stage: &str) {
        let mut connected = self.connected.lock().unwrap_or_else(PoisonError::into_inner);
        connected.lost_in = Some(stage.to_owned());
        for stream in connected.streams.iter_mut().filter_map(Option::take) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Takes in who has connected since; says whether nobody is missing.
    fn all_are_there(&self, connected: &mut Connected) -> anyhow::Result<bool> {
        while connected.streams.iter().any(Option::is_none) {
            match self.listener.accept() {
                Ok((stream, _)) => {
                    // Whoever else knocks is none of ours.
                    if let Ok((rank, stream)) = self.greet(stream) {
                        connected.streams[rank - 1] = Some(stream);
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error).context("no other rank can connect"),
            }
        }
        Ok(true)
    }

    /// Hears who has connected.
    fn greet(&self, mut stream: TcpStream) -> anyhow::Result<(usize, TcpStream)> {
        stream.set_nonblocking(false)?;
        lasting(&stream)?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        let hello: Hello = serde_json::from_str(&hear(&mut stream)?)?;
        ensure!(hello.token == self.token && (1..self.world).contains(&hello.rank), "a stranger");
        stream.set_read_timeout(None)?;
        Ok((hello.rank, stream))
    }
}

impl Drop for Others {
    /// Tells the others that there is nothing more to do. A run that has done nothing may be over before they are there: they are waited for.
    fn drop(&mut self) {
        let mut connected = self.connected.lock().unwrap_or_else(PoisonError::into_inner);
        let lost = connected.lost_in.is_some();
        for _ in (0..LATE).take_while(|_| !lost) {
            match self.all_are_there(&mut connected) {
                Ok(false) if !self.cancel.is_cancelled() => pause(),
                _ => break,
            }
        }
        let conversation = connected.conversations + 1;
        let done = serde_json::to_string(&Order::Done).unwrap_or_default();
        for stream in connected.streams.iter_mut().flatten() {
            let _ = tell(stream, conversation, &done);
        }
        let _ = fs::remove_file(&self.file);
    }
}

/// Bytes that nobody guesses.
fn random() -> std::io::Result<[u8; 16]> {
    let mut bytes = [0; 16];
    std::io::Read::read_exact(&mut fs::File::open("/dev/urandom")?, &mut bytes)?;
    Ok(bytes)
}

impl Engine {
    /// The other ranks, if this process leads some.
    ///
    /// # Errors
    /// As [`Others::await_in`].
    pub(in super::super) fn others(&self) -> Result<Option<Arc<Others>>, Error> {
        let Settings { out, launch, version, cancel, .. } = &self.settings;
        let leads = launch.as_ref().filter(|launch| launch.rank == 0);
        let Some(launch) = leads else { return Ok(None) };
        let names = self.graph.names();
        let described = names.into_iter().map(|name| Ok((name.clone(), self.described(&name)?)));
        let described = described.collect::<Result<_, Error>>()?;
        let others = Others::await_in(out, launch, version, cancel, described);
        others.map(|others| Some(Arc::new(others))).map_err(|error| Error::new(failure::text(&error)))
    }

    /// A digest of the settings of a stage and of all that it is made from.
    pub(super) fn described(&self, stage: &str) -> Result<String, Error> {
        let mut text = String::new();
        for place in self.graph.needed(&[stage.to_owned()])? {
            let stage = self.graph.stage(place);
            let mut description = Description::new(stage.version());
            stage.describe(&mut description);
            text += &description.fingerprint(stage.name()).to_string();
        }
        Ok(Digest::of(text.as_bytes()).to_string())
    }

    /// What is to be said before a run that other ranks follow.
    #[must_use]
    pub(crate) fn leads(&self) -> Option<String> {
        let Launch { world, start, .. } = self.settings.launch.as_ref().filter(|launch| launch.rank == 0)?;
        let file = place(&self.settings.out, start);
        Some(format!(
            "rank 0 of {world}: shared trainings start once all ranks have connected, which find rank 0 through {}; all other work is rank 0's alone",
            file.display()
        ))
    }
}
