//! Relations between chemicals and genes (ChemProt, Krallinger et al. 2017) as the track gave them out: abstracts, entities and relations in three files, a
//! sentence for each chemical and each gene in it.
//!
//! `chemprot_training_abstracts.tsv` has `pmid<tab>title<tab>abstract`; `..._entities.tsv` `pmid<tab>T1<tab>CHEMICAL<tab>start<tab>end<tab>text`, counted in
//! characters of the title, one character and the abstract; `..._gold_standard.tsv` `pmid<tab>CPR:4<tab>Arg1:T1<tab>Arg2:T2`. The test's abstracts and entities
//! end in `_gs.tsv`. As in BLUE, a chemical and a gene that are not related are an example, too.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tasks::Error;

use super::pair::{self, Arguments, NEGATIVE, OVERLAP, called, shown};
use super::{Item, Label, PublishedSet, Row, content, tidied};
use crate::example::Measure;
use crate::funnel::Step;
use text::characters::Characters;
use text::mention::Misfits;
use text::sentence;

/// What is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// How the text shows which two entities the example is about.
    ///
    /// Source: BLUE (Peng et al. 2019).
    pub arguments: Arguments,
    /// What to do with entities whose offsets are invalid, or whose words are not those of the text there.
    ///
    /// Source: ours: a file whose offsets are off is no file to train on.
    pub misfits: Misfits,
}

impl Default for Config {
    fn default() -> Self {
        Self { arguments: Arguments::Replaced, misfits: Misfits::Refuse }
    }
}

/// The groups of relations that the track evaluates.
const GROUPS: [&str; 5] = ["CPR:3", "CPR:4", "CPR:5", "CPR:6", "CPR:9"];
const CHEMICAL: &str = "CHEMICAL";
const GENE: &str = "GENE";
const ABSTRACTS: &str = "_abstracts";

const UNUSED: &str = "of a group that is not evaluated";
const MISFIT: &str = "whose words are not those of the text at its offsets";
const APART: &str = "of entities in different sentences";
const LEFT_OUT: &str = "of an entity that is left out";

/// An entity: where it stands, what it is, and the number of its sentence, if it is in one.
struct Entity {
    name: String,
    shown: pair::Argument,
    sentence: Option<usize>,
}

/// An abstract with its title.
struct Document {
    text: String,
    /// Where its sentences begin, in bytes, and where the last one ends.
    bounds: Vec<usize>,
    entities: Vec<Entity>,
    /// The groups of each chemical and gene that are related, by their numbers.
    relations: BTreeMap<(usize, usize), Vec<String>>,
}

/// The lines of a file that are not empty, in columns.
fn rows(file: &Path) -> Result<Vec<(u64, Vec<String>)>, Error> {
    let text = content(file)?;
    let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    Ok(lines.map(|(number, line)| (number, line.split('\t').map(str::to_owned).collect())).collect())
}

/// The file of the same part with other contents, called by what follows the part.
fn beside(abstracts: &Path, ending: &str) -> Option<PathBuf> {
    let name = abstracts.file_name()?.to_str()?;
    let (part, _) = name.split_once(ABSTRACTS)?;
    Some(abstracts.with_file_name(format!("{part}{ending}")))
}

impl PublishedSet for Config {
    fn extensions(&self) -> &'static [&'static str] {
        &["_abstracts.tsv", "_abstracts_gs.tsv"]
    }

    fn is_a_folder(&self) -> bool {
        true
    }

    fn measure(&self) -> Measure {
        Measure::MicroF1
    }

    fn negative_class(&self) -> Option<&'static str> {
        Some(NEGATIVE)
    }

    fn read(&self, file: &Path, take: &mut dyn FnMut(Item)) -> Result<Vec<Step>, Error> {
        let is_gold = file.to_string_lossy().ends_with("_abstracts_gs.tsv");
        let beside = |ending| beside(file, ending).unwrap_or_else(|| file.to_owned());
        let entities_file = if is_gold { "_entities_gs.tsv" } else { "_entities.tsv" };
        let mut documents = documents(file)?;
        let entities = entities(&beside(entities_file), self.misfits, &mut documents)?;
        let relations = relations(&beside("_gold_standard.tsv"), &mut documents)?;
        let mut pairs = Step::new("pairs");
        for (pmid, document) in &documents {
            document.pairs(pmid, self.arguments, &mut pairs, take);
        }
        Ok(vec![entities, relations, pairs])
    }
}

fn documents(file: &Path) -> Result<BTreeMap<String, Document>, Error> {
    let mut documents = BTreeMap::new();
    for (line, columns) in rows(file)? {
        let wrong = |found: String, expected: &str| Row { file, line }.wrong(found, expected);
        let [pmid, title, rest] = <[String; 3]>::try_from(columns)
            .map_err(|columns| wrong(columns_of(&columns), "pmid, title and abstract between tabs"))?;
        let text = format!("{title}\n{rest}");
        // A title is a sentence, however it ends.
        let of_title = std::iter::once(0).chain(sentence::starts(&title));
        let of_rest = std::iter::once(0).chain(sentence::starts(&rest)).map(|start| title.len() + 1 + start);
        let bounds = of_title.chain(of_rest).chain([text.len()]).collect();
        let document = Document { text, bounds, entities: vec![], relations: BTreeMap::new() };
        if documents.insert(pmid.clone(), document).is_some() {
            return Err(wrong(format!("the abstract {pmid} again"), "each of them once"));
        }
    }
    Ok(documents)
}

fn columns_of(columns: &[String]) -> String {
    format!("{} columns", columns.len())
}

fn entities(
    file: &Path,
    misfits: Misfits,
    documents: &mut BTreeMap<String, Document>,
) -> Result<Step, Error> {
    let mut step = Step::new("entities");
    for (line, columns) in rows(file)? {
        let wrong = |found: String, expected: &str| Row { file, line }.wrong(found, expected);
        let [pmid, name, kind, start, end, words] = <[String; 6]>::try_from(columns).map_err(|columns| {
            wrong(columns_of(&columns), "pmid, name, kind, start, end and text between tabs")
        })?;
        let document = documents.get_mut(&pmid);
        let document =
            document.ok_or_else(|| wrong(format!("the abstract {pmid}"), "one of the file of abstracts"))?;
        let kind = match kind.as_str() {
            CHEMICAL => CHEMICAL,
            "GENE" | "GENE-Y" | "GENE-N" => GENE,
            _ => return Err(wrong(format!("the kind {kind:?}"), "CHEMICAL, GENE-Y or GENE-N")),
        };
        let Some(place) = document.place(&start, &end).filter(|place| document.text[place.clone()] == *words)
        else {
            if misfits == Misfits::Drop {
                step.drop(MISFIT, 1);
                continue;
            }
            let expected = "the words of the title, one character and the abstract at these characters";
            return Err(wrong(format!("{words:?} from {start} to {end} of {pmid}"), expected));
        };
        if document.entities.iter().any(|entity| entity.name == name) {
            return Err(wrong(format!("{name} of {pmid} again"), "each entity once"));
        }
        step.keep(1);
        let sentence = document.sentence(&place);
        document.entities.push(Entity { name, shown: (place, kind.to_owned()), sentence });
    }
    Ok(step)
}

fn relations(file: &Path, documents: &mut BTreeMap<String, Document>) -> Result<Step, Error> {
    const COLUMNS: &str = "pmid, CPR:n, Arg1:T1 and Arg2:T2 between tabs";
    let mut step = Step::new("relations");
    for (line, columns) in rows(file)? {
        let wrong = |found: String, expected: &str| Row { file, line }.wrong(found, expected);
        let [pmid, group, one, other] =
            <[String; 4]>::try_from(columns).map_err(|columns| wrong(columns_of(&columns), COLUMNS))?;
        let names = one.strip_prefix("Arg1:").zip(other.strip_prefix("Arg2:"));
        let (one, other) = names.ok_or_else(|| wrong(format!("{one:?} and {other:?}"), COLUMNS))?;
        if !group.starts_with("CPR:") {
            return Err(wrong(format!("the group {group:?}"), COLUMNS));
        }
        let document = documents.get_mut(&pmid);
        let document =
            document.ok_or_else(|| wrong(format!("the abstract {pmid}"), "one of the file of abstracts"))?;
        if !GROUPS.contains(&group.as_str()) {
            step.drop(UNUSED, 1);
            continue;
        }
        let find = |name: &str| document.entities.iter().position(|entity| entity.name == name);
        let Some((one, other)) = find(one).zip(find(other)) else {
            step.drop(LEFT_OUT, 1);
            continue;
        };
        let kinds = [one, other].map(|number| document.entities[number].shown.1.as_str());
        let ends = match kinds {
            [CHEMICAL, GENE] => (one, other),
            [GENE, CHEMICAL] => (other, one),
            _ => {
                return Err(wrong(
                    format!("a relation of {} and {}", kinds[0], kinds[1]),
                    "a chemical and a gene",
                ));
            }
        };
        let sentences = [one, other].map(|number| document.entities[number].sentence);
        if sentences[0].is_none() || sentences[0] != sentences[1] {
            step.drop(APART, 1);
            continue;
        }
        let groups = document.relations.entry(ends).or_default();
        if groups.contains(&group) {
            step.drop("given twice", 1);
            continue;
        }
        step.keep(1);
        groups.push(group);
    }
    Ok(step)
}

impl Document {
    /// The bytes of some characters.
    fn place(&self, start: &str, end: &str) -> Option<Range<usize>> {
        let characters = Characters::new(&self.text);
        let place = characters.byte(start.parse().ok()?)?..characters.byte(end.parse().ok()?)?;
        (!place.is_empty()).then_some(place)
    }

    /// The sentence that a place is in, from 1, if it is in one.
    fn sentence(&self, place: &Range<usize>) -> Option<usize> {
        let of = |byte: usize| self.bounds.partition_point(|start| *start <= byte);
        (of(place.start) == of(place.end - 1)).then(|| of(place.start))
    }

    /// Hands each chemical with each gene of its sentence to `take`.
    fn pairs(&self, pmid: &str, arguments: Arguments, step: &mut Step, take: &mut dyn FnMut(Item)) {
        let of = |kind: &'static str| {
            self.entities.iter().enumerate().filter(move |(_, entity)| entity.shown.1 == kind)
        };
        for (one, chemical) in of(CHEMICAL) {
            let Some(sentence) = chemical.sentence else { continue };
            for (other, gene) in of(GENE).filter(|(_, gene)| gene.sentence == Some(sentence)) {
                let (start, end) = (self.bounds[sentence - 1], self.bounds[sentence]);
                let [chemical, gene] = [chemical, gene].map(|entity| {
                    let (place, kind) = &entity.shown;
                    (entity.name.as_str(), (place.start - start..place.end - start, kind.clone()))
                });
                let negative = [NEGATIVE.to_owned()];
                let classes = self.relations.get(&(one, other)).map_or(&negative[..], Vec::as_slice);
                let Some(text) = shown(&self.text[start..end], [&chemical.1, &gene.1], arguments) else {
                    step.drop(OVERLAP, classes.len() as u64);
                    continue;
                };
                let id = format!("{pmid}/{}-{}", chemical.0, gene.0);
                for (number, class) in classes.iter().enumerate() {
                    step.keep(1);
                    let (id, label) = (called(&id, number), Label::Class(class.clone()));
                    take(Item { id, group: pmid.to_owned(), text: tidied(&text), pair: None, label });
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXTS: &str =
        "1\tÉA stops kinase\tAlpha binds gamma. It spares delta and beta.\n2\tNothing.\tNo more.\n";
    const ENTITIES: &str = "1\tT1\tCHEMICAL\t0\t2\tÉA\n1\tT2\tGENE-Y\t9\t15\tkinase\n1\tT3\tCHEMICAL\t16\t21\tAlpha\n\
        1\tT4\tGENE-N\t28\t33\tgamma\n1\tT5\tCHEMICAL\t45\t50\tdelta\n1\tT6\tGENE\t55\t59\tbeta\n";
    const GOLD_STANDARD: &str = "1\tCPR:4\tArg1:T1\tArg2:T2\n1\tCPR:3\tArg1:T1\tArg2:T2\n1\tCPR:10\tArg1:T3\tArg2:T4\n1\tCPR:9\tArg1:T3\tArg2:T6\n";

    fn of(config: Config, files: [(&str, &str); 3]) -> Result<(Vec<Item>, Vec<Step>), String> {
        let folder = tempfile::tempdir().unwrap();
        for (name, content) in files {
            base::whole::write_whole(&folder.path().join(name), content.as_bytes()).unwrap();
        }
        let mut items = vec![];
        let read = config.read(&folder.path().join(files[0].0), &mut |item| items.push(item));
        let steps = read.map_err(|error| error.to_string())?;
        assert!(steps.iter().all(Step::adds_up), "{steps:?}");
        Ok((items, steps))
    }

    fn train(entities: &str, gold: &str) -> Result<(Vec<Item>, Vec<Step>), String> {
        let files = [
            ("c_training_abstracts.tsv", TEXTS),
            ("c_training_entities.tsv", entities),
            ("c_training_gold_standard.tsv", gold),
        ];
        of(Config::default(), files)
    }

    #[test]
    fn every_chemical_and_gene_of_a_sentence_are_an_item() {
        let (items, steps) = train(ENTITIES, GOLD_STANDARD).unwrap();
        let said: Vec<String> = items
            .iter()
            .map(|item| {
                let Label::Class(class) = &item.label else { panic!("{item:?}") };
                format!("{} {class}: {}", item.id, item.text)
            })
            .collect();
        let expected = [
            "1/T1-T2 CPR:4: @CHEMICAL$ stops @GENE$",
            "1/T1-T2/2 CPR:3: @CHEMICAL$ stops @GENE$",
            "1/T3-T4 false: @CHEMICAL$ binds @GENE$.",
            "1/T5-T6 false: It spares @CHEMICAL$ and @GENE$.",
        ];
        assert_eq!(said, expected);
        assert_eq!((steps[0].kept, steps[1].kept, steps[2].kept), (6, 2, 4));
        assert_eq!((steps[1].dropped[UNUSED], steps[1].dropped[APART]), (1, 1));
        let test = [
            ("c_test_abstracts_gs.tsv", TEXTS),
            ("c_test_entities_gs.tsv", ENTITIES),
            ("c_test_gold_standard.tsv", GOLD_STANDARD),
        ];
        assert_eq!(of(Config::default(), test).unwrap().0, items);
    }

    #[test]
    fn what_does_not_fit_is_refused_or_counted() {
        let told = |from: &str, to: &str| train(&ENTITIES.replace(from, to), GOLD_STANDARD).unwrap_err();
        assert!(
            told("28\t33", "27\t32")
                .contains("c_training_entities.tsv: line 4: found \"gamma\" from 27 to 32 of 1")
        );
        assert!(told("GENE-N", "GENE-X").contains("the kind \"GENE-X\", expected CHEMICAL"));
        assert!(told("1\tT5", "9\tT5").contains("the abstract 9"));
        assert!(told("T5", "T1").contains("T1 of 1 again"));
        let of_gold = |from: &str, to: &str| train(ENTITIES, &GOLD_STANDARD.replace(from, to)).unwrap_err();
        assert!(
            of_gold("Arg1:T3\tArg2:T6", "Arg1:T3\tArg2:T5").contains("a relation of CHEMICAL and CHEMICAL")
        );
        assert!(of_gold("Arg1:T1", "T1").contains("line 1: found"));
        let drop = Config { misfits: Misfits::Drop, ..Config::default() };
        let moved = ENTITIES.replace("9\t15", "8\t15");
        let files = [
            ("c_training_abstracts.tsv", TEXTS),
            ("c_training_entities.tsv", moved.as_str()),
            ("c_training_gold_standard.tsv", GOLD_STANDARD),
        ];
        let (items, steps) = of(drop, files).unwrap();
        assert_eq!((items.len(), steps[0].dropped[MISFIT], steps[1].dropped[LEFT_OUT]), (2, 1, 2));
    }
}
