//! Which type a path or a type expression names, as far as settings need it.
use syn::punctuated::Punctuated;
use syn::{GenericArgument, PathArguments, Token, Type};

use super::super::items::{Id, Items, Named};

/// What a value is.
#[derive(Clone, Debug, PartialEq)]
pub(in super::super) enum Ty {
    Unknown,
    Is(Id),
    Tuple(Vec<Ty>),
}

/// Where a type is named.
#[derive(Clone, Copy)]
pub(super) struct Scope<'i> {
    pub(super) items: &'i Items,
    pub(super) module: &'i [String],
    pub(super) this: Option<Id>,
}

pub(super) fn segments(path: &syn::Path) -> Vec<String> {
    path.segments.iter().map(|of| of.ident.to_string()).collect()
}

impl Scope<'_> {
    pub(super) fn named(&self, path: &syn::Path) -> Option<Named> {
        let names = segments(path);
        match (names.as_slice(), self.this) {
            ([this], Some(id)) if this == "Self" => Some(Named::Kind(id)),
            ([this, variant], Some(id)) if this == "Self" => Some(Named::Variant(id, variant.clone())),
            _ => self.items.resolve(self.module, &names, 0),
        }
    }

    /// The type, or that of what it holds.
    pub(super) fn of_type(&self, of: &Type) -> Ty {
        match of {
            Type::Reference(of) => self.of_type(&of.elem),
            Type::Slice(of) => self.of_type(&of.elem),
            Type::Array(of) => self.of_type(&of.elem),
            Type::Paren(of) => self.of_type(&of.elem),
            Type::Group(of) => self.of_type(&of.elem),
            Type::Tuple(of) => Ty::Tuple(of.elems.iter().map(|of| self.of_type(of)).collect()),
            Type::ImplTrait(of) => self.of_bounds(&of.bounds),
            Type::TraitObject(of) => self.of_bounds(&of.bounds),
            Type::Path(of) => match self.named(&of.path) {
                Some(Named::Kind(id)) => Ty::Is(id),
                _ => self.of_arguments(&of.path),
            },
            _ => Ty::Unknown,
        }
    }

    /// Of `Iterator<Item = T>` that is `T`.
    fn of_bounds(&self, bounds: &Punctuated<syn::TypeParamBound, Token![+]>) -> Ty {
        let each = bounds.iter().filter_map(|bound| match bound {
            syn::TypeParamBound::Trait(of) => Some(self.of_arguments(&of.path)),
            _ => None,
        });
        each.into_iter().find(|of| *of != Ty::Unknown).unwrap_or(Ty::Unknown)
    }

    fn of_arguments(&self, path: &syn::Path) -> Ty {
        let Some(PathArguments::AngleBracketed(of)) = path.segments.last().map(|last| &last.arguments) else {
            return Ty::Unknown;
        };
        let each = of.args.iter().filter_map(|argument| match argument {
            GenericArgument::Type(of) => Some(self.of_type(of)),
            GenericArgument::AssocType(of) => Some(self.of_type(&of.ty)),
            _ => None,
        });
        // Of a map that is its values', of a result what it is.
        each.into_iter().find(|of| *of != Ty::Unknown).unwrap_or(Ty::Unknown)
    }
}
