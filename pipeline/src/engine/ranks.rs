//! Processes that train together, as `torchrun` starts them: rank 0 runs the pipeline, the others do their part of the stages that call them. They find
//! rank 0 by a file in the output folder, which all of them see, and speak with it over TCP; they write nothing.

mod follow;
mod lead;

use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
pub(crate) use lead::Others;
use serde::{Deserialize, Serialize};
use socket2::{SockRef, TcpKeepalive};

/// How long to wait before looking again.
const PAUSE: Duration = Duration::from_millis(50);

/// This process among those that were started with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Launch {
    /// Its number, from 0.
    pub(crate) rank: usize,
    /// How many there are, at least 2.
    pub(crate) world: usize,
    /// Its number among those of its machine, where that is said.
    pub(crate) local: Option<usize>,
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
            local: number("LOCAL_RANK")?,
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
        /// A digest of the settings of the stage and of all that it is made from.
        settings: String,
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

/// The file that says where rank 0 is.
fn place(out: &Path, start: &str) -> PathBuf {
    out.join(".ranks").join(format!("{start}.json"))
}

/// Where there is nothing to wait on: a file that another machine writes, a call that may be given up.
#[expect(clippy::disallowed_methods, reason = "no event tells of a file on another machine")]
fn pause() {
    std::thread::sleep(PAUSE);
}

/// A connection that may rest for hours, and whose other end is missed when its machine is gone.
fn lasting(stream: &TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let socket = SockRef::from(stream);
    socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(Duration::from_secs(60)))?;
    socket.set_tcp_user_timeout(Some(Duration::from_secs(120)))
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
        let (address, start) = ("node-0".to_owned(), "a_b-none".to_owned());
        let launch = Launch { rank: 3, world: 4, local: None, address, start };
        assert_eq!(given(&of).unwrap(), Some(launch.clone()));
        let of = [&of[..], &[("LOCAL_RANK", "1")]].concat();
        assert_eq!(given(&of).unwrap(), Some(Launch { local: Some(1), ..launch }));
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
