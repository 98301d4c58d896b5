//! A web server on this machine that misbehaves on request, and takes and removes objects as S3, Google and Azure do: on condition, if that is asked for.

mod clouds;

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::ops::Range;
use std::sync::{Arc, Barrier, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// What the server does once instead of answering as it should.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Answers with this status.
    Status(u16),
    /// Sends so many bytes of the body and hangs up.
    Cut(usize),
    /// The same, and from then on another object is there, with another tag.
    Change(usize),
    /// Hangs up without a word.
    HangUp,
    /// Says nothing and keeps the connection.
    Silence,
    /// Sends a body that never ends, without saying how long it is.
    Endless,
    /// Sends the head, then the body byte by byte, a byte each [`PACE`].
    Drip,
    /// Sends the head itself like that.
    DripHead,
}

/// How long a dripping server takes for a byte.
pub const PACE: Duration = Duration::from_millis(20);

/// How an object is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// With ranges, length and HEAD.
    Full,
    /// The same, with a time instead of a tag.
    Dated,
    /// Whole or not at all.
    NoRanges,
    /// Whole, in chunks, without saying how long it is.
    NoLength,
    /// HEAD is forbidden, as for a URL that is signed for GET.
    NoHead,
}

/// A request as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// `GET`, `HEAD`, `PUT` or `DELETE`.
    pub method: String,
    /// Path and query.
    pub target: String,
    /// Headers by lower-case name.
    pub headers: BTreeMap<String, String>,
}

#[derive(Clone, Debug)]
struct Thing {
    bytes: Arc<Vec<u8>>,
    etag: Option<String>,
    manner: Manner,
}

#[derive(Debug, Default)]
struct State {
    things: BTreeMap<String, Thing>,
    faults: VecDeque<Fault>,
    always: Option<Fault>,
    log: Vec<Request>,
    silent: Vec<TcpStream>,
    closed: bool,
    when_asked: Option<Told>,
    gathered: Option<(String, Arc<Barrier>)>,
    careless: bool,
}

/// Called when a request has come.
struct Told(Box<dyn Fn() + Send>);

impl std::fmt::Debug for Told {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Told")
    }
}

/// The server; it ends when this is dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// A server without any object.
    ///
    /// # Errors
    /// When no port can be had.
    pub fn start() -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if locked(&shared).closed {
                    return;
                }
                let shared = Arc::clone(&shared);
                // A client that hangs up early is no fault of the server's.
                std::thread::spawn(move || answer(stream, &shared).unwrap_or_default());
            }
        });
        Ok(Self { address, state, thread: Some(thread) })
    }

    /// The URL of the object at `path`, which begins with a slash.
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Serves `bytes` at `path`; without a tag the server says neither tag nor time.
    pub fn put(&self, path: &str, bytes: &[u8], etag: Option<&str>, manner: Manner) {
        let thing =
            Thing { bytes: Arc::new(bytes.to_vec()), etag: etag.map(|tag| format!("\"{tag}\"")), manner };
        locked(&self.state).things.insert(path.to_owned(), thing);
    }

    /// Keeps those who would create an object whose path begins with `prefix` waiting until so many have come.
    pub fn gather(&self, prefix: &str, many: usize) {
        locked(&self.state).gathered = Some((prefix.to_owned(), Arc::new(Barrier::new(many))));
    }

    /// Takes an object also where the request is only for one that is not there, as stores do that do not know conditions.
    pub fn ignore_conditions(&self) {
        locked(&self.state).careless = true;
    }

    /// The paths that begin with `prefix` and have an object.
    #[must_use]
    pub fn paths(&self, prefix: &str) -> Vec<String> {
        let state = locked(&self.state);
        state.things.keys().filter(|path| path.starts_with(prefix)).cloned().collect()
    }

    /// Does this at the next requests, one after the other.
    pub fn fail(&self, faults: &[Fault]) {
        locked(&self.state).faults.extend(faults.iter().cloned());
    }

    /// Does this at every request.
    pub fn always(&self, fault: Fault) {
        locked(&self.state).always = Some(fault);
    }

    /// Calls this when a request has come, before it is answered.
    pub fn when_asked(&self, told: impl Fn() + Send + 'static) {
        locked(&self.state).when_asked = Some(Told(Box::new(told)));
    }

    /// What came since the last look.
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        std::mem::take(&mut locked(&self.state).log)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        locked(&self.state).closed = true;
        // Wakes the thread that waits for the next connection.
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Request {
    /// The bytes asked for as `first-last`; empty for all.
    #[must_use]
    pub fn range(&self) -> &str {
        self.headers.get("range").and_then(|range| range.strip_prefix("bytes=")).unwrap_or_default()
    }
}

fn locked(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A request and its body.
fn request(stream: &TcpStream) -> io::Result<(Request, Vec<u8>)> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut words = line.split_whitespace().map(ToOwned::to_owned);
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 || line.trim().is_empty() {
            let length = headers.get("content-length").map_or(Ok(0), |length: &String| length.parse());
            let mut body = Vec::new();
            reader.take(length.unwrap_or_default()).read_to_end(&mut body)?;
            return Ok((Request { method, target, headers }, body));
        }
        if let Some((name, value)) = line.split_once(':') {
            headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
        }
    }
}

fn answer(stream: TcpStream, state: &Mutex<State>) -> io::Result<()> {
    let (request, body) = request(&stream)?;
    if request.method == "PUT" {
        return take(&stream, state, request, body);
    }
    if let Some(answered) = clouds::answer(&stream, &request, &body, &mut locked(state)) {
        return answered;
    }
    if request.method == "DELETE" {
        let removed = locked(state).things.remove(&request.target).is_some();
        return plain(&stream, if removed { 204 } else { 404 });
    }
    let (fault, thing) = {
        let mut state = locked(state);
        state.log.push(request.clone());
        if let Some(Told(told)) = &state.when_asked {
            told();
        }
        let bodiless = request.method == "HEAD";
        let body = |fault: &Fault| matches!(fault, Fault::Cut(_) | Fault::Change(_));
        let next = match state.faults.front() {
            // An answer without body cannot be cut: that waits for the next.
            Some(fault) if bodiless && body(fault) => None,
            _ => state.faults.pop_front(),
        };
        let fault = next.or_else(|| state.always.clone());
        let path = request.target.split('?').next().unwrap_or_default().to_owned();
        let thing = state.things.get(&path).cloned();
        if let (Some(Fault::Change(_)), Some(thing)) = (&fault, state.things.get_mut(&path)) {
            Arc::make_mut(&mut thing.bytes).iter_mut().for_each(|byte| *byte = !*byte);
            thing.etag = thing.etag.as_ref().map(|_| "\"changed\"".to_owned());
        }
        (fault, thing)
    };
    let limit = match fault {
        Some(Fault::Silence) => {
            locked(state).silent.push(stream);
            return Ok(());
        }
        Some(Fault::HangUp) => return Ok(()),
        Some(Fault::Endless) => return endless(&stream, &request),
        Some(Fault::DripHead) => return drip(&stream, "HTTP/1.1 200 OK\r\nX-Long: "),
        Some(Fault::Drip) if request.method == "HEAD" => usize::MAX,
        Some(Fault::Drip) => {
            let (etag, bytes) = thing.map_or((None, 0), |thing| (thing.etag, thing.bytes.len()));
            let etag = etag.unwrap_or_default();
            write!(&stream, "HTTP/1.1 200 OK\r\nETag: {etag}\r\nContent-Length: {bytes}\r\n\r\n")?;
            return drip(&stream, "");
        }
        Some(Fault::Status(status)) => return plain(&stream, status),
        Some(Fault::Cut(bytes) | Fault::Change(bytes)) => bytes,
        None => usize::MAX,
    };
    let Some(thing) = thing else { return plain(&stream, 404) };
    if thing.manner == Manner::NoHead && request.method == "HEAD" {
        return plain(&stream, 403);
    }
    if request.headers.get("if-match").is_some_and(|tag| Some(tag) != thing.etag.as_ref()) {
        return plain(&stream, 412);
    }
    send(&stream, &request, &thing, limit)
}

/// Takes an object, unless the request is only for one that is not there.
fn take(mut stream: &TcpStream, state: &Mutex<State>, request: Request, body: Vec<u8>) -> io::Result<()> {
    let tag = format!("\"{}\"", blake3::hash(&body).to_hex());
    let says = |name: &str, what: &str| request.headers.get(name).is_some_and(|said| said == what);
    let only_new = says("if-none-match", "*") || says("x-goog-if-generation-match", "0");
    let gathered = locked(state).gathered.clone();
    if let Some((_, all)) = gathered.filter(|(prefix, _)| only_new && request.target.starts_with(prefix)) {
        all.wait();
    }
    let mut held = locked(state);
    let refused = only_new && !held.careless && held.things.contains_key(&request.target);
    if !refused {
        let thing = Thing { bytes: Arc::new(body), etag: Some(tag.clone()), manner: Manner::Full };
        held.things.insert(request.target.clone(), thing);
    }
    // As Azure says it, or as the others do.
    let status = if request.headers.contains_key("x-ms-version") { 409 } else { 412 };
    held.log.push(request);
    drop(held);
    match refused {
        true => plain(stream, status),
        false => {
            write!(stream, "HTTP/1.1 200 OK\r\nConnection: close\r\nETag: {tag}\r\nContent-Length: 0\r\n\r\n")
        }
    }
}

fn plain(mut stream: &TcpStream, status: u16) -> io::Result<()> {
    let secret = "body with AKIASECRET";
    write!(
        stream,
        "HTTP/1.1 {status} X\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{secret}",
        secret.len()
    )
}

/// Sends bytes until nobody takes them any more.
fn endless(mut stream: &TcpStream, request: &Request) -> io::Result<()> {
    write!(stream, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n")?;
    let chunk = [b"10000\r\n".as_slice(), &[b'z'; 0x10000], b"\r\n"].concat();
    if request.method == "HEAD" {
        return Ok(());
    }
    loop {
        stream.write_all(&chunk)?;
    }
}

/// Sends `text` and then the letter x, byte by byte, until the other side hangs up: that is waited for between two bytes.
fn drip(mut stream: &TcpStream, text: &str) -> io::Result<()> {
    stream.set_read_timeout(Some(PACE))?;
    for byte in text.bytes().chain(std::iter::repeat(b'x')) {
        stream.write_all(&[byte])?;
        if matches!(stream.read(&mut [0; 16]), Ok(0)) {
            return Ok(());
        }
    }
    Ok(())
}

fn send(mut stream: &TcpStream, request: &Request, thing: &Thing, limit: usize) -> io::Result<()> {
    let ranges = matches!(thing.manner, Manner::Full | Manner::Dated | Manner::NoHead);
    let asked = part(request.range(), thing.bytes.len()).filter(|_| ranges);
    if asked.as_ref().is_some_and(|range| range.start >= thing.bytes.len()) {
        return plain(stream, 416);
    }
    let body = &thing.bytes[asked.clone().unwrap_or(0..thing.bytes.len())];
    let mut head = "Connection: close\r\n".to_owned();
    if let Some(etag) = thing.etag.as_ref().filter(|_| thing.manner != Manner::Dated) {
        head += &format!("ETag: {etag}\r\n");
    }
    if thing.etag.is_some() {
        head += "Last-Modified: Thu, 01 Jan 2026 00:00:00 GMT\r\n";
    }
    let chunked = thing.manner == Manner::NoLength;
    head += &if chunked {
        "Transfer-Encoding: chunked\r\n".to_owned()
    } else {
        format!("Content-Length: {}\r\n", body.len())
    };
    match &asked {
        Some(range) => {
            let (first, last, all) = (range.start, range.end - 1, thing.bytes.len());
            write!(
                stream,
                "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes {first}-{last}/{all}\r\n{head}\r\n"
            )?;
        }
        None => write!(stream, "HTTP/1.1 200 OK\r\n{head}\r\n")?,
    }
    let body = if request.method == "HEAD" { &[] } else { &body[..body.len().min(limit)] };
    match chunked && request.method != "HEAD" {
        true => {
            write!(stream, "{:x}\r\n", body.len())?;
            stream.write_all(body)?;
            stream.write_all(b"\r\n0\r\n\r\n")
        }
        false => stream.write_all(body),
    }
}

fn part(range: &str, all: usize) -> Option<Range<usize>> {
    let (first, last) = range.split_once('-')?;
    let last = last.parse().map_or(all, |last: usize| last + 1);
    Some(first.parse().ok()?..last.min(all))
}
