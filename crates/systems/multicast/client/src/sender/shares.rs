//! Shares of a session's lanes (rule 22): a group that does not answer keeps the lanes of its messages, and
//! leaves those that other groups need.

/// Groups that a deployment can have.
const GROUPS: usize = 32;

/// Time in µs for which a group has a share after a message was sent to it.
const KEPT_US: u64 = 1_000_000;

#[derive(Debug, Clone, Copy, Default)]
struct Group {
    /// Messages to it that are under way.
    under_way: usize,
    /// Time of the last one.
    sent_us: Option<u64>,
}

/// What is under way to each group.
#[derive(Debug, Default)]
pub(super) struct Shares {
    groups: [Group; GROUPS],
}

fn among(destinations: u32, group: usize) -> bool {
    destinations & (1 << group) != 0
}

impl Shares {
    /// A message was sent to `destinations`.
    pub(super) fn sent(&mut self, now_us: u64, destinations: u32) {
        for group in self.those(destinations) {
            group.under_way += 1;
            group.sent_us = Some(now_us);
        }
    }

    /// A message to `destinations` is over.
    pub(super) fn over(&mut self, destinations: u32) {
        for group in self.those(destinations) {
            group.under_way = group.under_way.saturating_sub(1);
        }
    }

    fn those(&mut self, destinations: u32) -> impl Iterator<Item = &mut Group> {
        let groups = self.groups.iter_mut().enumerate();
        let addressed = groups.filter(move |(at, _)| among(destinations, *at));
        addressed.map(|(_, group)| group)
    }

    /// True if a message to `destinations` may take one of `free` lanes of `lanes`. Each group to which
    /// something was sent in the last second has an equal share of half of the lanes, rounded down: what
    /// others have not taken of theirs is left free, unless each of the `destinations` is below its own.
    pub(super) fn allow(&self, now_us: u64, destinations: u32, free: usize, lanes: usize) -> bool {
        let kept = |group: &Group| {
            let lately = |at: u64| now_us.saturating_sub(at) < KEPT_US;
            group.under_way > 0 || group.sent_us.is_some_and(lately)
        };
        let share = lanes
            / (2 * self
                .groups
                .iter()
                .filter(|group| kept(group))
                .count()
                .max(1));
        let groups = || self.groups.iter().enumerate();
        let mut addressed = groups().filter(|(at, _)| among(destinations, *at));
        if addressed.all(|(_, group)| group.under_way < share) {
            return free > 0;
        }
        let others = groups().filter(|(at, group)| !among(destinations, *at) && kept(group));
        let left: usize = others
            .map(|(_, group)| share.saturating_sub(group.under_way))
            .sum();
        free > left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Messages to `destinations` that take lanes of `free`, one after the other.
    fn takes(
        shares: &mut Shares,
        now_us: u64,
        destinations: u32,
        free: usize,
        lanes: usize,
    ) -> usize {
        let mut taken = 0;
        while shares.allow(now_us, destinations, free - taken, lanes) {
            shares.sent(now_us, destinations);
            taken += 1;
        }
        taken
    }

    #[test]
    fn a_group_alone_has_all_lanes_and_leaves_others_their_shares() {
        let mut shares = Shares::default();
        assert_eq!(takes(&mut shares, 0, 0b1, 8, 8), 8);
        for _ in 0..8 {
            shares.over(0b1);
        }
        shares.sent(10, 0b10);
        shares.over(0b10);
        assert_eq!(takes(&mut shares, 20, 0b1, 8, 8), 6);
        assert_eq!(takes(&mut shares, 20, 0b10, 2, 8), 2);
    }

    #[test]
    fn a_group_without_messages_has_a_share_for_a_second() {
        let mut shares = Shares::default();
        shares.sent(0, 0b10);
        shares.over(0b10);
        shares.sent(0, 0b1);
        assert!(!shares.allow(KEPT_US - 1, 0b1, 1, 4));
        assert!(shares.allow(KEPT_US, 0b1, 1, 4));
    }

    #[test]
    fn groups_that_are_many_for_the_lanes_have_no_shares() {
        let mut shares = Shares::default();
        for group in 0..GROUPS {
            shares.sent(0, 1 << group);
            shares.over(1 << group);
        }
        assert_eq!(takes(&mut shares, 1, 1, 8, 8), 8);
        assert!(!shares.allow(1, 2, 0, 8));
    }

    #[test]
    fn a_message_to_several_groups_counts_for_each() {
        let mut shares = Shares::default();
        shares.sent(0, 0b100);
        shares.over(0b100);
        assert_eq!(takes(&mut shares, 0, 0b11, 6, 6), 5);
        assert_eq!(takes(&mut shares, 0, 0b100, 1, 6), 1);
    }
}
