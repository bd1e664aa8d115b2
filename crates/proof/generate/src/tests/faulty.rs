//! An engine with one fault.

use stateplane_interp::{InFlight, Interp, Options};
use stateplane_ir::Program;
use stateplane_runtime::{
    EgressInput, EgressOutcome, Engine, IngressInput, IngressOutcome, Preserved, TargetState,
};

/// Fault of the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// No fault.
    None,
    /// The last byte of frames whose byte 1 is 5 is inverted.
    Frame,
    /// The first element of each register is never written.
    Register,
    /// Frames that egress drops are sent.
    Drop,
    /// Frames whose byte 1 is 5 bring the engine down.
    Panic,
}

/// The interpreter with a fault.
pub struct Faulty {
    interp: Interp,
    fault: Fault,
}

/// Loads the interpreter.
pub fn interp(program: Program, seed: u64) -> Result<Interp, String> {
    Interp::new(program, Options { seed }).map_err(|error| error.to_string())
}

/// Loads an engine with a fault.
pub fn faulty(fault: Fault) -> impl Fn(Program, u64) -> Result<Faulty, String> {
    move |program, seed| {
        Ok(Faulty {
            interp: interp(program, seed)?,
            fault,
        })
    }
}

impl Engine for Faulty {
    type InFlight = InFlight;

    fn ingress(&mut self, input: &IngressInput<'_>) -> IngressOutcome<InFlight> {
        assert!(
            self.fault != Fault::Panic || input.frame.get(1) != Some(&5),
            "the engine is down"
        );
        let before = self.registers();
        let outcome = self.interp.ingress(input);
        if self.fault == Fault::Register {
            for (name, value) in before {
                if let Ok(register) = self.state_mut().register_mut(&name) {
                    let _ = register.write(0, &value);
                }
            }
        }
        outcome
    }

    fn parse(&mut self, input: &IngressInput<'_>) -> InFlight {
        self.interp.parse(input)
    }

    fn restore(&mut self, packet: &mut InFlight, preserved: &Preserved) {
        self.interp.restore(packet, preserved);
    }

    fn truncate(&mut self, packet: &mut InFlight, bytes: u32) {
        self.interp.truncate(packet, bytes);
    }

    fn egress(
        &mut self,
        packet: InFlight,
        input: &EgressInput,
        frame: &mut Vec<u8>,
    ) -> EgressOutcome<InFlight> {
        let mut outcome = self.interp.egress(packet, input, frame);
        match self.fault {
            Fault::Frame if frame.get(1) == Some(&5) => {
                if let Some(last) = frame.last_mut() {
                    *last = !*last;
                }
            }
            Fault::Drop if outcome.dropped => {
                outcome.dropped = false;
                frame.resize(20, 0);
            }
            _ => {}
        }
        outcome
    }

    fn gave_up(&self) -> bool {
        self.interp.gave_up()
    }

    fn length(&self, packet: &InFlight) -> usize {
        self.interp.length(packet)
    }

    fn state(&self) -> &TargetState {
        self.interp.state()
    }

    fn state_mut(&mut self) -> &mut TargetState {
        self.interp.state_mut()
    }
}

impl Faulty {
    fn registers(&self) -> Vec<(String, stateplane_runtime::Value)> {
        let registers = self.state().registers().iter();
        registers
            .filter_map(|register| Some((register.name().to_owned(), register.read(0).ok()?)))
            .collect()
    }
}
