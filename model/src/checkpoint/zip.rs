//! The list of a zip archive's files as `torch.save` writes it: stored as they are, with their CRCs, which are compared.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use super::{error, whole};
use crate::Error;

/// A file in an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    /// Its first byte in the archive.
    pub(super) start: u64,
    /// Its bytes.
    pub(super) size: usize,
}

/// The longest end of an archive: its record of 22 bytes, and a remark.
const END: u64 = 22 + 0xffff;
/// The longest list of files.
const LIST: u64 = 1 << 24;
/// Bytes that are read at a time.
const CHUNK: u64 = 1 << 18;

/// All files of an archive by name, each with the CRC that the archive says it has.
pub(super) fn entries(path: &Path) -> Result<BTreeMap<String, Entry>, Error> {
    let (file, length) = whole::open(path)?;
    let mut archive = Archive { path, file, length };
    let (list, mut at) = (archive.list()?, 0);
    let (mut entries, mut bytes) = (BTreeMap::new(), 0);
    while at < list.len() {
        let head = list[at..].first_chunk::<46>().filter(|head| head.starts_with(b"PK\x01\x02"));
        let head =
            head.ok_or_else(|| archive.wrong(format!("byte {at} of its list of files is no file's")))?;
        let [name, more, remark] = [28, 30, 32].map(|at| usize::from(short(head, at)));
        let name = list.get(at + 46..at + 46 + name);
        let name = name.and_then(|name| std::str::from_utf8(name).ok()).map(str::to_owned);
        let name = name.ok_or_else(|| archive.wrong("a file without a name".to_owned()))?;
        at += 46 + name.len() + more + remark;
        // Files that lie in each other could be read for ever.
        bytes += u64::from(number(head, 24));
        if bytes > length {
            return Err(archive.wrong("its files have more bytes than it".to_owned()));
        }
        let entry = archive.entry(&name, head)?;
        if entries.insert(name.clone(), entry).is_some() {
            return Err(archive.wrong(format!("{name} is there twice")));
        }
    }
    Ok(entries)
}

/// An archive that is being read.
struct Archive<'a> {
    path: &'a Path,
    file: File,
    length: u64,
}

impl Archive<'_> {
    fn wrong(&self, problem: String) -> Error {
        error::pickle(self.path, problem)
    }

    fn read(&mut self, start: u64, count: u64) -> Result<Vec<u8>, Error> {
        if start.checked_add(count).is_none_or(|end| end > self.length) {
            return Err(self.wrong(format!("it ends before byte {start} + {count}")));
        }
        let mut bytes = vec![0; usize::try_from(count).unwrap_or(usize::MAX)];
        let read = self.file.seek(SeekFrom::Start(start)).and_then(|_| self.file.read_exact(&mut bytes));
        read.map_err(Error::file(self.path))?;
        Ok(bytes)
    }

    /// The list of its files, which the record at its end says where to find.
    fn list(&mut self) -> Result<Vec<u8>, Error> {
        let end = self.read(self.length.saturating_sub(END), self.length.min(END))?;
        let end = end.windows(22).rposition(|window| window.starts_with(b"PK\x05\x06")).map(|at| &end[at..]);
        let end = end.ok_or_else(|| self.wrong("it is no zip archive, or not whole".to_owned()))?;
        let (size, start) = (u64::from(number(end, 12)), u64::from(number(end, 16)));
        if size > LIST {
            return Err(self.wrong(format!("its list of files has {size} bytes, expected at most {LIST}")));
        }
        self.read(start, size)
    }

    /// A file by its head in the list, if it is stored as it is and has its CRC.
    fn entry(&mut self, name: &str, head: &[u8; 46]) -> Result<Entry, Error> {
        let (flags, method) = (short(head, 8), short(head, 10));
        let [crc, stored, size, local] = [16, 20, 24, 42].map(|at| number(head, at));
        if method != 0 || stored != size || flags & 1 != 0 || size == u32::MAX {
            return Err(self.wrong(format!("{name} is compressed, encrypted or of 4 GiB and more")));
        }
        let own = self.read(u64::from(local), 30)?;
        if !own.starts_with(b"PK\x03\x04") {
            return Err(self.wrong(format!("{name} is not where its list of files says")));
        }
        let start = u64::from(local) + 30 + u64::from(short(&own, 26)) + u64::from(short(&own, 28));
        let (mut hasher, mut done) = (crc32fast::Hasher::new(), 0);
        while done < u64::from(size) {
            let count = (u64::from(size) - done).min(CHUNK);
            hasher.update(&self.read(start + done, count)?);
            done += count;
        }
        if hasher.finalize() != crc {
            return Err(
                self.wrong(format!("{name} is damaged: its CRC is not the one that the archive says"))
            );
        }
        Ok(Entry { start, size: usize::try_from(size).unwrap_or(usize::MAX) })
    }
}

fn short(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn number(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
