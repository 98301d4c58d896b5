//! Sequences of words as paths, found as fast as may be.

use super::lexicon::NONE;

/// Odd, with bits that look drawn: 2^64 divided by the golden ratio.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Where a path leads.
#[derive(Debug, Clone, Copy)]
pub(super) struct Node {
    /// One bit in 64 for each word that may come next: most words that do not come next are told by it.
    next: u64,
    /// The term that ends here in whatever case, or [`NONE`].
    pub(super) any_case: u32,
    /// The term that ends here in upper case, or [`NONE`].
    pub(super) upper_case: u32,
}

#[derive(Debug, Clone, Copy)]
struct Edge {
    from: u32,
    word: u32,
    /// [`NONE`] where the place is free.
    to: u32,
}

const FREE: Edge = Edge { from: NONE, word: NONE, to: NONE };

/// Paths of words; all that begin with the same words share their nodes.
#[derive(Debug, Clone)]
pub(super) struct Trie {
    /// Node behind each first word, or [`NONE`].
    first: Vec<u32>,
    nodes: Vec<Node>,
    /// Whence and by which word each node was reached; forgotten once the trie is whole.
    back: Vec<(u32, u32)>,
    /// An open table of what leads on from nodes.
    edges: Vec<Edge>,
    /// A byte of each edge's hash, 0 where the place is free: an eighth of the memory tells most of what is no edge.
    tags: Vec<u8>,
    taken: usize,
    shift: u32,
}

impl Trie {
    pub(super) fn new() -> Self {
        let bits = 6;
        Self {
            first: Vec::new(),
            nodes: Vec::new(),
            back: Vec::new(),
            edges: vec![FREE; 1 << bits],
            tags: vec![0; 1 << bits],
            taken: 0,
            shift: 64 - bits,
        }
    }

    /// The node behind `words`, which are none of them [`NONE`], made if need be; [`NONE`] when there are none left, or no words.
    pub(super) fn insert(&mut self, words: &[u32]) -> u32 {
        let Some((&word, rest)) = words.split_first() else { return NONE };
        if self.first.len() <= word as usize {
            self.first.resize(word as usize + 1, NONE);
        }
        let mut node = self.first[word as usize];
        if node == NONE {
            node = self.node(NONE, word);
            self.first[word as usize] = node;
        }
        for &word in rest {
            if node == NONE {
                break;
            }
            node = self.child(node, word);
        }
        node
    }

    fn child(&mut self, from: u32, word: u32) -> u32 {
        let (place, tag) = self.place(from, word);
        if self.edges[place].to != NONE {
            return self.edges[place].to;
        }
        let to = self.node(from, word);
        if to != NONE {
            self.nodes[from as usize].next |= bit(word);
            self.edges[place] = Edge { from, word, to };
            self.tags[place] = tag;
            self.taken += 1;
            if self.taken * 2 > self.edges.len() {
                self.grow();
            }
        }
        to
    }

    fn node(&mut self, from: u32, word: u32) -> u32 {
        let number = u32::try_from(self.nodes.len()).unwrap_or(NONE);
        if number != NONE {
            self.nodes.push(Node { next: 0, any_case: NONE, upper_case: NONE });
            self.back.push((from, word));
        }
        number
    }

    /// The words to `node`, last first. Only before [`Trie::finish`].
    pub(super) fn back(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        let step = |node: u32| self.back.get(node as usize).copied();
        std::iter::successors(step(node), move |&(from, _)| step(from)).map(|(_, word)| word)
    }

    /// Forgets what only building needs.
    pub(super) fn finish(&mut self) {
        self.back = Vec::new();
        self.nodes.shrink_to_fit();
        self.first.shrink_to_fit();
    }

    pub(super) fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter()
    }

    pub(super) fn get(&self, node: u32) -> Option<&Node> {
        self.nodes.get(node as usize)
    }

    pub(super) fn get_mut(&mut self, node: u32) -> Option<&mut Node> {
        self.nodes.get_mut(node as usize)
    }

    /// The node behind the first word, or [`NONE`].
    #[inline]
    pub(super) fn begin(&self, word: u32) -> u32 {
        self.first.get(word as usize).copied().unwrap_or(NONE)
    }

    /// The node to which `word` leads from `node`, whose number is `from`, or [`NONE`].
    #[inline]
    pub(super) fn step(&self, from: u32, node: &Node, word: u32) -> u32 {
        if node.next & bit(word) == 0 || word == NONE {
            return NONE;
        }
        let (place, _) = self.place(from, word);
        if self.tags[place] == 0 { NONE } else { self.edges[place].to }
    }

    /// Where the edge lies, or the free place where it would, and its tag.
    #[inline]
    fn place(&self, from: u32, word: u32) -> (usize, u8) {
        let mixed = (u64::from(from) << 32 | u64::from(word)).wrapping_mul(SPREAD);
        let mixed = (mixed ^ mixed >> 32).wrapping_mul(SPREAD);
        let [tag, ..] = mixed.to_le_bytes();
        let tag = tag | 1;
        let within = self.edges.len() - 1;
        let mut place = usize::try_from(mixed >> self.shift).unwrap_or(0);
        loop {
            let is_free = self.tags[place & within] == 0;
            let edge = || &self.edges[place & within];
            if is_free || self.tags[place & within] == tag && edge().from == from && edge().word == word {
                return (place & within, tag);
            }
            place += 1;
        }
    }

    fn grow(&mut self) {
        let old = std::mem::take(&mut self.edges);
        self.edges = vec![FREE; old.len() * 2];
        self.tags = vec![0; old.len() * 2];
        self.shift -= 1;
        for edge in old.into_iter().filter(|edge| edge.to != NONE) {
            let (place, tag) = self.place(edge.from, edge.word);
            self.edges[place] = edge;
            self.tags[place] = tag;
        }
    }
}

#[inline]
fn bit(word: u32) -> u64 {
    1 << (u64::from(word).wrapping_mul(SPREAD) >> 58)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// The node behind `words`, as a tagger goes.
    fn walk(trie: &Trie, words: &[u32]) -> u32 {
        let mut node = trie.begin(words[0]);
        for &word in &words[1..] {
            node = trie.get(node).map_or(NONE, |at| trie.step(node, at, word));
        }
        node
    }

    #[test]
    fn every_path_is_found_and_no_other() {
        let mut trie = Trie::new();
        let mut known = BTreeMap::new();
        let paths: Vec<Vec<u32>> = (0..4000u32).map(|n| vec![n % 7, n % 11 + 7, n % 53, n % 71]).collect();
        for path in &paths[..2000] {
            known.insert(path.clone(), trie.insert(path));
        }
        for path in &paths {
            assert_eq!(walk(&trie, path), known.get(path).copied().unwrap_or(NONE), "{path:?}");
        }
        let mut ends: Vec<u32> = known.values().copied().collect();
        ends.sort_unstable();
        ends.dedup();
        assert_eq!(ends.len(), known.len());
        let (path, &node) = known.iter().next().unwrap();
        assert!(trie.back(node).eq(path.iter().rev().copied()));
        assert_eq!((trie.insert(&[]), walk(&trie, &[1000]), walk(&trie, &[0, NONE])), (NONE, NONE, NONE));
    }
}
