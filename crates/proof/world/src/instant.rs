//! Exchange of messages that takes no time.

/// Lets `nodes` send each other messages until none has any left. `poll` takes a message from
/// a node, `give` hands it to its destination; it is given all nodes and the sender's place.
///
/// Nodes send in the order of their places, each until it has nothing left, which together
/// with the cores' determinism makes runs repeatable.
pub fn exchange<N, T>(
    nodes: &mut [N],
    mut poll: impl FnMut(&mut N) -> Option<T>,
    mut give: impl FnMut(&mut [N], usize, T),
) {
    let mut busy = true;
    while core::mem::take(&mut busy) {
        for place in 0..nodes.len() {
            while let Some(sent) = poll(&mut nodes[place]) {
                busy = true;
                give(nodes, place, sent);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::exchange;

    #[test]
    fn messages_travel_until_none_is_left() {
        let mut nodes = vec![vec![3], Vec::new(), Vec::new()];
        let mut seen = Vec::new();
        exchange(&mut nodes, Vec::pop, |nodes, from, hops: u32| {
            seen.push((from, hops));
            if let Some(left) = hops.checked_sub(1) {
                nodes[(from + 2) % 3].push(left);
            }
        });
        assert_eq!(seen, [(0, 3), (2, 2), (1, 1), (0, 0)]);
        assert!(nodes.iter().all(Vec::is_empty));
    }
}
