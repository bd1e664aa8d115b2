//! A directory of the servers that have an object's newest version: one object is one
//! flow.

const OPERATION: u32 = 62;
const READ: u64 = 1;
const WRITE: u64 = 2;
/// In requests and outputs.
const SERVER: u32 = 32;
/// In a read's request: the server that has the object from the start.
const HOME: u32 = 40;
const SERVERS: u64 = 8;

/// Last version given out, newest that a server has, a bit for each server with it.
struct Directory {
    issued: u32,
    newest: u32,
    set: u32,
}

impl Directory {
    fn read(state: u128) -> Self {
        Self {
            issued: (state >> 64) as u32,
            newest: (state >> 32) as u32,
            set: state as u32,
        }
    }

    fn state(&self) -> u128 {
        u128::from(self.issued) << 64 | u128::from(self.newest) << 32 | u128::from(self.set)
    }
}

pub(super) fn steps(state: u128, request: u64) -> Vec<(Option<u64>, u128)> {
    let mut directory = Directory::read(state);
    let answer = |server: u64, version: u32| Some(server << SERVER | u64::from(version));
    match request >> OPERATION {
        READ if directory.set == 0 => {
            let home = request >> HOME & 0xff;
            vec![(answer(home, directory.newest), state)]
        }
        READ => (0..32)
            .filter(|server| directory.set >> server & 1 == 1)
            .map(|server| (answer(server, directory.newest), state))
            .collect(),
        WRITE => {
            directory.issued = directory.issued.wrapping_add(1);
            let next = directory.state();
            (0..SERVERS)
                .map(|server| (answer(server, directory.issued), next))
                .collect()
        }
        _ => {
            let (server, version) = (request >> SERVER & 0xff, request as u32);
            if version > directory.newest {
                directory.newest = version;
                directory.set = 1 << (server & 31);
            } else if version == directory.newest && version != 0 {
                directory.set |= 1 << (server & 31);
            }
            vec![(answer(server, version), directory.state())]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(server: u64, version: u64) -> u64 {
        3 << OPERATION | server << SERVER | version
    }

    #[test]
    fn a_read_goes_to_a_server_that_has_the_newest_version() {
        let read = READ << OPERATION | 5 << HOME;
        assert_eq!(steps(0, read), [(Some(5 << SERVER), 0)]);
        let (_, state) = steps(0, WRITE << OPERATION)[2];
        // Nobody has the version yet.
        assert_eq!(steps(state, read)[0].0, Some(5 << SERVER));
        let (_, state) = steps(state, held(2, 1))[0];
        let (_, state) = steps(state, held(4, 1))[0];
        let servers = steps(state, read).into_iter().map(|(output, _)| output);
        let of = |server: u64| Some(server << SERVER | 1);
        assert_eq!(servers.collect::<Vec<_>>(), [of(2), of(4)]);
        // An older version is no news, a newer one is the only one.
        let (_, state) = steps(state, held(6, 0))[0];
        let (_, state) = steps(state, held(7, 2))[0];
        assert_eq!(steps(state, read), [(Some(7 << SERVER | 2), state)]);
    }
}
