//! Two engines side by side: the same program, the same session, two switches.

use crate::minimise;
use crate::session::{Session, Write};
use crate::source;
use stateplane_ir::Program;
use stateplane_runtime::{Engine, TargetState};
use stateplane_switch::{Switch, Transmit};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Frames after which the states are compared. Outputs are compared after each.
const STATE_PERIOD: usize = 64;

/// Calls for what is left to do when the last frame has been given.
const LAST_CALLS: usize = 32;

/// Difference between two engines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Frames that had been given by then; 0 before the first.
    pub frames: usize,
    /// Description of the difference, the first engine's value before the second's.
    pub what: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "after {} frames: {}", self.frames, self.what)
    }
}

/// Result of a session without a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Outcome {
    /// Frames that were given.
    pub received: u64,
    /// Frames that left.
    pub transmitted: u64,
    /// Bytes of them.
    pub transmitted_bytes: u64,
}

impl std::ops::AddAssign for Outcome {
    fn add_assign(&mut self, other: Outcome) {
        self.received += other.received;
        self.transmitted += other.transmitted;
        self.transmitted_bytes += other.transmitted_bytes;
    }
}

/// Takes two engines, loaded with one program and one seed, through a session, each in
/// a switch of its own.
///
/// # Errors
///
/// The first difference: the frames sent by each port in their order, drop reasons and
/// the other counts of the switches, time-outs, answers to writes; after every 64 frames,
/// when idle entries are looked for, and at the end tables with their counters and meters,
/// action profiles, registers, counters, meters, digests, log lines and events.
pub fn compare<A: Engine, B: Engine>(
    first: A,
    second: B,
    session: &Session,
) -> Result<Outcome, Difference> {
    let mut frames = 0;
    let differ = |frames, what| Err(Difference { frames, what });
    let (first, second) = (
        Switch::new(first, session.config.clone()),
        Switch::new(second, session.config.clone()),
    );
    let (mut first, mut second) = match (first, second) {
        (Ok(first), Ok(second)) => (first, second),
        (Err(first), Err(second)) if first == second => return Ok(Outcome::default()),
        (first, second) => {
            let what = format!("switch: {:?} and {:?}", first.err(), second.err());
            return differ(frames, what);
        }
    };
    for written in &session.writes {
        write(&mut first, &mut second, written).map_err(|what| Difference { frames, what })?;
    }
    let mut outcome = Outcome::default();
    let mut updates = session.updates.as_slice();
    for arrival in &session.arrivals {
        while let Some((update, later)) = updates.split_first()
            && update.at <= arrival.at
        {
            updates = later;
            write(&mut first, &mut second, &update.write)
                .map_err(|what| Difference { frames, what })?;
        }
        frames += 1;
        outcome.received += 1;
        first.handle_frame(arrival.at, arrival.port, &arrival.frame);
        second.handle_frame(arrival.at, arrival.port, &arrival.frame);
        step(&mut first, &mut second, &mut outcome).map_err(|what| Difference { frames, what })?;
        if frames % STATE_PERIOD == 0 {
            for state in [
                first.engine_mut().state_mut(),
                second.engine_mut().state_mut(),
            ] {
                state.sweep_idle(arrival.at);
            }
            states(&mut first, &mut second).map_err(|what| Difference { frames, what })?;
        }
    }
    for _ in 0..LAST_CALLS {
        let Some(due) = first.poll_timeout() else {
            break;
        };
        first.handle_timeout(due);
        second.handle_timeout(due);
        step(&mut first, &mut second, &mut outcome).map_err(|what| Difference { frames, what })?;
    }
    states(&mut first, &mut second).map_err(|what| Difference { frames, what })?;
    Ok(outcome)
}

/// Lets the control plane of both write, and compares the answers.
fn write<A: Engine, B: Engine>(
    first: &mut Switch<A>,
    second: &mut Switch<B>,
    write: &Write,
) -> Result<(), String> {
    let one = write.apply(first.engine_mut().state_mut());
    let other = write.apply(second.engine_mut().state_mut());
    if one == other {
        return Ok(());
    }
    Err(format!("{write}: {one:?} and {other:?}"))
}

/// Fetches and compares what both have to send, and the counts of the switches.
fn step<A: Engine, B: Engine>(
    first: &mut Switch<A>,
    second: &mut Switch<B>,
    outcome: &mut Outcome,
) -> Result<(), String> {
    loop {
        let (one, other) = (first.poll_transmit(), second.poll_transmit());
        if one != other {
            let show = |sent: &Option<Transmit>| {
                sent.as_ref().map_or("nothing".to_owned(), |sent| {
                    shown_frame(sent.port, &sent.frame)
                })
            };
            return Err(format!(
                "the next frame sent is\n  {}\nand\n  {}",
                show(&one),
                show(&other)
            ));
        }
        let (Some(one), Some(other)) = (one, other) else {
            break;
        };
        outcome.transmitted += 1;
        outcome.transmitted_bytes += one.frame.len() as u64;
        first.recycle(one.frame);
        second.recycle(other.frame);
    }
    unequal("counts of the switch", first.counters(), second.counters())?;
    unequal("time-out", &first.poll_timeout(), &second.poll_timeout())
}

fn shown_frame(port: u16, frame: &[u8]) -> String {
    let bytes: String = frame.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("port {port}: {bytes}")
}

fn unequal<T: PartialEq + fmt::Debug>(what: &str, one: &T, other: &T) -> Result<(), String> {
    if one == other {
        return Ok(());
    }
    Err(format!("{what}:\n  {one:?}\nand\n  {other:?}"))
}

/// Compares the states, and empties the queues of digests and log lines.
fn states<A: Engine, B: Engine>(
    first: &mut Switch<A>,
    second: &mut Switch<B>,
) -> Result<(), String> {
    let (one, other) = (
        first.engine_mut().state_mut(),
        second.engine_mut().state_mut(),
    );
    if one != other {
        return Err(state_difference(one, other));
    }
    for state in [one, other] {
        while state.idle.poll().is_some() {}
        while state.digests.poll().is_some() {}
        while state.log.poll().is_some() {}
    }
    Ok(())
}

/// The first object by which two states of one program differ.
fn state_difference(one: &TargetState, other: &TargetState) -> String {
    let parts = || {
        for (one, other) in one.registers().iter().zip(other.registers()) {
            for index in 0..one.size() {
                let place = format!("register {}[{index}]", one.name());
                unequal(&place, &one.read(index), &other.read(index))?;
            }
        }
        for (one, other) in one.counters().iter().zip(other.counters()) {
            let counts = one.counts().iter().zip(other.counts()).enumerate();
            for (index, (count, expected)) in counts {
                unequal(&format!("counter {}[{index}]", one.name()), count, expected)?;
            }
        }
        for (one, other) in one.meters().iter().zip(other.meters()) {
            unequal(&format!("meter {}", one.name()), one, other)?;
        }
        for (one, other) in one.tables().iter().zip(other.tables()) {
            let place = format!("entries of table {}", one.name());
            unequal(&place, &one.entries(), &other.entries())?;
            let place = format!("table {}", one.name());
            unequal(&place, one, other)?;
        }
        for (one, other) in one.value_sets().iter().zip(other.value_sets()) {
            unequal(&format!("value set {}", one.name()), one, other)?;
        }
        for (one, other) in one.profiles().iter().zip(other.profiles()) {
            unequal(&format!("action profile {}", one.name()), one, other)?;
        }
        unequal("idle entries", &one.idle, &other.idle)?;
        unequal("events", &one.events, &other.events)?;
        unequal("digests", &one.digests, &other.digests)?;
        unequal("log", &one.log, &other.log)?;
        unequal("random numbers", &one.random, &other.random)
    };
    match parts() {
        Err(what) => what,
        Ok(()) => format!("states:\n  {one:?}\nand\n  {other:?}"),
    }
}

/// A difference with the smallest program and session that were found to show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The program's text.
    pub program: String,
    /// The session.
    pub session: Session,
    /// Difference of the engines on them.
    pub difference: Difference,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}\n--- session ---\n{}--- program ---\n{}",
            self.difference, self.session, self.program
        )
    }
}

impl std::error::Error for Mismatch {}

/// Compiles a program, loads it by two loaders, which get the program and the engine's
/// seed, and compares the engines ([`compare`]). The first loader's refusal of a
/// program passes as no difference if the second refuses it too; a panic of an engine
/// is a difference.
///
/// # Errors
///
/// A [`Mismatch`] with program and session made as small as `attempts` more comparisons
/// allow. A program that does not compile is a mismatch too, as it is.
pub fn compare_program<A: Engine, B: Engine>(
    program: &str,
    session: &Session,
    first: impl Fn(Program, u64) -> Result<A, String>,
    second: impl Fn(Program, u64) -> Result<B, String>,
    attempts: usize,
) -> Result<Outcome, Box<Mismatch>> {
    let run = |compiled: Program, session: &Session| {
        let run = || {
            let one = first(compiled.clone(), session.seed);
            let other = second(compiled, session.seed);
            match (one, other) {
                (Ok(one), Ok(other)) => compare(one, other, session),
                (Err(_), Err(_)) => Ok(Outcome::default()),
                (one, other) => Err(Difference {
                    frames: 0,
                    what: format!("loading: {:?} and {:?}", one.err(), other.err()),
                }),
            }
        };
        catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
            Err(Difference {
                frames: 0,
                what: format!("panic: {}", panic_text(panic.as_ref())),
            })
        })
    };
    let compiled = source::compile(program).map_err(|refusal| {
        Box::new(Mismatch {
            program: program.to_owned(),
            session: session.clone(),
            difference: Difference {
                frames: 0,
                what: refusal,
            },
        })
    })?;
    match run(compiled, session) {
        Ok(outcome) => Ok(outcome),
        Err(difference) => {
            let mut last = difference;
            let (program, session) =
                minimise::minimise(program, session, attempts, |program, session| {
                    let Ok(compiled) = source::compile(program) else {
                        return false;
                    };
                    match run(compiled, session) {
                        Ok(_) => false,
                        Err(difference) => {
                            last = difference;
                            true
                        }
                    }
                });
            Err(Box::new(Mismatch {
                program,
                session,
                difference: last,
            }))
        }
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    match (panic.downcast_ref::<String>(), panic.downcast_ref::<&str>()) {
        (Some(text), _) => text,
        (None, Some(text)) => text,
        (None, None) => "without a message",
    }
}
