//! Expressions, places and constants.

use super::lexer::Token;
use super::symbols::Name;
use super::{Parser, Result};
use crate::{BinaryOp, Const, EnumId, Expr, ExprKind, Place, Projection, Type, UnaryOp, VarId};
use num_bigint::{BigInt, BigUint};

const BINARY_OPS: [BinaryOp; 21] = [
    BinaryOp::Add,
    BinaryOp::Sub,
    BinaryOp::Mul,
    BinaryOp::Div,
    BinaryOp::Mod,
    BinaryOp::AddSat,
    BinaryOp::SubSat,
    BinaryOp::And,
    BinaryOp::Or,
    BinaryOp::Xor,
    BinaryOp::Shl,
    BinaryOp::Shr,
    BinaryOp::Concat,
    BinaryOp::Eq,
    BinaryOp::Ne,
    BinaryOp::Lt,
    BinaryOp::Le,
    BinaryOp::Gt,
    BinaryOp::Ge,
    BinaryOp::LogicalAnd,
    BinaryOp::LogicalOr,
];

/// A place, or a place and what is asked of it.
pub(super) enum Path {
    Place(Place, Type),
    /// A place, the word after its last dot, and the token of that word.
    Method(Place, Type, String),
}

impl Parser<'_> {
    pub(super) fn expr(&mut self) -> Result<Expr> {
        self.nested(Self::expr_at_depth)
    }

    pub(super) fn exprs(&mut self, end: &str) -> Result<Vec<Expr>> {
        self.list(end, Self::expr)
    }

    fn expr_at_depth(&mut self) -> Result<Expr> {
        for (text, op) in [
            ("!", UnaryOp::Not),
            ("~", UnaryOp::Complement),
            ("-", UnaryOp::Negate),
        ] {
            if self.take(text) {
                let value = Box::new(self.parenthesised()?);
                let ty = value.ty;
                let kind = ExprKind::Unary(op, value);
                return Ok(Expr { kind, ty });
            }
        }
        if self.take("(") {
            return self.operation();
        }
        if let Some((value, ty)) = self.constant_if()? {
            let kind = ExprKind::Const(value);
            return Ok(Expr { kind, ty });
        }
        if self.take_word("default") {
            self.sign("(")?;
            let ty = self.ty()?;
            self.sign(")")?;
            let kind = ExprKind::Default;
            return Ok(Expr { kind, ty });
        }
        if self.at_type() {
            let ty = self.ty()?;
            return self.composite(ty);
        }
        self.reading()
    }

    fn parenthesised(&mut self) -> Result<Expr> {
        self.sign("(")?;
        let value = self.expr()?;
        self.sign(")")?;
        Ok(value)
    }

    /// True if a type comes next, and not a member of `error`.
    fn at_type(&self) -> bool {
        let types = [
            "bool",
            "error",
            "bit",
            "int",
            "varbit",
            "enum",
            "struct",
            "header",
            "header_union",
            "stack",
        ];
        let word = self.keyword();
        word.is_some_and(|word| types.contains(&word)) && *self.look(1) != Token::Sign("::")
    }

    /// A record or an array after its type.
    fn composite(&mut self, ty: Type) -> Result<Expr> {
        let kind = if self.take("{") {
            ExprKind::Record(self.exprs("}")?)
        } else if self.take("[") {
            ExprKind::Array(self.exprs("]")?)
        } else {
            return self.expected("`{` or `[`");
        };
        Ok(Expr { kind, ty })
    }

    /// Parses an operation in parentheses, after the opening one.
    fn operation(&mut self) -> Result<Expr> {
        let left = if self.at_type() {
            let ty = self.ty()?;
            if self.take(")") {
                let kind = ExprKind::Cast(Box::new(self.parenthesised()?));
                return Ok(Expr { kind, ty });
            }
            self.composite(ty)?
        } else {
            self.expr()?
        };
        if self.take(")") {
            let (hi, lo) = self.slice()?;
            let ty = self.slice_type(hi, lo)?;
            let value = Box::new(left);
            let kind = ExprKind::Slice { value, hi, lo };
            return Ok(Expr { kind, ty });
        }
        if self.take("?") {
            let then = self.expr()?;
            self.sign(":")?;
            let otherwise = self.expr()?;
            self.sign(")")?;
            return Ok(Expr {
                ty: then.ty,
                kind: ExprKind::Mux {
                    condition: Box::new(left),
                    then: Box::new(then),
                    otherwise: Box::new(otherwise),
                },
            });
        }
        let found = match self.peek() {
            Token::Sign(text) => BINARY_OPS.into_iter().find(|op| op.sign() == *text),
            _ => None,
        };
        let Some(op) = found else {
            return self.expected("an operator");
        };
        self.at += 1;
        let right = self.expr()?;
        self.sign(")")?;
        let ty = op.result_type(left.ty, right.ty);
        let kind = ExprKind::Binary(op, Box::new(left), Box::new(right));
        Ok(Expr { kind, ty })
    }

    /// `[hi:lo]`.
    fn slice(&mut self) -> Result<(u32, u32)> {
        self.sign("[")?;
        let hi = self.small()?;
        self.sign(":")?;
        let lo = self.small()?;
        self.sign("]")?;
        Ok((hi, lo))
    }

    fn slice_type(&self, hi: u32, lo: u32) -> Result<Type> {
        match hi.checked_sub(lo).and_then(|bits| bits.checked_add(1)) {
            Some(width) => Ok(Type::Bits(width)),
            None => self.error_at(self.at - 1, "the slice ends before it begins"),
        }
    }

    /// A constant.
    pub(super) fn constant(&mut self) -> Result<Const> {
        match self.constant_if()? {
            Some((value, _)) => Ok(value),
            None => self.expected("a constant"),
        }
    }

    /// A constant and its type, if one comes next.
    fn constant_if(&mut self) -> Result<Option<(Const, Type)>> {
        let found = match self.peek() {
            Token::Bits(width, value) => (Const::Bits(value.clone()), Type::Bits(*width)),
            Token::Int(width, value) => (self.signed(*width, value)?, Type::Int(*width)),
            _ => match self.keyword() {
                Some("true") => (Const::Bool(true), Type::Bool),
                Some("false") => (Const::Bool(false), Type::Bool),
                _ => return self.choice_if(),
            },
        };
        self.at += 1;
        Ok(Some(found))
    }

    /// Two's complement.
    fn signed(&self, width: u32, value: &BigInt) -> Result<Const> {
        if width > crate::verify::MAX_WIDTH {
            return self.error("the number is too wide");
        }
        let half = BigInt::from(1) << width.saturating_sub(1);
        let bits = match value.sign() {
            num_bigint::Sign::Minus if *value < -&half => None,
            num_bigint::Sign::Minus => BigUint::try_from(value + half * 2).ok(),
            _ => BigUint::try_from(value.clone()).ok(),
        };
        match bits {
            Some(bits) => Ok(Const::Bits(bits)),
            None => self.error("the number does not fit its width"),
        }
    }

    /// A member of an enum or of `error`, if one comes next.
    fn choice_if(&mut self) -> Result<Option<(Const, Type)>> {
        let (symbols, program, start) = (self.symbols, self.program, self.at);
        if !matches!(self.peek(), Token::Word(_) | Token::Text(_)) {
            return Ok(None);
        }
        let name = self.name()?;
        if !self.take("::") {
            self.at = start;
            return Ok(None);
        }
        let error = Name {
            text: "error".to_owned(),
            position: None,
        };
        let quoted = matches!(self.tokens[start].token, Token::Text(_));
        let (members, ty) = if name == error && !quoted {
            (&program.errors, Type::Error)
        } else {
            match symbols.enums.get(&name) {
                Some(id) => (&program.enums[id as usize].members, Type::Enum(EnumId(id))),
                None => {
                    return self.error_at(start, format!("there is no enum `{}`", name.text));
                }
            }
        };
        let member = self.member_name()?;
        match members.iter().position(|other| *other == member.text) {
            Some(index) => Ok(Some((Const::Bits(BigUint::from(index)), ty))),
            None => self.error_at(self.at - 1, format!("there is no member `{}`", member.text)),
        }
    }

    /// A read of a place, `isValid` or `lastIndex`.
    fn reading(&mut self) -> Result<Expr> {
        match self.place_path()? {
            Path::Place(place, ty) => {
                let kind = ExprKind::Read(place);
                Ok(Expr { kind, ty })
            }
            Path::Method(place, Type::Stack(_), word) if word == "lastIndex" => Ok(Expr {
                kind: ExprKind::LastIndex(place),
                ty: Type::Bits(32),
            }),
            Path::Method(place, _, word) if word == "isValid" => {
                self.sign("(")?;
                self.sign(")")?;
                Ok(Expr {
                    kind: ExprKind::IsValid(place),
                    ty: Type::Bool,
                })
            }
            Path::Method(_, _, word) => {
                self.error_at(self.at - 1, format!("there is no member `{word}`"))
            }
        }
    }

    /// A place.
    pub(super) fn place(&mut self) -> Result<Place> {
        match self.place_path()? {
            Path::Place(place, _) => Ok(place),
            Path::Method(_, _, word) => {
                self.error_at(self.at - 1, format!("there is no member `{word}`"))
            }
        }
    }

    /// A variable.
    pub(super) fn var(&mut self) -> Result<VarId> {
        let vars = &self.symbols.vars;
        Ok(VarId(self.resolve("variable", vars)?))
    }

    /// The variable that a path begins with: the longest that there is.
    fn path_start(&mut self) -> Result<VarId> {
        let start = self.at;
        let quoted = matches!(self.peek(), Token::Text(_));
        let mut name = self.name()?;
        loop {
            if let Some(index) = self.symbols.vars.get(&name) {
                return Ok(VarId(index));
            }
            // A sign and what follows it belong to a member.
            let dot = name.text.rfind('.').filter(|_| !quoted);
            match (name.position.take(), dot) {
                (Some(_), _) => {}
                (None, Some(dot)) => name.text.truncate(dot),
                (None, None) => {
                    let message = format!("there is no variable `{}`", name.text);
                    return self.error_at(start, message);
                }
            }
            self.at -= 2;
        }
    }

    /// A place, and the word after it if that is no part of it.
    pub(super) fn place_path(&mut self) -> Result<Path> {
        let var = self.path_start()?;
        let mut ty = self.program.vars[var.index()].ty;
        let mut path = Vec::new();
        loop {
            let step = if self.is("[") {
                let is_slice = matches!(self.look(1), Token::Number(_));
                match ty {
                    Type::Stack(_) if !is_slice => {
                        self.at += 1;
                        let index = Box::new(self.expr()?);
                        self.sign("]")?;
                        Projection::Index(index)
                    }
                    _ if is_slice && *self.look(2) == Token::Sign(":") => {
                        let (hi, lo) = self.slice()?;
                        let ty = self.slice_type(hi, lo)?;
                        path.push(Projection::Slice { hi, lo });
                        return Ok(Path::Place(Place { var, path }, ty));
                    }
                    _ => return self.error("what is not a stack has no elements"),
                }
            } else if self.is(".") {
                self.at += 1;
                match self.member_step(ty)? {
                    Ok(step) => step,
                    Err(word) => {
                        let place = Place { var, path };
                        return Ok(Path::Method(place, ty, word));
                    }
                }
            } else {
                return Ok(Path::Place(Place { var, path }, ty));
            };
            match self.program.step_type(ty, &step) {
                Some(next) => ty = next,
                None => return self.error_at(self.at - 1, "there is no such part"),
            }
            path.push(step);
        }
    }

    /// The step that a word after a dot stands for, or the word.
    fn member_step(&mut self, ty: Type) -> Result<std::result::Result<Projection, String>> {
        let name = self.member_name()?;
        let called = self.is("(");
        let step = match ty {
            Type::Struct(id) | Type::Header(id) | Type::Union(id) if !called => {
                let field = self.symbols.fields[id.index()].get(&name);
                field.map(Projection::Field)
            }
            Type::Stack(_) => match name.text.as_str() {
                "next" => Some(Projection::Next),
                "last" => Some(Projection::Last),
                _ => None,
            },
            _ => None,
        };
        Ok(step.ok_or(name.text))
    }

    /// Names of members from a type inwards; a dot for none.
    pub(super) fn field_path(&mut self, mut ty: Type) -> Result<Vec<u32>> {
        let mut path = Vec::new();
        if self.take(".") {
            return Ok(path);
        }
        loop {
            let step = self.member_step(ty)?;
            let next = step.ok().and_then(|step| match step {
                Projection::Field(field) => Some((field, self.program.step_type(ty, &step)?)),
                _ => None,
            });
            let Some((field, inner)) = next else {
                return self.error_at(self.at - 1, "there is no such member");
            };
            path.push(field);
            ty = inner;
            if !self.take(".") {
                return Ok(path);
            }
        }
    }
}
