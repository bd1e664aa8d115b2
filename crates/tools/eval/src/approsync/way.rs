//! The path between a switch and its engines.

use super::bed::{BUFFER, FRAMING, SHORTEST};
use std::collections::VecDeque;

/// The path between switch and engines, and the switch's rates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Setup {
    /// Bytes each µs that the link takes, in each direction.
    pub(super) rate: f64,
    /// µs that a frame is on its way, besides its time in the queue and that of its bytes.
    pub(super) delay_us: u64,
    /// µs between two turns of a carrier, and between two marks.
    pub(super) turn_us: u64,
    pub(super) window_us: u64,
    /// µs of a step, at most those of a turn.
    pub(super) step_us: u64,
}

impl Setup {
    /// µs after which what was asked has an answer, whatever waits in the queues.
    pub(super) fn answered_us(&self) -> u64 {
        2 * (self.delay_us + (BUFFER / self.rate).ceil() as u64)
    }
}

/// Frames on their way in one direction.
pub(super) struct Way {
    rate: f64,
    delay_us: u64,
    /// Time at which the link has sent all that it took.
    free_at: f64,
    frames: VecDeque<(u64, Vec<u8>)>,
    /// Frames that the link did not take.
    pub(super) lost: u64,
}

impl Way {
    /// One on which there is nothing.
    pub(super) fn new(setup: Setup) -> Self {
        Self {
            rate: setup.rate,
            delay_us: setup.delay_us,
            free_at: 0.0,
            frames: VecDeque::new(),
            lost: 0,
        }
    }

    /// Takes a frame, unless the queue of 128 KiB is full.
    pub(super) fn send(&mut self, now: u64, frame: Vec<u8>) {
        let begin = self.free_at.max(now as f64);
        let bytes = (frame.len().max(SHORTEST) + FRAMING) as f64;
        if (begin - now as f64) * self.rate + bytes > BUFFER {
            self.lost += 1;
            return;
        }
        self.free_at = begin + bytes / self.rate;
        let arrives = self.free_at.ceil() as u64 + self.delay_us;
        self.frames.push_back((arrives, frame));
    }

    /// The next frame that has arrived.
    pub(super) fn take(&mut self, now: u64) -> Option<Vec<u8>> {
        let has_come = self.frames.front().is_some_and(|(at, _)| *at <= now);
        let frame = has_come.then(|| self.frames.pop_front()).flatten();
        frame.map(|(_, frame)| frame)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETUP: Setup = Setup {
        rate: 10.0,
        delay_us: 50,
        turn_us: 4,
        window_us: 250,
        step_us: 4,
    };

    #[test]
    fn frames_wait_for_each_other_and_come_in_order() {
        let mut way = Way::new(SETUP);
        way.send(100, vec![1; 76]);
        way.send(100, vec![2; 76]);
        assert_eq!(way.take(159), None);
        assert_eq!(way.take(160), Some(vec![1; 76]));
        assert_eq!(way.take(169), None);
        assert_eq!(way.take(170), Some(vec![2; 76]));
        assert_eq!(way.take(1_000_000), None);
        assert_eq!(way.lost, 0);
    }

    #[test]
    fn what_the_queue_has_no_room_for_is_lost() {
        let mut way = Way::new(SETUP);
        let frames = BUFFER as usize / 100;
        for _ in 0..frames + 3 {
            way.send(0, vec![0; 76]);
        }
        assert_eq!(way.lost, 3);
        assert!(SETUP.answered_us() > 2 * 13_000);
    }
}
