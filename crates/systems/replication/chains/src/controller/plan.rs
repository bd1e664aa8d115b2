//! Planning: one step at a time towards the wanted configuration of every chain.

use stateplane_invariant::invariant;
use stateplane_membership::Ring;
use stateplane_wire::control::{ChainConfig, Member};

use super::{Chain, Controller};

/// Number of the first configuration of a chain.
const FOUNDING: u32 = 1;

impl Controller {
    /// The servers that should keep a shard. A server that died lately keeps its
    /// place: it may be back soon.
    pub(super) fn wanted(&self, shard: u16) -> Vec<u32> {
        self.ring.servers(shard, self.settings.replicas.into())
    }

    /// Makes the ring of all servers that are alive, or died lately, and not
    /// drained; every chain is looked at again.
    pub(super) fn place_anew(&mut self, now: u64) {
        let patience = self.settings.replace_after;
        let mut wake = u64::MAX;
        let mut on_ring = Vec::new();
        for (number, health) in &self.servers.all {
            let gone = health.heard.saturating_add(patience);
            if !health.alive && gone > now {
                wake = wake.min(gone);
            }
            if !health.drained && (health.alive || gone > now) {
                on_ring.push(*number);
            }
        }
        let shunned = self.chains.values().flat_map(|c| c.shunned.values());
        if let Some(until) = shunned.filter(|until| **until > now).min() {
            wake = wake.min(*until);
        }
        self.wake = wake;
        self.ring = Ring::new(on_ring, self.settings.virtual_nodes);
        self.stale.extend(0..self.settings.shards);
    }

    /// Looks again at the chains that may have to change.
    pub(super) fn reconsider(&mut self, now: u64) {
        if self.stale.is_empty() {
            return;
        }
        if self.is_behind() {
            self.stale.clear();
            return;
        }
        let joining = |chain: &Chain| chain.config.joining.is_some();
        let mut joins = self.chains.values().filter(|c| joining(c)).count();
        let most = usize::from(self.settings.joins);
        for shard in core::mem::take(&mut self.stale) {
            let next = match self.chains.get_mut(&shard) {
                None => self.found(shard),
                // One at a time: the one before must be in effect.
                Some(chain) if !chain.stored => None,
                Some(chain) => {
                    chain.shunned.retain(|_, until| *until > now);
                    if let Some(until) = chain.shunned.values().min() {
                        self.wake = self.wake.min(*until);
                    }
                    self.next_step(shard, joins < most)
                }
            };
            let Some(next) = next else { continue };
            let was_joining = self.chains.get(&shard).is_some_and(joining);
            match (was_joining, next.joining.is_some()) {
                (false, true) => joins += 1,
                (true, false) => {
                    joins -= 1;
                    // Another chain may begin now.
                    self.wake = now;
                }
                _ => {}
            }
            self.propose(now, next);
        }
    }

    fn propose(&mut self, now: u64, config: ChainConfig) {
        let before = self.chains.get(&config.chain);
        let before = before.map_or(0, |chain| chain.config.epoch);
        if !invariant!(
            self.invariants,
            DecisionNumber,
            config.epoch > before,
            "configuration {} of chain {} would follow number {before}",
            config.epoch,
            config.chain
        ) {
            return;
        }
        self.counters.configurations += 1;
        self.records.push_back(config.clone());
        let before = self.chains.remove(&config.chain);
        let mut chain = Chain::new(config, now);
        if let Some(before) = before {
            chain.shunned = before.shunned;
            chain.version = before.version;
        }
        self.chains.insert(chain.config.chain, chain);
    }

    /// The first configuration of a shard's chain, when enough servers are there.
    fn found(&self, shard: u16) -> Option<ChainConfig> {
        let alive = self.servers.all.values().filter(|h| h.alive && !h.drained);
        if alive.count() < self.settings.founders.into() {
            return None;
        }
        let members: Vec<Member> = self
            .wanted(shard)
            .into_iter()
            .filter_map(|server| self.servers.all.get(&server))
            .filter(|health| health.alive)
            .map(|health| health.start)
            .collect();
        (!members.is_empty()).then_some(ChainConfig {
            chain: shard,
            epoch: FOUNDING,
            members,
            joining: None,
        })
    }

    /// Next configuration for the chain of `shard`; `None` if it may stay.
    fn next_step(&mut self, shard: u16, may_join: bool) -> Option<ChainConfig> {
        let wanted = self.wanted(shard);
        let chain = self.chains.get(&shard)?;
        let present = &chain.config;
        let usable = |member: &&Member| {
            let shunned = (member.server, member.incarnation);
            self.servers.is_alive(member) && !chain.shunned.contains_key(&shunned)
        };
        let change = |members: Vec<Member>, joining: Option<Member>| ChainConfig {
            chain: shard,
            epoch: present.epoch.saturating_add(1),
            members,
            joining,
        };
        let survivors: Vec<Member> = present.members.iter().filter(usable).copied().collect();
        if survivors.is_empty() {
            // No live server has the state. A server that returns may still have it.
            return None;
        }
        if present.epoch == FOUNDING && chain.needs().any(|member| usable(&member)) {
            // A member of a later configuration whose disk knows no earlier one takes what it
            // had for lost, so each founder that lives has to follow the first one first.
            return None;
        }
        let joining = present.joining.filter(|member| usable(&member));
        if survivors.len() < present.members.len() || joining != present.joining {
            return Some(change(survivors, joining));
        }
        if let Some(joining) = joining {
            if chain.joined {
                let mut members = survivors;
                members.push(joining);
                self.counters.joined += 1;
                return Some(change(members, None));
            }
            return (!wanted.contains(&joining.server)).then(|| change(survivors, None));
        }
        if chain.needs().next().is_some() {
            return None;
        }
        let is_member = |server: &u32| survivors.iter().any(|m| m.server == *server);
        let missing: Vec<u32> = wanted.iter().filter(|s| !is_member(s)).copied().collect();
        let newcomer = missing.iter().find_map(|server| {
            let member = &self.servers.all.get(server)?.start;
            usable(&member).then_some(*member)
        });
        if let Some(newcomer) = newcomer {
            return may_join.then(|| change(survivors, Some(newcomer)));
        }
        // An unwanted member leaves only when all wanted ones are there.
        let keep = |member: &Member| wanted.contains(&member.server);
        let surplus = survivors.iter().any(|member| !keep(member));
        (missing.is_empty() && surplus).then(|| {
            let members = survivors.iter().filter(|member| keep(member));
            change(members.copied().collect(), None)
        })
    }
}
