//! Parameters that must not or cannot move, each with its reason.

use std::collections::BTreeMap;

use crate::Error;
use crate::attention::Sibling;
use crate::optim::head_mask::HeadMask;
use crate::params::Params;

/// The list of what is frozen in the making. Of several reasons the last one is told.
#[derive(Debug)]
pub(super) struct Frozen<'a> {
    params: &'a Params,
    reasons: BTreeMap<String, &'static str>,
}

impl<'a> Frozen<'a> {
    /// Nothing is frozen yet.
    pub(super) fn of(params: &'a Params) -> Self {
        Frozen { params, reasons: BTreeMap::new() }
    }

    /// Those of which a head mask keeps every head.
    pub(super) fn kept(mut self, heads: &HeadMask) -> Self {
        let kept = heads.frozen().map(|name| (name.to_owned(), "the head mask keeps all heads of its layer"));
        self.reasons.extend(kept);
        self
    }

    /// Those whose names `which` accepts.
    pub(super) fn those(mut self, which: impl Fn(&str) -> bool, reason: &'static str) -> Self {
        let names = self.params.iter().map(|(name, _)| name).filter(|name| which(name));
        self.reasons.extend(names.map(|name| (name.to_owned(), reason)));
        self
    }

    /// Those of an attention in so many layers that no loss can reach.
    pub(super) fn unreached(self, attention: &dyn Sibling, layers: usize) -> Self {
        let unreached = attention.unreached(layers).into_iter();
        unreached.fold(self, |frozen, (unreached, reason)| frozen.those(|name| name == unreached, reason))
    }

    /// Those that begin with one of the prefixes that the settings list.
    pub(super) fn listed(mut self, prefixes: &[String]) -> Result<Self, Error> {
        for prefix in prefixes {
            let begins = |name: &str| name.starts_with(prefix.as_str());
            if !self.params.iter().any(|(name, _)| begins(name)) {
                return Err(Error::Misfit(format!(
                    "frozen: no parameter begins with `{prefix}`; the encoder's begin with embeddings., encoder.layer. or pooler., the outputs' with outputs."
                )));
            }
            self = self.those(begins, "listed in `frozen`");
        }
        Ok(self)
    }

    /// The names with their reasons.
    pub(super) fn reasons(self) -> BTreeMap<String, &'static str> {
        self.reasons
    }
}
