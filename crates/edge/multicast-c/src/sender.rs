//! Functions of senders.

use crate::code::Code;
use crate::error::Failure;
use crate::handle::{Handle, call, call_with, close};
use crate::options::{Options, StateplaneMulticastOptions};
use crate::pointer::{bytes, place};
use crate::types::{EventKind, Id, Place, SenderEvent};
use stateplane_host::clock::boot_time_us;
use stateplane_host::multicast_sender::{MulticastSender, MulticastSenderConfig, SenderError};
use stateplane_multicast::{Event, SendError};

/// A sender that a caller has.
pub type SenderHandle = Handle<MulticastSender>;

fn refused(error: SenderError) -> Failure {
    let code = match error {
        SenderError::NoSlot | SenderError::NoLane => Code::Full,
        SenderError::Silent => Code::Silent,
        SenderError::Io(_) => Code::System,
    };
    Failure::new(code, error)
}

fn event(of: Event) -> SenderEvent {
    let nowhere = Place {
        time: 0,
        group: 0,
        reserved: [0; 7],
    };
    let (kind, call, refusal, at) = match of {
        Event::Complete { call, at } => (EventKind::Complete, call, 0, at.into()),
        Event::Refused { call, code } => (EventKind::Refused, call, u32::from(code as u8), nowhere),
        Event::Unknown { call } => (EventKind::Unknown, call, 0, nowhere),
    };
    SenderEvent {
        kind: kind as u32,
        refusal,
        id: call.into(),
        at,
    }
}

/// Opens a sender, and waits until it has a session and knows the leaders.
///
/// # Safety
///
/// `options` leads to options, and `sender` to a place for a pointer; null is refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stateplane_multicast_sender_open(
    options: *const StateplaneMulticastOptions,
    sender: *mut *mut SenderHandle,
) -> i32 {
    call(|| {
        // SAFETY: the caller owes a place for a pointer.
        let to = unsafe { place(sender, "sender") }?;
        to.write(core::ptr::null_mut());
        // SAFETY: the caller owes options.
        let options = unsafe { Options::read(options) }?;
        let end = boot_time_us().saturating_add(options.timeout_us);
        let config = MulticastSenderConfig {
            address: options.address,
            lanes: options.lanes,
            give_up_us: options.timeout_us,
            ..MulticastSenderConfig::new(options.controllers)
        };
        let opened = MulticastSender::connect(config, options.guard, end);
        to.write(Box::into_raw(Handle::new(opened.map_err(refused)?)));
        Ok(Code::Ok)
    })
}

/// Sends a payload to all receivers of the groups in a map, with the next
/// [`stateplane_multicast_sender_step`]. The id of the message goes to `id`, unless it is null.
///
/// # Safety
///
/// `sender` is open; `payload` leads to `length` bytes; `id` is null or leads to a place for an
/// [`Id`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stateplane_multicast_sender_send(
    sender: *mut SenderHandle,
    groups: u32,
    payload: *const u8,
    length: usize,
    id: *mut Id,
) -> i32 {
    let work = |sender: &mut MulticastSender| {
        // SAFETY: the caller owes the bytes for the time of the call.
        let payload = unsafe { bytes(payload, length, "payload") }?;
        let unknown = groups & !sender.groups();
        if unknown != 0 {
            let group = unknown.trailing_zeros();
            return Err(Failure::new(
                Code::NoGroup,
                format!("there is no group {group}"),
            ));
        }
        let call = match sender.send(groups, payload.to_vec()) {
            Ok(call) => call,
            Err(SendError::NoLane) => return Ok(Code::NoLane),
            Err(error @ SendError::NoDestination) => {
                return Err(Failure::new(Code::Argument, error));
            }
            Err(error @ SendError::TooLong { .. }) => {
                return Err(Failure::new(Code::TooLong, error));
            }
        };
        if !id.is_null() {
            // SAFETY: the caller owes a place for an id.
            unsafe { place(id, "id") }?.write(call.into());
        }
        Ok(Code::Ok)
    };
    // SAFETY: the caller owes an open handle.
    unsafe { call_with(sender, work) }
}

/// Sends what waits, and waits `wait_us` at most for an event.
///
/// # Safety
///
/// `sender` is open, and `event` leads to a place for a [`SenderEvent`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stateplane_multicast_sender_step(
    sender: *mut SenderHandle,
    wait_us: u64,
    event: *mut SenderEvent,
) -> i32 {
    let work = |sender: &mut MulticastSender| {
        // SAFETY: the caller owes a place for an event.
        let to = unsafe { place(event, "event") }?;
        let end = boot_time_us().saturating_add(wait_us);
        if let Some(next) = sender.poll_event() {
            to.write(self::event(next));
            // Messages that were handed over leave also now. A refusal of the system comes again later.
            let _ = sender.step(0);
            return Ok(Code::Ok);
        }
        loop {
            sender.step(end)?;
            if let Some(next) = sender.poll_event() {
                to.write(self::event(next));
                return Ok(Code::Ok);
            }
            if let Err(error) = sender.look() {
                return Err(Failure::new(Code::Keys, error));
            }
            if boot_time_us() >= end {
                return Ok(Code::Nothing);
            }
        }
    };
    // SAFETY: the caller owes an open handle.
    unsafe { call_with(sender, work) }
}

/// Tells the sender a timestamp that its host learned from a message: those that are sent later
/// get greater ones.
///
/// # Safety
///
/// `sender` is open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stateplane_multicast_sender_learned(
    sender: *mut SenderHandle,
    time: u64,
) -> i32 {
    let work = |sender: &mut MulticastSender| {
        sender.handle_final(time);
        Ok(Code::Ok)
    };
    // SAFETY: the caller owes an open handle.
    unsafe { call_with(sender, work) }
}

/// Tells how many messages are under way.
///
/// # Safety
///
/// `sender` is open, and `count` leads to a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stateplane_multicast_sender_under_way(
    sender: *mut SenderHandle,
    count: *mut usize,
) -> i32 {
    let work = |sender: &mut MulticastSender| {
        // SAFETY: the caller owes a place for a number.
        unsafe { place(count, "count") }?.write(sender.under_way());
        Ok(Code::Ok)
    };
    // SAFETY: the caller owes an open handle.
    unsafe { call_with(sender, work) }
}

/// Tells the map of the deployment's groups.
///
/// # Safety
///
/// `sender` is open, and `groups` leads to a place for a map.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stateplane_multicast_sender_groups(
    sender: *mut SenderHandle,
    groups: *mut u32,
) -> i32 {
    let work = |sender: &mut MulticastSender| {
        // SAFETY: the caller owes a place for a map.
        unsafe { place(groups, "groups") }?.write(sender.groups());
        Ok(Code::Ok)
    };
    // SAFETY: the caller owes an open handle.
    unsafe { call_with(sender, work) }
}

/// Ends the session, waits `wait_us` at most for that, and frees the sender. Messages that are
/// under way are given up. Null is passed over.
///
/// # Safety
///
/// `sender` is null, or open and used by no other thread; it is closed then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stateplane_multicast_sender_close(
    sender: *mut SenderHandle,
    wait_us: u64,
) {
    let work = |sender: MulticastSender| {
        sender.close(boot_time_us().saturating_add(wait_us));
    };
    // SAFETY: the caller gives the handle up.
    unsafe { close(sender, work) }
}
