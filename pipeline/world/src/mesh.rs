//! The MeSH descriptor file (layout of descYYYY.xml): headings, terms, tree numbers, what to look at as well.

use super::Error;
use super::entity::World;
use super::file::{Frame, Sink, put};
use super::kind::{Kind, Node};
use super::name::titled;
use quick_xml::escape::partial_escape;

const OPENING: &str = "<?xml version=\"1.0\"?>\n<!DOCTYPE DescriptorRecordSet SYSTEM \"desc2015.dtd\">\n\
                       <DescriptorRecordSet LanguageCode = \"eng\">\n";
const QUALIFIERS: [(&str, &str, &str); 3] =
    [("Q000175", "diagnosis", "DI"), ("Q000188", "drug therapy", "DT"), ("Q000453", "epidemiology", "EP")];

/// Writes `mesh/desc.xml`: one record for every entity that MeSH holds.
pub(super) fn write(world: &World, sink: &mut Sink<'_>) -> Result<u64, Error> {
    let nodes: Vec<_> = world.nodes().filter(|&node| world.descriptor(node).is_some()).collect();
    let frame = Frame { opening: OPENING, items: nodes.len(), closing: "</DescriptorRecordSet>\n" };
    sink.items("mesh/desc.xml", &frame, |index, out| {
        record(world, nodes[index], out);
        1
    })
}

fn record(world: &World, node: Node, out: &mut Vec<u8>) {
    let descriptor = world.descriptor(node).unwrap_or_default();
    let mut draw = world.latent.rng("dates").at(node.index());
    let established = draw.range(1966, 2015);
    put(out, format_args!("<DescriptorRecord DescriptorClass = \"1\">\n"));
    put(out, format_args!("  <DescriptorUI>{descriptor}</DescriptorUI>\n"));
    named(out, "  ", "DescriptorName", world.names(node).mesh());
    for (tag, year) in [("DateCreated", established), ("DateRevised", 2015), ("DateEstablished", established)]
    {
        date(out, "  ", tag, year);
    }
    put(out, format_args!("  <ActiveMeSHYearList>\n   <Year>2015</Year>\n  </ActiveMeSHYearList>\n"));
    if matches!(world.place(node).0.kind, Kind::Disease | Kind::Family) {
        put(out, format_args!("  <AllowableQualifiersList>\n"));
        for (id, name, abbreviation) in QUALIFIERS {
            put(
                out,
                format_args!(
                    "   <AllowableQualifier>\n    <QualifierReferredTo>\n     <QualifierUI>{id}</QualifierUI>\n      \
                     <QualifierName>\n      <String>{name}</String>\n      </QualifierName>\n    </QualifierReferredTo>\n    \
                     <Abbreviation>{abbreviation}</Abbreviation>\n   </AllowableQualifier>\n"
                ),
            );
        }
        put(out, format_args!("  </AllowableQualifiersList>\n"));
    }
    see_related(world, node, out);
    pharmacological_action(world, node, out);
    put(out, format_args!("  <TreeNumberList>\n"));
    for number in world.tree_numbers(node) {
        put(out, format_args!("   <TreeNumber>{number}</TreeNumber>\n"));
    }
    put(
        out,
        format_args!(
            "  </TreeNumberList>\n  <RecordOriginatorsList>\n   <RecordOriginator>engraft</RecordOriginator>\n   \
             <RecordMaintainer>engraft</RecordMaintainer>\n   <RecordAuthorizer>engraft</RecordAuthorizer>\n  \
             </RecordOriginatorsList>\n  <ConceptList>\n"
        ),
    );
    concepts(world, node, established, out);
    put(out, format_args!("  </ConceptList>\n </DescriptorRecord>\n"));
}

/// Some diseases point to the organ they sit in.
fn see_related(world: &World, node: Node, out: &mut Vec<u8>) {
    let draw = world.latent.rng("see related").at(node.index()).percent(30);
    let Some(&site) = world.disease(node).and_then(|disease| disease.sites.first()).filter(|_| draw) else {
        return;
    };
    put(out, format_args!("  <SeeRelatedList>\n   <SeeRelatedDescriptor>\n"));
    referred(world, site, "", out);
    put(out, format_args!("   </SeeRelatedDescriptor>\n  </SeeRelatedList>\n"));
}

/// The class of a drug, which is also what UMLS says it is.
pub(super) fn pharmacological_action(world: &World, node: Node, out: &mut Vec<u8>) {
    if world.place(node).0.kind != Kind::Drug {
        return;
    }
    put(out, format_args!("    <PharmacologicalActionList>\n"));
    for class in world.parents(node) {
        put(out, format_args!("     <PharmacologicalAction>\n"));
        referred(world, class, "", out);
        put(out, format_args!("     </PharmacologicalAction>\n"));
    }
    put(out, format_args!("    </PharmacologicalActionList>\n"));
}

/// A reference to a descriptor; `mark` is `*` before the main point of an article, or nothing.
pub(super) fn referred(world: &World, node: Node, mark: &str, out: &mut Vec<u8>) {
    let id = world.descriptor(node).unwrap_or_default();
    put(out, format_args!("      <DescriptorReferredTo>\n       <DescriptorUI>{mark}{id}</DescriptorUI>\n"));
    named(out, "        ", "DescriptorName", world.names(node).mesh());
    put(out, format_args!("      </DescriptorReferredTo>\n"));
}

/// The preferred concept with heading, permuted heading and every other synonym; the rest are a narrower concept.
fn concepts(world: &World, node: Node, year: usize, out: &mut Vec<u8>) {
    let names = world.names(node);
    let heading = names.mesh().to_owned();
    let mut terms = vec![(heading.clone(), 'N')];
    if heading != names.title() {
        terms.push((names.title(), 'Y'));
    }
    let mut narrower = Vec::new();
    for (at, form) in names.spoken().iter().enumerate().skip(1) {
        if at % 2 == 1 { terms.push((titled(form), 'N')) } else { narrower.push((titled(form), 'N')) }
    }
    let mut first_term = node.index() * 16;
    let groups = [terms, narrower];
    for (at, terms) in groups.iter().enumerate().filter(|(_, terms)| !terms.is_empty()) {
        let preferred = if at == 0 { 'Y' } else { 'N' };
        put(out, format_args!("   <Concept PreferredConceptYN=\"{preferred}\">\n"));
        put(out, format_args!("    <ConceptUI>{}</ConceptUI>\n", concept(node, at)));
        named(out, "    ", "ConceptName", &terms[0].0);
        if at == 0 {
            let name = world.place(node).0.label;
            put(
                out,
                format_args!("    <ScopeNote>An invented {name} of the embedded world.\n    </ScopeNote>\n"),
            );
        }
        put(out, format_args!("    <SemanticTypeList>\n"));
        for kind in world.types(node) {
            put(
                out,
                format_args!(
                    "     <SemanticType>\n      <SemanticTypeUI>{}</SemanticTypeUI>\n      \
                     <SemanticTypeName>{}</SemanticTypeName>\n     </SemanticType>\n",
                    kind.tui, kind.name
                ),
            );
        }
        put(out, format_args!("    </SemanticTypeList>\n"));
        if !groups[1].is_empty() {
            put(
                out,
                format_args!(
                    "    <ConceptRelationList>\n     <ConceptRelation RelationName=\"NRW\">\n     <Concept1UI>{}</Concept1UI>\n     \
                     <Concept2UI>{}</Concept2UI>\n     </ConceptRelation>\n    </ConceptRelationList>\n",
                    concept(node, 0),
                    concept(node, 1)
                ),
            );
        }
        term_list(out, terms, first_term, year, preferred);
        first_term += 8;
        put(out, format_args!("   </Concept>\n"));
    }
}

/// The terms of a concept with numbers from `first` on; the permuted ones share the number of the term they permute.
pub(super) fn term_list(
    out: &mut Vec<u8>,
    terms: &[(String, char)],
    first: usize,
    year: usize,
    preferred: char,
) {
    put(out, format_args!("    <TermList>\n"));
    for (at, (text, permuted)) in terms.iter().enumerate() {
        let (of_concept, of_record) = if at == 0 { ('Y', preferred) } else { ('N', 'N') };
        let number = if *permuted == 'Y' { first } else { first + at };
        put(
            out,
            format_args!(
                "     <Term  ConceptPreferredTermYN=\"{of_concept}\"  IsPermutedTermYN=\"{permuted}\"  LexicalTag=\"NON\"  \
                 PrintFlagYN=\"{of_record}\"  RecordPreferredTermYN=\"{of_record}\">\n      <TermUI>T9{number:08}</TermUI>\n      \
                 <String>{}</String>\n",
                partial_escape(text.as_str())
            ),
        );
        if *permuted == 'N' {
            date(out, "      ", "DateCreated", year);
            put(
                out,
                format_args!(
                    "      <ThesaurusIDlist>\n       <ThesaurusID>ENGRAFT ({year})</ThesaurusID>\n      </ThesaurusIDlist>\n"
                ),
            );
        }
        put(out, format_args!("     </Term>\n"));
    }
    put(out, format_args!("    </TermList>\n"));
}

fn concept(node: Node, at: usize) -> String {
    format!("M9{:08}", node.index() + at * 10_000_000)
}

pub(super) fn named(out: &mut Vec<u8>, indent: &str, tag: &str, text: &str) {
    let text = partial_escape(text);
    put(out, format_args!("{indent}<{tag}>\n{indent} <String>{text}</String>\n{indent}</{tag}>\n"));
}

pub(super) fn date(out: &mut Vec<u8>, indent: &str, tag: &str, year: usize) {
    put(
        out,
        format_args!(
            "{indent}<{tag}>\n{indent} <Year>{year}</Year>\n{indent} <Month>01</Month>\n{indent} <Day>01</Day>\n{indent}</{tag}>\n"
        ),
    );
}
