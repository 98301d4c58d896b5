//! The MeSH supplementary records (layout of suppYYYY.xml): variants of drugs, mapped to the drug's descriptor.

use super::Error;
use super::entity::World;
use super::file::{Frame, Sink, put};
use super::kind::{Kind, Node};
use super::mesh::{date, named, pharmacological_action, referred, term_list};

const OPENING: &str = "<?xml version=\"1.0\"?>\n<!DOCTYPE SupplementalRecordSet SYSTEM \"supp2015.dtd\">\n\
                       <SupplementalRecordSet LanguageCode = \"eng\">\n";
/// What is done to a drug to make a variant; none of the world's names ends like that.
const VARIANTS: [&str; 3] = ["hydrochloride", "monohydrate", "N-oxide"];

/// Writes `mesh/supp.xml`: up to three records for every drug.
pub(super) fn write(world: &World, sink: &mut Sink<'_>) -> Result<u64, Error> {
    let drugs = world.nodes().filter(|&node| world.place(node).0.kind == Kind::Drug);
    let variants: Vec<(Node, usize)> = drugs
        .flat_map(|drug| {
            let mut draw = world.latent.rng("supplements").at(drug.index());
            (0..VARIANTS.len()).filter(move |_| draw.percent(40)).map(move |variant| (drug, variant))
        })
        .collect();
    let frame = Frame { opening: OPENING, items: variants.len(), closing: "</SupplementalRecordSet>\n" };
    sink.items("mesh/supp.xml", &frame, |index, out| {
        let (drug, variant) = variants[index];
        record(world, drug, variant, out);
        1
    })
}

fn record(world: &World, drug: Node, variant: usize, out: &mut Vec<u8>) {
    let number = drug.index() * VARIANTS.len() + variant;
    let year = world.latent.rng("supplement dates").at(number).range(1970, 2015);
    let name = format!("{} {}", world.names(drug).common(), VARIANTS[variant]);
    put(out, format_args!("<SupplementalRecord SCRClass = \"1\">\n"));
    put(out, format_args!("  <SupplementalRecordUI>C9{number:08}</SupplementalRecordUI>\n"));
    named(out, "  ", "SupplementalRecordName", &name);
    date(out, "  ", "DateCreated", year);
    put(
        out,
        format_args!(
            "  <Note>structure given in first source; invented\n  </Note>\n  <Frequency>1</Frequency>\n"
        ),
    );
    mapped_to(world, drug, variant, out);
    pharmacological_action(world, drug, out);
    put(
        out,
        format_args!(
            "  <SourceList>\n   <Source>Engraft J {year};1(1):1</Source>\n  </SourceList>\n  <ConceptList>\n   \
             <Concept PreferredConceptYN=\"Y\">\n    <ConceptUI>M8{number:08}</ConceptUI>\n"
        ),
    );
    named(out, "    ", "ConceptName", &name);
    let permuted = format!("{}, {}", VARIANTS[variant], world.names(drug).common());
    let spaced = name.replace('-', " ");
    let mut terms = vec![(name.clone(), 'N'), (permuted, 'Y')];
    if spaced != name {
        terms.push((spaced, 'N'));
    }
    term_list(out, &terms, number * 8 + 50_000_000, year, 'Y');
    put(out, format_args!("   </Concept>\n  </ConceptList>\n </SupplementalRecord>\n"));
}

/// The drug itself, and for every second variant its class as well; the `*` stands before the main heading or its qualifier.
fn mapped_to(world: &World, drug: Node, variant: usize, out: &mut Vec<u8>) {
    let qualified = variant == 2;
    put(out, format_args!("  <HeadingMappedToList>\n   <HeadingMappedTo>\n"));
    referred(world, drug, if qualified { "" } else { "*" }, out);
    if qualified {
        put(out, format_args!("      <QualifierReferredTo>\n       <QualifierUI>*Q000031</QualifierUI>\n"));
        named(out, "        ", "QualifierName", "analogs & derivatives");
        put(out, format_args!("      </QualifierReferredTo>\n"));
    }
    put(out, format_args!("   </HeadingMappedTo>\n"));
    for class in world.parents(drug).into_iter().filter(|_| variant > 0) {
        put(out, format_args!("   <HeadingMappedTo>\n"));
        referred(world, class, "", out);
        put(out, format_args!("   </HeadingMappedTo>\n"));
    }
    put(out, format_args!("  </HeadingMappedToList>\n"));
}
