//! Other ways to attend in fine-tuning: the tables `[[attentions]]`.

mod config;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use base::setting::InvalidSetting;
use batch::maps::expand::Map;
use downstream::encode::Cut;
use downstream::example::Kind;
use model::attention::Sibling;
use model::attention::kam::Settings as Kam;
use model::attention::label::LabelAttention;
use model::attention::label::begin::{ClassMeans, of_keywords};
use model::encoder::tokens::Tokens;
use model::encoder::{Encoder, Pass};
use model::output::Targets;
use model::range::WEIGHT;
use model::train::Trainer;
use model::{Device, Tensor, checkpoint};
use tasks::token::encode::Vocabulary;

use super::benchmark::Benchmark;
use super::config::Fixed;
use crate::bundle::task_file;
use crate::config::range::number;
use crate::engine::context::Context;
use crate::engine::describe::{self, Describe};
use crate::engine::licence::Licence;
use crate::engine::stage::Input;
use crate::stage::benchmark as tried;
use crate::stage::corpus::Corpus;
use crate::stage::maps::Mapping;
use crate::stage::maps::benchmark as mapped;
pub(crate) use config::{Begin, By, Config, Knowledge, Labels};

/// The way to attend of one fine-tuning.
#[derive(Debug, Clone)]
pub(crate) enum Attending {
    /// Tokens look at each other.
    Plain,
    /// By labels, which have these keywords by class, if they begin with them.
    Labels(Labels, BTreeMap<String, Vec<String>>),
    /// By what is known, as this stage makes it of texts.
    Knowledge(Knowledge, Arc<Mapping>, Kept),
}

/// Where maps come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    /// From a stage on the benchmark.
    InStage,
    /// They are made with the texts, which are put together anew all the time.
    WithTexts,
}

impl Config {
    /// Whether layers hand maps of what is known to the next.
    pub(crate) fn has_maps(&self) -> bool {
        matches!(self.by, By::Knowledge(_))
    }

    /// Whether every number is in its range.
    ///
    /// # Errors
    /// Names the first that is not.
    pub(crate) fn ranges(&self) -> anyhow::Result<()> {
        let key = format!("attentions.{}", self.name);
        match &self.by {
            By::Labels(Labels { lambda, .. }) => number(format!("{key}.labels.lambda"), *lambda, &WEIGHT),
            By::Knowledge(knowledge) => match knowledge.settings().check() {
                // How many maps there are is said by their names.
                Err(InvalidSetting { setting, found, expected }) if setting != "knowledge.maps" => {
                    anyhow::bail!("{key}.{setting} is {found}, expected {expected}")
                }
                _ => Ok(()),
            },
        }
    }

    /// The benchmarks that it is tried on, of those that plain attention is tried on too, `by_itself`.
    ///
    /// # Errors
    /// When the table is invalid, or cannot be tried on one of them: with the reason.
    pub(crate) fn benchmarks<'b>(
        &self,
        all: &'b [tried::Config],
        by_itself: &[String],
        fixed: &Fixed,
    ) -> anyhow::Result<Vec<&'b str>> {
        let key = format!("attentions.{}", self.name);
        if let By::Knowledge(knowledge) = &self.by {
            knowledge.check(&format!("{key}.knowledge"), fixed)?;
        }
        let compared = || all.iter().filter(|of| by_itself.contains(&of.name));
        let Some(on) = &self.on else {
            let fit: Vec<&str> =
                compared().filter(|of| self.misfit(of).is_none()).map(|of| of.name.as_str()).collect();
            let first = compared().next().map_or_else(String::new, |of| self.misfit(of).unwrap_or_default());
            anyhow::ensure!(!fit.is_empty(), "{key} can be tried on no benchmark: {first}");
            return Ok(fit);
        };
        let find = |(place, name): (usize, &String)| {
            let found = all.iter().find(|of| of.name == *name);
            let names = || all.iter().map(|of| of.name.as_str()).collect::<Vec<_>>().join(", ");
            let found = found
                .with_context(|| format!("{key}.on has {name:?}, but [[benchmarks]] has {}", names()))?;
            anyhow::ensure!(!on[..place].contains(name), "{key}.on has {name:?} twice: leave one out");
            anyhow::ensure!(
                by_itself.contains(name),
                "{key}.on has {name:?}, which finetune.on leaves out: an attention is tried beside plain attention"
            );
            match self.misfit(found) {
                None => Ok(found.name.as_str()),
                Some(reason) => anyhow::bail!("{key}.on has {name:?}: {reason}; leave it out"),
            }
        };
        anyhow::ensure!(!on.is_empty(), "{key}.on is empty: name a benchmark, or leave `on` out for all");
        on.iter().enumerate().map(find).collect()
    }

    /// Why it cannot be tried on a benchmark.
    fn misfit(&self, of: &tried::Config) -> Option<String> {
        let kind = of.kind();
        let what = match kind {
            None => "a ranking",
            Some(Kind::OneClass) => "one class",
            Some(Kind::AnyClasses) => "any classes",
            Some(Kind::Score) => "a number",
            Some(Kind::Tags) => "tags of words",
            Some(Kind::Choice) => "one of several texts",
            Some(Kind::MaskedWords) => "masked words",
            Some(Kind::Span) => "spans of passages",
        };
        if let By::Labels(Labels { begin, .. }) = self.by {
            if kind != Some(Kind::OneClass) {
                return Some(format!("labels attend for one class of several, {} asks for {what}", of.name));
            }
            let without = begin == Begin::Keywords && of.keywords.is_empty();
            return without.then(|| {
                format!(
                    "labels begin with keywords, and the benchmark {} has none: give it a table `keywords`",
                    of.name
                )
            });
        }
        None
    }

    /// The way to attend on a benchmark; `mapping` makes maps, and `parsed` says what is marked in its texts.
    ///
    /// # Errors
    /// When there is none and it takes one.
    pub(crate) fn attending(
        &self,
        on: &tried::Config,
        mapping: Option<&Arc<Mapping>>,
        parsed: Option<&Corpus>,
    ) -> anyhow::Result<Attending> {
        let knowledge = match &self.by {
            By::Labels(labels) => return Ok(Attending::Labels(*labels, on.keywords.clone())),
            By::Knowledge(knowledge) => knowledge,
        };
        let mapping = mapping.with_context(|| {
            format!("attentions.{} attends by maps, and nothing says how they are made: add the table [maps] and those that it needs", self.name)
        })?;
        mapping.can_make(&knowledge.maps, on.marks()).with_context(|| format!("attentions.{}", self.name))?;
        let kept = match on.kind() {
            None | Some(Kind::Tags | Kind::MaskedWords | Kind::Span) => Kept::WithTexts,
            Some(_) => Kept::InStage,
        };
        let attending = Attending::Knowledge(knowledge.clone(), Arc::clone(mapping), kept);
        // An annotator has seen the words that are masked.
        Ok(attending.on_texts(parsed.filter(|_| on.kind() != Some(Kind::MaskedWords))))
    }
}

impl Knowledge {
    fn check(&self, key: &str, fixed: &Fixed) -> anyhow::Result<()> {
        anyhow::ensure!(!self.maps.is_empty(), "{key}.maps is empty: name entity, phrase, term or graph");
        for (place, map) in self.maps.iter().enumerate() {
            let twice = self.maps[..place].contains(map);
            anyhow::ensure!(!twice, "{key}.maps has {:?} twice: leave one out", map.name());
        }
        anyhow::ensure!(
            fixed.truncation == Cut::Longest,
            "{key}: maps cut the longer text of a pair, by whole words: set finetune.truncation = \"longest\""
        );
        Ok(())
    }

    /// The same without the maps' names.
    #[must_use]
    pub(crate) fn settings(&self) -> Kam {
        let Knowledge { maps, alpha, skip, auxiliary, merge } = self;
        Kam { maps: maps.len(), alpha: *alpha, skip: *skip, auxiliary: *auxiliary, merge: *merge }
    }
}

impl Attending {
    /// The same on texts of another benchmark, of which an annotator says `parsed`.
    #[must_use]
    pub(crate) fn on_texts(&self, parsed: Option<&Corpus>) -> Self {
        match self {
            Attending::Knowledge(knowledge, mapping, Kept::WithTexts)
                if parsed.is_some() || mapping.parsed().is_some() =>
            {
                let mapping = Arc::new(mapping.with_parsed(parsed.cloned()));
                Attending::Knowledge(knowledge.clone(), mapping, Kept::WithTexts)
            }
            _ => self.clone(),
        }
    }

    /// What an annotator says of texts that are mapped as they are read, if anything is brought.
    #[must_use]
    pub(crate) fn parsed(&self) -> Option<&Corpus> {
        match self {
            Attending::Knowledge(_, mapping, _) => mapping.parsed(),
            Attending::Plain | Attending::Labels(..) => None,
        }
    }

    /// What may be done with what is made of these annotations.
    #[must_use]
    pub(crate) fn licence(&self) -> Licence {
        self.parsed().map_or(Licence::None, Corpus::licence)
    }

    /// Describes it; plain attention is described by nothing.
    pub(crate) fn describe(&self, to: &mut dyn Describe) {
        // Versions are raised whenever the same settings come to other bytes: 2 is where attention became part of a layer's one operation, 3
        // where models said what their maps are made with, 4 where maps came from a stage of their own.
        const VERSION: &str = "attention.version";
        match self {
            Attending::Plain => {}
            Attending::Labels(labels, keywords) => {
                to.field(VERSION, 2.into());
                describe::config(to, "attention.labels", labels);
                if labels.begin == Begin::Keywords {
                    describe::config(to, "attention.keywords", keywords);
                }
            }
            Attending::Knowledge(knowledge, mapping, _) => {
                to.field(VERSION, 4.into());
                describe::config(to, "attention.knowledge", knowledge);
                mapping.describe_tools(to);
                mapping.parsed().into_iter().for_each(|parsed| parsed.describe(to));
            }
        }
    }

    /// What stages on a benchmark read besides it and the encoder.
    #[must_use]
    pub(crate) fn inputs(&self, benchmark: &str) -> Vec<Input> {
        match self {
            Attending::Plain | Attending::Labels(..) => vec![],
            Attending::Knowledge(_, _, Kept::InStage) => vec![Input::artifact(mapped::name(benchmark))],
            Attending::Knowledge(_, mapping, Kept::WithTexts) => mapping.inputs_of_tools(),
        }
    }

    /// The labels that a model attends with.
    #[must_use]
    pub(super) fn labels(&self) -> Option<LabelAttention> {
        match self {
            Attending::Labels(Labels { mode, lambda, .. }, _) => {
                Some(LabelAttention { mode: *mode, lambda: *lambda })
            }
            Attending::Plain | Attending::Knowledge(..) => None,
        }
    }

    /// The maps that it attends by.
    #[must_use]
    pub(super) fn knowledge(&self) -> Option<Kam> {
        match self {
            Attending::Knowledge(knowledge, ..) => Some(knowledge.settings()),
            Attending::Plain | Attending::Labels(..) => None,
        }
    }

    /// The same by their kinds; none without them.
    #[must_use]
    pub(super) fn maps(&self) -> &[Map] {
        match self {
            Attending::Knowledge(knowledge, ..) => &knowledge.maps,
            Attending::Plain | Attending::Labels(..) => &[],
        }
    }

    /// What the folder of a model, which is trained on `benchmark`, says of the maps.
    ///
    /// # Errors
    /// When what they are made with cannot be read.
    pub(super) fn told(
        &self,
        benchmark: &str,
        context: &Context,
    ) -> anyhow::Result<Option<task_file::Knowledge>> {
        let Attending::Knowledge(Knowledge { maps, .. }, mapping, kept) = self else { return Ok(None) };
        let made_with = match kept {
            Kept::InStage => mapped::made_with(context.artifact(&mapped::name(benchmark))?, maps)?,
            Kept::WithTexts => mapping.made_with(maps, context)?,
        };
        Ok(Some(task_file::Knowledge { maps: maps.clone(), made_with }))
    }

    /// Tokens of auxiliary terms that a row may have behind its own.
    #[must_use]
    pub(super) fn auxiliary(&self) -> usize {
        match self {
            Attending::Knowledge(_, mapping, _) => mapping.limits().auxiliary,
            Attending::Plain | Attending::Labels(..) => 0,
        }
    }

    /// Gives a model's labels what they begin with; `base` is what it is fine-tuned from.
    ///
    /// # Errors
    /// When a class has no keyword or no example.
    pub(super) fn begin(
        &self,
        trainer: &mut Trainer,
        benchmark: &dyn Benchmark,
        base: &Path,
        vocabulary: &Vocabulary,
        context: &Context,
        device: &Device,
    ) -> anyhow::Result<()> {
        let Attending::Labels(Labels { begin, .. }, keywords) = self else { return Ok(()) };
        let embeddings_md = match begin {
            Begin::Random => return Ok(()),
            Begin::Keywords => {
                let tokens = of_words(keywords, benchmark.classes(), vocabulary)?;
                of_keywords(&trainer.params().get("embeddings.word_embeddings.weight")?, &tokens)?
            }
            Begin::ClassMeans => class_means(base, benchmark, context, device)?,
        };
        Ok(trainer.begin_labels(&embeddings_md)?)
    }
}

/// The tokens of each class's keywords.
fn of_words(
    keywords: &BTreeMap<String, Vec<String>>,
    classes: &[String],
    vocabulary: &Vocabulary,
) -> anyhow::Result<Vec<Vec<u32>>> {
    if let Some(unknown) = keywords.keys().find(|class| !classes.contains(class)) {
        anyhow::bail!("keywords.{unknown}: there is no such class, only {}", classes.join(", "));
    }
    let of = |class: &String| {
        let words = keywords.get(class).with_context(|| format!("keywords: none of class {class}"))?;
        let tokens = words.iter().map(|word| Ok(vocabulary.encode(word)?));
        let tokens = tokens.collect::<anyhow::Result<Vec<_>>>()?.concat();
        anyhow::ensure!(!tokens.is_empty(), "keywords.{class} has no word that makes a token: give it one");
        Ok(tokens)
    };
    classes.iter().map(of).collect()
}

/// Examples that pass through the encoder together.
const EXAMPLES: usize = 32;

/// Means of the first tokens' last hidden states, class by class, of everything that is trained on.
fn class_means(
    base: &Path,
    benchmark: &dyn Benchmark,
    context: &Context,
    device: &Device,
) -> anyhow::Result<Tensor> {
    let loaded = checkpoint::load(base, device)?;
    let (config, params) = (loaded.config, loaded.params.freeze(|_| true));
    let encoder = Encoder::new(&config, &params)?;
    let mut means = ClassMeans::new(benchmark.classes().len(), config.hidden_size);
    let items: Vec<usize> = (0..benchmark.items()).collect();
    for items in items.chunks(EXAMPLES) {
        context.check()?;
        let batch = benchmark.batch(0, items)?;
        let Targets::Classes(classes) = &batch.targets else { anyhow::bail!("labels of no classes") };
        let tokens = Tokens::new(&[("texts", &batch.rows)], &config, device)?;
        let hidden = encoder.forward(&config, &tokens, &Pass::PLAIN)?;
        let last_nd = hidden.last().context("an encoder has layers")?;
        for (span, class) in tokens.spans.iter().zip(classes) {
            means.add(*class, &last_nd.get(span.start)?.to_vec1::<f32>()?)?;
        }
    }
    Ok(means.embeddings(device)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ATTENTION: &str = "name = \"kam\"\nknowledge = { maps = [\"entity\", \"term\"], alpha = 0.2, skip = \"post_add\", auxiliary = \"zero_pad\", merge = \"convolution\" }\n";
    const LABELS: &str = "name = \"le\"\nlabels = { mode = \"paper\", lambda = 3.0, begin = \"keywords\" }\n";

    fn benchmark(name: &str, format: &str, keywords: &str) -> tried::Config {
        let set = format!(
            "name = \"{name}\"\nkeywords = {{ {keywords} }}\n[set]\nformat = {format}\ntrain = [\"x\"]\ndrawn = {{ seed = 1, dev = 0.1, mask_search = 0.0, test = 0.1 }}\nlicence = \"free\"\n"
        );
        toml::from_str(&set).unwrap()
    }

    fn fixed(cut: &str) -> Fixed {
        toml::from_str(&format!("truncation = \"{cut}\"")).unwrap()
    }

    fn told(attention: &str, cut: &str) -> Result<Vec<String>, String> {
        let all = [
            benchmark("cola", "\"cola\"", ""),
            benchmark("sts", "\"sts_b\"", ""),
            benchmark("out", "\"cola\"", ""),
            benchmark("rte", "\"glue_pairs\"", "entailment = [\"so\"]"),
            benchmark(
                "tags",
                "{ tagged = { format = { conll = { scheme = \"bio\", separator = \"tab\" } }, unit = \"document\" } }",
                "",
            ),
        ];
        let config: Config = toml::from_str(attention).unwrap();
        let names: Vec<String> = all.iter().map(|of| of.name.clone()).filter(|name| name != "out").collect();
        let checked = config.ranges().and_then(|()| config.benchmarks(&all, &names, &fixed(cut)));
        let found = checked.map_err(|error| error.to_string())?;
        Ok(found.into_iter().map(str::to_owned).collect())
    }

    #[test]
    fn an_attention_is_tried_on_what_it_can_be_tried_on() {
        assert_eq!(told(ATTENTION, "longest").unwrap(), ["cola", "sts", "rte", "tags"]);
        assert_eq!(told(LABELS, "longest").unwrap(), ["rte"]);
        let random = LABELS.replace("keywords", "random");
        assert_eq!(told(&random, "second").unwrap(), ["cola", "rte"]);
        let on = |of: &str, names: &str| told(&format!("{of}on = [{names}]\n"), "longest").unwrap_err();
        assert!(
            on(LABELS, "\"tags\"").contains("labels attend for one class of several, tags asks for tags")
        );
        assert!(
            on(LABELS, "\"sts\"").contains("labels attend for one class of several, sts asks for a number")
        );
        assert!(on(LABELS, "\"cola\"").contains("the benchmark cola has none: give it a table `keywords`"));
        assert!(on(LABELS, "\"x\"").contains("[[benchmarks]] has cola, sts, out, rte, tags"));
        assert!(on(LABELS, "\"rte\", \"rte\"").contains("twice"));
        assert!(on(LABELS, "\"out\"").contains("which finetune.on leaves out"));
        assert!(on(LABELS, "").contains("attentions.le.on is empty"));
    }

    #[test]
    fn what_cannot_be_meant_is_named() {
        let wrong = |from: &str, to: &str| told(&ATTENTION.replace(from, to), "longest").unwrap_err();
        assert!(wrong("0.2", "1.2").contains("attentions.kam.knowledge.alpha is 1.2, expected a share"));
        assert!(wrong("\"term\"", "\"entity\"").contains("maps has \"entity\" twice"));
        assert!(wrong("\"entity\", \"term\"", "").contains("maps is empty"));
        assert!(told(ATTENTION, "second").unwrap_err().contains("set finetune.truncation"));
        assert!(told(&LABELS.replace("3.0", "-3.0"), "second").unwrap_err().contains("lambda is -3"));
    }
}
