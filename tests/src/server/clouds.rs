//! Lists of objects as S3, Google and Azure give them, and Azure's removal of several at once.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::TcpStream;

use super::{Request, State, Thing};

/// What an answer is of, and its body.
type Answer = (&'static str, String);

/// Answers a request about many objects, if it is one.
pub(super) fn answer(
    stream: &TcpStream,
    request: &Request,
    body: &[u8],
    state: &mut State,
) -> Option<io::Result<()>> {
    let (path, query) = request.target.split_once('?')?;
    let asked = |name: &str| {
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.find(|(key, _)| *key == name).map(|(_, value)| plain(value))
    };
    let container = format!("{}/", path.trim_end_matches('/'));
    let prefix = asked("prefix").unwrap_or_default();
    let found = state.things.iter().filter_map(|(target, thing)| {
        let key = plain(target.strip_prefix(&container)?);
        key.starts_with(&prefix).then(|| (key, thing.bytes.len()))
    });
    let (kind, text) = match (asked("comp").as_deref(), asked("list-type")) {
        (Some("list"), _) => of_azure(found),
        (Some("batch"), _) => removed(body, &mut state.things),
        (_, Some(_)) => of_others(found),
        _ => return None,
    };
    state.log.push(request.clone());
    let mut stream = stream;
    Some(write!(
        stream,
        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n{text}",
        text.len()
    ))
}

/// A part of a URL without `%2F` and the like.
fn plain(part: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = part.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        let code = behind.get(..2).filter(|_| *first == b'%').and_then(|code| std::str::from_utf8(code).ok());
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(byte) => (bytes.push(byte), rest = &behind[2..]),
            None => (bytes.push(*first), rest = behind),
        };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn of_azure(found: impl Iterator<Item = (String, usize)>) -> Answer {
    let blobs: String = found
        .map(|(key, bytes)| {
            format!(
                "<Blob><Name>{key}</Name><Properties><Last-Modified>Thu, 01 Jan 2026 00:00:00 GMT</Last-Modified>\
                 <Content-Length>{bytes}</Content-Length><Content-Type>x</Content-Type><Etag>e</Etag></Properties></Blob>"
            )
        })
        .collect();
    (
        "application/xml",
        format!("<EnumerationResults><Blobs>{blobs}</Blobs><NextMarker/></EnumerationResults>"),
    )
}

fn of_others(found: impl Iterator<Item = (String, usize)>) -> Answer {
    let objects: String = found
        .map(|(key, bytes)| {
            format!(
                "<Contents><Key>{key}</Key><LastModified>2026-01-01T00:00:00Z</LastModified><ETag>e</ETag><Size>{bytes}</Size></Contents>"
            )
        })
        .collect();
    ("application/xml", format!("<ListBucketResult>{objects}</ListBucketResult>"))
}

/// Removes what the parts of a batch name, and answers each.
fn removed(body: &[u8], things: &mut BTreeMap<String, Thing>) -> Answer {
    let body = String::from_utf8_lossy(body);
    let targets = body.lines().filter_map(|line| line.strip_prefix("DELETE ")?.strip_suffix(" HTTP/1.1"));
    let mut text = String::new();
    for (number, target) in targets.enumerate() {
        let status = if things.remove(target).is_some() {
            "202 Accepted"
        } else {
            "404 The specified blob does not exist."
        };
        text += &format!(
            "--of_parts\r\nContent-Type: application/http\r\nContent-ID: {number}\r\n\r\nHTTP/1.1 {status}\r\nx-ms-version: 2018-11-09\r\n\r\n"
        );
    }
    ("multipart/mixed; boundary=of_parts", text + "--of_parts--")
}
