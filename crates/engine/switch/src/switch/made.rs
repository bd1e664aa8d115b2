//! Frames that come by no link: the host makes them.

use super::Switch;
use stateplane_runtime::{Engine, InstanceType, Port, Preserved};

impl<E: Engine> Switch<E> {
    /// Takes a frame that the host made through the pipeline at `now_us`, as if it came by `port`. No
    /// link faces that port, as with those of packet generators: the program knows by the number
    /// what it has to do with the frame.
    pub fn handle_made(&mut self, now_us: u64, port: Port, frame: &[u8]) {
        self.advance(now_us);
        self.counters.generated += 1;
        let mut work = self.limits.work.max(1);
        let preserved = Preserved::default();
        self.run_ingress(frame, port, InstanceType::Normal, &preserved, 0, &mut work);
        self.run(work);
    }
}
