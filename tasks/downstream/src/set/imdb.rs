//! Reviews of films (IMDB, Maas et al. 2011): a text a file, in a folder that is called as its class.
//!
//! `aclImdb/train/pos/0_9.txt` is review 0 of `train/pos`, with 9 of 10 stars, which nothing asks for. `train/unsup` has reviews without a class, and beside
//! the folders lie lists of addresses, `urls_pos.txt`.

use std::path::Path;

use tasks::Error;

use super::{Item, Label, NO_TEXT, PublishedSet, Row, content, stem};
use crate::example::Measure;
use crate::funnel::Step;

/// The set.
pub(super) struct Imdb;

const CLASSES: [&str; 2] = ["neg", "pos"];
/// The folder of reviews without a class.
const UNLABELLED: &str = "unsup";
const NO_CLASS: &str = "no class (unsup)";

impl PublishedSet for Imdb {
    fn extensions(&self) -> &'static [&'static str] {
        &[".txt", ".txt.gz"]
    }

    fn has_items(&self, file: &Path) -> bool {
        !stem(file).starts_with("urls_")
    }

    fn measure(&self) -> Measure {
        Measure::Accuracy
    }

    fn read(&self, file: &Path, take: &mut dyn FnMut(Item)) -> Result<Vec<Step>, Error> {
        let mut step = Step::new("reviews");
        let folder = file.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
        if folder == UNLABELLED {
            step.drop(NO_CLASS, 1);
            return Ok(vec![step]);
        }
        let Some(class) = CLASSES.into_iter().find(|class| *class == folder) else {
            let expected = format!("a file in a folder {}, or {UNLABELLED}", CLASSES.join(" or "));
            return Err(Row { file, line: 1 }.wrong(format!("a review in the folder {folder:?}"), expected));
        };
        let text = content(file)?;
        if text.trim().is_empty() {
            step.drop(NO_TEXT, 1);
            return Ok(vec![step]);
        }
        step.keep(1);
        let (id, label) = (format!("{class}/{}", stem(file)), Label::Class(class.to_owned()));
        take(Item { group: id.clone(), id, text: text.trim().to_owned(), pair: None, label });
        Ok(vec![step])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, content: &[u8]) -> Result<(Vec<Item>, Step), String> {
        let folder = tempfile::tempdir().unwrap();
        let (file, mut items) = (folder.path().join("train").join(name), vec![]);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        base::whole::write_whole(&file, content).unwrap();
        let steps = Imdb.read(&file, &mut |item| items.push(item));
        let step = steps.map_err(|error| error.to_string())?.remove(0);
        assert!(step.adds_up() && step.kept == items.len() as u64, "{step:?}");
        Ok((items, step))
    }

    #[test]
    fn a_review_has_the_class_of_its_folder_and_its_stars_say_nothing() {
        for (name, id, class) in [("pos/0_9.txt", "pos/0_9", "pos"), ("neg/12_1.txt", "neg/12_1", "neg")] {
            let (items, _) = read(name, b" Caf\xc3\xa9.<br />It was. \n").unwrap();
            let label = Label::Class(class.to_owned());
            let [item] = items.as_slice() else { panic!("{items:?}") };
            assert_eq!((item.id.as_str(), item.group.as_str(), &item.label), (id, id, &label));
            assert_eq!(item.text, "Café.<br />It was.");
        }
    }

    #[test]
    fn reviews_without_a_class_or_a_text_are_skipped_and_counted() {
        assert_eq!(read("unsup/3_0.txt", b"A film.").unwrap().1.dropped[NO_CLASS], 1);
        assert_eq!(read("pos/3_8.txt", b" \n").unwrap().1.dropped[NO_TEXT], 1);
        assert!(Imdb.has_items(Path::new("train/pos/0_9.txt")));
        assert!(!Imdb.has_items(Path::new("train/urls_pos.txt")));
    }

    #[test]
    fn what_is_no_review_is_refused() {
        let other = read("some/0_9.txt", b"A film.").unwrap_err();
        assert!(
            other.contains("some/0_9.txt: line 1: found a review in the folder \"some\", expected"),
            "{other}"
        );
        let latin = read("pos/0_9.txt", b"One.\ncaf\xe9").unwrap_err();
        assert!(latin.contains("pos/0_9.txt: line 2: found bytes that are no UTF-8"), "{latin}");
    }
}
