//! The state of a check, and what all its parts use: scopes, reports, and the list of
//! statements under construction.

use crate::build::Builder;
use crate::codes;
use crate::deprecated::WrittenList;
use crate::loops::Rounds;
use crate::scope::{
    BlockInfo, BodyInfo, Entity, ExternInfo, Frame, FunctionInfo, Signature, Symbol,
};
use crate::side_effect::SideEffect;
use crate::specialise::Deferred;
use crate::types::{Ty, Types};
use crate::value::{Access, Instance, Value, ValueKind};
use crate::value_set::ValueSetInfo;
use indexmap::IndexMap;
use stateplane_diagnostics::Span;
use stateplane_diagnostics::{Diagnostic, Diagnostics, SourceMap, nearest};
use stateplane_ir as ir;
use stateplane_syntax::{keyword_meant, tree};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// A name may denote several functions, which differ in their parameters.
pub(crate) type Globals = IndexMap<String, Vec<Symbol>>;

/// The check of one program.
pub(crate) struct Checker<'a> {
    pub sources: &'a SourceMap,
    pub diagnostics: Diagnostics,
    pub types: Types,
    pub out: Builder,
    pub made: Made<'a>,
    pub globals: Globals,
    pub externs: Vec<ExternInfo<'a>>,
    pub functions: Vec<FunctionInfo<'a>>,
    pub blocks: Vec<BlockInfo<'a>>,
    pub bodies: Vec<BodyInfo<'a>>,
    pub packages: Vec<Rc<Signature<'a>>>,
    /// Scopes of the block being checked, innermost last.
    pub frames: Vec<Frame>,
    /// Names that the control or parser being checked declares, and where.
    pub later: Vec<(&'a str, Span)>,
    /// Order of the top-level declaration being checked; only earlier ones are visible.
    pub order: u32,
    pub callable: Callable,
    /// Arguments for the next parameters that need static ones.
    pub statics: Vec<Value>,
    /// Standard metadata of the control for which an action outside of it is being made.
    pub metadata: Option<ir::Place>,
    /// The object whose abstract methods are being checked.
    pub this: Option<Value>,
    /// Type of the package's parameter for which an instance is being made.
    pub expected: Option<Ty>,
    /// True if the program is for another architecture: its externs are not bound, and it is
    /// refused at its `main`.
    pub foreign: bool,
    /// True if each statement tells its place in the source ([`ir::Stmt::At`]).
    pub places: bool,
    /// Parsers and controls that were instantiated and so checked.
    pub checked: BTreeSet<u32>,
    /// Generic functions, which are checked at the end.
    pub generic: Vec<u32>,
    /// Instances made, to bound their number.
    pub instances: u32,
    /// Instances and functions within which the present one is being made.
    pub depth: u32,
    /// Statements and expressions around the present one, those around its instance or
    /// function included.
    pub nesting: u32,
}

/// Data about the entities in [`Builder`]; both are undone together.
#[derive(Clone, Default)]
pub(crate) struct Made<'a> {
    /// Parallel to `Builder::actions`.
    pub actions: Vec<Rc<ActionInfo<'a>>>,
    /// Actions that compute the arguments of another one, and that other one.
    pub runs: BTreeMap<ir::ActionId, ir::ActionId>,
    /// Parallel to `Builder::tables`.
    pub tables: Vec<TableInfo>,
    /// Parallel to `Builder::value_sets`.
    pub value_sets: Vec<ValueSetInfo>,
    /// Parsers and controls that are made when they are applied.
    pub deferred: Vec<Deferred<'a>>,
    /// Parallel to `Builder::parsers`: parameters of `apply`, packets included.
    pub parsers: Vec<Rc<Signature<'a>>>,
    /// Parallel to `Builder::controls`: parameters of `apply`, packets included.
    pub controls: Vec<Rc<Signature<'a>>>,
    /// Functions by their declaration, type arguments and static arguments.
    pub functions: BTreeMap<(u32, Vec<Ty>, Vec<String>), ir::FunctionId>,
    /// Field lists written out in calls.
    pub written_lists: Vec<WrittenList>,
    /// Direct counters and meters that the program uses, and where.
    pub direct: Vec<(Instance, Span)>,
    /// Side effects of packets that others see, with the callables that cause them; see
    /// [`crate::side_effect`].
    pub side_effects: Vec<(ir::Callee, SideEffect)>,
    /// Control-plane names taken: what has it and where that was declared.
    pub names: BTreeMap<(&'static str, String), Span>,
    /// Actions made of one outside of controls for the standard metadata of a control.
    pub metadata_users: BTreeMap<(ir::VarId, u32), ir::ActionId>,
    /// Data of the actions of controls and where they are declared, by control-plane names.
    pub action_names: BTreeMap<String, (Vec<Ty>, Span)>,
}

/// Data about a table besides its IR.
#[derive(Clone)]
pub(crate) struct TableInfo {
    pub span: Span,
    /// Side effects of its keys, done before it is applied.
    pub prelude: Rc<Vec<ir::Stmt>>,
}

/// Data about an action besides its IR.
pub(crate) struct ActionInfo<'a> {
    pub signature: Signature<'a>,
    /// Declaration and order of an action that writes standard metadata which are not in its
    /// scope; it is made anew for each control that uses it.
    pub metadata_user: Option<(&'a tree::ActionDecl, u32)>,
}

/// Kind of the callable whose statements are being made.
#[derive(Clone, Debug)]
pub(crate) enum CallableKind {
    /// A constant expression: statements are not possible.
    Constant,
    /// A parser's states or locals.
    Parser,
    /// A control's locals or `apply` block.
    Control,
    /// An action.
    Action,
    /// A function with the place and type of its result.
    Function(Option<ir::VarId>, Ty),
}

/// The callable whose statements are being made.
#[derive(Clone, Debug)]
pub(crate) struct Callable {
    pub kind: CallableKind,
    /// Full name, for the names of variables.
    pub name: String,
    /// Places of its parameters' declarations.
    pub params: Vec<Span>,
    /// Variables reset on entry.
    pub locals: Vec<ir::VarId>,
    /// Statements of the innermost open block.
    pub block: Vec<ir::Stmt>,
    /// Instances made for direct applications of a type, by body and type arguments.
    pub direct: BTreeMap<(u32, Vec<Ty>), Value>,
    /// Number of temporaries so far.
    pub temporaries: u32,
    /// Loops around the present statement.
    pub loops: u32,
    /// Lower bound of the rounds that its loops begin.
    pub rounds: Rounds,
    /// Variables written so far, one for each write.
    pub written: Vec<ir::VarId>,
    /// True if it stands in a control whose side effects are allowed.
    pub side_effects_allowed: bool,
    /// Side effects in it that are not.
    pub side_effects: Vec<SideEffect>,
    /// True for an action outside of controls, which has no standard metadata.
    pub lacks_metadata: bool,
    /// True if it writes the standard metadata all the same.
    pub wants_metadata: bool,
}

impl Callable {
    /// A callable without statements.
    pub(crate) fn new(kind: CallableKind, name: String) -> Callable {
        Callable {
            kind,
            name,
            params: Vec::new(),
            locals: Vec::new(),
            block: Vec::new(),
            direct: BTreeMap::new(),
            temporaries: 0,
            loops: 0,
            rounds: Rounds::default(),
            written: Vec::new(),
            side_effects_allowed: false,
            side_effects: Vec::new(),
            lacks_metadata: false,
            wants_metadata: false,
        }
    }
}

/// Greatest nesting of instances and generic functions, which bounds the stack.
const MAX_DEPTH: u32 = 32;

/// Greatest nesting of statements and expressions around an instance or function.
const MAX_NESTING: u32 = 250;

/// Order of uses that may see every top-level declaration.
pub(crate) const END: u32 = u32::MAX;

impl<'a> Checker<'a> {
    /// A check that has seen nothing yet.
    pub(crate) fn new(sources: &'a SourceMap) -> Self {
        Checker {
            sources,
            diagnostics: Diagnostics::new(),
            types: Types::default(),
            out: Builder::default(),
            made: Made::default(),
            globals: Globals::default(),
            externs: Vec::new(),
            functions: Vec::new(),
            blocks: Vec::new(),
            bodies: Vec::new(),
            packages: Vec::new(),
            frames: Vec::new(),
            later: Vec::new(),
            order: 0,
            statics: Vec::new(),
            metadata: None,
            this: None,
            expected: None,
            foreign: false,
            places: false,
            callable: Callable::new(CallableKind::Constant, String::new()),
            checked: BTreeSet::new(),
            generic: Vec::new(),
            instances: 0,
            depth: 0,
            nesting: 0,
        }
    }

    /// Reports.
    pub(crate) fn report(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    /// Reports that something of the language or architecture is not supported.
    pub(crate) fn unsupported(&mut self, span: Span, what: &str, help: &str) {
        self.report(
            Diagnostic::error(
                codes::NOT_SUPPORTED,
                span,
                format!("{what} is not supported"),
            )
            .with_help(help),
        );
    }

    /// The type in quotes, for messages.
    pub(crate) fn quote(&self, ty: &Ty) -> String {
        format!("`{}`", self.types.show(ty))
    }

    /// Runs `f` in a new innermost scope.
    pub(crate) fn scoped<R>(&mut self, f: impl FnOnce(&mut Self) -> R) -> R {
        self.frames.push(Frame::new());
        let result = f(self);
        self.frames.pop();
        result
    }

    /// Runs `f` and returns the statements that it made.
    pub(crate) fn nested<R>(&mut self, f: impl FnOnce(&mut Self) -> R) -> (R, Vec<ir::Stmt>) {
        let outer = std::mem::take(&mut self.callable.block);
        let result = f(self);
        (result, std::mem::replace(&mut self.callable.block, outer))
    }

    /// Runs `f` for another callable and returns its result.
    pub(crate) fn in_callable<R>(
        &mut self,
        callable: Callable,
        f: impl FnOnce(&mut Self) -> R,
    ) -> (R, Callable) {
        let outer = std::mem::replace(&mut self.callable, callable);
        let result = f(self);
        (result, std::mem::replace(&mut self.callable, outer))
    }

    /// Runs `f` where only the top-level declarations before `order` are visible.
    pub(crate) fn at_top<R>(&mut self, order: u32, f: impl FnOnce(&mut Self) -> R) -> R {
        let frames = std::mem::take(&mut self.frames);
        let outer = std::mem::replace(&mut self.order, order);
        let result = f(self);
        self.frames = frames;
        self.order = outer;
        result
    }

    /// Runs `f`, which makes an instance or function, unless these nest too deep.
    pub(crate) fn deeper<R>(&mut self, span: Span, f: impl FnOnce(&mut Self) -> R) -> Option<R> {
        if self.depth >= MAX_DEPTH || self.nesting >= MAX_NESTING {
            self.report(
                Diagnostic::error(
                    codes::TOO_MANY_INSTANCES,
                    span,
                    "parsers, controls and generic functions nest too deep",
                )
                .with_help("put some of them beside each other"),
            );
            return None;
        }
        self.depth += 1;
        let result = f(self);
        self.depth -= 1;
        Some(result)
    }

    /// Runs `f`, and forgets what it made. That costs a copy of all that has been made, so
    /// it is done once for many things.
    pub(crate) fn thrown_away(&mut self, f: impl FnOnce(&mut Self)) {
        let out = self.out.clone();
        let made = self.made.clone();
        f(self);
        self.out = out;
        self.made = made;
    }

    /// Takes over the side effects of a callable that has been made.
    pub(crate) fn keep_side_effects(&mut self, owner: ir::Callee, effects: Vec<SideEffect>) {
        let owned = effects.into_iter().map(|effect| (owner, effect));
        self.made.side_effects.extend(owned);
    }

    /// Appends a statement.
    pub(crate) fn emit(&mut self, stmt: ir::Stmt) {
        self.callable.block.push(stmt);
    }

    /// A variable of the present callable, reset on entry.
    pub(crate) fn local(&mut self, name: &str, ty: ir::Type) -> ir::VarId {
        let name = format!("{}.{name}", self.callable.name);
        let var = self.out.var(name, ty);
        self.callable.locals.push(var);
        var
    }

    /// A temporary of the present callable.
    pub(crate) fn temporary(&mut self, ty: ir::Type) -> ir::VarId {
        let number = self.callable.temporaries;
        self.callable.temporaries += 1;
        self.local(&format!("$t{number}"), ty)
    }

    /// A temporary of a source type as a value; unknown if the type has no values
    /// while packets are processed.
    pub(crate) fn temporary_value(&mut self, ty: &Ty, span: Span) -> (Option<ir::Place>, Value) {
        match self.out.ty(&self.types, ty) {
            Some(lowered) => {
                let place = ir::Place::var(self.temporary(lowered));
                let value = Value {
                    ty: ty.clone(),
                    kind: ValueKind::Place(place.clone(), Access::Temporary),
                    span,
                };
                (Some(place), value)
            }
            None => (None, Value::unknown(ty.clone(), span)),
        }
    }

    /// Declares a name in the innermost scope of a block.
    pub(crate) fn declare(&mut self, name: &tree::Ident, entity: Entity) {
        let symbol = Symbol {
            entity,
            span: name.span,
            order: self.order,
        };
        let Some(frame) = self.frames.last_mut() else {
            return self.declare_global(name, symbol.entity);
        };
        let previous = frame.get(name.as_str()).map(|symbol| symbol.span);
        match previous {
            Some(previous) => self.duplicate(name, previous),
            None => {
                frame.insert(name.as_str().to_owned(), symbol);
            }
        }
    }

    /// Declares a name at the top level.
    pub(crate) fn declare_global(&mut self, name: &tree::Ident, entity: Entity) {
        let symbol = Symbol {
            entity,
            span: name.span,
            order: self.order,
        };
        let known = self.globals.entry(name.as_str().to_owned()).or_default();
        let overload = matches!(symbol.entity, Entity::Function(_))
            && known
                .iter()
                .all(|symbol| matches!(symbol.entity, Entity::Function(_)));
        match known.first() {
            Some(first) if !overload => {
                let previous = first.span;
                self.duplicate(name, previous);
            }
            _ => known.push(symbol),
        }
    }

    pub(crate) fn duplicate(&mut self, name: &tree::Ident, previous: Span) {
        self.report(
            Diagnostic::error(
                codes::DUPLICATE_NAME,
                name.span,
                format!("`{name}` is declared twice"),
            )
            .with_label("declared again here")
            .with_secondary(previous, "first declared here")
            .with_help("give one of them another name"),
        );
    }

    /// Symbol that a name denotes, if it is visible. Of overloaded functions this is the first.
    pub(crate) fn find(&self, path: &tree::Path) -> Option<&Symbol> {
        let name = path.name.as_str();
        let frames = if path.absolute { &[] } else { &self.frames[..] };
        frames
            .iter()
            .rev()
            .find_map(|frame| frame.get(name))
            .or_else(|| {
                self.globals
                    .get(name)?
                    .iter()
                    .find(|symbol| symbol.order < self.order)
            })
    }

    /// Like [`Checker::find`]; reports a missing symbol.
    pub(crate) fn lookup(&mut self, path: &tree::Path) -> Option<Symbol> {
        if let Some(symbol) = self.find(path) {
            return Some(symbol.clone());
        }
        let name = path.name.as_str();
        let order = self.order;
        let known = self.globals.get(name);
        let later = self.later.iter().find(|(other, _)| *other == name);
        let diagnostic = match known.and_then(|known| known.first()) {
            None if later.is_some_and(|_| !path.absolute) => {
                let declared = later.map_or(path.span, |(_, span)| *span);
                Diagnostic::error(
                    codes::USED_BEFORE_DECLARATION,
                    path.span,
                    format!("`{path}` is used before it is declared"),
                )
                .with_secondary(declared, "declared here")
                .with_help("move the declaration above its first use")
            }
            Some(symbol) if symbol.order == order => Diagnostic::error(
                codes::RECURSION,
                path.span,
                format!("`{path}` is used in its own declaration"),
            )
            .with_label("P4 has no recursion")
            .with_secondary(symbol.span, "declared here"),
            Some(symbol) => Diagnostic::error(
                codes::USED_BEFORE_DECLARATION,
                path.span,
                format!("`{path}` is used before it is declared"),
            )
            .with_secondary(symbol.span, "declared here")
            .with_help("move the declaration above its first use"),
            None => {
                let diagnostic = Diagnostic::error(
                    codes::UNKNOWN_NAME,
                    path.span,
                    format!("nothing called `{path}` is declared"),
                )
                .with_label("not found in this scope");
                match self.nearest_name(name, path.absolute) {
                    _ if name == "function" => match keyword_meant(name) {
                        Some(help) => diagnostic.with_help(help),
                        None => diagnostic,
                    },
                    Some((near, span)) => diagnostic
                        .with_secondary(span, "declared here")
                        .with_help(format!("did you mean `{near}`?")),
                    None => match keyword_meant(name) {
                        Some(help) => diagnostic.with_help(help),
                        None => diagnostic,
                    },
                }
            }
        };
        self.report(diagnostic);
        None
    }

    fn nearest_name(&self, name: &str, absolute: bool) -> Option<(String, Span)> {
        let frames = if absolute { &[] } else { &self.frames[..] };
        let locals = frames.iter().rev().flat_map(|frame| frame.keys());
        let order = self.order;
        let globals = self
            .globals
            .iter()
            .filter(|(_, known)| known.iter().any(|symbol| symbol.order < order))
            .map(|(name, _)| name);
        let near = nearest(name, locals.chain(globals).map(String::as_str))?;
        let span = frames
            .iter()
            .rev()
            .find_map(|frame| frame.get(near))
            .or_else(|| self.globals.get(near).and_then(|known| known.first()))
            .map(|symbol| symbol.span)?;
        Some((near.to_owned(), span))
    }

    /// The functions of a name that are visible, in order of declaration.
    pub(crate) fn overloads(&self, name: &str) -> Vec<u32> {
        let order = self.order;
        self.globals
            .get(name)
            .into_iter()
            .flatten()
            .filter(|symbol| symbol.order < order)
            .filter_map(|symbol| match symbol.entity {
                Entity::Function(id) => Some(id),
                _ => None,
            })
            .collect()
    }

    /// `file:line:column` of a place.
    pub(crate) fn location(&self, span: Span) -> String {
        match self.sources.get(span.file) {
            Some(file) => {
                let position = file.position(span.start);
                format!("{}:{}:{}", file.name(), position.line, position.column)
            }
            None => String::new(),
        }
    }
}
