//! Tree to text, in one canonical layout.
//!
//! The text parses to an equal tree, spans apart. Operands that are themselves made of
//! operators get parentheses whether they need them or not, except on the left of the same
//! operator, so that the text shows how the source was understood. Comments, directives and
//! macros are gone.

mod declaration;
mod expression;
mod statement;

use std::fmt::Write as _;

use crate::tree::{Annotation, AnnotationBody, Program};

/// The text of a program, one declaration after the other.
#[must_use]
pub fn print(program: &Program) -> String {
    let mut printer = Printer {
        out: String::new(),
        indent: 0,
    };
    for declaration in &program.declarations {
        printer.declaration(declaration);
    }
    printer.out
}

struct Printer {
    out: String,
    indent: usize,
}

impl Printer {
    fn put(&mut self, text: &str) {
        self.out.push_str(text);
    }

    fn put_display(&mut self, value: impl std::fmt::Display) {
        // Writing to a string cannot fail.
        let _ = write!(self.out, "{value}");
    }

    fn start_line(&mut self) {
        for _ in 0..self.indent {
            self.put("    ");
        }
    }

    fn end_line(&mut self, text: &str) {
        self.put(text);
        self.put("\n");
    }

    /// `{`, the body on lines of its own, and `}` without a line end.
    fn braces(&mut self, body: impl FnOnce(&mut Self)) {
        self.end_line("{");
        self.indent += 1;
        body(self);
        self.indent -= 1;
        self.start_line();
        self.put("}");
    }

    fn separated<T>(&mut self, list: &[T], mut element: impl FnMut(&mut Self, &T)) {
        for (i, item) in list.iter().enumerate() {
            if i > 0 {
                self.put(", ");
            }
            element(self, item);
        }
    }

    /// Each annotation with a space behind it.
    fn annotations_before(&mut self, annotations: &[Annotation]) {
        for annotation in annotations {
            self.annotation(annotation);
            self.put(" ");
        }
    }

    /// Each annotation with a space before it.
    fn annotations_after(&mut self, annotations: &[Annotation]) {
        for annotation in annotations {
            self.put(" ");
            self.annotation(annotation);
        }
    }

    fn annotation(&mut self, annotation: &Annotation) {
        self.put("@");
        self.put_display(&annotation.name);
        match &annotation.body {
            AnnotationBody::Empty => {}
            AnnotationBody::Unstructured(tokens) => {
                self.put("(");
                for (i, token) in tokens.iter().enumerate() {
                    if i > 0 {
                        self.put(" ");
                    }
                    self.put(&token.text);
                }
                self.put(")");
            }
            AnnotationBody::Expressions(list) => {
                self.put("[");
                self.separated(list, Self::expr);
                self.put("]");
            }
            AnnotationBody::KeyValues(pairs) => {
                self.put("[");
                self.separated(pairs, Self::named_expr);
                self.put("]");
            }
        }
    }

    fn string(&mut self, text: &str) {
        self.put("\"");
        for c in text.chars() {
            match c {
                '"' => self.put("\\\""),
                '\\' => self.put("\\\\"),
                '\n' => self.put("\\n"),
                '\r' => self.put("\\r"),
                '\t' => self.put("\\t"),
                _ => self.out.push(c),
            }
        }
        self.put("\"");
    }
}
