//! Stages `lama-MODEL`: how many facts a masked language model fills in (LAMA, Petroni et al. 2019).

pub(crate) mod stages;
mod told;
mod tuned;

use std::collections::HashSet;
use std::sync::Arc;

use anyhow::Context as _;
use base::whole::write_whole;
use downstream::funnel::Step;
use downstream::lama::{self, Corpus, Fact, Wording};
use model::fill::Filler;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tasks::maps::hidden::MASK;
use tasks::token::encode::{Case, Vocabulary};

use super::compute::Compute;
use super::encoder::{self, Base};
use super::location::{Location, Place, Places};
use super::maps::Mapping;
use super::vocabulary;
use crate::engine::context::Context;
use crate::engine::describe::{self, Describe};
use crate::engine::stage::{Input, Stage};
use told::{ByRelation, told};
use tuned::{Model, Tuned};

/// All measures, within the artifact. Written last.
const SCORES: &str = "lama.json";
/// The same as a table to be read.
const TABLE: &str = "lama.md";
/// What was said of each fact.
const ANSWERS: &str = "answers.jsonl";

fn row() -> usize {
    128
}

/// The table `[lama]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    /// LAMA's folder `data`.
    #[serde(skip_serializing)]
    pub data: Location,
    /// The corpora of LAMA to use.
    pub corpora: Vec<Corpus>,
    /// How a fact is worded: by the relation's template, or as sentences from Wikipedia.
    ///
    /// Source: LAMA's published scores, which are of templates.
    #[serde(default)]
    pub wording: Wording,
    /// The models to evaluate.
    #[serde(default, skip_serializing)]
    pub of: Vec<Which>,
    /// Models that were fine-tuned on masked words (`format.masked_words`) to evaluate as well, by their stages: `finetune-base-texts-1`, or with attention by maps
    /// `finetune-kam-texts-1` (KAM-BERT, table 3). Stages `lama-` and that.
    #[serde(default, skip_serializing)]
    pub finetuned: Vec<String>,
    /// One word per line: the candidate answers and objects (LAMA's common vocabulary). Left out, the whole vocabulary. Objects of several tokens
    /// are skipped and counted.
    #[serde(default, skip_serializing)]
    pub words: Option<Location>,
    /// Maximum tokens of a sentence, from 8 to 65,534; longer ones are skipped and counted.
    ///
    /// Source: ours: longer than the sentences that templates make.
    #[serde(default = "row")]
    pub max_tokens: usize,
}

/// A model that can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Which {
    /// A published `BertForMaskedLM` in `[encoder]`.
    Base,
    /// The encoder of stage `pretrain`.
    Pretrain,
    /// The encoder of stage `retrain`, with its head `masked_lm`.
    Retrain,
}

impl Which {
    /// The name in configs and stages.
    #[must_use]
    pub(crate) fn name(self) -> &'static str {
        match self {
            Which::Base => "base",
            Which::Pretrain => "pretrain",
            Which::Retrain => "retrain",
        }
    }
}

#[derive(Debug)]
pub(crate) struct Asking {
    name: String,
    config: Config,
    data: Place,
    words: Option<Place>,
    base: Base,
    /// Whether it is fine-tuned, and what makes the maps that it attends by, if it does.
    tuned: Option<Option<Arc<Mapping>>>,
    vocabulary: (vocabulary::Source, Case),
    compute: Compute,
}

impl Asking {
    /// The stages of a table, one for each model; `bases` says where each lies, if the config makes it, and `maps` what makes those that a fine-tuned one attends by.
    ///
    /// # Errors
    /// When a setting or place is invalid, or a model is not there.
    pub(crate) fn all(
        config: &Config,
        bases: &dyn Fn(Which) -> Option<Base>,
        maps: &dyn Fn(&str) -> anyhow::Result<Option<Arc<Mapping>>>,
        vocabulary: &(vocabulary::Source, Case),
        compute: Compute,
        places: &Places<'_>,
    ) -> anyhow::Result<Vec<Self>> {
        anyhow::ensure!(
            !config.of.is_empty() || !config.finetuned.is_empty(),
            "lama.of and lama.finetuned are empty: name base, pretrain or retrain, or a fine-tuning on masked words"
        );
        anyhow::ensure!(
            !config.corpora.is_empty(),
            "lama.corpora is empty: name trex, google_re, squad or conceptnet"
        );
        let data = config.data.place("lama.data", places)?;
        let words = config.words.as_ref().map(|of| of.place("lama.words", places)).transpose()?;
        let stage = |name: &str, base, tuned| Self {
            name: format!("lama-{name}"),
            config: config.clone(),
            data: data.clone(),
            words: words.clone(),
            base,
            tuned,
            vocabulary: vocabulary.clone(),
            compute,
        };
        let of = config.of.iter().map(|which| {
            let name = which.name();
            let base = bases(*which).with_context(|| {
                format!("lama.of has {name}, which the config does not make: `base` is a checkpoint ([encoder] with from = \"checkpoint\"), and others are what the table of their name makes")
            })?;
            Ok(stage(name, base, None))
        });
        let tuned =
            config.finetuned.iter().map(|name| Ok(stage(name, Base::Stage(name.clone()), Some(maps(name)?))));
        of.chain(tuned).collect()
    }
}

/// A fact that can be asked of a vocabulary.
struct Asked {
    fact: Fact,
    ids: Vec<u32>,
    blank: usize,
    object: u32,
}

/// The tokens of a sentence with blanks, and the place of the first of them.
///
/// # Errors
/// When the tokenizer refuses it.
pub(crate) fn tokens(sentence: &str, vocabulary: &Vocabulary) -> anyhow::Result<(Vec<u32>, Option<usize>)> {
    let special = vocabulary.special();
    let (mut ids, mut first) = (vec![special.cls], None);
    let masks = sentence.matches(MASK).count();
    for (place, piece) in sentence.split(MASK).enumerate() {
        if place > 0 {
            first.get_or_insert(ids.len());
            ids.push(special.blank);
        }
        // The mask of RoBERTa takes the space in front of it.
        let has_space = !special.family.is_bert() && place < masks;
        ids.extend(vocabulary.encode(if has_space { piece.trim_end() } else { piece })?);
    }
    ids.push(special.sep);
    Ok((ids, first))
}

/// Facts that a vocabulary can be asked for, and why the others are left out.
fn askable(
    facts: Vec<Fact>,
    vocabulary: &Vocabulary,
    allowed: Option<&HashSet<u32>>,
    most: usize,
) -> anyhow::Result<(Vec<Asked>, Step)> {
    let (mut asked, mut step) = (vec![], Step::new("facts asked"));
    for fact in facts {
        let object = vocabulary.encode(&vocabulary.within(&fact.object))?;
        let [object] = object[..] else {
            step.drop("an object of several tokens", 1);
            continue;
        };
        if object == vocabulary.special().unknown || allowed.is_some_and(|allowed| !allowed.contains(&object))
        {
            step.drop("an object that is none of the words", 1);
            continue;
        }
        let (ids, blank) = tokens(&fact.sentence, vocabulary)?;
        match blank.filter(|blank| *blank < most) {
            Some(blank) if ids.len() <= most => {
                step.keep(1);
                asked.push(Asked { fact, ids, blank, object });
            }
            Some(_) | None => step.drop("a sentence that is too long", 1),
        }
    }
    Ok((asked, step))
}

/// The place of `object` among the logits of the words that may be answered, from 1, and the best of these. Of equal ones the object comes last: no luck.
fn place(logits: &[f32], object: u32, allowed: Option<&HashSet<u32>>) -> (u64, u32) {
    let own = logits.get(object as usize).copied().unwrap_or(f32::NEG_INFINITY);
    let (mut place, mut best) = (1, (f32::NEG_INFINITY, object));
    for (id, &logit) in (0_u32..).zip(logits) {
        if allowed.is_some_and(|allowed| !allowed.contains(&id)) {
            continue;
        }
        place += u64::from(id != object && logit >= own);
        if logit > best.0 {
            best = (logit, id);
        }
    }
    (place, best.1)
}

/// Tokens that pass through the encoder together, and rows: each has the logits of a whole vocabulary.
const TOKENS: usize = 4096;
const ROWS: usize = 64;

/// What is handed a fact with the place of its object and the best word.
type Said<'s> = &'s mut dyn FnMut(&Asked, u64, u32) -> anyhow::Result<()>;

/// Asks for all facts; gives of how many nothing is known though the model attends by maps.
fn ask(
    model: &Model,
    asked: &[Asked],
    allowed: Option<&HashSet<u32>>,
    context: &Context,
    said: Said<'_>,
) -> anyhow::Result<u64> {
    let (mut from, mut unknown) = (0, 0);
    while from < asked.len() {
        context.check()?;
        let (mut tokens, mut until) = (0, from);
        while let Some(one) = asked.get(until) {
            tokens += one.ids.len();
            if until > from && (tokens > TOKENS || until - from == ROWS) {
                break;
            }
            until += 1;
        }
        let some = &asked[from..until];
        let (logits, of_some) = model.logits(some)?;
        unknown += of_some;
        for (one, logits) in some.iter().zip(logits) {
            anyhow::ensure!(
                logits.iter().all(|logit| logit.is_finite()),
                "fact {}: the model says numbers that are none; look at how it was trained",
                one.fact.id
            );
            let (place, best) = place(&logits, one.object, allowed);
            said(one, place, best)?;
        }
        from = until;
    }
    Ok(unknown)
}

impl Stage for Asking {
    fn name(&self) -> &str {
        &self.name
    }

    fn version(&self) -> u32 {
        2
    }

    fn describe(&self, to: &mut dyn Describe) {
        describe::config(to, "lama", &self.config);
        self.data.describe(to);
        if let Some(words) = &self.words {
            words.describe(to);
        }
        self.base.describe(to);
        self.compute.describe(to);
        self.vocabulary.0.describe_with(self.vocabulary.1, to);
    }

    fn computes_on(&self) -> Option<String> {
        Some(self.compute.told())
    }

    fn inputs(&self) -> Vec<Input> {
        let mut inputs = vec![self.data.input(), self.base.input()];
        inputs.extend(self.vocabulary.0.inputs());
        inputs.extend(self.words.iter().map(Place::input));
        inputs.extend(self.tuned.iter().flatten().flat_map(|mapping| mapping.inputs_of_tools()));
        inputs
    }

    fn run(&self, context: &mut Context) -> anyhow::Result<()> {
        let vocabulary = self.vocabulary.0.load(context, self.vocabulary.1)?;
        let allowed =
            self.words.as_ref().map(|words| allowed(&words.path(context)?, &vocabulary)).transpose()?;
        let mut facts = vec![];
        let of = lama::Config { corpora: self.config.corpora.clone(), wording: self.config.wording };
        let mut funnel = lama::read(&self.data.path(context)?, &of, &mut |fact| facts.push(fact))?;
        let (asked, step) = askable(facts, &vocabulary, allowed.as_ref(), self.config.max_tokens)?;
        funnel.push(step);
        context.record("funnel", serde_json::to_value(&funnel)?);
        let folder = self.base.folder(context)?;
        let device = self.compute.device(context)?;
        let model = match &self.tuned {
            None => Model::Filler(Box::new(Filler::load(&folder, &device)?)),
            Some(mapping) => {
                let most = self.config.max_tokens;
                Model::Tuned(Box::new(Tuned::load(&folder, mapping.as_ref(), most, context, &device)?))
            }
        };
        let padded = encoder::fits(vocabulary.size(), vocabulary.special(), model.config())?;
        self.vocabulary.0.belongs(&vocabulary, &folder)?;
        context.record("padded_rows", padded);
        // Rows of the table that no token has are no answers.
        let tokens = || (0_u32..).take(vocabulary.size()).collect();
        let allowed = allowed.or_else(|| (padded > 0).then(tokens));
        let positions = model.config().max_position_embeddings;
        encoder::room("lama", self.config.max_tokens, positions)?;
        let (mut places, mut lines) = (ByRelation::new(), vec![]);
        let mut said = |one: &Asked, place: u64, best: u32| {
            let Fact { corpus, relation, id, object, .. } = &one.fact;
            places.entry(*corpus).or_default().entry(relation.clone()).or_default().push(place);
            let said = if vocabulary.special().family.is_bert() {
                vocabulary.token(best)
            } else {
                vocabulary.written(best)
            };
            let best = said.unwrap_or_default();
            let line = json!({"corpus": corpus, "relation": relation, "id": id, "object": object, "place": place, "said": best});
            serde_json::to_writer(&mut lines, &line)?;
            lines.push(b'\n');
            Ok(())
        };
        let unknown = ask(&model, &asked, allowed.as_ref(), context, &mut said)?;
        if self.tuned.as_ref().is_some_and(Option::is_some) {
            context.record("rows_without_maps", unknown);
        }
        anyhow::ensure!(
            !asked.is_empty(),
            "no fact can be asked of this vocabulary: every object has several tokens or is none of lama.words; see the funnel of `engraft inspect {}`",
            self.name
        );
        let (scores, table) = told(&places);
        write_whole(&context.out().join(ANSWERS), &lines)?;
        write_whole(&context.out().join(TABLE), table.as_bytes())?;
        write_whole(&context.out().join(SCORES), &serde_json::to_vec_pretty(&scores)?)?;
        context.record("scores", scores);
        Ok(())
    }
}

/// The words of a file as token ids; those that the vocabulary has not as one token cannot be answered.
fn allowed(file: &std::path::Path, vocabulary: &Vocabulary) -> anyhow::Result<HashSet<u32>> {
    let text = std::fs::read_to_string(file)
        .with_context(|| format!("{}: cannot read it; expected a word a line", file.display()))?;
    let mut words = HashSet::new();
    for word in text.lines().map(str::trim).filter(|word| !word.is_empty()) {
        if let [id] = vocabulary.encode(&vocabulary.within(word))?[..] {
            words.insert(id);
        }
    }
    words.remove(&vocabulary.special().unknown);
    anyhow::ensure!(!words.is_empty(), "{}: none of its lines is a word of the vocabulary", file.display());
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_of_an_object_is_among_what_may_be_said() {
        let logits = [0.5, 3.0, 2.0, 3.0];
        assert_eq!(place(&logits, 2, None), (3, 1));
        // Of equal ones the object comes last.
        assert_eq!(place(&logits, 1, None), (2, 1));
        let allowed: HashSet<u32> = [0, 2].into();
        assert_eq!(place(&logits, 2, Some(&allowed)), (1, 2));
        assert_eq!(place(&[1.0; 5], 0, None).0, 5, "a model that says nothing is not right");
    }

    #[test]
    fn the_first_blank_is_asked_and_objects_are_one_token() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vocab.txt");
        write_whole(&path, b"[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nborn\nin\nrome\n##s\n.\n").unwrap();
        let vocabulary = Vocabulary::load(&path, Case::Uncased).unwrap();
        let (ids, blank) = tokens("Born in [MASK] . In [MASK] .", &vocabulary).unwrap();
        assert_eq!((ids.as_slice(), blank), (&[2, 5, 6, 4, 9, 6, 4, 9, 3][..], Some(3)));
        let fact = |object: &str, sentence: &str| Fact {
            corpus: Corpus::Squad,
            relation: "test".to_owned(),
            id: "x".to_owned(),
            sentence: sentence.to_owned(),
            object: object.to_owned(),
        };
        let long = "born ".repeat(30) + MASK;
        let facts = vec![
            fact("Rome", "in [MASK]"),
            fact("Romes", "in [MASK]"),
            fact("Paris", "in [MASK]"),
            fact("rome", &long),
        ];
        let (asked, step) = askable(facts, &vocabulary, None, 16).unwrap();
        assert!(step.adds_up() && asked.len() == 1 && asked[0].object == 7);
        assert_eq!(step.dropped.values().sum::<u64>(), 3);
        write_whole(&folder.path().join("words.txt"), b"born\nParis\n").unwrap();
        let words = allowed(&folder.path().join("words.txt"), &vocabulary).unwrap();
        assert_eq!(words, HashSet::from([5]));
    }
}
