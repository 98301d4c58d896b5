//! The modules, types and functions of the workspace as their sources have them, and what a path in one of them names.
use std::collections::BTreeMap;
use std::path::Path;

use syn::{Attribute, Fields, Item, Type, UseTree};

/// The place of a type among all.
pub(super) type Id = usize;

/// A field of a struct or variant; values without names go by their places.
pub(super) struct Field {
    pub(super) name: String,
    pub(super) of: Type,
}

/// What a struct or an enum is made of.
struct Shape {
    is_setting: bool,
    fields: Vec<Field>,
    variants: Vec<(String, Vec<Field>)>,
}

/// A struct or enum.
pub(super) struct Kind {
    pub(super) name: String,
    pub(super) module: Vec<String>,
    pub(super) file: String,
    /// Whether a config may have it: it derives `JsonSchema`.
    pub(super) is_setting: bool,
    /// Fields of a struct, in order.
    pub(super) fields: Vec<Field>,
    /// Variants of an enum with their fields.
    pub(super) variants: Vec<(String, Vec<Field>)>,
}

/// A module: what it uses by other names, and what stands in it.
#[derive(Default)]
pub(super) struct Module {
    pub(super) uses: BTreeMap<String, Vec<String>>,
    pub(super) globs: Vec<Vec<String>>,
    pub(super) types: BTreeMap<String, Id>,
    pub(super) returns: BTreeMap<String, Type>,
}

/// A function with its body, to be read.
pub(super) struct Body {
    pub(super) module: Vec<String>,
    pub(super) this: Option<Type>,
    pub(super) name: String,
    /// The trait of its `impl`, if it is one of a trait.
    pub(super) of_trait: Option<String>,
    pub(super) signature: syn::Signature,
    pub(super) block: syn::Block,
}

#[derive(Default)]
pub(super) struct Items {
    pub(super) kinds: Vec<Kind>,
    pub(super) modules: BTreeMap<Vec<String>, Module>,
    pub(super) bodies: Vec<Body>,
    pub(super) crates: Vec<String>,
}

/// What a path names.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Named {
    Module(Vec<String>),
    Kind(Id),
    /// A variant of an enum.
    Variant(Id, String),
    /// A function, by its module and name.
    Function(Vec<String>, String),
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|of| {
        of.path().is_ident("test")
            || (of.path().is_ident("cfg") && of.parse_args::<syn::Ident>().is_ok_and(|what| what == "test"))
    })
}

fn derives(attributes: &[Attribute], name: &str) -> bool {
    let mut found = false;
    for of in attributes.iter().filter(|of| of.path().is_ident("derive")) {
        let _ = of.parse_nested_meta(|meta| {
            found |= meta.path.segments.last().is_some_and(|last| last.ident == name);
            Ok(())
        });
    }
    found
}

fn fields(of: &Fields) -> Vec<Field> {
    let name = |(place, field): (usize, &syn::Field)| Field {
        name: field.ident.as_ref().map_or_else(|| place.to_string(), |name| name.to_string()),
        of: field.ty.clone(),
    };
    of.iter().enumerate().map(name).collect()
}

impl Items {
    /// Adds a source file of the module `path`.
    pub(super) fn add(&mut self, file: &str, path: &[String], text: &str) {
        if text.contains("#![cfg(test)]") {
            return;
        }
        let parsed = syn::parse_file(text).map_err(|error| format!("{file}: {error}")).unwrap();
        self.items(file, path, parsed.items);
    }

    #[expect(clippy::too_many_lines, reason = "an arm for each kind of item")]
    fn items(&mut self, file: &str, path: &[String], items: Vec<Item>) {
        self.modules.entry(path.to_vec()).or_default();
        for item in items {
            match item {
                Item::Mod(of) if !is_test(&of.attrs) => {
                    let below = [path, &[of.ident.to_string()]].concat();
                    if let Some((_, items)) = of.content {
                        self.items(file, &below, items);
                    }
                }
                Item::Use(of) => self.uses(path, &mut vec![], &of.tree),
                Item::Struct(of) => {
                    let (setting, fields) = (derives(&of.attrs, "JsonSchema"), fields(&of.fields));
                    self.kind(
                        file,
                        path,
                        of.ident.to_string(),
                        Shape { is_setting: setting, fields, variants: vec![] },
                    );
                }
                Item::Enum(of) => {
                    let setting = derives(&of.attrs, "JsonSchema");
                    let variants = of.variants.iter().map(|of| (of.ident.to_string(), fields(&of.fields)));
                    self.kind(
                        file,
                        path,
                        of.ident.to_string(),
                        Shape { is_setting: setting, fields: vec![], variants: variants.collect() },
                    );
                }
                Item::Fn(of) if !is_test(&of.attrs) => {
                    if let syn::ReturnType::Type(_, back) = &of.sig.output {
                        let module = self.modules.entry(path.to_vec()).or_default();
                        module.returns.insert(of.sig.ident.to_string(), (**back).clone());
                    }
                    let name = of.sig.ident.to_string();
                    let (signature, block) = (of.sig, *of.block);
                    let of_trait = None;
                    self.bodies.push(Body {
                        module: path.to_vec(),
                        this: None,
                        name,
                        of_trait,
                        signature,
                        block,
                    });
                }
                Item::Impl(of) if !is_test(&of.attrs) => self.of_impl(path, of),
                Item::Trait(of) => {
                    for item in of.items {
                        if let syn::TraitItem::Fn(syn::TraitItemFn {
                            sig: signature,
                            default: Some(block),
                            ..
                        }) = item
                        {
                            let (name, module) = (signature.ident.to_string(), path.to_vec());
                            self.bodies.push(Body {
                                module,
                                this: None,
                                name,
                                of_trait: None,
                                signature,
                                block,
                            });
                        }
                    }
                }
                _ => {}
            }
        }
    }

    fn of_impl(&mut self, path: &[String], of: syn::ItemImpl) {
        let of_trait = of.trait_.as_ref().and_then(|(_, of, _)| Some(of.segments.last()?.ident.to_string()));
        for item in of.items {
            let syn::ImplItem::Fn(item) = item else { continue };
            let name = item.sig.ident.to_string();
            self.bodies.push(Body {
                module: path.to_vec(),
                this: Some((*of.self_ty).clone()),
                name,
                of_trait: of_trait.clone(),
                signature: item.sig,
                block: item.block,
            });
        }
    }

    fn kind(&mut self, file: &str, path: &[String], name: String, of: Shape) {
        let Shape { is_setting, fields, variants } = of;
        self.modules.entry(path.to_vec()).or_default().types.insert(name.clone(), self.kinds.len());
        let (module, file) = (path.to_vec(), file.to_owned());
        self.kinds.push(Kind { name, module, file, is_setting, fields, variants });
    }

    fn uses(&mut self, path: &[String], above: &mut Vec<String>, tree: &UseTree) {
        match tree {
            UseTree::Path(of) => {
                above.push(of.ident.to_string());
                self.uses(path, above, &of.tree);
                above.pop();
            }
            UseTree::Name(of) if of.ident == "self" => {
                let name = above.last().cloned().unwrap_or_default();
                self.modules.entry(path.to_vec()).or_default().uses.insert(name, above.clone());
            }
            UseTree::Name(of) => {
                let name = of.ident.to_string();
                let whole = [&above[..], std::slice::from_ref(&name)].concat();
                self.modules.entry(path.to_vec()).or_default().uses.insert(name, whole);
            }
            UseTree::Rename(of) => {
                let whole = [&above[..], &[of.ident.to_string()]].concat();
                self.modules.entry(path.to_vec()).or_default().uses.insert(of.rename.to_string(), whole);
            }
            UseTree::Glob(_) => self.modules.entry(path.to_vec()).or_default().globs.push(above.clone()),
            UseTree::Group(of) => of.items.iter().for_each(|tree| self.uses(path, above, tree)),
        }
    }

    /// What `path` names in `module`.
    pub(super) fn resolve(&self, module: &[String], path: &[String], depth: usize) -> Option<Named> {
        let (first, mut rest) = path.split_first()?;
        if depth > 12 {
            return None;
        }
        let mut at = match first.as_str() {
            "crate" => Named::Module(module[..1].to_vec()),
            "self" => Named::Module(module.to_vec()),
            "super" => Named::Module(module[..module.len() - 1].to_vec()),
            _ => self
                .inside(module, first, depth)
                .or_else(|| self.crates.contains(first).then(|| Named::Module(vec![first.clone()])))?,
        };
        while let Some((next, after)) = rest.split_first() {
            at = match at {
                Named::Module(of) if next == "super" => Named::Module(of[..of.len() - 1].to_vec()),
                Named::Module(of) => self.inside(&of, next, depth)?,
                Named::Kind(id) => Named::Variant(id, next.clone()),
                Named::Variant(..) | Named::Function(..) => return None,
            };
            rest = after;
        }
        Some(at)
    }

    /// What is called `name` in a module.
    fn inside(&self, module: &[String], name: &str, depth: usize) -> Option<Named> {
        let of = self.modules.get(module)?;
        if let Some(id) = of.types.get(name) {
            return Some(Named::Kind(*id));
        }
        if of.returns.contains_key(name) {
            return Some(Named::Function(module.to_vec(), name.to_owned()));
        }
        let below = [module, &[name.to_owned()]].concat();
        if self.modules.contains_key(&below) {
            return Some(Named::Module(below));
        }
        let used = of.uses.get(name).filter(|path| path.len() > 1 || path[0] != name);
        used.and_then(|path| self.resolve(module, path, depth + 1)).or_else(|| {
            of.globs.iter().find_map(|glob| {
                let whole = [&glob[..], &[name.to_owned()]].concat();
                self.resolve(module, &whole, depth + 1)
            })
        })
    }
}

/// The modules of the crates in `root`, and what stands in them.
pub(super) fn items(root: &Path, crates: &[(&str, &str)]) -> Items {
    let mut items =
        Items { crates: crates.iter().map(|(name, _)| (*name).to_owned()).collect(), ..Items::default() };
    for (name, folder) in crates {
        walk(&root.join(folder), &[(*name).to_owned()], root, &mut items);
    }
    items
}

fn walk(folder: &Path, module: &[String], root: &Path, items: &mut Items) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
        let below = [module, std::slice::from_ref(&stem)].concat();
        if path.is_dir() && stem != "bin" {
            walk(&path, &below, root, items);
        } else if path.extension().is_some_and(|end| end == "rs") && stem != "main" {
            let module = if stem == "lib" { module.to_vec() } else { below };
            let text = std::fs::read_to_string(&path).unwrap();
            items.add(&path.strip_prefix(root).unwrap().display().to_string(), &module, &text);
        }
    }
}
