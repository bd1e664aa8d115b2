use super::report::{FaultReport, LocksReport, ServiceReport};
use super::resource::{Contents, Request, WriteLine};
use super::{Service, page};

fn request(token: u64, write: Option<u64>) -> Request {
    Request {
        worker: 1,
        token,
        write,
    }
}

#[test]
fn the_resource_refuses_a_token_below_the_highest_that_wrote() {
    let mut contents = Contents::default();
    let answer = |contents: &mut Contents, token, write| {
        let answer = contents.take(&request(token, write));
        (answer.value, answer.accepted)
    };
    assert_eq!(answer(&mut contents, 3, None), (0, true));
    assert_eq!(answer(&mut contents, 3, Some(7)), (7, true));
    assert_eq!(answer(&mut contents, 2, Some(9)), (7, false));
    assert_eq!(answer(&mut contents, 3, Some(8)), (8, true));
    // A read raises nothing.
    assert_eq!(answer(&mut contents, 5, None), (8, true));
    assert_eq!(answer(&mut contents, 4, Some(9)), (9, true));
}

/// A write each 10 ms from 0 to 10 s, but for `silence` from second 3 on.
fn writes(silence_ms: u64) -> Vec<WriteLine> {
    let times = (0..1000).map(|at| at * 10_000);
    let times = times.filter(|at| !(3_000_000..3_000_000 + silence_ms * 1000).contains(at));
    let lines = times.zip(1..).map(|(at, value)| WriteLine {
        at_us: 1_000_000 + at,
        worker: value as u32 % 3,
        token: value,
        value,
        accepted: true,
    });
    let mut lines: Vec<WriteLine> = lines.collect();
    lines.push(WriteLine {
        token: 5,
        accepted: false,
        ..lines[lines.len() - 1]
    });
    lines
}

fn report(service: Service, writes: &[WriteLine]) -> ServiceReport {
    let fault = FaultReport {
        what: "head s1 killed".to_owned(),
        from_s: 3.0,
        until_s: 5.0,
        longest_wait_ms: None,
    };
    ServiceReport::new(service, 3, writes, [1_000_000, 11_000_000], vec![fault], 1)
}

#[test]
fn the_longest_wait_is_that_between_two_writes_during_the_fault() {
    let told = report(Service::Stateplane, &writes(150));
    assert!((told.faults[0].longest_wait_ms.unwrap() - 160.0).abs() < 1e-6);
    assert!(
        (told.quiet_wait_ms - 10.0).abs() < 1e-6,
        "{}",
        told.quiet_wait_ms
    );
    assert!((told.quiet_per_second - 100.0).abs() < 1e-6);
    assert_eq!((told.refused, told.lost_sessions), (1, 1));
    let all = LocksReport::new(vec![told, report(Service::Etcd, &writes(1500))]);
    assert!(all.met(), "{all}");
}

#[test]
fn a_wait_counts_for_the_fault_in_which_it_begins() {
    let fault = |what: &str, from_s, until_s| FaultReport {
        what: what.to_owned(),
        from_s,
        until_s,
        longest_wait_ms: None,
    };
    let faults = vec![fault("a killed", 3.0, 5.0), fault("b killed", 6.0, 8.0)];
    let span = [1_000_000, 11_000_000];
    let told = ServiceReport::new(Service::Etcd, 3, &writes(3500), span, faults, 0);
    let waits = told
        .faults
        .iter()
        .map(|fault| fault.longest_wait_ms.map(f64::round));
    assert_eq!(waits.collect::<Vec<_>>(), [Some(3510.0), Some(10.0)]);
}

#[test]
fn each_fault_is_found() {
    let met = |own: &[WriteLine], etcd: u64| {
        let own = report(Service::Stateplane, own);
        LocksReport::new(vec![own, report(Service::Etcd, &writes(etcd))]).met()
    };
    assert!(met(&writes(150), 1500));
    assert!(!met(&writes(250), 1500), "longer than the bound");
    assert!(!met(&writes(150), 400), "longer than a third of etcd's");
    let mut late = writes(150);
    late.retain(|write| write.accepted);
    assert!(!met(&late, 1500), "no late write is refused");
    type Spoil = fn(&mut WriteLine);
    let faults: [Spoil; 3] = [
        |write| write.value -= 1,
        |write| write.token = 3,
        |write| write.token -= 1,
    ];
    for (number, spoil) in faults.into_iter().enumerate() {
        let mut spoiled = writes(150);
        spoil(&mut spoiled[500]);
        assert!(!met(&spoiled, 1500), "fault {number}");
    }
    let stopped: Vec<WriteLine> = writes(150).into_iter().take(800).collect();
    assert!(!met(&stopped, 1500), "writes stop before the end");
    assert!(!LocksReport::new(Vec::new()).met());
}

#[test]
fn the_page_has_a_panel_for_each_service() {
    let services = Service::ALL.map(|service| report(service, &writes(150)));
    let report = LocksReport::new(services.to_vec());
    let page = page(&report).unwrap().html();
    for needed in [
        "<svg",
        "Stateplane: writes",
        "etcd: writes",
        "head s1 killed",
    ] {
        assert!(page.contains(needed), "{needed}");
    }
}
