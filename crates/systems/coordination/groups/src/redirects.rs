//! Redirection of requests to failed switches (rule 11; NetChain, Algorithm 2).

use std::collections::BTreeMap;

use core::net::Ipv4Addr;

/// Orders to the other switches.
#[derive(Debug, Clone)]
pub(crate) struct Redirects {
    /// The failed switch of each place, with its address.
    places: Vec<Option<(u32, Ipv4Addr)>>,
    /// Contents of each place, as each switch reported them, with its incarnation.
    known: BTreeMap<u32, (u32, Vec<Option<Ipv4Addr>>)>,
}

impl Redirects {
    pub(crate) fn new(places: u16) -> Redirects {
        Redirects {
            places: vec![None; places.into()],
            known: BTreeMap::new(),
        }
    }

    /// Gives places to the `failed` switches, as many as there are places, and takes away those of
    /// others.
    pub(crate) fn place(&mut self, failed: &BTreeMap<u32, Ipv4Addr>) {
        for place in &mut self.places {
            if place.is_some_and(|(switch, address)| failed.get(&switch) != Some(&address)) {
                *place = None;
            }
        }
        for (switch, address) in failed {
            let entry = Some((*switch, *address));
            if self.places.contains(&entry) {
                continue;
            }
            if let Some(place) = self.places.iter_mut().find(|place| place.is_none()) {
                *place = entry;
            }
        }
    }

    /// The addresses in their places, unspecified where there is none.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = Ipv4Addr> {
        let places = self.places.iter();
        places.map(|place| place.map_or(Ipv4Addr::UNSPECIFIED, |(_, address)| address))
    }

    /// Takes what `switch` of this incarnation has in a place.
    pub(crate) fn heard(&mut self, switch: u32, incarnation: u32, place: u16, address: Ipv4Addr) {
        let places = self.places.len();
        let fresh = || (incarnation, vec![None; places]);
        let known = self.known.entry(switch).or_insert_with(fresh);
        if known.0 != incarnation {
            *known = fresh();
        }
        if let Some(known) = known.1.get_mut(usize::from(place)) {
            *known = Some(address);
        }
    }

    /// Places, with their addresses, that `switch` of this incarnation is not known to have.
    pub(crate) fn missing(&self, switch: u32, incarnation: u32) -> Vec<(u16, Ipv4Addr)> {
        let known = self.known.get(&switch);
        let known = known.filter(|(of, _)| *of == incarnation);
        let known = |place: usize| known.and_then(|(_, known)| known.get(place).copied().flatten());
        let wanted = self.addresses().enumerate();
        let missing = wanted.filter(|(place, address)| known(*place) != Some(*address));
        missing
            .map(|(place, address)| (place as u16, address))
            .collect()
    }
}
