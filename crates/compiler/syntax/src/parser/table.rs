//! Tables.

use stateplane_diagnostics::{Diagnostic, nearest};

use super::{Failed, Parser, Result};
use crate::codes;
use crate::token::{Keyword, Symbol, TokenKind};
use crate::tree::{
    ActionRef, Annotation, Expr, Ident, KeyElement, TableDecl, TableEntry, TableProperty,
    TablePropertyValue,
};

impl Parser {
    /// Production `tableDeclaration` behind its annotations.
    pub(super) fn table(&mut self, annotations: Vec<Annotation>) -> Result<TableDecl> {
        let start = Self::start_of(&annotations, self.span());
        self.expect_keyword(Keyword::Table)?;
        let name = self.name()?;
        self.scopes.declare_value(&name.name);
        let open = self.expect(Symbol::LeftBrace)?;
        let properties = self.braced_list(Self::table_property);
        self.expect_close(Symbol::RightBrace, open)?;
        Ok(TableDecl {
            annotations,
            name,
            properties,
            span: self.span_from(start),
        })
    }

    /// Production `tableProperty`.
    fn table_property(&mut self) -> Result<TableProperty> {
        let annotations = self.annotations()?;
        let start = Self::start_of(&annotations, self.span());
        let const_span = self.span();
        let is_const = self.take_keyword(Keyword::Const);
        let keyword = match self.token().kind {
            TokenKind::Keyword(k @ (Keyword::Key | Keyword::Actions | Keyword::Entries)) => Some(k),
            _ => None,
        };
        if !self.at_name() {
            return self.unexpected("a table property");
        }
        let name = self.name()?;
        if matches!(keyword, Some(Keyword::Key | Keyword::Actions)) {
            if is_const {
                self.refuse(
                    codes::MISPLACED,
                    const_span,
                    format!("property `{name}` cannot be `const`"),
                    "remove `const`",
                );
                return Err(Failed);
            }
            if let Some(first) = annotations.first() {
                self.refuse(
                    codes::MISPLACED,
                    first.span,
                    format!("property `{name}` cannot have annotations"),
                    "annotate the table, or the elements of the property",
                );
            }
        }
        self.expect(Symbol::Assign)?;
        let keyword = keyword.or_else(|| self.misspelt_list(&name));
        let value = match keyword {
            Some(keyword) => {
                let open = self.expect(Symbol::LeftBrace)?;
                let value = match keyword {
                    Keyword::Key => TablePropertyValue::Key(self.braced_list(Self::key_element)),
                    Keyword::Actions => {
                        TablePropertyValue::Actions(self.braced_list(Self::listed_action))
                    }
                    _ => TablePropertyValue::Entries(self.braced_list(Self::table_entry)),
                };
                self.expect_close(Symbol::RightBrace, open)?;
                value
            }
            None => {
                let value = TablePropertyValue::Expr(self.expression()?);
                self.expect_semicolon()?;
                value
            }
        };
        Ok(TableProperty {
            annotations,
            is_const,
            name,
            value,
            span: self.span_from(start),
        })
    }

    /// The property whose value is a list in braces that `name` probably stands for, where
    /// such a list follows; reports.
    fn misspelt_list(&mut self, name: &Ident) -> Option<Keyword> {
        if !self.is(Symbol::LeftBrace) {
            return None;
        }
        let near = nearest(name.as_str(), ["key", "actions", "entries"])?;
        self.report(
            Diagnostic::error(
                codes::UNEXPECTED_TOKEN,
                name.span,
                format!("no table property `{name}` has a list in braces"),
            )
            .with_help(format!("did you mean `{near}`?")),
        );
        Some(match near {
            "key" => Keyword::Key,
            "actions" => Keyword::Actions,
            _ => Keyword::Entries,
        })
    }

    /// Production `keyElement`.
    fn key_element(&mut self) -> Result<KeyElement> {
        let expr = self.expression()?;
        self.expect(Symbol::Colon)?;
        let match_kind = self.name()?;
        let annotations = self.annotations()?;
        self.expect_semicolon()?;
        let span = self.span_from(expr.span);
        Ok(KeyElement {
            expr,
            match_kind,
            annotations,
            span,
        })
    }

    /// One element of production `actionList`.
    fn listed_action(&mut self) -> Result<ActionRef> {
        let annotations = self.annotations()?;
        let action = self.action_ref(annotations)?;
        self.expect_semicolon()?;
        Ok(action)
    }

    /// Production `actionRef`.
    fn action_ref(&mut self, annotations: Vec<Annotation>) -> Result<ActionRef> {
        let path = self.path()?;
        let args = if self.is(Symbol::LeftParen) {
            Some(self.arguments()?)
        } else {
            None
        };
        let span = self.span_from(path.span);
        Ok(ActionRef {
            annotations,
            path,
            args,
            span,
        })
    }

    /// Production `entry`.
    fn table_entry(&mut self) -> Result<TableEntry> {
        let start = self.span();
        let is_const = self.take_keyword(Keyword::Const);
        let priority = if self.is_keyword(Keyword::Priority) && self.ahead(1).is(Symbol::Assign) {
            Some(self.entry_priority()?)
        } else {
            None
        };
        let keyset = self.keyset()?;
        self.expect(Symbol::Colon)?;
        let action = self.action_ref(Vec::new())?;
        let annotations = self.annotations()?;
        self.expect_semicolon()?;
        let span = self.span_from(start);
        Ok(TableEntry {
            is_const,
            priority,
            keyset,
            action,
            annotations,
            span,
        })
    }

    /// Production `entryPriority`: a number, or an expression in parentheses.
    fn entry_priority(&mut self) -> Result<Expr> {
        self.expect_keyword(Keyword::Priority)?;
        self.expect(Symbol::Assign)?;
        if self.token().kind != TokenKind::Number && !self.is(Symbol::LeftParen) {
            return self.unexpected("a number, or an expression in parentheses");
        }
        let priority = self.postfix()?;
        self.expect(Symbol::Colon)?;
        Ok(priority)
    }
}
