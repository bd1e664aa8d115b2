use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::*;

fn member() -> impl Strategy<Value = Member> {
    any::<(u8, [u32; 3])>().prop_map(|(number, [switch, incarnation, address])| Member {
        number,
        switch,
        incarnation,
        address: address.into(),
    })
}

fn listed() -> impl Strategy<Value = Listed> {
    any::<(u8, u32, u64)>().prop_map(|(number, address, nonce)| Listed {
        number,
        address: address.into(),
        nonce,
    })
}

fn slot() -> impl Strategy<Value = Slot> {
    any::<(u16, u8, u8, u64)>().prop_map(|(incarnation, kind, lanes, nonce)| Slot {
        incarnation,
        state: match kind % 3 {
            0 => SlotState::Free,
            1 => SlotState::Open { lanes, nonce },
            _ => SlotState::Ended { lanes },
        },
    })
}

fn decision() -> impl Strategy<Value = Decision> {
    let numbers = any::<(u8, u32, u32, u16, bool)>();
    let leader = option::of(0u8..NOBODY);
    let members = || vec(member(), 0..4);
    let configs = vec(members(), 0..3);
    let lists = (option::of(member()), members(), vec(listed(), 0..4));
    prop_oneof![
        (numbers, leader, configs, lists).prop_map(
            |(
                (group, record, epoch, list, untried),
                leader,
                configs,
                (learner, former, receivers),
            )| {
                Decision::Group(GroupConfig {
                    group,
                    record,
                    epoch,
                    leader,
                    configs,
                    untried,
                    learner,
                    former,
                    list,
                    receivers,
                })
            }
        ),
        (any::<u32>(), vec(slot(), 0..9))
            .prop_map(|(version, slots)| Decision::Slots(SlotBook { version, slots })),
    ]
}

proptest! {
    #[test]
    fn decisions_survive_a_log(decision in decision()) {
        let bytes = decision.to_vec();
        prop_assert_eq!(Decision::parse(&bytes), Some(decision.clone()));
        for cut in 0..bytes.len() {
            prop_assert_ne!(Decision::parse(&bytes[..cut]), Some(decision.clone()));
        }
        if matches!(decision, Decision::Group(_)) {
            let mut long = bytes;
            long.push(0);
            prop_assert_eq!(Decision::parse(&long), None);
        }
    }

    #[test]
    fn any_bytes_give_a_decision_or_none(bytes in vec(any::<u8>(), 0..80), kind in 0u8..4) {
        let mut bytes = bytes;
        if let Some(first) = bytes.first_mut() {
            *first = kind;
        }
        if let Some(decision) = Decision::parse(&bytes) {
            prop_assert_eq!(decision.to_vec(), bytes);
        }
    }
}

#[test]
fn voters_are_those_of_all_configurations_and_holders_all_with_a_number() {
    let member = |number: u8| Member {
        number,
        switch: number.into(),
        incarnation: 1,
        address: Ipv4Addr::LOCALHOST,
    };
    let config = GroupConfig {
        configs: vec![
            vec![member(0), member(1), member(2)],
            vec![member(0), member(1), member(2), member(3)],
        ],
        leader: Some(3),
        learner: Some(member(5)),
        former: vec![member(6)],
        ..GroupConfig::default()
    };
    let numbers = |members: Vec<Member>| members.iter().map(|it| it.number).collect::<Vec<_>>();
    assert_eq!(config.members().len(), 4);
    assert_eq!(numbers(config.voters()), [0, 1, 2, 3]);
    assert_eq!(numbers(config.holders()), [0, 1, 2, 3, 5, 6]);
    assert_eq!(config.leading(), Some(member(3)));
}
