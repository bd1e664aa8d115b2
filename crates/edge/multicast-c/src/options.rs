//! Options of senders and receivers.

use crate::code::Code;
use crate::error::Failure;
use crate::pointer::text;
use core::ffi::c_char;
use stateplane_host::sealing::Guard;
use stateplane_wire::control;
use std::net::{Ipv4Addr, SocketAddrV4};

/// Time that opening has unless it is said, in µs.
const TIMEOUT_US: u64 = 10_000_000;

/// Lanes of a sender unless they are said.
const LANES: u8 = 8;

/// Messages that wait for a receiver's program, unless that is said.
const QUEUE: usize = 1024;

/// Options as a caller gives them; zeros mean what is usual.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct StateplaneMulticastOptions {
    /// Bytes of the structure that the caller knows.
    pub size: usize,
    /// Addresses of the controllers, divided by commas, with a port unless it is 4795.
    pub controllers: *const c_char,
    /// The host's own address; null: that from which the system sends to the first controller.
    pub address: *const c_char,
    /// File of keys; null: messages are not sealed.
    pub keys: *const c_char,
    /// µs that opening has, and after which the outcome of a message is unknown.
    pub timeout_us: u64,
    /// Sender: messages that can be under way together, at most 255.
    pub lanes: u32,
    /// Receiver: most messages that wait for the program; then senders wait.
    pub queue: u32,
}

/// Options of which each has a value.
pub(crate) struct Options {
    pub(crate) controllers: Vec<SocketAddrV4>,
    pub(crate) address: Option<Ipv4Addr>,
    pub(crate) guard: Option<Guard>,
    pub(crate) timeout_us: u64,
    pub(crate) lanes: u8,
    pub(crate) queue: usize,
}

fn wrong(text: impl core::fmt::Display) -> Failure {
    Failure::new(Code::Argument, text)
}

impl Options {
    /// Reads options.
    ///
    /// # Safety
    ///
    /// `options` is null, or leads to as many bytes as its `size` says, and its texts end with a
    /// null byte.
    pub(crate) unsafe fn read(
        options: *const StateplaneMulticastOptions,
    ) -> Result<Options, Failure> {
        // SAFETY: the caller says so; the place is aligned as the structure is.
        let options = unsafe { options.as_ref() };
        let options = options.ok_or_else(|| wrong("options is null"))?;
        if options.size != size_of::<StateplaneMulticastOptions>() {
            return Err(wrong(format!(
                "options.size is {}, and the structure has {} bytes: the header is another \
                 version's, or the size was not set",
                options.size,
                size_of::<StateplaneMulticastOptions>()
            )));
        }
        // SAFETY: the caller says so of each text.
        let (controllers, address, keys) = unsafe {
            (
                text(options.controllers, "options.controllers")?,
                text(options.address, "options.address")?,
                text(options.keys, "options.keys")?,
            )
        };
        let controllers = controllers.ok_or_else(|| wrong("options.controllers is null"))?;
        let controllers = controllers.split(',').map(|one| {
            let one = one.trim();
            let alone = one.parse::<Ipv4Addr>();
            let alone = alone.map(|address| SocketAddrV4::new(address, control::PORT));
            let address = alone.or_else(|_| one.parse());
            address.map_err(|_| wrong(format!("{one:?} is no address of a controller")))
        });
        let address = address.map(|address| {
            let parsed = address.parse();
            parsed.map_err(|_| wrong(format!("{address:?} is no IPv4 address")))
        });
        let guard = keys.map(|file| {
            let read = Guard::read(file.as_ref());
            read.map_err(|error| Failure::new(Code::Keys, error))
        });
        let lanes = match options.lanes {
            0 => LANES,
            lanes => u8::try_from(lanes).map_err(|_| wrong("options.lanes is at most 255"))?,
        };
        Ok(Options {
            controllers: controllers.collect::<Result<_, _>>()?,
            address: address.transpose()?,
            guard: guard.transpose()?,
            timeout_us: match options.timeout_us {
                0 => TIMEOUT_US,
                timeout => timeout,
            },
            lanes,
            queue: match options.queue {
                0 => QUEUE,
                queue => queue as usize,
            },
        })
    }
}
