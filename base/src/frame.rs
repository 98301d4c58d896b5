//! What processes say to one another over a connection: texts and numbers, each with its length and the number of the conversation that it belongs to, so that
//! what one conversation has left behind is not taken for the next one's.

use std::io::{ErrorKind, Read, Result, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::cancel::CancelToken;

/// What a frame holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Numbers.
    Numbers,
    /// Nothing: whoever sends it says no more in this conversation.
    End,
    /// A text.
    Text,
}

/// What stands before the contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// What comes.
    pub kind: Kind,
    /// The number of the conversation.
    pub conversation: u32,
    /// How many bytes come.
    pub bytes: u64,
}

/// How long to wait before looking whether to stop.
const LOOK: Duration = Duration::from_millis(50);
/// Bytes of a head.
const BYTES: usize = 13;
/// Bytes that a text has at most.
const LONG: u64 = 1 << 26;

impl Head {
    /// Writes it.
    ///
    /// # Errors
    /// When the connection is broken.
    pub fn write(self, to: &mut impl Write) -> Result<()> {
        let kind = match self.kind {
            Kind::Numbers => b'N',
            Kind::End => b'E',
            Kind::Text => b'T',
        };
        let mut bytes = [kind; BYTES];
        bytes[1..5].copy_from_slice(&self.conversation.to_le_bytes());
        bytes[5..].copy_from_slice(&self.bytes.to_le_bytes());
        to.write_all(&bytes)
    }

    /// Waits for the next one.
    ///
    /// # Errors
    /// When the connection is broken, or what comes is no head.
    pub fn read(from: &mut impl Read) -> Result<Self> {
        let mut bytes = [0; BYTES];
        from.read_exact(&mut bytes)?;
        let [kind, a, b, c, d, rest @ ..] = bytes;
        let kind = match kind {
            b'N' => Kind::Numbers,
            b'E' => Kind::End,
            b'T' => Kind::Text,
            _ => return Err(ErrorKind::InvalidData.into()),
        };
        Ok(Head { kind, conversation: u32::from_le_bytes([a, b, c, d]), bytes: u64::from_le_bytes(rest) })
    }

    /// Reads over what stands behind it.
    ///
    /// # Errors
    /// When the connection is broken.
    pub fn skip(self, from: &mut impl Read) -> Result<()> {
        let skipped = std::io::copy(&mut from.take(self.bytes), &mut std::io::sink())?;
        if skipped < self.bytes { Err(ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
    }
}

/// Waits until something comes or the connection ends, and looks now and then whether somebody asks to stop.
///
/// # Errors
/// When somebody does, or the connection is broken.
pub fn wait(from: &TcpStream, cancel: &CancelToken) -> Result<()> {
    from.set_read_timeout(Some(LOOK))?;
    let come = loop {
        cancel.check()?;
        match from.peek(&mut [0]) {
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            come => break come,
        }
    };
    from.set_read_timeout(None)?;
    come.map(drop)
}

/// The head that has come already, if one has, without taking it or waiting for it.
///
/// # Errors
/// When the connection is broken or has ended, or what comes is no head.
pub fn coming(from: &TcpStream) -> Result<Option<Head>> {
    from.set_nonblocking(true)?;
    let mut bytes = [0; BYTES];
    let found = from.peek(&mut bytes);
    from.set_nonblocking(false)?;
    match found {
        Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
        Ok(BYTES) => Head::read(&mut &bytes[..]).map(Some),
        Ok(_) => Ok(None),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}

/// Sends a text.
///
/// # Errors
/// When the connection is broken.
pub fn tell(to: &mut impl Write, conversation: u32, text: &str) -> Result<()> {
    Head { kind: Kind::Text, conversation, bytes: text.len() as u64 }.write(to)?;
    to.write_all(text.as_bytes())?;
    to.flush()
}

/// Waits for the next text; reads over everything else.
///
/// # Errors
/// When the connection is broken, or what comes is no text.
pub fn hear(from: &mut impl Read) -> Result<String> {
    loop {
        let head = Head::read(from)?;
        if head.kind != Kind::Text {
            head.skip(from)?;
            continue;
        }
        if head.bytes > LONG {
            return Err(ErrorKind::InvalidData.into());
        }
        let mut text = vec![];
        from.take(head.bytes).read_to_end(&mut text)?;
        if (text.len() as u64) < head.bytes {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        return String::from_utf8(text).map_err(|_| ErrorKind::InvalidData.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_left_is_read_over_and_what_is_cut_is_no_text() {
        let mut sent = vec![];
        Head { kind: Kind::Numbers, conversation: 1, bytes: 5 }.write(&mut sent).unwrap();
        sent.extend([7; 5]);
        Head { kind: Kind::End, conversation: 1, bytes: 0 }.write(&mut sent).unwrap();
        tell(&mut sent, 2, "what comes next: β").unwrap();
        let mut from = &sent[..];
        assert_eq!(hear(&mut from).unwrap(), "what comes next: β");
        assert_eq!(hear(&mut from).unwrap_err().kind(), ErrorKind::UnexpectedEof);
        for cut in 1..sent.len() {
            assert_eq!(
                hear(&mut &sent[..sent.len() - cut]).unwrap_err().kind(),
                ErrorKind::UnexpectedEof,
                "{cut}"
            );
        }
        assert_eq!(hear(&mut &b"GET / HTTP/1.1\r\n\r\n"[..]).unwrap_err().kind(), ErrorKind::InvalidData);
        let mut long = vec![];
        Head { kind: Kind::Text, conversation: 1, bytes: u64::MAX }.write(&mut long).unwrap();
        assert_eq!(hear(&mut &long[..]).unwrap_err().kind(), ErrorKind::InvalidData);
    }
}
