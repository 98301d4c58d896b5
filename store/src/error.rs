//! Why an object cannot be had: what a store did not give, how often it was asked, and what to do. Shows no secret: neither queries nor answers' bodies.

use std::io;
use std::path::{Path, PathBuf};

use crate::connect::Outcome;
use crate::location::{Address, Scheme};
use crate::meta::Meta;

/// Why an object cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The remote store did not give it.
    #[error("{url}: {what}, {}: {remedy}", times(*.tries))]
    Refused {
        /// The object, without query.
        url: String,
        /// What went wrong at the last try.
        what: String,
        /// The last answer's status, if one came.
        status: Option<u16>,
        /// How often it was tried; 0 if no request could be made.
        tries: u32,
        /// What to do.
        remedy: String,
    },
    /// It became another while it was read.
    #[error(
        "{url}: the object changed on the server while it was read ({was}; now {now}): what was read of it is not used; run again \
         to read the new one"
    )]
    Changed {
        /// The object, without query.
        url: String,
        /// What it was.
        was: String,
        /// What it is.
        now: String,
    },
    /// The server sends objects whole or not at all.
    #[error("{url}: the server does not answer requests for a part of an object: fetch the object whole")]
    NoRanges {
        /// The object, without query.
        url: String,
    },
    /// Everything in the cache is in use.
    #[error(
        "{}: the cache may hold {bound} bytes; {wanted} more do not fit beside the {held} that are in use: allow it more",
        path.display()
    )]
    CacheFull {
        /// The cache.
        path: PathBuf,
        /// Its bound.
        bound: u64,
        /// What should be put there.
        wanted: u64,
        /// What cannot be thrown away.
        held: u64,
    },
    /// More than the caller takes.
    #[error("{location}: {} than the {limit} bytes that it may have", said.map_or_else(|| "more came".to_owned(), |said| format!("the server says {said} bytes, more")))]
    TooLong {
        /// The object.
        location: String,
        /// How many bytes it may have.
        limit: u64,
        /// How many the server says it has, where it does.
        said: Option<u64>,
    },
    /// The file system refuses.
    #[error("{}: {what}{source}{remedy}", path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// What cannot be done with it, or nothing.
        what: &'static str,
        /// What the system says.
        source: io::Error,
        /// What to do.
        remedy: &'static str,
    },
    /// The caller asked to stop.
    #[error("interrupted")]
    Stopped,
    /// Whatever no caller has an answer to: where, what is wrong, what to do.
    #[error("{0}")]
    Other(String),
}

fn times(tries: u32) -> String {
    match tries {
        0 => "before anything was asked".to_owned(),
        1 => "at the first try".to_owned(),
        tries => format!("after {tries} tries"),
    }
}

const CACHE_REMEDY: &str = "; make room there, or choose another folder for the cache";

impl Error {
    /// Whether the object is not there.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        match self {
            Self::Refused { status, .. } => *status == Some(404),
            Self::File { source, .. } => source.kind() == io::ErrorKind::NotFound,
            _ => false,
        }
    }

    /// A file of the user's that cannot be read or written.
    pub(crate) fn local(path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        Self::file(path, "", "")
    }

    /// A file of the cache that cannot be read.
    pub(crate) fn unread(path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        Self::file(path, "the cache cannot be read: ", CACHE_REMEDY)
    }

    /// A file of the cache that cannot be written.
    pub(crate) fn unwritten(path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        Self::file(path, "the cache cannot be written: ", CACHE_REMEDY)
    }

    fn file(path: &Path, what: &'static str, remedy: &'static str) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::File { path, what, source, remedy }
    }

    /// No request can be made at all: `problem` is what is wrong with proxies, certificates or threads.
    pub(crate) fn no_client(problem: impl std::fmt::Display) -> Self {
        Self::Other(format!("no request can be made: {problem}"))
    }

    pub(crate) fn changed(address: &Address, was: &Meta, now: Option<&Meta>) -> Self {
        let now = now.map_or_else(|| "another".to_owned(), Meta::shown);
        Self::Changed { url: address.to_string(), was: was.shown(), now }
    }

    /// The failure of a request that was tried `tries` times: `last` is how the last try ended, `said` what the store's client says beyond that.
    pub(crate) fn refused(address: &Address, tries: u32, last: Option<Outcome>, said: String) -> Self {
        let url = address.to_string();
        let scheme = address.scheme();
        let mut refused = None;
        let (what, remedy) = match last {
            Some(Outcome::Status(status)) if !(200..300).contains(&status) => {
                refused = Some(status);
                (Outcome::Status(status).to_string(), status_remedy(scheme, status))
            }
            Some(outcome @ Outcome::Silent) => {
                (outcome.to_string(), "try again later, or check the proxy".to_owned())
            }
            Some(Outcome::Unreachable(why)) if why.contains("certificate") => (
                Outcome::Unreachable(why).to_string(),
                "SSL_CERT_FILE may name the certificates to trust".to_owned(),
            ),
            Some(outcome @ Outcome::Unreachable(_)) => (
                outcome.to_string(),
                "check the host's name, the network and the proxy (HTTPS_PROXY, NO_PROXY)".to_owned(),
            ),
            Some(outcome @ Outcome::Broken(_)) => {
                (outcome.to_string(), "run again; if it stays so, ask who runs the server".to_owned())
            }
            Some(Outcome::Status(_)) => (
                format!("the answer cannot be used ({said})"),
                "check that this is the file itself and not a page about it".to_owned(),
            ),
            None => (said, credentials(scheme).to_owned()),
        };
        Self::Refused { url, what, status: refused, tries, remedy }
    }
}

fn status_remedy(scheme: Scheme, status: u16) -> String {
    match (scheme, status) {
        (_, 404 | 410) => "check the name, letter by letter: what stands there may have moved".to_owned(),
        (_, 401 | 403) => credentials(scheme).to_owned(),
        (Scheme::S3, 301 | 307 | 400) => {
            "check AWS_REGION, which must be the bucket's, and the credentials".to_owned()
        }
        (_, 416) => "the object is shorter than it was said to be; run again".to_owned(),
        (_, 408 | 429 | 500..) => "the server is busy or broken; run again later".to_owned(),
        _ => "check the address".to_owned(),
    }
}

/// What to set so that a store lets one in.
fn credentials(scheme: Scheme) -> &'static str {
    match scheme {
        Scheme::S3 => {
            "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (and AWS_SESSION_TOKEN), or AWS_SKIP_SIGNATURE=false for the role of \
             this machine; without them a public object is expected. Profiles of ~/.aws are not read. \
             Who may not list a bucket is told so for a key that is not there, too"
        }
        Scheme::Gs => {
            "set GOOGLE_APPLICATION_CREDENTIALS to a key file, or GOOGLE_SKIP_SIGNATURE=false for the account of this machine; \
             without them a public object is expected"
        }
        Scheme::Az => {
            "set AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY or AZURE_STORAGE_SAS_TOKEN; without a key a public \
             object is expected"
        }
        Scheme::Http => {
            "the server wants a login: use a signed URL that is still valid, or download the file and name its path"
        }
    }
}
