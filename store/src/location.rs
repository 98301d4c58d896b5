//! Where an object is: a path on this machine, or the address of an object in a store or on a web server.

use std::fmt;
use std::path::{Path, PathBuf};

use url::Url;

/// Where an object is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// On this machine.
    Local(PathBuf),
    /// Somewhere else.
    Remote(Address),
}

/// Who answers for a remote object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scheme {
    /// `s3://BUCKET/KEY`: Amazon S3, or what speaks as it does.
    S3,
    /// `gs://BUCKET/KEY`: Google Cloud Storage.
    Gs,
    /// `az://CONTAINER/KEY`: Azure Blob Storage.
    Az,
    /// `http://...` and `https://...`: a web server.
    Http,
}

/// The address of a remote object. Shown without what may be secret: the query of a URL.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    scheme: Scheme,
    /// Empty for web servers.
    bucket: String,
    /// Of the object in its bucket; empty for web servers and for a bucket itself.
    key: String,
    /// For web servers.
    url: Option<Url>,
}

/// Why a text is no location, what was expected, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidLocation(String);

impl Scheme {
    const BUCKETS: [(&'static str, Scheme); 3] = [("s3", Scheme::S3), ("gs", Scheme::Gs), ("az", Scheme::Az)];

    /// What stands before `://`; `http` for both kinds of web server.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Scheme::S3 => "s3",
            Scheme::Gs => "gs",
            Scheme::Az => "az",
            Scheme::Http => "http",
        }
    }
}

/// Whether a text is an address, or was one before a path library dropped a slash (`s3:/bucket`, as Python's pathlib leaves it); it may hold credentials.
#[must_use]
pub fn is_address(text: &str) -> bool {
    let scheme = text.trim_start().split_once(":/").map_or("", |(scheme, _)| scheme);
    let is_scheme = scheme.len() > 1
        && scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    is_scheme || text.contains("://")
}

impl Location {
    /// What tells an object of a store from all others, whoever signed its URL; nothing for a file of this machine. Not for showing.
    #[must_use]
    pub fn identity(&self) -> Option<String> {
        match self {
            Self::Local(_) => None,
            Self::Remote(address) => Some(address.identity()),
        }
    }

    /// Reads a location: a URL of a known scheme, or else a path.
    ///
    /// # Errors
    /// When it has a scheme that nobody here speaks, or is no URL of its scheme. What may hold credentials is not shown.
    pub fn parse(text: &str) -> Result<Self, InvalidLocation> {
        let Some((scheme, rest)) = text.split_once("://") else {
            let mut known =
                Scheme::BUCKETS.map(|(name, _)| name).into_iter().chain(["http", "https", "file"]);
            let before = text.split_once(':').map(|(before, _)| before.trim().to_ascii_lowercase());
            return match before.and_then(|before| known.find(|known| *known == before)) {
                Some(scheme) => Err(InvalidLocation(format!(
                    "`{scheme}:` must be followed by `//`, as in {scheme}://bucket/key"
                ))),
                None => Ok(Self::Local(PathBuf::from(text))),
            };
        };
        let lower = scheme.to_ascii_lowercase();
        if let Some((name, scheme)) = Scheme::BUCKETS.into_iter().find(|(name, _)| *name == lower) {
            return bucket(scheme, name, rest).map(Self::Remote);
        }
        match lower.as_str() {
            "http" | "https" => web(text).map(Self::Remote),
            "file" => {
                let url = Url::parse(text).map_err(|e| bad_url(text, &e.to_string()))?;
                let path = url.to_file_path();
                let path =
                    path.map_err(|()| bad_url(text, "expected file:///, followed by an absolute path"))?;
                Ok(Self::Local(path))
            }
            _ if scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c)) => {
                Err(InvalidLocation(format!(
"`{scheme}://` is not spoken here: expected s3://, gs://, az://, http://, https://, file:// or a path")))
            }
            _ => Err(InvalidLocation(
                "there is a `://` behind something that is no scheme: expected s3://, gs://, az://, http://, https:// or file:// at \
                 the very beginning, without a blank, or a path"
                    .to_owned(),
            )),
        }
    }

    /// The location `name` below this one.
    #[must_use]
    pub fn child(&self, name: &str) -> Self {
        match self {
            Self::Local(path) => Self::Local(path.join(name)),
            Self::Remote(address) => Self::Remote(address.child(name)),
        }
    }

    /// The location `name` in the same folder; `None` for a URL with a query, which is that of one object alone.
    #[must_use]
    pub fn beside(&self, name: &str) -> Option<Self> {
        match self {
            Self::Local(path) => Some(Self::Local(path.with_file_name(name))),
            Self::Remote(address) => address.beside(name).map(Self::Remote),
        }
    }

    /// The file's name: the last part of the path; `object` if there is none.
    #[must_use]
    pub fn name(&self) -> String {
        let name = match self {
            Self::Local(path) => path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            Self::Remote(address) => address.path().rsplit('/').next().unwrap_or_default().to_owned(),
        };
        if matches!(name.as_str(), "" | "." | "..") { "object".to_owned() } else { name }
    }
}

/// A text as it may be shown: nothing behind a `://` that may be secret.
#[must_use]
pub fn shown(text: &str) -> String {
    if !text.contains("://") {
        return text.to_owned();
    }
    match Location::parse(text) {
        Ok(location) => location.to_string(),
        Err(_) => "...://...".to_owned(),
    }
}

/// A message without what stands between a `://` and the last `@` of the same word: a user's name, a password, a key.
#[must_use]
pub fn scrubbed(text: &str) -> String {
    let mut parts = text.split("://");
    let mut clean = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        clean.push_str("://");
        let end = part.find(|c: char| c.is_whitespace() || matches!(c, '"' | '`')).unwrap_or(part.len());
        match part[..end].rfind('@') {
            Some(at) => {
                clean.push_str("...");
                clean.push_str(&part[at..]);
            }
            None => clean.push_str(part),
        }
    }
    clean
}

/// Whether a text is meant to be remote: it begins with a scheme and `://` that is not `file`.
#[must_use]
pub fn is_remote(text: &str) -> bool {
    !matches!(Location::parse(text), Ok(Location::Local(_)))
}

fn bucket(scheme: Scheme, name: &'static str, rest: &str) -> Result<Address, InvalidLocation> {
    let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
    if bucket.is_empty() {
        return Err(InvalidLocation(format!("{name}:// names no bucket: expected {name}://bucket/key")));
    }
    // `$web` and `$root` are containers of Azure.
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '$');
    if !bucket.chars().all(fits) {
        // What no bucket is called may be a key with its secret, and is not shown.
        return Err(InvalidLocation(format!(
            "{name}://...: a bucket is called by letters, digits, `.`, `-` and `_`, and credentials come from the environment \
             (docs/config.md): expected {name}://bucket/key"
        )));
    }
    let key = key.trim_end_matches('/');
    let address = Address { scheme, bucket: bucket.to_owned(), key: key.to_owned(), url: None };
    let bad = |problem| Err(InvalidLocation(format!("{address}: the key {problem}")));
    if key.split('/').any(|part| part.is_empty()) && !key.is_empty() {
        return bad("has an empty part between two slashes");
    }
    if key.split('/').any(|part| matches!(part, "." | "..")) {
        return bad("has a part `.` or `..`");
    }
    Ok(address)
}

fn web(text: &str) -> Result<Address, InvalidLocation> {
    let mut url = Url::parse(text).map_err(|e| bad_url(text, &e.to_string()))?;
    url.set_fragment(None);
    let named = !url.username().is_empty() || url.password().is_some();
    let address = Address { scheme: Scheme::Http, bucket: String::new(), key: String::new(), url: Some(url) };
    if named {
        return Err(InvalidLocation(format!(
            "{address}: a user name or password in a URL ends up in logs; leave it out and use a signed URL, or download the file"
        )));
    }
    Ok(address)
}

/// A complaint about a URL that shows its scheme alone: what is no URL has no place that is known to hold no secret.
fn bad_url(text: &str, problem: &str) -> InvalidLocation {
    let scheme = text.split("://").next().unwrap_or_default();
    InvalidLocation(format!("{scheme}://... is no URL: {problem}"))
}

impl Address {
    /// Who answers for it.
    #[must_use]
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    pub(crate) fn bucket(&self) -> &str {
        &self.bucket
    }

    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    pub(crate) fn url(&self) -> Option<&Url> {
        self.url.as_ref()
    }

    fn path(&self) -> &str {
        self.url.as_ref().map_or(self.key.as_str(), Url::path)
    }

    fn child(&self, name: &str) -> Self {
        let mut child = self.clone();
        match &mut child.url {
            // A web URL always has a path, so the segments are there.
            Some(url) => {
                if let Ok(mut parts) = url.path_segments_mut() {
                    parts.pop_if_empty().extend(name.split('/'));
                }
            }
            None if child.key.is_empty() => name.clone_into(&mut child.key),
            None => child.key = format!("{}/{name}", child.key),
        }
        child
    }

    fn beside(&self, name: &str) -> Option<Self> {
        let mut beside = self.clone();
        match &mut beside.url {
            Some(url) if url.query().is_some() => return None,
            Some(url) => {
                url.path_segments_mut().ok()?.pop().push(name);
            }
            None => {
                let folder = self.key.rfind('/').map_or("", |end| &self.key[..=end]);
                beside.key = format!("{folder}{name}");
            }
        }
        Some(beside)
    }

    /// What tells this object from all others, whoever signed the URL. Not for showing.
    pub(crate) fn identity(&self) -> String {
        let Some(url) = &self.url else {
            return format!("{}://{}/{}", self.scheme.name(), self.bucket, self.key);
        };
        let mut bare = url.clone();
        let kept: Vec<(String, String)> =
            url.query_pairs().filter(|(name, _)| !signs(name)).map(|(k, v)| (k.into(), v.into())).collect();
        bare.set_query(None);
        if !kept.is_empty() {
            bare.query_pairs_mut().extend_pairs(kept);
        }
        bare.into()
    }
}

/// Whether a parameter of a query belongs to a signature, which is another every time.
fn signs(name: &str) -> bool {
    const OTHERS: [&str; 22] = [
        "signature",
        "expires",
        "awsaccesskeyid",
        "googleaccessid",
        "key-pair-id",
        "policy",
        "token",
        "access_token",
        "sig",
        "se",
        "sp",
        "sv",
        "sr",
        "st",
        "spr",
        "sip",
        "skoid",
        "sktid",
        "skt",
        "ske",
        "sks",
        "skv",
    ];
    let name = name.to_ascii_lowercase();
    name.starts_with("x-amz-") || name.starts_with("x-goog-") || OTHERS.contains(&name.as_str())
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.url {
            None if self.key.is_empty() => write!(f, "{}://{}", self.scheme.name(), self.bucket),
            None => write!(f, "{}://{}/{}", self.scheme.name(), self.bucket, self.key),
            Some(url) => {
                write!(f, "{}://{}", url.scheme(), url.host_str().unwrap_or_default())?;
                url.port().map_or(Ok(()), |port| write!(f, ":{port}"))?;
                f.write_str(url.path())?;
                if url.query().is_some() { f.write_str("?...") } else { Ok(()) }
            }
        }
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local(path) => fmt::Display::fmt(&path.display(), f),
            Self::Remote(address) => fmt::Display::fmt(address, f),
        }
    }
}

impl From<&Path> for Location {
    fn from(path: &Path) -> Self {
        Self::Local(path.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        Location::parse(text).unwrap().to_string()
    }

    fn refused(text: &str) -> String {
        Location::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn every_kind_of_location_is_told_apart() {
        let remote = |text| match Location::parse(text).unwrap() {
            Location::Remote(address) => address.scheme(),
            Location::Local(path) => panic!("{}", path.display()),
        };
        assert_eq!(remote("s3://bucket/a/b.tsv"), Scheme::S3);
        assert_eq!(remote("gs://bucket/a"), Scheme::Gs);
        assert_eq!(remote("az://box/a"), Scheme::Az);
        assert_eq!(remote("HTTPS://host/a"), Scheme::Http);
        for (text, path) in
            [("a/b:c", "a/b:c"), ("/abs", "/abs"), ("file:///a/b%20c", "/a/b c"), ("C:x", "C:x")]
        {
            assert_eq!(Location::parse(text).unwrap(), Location::Local(path.into()), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_what_is_expected() {
        assert!(refused("ftp://host/x").contains("`ftp://`") && refused("ftp://h/x").contains("s3://"));
        assert!(refused("s3:///key").contains("s3://bucket/key"));
        assert!(refused("s3:bucket/key").contains("`//`"));
        assert!(refused("s3://b/a//c").contains("empty part"));
        assert!(refused("gs://b/../c").contains("`..`"));
        assert!(refused("file://x").contains("file:///"));
        assert!(refused("http://").contains("no URL"));
    }

    #[test]
    fn what_may_be_secret_is_not_shown_and_what_signs_is_not_part_of_the_identity() {
        let url = "https://host:8443/a/b.tsv?X-Amz-Signature=secret&part=3&sig=s3cret#there";
        assert_eq!(shown(url), "https://host:8443/a/b.tsv?...");
        let location = Location::parse(url).unwrap();
        assert!(!format!("{location:?}").contains("cret"));
        assert_eq!(location.name(), "b.tsv");
        let Location::Remote(address) = location else { panic!() };
        assert_eq!(address.identity(), "https://host:8443/a/b.tsv?part=3");
        let with_password = "https://me:hunter2@host/a?q=hunter2";
        assert!(!refused(with_password).contains("hunter2"), "{}", refused(with_password));
        assert!(!refused("https://me:hunter2@:x/a").contains("hunter2"));
    }

    #[test]
    fn silent_20_credentials_are_refused_wherever_they_stand_and_shown_nowhere() {
        let schemes = ["s3", "gs", "az", "http", "https", "S3", "HTTPS", "ftp", "file", "world", "s3a"];
        let mut tried = 0;
        for scheme in schemes {
            for blank in ["", " ", "\t", "\u{feff}", "x "] {
                for rest in [
                    "AKIA:hunter2@b/k",
                    "AKIA:hun/ter2@b/k",
                    "hunter2@b/k",
                    "AKIA:hunter2%40b/k",
                    ":hunter2@b",
                    "b:hunter2",
                ] {
                    let text = format!("{blank}{scheme}://{rest}");
                    let shown = super::shown(&text);
                    assert!(!shown.contains("ter2"), "{text}: {shown}");
                    match Location::parse(&text) {
                        Err(error) => {
                            assert!(!format!("{error} {error:?}").contains("ter2"), "{text}: {error}");
                        }
                        // `https://AKIA:hun/` is no credential, but a host with a port that is none.
                        Ok(location) => panic!("{text}: {location:?}"),
                    }
                    tried += 1;
                }
            }
        }
        assert_eq!(tried, 330);
        assert!(refused(" https:hunter2").contains("must be followed by"), "{}", refused(" https:hunter2"));
        assert!(refused("s3://me:hunter2@bucket/x").contains("credentials come from the environment"));
        assert_eq!(super::shown("az://$web/x.csv"), "az://$web/x.csv");
        assert_eq!(super::shown("s3://b/a@c"), "s3://b/a@c");
        assert_eq!(super::shown("a/b"), "a/b");
        let message = "x: \"s3://AKIA:hun/ter2@b/k\" and https://me:hunter2@h/x?y no https://h/x, a@b";
        assert_eq!(scrubbed(message), "x: \"s3://...@b/k\" and https://...@h/x?y no https://h/x, a@b");
    }

    #[test]
    fn a_child_lies_below_and_keeps_the_query() {
        let child = |text: &str| match Location::parse(text).unwrap().child("META/MRREL.RRF") {
            Location::Remote(address) => address.identity(),
            Location::Local(path) => path.display().to_string(),
        };
        assert_eq!(child("s3://b"), "s3://b/META/MRREL.RRF");
        assert_eq!(child("s3://b/x/"), "s3://b/x/META/MRREL.RRF");
        assert_eq!(child("https://h/x/?v=2"), "https://h/x/META/MRREL.RRF?v=2");
        assert_eq!(child("/x"), "/x/META/MRREL.RRF");
    }

    #[test]
    fn silent_20_an_address_is_known_with_one_slash_too() {
        for address in ["s3://b/k", " https://h/x", "s3:/AK:SECRET@b", "world:s3://b/x", "gs:/b"] {
            assert!(is_address(address), "{address}");
        }
        for path in ["a/b", "C:/data", "/mnt/x:/y", "notes: a/b", "./s3:b", "x"] {
            assert!(!is_address(path), "{path}");
        }
    }
}
