//! Prints a generated program with its session: `show [SEED [PACKETS]]`.

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut next = |default: u64| {
        let argument = arguments.next();
        argument.map_or(Some(default), |argument| argument.parse().ok())
    };
    let (Some(seed), Some(packets)) = (next(0), next(20)) else {
        eprintln!("usage: show [SEED [PACKETS]], both of them numbers");
        std::process::exit(2);
    };
    let generated = stateplane_generate::generate(seed, packets as usize);
    println!("{}/*\n{}*/", generated.program, generated.session);
}
