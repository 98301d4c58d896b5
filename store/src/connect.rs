//! Connections: one HTTP client with its own TLS and proxies, the stores that speak through it, and a trail of every try.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService,
};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::http::HttpBuilder;
use object_store::{BackoffConfig, ClientOptions, HeaderValue, ObjectStore, RetryConfig};
use reqwest::redirect::Policy;
use reqwest::{NoProxy, Proxy};
use rustls_platform_verifier::BuilderVerifierExt;

use crate::error::Error;
use crate::location::{Address, Scheme};
use crate::lookup::Lookup;
use crate::options::{Environment, Options};
use crate::remote::Use;

/// The length that stands for one that the server does not say.
pub(crate) const UNKNOWN: u64 = u64::MAX;
const LENGTH: &str = "content-length";
/// How many times as long an answer may take where a body is sent before it.
const SLOWER: u32 = 20;

/// More redirects than any mirror needs.
const REDIRECTS: usize = 10;

/// How a try ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The server answered with this status.
    Status(u16),
    /// It said nothing for too long.
    Silent,
    /// There was no connection.
    Unreachable(String),
    /// The connection or the answer broke.
    Broken(String),
}

/// The tries of one request, noted where they happen: behind everything that tries again.
#[derive(Clone, Debug)]
pub(crate) struct Trail(Arc<Mutex<Tries>>);

#[derive(Clone, Debug, Default)]
struct Tries {
    count: u32,
    last: Option<Outcome>,
}

impl Trail {
    pub(crate) fn new() -> Self {
        Self(Arc::default())
    }

    /// How the last try ended.
    pub(crate) fn last(&self) -> Option<Outcome> {
        self.tries().last.clone()
    }

    /// What is to be said of a request that failed; `said` is what the store's client says of it.
    pub(crate) fn refused(&self, address: &Address, said: String) -> Error {
        let Tries { count, last } = self.tries().clone();
        Error::refused(address, count, last, said)
    }

    fn tries(&self) -> MutexGuard<'_, Tries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that the body of the last answer broke off.
    pub(crate) fn broke(&self, why: String) {
        self.tries().last = Some(Outcome::Broken(why));
    }

    fn note(&self, outcome: Outcome) {
        let mut tries = self.tries();
        *tries = Tries { count: tries.count.saturating_add(1), last: Some(outcome) };
    }
}

/// The HTTP client behind all stores.
#[derive(Clone, Debug)]
pub(crate) struct Service {
    client: reqwest::Client,
    /// How long the head of an answer may take. The client's own limit begins anew with every byte.
    patience: Duration,
}

impl Service {
    /// A client that asks proxies and trusts certificates as the system does.
    ///
    /// # Errors
    /// What is wrong with the proxies or the certificates of the system.
    pub(crate) fn new(options: &Options, asked: Use) -> Result<Self, String> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let trusted = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(BuilderVerifierExt::with_platform_verifier)
            .map_err(|e| format!("the system's certificates cannot be used: {e}"))?;
        let mut builder = reqwest::Client::builder()
            .tls_backend_preconfigured(trusted.with_no_client_auth())
            .user_agent(concat!("engraft/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(options.patience)
            .redirect(redirects())
            .dns_resolver(Lookup)
            .http1_only()
            .no_proxy();
        // Its clock runs while a body is sent, too; a slow line takes minutes for a part.
        let mut patience = options.patience;
        match asked {
            Use::Reading => builder = builder.read_timeout(patience),
            Use::Writing => patience = patience.saturating_mul(SLOWER),
        }
        for proxy in proxies(&options.environment)? {
            builder = builder.proxy(proxy);
        }
        builder.build().map(|client| Self { client, patience }).map_err(|e| innermost(&e))
    }
}

/// Follows redirects, but never from a secret connection to an open one.
fn redirects() -> Policy {
    Policy::custom(|attempt| {
        let was_secret = attempt.previous().last().is_some_and(|url| url.scheme() == "https");
        if was_secret && attempt.url().scheme() != "https" {
            attempt.error("the server redirects from https to http")
        } else if attempt.previous().len() > REDIRECTS {
            attempt.error("the server redirects in circles")
        } else {
            attempt.follow()
        }
    })
}

fn proxies(environment: &Environment) -> Result<Vec<Proxy>, String> {
    let except = || environment.get("NO_PROXY").and_then(NoProxy::from_string);
    let made = [
        ("HTTP_PROXY", environment.get("HTTP_PROXY").map(Proxy::http)),
        ("HTTPS_PROXY", environment.get("HTTPS_PROXY").map(Proxy::https)),
        ("ALL_PROXY", environment.get("ALL_PROXY").map(Proxy::all)),
    ];
    let named = made.into_iter().filter_map(|(name, proxy)| Some((name, proxy?)));
    named
        .map(|(name, proxy)| match proxy {
            Ok(proxy) => Ok(proxy.no_proxy(except())),
            Err(_) => Err(format!("{name} is no URL of a proxy")),
        })
        .collect()
}

#[async_trait]
impl HttpService for Service {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let trail = request.extensions().get::<Trail>().cloned();
        let answer = tokio::time::timeout(self.patience.saturating_mul(2), self.client.call(request)).await;
        let answer = answer.unwrap_or_else(|late| Err(HttpError::new(HttpErrorKind::Timeout, late)));
        if let Some(trail) = trail {
            trail.note(match &answer {
                Ok(response) => Outcome::Status(response.status().as_u16()),
                Err(error) => outcome(error),
            });
        }
        let mut response = answer?;
        // Stores refuse an answer without length; one that is made while it is sent has none, and that is no fault of it.
        if response.status().is_success() && !response.headers().contains_key(LENGTH) {
            response.headers_mut().insert(LENGTH, HeaderValue::from(UNKNOWN));
        }
        Ok(response)
    }
}

fn outcome(error: &HttpError) -> Outcome {
    match error.kind() {
        HttpErrorKind::Timeout => Outcome::Silent,
        HttpErrorKind::Connect => Outcome::Unreachable(innermost(error)),
        _ => Outcome::Broken(innermost(error)),
    }
}

/// The first cause of an error: the one that names no URL.
pub(crate) fn innermost(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}

impl HttpConnector for Service {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}

/// The store that an address lies in, and its path there.
///
/// # Errors
/// What the configuration of the store lacks.
pub(crate) fn store(
    address: &Address,
    service: &Service,
    options: &Options,
) -> object_store::Result<Arc<dyn ObjectStore>> {
    let retry = RetryConfig {
        backoff: BackoffConfig { init_backoff: options.backoff, max_backoff: options.patience, base: 2.0 },
        max_retries: options.retries as usize,
        retry_timeout: options.patience.saturating_mul(options.retries.saturating_add(1)),
    };
    let environment = &options.environment;
    match address.scheme() {
        Scheme::S3 => s3(address.bucket(), service, retry, environment),
        Scheme::Gs => gs(address.bucket(), service, retry, environment),
        Scheme::Az => az(address.bucket(), service, retry, environment),
        Scheme::Http => {
            let url = address.url().map(ToString::to_string).unwrap_or_default();
            let builder = HttpBuilder::new().with_url(url).with_retry(retry);
            Ok(Arc::new(builder.with_http_connector(service.clone()).build()?))
        }
    }
}

fn s3(
    bucket: &str,
    service: &Service,
    retry: RetryConfig,
    environment: &Environment,
) -> object_store::Result<Arc<dyn ObjectStore>> {
    const SIGNING: [&str; 5] = [
        "AWS_ACCESS_KEY_ID",
        "AWS_WEB_IDENTITY_TOKEN_FILE",
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
        "AWS_SKIP_SIGNATURE",
    ];
    let mut builder = AmazonS3Builder::new();
    for (name, value) in environment.of_cloud("AWS_") {
        if let Ok(key) = name.to_ascii_lowercase().parse::<AmazonS3ConfigKey>() {
            builder = builder.with_config(key, value);
        }
    }
    if !environment.has_any(&SIGNING) {
        builder = builder.with_skip_signature(true);
    }
    // An endpoint of one's own says itself whether it is reached by http.
    let builder = builder.with_bucket_name(bucket).with_allow_http(true).with_retry(retry);
    Ok(Arc::new(builder.with_http_connector(service.clone()).build()?))
}

fn gs(
    bucket: &str,
    service: &Service,
    retry: RetryConfig,
    environment: &Environment,
) -> object_store::Result<Arc<dyn ObjectStore>> {
    const SIGNING: [&str; 6] = [
        "GOOGLE_APPLICATION_CREDENTIALS",
        "GOOGLE_SERVICE_ACCOUNT",
        "GOOGLE_SERVICE_ACCOUNT_PATH",
        "GOOGLE_SERVICE_ACCOUNT_KEY",
        "GOOGLE_BEARER_TOKEN",
        "GOOGLE_SKIP_SIGNATURE",
    ];
    let mut builder = GoogleCloudStorageBuilder::new();
    for (name, value) in environment.of_cloud("GOOGLE_") {
        if let Ok(key) = name.to_ascii_lowercase().parse::<GoogleConfigKey>() {
            builder = builder.with_config(key, value);
        }
    }
    if !environment.has_any(&SIGNING) {
        builder = builder.with_skip_signature(true);
    }
    let builder = builder.with_bucket_name(bucket).with_retry(retry);
    Ok(Arc::new(builder.with_http_connector(service.clone()).build()?))
}

fn az(
    container: &str,
    service: &Service,
    retry: RetryConfig,
    environment: &Environment,
) -> object_store::Result<Arc<dyn ObjectStore>> {
    const SIGNING: [&str; 9] = [
        "AZURE_STORAGE_ACCOUNT_KEY",
        "AZURE_STORAGE_ACCESS_KEY",
        "AZURE_STORAGE_SAS_TOKEN",
        "AZURE_STORAGE_SAS_KEY",
        "AZURE_STORAGE_TOKEN",
        "AZURE_STORAGE_USE_EMULATOR",
        "AZURE_CLIENT_ID",
        "AZURE_FEDERATED_TOKEN_FILE",
        "AZURE_SKIP_SIGNATURE",
    ];
    let mut builder = MicrosoftAzureBuilder::new();
    for (name, value) in environment.of_cloud("AZURE_") {
        if let Ok(key) = name.to_ascii_lowercase().parse::<AzureConfigKey>() {
            builder = builder.with_config(key, value);
        }
    }
    if !environment.has_any(&SIGNING) {
        builder = builder.with_skip_signature(true);
    }
    let builder = builder.with_container_name(container).with_allow_http(true).with_retry(retry);
    Ok(Arc::new(builder.with_http_connector(service.clone()).build()?))
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) => {
                let reason = reqwest::StatusCode::from_u16(*status).ok().and_then(|s| s.canonical_reason());
                write!(f, "the server says {status} {}", reason.unwrap_or("(a status without a name)"))
            }
            Self::Silent => f.write_str("the server was silent for too long"),
            Self::Unreachable(why) => write!(f, "there is no connection ({why})"),
            Self::Broken(why) => write!(f, "the answer broke off ({why})"),
        }
    }
}
