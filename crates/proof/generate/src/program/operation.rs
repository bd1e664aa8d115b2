//! Calls of the architecture's functions and objects.

use super::features::Feature;
use super::{Block, Maker};
use crate::expr::{Expr, Ty};

impl Maker {
    /// A call that the block allows.
    pub(super) fn operation(&mut self) {
        match self.c.below(16) {
            0..=3 => self.register_operation(),
            4 => self.counter_operation(),
            5 => self.meter_operation(),
            6 | 7 if self.has(Feature::Hash) => self.hash(),
            8 if self.has(Feature::Random) => self.random(),
            9 | 10 => self.another_packet(),
            11 if self.has(Feature::Digest) && self.block == Block::Ingress => {
                let values = self.field_values();
                self.line(format_args!("digest(1, {values});"));
            }
            12 if self.has(Feature::Truncate) => {
                let length = self.c.between(14, 80);
                self.seldom(&format!("truncate(32w{length});"));
            }
            13 if self.has(Feature::Drop) => self.seldom("mark_to_drop(std);"),
            14 if self.has(Feature::Log) => self.log(),
            _ => self.steer(),
        }
    }

    /// A statement under a condition.
    fn seldom(&mut self, statement: &str) {
        let condition = self.expr(Ty::Bool, 2);
        self.line(format_args!("if ({condition}) {{ {statement} }}"));
    }

    /// Writes statements that choose the packet's destination.
    fn steer(&mut self) {
        if self.block != Block::Ingress {
            return;
        }
        if self.has(Feature::Multicast) && self.c.chance(30) {
            let group = self.c.between(0, 3);
            return self.seldom(&format!("std.mcast_grp = {group};"));
        }
        let port = self.expr(Ty::Bits(9), 2);
        self.line(format_args!("std.egress_spec = {port} & 7;"));
    }

    fn register_operation(&mut self) {
        let Some(register) = self.c.pick(&self.objects.registers).cloned() else {
            return;
        };
        let (name, index) = (register.name, self.index(register.size));
        let Some(ty) = register.element else {
            return match self.c.below(2) {
                0 => self.line(format_args!("{name}.read(meta.inner, {index});")),
                _ => self.line(format_args!("{name}.write({index}, meta.inner);")),
            };
        };
        match self.c.below(3) {
            0 => match self.writable(ty) {
                Some(place) => self.line(format_args!("{name}.read({place}, {index});")),
                None => {
                    let value = self.expr(ty, 2);
                    self.line(format_args!("{name}.write({index}, {value});"));
                }
            },
            1 => {
                let value = self.expr(ty, 2);
                self.line(format_args!("{name}.write({index}, {value});"));
            }
            _ => {
                // Read, change, write.
                let variable = self.fresh("v");
                self.line(format_args!("{ty} {variable};"));
                self.line(format_args!("{name}.read({variable}, {index});"));
                self.scope.push(super::Place {
                    text: variable.clone(),
                    ty,
                    writable: true,
                });
                let value = match ty {
                    Ty::Bits(_) | Ty::Int(_) => format!("{variable} + 1"),
                    _ => self.expr(ty, 2).to_string(),
                };
                self.line(format_args!("{name}.write({index}, {value});"));
            }
        }
    }

    fn counter_operation(&mut self) {
        if let Some((name, size)) = self.c.pick(&self.objects.counters).cloned() {
            let index = self.index(size);
            self.line(format_args!("{name}.count({index});"));
        }
    }

    fn meter_operation(&mut self) {
        if let Some((name, size)) = self.c.pick(&self.objects.meters).cloned() {
            let index = self.index(size);
            self.line(format_args!("{name}.execute_meter({index}, meta.m0);"));
        }
    }

    pub(super) fn algorithm(&mut self) -> &'static str {
        self.c.one_of([
            "HashAlgorithm.crc16",
            "HashAlgorithm.crc32",
            "HashAlgorithm.csum16",
            "HashAlgorithm.xor16",
            "HashAlgorithm.identity",
        ])
    }

    fn hash(&mut self) {
        let width = self.c.one_of([8, 16, 32]);
        let Some(result) = self.writable(Ty::Bits(width)) else {
            return;
        };
        let algorithm = if self.has(Feature::Random) && self.c.chance(15) {
            "HashAlgorithm.random"
        } else {
            self.algorithm()
        };
        let values = self.field_values();
        let bounds = self.c.one_of([8, 16, 32, 64]);
        let base = self.expr(Ty::Bits(bounds), 1);
        let max = if self.c.chance(60) {
            Expr::number(Ty::Bits(bounds), &self.c.value(bounds))
        } else {
            self.expr(Ty::Bits(bounds), 1)
        };
        self.line(format_args!(
            "hash({result}, {algorithm}, {base}, {values}, {max});"
        ));
    }

    fn random(&mut self) {
        let width = self.c.one_of([8, 16, 32]);
        let Some(result) = self.writable(Ty::Bits(width)) else {
            return;
        };
        let low = self.expr(Ty::Bits(width), 1);
        let high = self.expr(Ty::Bits(width), 1);
        self.line(format_args!("random({result}, {low}, {high});"));
    }

    /// Clones, resubmits or recirculates.
    fn another_packet(&mut self) {
        let list = self.c.between(1, self.field_lists);
        let session = self.c.between(1, 3);
        let kind = if self.block == Block::Ingress {
            "I2E"
        } else {
            "E2E"
        };
        match self.c.below(4) {
            0 if self.has(Feature::Clone) => {
                self.seldom(&format!("clone(CloneType.{kind}, {session});"));
            }
            1 | 2 if self.has(Feature::Clone) => self.seldom(&format!(
                "clone_preserving_field_list(CloneType.{kind}, {session}, {list});"
            )),
            _ if self.block == Block::Ingress && self.has(Feature::Resubmit) => {
                self.seldom(&format!("resubmit_preserving_field_list({list});"));
            }
            _ if self.block == Block::Egress && self.has(Feature::Recirculate) => {
                self.seldom(&format!("recirculate_preserving_field_list({list});"));
            }
            _ => {}
        }
    }

    fn log(&mut self) {
        match self.c.below(2) {
            0 => {
                let condition = self.expr(Ty::Bool, 2);
                let way = self.c.one_of(["assert", "assume"]);
                self.line(format_args!("{way}({condition});"));
            }
            _ => {
                let (one, other) = (self.expr(Ty::Bits(16), 2), self.expr(Ty::Bool, 2));
                self.line(format_args!(
                    "log_msg(\"one {{}} other {{}}\", {{ {one}, {other} }});"
                ));
            }
        }
    }
}
