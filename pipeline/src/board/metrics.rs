//! Lines of metrics as scalars: every number of a line under the path of its keys.

use std::collections::VecDeque;
use std::io::BufRead;

use base::read::ReadError;
use serde_json::{Map, Value};

use super::Scalar;

/// The numbers of JSON lines such as `metrics.jsonl`: `{"step": 3, "tasks": {"relation": {"loss": 0.5}}}` is the scalar
/// `tasks/relation/loss` of step 3, below `under` if that is not empty. Texts, truths, nulls and lists have no place on a board.
/// `seconds` says when a step was; one that is the same for all steps makes a file that depends on nothing but the numbers.
pub(crate) fn metrics(
    lines: impl BufRead,
    under: &str,
    seconds: impl Fn(u64) -> f64,
) -> impl Iterator<Item = anyhow::Result<Scalar>> {
    let mut metrics = Metrics {
        lines,
        under: under.to_owned(),
        seconds,
        line: 0,
        text: String::new(),
        waiting: VecDeque::new(),
    };
    let mut over = false;
    std::iter::from_fn(move || {
        // What comes after a damaged line is as doubtful.
        let found = if over { None } else { metrics.next().transpose() };
        over = !matches!(found, Some(Ok(_)));
        found
    })
}

struct Metrics<L, S> {
    lines: L,
    under: String,
    seconds: S,
    line: u64,
    text: String,
    /// Scalars of the line that was read.
    waiting: VecDeque<Scalar>,
}

impl<L: BufRead, S: Fn(u64) -> f64> Metrics<L, S> {
    fn next(&mut self) -> anyhow::Result<Option<Scalar>> {
        while self.waiting.is_empty() {
            self.text.clear();
            if self.lines.read_line(&mut self.text)? == 0 {
                return Ok(None);
            }
            self.line += 1;
            let place = format!("line {}", self.line);
            let object: Map<String, Value> = serde_json::from_str(&self.text).map_err(|cause| {
                let expected = "a JSON object with the key `step`";
                ReadError::new(&*place, cause.to_string(), expected, "the file is damaged, make it again")
            })?;
            let step = object.get("step");
            let step = step.and_then(Value::as_u64).ok_or_else(|| {
                let found = step.map_or_else(|| "none".to_owned(), Value::to_string);
                let expected = "the key `step` with a whole number";
                ReadError::new(&*place, format!("found {found}"), expected, "these are no metrics")
            })?;
            let seconds = (self.seconds)(step);
            let waiting = &mut self.waiting;
            walk(&self.under, &object, &mut |tag, value| {
                waiting.push_back(Scalar { step, seconds, tag, value });
            });
        }
        Ok(self.waiting.pop_front())
    }
}

/// All numbers of `object` and what is in it, in its order, but for the step itself.
fn walk(path: &str, object: &Map<String, Value>, each: &mut impl FnMut(String, f32)) {
    for (name, value) in object.iter().filter(|(name, _)| *name != "step") {
        let tag = if path.is_empty() { name.clone() } else { format!("{path}/{name}") };
        match value {
            Value::Object(inner) => walk(&tag, inner, each),
            // TensorBoard's numbers are single.
            #[allow(clippy::cast_possible_truncation, reason = "a board shows seven digits at most")]
            Value::Number(number) => each(tag, number.as_f64().unwrap_or(f64::NAN) as f32),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, under: &str) -> Vec<Result<(u64, f64, String, f32), String>> {
        let told = |found: anyhow::Result<Scalar>| {
            found.map(|s| (s.step, s.seconds, s.tag, s.value)).map_err(|error| error.to_string())
        };
        metrics(text.as_bytes(), under, |step| step as f64 * 2.0).map(told).collect()
    }

    #[test]
    fn numbers_are_named_by_their_path() {
        let text = concat!(
            r#"{"step":3,"epoch":0,"loss":1.5,"tasks":{"relation":{"loss":0.5,"accuracy":1.0,"targets":4}},"verdict":"best","rows":[1]}"#,
            "\n",
            r#"{"step":4,"verdict":null}"#,
            "\n",
            r#"{"step":5,"loss":0.25}"#,
        );
        let at = |step, tag: &str, value| Ok((step, step as f64 * 2.0, tag.to_owned(), value));
        let expected = [
            at(3, "epoch", 0.0),
            at(3, "loss", 1.5),
            at(3, "tasks/relation/loss", 0.5),
            at(3, "tasks/relation/accuracy", 1.0),
            at(3, "tasks/relation/targets", 4.0),
            at(5, "loss", 0.25),
        ];
        assert_eq!(read(text, ""), expected);
        assert_eq!(read(r#"{"step":5,"loss":0.25}"#, "held_out"), [at(5, "held_out/loss", 0.25)]);
        assert!(read("", "").is_empty());
    }

    #[test]
    fn what_is_no_line_of_metrics_is_refused_with_its_line_and_nothing_comes_after() {
        let cut = read("{\"step\":1,\"loss\":1}\n{\"step\":2,\"lo\n{\"step\":3,\"loss\":1}\n", "");
        assert_eq!(cut.len(), 2);
        assert!(cut[1].as_ref().unwrap_err().starts_with("line 2: "), "{cut:?}");
        let none = read("{\"loss\":1}\n", "");
        assert!(
            none[0].as_ref().unwrap_err().contains("found none, expected the key `step` with a whole number"),
            "{none:?}"
        );
        let half = read("{\"step\":1.5}\n", "");
        assert!(half[0].as_ref().unwrap_err().contains("found 1.5"), "{half:?}");
    }
}
