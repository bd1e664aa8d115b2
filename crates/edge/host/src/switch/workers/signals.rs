//! Ways by which threads hand frames to a worker, and wake it.

use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

/// Frames of each kind that wait for a worker, at most.
const WAITING: usize = 2048;

/// A frame, and the place of its port among the ports.
pub(super) type Handed = (usize, Vec<u8>);

/// Ends the wait of a thread.
pub(super) struct Doorbell {
    bell: UnixStream,
    heard: UnixStream,
}

impl Doorbell {
    pub(super) fn new() -> io::Result<Doorbell> {
        let (bell, heard) = UnixStream::pair()?;
        bell.set_nonblocking(true)?;
        heard.set_nonblocking(true)?;
        Ok(Doorbell { bell, heard })
    }

    /// Readable when it has been rung.
    pub(super) fn descriptor(&self) -> RawFd {
        self.heard.as_raw_fd()
    }

    pub(super) fn ring(&self) {
        // A full socket is readable all the same.
        let _ = (&self.bell).write(&[1]);
    }

    /// Makes it silent, before one looks at what there is.
    pub(super) fn answer(&self) {
        let mut bytes = [0; 64];
        while matches!((&self.heard).read(&mut bytes), Ok(count) if count == bytes.len()) {}
    }
}

/// Shared flags of a worker and the others.
pub(super) struct Signs {
    bell: Doorbell,
    asleep: AtomicBool,
    stop: AtomicBool,
    /// True if nothing of the worker's own waits: no time, no capture, no frame for another one.
    pub(super) quiet: AtomicBool,
    /// True once its thread has ended.
    pub(super) ended: AtomicBool,
    /// Things that it was given.
    given: AtomicU64,
    /// Those of them that it is done with.
    taken: AtomicU64,
}

impl Signs {
    pub(super) fn new() -> io::Result<Signs> {
        Ok(Signs {
            bell: Doorbell::new()?,
            asleep: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            // Until it has looked.
            quiet: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            given: AtomicU64::new(0),
            taken: AtomicU64::new(0),
        })
    }

    /// Readable when the worker's sleep should end.
    pub(super) fn descriptor(&self) -> RawFd {
        self.bell.descriptor()
    }

    /// Before the worker looks at what it was given.
    pub(super) fn answer(&self) {
        self.bell.answer();
    }

    pub(super) fn is_to_stop(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
        self.bell.ring();
    }

    /// Announces that the worker sleeps unless it was given something: whether it may. After the
    /// sleep comes [`awake`](Self::awake).
    pub(super) fn may_sleep(&self) -> bool {
        self.asleep.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let waits = self.given.load(Ordering::SeqCst) != self.taken.load(Ordering::SeqCst);
        !waits && !self.stop.load(Ordering::SeqCst)
    }

    pub(super) fn awake(&self) {
        self.asleep.store(false, Ordering::SeqCst);
    }

    /// Ends the worker's sleep, if it has something to do.
    pub(super) fn wake(&self) {
        // A worker that goes to sleep after this sees what it was given.
        fence(Ordering::SeqCst);
        if self.asleep.swap(false, Ordering::SeqCst) {
            self.bell.ring();
        }
    }

    /// Puts `thing` before the worker, or gives it back.
    pub(super) fn give<T>(&self, channel: &SyncSender<T>, thing: T) -> Result<(), TrySendError<T>> {
        // Before it can be taken.
        self.given.fetch_add(1, Ordering::SeqCst);
        let given = channel.try_send(thing);
        if given.is_err() {
            self.given.fetch_sub(1, Ordering::SeqCst);
        }
        given
    }

    /// The worker is done with `count` things, and has said before if something else waits.
    pub(super) fn done(&self, count: u64) {
        self.taken.fetch_add(count, Ordering::SeqCst);
    }

    pub(super) fn taken(&self) -> u64 {
        self.taken.load(Ordering::SeqCst)
    }

    pub(super) fn given(&self) -> u64 {
        self.given.load(Ordering::SeqCst)
    }
}

/// A worker, as others hand frames to it.
#[derive(Clone)]
pub(super) struct Peer {
    arrivals: SyncSender<Handed>,
    departures: SyncSender<Handed>,
    pub(super) signs: Arc<Signs>,
}

/// The worker's ends of a [`Peer`].
pub(super) struct Inbox {
    /// Frames that arrived by a port that another worker has, and that fall to this one.
    pub(super) arrivals: Receiver<Handed>,
    /// Frames to send by a port that only this worker has.
    pub(super) departures: Receiver<Handed>,
}

impl Peer {
    pub(super) fn new() -> io::Result<(Peer, Inbox)> {
        let (arrivals, arrived) = sync_channel(WAITING);
        let (departures, departing) = sync_channel(WAITING);
        let peer = Peer {
            arrivals,
            departures,
            signs: Arc::new(Signs::new()?),
        };
        let inbox = Inbox {
            arrivals: arrived,
            departures: departing,
        };
        Ok((peer, inbox))
    }

    /// Gives it a frame that arrived.
    pub(super) fn arrive(&self, frame: Handed) -> Result<(), TrySendError<Handed>> {
        self.signs.give(&self.arrivals, frame)
    }

    /// Gives it a frame to send.
    pub(super) fn depart(&self, frame: Handed) -> Result<(), TrySendError<Handed>> {
        self.signs.give(&self.departures, frame)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_given_something_does_not_sleep() {
        let (peer, inbox) = Peer::new().unwrap();
        assert!(peer.signs.may_sleep());
        peer.signs.awake();
        peer.arrive((0, vec![1])).unwrap();
        assert!(!peer.signs.may_sleep());
        peer.signs.awake();
        assert_eq!(inbox.arrivals.try_recv(), Ok((0, vec![1])));
        peer.signs.done(1);
        assert!(peer.signs.may_sleep());
        peer.signs.stop();
        assert!(!peer.signs.may_sleep());
    }

    #[test]
    fn a_full_worker_gives_frames_back_and_counts_none() {
        let (peer, inbox) = Peer::new().unwrap();
        for _ in 0..WAITING {
            peer.depart((1, Vec::new())).unwrap();
        }
        let refused = peer.depart((1, vec![7]));
        assert!(matches!(refused, Err(TrySendError::Full((1, frame))) if frame == [7]));
        assert_eq!(peer.signs.given(), WAITING as u64);
        // Arrivals have room of their own: sending is never behind receiving.
        peer.arrive((0, Vec::new())).unwrap();
        drop(inbox);
        let gone = peer.arrive((0, vec![8]));
        assert!(matches!(gone, Err(TrySendError::Disconnected(_))));
    }

    #[test]
    fn a_bell_is_heard_until_it_is_answered() {
        let doorbell = Doorbell::new().unwrap();
        let mut waiting = crate::poll::Readable::new([doorbell.descriptor()]).unwrap();
        for rings in [0, 1, 3] {
            (0..rings).for_each(|_| doorbell.ring());
            waiting.wait_until(0).unwrap();
            assert_eq!(waiting.is_ready(0), rings > 0);
            doorbell.answer();
        }
    }
}
