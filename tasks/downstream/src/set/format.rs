//! The table of published sets, by the names that configs call them by: a line a set.

use serde::{Deserialize, Serialize};

use super::{
    PublishedSet, biosses, chemprot, chemprot_track, clinical_sts, cola, cosmos_qa, ddi, fields, glue,
    glue_pairs, hoc, i2b2_relations, imdb, masked_words, mednli, medrqe, n2c2_relations, quasar_t, search_qa,
    separated, squad, sst2, sts_b, tagged, trec,
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
    /// Rows of columns between tabs or commas.
    Separated(set: separated::Config) => set,
    /// One JSON object per line; the keys say which fields hold what.
    Jsonl(set: fields::Fields) => set,
    /// CoLA (Warstadt et al. 2019), as published: whether a sentence is acceptable.
    Cola => &cola::SET,
    /// CosmosQA (Huang et al. 2019), CSV: which of four answers to a question about a context is right; rows of one context stay in one part.
    CosmosQa => &cosmos_qa::SET,
    /// RTE, WNLI or any other set of GLUE with `sentence1`, `sentence2` and `label`, as published.
    GluePairs => &glue_pairs::SET,
    /// A task of GLUE as its download lays it out: cola, sst2, mrpc, stsb, qqp, mnli, qnli, rte or wnli.
    Glue(set: glue::Task) => set,
    /// SST-2, as published: the sentiment of a sentence.
    Sst2 => &sst2::SET,
    /// STS-B (Cer et al. 2017), as published: semantic similarity of two sentences, 0 to 5.
    StsB => &sts_b::SET,
    /// BIOSSES (Sogancioglu et al. 2017): semantic similarity of two sentences, the mean of five annotators from 0 to 4.
    Biosses => &biosses::SET,
    /// MedNLI (Romanov and Shivade 2018), JSON Lines.
    Mednli => &mednli::SET,
    /// ClinicalSTS of n2c2 2019: the rows with their scores, semantic similarity of two snippets from 0 to 5.
    ClinicalSts => &clinical_sts::SET,
    /// Question entailment (Ben Abacha and Demner-Fushman 2016), XML; a question's pairs stay in one part.
    Medrqe => &medrqe::Medrqe,
    /// The Hallmarks of Cancer (Baker et al. 2016), a folder with `text/` and `labels/`.
    Hoc(set: hoc::Config) => set,
    /// SciBERT's JSON Lines of ChemProt (Beltagy et al. 2019): relations of chemicals and proteins. The arguments stay marked: `<< one >>`,
    /// `[[ the other ]]`. It has no pairs without a relation.
    Chemprot(set: chemprot::Config) => set,
    /// ChemProt as the track gave it out (Krallinger et al. 2017): a folder of `*_abstracts.tsv`, `*_entities.tsv` and `*_gold_standard.tsv`. As in BLUE, every
    /// chemical and gene of a sentence are an example, of class `false` if unrelated, with one example per relation if there are several. `false` is
    /// excluded from F1.
    ChemprotTrack(set: chemprot_track::Config) => set,
    /// The DDI corpus (Herrero-Zazo et al. 2013), XML in folders: interactions of drugs. `false` is excluded from F1.
    Ddi(set: ddi::Config) => set,
    /// Relations of problems, tests and treatments (i2b2 2010, Uzuner et al. 2011): a folder of texts with their `.con` and `.rel`, next to
    /// them or, as published, in `txt/`, `concept/` and `rel/`. As in BLUE, every two concepts on a line are an example, of class `false`
    /// if unrelated, with one example per relation if there are several. `false` is excluded from F1.
    I2b2Relations(set: i2b2_relations::Config) => set,
    /// Relations of drugs (n2c2 2018, Henry et al. 2020), brat: each `Drug` paired with every other entity nearby. The class is the
    /// relation's name or `false`, which is excluded from F1.
    N2c2Relations(set: n2c2_relations::Config) => set,
    /// Kinds of questions (Li and Roth 2002), one per line, in Latin-1.
    Trec(set: trec::Config) => set,
    /// Film reviews (Maas et al. 2011), one per file: the class is the folder, `pos` or `neg`; the star rating in the file name is ignored;
    /// `unsup` is skipped and counted. Shares are drawn by review, though a film may have several.
    Imdb => &imdb::Imdb,
    /// Questions whose answers stand in a passage, in the layout of SQuAD 1.1 and 2.0 (Rajpurkar et al. 2016, 2018), which COVID-QA and
    /// BioBERT's BioASQ have as well; or an object per line with `context`, `question` and `answers`, as `datasets` writes them. Questions of an article stay in one part.
    Squad(set: squad::Config) => set,
    /// Quasar-T (Dhingra et al. 2017): trivia questions with passages that a search found; name `questions/*_questions.json.gz`.
    QuasarT(set: quasar_t::Config) => set,
    /// SearchQA (Dunn et al. 2017): questions of a quiz show with what a search engine showed for them, `snippets ||| question ||| answer` per line.
    SearchQa(set: search_qa::Config) => set,
    /// Texts with entities, in any format of texts that annotates them.
    Tagged(set: tagged::Config) => set,
    /// Texts in any format, of which words are masked and asked for (Devlin et al. 2019, section 3.1): masked language modelling as a fine-tuning, by any attention.
    MaskedWords(set: masked_words::Config) => set,
}
