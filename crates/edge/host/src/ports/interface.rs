//! Network interfaces and their flags (`netdevice(7)`).

use super::MacAddress;
use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Controls interfaces by name.
#[derive(Debug)]
pub(crate) struct Interfaces {
    socket: OwnedFd,
}

impl Interfaces {
    #[allow(unsafe_code)]
    pub(crate) fn open() -> io::Result<Interfaces> {
        // SAFETY: no pointers are passed.
        let fd = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just opened and belongs to nobody else.
        Ok(Interfaces {
            socket: unsafe { OwnedFd::from_raw_fd(fd) },
        })
    }

    #[allow(unsafe_code)]
    pub(crate) fn index(&self, name: &str) -> io::Result<i32> {
        let mut request = request(name)?;
        self.control(libc::SIOCGIFINDEX, &mut request)?;
        // SAFETY: the call has filled this member.
        Ok(unsafe { request.ifr_ifru.ifru_ifindex })
    }

    /// `ARPHRD_*` of the interface's frames.
    #[allow(unsafe_code)]
    pub(crate) fn hardware_type(&self, name: &str) -> io::Result<u16> {
        let mut request = request(name)?;
        self.control(libc::SIOCGIFHWADDR, &mut request)?;
        // SAFETY: the call has filled this member.
        Ok(unsafe { request.ifr_ifru.ifru_hwaddr.sa_family })
    }

    /// MAC address of the interface.
    #[allow(unsafe_code)]
    pub(crate) fn hardware_address(&self, name: &str) -> io::Result<MacAddress> {
        let mut request = request(name)?;
        self.control(libc::SIOCGIFHWADDR, &mut request)?;
        // SAFETY: the call has filled this member.
        let bytes = unsafe { request.ifr_ifru.ifru_hwaddr.sa_data };
        Ok(std::array::from_fn(|at| bytes[at] as u8))
    }

    /// `IFF_*` of the interface.
    #[allow(unsafe_code)]
    pub(crate) fn flags(&self, name: &str) -> io::Result<i32> {
        let mut request = request(name)?;
        self.control(libc::SIOCGIFFLAGS, &mut request)?;
        // SAFETY: the call has filled this member.
        Ok(i32::from(unsafe { request.ifr_ifru.ifru_flags }))
    }

    /// Longest packet that the interface carries, in bytes without link header.
    #[allow(unsafe_code)]
    pub(crate) fn mtu(&self, name: &str) -> io::Result<u32> {
        let mut request = request(name)?;
        self.control(libc::SIOCGIFMTU, &mut request)?;
        // SAFETY: the call has filled this member.
        Ok(unsafe { request.ifr_ifru.ifru_mtu } as u32)
    }

    /// Receive queues that the interface has; 1 if its driver does not say.
    pub(crate) fn receive_queues(&self, name: &str) -> u32 {
        const ETHTOOL_GCHANNELS: u32 = 0x3c;
        /// `struct ethtool_channels` of `linux/ethtool.h`.
        #[repr(C)]
        #[derive(Default)]
        struct Channels {
            command: u32,
            most: [u32; 4],
            receiving: u32,
            sending: u32,
            other: u32,
            combined: u32,
        }
        let mut channels = Channels {
            command: ETHTOOL_GCHANNELS,
            ..Channels::default()
        };
        let Ok(mut request) = request(name) else {
            return 1;
        };
        request.ifr_ifru.ifru_data = (&raw mut channels).cast();
        match self.control(libc::SIOCETHTOOL, &mut request) {
            Ok(()) => (channels.receiving + channels.combined).max(1),
            Err(_) => 1,
        }
    }

    /// True if the interface leaves VLAN tags in received frames, or can be configured to.
    pub(crate) fn keeps_tags(&self, name: &str) -> bool {
        const ETHTOOL_GFLAGS: u32 = 0x25;
        const ETHTOOL_SFLAGS: u32 = 0x26;
        const ETH_FLAG_RXVLAN: u32 = 1 << 8;
        let Ok(flags) = self.ethtool(name, ETHTOOL_GFLAGS, 0) else {
            return false;
        };
        flags & ETH_FLAG_RXVLAN == 0
            || self
                .ethtool(name, ETHTOOL_SFLAGS, flags & !ETH_FLAG_RXVLAN)
                .is_ok()
    }

    /// Sets the interface administratively up or down. An interface that is up needs no right to
    /// stay up; the right to lower one is asked for even where it is down, so that a process
    /// without it learns of that at once and not when the interface is to be raised.
    pub(crate) fn set_up(&self, name: &str, up: bool) -> io::Result<()> {
        let flags = self.flags(name)?;
        let wanted = if up {
            flags | libc::IFF_UP
        } else {
            flags & !libc::IFF_UP
        };
        if up && flags == wanted {
            return Ok(());
        }
        let mut request = request(name)?;
        // The flags that can be set lie in the low 16 bits.
        request.ifr_ifru.ifru_flags = wanted as libc::c_short;
        self.control(libc::SIOCSIFFLAGS, &mut request)
    }

    /// Stops the interface from merging received segments into frames that are
    /// longer than those that were sent, as far as its driver can.
    pub(crate) fn stop_merging(&self, name: &str) -> io::Result<()> {
        const ETHTOOL_SGRO: u32 = 0x2c;
        const ETHTOOL_GFLAGS: u32 = 0x25;
        const ETHTOOL_SFLAGS: u32 = 0x26;
        const ETH_FLAG_LRO: u32 = 1 << 15;
        self.ethtool(name, ETHTOOL_SGRO, 0)?;
        let flags = self.ethtool(name, ETHTOOL_GFLAGS, 0)?;
        if flags & ETH_FLAG_LRO != 0 {
            self.ethtool(name, ETHTOOL_SFLAGS, flags & !ETH_FLAG_LRO)?;
        }
        Ok(())
    }

    fn ethtool(&self, name: &str, command: u32, data: u32) -> io::Result<u32> {
        #[repr(C)]
        struct EthtoolValue {
            command: u32,
            data: u32,
        }
        let mut value = EthtoolValue { command, data };
        let mut request = request(name)?;
        request.ifr_ifru.ifru_data = (&raw mut value).cast();
        self.control(libc::SIOCETHTOOL, &mut request)?;
        Ok(value.data)
    }

    #[allow(unsafe_code)]
    fn control(&self, operation: libc::c_ulong, request: &mut libc::ifreq) -> io::Result<()> {
        // SAFETY: all operations used here take an `ifreq`, which lives through the
        // call, as does what `ifru_data` may point to in it.
        let outcome =
            unsafe { libc::ioctl(self.socket.as_raw_fd(), operation as _, &raw mut *request) };
        if outcome < 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok(())
        }
    }
}

/// Names of the interfaces of this network namespace, in the system's order.
#[allow(unsafe_code)]
pub(crate) fn names() -> Vec<String> {
    // SAFETY: the call has no preconditions; its list is freed below.
    let list = unsafe { libc::if_nameindex() };
    let mut names = Vec::new();
    if list.is_null() {
        return names;
    }
    let mut entry = list;
    // SAFETY: the list ends with an entry whose index is 0 and whose name is null;
    // every name before it is a string. The list is freed once and not used again.
    unsafe {
        while (*entry).if_index != 0 && !(*entry).if_name.is_null() {
            names.push(
                CStr::from_ptr((*entry).if_name)
                    .to_string_lossy()
                    .into_owned(),
            );
            entry = entry.add(1);
        }
        libc::if_freenameindex(list);
    }
    names
}

/// A request about the interface `name`. A name that no interface can have is
/// reported as the kernel reports one that none has.
#[allow(unsafe_code)]
pub(super) fn request(name: &str) -> io::Result<libc::ifreq> {
    let absent = || io::Error::from_raw_os_error(libc::ENODEV);
    let bytes = CString::new(name)
        .map_err(|_| absent())?
        .into_bytes_with_nul();
    // SAFETY: an `ifreq` is made of integers and addresses, for which zero is valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if name.is_empty() || bytes.len() > request.ifr_name.len() {
        return Err(absent());
    }
    for (to, from) in request.ifr_name.iter_mut().zip(bytes) {
        *to = from as libc::c_char;
    }
    Ok(request)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_is_known() {
        let interfaces = Interfaces::open().unwrap();
        assert!(names().contains(&"lo".to_owned()));
        assert!(interfaces.index("lo").unwrap() > 0);
        assert_eq!(
            interfaces.hardware_type("lo").unwrap(),
            libc::ARPHRD_LOOPBACK
        );
    }

    #[test]
    fn names_that_no_interface_has_are_absent() {
        let interfaces = Interfaces::open().unwrap();
        for name in [
            "",
            "nosuchinterface0",
            "a-name-of-more-than-15-bytes",
            "nul\0nul",
        ] {
            let error = interfaces.index(name).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::ENODEV), "{name:?}");
        }
    }
}
