//! Writes and resets by gRPC on real time, beside P4Runtime.

#![allow(clippy::disallowed_methods, reason = "operations are timed")]

use super::flat;
use crate::approsync::Making;
use crate::approsync::served::{P4Runtime, Served, Subject, Views};
use crate::approsync::turns::{medians, timed};
use crate::error::EvalError;
use crate::figure::Figure;
use crate::table::Table;
use std::cell::RefCell;
use std::time::{Duration, Instant};

/// Turns of each operation.
const TURNS: usize = 15;

/// Time between two reads of a value while a switch settles.
const READS: Duration = Duration::from_millis(1);

/// The register of the counters' program that is not in view, and as large as the one that is.
const BESIDE: &str = "Process.beside";

/// Positions of the two switches: the one with 2^8 locations, and the one with 2^16.
const FEW: usize = 0;
const MANY: usize = 1;

/// Adds the table and the claims of real time.
pub(super) fn run(making: &Making<'_>, figure: &mut Figure) -> Result<(), EvalError> {
    making.bar.set_message("exp4: on real time");
    figure.differs(
        "on real time (the last table): as Exp#2, by gRPC, in turns before which a switch settles, while its \
         client reads a value of a fresh mark each ms and the other switch stands still; P4Runtime writes a \
         register that is not in view, an update for each value in one request, and resets by one",
    );
    let switches = RefCell::new([Side::start(8)?, Side::start(16)?]);
    let on = |at: usize, operation: &dyn Fn(&mut Side) -> Result<(), EvalError>| {
        turn(&mut switches.borrow_mut(), at, operation)
    };
    let values = vec![1_u64; 1 << 16];
    let times = medians(
        TURNS,
        [
            &mut || on(MANY, &Side::read_one),
            &mut || on(FEW, &Side::reset),
            &mut || on(MANY, &Side::reset),
            &mut || on(MANY, &|side| side.views.write_all(&side.group, &values)),
            &mut || on(MANY, &|side| side.p4runtime.reset(BESIDE, 0)),
            &mut || on(MANY, &|side| side.p4runtime.write(BESIDE, &values)),
        ],
    )?;
    let names = [
        "fresh READ_VALUE",
        "reset of 2^8",
        "reset of 2^16",
        "WRITE_ALL_VALUES of 2^16",
        "P4Runtime: reset of 2^16",
        "P4Runtime: 2^16 updates",
    ];
    let mut table = Table::new("real-time", &["operation", "median (ms)"]);
    for (name, ns) in names.into_iter().zip(times) {
        table.row(vec![name.into(), (ns / 1e6).into()]);
    }
    let [_, few, many, write, _, _] = times;
    flat(figure, "on real time", &[(f64::NAN, few), (write, many)]);
    figure.tables.push(table);
    Ok(())
}

/// A switch with clients of its own.
struct Side {
    served: Served,
    group: String,
    views: Views,
    p4runtime: P4Runtime,
}

impl Side {
    /// A packet counter with 2 to this locations.
    fn start(exponent: u32) -> Result<Side, EvalError> {
        let served = Served::start(Subject::counters(1 << exponent, 64)?)?;
        Ok(Side {
            group: served.plan().groups[0].name.clone(),
            views: served.views()?,
            p4runtime: served.p4runtime()?,
            served,
        })
    }

    fn read_one(&mut self) -> Result<(), EvalError> {
        self.views.read_one(&self.group).map(drop)
    }

    fn reset(&mut self) -> Result<(), EvalError> {
        self.views.reset(&self.group, 0)
    }
}

/// Time of an operation on one of the switches, while the other stands still. Both settle for as long before,
/// and are read meanwhile: of what has rested, threads and caches have to wake up first.
fn turn(
    switches: &mut [Side; 2],
    at: usize,
    operation: impl Fn(&mut Side) -> Result<(), EvalError>,
) -> Result<Duration, EvalError> {
    let sweep = switches[MANY].served.sweep();
    switches[1 - at].served.stand_still(true);
    let side = &mut switches[at];
    side.served.stand_still(false);
    let end = Instant::now() + sweep;
    while Instant::now() < end {
        side.read_one()?;
        std::thread::sleep(READS);
    }
    timed(|| operation(side))
}
