//! What patterns bind, and the fields that they read.
use syn::punctuated::Punctuated;
use syn::{Pat, Token};

use super::super::items::{Field, Id, Named};
use super::Reader;
use super::scope::{Scope, Ty};

impl<'i> Reader<'i> {
    fn kind_fields(&self, of: &Named) -> Option<(Id, Option<String>, &'i [Field])> {
        let items = self.scope.items;
        match of {
            Named::Kind(id) => Some((*id, None, &items.kinds[*id].fields)),
            Named::Variant(id, name) => {
                let (_, fields) = items.kinds[*id].variants.iter().find(|(of, _)| of == name)?;
                Some((*id, Some(name.clone()), fields))
            }
            _ => None,
        }
    }

    /// The type of a field, as the file of its struct says it.
    fn of_field(&self, id: Id, field: &Field) -> Ty {
        let module = &self.scope.items.kinds[id].module;
        Scope { items: self.scope.items, module, this: Some(id) }.of_type(&field.of)
    }

    pub(super) fn read(&mut self, of: &Named, name: &str) -> Ty {
        let Some((id, variant, fields)) = self.kind_fields(of) else { return Ty::Unknown };
        let Some(field) = fields.iter().find(|field| field.name == name) else { return Ty::Unknown };
        let ty = self.of_field(id, field);
        self.found.insert((id, variant, name.to_owned()));
        ty
    }

    pub(super) fn bind(&mut self, pattern: &Pat, ty: &Ty) {
        match pattern {
            Pat::Ident(of) => {
                if let Some((_, below)) = &of.subpat {
                    self.bind(below, ty);
                }
                self.values.last_mut().unwrap().insert(of.ident.to_string(), ty.clone());
            }
            Pat::Struct(of) => {
                let Some(named) = self.scope.named(&of.path) else { return };
                for field in &of.fields {
                    let syn::Member::Named(name) = &field.member else { continue };
                    if matches!(*field.pat, Pat::Wild(_)) {
                        continue;
                    }
                    let ty = self.read(&named, &name.to_string());
                    self.bind(&field.pat, &ty);
                }
            }
            Pat::TupleStruct(of) => match self.scope.named(&of.path) {
                Some(named @ (Named::Variant(..) | Named::Kind(_))) => {
                    for (place, pattern) in of.elems.iter().enumerate() {
                        if !matches!(pattern, Pat::Wild(_) | Pat::Rest(_)) {
                            let ty = self.read(&named, &place.to_string());
                            self.bind(pattern, &ty);
                        }
                    }
                }
                // `Some`, `Ok`.
                _ => of.elems.iter().for_each(|pattern| self.bind(pattern, ty)),
            },
            Pat::Tuple(of) => self.each(&of.elems, ty),
            Pat::Slice(of) => of.elems.iter().for_each(|pattern| self.bind(pattern, ty)),
            Pat::Or(of) => of.cases.iter().for_each(|pattern| self.bind(pattern, ty)),
            Pat::Reference(of) => self.bind(&of.pat, ty),
            Pat::Paren(of) => self.bind(&of.pat, ty),
            Pat::Type(of) => {
                let ty = self.scope.of_type(&of.ty);
                self.bind(&of.pat, &ty);
            }
            _ => {}
        }
    }

    fn each(&mut self, patterns: &Punctuated<Pat, Token![,]>, ty: &Ty) {
        for (place, pattern) in patterns.iter().enumerate() {
            let of = match ty {
                Ty::Tuple(each) => each.get(place).cloned().unwrap_or(Ty::Unknown),
                other => other.clone(),
            };
            self.bind(pattern, &of);
        }
    }
}
