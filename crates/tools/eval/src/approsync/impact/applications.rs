//! Applications that judge flows and hosts by packets of flows (ApproSync's III-C and Exp#9).

use super::flows::Flows;
use std::collections::BTreeSet;

/// Shares of all destinations, and of all sources, with which a host has to speak to stand out.
const SPREADER_SHARE: f64 = 0.01;
const VICTIM_SHARE: f64 = 0.005;

/// An application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Application {
    /// Flows with more packets than a threshold.
    HeavyHitters,
    /// UDP flows with as many within a window.
    UdpFloods,
    /// Sources that sent to more than 1 % of all destinations.
    SuperSpreaders,
    /// Destinations to which more than 0.5 % of all sources sent.
    Victims,
}

impl Application {
    /// All of them.
    pub(super) const ALL: [Self; 4] = [
        Self::HeavyHitters,
        Self::UdpFloods,
        Self::SuperSpreaders,
        Self::Victims,
    ];

    /// Name in tables.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::HeavyHitters => "heavy hitters",
            Self::UdpFloods => "UDP floods",
            Self::SuperSpreaders => "super-spreaders",
            Self::Victims => "victims of DDoS",
        }
    }

    /// Flows or hosts that stand out, by the packets of each flow so far and in the window.
    pub(super) fn found(self, flows: &Flows, packets: &[u64], window: &[u64]) -> BTreeSet<u32> {
        let threshold = flows.threshold();
        let above = |counts: &[u64], is_wanted: &dyn Fn(usize) -> bool| {
            let flows = counts.iter().enumerate();
            let found = flows.filter(|(at, count)| **count > threshold && is_wanted(*at));
            found.map(|(at, _)| at as u32).collect()
        };
        match self {
            Self::HeavyHitters => above(packets, &|_| true),
            Self::UdpFloods => above(window, &|at| flows.flows[at].is_udp),
            Self::SuperSpreaders => {
                let pairs = flows.flows.iter().map(|it| (it.source, it.destination));
                let most = SPREADER_SHARE * f64::from(flows.destinations);
                partners(pairs, packets, most)
            }
            Self::Victims => {
                let pairs = flows.flows.iter().map(|it| (it.destination, it.source));
                let most = VICTIM_SHARE * f64::from(flows.sources);
                partners(pairs, packets, most)
            }
        }
    }
}

/// Hosts with more than so many partners, of pairs that had packets.
fn partners(pairs: impl Iterator<Item = (u32, u32)>, packets: &[u64], most: f64) -> BTreeSet<u32> {
    let met = pairs.zip(packets).filter(|(_, packets)| **packets > 0);
    let mut met: Vec<(u32, u32)> = met.map(|(pair, _)| pair).collect();
    met.sort_unstable();
    met.dedup();
    let of_hosts = met.chunk_by(|one, other| one.0 == other.0);
    let above = of_hosts.filter(|of| of.len() as f64 > most);
    above.map(|of| of[0].0).collect()
}

/// Misjudged ones in shares of those that stand out in truth; `None` if none does.
pub(super) fn error(found: &BTreeSet<u32>, truth: &BTreeSet<u32>) -> Option<f64> {
    let wrong = found.symmetric_difference(truth).count();
    (!truth.is_empty()).then(|| wrong as f64 / truth.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::super::flows::Flow;
    use super::*;

    #[test]
    fn each_application_finds_what_stands_out() {
        let flow = |source, destination, is_udp| Flow {
            source,
            destination,
            is_udp,
        };
        let flows = Flows {
            name: "four".to_owned(),
            flows: vec![
                flow(0, 0, false),
                flow(0, 1, true),
                flow(0, 1, false),
                flow(1, 1, true),
            ],
            sources: 2,
            destinations: 150,
            packets: vec![0; 1 << 15],
        };
        assert_eq!(flows.threshold(), 32);
        let (packets, window) = ([40, 33, 1, 40], [40, 32, 1, 33]);
        let found = |application: Application| application.found(&flows, &packets, &window);
        assert_eq!(found(Application::HeavyHitters), BTreeSet::from([0, 1, 3]));
        assert_eq!(found(Application::UdpFloods), BTreeSet::from([3]));
        assert_eq!(found(Application::SuperSpreaders), BTreeSet::from([0]));
        assert_eq!(found(Application::Victims), BTreeSet::from([0, 1]));
        let truth = BTreeSet::from([0, 1, 2, 3]);
        assert_eq!(error(&BTreeSet::from([0, 1, 7]), &truth), Some(0.75));
        assert_eq!(error(&truth, &BTreeSet::new()), None);
    }
}
