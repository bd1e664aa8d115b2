//! Each rule of the protocol has a checker that misses it: with the rule turned off
//! it objects, with the rule on the same seeds are good.

mod common;

use common::{LATE, without};
use stateplane_history::replication::checkers;
use stateplane_sim::{Rule, Scenario};

/// Of scenarios in which nearly every seed misses the rule.
const SEEDS: u64 = 6;
/// Of those in which three of four do.
const MORE_SEEDS: u64 = 12;

fn counter_without(rule: Rule, scenario: Scenario, checkers: &[&str]) {
    without(rule, common::program("counter"), scenario, checkers, SEEDS);
}

#[test]
fn without_sequence_check_the_checker_objects() {
    let checkers = [checkers::COUNTER, checkers::DURABLE];
    counter_without(Rule::SequenceCheck, Scenario::echoes(), &checkers);
}

#[test]
fn without_epoch_check_the_checker_objects() {
    let checkers = [checkers::COUNTER, checkers::SINGLE_OWNER];
    let counter = common::program("counter");
    without(Rule::EpochCheck, counter, LATE, &checkers, MORE_SEEDS);
}

#[test]
fn without_whole_chain_acknowledgement_the_checker_objects() {
    let checkers = [checkers::DURABLE];
    counter_without(Rule::WholeChainAcknowledgement, Scenario::calm(), &checkers);
}

#[test]
fn without_lease_expiry_the_checker_objects() {
    let checkers = [checkers::SINGLE_OWNER];
    counter_without(Rule::LeaseExpiry, Scenario::tug_of_war(), &checkers);
}

#[test]
fn without_lease_deadline_the_checker_objects() {
    let checkers = [checkers::SINGLE_OWNER];
    counter_without(Rule::LeaseDeadline, LATE, &checkers);
}

#[test]
fn without_install_once_the_checker_objects() {
    let checkers = [checkers::COUNTER];
    counter_without(Rule::InstallOnce, Scenario::echoes(), &checkers);
}

#[test]
fn without_release_once_the_checker_objects() {
    let checkers = [checkers::OUTPUTS];
    counter_without(Rule::ReleaseOnce, Scenario::echoes(), &checkers);
}

#[test]
fn without_incarnation_check_the_checker_objects() {
    let checkers = [checkers::SINGLE_OWNER];
    counter_without(Rule::IncarnationCheck, Scenario::restarts(), &checkers);
}

#[test]
fn without_message_checksum_the_checker_objects() {
    let checkers = [checkers::COUNTER, checkers::SINGLE_OWNER];
    let badly_damaged = Scenario {
        damage: 150,
        ..Scenario::damaged()
    };
    counter_without(Rule::MessageChecksum, badly_damaged, &checkers);
}

#[test]
fn without_retransmission_the_checker_objects() {
    let checkers = [checkers::PROGRESS];
    let often_cut = Scenario {
        cuts: 10,
        ..Scenario::mixed()
    };
    counter_without(Rule::Retransmission, often_cut, &checkers);
}

#[test]
fn without_key_comparison_the_checker_objects() {
    let checkers = [checkers::COUNTER, checkers::SINGLE_OWNER];
    counter_without(Rule::KeyComparison, Scenario::calm(), &checkers);
}

#[test]
fn without_key_comparison_the_nat_takes_the_mapping_of_another() {
    let checkers = [checkers::NAT];
    let nat = common::program("nat");
    without(Rule::KeyComparison, nat, Scenario::calm(), &checkers, SEEDS);
}

#[test]
fn without_lease_deadline_the_nat_uses_mappings_that_have_ended() {
    let checkers = [checkers::NAT];
    let nat = common::program("nat");
    without(Rule::LeaseDeadline, nat, LATE, &checkers, SEEDS);
}

#[test]
fn without_whole_chain_acknowledgement_the_nat_uses_mappings_before_they_are_kept() {
    let checkers = [checkers::DURABLE];
    let nat = common::program("nat");
    let rule = Rule::WholeChainAcknowledgement;
    without(rule, nat, Scenario::calm(), &checkers, SEEDS);
}
