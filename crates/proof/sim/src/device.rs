//! Interface of a simulated switch, be it a compiled program or a model.

use core::net::Ipv4Addr;
use stateplane_wire::replication::Key;

/// Slot of a switch: its belief about a flow's lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    /// A lease was granted for this claim; otherwise one was asked for.
    pub(crate) granted: bool,
    pub(crate) shared: bool,
    pub(crate) epoch: u32,
    /// Until when the lease counts, by the switch's clock, in µs: the end of the term with the
    /// shard's head; 0 if the term began after the grant was asked for (rule 1).
    pub(crate) deadline: u64,
    /// Number of the newest state.
    pub(crate) sequence: u32,
    /// Number of the newest state that the store acknowledged.
    pub(crate) acknowledged: u32,
}

/// A switch without IO. Times are of its own clock, in µs.
pub(crate) trait Device {
    fn handle_frame(&mut self, now: u64, port: u16, frame: &[u8]);

    fn handle_timeout(&mut self, now: u64);

    fn poll_transmit(&mut self) -> Option<(u16, Vec<u8>)>;

    fn poll_timeout(&self) -> Option<u64>;

    /// True if the switch has taken its data ports down because the store is silent (rule 17).
    fn is_aloof(&self) -> bool;

    /// The head of a shard's chain is there from now on.
    fn set_chain(&mut self, shard: u16, head: Ipv4Addr, epoch: u32);

    /// The slot of `key`.
    fn slot(&self, key: &Key) -> Option<Slot>;

    /// All slots.
    fn slots(&self) -> Vec<(Key, Slot)>;

    /// Number of packets that found no slot.
    fn table_full(&self) -> u64;

    /// Number of packets that came while the newest kept snapshot was older than ε.
    fn alarms(&self) -> u64;

    /// The elements, of at most 128 bits, of a register; none if there is no such register.
    fn words(&self, register: &str) -> Vec<u128>;
}

/// Identity of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    /// Its number, from 1.
    pub(crate) switch: u32,
    /// Number of its present start; never 0.
    pub(crate) incarnation: u32,
}

impl Identity {
    /// The number before the first of what it counts, a little before the numbers wrap.
    pub(crate) fn first_number(self) -> u32 {
        u32::MAX - self.incarnation % 8
    }
}
