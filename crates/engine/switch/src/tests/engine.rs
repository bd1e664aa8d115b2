//! An engine whose "program" is in the frame: each of its first bytes says what one
//! stage does, so that a scenario is a frame and random frames are random programs.

use stateplane_runtime::{
    CloneRequest, DROP_PORT, EgressInput, EgressOutcome, Engine, Forwarded, IngressInput,
    IngressOutcome, InstanceType, Port, Preserved, TargetState,
};

/// Positions in the frame.
pub(crate) mod at {
    /// Index of the ingress operation, see [`super::ingress_op`].
    pub(crate) const INGRESS: usize = 0;
    /// Its argument: port or group.
    pub(crate) const TARGET: usize = 1;
    /// Resubmissions to ask for, before anything else.
    pub(crate) const RESUBMITS: usize = 2;
    /// Session of an ingress clone, 0 for none; normal packets only.
    pub(crate) const INGRESS_CLONE: usize = 3;
    /// Recirculations left.
    pub(crate) const RECIRCULATIONS: usize = 4;
    /// Session of an egress clone, 0 for none.
    pub(crate) const EGRESS_CLONE: usize = 5;
    /// Egress clones left in the chain of clones.
    pub(crate) const CLONES: usize = 6;
    /// Index of the egress operation, see [`super::egress_op`].
    pub(crate) const EGRESS: usize = 7;
    /// Length of the deparsed frame, in units of 8 KiB, if not 0.
    pub(crate) const GROW: usize = 8;
}

pub(crate) mod ingress_op {
    pub(crate) const FORWARD: u8 = 0;
    pub(crate) const DROP: u8 = 1;
    pub(crate) const MULTICAST: u8 = 2;
    /// To port 300 and beyond the range of ports.
    pub(crate) const BEYOND: u8 = 3;
}

pub(crate) mod egress_op {
    pub(crate) const DROP: u8 = 1;
    /// Clones are dropped, others pass.
    pub(crate) const DROP_CLONES: u8 = 2;
    pub(crate) const EMPTY: u8 = 3;
}

/// A number of clones or recirculations that never runs out.
pub(crate) const FOREVER: u8 = 255;

#[derive(Clone, Debug)]
pub(crate) struct Packet {
    frame: Vec<u8>,
    truncate: Option<u32>,
    arrived: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Ingress {
        port: Port,
        instance: InstanceType,
        now: u64,
    },
    Parse {
        instance: InstanceType,
        preserved: Vec<u64>,
    },
    Egress(EgressRun),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EgressRun {
    pub(crate) port: Port,
    pub(crate) rid: u16,
    pub(crate) instance: InstanceType,
    pub(crate) depth: u32,
    pub(crate) now: u64,
}

pub(crate) struct FakeEngine {
    pub(crate) events: Vec<Event>,
    /// True if packets that need not wait go through egress at once.
    pub(crate) at_once: bool,
    state: TargetState,
}

impl FakeEngine {
    pub(crate) fn new(state: TargetState) -> Self {
        Self {
            events: Vec::new(),
            at_once: false,
            state,
        }
    }

    pub(crate) fn egress_runs(&self) -> Vec<EgressRun> {
        self.events
            .iter()
            .filter_map(|event| match event {
                Event::Egress(run) => Some(*run),
                _ => None,
            })
            .collect()
    }
}

/// Preserved metadata of one field.
fn preserved(list: u32, value: u8) -> Preserved {
    Preserved {
        field_list: Some(list),
        bits: std::iter::once(u64::from(value)).collect(),
    }
}

fn less(count: u8) -> u8 {
    if count == FOREVER {
        FOREVER
    } else {
        count.saturating_sub(1)
    }
}

impl Engine for FakeEngine {
    type InFlight = Packet;

    fn ingress(&mut self, input: &IngressInput<'_>) -> IngressOutcome<Packet> {
        let frame = input.frame;
        assert!(frame.len() >= 14, "the switch lets no runt through");
        assert!(input.now < 1 << 48);
        let instance = input.instance_type;
        self.events.push(Event::Ingress {
            port: input.port,
            instance,
            now: input.now,
        });
        let resubmits = input.preserved.bits.first().map_or(0, |value| *value as u8);
        let resubmit = (instance != InstanceType::Recirculated
            && (resubmits < frame[at::RESUBMITS] || frame[at::RESUBMITS] == FOREVER))
            .then(|| preserved(1, resubmits.saturating_add(1)));
        let target = u16::from(frame[at::TARGET]);
        let (egress_spec, mcast_grp) = match frame[at::INGRESS] {
            ingress_op::FORWARD => (target, 0),
            ingress_op::MULTICAST => (0, target),
            ingress_op::BEYOND => (DROP_PORT + 1 + target, 0),
            _ => (DROP_PORT, 0),
        };
        let session = u32::from(frame[at::INGRESS_CLONE]);
        IngressOutcome {
            packet: Packet {
                frame: frame.to_vec(),
                truncate: None,
                arrived: frame.len(),
            },
            egress_spec,
            mcast_grp,
            clone: (session != 0 && instance == InstanceType::Normal).then(|| CloneRequest {
                session,
                preserved: preserved(2, 7),
            }),
            resubmit,
        }
    }

    fn parse(&mut self, input: &IngressInput<'_>) -> Packet {
        self.events.push(Event::Parse {
            instance: input.instance_type,
            preserved: input.preserved.bits.to_vec(),
        });
        Packet {
            frame: input.frame.to_vec(),
            truncate: None,
            arrived: input.frame.len(),
        }
    }

    fn restore(&mut self, packet: &mut Packet, preserved: &Preserved) {
        packet.frame[at::CLONES] = preserved.bits[0] as u8;
        packet.frame[at::RECIRCULATIONS] = 0;
    }

    fn truncate(&mut self, packet: &mut Packet, bytes: u32) {
        packet.truncate = Some(bytes);
    }

    fn egress(
        &mut self,
        packet: Packet,
        input: &EgressInput,
        frame: &mut Vec<u8>,
    ) -> EgressOutcome<Packet> {
        self.events.push(Event::Egress(EgressRun {
            port: input.port,
            rid: input.rid,
            instance: input.instance_type,
            depth: input.enqueue_depth,
            now: input.now,
        }));
        frame.clear();
        let bytes = &packet.frame;
        let is_clone = matches!(
            input.instance_type,
            InstanceType::EgressClone | InstanceType::IngressClone
        );
        let dropped = bytes[at::EGRESS] == egress_op::DROP
            || (bytes[at::EGRESS] == egress_op::DROP_CLONES && is_clone);
        let session = u32::from(bytes[at::EGRESS_CLONE]);
        let clones = bytes[at::CLONES];
        let clone = (session != 0 && clones != 0).then(|| {
            let preserved = preserved(3, less(clones));
            (CloneRequest { session, preserved }, packet.clone())
        });
        let recirculations = bytes[at::RECIRCULATIONS];
        if !dropped && bytes[at::EGRESS] != egress_op::EMPTY {
            frame.extend_from_slice(bytes);
            frame[at::RECIRCULATIONS] = less(recirculations);
            if bytes[at::GROW] != 0 {
                frame.resize(usize::from(bytes[at::GROW]) << 13, 0);
            }
            if let Some(length) = packet.truncate {
                frame.truncate(length as usize);
            }
        }
        EgressOutcome {
            dropped,
            clone,
            recirculate: (!dropped && recirculations > 0).then(|| Preserved {
                field_list: Some(4),
                bits: std::iter::empty().collect(),
            }),
        }
    }

    fn forward(&mut self, input: &IngressInput<'_>, frame: &mut Vec<u8>) -> Forwarded<Packet> {
        let outcome = self.ingress(input);
        let waits = !self.at_once
            || outcome.clone.is_some()
            || outcome.resubmit.is_some()
            || outcome.mcast_grp != 0
            || outcome.egress_spec >= DROP_PORT;
        if waits {
            return Forwarded::Waits(outcome);
        }
        let port = outcome.egress_spec;
        let egress = EgressInput {
            port,
            rid: 0,
            instance_type: input.instance_type,
            enqueued_at: input.now,
            enqueue_depth: 0,
            dequeue_depth: 0,
            now: input.now,
        };
        Forwarded::Done {
            port,
            outcome: self.egress(outcome.packet, &egress, frame),
        }
    }

    fn length(&self, packet: &Packet) -> usize {
        packet.arrived
    }

    fn state(&self) -> &TargetState {
        &self.state
    }

    fn state_mut(&mut self) -> &mut TargetState {
        &mut self.state
    }
}
