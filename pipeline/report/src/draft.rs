//! A page in the making: a title, tiles, and sections of tables and plots.

use std::fmt::Write as _;

use super::svg::{Plot, STYLE, escape};

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
    body: String,
    contents: String,
    plots: Vec<Plot>,
}

impl Draft {
    pub(super) fn new() -> Self {
        Draft { body: String::new(), contents: String::new(), plots: Vec::new() }
    }

    pub(super) fn section(&mut self, id: &str, title: &str, lead: &str) {
        let close = if self.body.is_empty() { "" } else { "</section>\n" };
        let (title, lead) = (escape(title), escape(lead));
        let _ = writeln!(self.body, "{close}<section id=\"{id}\"><h2>{title}</h2><p>{lead}</p>");
        let _ = write!(self.contents, "<a href=\"#{id}\">{title}</a>");
    }

    pub(super) fn heading(&mut self, title: &str) {
        let _ = writeln!(self.body, "<h3>{}</h3>", escape(title));
    }

    pub(super) fn plots(&mut self, plots: Vec<Plot>) {
        self.body.push_str("<div class=\"plots\">");
        for plot in &plots {
            let caption = escape(&plot.description);
            let _ =
                writeln!(self.body, "<figure>{}<figcaption>{caption}</figcaption></figure>", plot.inline());
        }
        self.body.push_str("</div>\n");
        self.plots.extend(plots);
    }

    pub(super) fn html(&mut self, html: &str) {
        self.body.push_str(html);
    }

    /// The page: at least one section must have been begun. `style` comes after what all pages have.
    pub(super) fn finish(self, title: &str, tiles: Vec<(&str, String)>, style: &str) -> Page {
        let title = escape(title);
        let tile = |(name, value): (&str, String)| {
            format!("<div><b>{}</b><span>{}</span></div>", escape(&value), escape(name))
        };
        let tiles: String = tiles.into_iter().map(tile).collect();
        let html = format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"><meta name=\"color-scheme\" content=\"light dark\"><title>{title}</title><style>{CSS}{STYLE}{style}</style></head>\n<body><header><h1>{title}</h1><div class=\"tiles\">{tiles}</div><nav>{}</nav></header>\n<main>{}</section></main></body></html>\n",
            self.contents, self.body
        );
        Page { html, plots: self.plots }
    }
}
