//! `stateplane sync` changes nothing that packets see: the packet tests of the applications, of
//! the programs of `stateplane protect`, of the examples and of this folder give what they expect
//! on instrumented programs too, on both engines, which end in the same state; and the registers
//! of the program hold what they hold in the original.

use stateplane_diagnostics::{Color, render_all};
use stateplane_interp::Interp;
use stateplane_ir::Program;
use stateplane_library::included_script;
use stateplane_native::Compiled;
use stateplane_runtime::{Engine, Value};
use stateplane_stf::{Script, parse_with, run};
use stateplane_synchronise::{Selection, synchronise};
use std::collections::BTreeMap;
use std::fs;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread::available_parallelism;

/// Folders with packet tests.
const FOLDERS: [&str; 4] = [
    "apps",
    "crates/compiler/protect/tests/programs",
    "crates/engine/stf/tests/programs",
    "docs/examples",
];

/// Packet tests of a folder that one thread runs in turn: few folders have more, and the programs
/// of those have few in common.
const MOST_IN_TURN: usize = 24;

/// A register for programs that have none, so that they get the blocks of the library, too.
const PROBE: &str = "\nregister<bit<8>>(4) synced_probe;\n";

/// Files of packet tests below a folder.
fn scripts(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            scripts(&path, into);
        } else if path.extension().is_some_and(|end| end == "stf") {
            into.push(path);
        }
    }
}

/// A packet test with its program.
struct Case {
    script: Script,
    main: String,
}

impl Case {
    fn read(path: &Path) -> Result<Self, String> {
        let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
        let name = path.to_string_lossy();
        let included = |file: &str| included_script(&name, file, |_| None);
        let script = parse_with(&name, &text, &included).map_err(|error| error.to_string())?;
        let folder = path.parent().unwrap_or(path);
        let main = match &script.program {
            Some(program) => folder.join(program),
            // The script of an example has its name.
            None => path.with_extension("p4"),
        };
        Ok(Self {
            script,
            main: main.to_string_lossy().into_owned(),
        })
    }

    /// Compiles `text` in the place of the program.
    fn compile(&self, text: &str) -> Result<Program, String> {
        let source = stateplane_compile::file(&self.main, self.reading(text));
        let source = source.defines(self.script.defines.clone());
        source.program().map_err(|refused| refused.to_string())
    }

    fn reading<'a>(&'a self, text: &'a str) -> impl Fn(&str) -> Option<String> + 'a {
        move |path| {
            if path == self.main {
                Some(text.to_owned())
            } else {
                fs::read_to_string(path).ok()
            }
        }
    }

    /// Synchronises `text` in the place of the program: text, or codes and all complaints.
    fn synchronise(&self, text: &str) -> Result<String, (Vec<&'static str>, String)> {
        let source = stateplane_compile::file(&self.main, self.reading(text));
        let source = source.defines(self.script.defines.clone());
        let (loader, options) = (source.loader(), source.options());
        let made = synchronise(loader, source.main_file(), options, Selection::Annotated);
        let errors = made.diagnostics.iter().filter(|told| told.is_error());
        let codes = errors.map(|told| told.code.id()).collect();
        let complaints = render_all(&made.diagnostics, &made.sources, Color::Never);
        made.program
            .map(|(text, _)| text)
            .ok_or((codes, complaints))
    }

    /// The program as `stateplane protect` writes it.
    fn protect(&self, text: &str) -> Option<String> {
        let source = stateplane_compile::file(&self.main, self.reading(text));
        let source = source.defines(self.script.defines.clone());
        let (loader, options) = (source.loader(), source.options());
        let protected = stateplane_protect::protect(loader, source.main_file(), options);
        protected.program.map(|(text, _)| text)
    }

    /// The original and the instrumented program end with equal registers, on both engines.
    fn compare(&self, programs: &Programs) -> Result<(), String> {
        let (original, made) = (&programs.original, &programs.made);
        let interp = |program: &Program| Interp::new(program.clone(), Default::default());
        let text = |error: &dyn std::fmt::Display| error.to_string();
        let first = run(&self.script, interp(original).map_err(|it| text(&it))?);
        let first = first.map_err(|error| format!("the original: {error}"))?;
        let one = run(&self.script, interp(made).map_err(|it| text(&it))?);
        let one = one.map_err(|error| format!("interp: {error}"))?;
        let native = programs.native.engine(Default::default());
        let other = run(&self.script, native.map_err(|it| text(&it))?);
        let other = other.map_err(|error| format!("native: {error}"))?;
        if one.engine().state() != other.engine().state() {
            return Err("the engines end in different states".to_owned());
        }
        if one.counters() != other.counters() || one.counters() != first.counters() {
            return Err("the switches count differently".to_owned());
        }
        let registers = |engine: &Interp| registers(engine, original);
        if registers(first.engine())? == registers(one.engine())? {
            Ok(())
        } else {
            Err("the registers differ from those of the original".to_owned())
        }
    }
}

/// The registers of the original program by their names.
fn registers(engine: &Interp, original: &Program) -> Result<BTreeMap<String, Vec<Value>>, String> {
    let mut out = BTreeMap::new();
    for register in &original.registers {
        let found = engine.state().register(&register.name);
        let found = found.map_err(|error| error.to_string())?;
        let values: Result<Vec<Value>, _> = (0..found.size()).map(|at| found.read(at)).collect();
        out.insert(
            register.name.clone(),
            values.map_err(|error| error.to_string())?,
        );
    }
    Ok(out)
}

/// A program before and after.
struct Programs {
    original: Program,
    made: Program,
    native: Compiled,
}

impl Programs {
    fn new(case: &Case, text: &str, made: &str) -> Result<Self, String> {
        let made = case.compile(made)?;
        let native = Compiled::verified(made.clone()).map_err(|error| error.to_string())?;
        if !native.is_inlined() {
            return Err("too large for code in one piece, which is much faster".to_owned());
        }
        Ok(Self {
            original: case.compile(text)?,
            native,
            made,
        })
    }
}

/// Outcomes of the programs, by main file and macros.
#[derive(Default)]
struct Tally {
    /// `None`: refused.
    programs: BTreeMap<String, Option<Programs>>,
    /// Programs that have registers, and those that got one for the test.
    with_registers: usize,
    probed: usize,
    /// Codes of those that are refused.
    refused: BTreeMap<String, Vec<&'static str>>,
}

impl Tally {
    fn add(&mut self, other: Tally) {
        self.with_registers += other.with_registers;
        self.probed += other.probed;
        self.refused.extend(other.refused);
    }

    fn run(&mut self, path: &Path) -> Result<(), String> {
        let case = Case::read(path)?;
        let name = format!("{} {:?}", case.main, case.script.defines);
        if !self.programs.contains_key(&name) {
            let programs = self.instrument(&case, &name)?;
            self.programs.insert(name.clone(), programs);
        }
        match &self.programs[&name] {
            Some(programs) => case.compare(programs),
            None => Ok(()),
        }
    }

    fn instrument(&mut self, case: &Case, name: &str) -> Result<Option<Programs>, String> {
        let text = fs::read_to_string(&case.main).map_err(|error| error.to_string())?;
        match case.synchronise(&text) {
            Ok(made) => {
                self.with_registers += 1;
                Programs::new(case, &text, &made).map(Some)
            }
            Err((codes, _)) if codes == ["E1902"] => {
                self.probed += 1;
                let probed = format!("{text}{PROBE}");
                let made = case.synchronise(&probed).map_err(|(_, told)| told)?;
                Programs::new(case, &text, &made).map(Some)
            }
            Err((codes, _)) if codes.iter().all(|code| *code == "E1905") => {
                // One that is protected first has a view of what is not replicated.
                let protected = case.protect(&text).ok_or("it cannot be protected")?;
                let probed = format!("{protected}{PROBE}");
                let made = case.synchronise(&probed).map_err(|(_, told)| told)?;
                case.compile(&made).map(|_| None)
            }
            Err((codes, _)) => {
                self.refused.insert(name.to_owned(), codes);
                Ok(None)
            }
        }
    }
}

/// Runs packet tests on all processors; those of a folder one after the other, since they share
/// programs.
fn run_all(all: &[PathBuf]) -> (Tally, Vec<String>) {
    let folders = all.chunk_by(|one, other| one.parent() == other.parent());
    let pieces = Mutex::new(folders.flat_map(|folder| folder.chunks(MOST_IN_TURN)));
    let next = || pieces.lock().expect("no thread panics with it").next();
    let work = || {
        let (mut tally, mut failures) = (Tally::default(), Vec::new());
        while let Some(piece) = next() {
            for path in piece {
                if let Err(message) = tally.run(path) {
                    failures.push(format!("{}:\n{message}", path.display()));
                }
            }
            tally.programs.clear();
        }
        (tally, failures)
    };
    let threads = available_parallelism().map_or(1, NonZero::get);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let (mut tally, mut failures) = (Tally::default(), Vec::new());
        for worker in workers {
            let (own, failed) = worker.join().expect("a worker ends");
            tally.add(own);
            failures.extend(failed);
        }
        (tally, failures)
    })
}

#[test]
fn packets_see_no_difference() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let mut all = Vec::new();
    for folder in FOLDERS {
        scripts(&root.join(folder), &mut all);
    }
    all.sort();
    assert!(all.len() > 140, "only {} packet tests", all.len());
    let (tally, failures) = run_all(&all);
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    println!(
        "{} packet tests; {} programs with registers, {} without; refused: {:?}",
        all.len(),
        tally.with_registers,
        tally.probed,
        tally.refused
    );
    // The packet counter has the library by hand.
    let mut others = tally.refused.iter();
    let by_hand = others
        .next()
        .map(|(name, codes)| (name.contains("packet_counter.p4"), &codes[..]));
    assert_eq!(by_hand, Some((true, &["E1814"][..])));
    assert_eq!(others.next(), None);
    assert!(tally.with_registers >= 10 && tally.probed >= 50);
}

/// The reference compiler's samples with packet tests, where the environment variable
/// `P4C_TESTDATA` names the folder `testdata` of a copy of p4lang/p4c.
#[test]
fn samples_of_the_reference_compiler_see_no_difference() {
    let Some(testdata) = std::env::var_os("P4C_TESTDATA") else {
        println!("P4C_TESTDATA is not set: the samples are not here");
        return;
    };
    let mut all = Vec::new();
    scripts(&Path::new(&testdata).join("p4_16_samples"), &mut all);
    all.sort();
    let mut tally = Tally::default();
    let (mut same, mut failures) = (0, Vec::new());
    for path in &all {
        // Samples that fail as they are say nothing here: docs/p4c-samples.md has them.
        if !passes(path) {
            continue;
        }
        match tally.run(path) {
            Ok(()) => same += 1,
            Err(message) => failures.push(format!("{}:\n{message}", path.display())),
        }
    }
    let refused = tally.refused.len();
    println!(
        "{same} packet tests with equal outcomes; {} programs with registers, {} without; refused: {:?}",
        tally.with_registers, tally.probed, tally.refused
    );
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    assert!(
        same > 100 && refused * 20 <= same,
        "{refused} of {same} are refused"
    );
}

/// True if a packet test passes with the program as it is.
fn passes(path: &Path) -> bool {
    let run = || {
        let case = Case::read(path).ok()?;
        let program = case.compile(&fs::read_to_string(&case.main).ok()?).ok()?;
        let engine = Interp::new(program, Default::default()).ok()?;
        run(&case.script, engine).ok()
    };
    run().is_some()
}
