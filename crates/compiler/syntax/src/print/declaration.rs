//! Declarations.

use super::Printer;
use crate::tree::{
    ActionDecl, ActionRef, ControlDecl, ControlLocal, Declaration, Direction, EnumDecl, ExternDecl,
    ExternMember, FunctionDecl, Ident, Instantiation, MembersDecl, ObjectMember, Parameter,
    ParserDecl, ParserLocal, Prototype, Signature, StructDecl, StructKind, TableDecl, TableEntry,
    TablePropertyValue, TypedefDecl, TypedefTarget,
};

impl Printer {
    pub(super) fn declaration(&mut self, declaration: &Declaration) {
        match declaration {
            Declaration::Const(d) => {
                self.constant(d);
                self.put(";");
            }
            Declaration::Extern(d) => self.external(d),
            Declaration::ExternFunction(d) => {
                self.annotations_before(&d.annotations);
                self.put("extern ");
                self.prototype(&d.prototype);
                self.put(";");
            }
            Declaration::Function(d) => self.function(d),
            Declaration::Action(d) => self.action(d),
            Declaration::Parser(d) => self.parser(d),
            Declaration::ParserType(d) => self.signature("parser", d, ";"),
            Declaration::Control(d) => self.control(d),
            Declaration::ControlType(d) => self.signature("control", d, ";"),
            Declaration::Package(d) => self.signature("package", d, ";"),
            Declaration::Struct(d) => self.structure(d),
            Declaration::Enum(d) => self.enumeration(d),
            Declaration::Typedef(d) => self.typedef(d),
            Declaration::Error(d) => self.members("error", d),
            Declaration::MatchKind(d) => self.members("match_kind", d),
            Declaration::Instantiation(d) => self.instance(d),
        }
        self.end_line("");
    }

    fn type_params(&mut self, params: &[Ident]) {
        if !params.is_empty() {
            self.put("<");
            self.separated(params, |p, name| p.put_display(name));
            self.put(">");
        }
    }

    fn params(&mut self, params: &[Parameter]) {
        self.put("(");
        self.separated(params, |p, param| {
            p.annotations_before(&param.annotations);
            p.put(match param.direction {
                Direction::None => "",
                Direction::In => "in ",
                Direction::Out => "out ",
                Direction::InOut => "inout ",
            });
            p.ty(&param.ty);
            p.put(" ");
            p.put_display(&param.name);
            if let Some(default) = &param.default {
                p.put(" = ");
                p.expr(default);
            }
        });
        self.put(")");
    }

    fn prototype(&mut self, prototype: &Prototype) {
        self.ty(&prototype.return_type);
        self.put(" ");
        self.put_display(&prototype.name);
        self.type_params(&prototype.type_params);
        self.params(&prototype.params);
    }

    fn signature(&mut self, keyword: &str, signature: &Signature, end: &str) {
        self.annotations_before(&signature.annotations);
        self.put(keyword);
        self.put(" ");
        self.put_display(&signature.name);
        self.type_params(&signature.type_params);
        self.params(&signature.params);
        self.put(end);
    }

    fn function(&mut self, declaration: &FunctionDecl) {
        self.annotations_before(&declaration.annotations);
        self.prototype(&declaration.prototype);
        self.put(" ");
        self.block(&declaration.body);
    }

    fn action(&mut self, declaration: &ActionDecl) {
        self.annotations_before(&declaration.annotations);
        self.put("action ");
        self.put_display(&declaration.name);
        self.params(&declaration.params);
        self.put(" ");
        self.block(&declaration.body);
    }

    fn instance(&mut self, declaration: &Instantiation) {
        self.annotations_before(&declaration.annotations);
        self.ty(&declaration.ty);
        self.arguments(&declaration.args);
        self.put(" ");
        self.put_display(&declaration.name);
        if let Some(members) = &declaration.members {
            self.put(" = ");
            self.braces(|p| {
                for member in members {
                    p.start_line();
                    match member {
                        ObjectMember::Function(d) => p.function(d),
                        ObjectMember::Instantiation(d) => p.instance(d),
                    }
                    p.end_line("");
                }
            });
        }
        self.put(";");
    }

    fn external(&mut self, declaration: &ExternDecl) {
        self.annotations_before(&declaration.annotations);
        self.put("extern ");
        self.put_display(&declaration.name);
        self.type_params(&declaration.type_params);
        self.put(" ");
        self.braces(|p| {
            for member in &declaration.members {
                p.start_line();
                match member {
                    ExternMember::Constructor(d) => {
                        p.annotations_before(&d.annotations);
                        p.put_display(&d.name);
                        p.params(&d.params);
                    }
                    ExternMember::Method(d) => {
                        p.annotations_before(&d.annotations);
                        p.put(if d.is_abstract { "abstract " } else { "" });
                        p.prototype(&d.prototype);
                    }
                }
                p.end_line(";");
            }
        });
    }

    fn structure(&mut self, declaration: &StructDecl) {
        self.annotations_before(&declaration.annotations);
        self.put(match declaration.kind {
            StructKind::Header => "header ",
            StructKind::HeaderUnion => "header_union ",
            StructKind::Struct => "struct ",
        });
        self.put_display(&declaration.name);
        self.type_params(&declaration.type_params);
        self.put(" ");
        self.braces(|p| {
            for field in &declaration.fields {
                p.start_line();
                p.annotations_before(&field.annotations);
                p.ty(&field.ty);
                p.put(" ");
                p.put_display(&field.name);
                p.end_line(";");
            }
        });
    }

    fn enumeration(&mut self, declaration: &EnumDecl) {
        self.annotations_before(&declaration.annotations);
        self.put("enum ");
        if let Some(underlying) = &declaration.underlying {
            self.ty(underlying);
            self.put(" ");
        }
        self.put_display(&declaration.name);
        self.put(" ");
        self.braces(|p| {
            for member in &declaration.members {
                p.start_line();
                p.put_display(&member.name);
                if let Some(value) = &member.value {
                    p.put(" = ");
                    p.expr(value);
                }
                p.end_line(",");
            }
        });
    }

    fn typedef(&mut self, declaration: &TypedefDecl) {
        self.annotations_before(&declaration.annotations);
        self.put(if declaration.is_new {
            "type "
        } else {
            "typedef "
        });
        match &declaration.target {
            TypedefTarget::Type(ty) => self.ty(ty),
            TypedefTarget::Struct(d) => self.structure(d),
            TypedefTarget::Enum(d) => self.enumeration(d),
        }
        self.put(" ");
        self.put_display(&declaration.name);
        self.put(";");
    }

    fn members(&mut self, keyword: &str, declaration: &MembersDecl) {
        self.annotations_before(&declaration.annotations);
        self.put(keyword);
        self.put(" {");
        self.separated(&declaration.members, |p, member| p.put_display(member));
        self.put("}");
    }

    fn parser(&mut self, declaration: &ParserDecl) {
        self.signature("parser", &declaration.signature, "");
        if !declaration.constructor_params.is_empty() {
            self.params(&declaration.constructor_params);
        }
        self.put(" ");
        self.braces(|p| {
            for local in &declaration.locals {
                p.start_line();
                match local {
                    ParserLocal::Const(d) => {
                        p.constant(d);
                        p.put(";");
                    }
                    ParserLocal::Variable(d) => {
                        p.variable(d);
                        p.put(";");
                    }
                    ParserLocal::Instantiation(d) => p.instance(d),
                    ParserLocal::ValueSet(d) => {
                        p.annotations_before(&d.annotations);
                        p.put("value_set<");
                        p.ty(&d.element);
                        p.put(">(");
                        p.expr(&d.size);
                        p.put(") ");
                        p.put_display(&d.name);
                        p.put(";");
                    }
                }
                p.end_line("");
            }
            declaration.states.iter().for_each(|s| p.state(s));
        });
    }

    fn control(&mut self, declaration: &ControlDecl) {
        self.signature("control", &declaration.signature, "");
        if !declaration.constructor_params.is_empty() {
            self.params(&declaration.constructor_params);
        }
        self.put(" ");
        self.braces(|p| {
            for local in &declaration.locals {
                p.start_line();
                match local {
                    ControlLocal::Const(d) => {
                        p.constant(d);
                        p.put(";");
                    }
                    ControlLocal::Variable(d) => {
                        p.variable(d);
                        p.put(";");
                    }
                    ControlLocal::Instantiation(d) => p.instance(d),
                    ControlLocal::Action(d) => p.action(d),
                    ControlLocal::Table(d) => p.table(d),
                }
                p.end_line("");
            }
            p.start_line();
            p.put("apply ");
            p.block(&declaration.body);
            p.end_line("");
        });
    }

    fn table(&mut self, declaration: &TableDecl) {
        self.annotations_before(&declaration.annotations);
        self.put("table ");
        self.put_display(&declaration.name);
        self.put(" ");
        self.braces(|p| {
            for property in &declaration.properties {
                p.start_line();
                p.annotations_before(&property.annotations);
                p.put(if property.is_const { "const " } else { "" });
                p.put_display(&property.name);
                p.put(" = ");
                match &property.value {
                    TablePropertyValue::Key(elements) => p.braces(|p| {
                        for element in elements {
                            p.start_line();
                            p.expr(&element.expr);
                            p.put(" : ");
                            p.put_display(&element.match_kind);
                            p.annotations_after(&element.annotations);
                            p.end_line(";");
                        }
                    }),
                    TablePropertyValue::Actions(actions) => p.braces(|p| {
                        for action in actions {
                            p.start_line();
                            p.action_ref(action);
                            p.end_line(";");
                        }
                    }),
                    TablePropertyValue::Entries(entries) => {
                        p.braces(|p| entries.iter().for_each(|e| p.entry(e)));
                    }
                    TablePropertyValue::Expr(value) => {
                        p.expr(value);
                        p.put(";");
                    }
                }
                p.end_line("");
            }
        });
    }

    fn action_ref(&mut self, action: &ActionRef) {
        self.annotations_before(&action.annotations);
        self.put_display(&action.path);
        if let Some(args) = &action.args {
            self.arguments(args);
        }
    }

    fn entry(&mut self, entry: &TableEntry) {
        self.start_line();
        self.put(if entry.is_const { "const " } else { "" });
        if let Some(priority) = &entry.priority {
            self.put("priority = (");
            self.expr(priority);
            self.put("): ");
        }
        self.keyset(&entry.keyset);
        self.put(" : ");
        self.action_ref(&entry.action);
        self.annotations_after(&entry.annotations);
        self.end_line(";");
    }
}
