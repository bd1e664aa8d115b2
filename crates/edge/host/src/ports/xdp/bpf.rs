//! The system call `bpf(2)`, as far as an AF_XDP port needs it.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// One instruction of the BPF machine (RFC 9669, section 3).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Instruction {
    pub(super) opcode: u8,
    /// Source register in the high four bits, destination in the low four.
    pub(super) registers: u8,
    pub(super) offset: i16,
    pub(super) immediate: i32,
}

const MAP_CREATE: libc::c_long = 0;
const MAP_UPDATE_ELEM: libc::c_long = 2;
const PROG_LOAD: libc::c_long = 5;
const LINK_CREATE: libc::c_long = 28;

const MAP_TYPE_XSKMAP: u32 = 17;
const PROG_TYPE_XDP: u32 = 6;
const ATTACH_XDP: u32 = 37;

/// The program may call functions that the kernel offers for one device only.
const F_XDP_DEV_BOUND_ONLY: u32 = 1 << 6;

/// The program runs in the driver, before the kernel makes a packet of the frame.
const XDP_FLAGS_DRV_MODE: u32 = 1 << 2;

/// Functions of the kernel may be called by programs under the GPL only; ours is given
/// under both.
const LICENSE: &std::ffi::CStr = c"Dual MIT/GPL";

#[repr(C)]
#[derive(Default)]
struct MapCreate {
    map_type: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
    map_flags: u32,
    rest: [u32; 13],
}

#[repr(C)]
#[derive(Default)]
struct MapUpdate {
    map_fd: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
#[derive(Default)]
struct ProgLoad {
    prog_type: u32,
    instruction_count: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
    ifindex: u32,
    expected_attach_type: u32,
    rest: [u64; 8],
}

#[repr(C)]
#[derive(Default)]
struct LinkCreate {
    prog_fd: u32,
    target_ifindex: u32,
    attach_type: u32,
    flags: u32,
    rest: [u64; 6],
}

/// A map from receive queues to AF_XDP sockets.
#[derive(Debug)]
pub(super) struct SocketMap(OwnedFd);

impl SocketMap {
    pub(super) fn create(queues: u32) -> io::Result<SocketMap> {
        let attributes = MapCreate {
            map_type: MAP_TYPE_XSKMAP,
            key_size: 4,
            value_size: 4,
            max_entries: queues,
            ..MapCreate::default()
        };
        descriptor(MAP_CREATE, &attributes).map(SocketMap)
    }

    pub(super) fn set(&self, queue: u32, socket: &impl AsRawFd) -> io::Result<()> {
        let value = socket.as_raw_fd();
        let attributes = MapUpdate {
            map_fd: self.0.as_raw_fd() as u32,
            key: (&raw const queue) as u64,
            value: (&raw const value) as u64,
            ..MapUpdate::default()
        };
        call(MAP_UPDATE_ELEM, &attributes).map(|_| ())
    }

    pub(super) fn number(&self) -> i32 {
        self.0.as_raw_fd()
    }
}

/// A loaded program.
#[derive(Debug)]
pub(super) struct Program(OwnedFd);

impl Program {
    /// Loads `instructions`; `device` is the interface whose own functions they call.
    pub(super) fn load(instructions: &[Instruction], device: Option<u32>) -> io::Result<Program> {
        let mut name = [0; 16];
        name[..10].copy_from_slice(b"stateplane");
        let attributes = ProgLoad {
            prog_type: PROG_TYPE_XDP,
            instruction_count: instructions.len() as u32,
            instructions: instructions.as_ptr() as u64,
            license: LICENSE.as_ptr() as u64,
            flags: device.map_or(0, |_| F_XDP_DEV_BOUND_ONLY),
            name,
            ifindex: device.unwrap_or(0),
            expected_attach_type: ATTACH_XDP,
            ..ProgLoad::default()
        };
        descriptor(PROG_LOAD, &attributes).map(Program)
    }

    /// Runs the program for every frame that arrives at interface `index`, until the
    /// attachment is dropped or the process ends.
    pub(super) fn attach(&self, index: u32) -> io::Result<Attachment> {
        let attributes = LinkCreate {
            prog_fd: self.0.as_raw_fd() as u32,
            target_ifindex: index,
            attach_type: ATTACH_XDP,
            flags: XDP_FLAGS_DRV_MODE,
            ..LinkCreate::default()
        };
        descriptor(LINK_CREATE, &attributes).map(|fd| Attachment { _fd: fd })
    }
}

/// Keeps a program at its interface.
#[derive(Debug)]
pub(super) struct Attachment {
    _fd: OwnedFd,
}

#[allow(unsafe_code)]
fn call<T>(command: libc::c_long, attributes: &T) -> io::Result<i32> {
    // SAFETY: the attributes, and what they point to, live through the call; their size
    // is that given, and what a newer kernel would read beyond it counts as zero.
    let outcome = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command,
            &raw const *attributes,
            size_of::<T>(),
        )
    };
    if outcome < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(outcome as i32)
    }
}

#[allow(unsafe_code)]
fn descriptor<T>(command: libc::c_long, attributes: &T) -> io::Result<OwnedFd> {
    let fd = call(command, attributes)?;
    // SAFETY: the commands that come here return a descriptor that nobody else has.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
