//! Expressions and types.

use super::Printer;
use crate::tree::{
    Argument, BinaryOp, Expr, ExprKind, Keyset, KeysetElement, KeysetElementKind, NamedExpr,
    NumberLiteral, Type, TypeKind,
};

impl Printer {
    pub(super) fn expr(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Malformed => self.put("/* malformed */"),
            ExprKind::Number(number) => self.number(number),
            ExprKind::String(text) => self.string(text),
            ExprKind::Bool(value) => self.put_display(value),
            ExprKind::Dots => self.put("..."),
            ExprKind::Invalid => self.put("{#}"),
            ExprKind::This => self.put("this"),
            ExprKind::Name(path) => self.put_display(path),
            ExprKind::Type(ty) => self.ty(ty),
            ExprKind::Member { base, member } => {
                self.operand(base, None);
                self.put(".");
                self.put_display(member);
            }
            ExprKind::Index { base, index } => {
                self.operand(base, None);
                self.put("[");
                self.expr(index);
                self.put("]");
            }
            ExprKind::Slice { base, high, low } => {
                self.operand(base, None);
                self.put("[");
                self.expr(high);
                self.put(":");
                self.expr(low);
                self.put("]");
            }
            ExprKind::PlusSlice { base, low, width } => {
                self.operand(base, None);
                self.put("[");
                self.expr(low);
                self.put("+:");
                self.expr(width);
                self.put("]");
            }
            ExprKind::Unary { op, operand } => {
                self.put(op.symbol());
                self.operand(operand, None);
            }
            ExprKind::Binary {
                op, left, right, ..
            } => {
                self.operand(left, Some(*op));
                self.put(" ");
                self.put(op.symbol());
                self.put(" ");
                self.operand(right, None);
            }
            ExprKind::Conditional {
                condition,
                then,
                otherwise,
            } => {
                self.operand(condition, None);
                self.put(" ? ");
                self.operand(then, None);
                self.put(" : ");
                self.operand(otherwise, None);
            }
            ExprKind::Cast { ty, operand } => {
                self.put("(");
                self.ty(ty);
                self.put(")");
                self.operand(operand, None);
            }
            ExprKind::Call {
                callee,
                type_args,
                args,
            } => {
                self.operand(callee, None);
                if !type_args.is_empty() {
                    self.type_arguments(type_args);
                }
                self.arguments(args);
            }
            ExprKind::Construct { ty, args } => {
                self.ty(ty);
                self.arguments(args);
            }
            ExprKind::List(list) => {
                self.put("{");
                self.separated(list, Self::expr);
                self.put("}");
            }
            ExprKind::Struct { fields, rest } => {
                self.put("{");
                self.separated(fields, Self::named_expr);
                if rest.is_some() {
                    self.put(", ...");
                }
                self.put("}");
            }
        }
    }

    /// An operand, in parentheses if operators are in it; `chained` names the operator whose
    /// left operand it is.
    fn operand(&mut self, expr: &Expr, chained: Option<BinaryOp>) {
        let bare = match &expr.kind {
            ExprKind::Binary { op, .. } => chained == Some(*op),
            ExprKind::Conditional { .. } | ExprKind::Cast { .. } | ExprKind::Unary { .. } => false,
            _ => true,
        };
        if bare {
            self.expr(expr);
        } else {
            self.put("(");
            self.expr(expr);
            self.put(")");
        }
    }

    fn number(&mut self, number: &NumberLiteral) {
        if let Some(width) = number.width {
            self.put_display(width.bits);
            self.put(if width.signed { "s" } else { "w" });
        }
        let prefix = match number.base {
            2 => "0b",
            8 => "0o",
            16 => "0x",
            _ => "",
        };
        self.put(prefix);
        self.put(&number.value.to_str_radix(number.base));
    }

    pub(super) fn named_expr(&mut self, pair: &NamedExpr) {
        self.put_display(&pair.name);
        self.put(" = ");
        self.expr(&pair.value);
    }

    pub(super) fn arguments(&mut self, args: &[Argument]) {
        self.put("(");
        self.separated(args, |p, arg| {
            if let Some(name) = &arg.name {
                p.put_display(name);
                p.put(" = ");
            }
            match &arg.value {
                Some(value) => p.expr(value),
                None => p.put("_"),
            }
        });
        self.put(")");
    }

    pub(super) fn keyset(&mut self, keyset: &Keyset) {
        if keyset.is_tuple {
            self.put("(");
        }
        self.separated(&keyset.elements, Self::keyset_element);
        if keyset.is_tuple {
            self.put(")");
        }
    }

    fn keyset_element(&mut self, element: &KeysetElement) {
        match &element.kind {
            KeysetElementKind::Value(value) => self.expr(value),
            KeysetElementKind::Mask { value, mask } => {
                self.expr(value);
                self.put(" &&& ");
                self.expr(mask);
            }
            KeysetElementKind::Range { low, high } => {
                self.expr(low);
                self.put(" .. ");
                self.expr(high);
            }
            KeysetElementKind::Default => self.put("default"),
            KeysetElementKind::DontCare => self.put("_"),
        }
    }

    pub(super) fn ty(&mut self, ty: &Type) {
        match &ty.kind {
            TypeKind::Malformed => self.put("/* malformed */"),
            TypeKind::Bool => self.put("bool"),
            TypeKind::Error => self.put("error"),
            TypeKind::MatchKind => self.put("match_kind"),
            TypeKind::String => self.put("string"),
            TypeKind::Void => self.put("void"),
            TypeKind::DontCare => self.put("_"),
            TypeKind::Integer => self.put("int"),
            TypeKind::Bit(None) => self.put("bit"),
            TypeKind::Bit(Some(width)) => self.width("bit", width),
            TypeKind::Int(width) => self.width("int", width),
            TypeKind::Varbit(width) => self.width("varbit", width),
            TypeKind::Named(path) => self.put_display(path),
            TypeKind::Specialized { base, args } => {
                self.put_display(base);
                self.type_arguments(args);
            }
            TypeKind::Stack { element, size } => {
                self.ty(element);
                self.put("[");
                self.expr(size);
                self.put("]");
            }
            TypeKind::Tuple(args) => {
                self.put("tuple");
                self.type_arguments(args);
            }
            TypeKind::List(element) => {
                self.put("list<");
                self.ty(element);
                self.put(">");
            }
        }
    }

    /// A keyword with a width, which gets parentheses unless it is one literal or name.
    fn width(&mut self, keyword: &str, width: &Expr) {
        self.put(keyword);
        let simple = matches!(width.kind, ExprKind::Number(_) | ExprKind::Name(_));
        self.put(if simple { "<" } else { "<(" });
        self.expr(width);
        self.put(if simple { ">" } else { ")>" });
    }

    pub(super) fn type_arguments(&mut self, args: &[Type]) {
        self.put("<");
        self.separated(args, Self::ty);
        self.put(">");
    }
}
