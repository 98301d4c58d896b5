//! Phrases from constituency trees in brackets, as the Penn Treebank, Stanza and CoreNLP print them.
//!
//! `(ROOT (S (NP (DT The) (NN heart)) (VP (VBZ beats))))`: a tree may have several lines, and a line several trees. At level 1 a word
//! is a phrase by itself, for its parent is its part of speech; level n climbs n - 1 constituents further up, or to the root. Words
//! that arrive at the same constituent and have no other between them are one phrase, so that at level 2 words directly under a
//! large constituent are a phrase with their neighbours there only. No tree is ever built: depth costs memory for what is open, no
//! call stack.

use std::io::BufRead;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::Path;

use base::funnel::Tally;
use base::line::{Lines, Place};
use base::read::ReadError;
use serde::{Deserialize, Serialize};

use super::reader::{Bytes, DocumentReader, Opened, TextFormat};
use super::{Counts, Document, Labels};

/// How trees become phrases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// How many levels above a word its phrase is, from 1: 1 is its part of speech, so the word alone; 2 is the lowest constituent above
    /// that.
    pub level: NonZeroUsize,
}

/// Bytes of a tree, at most, white space not counted.
const LONGEST: usize = 8 << 20;

const BLANK: &str = "blank line";
const EMPTY: &str = "tree without words";

/// The words of one sentence and its phrases; readers fill the same one again and again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Tree {
    /// The line on which it begins, from 1.
    line: u64,
    /// Its leaves, brackets and slashes as the text has them. Traces (`-NONE-`) are no words.
    words: Vec<String>,
    /// Its phrases in words, from 0; in order, and every word is in one.
    segments: Vec<Range<usize>>,
}

impl Tree {
    /// Its phrases in bytes, if its words stand at `words`.
    fn phrases(&self, words: &[Range<usize>]) -> Option<Vec<Range<usize>>> {
        let bytes = |s: &Range<usize>| Some(words.get(s.start)?.start..words.get(s.end.checked_sub(1)?)?.end);
        self.segments.iter().map(bytes).collect()
    }

    fn clear(&mut self) {
        self.line = 0;
        self.words.clear();
        self.segments.clear();
    }
}

/// An open constituent.
#[derive(Debug, Clone, Copy)]
struct Node {
    number: usize,
    /// Its label, or, if it has none, its bracket, has been read.
    labelled: bool,
    /// It is a trace.
    trace: bool,
    content: Content,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    Nothing,
    Word,
    Nodes,
}

/// Reads tree after tree.
#[derive(Debug)]
struct Reader<'f, R> {
    lines: Lines<'f, R>,
    file: &'f Path,
    config: Config,
    tally: Tally,
    /// The line under way and how much of it is read.
    line: String,
    at: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Piece {
    Open,
    Close,
    Word,
}

impl<'f, R: BufRead> Reader<'f, R> {
    /// Trees of `reader`; `file` names it in messages. The last line may lack its end.
    fn new(reader: R, file: &'f Path, config: Config) -> Self {
        let lines = Lines::new(reader, file);
        let tally = Tally::new(file, &[BLANK, EMPTY]);
        Self { lines, file, config, tally, line: String::new(), at: 0 }
    }

    /// Fills `tree` with the next one; `false` at the end of the file. Trees without words are left out and counted.
    ///
    /// # Errors
    /// When the file is damaged, or none of the format.
    fn read(&mut self, tree: &mut Tree) -> Result<bool, ReadError> {
        loop {
            tree.clear();
            match self.piece()? {
                None => return Ok(false),
                Some((_, Piece::Open)) => {}
                Some((at, _)) => return Err(self.shape(at.start, "( as the beginning of a tree")),
            }
            tree.line = self.lines.lines();
            self.tree(tree)?;
            if !tree.words.is_empty() {
                self.tally.keep();
                return Ok(true);
            }
            self.tally.drop(EMPTY);
        }
    }

    /// Fills `document` with the next tree: its text is the words with one space between them.
    ///
    /// # Errors
    /// When the file is damaged, or none of the format.
    fn document(&mut self, tree: &mut Tree, document: &mut Document) -> Result<bool, ReadError> {
        document.clear();
        if !self.read(tree)? {
            return Ok(false);
        }
        document.id.push_str(&tree.line.to_string());
        document.sentences.push(0);
        for word in &tree.words {
            if !document.words.is_empty() {
                document.text.push(' ');
            }
            let start = document.text.len();
            document.text.push_str(word);
            document.words.push(start..document.text.len());
        }
        document.phrases = tree.phrases(&document.words).unwrap_or_default();
        Ok(true)
    }

    /// What became of the file so far.
    fn tally(&self) -> Tally {
        Tally { bytes: self.lines.bytes(), lines: self.lines.lines(), ..self.tally.clone() }
    }

    /// Reads up to the bracket that closes the tree, whose opening one is read.
    fn tree(&mut self, tree: &mut Tree) -> Result<(), ReadError> {
        let climb = self.config.level.get() - 1;
        // Of the open constituents; those that close are forgotten.
        let mut open: Vec<Node> = vec![Node::new(0)];
        let (mut nodes, mut before, mut bytes) = (1, None, 1);
        while let Some(node) = open.last_mut() {
            let Some((at, piece)) = self.piece()? else {
                return Err(self.shape(self.at, "a closing bracket for each open one"));
            };
            bytes += at.len();
            if bytes > LONGEST {
                let found = format!("the tree has more than {LONGEST} bytes");
                let expected = "the tree of one sentence";
                return Err(ReadError::new(self.place(None), found, expected, "close its brackets"));
            }
            match piece {
                Piece::Open if node.content == Content::Word => {
                    return Err(self.shape(at.start, ") behind the word"));
                }
                Piece::Open => {
                    (node.labelled, node.content) = (true, Content::Nodes);
                    open.push(Node::new(nodes));
                    nodes += 1;
                }
                Piece::Close if node.content == Content::Nothing => {
                    return Err(self.shape(at.start, "a word or a constituent in the brackets"));
                }
                Piece::Close => drop(open.pop()),
                Piece::Word if !node.labelled => {
                    node.labelled = true;
                    node.trace = &self.line[at] == "-NONE-";
                }
                // Stanza prints words that have spaces as they are.
                Piece::Word if node.content == Content::Word => {
                    if let Some(word) = tree.words.last_mut().filter(|_| !node.trace) {
                        word.push(' ');
                        word.push_str(&unescape(&self.line[at]));
                    }
                }
                Piece::Word if node.content == Content::Nodes => {
                    return Err(
                        self.shape(at.start, "one word and its part of speech in brackets of their own")
                    );
                }
                Piece::Word => {
                    node.content = Content::Word;
                    if node.trace {
                        continue;
                    }
                    let top = open[open.len().saturating_sub(climb + 1)].number;
                    let word = tree.words.len();
                    tree.words.push(unescape(&self.line[at]));
                    match tree.segments.last_mut().filter(|_| before == Some(top)) {
                        Some(segment) => segment.end = word + 1,
                        None => tree.segments.push(word..word + 1),
                    }
                    before = Some(top);
                }
            }
        }
        Ok(())
    }

    /// The next bracket or word and where it stands in the line; none at the end of the file.
    fn piece(&mut self) -> Result<Option<(Range<usize>, Piece)>, ReadError> {
        loop {
            let rest = &self.line[self.at..];
            let start = self.line.len() - rest.trim_ascii_start().len();
            let Some(&first) = self.line.as_bytes().get(start) else {
                if !self.next_line()? {
                    return Ok(None);
                }
                continue;
            };
            let (length, piece) = match first {
                b'(' => (1, Piece::Open),
                b')' => (1, Piece::Close),
                _ => {
                    let rest = &self.line[start..];
                    let ends = |c: char| c == '(' || c == ')' || c.is_ascii_whitespace();
                    (rest.find(ends).unwrap_or(rest.len()), Piece::Word)
                }
            };
            self.at = start + length;
            return Ok(Some((start..self.at, piece)));
        }
    }

    fn next_line(&mut self) -> Result<bool, ReadError> {
        self.at = self.line.len();
        let Some(line) = self.lines.next_line()? else { return Ok(false) };
        let text = super::unmarked(line.text);
        self.at = 0;
        self.line.clear();
        if text.trim().is_empty() {
            self.tally.drop(BLANK);
        }
        self.line.push_str(text);
        Ok(true)
    }

    fn place(&self, byte: Option<usize>) -> Place {
        let column = byte.map(|byte| (byte + 1, "byte of the line"));
        Place { file: self.file.to_owned(), line: self.lines.lines(), column }
    }

    fn shape(&self, at: usize, expected: &str) -> ReadError {
        let found: String = self.line.get(at..).unwrap_or_default().chars().take(20).collect();
        let found = if found.is_empty() { "the end of the file".to_owned() } else { format!("{found:?}") };
        ReadError::new(
            self.place(Some(at)),
            format!("found {found}"),
            expected,
            "fix the tree, or print it again",
        )
    }
}

impl Node {
    fn new(number: usize) -> Self {
        Self { number, labelled: false, trace: false, content: Content::Nothing }
    }
}

/// What stands in trees for what would be taken for a part of them.
const ESCAPED: [(&str, &str); 8] = [
    ("-LRB-", "("),
    ("-RRB-", ")"),
    ("-LSB-", "["),
    ("-RSB-", "]"),
    ("-LCB-", "{"),
    ("-RCB-", "}"),
    ("\\/", "/"),
    ("\\*", "*"),
];

/// A leaf as the text has it.
fn unescape(leaf: &str) -> String {
    let mut word = leaf.to_owned();
    for (escaped, plain) in ESCAPED {
        if word.contains(escaped) {
            word = word.replace(escaped, plain);
        }
    }
    word
}

impl TextFormat for Config {
    fn reader<'f>(&'f self, bytes: Bytes<'f>, file: &'f Path) -> Opened<'f> {
        Ok(Box::new(Documents { reader: Reader::new(bytes, file, *self), tree: Tree::default() }))
    }
}

/// A document for each tree.
struct Documents<'f, R> {
    reader: Reader<'f, R>,
    tree: Tree,
}

impl<R: BufRead> DocumentReader for Documents<'_, R> {
    fn read(&mut self, document: &mut Document, _: &mut Labels) -> Result<bool, ReadError> {
        self.reader.document(&mut self.tree, document)
    }

    fn counts(&self) -> Counts {
        Counts::of(self.reader.tally())
    }
}

#[cfg(test)]
mod tests {
    use super::super::attach;
    use super::*;
    use crate::damage::assert_sound_or_refuses;

    fn read(bytes: &[u8], level: usize) -> Result<(Vec<Tree>, Tally), ReadError> {
        let config = Config { level: NonZeroUsize::new(level).unwrap() };
        let mut reader = Reader::new(bytes, Path::new("some.ptb"), config);
        let (mut tree, mut all) = (Tree::default(), Vec::new());
        while reader.read(&mut tree)? {
            all.push(tree.clone());
        }
        Ok((all, reader.tally()))
    }

    /// The phrases of one tree, words joined by spaces.
    fn cut(tree: &str, level: usize) -> Vec<String> {
        let (all, _) = read(tree.as_bytes(), level).unwrap();
        assert_eq!(all.len(), 1, "{tree}");
        all[0].segments.iter().map(|s| all[0].words[s.clone()].join(" ")).collect()
    }

    const HEART: &str = "(ROOT (S (NP (NP (DT The) (JJ old) (NN heart)) (PP (IN of) (NP (DT the) (NN man)))) \
        (VP (VBZ beats) (ADVP (RB very) (RB fast)) (NP (NN today))) (. .)))";

    #[test]
    fn words_climb_to_their_constituents() {
        assert_eq!(cut(HEART, 1).len(), 11);
        assert_eq!(cut(HEART, 2), ["The old heart", "of", "the man", "beats", "very fast", "today", "."]);
        assert_eq!(cut(HEART, 3), ["The old heart of", "the man", "beats", "very fast today", "."]);
        assert_eq!(cut(HEART, 9), ["The old heart of the man beats very fast today ."]);
    }

    #[test]
    fn words_under_a_large_constituent_share_a_phrase_with_their_neighbours_there_only() {
        let tree = "(S (CC but) (RB then) (NP (NN pain)) (RB not) (VB go) (NP (NN x)) (. .))";
        assert_eq!(cut(tree, 2), ["but then", "pain", "not go", "x", "."]);
        // Constituents of the same name side by side are two.
        assert_eq!(cut("(NP (NP (NN a)) (NP (NN b)))", 2), ["a", "b"]);
        assert_eq!(cut("(NP (NP (NN a)) (NP (NN b)))", 3), ["a b"]);
        assert_eq!(cut("(NN a)", 2), ["a"]);
    }

    #[test]
    fn lines_and_trees_need_not_agree() {
        let file = "\u{feff}(ROOT\n  (NP (DT the)\r\n    (NN heart)))\n\n(NP (NN a)) (NP (NN b))\n(X (-NONE- *T*-1))\n( (S (NP\n(NN c))(-NONE- 0)))";
        let (all, tally) = read(file.as_bytes(), 2).unwrap();
        let said: Vec<(u64, String)> = all.iter().map(|tree| (tree.line, tree.words.join(" "))).collect();
        let expected = [(1, "the heart"), (5, "a"), (5, "b"), (7, "c")];
        assert_eq!(said, expected.map(|(line, words)| (line, words.to_owned())));
        assert_eq!((tally.kept, tally.dropped[EMPTY], tally.dropped[BLANK], tally.lines), (4, 1, 1, 8));
        assert_eq!(read(b" \n", 2).unwrap().0, []);
    }

    #[test]
    fn leaves_are_as_the_text_has_them_and_become_places_in_it() {
        let file =
            "(NP (NN heart) (PRN (-LRB- -LRB-) (NN 1\u{a0}000\\/x) (-RRB- -RRB-)) (`` ``) (NN née) ('' ''))";
        let (all, _) = read(file.as_bytes(), 2).unwrap();
        assert_eq!(all[0].words, ["heart", "(", "1\u{a0}000/x", ")", "``", "née", "''"]);
        let text = "heart (1 000/x) \"née\"";
        let words = attach::words(text, &all[0].words).unwrap();
        let phrases = all[0].phrases(&words).unwrap();
        let phrases: Vec<&str> = phrases.into_iter().map(|place| &text[place]).collect();
        assert_eq!(phrases, ["heart", "(1 000/x)", "\"née\""]);
        assert_eq!(all[0].phrases(&words[1..]), None);
    }

    #[test]
    fn a_leaf_of_several_words_is_one_word_with_spaces() {
        let (all, _) = read(b"(NP (CD 1 000) (-NONE- * *) (NN g))", 1).unwrap();
        assert_eq!((all[0].words.join("|"), all[0].segments.len()), ("1 000|g".to_owned(), 2));
    }

    #[test]
    fn a_document_is_the_words_with_one_space_between() {
        let config = Config { level: NonZeroUsize::new(2).unwrap() };
        let mut reader = Reader::new(HEART.as_bytes(), Path::new("some.ptb"), config);
        let (mut tree, mut document) = (Tree::default(), Document::default());
        assert!(reader.document(&mut tree, &mut document).unwrap());
        assert_eq!(document.text, "The old heart of the man beats very fast today .");
        assert_eq!((document.id.as_str(), document.words.len()), ("1", 11));
        assert_eq!(document.phrases[..3], [0..13, 14..16, 17..24]);
        assert!(!reader.document(&mut tree, &mut document).unwrap());
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        for (file, expected) in [
            (
                "\n(S (NN a)\n",
                "line 2, column 10 (byte of the line): found the end of the file, expected a closing",
            ),
            ("(S (NN a)))", "line 1, column 11 (byte of the line): found \")\", expected ( as the beginning"),
            ("heart", "found \"heart\", expected ( as the beginning of a tree"),
            ("(S\n (NP (NN a) b))", "line 2, column 13 (byte of the line): found \"b))\", expected one word"),
            (
                "(S (NP a (NN b)))",
                "column 10 (byte of the line): found \"(NN b)))\", expected ) behind the word",
            ),
            ("(S (NN a) b)", "found \"b)\", expected one word"),
            ("(S (NN))", "found \"))\", expected a word or a constituent"),
            ("()", "found \")\", expected a word or a constituent"),
        ] {
            let message = read(file.as_bytes(), 2).unwrap_err().to_string();
            assert!(
                message.starts_with("some.ptb: line ") && message.contains(expected),
                "{file}: {message}"
            );
        }
    }

    #[test]
    fn depth_is_no_danger() {
        let deep = format!("{}(NN a){}", "(S ".repeat(1_000_000), ")".repeat(1_000_000));
        assert_eq!(cut(&deep, 3), ["a"]);
        assert!(read("(".repeat(2_000_000).as_bytes(), 2).is_err());
        let message = read("((S\n".repeat(4_000_000).as_bytes(), 2).unwrap_err().to_string();
        assert!(message.contains("the tree has more than 8388608 bytes"), "{message}");
    }

    #[test]
    fn damaged_files_are_read_or_refused() {
        let file = format!("{HEART}\n(X (-LRB- -LRB-)\n (NN née))\n");
        for level in 1..4 {
            let config = Config { level: NonZeroUsize::new(level).unwrap() };
            assert_sound_or_refuses(file.as_bytes(), |bytes| {
                let mut reader = Reader::new(bytes, Path::new("some.ptb"), config);
                let (mut tree, mut document, mut all) = (Tree::default(), Document::default(), Vec::new());
                while reader.document(&mut tree, &mut document).map_err(|error| error.to_string())? {
                    assert_eq!(tree.segments.iter().map(Range::len).sum::<usize>(), tree.words.len());
                    all.push(document.clone());
                }
                Ok(all)
            });
        }
    }
}
