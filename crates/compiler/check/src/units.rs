//! Atomic blocks, and the units of registers that they use: `@unit`, `@uses` and `@apart`.

use crate::annotation;
use crate::checker::Checker;
use crate::codes;
use crate::scope::Entity;
use crate::types::Ty;
use crate::value::Value;
use stateplane_diagnostics::{Diagnostic, Span};
use stateplane_ir::{self as ir, APART, BESIDE, MOST_UNITS, Op, Stmt, UNIT, USES};
use stateplane_syntax::tree::{self, AnnotationBody, AnnotationToken, AnnotationTokenKind};

impl<'a> Checker<'a> {
    /// Checks a block among statements.
    pub(crate) fn nested_block(&mut self, block: &'a tree::Block) {
        let annotations = &block.annotations;
        let is_atomic = annotation::find(annotations, "atomic").is_some();
        let apart = annotation::find(annotations, APART);
        let uses = annotations.iter().filter(|it| it.name.as_str() == USES);
        if let Some(annotation) = apart.or_else(|| uses.clone().next())
            && !is_atomic
        {
            let name = &annotation.name;
            self.report(
                Diagnostic::error(
                    codes::MISPLACED_ANNOTATION,
                    annotation.span,
                    format!("`@{name}` stands on a block that is not atomic"),
                )
                .with_help(format!("write `@atomic @{name}`")),
            );
        }
        let ((), statements) = self.nested(|checker| {
            for annotation in uses {
                checker.used_units(annotation);
            }
            checker.block(block);
        });
        if let Some(annotation) = apart {
            self.stays_apart(&statements, annotation.span);
            self.emit(Stmt::Apart(statements));
        } else if is_atomic {
            self.emit(Stmt::Atomic(statements));
        } else {
            self.callable.block.extend(statements);
        }
    }

    /// Checks `@beside` of a register that was just added; the other register may be declared later.
    pub(crate) fn register_beside(&mut self, annotations: &'a [tree::Annotation]) {
        let (Some(written), Some(register)) = (
            annotation::find(annotations, BESIDE),
            self.out.registers.last(),
        ) else {
            return;
        };
        if register.beside().is_none() {
            self.wrong_body(
                written,
                "write a register's name and an index: @beside[\"…\", 0]",
            );
        }
    }

    /// Checks `@unit` of a register that was just added.
    pub(crate) fn register_units(&mut self, annotations: &'a [tree::Annotation]) {
        let (Some(written), Some(register)) = (
            annotation::find(annotations, UNIT),
            self.out.registers.last(),
        ) else {
            return;
        };
        let Some((name, elements)) = register.unit() else {
            return self.wrong_body(written, "write a name and a number: @unit[\"…\", 4]");
        };
        let size = register.size;
        if !size.is_multiple_of(elements) {
            return self.report(Diagnostic::error(
                codes::UNITS,
                written.span,
                format!("{size} elements do not fill units of {elements}"),
            ));
        }
        let name = name.to_owned();
        let mut others = self.out.registers.iter();
        let other = others.find(|it| it.unit().is_some_and(|(of, _)| of == name));
        if let Some(other) = other
            && (other.size, other.unit().map(|(_, elements)| elements)) != (size, Some(elements))
        {
            let of_other = other.unit().map_or(0, |(_, elements)| elements);
            let diagnostic = Diagnostic::error(
                codes::UNITS,
                written.span,
                format!(
                    "the register is not like `{}`, which has the same units",
                    other.name
                ),
            )
            .with_help(format!(
                "give it {} elements in units of {of_other}, or other units",
                other.size
            ));
            self.report(diagnostic);
        }
    }

    /// Checks `@uses("units", number, …)`.
    fn used_units(&mut self, written: &'a tree::Annotation) {
        let parts = match &written.body {
            AnnotationBody::Unstructured(tokens) => parts(tokens),
            _ => None,
        };
        let Some((name, numbers)) = parts else {
            return self.wrong_body(
                written,
                "write the name of units, and variables with numbers of units: @uses(\"…\", number)",
            );
        };
        if numbers.len() > MOST_UNITS {
            self.report(Diagnostic::error(
                codes::UNITS,
                written.span,
                format!("a block uses at most {MOST_UNITS} units of one name"),
            ));
            return;
        }
        if ir::units_of(&self.out.registers, name).is_none() {
            let mut named = self.out.registers.iter().filter_map(|it| it.unit());
            if named.any(|(of, _)| of == name) {
                // Registers that do not go together were reported.
                return;
            }
            self.report(
                Diagnostic::error(
                    codes::UNITS,
                    written.span,
                    format!("no register has units of the name `{name}`"),
                )
                .with_help(format!("annotate registers: @unit[\"{name}\", …]")),
            );
            return;
        }
        let numbers: Vec<ir::Expr> = numbers
            .into_iter()
            .filter_map(|number| self.unit_number(number))
            .collect();
        if !numbers.is_empty() {
            self.emit(Stmt::Op(Op::Uses {
                units: name.to_owned(),
                numbers,
            }));
        }
    }

    /// The number of a unit, from the name of a variable.
    fn unit_number(&mut self, token: &AnnotationToken) -> Option<ir::Expr> {
        let name = tree::Ident {
            name: token.text.clone(),
            span: token.span,
        };
        let path = tree::Path {
            absolute: false,
            name,
            span: token.span,
        };
        let symbol = self.lookup(&path)?;
        match symbol.entity {
            Entity::Value(value) if matches!(value.ty, Ty::Bits(_)) => {
                let span = token.span;
                Some(self.lower(Value { span, ..value }))
            }
            Entity::Broken => None,
            Entity::Value(Value { ty: Ty::Poison, .. }) => None,
            _ => {
                self.report(
                    Diagnostic::error(
                        codes::UNITS,
                        token.span,
                        format!("`{path}` is no number of a unit"),
                    )
                    .with_secondary(symbol.span, "declared here")
                    .with_help("name a variable or parameter of some type bit<W>"),
                );
                None
            }
        }
    }

    /// Reports what would make a block that stands apart more than operations on registers.
    fn stays_apart(&mut self, statements: &[Stmt], span: Span) {
        if let Some(what) = statements.iter().find_map(not_apart) {
            self.report(
                Diagnostic::error(
                    codes::APART,
                    span,
                    format!("a block that stands apart has {what}"),
                )
                .with_help("leave in it what reads, computes and writes, with `if` at most"),
            );
        }
    }

    fn wrong_body(&mut self, written: &tree::Annotation, help: &str) {
        let name = &written.name;
        self.report(
            Diagnostic::error(
                codes::ANNOTATION_BODY,
                written.span,
                format!("`@{name}` has another body than it must have"),
            )
            .with_help(help),
        );
    }
}

/// A string and at least one word, with commas between them.
fn parts(tokens: &[AnnotationToken]) -> Option<(&str, Vec<&AnnotationToken>)> {
    let (first, rest) = tokens.split_first()?;
    let AnnotationTokenKind::String(name) = &first.kind else {
        return None;
    };
    let words: Option<Vec<&AnnotationToken>> = rest
        .chunks(2)
        .map(|pair| match pair {
            [comma, word] if &*comma.text == "," && word.kind == AnnotationTokenKind::Word => {
                Some(word)
            }
            _ => None,
        })
        .collect();
    Some((name, words.filter(|words| !words.is_empty())?))
}

/// The statement that a block that stands apart cannot have, in words.
fn not_apart(stmt: &Stmt) -> Option<&'static str> {
    let within = |stmts: &[Stmt]| stmts.iter().find_map(not_apart);
    match stmt {
        Stmt::Call { .. } => Some("a call"),
        Stmt::Apply { .. } => Some("a table"),
        Stmt::Loop { .. } => Some("a loop"),
        Stmt::Break | Stmt::Continue | Stmt::Return | Stmt::Exit => Some("a way out of it"),
        Stmt::Atomic(_) | Stmt::Apart(_) => Some("another atomic block"),
        Stmt::Op(Op::Uses { .. }) => Some("units"),
        Stmt::If {
            then, otherwise, ..
        } => within(then).or_else(|| within(otherwise)),
        Stmt::Switch { cases, default, .. } => {
            let mut bodies = cases.iter();
            bodies
                .find_map(|(_, body)| within(body))
                .or_else(|| within(default))
        }
        Stmt::Block(body) => within(body),
        _ => None,
    }
}
