//! Parsers.

use super::program::{CONTEXT, Kind, Site, Writer};

impl Writer {
    pub(super) fn parsers(&mut self) {
        let sub = self.c.chance(40);
        self.site = Site::Parser;
        if sub {
            self.open(
                "parser Piece(packet_in packet, inout head_t head, inout bit<8> x, out bit<8> y)",
            );
            self.open("state start");
            self.line("packet.extract(head);");
            self.scoped(|writer| {
                writer.declare("head", Kind::Head, true);
                writer.declare("x", Kind::Bits(8), true);
                writer.line("y = x;");
                writer.declare("y", Kind::Bits(8), true);
                writer.statements(2, 1);
            });
            self.line("transition accept;");
            self.close();
            self.close();
        }
        let context = CONTEXT.replacen("inout headers_t", "out headers_t", 1);
        self.open(format_args!("parser MyParser(packet_in packet, {context})"));
        if sub {
            self.line("Piece() piece;");
        }
        self.scoped(|writer| {
            writer.line("bit<8> seen = 0;");
            writer.open("state start");
            writer.line("packet.extract(hdr.first);");
            writer.declare_context();
            // Of headers only the first is there.
            writer
                .scope
                .retain(|place| !place.text.starts_with("hdr.second"));
            let stacks = std::mem::take(&mut writer.stacks);
            writer.declare("seen", Kind::Bits(8), true);
            writer.refill("meta.inner.h", Kind::Head, 95);
            writer.scoped(|writer| {
                let count = writer.c.between(0, 2);
                writer.statements(count, 1);
                writer.verify();
                writer.go(0);
            });
            writer.close();
            writer.open("state items");
            writer.line("packet.extract(hdr.items.next);");
            writer.line("seen = seen + hdr.items.last.x;");
            writer.declare("hdr.items.last", Kind::Item, false);
            writer.scoped(|writer| {
                let count = writer.c.between(0, 1);
                writer.statements(count, 1);
                writer.verify();
                writer.go(1);
            });
            writer.close();
            writer
                .scope
                .retain(|place| !place.text.starts_with("hdr.items"));
            writer.open("state second");
            if sub {
                let (one, other) = (
                    writer.c.one_of(["meta.u", "meta.v", "seen"]),
                    writer.c.one_of(["meta.u", "meta.v", "seen"]),
                );
                let call = if writer.c.chance(50) {
                    format!("piece.apply(packet, hdr.second, {one}, {other});")
                } else {
                    format!(
                        "piece.apply(y = {other}, x = {one}, head = hdr.second, packet = packet);"
                    )
                };
                writer.line(call);
            } else {
                writer.line("packet.extract(hdr.second);");
            }
            writer.scoped(|writer| {
                let count = writer.c.between(0, 2);
                writer.statements(count, 1);
                writer.verify();
                writer.go(2);
            });
            writer.close();
            writer.open("state last");
            if writer.c.chance(50) {
                writer.line("meta.v = packet.lookahead<bit<8>>();");
            }
            if writer.c.chance(20) {
                writer.line("meta.inner.h = packet.lookahead<head_t>();");
            }
            if writer.c.chance(30) {
                writer.line("packet.advance(8);");
            }
            writer.line("meta.w = (bit<16>)seen;");
            writer.line("transition accept;");
            writer.close();
            writer.stacks = stacks;
        });
        self.close();
    }

    fn verify(&mut self) {
        if self.c.chance(25) {
            self.fuel = 6;
            let condition = self.expr(Kind::Bool, 2);
            let error = self.constant(Kind::Error);
            let or = self.c.one_of(["", " || meta.u != 1"]);
            let call = if self.c.chance(30) {
                format!("verify(toSignal = {error}, check = {condition}{or});")
            } else {
                format!("verify({condition}{or}, {error});")
            };
            self.line(call);
        }
    }

    /// A transition from the state of this number.
    fn go(&mut self, from: usize) {
        let mut targets = match from {
            0 => vec!["items", "second", "last"],
            1 => vec!["items", "items", "second", "last"],
            _ => vec!["last", "accept", "last"],
        };
        if self.c.chance(20) {
            targets.push("reject");
        }
        if self.c.chance(15) {
            let target = self.c.one_of(["last", "accept"]);
            return self.line(format_args!("transition {target};"));
        }
        let count = self.c.between(1, 2);
        let mut subjects = Vec::new();
        for _ in 0..count {
            self.fuel = 6;
            subjects.push(format!("{} & 8w7", self.expr(Kind::Bits(8), 2)));
        }
        self.open(format_args!("transition select({})", subjects.join(", ")));
        for _ in 0..self.c.between(1, 4) {
            let mut parts = Vec::new();
            for _ in 0..count {
                let (one, other) = (self.c.below(8), self.c.below(8));
                let place = self.c.one_of(["meta.u", "meta.v"]);
                parts.push(match self.c.below(7) {
                    0 => one.to_string(),
                    5 => format!("{place} & 7"),
                    6 => format!("{one} .. {place}"),
                    1 => format!("{one} &&& {other}"),
                    2 | 3 => format!("{} .. {}", one.min(other), one.max(other)),
                    _ => "_".to_owned(),
                });
            }
            let parts = match parts.as_slice() {
                [only] => only.clone(),
                parts => format!("({})", parts.join(", ")),
            };
            let target = targets[self.c.below(targets.len())];
            self.line(format_args!("{parts}: {target};"));
        }
        if from == 1 {
            // A parser has to be able to end.
            self.line("default: last;");
        } else if self.c.chance(60) {
            let target = targets[self.c.below(targets.len())];
            self.line(format_args!("default: {target};"));
        }
        self.close();
    }
}
