//! A network namespace for one test.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::Command;
use std::time::{Duration, Instant};

/// Runs `test` on a thread in a new network namespace, which ends with it.
pub fn try_in_namespace(test: impl FnOnce() + Send) {
    std::thread::scope(|scope| {
        let outcome = scope
            .spawn(|| {
                if let Err(reason) = enter() {
                    eprintln!("skipped: {reason}; run as root to test this");
                    return;
                }
                ip("link set lo up");
                test();
            })
            .join();
        if let Err(panic) = outcome {
            std::panic::resume_unwind(panic);
        }
    });
}

#[allow(unsafe_code)]
fn enter() -> Result<(), String> {
    if Command::new("ip").arg("-V").output().is_err() {
        return Err("there is no `ip` command (iproute2)".to_owned());
    }
    // SAFETY: no pointers are passed; only this thread changes its namespace.
    if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
        return Err(format!(
            "no network namespace: {}",
            io::Error::last_os_error()
        ));
    }
    Ok(())
}

/// Runs `ip` with `arguments` and gives what it prints.
pub fn ip(arguments: &str) -> String {
    let printed = run("ip", arguments);
    printed.unwrap_or_else(|error| panic!("ip {arguments}: {error}"))
}

/// Lets an interface send no faster than a few frames of 1,000 bytes in a second.
///
/// # Errors
///
/// Error of the operating system, if it has no such queue.
pub fn slow_down(interface: &str) -> Result<(), String> {
    let arguments = format!("qdisc add dev {interface} root tbf rate 64kbit burst 2000 limit 8000");
    run("tc", &arguments).map(drop)
}

fn run(command: &str, arguments: &str) -> Result<String, String> {
    let output = Command::new(command)
        .args(arguments.split(' '))
        .output()
        .map_err(|error| format!("{command}: {error}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

/// Keeps this thread on one processor: frames that it sends do not overtake each other in the kernel.
#[allow(unsafe_code)]
pub fn stay() {
    // SAFETY: a set is made of integers, for which zero is valid, and lives through the call.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(libc::sched_getcpu() as usize, &mut set);
        let outcome = libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set);
        assert_eq!(outcome, 0, "{}", io::Error::last_os_error());
    }
}

/// Gives up what BPF programs need (`capabilities(7)`), for this thread.
#[allow(unsafe_code)]
pub fn give_up_bpf() {
    const VERSION_3: u32 = 0x2008_0522;
    const SYS_ADMIN: u32 = 21;
    const BPF: u32 = 39;
    #[repr(C)]
    struct Header {
        version: u32,
        pid: i32,
    }
    #[repr(C)]
    #[derive(Clone, Copy, Default)]
    struct Set {
        effective: u32,
        permitted: u32,
        inheritable: u32,
    }
    let mut header = Header {
        version: VERSION_3,
        pid: 0,
    };
    let mut sets = [Set::default(); 2];
    // SAFETY: header and sets live through the calls and are those of this version.
    unsafe {
        let header = &raw mut header;
        assert_eq!(
            libc::syscall(libc::SYS_capget, header, sets.as_mut_ptr()),
            0
        );
        for capability in [SYS_ADMIN, BPF] {
            sets[(capability / 32) as usize].effective &= !(1 << (capability % 32));
        }
        assert_eq!(libc::syscall(libc::SYS_capset, header, sets.as_ptr()), 0);
    }
}

/// True if an interface is up.
pub fn is_up(interface: &str) -> bool {
    ip(&format!("-o link show {interface}")).contains(",UP")
}

/// Does `action` over and over until the interface is up, or down if it is not `wanted`.
pub fn until_up(interface: &str, wanted: bool, action: impl Fn()) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while is_up(interface) != wanted {
        assert!(Instant::now() < deadline, "the interface stays {}", !wanted);
        action();
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The far end of a link: sends and receives frames.
pub struct Host {
    socket: OwnedFd,
}

impl Host {
    /// Opens an interface when its link works: Linux takes a moment after both ends
    /// are up, and loses frames before.
    pub fn open(interface: &str) -> Host {
        Host::open_when(interface, "state UP")
    }

    /// Opens an interface that is up but does not tell whether its link works.
    pub fn open_when_up(interface: &str) -> Host {
        Host::open_when(interface, ",UP")
    }

    #[allow(unsafe_code)]
    fn open_when(interface: &str, state: &str) -> Host {
        let deadline = Instant::now() + Duration::from_secs(10);
        while !ip(&format!("-o link show {interface}")).contains(state) {
            assert!(
                Instant::now() < deadline,
                "the link of {interface} does not come up"
            );
            std::thread::sleep(Duration::from_millis(5));
        }
        let name = std::ffi::CString::new(interface).unwrap();
        // SAFETY: the name is a string that lives through the call; the address is
        // made of integers, for which zero is valid, and is as long as stated; the
        // descriptor belongs to nobody else.
        unsafe {
            let index = libc::if_nametoindex(name.as_ptr());
            assert!(index > 0, "there is no {interface}");
            let fd = libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0);
            assert!(fd >= 0, "{}", io::Error::last_os_error());
            let socket = OwnedFd::from_raw_fd(fd);
            let one: libc::c_int = 1;
            libc::setsockopt(
                fd,
                libc::SOL_PACKET,
                libc::PACKET_IGNORE_OUTGOING,
                (&raw const one).cast(),
                size_of::<libc::c_int>() as libc::socklen_t,
            );
            // Room for what comes while the test does something else.
            let bytes: libc::c_int = 16 << 20;
            libc::setsockopt(
                fd,
                libc::SOL_SOCKET,
                libc::SO_RCVBUFFORCE,
                (&raw const bytes).cast(),
                size_of::<libc::c_int>() as libc::socklen_t,
            );
            let mut address: libc::sockaddr_ll = std::mem::zeroed();
            address.sll_family = libc::AF_PACKET as u16;
            address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
            address.sll_ifindex = index as i32;
            let outcome = libc::bind(
                fd,
                (&raw const address).cast(),
                size_of::<libc::sockaddr_ll>() as libc::socklen_t,
            );
            assert!(outcome == 0, "{}", io::Error::last_os_error());
            Host { socket }
        }
    }

    #[allow(unsafe_code)]
    pub fn send(&self, frame: &[u8]) {
        // SAFETY: the frame lives through the call and is as long as stated.
        let sent = unsafe {
            libc::send(
                self.socket.as_raw_fd(),
                frame.as_ptr().cast(),
                frame.len(),
                0,
            )
        };
        assert_eq!(sent, frame.len() as isize, "{}", io::Error::last_os_error());
    }

    /// The next frame of the tests' or any given Ethernet type but those that Linux
    /// sends by itself (IPv6 neighbour discovery).
    pub fn expect(&self) -> Vec<u8> {
        self.receive(Duration::from_secs(10))
            .expect("a frame arrives within 10 s")
    }

    #[allow(unsafe_code)]
    pub fn receive(&self, within: Duration) -> Option<Vec<u8>> {
        let deadline = Instant::now() + within;
        loop {
            let rest = deadline.saturating_duration_since(Instant::now());
            let mut polled = libc::pollfd {
                fd: self.socket.as_raw_fd(),
                events: libc::POLLIN,
                revents: 0,
            };
            // SAFETY: one descriptor is passed, which lives through the call.
            let ready = unsafe { libc::poll(&raw mut polled, 1, rest.as_millis() as i32) };
            if ready <= 0 {
                return None;
            }
            let mut buffer = vec![0; 70_000];
            // SAFETY: the buffer is as long as stated.
            let length = unsafe {
                libc::recv(
                    self.socket.as_raw_fd(),
                    buffer.as_mut_ptr().cast(),
                    buffer.len(),
                    libc::MSG_DONTWAIT,
                )
            };
            if length >= 14 && buffer[12..14] != [0x86, 0xdd] {
                buffer.truncate(length as usize);
                return Some(buffer);
            }
        }
    }
}
