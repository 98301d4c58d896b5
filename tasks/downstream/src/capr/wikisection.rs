//! Articles of WikiSection (Arnold et al. 2019) as a collection: a section is a passage, `title ; heading` asks for it.
//!
//! Sections have their places in characters and tile the text. Nested headings are joined (`Diagnosis | Pathology`) and stay so; sections
//! with the same heading answer one query. Queries are in lower case and ask for `abstract` as `information`, as in CDV's training data.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use base::read::ReadError;
use serde::Deserialize;
use tasks::Error;

use super::{Collection, PassageId, Query, too_many};

#[derive(Debug, Deserialize)]
struct Article {
    id: String,
    title: String,
    text: String,
    annotations: Vec<Section>,
}

#[derive(Debug, Deserialize)]
struct Section {
    begin: usize,
    length: usize,
    #[serde(rename = "sectionHeading")]
    heading: String,
}

/// The articles of some files as one collection; one without a section has nothing to be found and is left out. A file is in memory at a
/// time.
///
/// # Errors
/// When a file cannot be read or is not in its layout, or an article is there twice.
pub fn read(name: &str, files: &[PathBuf]) -> Result<Collection, Error> {
    let mut collection = Collection::new(name);
    for path in files {
        let bytes = std::fs::read(path).map_err(|error| {
            let expected = "a file of WikiSection, such as wikisection_en_disease_train.json";
            ReadError::new(path, error.to_string(), expected, "")
        })?;
        for article in articles(&bytes, path)? {
            add(&mut collection, &article, path)?;
        }
    }
    collection.names()?;
    Ok(collection)
}

fn articles(bytes: &[u8], path: &Path) -> Result<Vec<Article>, Error> {
    let parse = |error| Error::json(path, &error, "a list of articles of WikiSection, or one article");
    match bytes.trim_ascii_start().first() {
        Some(b'{') => Ok(vec![serde_json::from_slice(bytes).map_err(parse)?]),
        _ => serde_json::from_slice(bytes).map_err(parse),
    }
}

fn add(collection: &mut Collection, article: &Article, path: &Path) -> Result<(), Error> {
    if article.annotations.is_empty() {
        return Ok(());
    }
    let mut rest = article.text.as_str();
    let (mut begin, mut passages) = (0, Vec::with_capacity(article.annotations.len()));
    // Headings in the order in which they come, and the numbers of their sections.
    let mut asked: Vec<(String, Vec<PassageId>)> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    let first = collection.passages.len();
    for (at, section) in article.annotations.iter().enumerate() {
        let wrong = |why: String| untiled(path, article, section, &why);
        if section.begin != begin {
            return Err(wrong(format!("begins at {}, the one in front ends at {begin}", section.begin)));
        }
        let end = rest.char_indices().nth(section.length).map_or(rest.len(), |(end, _)| end);
        let (text, behind) = rest.split_at(end);
        if text.chars().count() != section.length {
            return Err(wrong("ends beyond the text".to_owned()));
        }
        (rest, begin) = (behind, begin + section.length);
        passages.push((format!("{}#{at}", article.id), text.to_owned()));
        let number = PassageId(u32::try_from(first + at).map_err(|_| too_many())?);
        let heading = spoken(&section.heading);
        let place = *places.entry(heading.clone()).or_insert(asked.len());
        match asked.get_mut(place) {
            Some((_, sections)) => sections.push(number),
            None => asked.push((heading, vec![number])),
        }
    }
    if let (Some(last), false) = (article.annotations.last(), rest.is_empty()) {
        let why = format!("is the last and ends at {begin}, before the text does");
        return Err(untiled(path, article, last, &why));
    }
    collection.document(&article.id, &article.title, passages)?;
    let entity = article.title.to_lowercase();
    collection.queries.extend(asked.into_iter().map(|(heading, relevant)| Query {
        entity: entity.clone(),
        aspect: heading.clone(),
        heading,
        relevant,
    }));
    Ok(())
}

/// The sections of an article are not its text.
fn untiled(path: &Path, article: &Article, section: &Section, why: &str) -> Error {
    let place = format!("{}: article {:?}", path.display(), article.id);
    let found = format!("section {:?} {why}", section.heading);
    ReadError::new(place, found, "sections that tile the text, in characters", "fetch the file again").into()
}

/// A heading as a query says it.
fn spoken(heading: &str) -> String {
    let heading = heading.trim().to_lowercase();
    if heading == "abstract" { "information".to_owned() } else { heading }
}

#[cfg(test)]
mod tests {
    use base::whole::write_whole;

    use super::super::Wording;
    use super::*;

    const ARTICLE: &str = r#"{"id":"https://example.org/Fever","type":"disease","title":"Ménière","abstract":"x","text":"é hot.\nBad.\nTwo.","annotations":[
        {"class":"SectionAnnotation","begin":0,"length":7,"sectionHeading":"Abstract","sectionLabel":"disease.abstract"},
        {"class":"SectionAnnotation","begin":7,"length":5,"sectionHeading":"Causes | Genes","sectionLabel":"disease.cause"},
        {"class":"SectionAnnotation","begin":12,"length":4,"sectionHeading":"abstract","sectionLabel":"disease.abstract"}]}"#;

    fn collected(contents: &str) -> Result<Collection, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        write_whole(&path, contents.as_bytes()).unwrap();
        read("wiki", &[path]).map_err(|e| e.to_string())
    }

    #[test]
    fn sections_are_passages_and_headings_ask_for_them() {
        let found = collected(ARTICLE).unwrap();
        let texts: Vec<_> = found.passages.iter().map(|passage| passage.text.as_str()).collect();
        assert_eq!(texts, ["é hot.\n", "Bad.\n", "Two."]);
        let queries: Vec<_> = found.queries.iter().map(|query| query.text(Wording::Aspect)).collect();
        assert_eq!(queries, ["ménière ; information", "ménière ; causes | genes"]);
        assert_eq!(found.queries[0].relevant, [PassageId(0), PassageId(2)]);
        assert_eq!(found.documents[0].title, "Ménière");
        let list = format!("[{ARTICLE},{}]", ARTICLE.replace("Fever", "Pain"));
        assert_eq!(collected(&list).unwrap().queries[2].relevant, [PassageId(3), PassageId(5)]);
    }

    #[test]
    fn sections_that_do_not_tile_and_articles_that_are_there_twice_are_refused() {
        let refused = |from: &str, to: &str| {
            assert!(ARTICLE.contains(from), "{from}");
            collected(&ARTICLE.replacen(from, to, 1)).unwrap_err()
        };
        let message = refused("\"begin\":7", "\"begin\":8");
        assert!(
            message.contains("section \"Causes | Genes\" begins at 8, the one in front ends at 7"),
            "{message}"
        );
        assert!(refused("\"length\":4", "\"length\":5").contains("ends beyond the text"));
        assert!(refused("\"length\":4", "\"length\":3").contains("ends at 15, before the text does"));
        let message = collected(&format!("[{ARTICLE},{ARTICLE}]")).unwrap_err();
        assert!(message.starts_with("document \"https://example.org/Fever\" is there twice"), "{message}");
        let message = collected("{\"id\":\"1\"}").unwrap_err();
        assert!(message.contains("a.json: line 1, column 10: missing field `title`"), "{message}");
    }
}
