//! Reads examples and checks that they are as written and a benchmark.

use std::path::Path;

use base::self_check::{self, SelfChecked};
use tasks::Error;

use super::schema::{EXAMPLES, Index};
use super::{Example, Examples, write};
use crate::lines::{self, INDEX};

/// A folder of examples.
#[derive(Debug, Clone, PartialEq)]
pub struct Folder {
    /// What its index says.
    pub index: Index,
    /// The examples.
    pub examples: Examples,
}

/// Reads a folder.
///
/// # Errors
/// When a file is missing, damaged or of another version, or the examples are none that [`mod@super::write`] writes.
pub fn read(folder: &Path) -> Result<Folder, Error> {
    let index: Index = self_check::read(&folder.join(INDEX))?;
    let rows: Vec<Example> = lines::read(folder, Index::KIND, &index.files, EXAMPLES)?;
    let (name, kind, classes) = (index.name.clone(), index.kind, index.classes.clone());
    let (measure, negative_class) = (index.measure, index.negative_class);
    let examples = Examples { name, kind, classes, measure, negative_class, examples: rows };
    let unfit = |why: &dyn std::fmt::Display| Error::at(&folder.join(INDEX), why, "");
    examples.check_classes().map_err(|error| unfit(&error))?;
    if let Some((place, why)) = examples.misfit() {
        return Err(lines::row(&folder.join(EXAMPLES), Index::KIND, place + 1, &why));
    }
    write::ends(&index.funnel, examples.examples.len() as u64).map_err(|why| unfit(&why))?;
    let found = write::counts(&examples);
    if found != index.parts {
        let why = "its examples by part and class are not those of the file; make the examples again";
        return Err(unfit(&why));
    }
    Ok(Folder { index, examples })
}

#[cfg(test)]
mod tests {
    use base::whole::write_whole;

    use super::super::schema::Licence;
    use super::super::tests::small;
    use super::super::{Answer, Kind, Measure, Part};
    use super::*;
    use crate::funnel::Step;

    fn funnel() -> Vec<Step> {
        vec![
            Step::counted("notes", &[("no text", 4)], 5),
            Step::counted("examples", &[("no code", 2), ("elsewhere", 0)], 3),
        ]
    }

    #[test]
    fn what_is_written_is_read_and_its_bytes_are_a_function_of_it() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let mut examples = small();
        examples.examples[1].pair = Some("a second\ttext".to_owned());
        let index = write::write(one.path(), &examples, Licence::Restricted, &funnel()).unwrap();
        assert_eq!(read(one.path()).unwrap(), Folder { index: index.clone(), examples: examples.clone() });
        let train = index.parts.iter().find(|counts| counts.part == Part::Train).unwrap();
        assert_eq!((train.examples, train.classes.as_slice()), (2, &[1, 0, 2][..]));
        write::write(two.path(), &examples, Licence::Restricted, &funnel()).unwrap();
        for name in [EXAMPLES, INDEX] {
            let bytes = |folder: &Path| std::fs::read(folder.join(name)).unwrap();
            assert_eq!(bytes(one.path()), bytes(two.path()));
        }
        let line = std::fs::read_to_string(one.path().join(EXAMPLES)).unwrap();
        let first =
            "{\"id\":\"1\",\"part\":\"train\",\"text\":\"text of 1\\né\",\"answer\":{\"classes\":[0,2]}}";
        assert_eq!(line.lines().next(), Some(first));
    }

    #[test]
    fn scores_come_back_to_the_bit() {
        let folder = tempfile::tempdir().unwrap();
        let mut examples = small();
        (examples.kind, examples.classes, examples.measure) = (Kind::Score, Vec::new(), Measure::Pearson);
        for (example, score) in examples.examples.iter_mut().zip([0.1 + 0.2, -1e-300, 4.0]) {
            example.answer = Answer::Score(score);
        }
        write::write(folder.path(), &examples, Licence::Free, &funnel()).unwrap();
        assert_eq!(read(folder.path()).unwrap().examples, examples);
    }

    #[test]
    fn what_is_no_benchmark_is_not_written() {
        let folder = tempfile::tempdir().unwrap();
        let refused = |examples: &Examples, funnel: &[Step]| {
            write::write(folder.path(), examples, Licence::Free, funnel).unwrap_err().to_string()
        };
        let mut examples = small();
        examples.examples[1].id = "1".to_owned();
        assert!(refused(&examples, &funnel()).contains("example \"1\" is there twice"));
        let message = refused(&small(), &funnel()[..1]);
        assert!(message.contains("the funnel ends with 5 examples, expected 3"), "{message}");
        assert!(refused(&small(), &[]).contains("ends with 0 examples"));
        let mut wrong = funnel();
        wrong[0].read += 1;
        assert!(refused(&small(), &wrong).contains("step of notes reads 10"));
        assert!(read(folder.path()).unwrap_err().to_string().contains("without its index is not finished"));
    }

    /// What reading says once `change` has been made to the file of examples and the index speaks of it as it then is.
    fn resealed(change: &dyn Fn(String) -> String, of_index: &dyn Fn(&mut Index)) -> String {
        let folder = tempfile::tempdir().unwrap();
        let mut index = write::write(folder.path(), &small(), Licence::Free, &funnel()).unwrap();
        let path = folder.path().join(EXAMPLES);
        let text = change(std::fs::read_to_string(&path).unwrap());
        write_whole(&path, text.as_bytes()).unwrap();
        index.files[0].blake3 = blake3::hash(text.as_bytes()).to_hex().to_string();
        of_index(&mut index);
        self_check::write(&folder.path().join(INDEX), &mut index).unwrap();
        read(folder.path()).unwrap_err().to_string()
    }

    #[test]
    fn what_is_missing_damaged_or_of_another_version_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        write::write(folder.path(), &small(), Licence::Free, &funnel()).unwrap();
        let refused = |name: &str, from: &str, to: &str| {
            let path = folder.path().join(name);
            let before = std::fs::read_to_string(&path).unwrap();
            assert!(before.contains(from), "{before}");
            write_whole(&path, before.replacen(from, to, 1).as_bytes()).unwrap();
            let message = read(folder.path()).unwrap_err().to_string();
            write_whole(&path, before.as_bytes()).unwrap();
            message
        };
        assert!(
            refused(EXAMPLES, "text of 1", "text of 7")
                .contains("as the index says; make the examples again")
        );
        assert!(
            refused(INDEX, "\"version\": 2", "\"version\": 3").contains("version 3, but this engraft reads")
        );
        assert!(
            refused(INDEX, "\"free\"", "\"restricted\"").contains("damaged: its contents give the check")
        );
        std::fs::remove_file(folder.path().join(EXAMPLES)).unwrap();
        assert!(
            read(folder.path()).unwrap_err().to_string().contains("without all its files is not finished")
        );
    }

    #[test]
    fn rows_that_others_wrote_are_checked_like_ours() {
        let rows =
            |from: &'static str, to: &'static str| resealed(&move |text| text.replacen(from, to, 1), &|_| {});
        let message = rows("\"id\":\"3\"", "\"id\":\"1\"");
        assert!(message.contains("examples.jsonl: line 3: example \"1\" is there twice"), "{message}");
        assert!(rows("[0,2]", "[2,0]").contains("line 1: example \"1\" has classes that are not rising"));
        assert!(rows("[0,2]", "[0,3]").contains("line 1: example \"1\" has classes"));
        assert!(
            rows("{\"classes\":[0,2]}", "{\"class\":0}").contains("another answer than a list of classes")
        );
        assert!(rows("{\"classes\":[0,2]}", "{\"score\":null}").contains("line 1, column"));
        assert!(rows("\"text\":", "\"txt\":").contains("unknown field `txt`"));
        assert!(rows("\"train\"", "\"dev\"").contains("by part and class are not those of the file"));
        let index = |change: &'static (dyn Fn(&mut Index) + Sync)| resealed(&|text| text, change);
        assert!(index(&|index| index.parts[0].classes[1] = 9).contains("by part and class"));
        assert!(index(&|index| index.funnel[1].kept = 2).contains("step of examples reads 5"));
        assert!(
            index(&|index| index.classes[1] = String::new())
                .contains("expected every name once and none empty")
        );
        assert!(index(&|index| index.files[0].path = "other.jsonl".into()).contains("expected no such file"));
    }
}
