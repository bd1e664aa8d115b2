//! Frames in generated programs.

use stateplane_generate::{Session, generate, properties, source};
use stateplane_ir::Program;
use stateplane_runtime::Engine;
use stateplane_switch::Switch;
use std::sync::OnceLock;

/// Programs that frames are given to.
const PROGRAMS: u64 = 24;

struct Loaded {
    program: Program,
    session: Session,
}

fn programs() -> &'static [Loaded] {
    static PROGRAM: OnceLock<Vec<Loaded>> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        (0..PROGRAMS)
            .map(|seed| {
                let generated = generate(seed, 0);
                match source::compile(&generated.program) {
                    Ok(program) => Loaded {
                        program,
                        session: generated.session,
                    },
                    Err(refusal) => panic!("seed {seed}: {refusal}"),
                }
            })
            .collect()
    })
}

/// The first byte names the program, the second one the port; then frames, each behind
/// its length. Every packet is accounted for.
pub(super) fn packets(input: &[u8]) {
    let (Some(which), Some(port)) = (input.first(), input.get(1)) else {
        return;
    };
    let loaded = &programs()[usize::from(*which) % PROGRAMS as usize];
    let engine = match properties::interpreter(loaded.program.clone(), 1) {
        Ok(engine) => engine,
        Err(error) => panic!("{error}"),
    };
    let mut switch = match Switch::new(engine, loaded.session.config.clone()) {
        Ok(switch) => switch,
        Err(error) => panic!("{error}"),
    };
    for write in &loaded.session.writes {
        // Generated entries may be equal to others.
        let _ = write.apply(switch.engine_mut().state_mut());
    }
    let mut rest = &input[2..];
    let mut now = 0;
    while let Some((length, behind)) = rest.split_first() {
        let (frame, behind) = behind.split_at(usize::from(*length).min(behind.len()));
        rest = behind;
        now += 10;
        switch.handle_frame(now, u16::from(*port) % 9, frame);
        while switch.poll_transmit().is_some() {}
    }
    let counters = switch.counters();
    assert_eq!(
        counters.born() - counters.ended(),
        switch.occupancy().total(),
        "a packet is lost"
    );
}
