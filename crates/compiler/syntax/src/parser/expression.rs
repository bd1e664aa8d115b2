//! Expressions and keysets.
//!
//! Chains such as `a + b + c` are read by loops, not by recursion, so the height of a tree
//! is bounded apart from the depth of recursion: see [`Parser::measured`].

use stateplane_diagnostics::Span;

use super::number::string;
use super::{Attempt, Parser, Result};
use crate::token::{Keyword, Symbol, TokenKind};
use crate::tree::{
    Argument, BinaryOp, Expr, ExprKind, Keyset, KeysetElement, KeysetElementKind, Type, TypeKind,
    UnaryOp,
};

impl Parser {
    /// Production `expression`.
    pub(super) fn expression(&mut self) -> Result<Expr> {
        self.nested(|p| p.measured(Self::conditional))
    }

    /// Production `expression` inside brackets of any kind, where `>` is an operator again.
    pub(super) fn open_expression(&mut self) -> Result<Expr> {
        self.inside_brackets(Self::expression)
    }

    fn inside_brackets<T>(&mut self, production: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let outer = std::mem::replace(&mut self.greater_closes, false);
        let result = production(self);
        self.greater_closes = outer;
        result
    }

    /// An expression from `start` to here, whose parts have been read since the last
    /// [`measured`](Parser::measured) began.
    fn build(&mut self, kind: ExprKind, start: Span) -> Result<Expr> {
        self.grow()?;
        Ok(Expr {
            kind,
            span: self.span_from(start),
        })
    }

    /// `c ? a : b`. Like the reference compiler's grammar, this reads `c ? a : d ? e : f` as
    /// `(c ? a : d) ? e : f`, because `:` binds more strongly than `?` there.
    fn conditional(&mut self) -> Result<Expr> {
        let mut expr = self.binary(0)?;
        while self.take(Symbol::Question) {
            let start = expr.span;
            let then = self.open_expression()?;
            self.expect(Symbol::Colon)?;
            let otherwise = self.binary(0)?;
            let kind = ExprKind::Conditional {
                condition: Box::new(expr),
                then: Box::new(then),
                otherwise: Box::new(otherwise),
            };
            expr = self.build(kind, start)?;
        }
        Ok(expr)
    }

    /// The binary operator at hand and the number of its tokens.
    fn binary_operator(&self) -> Option<(BinaryOp, usize)> {
        let TokenKind::Symbol(symbol) = self.token().kind else {
            return None;
        };
        let op = match symbol {
            Symbol::Star => BinaryOp::Mul,
            Symbol::Slash => BinaryOp::Div,
            Symbol::Percent => BinaryOp::Mod,
            Symbol::Plus => BinaryOp::Add,
            Symbol::Minus => BinaryOp::Sub,
            Symbol::AddSat => BinaryOp::AddSat,
            Symbol::SubSat => BinaryOp::SubSat,
            Symbol::Concat => BinaryOp::Concat,
            Symbol::Shl => BinaryOp::Shl,
            Symbol::Ampersand => BinaryOp::BitAnd,
            Symbol::Caret => BinaryOp::BitXor,
            Symbol::Pipe => BinaryOp::BitOr,
            Symbol::Less => BinaryOp::Less,
            Symbol::LessEqual => BinaryOp::LessEqual,
            Symbol::GreaterEqual => BinaryOp::GreaterEqual,
            Symbol::Equal => BinaryOp::Equal,
            Symbol::NotEqual => BinaryOp::NotEqual,
            Symbol::And => BinaryOp::And,
            Symbol::Or => BinaryOp::Or,
            Symbol::Greater if self.greater_closes => return None,
            Symbol::Greater if self.token().joint && self.ahead(1).is(Symbol::Greater) => {
                return Some((BinaryOp::Shr, 2));
            }
            Symbol::Greater => BinaryOp::Greater,
            _ => return None,
        };
        Some((op, 1))
    }

    /// Operators that bind more strongly than `weakest`, by precedence climbing.
    fn binary(&mut self, weakest: u8) -> Result<Expr> {
        self.measured(|p| p.binary_chain(weakest))
    }

    fn binary_chain(&mut self, weakest: u8) -> Result<Expr> {
        let mut left = self.unary()?;
        while let Some((op, length)) = self
            .binary_operator()
            .filter(|(op, _)| op.precedence() > weakest)
        {
            let op_start = self.span();
            for _ in 0..length {
                self.bump();
            }
            let op_span = self.span_from(op_start);
            let right = Box::new(self.binary(op.precedence())?);
            let start = left.span;
            let kind = ExprKind::Binary {
                op,
                op_span,
                left: Box::new(left),
                right,
            };
            left = self.build(kind, start)?;
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Expr> {
        let op = match self.token().kind {
            TokenKind::Symbol(Symbol::Not) => UnaryOp::Not,
            TokenKind::Symbol(Symbol::Tilde) => UnaryOp::Complement,
            TokenKind::Symbol(Symbol::Minus) => UnaryOp::Negate,
            TokenKind::Symbol(Symbol::Plus) => UnaryOp::Plus,
            _ => return self.cast_or_postfix(),
        };
        let start = self.bump().span;
        let operand = Box::new(self.nested(Self::unary)?);
        self.build(ExprKind::Unary { op, operand }, start)
    }

    /// `(type) operand`, or else an operand with what follows it.
    fn cast_or_postfix(&mut self) -> Result<Expr> {
        if self.is(Symbol::LeftParen)
            && self.at_type(1)
            && let Some((ty, start)) = self.attempt(Attempt::Cast, Self::cast_prefix)
        {
            let operand = Box::new(self.nested(Self::unary)?);
            return self.build(
                ExprKind::Cast {
                    ty: Box::new(ty),
                    operand,
                },
                start,
            );
        }
        self.measured(Self::postfix)
    }

    fn cast_prefix(&mut self) -> Result<(Type, Span)> {
        let start = self.expect(Symbol::LeftParen)?;
        let ty = self.inside_brackets(Self::type_ref)?;
        self.expect(Symbol::RightParen)?;
        Ok((ty, start))
    }

    /// An operand with what follows it: members, subscripts, arguments.
    pub(super) fn postfix(&mut self) -> Result<Expr> {
        let start = self.span();
        let mut expr = self.primary()?;
        loop {
            let kind = match self.token().kind {
                TokenKind::Symbol(Symbol::Dot) => {
                    self.bump();
                    ExprKind::Member {
                        base: Box::new(expr),
                        member: self.name()?,
                    }
                }
                TokenKind::Symbol(Symbol::LeftBracket) => self.subscript(expr)?,
                TokenKind::Symbol(Symbol::LeftParen) => {
                    let args = self.arguments()?;
                    ExprKind::Call {
                        callee: Box::new(expr),
                        type_args: Vec::new(),
                        args,
                    }
                }
                TokenKind::Symbol(Symbol::Less) if self.at_type_argument(1) => {
                    let Some(type_args) =
                        self.attempt(Attempt::TypeArguments, Self::call_type_arguments)
                    else {
                        return Ok(expr);
                    };
                    let args = self.arguments()?;
                    ExprKind::Call {
                        callee: Box::new(expr),
                        type_args,
                        args,
                    }
                }
                _ => return Ok(expr),
            };
            expr = self.build(kind, start)?;
        }
    }

    /// True if the token at `distance` can begin the first of a call's type arguments where the `<`
    /// before it could also compare: production `realTypeArg`.
    fn at_type_argument(&self, distance: usize) -> bool {
        self.at_type(distance)
            || matches!(
                self.ahead(distance).kind,
                TokenKind::Keyword(Keyword::Void | Keyword::DontCare)
            )
    }

    fn call_type_arguments(&mut self) -> Result<Vec<Type>> {
        let args = self.type_arguments()?;
        if self.is(Symbol::LeftParen) {
            Ok(args)
        } else {
            self.unexpected("`(`")
        }
    }

    /// `[index]`, `[high:low]` or `[low+:width]`.
    fn subscript(&mut self, base: Expr) -> Result<ExprKind> {
        let open = self.expect(Symbol::LeftBracket)?;
        let base = Box::new(base);
        let first = Box::new(self.open_expression()?);
        let kind = if self.take(Symbol::Colon) {
            ExprKind::Slice {
                base,
                high: first,
                low: Box::new(self.open_expression()?),
            }
        } else if self.take(Symbol::PlusColon) {
            ExprKind::PlusSlice {
                base,
                low: first,
                width: Box::new(self.open_expression()?),
            }
        } else {
            ExprKind::Index { base, index: first }
        };
        self.expect_close(Symbol::RightBracket, open)?;
        Ok(kind)
    }

    /// `(` production `argumentList` `)`.
    pub(super) fn arguments(&mut self) -> Result<Vec<Argument>> {
        let open = self.expect(Symbol::LeftParen)?;
        let args =
            self.inside_brackets(|p| p.comma_list(Symbol::RightParen, false, Self::argument))?;
        self.expect_close(Symbol::RightParen, open)?;
        Ok(args)
    }

    /// Production `argument`.
    fn argument(&mut self) -> Result<Argument> {
        let start = self.span();
        let name = if self.at_named_expr() {
            let name = self.name()?;
            self.expect(Symbol::Assign)?;
            Some(name)
        } else {
            None
        };
        let value = if self.take_keyword(Keyword::DontCare) {
            None
        } else {
            Some(self.expression()?)
        };
        Ok(Argument {
            name,
            value,
            span: self.span_from(start),
        })
    }

    fn primary(&mut self) -> Result<Expr> {
        let start = self.span();
        if self.at_type(0) {
            return self.type_primary();
        }
        let kind = match self.token().kind {
            TokenKind::Number => {
                let token = self.bump();
                ExprKind::Number(self.number(&token))
            }
            TokenKind::String => ExprKind::String(string(&self.bump().text)),
            TokenKind::Keyword(keyword @ (Keyword::True | Keyword::False)) => {
                self.bump();
                ExprKind::Bool(keyword == Keyword::True)
            }
            TokenKind::Keyword(Keyword::This) => {
                self.bump();
                ExprKind::This
            }
            TokenKind::Symbol(Symbol::Dots) => {
                self.bump();
                ExprKind::Dots
            }
            TokenKind::Symbol(Symbol::Invalid) => {
                self.bump();
                ExprKind::Invalid
            }
            TokenKind::Symbol(Symbol::LeftParen) => {
                let open = self.bump().span;
                let mut inner = self.open_expression()?;
                self.expect_close(Symbol::RightParen, open)?;
                inner.span = self.span_from(start);
                return Ok(inner);
            }
            TokenKind::Symbol(Symbol::LeftBrace) => return self.braced(),
            TokenKind::Symbol(Symbol::Dot) => ExprKind::Name(self.path()?),
            _ if self.at_name() => ExprKind::Name(self.path()?),
            _ => return self.unexpected("an expression"),
        };
        self.build(kind, start)
    }

    /// Expression that begins with a type: `E.a`, `error.NoError`, or `T(args)`.
    fn type_primary(&mut self) -> Result<Expr> {
        let start = self.span();
        let ty = if self.is_keyword(Keyword::Error) {
            self.bump();
            Type {
                kind: TypeKind::Error,
                span: start,
            }
        } else if matches!(self.token().kind, TokenKind::Keyword(_)) {
            return self.unexpected("an expression");
        } else {
            self.named_type()?
        };
        if self.is(Symbol::Dot) {
            let base = Box::new(Expr {
                span: ty.span,
                kind: ExprKind::Type(Box::new(ty)),
            });
            self.bump();
            let member = self.name()?;
            return self.build(ExprKind::Member { base, member }, start);
        }
        if self.is(Symbol::LeftParen) && ty.kind != TypeKind::Error {
            let args = self.arguments()?;
            return self.build(
                ExprKind::Construct {
                    ty: Box::new(ty),
                    args,
                },
                start,
            );
        }
        self.unexpected("`.` and a member of the type, or `(` and constructor arguments")
    }

    /// `{…}` as an expression.
    fn braced(&mut self) -> Result<Expr> {
        let open = self.expect(Symbol::LeftBrace)?;
        let kind = self.inside_brackets(|p| {
            if !p.at_named_expr() {
                let list = p.comma_list(Symbol::RightBrace, true, Self::expression)?;
                return Ok(ExprKind::List(list));
            }
            let mut rest = None;
            let fields = p.comma_list(Symbol::RightBrace, true, |p| {
                if !p.is(Symbol::Dots) {
                    return p.named_expr().map(Some);
                }
                rest = Some(p.bump().span);
                // Nothing but a comma may follow.
                if p.is(Symbol::RightBrace)
                    || (p.is(Symbol::Comma) && p.ahead(1).is(Symbol::RightBrace))
                {
                    return Ok(None);
                }
                p.unexpected("`}`")
            })?;
            Ok(ExprKind::Struct {
                fields: fields.into_iter().flatten().collect(),
                rest,
            })
        })?;
        self.expect_close(Symbol::RightBrace, open)?;
        self.build(kind, open)
    }

    // ---- keysets

    /// Production `keysetExpression`, which is followed by `:`.
    pub(super) fn keyset(&mut self) -> Result<Keyset> {
        let start = self.span();
        let (elements, is_tuple) = if self.is(Symbol::LeftParen) && self.colon_follows_group() {
            let open = self.bump().span;
            let list = self.comma_list(Symbol::RightParen, false, Self::keyset_element)?;
            self.expect_close(Symbol::RightParen, open)?;
            (list, true)
        } else {
            (vec![self.keyset_element()?], false)
        };
        Ok(Keyset {
            elements,
            is_tuple,
            span: self.span_from(start),
        })
    }

    /// True if the parenthesis here is closed right before a `:`.
    fn colon_follows_group(&self) -> bool {
        let mut nesting = 0_usize;
        for (i, token) in self.tokens[self.at..].iter().enumerate() {
            match token.kind {
                TokenKind::Symbol(Symbol::LeftParen) => nesting += 1,
                TokenKind::Symbol(Symbol::RightParen) => {
                    nesting -= 1;
                    if nesting == 0 {
                        return self.ahead(i + 1).is(Symbol::Colon);
                    }
                }
                TokenKind::Symbol(Symbol::Semicolon) => return false,
                _ => {}
            }
        }
        false
    }

    /// Production `simpleKeysetExpression`.
    fn keyset_element(&mut self) -> Result<KeysetElement> {
        let start = self.span();
        let kind = if self.take_keyword(Keyword::Default) {
            KeysetElementKind::Default
        } else if self.take_keyword(Keyword::DontCare) {
            KeysetElementKind::DontCare
        } else {
            let first = self.expression()?;
            if self.take(Symbol::Mask) {
                KeysetElementKind::Mask {
                    value: first,
                    mask: self.expression()?,
                }
            } else if self.take(Symbol::DotDot) {
                KeysetElementKind::Range {
                    low: first,
                    high: self.expression()?,
                }
            } else {
                KeysetElementKind::Value(first)
            }
        };
        Ok(KeysetElement {
            kind,
            span: self.span_from(start),
        })
    }
}
