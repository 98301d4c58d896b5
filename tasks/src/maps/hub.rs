//! What README.md and croissant.json say of a folder of maps: what the index says.

use std::path::Path;

use serde_json::json;

use super::generators::Counts;
use super::index::{FILE, Index};
use super::schema::{FORMAT, VERSION, columns};
use crate::Error;
use crate::hub::croissant::{self, Whole};
use crate::hub::readme::{self, block, put};
use crate::hub::{self, CROISSANT, Named, README, Set};
use crate::shard::index::digest_of;

/// The name of the rows, and of the folder.
const NAME: &str = "maps";
const TITLE: &str = "engraft maps";

/// Whose licences hold.
const LICENCE: &str = "Rows hold texts themselves, nearly whole, and what words and entities have to do with each other in a corpus and a \
     graph. The index names no licence of theirs: those of whoever gave them hold.";

/// Describes the maps of `index`, which lie in `folder`. Call it after every file is in place and before the index is written.
///
/// # Errors
/// When the disk refuses.
pub fn write(folder: &Path, index: &Index) -> Result<(), Error> {
    let sets = [set(index)?];
    hub::write(folder, &text(index, &sets), &croissant::text(&whole(index), &sets))
}

fn set(index: &Index) -> Result<Set<'_>, Error> {
    let about = "Texts by tokens and by words, with their semantic maps as spans and sparse pairs";
    let named = Named { name: NAME, called: NAME.to_owned(), below: String::new(), about };
    let none = Counts::default();
    Set::new(named, &columns(), &index.parts, |part, column| {
        let counts = index.texts.get(&part.part).unwrap_or(&none);
        match column {
            "entities" | "phrases" | "types" => counts.words.kept + counts.auxiliary.kept,
            "term_first" | "term_second" | "relevance" => counts.term_pairs,
            "graph_first" | "graph_second" => counts.graph_pairs,
            _ => part.tokens,
        }
    })
}

fn text(index: &Index, sets: &[Set<'_>]) -> String {
    let mut text = readme::front(TITLE, sets);
    put(
        &mut text,
        format_args!(
            "\n# {TITLE}\n\nTexts as encoded samples with semantic attention maps. `{FILE}` (`{FORMAT}`, version {VERSION}) lists every file \
             with its checksums, `{CROISSANT}` describes them as Croissant.\n\n\
             ```python\nload_dataset(FOLDER, split=\"train\", streaming=True)\n```\n\n{}\n\n## Licence\n\n{LICENCE}\n",
            readme::vocabulary(&index.tokenizer)
        ),
    );
    for set in sets {
        text.push_str(&readme::set_text(set));
    }
    let (options, texts) = (block(&json!(index.options)), block(&json!(index.texts)));
    put(
        &mut text,
        format_args!(
            "\n## How it was made\n\nOptions:\n\n{options}\nWhat became of the texts, by part:\n\n{texts}"
        ),
    );
    text
}

/// What Croissant says of it as a whole.
fn whole(index: &Index) -> Whole {
    let rows: u64 = index.parts.iter().map(|part| part.rows).sum();
    let digest = digest_of(index.files()).finalize().to_hex();
    Whole {
        name: TITLE,
        description: format!(
            "Texts as {rows} encoded samples with semantic attention maps. Token ids belong to the vocabulary with the BLAKE3 digest {}. \
             {README} says more.",
            index.tokenizer.blake3
        ),
        // The columns decide how it is read, the contents whether it is the same.
        version: format!("{VERSION}.0.0+{}", digest.get(..16).unwrap_or_default()),
        license: json!("The index names no source."),
        usage: json!({ "@type": "sc:CreativeWork", "name": "licences", "text": LICENCE }),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use batch::family::Family;
    use kg::split::Part;

    use super::super::generators::{Limits, Outcome};
    use super::super::index::Options;
    use super::*;
    use crate::shard::index::{FileIndex, PartIndex, Tokenizer};
    use crate::token::encode::Special;

    fn index() -> Index {
        let file = |path: &str| FileIndex {
            path: path.to_owned(),
            bytes: 700,
            blake3: "b3".to_owned(),
            sha256: "52".repeat(32),
            footer: "0".repeat(16),
            groups: Vec::new(),
        };
        let part = |part: Part, path: &str| {
            let lengths = BTreeMap::from([(10, 6)]);
            let files = vec![file(path)];
            let part = PartIndex { part, items: 8, rows: 6, tokens: 60, lengths, files };
            let kept = |kept| Outcome { kept, cut: 99 };
            let counts = Counts {
                samples: 6,
                words: kept(20),
                auxiliary: kept(5),
                term_pairs: 7,
                graph_pairs: 3,
                ..Counts::default()
            };
            (part, counts)
        };
        let special = Special { padding: 0, unknown: 1, cls: 2, sep: 3, blank: 4, family: Family::Bert };
        let tokenizer = Tokenizer { blake3: "abc".to_owned(), size: 100, special };
        let limits = Limits { tokens: 64, terms: 2, auxiliary: 8 };
        let options = Options { limits, relevance: Some("def".to_owned()), graph: None };
        let parts = vec![
            part(Part::Train, "train-00000-of-00001.parquet"),
            part(Part::Valid, "valid-00000-of-00001.parquet"),
        ];
        Index::new(options, tokenizer, parts)
    }

    #[test]
    fn both_files_say_for_others_what_the_index_says() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), &index()).unwrap();
        let read = |name| std::fs::read_to_string(folder.path().join(name)).unwrap();
        let readme = read(README);
        // Five numbers a row; eleven lists with 4 bytes a row (and one more): three of tokens, three of words, three and two of pairs.
        let lists = 60 * (4 + 1 + 2) + 25 * (2 + 2 + 2) + 7 * (2 + 2 + 4) + 3 * (2 + 2);
        let bytes = 6 * (4 + 4 + 2 + 2 + 4) + 11 * 7 * 4 + lists;
        for says in [
            "pretty_name: engraft maps\n",
            "- config_name: maps\n  data_files:\n  - split: train\n    path: train-*.parquet\n  - split: validation\n",
            "  - name: real\n    dtype: uint16\n",
            "  - name: relevance\n    list: float32\n",
            &format!(
                "  - name: validation\n    num_bytes: {bytes}\n    num_examples: 6\n  download_size: 1400\n"
            ),
            "| validation | valid | 8 | 6 | 60 | 10 | 1 | 700 |",
            "| `graph_second` | list of uint16 | the larger number |",
            "digest `abc`: 100 entries",
            "\"relevance\": \"def\"",
        ] {
            assert!(readme.contains(says), "{says:?} is not in\n{readme}");
        }
        let croissant: serde_json::Value = serde_json::from_str(&read(CROISSANT)).unwrap();
        let files = croissant["distribution"].as_array().unwrap();
        assert_eq!(files.len(), 3, "two files and their set");
        assert_eq!(files[1]["contentUrl"], "valid-00000-of-00001.parquet");
        assert_eq!(files[2]["includes"], json!(["train-*.parquet", "valid-*.parquet"]));
        let fields = croissant["recordSet"][1]["field"].as_array().unwrap();
        assert_eq!(fields[0]["source"]["transform"]["regex"], "^(train|valid)(?:-.*)?$");
        assert_eq!(fields.len(), 1 + columns().fields().len());
    }
}
