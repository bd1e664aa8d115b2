//! Treatment of a frame before the program sees it.

use super::lane::{Control, Output};
use crate::ports::MacAddress;
use crate::switch::greeter::{FrameKind, GreetingFilter};
use crate::switch::neighbours::Neighbours;
use crate::switch::sealing::{Opening, SharedSealing};
use stateplane_switch::Port;

/// A server's duties towards frames, as far as each worker has them.
#[derive(Clone, Default)]
pub(in crate::switch) struct Duties {
    pub(in crate::switch) neighbours: Neighbours,
    /// Tells which frames go to the greeter or answer heartbeats: the thread with control has both.
    pub(in crate::switch) greetings: Option<GreetingFilter>,
    pub(in crate::switch) sealing: Option<SharedSealing>,
}

/// Fate of a frame.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Admitted {
    /// The program gets this many first bytes.
    Pass(usize),
    /// It ends here.
    Taken,
    /// It ends here, and the seals have something to send back.
    SealAnswered,
    /// It ends here, and this is sent back.
    Answered(Vec<u8>),
}

impl Duties {
    /// Treats `frame`, which came at `now` to `port` with an interface of the address `hardware`.
    /// Frames that `control` had no room for are counted in `lost`.
    pub(super) fn admit(
        &self,
        now: u64,
        (port, hardware): (Port, Option<MacAddress>),
        frame: &mut [u8],
        control: &Control,
        lost: &mut u64,
    ) -> Admitted {
        let length = match &self.sealing {
            Some(sealing) => match sealing.open(now, port, frame) {
                Opening::Pass(length) => length,
                Opening::Dropped => return Admitted::Taken,
                Opening::Answered => return Admitted::SealAnswered,
            },
            None => frame.len(),
        };
        let frame = &frame[..length];
        if let Some(filter) = self.greetings.filter(|filter| filter.port == port) {
            let kind = filter.kind_of(frame);
            if kind != FrameKind::Other && !control.offer(Output::Heard(frame.to_vec())) {
                *lost += 1;
            }
            if matches!(kind, FrameKind::Greeting | FrameKind::Beat) {
                return Admitted::Taken;
            }
        }
        if self.neighbours.may_ask(frame)
            && let Some(answer) = self.neighbours.answer(port, hardware, frame)
        {
            return Admitted::Answered(answer);
        }
        Admitted::Pass(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::switch::neighbours::{Arp, OwnAddress};
    use crate::switch::workers::signals::Doorbell;
    use std::net::Ipv4Addr;
    use std::sync::Arc;
    use std::sync::mpsc::sync_channel;

    const STORE: Port = 2;
    const OWN: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);

    /// A question for the switch's address.
    fn question() -> Vec<u8> {
        let question = Arp {
            asks: true,
            sender_mac: [2, 0, 0, 0, 0, 9],
            sender: Ipv4Addr::new(10, 0, 0, 9),
            target: OWN,
        };
        question.frame([0xff; 6])
    }

    #[test]
    fn questions_are_answered_and_what_a_greeter_hears_is_passed_on() {
        let (outputs, heard) = sync_channel(1);
        let control = Control {
            outputs,
            doorbell: Arc::new(Doorbell::new().unwrap()),
        };
        let own = OwnAddress {
            port: None,
            address: OWN.into(),
            mac: None,
        };
        let duties = Duties {
            neighbours: Neighbours::new(vec![own]),
            greetings: Some(GreetingFilter {
                port: STORE,
                address: OWN,
            }),
            sealing: None,
        };
        let hardware = Some([2, 0, 0, 0, 0, 1]);
        let mut lost = 0;
        let mut admit = |port, mut frame: Vec<u8>| {
            duties.admit(0, (port, hardware), &mut frame, &control, &mut lost)
        };
        assert!(matches!(admit(1, question()), Admitted::Answered(answer)
                if answer[..6] == [2, 0, 0, 0, 0, 9]));
        assert!(heard.try_recv().is_err(), "no greeter at this port");
        assert!(matches!(admit(STORE, question()), Admitted::Answered(_)));
        assert_eq!(admit(STORE, vec![0; 60]), Admitted::Pass(60));
        // There is room for one.
        assert!(matches!(admit(STORE, question()), Admitted::Answered(_)));
        assert_eq!(lost, 1);
        assert!(matches!(heard.try_recv(), Ok(Output::Heard(frame)) if frame == question()));
    }
}
