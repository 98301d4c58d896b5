//! What a remote store did not give, how often it was asked, and how to mend it. Shows no secret: neither queries nor answers' bodies.

use crate::connect::Outcome;
use crate::location::{Address, Scheme};
use crate::meta::Meta;

/// Why a remote object cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The store did not give it.
    #[error("{url}: {what}, {}: {mend}", times(*.tries))]
    Refused {
        /// The object, without query.
        url: String,
        /// What went wrong at the last try.
        what: String,
        /// How often it was tried; 0 if no request could be made.
        tries: u32,
        /// What to do.
        mend: String,
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
    /// The server does not say how long the object is.
    #[error(
        "{url}: the server does not say how long the object is, so no part of it can be asked for: fetch it whole"
    )]
    NoLength {
        /// The object, without query.
        url: String,
    },
    /// No key behind the bucket.
    #[error("{url} names a bucket but no object in it: expected {url}/KEY")]
    NoKey {
        /// The location.
        url: String,
    },
    /// The server sends, but hardly anything.
    #[error(
        "{url}: the server sent {bytes} bytes in {seconds} s, fewer than {least}: run again later, or get the file another way"
    )]
    Slow {
        /// The object, without query.
        url: String,
        /// What came.
        bytes: u64,
        /// In how long.
        seconds: u64,
        /// What must come in that time.
        least: u64,
    },
    /// The whole time that the object may take is over.
    #[error(
        "{url}: not there after {seconds} s, which is all the time that one object has: --deadline SECONDS gives it more"
    )]
    Late {
        /// The object, without query.
        url: String,
        /// How long it could take.
        seconds: u64,
    },
    /// The caller asked to stop.
    #[error("interrupted")]
    Stopped,
    /// Nothing can be asked at all.
    #[error("no request can be made: {problem}")]
    Client {
        /// What is wrong with proxies, certificates or threads.
        problem: String,
    },
}

fn times(tries: u32) -> String {
    match tries {
        0 => "before anything was asked".to_owned(),
        1 => "at the first try".to_owned(),
        tries => format!("after {tries} tries"),
    }
}

impl Failure {
    /// Whether the object is not there.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Refused { what, .. } if *what == Outcome::Status(404).to_string())
    }

    pub(crate) fn changed(address: &Address, was: &Meta, now: Option<&Meta>) -> Self {
        let now = now.map_or_else(|| "another".to_owned(), Meta::shown);
        Self::Changed { url: address.to_string(), was: was.shown(), now }
    }

    /// The failure of a request: `end` is how its tries ended, `said` what the store's client says beyond that.
    pub(crate) fn of(address: &Address, (tries, last): (u32, Option<Outcome>), said: String) -> Self {
        let url = address.to_string();
        let scheme = address.scheme();
        let (what, mend) = match last {
            Some(Outcome::Status(status)) if !(200..300).contains(&status) => {
                (Outcome::Status(status).to_string(), status_mend(scheme, status))
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
        Self::Refused { url, what, tries, mend }
    }
}

fn status_mend(scheme: Scheme, status: u16) -> String {
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
