//! An S3 server of others' making: `moto`.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

/// A whole S3 server, which ends when this is dropped.
#[derive(Debug)]
pub struct S3 {
    child: Child,
    address: String,
}

impl S3 {
    /// Starts `moto` with the interpreter that `ENGRAFT_PYTHON` names; without one, or without `moto` in it, nothing, and the test says that
    /// it skips.
    ///
    /// # Errors
    /// When it does not come up.
    pub fn of_environment() -> std::io::Result<Option<Self>> {
        let Some(python) = crate::python::interpreter("ENGRAFT_PYTHON") else { return Ok(None) };
        let started = Self::start(&python)?;
        if started.is_none() {
            crate::skipped("ENGRAFT_PYTHON has no moto: install tests/python/requirements.txt");
        }
        Ok(started)
    }

    /// Starts `moto` with the interpreter `python`; nothing if that has no `moto`.
    ///
    /// # Errors
    /// When it does not come up.
    fn start(python: &OsStr) -> std::io::Result<Option<Self>> {
        let has = Command::new(python).args(["-c", "import moto.server"]).output()?;
        if !has.status.success() {
            return Ok(None);
        }
        let mut command = Command::new(python);
        command.args(["-m", "moto.server", "-H", "127.0.0.1", "-p", "0"]);
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let child = command.spawn()?;
        let mut server = Self { child, address: String::new() };
        let Some(said) = server.child.stderr.take() else {
            return Err(std::io::ErrorKind::BrokenPipe.into());
        };
        let mut said = BufReader::new(said);
        let mut text = String::new();
        while server.address.is_empty() {
            let mut line = String::new();
            if said.read_line(&mut line)? == 0 {
                return Err(std::io::Error::other(format!("moto did not come up: {text}")));
            }
            if let Some((_, after)) = line.split_once("Running on http://") {
                let address = after.split_whitespace().next().unwrap_or_default();
                address.trim_end_matches('/').clone_into(&mut server.address);
            }
            text += &line;
        }
        // It goes on saying what it is asked; nobody listening would stop it.
        std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()).unwrap_or_default());
        Ok(Some(server))
    }

    /// Its endpoint.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Puts a bucket (`/bucket`) or an object (`/bucket/key`) there; returns the status.
    ///
    /// # Errors
    /// When the server does not answer.
    pub fn put(&self, path: &str, bytes: &[u8]) -> std::io::Result<String> {
        let mut stream = TcpStream::connect(&self.address)?;
        let (host, length) = (&self.address, bytes.len());
        // As a client of S3 would look: the server tells buckets by host or path.
        write!(stream, "PUT {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {length}\r\n")?;
        write!(
            stream,
            "Authorization: AWS4-HMAC-SHA256 Credential=x/20260101/us-east-1/s3/aws4_request\r\n"
        )?;
        write!(stream, "Connection: close\r\n\r\n")?;
        stream.write_all(bytes)?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer.lines().next().unwrap_or_default().to_owned())
    }
}

impl Drop for S3 {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
