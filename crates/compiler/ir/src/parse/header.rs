//! First pass of the parser: declarations, their names, types and variables.

use super::lexer::{Lexeme, Token};
use super::symbols::{Kind, Symbols};
use super::{ParseError, Parser, Result};
use crate::{
    Annotation, ControlId, EnumDef, EnumId, FieldDef, ParserId, Pipeline, Program, StackDef,
    StackId, StructDef, StructId, Type, Var,
};
use num_bigint::BigUint;

/// A declaration.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item<'a> {
    pub(super) keyword: &'a str,
    /// The token after the keyword.
    pub(super) at: usize,
}

/// Finds the declarations: each begins a line outside of braces.
pub(super) fn items(tokens: &[Lexeme]) -> Result<Vec<Item<'_>>> {
    let mut items = Vec::new();
    let mut depth = 0_usize;
    for (at, lexeme) in tokens.iter().enumerate() {
        match &lexeme.token {
            Token::End if depth > 0 => return unexpected(lexeme, "`}`"),
            Token::End => {}
            token if depth == 0 && lexeme.first => match token {
                Token::Word(keyword) => items.push(Item {
                    keyword,
                    at: at + 1,
                }),
                _ => return unexpected(lexeme, "a declaration"),
            },
            Token::Sign("{") => depth += 1,
            Token::Sign("}") => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    Ok(items)
}

fn unexpected<T>(found: &Lexeme, wanted: &str) -> Result<T> {
    Err(ParseError {
        line: found.line,
        column: found.column,
        message: format!("expected {wanted}, found {}", found.token),
    })
}

/// A program without anything, to be filled.
fn blank() -> Program {
    Program {
        structs: Vec::new(),
        stacks: Vec::new(),
        enums: Vec::new(),
        errors: Vec::new(),
        vars: Vec::new(),
        parsers: Vec::new(),
        controls: Vec::new(),
        actions: Vec::new(),
        functions: Vec::new(),
        tables: Vec::new(),
        registers: Vec::new(),
        counters: Vec::new(),
        meters: Vec::new(),
        value_sets: Vec::new(),
        action_profiles: Vec::new(),
        field_lists: Vec::new(),
        pipeline: Pipeline {
            parser: ParserId(0),
            verify_checksum: ControlId(0),
            ingress: ControlId(0),
            egress: ControlId(0),
            compute_checksum: ControlId(0),
            deparser: ControlId(0),
            headers: Type::Bool,
            metadata: Type::Bool,
            standard_metadata: StructId(0),
        },
    }
}

/// The names of all entities, with the types and variables; the rest of the program is
/// empty.
pub(super) fn declare(tokens: &[Lexeme], items: &[Item<'_>]) -> Result<(Program, Symbols)> {
    let (mut program, mut symbols) = (blank(), Symbols::default());
    names(tokens, items, &mut program, &mut symbols)?;
    let of = |keyword: &'static str| items.iter().filter(move |item| item.keyword == keyword);
    for (index, item) in of("stack").enumerate() {
        let def = Parser::new(tokens, item.at, &program, &symbols).stack(index)?;
        program.stacks.push(def);
    }
    for (index, item) in of("fields").enumerate() {
        let mut parser = Parser::new(tokens, item.at, &program, &symbols);
        parser.name()?;
        let (annotations, fields, names) = parser.fields()?;
        let def = &mut program.structs[index];
        (def.annotations, def.fields) = (annotations, fields);
        symbols.fields.push(names);
    }
    for (index, item) in of("var").enumerate() {
        let mut parser = Parser::new(tokens, item.at, &program, &symbols);
        parser.name()?;
        parser.sign(":")?;
        let ty = parser.ty()?;
        parser.end_of_item()?;
        program.vars[index].ty = ty;
    }
    Ok((program, symbols))
}

/// Enters the names, and reads errors and enums.
fn names(
    tokens: &[Lexeme],
    items: &[Item<'_>],
    program: &mut Program,
    symbols: &mut Symbols,
) -> Result<()> {
    // No type or place is read here, so there need be nothing to look it up in.
    let (nothing, no_symbols) = (blank(), Symbols::default());
    let mut errors = false;
    for item in items {
        let mut parser = Parser::new(tokens, item.at, &nothing, &no_symbols);
        let kind = match item.keyword {
            "pipeline" | "field_list" | "stack" => continue,
            "error" if errors => return parser.error("a second list of errors"),
            "error" => {
                program.errors = parser.members()?;
                parser.end_of_item()?;
                errors = true;
                continue;
            }
            "enum" => {
                let name = parser.declare(&mut symbols.enums)?;
                let members = parser.members()?;
                parser.end_of_item()?;
                program.enums.push(EnumDef { name, members });
                continue;
            }
            "fields" => {
                let name = parser.declare(&mut symbols.structs)?;
                program.structs.push(StructDef {
                    name,
                    fields: Vec::new(),
                    annotations: Vec::new(),
                });
                continue;
            }
            "var" => {
                let name = parser.declare(&mut symbols.vars)?;
                let ty = Type::Bool;
                program.vars.push(Var { name, ty });
                continue;
            }
            "parser" => &mut symbols.parsers,
            "control" => &mut symbols.controls,
            "action" => &mut symbols.actions,
            "function" => &mut symbols.functions,
            "table" => &mut symbols.tables,
            "register" => &mut symbols.registers,
            "counter" => &mut symbols.counters,
            "meter" => &mut symbols.meters,
            "value_set" => &mut symbols.value_sets,
            "action_profile" => &mut symbols.action_profiles,
            _ => return parser.error_at(item.at - 1, "there is no such declaration"),
        };
        parser.declare(kind)?;
    }
    if !errors {
        let end = Parser::new(tokens, tokens.len(), &nothing, &no_symbols);
        return end.error("there is no list of errors");
    }
    Ok(())
}

impl Parser<'_> {
    /// Names of members in braces.
    fn members(&mut self) -> Result<Vec<String>> {
        self.sign("{")?;
        self.list("}", |p| Ok(p.member_name()?.text))
    }

    fn stack(&mut self, index: usize) -> Result<StackDef> {
        if self.small()? as usize != index {
            return self.error_at(self.at - 1, format!("its position is {index}"));
        }
        self.sign(":")?;
        let element = self.element_type()?;
        let size = self.bracketed()?;
        self.end_of_item()?;
        Ok(StackDef { element, size })
    }

    /// The members of a struct, after its name.
    fn fields(&mut self) -> Result<(Vec<Annotation>, Vec<FieldDef>, Kind)> {
        let annotations = self.annotations()?;
        self.sign("{")?;
        let (mut fields, mut names) = (Vec::new(), Kind::default());
        while !self.take("}") {
            let at = self.at;
            let name = self.member_name()?;
            let name = self.enter(at, &mut names, name)?;
            self.sign(":")?;
            fields.push(FieldDef {
                name,
                ty: self.ty()?,
                annotations: self.annotations()?,
            });
        }
        self.end_of_item()?;
        Ok((annotations, fields, names))
    }

    /// Nothing more of a declaration: a new line.
    pub(super) fn end_of_item(&self) -> Result<()> {
        match self.tokens.get(self.at) {
            Some(lexeme) if !lexeme.first && lexeme.token != Token::End => {
                self.expected("the end of the declaration")
            }
            _ => Ok(()),
        }
    }

    /// A type.
    pub(super) fn ty(&mut self) -> Result<Type> {
        let at = self.at;
        let element = self.element_type()?;
        let stackable = matches!(element, Type::Header(_) | Type::Union(_));
        if !stackable || !self.is("[") || !matches!(self.look(1), Token::Number(_)) {
            return Ok(element);
        }
        let def = StackDef {
            element,
            size: self.bracketed()?,
        };
        match self.program.stacks.iter().position(|other| *other == def) {
            Some(index) => Ok(Type::Stack(StackId(index as u32))),
            None => self.error_at(at, "there is no such stack"),
        }
    }

    /// A type that is no stack by its definition.
    pub(super) fn element_type(&mut self) -> Result<Type> {
        let symbols = self.symbols;
        let Some(word) = self.keyword() else {
            return self.expected("a type");
        };
        self.at += 1;
        let structure = |p: &mut Self| Ok(StructId(p.resolve("struct", &symbols.structs)?));
        Ok(match word {
            "bool" => Type::Bool,
            "error" => Type::Error,
            "bit" => Type::Bits(self.width()?),
            "int" => Type::Int(self.width()?),
            "varbit" => Type::Varbit(self.width()?),
            "enum" => Type::Enum(EnumId(self.resolve("enum", &symbols.enums)?)),
            "struct" => Type::Struct(structure(self)?),
            "header" => Type::Header(structure(self)?),
            "header_union" => Type::Union(structure(self)?),
            "stack" => {
                let index = self.small()?;
                if index as usize >= self.program.stacks.len() {
                    return self.error_at(self.at - 1, "there is no such stack");
                }
                Type::Stack(StackId(index))
            }
            _ => return self.error_at(self.at - 1, format!("expected a type, found `{word}`")),
        })
    }

    fn width(&mut self) -> Result<u32> {
        self.sign("<")?;
        let width = self.small()?;
        self.sign(">")?;
        Ok(width)
    }

    /// A number in square brackets.
    pub(super) fn bracketed<T: TryFrom<BigUint>>(&mut self) -> Result<T> {
        self.sign("[")?;
        let number = self.number()?;
        self.sign("]")?;
        Ok(number)
    }

    /// A number below 2^32.
    pub(super) fn small(&mut self) -> Result<u32> {
        self.number()
    }

    /// A number of a type that it must fit.
    pub(super) fn number<T: TryFrom<BigUint>>(&mut self) -> Result<T> {
        let Token::Number(number) = self.peek() else {
            return self.expected("a number");
        };
        match T::try_from(number.clone()) {
            Ok(number) => {
                self.at += 1;
                Ok(number)
            }
            Err(_) => self.error("the number is too large"),
        }
    }
}
