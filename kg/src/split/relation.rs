//! Which relations say the same, and which way round.

use super::class::Classes;
use super::view::View;
use crate::canon::relation::Turn;
use crate::table::RelationId;
use crate::table::id::dense;

/// Which of two things a relation is said of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Way {
    /// Of the first.
    Straight,
    /// Of the second.
    Turned,
}

/// For each class of relations: the first of those that say the same, and whether it says it the other way round. A union-find
/// with one bit on each edge; where a relation turns out to be its own inverse, the bit means nothing.
#[derive(Debug)]
pub(super) struct Orientation {
    /// By class: (first class, turned).
    class: Vec<(u32, bool)>,
    /// By first class: whether it is its own inverse.
    symmetric: Vec<bool>,
}

impl Orientation {
    pub(super) fn new(classes: usize, inverses: &[(u32, u32)]) -> Self {
        let mut parent: Vec<(u32, bool)> = (0..dense(classes)).map(|class| (class, false)).collect();
        let mut symmetric = vec![false; classes];
        for &(a, b) in inverses {
            let ((a, a_turned), (b, b_turned)) = (find(&mut parent, a), find(&mut parent, b));
            let (first, later) = (a.min(b), a.max(b));
            if first == later {
                symmetric[first as usize] |= a_turned == b_turned;
            } else {
                parent[later as usize] = (first, a_turned == b_turned);
                symmetric[first as usize] |= symmetric[later as usize];
            }
        }
        let class = (0..dense(classes)).map(|class| find(&mut parent, class)).collect();
        Self { class, symmetric }
    }

    /// A number for what `class` says of two things.
    pub(super) fn statement(&self, class: u32, way: Way) -> u32 {
        let (first, other_way) = self.class[class as usize];
        2 * first + u32::from(!self.symmetric[first as usize] && (other_way ^ (way == Way::Turned)))
    }

    /// The first class that says what `class` says, and how its ends stand to those.
    pub(super) fn of(&self, class: u32) -> (u32, Turn) {
        match self.class[class as usize] {
            (first, _) if self.symmetric[first as usize] => (first, Turn::Sorts),
            (first, true) => (first, Turn::Exchanges),
            (first, false) => (first, Turn::Stays),
        }
    }

    /// Whether the two are known to be inverse.
    pub(super) fn inverse(&self, a: u32, b: u32) -> bool {
        self.statement(a, Way::Straight) == self.statement(b, Way::Turned)
    }
}

/// The root of a class and whether the class says it the other way round; the path is shortened on the way.
fn find(parent: &mut [(u32, bool)], class: u32) -> (u32, bool) {
    let (mut root, mut turned) = (class, false);
    while parent[root as usize].0 != root {
        turned ^= parent[root as usize].1;
        root = parent[root as usize].0;
    }
    let (mut at, mut left) = (class, turned);
    while at != root {
        let (next, edge) = parent[at as usize];
        parent[at as usize] = (root, left);
        left ^= edge;
        at = next;
    }
    (root, turned)
}

/// The pairs of classes that the graph declares inverse; a symmetric one with itself.
pub(super) fn declared(view: &View, classes: &Classes) -> Vec<(u32, u32)> {
    let mut pairs = Vec::new();
    for (relation, &class) in view.relations().iter().zip(&classes.relation) {
        if relation.symmetric {
            pairs.push((class, class));
        }
    }
    let class = |relation: RelationId| classes.relation[relation.index()];
    pairs.extend(view.inverses().iter().map(|&(one, other)| (class(one), class(other))));
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inverse_of_an_inverse_is_the_same() {
        let orientation = Orientation::new(5, &[(0, 1), (1, 2), (4, 4)]);
        assert!(orientation.inverse(0, 1) && orientation.inverse(1, 0) && orientation.inverse(2, 1));
        assert!(!orientation.inverse(0, 2) && !orientation.inverse(0, 0) && !orientation.inverse(3, 4));
        assert_eq!(orientation.statement(0, Way::Turned), orientation.statement(2, Way::Turned));
        assert!(orientation.inverse(4, 4));
    }

    #[test]
    fn an_odd_ring_of_inverses_is_symmetric() {
        let orientation = Orientation::new(4, &[(0, 1), (2, 3), (1, 2), (0, 2)]);
        let all: Vec<u32> =
            (0..4).flat_map(|c| [Way::Straight, Way::Turned].map(|t| orientation.statement(c, t))).collect();
        assert_eq!(all, [0; 8]);
        let even = Orientation::new(4, &[(0, 1), (1, 2), (2, 3), (3, 0)]);
        assert_ne!(even.statement(0, Way::Straight), even.statement(0, Way::Turned));
    }

    #[test]
    fn the_order_of_pairs_does_not_matter() {
        let mut pairs = vec![(0, 5), (5, 3), (3, 4), (1, 2), (6, 6), (6, 1)];
        let say = |pairs: &[(u32, u32)]| {
            let orientation = Orientation::new(7, pairs);
            let same = |a: (u32, Way), b: (u32, Way)| {
                orientation.statement(a.0, a.1) == orientation.statement(b.0, b.1)
            };
            let all: Vec<_> = (0..7).flat_map(|c| [(c, Way::Straight), (c, Way::Turned)]).collect();
            all.iter()
                .flat_map(|&a| all.iter().map(move |&b| (a, b)))
                .map(|(a, b)| same(a, b))
                .collect::<Vec<_>>()
        };
        let first = say(&pairs);
        for _ in 0..pairs.len() {
            pairs.rotate_left(1);
            assert_eq!(say(&pairs), first);
        }
    }
}
