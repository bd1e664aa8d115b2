//! Programs in view of the control plane, with the traffic that passes them.

use super::refused;
use crate::approsync::programs::SWITCH;
use crate::approsync::traffic::Traffic;
use crate::error::EvalError;
use stateplane_compile::Source;
use stateplane_diagnostics::{Color, render_all};
use stateplane_ir::Program;
use stateplane_native::{Compiled, LoadError, Native, Options};
use stateplane_rpc::proto::config::P4Info;
use stateplane_rpc::{PacketHeader, Prepared, Refusal};
use stateplane_synchronise::{Plan, Selection, synchronise};
use stateplane_syntax::{FileLoader, MemoryLoader};
use stateplane_wire::{ethernet, ipv4, udp};
use std::net::Ipv4Addr;
use std::sync::Arc;

/// Packets of the packet counter each second.
const RATE: u64 = 250_000;

/// Frames that are drawn once and come again and again.
const FRAMES: usize = 1 << 16;

/// A compiled program and its descriptions for P4Runtime.
#[derive(Clone)]
pub(super) struct Parts {
    program: Program,
    info: P4Info,
    headers: Vec<PacketHeader>,
}

impl Parts {
    /// Machine code of the program, with its state as at first.
    pub(super) fn load(&self) -> Result<Native, LoadError> {
        Native::new(self.program.clone(), Options::default())
    }

    /// The program as P4Runtime's core has it.
    pub(super) fn prepared(&self) -> Prepared<Native> {
        let parts = self.clone();
        Prepared {
            engine: None,
            info: self.info.clone(),
            headers: self.headers.clone(),
            load: Arc::new(move || parts.load().map_err(Refusal::invalid)),
        }
    }

    /// Its P4Info.
    pub(super) fn info(&self) -> &P4Info {
        &self.info
    }
}

/// A program in view of the control plane, and the traffic that passes it.
pub struct Subject {
    pub(super) name: String,
    pub(super) parts: Parts,
    pub(super) plan: Plan,
    /// Frames and their ports, which come again and again.
    pub(super) frames: Vec<(u16, Vec<u8>)>,
    /// Of them each second.
    pub(super) rate: u64,
}

impl Subject {
    /// Gives the program `source` a view of the registers in `selection`, as `stateplane sync` does, and
    /// compiles it. `name` is for messages; of `frames`, each with its port, `rate` come each second, round
    /// and round.
    ///
    /// # Errors
    /// `EV003` with what instrumentation or compiler say.
    pub(in crate::approsync) fn new<L: FileLoader>(
        name: &str,
        source: &Source<L>,
        selection: Selection<'_>,
        frames: Vec<(u16, Vec<u8>)>,
        rate: u64,
    ) -> Result<Self, EvalError> {
        let (loader, options) = (source.loader(), source.options());
        let made = synchronise(loader, source.main_file(), options, selection);
        let Some((text, plan)) = made.program else {
            let said = render_all(&made.diagnostics, &made.sources, Color::Never);
            return Err(refused(name, said));
        };
        let compiled = stateplane_compile::text(text).defines(options.defines.clone());
        let compiled = compiled.program_and_interface();
        let (program, interface) = compiled.map_err(|error| refused(name, error))?;
        let info = stateplane_p4info::generate(&program, &interface);
        Ok(Self {
            name: name.to_owned(),
            parts: Parts {
                info: info.map_err(|error| refused(name, error))?,
                headers: PacketHeader::of(&interface),
                program,
            },
            plan,
            frames,
            rate,
        })
    }

    /// The packet counter: `locations` counters, a power of two, of `bits` each, in one group; 250,000
    /// packets a second of as many sources, as Zipf's law says.
    ///
    /// # Errors
    /// Those of [`Subject::new`].
    pub fn counters(locations: u32, bits: u32) -> Result<Self, EvalError> {
        let frames = include_str!("../../../p4/approsync/frames.p4");
        let counting = include_str!("../../../p4/approsync/counting.p4");
        let files = MemoryLoader::new().with("frames.p4", frames);
        let source = Source::new(files.with("main.p4", counting), "main.p4").defines([
            ("LOCATIONS".to_owned(), locations.to_string()),
            ("VALUE_BITS".to_owned(), bits.to_string()),
            ("COUNTED".to_owned(), "1".to_owned()),
            ("BESIDE".to_owned(), String::new()),
        ]);
        let frames = frames_of(locations, FRAMES).into_iter();
        let frames = frames.map(|frame| (0, frame)).collect();
        Self::new(
            "packet counter",
            &source,
            Selection::Annotated,
            frames,
            RATE,
        )
    }

    /// Its groups.
    pub(in crate::approsync) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Machine code of the program, for any number of engines.
    ///
    /// # Errors
    /// `EV003` if there is none for it.
    pub(in crate::approsync) fn compiled(&self) -> Result<Compiled, EvalError> {
        Compiled::new(self.parts.program.clone()).map_err(|error| refused(&self.name, error))
    }
}

/// So many packets of `sources`, a power of two of them, as Zipf's law says: UDP in the shortest frames.
pub(in crate::approsync) fn frames_of(sources: u32, count: usize) -> Vec<Vec<u8>> {
    let mut traffic = Traffic::new(sources, 7);
    let frames = (0..count).filter_map(|_| frame(traffic.packet().location));
    frames.collect()
}

fn frame(source: u32) -> Option<Vec<u8>> {
    let from = Ipv4Addr::from_bits(source);
    let datagram = udp::Repr {
        source_port: 9,
        destination_port: 7,
        payload: &[0; 18],
    };
    let datagram = datagram.to_vec(from, SWITCH).ok()?;
    let packet = ipv4::Repr::new(from, SWITCH, ipv4::PROTOCOL_UDP, &datagram);
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 3];
    frame.extend_from_slice(&ethernet::TYPE_IPV4.to_be_bytes());
    frame.extend_from_slice(&packet.to_vec().ok()?);
    Some(frame)
}
