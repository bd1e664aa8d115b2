//! The controls of the pipeline, and controls that they apply.

use super::features::Feature;
use super::{Block, Callable, Direction, Maker, Objects, PORTS, Place, SETTING};
use crate::expr::{Expr, Ty};
use num_bigint::BigUint;

/// The parameters of ingress, egress, and the controls within.
const PARAMETERS: &str = "inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std";

impl Maker {
    fn add_readable(&mut self, fields: &[(&str, Ty)]) {
        for (name, ty) in fields {
            self.scope.push(Place {
                text: format!("std.{name}"),
                ty: *ty,
                writable: false,
            });
        }
    }

    fn standard_metadata(&mut self) {
        self.add_readable(&[
            ("ingress_port", Ty::Bits(9)),
            ("instance_type", Ty::Bits(32)),
            ("packet_length", Ty::Bits(32)),
            ("ingress_global_timestamp", Ty::Bits(48)),
            ("mcast_grp", Ty::Bits(16)),
            ("egress_spec", Ty::Bits(9)),
            ("checksum_error", Ty::Bits(1)),
            ("parser_error", Ty::Error),
        ]);
        self.scope.push(Place {
            text: "std.priority".to_owned(),
            ty: Ty::Bits(3),
            writable: true,
        });
        if self.block == Block::Egress {
            self.add_readable(&[
                ("egress_port", Ty::Bits(9)),
                ("egress_rid", Ty::Bits(16)),
                ("enq_timestamp", Ty::Bits(32)),
                ("enq_qdepth", Ty::Bits(19)),
                ("deq_timedelta", Ty::Bits(32)),
                ("deq_qdepth", Ty::Bits(19)),
                ("egress_global_timestamp", Ty::Bits(48)),
            ]);
        }
    }

    /// Ingress or egress, behind the controls that it applies.
    pub(super) fn pipeline_control(&mut self, block: Block) {
        self.block = block;
        let name = match block {
            Block::Ingress => "MyIngress",
            _ => "MyEgress",
        };
        let mut controls = Vec::new();
        if self.has(Feature::SubControl) {
            for _ in 0..self.c.between(1, 2) {
                controls.push(self.part(name));
            }
        }
        self.objects = Objects::default();
        self.scoped(|maker| {
            maker.standard_metadata();
            maker.open(format_args!("control {name}({PARAMETERS})"));
            for (control, instance, argument) in controls {
                maker.line(format_args!("{}({argument}) {instance};", control.name));
                let instance = Callable {
                    name: instance,
                    ..control
                };
                maker.objects.controls.push(instance);
            }
            maker.control_body(name);
            maker.close();
        });
    }

    /// Declares a control with its objects; returns it with the name that its instance
    /// in the control named `outer` is to have, and the argument of its constructor.
    fn part(&mut self, outer: &str) -> (Callable, String, String) {
        let (name, instance) = (self.fresh("Part"), self.fresh("part"));
        let mut params = Vec::new();
        for _ in 0..self.c.between(0, 2) {
            let direction = self
                .c
                .one_of([Direction::In, Direction::InOut, Direction::Out]);
            let ty = self.variable_type();
            params.push((direction, ty));
        }
        let constructor = self.c.chance(40);
        self.objects = Objects::default();
        self.scoped(|maker| {
            maker.standard_metadata();
            let list = maker.parameters(&params);
            let more = if list.is_empty() { "" } else { ", " };
            let brackets = if constructor {
                maker.scope.push(Place {
                    text: SETTING.to_owned(),
                    ty: Ty::Bits(8),
                    writable: false,
                });
                format!("(bit<8> {SETTING})")
            } else {
                String::new()
            };
            maker.open(format_args!(
                "control {name}({PARAMETERS}{more}{list}){brackets}"
            ));
            maker.control_body(&format!("{outer}.{instance}"));
            maker.close();
        });
        let argument = if constructor {
            let value = BigUint::from(self.c.between(1, 9));
            Expr::number(Ty::Bits(8), &value).to_string()
        } else {
            String::new()
        };
        let callable = Callable {
            name,
            params,
            result: None,
        };
        (callable, instance, argument)
    }

    /// Objects, actions, tables and the apply block.
    fn control_body(&mut self, path: &str) {
        self.declare_objects(path);
        let declared = self.scope.len();
        for _ in 0..self.c.between(0, 1) {
            self.local();
        }
        for _ in 0..self.c.between(1, 3) {
            let action = self.declare_action(true, None);
            self.objects.actions.push(action);
        }
        if self.has(Feature::Table) {
            for _ in 0..self.c.between(1, 3) {
                self.declare_table(path);
            }
        }
        self.open("apply");
        if path == "MyIngress" {
            let port = self.c.below(usize::from(PORTS));
            self.line(format_args!("std.egress_spec = {port};"));
        }
        let count = self.c.between(4, 12);
        self.statements(count, 2);
        if path == "MyEgress" && !self.reported.is_empty() {
            self.line("hdr.report.setValid();");
            for (number, text) in self.reported.clone().into_iter().enumerate() {
                self.line(format_args!("hdr.report.r{number} = {text};"));
            }
        }
        self.close();
        self.scope.truncate(declared);
    }

    pub(super) fn verify_control(&mut self) {
        self.open("control Verify(inout headers_t hdr, inout meta_t meta)");
        self.open("apply");
        if self.has(Feature::Checksum) {
            self.checksum("verify_checksum");
        }
        self.close();
        self.close();
    }

    pub(super) fn compute_control(&mut self) {
        self.open("control Compute(inout headers_t hdr, inout meta_t meta)");
        self.open("apply");
        if self.has(Feature::Checksum) {
            for _ in 0..self.c.between(1, 2) {
                self.checksum("update_checksum");
            }
        }
        self.close();
        self.close();
    }

    fn checksum(&mut self, function: &str) {
        let width = self.c.one_of([16, 16, 8, 32]);
        let Some(place) = self.writable(Ty::Bits(width)) else {
            return;
        };
        let payload = self.c.one_of(["", "_with_payload"]);
        let condition = match self.c.pick(&self.header_places) {
            Some(header) if self.c.chance(60) => format!("{}.isValid()", header.text.clone()),
            _ => {
                self.calls = false;
                let condition = self.expr(Ty::Bool, 1).to_string();
                self.calls = true;
                condition
            }
        };
        let values = self.field_values();
        let algorithm = self.algorithm();
        self.line(format_args!(
            "{function}{payload}({condition}, {values}, {place}, {algorithm});"
        ));
    }

    pub(super) fn deparser(&mut self) {
        self.open("control MyDeparser(packet_out packet, in headers_t hdr)");
        self.open("apply");
        if self.c.chance(30) {
            self.line("packet.emit(hdr);");
        } else {
            for member in self.members.clone() {
                if self.c.chance(90) {
                    self.line(format_args!("packet.emit(hdr.{member});"));
                }
            }
        }
        self.close();
        self.close();
    }
}
