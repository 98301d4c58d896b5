//! Documents of a set's training files that are for other parts, by published lists of their names.

use std::collections::{HashMap, HashSet};

use anyhow::Context as _;
use downstream::example::Part;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::super::location::{Location, Place, Places};
use crate::engine::context::Context;

/// Lists of documents, a name a line.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Listed {
    /// A file of names: a document's own, which its examples have in common (a PMID, the name in the file, the field `group`), or that of the file that it is in,
    /// up to the first dot. Names without an example are counted in the facts; a list of which none has one is an error.
    ///
    /// Source: none: parts are those of files, or drawn.
    #[serde(skip_serializing)]
    pub dev: Option<Location>,
    /// The same for `test`.
    ///
    /// Source: none: parts are those of files, or drawn.
    #[serde(skip_serializing)]
    pub test: Option<Location>,
    /// The same for `mask_search`.
    ///
    /// Source: none: parts are those of files, or drawn.
    #[serde(skip_serializing)]
    pub mask_search: Option<Location>,
}

impl Listed {
    pub(super) fn is_empty(&self) -> bool {
        self.all().iter().all(|(_, list)| list.is_none())
    }

    pub(super) fn all(&self) -> [(Part, &Option<Location>); 3] {
        [(Part::Dev, &self.dev), (Part::Test, &self.test), (Part::MaskSearch, &self.mask_search)]
    }

    pub(super) fn has(&self, part: Part) -> bool {
        self.all().iter().any(|(of, list)| *of == part && list.is_some())
    }
}

/// Which part a document of `train` is for, by its name.
#[derive(Debug, Default)]
pub(super) struct Named {
    parts: HashMap<String, Part>,
    found: HashSet<String>,
}

impl Named {
    /// The part of an item, given its document and the file that it is in.
    pub(super) fn part(&mut self, group: &str, file: &str) -> Part {
        let name = [group, file].into_iter().find(|name| self.parts.contains_key(*name));
        let Some(name) = name else { return Part::Train };
        self.found.insert(name.to_owned());
        self.parts.get(name).copied().unwrap_or(Part::Train)
    }
}

/// The lists of a set, once their places are known.
#[derive(Debug)]
pub(super) struct Lists {
    pub(super) places: Vec<(Part, Place)>,
}

impl Lists {
    /// Those of `config`, which stands at `key`.
    pub(super) fn new(config: &Listed, key: &str, places: &Places<'_>) -> anyhow::Result<Self> {
        let listed = config.all().into_iter().filter_map(|(part, list)| Some((part, list.as_ref()?)));
        let place = |(part, list): (Part, &Location)| {
            Ok((part, list.place(&format!("{key}.listed.{}", part.name()), places)?))
        };
        Ok(Self { places: listed.map(place).collect::<anyhow::Result<_>>()? })
    }

    /// The documents that are listed.
    pub(super) fn named(&self, context: &Context) -> anyhow::Result<Named> {
        let mut named = Named::default();
        for (part, place) in &self.places {
            let path = place.path(context)?;
            let text = std::fs::read_to_string(&path).with_context(|| {
                format!("{}: cannot read it; expected a document's name a line", path.display())
            })?;
            for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
                let first = named.parts.insert(line.trim().to_owned(), *part);
                anyhow::ensure!(
                    first.is_none_or(|first| first == *part),
                    "{}: line {}: {:?} is listed for another part as well: leave it in one list",
                    path.display(),
                    number + 1,
                    line.trim()
                );
            }
        }
        Ok(named)
    }

    /// Says how many of the listed documents were met.
    pub(super) fn told(&self, named: &Named, context: &Context) -> anyhow::Result<()> {
        let mut facts = vec![];
        for (part, place) in &self.places {
            let of_part = || named.parts.iter().filter(|(_, of)| *of == part).map(|(name, _)| name);
            let mut without: Vec<&String> = of_part().filter(|name| !named.found.contains(*name)).collect();
            without.sort_unstable();
            let (names, first) = (of_part().count(), without.first());
            anyhow::ensure!(
                without.len() < names,
                "{}: none of its {names} names is that of a document with examples, or of a file (the first is {:?})",
                place.label(),
                first.map_or("", |name| name)
            );
            facts.push(json!({
                "part": part.name(), "names": names, "without_examples": without.len(),
                "such_as": without.iter().take(5).collect::<Vec<_>>(),
            }));
        }
        if !facts.is_empty() {
            context.record("listed", facts);
        }
        Ok(())
    }
}
