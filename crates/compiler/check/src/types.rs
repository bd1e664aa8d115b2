//! Source types: what the checker reasons with, before resolution to IR types.

use crate::value::Known;
use stateplane_diagnostics::Span;
use stateplane_ir::builder::CORE_ERRORS;
use std::collections::BTreeMap;
use std::rc::Rc;

/// A type variable: a type parameter of a generic declaration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TypeVar(pub u32);

/// A struct, header or header union with its type arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct StructTy(pub u32);

/// A type of the source.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Ty {
    /// Of an expression with an error that has been reported.
    Poison,
    /// `void`.
    Void,
    /// `bool`.
    Bool,
    /// `int`, known at compile time.
    Integer,
    /// `bit<W>`.
    Bits(u32),
    /// `int<W>`.
    Int(u32),
    /// `varbit<W>`.
    Varbit(u32),
    /// `error`.
    Error,
    /// `match_kind`.
    MatchKind,
    /// `string`.
    Str,
    /// An enum without underlying type: [`Types::enums`].
    Enum(u32),
    /// An enum with underlying type: [`Types::serials`].
    Serial(u32),
    /// A `type`: [`Types::newtypes`].
    Newtype(u32),
    /// A struct, header or header union.
    Struct(StructTy),
    /// A header stack.
    Stack(Rc<Ty>, u32),
    /// `tuple<…>`.
    Tuple(Rc<[Ty]>),
    /// `list<T>`, known at compile time.
    ListOf(Rc<Ty>),
    /// Of `{a, b}`: converts to tuples, structs and headers.
    List(Rc<[Ty]>),
    /// Of `{f = a, g = b}`; the flag tells whether it ends in `...`.
    Record(Rc<[(String, Ty)]>, bool),
    /// Of `...`.
    Dots,
    /// Of `{#}`.
    Invalid,
    /// An extern object: number of its declaration, type arguments.
    Extern(u32, Rc<[Ty]>),
    /// A parser or control type declaration with type arguments (architecture parameters).
    Block(u32, Rc<[Ty]>),
    /// An instance of a package: number of its declaration, type arguments.
    Package(u32, Rc<[Ty]>),
    /// An instance of a parser or control: number of its declaration, type arguments.
    Body(u32, Rc<[Ty]>),
    /// A type parameter.
    Var(TypeVar),
}

impl Ty {
    /// Width of `bit<W>` and `int<W>`.
    pub(crate) fn width(&self) -> Option<u32> {
        match self {
            Ty::Bits(width) | Ty::Int(width) => Some(*width),
            _ => None,
        }
    }

    /// True if it is `int`, `bit<W>` or `int<W>`.
    pub(crate) fn is_numeric(&self) -> bool {
        matches!(self, Ty::Integer | Ty::Bits(_) | Ty::Int(_))
    }
}

/// Values of type variables.
pub(crate) type Bindings = BTreeMap<TypeVar, Ty>;

/// Kind of a struct-like type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum StructKind {
    /// `struct`.
    Struct,
    /// `header`.
    Header,
    /// `header_union`.
    Union,
}

impl StructKind {
    /// The keyword.
    pub(crate) fn keyword(self) -> &'static str {
        match self {
            StructKind::Struct => "struct",
            StructKind::Header => "header",
            StructKind::Union => "header_union",
        }
    }
}

/// A member of a struct, header or header union.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub name: String,
    pub ty: Ty,
    pub span: Span,
    pub annotations: Vec<stateplane_ir::Annotation>,
    /// Numbers of its `@field_list`s.
    pub field_lists: Vec<u32>,
}

/// A declaration of a struct, header or header union, its type parameters open.
#[derive(Clone, Debug)]
pub(crate) struct Template {
    pub kind: StructKind,
    pub name: String,
    pub span: Span,
    pub vars: Vec<TypeVar>,
    pub fields: Rc<Vec<Field>>,
    pub annotations: Vec<stateplane_ir::Annotation>,
}

/// A struct-like type with all its type arguments.
#[derive(Clone, Debug)]
pub(crate) struct StructInfo {
    pub kind: StructKind,
    pub name: String,
    pub span: Span,
    pub template: u32,
    pub args: Rc<[Ty]>,
    pub fields: Rc<Vec<Field>>,
    /// Scalars in it, stacks and nested structs counted through.
    pub scalars: u64,
    /// True if it has an open type parameter or a reported error in it.
    pub open: bool,
}

impl StructInfo {
    /// Position of the member called `name`.
    pub(crate) fn position(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|field| field.name == name)
    }
}

/// An enum without underlying type.
#[derive(Clone, Debug)]
pub(crate) struct EnumInfo {
    pub name: String,
    pub members: Vec<(String, Span)>,
    pub annotations: Vec<stateplane_ir::Annotation>,
}

/// An enum with underlying type.
#[derive(Clone, Debug)]
pub(crate) struct SerialInfo {
    pub name: String,
    pub underlying: Ty,
    pub members: Vec<(String, num_bigint::BigInt)>,
    pub annotations: Vec<stateplane_ir::Annotation>,
}

/// A `type` declaration.
#[derive(Clone, Debug)]
pub(crate) struct NewtypeInfo {
    pub name: String,
    pub underlying: Ty,
    pub annotations: Vec<stateplane_ir::Annotation>,
}

/// All types of a program.
#[derive(Default, Debug)]
pub(crate) struct Types {
    pub templates: Vec<Template>,
    pub structs: Vec<StructInfo>,
    pub enums: Vec<EnumInfo>,
    pub serials: Vec<SerialInfo>,
    pub newtypes: Vec<NewtypeInfo>,
    pub errors: Vec<(String, Span)>,
    pub match_kinds: Vec<(String, Span)>,
    pub var_names: Vec<String>,
    pub extern_names: Vec<String>,
    pub block_names: Vec<String>,
    pub body_names: Vec<String>,
    pub package_names: Vec<String>,
    instances: BTreeMap<(u32, Rc<[Ty]>), StructTy>,
}

impl Types {
    /// Declared errors that are none of core.p4's.
    fn other_errors(&self) -> impl Iterator<Item = &String> {
        let names = self.errors.iter().map(|(name, _)| name);
        names.filter(|name| !CORE_ERRORS.contains(&name.as_str()))
    }

    /// All errors by number. Those that engines raise come first, in any order of declaration and
    /// whether or not the program declares them: `NoError` is the default (spec §7.3).
    pub(crate) fn numbered_errors(&self) -> Vec<String> {
        let core = CORE_ERRORS.iter().map(|name| (*name).to_owned());
        core.chain(self.other_errors().cloned()).collect()
    }

    /// The errors declared so far, with their numbers.
    pub(crate) fn declared_errors(&self) -> Vec<(String, Known)> {
        let declared = |name: &String| self.errors.iter().any(|(known, _)| known == name);
        (0..)
            .zip(self.numbered_errors())
            .filter(|(_, name)| declared(name))
            .map(|(number, name)| (name, Known::Index(number)))
            .collect()
    }

    /// A new type variable.
    pub(crate) fn fresh_var(&mut self, name: &str) -> TypeVar {
        self.var_names.push(name.to_owned());
        TypeVar(self.var_names.len() as u32 - 1)
    }

    /// Declaration of a struct-like type.
    pub(crate) fn info(&self, ty: StructTy) -> &StructInfo {
        &self.structs[ty.0 as usize]
    }

    /// The declaration of a struct-like type.
    pub(crate) fn template(&self, ty: StructTy) -> &Template {
        &self.templates[self.info(ty).template as usize]
    }

    /// The struct-like type of a declaration with type arguments.
    pub(crate) fn instance(&mut self, template: u32, args: Rc<[Ty]>) -> StructTy {
        if let Some(found) = self.instances.get(&(template, args.clone())) {
            return *found;
        }
        let declaration = self.templates[template as usize].clone();
        let bindings: Bindings = declaration
            .vars
            .iter()
            .copied()
            .zip(args.iter().cloned())
            .collect();
        let fields: Vec<Field> = declaration
            .fields
            .iter()
            .map(|field| Field {
                ty: self.substitute(&field.ty, &bindings),
                ..field.clone()
            })
            .collect();
        let scalars = fields.iter().fold(1u64, |sum, field| {
            sum.saturating_add(self.scalars(&field.ty))
        });
        let open = args.iter().any(|arg| self.is_open(arg))
            || fields.iter().any(|field| self.is_open(&field.ty));
        let name = if args.is_empty() {
            declaration.name
        } else {
            format!("{}<{}>", declaration.name, self.show_all(&args))
        };
        let ty = StructTy(self.structs.len() as u32);
        self.structs.push(StructInfo {
            kind: declaration.kind,
            name,
            span: declaration.span,
            template,
            args: args.clone(),
            fields: Rc::new(fields),
            scalars,
            open,
        });
        self.instances.insert((template, args), ty);
        ty
    }

    /// Number of scalars in a value of the type.
    pub(crate) fn scalars(&self, ty: &Ty) -> u64 {
        match ty {
            Ty::Struct(id) => self.info(*id).scalars,
            Ty::Stack(element, size) => self.scalars(element).saturating_mul(u64::from(*size)),
            Ty::Tuple(members) => members
                .iter()
                .fold(1, |sum, member| sum.saturating_add(self.scalars(member))),
            _ => 1,
        }
    }

    /// True if the type has an open type parameter or a reported error in it.
    pub(crate) fn is_open(&self, ty: &Ty) -> bool {
        match ty {
            Ty::Var(_) | Ty::Poison => true,
            Ty::Struct(id) => self.info(*id).open,
            Ty::Stack(element, _) => self.is_open(element),
            Ty::Tuple(members) | Ty::List(members) | Ty::Extern(_, members) => {
                members.iter().any(|member| self.is_open(member))
            }
            _ => false,
        }
    }

    /// The kind of a struct-like type.
    pub(crate) fn struct_kind(&self, ty: &Ty) -> Option<StructKind> {
        match ty {
            Ty::Struct(id) => Some(self.info(*id).kind),
            _ => None,
        }
    }

    /// True if the type is a header.
    pub(crate) fn is_header(&self, ty: &Ty) -> bool {
        self.struct_kind(ty) == Some(StructKind::Header)
    }

    /// Replaces type variables by their values.
    pub(crate) fn substitute(&mut self, ty: &Ty, bindings: &Bindings) -> Ty {
        match ty {
            Ty::Var(var) => bindings.get(var).cloned().unwrap_or_else(|| ty.clone()),
            Ty::Struct(id) => {
                let info = self.info(*id);
                if info.args.is_empty() {
                    return ty.clone();
                }
                let (template, args) = (info.template, info.args.clone());
                let args = self.substitute_all(&args, bindings);
                Ty::Struct(self.instance(template, args))
            }
            Ty::Stack(element, size) => {
                Ty::Stack(Rc::new(self.substitute(element, bindings)), *size)
            }
            Ty::Tuple(members) => Ty::Tuple(self.substitute_all(members, bindings)),
            Ty::List(members) => Ty::List(self.substitute_all(members, bindings)),
            Ty::ListOf(element) => Ty::ListOf(Rc::new(self.substitute(element, bindings))),
            Ty::Extern(id, args) => Ty::Extern(*id, self.substitute_all(args, bindings)),
            Ty::Block(id, args) => Ty::Block(*id, self.substitute_all(args, bindings)),
            Ty::Package(id, args) => Ty::Package(*id, self.substitute_all(args, bindings)),
            _ => ty.clone(),
        }
    }

    fn substitute_all(&mut self, types: &Rc<[Ty]>, bindings: &Bindings) -> Rc<[Ty]> {
        types
            .iter()
            .map(|ty| self.substitute(ty, bindings))
            .collect()
    }

    /// Finds values for `vars` so that `pattern` fits `actual`. Types that cannot
    /// be matched are left to the conversion of the argument, which reports them;
    /// a variable that would need two values is reported here with both.
    pub(crate) fn unify(
        &self,
        pattern: &Ty,
        actual: &Ty,
        vars: &[TypeVar],
        bindings: &mut Bindings,
    ) -> Result<(), (Ty, Ty)> {
        match (pattern, actual) {
            (Ty::Var(var), Ty::Poison) if vars.contains(var) => {
                bindings.entry(*var).or_insert(Ty::Poison);
                Ok(())
            }
            (_, Ty::Poison | Ty::Dots) => Ok(()),
            (Ty::Var(var), _) if vars.contains(var) => {
                let bound = bindings.get(var).cloned();
                match bound {
                    None | Some(Ty::Integer | Ty::Invalid | Ty::Poison) => {
                        if bound.is_none() || *actual != Ty::Invalid {
                            bindings.insert(*var, actual.clone());
                        }
                        Ok(())
                    }
                    Some(bound) if bound == *actual => Ok(()),
                    Some(Ty::Bits(_) | Ty::Int(_) | Ty::Serial(_) | Ty::Newtype(_))
                        if *actual == Ty::Integer =>
                    {
                        Ok(())
                    }
                    Some(_) if matches!(actual, Ty::List(_) | Ty::Record(..) | Ty::Invalid) => {
                        Ok(())
                    }
                    Some(Ty::List(_) | Ty::Record(..))
                        if matches!(actual, Ty::Struct(_) | Ty::Tuple(_)) =>
                    {
                        bindings.insert(*var, actual.clone());
                        Ok(())
                    }
                    Some(bound) => Err((bound, actual.clone())),
                }
            }
            (Ty::Struct(left), Ty::Struct(right)) => {
                let (left, right) = (self.info(*left), self.info(*right));
                if left.template == right.template {
                    self.unify_all(&left.args, &right.args, vars, bindings)
                } else {
                    Ok(())
                }
            }
            (Ty::Struct(left), Ty::List(members)) => {
                let fields = self.info(*left).fields.clone();
                fields
                    .iter()
                    .zip(members.iter())
                    .try_for_each(|(field, member)| self.unify(&field.ty, member, vars, bindings))
            }
            (Ty::Struct(left), Ty::Record(members, _)) => {
                let fields = self.info(*left).fields.clone();
                members.iter().try_for_each(|(name, member)| {
                    match fields.iter().find(|field| field.name == *name) {
                        Some(field) => self.unify(&field.ty, member, vars, bindings),
                        None => Ok(()),
                    }
                })
            }
            (Ty::Stack(left, _), Ty::Stack(right, _)) | (Ty::ListOf(left), Ty::ListOf(right)) => {
                self.unify(left, right, vars, bindings)
            }
            (Ty::ListOf(element), Ty::List(members)) => members
                .iter()
                .try_for_each(|member| self.unify(element, member, vars, bindings)),
            (Ty::Tuple(left), Ty::Tuple(right) | Ty::List(right))
            | (Ty::List(left), Ty::List(right)) => self.unify_all(left, right, vars, bindings),
            (Ty::Extern(left, a), Ty::Extern(right, b))
            | (Ty::Block(left, a), Ty::Block(right, b))
            | (Ty::Package(left, a), Ty::Package(right, b))
                if left == right =>
            {
                self.unify_all(a, b, vars, bindings)
            }
            _ => Ok(()),
        }
    }

    fn unify_all(
        &self,
        patterns: &[Ty],
        actuals: &[Ty],
        vars: &[TypeVar],
        bindings: &mut Bindings,
    ) -> Result<(), (Ty, Ty)> {
        patterns
            .iter()
            .zip(actuals)
            .try_for_each(|(pattern, actual)| self.unify(pattern, actual, vars, bindings))
    }

    /// The type as the source would write it.
    pub(crate) fn show(&self, ty: &Ty) -> String {
        match ty {
            Ty::Poison => "?".to_owned(),
            Ty::Void => "void".to_owned(),
            Ty::Bool => "bool".to_owned(),
            Ty::Integer => "int".to_owned(),
            Ty::Bits(width) => format!("bit<{width}>"),
            Ty::Int(width) => format!("int<{width}>"),
            Ty::Varbit(width) => format!("varbit<{width}>"),
            Ty::Error => "error".to_owned(),
            Ty::MatchKind => "match_kind".to_owned(),
            Ty::Str => "string".to_owned(),
            Ty::Enum(id) => self.enums[*id as usize].name.clone(),
            Ty::Serial(id) => self.serials[*id as usize].name.clone(),
            Ty::Newtype(id) => self.newtypes[*id as usize].name.clone(),
            Ty::Struct(id) => self.info(*id).name.clone(),
            Ty::Stack(element, size) => format!("{}[{size}]", self.show(element)),
            Ty::Tuple(members) => format!("tuple<{}>", self.show_all(members)),
            Ty::ListOf(element) => format!("list<{}>", self.show(element)),
            Ty::List(members) => format!("{{{}}}", self.show_all(members)),
            Ty::Record(members, dots) => {
                let mut parts: Vec<String> = members
                    .iter()
                    .map(|(name, ty)| format!("{name} = {}", self.show(ty)))
                    .collect();
                if *dots {
                    parts.push("...".to_owned());
                }
                format!("{{{}}}", parts.join(", "))
            }
            Ty::Dots => "...".to_owned(),
            Ty::Invalid => "{#}".to_owned(),
            Ty::Extern(id, args) => self.show_generic(&self.extern_names[*id as usize], args),
            Ty::Block(id, args) => self.show_generic(&self.block_names[*id as usize], args),
            Ty::Body(id, args) => self.show_generic(&self.body_names[*id as usize], args),
            Ty::Package(id, args) => self.show_generic(&self.package_names[*id as usize], args),
            Ty::Var(var) => self.var_names[var.0 as usize].clone(),
        }
    }

    fn show_generic(&self, name: &str, args: &[Ty]) -> String {
        if args.is_empty() {
            name.to_owned()
        } else {
            format!("{name}<{}>", self.show_all(args))
        }
    }

    fn show_all(&self, types: &[Ty]) -> String {
        types
            .iter()
            .map(|ty| self.show(ty))
            .collect::<Vec<_>>()
            .join(", ")
    }
}
