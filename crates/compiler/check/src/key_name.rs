//! Control-plane names of keys that the source gives none (spec §18.3.1), as the
//! reference compiler makes them.

use crate::checker::Checker;
use crate::types::Ty;
use num_bigint::BigInt;
use stateplane_ir as ir;
use stateplane_syntax::tree::{self, ExprKind};

impl<'a> Checker<'a> {
    /// The name of a key, `None` of one that computes:
    ///
    /// | key | name |
    /// |---|---|
    /// | `a.b` | `a.b`; where the field has a `@name`, that |
    /// | `a[1]`, `a[7:4]`, `a & 0xf` | the same, numbers without a width |
    /// | `h.isValid()` | `h.$valid$` |
    /// | `8w0x48` | `0x48` |
    pub(crate) fn key_name(&mut self, expr: &'a tree::Expr) -> Option<String> {
        match &expr.kind {
            ExprKind::Name(path) => {
                let constant = self.find(path).and_then(|symbol| match &symbol.entity {
                    crate::scope::Entity::Value(value) => value.as_int().cloned(),
                    _ => None,
                });
                Some(constant.map_or_else(|| path.name.to_string(), |number| number.to_string()))
            }
            ExprKind::Number(literal) => Some(based(&literal.value, literal.base)),
            ExprKind::Member { base, member } => {
                if matches!(base.kind, ExprKind::Type(_)) {
                    return None;
                }
                let name = self.member_name(base, member.as_str());
                match name.strip_prefix('.') {
                    Some(absolute) => Some(absolute.to_owned()),
                    None => Some(format!("{}.{name}", self.key_name(base)?)),
                }
            }
            ExprKind::Slice { base, high, low } => {
                let (high, low) = (self.key_name(high)?, self.key_name(low)?);
                Some(format!("{}[{high}:{low}]", self.key_name(base)?))
            }
            ExprKind::Index { base, index } => {
                let index = self.key_name(index)?;
                Some(format!("{}[{index}]", self.key_name(base)?))
            }
            ExprKind::Binary {
                op: tree::BinaryOp::BitAnd,
                left,
                right,
                ..
            } => {
                let right = self.key_name(right)?;
                Some(format!("{} & {right}", self.key_name(left)?))
            }
            ExprKind::Call { callee, args, .. } if args.is_empty() => match &callee.kind {
                ExprKind::Member { base, member } if member.as_str() == "isValid" => {
                    Some(format!("{}.$valid$", self.key_name(base)?))
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// The name of a member: that of the field's `@name`, if it has one.
    fn member_name(&mut self, base: &'a tree::Expr, member: &str) -> String {
        // The key was checked already: this looks only for the type.
        let (value, _) = self.nested(|checker| checker.expr(base));
        let Ty::Struct(id) = value.ty else {
            return member.to_owned();
        };
        let info = self.types.info(id);
        let field = info.fields.iter().find(|field| field.name == member);
        field
            .and_then(|field| ir::Annotation::find(&field.annotations, "name"))
            .and_then(ir::Annotation::string)
            .unwrap_or(member)
            .to_owned()
    }
}

/// A number in one of the bases of literals.
fn based(value: &BigInt, base: u32) -> String {
    match base {
        16 => format!("{value:#x}"),
        8 => format!("{value:#o}"),
        2 => format!("{value:#b}"),
        _ => value.to_string(),
    }
}
