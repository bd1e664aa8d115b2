//! Annotations: control-plane names, and the form in which the IR keeps them.

use crate::checker::Checker;
use crate::codes;
use crate::value::{Known, ValueKind};
use stateplane_diagnostics::Diagnostic;
use stateplane_ir as ir;
use stateplane_syntax::tree::{
    self, Annotation, AnnotationBody, AnnotationTokenKind, ControlDecl, Declaration, ParserDecl,
};

/// Annotations whose body is a text, which may be put together with `++`.
const TEXTS: [&str; 3] = ["name", "deprecated", "noWarn"];

/// The annotation of that name, if there is one.
pub(crate) fn find<'t>(annotations: &'t [Annotation], name: &str) -> Option<&'t Annotation> {
    annotations
        .iter()
        .find(|annotation| annotation.name.as_str() == name)
}

/// True if an annotation has a structured body, in brackets.
pub(crate) fn is_structured(annotation: &Annotation) -> bool {
    matches!(
        annotation.body,
        AnnotationBody::Expressions(_) | AnnotationBody::KeyValues(_)
    )
}

/// The control-plane name: `@name` if given, absolute if that starts with a dot, within
/// `prefix` otherwise (spec §18.3).
pub(crate) fn full_name(prefix: &str, name: &str, annotations: &[Annotation]) -> String {
    let written = find(annotations, "name").and_then(Annotation::string);
    let local = written.as_deref().unwrap_or(name);
    match local.strip_prefix('.') {
        Some(absolute) => absolute.to_owned(),
        None if prefix.is_empty() => local.to_owned(),
        None => format!("{prefix}.{local}"),
    }
}

impl<'a> Checker<'a> {
    /// The annotation as the IR keeps it.
    pub(crate) fn kept_annotation(&mut self, annotation: &'a Annotation) -> ir::Annotation {
        self.check_annotation(annotation);
        let text = annotation
            .string()
            .filter(|_| TEXTS.contains(&annotation.name.as_str()));
        let body = match &annotation.body {
            AnnotationBody::Unstructured(_) if let Some(text) = text => {
                ir::AnnotationBody::Tokens(vec![ir::AnnotationToken::String(text.to_string())])
            }
            AnnotationBody::Empty => ir::AnnotationBody::Empty,
            AnnotationBody::Unstructured(tokens) => {
                ir::AnnotationBody::Tokens(tokens.iter().map(kept_token).collect())
            }
            AnnotationBody::Expressions(exprs) => ir::AnnotationBody::Values(
                exprs
                    .iter()
                    .filter_map(|expr| self.annotation_value(expr))
                    .collect(),
            ),
            AnnotationBody::KeyValues(pairs) => ir::AnnotationBody::Pairs(
                pairs
                    .iter()
                    .filter_map(|pair| {
                        let value = self.annotation_value(&pair.value)?;
                        Some((pair.name.to_string(), value))
                    })
                    .collect(),
            ),
        };
        ir::Annotation {
            name: annotation.name.to_string(),
            body,
        }
    }

    /// A value of a structured annotation, known at compile time (spec §20.2).
    fn annotation_value(&mut self, expr: &'a tree::Expr) -> Option<ir::AnnotationValue> {
        let value = self.constant(expr, "a value in an annotation")?;
        match value.kind {
            ValueKind::Const(Known::Int(number)) => Some(ir::AnnotationValue::Int(number)),
            ValueKind::Const(Known::Bool(value)) => Some(ir::AnnotationValue::Bool(value)),
            ValueKind::Const(Known::Str(text)) => Some(ir::AnnotationValue::String(text)),
            ValueKind::Const(Known::Index(_)) => {
                let text = self.sources.snippet(expr.span).to_owned();
                Some(ir::AnnotationValue::String(text))
            }
            ValueKind::List(_) | ValueKind::Record(_) => {
                let shown = self.quote(&value.ty);
                self.report(
                    Diagnostic::error(
                        codes::TYPE_MISMATCH,
                        expr.span,
                        format!("a value in an annotation cannot be of type {shown}"),
                    )
                    .with_help("use a number, a `bool` or a text"),
                );
                None
            }
            _ => None,
        }
    }

    /// Checks the annotations of a declaration that is not kept in the IR.
    pub(crate) fn declaration_annotations(&mut self, declaration: &'a Declaration) {
        let (annotations, type_params) = match declaration {
            Declaration::Const(decl) => (&decl.annotations, None),
            Declaration::Extern(decl) => (&decl.annotations, Some(&decl.type_params)),
            Declaration::ExternFunction(decl) => {
                (&decl.annotations, Some(&decl.prototype.type_params))
            }
            Declaration::Function(decl) => (&decl.annotations, Some(&decl.prototype.type_params)),
            Declaration::Parser(ParserDecl { signature, .. })
            | Declaration::Control(ControlDecl { signature, .. })
            | Declaration::ParserType(signature)
            | Declaration::ControlType(signature)
            | Declaration::Package(signature) => {
                (&signature.annotations, Some(&signature.type_params))
            }
            Declaration::Typedef(decl) => (&decl.annotations, None),
            Declaration::Instantiation(decl) => (&decl.annotations, None),
            Declaration::Error(decl) | Declaration::MatchKind(decl) => (&decl.annotations, None),
            Declaration::Action(_) | Declaration::Struct(_) | Declaration::Enum(_) => return,
        };
        if annotations.is_empty() {
            return;
        }
        self.scoped(|checker| {
            checker.declare_type_params(type_params.map_or(&[], Vec::as_slice));
            checker.kept(annotations);
        });
    }

    /// Checks the body of an annotation of the specification.
    fn check_annotation(&mut self, annotation: &Annotation) {
        let name = annotation.name.as_str();
        let (wrong, help) = match name {
            "name" | "deprecated" => (
                annotation.string().is_none(),
                format!("write a text: @{name}(\"…\")"),
            ),
            "pkginfo" => (
                annotation.body == AnnotationBody::Empty,
                "write keys and values: @pkginfo[name=\"…\"]".to_owned(),
            ),
            "match" => (
                !self.names_match_kind(annotation),
                "write @match with a match kind, as exact, lpm, ternary or range".to_owned(),
            ),
            _ => return,
        };
        if wrong {
            self.report(
                Diagnostic::error(
                    codes::ANNOTATION_BODY,
                    annotation.span,
                    format!("`@{name}` has another body than it must have"),
                )
                .with_help(help),
            );
        }
    }

    fn names_match_kind(&self, annotation: &Annotation) -> bool {
        let mut known = self.types.match_kinds.iter();
        match &annotation.body {
            AnnotationBody::Unstructured(tokens) => match tokens.as_slice() {
                [token] => known.any(|(kind, _)| **kind == *token.text),
                _ => false,
            },
            _ => false,
        }
    }
}

fn kept_token(token: &tree::AnnotationToken) -> ir::AnnotationToken {
    match &token.kind {
        AnnotationTokenKind::String(text) => ir::AnnotationToken::String(text.to_string()),
        AnnotationTokenKind::Number(literal) => {
            ir::AnnotationToken::Number(literal.value.clone(), token.text.to_string())
        }
        AnnotationTokenKind::Word | AnnotationTokenKind::Symbol => {
            ir::AnnotationToken::Other(token.text.to_string())
        }
    }
}
