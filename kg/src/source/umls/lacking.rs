//! What a Metathesaurus lacks though it can be read: files that have no row, and inverses of relations.

use super::Files;
use super::doc::Documentation;
use super::file::File;
use crate::source::funnel::Funnel;
use crate::table::Builder;

/// Relations that a message names.
const NAMED: usize = 3;

/// What is told of what is not there, once all files are read. MRCUI may well be empty: no concept is retired then.
pub(super) fn told(files: &Files<'_>, funnel: &Funnel, builder: &Builder) -> Vec<String> {
    let tally = |file: &File<'_>| {
        let name = file.label.file_name().unwrap_or_default().to_string_lossy();
        funnel.supporting.iter().find(|tally| tally.file == name)
    };
    let is_empty = |file: &File<'_>| tally(file).is_some_and(|tally| tally.read == 0);
    let without = [
        (&files.sty, "no concept has a semantic type"),
        (&files.def, "no concept has a definition"),
        (&files.sab, "no vocabulary has a licence level"),
        (&files.rank, "flags alone say which name of a concept is preferred"),
        (&files.doc, "no relation of column RELA has an inverse"),
    ];
    let empty = without.into_iter().filter_map(|(file, so)| {
        let file = file.as_ref().filter(|file| is_empty(file))?;
        let name = file.label.file_name().unwrap_or_default().to_string_lossy();
        Some(format!("{}: {name} has no row, so {so}: fetch the file again", funnel.source))
    });
    let is_documented = files.doc.as_ref().is_some_and(|file| !is_empty(file));
    let undirected = (!is_documented).then(|| unpaired(funnel, builder)).flatten();
    empty.chain(undirected).collect()
}

/// What is told of relations whose inverses nothing tells.
fn unpaired(funnel: &Funnel, builder: &Builder) -> Option<String> {
    let stated = funnel.relations.iter().filter(|(_, rows)| **rows > 0).map(|(key, _)| key.as_str());
    let alone = stated.filter(|key| !Documentation::is_broad(key) && !builder.has_inverse(key));
    let alone: Vec<&str> = alone.collect();
    let named: Vec<String> = alone.iter().take(NAMED).map(|key| format!("{key:?}")).collect();
    let more = if alone.len() > NAMED { ", ..." } else { "" };
    // One by itself has no other that might be its inverse.
    (alone.len() > 1).then(|| {
        format!(
            "{}: no MRDOC.RRF says which relations are inverse, so {} of them ({}{more}) are kept as separate relations, and what is stated both ways is two triples: bring the file, or name the pairs as canon.declared = [[\"ONE\", \"ITS_INVERSE\"]]",
            funnel.source,
            alone.len(),
            named.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{files, options, source};
    use super::super::{Options, read};
    use super::*;

    const CONSO: &str = "\
        C0000001|ENG|P|L1|PF|S1|Y|A1||||MSH|MH|D1|Fever|0|N||\n\
        C0000002|ENG|P|L2|PF|S2|Y|A2||||MSH|MH|D2|Aspirin|0|N||\n";
    const REL: &str = "\
        C0000001|A1|AUI|RO|C0000002|A2|AUI|may_treat|R1||MSH|MSH|||N||\n\
        C0000002|A2|AUI|RO|C0000001|A1|AUI|may_be_treated_by|R2||MSH|MSH|||N||\n";

    fn warnings(files: &Files<'_>, options: &Options, builder: &mut Builder) -> Vec<String> {
        let funnel = read(files, options, builder);
        funnel.map_or_else(|error| vec![error.to_string()], |funnel| told(files, &funnel, builder))
    }

    #[test]
    fn without_mrdoc_inverse_relations_are_told() {
        let lacking = files(CONSO, REL);
        assert_eq!(
            warnings(&lacking, &options(), &mut Builder::new()),
            [
                "umls: no MRDOC.RRF says which relations are inverse, so 2 of them (\"may_be_treated_by\", \"may_treat\") are kept as separate relations, and what is stated both ways is two triples: bring the file, or name the pairs as canon.declared = [[\"ONE\", \"ITS_INVERSE\"]]"
            ]
        );
        let mut declared = Builder::new();
        declared.declare_inverse("may_treat", "may_be_treated_by");
        assert!(warnings(&lacking, &options(), &mut declared).is_empty());
        let one = Options { relations: Some(["may_treat".to_owned()].into()), ..options() };
        assert!(warnings(&lacking, &one, &mut Builder::new()).is_empty());
        let doc = "RELA|may_treat|rela_inverse|may_be_treated_by|\n";
        let documented = Files { doc: Some(source("MRDOC.RRF", doc)), ..files(CONSO, REL) };
        assert!(warnings(&documented, &options(), &mut Builder::new()).is_empty());
    }

    #[test]
    fn files_without_a_row_are_told() {
        let doc = "RELA|may_treat|rela_inverse|may_be_treated_by|\n";
        let empty = Files {
            doc: Some(source("MRDOC.RRF", doc)),
            sty: Some(source("MRSTY.RRF", "")),
            cui: Some(source("MRCUI.RRF", "")),
            ..files(CONSO, REL)
        };
        let told = warnings(&empty, &options(), &mut Builder::new());
        assert_eq!(
            told,
            ["umls: MRSTY.RRF has no row, so no concept has a semantic type: fetch the file again"]
        );
        let empty = Files { doc: Some(source("MRDOC.RRF", "")), ..files(CONSO, REL) };
        let told = warnings(&empty, &options(), &mut Builder::new());
        assert!(told.len() == 2 && told[0].starts_with("umls: MRDOC.RRF has no row"), "{told:?}");
    }
}
