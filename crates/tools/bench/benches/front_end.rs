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
//!
//! Programs with very many actions or cases, which a careless table of names makes slow, have a
//! limit each.

use std::hint::black_box;

use stateplane_bench::{Report, generate, timed};
use stateplane_compile::{Source, shipped, text};
use stateplane_diagnostics::Diagnostics;
use stateplane_syntax::token::Token;
use stateplane_syntax::{MemoryLoader, tokenize};

/// Parts of the generated program of about 1,000 lines.
const PARTS: usize = 11;

/// The most ms that 1,000 lines may take.
const LIMIT_MS: f64 = 50.0;

/// The most ms that a program with very many actions or cases may take.
const WIDE_LIMIT_MS: f64 = 1e3;

/// A program with its library.
struct Text {
    source: Source<MemoryLoader>,
    /// Lines that have a token.
    lines: u64,
}

impl Text {
    fn of(source: Source<MemoryLoader>) -> Text {
        let mut text = Text { source, lines: 0 };
        let tokens = text.read_tokens();
        text.lines = tokens.iter().filter(|token| token.line_start).count() as u64;
        text
    }

    fn generated(parts: usize) -> Text {
        Text::of(text(generate::program(parts)))
    }

    fn read_tokens(&self) -> Vec<Token> {
        let mut diagnostics = Diagnostics::new();
        let source = &self.source;
        let (loader, options) = (source.loader(), source.options());
        tokenize(loader, source.main_file(), options, &mut diagnostics).0
    }

    /// Reads its tokens, and tells its lines.
    fn tokens(&self) -> u64 {
        black_box(self.read_tokens());
        self.lines
    }

    /// Reads it to a tree, and tells its lines.
    fn parse(&self) -> u64 {
        black_box(self.source.tree().expect("a program without errors"));
        self.lines
    }

    /// Compiles it to IR, and tells its lines.
    fn compile(&self) -> u64 {
        black_box(self.source.program().expect("a program without errors"));
        self.lines
    }
}

/// Measured work, and its name.
type Work = (&'static str, fn(&Text) -> u64);

const PARSING: Work = ("parsing", Text::parse);
const COMPILING: Work = ("source to IR", Text::compile);

fn main() -> std::io::Result<()> {
    let mut report = Report::new("front-end", "lines/s");
    let nat = Text::of(shipped("apps/nat/nat.p4"));
    let rate = report.compare(
        &format!("nat, source to IR, {} lines", nat.lines),
        || timed(|| nat.compile()),
        "its tokens",
        || timed(|| nat.tokens()),
    );
    let small = Text::generated(PARTS);
    let large = Text::generated(PARTS * 100);
    let steps = [
        (10, &small, vec![PARSING, COMPILING]),
        (100, &small, vec![PARSING, COMPILING]),
        (400, &large, vec![PARSING]),
    ];
    for (factor, against, works) in steps {
        let source = Text::generated(PARTS * factor);
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
    let wide = [
        ("40,000 called actions", generate::called_actions(40_000)),
        (
            "a table of 40,000 actions",
            generate::listed_actions(40_000),
        ),
        ("a switch of 60,000 cases", generate::switch_cases(60_000)),
    ];
    for (name, program) in wide {
        let source = Text::of(text(program));
        let took = timed(|| source.compile()).spent;
        report.limit(name, 1e3 * took.as_secs_f64(), "one second", WIDE_LIMIT_MS);
    }
    report.finish()
}
