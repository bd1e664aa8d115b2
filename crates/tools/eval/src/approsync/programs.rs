//! The program that counts, in view by sync and by what it is compared with.

use crate::error::EvalError;
use stateplane_compile::Source;
use stateplane_diagnostics::{Color, render_all};
use stateplane_native::{Compiled, Native, Options};
use stateplane_switch::{Switch, SwitchConfig};
use stateplane_sync_setup::{CONTROL_PORT, Rates, Sync};
use stateplane_synchronise::{Selection, synchronise};
use stateplane_syntax::MemoryLoader;
use std::net::Ipv4Addr;

/// Address of a switch in the protocol of sync.
pub(super) const SWITCH: Ipv4Addr = Ipv4Addr::new(10, 255, 0, 1);

/// Port whose frames come back in: a cable from it to itself.
pub(super) const LOOP_PORT: u16 = 9;

/// Values of a message of sync, and positions beyond what the engine has.
pub(super) const BATCH: u32 = 32;
const WINDOW: u32 = 8_192;

/// Way in which the control plane learns what locations hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum System {
    /// This project's sync.
    Sync,
    /// ApproSync's algorithms as printed.
    Printed,
    /// *Flow's cache.
    StarFlow,
    /// Mirroring of every update.
    Mirroring,
    /// None: it learns nothing.
    Plain,
}

impl System {
    /// Its name in tables.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Sync => "sync",
            Self::Printed => "ApproSync as printed",
            Self::StarFlow => "*Flow",
            Self::Mirroring => "mirroring",
            Self::Plain => "none",
        }
    }

    const fn text(self) -> &'static str {
        match self {
            Self::Sync | Self::Plain => include_str!("../../p4/approsync/counting.p4"),
            Self::Printed => include_str!("../../p4/approsync/printed.p4"),
            Self::StarFlow => include_str!("../../p4/approsync/star_flow.p4"),
            Self::Mirroring => include_str!("../../p4/approsync/mirroring.p4"),
        }
    }
}

/// Amount that a packet adds to its location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counted {
    /// 1.
    Packets,
    /// Its bytes.
    Bytes,
}

impl Counted {
    /// Both.
    pub(super) const ALL: [Self; 2] = [Self::Packets, Self::Bytes];

    /// Name in tables.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Packets => "packets",
            Self::Bytes => "bytes",
        }
    }

    const fn expression(self) -> &'static str {
        match self {
            Self::Packets => "1",
            Self::Bytes => "(bit<64>)hdr.ipv4.total_length",
        }
    }
}

/// Counters of a program, each a location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counters {
    /// One for each source: so many, a power of two.
    Sources(u32),
    /// Three rows of so many at hashes of the source, a power of two: count-min.
    Sketch(u32),
}

impl Counters {
    /// Their number.
    pub(super) const fn locations(self) -> u32 {
        match self {
            Self::Sources(count) => count,
            Self::Sketch(columns) => 3 * columns,
        }
    }

    /// Updates that a packet makes.
    pub(super) const fn updates(self) -> f64 {
        match self {
            Self::Sources(_) => 1.0,
            Self::Sketch(_) => 3.0,
        }
    }
}

/// Sizes of a program, and what it counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) system: System,
    pub(super) counted: Counted,
    pub(super) counters: Counters,
    /// Entries of the table or cache of systems that have one, a power of two.
    pub(super) entries: u32,
}

fn refused(what: System, reason: impl std::fmt::Display) -> EvalError {
    EvalError::Refused {
        what: what.name().to_owned(),
        reason: reason.to_string(),
    }
}

impl Shape {
    fn source(self) -> Source<MemoryLoader> {
        let frames = include_str!("../../p4/approsync/frames.p4");
        let files = MemoryLoader::new().with("frames.p4", frames);
        let files = files.with("main.p4", self.system.text());
        Source::new(files, "main.p4").defines(self.macros())
    }

    fn macros(self) -> Vec<(String, String)> {
        let locations = self.counters.locations();
        let mut all = vec![
            ("LOCATIONS", locations.to_string()),
            ("ENTRIES", self.entries.to_string()),
            ("COUNTED", self.counted.expression().to_owned()),
            ("SYNC_BATCH", BATCH.to_string()),
            ("SYNC_WINDOW", WINDOW.min(locations).to_string()),
        ];
        if let Counters::Sketch(columns) = self.counters {
            all.extend([("SKETCH", "1".to_owned()), ("COLUMNS", columns.to_string())]);
        }
        let named = all.into_iter();
        named
            .map(|(name, value)| (name.to_owned(), value))
            .collect()
    }

    /// Compiles it.
    ///
    /// # Errors
    /// `EV003` with what the compiler says.
    pub(super) fn compile(self) -> Result<Compiled, EvalError> {
        let source = self.source();
        let program = match self.system {
            System::Sync => {
                let (loader, options) = (source.loader(), source.options());
                let made = synchronise(loader, source.main_file(), options, Selection::Annotated);
                let Some((text, _)) = made.program else {
                    let said = render_all(&made.diagnostics, &made.sources, Color::Never);
                    return Err(refused(self.system, said));
                };
                stateplane_compile::text(text)
                    .defines(self.macros())
                    .program()
            }
            _ => source.program(),
        };
        let program = program.map_err(|error| refused(self.system, error))?;
        Compiled::new(program).map_err(|error| refused(self.system, error))
    }

    /// A switch that runs it. `rates` and `turn_us` are sync's.
    ///
    /// # Errors
    /// `EV003` if the program does not suit.
    pub(super) fn switch(
        self,
        compiled: &Compiled,
        turn_us: u64,
        rates: Rates,
    ) -> Result<Switch<Native>, EvalError> {
        let failed = |error: &dyn std::fmt::Display| refused(self.system, error);
        let engine = compiled
            .engine(Options::default())
            .map_err(|it| failed(&it))?;
        let config = SwitchConfig {
            ports: vec![0, LOOP_PORT, CONTROL_PORT],
            ..SwitchConfig::default()
        };
        let mut switch = Switch::new(engine, config).map_err(|it| failed(&it))?;
        if self.system == System::Sync {
            let sync = Sync {
                switch: 1,
                address: SWITCH,
                turn_us: Some(turn_us),
                rates: vec![(0, rates)],
                read_only: false,
            };
            sync.apply(&mut switch, 7, true).map_err(|it| failed(&it))?;
        }
        Ok(switch)
    }
}
