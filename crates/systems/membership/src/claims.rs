//! Claims of servers to follow versions of configurations that a controller never made.
//!
//! A claim that is true shows that another controller made decisions that this one has not read,
//! so that it must make none. A damaged or forged claim is contradicted by the heartbeats that
//! come after it.

use std::collections::BTreeMap;

/// Claims by server and by the number of what is configured, with how many more heartbeats of
/// the server may pass without another word of it.
#[derive(Debug, Clone, Default)]
pub struct Claims(BTreeMap<(u32, u16), u32>);

impl Claims {
    /// True if no claim counts.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Notes the claim of `server` about thing `number`. It counts until `beats` heartbeats of the
    /// server were heard without it.
    pub fn note(&mut self, server: u32, number: u16, beats: u32) {
        self.0.insert((server, number), beats);
    }

    /// Takes a heartbeat of `server`, which is to repeat its claims.
    pub fn heard(&mut self, server: u32) {
        self.0.retain(|(of, _), left| {
            *left -= u32::from(*of == server);
            *left > 0
        });
    }

    /// Keeps the claims of which `counts` says so, by server and number.
    pub fn doubt(&mut self, counts: impl Fn(u32, u16) -> bool) {
        self.0
            .retain(|(server, number), _| counts(*server, *number));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_counts_until_its_server_stops_repeating_it() {
        let mut claims = Claims::default();
        claims.note(1, 7, 2);
        claims.heard(2);
        claims.heard(1);
        assert!(!claims.is_empty());
        claims.note(1, 7, 2);
        claims.heard(1);
        assert!(!claims.is_empty());
        claims.heard(1);
        assert!(claims.is_empty());
    }

    #[test]
    fn doubt_ends_the_claims_that_it_names() {
        let mut claims = Claims::default();
        claims.note(1, 7, 2);
        claims.note(2, 7, 2);
        claims.doubt(|server, number| (server, number) == (2, 7));
        assert!(!claims.is_empty());
        claims.doubt(|server, _| server == 1);
        assert!(claims.is_empty());
    }
}
