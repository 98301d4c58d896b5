//! Tables of a page, and texts in it.

use maud::{Markup, PreEscaped, html};

use super::svg::escape;

/// A column: its title, and whether it holds numbers (`n`) or words (`w`).
pub(crate) type Column = (&'static str, char);

/// A row: its cells, and what stands below them over the whole width.
pub(crate) struct Row {
    pub(crate) cells: Vec<Markup>,
    pub(crate) below: Option<Markup>,
}

impl From<Vec<Markup>> for Row {
    fn from(cells: Vec<Markup>) -> Self {
        Row { cells, below: None }
    }
}

/// A text from data as nothing but itself: maud's own escape leaves what steers a terminal and what XML has no place for.
pub(crate) fn text(text: &str) -> Markup {
    PreEscaped(escape(text))
}

/// Numbers, signs and words of ours: nothing in them has to be escaped.
#[expect(clippy::needless_pass_by_value, reason = "numbers and texts made for a cell come by value")]
pub(crate) fn plain(text: impl ToString) -> Markup {
    html! { (text.to_string()) }
}

/// A table whose rows are named by the title of their table.
pub(crate) fn table<R: Into<Row>>(columns: &[Column], rows: impl Iterator<Item = R>) -> Markup {
    framed(None, columns, rows)
}

/// A table with a caption; the first cell of each row names it.
pub(crate) fn captioned<R: Into<Row>>(
    caption: &str,
    columns: &[Column],
    rows: impl Iterator<Item = R>,
) -> Markup {
    framed(Some(caption), columns, rows)
}

fn framed<R: Into<Row>>(caption: Option<&str>, columns: &[Column], rows: impl Iterator<Item = R>) -> Markup {
    html! {
        div.wide tabindex="0" {
            table {
                @if let Some(caption) = caption { caption { span { (text(caption)) } } }
                thead { tr { @for (title, kind) in columns { th scope="col" class=(kind) { (text(title)) } } } }
                tbody {
                    @for Row { cells, below } in rows.map(Into::into) {
                        tr class=[below.as_ref().map(|_| "over")] {
                            @for (place, (cell, (_, kind))) in cells.iter().zip(columns).enumerate() {
                                @if place == 0 && caption.is_some() {
                                    th scope="row" class=(kind) { (cell) }
                                } @else {
                                    td class=(kind) { (cell) }
                                }
                            }
                        }
                        "\n"
                        @if let Some(below) = below {
                            tr { td.below colspan=(columns.len()) { div { (below) } } }
                            "\n"
                        }
                    }
                }
            }
        }
        "\n"
    }
}
