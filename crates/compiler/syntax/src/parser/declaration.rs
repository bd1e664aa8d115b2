//! Declarations of the outermost scope.

use stateplane_diagnostics::{Diagnostic, Span};

use super::{Failed, Parser, Result};
use crate::codes;
use crate::token::{Keyword, Symbol, TokenKind};
use crate::tree::{
    Annotation, Declaration, EnumDecl, EnumMember, ExternConstructor, ExternDecl, ExternFunction,
    ExternMember, ExternMethod, Field, FunctionDecl, Instantiation, MembersDecl, ObjectMember,
    Program, Prototype, StructDecl, StructKind, Type, TypedefDecl, TypedefTarget,
};

impl Parser {
    /// Production `program`.
    pub(super) fn program(&mut self) -> Program {
        let mut declarations = Vec::new();
        while !self.at_end() {
            if self.is(Symbol::RightBrace) {
                let span = self.span();
                self.report(
                    Diagnostic::error(codes::UNEXPECTED_TOKEN, span, "`}` closes nothing")
                        .with_help("remove it, or look for a brace too many before it"),
                );
                self.bump();
            } else {
                declarations.extend(self.guarded(Self::declaration).flatten());
            }
        }
        Program { declarations }
    }

    /// Production `declaration`; `None` for an empty one and for a forward declaration.
    fn declaration(&mut self) -> Result<Option<Declaration>> {
        if self.take(Symbol::Semicolon) {
            return Ok(None);
        }
        let annotations = self.annotations()?;
        let TokenKind::Keyword(keyword) = self.token().kind else {
            return self.function_or_instance(annotations).map(Some);
        };
        Ok(Some(match keyword {
            Keyword::Const => Declaration::Const(self.constant(annotations)?),
            Keyword::Extern => return self.external(annotations),
            Keyword::Action => Declaration::Action(self.action(annotations)?),
            Keyword::Parser => self.parser_declaration(annotations)?,
            Keyword::Control => self.control_declaration(annotations)?,
            Keyword::Package => self.package(annotations)?,
            Keyword::Header | Keyword::HeaderUnion | Keyword::Struct => {
                Declaration::Struct(self.structure(annotations)?)
            }
            Keyword::Enum => Declaration::Enum(self.enumeration(annotations)?),
            Keyword::Typedef | Keyword::Type => Declaration::Typedef(self.typedef(annotations)?),
            Keyword::Error if self.ahead(1).is(Symbol::LeftBrace) => {
                Declaration::Error(self.members(annotations)?)
            }
            Keyword::MatchKind if self.ahead(1).is(Symbol::LeftBrace) => {
                Declaration::MatchKind(self.members(annotations)?)
            }
            Keyword::Table | Keyword::State | Keyword::ValueSet => {
                let span = self.span();
                let home = if keyword == Keyword::Table {
                    "control"
                } else {
                    "parser"
                };
                self.refuse(
                    codes::MISPLACED,
                    span,
                    format!("`{keyword}` cannot stand outside a {home}"),
                    &format!("move it into a `{home}`"),
                );
                return Err(Failed);
            }
            Keyword::If
            | Keyword::Switch
            | Keyword::For
            | Keyword::Return
            | Keyword::Exit
            | Keyword::Transition
            | Keyword::Apply => {
                let span = self.span();
                self.refuse(
                    codes::MISPLACED,
                    span,
                    format!(
                        "`{keyword}` cannot stand outside a parser, control, action or function"
                    ),
                    "look for a brace too many before it",
                );
                return Err(Failed);
            }
            _ => self.function_or_instance(annotations)?,
        }))
    }

    /// Productions `functionDeclaration` and `instantiation`, which both begin with a type.
    fn function_or_instance(&mut self, annotations: Vec<Annotation>) -> Result<Declaration> {
        let begins = self.at_name()
            || self.at_type(0)
            || self.is_keyword(Keyword::Void)
            || self.is(Symbol::Dot);
        if !begins {
            return self.unexpected("a declaration");
        }
        let start = Self::start_of(&annotations, self.span());
        let ty = self.type_or_void()?;
        if self.is(Symbol::LeftParen) {
            return self
                .instance_after(annotations, ty, start)
                .map(Declaration::Instantiation);
        }
        if self.at_name()
            && matches!(
                self.ahead(1).kind,
                TokenKind::Symbol(Symbol::Semicolon | Symbol::Assign | Symbol::LeftBracket)
            )
        {
            self.refuse(
                codes::MISPLACED,
                ty.span,
                "a variable cannot be declared outside a parser, control, action or function"
                    .to_owned(),
                "make it a `const`, or move it to where it is used",
            );
            return Err(Failed);
        }
        self.function_after(annotations, ty, start)
            .map(Declaration::Function)
    }

    /// Production `functionDeclaration` behind its return type.
    fn function_after(
        &mut self,
        annotations: Vec<Annotation>,
        return_type: Type,
        start: Span,
    ) -> Result<FunctionDecl> {
        let prototype = self.prototype_after(return_type)?;
        let body = self.block()?;
        self.scopes.pop();
        Ok(FunctionDecl {
            annotations,
            prototype,
            body,
            span: self.span_from(start),
        })
    }

    /// Production `functionPrototype` behind its return type. Opens a scope with the
    /// parameters, which the caller closes.
    fn prototype_after(&mut self, return_type: Type) -> Result<Prototype> {
        let start = return_type.span;
        let name = self.name()?;
        self.scopes.declare_value(&name.name);
        self.scopes.push();
        let type_params = self.type_parameters()?;
        let params = self.parameters()?;
        let span = self.span_from(start);
        Ok(Prototype {
            return_type,
            name,
            type_params,
            params,
            span,
        })
    }

    /// Production `instantiation`, from the type on.
    pub(super) fn instance(&mut self, annotations: Vec<Annotation>) -> Result<Instantiation> {
        let start = Self::start_of(&annotations, self.span());
        let ty = self.type_ref()?;
        self.instance_after(annotations, ty, start)
    }

    fn instance_after(
        &mut self,
        annotations: Vec<Annotation>,
        ty: Type,
        start: Span,
    ) -> Result<Instantiation> {
        let args = self.arguments()?;
        let (ty, name) = self.declarator(ty)?;
        let members = if self.take(Symbol::Assign) {
            let open = self.expect(Symbol::LeftBrace)?;
            self.scopes.push();
            let members = self.nested(|p| Ok(p.braced_list(Self::object_member)));
            self.scopes.pop();
            self.expect_close(Symbol::RightBrace, open)?;
            Some(members?)
        } else {
            None
        };
        self.expect_semicolon()?;
        self.scopes.declare_value(&name.name);
        Ok(Instantiation {
            annotations,
            ty,
            args,
            name,
            members,
            span: self.span_from(start),
        })
    }

    /// Production `objDeclaration`.
    fn object_member(&mut self) -> Result<ObjectMember> {
        let annotations = self.annotations()?;
        let start = Self::start_of(&annotations, self.span());
        let ty = self.type_or_void()?;
        if self.is(Symbol::LeftParen) {
            return self
                .instance_after(annotations, ty, start)
                .map(ObjectMember::Instantiation);
        }
        self.function_after(annotations, ty, start)
            .map(ObjectMember::Function)
    }
}

// ---- externs

impl Parser {
    /// Production `externDeclaration` behind its annotations; `None` for a forward
    /// declaration.
    fn external(&mut self, annotations: Vec<Annotation>) -> Result<Option<Declaration>> {
        let start = Self::start_of(&annotations, self.span());
        self.expect_keyword(Keyword::Extern)?;
        if self.at_name() && self.ahead(1).is(Symbol::Semicolon) {
            let name = self.name()?;
            self.scopes.declare_type(&name.name);
            self.bump();
            return Ok(None);
        }
        if !self.at_extern_object() {
            let return_type = self.type_or_void()?;
            let prototype = self.prototype_after(return_type)?;
            self.scopes.pop();
            self.expect_semicolon()?;
            let span = self.span_from(start);
            return Ok(Some(Declaration::ExternFunction(ExternFunction {
                annotations,
                prototype,
                span,
            })));
        }
        let name = self.name()?;
        self.scopes.declare_type(&name.name);
        self.scopes.push();
        let type_params = self.type_parameters()?;
        let open = self.expect(Symbol::LeftBrace)?;
        let members = self.braced_list(|p| p.extern_member(&name.name));
        self.expect_close(Symbol::RightBrace, open)?;
        self.scopes.pop();
        let span = self.span_from(start);
        Ok(Some(Declaration::Extern(ExternDecl {
            annotations,
            name,
            type_params,
            members,
            span,
        })))
    }

    /// True if the name here is that of an object type, and not the return type of a function: a
    /// brace follows it, or its type parameters.
    fn at_extern_object(&self) -> bool {
        if !self.at_name() {
            return false;
        }
        let mut at = 1;
        if self.ahead(at).is(Symbol::Less) {
            while !matches!(
                self.ahead(at).kind,
                TokenKind::Symbol(Symbol::Greater | Symbol::LeftBrace | Symbol::Semicolon)
                    | TokenKind::End
            ) {
                at += 1;
            }
            at += 1;
        }
        self.ahead(at).is(Symbol::LeftBrace)
    }

    /// Production `methodPrototype` in an extern of the given name.
    fn extern_member(&mut self, extern_name: &str) -> Result<ExternMember> {
        let annotations = self.annotations()?;
        let start = Self::start_of(&annotations, self.span());
        if self.token().kind == TokenKind::Ident && self.ahead(1).is(Symbol::LeftParen) {
            if *self.token().text != *extern_name {
                let span = self.span();
                self.refuse(
                    codes::UNEXPECTED_TOKEN,
                    span,
                    format!("method `{}` has no return type", self.token().text),
                    &format!("write `void` before it, or name it `{extern_name}` to make it a constructor"),
                );
                return Err(Failed);
            }
            let name = self.name()?;
            self.scopes.push();
            let params = self.parameters()?;
            self.scopes.pop();
            self.expect_semicolon()?;
            let span = self.span_from(start);
            return Ok(ExternMember::Constructor(ExternConstructor {
                annotations,
                name,
                params,
                span,
            }));
        }
        let is_abstract = self.take_keyword(Keyword::Abstract);
        let return_type = self.type_or_void()?;
        let prototype = self.prototype_after(return_type)?;
        self.scopes.pop();
        self.expect_semicolon()?;
        let span = self.span_from(start);
        Ok(ExternMember::Method(ExternMethod {
            annotations,
            is_abstract,
            prototype,
            span,
        }))
    }
}

// ---- types

impl Parser {
    /// Productions `headerTypeDeclaration`, `headerUnionDeclaration` and
    /// `structTypeDeclaration` behind their annotations.
    fn structure(&mut self, annotations: Vec<Annotation>) -> Result<StructDecl> {
        let start = Self::start_of(&annotations, self.span());
        let kind = match self.bump().kind {
            TokenKind::Keyword(Keyword::Header) => StructKind::Header,
            TokenKind::Keyword(Keyword::HeaderUnion) => StructKind::HeaderUnion,
            _ => StructKind::Struct,
        };
        let name = self.name()?;
        self.scopes.declare_type(&name.name);
        self.scopes.push();
        let type_params = self.type_parameters()?;
        let open = self.expect(Symbol::LeftBrace)?;
        let fields = self.braced_list(Self::field);
        self.expect_close(Symbol::RightBrace, open)?;
        self.scopes.pop();
        Ok(StructDecl {
            annotations,
            kind,
            name,
            type_params,
            fields,
            span: self.span_from(start),
        })
    }

    /// Production `structField`.
    fn field(&mut self) -> Result<Field> {
        let annotations = self.annotations()?;
        let start = Self::start_of(&annotations, self.span());
        let ty = self.type_ref()?;
        let (ty, name) = self.declarator(ty)?;
        self.expect_semicolon()?;
        Ok(Field {
            annotations,
            ty,
            name,
            span: self.span_from(start),
        })
    }

    /// Production `enumDeclaration` behind its annotations.
    fn enumeration(&mut self, annotations: Vec<Annotation>) -> Result<EnumDecl> {
        let start = Self::start_of(&annotations, self.span());
        self.expect_keyword(Keyword::Enum)?;
        let underlying = if self.at_name() && self.ahead(1).is(Symbol::LeftBrace) {
            None
        } else {
            Some(self.type_ref()?)
        };
        let name = self.name()?;
        self.scopes.declare_type(&name.name);
        let open = self.expect(Symbol::LeftBrace)?;
        let has_values = underlying.is_some();
        let members = self.comma_list(Symbol::RightBrace, true, |p| p.enum_member(has_values))?;
        if members.is_empty() {
            return self.unexpected("a member of the enumeration");
        }
        self.expect_close(Symbol::RightBrace, open)?;
        Ok(EnumDecl {
            annotations,
            name,
            underlying,
            members,
            span: self.span_from(start),
        })
    }

    /// Production `name` or `specifiedIdentifier`.
    fn enum_member(&mut self, has_value: bool) -> Result<EnumMember> {
        let name = self.name()?;
        let value = if has_value {
            self.expect(Symbol::Assign)?;
            Some(self.expression()?)
        } else if self.is(Symbol::Assign) {
            let span = self.span();
            return self.fail(
                Diagnostic::error(
                    codes::UNEXPECTED_TOKEN,
                    span,
                    "only an enumeration with an underlying type can give values to its members",
                )
                .with_help("write the type after `enum`, as in `enum bit<8> Name { … }`"),
            );
        } else {
            None
        };
        let span = self.span_from(name.span);
        Ok(EnumMember { name, value, span })
    }

    /// Production `typedefDeclaration` behind its annotations, with its semicolon.
    fn typedef(&mut self, annotations: Vec<Annotation>) -> Result<TypedefDecl> {
        let start = Self::start_of(&annotations, self.span());
        let is_new = self.bump().kind == TokenKind::Keyword(Keyword::Type);
        let inner = self.annotations()?;
        let (target, name) = match self.token().kind {
            TokenKind::Keyword(Keyword::Header | Keyword::HeaderUnion | Keyword::Struct)
                if !is_new =>
            {
                (
                    TypedefTarget::Struct(Box::new(self.structure(inner)?)),
                    self.name()?,
                )
            }
            TokenKind::Keyword(Keyword::Enum) if !is_new => (
                TypedefTarget::Enum(Box::new(self.enumeration(inner)?)),
                self.name()?,
            ),
            _ if !inner.is_empty() => return self.unexpected("a header, struct or enumeration"),
            _ => {
                let ty = self.type_ref()?;
                let (ty, name) = self.declarator(ty)?;
                (TypedefTarget::Type(ty), name)
            }
        };
        self.scopes.declare_type(&name.name);
        self.expect_semicolon()?;
        Ok(TypedefDecl {
            annotations,
            is_new,
            target,
            name,
            span: self.span_from(start),
        })
    }

    /// Productions `errorDeclaration` and `matchKindDeclaration` behind their annotations.
    fn members(&mut self, annotations: Vec<Annotation>) -> Result<MembersDecl> {
        let start = Self::start_of(&annotations, self.span());
        // The grammar allows a trailing comma in a match_kind, and none in an error.
        let trailing = self.bump().kind == TokenKind::Keyword(Keyword::MatchKind);
        let open = self.expect(Symbol::LeftBrace)?;
        let members = self.comma_list(Symbol::RightBrace, trailing, Self::name)?;
        self.expect_close(Symbol::RightBrace, open)?;
        Ok(MembersDecl {
            annotations,
            members,
            span: self.span_from(start),
        })
    }
}
