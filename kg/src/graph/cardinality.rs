//! How many subjects and objects a relation joins.

use polars::prelude::{Column, DataFrame, IntoLazy, PolarsError, col, len};
use serde::{Deserialize, Serialize};

use super::distribution::share;
use super::tally::uncounted;
use crate::Refused;
use crate::table::Triple;

/// From this mean on an end counts as "many" (Bordes et al. 2013, section 4.3).
const MANY: f64 = 1.5;

/// What a relation joins.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Cardinality {
    /// Its triples.
    pub triples: u64,
    /// Different subjects.
    pub subjects: u64,
    /// Different objects.
    pub objects: u64,
    /// Mean number of objects of a subject.
    pub objects_per_subject: f64,
    /// Mean number of subjects of an object.
    pub subjects_per_object: f64,
    /// Which of the ends are many.
    pub kind: Kind,
}

/// One or many at each end: many from a mean of 1.5.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// A subject has one object, an object has one subject.
    #[serde(rename = "1-1")]
    OneToOne,
    /// A subject has many objects, an object has one subject.
    #[serde(rename = "1-N")]
    OneToMany,
    /// A subject has one object, an object has many subjects.
    #[serde(rename = "N-1")]
    ManyToOne,
    /// Many at both ends.
    #[serde(rename = "N-N")]
    ManyToMany,
}

impl Kind {
    /// The name on disk.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::OneToOne => "1-1",
            Kind::OneToMany => "1-N",
            Kind::ManyToOne => "N-1",
            Kind::ManyToMany => "N-N",
        }
    }
}

impl Cardinality {
    fn new(triples: u64, subjects: u64, objects: u64) -> Self {
        let (objects_per_subject, subjects_per_object) = (share(triples, subjects), share(triples, objects));
        let kind = match (objects_per_subject >= MANY, subjects_per_object >= MANY) {
            (false, false) => Kind::OneToOne,
            (true, false) => Kind::OneToMany,
            (false, true) => Kind::ManyToOne,
            (true, true) => Kind::ManyToMany,
        };
        Self { triples, subjects, objects, objects_per_subject, subjects_per_object, kind }
    }
}

/// What each of `relations` relations joins. The triples are different ones.
///
/// # Errors
/// When memory ends.
pub fn of(relations: usize, triples: &[Triple]) -> Result<Vec<Cardinality>, Refused> {
    let mut found = vec![Cardinality::new(0, 0, 0); relations];
    counted(triples, &mut found).map_err(|error| uncounted(triples.len(), &error))?;
    Ok(found)
}

fn counted(triples: &[Triple], found: &mut [Cardinality]) -> Result<(), PolarsError> {
    let column = |name: &str, value: fn(&Triple) -> u32| {
        Column::new(name.into(), triples.iter().map(value).collect::<Vec<u32>>())
    };
    let table = vec![
        column("relation", |triple| triple.relation.0),
        column("subject", |triple| triple.subject.0),
        column("object", |triple| triple.object.0),
    ];
    let different = |name: &str| col(name).n_unique();
    let groups = DataFrame::new(triples.len(), table)?
        .lazy()
        .group_by([col("relation")])
        .agg([len().alias("triples"), different("subject"), different("object")])
        .collect()?;
    let numbers = |name: &str| -> Result<Vec<u32>, PolarsError> {
        Ok(groups.column(name)?.u32()?.into_no_null_iter().collect())
    };
    let (relations, subjects, objects) = (numbers("relation")?, numbers("subject")?, numbers("object")?);
    for (row, triples) in numbers("triples")?.into_iter().enumerate() {
        found[relations[row] as usize] =
            Cardinality::new(triples.into(), subjects[row].into(), objects[row].into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::summary::testing::triples;

    #[test]
    fn each_relation_is_of_its_kind() {
        let mut all = vec![(0, 0, 1), (2, 0, 3)];
        all.extend([(0, 1, 1), (0, 1, 2), (0, 1, 3)]);
        all.extend([(1, 2, 0), (2, 2, 0), (3, 2, 0)]);
        all.extend([(0, 3, 2), (0, 3, 3), (1, 3, 2), (1, 3, 3)]);
        let found = of(5, &triples(&all)).unwrap();
        let kinds: Vec<&str> = found.iter().map(|cardinality| cardinality.kind.name()).collect();
        assert_eq!(kinds, ["1-1", "1-N", "N-1", "N-N", "1-1"]);
        assert_eq!((found[1].triples, found[1].subjects, found[1].objects), (3, 1, 3));
        assert!((found[1].objects_per_subject - 3.0).abs() < 1e-15);
        assert_eq!((found[4].triples, found[4].subjects), (0, 0));
    }

    #[test]
    fn many_begins_at_one_and_a_half() {
        assert_eq!(Cardinality::new(3, 2, 3).kind, Kind::OneToMany);
        assert_eq!(Cardinality::new(149, 100, 149).kind, Kind::OneToOne);
    }
}
