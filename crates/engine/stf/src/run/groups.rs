//! Multicast groups made of nodes, as BMv2's command line has them.

use crate::Cause;
use stateplane_runtime::Engine;
use stateplane_switch::{Port, Replica, Switch, SwitchError};
use std::collections::BTreeMap;

struct Node {
    rid: u16,
    /// Ascending, each once: the order of the copies.
    ports: Vec<Port>,
}

impl Node {
    fn new(rid: u16, ports: &[Port]) -> Node {
        let mut ports = ports.to_vec();
        ports.sort_unstable();
        ports.dedup();
        Node { rid, ports }
    }
}

/// Nodes by number, and the nodes of each group.
#[derive(Default)]
pub(super) struct Groups {
    nodes: Vec<Node>,
    groups: BTreeMap<u16, Vec<usize>>,
}

impl Groups {
    pub(super) fn create<E: Engine>(
        &mut self,
        group: u16,
        switch: &mut Switch<E>,
    ) -> Result<(), Cause> {
        switch.set_multicast_group(group, vec![])?;
        self.groups.insert(group, vec![]);
        Ok(())
    }

    pub(super) fn add_node(&mut self, rid: u16, ports: &[Port]) {
        self.nodes.push(Node::new(rid, ports));
    }

    pub(super) fn update<E: Engine>(
        &mut self,
        node: usize,
        ports: &[Port],
        switch: &mut Switch<E>,
    ) -> Result<(), Cause> {
        let known = self.nodes.get_mut(node).ok_or(Cause::UnknownNode(node))?;
        *known = Node::new(known.rid, ports);
        let groups = self.groups.iter();
        let with_node = groups.filter(|(_, nodes)| nodes.contains(&node));
        for (group, nodes) in with_node {
            switch.set_multicast_group(*group, self.replicas(nodes))?;
        }
        Ok(())
    }

    pub(super) fn associate<E: Engine>(
        &mut self,
        group: u16,
        node: usize,
        switch: &mut Switch<E>,
    ) -> Result<(), Cause> {
        if node >= self.nodes.len() {
            return Err(Cause::UnknownNode(node));
        }
        let nodes = self.groups.get_mut(&group);
        let nodes = nodes.ok_or(SwitchError::UnknownMulticastGroup(group))?;
        nodes.push(node);
        let replicas = self.replicas(&self.groups[&group]);
        Ok(switch.set_multicast_group(group, replicas)?)
    }

    fn replicas(&self, nodes: &[usize]) -> Vec<Replica> {
        let nodes = nodes.iter().map(|node| &self.nodes[*node]);
        nodes
            .flat_map(|Node { rid, ports }| ports.iter().map(|&port| Replica { port, rid: *rid }))
            .collect()
    }
}
