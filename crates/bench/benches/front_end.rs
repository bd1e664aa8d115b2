//! Lines per second of the front end, from source to IR. The largest program that ships
//! stands against reading its tokens only; generated programs, ten and a hundred times as
//! large, against one like them of the size of a common program: a ratio of 1 means that
//! the time grows with the size and no faster.

use stateplane_bench::{Report, Sample, generate, timed};
use stateplane_check::compile;
use stateplane_diagnostics::{Color, Diagnostics, SourceMap, render_all};
use stateplane_library::{WithLibrary, path_of, with_library};
use stateplane_syntax::{MemoryLoader, Options, tokenize};

/// Parts of the generated program of about 1,000 lines.
const PARTS: usize = 11;

/// The most ms that 1,000 lines may take.
const LIMIT_MS: f64 = 50.0;

/// A program with its library.
struct Source {
    loader: WithLibrary<MemoryLoader>,
    main: String,
    options: Options,
}

impl Source {
    fn of(loader: MemoryLoader, main: String) -> Source {
        Source {
            loader: WithLibrary(loader),
            main,
            options: with_library(Options::default()),
        }
    }

    fn built_in(path: &str) -> Source {
        Source::of(MemoryLoader::new(), path_of(path))
    }

    fn generated(parts: usize) -> Source {
        let loader = MemoryLoader::new().with("generated.p4", generate::program(parts));
        Source::of(loader, "generated.p4".to_owned())
    }

    /// Compiles, and tells how many lines of text that took, those of included files among
    /// them.
    fn compile(&self) -> u64 {
        let compiled = compile(&self.loader, &self.main, &self.options);
        let told = || render_all(&compiled.diagnostics, &compiled.sources, Color::Never);
        assert!(compiled.program.is_some(), "{}", told());
        lines(&compiled.sources)
    }

    fn tokens(&self) -> u64 {
        let mut diagnostics = Diagnostics::new();
        let (_, sources) = tokenize(&self.loader, &self.main, &self.options, &mut diagnostics);
        lines(&sources)
    }
}

fn lines(sources: &SourceMap) -> u64 {
    let files = sources.files();
    files
        .map(|(_, file)| file.text().lines().count() as u64)
        .sum()
}

fn compiling(source: &Source) -> impl FnMut() -> Sample {
    move || timed(|| source.compile())
}

fn main() -> std::io::Result<()> {
    let mut report = Report::new("front-end", "lines/s");
    let nat = Source::built_in("apps/nat/nat.p4");
    let nat_lines = nat.compile();
    let rate = report.compare(
        &format!("nat, {nat_lines} lines"),
        compiling(&nat),
        "its tokens",
        || timed(|| nat.tokens()),
    );
    let small = Source::generated(PARTS);
    let against = format!("generated, {} lines", small.compile());
    for factor in [10, 100] {
        let large = Source::generated(PARTS * factor);
        report.compare(
            &format!("{factor} times, {} lines", large.compile()),
            compiling(&large),
            &against,
            compiling(&small),
        );
    }
    let ms = |lines: u64| 1e3 * lines as f64 / rate;
    let limit = "50 ms for 1,000 lines";
    let allowed = LIMIT_MS * nat_lines as f64 / 1e3;
    report.limit("nat, source to IR", ms(nat_lines), limit, allowed);
    report.finish()
}
