//! P4-16 text to syntax tree: preprocessor, lexer, parser; and [`print()`] back to text.
//!
//! [`parse`] never fails: it returns a tree of what could be read, and says in diagnostics
//! what could not. The tree of a program without errors has no `Malformed` node and lacks
//! nothing that was written. Files are read through a [`FileLoader`]; the crate does no IO.

pub mod codes;
pub mod format;
mod lexer;
mod loader;
mod parser;
mod preprocess;
mod print;
pub mod token;
pub mod tree;

use stateplane_diagnostics::{Diagnostics, SourceMap};

pub use format::{FormatError, format};
pub use loader::{FileLoader, LoadError, MemoryLoader};
pub use parser::keyword_meant;
pub use print::print;
use token::Token;
use tree::Program;

/// The greatest width, in bits, that the prefix of a number literal may name. The
/// specification sets none; this bounds the memory that one literal can ask for.
pub const MAX_LITERAL_WIDTH: u32 = 1 << 16;

/// The greatest depth to which constructs may nest, and the greatest height of one expression, so
/// that recursive walks of a tree need a bounded stack.
pub const MAX_NESTING: u32 = 200;

/// Options for reading a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The folders in which `#include <…>` looks, and `#include "…"` after the folder of
    /// the including file.
    pub include_dirs: Vec<String>,
    /// Macros defined before the first line, name and body, as `-D name=body` has them.
    pub defines: Vec<(String, String)>,
}

/// A program that has been read.
#[derive(Clone, Debug)]
pub struct Parsed {
    /// The tree. Declarations that could not be read at all are missing from it.
    pub tree: Program,
    /// All texts read, the main file first.
    pub sources: SourceMap,
    /// Diagnostics of the program as text. If there are errors, a checker may still look at the
    /// tree, but may complain of things that only the error made so.
    pub diagnostics: Diagnostics,
}

/// Reads the program whose main file is `main_file`, with all that it includes.
#[must_use]
pub fn parse(loader: &dyn FileLoader, main_file: &str, options: &Options) -> Parsed {
    let mut diagnostics = Diagnostics::new();
    let (tokens, sources) = tokenize(loader, main_file, options, &mut diagnostics);
    let tree = parser::program(tokens, &mut diagnostics);
    Parsed {
        tree,
        sources,
        diagnostics,
    }
}

/// The tokens of a program after preprocessing, ending with
/// [`TokenKind::End`](token::TokenKind::End), and the texts read.
#[must_use]
pub fn tokenize(
    loader: &dyn FileLoader,
    main_file: &str,
    options: &Options,
    diagnostics: &mut Diagnostics,
) -> (Vec<Token>, SourceMap) {
    let mut sources = SourceMap::new();
    let tokens = preprocess::preprocess(loader, main_file, options, &mut sources, diagnostics);
    (tokens, sources)
}
