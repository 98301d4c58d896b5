//! TOML texts of strangers: how deeply they may nest, and what is wrong with one, without showing a URL that may be signed.

use toml::de::{DeTable, DeValue};

/// Most tables and lists within each other. The parser bounds brackets and the parts of one key at 80 each, but not one times the other, and
/// what reads its tree does so by recursion.
const DEEPEST: usize = 80;
/// Room for the deepest tree that the parser makes, some 6,500 levels: it is dropped by recursion as well.
const STACK: usize = 64 << 20;

/// Refuses a text that nests too deeply. Anything else that is wrong with it is left to its reader.
///
/// # Errors
/// Says how deep it may be.
pub(crate) fn bounded(text: &str) -> Result<(), String> {
    let measured = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, || is_shallow(text));
        let thread = thread.map_err(|cause| {
            format!("no thread can be started to read it ({cause}): allow more (`ulimit -u`, `ulimit -v`) or use fewer jobs with --jobs")
        })?;
        thread.join().map_err(|_| "it cannot be read".to_owned())
    });
    if measured? {
        return Ok(());
    }
    Err(format!("tables and lists stand in each other more than {DEEPEST} deep"))
}

fn is_shallow(text: &str) -> bool {
    let Ok(table) = DeTable::parse(text) else { return true };
    let mut below: Vec<(&DeValue<'_>, usize)> =
        table.get_ref().values().map(|value| (value.get_ref(), 1)).collect();
    while let Some((value, depth)) = below.pop() {
        if depth > DEEPEST {
            return false;
        }
        match value {
            DeValue::Table(table) => {
                below.extend(table.values().map(|value| (value.get_ref(), depth + 1)));
            }
            DeValue::Array(items) => below.extend(items.iter().map(|value| (value.get_ref(), depth + 1))),
            _ => {}
        }
    }
    true
}

/// The line and the parser's word; the line itself is not shown.
pub(crate) fn told(text: &str, error: &toml::de::Error) -> String {
    let before = error.span().and_then(|span| text.get(..span.start));
    let line = before.map_or_else(String::new, |text| format!("line {}: ", text.matches('\n').count() + 1));
    match error.message() {
        message if message.contains("://") => format!("{line}a URL stands where something else is expected"),
        message => format!("{line}{message}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silent_18_deep_texts_are_refused_before_anything_walks_over_them() {
        let key = vec!["a"; 79].join(".");
        let mut deep = "1".to_owned();
        for _ in 0..70 {
            deep = format!("{{ {key} = {deep} }}");
        }
        for text in [format!("value = {deep}"), format!("[{key}]\n{key} = {{ {key} = 1 }}")] {
            assert!(bounded(&text).unwrap_err().contains("more than 80 deep"));
        }
        assert_eq!(bounded(&format!("{key} = 1")), Ok(()));
        // What the parser refuses it refuses itself.
        for text in [format!("a = {}", "[".repeat(60_000)), format!("{} = 1", vec!["a"; 60_000].join("."))] {
            assert_eq!(bounded(&text), Ok(()));
            assert!(text.parse::<toml::Table>().is_err());
        }
    }
}
