//! A program that sends frames of port 0 to port 1 and of port 1 to port 0, and marks them with an
//! IEEE 802.1Q tag. It notes the time of a sign of life in `heard`.

use stateplane_ir::{Type, builder::Builder};
use stateplane_runtime::{
    DROP_PORT, EgressInput, EgressOutcome, Engine, Fellow, IngressInput, IngressOutcome, Port,
    Preserved, TargetState, Value,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

pub struct SwapEngine {
    state: TargetState,
    /// Frames that were announced.
    pub announced: Arc<AtomicU64>,
    /// Put at [`MARK`], unless it is 0.
    mark: u8,
    /// Offset of the key of frames that carry many flows, or [`NO_KEY`]. Fellows share it.
    pub key_at: Arc<AtomicUsize>,
}

impl SwapEngine {
    pub fn marking(mark: u8) -> SwapEngine {
        SwapEngine {
            mark,
            ..SwapEngine::default()
        }
    }

    /// Whose state is that of a tunnel of GTP-U, or of the flow of a message of the store.
    pub fn keyed() -> SwapEngine {
        SwapEngine {
            key_at: Arc::new(AtomicUsize::new(KEY + 2)),
            ..SwapEngine::default()
        }
    }
}

impl Default for SwapEngine {
    fn default() -> Self {
        let mut builder = Builder::new();
        let nothing = builder.structure("nothing", &[]);
        builder.pipeline(nothing, nothing);
        builder.register("ingress.heard", Type::Bits(48), 1);
        let program = builder.finish().expect("the program is well formed");
        Self {
            state: TargetState::new(&program, 1).expect("and small"),
            announced: Arc::default(),
            mark: 0,
            key_at: Arc::new(AtomicUsize::new(NO_KEY)),
        }
    }
}

/// Offset of a number of UDP's destination port.
const UDP_TO: usize = 36;

/// In place of the offset of a key: frames have none.
pub const NO_KEY: usize = usize::MAX;

/// Offset of UDP's source port, which the hash of a flow covers.
pub const UDP_FROM: usize = 34;

/// Offset of the key of a frame that carries many flows.
pub const KEY: usize = 46;

/// Destination ports of frames that carry many flows.
pub const GTP_U: [u8; 2] = [8, 104];
pub const STORE: [u8; 2] = [0x12, 0xb9];

/// Offset of a program's mark.
pub const MARK: usize = 50;

/// Offset of what a frame is for.
pub const KIND: usize = 51;

/// Frames for [`CPU_PORT`].
pub const FOR_CONTROLLER: [u8; 2] = [0xc0, 1];

/// Frames for [`GROUP`].
pub const FOR_GROUP: [u8; 2] = [0xc0, 2];

/// Port of the control plane.
pub const CPU_PORT: Port = 7;

/// A multicast group.
pub const GROUP: u16 = 9;

/// Put into byte 44 of a tagged frame.
pub const TAGGED: u8 = 0xaa;

/// Last byte of a frame that is a sign of life.
pub const SIGN_OF_LIFE: u8 = 0x5a;

/// IPv6, which Linux speaks by itself on every interface that comes up.
fn is_noise(frame: &[u8]) -> bool {
    frame[12..14] == [0x86, 0xdd]
}

impl Engine for SwapEngine {
    type InFlight = Vec<u8>;

    fn ingress(&mut self, input: &IngressInput<'_>) -> IngressOutcome<Vec<u8>> {
        let mut packet = input.frame.to_vec();
        if packet[12..14] == [0x81, 0] {
            packet[44] = TAGGED;
        }
        if packet.last() == Some(&SIGN_OF_LIFE) {
            let register = self.state.register_mut("heard").expect("it exists");
            register
                .write(0, &Value::from(input.now))
                .expect("a time fits");
        }
        let kind = input.frame.get(KIND..).and_then(|rest| rest.first_chunk());
        if self.mark != 0 {
            packet[MARK] = self.mark;
        }
        IngressOutcome {
            egress_spec: if is_noise(input.frame) {
                DROP_PORT
            } else if kind == Some(&FOR_CONTROLLER) {
                CPU_PORT
            } else {
                1 - input.port
            },
            mcast_grp: if kind == Some(&FOR_GROUP) { GROUP } else { 0 },
            packet,
            clone: None,
            resubmit: None,
        }
    }

    fn announce(&mut self, _: Port, _: &[u8]) {
        self.announced.fetch_add(1, Ordering::Relaxed);
    }

    fn state_key(&mut self, _: Port, frame: &[u8]) -> Option<u16> {
        let key_at = self.key_at.load(Ordering::Relaxed);
        if key_at == NO_KEY || frame.len() < KEY + 4 || frame[12..14] != [8, 0] {
            return None;
        }
        let carries_flows = [GTP_U, STORE].contains(&[frame[UDP_TO], frame[UDP_TO + 1]]);
        carries_flows.then(|| u16::from_be_bytes([frame[key_at], frame[key_at + 1]]))
    }

    fn parse(&mut self, input: &IngressInput<'_>) -> Vec<u8> {
        input.frame.to_vec()
    }

    fn restore(&mut self, _: &mut Vec<u8>, _: &Preserved) {}

    fn truncate(&mut self, packet: &mut Vec<u8>, bytes: u32) {
        packet.truncate(bytes as usize);
    }

    fn egress(
        &mut self,
        packet: Vec<u8>,
        _: &EgressInput,
        frame: &mut Vec<u8>,
    ) -> EgressOutcome<Vec<u8>> {
        frame.clear();
        frame.extend_from_slice(&packet);
        EgressOutcome {
            dropped: false,
            clone: None,
            recirculate: None,
        }
    }

    fn length(&self, packet: &Vec<u8>) -> usize {
        packet.len()
    }

    fn state(&self) -> &TargetState {
        &self.state
    }

    fn state_mut(&mut self) -> &mut TargetState {
        &mut self.state
    }
}

impl Fellow for SwapEngine {
    fn fellow(&mut self, seed: u64) -> SwapEngine {
        SwapEngine {
            state: self.state.fellow(seed),
            announced: self.announced.clone(),
            mark: self.mark,
            key_at: self.key_at.clone(),
        }
    }
}
