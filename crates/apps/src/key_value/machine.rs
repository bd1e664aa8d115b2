//! A key-value store: one key is one flow.

const OPERATION: u32 = 62;
const READ: u64 = 1;
const UPDATE: u64 = 2;
/// Of a state and of an output: there is a value.
const PRESENT: u64 = 1 << 63;

pub(super) fn step(state: u128, request: u64) -> (Option<u64>, u128) {
    let next = match request >> OPERATION {
        READ => state as u64,
        UPDATE => PRESENT | request & !(3 << OPERATION),
        _ => 0,
    };
    (Some(next), next.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_gives_what_was_updated_last() {
        let mut state = 0;
        let mut run = |request| {
            let (output, next) = step(state, request);
            state = next;
            output
        };
        let read = READ << OPERATION;
        assert_eq!(run(read), Some(0));
        assert_eq!(run(UPDATE << OPERATION | 7), Some(PRESENT | 7));
        assert_eq!(run(read), Some(PRESENT | 7));
        assert_eq!(run(3 << OPERATION), Some(0));
        assert_eq!(run(read), Some(0));
    }
}
