use super::*;
use crate::look::Row;
use stateplane_sketch::Verdict;

/// A switch whose budget does not suffice and whose link loses a fiftieth.
fn pressed(threshold: Option<u64>) -> Local {
    let settings = Settings {
        rate: 100_000,
        budget_mbps: 5,
        loss_permille: 20,
        seed: 3,
        threshold,
        is_paced: false,
    };
    Local::new(settings, Traffic::drawn(3, 4_000)).expect("count-min runs")
}

fn looks(local: &mut Local, count: usize) -> Vec<Look> {
    let interval = Duration::from_millis(100);
    let looks = (0..count).map(|_| local.next(interval));
    looks.collect::<Result<_, _>>().expect("it looks")
}

#[test]
fn no_promise_is_short_and_no_flow_is_missed() {
    let mut local = pressed(None);
    let (mut compared, mut moved, mut off) = (0, 0, 0);
    for look in looks(&mut local, 12) {
        for group in &look.groups {
            let Some(told) = group.told else {
                continue;
            };
            moved += u64::from(told.within > 0);
            if let (Some(bound), Some(distance)) = (told.bound, group.off) {
                assert!(distance <= bound, "{group:?}");
                compared += 1;
                off += u64::from(distance > 0);
            }
            for Row {
                count, high, name, ..
            } in &group.rows
            {
                if let (Some(count), Some(high)) = (count, high) {
                    assert!(count <= high, "{name}: {group:?}");
                }
            }
        }
    }
    assert!(compared >= 24, "{compared} views were compared");
    assert!(moved > 0 && off > 0, "the budget sufficed: {moved}, {off}");
    let lost: u64 = local.next(Duration::ZERO).expect("it looks").groups[0].lost;
    assert!(lost > 0);
}

#[test]
fn flows_above_the_threshold_are_found() {
    let mut local = pressed(Some(400));
    let look = looks(&mut local, 8).pop().expect("a look");
    let group = &look.groups[0];
    assert_eq!(group.finding, Finding::HeavyHitters);
    let heavy: Vec<Key> = local.traffic.flows().collect();
    let heavy: Vec<Key> = heavy
        .into_iter()
        .filter(|key| local.traffic.packets_of(*key) > 440)
        .collect();
    assert!((10..60).contains(&heavy.len()), "{} are heavy", heavy.len());
    for key in heavy {
        let found = group.rows.iter().find(|row| row.name == key.to_string());
        let found = found.unwrap_or_else(|| panic!("{key} is missing"));
        // Other groups were looked at behind this one.
        let now = local.traffic.packets_of(key);
        assert!(found.count.is_some_and(|count| count > 400 && count <= now));
    }
    let certain = group.rows.iter();
    let certain = certain.filter(|row| row.verdict == Some(Verdict::Certainly));
    let (mut all, mut wrong) = (0, 0);
    for row in certain {
        all += 1;
        wrong += u64::from(row.count.is_some_and(|count| count <= 400));
    }
    // The low end misses with a probability of an eighth.
    assert!(all >= 10 && wrong * 4 <= all, "{wrong} of {all}");
    let names: Vec<Finding> = look.groups.iter().map(|group| group.finding).collect();
    assert_eq!(
        names,
        [
            Finding::HeavyHitters,
            Finding::SuperSpreaders,
            Finding::Victims
        ]
    );
    assert!(look.groups[1].off.is_some() && look.packets > Some(70_000));
}
