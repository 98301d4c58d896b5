//! What stands before the first record: declaration, document type, comments, the root's opening tag.

use super::scan::{Fault, Scanner, Tag, excerpt};

/// Skips everything up to and with the root's opening tag; gives the root and the byte after it.
///
/// # Errors
/// When the text is no XML in UTF-8, or declares entities of its own: they are never expanded, so a file that has some is refused.
pub(crate) fn read(text: &str) -> Result<(Scanner<'_>, Tag<'_>), Box<Fault>> {
    let mut at = text.len() - text.trim_start_matches('\u{feff}').len();
    if let Some(declaration) = text[at..].strip_prefix("<?xml") {
        encoding(declaration, at)?;
    }
    loop {
        let rest = &text[at..];
        let blank = rest.len() - rest.trim_start().len();
        at += blank;
        let rest = &rest[blank..];
        let (end, what) = match rest {
            _ if rest.starts_with("<?") => ("?>", "an instruction that ends with ?>"),
            _ if rest.starts_with("<!--") => ("-->", "a comment that ends with -->"),
            _ if rest.starts_with("<!DOCTYPE") => (">", "a document type that ends with >"),
            _ => break,
        };
        let Some(length) = rest.find(end) else { return Err(Fault::new(at, excerpt(rest), what)) };
        if rest.starts_with("<!DOCTYPE") && rest[..length].contains('[') {
            let expected = "a document type without declarations of its own ([...]), as published";
            return Err(Fault::new(at, excerpt(rest), expected));
        }
        at += length + end.len();
    }
    if !text[at..].starts_with('<') {
        return Err(Fault::new(at, excerpt(&text[at..]), "XML, whose first letter is <"));
    }
    let mut scanner = Scanner::new(text);
    scanner.go(at);
    match scanner.child()? {
        Some(root) => Ok((scanner, root)),
        None => Err(Fault::new(at, excerpt(&text[at..]), "the root's tag")),
    }
}

fn encoding(declaration: &str, at: usize) -> Result<(), Box<Fault>> {
    let declaration = declaration.split("?>").next().unwrap_or_default();
    let Some((_, after)) = declaration.split_once("encoding") else { return Ok(()) };
    let name =
        after.trim_start_matches([' ', '=', '"', '\'']).split(['"', '\'', ' ']).next().unwrap_or_default();
    if ["utf-8", "utf8", "us-ascii", "ascii"].contains(&name.to_ascii_lowercase().as_str()) {
        return Ok(());
    }
    Err(Fault::new(at, excerpt(name), "encoding UTF-8 (convert with iconv -t UTF-8 and fix the declaration)"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_before_the_root_is_passed_over() {
        let text = "\u{feff}<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!-- <x> -->\n<!DOCTYPE Set SYSTEM \"set.dtd\">\n\
            <Set LanguageCode = \"eng\">\n<r/>";
        let (scanner, root) = read(text).unwrap();
        assert_eq!((root.name, &text[scanner.at()..]), ("Set", "\n<r/>"));
        assert_eq!(scanner.attribute(&root, "LanguageCode").unwrap(), Some("eng"));
        assert_eq!(read("<Set>").unwrap().1.name, "Set");
    }

    #[test]
    fn entity_declarations_and_other_encodings_are_refused() {
        let cases = [
            ("<!DOCTYPE s [<!ENTITY a \"b\"><!ENTITY c \"&a;&a;\">]><s>", "without declarations of its own"),
            ("<?xml version=\"1.0\" encoding='ISO-8859-1'?><s>", "encoding UTF-8"),
            ("mesh_id\tmesh_name\n", "XML, whose first letter is <"),
            ("", "XML, whose first letter is <"),
            ("<!-- <s>", "a comment that ends with -->"),
            ("<!DOCTYPE s", "a document type that ends"),
            ("<s", "a tag that ends with >"),
        ];
        for (text, expected) in cases {
            let fault = read(text).unwrap_err();
            assert!(fault.expected.contains(expected), "{text}: {fault:?}");
        }
    }
}
