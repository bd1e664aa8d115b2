//! Check of parsers and controls against the types that the architecture requires.

use crate::checker::Checker;
use crate::codes;
use crate::scope::{BodyDecl, Param};
use crate::types::{Bindings, Ty, TypeVar};
use stateplane_diagnostics::Diagnostic;
use stateplane_diagnostics::Span;
use stateplane_syntax::tree::{self};

impl<'a> Checker<'a> {
    /// Checks that the parameters of a parser or control are those of a parser or control type, and
    /// finds the type's type arguments. Reports a mismatch, and returns false then.
    pub(crate) fn fits_block(
        &mut self,
        body: &Ty,
        block: u32,
        args: &[Ty],
        vars: &[TypeVar],
        bindings: &mut Bindings,
        span: Span,
    ) -> bool {
        let Ty::Body(body, type_args) = body else {
            return false;
        };
        let info = self.bodies[*body as usize];
        let signature = self.apply_signature(*body, type_args);
        let wanted = self.blocks[block as usize].clone();
        let open: Bindings = wanted
            .signature
            .vars
            .iter()
            .copied()
            .zip(args.iter().cloned())
            .collect();
        let is_parser = matches!(info.decl, BodyDecl::Parser(_));
        if is_parser != wanted.is_parser {
            self.report(
                Diagnostic::error(
                    codes::BLOCK_PARAMETERS,
                    span,
                    format!(
                        "a {} stands where a `{}` is needed",
                        info.decl.keyword(),
                        wanted.signature.name
                    ),
                )
                .with_secondary(signature.span, "declared here"),
            );
            return false;
        }
        // Those that another architecture gives a value may be left out.
        let optional = |param: &Param<'a>| param.optional || param.default.is_some();
        let left_out = wanted.signature.params.iter().skip(signature.params.len());
        let fewer = self.foreign && left_out.clone().count() > 0 && left_out.clone().all(optional);
        if signature.params.len() != wanted.signature.params.len() && !fewer {
            self.report(
                Diagnostic::error(
                    codes::BLOCK_PARAMETERS,
                    span,
                    format!(
                        "`{}` has {} parameters, but `{}` has {}",
                        signature.name,
                        signature.params.len(),
                        wanted.signature.name,
                        wanted.signature.params.len()
                    ),
                )
                .with_secondary(signature.span, "declared here")
                .with_secondary(wanted.signature.span, "the type is declared here"),
            );
            return false;
        }
        let mut wrong: Option<Diagnostic> = None;
        for (found, wanted_param) in signature.params.iter().zip(&wanted.signature.params) {
            let pattern = self.types.substitute(&wanted_param.ty, &open);
            let unified = self.types.unify(&pattern, &found.ty, vars, bindings);
            let expected = self.types.substitute(&pattern, bindings);
            let same = unified.is_ok() && expected == found.ty;
            let known = found.ty != Ty::Poison && expected != Ty::Poison;
            if found.direction != wanted_param.direction || (known && !same) {
                let expected = match unified {
                    Err((first, _)) => self.types.show(&first),
                    Ok(()) => self.types.show(&expected),
                };
                let direction = direction_word(wanted_param.direction);
                let must = format!("must be `{direction}{expected}`");
                let earlier = wrong.take();
                wrong = Some(match earlier {
                    Some(earlier) => earlier
                        .with_secondary(found.span, format!("and this {must}"))
                        .with_secondary(wanted_param.span, "and this"),
                    None => Diagnostic::error(
                        codes::BLOCK_PARAMETERS,
                        found.span,
                        format!(
                            "the parameter `{}` of `{}` {must}",
                            found.name, signature.name
                        ),
                    )
                    .with_secondary(
                        wanted_param.span,
                        format!("so says `{}`", wanted.signature.name),
                    )
                    .with_secondary(span, "instantiated here"),
                });
            }
        }
        let fits = wrong.is_none();
        if let Some(wrong) = wrong {
            self.report(wrong);
        }
        fits
    }
}

pub(crate) fn direction_word(direction: tree::Direction) -> &'static str {
    match direction {
        tree::Direction::None => "",
        tree::Direction::In => "in ",
        tree::Direction::Out => "out ",
        tree::Direction::InOut => "inout ",
    }
}
