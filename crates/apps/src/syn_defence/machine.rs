//! A defence against SYN floods: one source is one flow, unknown (0) until it shows
//! the cookie that it was sent.

/// Requests.
const SYN: u64 = 1;
const SHOWS: u64 = 2;
/// Outputs.
const PASSED: u64 = 1;
const ASKED: u64 = 2;
const RESET: u64 = 3;

pub(super) fn steps(state: u128, request: u64) -> Vec<(Option<u64>, u128)> {
    match (request, state) {
        (SHOWS, _) => vec![(Some(RESET), 1)],
        (SYN, 0) => vec![(Some(ASKED), 0)],
        // A switch that has not met the source asks again.
        (SYN, _) => vec![(Some(PASSED), 1), (Some(ASKED), 1)],
        (_, 0) => vec![(None, 0)],
        _ => vec![(Some(PASSED), 1)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_passes_before_the_cookie_is_shown() {
        assert_eq!(steps(0, 0), [(None, 0)]);
        assert_eq!(steps(0, SYN), [(Some(ASKED), 0)]);
        assert_eq!(steps(0, SHOWS), [(Some(RESET), 1)]);
        assert!(steps(1, SYN).contains(&(Some(PASSED), 1)));
        assert_eq!(steps(1, 0), [(Some(PASSED), 1)]);
    }
}
