//! Who is beside whom, in one array.

/// Neighbours of dense numbers; a neighbour is listed as often as there are edges to it.
#[derive(Debug)]
pub(super) struct Adjacency {
    starts: Vec<usize>,
    neighbours: Vec<u32>,
}

impl Adjacency {
    /// The second numbers of `edges` for each first number below `nodes`, in the order of the edges.
    pub(super) fn new(nodes: usize, edges: impl Iterator<Item = (u32, u32)> + Clone) -> Self {
        let mut starts = vec![0usize; nodes + 1];
        for (from, _) in edges.clone() {
            starts[from as usize + 1] += 1;
        }
        for node in 0..nodes {
            starts[node + 1] += starts[node];
        }
        let mut next = starts.clone();
        let mut neighbours = vec![0; starts[nodes]];
        for (from, to) in edges {
            neighbours[next[from as usize]] = to;
            next[from as usize] += 1;
        }
        Self { starts, neighbours }
    }

    /// The neighbours of one number.
    pub(super) fn of(&self, node: usize) -> &[u32] {
        &self.neighbours[self.starts[node]..self.starts[node + 1]]
    }

    /// How many numbers there are.
    pub(super) fn nodes(&self) -> usize {
        self.starts.len() - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_stand_in_the_order_of_the_edges() {
        let adjacency = Adjacency::new(4, [(2, 0), (0, 3), (2, 2), (2, 0)].into_iter());
        let all: Vec<&[u32]> = (0..adjacency.nodes()).map(|node| adjacency.of(node)).collect();
        assert_eq!(all, [&[3][..], &[], &[0, 2, 0], &[]]);
        assert_eq!(Adjacency::new(0, std::iter::empty()).nodes(), 0);
    }
}
