//! The addresses of hosts, looked up by the system on a thread that is asked for in a way that can fail: the runtime's own for such
//! work panics where the system gives none.

use std::net::ToSocketAddrs;
use std::thread::Builder;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::sync::oneshot;

/// Asks the system.
#[derive(Debug)]
pub(crate) struct Lookup;

impl Resolve for Lookup {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let (tell, told) = oneshot::channel();
            let look = move || {
                // Nobody listens any more after the time to connect is over.
                let _ = tell.send((name.as_str(), 0).to_socket_addrs());
            };
            Builder::new().name("engraft-lookup".to_owned()).spawn(look)?;
            Ok(Box::new(told.await??) as Addrs)
        })
    }
}
