//! What retraining made of the heads' importances: of those it froze and of those it retrained (KIMERA, table A1 and figure A2).

use super::facts::{BASE, Facts, Heads, Row};
use super::table::{fixed, signed};
use crate::number::compact;
use crate::paired::{Paired, Series};
use crate::svg::Plot;
use crate::table::{captioned, plain, text};
use maud::Markup;

/// One variant's heads before and after.
pub(super) struct Change<'a> {
    row: Row,
    /// Kind of its mask.
    kind: String,
    mask: &'a Heads,
    before: &'a Heads,
    after: &'a Heads,
}

/// Which heads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Frozen,
    Retrained,
}

/// Of some heads: how many they are, their mean importance before and after, and how many rose and fell.
#[derive(Debug, PartialEq)]
struct Tally {
    heads: usize,
    before: f64,
    after: f64,
    rose: usize,
    fell: usize,
}

/// Every variant that was retrained under a mask and measured, and the base was.
pub(super) fn changes(facts: &Facts) -> Vec<Change<'_>> {
    let Some(before) = facts.importance.get(BASE) else { return Vec::new() };
    let changed = |row: Row| {
        let kind = row.mask.clone().filter(|_| row.name != BASE)?;
        let (mask, after) = (facts.masks.get(&kind)?, facts.importance.get(&row.name)?);
        // Other shapes would be no change of these heads.
        let same = mask.shape() == before.shape() && after.shape() == before.shape();
        same.then_some(Change { row, kind, mask, before, after })
    };
    facts.all_rows().into_iter().filter_map(changed).collect()
}

impl Change<'_> {
    /// The heads of one fate, in one layer or in all; none if there is no such head.
    fn tally(&self, fate: Option<Fate>, layer: Option<usize>) -> Option<Tally> {
        let heads = self.mask.shape()[1].max(1);
        let (mut tally, mut sums) = (Tally { heads: 0, before: 0.0, after: 0.0, rose: 0, fell: 0 }, [0.0; 2]);
        for (at, &kept) in self.mask.values().iter().enumerate() {
            let of = if kept >= 1.0 { Fate::Frozen } else { Fate::Retrained };
            if fate.is_some_and(|fate| fate != of) || layer.is_some_and(|layer| layer != at / heads) {
                continue;
            }
            let (before, after) = (self.before.values()[at], self.after.values()[at]);
            tally.heads += 1;
            tally.rose += usize::from(after > before);
            tally.fell += usize::from(after < before);
            sums = [sums[0] + before, sums[1] + after];
        }
        if tally.heads == 0 {
            return None;
        }
        [tally.before, tally.after] = sums.map(|sum| sum / tally.heads as f64);
        Some(tally)
    }

    /// One place for each layer.
    fn series<'n>(
        &self,
        name: &'n str,
        fate: Option<Fate>,
        bars: impl Fn(&Tally, usize) -> Vec<(f64, String)>,
    ) -> Series<'n> {
        let place = |layer| self.tally(fate, Some(layer)).map_or_else(Vec::new, |tally| bars(&tally, layer));
        Series { name, places: (0..self.mask.shape()[0]).map(place).collect() }
    }

    fn means(&self, title: &str, name: &str) -> Plot {
        let told =
            |when: &str, mean: f64, layer| vec![(mean, format!("layer {layer}, {when}: {}", fixed(mean, 3)))];
        let series = [
            self.series("before", None, |tally, layer| told("before", tally.before, layer)),
            self.series("after", None, |tally, layer| told("after", tally.after, layer)),
        ];
        let description = format!("Mean importance of all heads of each layer, before and after ({title}).");
        Paired {
            name: &format!("{name}-means"),
            title: ("Importance per layer", &description),
            labels: ("layer", "mean importance"),
            series,
        }
        .draw()
    }

    fn differences(&self, title: &str, name: &str) -> Plot {
        let bars = |tally: &Tally, layer: usize| {
            let change = tally.after - tally.before;
            let heads = tally.heads;
            vec![(change, format!("layer {layer}, {heads} heads: {}", signed(change, 3)))]
        };
        let series = self.each(bars);
        let description = format!(
            "How the mean importance of frozen and of retrained heads changed in each layer ({title}). A layer without heads of a kind has no bar for it."
        );
        Paired {
            name: &format!("{name}-changes"),
            title: ("Change of importance per layer", &description),
            labels: ("layer", "change of the mean"),
            series,
        }
        .draw()
    }

    fn counts(&self, title: &str, name: &str) -> Plot {
        let bars = |tally: &Tally, layer: usize| {
            vec![
                (tally.rose as f64, format!("layer {layer}: {} rose", tally.rose)),
                (-(tally.fell as f64), format!("layer {layer}: {} fell", tally.fell)),
            ]
        };
        let series = self.each(bars);
        let description = format!(
            "How many heads of each layer rose (upwards) and fell (downwards) in importance ({title})."
        );
        Paired {
            name: &format!("{name}-counts"),
            title: ("Heads that rose and fell", &description),
            labels: ("layer", "heads"),
            series,
        }
        .draw()
    }

    fn each(&self, bars: impl Fn(&Tally, usize) -> Vec<(f64, String)>) -> [Series<'static>; 2] {
        [
            self.series("frozen heads", Some(Fate::Frozen), &bars),
            self.series("retrained heads", Some(Fate::Retrained), &bars),
        ]
    }

    /// What the variant is called.
    pub(super) fn title(&self) -> &str {
        &self.row.title
    }

    /// The plots of one variant (figure A2).
    pub(super) fn plots(&self, number: usize) -> Vec<Plot> {
        let name = format!("change-{number:02}");
        let title = &self.row.title;
        vec![self.means(title, &name), self.differences(title, &name), self.counts(title, &name)]
    }
}

/// Mean importances of frozen and retrained heads before and after (table A1).
pub(super) fn means(changes: &[Change<'_>]) -> Markup {
    let columns = [
        ("Variant", 'w'),
        ("Mask", 'w'),
        ("Heads", 'w'),
        ("Number", 'n'),
        ("Before", 'n'),
        ("After", 'n'),
        ("Change", 'n'),
        ("Rose", 'n'),
        ("Fell", 'n'),
    ];
    let all = changes.iter().flat_map(|change| {
        [("frozen", Fate::Frozen), ("retrained", Fate::Retrained)].map(|(word, fate)| (change, word, fate))
    });
    let rows = all.map(|(change, word, fate)| {
        let mut cells = vec![text(&change.row.title), text(&change.kind), plain(word)];
        match change.tally(Some(fate), None) {
            Some(tally) => cells.extend([
                plain(tally.heads),
                plain(fixed(tally.before, 3)),
                plain(fixed(tally.after, 3)),
                plain(signed(tally.after - tally.before, 3)),
                plain(tally.rose),
                plain(tally.fell),
            ]),
            None => {
                cells.push(plain(compact(0.0)));
                cells.extend(["–"; 5].map(plain));
            }
        }
        cells
    });
    captioned(
        "Mean importance of the heads that a mask kept (frozen) and of the others (retrained), before and after",
        &columns,
        rows,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> Facts {
        let heads = |values: [f64; 4]| Heads::new([2, 2], values.to_vec()).unwrap();
        let mut facts = Facts::titled("t");
        facts.masks.insert("hard".to_owned(), heads([1.0, 0.0, 0.0, 0.0]));
        facts.importance.insert(BASE.to_owned(), heads([0.6, 0.1, 0.2, 0.3]));
        facts.importance.insert("hard".to_owned(), heads([0.5, 0.4, 0.2, 0.9]));
        facts.importance.insert("no_mask".to_owned(), heads([0.5; 4]));
        facts
    }

    #[test]
    fn frozen_and_retrained_heads_are_told_apart() {
        let facts = facts();
        let changes = changes(&facts);
        assert_eq!(
            changes.iter().map(Change::title).collect::<Vec<_>>(),
            ["hard mask"],
            "others have no mask"
        );
        let frozen = changes[0].tally(Some(Fate::Frozen), None).unwrap();
        assert_eq!(
            (frozen.heads, frozen.before, frozen.after, frozen.rose, frozen.fell),
            (1, 0.6, 0.5, 0, 1)
        );
        let retrained = changes[0].tally(Some(Fate::Retrained), None).unwrap();
        assert_eq!((retrained.heads, retrained.rose, retrained.fell), (3, 2, 0));
        assert!((retrained.before - 0.2).abs() < 1e-12 && (retrained.after - 0.5).abs() < 1e-12);
        assert_eq!(changes[0].tally(Some(Fate::Frozen), Some(1)), None);
        let html = means(&changes).into_string();
        assert!(
            html.contains("<td class=\"n\">0.200</td><td class=\"n\">0.500</td><td class=\"n\">+0.300</td>"),
            "{html}"
        );
    }

    #[test]
    fn without_a_base_or_its_mask_nothing_changed() {
        let mut facts = facts();
        facts.masks.clear();
        assert!(changes(&facts).is_empty());
        facts.importance.remove(BASE);
        assert!(changes(&facts).is_empty());
    }
}
