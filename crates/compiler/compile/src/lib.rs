//! Programs with the built-in library, from text to IR.
//!
//! ```
//! let program = stateplane_compile::shipped("apps/counter/counter.p4")
//!     .define("REPLICATION_BUCKETS", "2")
//!     .program()?;
//! assert!(!program.registers.is_empty());
//! # Ok::<(), stateplane_compile::Refused>(())
//! ```

use core::fmt;
use std::sync::Arc;

use stateplane_check::Compiled;
use stateplane_diagnostics::{Color, Diagnostics, SourceMap, render_all};
use stateplane_ir::{Interface, Program};
use stateplane_library::{WithLibrary, path_of, with_library};
use stateplane_syntax::{FileLoader, LoadError, MemoryLoader, Options, Parsed};

/// Name of the main file that [`text`] makes.
pub const TEXT: &str = "program.p4";

/// The program `text`, which includes at most what is built in.
pub fn text(text: impl Into<Arc<str>>) -> Source<MemoryLoader> {
    Source::new(MemoryLoader::new().with(TEXT, text), TEXT)
}

/// The built-in program `path`, as `apps/nat/nat.p4`.
pub fn shipped(path: &str) -> Source<MemoryLoader> {
    Source::new(MemoryLoader::new(), &path_of(path))
}

/// The program `main`, which includes at most what is built in, with the atomic blocks of all its files or
/// with plain ones in their place: for tests of what workers do to a program without them.
pub fn with_blocks(main: &str, blocks: bool) -> Source<ReadBy<impl Fn(&str) -> Option<String>>> {
    let read = move |path: &str| {
        let text = match path {
            TEXT => Some(main),
            _ if path.starts_with("lib/") => stateplane_library::text(path),
            _ => None,
        }?;
        Some(if blocks {
            text.to_owned()
        } else {
            text.replace("@atomic {", "{")
        })
    };
    file(TEXT, read).include_dirs(["lib".to_owned()])
}

/// The program whose main file is `path`. `read` gives the contents of it and of the files that it
/// includes, by their paths; `None` if there is no such file.
pub fn file<R: Fn(&str) -> Option<String>>(path: &str, read: R) -> Source<ReadBy<R>> {
    Source::new(ReadBy(read), path)
}

/// A loader of files that a function reads.
pub struct ReadBy<R>(R);

impl<R: Fn(&str) -> Option<String>> FileLoader for ReadBy<R> {
    fn load(&self, path: &str) -> Result<Arc<str>, LoadError> {
        (self.0)(path).map(Arc::from).ok_or(LoadError::NotFound)
    }
}

/// A program: its main file, the files that it may include, built-in ones among them, and its
/// macros.
pub struct Source<L> {
    loader: WithLibrary<L>,
    main_file: String,
    options: Options,
}

impl<L: FileLoader> Source<L> {
    /// The program whose main file is `main_file`, with the files of `loader`.
    pub fn new(loader: L, main_file: &str) -> Source<L> {
        Source {
            loader: WithLibrary(loader),
            main_file: main_file.to_owned(),
            options: with_library(Options::default()),
        }
    }

    /// Defines a macro.
    #[must_use]
    pub fn define(self, name: &str, body: &str) -> Source<L> {
        self.defines([(name.to_owned(), body.to_owned())])
    }

    /// Defines macros, names and bodies.
    #[must_use]
    pub fn defines(mut self, macros: impl IntoIterator<Item = (String, String)>) -> Source<L> {
        self.options.defines.extend(macros);
        self
    }

    /// Searches these folders for included files, before those of the library.
    #[must_use]
    pub fn include_dirs(mut self, folders: impl IntoIterator<Item = String>) -> Source<L> {
        self.options.include_dirs.splice(..0, folders);
        self
    }

    /// Path of the main file.
    pub fn main_file(&self) -> &str {
        &self.main_file
    }

    /// The files, built-in ones among them.
    pub fn loader(&self) -> &WithLibrary<L> {
        &self.loader
    }

    /// Macros, and the folders in which included files are searched.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Reads the program to a tree.
    ///
    /// # Errors
    ///
    /// [`Refused`] if the text has errors.
    pub fn tree(&self) -> Result<Parsed, Refused> {
        let parsed = stateplane_syntax::parse(&self.loader, &self.main_file, &self.options);
        if parsed.diagnostics.has_errors() {
            return Err(Refused {
                diagnostics: parsed.diagnostics,
                sources: parsed.sources,
            });
        }
        Ok(parsed)
    }

    /// Reads and checks the program: with errors and warnings, or with none.
    pub fn compile(&self) -> Compiled {
        stateplane_check::compile(&self.loader, &self.main_file, &self.options)
    }

    /// The program as IR for analysis, whose statements tell their places in the source
    /// ([`Stmt::At`](stateplane_ir::Stmt::At)).
    ///
    /// # Errors
    ///
    /// [`Refused`] if it has errors.
    pub fn program_with_places(&self) -> Result<Program, Refused> {
        let parsed = self.tree()?;
        let checked = stateplane_check::check_with_places(&parsed);
        checked.program.ok_or(Refused {
            diagnostics: checked.diagnostics,
            sources: parsed.sources,
        })
    }

    /// The program as IR.
    ///
    /// # Errors
    ///
    /// [`Refused`] if it has errors.
    pub fn program(&self) -> Result<Program, Refused> {
        self.program_and_interface().map(|(program, _)| program)
    }

    /// The program as IR, and its description for the control plane.
    ///
    /// # Errors
    ///
    /// [`Refused`] if it has errors.
    pub fn program_and_interface(&self) -> Result<(Program, Interface), Refused> {
        let compiled = self.compile();
        match compiled.program {
            Some(program) => Ok((program, compiled.interface)),
            None => Err(Refused {
                diagnostics: compiled.diagnostics,
                sources: compiled.sources,
            }),
        }
    }
}

/// A program that has errors. Shown as all its diagnostics, rendered without colors.
pub struct Refused {
    /// Errors and warnings.
    pub diagnostics: Diagnostics,
    /// The texts that they point into.
    pub sources: SourceMap,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&render_all(&self.diagnostics, &self.sources, Color::Never))
    }
}

impl fmt::Debug for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl core::error::Error for Refused {}

#[cfg(test)]
mod tests;
