//! Synonyms: are two names those of one entity?
//!
//! Every name of an entity but its first is paired with one drawn from those before it, so that its pairs connect all its names and none comes
//! twice. Behind each pair stands one that is false: the first name with a name drawn from all entities of the part that have synonyms. Only
//! these are drawn, or a model could tell a false pair by a name that no true one has. A name that reads as the first, or that any entity
//! of the table has beside the first, is refused.

use std::collections::BTreeMap;
use std::ops::Range;

use base::rng::RngKey;
use kg::split::Part;
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};

use crate::Error;
use crate::builder::spec::{Drawn, MadeOf, Pair, Pairs, Spec};
use crate::builder::{Column, Layout, Sample, TokenTypes};
use crate::names::Names;
use crate::token::encode::Special;

/// Names tried for a false pair: what has not been found by then is hardly there.
const MOST_DRAWS: u64 = 1_000;

/// Asks whether an entity has both names.
pub(crate) const SPEC: Spec = Spec {
    asks: "Tell two names of one entity from names of two",
    label: "1 = names of one entity, 0 = names of two",
    truth: Some(["of_two", "of_one"]),
    of: MadeOf::Items { pairs: Some(Pairs { draw, build }) },
};

/// What became of what was drawn.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    pairs: u64,
    proposed: u64,
    same_text: u64,
    synonym: u64,
    gave_up: u64,
}

fn draw(names: &Names, part: Part, key: RngKey) -> Result<Drawn, Error> {
    let named: Vec<Range<u32>> = names.entities(part).collect();
    let entities: Vec<&Range<u32>> = named.iter().filter(|names| names.len() > 1).collect();
    if entities.is_empty() && part == Part::Train {
        return Err(Error::Unfit(format!(
            "the task synonyms needs entities with at least two names, and of the {} that are shown none has: keep the names of the sources \
             (`terms = \"keep\"` of UMLS), add a source with synonyms (UMLS, MeSH's XML, OBO, KGX), or leave the task out of shards.tasks",
            named.len()
        )));
    }
    let donors: Vec<u32> = entities.iter().flat_map(|names| Range::clone(names)).collect();
    let drawn: Vec<(Vec<Pair>, Counts)> =
        entities.par_iter().map(|of| pairs(names, Range::clone(of), &donors, key)).collect();
    let (mut pairs, mut counts) = (Vec::new(), Counts::default());
    for (of, added) in drawn {
        pairs.extend(of);
        counts.add(added);
    }
    let mut counts = counts.by_name();
    counts.insert("entities_with_synonyms".to_owned(), entities.len() as u64);
    counts.insert("entities_with_one_name".to_owned(), (named.len() - entities.len()) as u64);
    Ok(Drawn { pairs, counts })
}

/// The pairs of an entity with these names.
fn pairs(names: &Names, of: Range<u32>, donors: &[u32], key: RngKey) -> (Vec<Pair>, Counts) {
    let (key, mut counts) = (key.at(names.get(of.start).entity.into()), Counts::default());
    let pairs = (of.start + 1..of.end).map(|name| {
        let before = name - of.start;
        let key = key.at(before.into());
        let drawn = key.named("partner").below(before.into());
        let partner = of.start + u32::try_from(drawn).unwrap_or(0);
        // Either may stand first, since the table has the preferred name first.
        let turned = key.named("order").below(2) == 1;
        let (first, second) = if turned { (name, partner) } else { (partner, name) };
        counts.pairs += 1;
        let negative = negative(names, first, donors, key.named("negative"), &mut counts);
        Pair { first, second, negative }
    });
    (pairs.collect(), counts)
}

/// A name that stands beside `first` in no entity, if one is found.
fn negative(names: &Names, first: u32, donors: &[u32], key: RngKey, counts: &mut Counts) -> Option<u32> {
    for draw in 0..MOST_DRAWS {
        let place = usize::try_from(key.at(draw).below(donors.len() as u64)).unwrap_or(0);
        let drawn = *donors.get(place)?;
        counts.proposed += 1;
        if names.same(first, drawn) {
            counts.same_text += 1;
        } else if names.synonyms(first, drawn) {
            counts.synonym += 1;
        } else {
            return Some(drawn);
        }
    }
    counts.gave_up += 1;
    None
}

impl Counts {
    fn add(&mut self, Counts { pairs, proposed, same_text, synonym, gave_up }: Counts) {
        self.pairs += pairs;
        self.proposed += proposed;
        self.same_text += same_text;
        self.synonym += synonym;
        self.gave_up += gave_up;
    }

    fn by_name(self) -> BTreeMap<String, u64> {
        let Counts { pairs, proposed, same_text, synonym, gave_up } = self;
        let counts = [
            ("pairs", pairs),
            ("negatives_proposed", proposed),
            ("refused_same_text", same_text),
            ("refused_synonym", synonym),
            ("gave_up", gave_up),
        ];
        counts.map(|(name, count)| (name.to_owned(), count)).into()
    }
}

/// Builds the sample that asks whether two names are one entity's. With [`TokenTypes::ByColumn`] the second name is of segment 1, as BERT's
/// second sentence is.
fn build(sample: &mut Sample, layout: &Layout, special: Special, names: [&[u32]; 2], class: u32) {
    let [first, second] = names;
    let of_second = u32::from(layout.token_types == TokenTypes::ByColumn);
    let column = |ids, token_type| Column { ids, width: layout.limits.node, token_type };
    sample.lay_columns(layout.form, special, [column(first, 0), column(second, of_second)]);
    sample.class = Some(class);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::builder::{Blanks, Form, Limits};
    use crate::names::tests::of;
    use batch::family::Family;

    fn texts(names: &Names, place: u32) -> (u32, &str) {
        let name = names.get(place);
        (name.entity, name.text.as_str())
    }

    #[test]
    fn pairs_connect_all_names_of_an_entity_and_stand_beside_one_that_is_false() {
        let many: Vec<String> = (0..60).map(|i| format!("name {i}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let names = of(&[
            (Part::Train, &many),
            (Part::Train, &["fever", "pyrexia"]),
            (Part::Train, &["pyrexia", "hot", "name 3"]),
            (Part::Train, &["cough"]),
            (Part::Valid, &["gout", "podagra"]),
            (Part::Aside, &["hot", "fever"]),
        ]);
        let drawn = draw(&names, Part::Train, RngKey::new(1)).unwrap();
        assert_eq!(drawn.pairs.len(), 59 + 1 + 2);
        let mut seen = BTreeSet::new();
        // Names that can be reached from the first of each entity.
        let mut reached: BTreeSet<u32> = names.entities(Part::Train).map(|of| of.start).collect();
        let (mut swapped, mut donors) = (0, BTreeSet::new());
        for Pair { first, second, negative } in &drawn.pairs {
            assert_eq!(texts(&names, *first).0, texts(&names, *second).0);
            assert!(seen.insert((*first.min(second), *first.max(second))), "no pair comes twice");
            let later = *first.max(second);
            assert!(reached.contains(first.min(second)) && reached.insert(later));
            swapped += u32::from(first > second);
            let negative = negative.unwrap();
            assert!(!names.synonyms(*first, negative) && !names.same(*first, negative));
            donors.insert(texts(&names, negative).1);
        }
        assert_eq!(reached.len(), names.entities(Part::Train).map(|of| of.len()).sum::<usize>());
        assert!((15..45).contains(&swapped), "{swapped} of 62 are turned");
        // The names of the largest entity can only stand beside those of the others.
        assert!(donors.is_superset(&BTreeSet::from(["fever", "pyrexia", "hot"])), "{donors:?}");
        assert!(!donors.contains("cough") && !donors.contains("gout"), "{donors:?}");
        let again = draw(&names, Part::Train, RngKey::new(1)).unwrap();
        assert_eq!((&again.pairs, &again.counts), (&drawn.pairs, &drawn.counts));
        assert_ne!(draw(&names, Part::Train, RngKey::new(2)).unwrap().pairs, drawn.pairs);
        let counts = &drawn.counts;
        assert_eq!((counts["pairs"], counts["gave_up"], counts["entities_with_one_name"]), (62, 0, 1));
        let refused = counts["refused_same_text"] + counts["refused_synonym"];
        assert_eq!(counts["negatives_proposed"], refused + 62);
        assert!(counts["refused_synonym"] > 10, "most names are those of one entity: {counts:?}");
    }

    #[test]
    fn a_part_without_another_entity_has_no_false_pairs() {
        let names =
            of(&[(Part::Train, &["a", "b"]), (Part::Train, &["b", "a", "c"]), (Part::Test, &["d", "e"])]);
        let drawn = draw(&names, Part::Train, RngKey::new(1)).unwrap();
        let negatives = |drawn: &Drawn| drawn.pairs.iter().filter_map(|pair| pair.negative).count();
        assert_eq!((drawn.pairs.len(), negatives(&drawn), drawn.counts["gave_up"]), (3, 0, 3));
        let held_out = draw(&names, Part::Test, RngKey::new(1)).unwrap();
        assert_eq!((held_out.pairs.len(), negatives(&held_out)), (1, 0));
        assert!(draw(&names, Part::Valid, RngKey::new(1)).unwrap().pairs.is_empty());
        let none = of(&[(Part::Train, &["a", "A"]), (Part::Test, &["d", "e"])]);
        let error = draw(&none, Part::Train, RngKey::new(1)).unwrap_err().to_string();
        assert!(error.contains("of the 1 that are shown none has: keep the names"), "{error}");
    }

    #[test]
    fn a_row_has_both_names_each_cut_for_itself() {
        let special = Special { padding: 0, unknown: 1, cls: 2, sep: 3, blank: 4, family: Family::Bert };
        let limits = Limits { node: 3, edge: 1 };
        let layout =
            Layout { form: Form::Packed, token_types: TokenTypes::Zero, blanks: Blanks::TrueLength, limits };
        let mut sample = Sample::default();
        let names: [&[u32]; 2] = [&[10, 11], &[20, 21, 22, 23]];
        build(&mut sample, &layout, special, names, 1);
        assert_eq!(sample.input_ids, [2, 10, 11, 3, 20, 21, 22, 3]);
        assert_eq!((sample.token_type_ids.as_slice(), sample.class), (&[0; 8][..], Some(1)));
        let slotted = Layout { form: Form::Slotted, token_types: TokenTypes::ByColumn, ..layout };
        build(&mut sample, &slotted, special, names, 0);
        assert_eq!(sample.input_ids, [2, 10, 11, 0, 3, 20, 21, 22, 3]);
        assert_eq!(sample.attention, [1, 1, 1, 0, 1, 1, 1, 1, 1]);
        assert_eq!(sample.token_type_ids, [0, 0, 0, 0, 0, 1, 1, 1, 1]);
        assert_eq!((sample.class, sample.labels.len()), (Some(0), 0));
    }
}
