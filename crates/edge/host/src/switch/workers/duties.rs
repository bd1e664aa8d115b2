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
    use stateplane_wire::{ethernet, ipv4, replication, udp};
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

    /// A datagram of a store to the switch.
    fn from_store(message: &[u8]) -> Vec<u8> {
        let from = Ipv4Addr::new(10, 0, 0, 11);
        let datagram = udp::Repr {
            source_port: replication::PORT,
            destination_port: replication::PORT,
            payload: message,
        };
        let datagram = datagram.to_vec(from, OWN).unwrap();
        let packet = ipv4::Repr::new(from, OWN, ipv4::PROTOCOL_UDP, &datagram);
        let packet = packet.to_vec().unwrap();
        let frame = ethernet::Repr {
            destination: ethernet::Address([2, 0, 0, 0, 0, 1]),
            source: ethernet::Address([2, 0, 0, 0, 0, 11]),
            ethertype: ethernet::TYPE_IPV4,
            payload: &packet,
        };
        frame.to_vec().unwrap()
    }

    #[test]
    fn answers_to_heartbeats_and_older_stores_go_to_the_thread_with_control() {
        let (outputs, heard) = sync_channel(4);
        let control = Control {
            outputs,
            doorbell: Arc::new(Doorbell::new().unwrap()),
        };
        let duties = Duties {
            greetings: Some(GreetingFilter {
                port: STORE,
                address: OWN,
            }),
            ..Duties::default()
        };
        let admit = |port, frame: &[u8]| {
            let mut frame = frame.to_vec();
            duties.admit(0, (port, None), &mut frame, &control, &mut 0)
        };
        let (answer, older, own) = (
            from_store(b"SPT1 and so on"),
            from_store(&[1; 72]),
            from_store(&[2; 72]),
        );
        for frame in [&answer, &older] {
            assert_eq!(admit(STORE, frame), Admitted::Taken);
            let told = heard.try_recv();
            assert!(matches!(told, Ok(Output::Heard(told)) if told == *frame));
            // The greeter's port is another one.
            assert_eq!(admit(1, frame), Admitted::Pass(frame.len()));
        }
        assert_eq!(admit(STORE, &own), Admitted::Pass(own.len()));
        assert!(heard.try_recv().is_err());
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
