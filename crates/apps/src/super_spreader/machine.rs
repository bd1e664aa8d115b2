//! A detector of super-spreaders: one source is one flow, its state a bit for each
//! hash of a destination.

/// A source with more bits is marked.
const LIMIT: u32 = 4;

pub(super) fn step(state: u128, request: u64) -> (Option<u64>, u128) {
    let next = state | 1 << (request & 63);
    (Some((next.count_ones() > LIMIT).into()), next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fifth_destination_marks_the_source() {
        let mut state = 0;
        let outputs = [1, 2, 2, 63, 4, 9, 1].map(|destination| {
            let (output, next) = step(state, destination);
            state = next;
            output.unwrap_or_default()
        });
        assert_eq!(outputs, [0, 0, 0, 0, 0, 1, 1]);
    }
}
