//! Annotations that look like misspelt known ones.

use super::Lint;
use crate::codes;
use stateplane_diagnostics::{Diagnostic, distance};
use stateplane_ir::EXTENSIONS;
use stateplane_syntax::tree::{
    Annotation, Declaration, ExternMember, StructDecl, TableDecl, TablePropertyValue, TypedefTarget,
};

/// Annotations of the specification and of P4Runtime that mean something here or to the control
/// plane.
const KNOWN: [&str; 14] = [
    "name",
    "hidden",
    "atomic",
    "likely",
    "unlikely",
    "optional",
    "field_list",
    "deprecated",
    "noWarn",
    "tableonly",
    "defaultonly",
    "p4runtime_translation",
    "controller_header",
    "brief",
];

/// Shorter names are not taken for misspelt ones.
const SHORTEST: usize = 4;

impl<'t> Lint<'t, '_> {
    /// Looks at annotations.
    pub(super) fn annotations(&mut self, annotations: &[Annotation]) {
        for annotation in annotations {
            let name = annotation.name.as_str();
            let mut known = KNOWN.iter().chain(&EXTENSIONS);
            if name.len() < SHORTEST || known.clone().any(|known| *known == name) {
                continue;
            }
            let near = known.find(|known| distance(name, known, 1).is_some());
            if let Some(near) = near {
                self.report(
                    Diagnostic::warning(
                        codes::UNKNOWN_ANNOTATION,
                        annotation.name.span,
                        format!("the annotation `@{name}` is not known and has no effect"),
                    )
                    .with_help(format!("did you mean `@{near}`?")),
                );
            }
        }
    }

    /// Looks at the annotations of a declaration of the outermost scope, and of its parts
    /// that are no locals.
    pub(super) fn declaration_annotations(&mut self, declaration: &Declaration) {
        match declaration {
            Declaration::Const(decl) => self.annotations(&decl.annotations),
            Declaration::Extern(decl) => {
                self.annotations(&decl.annotations);
                for member in &decl.members {
                    match member {
                        ExternMember::Constructor(member) => self.annotations(&member.annotations),
                        ExternMember::Method(member) => self.annotations(&member.annotations),
                    }
                }
            }
            Declaration::ExternFunction(decl) => self.annotations(&decl.annotations),
            Declaration::Function(decl) => self.annotations(&decl.annotations),
            Declaration::Action(decl) => self.annotations(&decl.annotations),
            Declaration::Parser(decl) => self.annotations(&decl.signature.annotations),
            Declaration::Control(decl) => self.annotations(&decl.signature.annotations),
            Declaration::ParserType(decl)
            | Declaration::ControlType(decl)
            | Declaration::Package(decl) => self.annotations(&decl.annotations),
            Declaration::Struct(decl) => self.struct_annotations(decl),
            Declaration::Enum(decl) => self.annotations(&decl.annotations),
            Declaration::Typedef(decl) => {
                self.annotations(&decl.annotations);
                if let TypedefTarget::Struct(inner) = &decl.target {
                    self.struct_annotations(inner);
                }
            }
            Declaration::Error(decl) | Declaration::MatchKind(decl) => {
                self.annotations(&decl.annotations);
            }
            Declaration::Instantiation(_) => {}
        }
    }

    fn struct_annotations(&mut self, decl: &StructDecl) {
        self.annotations(&decl.annotations);
        for field in &decl.fields {
            self.annotations(&field.annotations);
        }
    }

    /// Looks at the annotations within a table.
    pub(super) fn table_annotations(&mut self, decl: &TableDecl) {
        for property in &decl.properties {
            self.annotations(&property.annotations);
            match &property.value {
                TablePropertyValue::Key(keys) => {
                    keys.iter()
                        .for_each(|key| self.annotations(&key.annotations));
                }
                TablePropertyValue::Actions(actions) => {
                    actions
                        .iter()
                        .for_each(|action| self.annotations(&action.annotations));
                }
                TablePropertyValue::Entries(entries) => {
                    entries
                        .iter()
                        .for_each(|entry| self.annotations(&entry.annotations));
                }
                TablePropertyValue::Expr(_) => {}
            }
        }
    }
}
