//! A load balancer: one connection is one flow. Servers are numbered from 1; those
//! above the fourth drain at one of the switches.

const SERVERS: u128 = 8;
const NOT_DRAINING: u128 = 4;
/// Of a request: it opens a connection.
const OPENS: u64 = 1;

pub(super) fn steps(state: u128, request: u64) -> Vec<(Option<u64>, u128)> {
    let mut to: Vec<u128> = match state {
        0 => (1..=SERVERS).collect(),
        server => vec![server],
    };
    if request & OPENS != 0 && state > NOT_DRAINING {
        to.extend(1..=NOT_DRAINING);
    }
    to.into_iter()
        .map(|server| (Some(server as u64), server))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_keeps_its_server() {
        assert_eq!(steps(0, OPENS).len(), 8);
        assert_eq!(steps(6, 0), [(Some(6), 6)]);
        assert_eq!(steps(3, OPENS), [(Some(3), 3)]);
        // A new one with the same ports may go elsewhere if its server drains.
        assert_eq!(steps(6, OPENS).len(), 5);
    }
}
