//! Registers, counters and meters.

use super::Maker;
use super::features::Feature;
use crate::expr::Ty;
use crate::session::Write;
use stateplane_runtime::{MeterConfig, Value};

/// A register array.
#[derive(Clone, Debug)]
pub(super) struct Register {
    pub(super) name: String,
    /// `None` for the struct `inner_t`.
    pub(super) element: Option<Ty>,
    pub(super) size: u32,
}

impl Maker {
    /// Declares the objects of a control named `control`.
    pub(super) fn declare_objects(&mut self, control: &str) {
        if self.has(Feature::Register) {
            for _ in 0..self.c.between(1, 3) {
                self.declare_register(control);
            }
        }
        if self.has(Feature::Counter) {
            let name = self.fresh("count");
            let size = self.c.between(1, 8);
            let kind = self.counter_kind();
            self.line(format_args!("counter({size}, {kind}) {name};"));
            self.objects.counters.push((name, size));
        }
        if self.has(Feature::Meter) {
            let name = self.fresh("rate");
            let size = self.c.between(1, 4);
            let kind = self.meter_kind();
            self.line(format_args!("meter({size}, {kind}) {name};"));
            for index in 0..u64::from(size) {
                if self.c.chance(70) {
                    let config = self.meter_config();
                    self.writes.push(Write::Meter {
                        meter: format!("{control}.{name}"),
                        index,
                        config,
                    });
                }
            }
            self.objects.meters.push((name, size));
        }
    }

    fn declare_register(&mut self, control: &str) {
        let name = self.fresh("reg");
        let size = self.c.between(1, 8);
        let element = if self.c.chance(15) && !self.inner_fields.is_empty() {
            None
        } else {
            Some(self.data_type())
        };
        let shown = element.map_or("inner_t".to_owned(), |ty| ty.to_string());
        self.line(format_args!("register<{shown}>({size}) {name};"));
        if let Some(width) = element.and_then(Ty::width)
            && self.c.chance(40)
        {
            let index = u64::from(self.c.between(0, size - 1));
            let value = Value::Bits(self.c.value(width));
            self.writes.push(Write::Register {
                register: format!("{control}.{name}"),
                index,
                value,
            });
        }
        self.objects.registers.push(Register {
            name,
            element,
            size,
        });
    }

    pub(super) fn counter_kind(&mut self) -> &'static str {
        self.c.one_of([
            "CounterType.packets",
            "CounterType.bytes",
            "CounterType.packets_and_bytes",
        ])
    }

    pub(super) fn meter_kind(&mut self) -> &'static str {
        self.c.one_of(["MeterType.packets", "MeterType.bytes"])
    }

    /// Rates at which frames that come every 50 µs see all three colours.
    pub(super) fn meter_config(&mut self) -> MeterConfig {
        let committed_rate = u64::from(self.c.between(1, 20_000));
        let committed_burst = u64::from(self.c.between(1, 500));
        MeterConfig {
            committed_rate,
            committed_burst,
            peak_rate: committed_rate * u64::from(self.c.between(1, 4)),
            peak_burst: committed_burst * u64::from(self.c.between(1, 4)),
        }
    }

    /// An index into an array of `size` elements; sometimes outside it.
    pub(super) fn index(&mut self, size: u32) -> String {
        if self.c.chance(50) {
            let at = self.c.between(0, size - 1);
            return format!("32w{at}");
        }
        let index = self.expr(Ty::Bits(32), 2);
        if self.c.chance(70) {
            format!("({index} & 3)")
        } else {
            index.to_string()
        }
    }
}
