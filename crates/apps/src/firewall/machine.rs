//! A firewall that lets connections be opened from inside only.
//!
//! Of TCP it knows how far the three-way handshake is and which sides have sent
//! their FIN (RFC 9293 3.5 and 3.6); of UDP, whether inside has spoken. Timeouts are
//! not part of it: they are longer than a history.

const FIN: u64 = 1 << 0;
const SYN: u64 = 1 << 1;
const RST: u64 = 1 << 2;
const ACK: u64 = 1 << 4;
const OUTSIDE: u64 = 1 << 8;
const UDP: u64 = 1 << 9;

const CLOSED: u128 = 0;
/// SYN from inside.
const OPENING: u128 = 1;
/// SYN and ACK from outside.
const ANSWERED: u128 = 2;
const OPEN: u128 = 3;
/// Added to a state: this side has sent its FIN.
const FIN_INSIDE: u128 = 8;
const FIN_OUTSIDE: u128 = 16;

pub(super) fn step(state: u128, request: u64) -> (Option<u64>, u128) {
    let passes = |next| (Some(1), next);
    let drops = (None, state);
    let outside = request & OUTSIDE != 0;
    if request & UDP != 0 {
        return match (outside, state) {
            (false, _) => passes(OPEN),
            (true, CLOSED) => drops,
            (true, _) => passes(state),
        };
    }
    let handshake = request & (SYN | ACK);
    let over = state & FIN_INSIDE != 0 && state & FIN_OUTSIDE != 0;
    if request & RST != 0 {
        return if state == CLOSED {
            drops
        } else {
            passes(CLOSED)
        };
    }
    if handshake == SYN {
        return if outside {
            drops
        } else if state == CLOSED || over {
            passes(OPENING)
        } else {
            passes(state)
        };
    }
    let fin = match (request & FIN != 0, outside) {
        (false, _) => 0,
        (true, false) => FIN_INSIDE,
        (true, true) => FIN_OUTSIDE,
    };
    match state {
        CLOSED => drops,
        OPENING if outside && handshake == SYN | ACK => passes(ANSWERED),
        OPENING => drops,
        ANSWERED if outside => passes(ANSWERED | fin),
        _ if !outside && state & 7 == ANSWERED && handshake == ACK => {
            passes(OPEN | state & !7 | fin)
        }
        _ => passes(state | fin),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(requests: &[u64]) -> Vec<bool> {
        let mut state = 0;
        let steps = requests.iter().map(|&request| {
            let (output, next) = step(state, request);
            state = next;
            output.is_some()
        });
        steps.collect()
    }

    #[test]
    fn a_connection_opens_from_inside_carries_data_and_closes() {
        let closed = run(&[
            SYN,
            SYN | ACK | OUTSIDE,
            ACK,
            ACK | OUTSIDE,
            FIN | ACK,
            FIN | ACK | OUTSIDE,
            ACK,
        ]);
        assert_eq!(closed, [true; 7]);
    }

    #[test]
    fn outside_opens_nothing() {
        assert_eq!(run(&[SYN | OUTSIDE]), [false]);
        assert_eq!(run(&[SYN | ACK | OUTSIDE]), [false]);
        assert_eq!(run(&[ACK | OUTSIDE]), [false]);
        assert_eq!(run(&[UDP | OUTSIDE]), [false]);
        assert_eq!(run(&[UDP, UDP | OUTSIDE]), [true, true]);
        // Data before the answer to the SYN.
        assert_eq!(run(&[SYN, ACK | OUTSIDE]), [true, false]);
    }

    #[test]
    fn a_reset_closes_at_once_and_fins_let_inside_open_again() {
        let open = [SYN, SYN | ACK | OUTSIDE, ACK];
        let after = |rest: &[u64]| run(&[&open[..], rest].concat())[3..].to_vec();
        assert_eq!(after(&[RST | OUTSIDE, ACK]), [true, false]);
        assert_eq!(after(&[RST, ACK | OUTSIDE]), [true, false]);
        // A SYN within an open connection is for the host to challenge.
        assert_eq!(after(&[SYN, ACK | OUTSIDE]), [true, true]);
        let fins = [FIN | ACK, FIN | ACK | OUTSIDE];
        let again = [&fins[..], &[SYN, ACK | OUTSIDE]].concat();
        assert_eq!(after(&again), [true, true, true, false]);
    }
}
