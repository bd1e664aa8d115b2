//! Functions of receivers.

use crate::code::Code;
use crate::error::Failure;
use crate::handle::{Handle, call, call_with, close};
use crate::options::{Options, StateplaneMulticastOptions};
use crate::pointer::place;
use crate::types::Message;
use stateplane_host::clock::boot_time_us;
use stateplane_host::multicast_receiver::{
    MulticastReceiver, MulticastReceiverConfig, Received, ReceiverError,
};

/// Longest time for which waiting messages are given out without a look at the network, in µs.
const FRESH_US: u64 = 10_000;

/// A receiver, and what the caller was given last.
#[derive(Debug)]
pub struct Receiving {
    receiver: MulticastReceiver,
    payload: Vec<u8>,
    /// Time of the last look at the network.
    stepped: u64,
    taken_off: bool,
}

/// A receiver that a caller has.
pub type ReceiverHandle = Handle<Receiving>;

fn refused(error: ReceiverError) -> Failure {
    let code = match error {
        ReceiverError::NoGroup(_) => Code::NoGroup,
        ReceiverError::Full(_) => Code::Full,
        ReceiverError::Silent => Code::Silent,
        ReceiverError::Io(_) => Code::System,
    };
    Failure::new(code, error)
}

impl Receiving {
    fn step(&mut self, until: u64) -> Result<(), Failure> {
        self.receiver.step(until)?;
        self.stepped = boot_time_us();
        let looked = self.receiver.look();
        looked.map_err(|error| Failure::new(Code::Keys, error))
    }

    fn next(&mut self, wait_us: u64) -> Result<Option<Message>, Failure> {
        let begin = boot_time_us();
        let end = begin.saturating_add(wait_us);
        if begin >= self.stepped + FRESH_US {
            // A program that takes its time over messages that wait is alive.
            self.step(0)?;
        }
        let mut last = false;
        while !self.taken_off {
            match self.receiver.poll() {
                Some(Received::Message {
                    id,
                    at,
                    destinations,
                    payload,
                }) => {
                    self.payload = payload;
                    return Ok(Some(Message {
                        id: id.into(),
                        at: at.into(),
                        payload: self.payload.as_ptr().cast(),
                        length: self.payload.len(),
                        groups: destinations,
                        reserved: 0,
                    }));
                }
                Some(Received::TakenOff) => self.taken_off = true,
                None if last => return Ok(None),
                None => {
                    self.step(end)?;
                    last = boot_time_us() >= end;
                }
            }
        }
        let text = "the receiver was taken off the group's list: it was silent or too slow, and \
                    what followed is lost to it";
        Err(Failure::new(Code::TakenOff, text))
    }
}

/// Opens a receiver of a group, and waits until it is listed.
///
/// # Safety
///
/// `options` leads to options, and `receiver` to a place for a pointer; null is refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stateplane_multicast_receiver_open(
    options: *const StateplaneMulticastOptions,
    group: u8,
    receiver: *mut *mut ReceiverHandle,
) -> i32 {
    call(|| {
        // SAFETY: the caller owes a place for a pointer.
        let to = unsafe { place(receiver, "receiver") }?;
        to.write(core::ptr::null_mut());
        // SAFETY: the caller owes options.
        let options = unsafe { Options::read(options) }?;
        let end = boot_time_us().saturating_add(options.timeout_us);
        let config = MulticastReceiverConfig {
            controllers: options.controllers,
            address: options.address,
            group,
            queue: options.queue,
        };
        let receiver = MulticastReceiver::connect(config, options.guard, end);
        let receiving = Receiving {
            receiver: receiver.map_err(refused)?,
            payload: Vec::new(),
            stepped: boot_time_us(),
            taken_off: false,
        };
        to.write(Box::into_raw(Handle::new(receiving)));
        Ok(Code::Ok)
    })
}

/// Waits `wait_us` at most for the next message in the order.
///
/// # Safety
///
/// `receiver` is open, and `message` leads to a place for a [`Message`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stateplane_multicast_receiver_next(
    receiver: *mut ReceiverHandle,
    wait_us: u64,
    message: *mut Message,
) -> i32 {
    let work = |receiving: &mut Receiving| {
        // SAFETY: the caller owes a place for a message.
        let to = unsafe { place(message, "message") }?;
        match receiving.next(wait_us)? {
            Some(message) => {
                to.write(message);
                Ok(Code::Ok)
            }
            None => Ok(Code::Nothing),
        }
    };
    // SAFETY: the caller owes an open handle.
    unsafe { call_with(receiver, work) }
}

/// Tells how many messages wait to be fetched.
///
/// # Safety
///
/// `receiver` is open, and `count` leads to a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stateplane_multicast_receiver_queued(
    receiver: *mut ReceiverHandle,
    count: *mut usize,
) -> i32 {
    let work = |receiving: &mut Receiving| {
        // SAFETY: the caller owes a place for a number.
        unsafe { place(count, "count") }?.write(receiving.receiver.queued());
        Ok(Code::Ok)
    };
    // SAFETY: the caller owes an open handle.
    unsafe { call_with(receiver, work) }
}

/// Tells the timestamp behind which the receiver gets all messages.
///
/// # Safety
///
/// `receiver` is open, and `time` leads to a place for a timestamp.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stateplane_multicast_receiver_after(
    receiver: *mut ReceiverHandle,
    time: *mut u64,
) -> i32 {
    let work = |receiving: &mut Receiving| {
        // SAFETY: the caller owes a place for a timestamp.
        unsafe { place(time, "time") }?.write(receiving.receiver.after());
        Ok(Code::Ok)
    };
    // SAFETY: the caller owes an open handle.
    unsafe { call_with(receiver, work) }
}

/// Leaves the list, waits `wait_us` at most for that, and frees the receiver. Null is passed over.
///
/// # Safety
///
/// `receiver` is null, or open and used by no other thread; it is closed then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stateplane_multicast_receiver_close(
    receiver: *mut ReceiverHandle,
    wait_us: u64,
) {
    let work = |receiving: Receiving| {
        let end = boot_time_us().saturating_add(wait_us);
        receiving.receiver.leave(end);
    };
    // SAFETY: the caller gives the handle up.
    unsafe { close(receiver, work) }
}
