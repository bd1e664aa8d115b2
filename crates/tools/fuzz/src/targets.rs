//! The targets.

mod coordination;
mod engine;
mod gnmi;
mod multicast_store;
mod program;
mod script;
mod wire;

use crate::corpus;
use std::path::Path;

/// Something that takes any bytes.
#[derive(Clone, Copy)]
pub struct Target {
    /// Its name, that of its file in `fuzz/fuzz_targets` too.
    pub name: &'static str,
    /// Takes an input; panics where something does not hold.
    pub run: fn(&[u8]),
    /// First inputs, from the repository at the given path.
    pub corpus: fn(&Path) -> Vec<Vec<u8>>,
    /// Words of its language.
    pub words: &'static [&'static str],
    /// Inputs of a short run, which takes about half a second.
    pub short: usize,
}

/// Gives an input to the target `name`.
///
/// # Panics
///
/// Panics if an invariant does not hold, or if there is no such target.
pub fn run(name: &str, input: &[u8]) {
    stateplane_invariant::panic_in_release();
    match TARGETS.iter().find(|target| target.name == name) {
        Some(target) => (target.run)(input),
        None => panic!("no target is called {name}"),
    }
}

/// All targets.
pub const TARGETS: &[Target] = &[
    Target {
        name: "preprocessor",
        run: program::preprocess,
        corpus: |root| corpus::texts(root, "p4"),
        words: program::DIRECTIVES,
        short: 1500,
    },
    Target {
        name: "parser",
        run: program::parse,
        corpus: |root| corpus::texts(root, "p4"),
        words: program::WORDS,
        short: 600,
    },
    Target {
        name: "checker",
        run: program::check,
        corpus: |root| corpus::texts(root, "p4"),
        words: program::WORDS,
        short: 300,
    },
    Target {
        name: "ir",
        run: program::ir,
        corpus: |root| corpus::texts(root, "ir"),
        words: program::IR_WORDS,
        short: 1000,
    },
    Target {
        name: "generator",
        run: program::generate,
        corpus: |_| (0..8).map(|number| vec![number * 31; 400]).collect(),
        words: &[],
        short: 100,
    },
    Target {
        name: "interpreter",
        run: engine::packets,
        corpus: |_| corpus::frames(),
        words: &[],
        short: 1500,
    },
    Target {
        name: "stf",
        run: script::stf,
        corpus: |root| corpus::texts(root, "stf"),
        words: script::STF_WORDS,
        short: 2000,
    },
    Target {
        name: "toml",
        run: script::toml,
        corpus: |root| corpus::texts(root, "toml"),
        words: script::TOML_WORDS,
        short: 1000,
    },
    Target {
        name: "wire",
        run: wire::decoders,
        corpus: |_| corpus::frames(),
        words: &[],
        short: 20_000,
    },
    Target {
        name: "store",
        run: wire::store,
        corpus: |_| wire::exchanges(),
        words: &[],
        short: 3000,
    },
    Target {
        name: "coordination",
        run: coordination::agent,
        corpus: |_| coordination::replies(),
        words: &[],
        short: 4000,
    },
    Target {
        name: "multicast_store",
        run: multicast_store::replica,
        corpus: |_| multicast_store::messages(),
        words: &[],
        short: 4000,
    },
    Target {
        name: "gnmi",
        run: gnmi::requests,
        corpus: |_| gnmi::corpus(),
        words: gnmi::WORDS,
        short: 8000,
    },
];
