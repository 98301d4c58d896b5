//! Licence levels in words: the source restriction levels of UMLS.

/// Where the levels come from, and who decides.
pub(super) const ABOUT: &str = "Levels are the source restriction levels (SRL) of UMLS. The UMLS licence agreement \
     (https://www.nlm.nih.gov/research/umls/knowledge_sources/metathesaurus/release/license_agreement.html) decides, not this summary.";

/// What is to be said of the tasks on text.
pub(super) const TEXTS: &str = "The rows of tasks masked_lm and tagging hold texts themselves, nearly whole. The index names no licence of \
     theirs: that of whoever gave them holds.";

/// What a level of the index allows: a number from 0 to 9, or `none`.
pub(super) fn meaning(level: &str) -> &'static str {
    match level {
        "none" => "the source gives no level: its own licence holds",
        "0" => "no restriction of its own; what comes from UMLS is under the UMLS licence all the same",
        "1" => "as 0, but no translation and no other work derived from that vocabulary alone",
        "2" => {
            "as 1, and no use in applications that create records with its content; research and development are allowed"
        }
        "3" => {
            "internal use for research, product development and statistics only: no publication, no derived work, no passing on \
             without an agreement with its owner"
        }
        "4" => "as 0 inside the United States, as 3 elsewhere",
        "9" => {
            "SNOMED CT: free in member countries under the SNOMED CT affiliate licence, otherwise by agreement with SNOMED International"
        }
        _ => "a level that UMLS has not given a meaning: ask its owner",
    }
}
