//! The controller's decisions as rows of a switch's tables.

use stateplane_multicast_setup::{Group, Member, Rows};
use stateplane_wire::multicast_control::{self as control, Row, role};
use std::collections::BTreeMap;

/// The controller's newest decisions.
#[derive(Clone, Debug)]
pub(super) struct View {
    switch: u32,
    longest: u16,
    groups: BTreeMap<u8, control::Group>,
    sessions: BTreeMap<u16, control::Session>,
}

impl View {
    /// A switch of this number that was told nothing; payloads have at most `longest` bytes.
    pub(super) fn new(switch: u32, longest: u16) -> View {
        View {
            switch,
            longest,
            groups: BTreeMap::new(),
            sessions: BTreeMap::new(),
        }
    }

    /// Takes rows of a VIEW.
    pub(super) fn take(&mut self, rows: Vec<Row>) {
        for row in rows {
            match row {
                Row::Group(row) => {
                    self.groups.insert(row.group, row);
                }
                Row::Session(row) => {
                    self.sessions.insert(row.slot, row);
                }
            }
        }
    }

    /// The rows that start `incarnation` of the switch has.
    pub(super) fn rows(&self, incarnation: u32) -> Rows {
        let mut rows = Rows::default();
        for (number, row) in &self.groups {
            if !row.leader.is_unspecified() {
                rows.leaders.insert(*number, row.leader);
            }
            let own =
                |it: &&control::Member| (it.switch, it.incarnation) == (self.switch, incarnation);
            let Some(own) = row.members.iter().find(own) else {
                continue;
            };
            // A member of an earlier configuration answers by its number, and gets no entries.
            let others = row
                .members
                .iter()
                .filter(|member| member.role != role::FORMER && member.number != own.number);
            let others = others.map(|member| Member {
                number: member.number,
                incarnation: member.incarnation,
                address: member.address,
            });
            let receivers = row.receivers.iter();
            let group = Group {
                member: own.number,
                longest: self.longest,
                others: others.collect(),
                receivers: receivers.map(|it| (it.number, it.address)).collect(),
            };
            rows.groups.insert(*number, group);
        }
        let sessions = self.sessions.values().filter(|session| session.lanes > 0);
        rows.sessions = sessions.map(|it| (it.slot, it.lanes)).collect();
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn address(host: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, 0, 0, host)
    }

    fn member(number: u8, role: u8, switch: u32, incarnation: u32) -> control::Member {
        control::Member {
            number,
            role,
            switch,
            incarnation,
            address: address(switch as u8),
        }
    }

    fn group(group: u8, leader: Ipv4Addr, members: Vec<control::Member>) -> Row {
        Row::Group(control::Group {
            group,
            record: 1,
            epoch: 1,
            leader,
            list: 0,
            members,
            receivers: vec![control::Receiver {
                number: 2,
                address: address(99),
            }],
        })
    }

    #[test]
    fn a_switch_has_the_groups_of_its_start_all_leaders_and_the_sessions_with_lanes() {
        let mut view = View::new(1, 1400);
        let members = vec![
            member(0, role::MEMBER, 1, 10),
            member(1, role::MEMBER, 2, 20),
            member(2, role::FORMER, 3, 30),
            member(3, role::LEARNER, 4, 40),
        ];
        let session = |slot, lanes, state| Row::Session(control::Session { slot, lanes, state });
        view.take(vec![
            group(0, address(2), members),
            // Its number there is that of an earlier start.
            group(1, address(3), vec![member(0, role::MEMBER, 1, 9)]),
            group(
                2,
                Ipv4Addr::UNSPECIFIED,
                vec![member(5, role::LEARNER, 1, 10)],
            ),
            session(3, 8, control::slot::OPEN),
            session(4, 0, control::slot::ENDED),
        ]);
        let rows = view.rows(10);
        assert_eq!(
            rows.leaders,
            BTreeMap::from([(0, address(2)), (1, address(3))])
        );
        assert_eq!(rows.sessions, BTreeMap::from([(3, 8)]));
        assert_eq!(rows.groups.keys().copied().collect::<Vec<u8>>(), [0, 2]);
        let first = &rows.groups[&0];
        let others: Vec<(u8, u32)> = first
            .others
            .iter()
            .map(|it| (it.number, it.incarnation))
            .collect();
        assert_eq!(
            (first.member, first.longest, others),
            (0, 1400, vec![(1, 20), (3, 40)])
        );
        assert_eq!(first.receivers, BTreeMap::from([(2, address(99))]));
        assert_eq!(rows.groups[&2].member, 5);
        // A later row of a group takes the place of the earlier one.
        view.take(vec![
            group(0, address(4), Vec::new()),
            session(3, 0, control::slot::ENDED),
        ]);
        let rows = view.rows(10);
        assert_eq!((rows.leaders[&0], rows.sessions.len()), (address(4), 0));
        assert!(!rows.groups.contains_key(&0));
    }
}
