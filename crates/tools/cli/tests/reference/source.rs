//! The repository's Rust files as syntax: types with their fields, documentation and defaults.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Attribute, Expr, Fields, Ident, Item, Lit, Meta, Token, Type, UseTree};

/// Folders whose types have keys or counts that users see.
const FOLDERS: [&str; 7] = [
    "crates/apps/src",
    "crates/edge",
    "crates/engine/switch/src",
    "crates/invariant/src",
    "crates/systems",
    "crates/tools/lab/src",
    "crates/wire/src",
];

/// The repository's root.
pub fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(3);
    root.expect("the crate is three folders deep").to_owned()
}

/// A field of a struct, or a variant of an enum.
#[derive(Clone)]
pub struct Field {
    /// Name as files and JSON have it.
    pub name: String,
    /// Its documentation, one paragraph.
    pub docs: String,
    /// Its type; of a variant none.
    pub ty: Option<Type>,
    /// Its value where a file leaves it out.
    pub default: Missing,
    /// True if its own fields stand in its place.
    pub flat: bool,
}

/// Meaning of a file without the key.
#[derive(Clone)]
pub enum Missing {
    /// It is refused.
    Refused,
    /// The type's own default.
    Usual,
    /// The result of this function.
    Function(String),
}

/// A struct or an enum.
#[derive(Clone)]
pub struct Shape {
    /// File that declares it, relative to the root.
    pub file: String,
    /// Its documentation, one paragraph.
    pub docs: String,
    /// Fields of a struct, variants of an enum.
    pub fields: Vec<Field>,
    /// True for an enum.
    pub is_enum: bool,
}

/// A line of `counters!`.
struct Counted(Field);

impl Parse for Counted {
    fn parse(input: ParseStream) -> syn::Result<Counted> {
        let attributes = input.call(Attribute::parse_outer)?;
        let name: Ident = input.parse()?;
        Ok(Counted(Field {
            name: name.to_string(),
            docs: docs(&attributes),
            ty: Some(syn::parse_quote!(u64)),
            default: Missing::Usual,
            flat: false,
        }))
    }
}

/// All items by name.
#[derive(Default)]
pub struct Sources {
    shapes: BTreeMap<String, Vec<Shape>>,
    constants: BTreeMap<String, Vec<(String, Expr)>>,
    /// Last expression of functions.
    functions: BTreeMap<String, Vec<(String, Expr)>>,
    /// Defaults that an `impl Default` gives fields, by type.
    defaults: BTreeMap<String, BTreeMap<String, Expr>>,
    /// Paths that a file imports, by the name that they get there.
    imports: BTreeMap<(String, String), Vec<String>>,
}

impl Sources {
    /// Reads the folders.
    pub fn read() -> Sources {
        let mut sources = Sources::default();
        for folder in FOLDERS {
            sources.folder(&root().join(folder));
        }
        sources
    }

    fn folder(&mut self, folder: &Path) {
        for entry in fs::read_dir(folder).expect("a folder of sources") {
            let path = entry.expect("an entry").path();
            let tests = path.file_stem().is_some_and(|name| name == "tests");
            if path.is_dir() && !tests {
                self.folder(&path);
            } else if path.extension().is_some_and(|end| end == "rs") && !tests {
                let text = fs::read_to_string(&path).expect("a source file");
                let file = syn::parse_file(&text).expect("a source file parses");
                let name = path.strip_prefix(root()).expect("below the root");
                self.items(&name.to_string_lossy(), file.items);
            }
        }
    }

    fn items(&mut self, file: &str, items: Vec<Item>) {
        for item in items {
            match item {
                Item::Struct(item) => {
                    let missing = if has_default(&item.attrs) {
                        Missing::Usual
                    } else {
                        Missing::Refused
                    };
                    let shape = Shape {
                        file: file.to_owned(),
                        docs: docs(&item.attrs),
                        fields: fields(item.fields, &missing),
                        is_enum: false,
                    };
                    self.shapes
                        .entry(item.ident.to_string())
                        .or_default()
                        .push(shape);
                }
                Item::Enum(item) => {
                    let case = serde(&item.attrs).remove("rename_all").unwrap_or_default();
                    let variants = item.variants.into_iter().map(|variant| Field {
                        name: serde(&variant.attrs)
                            .remove("rename")
                            .unwrap_or_else(|| cased(&variant.ident.to_string(), &case)),
                        docs: docs(&variant.attrs),
                        ty: None,
                        default: Missing::Refused,
                        flat: false,
                    });
                    let shape = Shape {
                        file: file.to_owned(),
                        docs: docs(&item.attrs),
                        fields: variants.collect(),
                        is_enum: true,
                    };
                    self.shapes
                        .entry(item.ident.to_string())
                        .or_default()
                        .push(shape);
                }
                Item::Const(item) => {
                    let all = self.constants.entry(item.ident.to_string()).or_default();
                    all.push((file.to_owned(), *item.expr));
                }
                Item::Fn(item) => {
                    if let Some(syn::Stmt::Expr(last, None)) = item.block.stmts.last() {
                        let all = self
                            .functions
                            .entry(item.sig.ident.to_string())
                            .or_default();
                        all.push((file.to_owned(), last.clone()));
                    }
                }
                Item::Impl(item) => self.default_of(&item),
                // The store's counters: names with documentation.
                Item::Macro(item) if item.mac.path.is_ident("counters") => {
                    let parser = Punctuated::<Counted, Token![,]>::parse_terminated;
                    let counted = item.mac.parse_body_with(parser);
                    let shape = Shape {
                        file: file.to_owned(),
                        docs: String::new(),
                        fields: counted
                            .expect("counters")
                            .into_iter()
                            .map(|it| it.0)
                            .collect(),
                        is_enum: false,
                    };
                    self.shapes
                        .entry("Counters".to_owned())
                        .or_default()
                        .push(shape);
                }
                Item::Use(item) => self.import(file, &mut Vec::new(), &item.tree),
                _ => {}
            }
        }
    }

    /// Notes the fields of an `impl Default` that ends with a struct expression.
    fn default_of(&mut self, item: &syn::ItemImpl) {
        let of_default = item
            .trait_
            .as_ref()
            .is_some_and(|(_, path, _)| path.is_ident("Default"));
        let Some(name) = last_segment(&item.self_ty).filter(|_| of_default) else {
            return;
        };
        for member in &item.items {
            let syn::ImplItem::Fn(function) = member else {
                continue;
            };
            if let Some(syn::Stmt::Expr(Expr::Struct(made), None)) = function.block.stmts.last() {
                let values = made.fields.iter().filter_map(|field| match &field.member {
                    syn::Member::Named(name) => Some((name.to_string(), field.expr.clone())),
                    syn::Member::Unnamed(_) => None,
                });
                self.defaults.insert(name.clone(), values.collect());
            }
        }
    }

    fn import(&mut self, file: &str, path: &mut Vec<String>, tree: &UseTree) {
        match tree {
            UseTree::Path(part) => {
                path.push(part.ident.to_string());
                self.import(file, path, &part.tree);
                path.pop();
            }
            UseTree::Group(group) => {
                for part in &group.items {
                    self.import(file, path, part);
                }
            }
            UseTree::Name(name) => {
                let mut whole = path.clone();
                whole.push(name.ident.to_string());
                self.imports
                    .insert((file.to_owned(), name.ident.to_string()), whole);
            }
            UseTree::Rename(name) => {
                let mut whole = path.clone();
                whole.push(name.ident.to_string());
                self.imports
                    .insert((file.to_owned(), name.rename.to_string()), whole);
            }
            UseTree::Glob(_) => {}
        }
    }

    /// Words of the folders and files that `path`, as `file` writes it, leads through.
    fn words(&self, file: &str, path: &[String]) -> BTreeSet<String> {
        let first = path.first().cloned().unwrap_or_default();
        let imported = self.imports.get(&(file.to_owned(), first));
        let whole = imported.into_iter().flatten().chain(path.iter().skip(1));
        let last = path.last().cloned().unwrap_or_default();
        let words = whole
            .filter(|part| **part != last)
            .flat_map(|part| part.split('_'));
        let words = words.filter(|word| !["stateplane", "crate", "self", "super"].contains(word));
        words.map(str::to_owned).collect()
    }

    /// The nearest of `found` to `file`, of those whose files the words name.
    fn nearest<'s, T>(
        &self,
        file: &str,
        path: &[String],
        found: &'s [T],
        at: fn(&T) -> &str,
    ) -> Option<&'s T> {
        let words = self.words(file, path);
        let fits = |found: &&T| {
            let parts: BTreeSet<&str> = at(found).split(['/', '.', '-', '_']).collect();
            words.iter().all(|word| parts.contains(word.as_str()))
        };
        let shared = |found: &&T| {
            let bytes = file.bytes().zip(at(found).bytes());
            bytes.take_while(|(left, right)| left == right).count()
        };
        found.iter().filter(fits).max_by_key(shared)
    }

    /// The struct or enum that `ty` names in `file`.
    pub fn shape(&self, file: &str, ty: &Type) -> Option<(String, &Shape)> {
        let path = segments(ty)?;
        let name = path.last()?;
        let shape = self.nearest(file, &path, self.shapes.get(name)?, |shape| &shape.file)?;
        Some((name.clone(), shape))
    }

    /// The struct or enum called `name` in `file`.
    pub fn named(&self, file: &str, name: &str) -> &Shape {
        let found = self.shapes.get(name).into_iter().flatten();
        let mut here = found.filter(|shape| shape.file == file);
        here.next()
            .unwrap_or_else(|| panic!("{file} declares no {name}"))
    }

    /// Text of a key's value where a file leaves it out, as TOML has it; `None` if it has none.
    pub fn usual(&self, of: &str, file: &str, field: &Field) -> Option<String> {
        match &field.default {
            Missing::Refused => None,
            Missing::Function(name) => {
                let found = self.functions.get(name).into_iter().flatten();
                let mut here = found.filter(|(at, _)| at == file);
                let (_, value) = here
                    .next()
                    .unwrap_or_else(|| panic!("{file}: no fn {name}"));
                Some(self.value(file, value))
            }
            Missing::Usual => match self.defaults.get(of).and_then(|of| of.get(&field.name)) {
                Some(value) => Some(self.value(file, value)),
                None => match last_segment(field.ty.as_ref()?)?.as_str() {
                    "bool" => Some("false".to_owned()),
                    "String" => Some("\"\"".to_owned()),
                    name if name.starts_with(['u', 'i']) => Some("0".to_owned()),
                    "Port" => Some("0".to_owned()),
                    _ => None,
                },
            },
        }
    }

    /// The value of an expression that is a literal, a constant, or a conversion of one.
    fn value(&self, file: &str, expr: &Expr) -> String {
        match expr {
            Expr::Lit(literal) => match &literal.lit {
                Lit::Int(number) => number.base10_digits().to_owned(),
                Lit::Bool(flag) => flag.value.to_string(),
                Lit::Str(text) => format!("\"{}\"", text.value()),
                other => panic!("{file}: no value of a key: {}", quote::quote!(#other)),
            },
            Expr::MethodCall(call) => self.value(file, &call.receiver),
            Expr::Call(call) => self.value(file, call.args.first().expect("an argument")),
            Expr::Path(path) => {
                let path: Vec<String> = path
                    .path
                    .segments
                    .iter()
                    .map(|part| part.ident.to_string())
                    .collect();
                let name = path.last().expect("a path has a segment");
                if name == "UNSPECIFIED" {
                    return "\"0.0.0.0\"".to_owned();
                }
                if path.first().is_some_and(|first| first.ends_with("File")) {
                    return format!("\"{}\"", cased(name, "kebab-case"));
                }
                let found = self
                    .constants
                    .get(name)
                    .map(Vec::as_slice)
                    .unwrap_or_default();
                let nearest = self.nearest(file, &path, found, |(at, _)| at);
                let (at, value) = nearest.unwrap_or_else(|| panic!("{file}: no constant {name}"));
                self.value(at, value)
            }
            other => panic!("{file}: cannot evaluate {}", quote::quote!(#other)),
        }
    }
}

/// The names in a type's path; none if it is no path.
fn segments(ty: &Type) -> Option<Vec<String>> {
    let Type::Path(path) = ty else { return None };
    Some(
        path.path
            .segments
            .iter()
            .map(|part| part.ident.to_string())
            .collect(),
    )
}

/// The last name of a type's path.
pub fn last_segment(ty: &Type) -> Option<String> {
    segments(ty)?.pop()
}

/// The types between the angle brackets of a type.
pub fn arguments(ty: &Type) -> Vec<Type> {
    let Type::Path(path) = ty else {
        return Vec::new();
    };
    let last = path.path.segments.last().map(|part| &part.arguments);
    let Some(syn::PathArguments::AngleBracketed(list)) = last else {
        return Vec::new();
    };
    let types = list.args.iter().filter_map(|argument| match argument {
        syn::GenericArgument::Type(ty) => Some(ty.clone()),
        _ => None,
    });
    types.collect()
}

fn fields(fields: Fields, missing: &Missing) -> Vec<Field> {
    let fields = fields.into_iter().filter_map(|field| {
        let mut serde = serde(&field.attrs);
        if serde.contains_key("skip") {
            return None;
        }
        let default = match serde.remove("default") {
            Some(function) if !function.is_empty() => Missing::Function(function),
            Some(_) => Missing::Usual,
            None => missing.clone(),
        };
        Some(Field {
            name: serde
                .remove("rename")
                .or(field.ident.map(|name| name.to_string()))?,
            docs: docs(&field.attrs),
            ty: Some(field.ty),
            default,
            flat: serde.contains_key("flatten"),
        })
    });
    fields.collect()
}

/// Words inside `#[serde(…)]`, with their texts.
fn serde(attributes: &[Attribute]) -> BTreeMap<String, String> {
    let mut words = BTreeMap::new();
    for attribute in attributes.iter().filter(|it| it.path().is_ident("serde")) {
        let list = attribute.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated);
        for meta in list.expect("serde's attribute is a list") {
            let name = meta.path().require_ident().expect("a word").to_string();
            let text = match &meta {
                Meta::NameValue(pair) => match &pair.value {
                    Expr::Lit(literal) => match &literal.lit {
                        Lit::Str(text) => text.value(),
                        _ => String::new(),
                    },
                    _ => String::new(),
                },
                _ => String::new(),
            };
            words.insert(name, text);
        }
    }
    words
}

fn has_default(attributes: &[Attribute]) -> bool {
    serde(attributes).contains_key("default")
}

/// The first paragraph of a documentation comment, as plain Markdown.
pub fn docs(attributes: &[Attribute]) -> String {
    let lines = attributes
        .iter()
        .filter_map(|attribute| match &attribute.meta {
            Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
                Expr::Lit(syn::ExprLit {
                    lit: Lit::Str(line),
                    ..
                }) => Some(line.value()),
                _ => None,
            },
            _ => None,
        });
    let lines: Vec<String> = lines.map(|line| line.trim().to_owned()).collect();
    let paragraph: Vec<&str> = lines
        .iter()
        .map(String::as_str)
        .take_while(|line| !line.is_empty())
        .collect();
    without_links(&paragraph.join(" "))
}

/// `text` without the links of rustdoc: of `[x](y)` and `[x]`, x.
fn without_links(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, link)) = rest.split_once("[`") {
        let Some((name, after)) = link.split_once("`]") else {
            break;
        };
        plain += &format!("{before}`{name}`");
        rest = match after
            .strip_prefix('(')
            .and_then(|target| target.split_once(')'))
        {
            Some((_, after)) => after,
            None => after,
        };
    }
    plain + rest
}

/// A variant's name as `rename_all` writes it.
fn cased(name: &str, case: &str) -> String {
    let separator = match case {
        "kebab-case" => "-",
        "snake_case" => "_",
        "lowercase" => "",
        _ => return name.to_owned(),
    };
    let mut text = String::new();
    for (place, letter) in name.char_indices() {
        if letter.is_uppercase() && place > 0 {
            text += separator;
        }
        text.extend(letter.to_lowercase());
    }
    text
}
