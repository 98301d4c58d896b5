//! Papers are cited as what they are.

use std::fs;
use std::path::Path;

/// Where the label-embedding paper is named.
const PLACES: [&str; 5] = [
    "README.md",
    "docs/config.md",
    "configs/label-embedding.toml",
    "configs/world-label-embedding.toml",
    "model/src/attention/label.rs",
];

#[test]
fn silent_09_the_label_embedding_paper_is_cited_as_itself() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    for place in PLACES {
        let text = fs::read_to_string(root.join(place)).unwrap();
        assert!(text.contains("Wang et al. 2020") || text.contains("Carin and Henao 2020"), "{place}");
        assert!(!text.contains("Xiong"), "{place} cites another paper");
    }
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    let title = [
        "Integrating Task Specific Information into Pretrained Language",
        "Models for Low Resource Fine Tuning",
    ];
    assert!(title.iter().all(|part| readme.contains(part)));
    for false_ in ["will carry", "checked at the first step", "stream of samples goes on"] {
        assert!(!readme.contains(false_), "the README says {false_:?}");
    }
}
