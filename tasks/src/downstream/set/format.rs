//! The table of published sets, by the names that configs call them by: a line a set.

use serde::{Deserialize, Serialize};

use super::{
    PublishedSet, biosses, chemprot, clinical_sts, cola, ddi, fields, glue_pairs, hoc, i2b2_relations, imdb,
    mednli, medrqe, n2c2_relations, separated, sst2, sts_b, tagged, trec,
};

/// Makes [`Format`] of lines `Name(set: Settings) => set`, or `Name => set` for a set without settings.
macro_rules! formats {
    ($($(#[$about:meta])* $name:ident $(($of:ident: $settings:ty))? => $set:expr,)*) => {
        /// How a set is laid out.
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
        #[serde(rename_all = "snake_case", deny_unknown_fields)]
        pub enum Format {
            $($(#[$about])* $name $(($settings))?,)*
        }

        impl Format {
            /// The set with its settings.
            #[must_use]
            pub fn set(&self) -> &dyn PublishedSet {
                match self {
                    $(Self::$name $(($of))? => $set,)*
                }
            }
        }
    };
}

formats! {
    /// Columns between tabs or commas.
    Separated(set: separated::Config) => set,
    /// An object a line.
    Jsonl(set: fields::Fields) => set,
    /// CoLA (Warstadt et al. 2019): whether a sentence is acceptable.
    Cola => &cola::SET,
    /// RTE, or WNLI, or any set of GLUE with `sentence1`, `sentence2` and `label`.
    GluePairs => &glue_pairs::SET,
    /// SST-2: the sentiment of a sentence.
    Sst2 => &sst2::SET,
    /// STS-B (Cer et al. 2017): semantic similarity of two sentences, 0 to 5.
    StsB => &sts_b::SET,
    /// BIOSSES (Sogancioglu et al. 2017): semantic similarity of two sentences, the mean of five judges from 0 to 4.
    Biosses => &biosses::SET,
    /// MedNLI (Romanov and Shivade 2018), JSON lines.
    Mednli => &mednli::SET,
    /// ClinicalSTS of n2c2 2019, the rows of its training file: semantic similarity of two snippets, 0 to 5.
    ClinicalSts => &clinical_sts::SET,
    /// Entailment of medical questions (Ben Abacha and Demner-Fushman 2016), XML.
    Medrqe => &medrqe::Medrqe,
    /// The Hallmarks of Cancer (Baker et al. 2016), a folder of texts beside one of labels.
    Hoc(set: hoc::Config) => set,
    /// Relations of chemicals and proteins as SciBERT's authors give them (Beltagy et al. 2019), JSON lines.
    Chemprot(set: chemprot::Config) => set,
    /// Interactions of drugs (Herrero-Zazo et al. 2013), XML.
    Ddi(set: ddi::Config) => set,
    /// Relations of problems, tests and treatments (i2b2 2010, Uzuner et al. 2011), texts with two files beside each.
    I2b2Relations(set: i2b2_relations::Config) => set,
    /// Relations of drugs (n2c2 2018, Henry et al. 2020), brat.
    N2c2Relations(set: n2c2_relations::Config) => set,
    /// Kinds of questions (Li and Roth 2002), a line each.
    Trec(set: trec::Config) => set,
    /// Reviews of films (Maas et al. 2011), a file each in folders `pos` and `neg`.
    Imdb => &imdb::Imdb,
    /// Texts with entities, in any format of a corpus that marks them.
    Tagged(set: tagged::Config) => set,
}
