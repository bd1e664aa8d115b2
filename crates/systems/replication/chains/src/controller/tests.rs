mod invariants;
mod steps;

use core::net::Ipv4Addr;

use super::*;

const SHARDS: u16 = 8;

fn member(server: u32, incarnation: u32) -> Member {
    let address = |net| SocketAddrV4::new(Ipv4Addr::new(10, 0, net, server as u8), 4793);
    Member {
        server,
        incarnation,
        requests: address(1),
        links: address(2),
    }
}

fn heartbeat(from: Member, number: u64, statuses: Vec<ChainStatus>) -> Vec<u8> {
    let heartbeat = Message::Heartbeat(Heartbeat {
        from,
        number,
        statuses,
    });
    heartbeat.to_vec()
}

/// Status of a server that follows `config`, and says that another has joined if `joined`.
fn following(config: &ChainConfig, joined: bool) -> ChainStatus {
    ChainStatus {
        chain: config.chain,
        epoch: config.epoch,
        joined,
        suspects: false,
        lost: false,
        applied: 0,
        base: 0,
    }
}

/// Servers that follow each message at once, apart from those that are silent.
struct World {
    controller: Controller,
    now: u64,
    servers: BTreeMap<u32, Member>,
    silent: BTreeSet<u32>,
    numbers: BTreeMap<u32, u64>,
    followed: BTreeMap<(u32, u16), ChainConfig>,
    log: Vec<ChainConfig>,
    /// A server and the chain of which its disk lost entries, in this configuration.
    lost: Option<(u32, u16, u32)>,
}

fn settings() -> Settings {
    Settings {
        joins: 2,
        ..Settings::new(SHARDS, 3)
    }
}

impl World {
    fn new(servers: u32) -> World {
        let servers = (1..=servers).map(|server| (server, member(server, 1)));
        World {
            controller: Controller::new(settings(), 1, [], 0).unwrap(),
            now: 0,
            servers: servers.collect(),
            silent: BTreeSet::new(),
            numbers: BTreeMap::new(),
            followed: BTreeMap::new(),
            log: Vec::new(),
            lost: None,
        }
    }

    fn beat(&mut self, server: u32, suspects: Option<u16>) {
        let from = self.servers[&server];
        let followed = self.followed.iter();
        let statuses = followed.filter(|((of, _), _)| *of == server);
        let statuses = statuses.map(|((_, chain), config)| ChainStatus {
            suspects: suspects == Some(*chain),
            lost: self.lost == Some((server, *chain, config.epoch)),
            ..following(
                config,
                config.joining.is_some() && config.members.last() == Some(&from),
            )
        });
        let statuses = statuses.collect();
        self.tell(server, statuses);
        self.act();
    }

    fn act(&mut self) {
        while let Some(config) = self.controller.poll_record() {
            self.log.push(config.clone());
            self.controller.handle_stored(self.now, &config);
        }
        while let Some(transmit) = self.controller.poll_transmit() {
            let Ok(Message::Configure { config, .. }) = Message::parse(&transmit.bytes) else {
                continue;
            };
            let mut servers = self.servers.values();
            let Some(to) = servers.find(|m| m.links == transmit.to) else {
                continue;
            };
            let to = to.server;
            let followed = self.followed.get(&(to, config.chain));
            let is_older = followed.is_some_and(|present| present.epoch > config.epoch);
            if !self.silent.contains(&to) && !is_older {
                self.followed.insert((to, config.chain), config);
            }
        }
        let joining = self
            .controller
            .configurations()
            .filter(|c| c.joining.is_some());
        assert!(joining.count() <= settings().joins.into());
    }

    /// Messages that the controller sends next, with their destinations.
    fn sent(&mut self) -> Vec<(SocketAddrV4, Message)> {
        let sent = std::iter::from_fn(|| self.controller.poll_transmit());
        let parsed = |transmit: Transmit| (transmit.to, Message::parse(&transmit.bytes).unwrap());
        sent.map(parsed).collect()
    }

    /// Stores what the controller decides, and tells it of each.
    fn store(&mut self) {
        while let Some(config) = self.controller.poll_record() {
            self.controller.handle_stored(self.now, &config);
        }
    }

    /// Time passes until no chain has `former`, which started anew: before it would be taken
    /// for dead, as soon as nothing is heard of it.
    fn pass_until_it_is_noticed(&mut self, former: &Member) {
        let end = self.now + settings().detection;
        let named = |world: &World| {
            let mut chains = world.controller.configurations();
            chains.any(|config| config.members.contains(former))
        };
        while named(self) {
            self.pass(10_000);
            assert!(self.now < end);
        }
    }

    /// The next heartbeat of `server`, with `statuses`.
    fn next_heartbeat(&mut self, server: u32, statuses: Vec<ChainStatus>) -> Vec<u8> {
        let number = self.numbers.entry(server).or_default();
        *number += 1;
        heartbeat(self.servers[&server], *number, statuses)
    }

    /// The next heartbeat of a server that follows its configurations.
    fn heartbeat(&mut self, server: u32) -> Vec<u8> {
        let followed = self.followed.iter();
        let statuses = followed.filter(|((of, _), _)| *of == server);
        let statuses = statuses.map(|(_, config)| following(config, false));
        let statuses = statuses.collect();
        self.next_heartbeat(server, statuses)
    }

    /// Lets the controller hear `heartbeat`; what it wants stored is left to the caller.
    fn hear(&mut self, server: u32, heartbeat: &[u8]) {
        let from = self.servers[&server].links;
        self.controller.handle_message(self.now, from, heartbeat);
    }

    /// Lets the controller hear the next heartbeat of `server`, with `statuses`.
    fn tell(&mut self, server: u32, statuses: Vec<ChainStatus>) {
        let heartbeat = self.next_heartbeat(server, statuses);
        self.hear(server, &heartbeat);
    }

    /// Time passes, with a heartbeat of every server that is not silent each 50 ms.
    fn pass(&mut self, time: u64) {
        let end = self.now + time;
        while self.now < end {
            self.now += 50_000;
            self.controller.handle_timeout(self.now);
            self.act();
            let servers: Vec<u32> = self.servers.keys().copied().collect();
            for server in servers {
                if !self.silent.contains(&server) {
                    self.beat(server, None);
                }
            }
        }
    }

    /// Numbers grow by one in each chain, and two configurations that follow each
    /// other have a member in common.
    fn check_log(&self) {
        let mut newest: BTreeMap<u16, &ChainConfig> = BTreeMap::new();
        for config in &self.log {
            if let Some(before) = newest.insert(config.chain, config) {
                assert_eq!(config.epoch, before.epoch + 1);
                let common = config.members.iter().any(|m| before.members.contains(m));
                assert!(common, "{before:?} and {config:?}");
                let new = config
                    .members
                    .iter()
                    .filter(|m| !before.members.contains(m));
                assert!(new.clone().count() <= 1);
                assert!(new.clone().all(|m| config.members.last() == Some(m)));
                assert!(new.clone().all(|m| before.joining == Some(*m)));
            }
        }
    }
}

#[test]
fn chains_are_made_when_enough_servers_are_there() {
    let mut world = World::new(3);
    world.silent.insert(3);
    world.pass(500_000);
    assert_eq!(world.controller.configurations().count(), 0);
    world.silent.clear();
    world.pass(500_000);
    assert!(world.controller.is_settled());
    world.check_log();
}

#[test]
fn a_dead_server_is_cut_out_of_all_its_chains_at_once_and_comes_back() {
    let mut world = World::new(3);
    world.pass(500_000);
    world.silent.insert(2);
    let before = world.log.len();
    world.pass(300_000);
    assert_eq!(world.log.len(), before + usize::from(SHARDS));
    for config in world.controller.configurations() {
        assert!(config.members.iter().all(|m| m.server != 2));
        assert_eq!(config.epoch, 2);
    }
    // Another start has nothing of what the earlier one had.
    world.servers.insert(2, member(2, 9));
    world.followed.retain(|(server, _), _| *server != 2);
    world.silent.clear();
    world.pass(2_000_000);
    assert!(world.controller.is_settled());
    assert_eq!(world.controller.counters().joined, SHARDS.into());
    world.check_log();
}

#[test]
fn a_chain_lacks_a_replica_from_a_death_until_another_has_the_whole_state() {
    let mut world = World::new(3);
    world.pass(500_000);
    let lacking = |world: &World| {
        let chains = 0..SHARDS;
        let since = chains.map(|chain| world.controller.lacking_since(chain));
        since.collect::<Vec<_>>()
    };
    assert!(lacking(&world).iter().all(Option::is_none));
    world.silent.insert(2);
    let died = world.now;
    world.pass(3_000_000);
    for since in lacking(&world) {
        let since = since.unwrap();
        assert!((died..died + 500_000).contains(&since), "{since}");
    }
    world.servers.insert(2, member(2, 9));
    world.followed.retain(|(server, _), _| *server != 2);
    world.silent.clear();
    world.pass(2_000_000);
    assert!(lacking(&world).iter().all(Option::is_none));
}

#[test]
fn the_last_member_is_never_cut_out() {
    let mut world = World::new(3);
    world.pass(500_000);
    world.silent.extend([1, 2, 3]);
    world.pass(1_000_000);
    world.silent.remove(&2);
    world.pass(1_000_000);
    for config in world.controller.configurations() {
        let members: Vec<u32> = config.members.iter().map(|m| m.server).collect();
        assert_eq!(members, [2]);
    }
    world.check_log();
}

#[test]
fn a_server_that_is_long_dead_is_replaced_and_one_that_comes_takes_its_share() {
    let mut world = World::new(4);
    world.pass(2_000_000);
    world.silent.insert(1);
    world.pass(12_000_000);
    assert!(world.controller.is_settled());
    for config in world.controller.configurations() {
        assert_eq!(config.members.len(), 3);
    }
    world.servers.insert(5, member(5, 1));
    world.pass(5_000_000);
    assert!(world.controller.is_settled());
    let mut members = world.controller.configurations().flat_map(|c| &c.members);
    assert!(members.any(|m| m.server == 5));
    world.check_log();
}

#[test]
fn a_drained_server_loses_its_chains_only_to_others_that_have_joined() {
    let mut world = World::new(4);
    world.pass(2_000_000);
    world.controller.drain(world.now, 2, true);
    world.act();
    world.pass(5_000_000);
    assert!(world.controller.is_settled());
    let mut members = world.controller.configurations().flat_map(|c| &c.members);
    assert!(members.all(|m| m.server != 2));
    for config in &world.log {
        assert!(config.members.len() >= 3, "{config:?}");
    }
    world.check_log();
}

#[test]
fn a_drained_server_stays_while_who_should_take_its_place_is_away() {
    let mut world = World::new(4);
    world.pass(2_000_000);
    world.silent.insert(4);
    world.pass(1_000_000);
    let with = |world: &World, server| {
        let members = world.controller.configurations().flat_map(|c| &c.members);
        members.filter(|member| member.server == server).count()
    };
    assert_eq!(with(&world, 4), 0);
    let before = with(&world, 2);
    assert!(before > 0);
    world.controller.drain(world.now, 2, true);
    world.act();
    world.pass(1_000_000);
    assert_eq!(with(&world, 2), before);
    world.silent.clear();
    world.pass(5_000_000);
    assert_eq!(with(&world, 2), 0);
    assert!(world.controller.is_settled());
    world.check_log();
}

#[test]
fn a_neighbour_that_is_not_heard_is_cut_out_and_tried_again_later() {
    let mut world = World::new(3);
    world.pass(500_000);
    let first = world.controller.configuration(0).unwrap().clone();
    world.beat(first.members[0].server, Some(0));
    let present = world.controller.configuration(0).unwrap();
    assert!(!present.members.contains(&first.members[1]));
    assert_eq!(present.joining, None);
    assert_eq!(world.controller.counters().suspected, 1);
    world.pass(500_000);
    let present = world.controller.configuration(0).unwrap();
    assert!(!present.members.contains(&first.members[1]));
    assert_eq!(present.joining, None);
    world.pass(3_000_000);
    assert!(world.controller.is_settled());
    world.check_log();
}

#[test]
fn a_controller_goes_on_from_its_log_and_never_from_less() {
    let mut world = World::new(3);
    world.pass(500_000);
    world.silent.insert(3);
    world.pass(500_000);
    let whole = world.log.clone();
    let next =
        |stored: &[ChainConfig], now| Controller::new(settings(), 2, stored.to_vec(), now).unwrap();
    world.controller = next(&whole, world.now);
    world.silent.clear();
    world.pass(2_000_000);
    assert!(world.controller.is_settled());
    world.check_log();
    // With an older log it sees that it lacks something.
    world.controller = next(&whole[..8], world.now);
    world.pass(2_000_000);
    assert!(world.controller.is_behind());
}

#[test]
fn its_own_absence_is_nobodys_death() {
    let mut world = World::new(3);
    world.pass(500_000);
    world.now += 10_000_000;
    world.controller.handle_timeout(world.now);
    assert_eq!(world.controller.counters().deaths, 0);
    world.silent.insert(1);
    world.pass(400_000);
    assert_eq!(world.controller.counters().deaths, 1);
}

#[test]
fn late_heartbeats_of_an_earlier_start_do_not_count() {
    let mut world = World::new(3);
    world.pass(500_000);
    let earlier = world.servers[&1];
    world.servers.insert(1, member(1, 7));
    world.followed.retain(|(server, _), _| *server != 1);
    world.pass(100_000);
    let bytes = heartbeat(earlier, 1 << 40, Vec::new());
    world
        .controller
        .handle_message(world.now, earlier.links, &bytes);
    let known = world
        .controller
        .servers()
        .find(|view| view.member.server == 1);
    assert_eq!(known.unwrap().member.incarnation, 7);
}

#[test]
fn a_late_heartbeat_of_an_earlier_start_does_not_count_in_a_silence() {
    let mut world = World::new(3);
    world.pass(500_000);
    let (earlier, number) = (world.servers[&1], world.numbers[&1]);
    world.servers.insert(1, member(1, 7));
    world.followed.retain(|(server, _), _| *server != 1);
    world.pass(1_000_000);
    assert!(world.controller.is_alive(&member(1, 7)));
    world.silent.insert(1);
    world.pass(150_000);
    forge(&mut world, earlier, number);
    assert!(world.controller.is_alive(&member(1, 7)));
    // A heartbeat that the server may have sent since counts: it cannot be told from that of a
    // restarted server.
    forge(&mut world, earlier, number + 1);
    assert!(world.controller.is_alive(&earlier));
}

/// A heartbeat that server 1 did not send.
fn forge(world: &mut World, from: Member, number: u64) {
    forge_with(world, from, number, Vec::new());
}

fn forge_with(world: &mut World, from: Member, number: u64, statuses: Vec<ChainStatus>) {
    let nowhere = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 1), 9);
    let bytes = heartbeat(from, number, statuses);
    world.controller.handle_message(world.now, nowhere, &bytes);
    world.act();
}

#[test]
fn a_forged_number_is_no_death() {
    let mut world = World::new(3);
    world.pass(500_000);
    let before = world.log.len();
    let from = world.servers[&1];
    forge(&mut world, from, u64::MAX);
    world.pass(1_000_000);
    assert_eq!(world.controller.counters().deaths, 0);
    assert_eq!(world.log.len(), before);
    // Its heartbeats are heard again: it dies of silence, and not before.
    world.silent.insert(1);
    world.pass(100_000);
    assert_eq!(world.controller.counters().deaths, 0);
    world.pass(200_000);
    assert_eq!(world.controller.counters().deaths, 1);
}

#[test]
fn a_forged_epoch_ends_no_decisions_for_good() {
    let mut world = World::new(3);
    world.pass(500_000);
    let from = world.servers[&1];
    let number = world.numbers[&1];
    forge_with(&mut world, from, number + 1, vec![far(0)]);
    assert!(world.controller.is_behind());
    // Its own heartbeats do not repeat it.
    world.pass(2_000_000);
    assert!(!world.controller.is_behind());
    let before = world.log.len();
    world.silent.insert(3);
    world.pass(2_000_000);
    assert!(world.log.len() > before);
}

/// Status that no server reports if it follows its orders.
fn far(chain: u16) -> ChainStatus {
    ChainStatus {
        chain,
        epoch: u32::MAX,
        joined: false,
        suspects: false,
        lost: false,
        applied: 0,
        base: 0,
    }
}

/// A server that nobody has, also one that was about to join, or a chain that there cannot be.
#[test]
fn what_an_invented_server_follows_ends_no_decisions_for_good() {
    for (joins, chain) in [(false, 0), (true, 0), (false, SHARDS)] {
        let mut world = World::new(3);
        world.pass(500_000);
        let invented = member(9, 1);
        let joining = |world: &World| {
            let mut chains = world.controller.configurations();
            let joining = chains.find(|config| config.joining == Some(invented));
            joining.map(|config| config.chain)
        };
        if joins {
            forge(&mut world, invented, 1);
        }
        let chain = joining(&world).unwrap_or(chain);
        assert_eq!(joining(&world).is_some(), joins);
        forge_with(&mut world, invented, 1 << 40, vec![far(chain)]);
        world.silent.insert(3);
        world.pass(9_000_000);
        assert!(world.controller.is_behind(), "it may be heard again");
        world.pass(2_000_000);
        assert!(!world.controller.is_behind());
        assert_eq!(joining(&world), None);
        let mut chains = world.controller.configurations();
        assert!(chains.all(|config| config.members.len() == 2));
        world.check_log();
    }
}

/// A silent server may keep a decision made without this controller, if it is a member of
/// the chain, or if the chain was never founded.
#[test]
fn what_a_silent_keeper_follows_is_not_forgotten() {
    let mut world = World::new(3);
    world.pass(500_000);
    let from = world.servers[&2];
    let number = world.numbers[&2];
    forge_with(&mut world, from, number + 1, vec![far(0)]);
    world.silent.insert(2);
    world.pass(20_000_000);
    assert!(world.controller.is_behind());
    let mut world = World::new(2);
    forge_with(&mut world, member(9, 1), 1, vec![far(3)]);
    world.pass(20_000_000);
    world.servers.insert(3, member(3, 1));
    world.pass(1_000_000);
    assert!(world.controller.is_behind());
    assert!(world.log.is_empty());
}

#[test]
fn an_invented_start_of_a_server_that_is_heard_is_not_believed() {
    let mut world = World::new(3);
    world.pass(500_000);
    let before = world.log.len();
    for incarnation in 100..120 {
        forge(&mut world, member(1, incarnation), 1);
        world.pass(50_000);
    }
    let elsewhere = Member {
        links: SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 1), 9),
        ..world.servers[&1]
    };
    forge(&mut world, elsewhere, u64::MAX - 1);
    world.pass(500_000);
    assert_eq!(world.controller.counters().deaths, 0);
    assert_eq!(world.log.len(), before);
    let known: Vec<Member> = world.controller.servers().map(|it| it.member).collect();
    let present: Vec<Member> = world.servers.values().copied().collect();
    assert_eq!(known, present);
}

#[test]
fn an_invented_start_of_a_silent_server_gives_way_to_the_server() {
    for times in [1, 20] {
        let mut world = World::new(3);
        world.pass(500_000);
        world.silent.insert(1);
        world.pass(150_000);
        for number in 0..times {
            forge(&mut world, member(1, 100 + number), 1 << 40);
            world.pass(100_000);
        }
        world.silent.clear();
        world.pass(3_000_000);
        assert!(world.controller.is_alive(&world.servers[&1]), "{times}");
        assert!(world.controller.is_settled(), "{times}");
        world.check_log();
    }
}

#[test]
fn servers_that_are_none_are_forgotten() {
    let mut world = World::new(3);
    world.pass(500_000);
    for number in 0..3000 {
        forge(&mut world, member(1000 + number, 1), 1);
    }
    assert_eq!(world.controller.servers().count(), 1024);
    assert_eq!(world.controller.counters().refused, 3000 - 1021);
    world.pass(11_000_000);
    world.servers.insert(9, member(9, 1));
    world.pass(2_000_000);
    assert!(world.controller.is_alive(&member(9, 1)));
    assert!(world.controller.is_settled());
    world.check_log();
}

#[test]
fn switches_learn_where_heads_are() {
    let mut world = World::new(3);
    world.pass(500_000);
    let mut table = crate::Rows::new(1);
    let switch = SocketAddrV4::new(Ipv4Addr::new(10, 9, 9, 9), 4795);
    let learn = |world: &mut World, table: &mut crate::Rows| {
        let mut learned = BTreeMap::new();
        loop {
            world
                .controller
                .handle_message(world.now, switch, &table.ask());
            let mut news = Vec::new();
            while let Some(transmit) = world.controller.poll_transmit() {
                if transmit.to == switch {
                    news.extend(table.handle_message(&transmit.bytes));
                }
            }
            if news.is_empty() {
                return learned;
            }
            learned.extend(news.into_iter().map(|row| (row.shard, row)));
        }
    };
    assert_eq!(learn(&mut world, &mut table).len(), usize::from(SHARDS));
    assert!(learn(&mut world, &mut table).is_empty());
    let sign = table.ask_for_a_sign();
    world.controller.handle_message(world.now, switch, &sign);
    let sent = std::iter::from_fn(|| world.controller.poll_transmit());
    let answers: Vec<_> = sent.filter(|transmit| transmit.to == switch).collect();
    assert_eq!(answers.len(), 1);
    assert!(table.handle_message(&answers[0].bytes).is_empty());
    world.silent.insert(1);
    world.pass(500_000);
    let learned = learn(&mut world, &mut table);
    for (shard, row) in &learned {
        let config = world.controller.configuration(*shard).unwrap();
        assert_eq!(row.head, config.members[0].requests);
        assert_eq!(row.epoch, config.epoch);
    }
    assert_eq!(learned.len(), usize::from(SHARDS));
}

#[test]
fn any_bytes_are_survived() {
    let mut world = World::new(3);
    world.pass(500_000);
    let here = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 1);
    let mut bytes = b"SPK1".to_vec();
    for byte in 0..=255u8 {
        bytes.push(byte.wrapping_mul(37));
        world.controller.handle_message(world.now, here, &bytes);
    }
    assert_eq!(world.controller.counters().malformed, 256);
}

/// Configurations that left, with where they went.
fn sent(controller: &mut Controller) -> Vec<(SocketAddrV4, ChainConfig)> {
    let transmits = std::iter::from_fn(|| controller.poll_transmit());
    let configurations = transmits.filter_map(|transmit| match Message::parse(&transmit.bytes) {
        Ok(Message::Configure { config, .. }) => Some((transmit.to, config)),
        _ => None,
    });
    configurations.collect()
}

#[test]
fn a_shard_whose_keepers_are_all_lost_stays_down() {
    let mut world = World::new(3);
    world.pass(500_000);
    let present: Vec<ChainConfig> = world.controller.configurations().cloned().collect();
    // All are gone at once, start again without what they had, and others come.
    world.silent.extend([1, 2, 3]);
    world.pass(500_000);
    for server in 1..=5 {
        world.servers.insert(server, member(server, 20 + server));
    }
    world.followed.clear();
    world.silent.clear();
    world.pass(15_000_000);
    // This controller does not found the shards anew.
    let log = world.log.clone();
    let after: Vec<ChainConfig> = world.controller.configurations().cloned().collect();
    assert_eq!(after, present);
    // Nor does one that starts with its log: whom it names, nobody else replaces.
    world.controller = Controller::new(settings(), 2, log, world.now).unwrap();
    world.pass(15_000_000);
    for config in world.controller.configurations() {
        assert!(!config.members.is_empty(), "{config:?}");
        let named = config.members.iter().chain(&config.joining);
        assert!(
            named.clone().all(|member| member.incarnation == 1),
            "{config:?}"
        );
    }
}

#[test]
fn a_configuration_is_sent_to_nobody_before_it_is_stored() {
    let mut world = World::new(3);
    world.pass(500_000);
    // Server 4 comes, and is to join some chains. Nobody hears of that yet, and all say what
    // they follow.
    world.servers.insert(4, member(4, 1));
    let heartbeat = world.heartbeat(4);
    world.hear(4, &heartbeat);
    let waiting: Vec<ChainConfig> = std::iter::from_fn(|| world.controller.poll_record()).collect();
    assert!(!waiting.is_empty());
    let is_new = |config: &ChainConfig| waiting.contains(config);
    for _ in 0..10 {
        world.now += 20_000;
        world.controller.handle_timeout(world.now);
        for server in 1..=4 {
            let heartbeat = world.heartbeat(server);
            world.hear(server, &heartbeat);
        }
        let early = sent(&mut world.controller);
        assert!(early.iter().all(|(_, config)| !is_new(config)), "{early:?}");
        assert_eq!(world.controller.poll_record(), None, "one at a time");
    }
    // Nor is there another one, though who was to join has started anew.
    world.servers.insert(4, member(4, 2));
    let heartbeat = world.heartbeat(4);
    world.hear(4, &heartbeat);
    assert_eq!(world.controller.poll_record(), None, "one at a time");
    for config in &waiting {
        world.controller.handle_stored(world.now, config);
    }
    let told = sent(&mut world.controller);
    assert!(
        waiting
            .iter()
            .all(|config| told.iter().any(|(_, it)| it == config))
    );
}

#[test]
fn a_member_that_leaves_hears_of_it_when_that_is_stored() {
    let mut world = World::new(3);
    world.pass(500_000);
    let heartbeat = world.heartbeat(3);
    world.silent.insert(3);
    while world.controller.counters().deaths == 0 {
        world.now += 50_000;
        world.controller.handle_timeout(world.now);
        for server in 1..=2 {
            let heartbeat = world.heartbeat(server);
            world.hear(server, &heartbeat);
        }
    }
    let waiting: Vec<ChainConfig> = std::iter::from_fn(|| world.controller.poll_record()).collect();
    assert_eq!(waiting.len(), usize::from(SHARDS));
    // It lives, and says that it follows what was before.
    world.numbers.insert(3, 1 << 20);
    let late = world.heartbeat(3);
    world.hear(3, &heartbeat);
    world.hear(3, &late);
    let leaver = world.servers[&3].links;
    assert!(
        sent(&mut world.controller)
            .iter()
            .all(|(to, _)| *to != leaver)
    );
    for config in &waiting {
        world.controller.handle_stored(world.now, config);
    }
    sent(&mut world.controller);
    let late = world.heartbeat(3);
    world.hear(3, &late);
    let told = sent(&mut world.controller);
    let told = told.iter().filter(|(to, _)| *to == leaver);
    assert_eq!(told.count(), usize::from(SHARDS));
}

#[test]
fn nothing_joins_before_all_follow_the_present_configuration() {
    let mut world = World::new(3);
    world.pass(500_000);
    // Server 3 starts anew, and whatever is sent to server 2 from here on is lost.
    world.servers.insert(3, member(3, 9));
    world.followed.retain(|(server, _), _| *server != 3);
    let before = world.followed.clone();
    for _ in 0..10 {
        world.now += 50_000;
        world.controller.handle_timeout(world.now);
        world.act();
        for server in 1..=3 {
            let known = before.iter().filter(|((of, _), _)| *of == 2);
            world
                .followed
                .extend(known.map(|(of, config)| (*of, config.clone())));
            let heartbeat = world.heartbeat(server);
            world.hear(server, &heartbeat);
            world.act();
        }
    }
    for config in world.controller.configurations() {
        assert_eq!((config.epoch, config.joining), (2, None), "{config:?}");
    }
    world.pass(2_000_000);
    assert!(world.controller.is_settled());
    world.check_log();
}

#[test]
fn a_heartbeat_that_comes_again_keeps_nobody_alive() {
    let mut world = World::new(3);
    world.pass(500_000);
    let heartbeat = world.heartbeat(2);
    world.hear(2, &heartbeat);
    world.silent.insert(2);
    for _ in 0..10 {
        world.pass(50_000);
        world.hear(2, &heartbeat);
        world.act();
    }
    assert_eq!(world.controller.counters().deaths, 1);
    assert!(!world.controller.is_alive(&world.servers[&2]));
}

#[test]
fn what_a_late_heartbeat_says_of_chains_does_not_count() {
    let mut world = World::new(3);
    world.pass(500_000);
    let first = world.controller.configuration(0).unwrap().clone();
    let head = first.members[0].server;
    let number = world.numbers[&head];
    // It was sent before the last one that was heard, when the head heard no successor.
    let suspects = ChainStatus {
        suspects: true,
        ..following(&first, false)
    };
    let late = heartbeat(first.members[0], number - 1, vec![suspects]);
    world.hear(head, &late);
    world.act();
    assert_eq!(world.controller.configuration(0), Some(&first));
    assert_eq!(world.controller.counters().suspected, 0);
}

#[test]
fn a_server_that_starts_anew_before_it_is_missed_is_another() {
    let mut world = World::new(3);
    world.pass(500_000);
    world.servers.insert(2, member(2, 9));
    world.followed.retain(|(server, _), _| *server != 2);
    world.pass_until_it_is_noticed(&member(2, 1));
    for config in world.controller.configurations() {
        assert!(!config.members.contains(&member(2, 9)), "{config:?}");
    }
    world.pass(2_000_000);
    assert!(world.controller.is_settled());
    assert_eq!(world.controller.counters().deaths, 0);
    assert_eq!(world.controller.counters().joined, SHARDS.into());
    world.check_log();
}

#[test]
fn switches_are_sent_to_a_head_that_follows() {
    let mut world = World::new(3);
    world.pass(500_000);
    let shard = world
        .log
        .iter()
        .find(|config| config.members[0].server == 1);
    let shard = shard.unwrap().chain;
    // The first of three is cut out; the next one becomes the head.
    world.silent.insert(1);
    while world.controller.counters().deaths == 0 {
        world.now += 50_000;
        world.controller.handle_timeout(world.now);
        for server in 2..=3 {
            let heartbeat = world.heartbeat(server);
            world.hear(server, &heartbeat);
        }
    }
    while let Some(config) = world.controller.poll_record() {
        world.controller.handle_stored(world.now, &config);
    }
    let present = world.controller.configuration(shard).unwrap().clone();
    let row_after = |world: &mut World, follower: Member| {
        let entry = (follower.server, shard);
        world.followed.insert(entry, present.clone());
        let heartbeat = world.heartbeat(follower.server);
        world.hear(follower.server, &heartbeat);
        world.controller.heads[&shard].epoch
    };
    let [head, tail] = present.members[..] else {
        panic!("{present:?}");
    };
    assert!(row_after(&mut world, tail) < present.epoch);
    assert_eq!(row_after(&mut world, head), present.epoch);
}

#[test]
fn no_more_replicas_join_at_once_than_the_settings_say() {
    let mut world = World::new(3);
    world.pass(500_000);
    world.servers.insert(2, member(2, 9));
    world.followed.retain(|(server, _), _| *server != 2);
    let mut most = 0;
    let mut joining: BTreeMap<u16, bool> = BTreeMap::new();
    world.pass(3_000_000);
    for config in &world.log {
        joining.insert(config.chain, config.joining.is_some());
        most = most.max(joining.values().filter(|joins| **joins).count());
    }
    assert_eq!(most, usize::from(settings().joins));
    assert!(world.controller.is_settled());
}

/// A chain whose members were all replaced at once would have no member with the state.
#[test]
fn a_joining_replica_that_dies_is_let_go_and_another_start_joins() {
    let mut world = World::new(3);
    world.pass(500_000);
    world.silent.insert(3);
    world.pass(300_000);
    world.servers.insert(3, member(3, 9));
    world.followed.retain(|(server, _), _| *server != 3);
    let heartbeat = world.heartbeat(3);
    world.hear(3, &heartbeat);
    world.act();
    let joins = |world: &World, incarnation| {
        let mut joining = world.controller.configurations();
        joining.any(|config| config.joining == Some(member(3, incarnation)))
    };
    assert!(joins(&world, 9));
    world.servers.insert(3, member(3, 10));
    world.followed.retain(|(server, _), _| *server != 3);
    world.pass(settings().detection.div_ceil(2));
    let heartbeat = world.heartbeat(3);
    world.hear(3, &heartbeat);
    world.act();
    assert!(!joins(&world, 9));
    world.silent.clear();
    world.pass(3_000_000);
    assert!(world.controller.is_settled());
    world.check_log();
}

#[test]
fn a_server_that_lost_its_part_of_a_chain_takes_a_copy_again() {
    let mut world = World::new(3);
    world.pass(500_000);
    let before = world.controller.configuration(0).unwrap().clone();
    let head = before.members[0];
    world.lost = Some((head.server, 0, before.epoch));
    world.beat(head.server, None);
    let after = world.controller.configuration(0).unwrap();
    assert_eq!(after.epoch, before.epoch + 1);
    assert!(!after.members.contains(&head), "{after:?}");
    assert!(after.members.len() == 2 && after.joining.is_none());
    world.pass(30_000_000);
    let present = world.controller.configuration(0).unwrap();
    assert_eq!(present.members.len(), 3, "{present:?}");
    assert!(present.members.contains(&head) && present.members[0] != head);
    // The other chains are as they were.
    let others = world.controller.configurations();
    assert!(
        others
            .filter(|config| config.chain > 0)
            .all(|c| c.epoch == 1)
    );
    world.check_log();
}

#[test]
fn the_last_server_alive_stays_whatever_it_lost() {
    let mut world = World::new(3);
    world.pass(500_000);
    let members = world.controller.configuration(0).unwrap().members.clone();
    world.silent.extend(members[1..].iter().map(|m| m.server));
    world.pass(2_000_000);
    let alone = world.controller.configuration(0).unwrap().clone();
    assert_eq!(alone.members, members[..1]);
    world.lost = Some((members[0].server, 0, alone.epoch));
    world.pass(1_000_000);
    assert_eq!(world.controller.configuration(0), Some(&alone));
}
