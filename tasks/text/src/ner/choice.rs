//! Of things that share words, those that weigh the most together.

use std::ops::Range;

/// Those of `all` that share no word and weigh the most together, in order. Which of several choices of the same weight is made depends on the order of `all` alone:
/// what comes first is preferred.
pub(super) fn heaviest<T>(
    mut all: Vec<T>,
    words: impl Fn(&T) -> Range<usize>,
    weigh: impl Fn(&T) -> f64,
) -> Vec<T> {
    // Stable: of those that end at the same word the first one stays first.
    all.sort_by_key(|one| words(one).end);
    let ends: Vec<usize> = all.iter().map(|one| words(one).end).collect();
    // The most that the first ones weigh together, and whether the last of them is among the choice.
    let mut best = vec![0.0_f64];
    let mut taken = Vec::with_capacity(all.len());
    for (at, one) in all.iter().enumerate() {
        let before = ends[..at].partition_point(|&end| end <= words(one).start);
        let with = best[before] + weigh(one);
        let takes = with > best[at];
        taken.push(takes.then_some(before));
        best.push(if takes { with } else { best[at] });
    }
    let mut chosen = vec![false; all.len()];
    let mut left = all.len();
    while let Some(last) = left.checked_sub(1) {
        left = match taken[last] {
            Some(before) => {
                chosen[last] = true;
                before
            }
            None => last,
        };
    }
    let mut chosen = chosen.into_iter();
    all.retain(|_| chosen.next().unwrap_or_default());
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(all: &[(Range<usize>, f64)]) -> Vec<(usize, usize)> {
        let chosen = heaviest(all.to_vec(), |one| one.0.clone(), |one| one.1);
        chosen.into_iter().map(|one| (one.0.start, one.0.end)).collect()
    }

    #[test]
    fn the_heaviest_choice_without_overlaps_is_made() {
        assert_eq!(chosen(&[(0..2, 5.0), (1..4, 9.0), (3..5, 5.0)]), [(0, 2), (3, 5)]);
        assert_eq!(chosen(&[(0..2, 5.0), (1..4, 11.0), (3..5, 5.0)]), [(1, 4)]);
        assert_eq!(chosen(&[(4..5, 1.0), (0..1, 1.0), (1..4, 1.0)]), [(0, 1), (1, 4), (4, 5)]);
        assert_eq!(chosen(&[(0..3, 2.0), (0..3, 2.0), (0..3, 1.0)]), [(0, 3)]);
        assert_eq!(chosen(&[]), []);
    }

    #[test]
    fn it_is_as_heavy_as_the_heaviest_of_all_choices() {
        for case in 0..200 {
            let key = base::rng::RngKey::new(7).at(case);
            let one = |number: u64| {
                let below = |what: u64, bound| key.at(3 * number + what).below(bound);
                let place = |what, bound| usize::try_from(below(what, bound)).unwrap();
                let start = place(0, 8);
                (start..start + 1 + place(1, 4), below(2, 9) as f64)
            };
            let all: Vec<_> = (0..9).map(one).collect();
            let weight = |some: &[&(Range<usize>, f64)]| some.iter().map(|one| one.1).sum::<f64>();
            let apart = |some: &[&(Range<usize>, f64)]| {
                some.iter().enumerate().all(|(at, a)| {
                    some[at + 1..].iter().all(|b| a.0.end <= b.0.start || b.0.end <= a.0.start)
                })
            };
            let choices = (0..1 << all.len()).map(|bits: usize| {
                all.iter()
                    .enumerate()
                    .filter(|(at, _)| bits >> at & 1 == 1)
                    .map(|(_, one)| one)
                    .collect::<Vec<_>>()
            });
            let most = choices.filter(|some| apart(some)).map(|some| weight(&some)).fold(0.0, f64::max);
            let made = heaviest(all.clone(), |one| one.0.clone(), |one| one.1);
            assert_eq!(weight(&made.iter().collect::<Vec<_>>()), most, "{all:?}");
            assert!(apart(&made.iter().collect::<Vec<_>>()));
        }
    }
}
