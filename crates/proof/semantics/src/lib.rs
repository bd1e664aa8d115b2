//! Evaluator of P4-16 programs, straight from the language specification (1.2.5): it walks the
//! syntax tree of a program for v1model.
//!
//! It is there to judge the compiler, and so it shares nothing with checker, IR and
//! engines; it knows the tree, and nothing else of the workspace. It is written to be
//! compared with the specification's text, section by section, and not to be fast.
//!
//! Where the specification leaves a value open (a variable that nothing was written to, a
//! field of an invalid header, an element outside its stack), the value is carried along
//! as not known, and what depends on it is not judged: bits of a frame that are not known
//! are masked ([`Outcome::Sent`]), and where it is not known what happens next there is
//! no frame ([`Outcome::Open`]).
//!
//! Evaluated are expressions but for tuples and header unions; statements; functions,
//! actions, controls and parsers with their parameters in all directions; tables with
//! entries of the program and of the control plane; of the externs `packet_in`,
//! `packet_out`, `verify` and `mark_to_drop`. Any other construct is refused where a packet
//! meets it ([`Outcome::Unsupported`]).
//!
//! It trusts the program: one that a checker refuses may run, or be refused.

mod call;
mod expression;
mod fault;
mod machine;
pub mod number;
mod packet;
mod parser;
mod place;
mod statement;
mod table;
mod types;
mod v1model;
mod value;

pub use fault::Fault;
pub use table::Match;

use machine::{Instance, Machine, Stop};
use num_bigint::BigUint;
use stateplane_syntax::tree::Program;
use std::rc::Rc;
use table::Added;

/// Outcome of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The packet leaves.
    Sent {
        /// The port.
        port: u16,
        /// Bytes of the frame.
        bytes: Vec<u8>,
        /// Known bits of the frame: a mask for each byte.
        known: Vec<u8>,
    },
    /// The packet is dropped.
    Dropped,
    /// The specification does not say, because of this.
    Open(&'static str),
    /// The result depends on a construct that is not evaluated.
    Unsupported(String),
}

/// A program with the entries of its tables.
pub struct Evaluator<'p> {
    machine: Machine<'p>,
    pipeline: Vec<Rc<Instance<'p>>>,
}

impl<'p> Evaluator<'p> {
    /// Reads the declarations of a program.
    ///
    /// # Errors
    ///
    /// Names the construct that is not evaluated.
    pub fn new(program: &'p Program) -> Result<Evaluator<'p>, String> {
        let made = Machine::new(program).and_then(|mut machine| {
            let pipeline = machine.pipeline()?;
            Ok(Evaluator { machine, pipeline })
        });
        made.map_err(|stop| match stop {
            Stop::Unsupported(what) => what,
            stop => format!("{stop:?}"),
        })
    }

    /// The evaluator with a mistake.
    #[must_use]
    pub fn with_fault(mut self, fault: Option<Fault>) -> Evaluator<'p> {
        self.machine.fault = fault;
        self
    }

    /// Adds an entry to a table, named with the instances around it. Of several entries
    /// that match, the one of the highest priority wins, or of the longest prefix.
    pub fn add(
        &mut self,
        table: &str,
        matches: Vec<Match>,
        priority: u32,
        action: &str,
        data: Vec<BigUint>,
    ) {
        let entry = Added {
            matches,
            priority: i64::from(priority),
            action: action.to_owned(),
            data,
        };
        let entries = self.machine.added.entry(table.to_owned());
        entries.or_default().push(entry);
        self.machine.entries.remove(table);
    }

    /// Outcome of a packet.
    pub fn process(&mut self, port: u16, frame: &[u8]) -> Outcome {
        match self.machine.process(&self.pipeline, port, frame) {
            Ok(outcome) => outcome,
            Err(Stop::Unknown(what)) => Outcome::Open(what),
            Err(Stop::Unsupported(what)) => Outcome::Unsupported(what),
            Err(stop) => Outcome::Unsupported(format!("{stop:?} out of place")),
        }
    }
}
