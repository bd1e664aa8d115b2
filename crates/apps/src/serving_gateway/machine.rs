//! A serving gateway: one session is one flow. A tunnel is a number of 28 bits: its
//! endpoint in the four highest, its identifier below.

const OPERATION: u32 = 61;
const CREATE: u64 = 1;
const MOVE: u64 = 2;
const DELETE: u64 = 3;
const UPLINK: u64 = 4;
/// Of a request: where the tunnel towards the base station begins; the other one is
/// in the lowest bits.
const ACCESS: u32 = 28;
const TUNNEL: u64 = (1 << 28) - 1;
/// Of a state.
const PRESENT: u128 = 1 << 64;
/// Outputs of signalling.
const ACCEPTED: u64 = 0;
const NO_SESSION: u64 = 1;
/// Of an output: the packet goes into this tunnel.
const FORWARDED: u64 = 1 << 32;

pub(super) fn step(state: u128, request: u64) -> (Option<u64>, u128) {
    let (access, core) = (request >> ACCESS & TUNNEL, request & TUNNEL);
    let session = |access: u64, core: u64| PRESENT | u128::from(access << ACCESS | core);
    let held = state as u64;
    match request >> OPERATION {
        CREATE => (Some(ACCEPTED), session(access, core)),
        MOVE | DELETE if state == 0 => (Some(NO_SESSION), state),
        MOVE => (Some(ACCEPTED), session(access, held & TUNNEL)),
        DELETE => (Some(ACCEPTED), 0),
        _ if state == 0 => (None, state),
        UPLINK => (Some(FORWARDED | held & TUNNEL), state),
        _ => (Some(FORWARDED | held >> ACCESS & TUNNEL), state),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tunnels_are_set_by_signalling_and_read_by_data() {
        let mut state = 0;
        let mut run = |operation: u64, access: u64, core: u64| {
            let request = operation << OPERATION | access << ACCESS | core;
            let (output, next) = step(state, request);
            state = next;
            output
        };
        assert_eq!(run(UPLINK, 0, 0), None);
        assert_eq!(run(MOVE, 3, 0), Some(NO_SESSION));
        assert_eq!(run(CREATE, 7, 9), Some(ACCEPTED));
        assert_eq!(run(UPLINK, 0, 0), Some(FORWARDED | 9));
        assert_eq!(run(5, 0, 0), Some(FORWARDED | 7));
        assert_eq!(run(MOVE, 8, 0), Some(ACCEPTED));
        assert_eq!(run(UPLINK, 0, 0), Some(FORWARDED | 9));
        assert_eq!(run(5, 0, 0), Some(FORWARDED | 8));
        assert_eq!(run(DELETE, 0, 0), Some(ACCEPTED));
        assert_eq!(run(5, 0, 0), None);
    }
}
