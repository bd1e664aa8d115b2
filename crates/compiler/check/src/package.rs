//! `main`: the V1Switch and its six blocks.

use crate::checker::{Callable, CallableKind, Checker, END};
use crate::codes;
use crate::scope::{Entity, Signature};
use crate::types::{Bindings, Ty};
use crate::value::{Instance, Value, ValueKind};
use num_bigint::BigInt;
use num_traits::ToPrimitive;
use stateplane_diagnostics::{Diagnostic, Span};
use stateplane_ir as ir;
use stateplane_syntax::tree::{self, AnnotationBody, AnnotationTokenKind, ExprKind, TypeKind};
use std::collections::BTreeMap;
use std::rc::Rc;

/// The instance that a program is.
const MAIN: &str = "main";

/// The package that this switch runs.
const V1SWITCH: &str = "V1Switch";

/// Parsers and controls of [`V1SWITCH`].
const BLOCKS: usize = 6;

/// True if the program's `main` is not v1model's: it is checked, but not run.
pub(crate) fn is_foreign(program: &tree::Program) -> bool {
    let v1switch = program
        .declarations
        .iter()
        .find_map(|declaration| match declaration {
            tree::Declaration::Package(decl) if decl.name.as_str() == V1SWITCH => Some(decl),
            _ => None,
        });
    if v1switch.is_some_and(|decl| decl.params.len() != BLOCKS) {
        return true;
    }
    !program.declarations.iter().any(|declaration| {
        let tree::Declaration::Instantiation(decl) = declaration else {
            return false;
        };
        let (TypeKind::Named(path) | TypeKind::Specialized { base: path, .. }) = &decl.ty.kind
        else {
            return false;
        };
        decl.name.as_str() == MAIN && path.name.as_str() == V1SWITCH
    })
}

impl<'a> Checker<'a> {
    /// Reports that no package is called `main`.
    pub(crate) fn no_main(&mut self) {
        let help = "end it with `V1Switch(parser(), verify(), ingress(), egress(), compute(), deparser()) main;`";
        let other = self.globals.get(MAIN).and_then(|known| known.first());
        let (span, message) = match other {
            Some(symbol) => {
                let message = format!("`main` is {}, not a package", symbol.entity.noun());
                (symbol.span, message)
            }
            None => {
                let first = self.sources.files().next();
                let span = first.map_or_else(Span::default, |(id, _)| Span::new(id, 0, 0));
                (span, "the program has no `main`".to_owned())
            }
        };
        self.report(Diagnostic::error(codes::NO_MAIN, span, message).with_help(help));
    }

    /// Makes the pipeline of the package called `main`.
    pub(crate) fn main_package(
        &mut self,
        packages: &[(&'a tree::Instantiation, u32)],
    ) -> Option<(ir::Pipeline, Vec<ir::FieldList>)> {
        self.callable = Callable::new(CallableKind::Constant, String::new());
        let main = packages.iter().find(|(decl, _)| decl.name.as_str() == MAIN);
        let &(decl, order) = main?;
        self.order = order;
        let (path, type_args) = match &decl.ty.kind {
            TypeKind::Named(path) => (path, [].as_slice()),
            TypeKind::Specialized { base, args } => (base, args.as_slice()),
            _ => return None,
        };
        let Some(Entity::Package(id)) = self.lookup(path).map(|symbol| symbol.entity) else {
            return None;
        };
        let package = self.packages[id as usize].clone();
        if package.name != V1SWITCH || package.params.len() != BLOCKS || package.vars.len() != 2 {
            self.unsupported(
                decl.ty.span,
                &format!("the package `{}`", package.name),
                "write the program for v1model's `V1Switch`",
            );
            return None;
        }
        let mut bindings = self.written_bindings(&package, type_args, decl.ty.span)?;
        let pairs = self.pair_or_report(
            package.name,
            package.span,
            &package.params,
            &decl.args,
            decl.span,
        )?;
        let mut blocks = Vec::new();
        for (position, pair) in pairs.into_iter().enumerate() {
            let expr = pair.and_then(|pair| decl.args[pair].value.as_ref());
            blocks.push(
                expr.and_then(|expr| {
                    self.package_argument(expr, &package, position, &mut bindings)
                }),
            );
        }
        let blocks: Option<Vec<Instance>> = blocks.into_iter().collect();
        self.pipeline(blocks?, &package, &bindings, decl)
    }

    fn package_argument(
        &mut self,
        expr: &'a tree::Expr,
        package: &Rc<Signature<'a>>,
        position: usize,
        bindings: &mut Bindings,
    ) -> Option<Instance> {
        let ExprKind::Construct { ty, args } = &expr.kind else {
            if !matches!(expr.kind, ExprKind::Malformed) {
                self.report(
                    Diagnostic::error(
                        codes::BLOCK_PARAMETERS,
                        expr.span,
                        format!(
                            "the argument `{}` of `{}` is not an instance",
                            package.params[position].name, package.name
                        ),
                    )
                    .with_help("make one: Name()"),
                );
            }
            return None;
        };
        // A block is called after its type: `@name` does not rename it.
        let name = match &ty.kind {
            TypeKind::Named(path) | TypeKind::Specialized { base: path, .. } => {
                Some(path.name.to_string())
            }
            _ => None,
        };
        let value: Value = self.construct(ty, args, name, &[], expr.span);
        let Ty::Block(block, block_args) = package.params[position].ty.clone() else {
            return None;
        };
        let Ty::Body(..) = value.ty else {
            if !value.is_poison() {
                let shown = self.quote(&value.ty);
                self.report(Diagnostic::error(
                    codes::BLOCK_PARAMETERS,
                    expr.span,
                    format!(
                        "{shown} is not a `{}`",
                        self.blocks[block as usize].signature.name
                    ),
                ));
            }
            return None;
        };
        let vars = package.vars.clone();
        let fits = self.fits_block(&value.ty, block, &block_args, &vars, bindings, expr.span);
        match value.kind {
            ValueKind::Instance(instance) if fits => Some(instance),
            _ => None,
        }
    }

    fn pipeline(
        &mut self,
        blocks: Vec<Instance>,
        package: &Signature<'a>,
        bindings: &Bindings,
        decl: &'a tree::Instantiation,
    ) -> Option<(ir::Pipeline, Vec<ir::FieldList>)> {
        let [
            Instance::Parser(parser),
            Instance::Control(verify_checksum),
            Instance::Control(ingress),
            Instance::Control(egress),
            Instance::Control(compute_checksum),
            Instance::Control(deparser),
        ] = blocks[..]
        else {
            return None;
        };
        let headers_ty = bindings.get(&package.vars[0])?.clone();
        let metadata_ty = bindings.get(&package.vars[1])?.clone();
        let headers = self.ir_type(&headers_ty, decl.span)?;
        let metadata = self.ir_type(&metadata_ty, decl.span)?;
        let standard = self.made.parsers[parser.index()].params.get(3)?.ty.clone();
        let ir::Type::Struct(standard_metadata) = self.ir_type(&standard, decl.span)? else {
            return None;
        };
        let mut lists = BTreeMap::new();
        self.field_lists(&metadata_ty, &mut Vec::new(), &mut lists);
        let mut field_lists: Vec<ir::FieldList> = lists
            .into_iter()
            .map(|(number, fields)| ir::FieldList { number, fields })
            .collect();
        let standard = ir::Type::Struct(standard_metadata);
        field_lists.extend(self.written_field_lists(metadata, standard));
        let pipeline = ir::Pipeline {
            parser,
            verify_checksum,
            ingress,
            egress,
            compute_checksum,
            deparser,
            headers,
            metadata,
            standard_metadata,
        };
        self.check_side_effects(&metadata_ty, &pipeline);
        self.out.interface.package = self.kept(&decl.annotations);
        Some((pipeline, field_lists))
    }

    /// Collects `@field_list` of the members of the user metadata, inwards.
    fn field_lists(
        &mut self,
        ty: &Ty,
        path: &mut Vec<u32>,
        lists: &mut BTreeMap<u32, Vec<Vec<u32>>>,
    ) {
        let Ty::Struct(id) = ty else { return };
        let fields = self.types.info(*id).fields.clone();
        for (position, field) in (0u32..).zip(fields.iter()) {
            path.push(position);
            for number in &field.field_lists {
                lists.entry(*number).or_default().push(path.clone());
            }
            self.field_lists(&field.ty, path, lists);
            path.pop();
        }
    }

    /// The numbers of a `@field_list`: literals, constants, or members of enums with
    /// underlying type.
    pub(crate) fn field_list_numbers(&mut self, annotations: &'a [tree::Annotation]) -> Vec<u32> {
        let mut numbers = Vec::new();
        for annotation in annotations {
            if annotation.name.as_str() != "field_list" {
                continue;
            }
            match &annotation.body {
                AnnotationBody::Expressions(exprs) => {
                    for expr in exprs {
                        let number = self.constant_u32(expr, "the number of a field list", 0, 255);
                        numbers.extend(number);
                    }
                }
                AnnotationBody::Unstructured(tokens) => {
                    for item in tokens.split(|token| &*token.text == ",") {
                        match self.field_list_number(item) {
                            Some(number) => numbers.push(number),
                            None => self.field_list_error(annotation.span),
                        }
                    }
                }
                AnnotationBody::Empty | AnnotationBody::KeyValues(_) => {
                    self.field_list_error(annotation.span);
                }
            }
        }
        numbers.dedup();
        numbers
    }

    fn field_list_error(&mut self, span: stateplane_diagnostics::Span) {
        self.report(
            Diagnostic::error(
                codes::FIELD_LIST,
                span,
                "`@field_list` does not give numbers from 0 to 255",
            )
            .with_help("write for example @field_list(1), or @field_list(1, 2)"),
        );
    }

    fn field_list_number(&self, tokens: &[tree::AnnotationToken]) -> Option<u32> {
        let number = match tokens {
            [token] => match &token.kind {
                AnnotationTokenKind::Number(literal) => literal.value.clone(),
                AnnotationTokenKind::Word => match &self.global(&token.text)? {
                    Entity::Value(value) => value.as_int()?.clone(),
                    _ => return None,
                },
                _ => return None,
            },
            [base, dot, member] if &*dot.text == "." => match self.global(&base.text)? {
                Entity::Type(Ty::Serial(id)) => self.types.serials[*id as usize]
                    .members
                    .iter()
                    .find(|(name, _)| **name == *member.text)
                    .map(|(_, value)| value.clone())?,
                _ => return None,
            },
            _ => return None,
        };
        number.to_u32().filter(|_| number <= BigInt::from(255))
    }

    fn global(&self, name: &str) -> Option<&Entity> {
        self.globals.get(name)?.first().map(|symbol| &symbol.entity)
    }

    /// Reports direct counters and meters that are used, but belong to no table. Such a
    /// counter counts nothing, as in the reference compiler; what a meter would read is
    /// not known.
    pub(crate) fn unattached(&mut self) {
        for (instance, span) in std::mem::take(&mut self.made.direct) {
            match instance {
                Instance::DirectCounter(id) if self.out.counters[id.index()].table.is_none() => {
                    self.report(
                        Diagnostic::warning(
                            codes::UNATTACHED_COUNTER,
                            span,
                            "this direct counter belongs to no table and counts nothing",
                        )
                        .with_help("name it in a table: counters = …;"),
                    );
                }
                Instance::DirectMeter(id) if self.out.meters[id.index()].table.is_none() => {
                    self.report(
                        Diagnostic::error(
                            codes::UNATTACHED_METER,
                            span,
                            "this direct meter belongs to no table",
                        )
                        .with_help("name it in a table: meters = …;"),
                    );
                }
                _ => {}
            }
        }
    }

    /// Checks what `main` does not reach, and generic functions for all types.
    pub(crate) fn uninstantiated(&mut self) {
        self.order = END;
        self.callable = Callable::new(CallableKind::Constant, String::new());
        self.thrown_away(|checker| {
            for id in std::mem::take(&mut checker.generic) {
                checker.check_generic(id);
            }
            for body in 0..checker.bodies.len() as u32 {
                if !checker.checked.contains(&body) {
                    checker.check_uninstantiated(body);
                }
            }
        });
    }
}
