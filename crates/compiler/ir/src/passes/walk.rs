//! Visitors of the parts of statements.

use crate::{Arg, Expr, ExprKind, Op, Place, Program, Projection, Stmt, Transition};

macro_rules! walker {
    ($(#[$doc:meta])* $part:ident, $walk:ident, $op:ident, $children:ident, $exprs:ident, $operands:ident $(, $mut:tt)?) => {
        $(#[$doc])*
        pub enum $part<'a> {
            /// A value that it computes first.
            Value(&'a $($mut)? Expr),
            /// A place that it reads, and not as an expression.
            Look(&'a $($mut)? Place),
            /// A place all of which it writes, at its end.
            Result(&'a $($mut)? Place),
            /// A place that it writes in part, or not always, or that it reads too.
            Update(&'a $($mut)? Place),
        }

        /// Visits the parts of one statement, but not the statements in it.
        pub fn $walk<'a>(stmt: &'a $($mut)? Stmt, see: &mut dyn FnMut($part<'a>)) {
            match stmt {
                Stmt::Assign(place, value) => {
                    see($part::Value(value));
                    see($part::Result(place));
                }
                Stmt::If { condition, .. } => see($part::Value(condition)),
                Stmt::Switch { value, .. } => see($part::Value(value)),
                Stmt::Apply { hit, action_run, .. } => {
                    if let Some(place) = hit {
                        see($part::Result(place));
                    }
                    if let Some(place) = action_run {
                        see($part::Result(place));
                    }
                }
                Stmt::Call { args, result, .. } => {
                    for arg in args {
                        match arg {
                            Arg::In(value) => see($part::Value(value)),
                            Arg::Out(place) => see($part::Result(place)),
                            Arg::InOut(place) => see($part::Update(place)),
                        }
                    }
                    if let Some(place) = result {
                        see($part::Result(place));
                    }
                }
                Stmt::Op(op) => $op(op, see),
                Stmt::SetValid(place)
                | Stmt::SetInvalid(place)
                | Stmt::PushFront(place, _)
                | Stmt::PopFront(place, _) => see($part::Update(place)),
                Stmt::Block(_)
                | Stmt::Atomic(_)
                | Stmt::Apart(_)
                | Stmt::Loop { .. }
                | Stmt::Unlikely
                | Stmt::At(_)
                | Stmt::Break
                | Stmt::Continue
                | Stmt::Return
                | Stmt::Exit => {}
            }
        }

        fn $op<'a>(op: &'a $($mut)? Op, see: &mut dyn FnMut($part<'a>)) {
            match op {
                Op::Extract { header, varbit_size } => {
                    if let Some(size) = varbit_size {
                        see($part::Value(size));
                    }
                    see($part::Update(header));
                }
                Op::Lookahead { result } | Op::PacketLength { result } => see($part::Result(result)),
                Op::Advance { bits } => see($part::Value(bits)),
                Op::Emit { value } => see($part::Look(value)),
                Op::Verify { condition, error } => {
                    see($part::Value(condition));
                    see($part::Value(error));
                }
                Op::RegisterRead { register: _, index, result }
                | Op::MeterExecute { meter: _, index, result } => {
                    see($part::Value(index));
                    see($part::Result(result));
                }
                Op::RegisterWrite { register: _, index, value } => {
                    see($part::Value(index));
                    see($part::Value(value));
                }
                Op::Uses { units: _, numbers } => {
                    for number in numbers {
                        see($part::Value(number));
                    }
                }
                Op::CounterCount { counter: _, index } => see($part::Value(index)),
                Op::DirectCounterCount { .. } => {}
                Op::DirectMeterRead { meter: _, result } => see($part::Result(result)),
                Op::Hash { result, algorithm: _, base, data, max } => {
                    see($part::Value(base));
                    see($part::Value(max));
                    for value in data {
                        see($part::Value(value));
                    }
                    see($part::Result(result));
                }
                Op::Random { result, lo, hi } => {
                    see($part::Value(lo));
                    see($part::Value(hi));
                    see($part::Result(result));
                }
                Op::VerifyChecksum { condition, data, checksum, .. } => {
                    see($part::Value(condition));
                    for value in data {
                        see($part::Value(value));
                    }
                    see($part::Value(checksum));
                }
                Op::UpdateChecksum { condition, data, checksum, .. } => {
                    see($part::Value(condition));
                    for value in data {
                        see($part::Value(value));
                    }
                    see($part::Update(checksum));
                }
                Op::MarkToDrop { standard_metadata } => see($part::Update(standard_metadata)),
                Op::Clone { kind: _, session, field_list } => {
                    see($part::Value(session));
                    if let Some(list) = field_list {
                        see($part::Value(list));
                    }
                }
                Op::Resubmit { field_list } | Op::Recirculate { field_list } => {
                    see($part::Value(field_list));
                }
                Op::Truncate { length } => see($part::Value(length)),
                Op::Digest { name: _, data } => see($part::Value(data)),
                Op::Assert { condition, .. } => see($part::Value(condition)),
                Op::LogMessage { format: _, values } => {
                    for value in values {
                        see($part::Value(value));
                    }
                }
            }
        }

        /// The lists of statements in a statement.
        pub fn $children(stmt: &$($mut)? Stmt) -> Vec<&$($mut)? Vec<Stmt>> {
            match stmt {
                Stmt::If { then, otherwise, .. } => vec![then, otherwise],
                Stmt::Switch { cases, default, .. } => {
                    let mut lists = Vec::with_capacity(cases.len() + 1);
                    for (_, body) in cases {
                        lists.push(body);
                    }
                    lists.push(default);
                    lists
                }
                Stmt::Block(body) | Stmt::Atomic(body) | Stmt::Apart(body) => vec![body],
                Stmt::Loop { body, update } => vec![body, update],
                _ => Vec::new(),
            }
        }

        /// Visits the expressions right in an expression, those in its places too.
        pub(super) fn $operands<'a>(
            expr: &'a $($mut)? Expr,
            see: &mut dyn FnMut(&'a $($mut)? Expr),
        ) {
            match &$($mut)? expr.kind {
                ExprKind::Const(_) | ExprKind::Default => {}
                ExprKind::Read(place) | ExprKind::IsValid(place) | ExprKind::LastIndex(place) => {
                    $exprs(place, see);
                }
                ExprKind::Unary(_, value) | ExprKind::Cast(value) => see(value),
                ExprKind::Slice { value, .. } => see(value),
                ExprKind::Binary(_, left, right) => {
                    see(left);
                    see(right);
                }
                ExprKind::Mux { condition, then, otherwise } => {
                    see(condition);
                    see(then);
                    see(otherwise);
                }
                ExprKind::Record(values) | ExprKind::Array(values) => {
                    for value in values {
                        see(value);
                    }
                }
            }
        }

        /// Visits the indices of a place.
        pub(super) fn $exprs<'a>(
            place: &'a $($mut)? Place,
            see: &mut dyn FnMut(&'a $($mut)? Expr),
        ) {
            for step in &$($mut)? place.path {
                if let Projection::Index(index) = step {
                    see(index);
                }
            }
        }
    };
}

walker!(
    /// A part of a statement.
    Part, parts, op_parts, children, indices, operands
);
walker!(
    /// A part of a statement that may be changed.
    PartMut, parts_mut, op_parts_mut, children_mut, indices_mut, operands_mut, mut
);

/// Visits the lists of statements that are bodies: of controls, actions, functions, states,
/// and what parsers begin with.
pub(super) fn bodies(program: &mut Program, see: &mut dyn FnMut(&mut Vec<Stmt>)) {
    for control in &mut program.controls {
        see(&mut control.body);
    }
    for action in &mut program.actions {
        see(&mut action.body);
    }
    for function in &mut program.functions {
        see(&mut function.body);
    }
    for parser in &mut program.parsers {
        see(&mut parser.init);
        for state in &mut parser.states {
            see(&mut state.body);
        }
    }
}

/// Visits all operations of a program.
pub fn each_op<'p>(program: &'p Program, see: &mut dyn FnMut(&'p Op)) {
    let controls = program.controls.iter().map(|it| &it.body);
    let actions = program.actions.iter().map(|it| &it.body);
    let functions = program.functions.iter().map(|it| &it.body);
    let parsers = program.parsers.iter().flat_map(|parser| {
        let states = parser.states.iter().map(|it| &it.body);
        states.chain([&parser.init])
    });
    let mut open: Vec<&Vec<Stmt>> = Vec::new();
    open.extend(controls.chain(actions).chain(functions).chain(parsers));
    while let Some(body) = open.pop() {
        for stmt in body {
            if let Stmt::Op(op) = stmt {
                see(op);
            }
            open.extend(children(stmt));
        }
    }
}

/// Visits a list of statements and those in it, the inner ones first.
pub(super) fn lists(stmts: &mut Vec<Stmt>, see: &mut dyn FnMut(&mut Vec<Stmt>)) {
    for stmt in stmts.iter_mut() {
        for list in children_mut(stmt) {
            lists(list, see);
        }
    }
    see(stmts);
}

/// Visits the outermost expressions of statements, also those in places.
pub(super) fn exprs_mut(stmts: &mut [Stmt], see: &mut dyn FnMut(&mut Expr)) {
    for stmt in stmts {
        parts_mut(stmt, &mut |part| match part {
            PartMut::Value(value) => see(value),
            PartMut::Look(place) | PartMut::Result(place) | PartMut::Update(place) => {
                indices_mut(place, see);
            }
        });
        for list in children_mut(stmt) {
            exprs_mut(list, see);
        }
    }
}

/// Visits the outermost expressions outside of statements: keys of tables and of `select`,
/// and arguments bound in tables.
pub(super) fn other_exprs_mut(program: &mut Program, see: &mut dyn FnMut(&mut Expr)) {
    for table in &mut program.tables {
        for key in &mut table.keys {
            see(&mut key.expr);
        }
        for arg in table
            .actions
            .iter_mut()
            .flat_map(|listed| &mut listed.bound)
        {
            match arg {
                Arg::In(value) => see(value),
                Arg::Out(place) | Arg::InOut(place) => indices_mut(place, see),
            }
        }
    }
    for state in program
        .parsers
        .iter_mut()
        .flat_map(|parser| &mut parser.states)
    {
        if let Transition::Select { keys, .. } = &mut state.transition {
            keys.iter_mut().for_each(&mut *see);
        }
    }
}

/// True if reading or writing the place may end a parser: past the end of a stack.
pub(super) fn place_may_fault(place: &Place) -> bool {
    place.path.iter().any(|step| match step {
        Projection::Next | Projection::Last => true,
        Projection::Index(index) => may_fault(index),
        Projection::Field(_) | Projection::Slice { .. } => false,
    })
}

/// True if computing the expression may end a parser.
pub(super) fn may_fault(expr: &Expr) -> bool {
    let here = match &expr.kind {
        ExprKind::Read(place) | ExprKind::IsValid(place) | ExprKind::LastIndex(place) => {
            place_may_fault(place)
        }
        _ => false,
    };
    let mut inside = false;
    operands(expr, &mut |value| inside |= may_fault(value));
    here || inside
}

/// Visits the places that an expression reads.
pub fn places<'a>(expr: &'a Expr, see: &mut dyn FnMut(&'a Place)) {
    if let ExprKind::Read(place) | ExprKind::IsValid(place) | ExprKind::LastIndex(place) =
        &expr.kind
    {
        see(place);
    }
    operands(expr, &mut |value| places(value, see));
}
