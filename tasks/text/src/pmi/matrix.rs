//! The relevance of words, looked up in a memory-mapped file.

use std::fs::File;
use std::path::Path;

use base::read::ReadError;
use memmap2::Mmap;
use xxhash_rust::xxh3::xxh3_64;

use super::csr::{EMPTY, HEADER, Layout, MAGIC, VERSION, slot};

/// A relevance matrix. Threads may share it, and processes share its pages.
#[derive(Debug)]
pub struct Matrix {
    map: Mmap,
    layout: Layout,
}

/// The entries of a word.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Row<'m> {
    /// Words, in ascending order; never the word itself.
    pub columns: &'m [u32],
    /// Their relevance, in (0, 1].
    pub relevances: &'m [f32],
}

impl Matrix {
    /// Opens a file and checks all of it.
    ///
    /// # Errors
    /// When it cannot be read, is of another version or damaged.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        let error = |problem: String, remedy| ReadError::new(path, problem, "", remedy);
        let file = File::open(path).map_err(|e| error(format!("cannot be opened: {e}"), ""))?;
        let map = map(&file).map_err(|e| error(format!("cannot be mapped into memory: {e}"), ""))?;
        let layout = check(&map).map_err(|problem| error(problem, "score the counts again"))?;
        Ok(Self { map, layout })
    }

    fn numbers(&self, range: &std::ops::Range<usize>) -> &[u64] {
        bytemuck::cast_slice(&self.map[range.clone()])
    }

    /// Number of words.
    #[must_use]
    pub fn len(&self) -> usize {
        self.layout.words
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of a word, if it may have a relevance: its rank.
    #[must_use]
    pub fn id(&self, word: &str) -> Option<u32> {
        let slots: &[u32] = bytemuck::cast_slice(&self.map[self.layout.slots.clone()]);
        let mut at = slot(word, slots.len());
        loop {
            match slots[at] {
                EMPTY => return None,
                number if self.word(number) == Some(word) => return Some(number),
                _ => at = (at + 1) & (slots.len() - 1),
            }
        }
    }

    /// The word of a number.
    #[must_use]
    pub fn word(&self, id: u32) -> Option<&str> {
        let ends = self.numbers(&self.layout.ends);
        let end = *ends.get(id as usize)?;
        let start = (id as usize).checked_sub(1).map_or(0, |before| ends[before]);
        let letters = &self.map[self.layout.letters.clone()];
        std::str::from_utf8(letters.get(usize::try_from(start).ok()?..usize::try_from(end).ok()?)?).ok()
    }

    /// The entries of a word; none for a number that there is not.
    #[must_use]
    pub fn row(&self, id: u32) -> Row<'_> {
        let rows = self.numbers(&self.layout.rows);
        let place = |at: usize| rows.get(at).and_then(|&place| usize::try_from(place).ok()).unwrap_or(0);
        let range =
            if (id as usize) < self.len() { place(id as usize)..place(id as usize + 1) } else { 0..0 };
        let columns: &[u32] = bytemuck::cast_slice(&self.map[self.layout.columns.clone()]);
        let relevances: &[f32] = bytemuck::cast_slice(&self.map[self.layout.relevances.clone()]);
        Row { columns: &columns[range.clone()], relevances: &relevances[range] }
    }

    /// The relevance of two words: 1 for the same word, 0 for a pair that is not there.
    #[must_use]
    pub fn relevance(&self, word: u32, context: u32) -> f32 {
        if word == context {
            return 1.0;
        }
        let row = self.row(word);
        row.columns.binary_search(&context).map_or(0.0, |at| row.relevances[at])
    }
}

#[allow(unsafe_code, reason = "mapping a file has no safe form")]
fn map(file: &File) -> std::io::Result<Mmap> {
    // SAFETY: what is mapped must not change. An artifact is written whole under another name and never written to again;
    // replacing it leaves the mapped one as it is. Whoever cuts such a file short by hand gets SIGBUS, as with any mapped file.
    unsafe { Mmap::map(file) }
}

/// Checks everything that a look-up relies on.
fn check(bytes: &[u8]) -> Result<Layout, String> {
    let header = bytes.get(..HEADER * 8).ok_or("is shorter than its header")?;
    let header: &[u64] = bytemuck::try_cast_slice(header).map_err(|e| e.to_string())?;
    let &[magic, version, words, entries, slots, letters] = header else {
        return Err("is shorter than its header".to_owned());
    };
    if magic != MAGIC {
        return Err("is no relevance matrix of this machine's byte order".to_owned());
    }
    if version != VERSION {
        return Err(format!("has version {version}, expected {VERSION}"));
    }
    let layout = Layout::new([words, entries, slots, letters]).ok_or("has impossible sizes")?;
    if layout.check.checked_add(8) != Some(bytes.len()) || !slots.is_power_of_two() || slots <= words {
        return Err(format!("has {} bytes, which are not those of its header", bytes.len()));
    }
    let check = bytes[layout.check..].try_into().map_or(0, u64::from_le_bytes);
    if xxh3_64(&bytes[..layout.check]) != check {
        return Err("is damaged: its check is another".to_owned());
    }
    let numbers = |range: &std::ops::Range<usize>| -> &[u64] { bytemuck::cast_slice(&bytes[range.clone()]) };
    let rows = numbers(&layout.rows);
    let is_whole = rows.is_sorted() && rows.first() == Some(&0) && rows.last() == Some(&entries);
    let columns: &[u32] = bytemuck::cast_slice(&bytes[layout.columns.clone()]);
    let ends = numbers(&layout.ends);
    if !is_whole || columns.iter().any(|&c| u64::from(c) >= words) || !ends.is_sorted() {
        return Err("has entries outside itself".to_owned());
    }
    Ok(layout)
}
