//! A switch that runs a program, beside its store, in virtual time.

use crate::chain::Chain;
use crate::engine::pass;
use crate::frame;
use crate::limit::Job;
use stateplane_host::switch::SwitchFile;
use stateplane_ir::Program;
use stateplane_runtime::Engine;
use stateplane_switch::{Port, Switch, SwitchConfig};
use stateplane_wire::replication::{MessageType, Packet};
use std::path::Path;

/// The port to the store.
const STORE: Port = 2;

/// Duration of a conversation, in µs: longer than the first hold time of the lab's mirror sessions
/// (20 ms), so that no copy waits behind it.
const CONVERSATION: u64 = 100_000;

/// Compiles `program`, a path in the repository.
///
/// # Panics
///
/// If it is refused.
pub fn compile(program: &str) -> Program {
    compile_with(program, &[])
}

/// Compiles `program`, a path in the repository, with names that the preprocessor is to know.
///
/// # Panics
///
/// If it is refused.
pub fn compile_with(program: &str, defines: &[(&str, &str)]) -> Program {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../..")
        .join(program);
    let read = |path: &str| std::fs::read_to_string(path).ok();
    let mut source = stateplane_compile::file(&path.to_string_lossy(), read);
    for (name, value) in defines {
        source = source.define(name, value);
    }
    let program = source.program();
    program.unwrap_or_else(|refused| panic!("{refused}"))
}

/// Compiles a program's text.
///
/// # Panics
///
/// If it is refused.
pub fn compile_text(text: &str) -> Program {
    let program = stateplane_compile::text(text).program();
    program.unwrap_or_else(|refused| panic!("{refused}"))
}

/// A switch with ports 0 to 2, of which the last leads to the store.
pub struct Bench<E: Engine> {
    switch: Switch<E>,
    /// Virtual time in µs.
    pub now: u64,
}

impl<E: Engine> Bench<E> {
    /// Applies the switch's file `config` to a switch around `engine`.
    ///
    /// # Panics
    ///
    /// If the file is wrong for the program.
    pub fn new(engine: E, config: &str) -> Bench<E> {
        let ports = SwitchConfig {
            ports: vec![0, 1, STORE],
            ..SwitchConfig::default()
        };
        let mut switch = Switch::new(engine, ports).expect("a switch");
        let file = SwitchFile::parse(Path::new("switch.toml"), config).expect("a switch's file");
        let mut random = || 0x1a2b_3c4d;
        file.apply(&mut switch, &mut random)
            .expect("the file suits the program");
        stateplane_setup::hold_terms(switch.engine_mut().state_mut(), 0);
        Bench {
            switch,
            now: 1_000_000,
        }
    }

    /// Ends what the switch was granted, as after a time without its heads.
    pub fn lapse(&mut self) {
        stateplane_setup::hold_terms(self.switch.engine_mut().state_mut(), self.now);
    }

    /// The engine within, without the switch around it.
    pub fn engine(&mut self) -> Within<'_, E> {
        Within {
            now: self.now,
            engine: self.switch.engine_mut(),
        }
    }

    /// Begins a burst of packets.
    pub fn begin_burst(&mut self) {
        self.switch.begin_burst();
    }

    /// Ends a burst of packets.
    pub fn end_burst(&mut self) {
        self.switch.end_burst();
    }

    /// Gives the switch a frame at `port`, and what it sends to `sent`.
    #[inline]
    pub fn frame(&mut self, port: Port, bytes: &[u8], sent: impl FnMut(Port, &[u8])) {
        self.switch.handle_frame(self.now, port, bytes);
        self.drain(sent);
    }

    /// Lets time pass to `now`, and gives what the switch sends to `sent`.
    pub fn advance(&mut self, now: u64, mut sent: impl FnMut(Port, &[u8])) {
        while let Some(due) = self.switch.poll_timeout()
            && due <= now
        {
            self.now = self.now.max(due);
            self.switch.handle_timeout(self.now);
            self.drain(&mut sent);
        }
        self.now = now;
    }

    /// Lets time pass to `now`, while `chain` answers the switch's probes.
    ///
    /// # Panics
    ///
    /// If the switch sends anything but probes: a request again, or a packet.
    pub fn idle(&mut self, now: u64, chain: &mut Chain) {
        let mut requests = Vec::new();
        self.advance(now, |port, bytes| {
            assert_eq!(port, STORE, "no packet leaves");
            requests.push(bytes.to_vec());
        });
        for bytes in &requests {
            let (_, request) = frame::message_in(bytes);
            let kind = Packet::new_checked(request).map(|packet| packet.message_type());
            assert_eq!(kind, Ok(MessageType::ProbeRequest), "nothing is sent again");
        }
        self.answer(chain, &mut requests, &mut |_, port, _| {
            panic!("a probe's answer sends nothing to port {port}")
        });
    }

    fn drain(&mut self, mut sent: impl FnMut(Port, &[u8])) {
        while let Some(transmit) = self.switch.poll_transmit() {
            sent(transmit.port, &transmit.frame);
            self.switch.recycle(transmit.frame);
        }
    }

    /// Gives `frames` to port 0 and lets `chain` answer for a tenth of a second, after which
    /// nothing waits and leases are fresh; returns how many frames left by port 1.
    pub fn converse(&mut self, chain: &mut Chain, frames: &[Vec<u8>]) -> usize {
        let mut requests: Vec<Vec<u8>> = Vec::new();
        let mut left = 0;
        let end = self.now + CONVERSATION;
        let mut sent = |requests: &mut Vec<Vec<u8>>, port, bytes: &[u8]| match port {
            STORE => requests.push(bytes.to_vec()),
            1 => left += 1,
            _ => {}
        };
        // The program probes the store before it opens its ports.
        self.advance(self.now, |port, bytes| sent(&mut requests, port, bytes));
        self.answer(chain, &mut requests, &mut sent);
        for bytes in frames {
            self.frame(0, bytes, |port, bytes| sent(&mut requests, port, bytes));
        }
        self.answer(chain, &mut requests, &mut sent);
        while self.now < end {
            let next = (self.now + 1000).min(end);
            self.advance(next, |port, bytes| sent(&mut requests, port, bytes));
            self.answer(chain, &mut requests, &mut sent);
        }
        left
    }

    fn answer(
        &mut self,
        chain: &mut Chain,
        requests: &mut Vec<Vec<u8>>,
        sent: &mut impl FnMut(&mut Vec<Vec<u8>>, Port, &[u8]),
    ) {
        while !requests.is_empty() {
            for reply in replies(chain, self.now, &std::mem::take(requests)) {
                self.frame(STORE, &reply, |port, bytes| sent(requests, port, bytes));
            }
        }
    }
}

impl<E: Engine> Job for Bench<E> {
    #[inline]
    fn frame(&mut self, port: Port, frame: &[u8], out: &mut Vec<u8>) -> Option<Port> {
        self.switch.handle_frame(self.now, port, frame);
        let mut left = None;
        while let Some(transmit) = self.switch.poll_transmit() {
            left = Some(transmit.port);
            let sent = std::mem::replace(out, transmit.frame);
            self.switch.recycle(sent);
        }
        left
    }

    #[inline]
    fn announce(&mut self, port: Port, frame: &[u8]) {
        self.switch.announce(port, frame);
    }
}

/// The engine of a switch, as a job.
pub struct Within<'a, E: Engine> {
    /// The engine.
    pub engine: &'a mut E,
    now: u64,
}

impl<E: Engine> Job for Within<'_, E> {
    #[inline]
    fn frame(&mut self, port: Port, frame: &[u8], out: &mut Vec<u8>) -> Option<Port> {
        pass(self.engine, self.now, port, frame, out)
    }

    #[inline]
    fn announce(&mut self, port: Port, frame: &[u8]) {
        self.engine.announce(port, frame);
    }
}

/// The frames by which `chain` answers the requests in `frames`.
pub fn replies(chain: &mut Chain, now: u64, frames: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let tail = chain.tail();
    let mut replies = Vec::new();
    for bytes in frames {
        let (from, request) = frame::message_in(bytes);
        chain.request(now, from, request, |(to, reply)| {
            replies.push(frame::message(tail, to, &reply));
        });
    }
    replies
}
