//! Parser value sets (spec §12.14).

use crate::checker::Checker;
use crate::codes;
use crate::scope::Entity;
use crate::types::{StructKind, Ty};
use stateplane_diagnostics::{Diagnostic, Span};
use stateplane_ir::{self as ir, KeySet, MatchKind};
use stateplane_syntax::tree;

/// Data about a value set besides its IR.
#[derive(Clone)]
pub(crate) struct ValueSetInfo {
    pub span: Span,
    /// Types of the fields, parallel to [`ir::ValueSet::fields`].
    pub types: Vec<Ty>,
}

impl<'a> Checker<'a> {
    /// Declares a value set among the locals of a parser.
    pub(crate) fn value_set(&mut self, decl: &'a tree::ValueSetDecl) {
        let element = self.resolve(&decl.element);
        let size = self.constant_u32(&decl.size, "the size of a value set", 0, u32::MAX);
        let name = self.full_name(&decl.name, &decl.annotations);
        self.claim_name("value set", &name, decl.name.span);
        let mut fields = Vec::new();
        let mut types = Vec::new();
        let sound = element != Ty::Poison
            && self.set_fields(
                &element,
                "",
                MatchKind::Exact,
                decl.element.span,
                &mut fields,
                &mut types,
            );
        let (true, Some(size)) = (sound, size) else {
            self.declare(&decl.name, Entity::Broken);
            return;
        };
        if fields.is_empty() {
            let shown = self.quote(&element);
            self.report(
                Diagnostic::error(
                    codes::NOT_MATCHABLE,
                    decl.element.span,
                    format!("{shown} has no fields to match"),
                )
                .with_help("use a number, or a struct of numbers"),
            );
            self.declare(&decl.name, Entity::Broken);
            return;
        }
        let annotations = self.kept(&decl.annotations);
        self.value_set_interface(&element);
        self.out.value_sets.push(ir::ValueSet {
            name,
            fields,
            size: u64::from(size),
            annotations,
        });
        self.made.value_sets.push(ValueSetInfo {
            span: decl.name.span,
            types,
        });
        let id = self.out.value_sets.len() as u32 - 1;
        self.declare(&decl.name, Entity::ValueSet(id));
    }

    /// Adds the scalars of a member's type, with their paths as names. Whether all of
    /// them can be matched; reports if not.
    fn set_fields(
        &mut self,
        ty: &Ty,
        name: &str,
        match_kind: MatchKind,
        span: Span,
        fields: &mut Vec<ir::ValueSetField>,
        types: &mut Vec<Ty>,
    ) -> bool {
        let joined = |member: &str| match name {
            "" => member.to_owned(),
            outer => format!("{outer}.{member}"),
        };
        match ty {
            Ty::Struct(id) if self.types.info(*id).kind == StructKind::Struct => {
                let members = self.types.info(*id).fields.clone();
                members.iter().fold(true, |sound, member| {
                    let kind = self.field_match(&member.annotations, member.span);
                    let kind = kind.unwrap_or(match_kind);
                    let name = joined(&member.name);
                    self.set_fields(&member.ty, &name, kind, member.span, fields, types) && sound
                })
            }
            Ty::Tuple(members) => {
                let members = members.clone();
                (0u32..)
                    .zip(members.iter())
                    .fold(true, |sound, (position, member)| {
                        let name = joined(&format!("f{position}"));
                        self.set_fields(member, &name, match_kind, span, fields, types) && sound
                    })
            }
            _ => {
                if !self.matchable(ty, span) {
                    return false;
                }
                let width = match self.ir_type(ty, span) {
                    Some(ir::Type::Error | ir::Type::Enum(_)) => 32,
                    Some(lowered) => lowered.scalar_width().unwrap_or(0),
                    None => return false,
                };
                fields.push(ir::ValueSetField {
                    name: name.to_owned(),
                    width,
                    match_kind,
                });
                types.push(ty.clone());
                true
            }
        }
    }

    /// The match kind of `@match(kind)`.
    fn field_match(&mut self, annotations: &[ir::Annotation], span: Span) -> Option<MatchKind> {
        let written = annotations
            .iter()
            .find(|annotation| annotation.name == "match")?;
        match written.word().unwrap_or_default() {
            "exact" => Some(MatchKind::Exact),
            "lpm" => Some(MatchKind::Lpm),
            "ternary" => Some(MatchKind::Ternary),
            "range" => Some(MatchKind::Range),
            other => {
                self.report(
                    Diagnostic::error(
                        codes::UNKNOWN_MATCH_KIND,
                        span,
                        format!("the fields of a value set are not matched as `{other}`"),
                    )
                    .with_help("write @match with exact, lpm, ternary or range"),
                );
                None
            }
        }
    }

    /// The value set that an element of a key set names.
    pub(crate) fn value_set_named(&self, element: &tree::KeysetElement) -> Option<u32> {
        let tree::KeysetElementKind::Value(expr) = &element.kind else {
            return None;
        };
        let tree::ExprKind::Name(path) = &expr.kind else {
            return None;
        };
        match self.find(path)?.entity {
            Entity::ValueSet(id) => Some(id),
            _ => None,
        }
    }

    /// Number of keys that a value set stands for.
    pub(crate) fn value_set_width(&self, id: u32) -> usize {
        self.made.value_sets[id as usize].types.len()
    }

    /// The key sets of a value set at keys of the given types; `None` if they do not
    /// fit, which is reported.
    pub(crate) fn members_of_set(
        &mut self,
        id: u32,
        keys: &[Ty],
        span: Span,
    ) -> Option<Vec<KeySet>> {
        let info = self.made.value_sets[id as usize].clone();
        for (field, key) in info.types.iter().zip(keys) {
            let (found, wanted) = (self.strip_serial(field), self.strip_serial(key));
            let fits = found == wanted
                || self.underlying_width(&found).is_some()
                    && self.underlying_width(&found) == self.underlying_width(&wanted)
                || self.types.is_open(key)
                || *key == Ty::Poison;
            if !fits {
                let (field, key) = (self.quote(field), self.quote(key));
                self.report(
                    Diagnostic::error(
                        codes::TYPE_MISMATCH,
                        span,
                        format!(
                            "the value set has a field of type {field} for a key of type {key}"
                        ),
                    )
                    .with_secondary(info.span, "declared here"),
                );
                return None;
            }
        }
        Some(
            (0..info.types.len() as u32)
                .map(|field| KeySet::Member {
                    set: ir::ValueSetId(id),
                    field,
                })
                .collect(),
        )
    }
}
