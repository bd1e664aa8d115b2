//! Expressions as paths into headers and metadata.

use stateplane_ir::{Program, Type};
use stateplane_syntax::tree::{BinaryOp, Expr, ExprKind, TypeKind};

/// `hdr.ipv4.srcAddr` as its parts; `None` for other expressions.
pub(crate) fn parts(expr: &Expr) -> Option<Vec<String>> {
    match &expr.kind {
        ExprKind::Name(path) => Some(vec![path.name.to_string()]),
        ExprKind::Member { base, member } => {
            let mut parts = parts(base)?;
            parts.push(member.to_string());
            Some(parts)
        }
        ExprKind::Index { base, index } => {
            let mut parts = parts(base)?;
            let index = match &index.kind {
                ExprKind::Number(number) => number.value.to_string(),
                _ => "*".to_owned(),
            };
            parts.last_mut()?.push_str(&format!("[{index}]"));
            Some(parts)
        }
        _ => None,
    }
}

/// The type of what `parts`, behind a root of type `root`, lead to.
pub(crate) fn type_of(program: &Program, root: Type, parts: &[String]) -> Option<Type> {
    let mut ty = root;
    for part in parts {
        let (name, indexed) = match part.split_once('[') {
            Some((name, _)) => (name, true),
            None => (part.as_str(), false),
        };
        let (Type::Struct(id) | Type::Header(id) | Type::Union(id)) = ty else {
            return None;
        };
        let def = program.structs.get(id.index())?;
        ty = def.fields.iter().find(|field| field.name == name)?.ty;
        if let (true, Type::Stack(stack)) = (indexed, ty) {
            ty = program.stacks.get(stack.index())?.element;
        }
    }
    Some(ty)
}

/// Names in scope of a key, with their types.
pub(crate) struct Roots<'p> {
    /// Types of parts are here.
    pub(crate) program: &'p Program,
    /// Name and type of each parameter.
    pub(crate) params: Vec<(String, Type)>,
}

impl Roots<'_> {
    /// The type of a path that begins with a parameter.
    pub(crate) fn type_of(&self, parts: &[String]) -> Option<Type> {
        let (root, rest) = parts.split_first()?;
        let (_, ty) = self.params.iter().find(|(name, _)| name == root)?;
        type_of(self.program, *ty, rest)
    }

    /// Width of the `bit<W>` that an expression gives; `None` if it gives something else or is
    /// unknown.
    pub(crate) fn width(&self, expr: &Expr) -> Option<u32> {
        match &expr.kind {
            ExprKind::Number(number) => number.width.filter(|w| !w.signed).map(|w| w.bits),
            ExprKind::Cast { ty, .. } => match &ty.kind {
                TypeKind::Bit(None) => Some(1),
                TypeKind::Bit(Some(width)) => literal(width),
                _ => None,
            },
            ExprKind::Slice { high, low, .. } => {
                Some(literal(high)?.checked_sub(literal(low)?)?.saturating_add(1))
            }
            ExprKind::Conditional {
                then, otherwise, ..
            } => self.width(then).or_else(|| self.width(otherwise)),
            ExprKind::Unary { operand, .. } => self.width(operand),
            ExprKind::Binary {
                op, left, right, ..
            } => match op {
                BinaryOp::Concat => self.width(left)?.checked_add(self.width(right)?),
                _ => self.width(left).or_else(|| self.width(right)),
            },
            _ => match self.type_of(&parts(expr)?)? {
                Type::Bits(width) => Some(width),
                _ => None,
            },
        }
    }

    /// The headers, as written, that must be valid for an expression to mean anything. What
    /// only one side of a condition reads is left to the condition.
    pub(crate) fn headers(&self, expr: &Expr, into: &mut Vec<String>) {
        match &expr.kind {
            ExprKind::Cast { operand, .. } | ExprKind::Unary { operand, .. } => {
                self.headers(operand, into);
            }
            ExprKind::Slice { base, .. } => self.headers(base, into),
            ExprKind::Binary { left, right, .. } => {
                self.headers(left, into);
                self.headers(right, into);
            }
            ExprKind::Conditional { condition, .. } => self.headers(condition, into),
            ExprKind::Member { base, .. } => {
                if let Some(way) = parts(base)
                    && let Some(Type::Header(_)) = self.type_of(&way)
                {
                    let way = way.join(".");
                    if !into.contains(&way) {
                        into.push(way);
                    }
                }
            }
            _ => {}
        }
    }
}

fn literal(expr: &Expr) -> Option<u32> {
    match &expr.kind {
        ExprKind::Number(number) => u32::try_from(&number.value).ok(),
        _ => None,
    }
}
