//! What a folder of examples looks like on disk.

use base::self_check::{self, SelfChecked};
use serde::{Deserialize, Serialize};

use super::{Kind, Measure, Part};
use crate::funnel::Step;
use crate::lines::File;

/// The format's name.
pub const FORMAT: &str = "engraft-examples";
/// The version of rows and index. It rises when a reader of the old one would misread the new one.
pub const VERSION: u32 = 2;
/// An example a line: an [`super::Example`].
pub const EXAMPLES: &str = "examples.jsonl";

/// What may be done with the texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Licence {
    /// The texts may be passed on, as their publisher allows.
    Free,
    /// Only what the agreement with their owner allows: the texts, and what is made of them, are put into no depot of a highest level.
    #[default]
    Restricted,
}

/// What `index.json` says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Index {
    /// Always `engraft-examples`.
    pub format: String,
    /// The format's version.
    pub version: u32,
    /// XXH3 of this file as 16 digits, taken while sixteen zeros stand here.
    pub xxh3: String,
    /// What the benchmark is called.
    pub name: String,
    /// What is asked of every example.
    pub kind: Kind,
    /// Names of the classes, by number.
    pub classes: Vec<String>,
    /// What is measured.
    pub measure: Measure,
    /// The class of examples that are of none of the others, which F1 leaves out.
    #[serde(rename = "nothing", skip_serializing_if = "Option::is_none", default)]
    pub negative_class: Option<u32>,
    /// What may be done with the texts.
    pub licence: Licence,
    /// What became of everything that was read; the last step keeps the examples.
    pub funnel: Vec<Step>,
    /// Examples of each part, in the order of parts; parts without any, too.
    pub parts: Vec<Counts>,
    /// The files, in order of names.
    pub files: Vec<File>,
}

/// Examples of one part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counts {
    /// The part.
    pub part: Part,
    /// How many it has.
    pub examples: u64,
    /// How many of them have each class, by number; of tags, how many words.
    pub classes: Vec<u64>,
}

impl SelfChecked for Index {
    const KIND: &'static self_check::Kind = &self_check::Kind {
        format: FORMAT,
        version: VERSION,
        folder: "a folder of examples",
        again: "make the examples again",
        command: "`engraft run`, or `downstream::example::write`",
    };

    fn check_mut(&mut self) -> &mut String {
        &mut self.xxh3
    }
}
