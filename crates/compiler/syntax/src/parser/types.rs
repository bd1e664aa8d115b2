//! Types, parameters, and the declarations of types that have no body of their own.

use super::{Parser, Result};
use crate::token::{Keyword, Symbol, TokenKind};
use crate::tree::{Direction, Expr, Ident, Parameter, Path, Type, TypeKind};

impl Parser {
    /// True if the token at `distance` begins a type for sure: a keyword, or a name that a type has
    /// in this scope.
    pub(super) fn at_type(&self, distance: usize) -> bool {
        let token = self.ahead(distance);
        match token.kind {
            TokenKind::Keyword(
                Keyword::Bit
                | Keyword::Bool
                | Keyword::Int
                | Keyword::Varbit
                | Keyword::Tuple
                | Keyword::Error
                | Keyword::String
                | Keyword::MatchKind,
            ) => true,
            TokenKind::Keyword(Keyword::List) => self.ahead(distance + 1).is(Symbol::Less),
            TokenKind::Ident => self.scopes.is_type(&token.text),
            TokenKind::Symbol(Symbol::Dot) => {
                let name = self.ahead(distance + 1);
                name.kind == TokenKind::Ident && self.scopes.is_global_type(&name.text)
            }
            _ => false,
        }
    }

    /// Production `prefixedNonTypeName` or `prefixedType`: a name with or without a dot.
    pub(super) fn path(&mut self) -> Result<Path> {
        let start = self.span();
        let absolute = self.take(Symbol::Dot);
        let name = self.name()?;
        Ok(Path {
            absolute,
            name,
            span: self.span_from(start),
        })
    }

    /// Production `typeRef`. Any name is taken for a type's here, so that a type which is
    /// not declared is reported as such by the checker.
    pub(super) fn type_ref(&mut self) -> Result<Type> {
        self.nested(|p| p.measured(Self::array_type))
    }

    /// Production `arrayType`, or a type without array dimensions.
    fn array_type(&mut self) -> Result<Type> {
        let mut ty = self.simple_type()?;
        self.grow()?;
        while self.is(Symbol::LeftBracket) {
            ty = self.stack_of(ty)?;
        }
        Ok(ty)
    }

    /// `[size]` behind a type or a declared name.
    fn stack_of(&mut self, element: Type) -> Result<Type> {
        let open = self.expect(Symbol::LeftBracket)?;
        let size = Box::new(self.open_expression()?);
        self.expect_close(Symbol::RightBracket, open)?;
        self.grow()?;
        let span = self.span_from(element.span);
        Ok(Type {
            kind: TypeKind::Stack {
                element: Box::new(element),
                size,
            },
            span,
        })
    }

    /// Production `typeOrVoid`.
    pub(super) fn type_or_void(&mut self) -> Result<Type> {
        if self.is_keyword(Keyword::Void) {
            let span = self.bump().span;
            return Ok(Type {
                kind: TypeKind::Void,
                span,
            });
        }
        self.type_ref()
    }

    /// A type without array dimensions.
    fn simple_type(&mut self) -> Result<Type> {
        let start = self.span();
        let TokenKind::Keyword(keyword) = self.token().kind else {
            if self.at_name() || self.is(Symbol::Dot) {
                return self.named_type();
            }
            return self.unexpected("a type");
        };
        let kind = match keyword {
            Keyword::Bool => self.keyword_type(TypeKind::Bool),
            Keyword::Error => self.keyword_type(TypeKind::Error),
            Keyword::MatchKind => self.keyword_type(TypeKind::MatchKind),
            Keyword::String => self.keyword_type(TypeKind::String),
            Keyword::Bit => {
                self.bump();
                TypeKind::Bit(self.optional_width()?)
            }
            Keyword::Int => {
                self.bump();
                self.optional_width()?
                    .map_or(TypeKind::Integer, TypeKind::Int)
            }
            Keyword::Varbit => {
                self.bump();
                if !self.is(Symbol::Less) {
                    return self.unexpected("`<` and the greatest width of the `varbit`");
                }
                match self.optional_width()? {
                    Some(width) => TypeKind::Varbit(width),
                    None => return self.unexpected("a width"),
                }
            }
            Keyword::Tuple => {
                self.bump();
                TypeKind::Tuple(self.type_arguments()?)
            }
            Keyword::List if self.ahead(1).is(Symbol::Less) => {
                self.bump();
                self.expect(Symbol::Less)?;
                let element = self.type_argument()?;
                self.expect(Symbol::Greater)?;
                TypeKind::List(Box::new(element))
            }
            _ if keyword.is_contextual() => return self.named_type(),
            _ => return self.unexpected("a type"),
        };
        Ok(Type {
            kind,
            span: self.span_from(start),
        })
    }

    fn keyword_type(&mut self, kind: TypeKind) -> TypeKind {
        self.bump();
        kind
    }

    /// Production `typeName` or `specializedType`.
    pub(super) fn named_type(&mut self) -> Result<Type> {
        let path = self.path()?;
        let start = path.span;
        let kind = if self.is(Symbol::Less) {
            TypeKind::Specialized {
                base: path,
                args: self.type_arguments()?,
            }
        } else {
            TypeKind::Named(path)
        };
        Ok(Type {
            kind,
            span: self.span_from(start),
        })
    }

    /// `<width>`, if it is there.
    fn optional_width(&mut self) -> Result<Option<Box<Expr>>> {
        if !self.take(Symbol::Less) {
            return Ok(None);
        }
        let outer = std::mem::replace(&mut self.greater_closes, true);
        let width = self.expression();
        self.greater_closes = outer;
        self.expect(Symbol::Greater)?;
        Ok(Some(Box::new(width?)))
    }

    /// `<` production `typeArgumentList` `>`.
    pub(super) fn type_arguments(&mut self) -> Result<Vec<Type>> {
        self.expect(Symbol::Less)?;
        let args = self.comma_list(Symbol::Greater, false, Self::type_argument)?;
        self.expect(Symbol::Greater)?;
        Ok(args)
    }

    /// Production `typeArg`.
    fn type_argument(&mut self) -> Result<Type> {
        if self.is_keyword(Keyword::DontCare) {
            let span = self.bump().span;
            return Ok(Type {
                kind: TypeKind::DontCare,
                span,
            });
        }
        self.type_or_void()
    }

    /// Production `optTypeParameters`. The names are declared as types in the innermost
    /// scope.
    pub(super) fn type_parameters(&mut self) -> Result<Vec<Ident>> {
        if !self.take(Symbol::Less) {
            return Ok(Vec::new());
        }
        let params = self.comma_list(Symbol::Greater, false, Self::name)?;
        self.expect(Symbol::Greater)?;
        for param in &params {
            self.scopes.declare_type(&param.name);
        }
        Ok(params)
    }

    /// Production `declarator`: a name, with array dimensions that belong to the type.
    pub(super) fn declarator(&mut self, mut ty: Type) -> Result<(Type, Ident)> {
        self.measured(|p| {
            let name = p.name()?;
            while p.is(Symbol::LeftBracket) {
                ty = p.stack_of(ty)?;
            }
            Ok((ty, name))
        })
    }

    /// `(` production `parameterList` `)`. The names are declared as values in the innermost
    /// scope.
    pub(super) fn parameters(&mut self) -> Result<Vec<Parameter>> {
        let open = self.expect(Symbol::LeftParen)?;
        let params = self.comma_list(Symbol::RightParen, false, Self::parameter)?;
        self.expect_close(Symbol::RightParen, open)?;
        for param in &params {
            self.scopes.declare_value(&param.name.name);
        }
        Ok(params)
    }

    /// Production `parameter`.
    fn parameter(&mut self) -> Result<Parameter> {
        let annotations = self.annotations()?;
        let start = Self::start_of(&annotations, self.span());
        let direction = if self.take_keyword(Keyword::In) {
            Direction::In
        } else if self.take_keyword(Keyword::Out) {
            Direction::Out
        } else if self.take_keyword(Keyword::Inout) {
            Direction::InOut
        } else {
            Direction::None
        };
        let ty = self.type_ref()?;
        let (ty, name) = self.declarator(ty)?;
        let default = if self.take(Symbol::Assign) {
            Some(self.expression()?)
        } else {
            None
        };
        Ok(Parameter {
            annotations,
            direction,
            ty,
            name,
            default,
            span: self.span_from(start),
        })
    }
}
