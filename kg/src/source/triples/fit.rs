//! Names of columns that stand where a row should: seen in all files of a source alike.

/// What is expected of a field whose quotes may only wrap it.
pub(super) const NO_QUOTES: &str = "no quotes around it: nothing says whether they only wrap it (quotes = \"double\") or belong to it (\"none\")";
/// What is expected of a first row that looks like names of columns.
pub(super) const NO_NAMES: &str = "a row and no names of columns (first_line = \"names\")";
/// What is expected of a file of texts of which no layout is given.
pub(super) const TWO_COLUMNS: &str = "an id, a tab and a text: nothing says which columns are meant \
    ({ path = \"...\", layout = { separator = \"tab\", first_line = \"row\", columns = { id = 1, text = 2 } } })";

/// Whether the fields of a first row are names of columns, each one of those that its column is called by.
pub(super) fn is_header(fields: &[&str], called: &[&[&str]]) -> bool {
    fields.iter().zip(called).all(|(field, called)| {
        let field = field.trim().trim_matches('"').to_ascii_lowercase().replace([' ', '-'], "_");
        called.contains(&field.as_str())
    })
}

/// What columns of subjects, relations and objects are called.
pub(super) const TRIPLE: [&[&str]; 3] = [
    &[
        "subject",
        "subject_id",
        "head",
        "head_id",
        "source",
        "source_id",
        "from",
        "start",
        "start_id",
        "node1",
    ],
    &["relation", "relation_id", "predicate", "predicate_id", "rel", "edge", "type", "label", "relationship"],
    &["object", "object_id", "tail", "tail_id", "target", "target_id", "to", "end", "end_id", "node2"],
];

/// What columns of ids and texts are called.
pub(super) const TEXT: [&[&str]; 2] = [
    &[
        "id",
        "ids",
        "code",
        "key",
        "entity",
        "entity_id",
        "node",
        "node_id",
        "concept",
        "concept_id",
        "conceptid",
        "cui",
        "curie",
        "identifier",
        "mesh_id",
        "relation",
        "relation_id",
        "predicate",
    ],
    &[
        "text",
        "name",
        "label",
        "term",
        "title",
        "description",
        "definition",
        "string",
        "preferred_name",
        "preferred_term",
        "preferred_label",
        "entity_name",
        "entity_text",
        "relation_name",
        "relation_text",
        "node_name",
        "mesh_name",
    ],
];
