//! A page in the making: a title, tiles, and sections of tables and plots.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::svg::{Plot, STYLE};
use super::table::text;

const CSS: &str = include_str!("page.css");

/// What tells a page of engraft's from one that somebody else has put there.
pub const MADE_BY: &str = "<meta name=\"generator\" content=\"engraft\">";

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
    links: Vec<(String, String)>,
    status: Option<Markup>,
    refresh: Option<u32>,
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
        Draft { links: Vec::new(), status: None, refresh: None, sections: Vec::new(), plots: Vec::new() }
    }

    /// A link to another page, before those to sections.
    pub(super) fn link(&mut self, to: &str, title: &str) {
        self.links.push((to.to_owned(), title.to_owned()));
    }

    /// What is going on, below the title of a page that a browser loads again every `seconds`.
    pub(super) fn live(&mut self, status: Markup, seconds: u32) {
        (self.status, self.refresh) = (Some(status), Some(seconds));
    }

    pub(super) fn section(&mut self, id: &'static str, title: &'static str, lead: &str) {
        self.sections.push(Section { id, title, lead: lead.to_owned(), body: Vec::new() });
    }

    pub(super) fn heading(&mut self, title: &str) {
        self.put(html! { h3 { (text(title)) } "\n" });
    }

    pub(super) fn plots(&mut self, plots: Vec<Plot>) {
        self.put(figures(&plots));
        self.plots.extend(plots);
    }

    /// The same, folded up under a title.
    pub(super) fn folded(&mut self, title: &str, plots: Vec<Plot>) {
        self.put(html! { details { summary { (text(title)) } (figures(&plots)) } "\n" });
        self.plots.extend(plots);
    }

    /// Says why there is nothing.
    pub(super) fn none(&mut self, why: &str) {
        self.put(html! { p.none { (text(why)) } "\n" });
    }

    /// Adds to the section that was begun last.
    pub(super) fn put(&mut self, part: Markup) {
        if let Some(section) = self.sections.last_mut() {
            section.body.push(part);
        }
    }

    /// The page. `style` comes after what all pages have.
    pub(super) fn finish(self, title: &str, tiles: &[(&str, String)], style: &str) -> Page {
        let Draft { links, status, refresh, sections, plots } = self;
        let page = html! {
            (DOCTYPE) "\n"
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width,initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    (PreEscaped(MADE_BY))
                    @if let Some(seconds) = refresh { meta http-equiv="refresh" content=(seconds); }
                    title { (text(title)) }
                    style { (PreEscaped(CSS)) (PreEscaped(STYLE)) (PreEscaped(style)) }
                }
                "\n"
                body {
                    header {
                        h1 { (text(title)) }
                        @if let Some(status) = &status { p.live { (status) } }
                        div.tiles { @for (name, value) in tiles { div { b { (text(value)) } span { (text(name)) } } } }
                        nav {
                            @for (to, title) in &links { a.page href=(to) { (text(title)) } }
                            @for section in &sections { a href={ "#" (section.id) } { (text(section.title)) } }
                        }
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

fn figures(plots: &[Plot]) -> Markup {
    html! {
        div.plots {
            @for plot in plots {
                figure { (PreEscaped(plot.inline())) figcaption { (text(&plot.description)) } } "\n"
            }
        }
        "\n"
    }
}
