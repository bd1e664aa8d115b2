//! Table 2's counterpart: what replication adds to a program. In memory, but for the clock.

#![allow(clippy::disallowed_methods, reason = "code is timed")]

use super::{Place, Plan};
use crate::error::EvalError;
use crate::figure::Figure;
use crate::memory::{Bed, Links, compile};
use crate::network::Setup;
use crate::probe::traffic::{Application, frame, place as place_of};
use crate::statistics::median;
use crate::table::Table;
use indicatif::ProgressBar;
use stateplane_ir::{Program, Type};
use stateplane_switch::Port;
use std::time::Instant;

const FLOWS: u64 = 1024;
const LINKS: Links = Links {
    delay_us: 1,
    loss: 0.0,
};

/// Table 2.
pub(super) fn run(place: &Place, plan: Plan, bar: &ProgressBar) -> Result<Figure, EvalError> {
    let mut figure = Figure::new(
        "table2",
        "What replication adds to a program",
        "of a Tofino's resources, for 100,000 flows, relative to each application's own use: \
         at most 13.2 % (SRAM), all others less than 10 %",
    );
    figure.differs(
        "there is no ASIC, so no crossbars, hash bits, gateways or TCAM to count: a program \
         takes memory for registers, machine code, and time for each packet",
    );
    figure.differs(
        "registers for 65,536 flows, as the library has without further definition, and the \
         store's address for each of 256 shards",
    );
    figure.differs(
        "time is that of packets that only read, of 1024 flows that are known and have leases, \
         in a switch with its ports and queues but no sockets; of the counter, whose every \
         packet writes, it includes the request and the reply, both as the switch sees them",
    );
    let mut table = Table::new(
        "resources",
        &[
            "application",
            "register arrays alone",
            "replicated",
            "their elements alone (MB)",
            "replicated (MB)",
            "tables alone",
            "replicated",
            "machine code alone (KB)",
            "replicated (KB)",
            "ns a packet alone",
            "replicated (ns)",
            "more (%)",
        ],
    );
    let applications = super::applications()?;
    bar.set_length(applications.len() as u64);
    for (application, _) in applications {
        bar.set_message(format!("table2: {}", application.name()));
        let setups = [Setup::bare(application), Setup::protected(application)];
        let programs = [compile(&setups[0])?, compile(&setups[1])?];
        let mut beds = Vec::new();
        for setup in &setups {
            beds.push(known_flows(place, setup)?);
        }
        let code = [0, 1].map(|at| {
            let bed: &mut Bed = &mut beds[at];
            bed.switch().engine_mut().code_bytes() as f64 / 1000.0
        });
        let rounds = if plan.quick { 1 } else { 64 * plan.runs + 1 };
        let mut times = [Vec::new(), Vec::new()];
        for _ in 0..rounds {
            for (bed, times) in beds.iter_mut().zip(&mut times) {
                times.push(nanoseconds(bed, application));
            }
        }
        let ns = times.map(|times| median(&times).unwrap_or(f64::NAN));
        table.row(vec![
            application.name().into(),
            (programs[0].registers.len() as u64).into(),
            (programs[1].registers.len() as u64).into(),
            megabytes(&programs[0]).into(),
            megabytes(&programs[1]).into(),
            (programs[0].tables.len() as u64).into(),
            (programs[1].tables.len() as u64).into(),
            code[0].into(),
            code[1].into(),
            ns[0].into(),
            ns[1].into(),
            ((ns[1] / ns[0] - 1.0) * 100.0).into(),
        ]);
        bar.inc(1);
    }
    figure.tables.push(table);
    Ok(figure)
}

/// Megabytes that the elements of all registers take, by their bits.
fn megabytes(program: &Program) -> f64 {
    let of = |element: &Type| match element {
        Type::Bits(width) | Type::Int(width) => u64::from(*width),
        _ => 1,
    };
    let registers = program.registers.iter();
    let bits: u64 = registers
        .map(|register| of(&register.element) * register.size)
        .sum();
    bits as f64 / 8e6
}

/// A switch that knows its flows.
fn known_flows(place: &Place, setup: &Setup) -> Result<Bed, EvalError> {
    let mut bed = Bed::new(&place.lab, setup, LINKS, |text| text)?;
    for number in 0..2 * FLOWS {
        let place = place_of(number, FLOWS, u64::MAX);
        let (side, bytes) = frame(setup.application, place, number, 0, 0);
        bed.frame(side as Port, &bytes);
        bed.advance(bed.now + 20);
    }
    bed.advance(bed.now + 50_000);
    Ok(bed)
}

/// Nanoseconds of a packet, until everything that it leads to is done: of one packet of each
/// flow, which together take less time than the scheduler lets a process run, so that most rounds
/// are not interrupted.
fn nanoseconds(bed: &mut Bed, application: Application) -> f64 {
    let frames: Vec<(Port, Vec<u8>)> = (0..FLOWS)
        .map(|number| {
            // The second packet of a flow and not its first, which may write.
            let place = place_of(FLOWS + number, FLOWS, u64::MAX);
            let (side, bytes) = frame(application, place, number, 0, 0);
            (side as Port, bytes)
        })
        .collect();
    let begun = Instant::now();
    if application.always_writes() {
        for (port, bytes) in &frames {
            bed.frame(*port, bytes);
        }
        bed.advance(bed.now + 4);
    } else {
        for (port, bytes) in &frames {
            bed.pass(*port, bytes);
        }
    }
    begun.elapsed().as_nanos() as f64 / FLOWS as f64
}
