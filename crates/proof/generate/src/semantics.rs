//! Generated programs that show the semantics of the language, judged by an evaluator of
//! its own (`stateplane_semantics`), and not by another engine: the front end is shared by
//! all engines, so that no comparison of two of them sees what it gets wrong.
//!
//! The programs have what makes meanings differ: arguments that name one variable twice,
//! calls within arguments, conditions, keys and initialisers, named arguments in any
//! order, parameters copied out behind `return` and `exit`, elements of stacks whose
//! index has side effects, errors declared before those of `core.p4`.

mod declaration;
mod expression;
mod parser;
mod program;
mod statement;

use crate::minimise::minimise;
use crate::program::{Generated, PORTS};
use crate::properties::interpreter;
use crate::session::{Change, Session, Write};
use crate::source;
use crate::{Difference, Mismatch};
use stateplane_runtime::{Engine, Entry, KeyMatch};
use stateplane_semantics::{Evaluator, Fault, Match, Outcome};
use stateplane_switch::{Counters, MIN_FRAME, Switch, Transmit};
use stateplane_syntax::Parsed;
use std::fmt;

pub use program::generate;

/// Outcomes of the packets of programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Judged {
    /// Packets that were given.
    pub packets: u64,
    /// Of those, packets whose fate the specification leaves open.
    pub open: u64,
    /// Packets that left.
    pub sent: u64,
    /// Bytes of those that were known, and compared.
    pub bytes: u64,
    /// Bytes of those that were open in part at least.
    pub open_bytes: u64,
}

impl std::ops::AddAssign for Judged {
    fn add_assign(&mut self, other: Judged) {
        self.packets += other.packets;
        self.open += other.open;
        self.sent += other.sent;
        self.bytes += other.bytes;
        self.open_bytes += other.open_bytes;
    }
}

impl fmt::Display for Judged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} packets, the fate of {} open; {} sent with {} bytes compared and {} open",
            self.packets, self.open, self.sent, self.bytes, self.open_bytes
        )
    }
}

/// Generates a program with `packets` packets from `seed`, and compares what the
/// specification makes of them with what checker and interpreter do.
///
/// # Errors
///
/// The first packet with another fate, with program and session made as small as
/// `attempts` more comparisons allow.
pub fn check(seed: u64, packets: usize, attempts: usize) -> Result<Judged, Box<Mismatch>> {
    let Generated { program, session } = generate(seed, packets);
    check_program(&program, &session, None, attempts)
}

/// Checks a given program with an evaluator that makes a mistake.
///
/// # Errors
///
/// Returns the error of [`check`].
pub fn check_program(
    program: &str,
    session: &Session,
    fault: Option<Fault>,
    attempts: usize,
) -> Result<Judged, Box<Mismatch>> {
    let judge =
        |program: &str, session: &Session| judge(&observe(program, session)?, session, fault);
    let difference = match judge(program, session) {
        Ok(judged) => return Ok(judged),
        Err(difference) => difference,
    };
    let refused = |difference: &Difference| difference.frames == 0;
    // A refusal names its cause, and a smaller program could be refused for another one.
    let attempts = if refused(&difference) { 0 } else { attempts };
    let mut last = difference;
    let (program, session) = minimise(program, session, attempts, |program, session| {
        match judge(program, session) {
            Err(difference) if !refused(&difference) => {
                last = difference;
                true
            }
            _ => false,
        }
    });
    Err(Box::new(Mismatch {
        program,
        session,
        difference: last,
    }))
}

/// A program with what checker and interpreter make of its session.
struct Observed {
    parsed: Parsed,
    /// The frames sent for each packet.
    sent: Vec<Vec<Transmit>>,
    counters: Counters,
}

/// A difference in no frame: one of the two does not take the program.
fn refusal(what: String) -> Difference {
    Difference { frames: 0, what }
}

/// Runs a session on the interpreter.
fn observe(program: &str, session: &Session) -> Result<Observed, Difference> {
    let parsed = source::read(program).map_err(refusal)?;
    let compiled = source::compile(program).map_err(refusal)?;
    let engine = interpreter(compiled, session.seed).map_err(refusal)?;
    let switch = Switch::new(engine, session.config.clone());
    let mut switch = switch.map_err(|error| refusal(error.to_string()))?;
    for write in &session.writes {
        let written = write.apply(switch.engine_mut().state_mut());
        written.map_err(|error| refusal(error.to_string()))?;
    }
    let sent = session.arrivals.iter().map(|arrival| {
        switch.handle_frame(arrival.at, arrival.port, &arrival.frame);
        std::iter::from_fn(|| switch.poll_transmit()).collect()
    });
    let sent = sent.collect();
    Ok(Observed {
        parsed,
        sent,
        counters: switch.counters().clone(),
    })
}

/// Runs a session on the evaluator, and compares.
fn judge(
    observed: &Observed,
    session: &Session,
    fault: Option<Fault>,
) -> Result<Judged, Difference> {
    let evaluator = Evaluator::new(&observed.parsed.tree).map_err(refusal)?;
    let mut evaluator = evaluator.with_fault(fault);
    for write in &session.writes {
        add_entry(&mut evaluator, write).map_err(refusal)?;
    }
    let mut judged = Judged::default();
    let packets = session.arrivals.iter().zip(&observed.sent);
    for (number, (arrival, sent)) in packets.enumerate() {
        if arrival.frame.len() < MIN_FRAME {
            // Too short for a link: the program does not see it.
            continue;
        }
        judged.packets += 1;
        match evaluator.process(arrival.port, &arrival.frame) {
            Outcome::Open(_) => judged.open += 1,
            Outcome::Unsupported(what) => return Err(refusal(format!("not evaluated: {what}"))),
            Outcome::Dropped if sent.is_empty() => {}
            Outcome::Sent { port, bytes, known } if agrees(sent, port, &bytes, &known) => {
                judged.sent += 1;
                for mask in known {
                    match mask {
                        0xff => judged.bytes += 1,
                        _ => judged.open_bytes += 1,
                    }
                }
            }
            expected => {
                let expected = shown_outcome(&expected);
                let sent = match sent.as_slice() {
                    [] => format!("nothing; in all, {:?}", observed.counters),
                    sent => shown(sent),
                };
                return Err(Difference {
                    frames: number + 1,
                    what: format!("expected\n  {expected}\nand got\n  {sent}"),
                });
            }
        }
    }
    Ok(judged)
}

fn agrees(sent: &[Transmit], port: u16, bytes: &[u8], known: &[u8]) -> bool {
    let [sent] = sent else {
        // The switch sends no frame too short for a link, and none by a port that is none.
        return sent.is_empty() && (port >= PORTS || bytes.len() < MIN_FRAME);
    };
    let same = |((one, other), mask): ((&u8, &u8), &u8)| one & mask == other & mask;
    sent.port == port
        && sent.frame.len() == bytes.len()
        && sent.frame.iter().zip(bytes).zip(known).all(same)
}

/// Gives the evaluator an entry that the control plane adds.
fn add_entry(evaluator: &mut Evaluator<'_>, write: &Write) -> Result<(), String> {
    let Write::Entry {
        change: Change::Insert,
        table,
        entry:
            Entry {
                keys,
                priority,
                action,
                data,
            },
    } = write
    else {
        return Err(format!("not evaluated: {write}"));
    };
    let keys = keys.iter().map(|key| match key.clone() {
        KeyMatch::Any => Match::Any,
        KeyMatch::Exact(value) => Match::Exact(value),
        KeyMatch::Mask { value, mask } => Match::Mask { value, mask },
        KeyMatch::Range { low, high } => Match::Range { low, high },
        KeyMatch::Prefix { value, length } => Match::Prefix { value, length },
    });
    evaluator.add(table, keys.collect(), *priority, action, data.clone());
    Ok(())
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn shown(sent: &[Transmit]) -> String {
    let frames = sent
        .iter()
        .map(|sent| format!("port {}: {}", sent.port, hexadecimal(&sent.frame)));
    frames.collect::<Vec<_>>().join(" and ")
}

fn shown_outcome(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Sent { port, bytes, known } => {
            let text = format!("port {port}: {}", hexadecimal(bytes));
            if known.iter().all(|mask| *mask == 0xff) {
                return text;
            }
            format!("{text}, of which {} is known", hexadecimal(known))
        }
        _ => "nothing".to_owned(),
    }
}

#[cfg(test)]
mod tests;
