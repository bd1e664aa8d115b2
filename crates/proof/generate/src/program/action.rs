//! Actions.

use super::features::Feature;
use super::{Callable, Direction, Maker};

impl Maker {
    /// Declares an action with what `more` adds to its body; `None` of a table's
    /// direct meter.
    pub(super) fn declare_action(&mut self, directed: bool, more: Option<&str>) -> Callable {
        let name = self.fresh("act");
        let mut params = Vec::new();
        if directed {
            for _ in 0..self.c.between(0, 2) {
                let direction = self
                    .c
                    .one_of([Direction::In, Direction::InOut, Direction::Out]);
                let ty = self.data_type();
                params.push((direction, ty));
            }
        }
        for _ in 0..self.c.between(0, 2) {
            let ty = self.data_type();
            params.push((Direction::Data, ty));
        }
        self.in_action = true;
        self.scoped(|maker| {
            let list = maker.parameters(&params);
            maker.open(format_args!("action {name}({list})"));
            for line in more.iter() {
                maker.line(line);
            }
            let count = maker.c.between(1, 4);
            maker.statements(count, 1);
            if maker.has(Feature::Exit) && maker.c.chance(5) {
                maker.line("exit;");
            }
            maker.close();
        });
        self.in_action = false;
        Callable {
            name,
            params,
            result: None,
        }
    }
}
