//! Counters of one switch, or of several workers.

use crate::ports::HostPortCounters;
use crate::switch::report::{ProgramReport, WorkerReport};
use stateplane_runtime::Engine;
use stateplane_switch::{Counters, Occupancy, Port, PortCounters, Switch};
use std::collections::BTreeMap;

/// Counters of one worker beside its switch's.
pub(super) struct WorkerCounts {
    /// Of each port, in the order of the switch's ports.
    pub(super) host: Vec<HostPortCounters>,
    pub(super) report: WorkerReport,
    pub(super) packets_in_lost: u64,
}

/// Counters of one switch, or of several workers.
#[derive(Default)]
pub(in crate::switch) struct Counted {
    pub(in crate::switch) counters: Counters,
    pub(in crate::switch) occupancy: Occupancy,
    pub(in crate::switch) program: ProgramReport,
    /// Of each port, and whether frames pass it.
    pub(in crate::switch) ports: BTreeMap<Port, (PortCounters, bool)>,
    /// Of each port with an interface, ascending: counters that the port itself does not have.
    pub(in crate::switch) host: Vec<HostPortCounters>,
    /// Of each worker.
    pub(in crate::switch) workers: Vec<WorkerReport>,
    /// Frames for a control plane that it had no room for.
    pub(in crate::switch) packets_in_lost: u64,
}

impl Counted {
    /// Of one switch.
    pub(in crate::switch) fn of<E: Engine>(switch: &Switch<E>) -> Counted {
        let ports = switch.ports().iter().map(|port| {
            let counters = switch.port_counters(*port).unwrap_or_default();
            (*port, (counters, switch.port_is_up(*port)))
        });
        Counted {
            counters: switch.counters().clone(),
            occupancy: switch.occupancy(),
            program: ProgramReport::new(switch.engine().state()),
            ports: ports.collect(),
            ..Counted::default()
        }
    }

    pub(super) fn add(&mut self, other: Counted) {
        self.counters += &other.counters;
        self.occupancy += other.occupancy;
        self.program.add(other.program);
        for ((sum, _), (port, _)) in self.ports.values_mut().zip(other.ports.into_values()) {
            *sum += port;
        }
    }
}
