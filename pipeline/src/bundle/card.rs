//! The card of a model's folder, `README.md`: what it was trained on and under which licences, how good it is, how to load it. Its head is what
//! Hugging Face reads. Equal trainings give equal bytes; names from data are text and nothing else.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Context as _;
use base::visible::{markdown, shown};
use base::whole::write_whole;
use model::encoder::config::Config as Sizes;
use serde_json::Value;

use crate::engine::context::Context;
use crate::stage::encoder::{Base, MODEL};

/// The card's name.
pub(crate) const FILE: &str = "README.md";

/// How transformers loads an encoder.
const LOAD: &str = "from transformers import AutoModel, AutoTokenizer\n\ntokenizer = AutoTokenizer.from_pretrained(FOLDER)\nmodel = AutoModel.from_pretrained(FOLDER)";

/// Where the licences of a graph's sources stand.
pub(crate) const LICENCES: &str =
    "`engraft fetch` lists the licences of the published sources that it knows.";

/// Classes that are named.
const CLASSES: usize = 20;

/// What a model is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An encoder without a task.
    Encoder,
    /// An encoder with task heads, which the tables of tasks name.
    Tasks {
        /// What it says of a text, each with the benchmark that it learnt it from.
        tasks: Vec<Said>,
        /// What its attention has that `transformers` does not know; nothing of a plain BERT.
        attention: Option<&'static str>,
        /// What `transformers` loads it as, last layer and all: `SequenceClassification`, `TokenClassification` or `QuestionAnswering`.
        class: Option<String>,
    },
}

/// A task of a fine-tuned model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Said {
    /// The benchmark.
    pub name: String,
    /// What is said, in a few words.
    pub says: &'static str,
    /// Names of its classes, if it has any.
    pub classes: Vec<String>,
}

/// A score of a fine-tuned model.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Scored {
    /// The benchmark.
    pub benchmark: String,
    /// What Hugging Face calls tasks of its kind.
    pub task: &'static str,
    /// The part.
    pub part: &'static str,
    /// What is measured.
    pub metric: String,
    /// The score, as a share where it is one.
    pub value: f64,
    /// Examples or queries.
    pub samples: usize,
}

/// What a card says.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Card {
    /// The stage that made the model.
    pub stage: String,
    /// What it is.
    pub kind: Kind,
    /// The encoder's sizes.
    pub sizes: Sizes,
    /// What it was trained on: Markdown, each a section with its heading.
    pub trained: Vec<String>,
    /// How good it is.
    pub scores: Vec<Scored>,
    /// What it began with, and the text of that one's card.
    pub began_with: Option<(String, String)>,
}

/// What an encoder began with: its name, and what its card says, if engraft made it.
///
/// # Errors
/// When the stage that uses it did not declare it.
pub(crate) fn of_base(base: &Base, context: &Context) -> anyhow::Result<(String, String)> {
    let path = base.folder(context)?.join(FILE);
    let text = match base {
        // Somebody else's card may be of any length, and is where the checkpoint is from.
        Base::Checkpoint(_) => String::new(),
        Base::Stage(_) => std::fs::read_to_string(&path).with_context(|| path.display().to_string())?,
    };
    Ok((base.name(), body(&text)))
}

/// What a card says of training, with what that began with; nothing of a card that engraft did not write.
pub(crate) fn of_training(card: &str) -> &str {
    card.split_once(HOW_TO_LOAD_END).map_or("", |(_, about)| about)
}

/// A card without its head, its title and how to load it, its headings one level deeper.
fn body(card: &str) -> String {
    let about = of_training(card);
    let deeper = |line: &str| if line.starts_with('#') { format!("#{line}\n") } else { format!("{line}\n") };
    about.lines().map(deeper).collect::<String>().trim().to_owned()
}

/// Stands behind what a card says of loading: what follows is of the training, and a part of the cards of models that began with this one.
const HOW_TO_LOAD_END: &str = "<!-- training -->\n";

impl Card {
    /// Writes the card into the model of a stage's artifact.
    ///
    /// # Errors
    /// When the disk refuses.
    pub(crate) fn write(&self, out: &Path) -> anyhow::Result<()> {
        Ok(write_whole(&out.join(MODEL).join(FILE), self.text().as_bytes())?)
    }

    fn text(&self) -> String {
        let mut text = self.front();
        let Sizes {
            num_hidden_layers,
            num_attention_heads,
            hidden_size,
            max_position_embeddings,
            vocab_size,
            ..
        } = &self.sizes;
        let what = match &self.kind {
            Kind::Encoder => format!("A {} encoder", self.sizes.family.name()),
            Kind::Tasks { .. } => format!("A fine-tuned {}", self.sizes.family.name()),
        };
        put(
            &mut text,
            format_args!(
                "\n# {}\n\n{what} made by engraft (stage `{}`): {num_hidden_layers} layers, {num_attention_heads} heads, width {hidden_size}, \
             {max_position_embeddings} positions, {vocab_size} token ids.\n",
                self.stage, self.stage
            ),
        );
        self.how_to_load(&mut text);
        text.push_str(HOW_TO_LOAD_END);
        for section in &self.trained {
            put(&mut text, format_args!("\n{}\n", section.trim()));
        }
        self.scores(&mut text);
        if let Some((name, card)) = &self.began_with {
            put(&mut text, format_args!("\n## What it began with\n\n{}\n", told(name)));
            if !card.is_empty() {
                put(&mut text, format_args!("\n{card}\n"));
            }
        }
        text
    }

    /// What Hugging Face reads. A JSON string is one of YAML.
    fn front(&self) -> String {
        let mut yaml = format!(
            "---\nlibrary_name: transformers\nlicense: other\nlicense_name: by-training-data\ntags:\n- engraft\n- {}\n- biomedical\n",
            self.sizes.family.name().to_lowercase()
        );
        if self.kind == Kind::Encoder {
            yaml.push_str("pipeline_tag: feature-extraction\n");
        }
        if let Kind::Tasks { class: Some(class), .. } = &self.kind {
            let tag = match class.as_str() {
                "TokenClassification" => "token-classification",
                "QuestionAnswering" => "question-answering",
                _ => "text-classification",
            };
            put(&mut yaml, format_args!("pipeline_tag: {tag}\n"));
        }
        let tests: Vec<&Scored> = self.scores.iter().filter(|score| score.part == "test").collect();
        if !tests.is_empty() {
            put(&mut yaml, format_args!("model-index:\n- name: {}\n  results:\n", quoted(&self.stage)));
        }
        for Scored { benchmark, task, metric, value, .. } in tests {
            let (name, metric) = (quoted(benchmark), quoted(metric));
            put(
                &mut yaml,
                format_args!(
                    "  - task:\n      type: {task}\n    dataset:\n      name: {name}\n      type: {name}\n      split: test\n    metrics:\n    - type: {metric}\n      value: {value}\n"
                ),
            );
        }
        yaml + "---\n"
    }

    fn how_to_load(&self, text: &mut String) {
        text.push_str("\n## How to load it\n\n");
        match &self.kind {
            Kind::Encoder => put(
                text,
                format_args!(
                    "`FOLDER` is the folder of this file. With transformers:\n\n```python\n{LOAD}\n```\n\n\
                 With engraft, vectors of texts, and the same folder to train on:\n\n\
                 ```sh\nengraft encode FOLDER texts.txt > vectors.jsonl\n```\n\n```toml\n[encoder]\nfrom = \"checkpoint\"\npath = \"FOLDER\"\n```\n\n"
                ),
            ),
            Kind::Tasks { tasks, attention, class } => {
                put(
                    text,
                    format_args!(
                        "`FOLDER` is the folder of this file. With engraft, one answer a line:\n\n```sh\nengraft predict FOLDER texts.txt\n```\n\n"
                    ),
                );
                match (attention, class) {
                    (None, Some(class)) => put(
                        text,
                        format_args!(
                            "With transformers, the last layer included, which answers as engraft does (in float32 and bfloat16):\n\n```python\n{}\n```\n\n",
                            LOAD.replace("AutoModel", &format!("AutoModelFor{class}"))
                        ),
                    ),
                    (None, None) => put(
                        text,
                        format_args!(
                            "transformers loads the encoder; the task heads (`outputs.safetensors`, described by `outputs.json`) are engraft's:\n\n```python\n{LOAD}\n```\n\n"
                        ),
                    ),
                    (Some(attention), _) => put(
                        text,
                        format_args!(
                            "Its attention is {attention}, which transformers does not know: load it with engraft.\n\n"
                        ),
                    ),
                }
                text.push_str("## What it says\n\n| task | answer | classes |\n|---|---|---|\n");
                for Said { name, says, classes } in tasks {
                    put(text, format_args!("| {} | {says} | {} |\n", markdown(name), listed(classes)));
                }
                text.push('\n');
            }
        }
    }

    fn scores(&self, text: &mut String) {
        if self.scores.is_empty() {
            return;
        }
        text.push_str("\n## Scores\n\nOf this one model; the table of a run (`scores.md`) has the means over seeds.\n\n| benchmark | part | metric | score | samples |\n|---|---|---|--:|--:|\n");
        for Scored { benchmark, part, metric, value, samples, .. } in &self.scores {
            put(
                text,
                format_args!(
                    "| {} | {part} | {} | {value:.4} | {samples} |\n",
                    markdown(benchmark),
                    markdown(metric)
                ),
            );
        }
    }
}

/// A table of what was recorded, a row for each value: flat objects with the same keys.
pub(crate) fn table(rows: &[Value]) -> String {
    let Some(Value::Object(first)) = rows.first() else { return String::new() };
    let keys: Vec<&String> = first.keys().collect();
    let titles: Vec<String> = keys.iter().map(|key| markdown(&key.replace('_', " "))).collect();
    let mut text = format!("| {} |\n|{}\n", titles.join(" | "), "--:|".repeat(keys.len()));
    for row in rows {
        let cell = |key: &&String| {
            row.get(key.as_str()).map_or_else(String::new, |value| markdown(&value.to_string()))
        };
        put(&mut text, format_args!("| {} |\n", keys.iter().map(cell).collect::<Vec<_>>().join(" | ")));
    }
    text
}

fn listed(classes: &[String]) -> String {
    let first = classes.iter().take(CLASSES).map(|name| markdown(name)).collect::<Vec<_>>().join(", ");
    match classes.len().saturating_sub(CLASSES) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

/// What it began with, as a sentence.
fn told(name: &str) -> String {
    match name.strip_prefix("checkpoint ") {
        Some(path) => {
            format!("The checkpoint {}; its own card and licence are where it comes from.", markdown(path))
        }
        None => format!("The model of stage {}.", markdown(name)),
    }
}

fn quoted(text: &str) -> String {
    // A string is always JSON; what steers is spelt out as JSON spells it.
    shown(&Value::from(text).to_string()).into_owned()
}

fn put(to: &mut String, what: std::fmt::Arguments<'_>) {
    // Writing into a string does not fail.
    let _ = to.write_fmt(what);
}

/// The card of a model, of the folder that sentence-transformers reads.
pub(crate) fn of_sentences(card: &str) -> String {
    let load = "from sentence_transformers import SentenceTransformer\n\nmodel = SentenceTransformer(FOLDER)\nvectors = model.encode([\"...\"])";
    let changes = [
        ("library_name: transformers\n", "library_name: sentence-transformers\n"),
        ("pipeline_tag: feature-extraction\n", "pipeline_tag: sentence-similarity\n"),
        ("With transformers:\n", "With sentence-transformers:\n"),
        (LOAD, load),
    ];
    changes.iter().fold(card.to_owned(), |card, (was, is)| card.replace(was, is))
}

#[cfg(test)]
mod tests {
    use super::*;
    use batch::family::Family;
    use serde_json::json;

    const HOSTILE: &str = "<img src=x> | `a` \"\n---\n# b";

    fn sizes() -> Sizes {
        Sizes {
            vocab_size: 100,
            hidden_size: 8,
            num_hidden_layers: 2,
            num_attention_heads: 2,
            intermediate_size: 16,
            max_position_embeddings: 32,
            type_vocab_size: 2,
            hidden_dropout_prob: 0.0,
            attention_probs_dropout_prob: 0.0,
            initializer_range: 0.02,
            layer_norm_eps: 1e-12,
            pad_token_id: 0,
            family: Family::Bert,
        }
    }

    fn encoder() -> Card {
        Card {
            stage: "retrain".to_owned(),
            kind: Kind::Encoder,
            sizes: sizes(),
            trained: vec!["## Training\n\nWords.".to_owned()],
            scores: vec![],
            began_with: Some(("encoder".to_owned(), String::new())),
        }
    }

    fn tuned() -> Card {
        let scored = |part| Scored {
            benchmark: HOSTILE.to_owned(),
            task: "token-classification",
            part,
            metric: "f1".to_owned(),
            value: 0.5,
            samples: 7,
        };
        let said =
            Said { name: HOSTILE.to_owned(), says: "one class", classes: vec![HOSTILE.to_owned(); 30] };
        Card {
            stage: "finetune-base-ner-1".to_owned(),
            kind: Kind::Tasks { tasks: vec![said], attention: None, class: None },
            scores: vec![scored("dev"), scored("test")],
            began_with: Some(("retrain".to_owned(), body(&encoder().text()))),
            ..encoder()
        }
    }

    #[test]
    fn a_card_says_how_to_load_it_and_what_came_before() {
        let text = tuned().text();
        assert!(text.starts_with("---\nlibrary_name: transformers\n"), "{text}");
        for part in [
            "## How to load it",
            "engraft predict FOLDER",
            "AutoModel.from_pretrained",
            "| dev | f1 | 0.5000 | 7 |",
            "and 10 more",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        // The card of what it began with is a part of it, one level deeper.
        assert!(text.contains("## What it began with\n\nThe model of stage retrain.\n\n### Training\n\nWords.\n\n### What it began with\n\nThe model of stage encoder."), "{text}");
        assert!(!text.contains("feature-extraction") && encoder().text().contains("feature-extraction"));
    }

    #[test]
    fn names_never_become_markup_or_end_the_head() {
        let text = tuned().text();
        assert_eq!(text.lines().filter(|line| *line == "---").count(), 2, "{text}");
        assert!(!text.contains("<img") || !text.split("\n---\n").nth(1).unwrap().contains("<img"), "{text}");
        assert!(text.contains("name: \"<img src=x> | `a` \\\"\\n---\\n# b\""), "{text}");
        assert_eq!(text.lines().filter(|line| line.starts_with("# ")).count(), 1);
    }

    #[test]
    fn an_attention_of_its_own_is_not_offered_to_transformers() {
        let kind = Kind::Tasks { tasks: vec![], attention: Some("KAM-BERT's"), class: None };
        let text = Card { kind, ..tuned() }.text();
        assert!(text.contains("Its attention is KAM-BERT's") && !text.contains("AutoModel"));
        let class = Some("TokenClassification".to_owned());
        let text = Card { kind: Kind::Tasks { tasks: vec![], attention: None, class }, ..tuned() }.text();
        assert!(text.contains("import AutoModelForTokenClassification, AutoTokenizer"), "{text}");
        assert!(text.contains("pipeline_tag: token-classification"), "{text}");
    }

    #[test]
    fn records_become_a_table() {
        let rows = [json!({"epoch": 1, "loss": 2.5}), json!({"epoch": 2, "loss": 1.5})];
        assert_eq!(table(&rows), "| epoch | loss |\n|--:|--:|\n| 1 | 2.5 |\n| 2 | 1.5 |\n");
        assert_eq!(table(&[]), "");
    }
}
