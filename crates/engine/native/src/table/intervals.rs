//! One range key: the ends of all ranges cut the line into intervals, each with its best
//! entry.

use stateplane_runtime::table::Rule;

#[derive(Clone, Copy, Debug)]
struct Range {
    number: u32,
    low: u128,
    high: u128,
    priority: u32,
    serial: u64,
}

/// Numbers of entries by ranges of at most 128 bits.
#[derive(Debug, Default)]
pub(super) struct Intervals {
    ranges: Vec<Range>,
    /// First values of the intervals, ascending, from 0 on.
    starts: Vec<u128>,
    /// The best entry of each, or 0.
    numbers: Vec<u32>,
}

impl Intervals {
    pub(super) fn insert(&mut self, number: u32, rule: &Rule<'_>) {
        self.ranges.push(Range {
            number,
            low: rule.low[0],
            high: rule.high[0],
            priority: rule.priority,
            serial: rule.serial,
        });
    }

    /// Removes an entry, if it is there.
    pub(super) fn remove(&mut self, number: u32) {
        self.ranges.retain(|range| range.number != number);
    }

    /// Cuts the intervals anew.
    pub(super) fn build(&mut self) {
        // Best last, so that it is what remains.
        let order = |range: &Range| (range.priority, std::cmp::Reverse(range.serial));
        self.ranges.sort_unstable_by_key(order);
        self.starts.clear();
        self.starts.push(0);
        for range in &self.ranges {
            self.starts.push(range.low);
            self.starts.extend(range.high.checked_add(1));
        }
        self.starts.sort_unstable();
        self.starts.dedup();
        self.numbers.clear();
        // The best range of those open at each start, by their places in the order.
        let mut open = std::collections::BTreeSet::new();
        let mut opening: Vec<usize> = (0..self.ranges.len()).collect();
        opening.sort_unstable_by_key(|&place| self.ranges[place].low);
        let mut next = 0;
        for &start in &self.starts {
            while next < opening.len() && self.ranges[opening[next]].low <= start {
                open.insert(opening[next]);
                next += 1;
            }
            while let Some(&best) = open.last()
                && self.ranges[best].high < start
            {
                open.remove(&best);
            }
            let best = open.last().map_or(0, |&best| self.ranges[best].number);
            self.numbers.push(best);
        }
    }

    pub(super) fn find(&self, key: u128) -> u32 {
        let after = self.starts.partition_point(|&start| start <= key);
        match after.checked_sub(1) {
            Some(at) => self.numbers[at],
            None => 0,
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.ranges.capacity() * size_of::<Range>()
            + self.starts.capacity() * 16
            + self.numbers.capacity() * 4
    }
}
