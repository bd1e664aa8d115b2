//! Terms (rules 1 to 1d and 5): each part has a checker that misses it.

mod common;

use common::{all_good, reports, without};
use stateplane_history::replication::checkers;
use stateplane_sim::{Cluster, Disks, LinkQuality, Options, ProgramKind, Rule, Scenario};

/// Switches that are cut from one server or the other all the time, one way, and flows that change
/// their path often.
const SEVERED: Scenario = Scenario {
    severings: 40,
    cut: 200_000,
    flows: 8,
    alternate: 400,
    reroutes: 40,
    ..Scenario::mixed()
};

/// The same with servers that are cut out, stand still and come back.
const RESTLESS: Scenario = Scenario {
    severings: 60,
    cut: 300_000,
    flows: 8,
    bursts: 2_000,
    alternate: 400,
    reroutes: 60,
    cluster: Some(Cluster {
        deaths: 4,
        pauses: 40,
        pause: 200_000,
        cuts: 80,
        cut: 300_000,
        ..Cluster::failing()
    }),
    ..Scenario::failing_stores()
};

/// A switch and the head of its flows' shards part from all others, again and again, and the other
/// switch asks for the same flows.
const SPLIT: Scenario = Scenario {
    switches: 2,
    term: 40_000,
    backing: 120_000,
    flows: 8,
    bursts: 4_000,
    burst_length: 1,
    alternate: 500,
    reroutes: 0,
    deaths: 0,
    cuts: 0,
    stalls: 0,
    severings: 0,
    cluster: Some(Cluster {
        deaths: 0,
        pauses: 0,
        cuts: 0,
        controller_restarts: 0,
        splits: 6,
        split: (150_000, 300_000),
        ..Cluster::failing()
    }),
    ..Scenario::failing_stores()
};

/// The same, as the only server of some shards is drained, and links between servers on which that
/// takes a while.
const SPLIT_DRAINS: Scenario = Scenario {
    replicas: 1,
    chain_link: LinkQuality {
        delay: 4_000,
        jitter: 1_000,
        ..Scenario::calm().chain_link
    },
    flows: 12,
    traffic: 4_000_000,
    bursts: 8_000,
    cluster: Some(Cluster {
        deaths: 0,
        pauses: 0,
        cuts: 0,
        controller_restarts: 0,
        drains: true,
        splits: 6,
        split: (300_000, 500_000),
        ..Cluster::failing()
    }),
    ..SPLIT
};

/// The same with disks, which servers wait for most of the time.
const SPLIT_SLOW_DISKS: Scenario = Scenario {
    disks: Some(Disks {
        sync: 8_000,
        snapshot_after: 1 << 30,
        power_cuts: 0,
        deaths: 0,
        outage: (1_000, 10_000),
        rot: false,
        failures: 0,
    }),
    ..SPLIT
};

/// A fixed chain with disks that loses its power for short times, and leases that last longer.
const SHORT_OUTAGES: Scenario = Scenario {
    term: 200_000,
    backing: 400_000,
    flows: 8,
    bursts: 4_000,
    burst_length: 1,
    alternate: 500,
    recall: false,
    disks: Some(Disks {
        sync: 400,
        snapshot_after: 12_000,
        power_cuts: 4,
        deaths: 8,
        outage: (1_000, 10_000),
        rot: false,
        failures: 0,
    }),
    ..Scenario::mixed()
};

/// Links on which much comes late, switches whose terms lapse often, and few flows that both want.
const LATE_TERMS: Scenario = Scenario {
    severings: 60,
    cut: 100_000,
    flows: 4,
    bursts: 3_000,
    burst_length: 2,
    alternate: 500,
    ..common::LATE
};

/// Terms that lapse all the time, on links on which much comes late.
const LAPSING: Scenario = Scenario {
    term: 10_000,
    backing: 60_000,
    severings: 0,
    flows: 2,
    bursts: 6_000,
    traffic: 3_000_000,
    protocol_link: LinkQuality {
        loss: 200,
        jitter: 6_000,
        straggle: 300,
        ..Scenario::echoes().protocol_link
    },
    ..LATE_TERMS
};

const SINGLE: [&str; 1] = [checkers::SINGLE_OWNER];

fn model_without(rule: Rule, scenario: Scenario) {
    without(rule, ProgramKind::Model, scenario, &SINGLE, 12);
}

#[test]
fn severed_switches_are_good() {
    all_good(ProgramKind::Model, SEVERED, 60);
}

#[test]
fn restless_servers_are_good() {
    all_good(ProgramKind::Model, RESTLESS, 60);
}

#[test]
fn split_clusters_are_good() {
    all_good(ProgramKind::Model, SPLIT, 60);
    all_good(ProgramKind::Model, SPLIT_DRAINS, 30);
    all_good(ProgramKind::Model, SPLIT_SLOW_DISKS, 30);
}

#[test]
fn short_outages_and_late_links_are_good() {
    all_good(ProgramKind::Model, SHORT_OUTAGES, 30);
    all_good(ProgramKind::Model, LATE_TERMS, 30);
    all_good(ProgramKind::Model, LAPSING, 30);
}

#[test]
fn without_promises_the_checker_objects() {
    model_without(Rule::Promises, SEVERED);
}

#[test]
fn without_lasting_promises_the_checker_objects() {
    model_without(Rule::LastingPromises, RESTLESS);
}

#[test]
fn without_backing_the_checker_objects() {
    model_without(Rule::Backing, SPLIT);
}

#[test]
fn without_backed_configurations_the_checker_objects() {
    model_without(Rule::BackedConfiguration, SPLIT);
}

#[test]
fn without_the_joiners_backing_the_checker_objects() {
    model_without(Rule::JoinerBacks, SPLIT_DRAINS);
}

#[test]
fn without_waiting_as_new_head_the_checker_objects() {
    model_without(Rule::NewHeadWaits, SPLIT);
}

#[test]
fn without_waiting_long_as_new_head_the_checker_objects() {
    model_without(Rule::NewHeadWaitsLong, SPLIT);
}

#[test]
fn without_waiting_after_a_restart_the_checker_objects() {
    model_without(Rule::RestartWaits, SHORT_OUTAGES);
}

#[test]
fn without_deadlines_from_sending_the_checker_objects() {
    model_without(Rule::DeadlineFromSending, LATE_TERMS);
}

#[test]
fn without_noticed_lapses_the_checker_objects() {
    model_without(Rule::LapseNoticed, SEVERED);
}

#[test]
fn without_since_from_replies_the_checker_objects() {
    without(Rule::SinceReply, ProgramKind::Model, LAPSING, &SINGLE, 20);
}

#[test]
fn without_lease_since_the_checker_objects() {
    model_without(Rule::LeaseSince, SEVERED);
}

#[test]
fn without_grants_from_sending_the_checker_objects() {
    model_without(Rule::GrantSent, LATE_TERMS);
}

#[test]
fn without_terms_at_once_the_checker_objects() {
    model_without(Rule::TermAtOnce, SEVERED);
}

/// Good links, and a switch that answers no recall.
const DEAF: Scenario = Scenario {
    deaf: true,
    alternate: 400,
    ..Scenario::handover()
};

/// µs until a shard is withheld in the simulator, and for what takes as long as a message.
const WITHHELD: u64 = 50_000;
const SLACK: u64 = 5_000;

#[test]
fn a_request_waits_no_longer_than_until_a_silent_holder_is_outwaited() {
    let bound = WITHHELD + u64::from(DEAF.term) + SLACK;
    let options = Options::new(ProgramKind::Model).scenario(DEAF);
    for report in reports(options, 0..12) {
        assert!(report.is_good(), "{report}");
        assert!(report.coverage.withheld > 0, "{report}");
        assert!(report.coverage.longest_wait <= bound, "{report}");
    }
}

#[test]
fn without_withholding_requests_starve() {
    let options = Options::new(ProgramKind::Model).scenario(DEAF);
    for report in reports(options.without(Rule::Withholding), 0..12) {
        assert!(report.coverage.longest_wait > 1_000_000, "{report}");
    }
}
