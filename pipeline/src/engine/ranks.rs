//! Processes that train together, as `torchrun` starts them: rank 0 runs the pipeline, the others do their part of the stages that call them. They find
//! rank 0 by a file in the output folder, which all of them see, and speak with it over TCP; they write nothing.

use std::fs;
use std::io::ErrorKind;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use base::cancel::CancelToken;
use base::frame::{hear, tell};
use base::whole::write_with_folder;
use serde::{Deserialize, Serialize};

use super::context::Context;
use super::error::Error;
use super::execute::context_of;
use super::progress::Progress;
use super::{Engine, Settings, failure};

/// How long to wait before looking again.
const PAUSE: Duration = Duration::from_millis(50);
/// Looks for rank 0 before a rank gives up: half an hour.
const LOOKS: u32 = 36_000;

/// This process among those that were started with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Launch {
    /// Its number, from 0.
    pub(crate) rank: usize,
    /// How many there are, at least 2.
    pub(crate) world: usize,
    /// The name or address of the machine of rank 0.
    pub(crate) address: String,
    /// Tells one start of all of them from another.
    pub(crate) start: String,
}

impl Launch {
    /// What `torchrun`'s variables say; nothing where they say of no others.
    ///
    /// # Errors
    /// Names the variable that contradicts the others.
    pub(crate) fn given(variable: impl Fn(&str) -> Option<String>) -> anyhow::Result<Option<Self>> {
        let number = |name: &str| {
            let parsed = variable(name).map(|text| {
                text.parse::<usize>()
                    .with_context(|| format!("the variable {name} is {text:?}, expected a number"))
            });
            parsed.transpose()
        };
        let Some(world) = number("WORLD_SIZE")?.filter(|world| *world != 1) else { return Ok(None) };
        let Some(rank) = number("RANK")? else {
            bail!(
                "the variable WORLD_SIZE is {world} and RANK is not there: start all ranks with `torchrun --no-python`, or unset WORLD_SIZE"
            );
        };
        ensure!(
            rank < world,
            "the variable RANK is {rank}, expected a number below WORLD_SIZE, which is {world}"
        );
        let address = variable("MASTER_ADDR").filter(|address| !address.is_empty());
        let part = |name: &str| variable(name).unwrap_or_else(|| "none".to_owned());
        let start = format!("{}-{}", part("TORCHELASTIC_RUN_ID"), part("TORCHELASTIC_RESTART_COUNT"));
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '_' };
        Ok(Some(Launch {
            rank,
            world,
            address: address.unwrap_or_else(|| "127.0.0.1".to_owned()),
            start: start.chars().map(plain).collect(),
        }))
    }
}

/// Where rank 0 is to be found.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Place {
    engraft: String,
    address: String,
    port: u16,
    world: usize,
    /// Known to whoever may read the output folder.
    token: String,
}

/// What a rank says first.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Hello {
    rank: usize,
    token: String,
}

/// What rank 0 tells the others.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Order {
    /// To do their part of a stage.
    Work {
        stage: String,
        /// The name of its work folder.
        work: String,
        conversation: u32,
        /// What the stage itself has to say.
        more: serde_json::Value,
    },
    /// The run has come to its end.
    Done,
}

/// What a stage has of the other ranks while they do their part: connections, to ranks 1 and up in their order or to rank 0.
#[derive(Debug)]
pub(crate) struct Joined {
    /// The number of this rank.
    pub(crate) rank: usize,
    /// How many there are.
    pub(crate) world: usize,
    /// Higher than that of any stage before.
    pub(crate) conversation: u32,
    /// The connections.
    pub(crate) streams: Vec<TcpStream>,
}

/// The other ranks, for rank 0.
#[derive(Debug)]
pub(crate) struct Others {
    world: usize,
    listener: TcpListener,
    file: PathBuf,
    token: String,
    cancel: CancelToken,
    connected: Mutex<Connected>,
    /// Held while the others do their part of a stage.
    turn: Mutex<()>,
}

#[derive(Debug, Default)]
struct Connected {
    /// By rank, from 1.
    streams: Vec<Option<TcpStream>>,
    conversations: u32,
}

/// The file that says where rank 0 is.
fn place(out: &Path, start: &str) -> PathBuf {
    out.join(".ranks").join(format!("{start}.json"))
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
        let connected = Mutex::new(Connected { streams, conversations: 0 });
        Ok(Others {
            world: launch.world,
            listener,
            file,
            token,
            cancel: cancel.clone(),
            connected,
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

    /// Has the others do their part of a stage, once all of them are there; `more` is what the stage tells them.
    ///
    /// # Errors
    /// When a rank cannot be reached, or somebody asks to stop.
    pub(crate) fn call(&self, context: &Context, more: serde_json::Value) -> anyhow::Result<Joined> {
        let mut connected = self.connected.lock().unwrap_or_else(PoisonError::into_inner);
        while connected.streams.iter().any(Option::is_none) {
            self.cancel.check()?;
            match self.listener.accept() {
                Ok((stream, _)) => {
                    // Whoever else knocks is none of ours.
                    if let Ok((rank, stream)) = self.greet(stream) {
                        connected.streams[rank - 1] = Some(stream);
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => pause(),
                Err(error) => return Err(error).context("no other rank can connect"),
            }
        }
        connected.conversations += 1;
        let conversation = connected.conversations;
        let work =
            context.out().file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let order = Order::Work { stage: context.stage().to_owned(), work, conversation, more };
        let order = serde_json::to_string(&order)?;
        let mut streams = vec![];
        for (rank, stream) in (1..).zip(connected.streams.iter_mut().flatten()) {
            let lost =
                || format!("rank {rank} of {} has stopped; what it says itself is the reason", self.world);
            tell(stream, conversation, &order).with_context(lost)?;
            streams.push(stream.try_clone()?);
        }
        Ok(Joined { rank: 0, world: self.world, conversation, streams })
    }

    /// Hears who has connected.
    fn greet(&self, mut stream: TcpStream) -> anyhow::Result<(usize, TcpStream)> {
        stream.set_nonblocking(false)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        let hello: Hello = serde_json::from_str(&hear(&mut stream)?)?;
        ensure!(hello.token == self.token && (1..self.world).contains(&hello.rank), "a stranger");
        stream.set_read_timeout(None)?;
        Ok((hello.rank, stream))
    }
}

impl Drop for Others {
    /// Tells the others that there is nothing more to do.
    fn drop(&mut self) {
        let connected = self.connected.get_mut().unwrap_or_else(PoisonError::into_inner);
        let done = serde_json::to_string(&Order::Done).unwrap_or_default();
        for stream in connected.streams.iter_mut().flatten() {
            let _ = tell(stream, connected.conversations + 1, &done);
        }
        let _ = fs::remove_file(&self.file);
    }
}

/// Where there is nothing to wait on: a file that another machine writes, a call that may be given up.
#[expect(clippy::disallowed_methods, reason = "no event tells of a file on another machine")]
fn pause() {
    std::thread::sleep(PAUSE);
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
    pub(super) fn others(&self) -> Result<Option<Arc<Others>>, Error> {
        let Settings { out, launch, version, cancel, .. } = &self.settings;
        let leads = launch.as_ref().filter(|launch| launch.rank == 0);
        let others = leads.map(|launch| Others::await_in(out, launch, version, cancel).map(Arc::new));
        others.transpose().map_err(|error| Error::new(failure::text(&error)))
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
        said(&format!("rank {rank} of {world} is at the call of rank 0"));
        loop {
            let order = self.heard(&mut stream).with_context(|| {
                format!("rank 0 of {world} has stopped; what it says itself is the reason")
            })?;
            let Order::Work { stage, work, conversation, more } = order else { return Ok(()) };
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
            let joined = Joined { rank, world, conversation, streams: vec![stream.try_clone()?] };
            stage.follow(&context, joined, more)?;
        }
    }

    /// Connects to rank 0, as soon as it is there.
    fn reach(&self, launch: &Launch) -> anyhow::Result<TcpStream> {
        let file = place(&self.settings.out, &launch.start);
        for _ in 0..LOOKS {
            self.settings.cancel.check()?;
            if let Ok(bytes) = fs::read(&file) {
                let here: Place =
                    serde_json::from_slice(&bytes).with_context(|| file.display().to_string())?;
                let (found, own) = (&here.engraft, &self.settings.version);
                ensure!(
                    found == own,
                    "rank 0 is engraft {found}, and this rank {own}: start the same program everywhere"
                );
                ensure!(
                    here.world == launch.world,
                    "rank 0 is one of {} ranks, and this one of {}",
                    here.world,
                    launch.world
                );
                // A file that an earlier start has left leads nowhere.
                if let Ok(mut stream) = TcpStream::connect((here.address.as_str(), here.port)) {
                    stream.set_nodelay(true)?;
                    let hello = Hello { rank: launch.rank, token: here.token };
                    if tell(&mut stream, 0, &serde_json::to_string(&hello)?).is_ok() {
                        return Ok(stream);
                    }
                }
            }
            pause();
        }
        bail!("{} leads to no rank 0 after half an hour: look at what rank 0 says", file.display());
    }

    /// The next order. It looks now and then whether somebody asks to stop.
    fn heard(&self, stream: &mut TcpStream) -> anyhow::Result<Order> {
        stream.set_read_timeout(Some(PAUSE))?;
        let mut first = [0];
        loop {
            self.settings.cancel.check()?;
            match stream.peek(&mut first) {
                Ok(0) => bail!("the connection is closed"),
                Ok(_) => break,
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(error) => return Err(error.into()),
            }
        }
        stream.set_read_timeout(None)?;
        Ok(serde_json::from_str(&hear(stream)?)?)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn given(variables: &[(&str, &str)]) -> anyhow::Result<Option<Launch>> {
        let variables: BTreeMap<&str, &str> = variables.iter().copied().collect();
        Launch::given(|name| variables.get(name).map(|text| (*text).to_owned()))
    }

    #[test]
    fn the_variables_of_torchrun_say_which_rank_this_is() {
        assert_eq!(given(&[]).unwrap(), None);
        assert_eq!(given(&[("WORLD_SIZE", "1"), ("RANK", "0")]).unwrap(), None);
        let of =
            [("WORLD_SIZE", "4"), ("RANK", "3"), ("MASTER_ADDR", "node-0"), ("TORCHELASTIC_RUN_ID", "a/b")];
        let launch = Launch { rank: 3, world: 4, address: "node-0".to_owned(), start: "a_b-none".to_owned() };
        assert_eq!(given(&of).unwrap(), Some(launch));
        for (variables, expected) in [
            (&[("WORLD_SIZE", "2")][..], "WORLD_SIZE is 2 and RANK is not there"),
            (
                &[("WORLD_SIZE", "2"), ("RANK", "2")],
                "RANK is 2, expected a number below WORLD_SIZE, which is 2",
            ),
            (&[("WORLD_SIZE", "two")], "WORLD_SIZE is \"two\", expected a number"),
        ] {
            let said = given(variables).unwrap_err().to_string();
            assert!(said.contains(expected), "{said}");
        }
        assert!(given(&[("WORLD_SIZE", "0"), ("RANK", "0")]).is_err());
    }
}
