//! Items become examples: parts are those of their files or drawn, classes get numbers.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use base::rng::RngKey;
use serde::{Deserialize, Serialize};
use tasks::Error;

use super::{Item, Label, Words};
use crate::example::{Answer, Example, Examples, Kind, Measure, Part, Tagged};

/// Shares of the training data that become other parts, rounded to whole documents, groups of pairs with the same first text, or rows where
/// the file has no grouping (sentences, in CoNLL without documents).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Drawn {
    /// Seed of the sampling.
    ///
    /// Source: ours: because any number does.
    pub seed: u64,
    /// Share for development: from 0, all shares together below 1; 0 where files are given. If left out: 0.1 without files for `dev`, else
    /// 0.
    ///
    /// Source: ours: a tenth, as in the outcome prediction of van Aken et al. 2021.
    pub dev: f64,
    /// Share for the search of head masks, never reported. If left out: 0.1 with `[graft]`, else 0.
    ///
    /// Source: KIMERA, section 3.2, holds parts out for it without saying how large; ours: a tenth.
    pub mask_search: f64,
    /// Share for test; 0 where files are given. If left out: 0.2 without files for `test`, else 0.
    ///
    /// Source: ours: a fifth, as in the outcome prediction of van Aken et al. 2021.
    pub test: f64,
}

impl Default for Drawn {
    fn default() -> Self {
        Self { seed: 1, dev: 0.0, mask_search: 0.0, test: 0.0 }
    }
}

/// What is made of the items.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Plan<'a> {
    /// What the examples are called.
    pub name: &'a str,
    /// What is measured.
    pub measure: Measure,
    /// The class of examples that are of none of the others.
    pub negative_class: Option<&'a str>,
    /// What is drawn.
    pub drawn: Drawn,
}

/// What examples have in common: texts that stand in two parts, which makes scores too high, and ids.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Shared {
    /// Examples of `dev` whose texts are trained on.
    pub dev: u64,
    /// Examples of `mask_search` whose texts are trained on.
    pub mask_search: u64,
    /// Examples of `test` whose texts are trained on.
    pub test: u64,
    /// The first id that several examples of a part had, and how many of them are called `ID#2` and so on for it.
    #[serde(skip)]
    pub repeated: Option<(String, u64)>,
}

impl Drawn {
    fn shares(self) -> [(Part, f64); 3] {
        [(Part::Dev, self.dev), (Part::Test, self.test), (Part::MaskSearch, self.mask_search)]
    }

    /// Whether the shares can be meant, given the parts that have files of their own.
    ///
    /// # Errors
    /// Names the first that cannot.
    pub fn check(self, has_files: impl Fn(Part) -> bool) -> Result<(), Error> {
        let mut sum = 0.0;
        for (part, share) in self.shares() {
            let part_name = part.name();
            sum += share;
            if !(0.0..1.0).contains(&share) || sum >= 1.0 {
                let expected = "a share from 0 on, all together below 1";
                return Err(Error::unfit(format!("drawn.{part_name} is {share}, expected {expected}")));
            }
            if share > 0.0 && has_files(part) {
                return Err(Error::unfit(format!(
                    "drawn.{part_name} is {share}, but there are files for {part_name}: set it to 0, or name no files"
                )));
            }
        }
        Ok(())
    }
}

/// Examples of items, those of files in the order of parts. Classes are numbered in the order of their names, `O` in front of tags.
///
/// # Errors
/// When a share is invalid, the items have unlike answers, or there are none.
pub fn assemble(files: &BTreeMap<Part, Vec<Item>>, plan: Plan<'_>) -> Result<(Examples, Shared), Error> {
    plan.drawn.check(|part| files.contains_key(&part))?;
    let kind = kind(files.values().flatten())?;
    let classes = classes(files.values().flatten());
    let numbers: HashMap<&str, u32> = classes.iter().map(String::as_str).zip(0..).collect();
    let train = files.get(&Part::Train).map_or(&[][..], Vec::as_slice);
    let drawn = draw(train, plan);
    let negative_class = match plan.negative_class {
        Some(_)
            if matches!(kind, Kind::Score | Kind::Tags | Kind::Choice | Kind::MaskedWords | Kind::Span) =>
        {
            return Err(Error::unfit(
                "scores, choices, masked words and spans have no class that means nothing, and of tags it is always O: leave `negative_class` out",
            ));
        }
        None => None,
        Some(name) => Some(*numbers.get(name).ok_or_else(|| {
            let classes = classes.join(", ");
            Error::unfit(format!(
                "the class {name:?} that means nothing is none of {classes}: take another one"
            ))
        })?),
    };
    let (mut examples, mut known, mut repeated) = (vec![], HashSet::new(), None);
    let mut last: HashMap<&str, u64> = HashMap::new();
    for (&of, items) in files {
        let mut own = HashSet::new();
        for item in items {
            let part = match of {
                Part::Train => drawn.get(item.group.as_str()).copied().unwrap_or(Part::Train),
                other => other,
            };
            let answer = answer(&item.label, &numbers);
            let Item { mut id, text, pair, .. } = item.clone();
            if !own.insert(item.id.as_str()) {
                repeated.get_or_insert_with(|| (item.id.clone(), 0)).1 += 1;
            }
            // Files of two parts may be called the same.
            if !known.insert(id.clone()) {
                let in_part = format!("{}/{id}", of.name());
                let next = last.entry(item.id.as_str()).or_insert(1);
                let numbered = std::iter::repeat_with(|| {
                    *next += 1;
                    format!("{}#{next}", item.id)
                });
                let free = std::iter::once(in_part).chain(numbered).find(|id| !known.contains(id));
                id = free.unwrap_or(id);
                known.insert(id.clone());
            }
            examples.push(Example { id, part, text, pair, answer });
        }
    }
    let (name, measure) = (plan.name.to_owned(), plan.measure);
    let examples = Examples { name, kind, classes, measure, negative_class, examples };
    let shared = Shared { repeated, ..shared(&examples) };
    Ok((examples, shared))
}

/// The parts of the groups that are drawn: so many as their share says, rounded.
fn draw<'a>(train: &'a [Item], plan: Plan<'_>) -> HashMap<&'a str, Part> {
    let mut known = HashSet::new();
    let mut groups: Vec<&str> =
        train.iter().map(|item| item.group.as_str()).filter(|group| known.insert(*group)).collect();
    RngKey::new(plan.drawn.seed).named("parts").named(plan.name).shuffle(&mut groups);
    let (all, mut from, mut drawn) = (groups.len(), 0, HashMap::new());
    for (part, share) in plan.drawn.shares() {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share from 0 to below 1 of the groups"
        )]
        let count = (share * all as f64).round() as usize;
        let until = (from + count).min(all);
        drawn.extend(groups[from..until].iter().map(|group| (*group, part)));
        from = until;
    }
    drawn
}

fn kind<'a>(items: impl Iterator<Item = &'a Item>) -> Result<Kind, Error> {
    let named = |label: &Label| match label {
        Label::Class(_) => (Kind::OneClass, "a class"),
        Label::Classes(_) => (Kind::AnyClasses, "a list of classes"),
        Label::Score(_) => (Kind::Score, "a score"),
        Label::Entities(_) => (Kind::Tags, "entities"),
        Label::Choice(_) => (Kind::Choice, "choices"),
        Label::MaskedWords => (Kind::MaskedWords, "masked words"),
        Label::Passages(_) => (Kind::Span, "passages"),
    };
    let mut first = None;
    for item in items {
        let (kind, found) = named(&item.label);
        let (known, expected) = *first.get_or_insert((kind, found));
        if known != kind {
            let id = &item.id;
            return Err(Error::unfit(format!(
                "item {id:?} has {found} for an answer, expected {expected} as before it: read the files as one layout"
            )));
        }
    }
    first.map(|(kind, _)| kind).ok_or_else(|| Error::unfit("there is no text in any file"))
}

fn classes<'a>(items: impl Iterator<Item = &'a Item>) -> Vec<String> {
    let (mut names, mut kinds) = (BTreeSet::new(), BTreeSet::new());
    let mut tags = false;
    for item in items {
        match &item.label {
            Label::Class(name) => _ = names.insert(name.as_str()),
            Label::Classes(all) => names.extend(all.iter().map(String::as_str)),
            Label::Score(_) | Label::Choice(_) | Label::MaskedWords | Label::Passages(_) => {}
            Label::Entities(Words { entities, .. }) => {
                tags = true;
                kinds.extend(entities.iter().map(|(_, _, kind)| kind.as_str()));
            }
        }
    }
    let names = names.into_iter().map(str::to_owned);
    let of_kinds = kinds.into_iter().flat_map(|kind| ["B", "I"].map(|mark| format!("{mark}-{kind}")));
    tags.then(|| "O".to_owned()).into_iter().chain(of_kinds).chain(names).collect()
}

fn answer(label: &Label, numbers: &HashMap<&str, u32>) -> Answer {
    let number = |name: &str| numbers.get(name).copied().unwrap_or_default();
    match label {
        Label::Class(name) => Answer::Class(number(name)),
        Label::Classes(names) => {
            let all: BTreeSet<u32> = names.iter().map(|name| number(name)).collect();
            Answer::Classes(all.into_iter().collect())
        }
        Label::Score(score) => Answer::Score(*score),
        Label::Choice(choice) => Answer::Choice(choice.clone()),
        Label::MaskedWords => Answer::MaskedWords,
        Label::Passages(of) => Answer::Span(of.clone()),
        Label::Entities(Words { words, entities, further }) => {
            let mut tags = vec![0; words.len()];
            for (place, (from, to, kind)) in entities.iter().enumerate() {
                tags[*from..*to].fill(number(&format!("I-{kind}")));
                if !further.contains(&place) {
                    tags[*from] = number(&format!("B-{kind}"));
                }
            }
            Answer::Tags(Tagged { words: words.clone(), tags })
        }
    }
}

/// What an example is known by: all of its texts together, or any one passage.
fn keys(kind: Kind, example: &Example) -> Vec<(&str, Vec<Option<&str>>)> {
    if kind == Kind::Span {
        return example.second_texts().map(|passage| ("", vec![passage])).collect();
    }
    vec![(&example.text, example.second_texts().collect())]
}

/// How many examples of other parts have a text, or two, that is trained on; of questions, a passage.
fn shared(examples: &Examples) -> Shared {
    let kind = examples.kind;
    let of = |part| examples.examples.iter().filter(move |example| example.part == part);
    let trained: HashSet<_> = of(Part::Train).flat_map(|example| keys(kind, example)).collect();
    let is_known = |example: &&Example| keys(kind, example).iter().any(|key| trained.contains(key));
    let count = |part| of(part).filter(is_known).count() as u64;
    Shared {
        dev: count(Part::Dev),
        mask_search: count(Part::MaskSearch),
        test: count(Part::Test),
        repeated: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: Drawn = Drawn { seed: 1, dev: 0.0, mask_search: 0.0, test: 0.0 };

    fn item(id: &str, group: &str, label: Label) -> Item {
        Item { id: id.to_owned(), group: group.to_owned(), text: format!("text {id}"), pair: None, label }
    }

    fn plan(drawn: Drawn) -> Plan<'static> {
        Plan { name: "x", measure: Measure::Accuracy, negative_class: None, drawn }
    }

    fn class(name: &str) -> Label {
        Label::Class(name.to_owned())
    }

    #[test]
    fn groups_stay_together_and_shares_are_exact() {
        let train: Vec<Item> = (0..200)
            .map(|i| item(&format!("{i}"), &format!("g{}", i / 2), class(["a", "b"][i % 2])))
            .collect();
        let drawn = Drawn { dev: 0.1, test: 0.25, mask_search: 0.05, ..NONE };
        let (examples, shared) = assemble(&[(Part::Train, train.clone())].into(), plan(drawn)).unwrap();
        examples.check().unwrap();
        let of = |part| examples.of(part).len();
        assert_eq!(Part::ALL.map(of), [120, 20, 10, 50]);
        for pair in examples.examples.chunks_exact(2) {
            assert_eq!(pair[0].part, pair[1].part);
        }
        assert_eq!(shared, Shared::default());
        let again = assemble(&[(Part::Train, train.clone())].into(), plan(drawn)).unwrap().0;
        assert_eq!(again, examples);
        let other = assemble(&[(Part::Train, train)].into(), plan(Drawn { seed: 2, ..drawn })).unwrap().0;
        assert_ne!(other, examples);
    }

    #[test]
    fn classes_are_numbered_by_name_and_tags_begin_with_o() {
        let files = [
            (Part::Train, vec![item("1", "1", class("b")), item("2", "2", class("a"))]),
            (Part::Test, vec![Item { text: "text 1".to_owned(), ..item("3", "3", class("c")) }]),
        ];
        let (examples, shared) =
            assemble(&files.into(), Plan { negative_class: Some("c"), ..plan(NONE) }).unwrap();
        assert_eq!(
            (examples.classes.join(""), examples.negative_class, shared.test),
            ("abc".to_owned(), Some(2), 1)
        );
        assert_eq!(examples.examples[0].answer, Answer::Class(1));

        let words = Words {
            words: ["a", "b", "c"].map(str::to_owned).into(),
            entities: vec![(0, 2, "X".to_owned())],
            further: vec![],
        };
        let mut tagged = item("1", "1", Label::Entities(words));
        tagged.text = "a b c".to_owned();
        let (examples, _) = assemble(&[(Part::Train, vec![tagged])].into(), plan(NONE)).unwrap();
        assert_eq!((examples.kind, examples.classes.join(" ")), (Kind::Tags, "O B-X I-X".to_owned()));
        let Answer::Tags(of) = &examples.examples[0].answer else { panic!() };
        assert_eq!(of.tags, [1, 2, 0]);
        let gaps = Words {
            words: ["a", "b", "c", "d"].map(str::to_owned).into(),
            entities: vec![(0, 2, "X".to_owned()), (3, 4, "X".to_owned())],
            further: vec![1],
        };
        let mut tagged = item("2", "2", Label::Entities(gaps));
        tagged.text = "a b c d".to_owned();
        let (examples, _) = assemble(&[(Part::Train, vec![tagged])].into(), plan(NONE)).unwrap();
        let Answer::Tags(of) = &examples.examples[0].answer else { panic!() };
        assert_eq!(of.tags, [1, 2, 0, 2]);
    }

    #[test]
    fn files_of_two_parts_may_be_called_the_same() {
        let of = |label| vec![item("rows/1", "rows/1", class(label))];
        let (examples, _) =
            assemble(&[(Part::Train, of("a")), (Part::Test, of("b"))].into(), plan(NONE)).unwrap();
        let ids: Vec<&str> = examples.examples.iter().map(|example| example.id.as_str()).collect();
        assert_eq!(ids, ["rows/1", "test/rows/1"]);
        examples.check().unwrap();
    }

    #[test]
    fn examples_of_one_id_are_told_apart_and_counted() {
        let items = |text: &str| Item { text: text.to_owned(), ..item("rows/1", "1", class("a")) };
        let other = Item { text: "d".to_owned(), ..item("rows/2", "2", class("b")) };
        let files = [(Part::Train, vec![items("a"), items("b"), items("c"), other])];
        let (examples, shared) = assemble(&files.into(), plan(NONE)).unwrap();
        let ids: Vec<&str> = examples.examples.iter().map(|example| example.id.as_str()).collect();
        assert_eq!(ids, ["rows/1", "train/rows/1", "rows/1#2", "rows/2"]);
        assert_eq!(shared.repeated, Some(("rows/1".to_owned(), 2)));
        examples.check().unwrap();
    }

    #[test]
    fn what_cannot_be_meant_is_said() {
        let told = |files: BTreeMap<Part, Vec<Item>>, plan| assemble(&files, plan).unwrap_err().to_string();
        let one = || vec![item("1", "1", class("a"))];
        let dev = Drawn { dev: 0.5, ..NONE };
        let both = told([(Part::Train, one()), (Part::Dev, one())].into(), plan(dev));
        assert!(both.starts_with("drawn.dev is 0.5, but there are files for dev"), "{both}");
        let share = told([(Part::Train, one())].into(), plan(Drawn { test: 0.5, ..dev }));
        assert!(share.starts_with("drawn.test is 0.5, expected a share from 0 on"), "{share}");
        let mixed = vec![item("1", "1", class("a")), item("2", "2", Label::Score(1.0))];
        assert!(told([(Part::Train, mixed)].into(), plan(NONE)).contains("item \"2\" has a score"));
        assert!(told(BTreeMap::new(), plan(NONE)).contains("there is no text"));
        let nothing = told([(Part::Train, one())].into(), Plan { negative_class: Some("z"), ..plan(NONE) });
        assert!(nothing.contains("the class \"z\" that means nothing is none of a"), "{nothing}");
    }
}
