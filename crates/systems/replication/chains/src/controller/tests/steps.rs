//! Each condition on which a step of the controller waits, alone.

use super::*;

/// Three servers with heartbeats, and first configurations that no server follows yet.
fn founded() -> World {
    let mut world = World::new(3);
    for server in 1..=3 {
        world.tell(server, Vec::new());
    }
    world
}

impl World {
    /// Configurations that the controller wants stored while `servers` alone are heard, for longer
    /// than it takes to find that the others died. Nothing is stored.
    fn decided_while_heard(&mut self, servers: &[u32]) -> Vec<ChainConfig> {
        for _ in 0..8 {
            self.now += 100_000;
            for server in servers {
                let heartbeat = self.heartbeat(*server);
                self.hear(*server, &heartbeat);
            }
            self.controller.handle_timeout(self.now);
        }
        std::iter::from_fn(|| self.controller.poll_record()).collect()
    }
}

#[test]
fn a_switch_of_an_earlier_controller_is_told_everything() {
    let mut world = World::new(3);
    world.pass(500_000);
    let switch = SocketAddrV4::new(Ipv4Addr::new(10, 9, 9, 9), 4795);
    let ask = Message::Subscribe {
        switch: 1,
        controller: 77,
        version: 1 << 40,
    };
    world
        .controller
        .handle_message(world.now, switch, &ask.to_vec());
    let sent = world.sent();
    let (_, message) = sent.iter().find(|(to, _)| *to == switch).unwrap();
    let Message::Rows { after, rows, .. } = message else {
        panic!("{message:?}");
    };
    assert_eq!((*after, rows.len()), (0, SHARDS.into()));
    // Each shard has one row, whatever became of its head.
    world.silent.insert(1);
    world.pass(500_000);
    assert_eq!(world.controller.rows.len(), SHARDS.into());
}

#[test]
fn a_chain_that_it_never_founded_shows_that_another_was_there() {
    let mut world = founded();
    world.controller = Controller::new(settings(), 2, [], 0).unwrap();
    let config = ChainConfig {
        chain: 3,
        epoch: 4,
        members: vec![world.servers[&1]],
        joining: None,
    };
    world.tell(1, vec![following(&config, false)]);
    assert!(world.controller.is_behind());
}

#[test]
fn who_is_behind_decides_nothing_when_servers_die() {
    let mut world = World::new(3);
    world.pass(500_000);
    world.silent.insert(3);
    world.pass(500_000);
    // Later than the founding, after which all founders would have to follow first.
    let old = world.log.clone();
    assert_eq!(old.last().map(|config| config.epoch), Some(2));
    world.silent.clear();
    world.pass(2_000_000);
    world.controller = Controller::new(settings(), 2, old.clone(), world.now).unwrap();
    let before = world.log.len();
    assert!(before > old.len());
    world.pass(200_000);
    world.silent.insert(2);
    world.pass(1_000_000);
    assert_eq!(world.log.len(), before);
}

#[test]
fn members_of_stored_chains_are_taken_for_dead_when_they_are_silent() {
    let mut world = World::new(3);
    world.pass(500_000);
    let log = world.log.clone();
    world.controller = Controller::new(settings(), 2, log, world.now).unwrap();
    world.silent.extend([1, 2]);
    world.pass(1_000_000);
    assert_eq!(world.controller.counters().deaths, 2);
    let members = world.controller.configurations().map(|c| c.members.len());
    assert!(members.into_iter().all(|members| members == 1));
}

#[test]
fn a_configuration_is_sent_when_it_is_stored_and_again_until_it_is_followed() {
    let mut world = founded();
    let config = world.controller.poll_record().unwrap();
    assert!(world.sent().is_empty());
    world.controller.handle_stored(world.now, &config);
    assert_eq!(world.sent().len(), config.members.len());
    world.now += settings().resend;
    world.controller.handle_timeout(world.now);
    assert_eq!(world.sent().len(), config.members.len());
    assert_eq!(
        world.controller.counters().resent,
        config.members.len() as u64
    );
}

/// Founders that live follow the first configuration before another comes: their disks would take
/// a later one for that of a chain that they have lost.
#[test]
fn founders_follow_the_first_configuration_before_one_of_them_is_cut_out() {
    let mut world = founded();
    world.store();
    let first = world.controller.configuration(3).unwrap().clone();
    assert_eq!((first.epoch, first.members.len()), (1, 3));
    // Server 3 dies, and no server follows anything yet.
    let beat = |world: &mut World, followers: &[u32]| {
        for _ in 0..8 {
            world.now += 50_000;
            for server in 1..=2 {
                let follows = followers.contains(&server);
                let statuses = follows.then(|| following(&first, false));
                world.tell(server, statuses.into_iter().collect());
            }
            world.store();
        }
        world.controller.configuration(3).unwrap().clone()
    };
    assert_eq!(beat(&mut world, &[]), first);
    assert_eq!(world.controller.counters().deaths, 1);
    assert_eq!(beat(&mut world, &[1]), first);
    let next = beat(&mut world, &[1, 2]);
    let members: BTreeSet<u32> = next.members.iter().map(|member| member.server).collect();
    assert_eq!((next.epoch, members), (2, BTreeSet::from([1, 2])));
}

#[test]
fn a_chain_takes_one_step_at_a_time() {
    let mut world = World::new(3);
    world.pass(500_000);
    let second = world.decided_while_heard(&[1, 2]);
    assert_eq!(second.len(), usize::from(SHARDS));
    assert!(second.iter().all(|config| config.epoch == 2));
    // The second configurations are not stored, so nothing follows from another death.
    assert_eq!(world.decided_while_heard(&[1]), []);
    assert_eq!(world.controller.counters().deaths, 2);
    for config in &second {
        world.controller.handle_stored(world.now, config);
    }
    // Who lives follows them.
    world.act();
    let third = world.decided_while_heard(&[1]);
    assert_eq!(third.len(), usize::from(SHARDS));
    assert!(third.iter().all(|config| config.epoch == 3));
}

#[test]
fn a_replica_joins_when_the_tail_says_so_and_behind_it() {
    let mut world = World::new(3);
    world.pass(500_000);
    world.silent.insert(3);
    world.pass(300_000);
    world.servers.insert(3, member(3, 9));
    world.followed.retain(|(server, _), _| *server != 3);
    world.tell(3, Vec::new());
    world.store();
    let sent = world.sent();
    let joining = world
        .controller
        .configurations()
        .find(|c| c.joining.is_some());
    let joining = joining.unwrap().clone();
    // The joining server gets the configuration, too.
    let told = |message: &Message| matches!(message, Message::Configure { config, .. } if *config == joining);
    let to_joining = sent.iter().filter(|(to, _)| *to == world.servers[&3].links);
    assert!(to_joining.into_iter().any(|(_, message)| told(message)));
    let tail = joining.members.last().unwrap().server;
    for server in [1, 2, 3] {
        world.tell(server, vec![following(&joining, false)]);
    }
    world.store();
    let present = world.controller.configuration(joining.chain).unwrap();
    assert_eq!(*present, joining);
    // The head's word means nothing.
    let head = joining.members[0].server;
    world.tell(head, vec![following(&joining, true)]);
    assert_eq!(world.controller.poll_record(), None);
    world.tell(tail, vec![following(&joining, true)]);
    world.store();
    let present = world.controller.configuration(joining.chain).unwrap();
    assert_eq!(present.members.last(), joining.joining.as_ref());
    assert_eq!(present.members[..2], joining.members[..]);
}

#[test]
fn a_server_that_died_lately_keeps_its_place() {
    let mut world = World::new(4);
    world.pass(2_000_000);
    world.silent.insert(1);
    world.pass(5_000_000);
    let configurations = world.controller.configurations();
    for config in configurations {
        assert_eq!(config.joining, None);
    }
    // A drained one stays where the place of a dead one is not taken.
    let has = |world: &World| {
        let chains = world.controller.configurations();
        let with = chains.filter(|c| c.members.contains(&world.servers[&2]));
        let wants = |c: &&ChainConfig| !world.controller.wanted(c.chain).contains(&1);
        let (kept, free): (Vec<_>, Vec<_>) = with.partition(|c| !wants(c));
        (kept.len(), free.len())
    };
    world.controller.drain(world.now, 2, true);
    world.act();
    let (before, _) = has(&world);
    world.pass(3_000_000);
    assert!(before > 0);
    assert_eq!(has(&world), (before, 0));
}
