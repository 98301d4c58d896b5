//! An object a line, and the published sets that are laid out so.

use base::line::Lines;
use serde_json::Value as Json;

use super::fields::{Asked, Fields, Row, Value};
use super::{Error, Item, Source};
use crate::downstream::funnel::Step;

/// MedNLI: `sentence1`, `sentence2`, `gold_label`, called by `pairID`.
pub(super) fn mednli() -> Fields {
    let [text, pair, label, id] = ["sentence1", "sentence2", "gold_label", "pairID"].map(str::to_owned);
    let names = ["entailment", "neutral", "contradiction"].map(|name| (name.to_owned(), name.to_owned()));
    Fields {
        text,
        pair: Some(pair),
        answer: Asked::Class(label),
        id: Some(id),
        group: None,
        names: names.into(),
    }
}

/// Hands each object of a file to `each`, with its line.
pub(super) fn objects(
    (reader, file): Source<'_>,
    mut each: impl FnMut(Row<'_>, serde_json::Map<String, Json>) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut lines = Lines::new(reader, file);
    let mut number = 0;
    while let Some(line) = lines.next_line()? {
        number += 1;
        let text = text::unmarked(line.text);
        if text.trim().is_empty() {
            continue;
        }
        let row = Row { file, line: number };
        let object = serde_json::from_str(text)
            .map_err(|error| row.wrong(error.to_string(), "a JSON object on every line"))?;
        each(row, object)?;
    }
    Ok(())
}

/// Hands each row of a file to `take`.
pub(super) fn read(source: Source<'_>, fields: &Fields, take: &mut dyn FnMut(Item)) -> Result<Step, Error> {
    let mut step = Step::new("rows");
    objects(source, |row, object| {
        match fields.item(row, |name| object.get(name).and_then(value))? {
            Ok(item) => {
                step.keep(1);
                take(item);
            }
            Err(reason) => step.drop(reason, 1),
        }
        Ok(())
    })?;
    Ok(step)
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
        other => text(other).map(Value::Text),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Label;
    use super::super::tests::items;
    use super::*;

    #[test]
    fn objects_are_rows() {
        let file = "{\"pairID\": \"x1\", \"sentence1\": \"A.\", \"sentence2\": \"B.\", \"gold_label\": \"neutral\", \"more\": [1]}\n";
        let (rows, _) = items(|source, take| read(source, &mednli(), take), file).unwrap();
        assert_eq!((rows[0].id.as_str(), rows[0].pair.as_deref()), ("some/x1", Some("B.")));
        assert_eq!(rows[0].label, Label::Class("neutral".to_owned()));
        let told = |file: &str| items(|source, take| read(source, &mednli(), take), file).unwrap_err();
        assert!(told("\n{\"pairID\": 1\n").contains("line 2: found EOF while parsing"));
        assert!(told("{\"sentence1\": [\"A\"]}").contains("a list as \"sentence1\""));
        assert!(told("{\"sentence1\": null}").contains("no \"sentence1\", expected it in every row"));
        let other = "{\"sentence1\": \"A\", \"sentence2\": \"B\", \"gold_label\": \"-\", \"pairID\": \"1\"}";
        assert!(told(other).contains("found \"-\" as \"gold_label\", expected \"contradiction\" or"));
    }

    #[test]
    fn classes_may_be_a_list_and_scores_numbers() {
        let classes = Asked::Classes { field: "c".to_owned(), between: ";".to_owned() };
        let mut fields = Fields { answer: classes, text: "t".to_owned(), pair: None, id: None, ..mednli() };
        fields.names.clear();
        let read_as = |fields: &Fields, file| items(|source, take| read(source, fields, take), file);
        let (rows, _) =
            read_as(&fields, "{\"t\": \"A\", \"c\": [\"x\", \"y\"]}\n{\"t\": \"B\", \"c\": \"y;x\"}")
                .unwrap();
        assert_eq!(rows[0].label, Label::Classes(vec!["x".to_owned(), "y".to_owned()]));
        assert_eq!(rows[1].label, Label::Classes(vec!["y".to_owned(), "x".to_owned()]));
        fields.answer = Asked::Score(vec!["s".to_owned()]);
        let (rows, _) = read_as(&fields, "{\"t\": \"A\", \"s\": 2.5}").unwrap();
        assert_eq!(rows[0].label, Label::Score(2.5));
    }
}
