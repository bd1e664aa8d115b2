//! Placement of things, known by numbers, on servers: consistent hashing with virtual nodes.

/// A ring of points, several of each server.
///
/// A thing belongs to the servers whose points follow its own. When a server comes
/// or goes, only things change hands that it takes or had.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ring {
    points: Vec<(u64, u32)>,
}

/// SplitMix64's finishing step (Steele, Lea and Flood, 2014): it spreads numbers
/// that are close together.
fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

impl Ring {
    /// A ring of `servers`, each with `virtual_nodes` points.
    pub fn new(servers: impl IntoIterator<Item = u32>, virtual_nodes: u16) -> Ring {
        let mut points: Vec<(u64, u32)> = servers
            .into_iter()
            .flat_map(|server| {
                (0..virtual_nodes)
                    .map(move |node| (mix(mix(u64::from(server) << 16 | u64::from(node))), server))
            })
            .collect();
        points.sort_unstable();
        Ring { points }
    }

    /// The first `count` different servers behind the point of thing `number`; all, if
    /// there are fewer.
    pub fn servers(&self, number: u16, count: usize) -> Vec<u32> {
        self.servers_apart(number, count, Some)
    }

    /// As [`Ring::servers`], of those that `domain` gives a failure domain, and in different
    /// domains; if there are too few domains, the first of the other servers fill up.
    pub fn servers_apart<D: PartialEq>(
        &self,
        number: u16,
        count: usize,
        domain: impl Fn(u32) -> Option<D>,
    ) -> Vec<u32> {
        let point = mix(!u64::from(number));
        let start = self.points.partition_point(|(at, _)| *at < point);
        let (mut apart, mut others, mut domains) = (Vec::new(), Vec::new(), Vec::new());
        for (_, server) in self.points[start..].iter().chain(&self.points[..start]) {
            if apart.len() >= count {
                break;
            }
            if apart.contains(server) || others.contains(server) {
                continue;
            }
            match domain(*server) {
                Some(domain) if !domains.contains(&domain) => {
                    domains.push(domain);
                    apart.push(*server);
                }
                Some(_) => others.push(*server),
                None => {}
            }
        }
        let lacking = count.saturating_sub(apart.len());
        apart.extend(others.into_iter().take(lacking));
        apart
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THINGS: u16 = 1024;

    #[test]
    fn everything_has_different_servers() {
        let ring = Ring::new(1..=5, 64);
        for thing in 0..THINGS {
            let mut servers = ring.servers(thing, 3);
            servers.sort_unstable();
            servers.dedup();
            assert_eq!(servers.len(), 3);
        }
        assert_eq!(ring.servers(0, 9).len(), 5);
        assert!(Ring::default().servers(0, 3).is_empty());
    }

    #[test]
    fn a_server_that_goes_or_comes_moves_only_its_share() {
        let five = Ring::new(1..=5, 64);
        let four = Ring::new([1, 2, 4, 5], 64);
        let mut moved = 0;
        for thing in 0..THINGS {
            let (with, without) = (five.servers(thing, 3), four.servers(thing, 3));
            if with.contains(&3) {
                moved += 1;
                let stay = with.iter().filter(|s| **s != 3);
                assert!(stay.clone().all(|s| without.contains(s)), "thing {thing}");
            } else {
                assert_eq!(with, without, "thing {thing}");
            }
        }
        // Three of five servers keep each thing.
        let share = THINGS / 5 * 3;
        assert!(
            (share * 7 / 10..share * 13 / 10).contains(&moved),
            "{moved}"
        );
    }

    #[test]
    fn servers_of_a_thing_are_in_different_domains_while_there_are_enough() {
        let ring = Ring::new(1..=6, 64);
        for thing in 0..THINGS {
            // Racks 0 and 1 have two switches each, and one of rack 2 is left out.
            let rack = |server| (server != 5).then_some(server % 3);
            let servers = ring.servers_apart(thing, 3, rack);
            let mut racks: Vec<u32> = servers.iter().map(|server| server % 3).collect();
            racks.sort_unstable();
            assert_eq!(racks, [0, 1, 2], "{servers:?}");
            assert!(!servers.contains(&5));
            let four = ring.servers_apart(thing, 4, rack);
            assert_eq!((&four[..3], four.len()), (&servers[..], 4));
            assert_eq!(ring.servers_apart(thing, 9, rack).len(), 5);
        }
    }

    #[test]
    fn first_servers_are_spread() {
        let ring = Ring::new(1..=4, 64);
        let mut firsts = [0; 5];
        for thing in 0..THINGS {
            firsts[ring.servers(thing, 3)[0] as usize] += 1;
        }
        for server in 1..=4 {
            assert!((170..350).contains(&firsts[server]), "{firsts:?}");
        }
    }
}
