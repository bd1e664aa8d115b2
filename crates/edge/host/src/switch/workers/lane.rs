//! One worker and the rings to and from it.

use crate::broken::say_broken;
use crate::clock::boot_time_us;
use rtrb::{Consumer, Producer, PushError, RingBuffer};
use stateplane_runtime::Engine;
use stateplane_switch::{Port, Switch, Transmit};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::thread::JoinHandle;
use std::time::Duration;

/// Frames that wait for a worker, and those that wait to leave it.
const RING: usize = 2048;

/// Inputs that a worker takes before it looks at the time.
const BURST: usize = 64;

/// Longest sleep of a worker in µs.
const LONGEST_SLEEP: u64 = 100_000;

/// Something that a worker does with its switch.
pub(super) type Call<E> = Box<dyn FnOnce(&mut Switch<E>) + Send>;

/// Input of a worker.
pub(super) enum Inputs<E: Engine> {
    /// A frame by a port.
    Frame(Port, Vec<u8>),
    /// Something to do between two packets.
    Call(Call<E>),
}

/// Output of a worker.
pub(super) enum Output {
    /// A frame to send.
    Transmit(Transmit),
    /// A port that a watch wants up or down.
    PortState(Port, bool),
}

/// Wakes the thread with the ports.
pub(super) struct Doorbell {
    bell: UnixStream,
    heard: UnixStream,
    rung: AtomicBool,
}

impl Doorbell {
    pub(super) fn new() -> io::Result<Doorbell> {
        let (bell, heard) = UnixStream::pair()?;
        bell.set_nonblocking(true)?;
        heard.set_nonblocking(true)?;
        Ok(Doorbell {
            bell,
            heard,
            rung: AtomicBool::new(false),
        })
    }

    /// Readable when it has been rung.
    pub(super) fn descriptor(&self) -> RawFd {
        self.heard.as_raw_fd()
    }

    fn ring(&self) {
        if !self.rung.swap(true, Ordering::AcqRel) {
            // A full socket is readable all the same.
            let _ = (&self.bell).write(&[1]);
        }
    }

    /// Makes it silent, before one looks at what there is.
    pub(super) fn answer(&self) {
        if self.rung.load(Ordering::Relaxed) && self.rung.swap(false, Ordering::AcqRel) {
            let mut bytes = [0; 64];
            while matches!((&self.heard).read(&mut bytes), Ok(count) if count > 0) {}
        }
    }
}

/// Shared flags of a worker and the thread with the ports, besides the rings.
struct Signs {
    asleep: AtomicBool,
    stop: AtomicBool,
    /// Inputs done.
    done: AtomicU64,
    /// True if the worker's switch has something that waits for time.
    waits: AtomicBool,
}

/// A worker's thread, and the ends of its rings.
pub(super) struct Lane<E: Engine> {
    inputs: Producer<Inputs<E>>,
    outputs: Consumer<Output>,
    signs: Arc<Signs>,
    /// Inputs given.
    given: u64,
    thread: Option<JoinHandle<()>>,
}

impl<E: Engine + Send + 'static> Lane<E>
where
    E::InFlight: Send,
{
    pub(super) fn start(
        number: usize,
        switch: Switch<E>,
        doorbell: Arc<Doorbell>,
    ) -> io::Result<Lane<E>> {
        let (inputs, taken) = RingBuffer::new(RING);
        let (made, outputs) = RingBuffer::new(RING);
        let signs = Arc::new(Signs {
            asleep: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            done: AtomicU64::new(0),
            // Until it has looked.
            waits: AtomicBool::new(true),
        });
        let mut worker = Worker {
            switch,
            inputs: taken,
            outputs: made,
            signs: signs.clone(),
            doorbell,
            decides: number == 0,
        };
        let thread = std::thread::Builder::new()
            .name(format!("worker {number}"))
            .spawn(move || worker.run())?;
        Ok(Lane {
            inputs,
            outputs,
            signs,
            given: 0,
            thread: Some(thread),
        })
    }
}

impl<E: Engine> Lane<E> {
    /// Gives the worker something to do, or gives it back if there is no room. A worker
    /// that has ended takes everything and does nothing.
    pub(super) fn push(&mut self, input: Inputs<E>) -> Result<(), Inputs<E>> {
        if self.inputs.is_abandoned() {
            return Ok(());
        }
        match self.inputs.push(input) {
            Ok(()) => {
                self.given += 1;
                Ok(())
            }
            Err(PushError::Full(input)) => {
                self.wake();
                Err(input)
            }
        }
    }

    /// Ends its sleep, if it has something to do.
    pub(super) fn wake(&mut self) {
        // A worker that goes to sleep after this sees the pushed frames.
        fence(Ordering::SeqCst);
        if self.signs.asleep.swap(false, Ordering::SeqCst)
            && let Some(thread) = &self.thread
        {
            thread.thread().unpark();
        }
    }

    pub(super) fn pop(&mut self) -> Option<Output> {
        self.outputs.pop().ok()
    }

    /// True if the worker has finished its input, and nothing waits.
    pub(super) fn is_quiet(&self) -> bool {
        let ended = self.inputs.is_abandoned();
        let done = self.signs.done.load(Ordering::Acquire) == self.given;
        let waits = self.signs.waits.load(Ordering::Acquire);
        self.outputs.is_empty() && (ended || done && !waits)
    }
}

impl<E: Engine> Drop for Lane<E> {
    fn drop(&mut self) {
        self.signs.stop.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A worker that has panicked has said so.
            let _ = thread.join();
        }
    }
}

struct Worker<E: Engine> {
    switch: Switch<E>,
    inputs: Consumer<Inputs<E>>,
    outputs: Producer<Output>,
    signs: Arc<Signs>,
    doorbell: Arc<Doorbell>,
    /// True if this worker's watches decide about ports.
    decides: bool,
}

impl<E: Engine> Worker<E> {
    fn run(&mut self) {
        while !self.signs.stop.load(Ordering::Relaxed) {
            let mut done = 0;
            while done < BURST as u64
                && let Ok(input) = self.inputs.pop()
            {
                match input {
                    Inputs::Frame(port, frame) => {
                        self.switch.handle_frame(boot_time_us(), port, &frame);
                        self.switch.recycle(frame);
                    }
                    Inputs::Call(call) => call(&mut self.switch),
                }
                self.give();
                done += 1;
            }
            self.switch.handle_timeout(boot_time_us());
            while let Some(broken) = self.switch.poll_broken() {
                say_broken(&broken);
            }
            let told = self.give();
            let due = self.switch.poll_timeout();
            self.signs.waits.store(due.is_some(), Ordering::Release);
            self.signs.done.fetch_add(done, Ordering::Release);
            if done > 0 || told {
                self.doorbell.ring();
            }
            if done == 0 {
                self.sleep(due);
            }
        }
    }

    /// Hands over what leaves; whether there was anything.
    fn give(&mut self) -> bool {
        let mut told = false;
        while let Some(transmit) = self.switch.poll_transmit() {
            self.push(Output::Transmit(transmit));
            told = true;
        }
        while let Some((port, up)) = self.switch.poll_port_state() {
            if self.decides {
                self.push(Output::PortState(port, up));
                told = true;
            }
        }
        told
    }

    fn push(&mut self, mut output: Output) {
        while let Err(PushError::Full(refused)) = self.outputs.push(output) {
            if self.signs.stop.load(Ordering::Relaxed) {
                return;
            }
            output = refused;
            self.doorbell.ring();
            std::thread::yield_now();
        }
    }

    fn sleep(&self, due: Option<u64>) {
        let wait = due.map_or(LONGEST_SLEEP, |due| due.saturating_sub(boot_time_us()));
        if wait == 0 {
            return;
        }
        self.signs.asleep.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        if self.inputs.is_empty() && !self.signs.stop.load(Ordering::SeqCst) {
            std::thread::park_timeout(Duration::from_micros(wait.min(LONGEST_SLEEP)));
        }
        self.signs.asleep.store(false, Ordering::SeqCst);
    }
}
