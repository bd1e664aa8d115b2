//! Expressions with side effects.

use super::program::{Callable, Kind, STACK, Site, Way, Writer, fields};

impl Writer {
    /// A type of a variable or parameter.
    pub(super) fn kind(&mut self) -> Kind {
        match self.c.below(20) {
            0..=8 => Kind::Bits(8),
            9 | 10 => Kind::Bits(16),
            11 => self.c.one_of([
                Kind::Bits(3),
                Kind::Bits(4),
                Kind::Bits(32),
                Kind::Bits(72),
                Kind::Int(16),
            ]),
            12 | 13 => Kind::Int(8),
            14 | 15 => Kind::Bool,
            16 => Kind::Error,
            17 => Kind::Mode,
            18 => Kind::Code,
            _ => self.c.one_of([Kind::Inner, Kind::Head, Kind::Item]),
        }
    }

    pub(super) fn constant(&mut self, kind: Kind) -> String {
        match kind {
            Kind::Bits(width) => {
                let value = self.c.value(width);
                format!("{width}w{value}")
            }
            Kind::Int(width) => {
                let value = self.c.below(1 << (width.min(16) - 1));
                if self.c.chance(40) {
                    format!("(-{width}s{value})")
                } else {
                    format!("{width}s{value}")
                }
            }
            Kind::Bool => self.c.one_of(["false", "true"]).to_owned(),
            Kind::Error => {
                let known = ["NoError", "PacketTooShort", "NoMatch", "StackOutOfBounds"];
                match self
                    .c
                    .below(self.own_errors + known.len())
                    .checked_sub(known.len())
                {
                    Some(own) => format!("error.Own{own}"),
                    None => format!("error.{}", self.c.one_of(known)),
                }
            }
            Kind::Mode => format!("mode_t.{}", self.c.one_of(["slow", "fast", "idle"])),
            Kind::Code => format!("code_t.{}", self.c.one_of(["low", "middle", "high"])),
            Kind::Inner | Kind::Head | Kind::Item => {
                let values: Vec<String> = fields(kind)
                    .iter()
                    .map(|(_, kind)| self.constant(*kind))
                    .collect();
                format!("({kind}){{ {} }}", values.join(", "))
            }
        }
    }

    /// Something in scope of a type: often what was named before.
    fn named(&mut self, kind: Kind, written: bool) -> Option<String> {
        let fits =
            |place: &&super::program::Place| place.kind == kind && (place.writable || !written);
        if self.c.chance(55) {
            let recent: Vec<&str> = self
                .scope
                .iter()
                .filter(fits)
                .map(|place| place.text.as_str())
                .filter(|text| self.recent.iter().any(|recent| recent == text))
                .collect();
            if let Some(text) = self.c.pick(&recent) {
                return Some((*text).to_owned());
            }
        }
        let all: Vec<&str> = self
            .scope
            .iter()
            .filter(fits)
            .map(|place| place.text.as_str())
            .collect();
        let text = (*self.c.pick(&all)?).to_owned();
        self.recent.push(text.clone());
        if self.recent.len() > 3 {
            self.recent.remove(0);
        }
        Some(text)
    }

    /// An index into a stack, now and then outside.
    fn index(&mut self) -> String {
        match self.c.below(20) {
            0..=6 => self.c.below(STACK).to_string(),
            // A constant outside would be refused.
            7 => match self.named(Kind::Bits(8), false) {
                Some(name) if !matches!(name.as_str(), "setting" | "BYTE") => {
                    format!("({name} & 8w3)")
                }
                _ => "0".to_owned(),
            },
            _ => format!("({} & 8w1)", self.expr(Kind::Bits(8), 2)),
        }
    }

    /// An element of a stack, or a field of it.
    fn element(&mut self, kind: Kind) -> Option<String> {
        let field = match kind {
            Kind::Item => "",
            Kind::Bits(8) => self.c.one_of([".x", ".y"]),
            _ => return None,
        };
        let stack = self.c.pick(&self.stacks)?.clone();
        let index = self.index();
        Some(format!("{stack}[{index}]{field}"))
    }

    /// Something that can be written; `None` if nothing of the type is in scope.
    pub(super) fn lvalue(&mut self, kind: Kind) -> Option<String> {
        match self.c.below(10) {
            0 | 1 if self.effects => {
                if let Some(element) = self.element(kind) {
                    return Some(element);
                }
            }
            2 => {
                if let Some(slice) = self.slice(kind, true) {
                    return Some(slice);
                }
            }
            _ => {}
        }
        self.named(kind, true)
    }

    fn slice(&mut self, kind: Kind, written: bool) -> Option<String> {
        let Kind::Bits(width) = kind else {
            return None;
        };
        let whole = self
            .c
            .one_of([Kind::Bits(16), Kind::Bits(72), Kind::Int(8), Kind::Bits(8)]);
        let (Kind::Bits(most) | Kind::Int(most)) = whole else {
            return None;
        };
        if most <= width {
            return None;
        }
        let text = self.named(whole, written)?;
        let low = self.c.between(0, most - width);
        Some(if self.c.chance(20) {
            format!("{text}[{low} +: {width}]")
        } else {
            format!("{text}[{}:{low}]", low + width - 1)
        })
    }

    /// An expression of a type with at most `depth` operations above one another.
    pub(super) fn expr(&mut self, kind: Kind, depth: u32) -> String {
        if depth == 0 || self.fuel == 0 {
            return self.leaf(kind);
        }
        self.fuel -= 1;
        if self.c.chance(45)
            && let Some(call) = self.call_value(kind)
        {
            return call;
        }
        let deeper = depth - 1;
        match self.c.below(10) {
            0 | 1 => self.leaf(kind),
            2 => {
                let condition = self.expr(Kind::Bool, deeper);
                let then = self.expr(kind, deeper);
                let otherwise = self.expr(kind, deeper);
                format!("({condition} ? {then} : {otherwise})")
            }
            3 if self.effects && self.stacks.len() > 1 => {
                self.element(kind).unwrap_or_else(|| self.leaf(kind))
            }
            _ => match kind {
                Kind::Bits(width) => self.bits(width, deeper),
                Kind::Int(width) => self.int(width, deeper),
                Kind::Bool => self.condition(deeper),
                Kind::Code => format!("(code_t){}", self.wrapped(Kind::Bits(8), deeper)),
                Kind::Inner | Kind::Head | Kind::Item if self.c.chance(50) => {
                    format!("({kind}){}", self.initialiser(kind, deeper))
                }
                _ => self.leaf(kind),
            },
        }
    }

    /// An expression that has side effects, if one can be had.
    pub(super) fn effect(&mut self, kind: Kind, depth: u32) -> String {
        self.fuel = self.fuel.max(3);
        if let Some(call) = self.call_value(kind) {
            return call;
        }
        if kind == Kind::Bool
            && let Some(call) = self.call_value(Kind::Bits(8))
        {
            let sign = self.c.one_of(["<", ">", "==", "!="]);
            return format!("({call} {sign} {})", self.expr(Kind::Bits(8), depth));
        }
        self.expr(kind, depth)
    }

    /// An expression in parentheses.
    fn wrapped(&mut self, kind: Kind, depth: u32) -> String {
        format!("({})", self.expr(kind, depth))
    }

    fn leaf(&mut self, kind: Kind) -> String {
        if self.c.chance(75)
            && let Some(named) = self.named(kind, false)
        {
            return named;
        }
        if self.c.chance(30)
            && let Some(slice) = self.slice(kind, false)
        {
            return slice;
        }
        self.constant(kind)
    }

    fn operand(&mut self, kind: Kind, depth: u32) -> String {
        match self.c.below(20) {
            0 | 1 => self.c.below(8).to_string(),
            2 => "NUMBER".to_owned(),
            _ => self.expr(kind, depth),
        }
    }

    fn bits(&mut self, width: u32, depth: u32) -> String {
        let kind = Kind::Bits(width);
        match self.c.below(12) {
            0..=5 => {
                let sign = self
                    .c
                    .one_of(["+", "-", "*", "&", "|", "^", "|+|", "|-|", "-"]);
                let left = self.expr(kind, depth);
                let right = self.operand(kind, depth);
                format!("({left} {sign} {right})")
            }
            6 => {
                let sign = self.c.one_of(["<<", ">>"]);
                let left = self.expr(kind, depth);
                let right = match self.c.below(3) {
                    0 => self.c.below(width as usize + 3).to_string(),
                    1 => self.expr(Kind::Bits(8), depth),
                    _ => format!("({} & 8w7)", self.expr(Kind::Bits(8), depth)),
                };
                format!("({left} {sign} {right})")
            }
            7 => {
                let sign = self.c.one_of(["~", "-", "+"]);
                format!("({sign}{})", self.wrapped(kind, depth))
            }
            8 if width > 1 => {
                let high = self.c.between(1, width - 1);
                let left = self.expr(Kind::Bits(high), depth);
                let right = match (width - high, self.c.chance(30)) {
                    (8, true) => self.expr(Kind::Int(8), depth),
                    (low, _) => self.expr(Kind::Bits(low), depth),
                };
                format!("({left} ++ {right})")
            }
            9 => {
                let from = self.c.one_of([4, 8, 16, 32, 72]);
                format!("((bit<{width}>){})", self.wrapped(Kind::Bits(from), depth))
            }
            10 if width == 16 => {
                format!("((bit<16>)(int<16>)({}))", self.expr(Kind::Int(8), depth))
            }
            10 if width == 8 => {
                let from = self.c.one_of([Kind::Int(8), Kind::Code]);
                format!("((bit<8>){})", self.wrapped(from, depth))
            }
            10 if width == 1 => format!("((bit<1>){})", self.wrapped(Kind::Bool, depth)),
            11 => {
                let (sign, by) = (self.c.one_of(["/", "%"]), self.c.value(width));
                let by = by.max(1u32.into());
                format!("({} {sign} {width}w{by})", self.expr(kind, depth))
            }
            _ => self.leaf(kind),
        }
    }

    fn int(&mut self, width: u32, depth: u32) -> String {
        let kind = Kind::Int(width);
        match self.c.below(8) {
            0..=3 => {
                let sign = self.c.one_of(["+", "-", "*", "&", "|", "^", "|+|", "|-|"]);
                let left = self.expr(kind, depth);
                let right = self.operand(kind, depth);
                format!("({left} {sign} {right})")
            }
            4 => {
                let sign = self.c.one_of(["<<", ">>"]);
                let left = self.expr(kind, depth);
                let right = format!("({} & 8w15)", self.expr(Kind::Bits(8), depth));
                format!("({left} {sign} {right})")
            }
            5 => {
                let sign = self.c.one_of(["~", "-"]);
                format!("({sign}{})", self.wrapped(kind, depth))
            }
            6 => {
                let from = if width == 8 { 16 } else { 8 };
                format!("((int<{width}>){})", self.wrapped(Kind::Int(from), depth))
            }
            _ => format!("((int<{width}>){})", self.wrapped(Kind::Bits(width), depth)),
        }
    }

    fn condition(&mut self, depth: u32) -> String {
        match self.c.below(10) {
            0..=2 => {
                let kind = self.c.one_of([Kind::Bits(8), Kind::Int(8), Kind::Bits(16)]);
                let sign = self.c.one_of(["<", "<=", ">", ">="]);
                let left = self.expr(kind, depth);
                let right = self.operand(kind, depth);
                format!("({left} {sign} {right})")
            }
            3 | 4 => {
                let kind = self.kind();
                let sign = self.c.one_of(["==", "!="]);
                let left = self.expr(kind, depth);
                let right = self.expr(kind, depth);
                format!("({left} {sign} {right})")
            }
            5 | 6 => {
                let sign = self.c.one_of(["&&", "||"]);
                let left = self.expr(Kind::Bool, depth);
                let right = self.effect(Kind::Bool, depth);
                format!("({left} {sign} {right})")
            }
            7 => format!("(!{})", self.wrapped(Kind::Bool, depth)),
            8 => match self.named(Kind::Head, false) {
                Some(header) => format!("{header}.isValid()"),
                None => self.leaf(Kind::Bool),
            },
            _ if self.site == Site::Apply && self.effects && !self.tables.is_empty() => {
                let table = self.c.below(self.tables.len());
                let which = self.c.one_of(["hit", "miss"]);
                format!("{}.apply().{which}", self.tables[table].name)
            }
            _ => self.leaf(Kind::Bool),
        }
    }

    /// Values of all fields in braces, by position or by name in any order, with side
    /// effects; perhaps `...` in place of some.
    pub(super) fn initialiser(&mut self, kind: Kind, depth: u32) -> String {
        let mut all: Vec<(&str, Kind)> = fields(kind).to_vec();
        let mut dots = "";
        if self.c.chance(20) {
            all.truncate(self.c.below(all.len()) + 1);
            dots = ", ...";
        }
        if self.c.chance(50) {
            let values: Vec<String> = all
                .iter()
                .map(|(_, kind)| self.effect(*kind, depth))
                .collect();
            return format!("{{ {}{dots} }}", values.join(", "));
        }
        let order = self.shuffled(all.len());
        let values: Vec<String> = order
            .into_iter()
            .map(|at| format!("{} = {}", all[at].0, self.expr(all[at].1, depth)))
            .collect();
        format!("{{ {}{dots} }}", values.join(", "))
    }

    /// Numbers below `count` in any order.
    pub(super) fn shuffled(&mut self, count: usize) -> Vec<usize> {
        let mut numbers: Vec<usize> = (0..count).collect();
        for last in (1..count).rev() {
            let other = self.c.below(last + 1);
            numbers.swap(last, other);
        }
        numbers
    }

    fn call_value(&mut self, kind: Kind) -> Option<String> {
        if !self.effects || self.fuel == 0 {
            return None;
        }
        let fitting: Vec<Callable> = self
            .functions
            .iter()
            .filter(|function| function.result == Some(kind))
            .cloned()
            .collect();
        let function = self.c.pick(&fitting)?.clone();
        let args = self.arguments(&function)?;
        Some(format!("{}({args})", function.name))
    }

    /// Arguments of a call; by name in any order now and then. `None` if there is nothing
    /// in scope to be written.
    pub(super) fn arguments(&mut self, callable: &Callable) -> Option<String> {
        let mut args: Vec<(String, String)> = Vec::new();
        if callable.context {
            for name in ["hdr", "meta"] {
                args.push((name.to_owned(), name.to_owned()));
            }
        }
        let mut params = callable.params.as_slice();
        if callable.default && self.c.chance(50) {
            params = &params[..params.len() - 1];
        }
        for (way, kind, name) in params {
            let arg = match way {
                Way::In | Way::Data => self.expr(*kind, 2),
                Way::Out if self.c.chance(5) => "_".to_owned(),
                Way::Out | Way::InOut => self.lvalue(*kind)?,
            };
            args.push((name.clone(), arg));
        }
        if !args.is_empty() && self.c.chance(35) {
            let order = self.shuffled(args.len());
            let args: Vec<String> = order
                .into_iter()
                .map(|at| format!("{} = {}", args[at].0, args[at].1))
                .collect();
            return Some(args.join(", "));
        }
        let args: Vec<String> = args.into_iter().map(|(_, value)| value).collect();
        Some(args.join(", "))
    }
}
