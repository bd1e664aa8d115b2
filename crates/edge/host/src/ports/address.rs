//! Which frames of a link are for a port.

/// A MAC address, in the order of the wire.
pub type MacAddress = [u8; 6];

/// The first bit of an address on the wire: set in those of groups and in that of all
/// (IEEE 802, clause 8.2.2).
const GROUP: u8 = 1;

/// The addresses of a routed port.
///
/// A link that is a bridge carries every frame whose receiver it does not know to all its ports.
/// A router that forwards such copies multiplies them, and answers for another switch.
#[derive(Clone, Debug, Default)]
pub(crate) struct OwnAddresses {
    /// As the operator gave them.
    given: Vec<MacAddress>,
    /// That of the interface.
    interface: Option<MacAddress>,
}

impl OwnAddresses {
    pub(crate) fn new(given: &[MacAddress], interface: Option<MacAddress>) -> OwnAddresses {
        OwnAddresses {
            given: given.to_vec(),
            interface,
        }
    }

    /// Sets the address of the interface, which is another after the interface was replaced.
    pub(crate) fn set_interface(&mut self, interface: Option<MacAddress>) {
        self.interface = interface;
    }

    /// True if `frame` is addressed to the port, to a group or to all. So is a frame without a
    /// whole address: the switch counts it as a runt.
    pub(crate) fn take(&self, frame: &[u8]) -> bool {
        let Some(destination) = frame.first_chunk::<6>() else {
            return true;
        };
        destination[0] & GROUP != 0
            || self.interface.as_ref() == Some(destination)
            || self.given.contains(destination)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: MacAddress = [2, 0, 0, 0, 0, 1];
    const INTERFACE: MacAddress = [2, 0, 0, 0, 0, 2];
    const OTHER: MacAddress = [2, 0, 0, 0, 0, 3];

    #[test]
    fn own_addresses_groups_and_runts_are_taken() {
        let own = OwnAddresses::new(&[OWN], Some(INTERFACE));
        for destination in [OWN, INTERFACE, [0xff; 6], [1, 0, 0x5e, 0, 0, 1]] {
            assert!(own.take(&destination), "{destination:?}");
        }
        assert!(own.take(&OTHER[..5]));
        assert!(!own.take(&OTHER));
    }

    #[test]
    fn a_replaced_interface_brings_its_address() {
        let mut own = OwnAddresses::new(&[OWN], Some(INTERFACE));
        own.set_interface(Some(OTHER));
        assert!(own.take(&OTHER) && own.take(&OWN));
        assert!(!own.take(&INTERFACE));
    }
}
