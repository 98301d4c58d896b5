//! A query: which tables it names, the plan that polars makes of it, and what is wrong with one that has no plan.

use std::fmt::Write as _;

use base::visible::shortened;
use polars::prelude::PolarsError;
use polars::sql::{SQLContext, extract_table_identifiers};

use crate::answer::Answer;
use crate::error::Error;
use crate::tables::Tables;

/// Statements that would only change the query's own view of the tables.
const WRITES: [&str; 7] = ["insert", "update", "delete", "create", "drop", "truncate", "alter"];

impl Tables {
    /// The answer to `query`, which is not computed yet. Opens only the files of tables that it names.
    ///
    /// # Errors
    /// When the query is not understood, names what is not there, or a file cannot be read.
    pub fn query(&self, query: &str) -> Result<Answer, Error> {
        let first: String = query.trim_start().chars().take_while(char::is_ascii_alphabetic).collect();
        let first = first.to_ascii_lowercase();
        if first.is_empty() && query.trim().is_empty() {
            return Err(Error::new(
                "the query is empty, expected SQL such as `select * from triples limit 10`",
            ));
        }
        if WRITES.contains(&first.as_str()) {
            return Err(Error::new(format!(
                "`{first}` would change a table, and artifacts are only read: expected SELECT; write an answer to a file with --into"
            )));
        }
        if first == "show" {
            return Err(Error::new("expected SELECT: `engraft query --tables` shows the tables"));
        }
        let wrong = |error: &PolarsError| self.explain(query, error);
        let mut context = SQLContext::new();
        for name in extract_table_identifiers(query, false, true).map_err(|error| wrong(&error))? {
            if let Some(frame) = self.frame(&name)? {
                context.register(&name, frame);
            }
        }
        let mut frame = context.execute(query).map_err(|error| wrong(&error))?;
        let schema = frame.collect_schema().map_err(|error| wrong(&error))?;
        Ok(Answer { frame, schema })
    }

    /// What polars has against a query, with what would be right.
    fn explain(&self, query: &str, error: &PolarsError) -> Error {
        let text = Error::of(error).to_string();
        if let Some(name) = between(&text, "relation '", "' was not found") {
            return self.no_table(name);
        }
        let column = between(&text, "unable to find column \"", "\";");
        if let Some(name) = column.or_else(|| between(&text, "no column named '", "' found in table")) {
            return self.no_column(query, name);
        }
        let said = text.strip_prefix("sql parser error: ").unwrap_or(&text);
        match place(said) {
            Some((line, column)) => Error::new(pointed(query, said, line, column)),
            None => Error::new(format!("the query has no answer: {said}")),
        }
    }

    fn no_table(&self, name: &str) -> Error {
        let known = self.names();
        let shown = shortened(name);
        // The table of a config: `scores`, or `results` where encoders are compared.
        let other = match name {
            "results" => Some("scores"),
            "scores" => Some("results"),
            _ => None,
        };
        if let Some(other) = other.filter(|other| self.has_finished(other)) {
            return Error::new(format!("there is no table `{shown}` here: the scores are in `{other}`"));
        }
        if let Some(table) = Self::made_by(name) {
            let stage = table.stage;
            let missing = if stage.contains('*') {
                format!("no stage that makes its files ({}) has finished here", table.file)
            } else if self.has_finished(stage) {
                format!("stage `{stage}` has finished here, but makes no {} with this config", table.file)
            } else {
                format!("stage `{stage}` has not finished here: `engraft run {stage}` makes it")
            };
            return Error::new(format!("there is no table `{shown}`: {missing}"));
        }
        let near = suggestion(name, &known);
        Error::new(format!("there is no table `{shown}`{near}; tables: {}", known.join(", ")))
    }

    fn no_column(&self, query: &str, name: &str) -> Error {
        let mut columns: Vec<String> = vec![];
        for table in extract_table_identifiers(query, false, true).unwrap_or_default() {
            // A table that cannot be read has been told of before.
            let Ok(Some(mut frame)) = self.frame(&table) else { continue };
            let Ok(schema) = frame.collect_schema() else { continue };
            columns.extend(schema.iter_names().map(ToString::to_string));
        }
        let mut text = format!("there is no column `{}`{}", shortened(name), suggestion(name, &columns));
        if !columns.is_empty() {
            columns.dedup();
            // Writing into a text cannot fail.
            _ = write!(text, "; columns: {}", columns.join(", "));
        }
        Error::new(text)
    }
}

fn between<'t>(text: &'t str, before: &str, after: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(before)?;
    Some(rest.split_once(after)?.0)
}

/// The nearest of the known names, as a question.
fn suggestion(name: &str, known: &[String]) -> String {
    let lower = name.to_lowercase();
    let near = known.iter().map(|other| (strsim::jaro_winkler(&lower, &other.to_lowercase()), other));
    let best = near.filter(|(score, _)| *score > 0.75).max_by(|(a, _), (b, _)| a.total_cmp(b));
    best.map_or_else(String::new, |(_, other)| format!(" (did you mean `{other}`?)"))
}

/// The line and the column that the parser names, from 1.
fn place(said: &str) -> Option<(usize, usize)> {
    let (_, rest) = said.rsplit_once("Line: ")?;
    let (line, column) = rest.split_once(", Column: ")?;
    let digits = |text: &str| text.chars().take_while(char::is_ascii_digit).collect::<String>().parse().ok();
    Some((digits(line)?, digits(column)?))
}

/// The parser's words, with the line of the query that they are about and a mark under the place.
fn pointed(query: &str, said: &str, line: usize, column: usize) -> String {
    let said = said.rsplit_once(" at Line: ").map_or(said, |(said, _)| said);
    let text = query.lines().nth(line.saturating_sub(1)).unwrap_or_default();
    let before = column.saturating_sub(1).min(text.chars().count());
    format!("line {line}, column {column} of the query: {said}\n  {text}\n  {}^", " ".repeat(before))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_syntax_error_is_pointed_at() {
        let said = "Expected: an expression, found: from at Line: 2, Column: 3";
        let text = pointed("select\n  from triples", said, 2, 3);
        assert_eq!(
            text,
            "line 2, column 3 of the query: Expected: an expression, found: from\n    from triples\n    ^"
        );
        assert_eq!(place(said), Some((2, 3)));
    }

    #[test]
    fn a_name_is_suggested_only_if_it_is_near() {
        let known = ["triples".to_owned(), "terms".to_owned()];
        assert_eq!(suggestion("Triple", &known), " (did you mean `triples`?)");
        assert_eq!(suggestion("xyz", &known), "");
    }
}
