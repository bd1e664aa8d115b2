//! Declarations, scopes, and ends of evaluation.

use crate::number::Width;
use crate::table::{Added, Entry};
use crate::types::Type;
use crate::value::Value;
use stateplane_syntax::tree::{
    ActionDecl, Argument, ControlDecl, ControlLocal, Declaration, Expr, ExprKind, FunctionDecl,
    Instantiation, Parameter, ParserDecl, ParserLocal, Program, TableDecl, TypeKind, UnaryOp,
};
use stateplane_syntax::tree::{Type as Written, TypedefTarget};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Statements and parser states after which a run is given up.
const MAX_STEPS: u32 = 2_000_000;

/// Why evaluation does not go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// `exit`.
    Exit,
    /// A parser's transition to `reject`, with the error.
    Reject(Rc<str>),
    /// The specification does not say what happens next.
    Unknown(&'static str),
    /// Something that is not evaluated here.
    Unsupported(String),
}

impl Stop {
    pub(crate) fn unsupported(what: impl Into<String>) -> Stop {
        Stop::Unsupported(what.into())
    }
}

pub(crate) type Run<T> = Result<T, Stop>;

/// A variable, parameter or local constant.
#[derive(Clone, Debug)]
pub(crate) struct Variable<'p> {
    pub(crate) name: &'p str,
    pub(crate) ty: Type,
    pub(crate) value: Value,
}

/// The scope of a function, an action, a block's declarations or a block's body.
#[derive(Debug, Default)]
pub(crate) struct Frame<'p> {
    pub(crate) variables: Vec<Variable<'p>>,
    /// The scope around it in the text.
    pub(crate) outer: Option<usize>,
    /// The parser or control whose declarations these are.
    pub(crate) block: Option<Rc<Instance<'p>>>,
}

/// A parser or control.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Block<'p> {
    Parser(&'p ParserDecl),
    Control(&'p ControlDecl),
}

/// An instance of a parser or control, with those within it.
#[derive(Debug)]
pub(crate) struct Instance<'p> {
    pub(crate) block: Block<'p>,
    /// Names of the instances around it, and its own.
    pub(crate) path: String,
    /// The constructor's arguments.
    pub(crate) settings: Vec<Variable<'p>>,
    pub(crate) parts: BTreeMap<&'p str, Rc<Instance<'p>>>,
}

impl<'p> Instance<'p> {
    pub(crate) fn params(&self) -> &'p [Parameter] {
        match self.block {
            Block::Parser(decl) => &decl.signature.params,
            Block::Control(decl) => &decl.signature.params,
        }
    }

    fn locals(&self) -> &'p [ControlLocal] {
        match self.block {
            Block::Parser(_) => &[],
            Block::Control(decl) => &decl.locals,
        }
    }

    pub(crate) fn action(&self, name: &str) -> Option<&'p ActionDecl> {
        self.locals().iter().find_map(|local| match local {
            ControlLocal::Action(decl) if decl.name.as_str() == name => Some(decl),
            _ => None,
        })
    }

    pub(crate) fn table(&self, name: &str) -> Option<&'p TableDecl> {
        self.locals().iter().find_map(|local| match local {
            ControlLocal::Table(decl) if decl.name.as_str() == name => Some(decl),
            _ => None,
        })
    }
}

/// A program that can be run.
pub(crate) struct Machine<'p> {
    pub(crate) types: BTreeMap<&'p str, Type>,
    constants: BTreeMap<&'p str, Value>,
    functions: BTreeMap<&'p str, &'p FunctionDecl>,
    actions: BTreeMap<&'p str, &'p ActionDecl>,
    blocks: BTreeMap<&'p str, Block<'p>>,
    instances: BTreeMap<&'p str, &'p Instantiation>,
    pub(crate) frames: Vec<Frame<'p>>,
    pub(crate) packet: crate::packet::PacketIn,
    pub(crate) emitted: crate::packet::PacketOut,
    /// Entries of tables by the tables' full names.
    pub(crate) entries: BTreeMap<String, Rc<Vec<Entry<'p>>>>,
    pub(crate) added: BTreeMap<String, Vec<Added>>,
    pub(crate) steps: u32,
    pub(crate) fault: Option<crate::Fault>,
    /// The error that is declared first.
    first_error: Option<&'p str>,
}

impl<'p> Machine<'p> {
    pub(crate) fn new(program: &'p Program) -> Run<Machine<'p>> {
        let mut machine = Machine {
            types: BTreeMap::new(),
            constants: BTreeMap::new(),
            functions: BTreeMap::new(),
            actions: BTreeMap::new(),
            blocks: BTreeMap::new(),
            instances: BTreeMap::new(),
            frames: vec![Frame::default()],
            packet: crate::packet::PacketIn::default(),
            emitted: crate::packet::PacketOut::default(),
            entries: BTreeMap::new(),
            added: BTreeMap::new(),
            steps: 0,
            fault: None,
            first_error: None,
        };
        for declaration in &program.declarations {
            machine.declare(declaration)?;
        }
        Ok(machine)
    }

    fn declare(&mut self, declaration: &'p Declaration) -> Run<()> {
        match declaration {
            Declaration::Const(decl) => {
                let ty = self.ty(&decl.ty)?;
                let value = self.eval(&decl.value)?.fit(&ty)?;
                self.constants.insert(decl.name.as_str(), value);
            }
            Declaration::Function(decl) => {
                let name = decl.prototype.name.as_str();
                if self.functions.insert(name, decl).is_some() {
                    return Err(Stop::unsupported("functions of one name"));
                }
            }
            Declaration::Action(decl) => {
                self.actions.insert(decl.name.as_str(), decl);
            }
            Declaration::Parser(decl) => {
                let name = decl.signature.name.as_str();
                self.blocks.insert(name, Block::Parser(decl));
            }
            Declaration::Control(decl) => {
                let name = decl.signature.name.as_str();
                self.blocks.insert(name, Block::Control(decl));
            }
            Declaration::Struct(decl) => {
                let ty = self.declare_struct(decl)?;
                self.types.insert(decl.name.as_str(), ty);
            }
            Declaration::Enum(decl) => {
                let ty = self.declare_enum(decl)?;
                self.types.insert(decl.name.as_str(), ty);
            }
            Declaration::Typedef(decl) => {
                let ty = self.declare_typedef(decl)?;
                let inner = match &decl.target {
                    TypedefTarget::Type(_) => None,
                    TypedefTarget::Struct(inner) => Some(inner.name.as_str()),
                    TypedefTarget::Enum(inner) => Some(inner.name.as_str()),
                };
                if let Some(inner) = inner {
                    self.types.insert(inner, ty.clone());
                }
                self.types.insert(decl.name.as_str(), ty);
            }
            Declaration::Instantiation(decl) => {
                self.instances.insert(decl.name.as_str(), decl);
            }
            // Errors are their names.
            Declaration::Error(decl) => {
                let first = decl.members.first().map(|name| name.as_str());
                self.first_error = self.first_error.or(first);
            }
            // Match kinds are their names too; what has no body is built in.
            Declaration::MatchKind(_)
            | Declaration::Extern(_)
            | Declaration::ExternFunction(_)
            | Declaration::ParserType(_)
            | Declaration::ControlType(_)
            | Declaration::Package(_) => {}
        }
        Ok(())
    }

    /// The blocks that the package `main` is made of.
    pub(crate) fn pipeline(&mut self) -> Run<Vec<Rc<Instance<'p>>>> {
        let main = self.instances.get("main").copied();
        let main = main.ok_or_else(|| Stop::unsupported("a program without main"))?;
        let mut blocks = Vec::new();
        for arg in &main.args {
            let Some(value) = &arg.value else {
                return Err(Stop::unsupported("a block that is none"));
            };
            let made = match &value.kind {
                ExprKind::Construct { ty, args } => Some((&**ty, args.as_slice())),
                ExprKind::Name(path) => {
                    let made = self.instances.get(path.name.as_str());
                    made.map(|made| (&made.ty, made.args.as_slice()))
                }
                _ => None,
            };
            let (ty, args) = made.ok_or_else(|| Stop::unsupported("a block that is none"))?;
            let instance = self.instantiate(ty, args, None)?;
            blocks.push(instance);
        }
        Ok(blocks)
    }

    fn block_named(&self, ty: &'p Written) -> Option<(&'p str, Block<'p>)> {
        let TypeKind::Named(path) = &ty.kind else {
            return None;
        };
        let name = path.name.as_str();
        Some((name, *self.blocks.get(name)?))
    }

    /// An instance of a parser or control. `path` is its full name; that of a block of the
    /// package is its type's.
    pub(crate) fn instantiate(
        &mut self,
        ty: &'p Written,
        args: &'p [Argument],
        path: Option<String>,
    ) -> Run<Rc<Instance<'p>>> {
        let Some((name, block)) = self.block_named(ty) else {
            return Err(Stop::unsupported("an instance of no parser or control"));
        };
        let path = path.unwrap_or_else(|| name.to_owned());
        let (params, locals): (_, Vec<&'p Instantiation>) = match block {
            Block::Parser(decl) => {
                let locals = decl.locals.iter().filter_map(|local| match local {
                    ParserLocal::Instantiation(decl) => Some(decl),
                    _ => None,
                });
                (&decl.constructor_params, locals.collect())
            }
            Block::Control(decl) => {
                let locals = decl.locals.iter().filter_map(|local| match local {
                    ControlLocal::Instantiation(decl) => Some(decl),
                    _ => None,
                });
                (&decl.constructor_params, locals.collect())
            }
        };
        let settings = self.bind(params, args, &[])?.variables;
        self.frames.push(Frame {
            variables: settings.clone(),
            ..Frame::default()
        });
        let mut parts = BTreeMap::new();
        for local in locals {
            let path = format!("{path}.{}", local.name);
            let part = self.instantiate(&local.ty, &local.args, Some(path))?;
            parts.insert(local.name.as_str(), part);
        }
        self.frames.pop();
        Ok(Rc::new(Instance {
            block,
            path,
            settings,
            parts,
        }))
    }

    /// The scopes from the innermost outwards.
    fn scopes(&self) -> impl Iterator<Item = usize> + '_ {
        let innermost = self.frames.len().checked_sub(1);
        std::iter::successors(innermost, |frame| self.frames[*frame].outer)
    }

    /// Scope and number of the variable that a name stands for.
    pub(crate) fn find_variable(&self, name: &str) -> Option<(usize, usize)> {
        self.scopes().find_map(|frame| {
            let variables = &self.frames[frame].variables;
            let slot = variables
                .iter()
                .rposition(|variable| variable.name == name)?;
            Some((frame, slot))
        })
    }

    pub(crate) fn constant(&self, name: &str) -> Option<&Value> {
        self.constants.get(name)
    }

    pub(crate) fn function(&self, name: &str) -> Option<&'p FunctionDecl> {
        self.functions.get(name).copied()
    }

    /// An action, and the scope of the declarations around it.
    pub(crate) fn find_action(&self, name: &str) -> Option<(&'p ActionDecl, Option<usize>)> {
        let local = self.scopes().find_map(|frame| {
            let block = self.frames[frame].block.as_ref()?;
            Some((block.action(name)?, Some(frame)))
        });
        local.or_else(|| Some((*self.actions.get(name)?, None)))
    }

    /// A table, and the scope of the declarations around it.
    pub(crate) fn find_table(&self, name: &str) -> Option<(&'p TableDecl, usize)> {
        self.scopes().find_map(|frame| {
            let block = self.frames[frame].block.as_ref()?;
            Some((block.table(name)?, frame))
        })
    }

    pub(crate) fn find_instance(&self, name: &str) -> Option<Rc<Instance<'p>>> {
        self.scopes().find_map(|frame| {
            let block = self.frames[frame].block.as_ref()?;
            block.parts.get(name).cloned()
        })
    }

    /// The full name of the block whose code runs.
    pub(crate) fn here(&self) -> String {
        let path = self.scopes().find_map(|frame| {
            let block = self.frames[frame].block.as_ref()?;
            Some(block.path.clone())
        });
        path.unwrap_or_default()
    }

    pub(crate) fn step(&mut self) -> Run<()> {
        self.steps += 1;
        match self.steps {
            0..MAX_STEPS => Ok(()),
            _ => Err(Stop::unsupported("a run of so many steps")),
        }
    }

    /// A number that the compiler has to know.
    pub(crate) fn count(&mut self, expr: &'p Expr) -> Run<u32> {
        let value = self.eval(expr)?;
        u32::try_from(value.index()?).map_err(|_| Stop::unsupported("so great a number"))
    }

    /// Puts the error that is declared first in the place of `NoError`, if that is the
    /// mistake to be made.
    pub(crate) fn mistaken(&self, value: Value) -> Value {
        match (value, self.first_error) {
            (Value::Error(Some(name)), Some(first))
                if &*name == "NoError" && self.is(crate::Fault::FirstErrorIsDefault) =>
            {
                Value::Error(Some(first.into()))
            }
            (Value::Struct(decl, fields), _) => {
                let fields = fields.into_iter().map(|field| self.mistaken(field));
                Value::Struct(decl, fields.collect())
            }
            (value, _) => value,
        }
    }

    pub(crate) fn is(&self, fault: crate::Fault) -> bool {
        self.fault == Some(fault)
    }

    /// The value of an operation with one operand (§8.5 to §8.8).
    pub(crate) fn unary(op: UnaryOp, value: Value) -> Run<Value> {
        let number = |width: Width, value: num_bigint::BigInt| match op {
            UnaryOp::Complement => width.wrap(&(-value - 1)),
            UnaryOp::Negate => width.wrap(&-value),
            UnaryOp::Not | UnaryOp::Plus => value,
        };
        Ok(match (op, value.plain()) {
            (UnaryOp::Not, Value::Bool(value)) => Value::Bool(value.map(|value| !value)),
            (UnaryOp::Plus, value) => value,
            (UnaryOp::Negate, Value::Integer(value)) => Value::Integer(-value),
            (UnaryOp::Complement | UnaryOp::Negate, Value::Number(width, value)) => {
                Value::Number(width, value.map(|value| number(width, value)))
            }
            _ => return Err(Stop::unsupported("such an operation")),
        })
    }
}
