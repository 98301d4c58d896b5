//! An object a line.

use std::path::Path;

use base::line::Lines;
use base::object::DistinctObject;
use serde_json::Value as Json;
use tasks::Error;

use super::fields::{Fields, Value};
use super::{Item, PublishedSet, Row, open};
use crate::example::{Kind, Measure};
use crate::funnel::Step;

/// Hands each object of a file to `each`, with its line.
pub(super) fn objects(
    file: &Path,
    mut each: impl FnMut(Row<'_>, serde_json::Map<String, Json>) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut lines = Lines::new(open(file)?, file);
    let mut number = 0;
    while let Some(line) = lines.next_line()? {
        number += 1;
        let text = text::unmarked(line.text);
        if text.trim().is_empty() {
            continue;
        }
        let row = Row { file, line: number };
        let object: DistinctObject = serde_json::from_str(text)
            .map_err(|error| row.wrong(error.to_string(), "a JSON object on every line"))?;
        each(row, object.0)?;
    }
    Ok(())
}

impl PublishedSet for Fields {
    fn extensions(&self) -> &'static [&'static str] {
        &[".jsonl", ".jsonl.gz"]
    }

    fn check(&self) -> Result<(), Error> {
        self.check()
    }

    fn kind(&self) -> Kind {
        self.kind()
    }

    fn measure(&self) -> Measure {
        self.measure()
    }

    fn read(&self, file: &Path, take: &mut dyn FnMut(Item)) -> Result<Vec<Step>, Error> {
        let mut step = Step::new("rows");
        objects(file, |row, object| {
            match self.item(row, |name| object.get(name).and_then(value))? {
                Ok(item) => {
                    step.keep(1);
                    take(item);
                }
                Err(reason) => step.drop(reason, 1),
            }
            Ok(())
        })?;
        Ok(vec![step])
    }
}

fn value(json: &Json) -> Option<Value> {
    let text = |json: &Json| match json {
        Json::String(text) => Some(text.clone()),
        Json::Number(number) => Some(number.to_string()),
        Json::Bool(holds) => Some(holds.to_string()),
        Json::Null | Json::Array(_) | Json::Object(_) => None,
    };
    match json {
        Json::Array(list) => list.iter().map(text).collect::<Option<Vec<_>>>().map(Value::Texts),
        Json::Object(named) => {
            let named = named.iter().map(|(name, of)| Some((name.clone(), text(of)?)));
            named.collect::<Option<Vec<_>>>().map(Value::Named)
        }
        other => text(other).map(Value::Text),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Label;
    use super::super::fields::Asked;
    use super::super::tests::items;
    use super::*;

    #[test]
    fn classes_may_be_a_list_and_scores_numbers() {
        let asked = |answer| Fields::new("t", None, answer);
        let classes = asked(Asked::Classes { field: "c".to_owned(), between: ";".to_owned() });
        let (rows, _) =
            items(&classes, "{\"t\": \"A\", \"c\": [\"x\", \"y\"]}\n{\"t\": \"B\", \"c\": \"y;x\"}").unwrap();
        assert_eq!(rows[0].label, Label::Classes(vec!["x".to_owned(), "y".to_owned()]));
        assert_eq!(rows[1].label, Label::Classes(vec!["y".to_owned(), "x".to_owned()]));
        let score = asked(Asked::Score(vec!["s".to_owned()]));
        let (rows, _) = items(&score, "{\"t\": \"A\", \"s\": 2.5}").unwrap();
        assert_eq!(rows[0].label, Label::Score(2.5));
        let twice = items(&score, "{\"t\": \"A\", \"s\": 1, \"s\": 2}").unwrap_err().to_string();
        assert!(twice.contains("line 1: found the key \"s\" stands there twice"), "{twice}");
    }
}
