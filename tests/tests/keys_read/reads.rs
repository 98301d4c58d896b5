//! Which fields functions read: by `value.field` of a value whose type the sources tell, and by patterns.
//!
//! Types are told as far as settings need it: what holds values of a type (`Option`, `Vec`, maps, references, boxes) counts as that type, and so does
//! what iterators and closures hand on. A value of an unknown type reads nothing, so a field cannot pass by the name of another one.
mod patterns;
mod scope;

use std::collections::{BTreeMap, BTreeSet};

use syn::punctuated::Punctuated;
use syn::visit::Visit;
use syn::{Expr, Pat, Stmt, Token};

use super::items::{Body, Id, Items, Named};
use scope::{Scope, Ty, segments};

/// A field by its type, its variant (of an enum), and its name.
pub(super) type Read = (Id, Option<String>, String);

/// What methods give back: by the type and their names.
type Methods<'i> = BTreeMap<(Id, String), (&'i Body, Ty)>;

/// Every field that is read in a function that does something with it.
pub(super) fn reads(items: &Items, ignored: &[&str]) -> BTreeSet<Read> {
    let mut methods: Methods<'_> = BTreeMap::new();
    for body in &items.bodies {
        let scope = Scope { items, module: &body.module, this: None };
        let this = body.this.as_ref().map(|of| scope.of_type(of));
        let Some(Ty::Is(id)) = this else { continue };
        let back = match &body.signature.output {
            syn::ReturnType::Type(_, back) => Scope { this: Some(id), ..scope }.of_type(back),
            syn::ReturnType::Default => Ty::Unknown,
        };
        methods.insert((id, body.name.clone()), (body, back));
    }
    let mut found = BTreeSet::new();
    for body in &items.bodies {
        // What is derived by hand names every field, and does nothing with them.
        let by_hand = ["Default", "Debug", "Serialize", "Deserialize", "JsonSchema", "PartialEq"];
        if ignored.contains(&body.name.as_str())
            || body.of_trait.as_deref().is_some_and(|name| by_hand.contains(&name))
        {
            continue;
        }
        let scope = Scope { items, module: &body.module, this: None };
        let this = match body.this.as_ref().map(|of| scope.of_type(of)) {
            Some(Ty::Is(id)) => Some(id),
            _ => None,
        };
        let scope = Scope { this, ..scope };
        let mut reader =
            Reader { scope, methods: &methods, values: vec![BTreeMap::new()], found: BTreeSet::new() };
        for input in &body.signature.inputs {
            match input {
                syn::FnArg::Receiver(_) => {
                    let this = this.map_or(Ty::Unknown, Ty::Is);
                    reader.values[0].insert("self".to_owned(), this);
                }
                syn::FnArg::Typed(of) => {
                    let ty = reader.scope.of_type(&of.ty);
                    reader.bind(&of.pat, &ty);
                }
            }
        }
        reader.block(&body.block);
        found.append(&mut reader.found);
    }
    found
}

struct Reader<'i> {
    scope: Scope<'i>,
    methods: &'i Methods<'i>,
    values: Vec<BTreeMap<String, Ty>>,
    found: BTreeSet<Read>,
}

/// Closures whose result is what comes out.
const MAPS: [&str; 10] = [
    "map",
    "and_then",
    "flat_map",
    "filter_map",
    "find_map",
    "map_or",
    "map_or_else",
    "then",
    "then_some",
    "scan",
];

impl<'i> Reader<'i> {
    fn within<T>(&mut self, of: impl FnOnce(&mut Self) -> T) -> T {
        self.values.push(BTreeMap::new());
        let found = of(self);
        self.values.pop();
        found
    }

    fn block(&mut self, block: &syn::Block) -> Ty {
        self.within(|reader| {
            let mut last = Ty::Unknown;
            for statement in &block.stmts {
                last = Ty::Unknown;
                match statement {
                    Stmt::Local(of) => {
                        let ty = of.init.as_ref().map_or(Ty::Unknown, |init| {
                            if let Some((_, other)) = &init.diverge {
                                reader.expr(other);
                            }
                            reader.expr(&init.expr)
                        });
                        reader.bind(&of.pat, &ty);
                    }
                    Stmt::Expr(of, end) => {
                        let ty = reader.expr(of);
                        if end.is_none() {
                            last = ty;
                        }
                    }
                    Stmt::Macro(of) => drop(reader.of_macro(&of.mac)),
                    Stmt::Item(_) => {}
                }
            }
            last
        })
    }

    fn closure(&mut self, of: &syn::ExprClosure, hint: &Ty) -> Ty {
        self.within(|reader| {
            for input in &of.inputs {
                reader.bind(input, hint);
            }
            reader.expr(&of.body)
        })
    }

    fn arguments(&mut self, arguments: &Punctuated<Expr, Token![,]>, hint: &Ty) -> Ty {
        let mut out = Ty::Unknown;
        for argument in arguments {
            match argument {
                Expr::Closure(of) => out = self.closure(of, hint),
                other => drop(self.expr(other)),
            }
        }
        out
    }

    fn method(&mut self, of: &syn::ExprMethodCall) -> Ty {
        let ty = self.expr(&of.receiver);
        let name = of.method.to_string();
        if let Ty::Is(id) = &ty
            && let Some((_, back)) = self.methods.get(&(*id, name.clone()))
        {
            self.arguments(&of.args, &Ty::Unknown);
            return back.clone();
        }
        let out = match of.args.first() {
            Some(argument) if name == "zip" => Ty::Tuple(vec![ty.clone(), self.expr(argument)]),
            _ if name == "enumerate" => Ty::Tuple(vec![Ty::Unknown, ty.clone()]),
            _ => ty.clone(),
        };
        let closed = self.arguments(&of.args, &out);
        if MAPS.contains(&name.as_str()) { closed } else { out }
    }

    fn call(&mut self, of: &syn::ExprCall) -> Ty {
        let given: Vec<Ty> = of.args.iter().map(|argument| self.expr(argument)).collect();
        let Expr::Path(path) = &*of.func else {
            return self.expr(&of.func);
        };
        match self.scope.named(&path.path) {
            Some(Named::Function(module, name)) => {
                let back = &self.scope.items.modules[&module].returns[&name];
                Scope { items: self.scope.items, module: &module, this: None }.of_type(back)
            }
            Some(Named::Variant(id, name)) => {
                self.methods.get(&(id, name)).map_or(Ty::Is(id), |(_, back)| back.clone())
            }
            Some(Named::Kind(id)) => Ty::Is(id),
            // `Some(x)`, `Box::new(x)`, `Arc::clone(&x)`; of a value that is called, what it gives back.
            _ => {
                let local = segments(&path.path);
                let called = if let [name] = local.as_slice() { self.value(name) } else { Ty::Unknown };
                if called == Ty::Unknown { given.into_iter().next().unwrap_or(Ty::Unknown) } else { called }
            }
        }
    }

    fn value(&self, name: &str) -> Ty {
        self.values.iter().rev().find_map(|values| values.get(name)).cloned().unwrap_or(Ty::Unknown)
    }

    fn of_macro(&mut self, of: &syn::Macro) -> Ty {
        let list = Punctuated::<Expr, Token![,]>::parse_terminated;
        if of.path.is_ident("matches") {
            let parsed = of.parse_body_with(|input: syn::parse::ParseStream<'_>| {
                let value: Expr = input.parse()?;
                let _: Token![,] = input.parse()?;
                let pattern = Pat::parse_multi_with_leading_vert(input)?;
                let guard = if input.peek(Token![if]) {
                    let _: Token![if] = input.parse()?;
                    Some(input.parse::<Expr>()?)
                } else {
                    None
                };
                let _: Option<Token![,]> = input.parse()?;
                Ok((value, pattern, guard))
            });
            if let Ok((value, pattern, guard)) = parsed {
                let ty = self.expr(&value);
                self.within(|reader| {
                    reader.bind(&pattern, &ty);
                    guard.iter().for_each(|guard| drop(reader.expr(guard)));
                });
            }
        } else if let Ok(all) = of.parse_body_with(list) {
            let first: Vec<Ty> = all.iter().map(|of| self.expr(of)).collect();
            return first.into_iter().next().unwrap_or(Ty::Unknown);
        } else if of.path.is_ident("json") {
            self.of_json(&of.tokens.to_string());
        }
        Ty::Unknown
    }

    /// Of `json!({"a": x.y})` the values.
    fn of_json(&mut self, tokens: &str) {
        for part in tokens.split([',', ':', '{', '}', '[', ']']) {
            if let Ok(of) = syn::parse_str::<Expr>(part) {
                self.expr(&of);
            }
        }
    }

    #[expect(clippy::too_many_lines, reason = "an arm for each kind of expression")]
    fn expr(&mut self, of: &Expr) -> Ty {
        match of {
            Expr::Path(of) => match of.path.get_ident() {
                Some(name) if self.value(&name.to_string()) != Ty::Unknown => self.value(&name.to_string()),
                _ => match self.scope.named(&of.path) {
                    Some(Named::Kind(id) | Named::Variant(id, _)) => Ty::Is(id),
                    _ => Ty::Unknown,
                },
            },
            Expr::Field(of) => {
                let (ty, name) = (
                    self.expr(&of.base),
                    match &of.member {
                        syn::Member::Named(name) => name.to_string(),
                        syn::Member::Unnamed(place) => place.index.to_string(),
                    },
                );
                match ty {
                    Ty::Is(id) => self.read(&Named::Kind(id), &name),
                    Ty::Tuple(each) => name
                        .parse()
                        .ok()
                        .and_then(|place: usize| each.get(place).cloned())
                        .unwrap_or(Ty::Unknown),
                    Ty::Unknown => Ty::Unknown,
                }
            }
            Expr::MethodCall(of) => self.method(of),
            Expr::Call(of) => self.call(of),
            Expr::Reference(of) => self.expr(&of.expr),
            Expr::Paren(of) => self.expr(&of.expr),
            Expr::Group(of) => self.expr(&of.expr),
            Expr::Unary(of) => self.expr(&of.expr),
            Expr::Try(of) => self.expr(&of.expr),
            Expr::Index(of) => {
                self.expr(&of.index);
                self.expr(&of.expr)
            }
            Expr::Block(of) => self.block(&of.block),
            Expr::If(of) => self.within(|reader| {
                reader.expr(&of.cond);
                let then = reader.block(&of.then_branch);
                let other = of.else_branch.as_ref().map_or(Ty::Unknown, |(_, other)| reader.expr(other));
                if then == Ty::Unknown { other } else { then }
            }),
            Expr::Let(of) => {
                let ty = self.expr(&of.expr);
                self.bind(&of.pat, &ty);
                Ty::Unknown
            }
            Expr::Match(of) => {
                let ty = self.expr(&of.expr);
                let mut out = Ty::Unknown;
                for arm in &of.arms {
                    let of_arm = self.within(|reader| {
                        reader.bind(&arm.pat, &ty);
                        if let Some((_, guard)) = &arm.guard {
                            reader.expr(guard);
                        }
                        reader.expr(&arm.body)
                    });
                    if out == Ty::Unknown {
                        out = of_arm;
                    }
                }
                out
            }
            Expr::Closure(of) => self.closure(of, &Ty::Unknown),
            Expr::Tuple(of) => Ty::Tuple(of.elems.iter().map(|of| self.expr(of)).collect()),
            Expr::Array(of) => {
                let each: Vec<Ty> = of.elems.iter().map(|of| self.expr(of)).collect();
                each.into_iter().find(|of| *of != Ty::Unknown).unwrap_or(Ty::Unknown)
            }
            Expr::Struct(of) => {
                of.fields.iter().for_each(|field| drop(self.expr(&field.expr)));
                if let Some(rest) = &of.rest {
                    self.expr(rest);
                }
                match self.scope.named(&of.path) {
                    Some(Named::Kind(id) | Named::Variant(id, _)) => Ty::Is(id),
                    _ => Ty::Unknown,
                }
            }
            Expr::ForLoop(of) => {
                let ty = self.expr(&of.expr);
                self.within(|reader| {
                    reader.bind(&of.pat, &ty);
                    reader.block(&of.body)
                })
            }
            Expr::Assign(of) => {
                // What is written to is not read.
                match &*of.left {
                    Expr::Field(left) => drop(self.expr(&left.base)),
                    other => drop(self.expr(other)),
                }
                self.expr(&of.right)
            }
            Expr::Macro(of) => self.of_macro(&of.mac),
            Expr::Return(of) => of.expr.as_ref().map_or(Ty::Unknown, |of| self.expr(of)),
            other => {
                syn::visit::visit_expr(&mut Below(self), other);
                Ty::Unknown
            }
        }
    }
}

/// Reads what lies below an expression whose type does not matter.
struct Below<'r, 'i>(&'r mut Reader<'i>);

impl<'ast> Visit<'ast> for Below<'_, '_> {
    fn visit_expr(&mut self, of: &'ast Expr) {
        self.0.expr(of);
    }

    fn visit_block(&mut self, of: &'ast syn::Block) {
        self.0.block(of);
    }
}
