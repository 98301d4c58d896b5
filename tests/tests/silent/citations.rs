//! Papers are cited as what they are.

use std::fs;
use std::path::Path;

/// A paper whose method is here.
struct Paper {
    /// Its page in `docs/papers`.
    page: &'static str,
    /// The last names of those who wrote it; none where the paper itself does not say them.
    authors: &'static str,
    year: &'static str,
    title: &'static str,
}

const PAPERS: [Paper; 5] = [
    Paper {
        page: "kimera.md",
        authors: "",
        year: "",
        title: "KIMERA: Injecting Domain Knowledge into Vacant Transformer Heads",
    },
    Paper {
        page: "label-embedding.md",
        authors: "Wang, Si, Wang, Zhang, Carin and Henao",
        year: "2020",
        title: "Integrating Task Specific Information into Pretrained Language Models for Low Resource Fine Tuning",
    },
    Paper {
        page: "kam-bert.md",
        authors: "",
        year: "",
        title: "Enhancing Self-Attention with Knowledge-Assisted Attention Maps",
    },
    Paper {
        page: "mt-bert.md",
        authors: "Peng, Chen and Lu",
        year: "2020",
        title: "An Empirical Study of Multi-Task Learning on BERT for Biomedical Text Mining",
    },
    Paper {
        page: "mt-clinical-bert.md",
        authors: "Mulyar, Uzuner and McInnes",
        year: "2021",
        title: "MT-Clinical BERT: Scaling Clinical Information Extraction with Multitask Learning",
    },
];

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

#[test]
fn every_paper_is_cited_with_its_authors_and_title() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    // Lines may break within a title.
    let read =
        |path: &Path| fs::read_to_string(path).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
    let mut places = vec![("README.md".to_owned(), read(&root.join("README.md")))];
    for page in fs::read_dir(root.join("docs/papers")).unwrap() {
        let page = page.unwrap();
        places.push((page.file_name().into_string().unwrap(), read(&page.path())));
    }
    assert_eq!(places.len(), 1 + PAPERS.len(), "a page for each paper");
    for Paper { page, authors, year, title } in PAPERS {
        for (place, text) in &places {
            let quoted = format!("\"{title}\"");
            // The authors come before the title, and the year before or behind it.
            let whole = [format!("{authors} {year}, {quoted}"), format!("{authors}, {quoted} ({year})")];
            let cited = match authors {
                "" => text.matches(&quoted).count(),
                _ => whole.iter().map(|whole| text.matches(whole).count()).sum(),
            };
            assert_eq!(cited, text.matches(title).count(), "{place}: {title} without its authors or year");
            assert!(cited > 0 || (place != "README.md" && place != page), "{place} does not cite {title}");
        }
    }
    // Its authors are not known yet.
    for place in ["README.md", "docs/papers/kimera.md"] {
        let text = read(&root.join(place));
        let behind = text.split_once(PAPERS[0].title).map(|(_, behind)| behind).unwrap();
        assert!(
            behind.starts_with("\", under review") || behind.starts_with("\" (anonymous, under review"),
            "{place}"
        );
    }
}
