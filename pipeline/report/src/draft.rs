//! A page in the making: a title, tiles, and sections of tables and plots.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::svg::{Plot, STYLE};
use super::table::text;

const CSS: &str = include_str!("page.css");

/// A finished page and its plots.
#[derive(Debug, Clone)]
pub struct Page {
    /// The whole page.
    pub html: String,
    /// Its plots, each with a name of its own.
    pub plots: Vec<Plot>,
}

/// A page in the making.
pub(super) struct Draft {
    sections: Vec<Section>,
    plots: Vec<Plot>,
}

struct Section {
    id: &'static str,
    title: &'static str,
    lead: String,
    body: Vec<Markup>,
}

impl Draft {
    pub(super) fn new() -> Self {
        Draft { sections: Vec::new(), plots: Vec::new() }
    }

    pub(super) fn section(&mut self, id: &'static str, title: &'static str, lead: &str) {
        self.sections.push(Section { id, title, lead: lead.to_owned(), body: Vec::new() });
    }

    pub(super) fn heading(&mut self, title: &str) {
        self.put(html! { h3 { (text(title)) } "\n" });
    }

    pub(super) fn plots(&mut self, plots: Vec<Plot>) {
        self.put(html! {
            div.plots {
                @for plot in &plots {
                    figure { (PreEscaped(plot.inline())) figcaption { (text(&plot.description)) } } "\n"
                }
            }
            "\n"
        });
        self.plots.extend(plots);
    }

    /// Adds to the section that was begun last.
    pub(super) fn put(&mut self, part: Markup) {
        if let Some(section) = self.sections.last_mut() {
            section.body.push(part);
        }
    }

    /// The page. `style` comes after what all pages have.
    pub(super) fn finish(self, title: &str, tiles: &[(&str, String)], style: &str) -> Page {
        let Draft { sections, plots } = self;
        let page = html! {
            (DOCTYPE) "\n"
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width,initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    title { (text(title)) }
                    style { (PreEscaped(CSS)) (PreEscaped(STYLE)) (PreEscaped(style)) }
                }
                "\n"
                body {
                    header {
                        h1 { (text(title)) }
                        div.tiles { @for (name, value) in tiles { div { b { (text(value)) } span { (text(name)) } } } }
                        nav { @for section in &sections { a href={ "#" (section.id) } { (text(section.title)) } } }
                    }
                    "\n"
                    main {
                        @for Section { id, title, lead, body } in &sections {
                            section id=(id) {
                                h2 { (text(title)) }
                                p { (text(lead)) }
                                "\n"
                                @for part in body { (part) }
                            }
                            "\n"
                        }
                    }
                }
            }
            "\n"
        };
        Page { html: page.into_string(), plots }
    }
}
