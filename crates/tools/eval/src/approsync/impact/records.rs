//! A switch with a hash table of flows and their packets, whose collisions evict records
//! (`p4/approsync/records.p4`).

use crate::approsync::bed::pushed;
use crate::approsync::viewed::{refused, switch};
use crate::error::EvalError;
use stateplane_compile::Source;
use stateplane_native::{Compiled, Native};
use stateplane_runtime::Engine as _;
use stateplane_switch::Switch;
use stateplane_sync_setup::CONTROL_PORT;
use stateplane_syntax::MemoryLoader;
use stateplane_wire::ethernet;

const NAME: &str = "table of records";

/// A flow, and packets of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) flow: u32,
    pub(super) packets: u64,
}

/// The switch.
pub(super) struct Records {
    switch: Switch<Native>,
    /// Places of its registers.
    flow: usize,
    count: usize,
    entries: u32,
    frame: Vec<u8>,
}

impl Records {
    /// A table of so many entries, a power of two, which are empty.
    ///
    /// # Errors
    /// `EV003` if the program does not compile.
    pub(super) fn new(entries: u32) -> Result<Self, EvalError> {
        let frames = include_str!("../../../p4/approsync/frames.p4");
        let records = include_str!("../../../p4/approsync/records.p4");
        let files = MemoryLoader::new().with("frames.p4", frames);
        let source = Source::new(files.with("main.p4", records), "main.p4")
            .define("ENTRIES", &entries.to_string())
            .define("LOCATIONS", "1")
            .define("COUNTED", "1");
        let program = source.program().map_err(|error| refused(NAME, error))?;
        let compiled = Compiled::new(program).map_err(|error| refused(NAME, error))?;
        let switch = switch(NAME, &compiled)?;
        let registers = switch.engine().state().registers();
        let place = |name: &str| {
            let place = registers.iter().position(|it| it.name().ends_with(name));
            place.ok_or_else(|| refused(NAME, format!("it has no `{name}`")))
        };
        let (flow, count) = (place("record_flow")?, place("record_count")?);
        let mut frame = vec![0; 60];
        frame[12..14].copy_from_slice(&ethernet::TYPE_IPV4.to_be_bytes());
        frame[14] = 0x45;
        Ok(Self {
            switch,
            flow,
            count,
            entries,
            frame,
        })
    }

    /// Entries of the table.
    pub(super) fn entries(&self) -> u32 {
        self.entries
    }

    /// Counts a packet of a flow: the record that it evicts.
    pub(super) fn count(&mut self, now: u64, flow: u32) -> Option<Record> {
        self.frame[26..30].copy_from_slice(&flow.to_be_bytes());
        self.switch.handle_frame(now, 0, &self.frame);
        let mut evicted = None;
        while let Some(sent) = self.switch.poll_transmit() {
            if sent.port == CONTROL_PORT {
                let records = pushed(&sent.frame).map(|(flow, packets)| Record { flow, packets });
                evicted = records.last().or(evicted);
            }
            self.switch.recycle(sent.frame);
        }
        evicted
    }

    /// The record at a place, unless it is empty.
    pub(super) fn record(&self, place: u32) -> Option<Record> {
        let registers = self.switch.engine().state().registers();
        let word = |of: usize| registers[of].word(place.into()).unwrap_or(0) as u64;
        let flow = word(self.flow).checked_sub(1)?;
        Some(Record {
            flow: flow as u32,
            packets: word(self.count),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_packet_is_in_one_record() {
        let mut records = Records::new(64).unwrap();
        let mut counts = [0_u64; 200];
        let mut evicted = 0;
        for packet in 0..20_000_u32 {
            let flow = packet.wrapping_mul(7_919) % 200;
            counts[flow as usize] += 1;
            if let Some(record) = records.count(packet.into(), flow) {
                assert_ne!(record.flow, flow);
                counts[record.flow as usize] -= record.packets;
                evicted += 1;
            }
        }
        assert!(evicted > 100, "{evicted} collisions");
        for record in (0..records.entries()).filter_map(|place| records.record(place)) {
            counts[record.flow as usize] -= record.packets;
        }
        assert_eq!(counts, [0; 200]);
    }
}
