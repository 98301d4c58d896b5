//! Shows a run while it goes on: bars on a terminal, plain lines elsewhere, JSON lines if asked for.

mod bars;
mod json;
mod live;
mod plain;

use std::io::IsTerminal;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use super::print::Format;
use crate::engine::Clock;
use crate::engine::observe::{Event, Observe};
use bars::{Bars, Colour};
use live::{Live, Said};

/// Time between two looks at the counters.
const TICK: Duration = Duration::from_millis(100);
/// Time between two lines about a running stage, for people.
const PLAIN: Duration = Duration::from_secs(30);
/// The same for machines: below a second, so that there is one in each.
const JSON: Duration = Duration::from_millis(500);

/// How much is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Detail {
    /// The first reason.
    Short,
    /// Every reason and note.
    Full,
}

/// How a run is shown.
#[derive(Clone, Copy, Debug)]
pub(super) struct Show {
    pub(super) format: Format,
    pub(super) detail: Detail,
    /// Time between two lines about a running stage; none if it is zero.
    pub(super) every: Option<Duration>,
}

/// One way to show a run.
trait Display: Send + Sync + 'static {
    /// Something happened to a stage.
    fn event(&self, event: &Event<'_>);
    /// There is something to say of a stage that runs.
    fn said(&self, said: &Said<'_>);
    /// A while has passed.
    fn tick(&self) {}
}

/// The display that suits the format and where standard error goes.
pub(super) fn choose(show: Show, clock: Clock) -> Box<dyn Observe> {
    let every = |usual| Some(show.every.unwrap_or(usual)).filter(|every| !every.is_zero());
    if show.format == Format::Json {
        Box::new(Watching::new(json::Json, every(JSON), clock))
    } else if std::io::stderr().is_terminal() {
        Box::new(Watching::new(Bars::new(show.detail, colour()), None, clock))
    } else {
        Box::new(Watching::new(plain::Plain { detail: show.detail }, every(PLAIN), clock))
    }
}

/// Has a display told of events and, again and again, of what runs.
struct Watching<D> {
    shared: Arc<Shared<D>>,
    /// Ours, because that of a bar panics where the system gives no thread; then there are the events alone.
    ticker: Option<Ticker>,
}

struct Shared<D> {
    display: D,
    /// Held while anything is shown: nothing is said of a stage after its end.
    live: Mutex<Live>,
    clock: Clock,
}

struct Ticker {
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

impl<D: Display> Watching<D> {
    fn new(display: D, every: Option<Duration>, clock: Clock) -> Self {
        let shared = Arc::new(Shared { display, live: Mutex::new(Live::new(every)), clock });
        let (of, (stop, stopped)) = (Arc::clone(&shared), channel());
        let ticks = move || {
            while stopped.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                of.tick();
            }
        };
        let ticker = Builder::new().spawn(ticks).ok().map(|thread| Ticker { stop, thread });
        Self { shared, ticker }
    }
}

impl<D> Drop for Watching<D> {
    fn drop(&mut self) {
        if let Some(Ticker { stop, thread }) = self.ticker.take() {
            drop(stop);
            let _ended = thread.join();
        }
    }
}

impl<D: Display> Shared<D> {
    fn live(&self) -> MutexGuard<'_, Live> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tick(&self) {
        let mut live = self.live();
        live.tick((self.clock)(), |said| self.display.said(said));
        self.display.tick();
    }
}

impl<D: Display> Observe for Watching<D> {
    fn event(&self, event: &Event<'_>) {
        let Shared { display, clock, .. } = &*self.shared;
        let mut live = self.shared.live();
        if let Some((stage, progress)) = event.begins() {
            live.start(stage, progress, clock());
        } else if let Some(stage) = event.ends() {
            live.end(stage, clock(), |said| display.said(said));
        }
        display.event(event);
    }
}

#[expect(clippy::disallowed_methods, reason = "the command line is where the environment is read")]
fn colour() -> Colour {
    if std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()) { Colour::Off } else { Colour::On }
}
