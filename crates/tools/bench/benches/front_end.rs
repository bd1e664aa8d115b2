//! Lines per second of the front end. The largest program that ships, from source to IR,
//! stands against reading its tokens only; generated programs, ten and a hundred times as
//! large, against one like them of the size of a common program, in parsing alone and from
//! source to IR: a ratio of 1 means that the time grows with the size and no faster.
//!
//! Lines are those with code on them, of the program and of what it includes: comments and
//! empty lines, of which the library has more than a generated program, do not count.
//!
//! The tree of the program that is a hundred times as large does not fit the processor's
//! caches, which costs a part of the rate once; a program of four times that size stands
//! against it.

use std::hint::black_box;

use stateplane_bench::{Report, generate, timed};
use stateplane_check::compile;
use stateplane_diagnostics::{Color, Diagnostics, render_all};
use stateplane_library::{WithLibrary, path_of, with_library};
use stateplane_syntax::token::Token;
use stateplane_syntax::{MemoryLoader, Options, parse, tokenize};

/// Parts of the generated program of about 1,000 lines.
const PARTS: usize = 11;

/// The most ms that 1,000 lines may take.
const LIMIT_MS: f64 = 50.0;

/// A program with its library.
struct Source {
    loader: WithLibrary<MemoryLoader>,
    main: String,
    options: Options,
    /// Lines that have a token.
    lines: u64,
}

impl Source {
    fn of(loader: MemoryLoader, main: String) -> Source {
        let mut source = Source {
            loader: WithLibrary(loader),
            main,
            options: with_library(Options::default()),
            lines: 0,
        };
        let tokens = source.read_tokens();
        source.lines = tokens.iter().filter(|token| token.line_start).count() as u64;
        source
    }

    fn built_in(path: &str) -> Source {
        Source::of(MemoryLoader::new(), path_of(path))
    }

    fn generated(parts: usize) -> Source {
        let loader = MemoryLoader::new().with("generated.p4", generate::program(parts));
        Source::of(loader, "generated.p4".to_owned())
    }

    fn read_tokens(&self) -> Vec<Token> {
        let mut diagnostics = Diagnostics::new();
        tokenize(&self.loader, &self.main, &self.options, &mut diagnostics).0
    }

    /// Reads its tokens, and tells its lines.
    fn tokens(&self) -> u64 {
        black_box(self.read_tokens());
        self.lines
    }

    /// Reads it to a tree, and tells its lines.
    fn parse(&self) -> u64 {
        let parsed = parse(&self.loader, &self.main, &self.options);
        assert!(!parsed.diagnostics.has_errors());
        black_box(parsed);
        self.lines
    }

    /// Compiles it to IR, and tells its lines.
    fn compile(&self) -> u64 {
        let compiled = compile(&self.loader, &self.main, &self.options);
        let told = || render_all(&compiled.diagnostics, &compiled.sources, Color::Never);
        assert!(compiled.program.is_some(), "{}", told());
        self.lines
    }
}

/// Measured work, and its name.
type Work = (&'static str, fn(&Source) -> u64);

const PARSING: Work = ("parsing", Source::parse);
const COMPILING: Work = ("source to IR", Source::compile);

fn main() -> std::io::Result<()> {
    let mut report = Report::new("front-end", "lines/s");
    let nat = Source::built_in("apps/nat/nat.p4");
    let rate = report.compare(
        &format!("nat, source to IR, {} lines", nat.lines),
        || timed(|| nat.compile()),
        "its tokens",
        || timed(|| nat.tokens()),
    );
    let small = Source::generated(PARTS);
    let large = Source::generated(PARTS * 100);
    let steps = [
        (10, &small, vec![PARSING, COMPILING]),
        (100, &small, vec![PARSING, COMPILING]),
        (400, &large, vec![PARSING]),
    ];
    for (factor, against, works) in steps {
        let source = Source::generated(PARTS * factor);
        for (name, work) in works {
            report.compare(
                &format!("{name}, {factor} times, {} lines", source.lines),
                || timed(|| work(&source)),
                &format!("{name}, {} lines", against.lines),
                || timed(|| work(against)),
            );
        }
    }
    let ms = |lines: u64| 1e3 * lines as f64 / rate;
    let limit = "50 ms for 1,000 lines";
    let allowed = LIMIT_MS * nat.lines as f64 / 1e3;
    report.limit("nat, source to IR", ms(nat.lines), limit, allowed);
    report.finish()
}
