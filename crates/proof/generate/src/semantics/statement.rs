//! Statements.

use super::program::{Callable, Kind, STACK, Site, Writer};

/// Maximum size of a statement's expressions.
const FUEL: u32 = 14;

impl Writer {
    pub(super) fn statements(&mut self, count: u32, depth: u32) {
        for _ in 0..count {
            self.statement(depth);
        }
    }

    /// Statements in a scope of their own.
    fn block(&mut self, depth: u32) {
        let count = self.c.between(1, 2);
        self.scoped(|writer| writer.statements(count, depth.saturating_sub(1)));
    }

    fn statement(&mut self, depth: u32) {
        self.fuel = FUEL;
        match self.c.below(24) {
            0..=4 => self.assign(),
            5 => self.operate(),
            6..=8 => self.call(),
            9 => self.local(),
            10 => self.initialise(),
            11 => self.header_operation(),
            12 | 13 if depth > 0 => self.conditional(depth),
            14 if depth > 0 && self.loops < 2 && self.site != Site::Parser => self.repeat(depth),
            15 if depth > 0 && self.site != Site::Parser => self.switch(depth),
            16 if depth > 0 => self.shadow(depth),
            17 if self.loops > 0 => {
                let condition = self.expr(Kind::Bool, 2);
                let way = self.c.one_of(["break", "continue"]);
                self.line(format_args!("if ({condition}) {{ {way}; }}"));
            }
            18 if self.site != Site::Parser => self.leave(),
            19..=21 if self.site == Site::Apply => self.apply(depth),
            _ => self.assign(),
        }
    }

    pub(super) fn assign(&mut self) {
        self.fuel = FUEL;
        let kind = self.kind();
        if let Some(place) = self.lvalue(kind) {
            let value = self.expr(kind, 3);
            self.line(format_args!("{place} = {value};"));
        }
    }

    /// A compound assignment.
    fn operate(&mut self) {
        self.fuel = FUEL;
        let kind = self
            .c
            .one_of([Kind::Bits(8), Kind::Bits(8), Kind::Bits(16), Kind::Int(8)]);
        if let Some(place) = self.lvalue(kind) {
            let sign = self.c.one_of(["+", "-", "*", "&", "|", "^", "|+|", "|-|"]);
            let value = self.expr(kind, 2);
            self.line(format_args!("{place} {sign}= {value};"));
        }
    }

    fn call(&mut self) {
        let mut fitting: Vec<Callable> = self.functions.clone();
        if matches!(self.site, Site::Apply | Site::Action) {
            fitting.extend(self.actions.iter().cloned());
            fitting.extend(self.actions.iter().cloned());
        }
        let Some(callable) = self.c.pick(&fitting).cloned() else {
            return self.assign();
        };
        if let Some(args) = self.arguments(&callable) {
            self.line(format_args!("{}({args});", callable.name));
        }
    }

    pub(super) fn local(&mut self) {
        self.fuel = FUEL;
        let (name, kind) = (self.fresh("local"), self.kind());
        match self.c.below(30) {
            0 => self.line(format_args!("{kind} {name};")),
            1 | 2 => self.line(format_args!("{kind} {name} = ...;")),
            _ => {
                let value = self.expr(kind, 3);
                self.line(format_args!("{kind} {name} = {value};"));
            }
        }
        self.declare(&name, kind, true);
    }

    fn initialise(&mut self) {
        let kind = self.c.one_of([Kind::Inner, Kind::Head, Kind::Item]);
        if let Some(place) = self.lvalue(kind) {
            let value = self.initialiser(kind, 2);
            self.line(format_args!("{place} = {value};"));
        }
    }

    fn header_operation(&mut self) {
        if self.c.chance(40)
            && let Some(stack) = self.c.pick(&self.stacks).cloned()
        {
            if self.c.chance(25) && self.stacks.len() > 1 {
                let (one, other) = (&self.stacks[0], &self.stacks[1]);
                let text = format!("{one} = {other};");
                return self.line(text);
            }
            let way = self.c.one_of(["push_front", "pop_front"]);
            let count = self.c.between(1, STACK as u32);
            self.line(format_args!("{stack}.{way}({count});"));
            for index in 0..STACK {
                self.refill(&format!("{stack}[{index}]"), Kind::Item, 80);
            }
            return;
        }
        let kind = self.c.one_of([Kind::Head, Kind::Item]);
        let Some(header) = self.lvalue(kind) else {
            return self.assign();
        };
        match self.c.below(8) {
            0 => {
                self.line(format_args!("{header}.setInvalid();"));
                self.refill(&header, kind, 80);
            }
            1 => {
                self.line(format_args!("{header} = {{#}};"));
                self.refill(&header, kind, 80);
            }
            2 => {
                self.refill(&header, kind, 80);
                self.line(format_args!("{header}.setValid();"));
            }
            3 => {
                let value = self.initialiser(kind, 1);
                self.line(format_args!(
                    "if (!{header}.isValid()) {{ {header} = {value}; }}"
                ));
            }
            _ => {
                let value = self.expr(kind, 2);
                self.line(format_args!("{header} = {value};"));
            }
        }
    }

    /// Makes a header valid, so that most of what is read has a value.
    pub(super) fn refill(&mut self, header: &str, kind: Kind, percent: usize) {
        if self.c.chance(percent) {
            let value = self.constant(kind);
            self.line(format_args!(
                "if (!{header}.isValid()) {{ {header} = {value}; }}"
            ));
        }
    }

    fn conditional(&mut self, depth: u32) {
        let condition = self.expr(Kind::Bool, 3);
        self.open(format_args!("if ({condition})"));
        self.block(depth);
        if self.c.chance(50) {
            self.close();
            self.open("else");
            self.block(depth);
        }
        self.close();
    }

    fn repeat(&mut self, depth: u32) {
        let name = self.fresh("round");
        let mut kind = Kind::Bits(8);
        match self.c.below(5) {
            0 => {
                let (low, high) = (self.c.below(4), self.c.below(6));
                self.open(format_args!("for (bit<8> {name} in 8w{low} .. 8w{high})"));
            }
            1 => {
                let high = self.expr(Kind::Bits(8), 2);
                self.open(format_args!("for (bit<8> {name} in 0 .. (({high}) & 3))"));
            }
            2 if !self.stacks.is_empty() => {
                let stack = self.c.pick(&self.stacks).cloned().unwrap_or_default();
                kind = Kind::Item;
                self.open(format_args!("for (item_t {name} in {stack})"));
            }
            _ => {
                let count = self.c.between(0, 4);
                let sign = self.c.one_of(["<", "!="]);
                let step = self.c.one_of(["{} = {} + 1", "{} += 1"]);
                let step = step.replace("{}", &name);
                self.open(format_args!(
                    "for (bit<8> {name} = 0; {name} {sign} {count}; {step})"
                ));
            }
        }
        self.loops += 1;
        self.scoped(|writer| {
            writer.declare(&name, kind, false);
            writer.block(depth);
            if kind == Kind::Bits(8) && writer.c.chance(60) {
                let way = writer.c.one_of(["break", "continue"]);
                let round = writer.c.below(3);
                writer.line(format_args!("if ({name} == {round}) {{ {way}; }}"));
                writer.operate();
            }
        });
        self.loops -= 1;
        self.close();
    }

    fn switch(&mut self, depth: u32) {
        let kind = self.c.one_of([
            Kind::Bits(8),
            Kind::Mode,
            Kind::Code,
            Kind::Error,
            Kind::Int(8),
        ]);
        let subject = match kind {
            Kind::Bits(8) => format!("{} & 8w3", self.expr(kind, 2)),
            _ => self.expr(kind, 2),
        };
        self.open(format_args!("switch ({subject})"));
        let labels: Vec<String> = match kind {
            Kind::Bits(_) => (0..4).map(|label| label.to_string()).collect(),
            Kind::Mode => ["slow", "fast", "idle"]
                .map(|it| format!("mode_t.{it}"))
                .to_vec(),
            Kind::Code => ["low", "middle", "high"]
                .map(|it| format!("code_t.{it}"))
                .to_vec(),
            Kind::Error => ["NoError", "NoMatch", "PacketTooShort"]
                .map(|it| format!("error.{it}"))
                .to_vec(),
            _ => ["0", "1", "-1", "-8s2"].map(str::to_owned).to_vec(),
        };
        let order = self.shuffled(labels.len());
        self.cases(
            depth,
            order.into_iter().map(|at| labels[at].clone()).collect(),
        );
        self.close();
    }

    fn cases(&mut self, depth: u32, labels: Vec<String>) {
        let count = self.c.below(labels.len()) + 1;
        for label in labels.into_iter().take(count) {
            if self.c.chance(25) {
                self.line(format_args!("{label}:"));
                continue;
            }
            self.open(format_args!("{label}:"));
            self.block(depth);
            self.close();
        }
        if self.c.chance(60) {
            self.open("default:");
            self.block(depth);
            self.close();
        }
    }

    /// A block, perhaps with a variable that hides another.
    fn shadow(&mut self, depth: u32) {
        self.open("");
        let locals = self.scope.iter().filter(|place| {
            place.text.starts_with("local") && !place.text.contains('.') && place.writable
        });
        let locals: Vec<_> = locals.cloned().collect();
        if self.c.chance(60)
            && let Some(hidden) = self.c.pick(&locals).cloned()
        {
            let value = self.expr(hidden.kind, 2);
            self.line(format_args!("{} {} = {value};", hidden.kind, hidden.text));
        }
        self.block(depth);
        self.close();
    }

    /// Leaves the block under a condition.
    fn leave(&mut self) {
        let condition = self.expr(Kind::Bool, 2);
        let way = match (self.site, self.result) {
            (Site::Function, Some(kind)) => format!("return {}", self.expr(kind, 2)),
            (Site::Function, None) => "return".to_owned(),
            _ => self.c.one_of(["return", "exit"]).to_owned(),
        };
        self.line(format_args!("if ({condition}) {{ {way}; }}"));
    }

    /// Applies a table or a control.
    fn apply(&mut self, depth: u32) {
        if self.c.chance(40)
            && let Some(control) = self.c.pick(&self.controls).cloned()
        {
            if let Some(args) = self.arguments(&control) {
                self.line(format_args!("{}.apply({args});", control.name));
            }
            return;
        }
        let Some(table) = self.c.pick(&self.tables).cloned() else {
            return self.assign();
        };
        let name = &table.name;
        match self.c.below(4) {
            0 if depth > 0 => {
                let which = self.c.one_of(["hit", "miss"]);
                self.open(format_args!("if ({name}.apply().{which})"));
                self.block(depth);
                self.close();
            }
            1 | 2 if depth > 0 => {
                self.open(format_args!("switch ({name}.apply().action_run)"));
                let order = self.shuffled(table.actions.len());
                let labels = order.into_iter().map(|at| table.actions[at].clone());
                let labels = labels.collect();
                self.cases(depth, labels);
                self.close();
            }
            _ => self.line(format_args!("{name}.apply();")),
        }
    }
}
