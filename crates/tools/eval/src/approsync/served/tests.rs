use super::*;

const LOCATIONS: u32 = 256;

/// Waits until nothing is under way, and gives the packets that came.
fn quiet(served: &Served) -> u64 {
    served.pause(true);
    std::thread::sleep(Duration::from_millis(100));
    let before = served.packets();
    served.settle();
    assert_eq!(served.packets(), before, "packets come no more");
    before
}

#[test]
fn views_and_p4runtime_read_what_packets_counted() {
    for bits in [16, 64] {
        let served = Served::start(Subject::counters(LOCATIONS, bits).unwrap()).unwrap();
        let group = served.plan().groups[0].name.clone();
        let register = served.plan().groups[0].registers[0].register.clone();
        let (mut views, mut p4runtime) = (served.views().unwrap(), served.p4runtime().unwrap());
        let early = views.read(&group).unwrap();
        assert_eq!(early.len(), LOCATIONS as usize);
        std::thread::sleep(Duration::from_millis(50));
        let packets = quiet(&served);
        let seen = views.read_fresh(&group).unwrap();
        let mask = u64::MAX >> (64 - bits);
        assert_eq!(p4runtime.read(&register).unwrap(), seen);
        let sum = seen
            .iter()
            .fold(0, |sum: u64, value| sum.wrapping_add(*value));
        assert_eq!(sum & mask, packets & mask, "{bits} bits");
        assert!(early.iter().sum::<u64>() <= packets);
        let within = served.within(&group, <[u64]>::to_vec).unwrap();
        assert_eq!(within, seen);
    }
}

#[test]
fn what_is_written_is_in_all_views_and_in_the_registers() {
    let served = Served::start(Subject::counters(LOCATIONS, 64).unwrap()).unwrap();
    let group = served.plan().groups[0].name.clone();
    let register = served.plan().groups[0].registers[0].register.clone();
    let (mut views, mut p4runtime) = (served.views().unwrap(), served.p4runtime().unwrap());
    quiet(&served);
    let values: Vec<u64> = (0..u64::from(LOCATIONS))
        .map(|at| at * at * at + 1)
        .collect();
    views.write_all(&group, &values).unwrap();
    assert_eq!(views.read(&group).unwrap(), values);
    served.settle();
    assert_eq!(p4runtime.read(&register).unwrap(), values);
    assert_eq!(views.cut(&group).unwrap(), values);
    served.settle();
    views.reset(&group, 7).unwrap();
    served.settle();
    assert_eq!(p4runtime.read(&register).unwrap(), [7; LOCATIONS as usize]);
    assert!(
        p4runtime.write(&register, &values).is_err(),
        "it is in view"
    );
    let beside = "Process.beside";
    p4runtime.write(beside, &values).unwrap();
    assert_eq!(p4runtime.read(beside).unwrap(), values);
    p4runtime.reset(beside, 9).unwrap();
    assert_eq!(p4runtime.read(beside).unwrap(), [9; LOCATIONS as usize]);
    assert_eq!(views.read_fresh(&group).unwrap(), [7; LOCATIONS as usize]);
    assert!(p4runtime.read("nothing").is_err());
    assert!(views.read("nothing").is_err());
}
