//! Rules 1, 2, 7, 8, 11 and 12: the tables of a program.

use super::{
    MAX_LEAVES, MAX_TYPE_DEPTH, MAX_VARBIT_WIDTH, MAX_WIDTH, Verifier, index_or_scalar_width,
};
use crate::graph::Node;
use crate::{
    ActionCall, ActionId, Arg, Callee, Const, ControlId, Direction, FunctionId, KeySet, MatchKind,
    Param, ParserId, StateId, TableId, Target, Transition, Type, ValueSetId, VarId,
};
use num_bigint::BigUint;

impl Verifier<'_> {
    /// Rules 1 and 2 for all types and variables.
    pub(super) fn types(&mut self) {
        let program = self.program;
        for (index, def) in program.structs.iter().enumerate() {
            self.place = format!("struct{index} {}", def.name);
            for field in &def.fields {
                self.type_exists(field.ty);
            }
        }
        for (index, def) in program.stacks.iter().enumerate() {
            self.place = format!("stack{index}");
            self.type_exists(def.element);
            if matches!(def.element, Type::Stack(_) | Type::Varbit(_)) {
                self.fail(2, "elements of a stack are no stacks or varbits");
            }
            if def.size == 0 {
                self.fail(2, "a stack has at least one element");
            }
        }
        for (index, var) in program.vars.iter().enumerate() {
            self.place = format!("v{index} {}", var.name);
            self.type_exists(var.ty);
        }
        for register in &program.registers {
            self.place = format!("register {}", register.name);
            self.type_exists(register.element);
        }
        self.place = "pipeline".to_owned();
        self.type_exists(program.pipeline.headers);
        self.type_exists(program.pipeline.metadata);
        self.type_exists(Type::Struct(program.pipeline.standard_metadata));
        if !self.errors.is_empty() {
            return;
        }
        let mut known = vec![None; program.structs.len()];
        for index in 0..program.structs.len() {
            self.place = format!("struct{index} {}", program.structs[index].name);
            if self.extent(index, &mut known, 0).is_none() {
                self.fail(
                    2,
                    format!(
                        "types nest deeper than {MAX_TYPE_DEPTH} or have over {MAX_LEAVES} parts"
                    ),
                );
                return;
            }
        }
        for index in 0..program.structs.len() {
            let def = &program.structs[index];
            for field in &def.fields {
                self.place = format!("struct{index} {}.{}", def.name, field.name);
                self.container_members(field.ty);
            }
        }
        for (index, var) in program.vars.iter().enumerate() {
            self.place = format!("v{index} {}", var.name);
            self.container_members(var.ty);
        }
    }

    /// Depth of a struct and the number of its parts, or `None` if one is beyond its
    /// limit.
    fn extent(
        &self,
        index: usize,
        known: &mut [Option<(u32, u64)>],
        above: u32,
    ) -> Option<(u32, u64)> {
        if above > MAX_TYPE_DEPTH {
            return None;
        }
        if known[index].is_none() {
            let (mut depth, mut parts) = (0, 1);
            for field in &self.program.structs[index].fields {
                let (inner, count) = match field.ty {
                    Type::Stack(stack) => {
                        let def = &self.program.stacks[stack.index()];
                        (def.element, u64::from(def.size))
                    }
                    other => (other, 1),
                };
                let mut below = 1;
                if let Type::Struct(id) | Type::Header(id) | Type::Union(id) = inner {
                    let (inner_depth, inner_parts) = self.extent(id.index(), known, above + 1)?;
                    depth = depth.max(1 + inner_depth);
                    below = inner_parts;
                }
                parts += below * count;
                if parts > MAX_LEAVES {
                    return None;
                }
            }
            known[index] = Some((depth, parts));
        }
        known[index].filter(|(depth, _)| depth + above <= MAX_TYPE_DEPTH)
    }

    /// The rules for members of headers and unions, wherever such a type is used.
    fn container_members(&mut self, ty: Type) {
        let program = self.program;
        match ty {
            Type::Header(id) => {
                for field in &program.structs[id.index()].fields {
                    match field.ty {
                        Type::Varbit(_) => {}
                        Type::Stack(id) if self.is_plain(program.stacks[id.index()].element) => {}
                        ty if self.is_plain(ty) => {}
                        _ => self.fail(2, format!("`{}` cannot be in a header", field.name)),
                    }
                }
            }
            Type::Union(id) => {
                for field in &program.structs[id.index()].fields {
                    if !matches!(field.ty, Type::Header(_)) {
                        self.fail(2, format!("`{}` of a union is no header", field.name));
                    }
                    self.container_members(field.ty);
                }
            }
            Type::Stack(id) => self.container_members(program.stacks[id.index()].element),
            _ => {}
        }
    }

    /// A scalar, or a struct of scalars.
    pub(super) fn is_plain(&self, ty: Type) -> bool {
        match ty {
            Type::Struct(id) => self.program.structs[id.index()]
                .fields
                .iter()
                .all(|field| self.is_plain(field.ty)),
            _ => index_or_scalar_width(ty).is_some(),
        }
    }

    fn type_exists(&mut self, ty: Type) {
        let exists = match ty {
            Type::Bits(width) => {
                if width > MAX_WIDTH {
                    self.fail(2, format!("{ty:?} is wider than {MAX_WIDTH}"));
                }
                true
            }
            Type::Varbit(width) => {
                if width > MAX_VARBIT_WIDTH {
                    self.fail(2, format!("{ty:?} is wider than {MAX_VARBIT_WIDTH}"));
                }
                true
            }
            Type::Int(width) => {
                if width == 0 || width > MAX_WIDTH {
                    self.fail(2, format!("{ty:?} is not from 1 to {MAX_WIDTH} wide"));
                }
                true
            }
            Type::Struct(id) | Type::Header(id) | Type::Union(id) => {
                id.index() < self.program.structs.len()
            }
            Type::Stack(id) => id.index() < self.program.stacks.len(),
            Type::Enum(id) => id.index() < self.program.enums.len(),
            Type::Bool | Type::Error => true,
        };
        if !exists {
            self.fail(1, format!("{ty:?} does not exist"));
        }
    }

    pub(super) fn var_type(&mut self, var: VarId) -> Option<Type> {
        let ty = self.program.vars.get(var.index()).map(|var| var.ty);
        if ty.is_none() {
            self.fail(1, format!("{var} does not exist"));
        }
        ty
    }

    /// Registers, counters, meters: rules 1, 2 and 10.
    pub(super) fn objects(&mut self) {
        let program = self.program;
        for register in &program.registers {
            self.place = format!("register {}", register.name);
            if !self.is_plain(register.element) {
                self.fail(10, "its element is no scalar or struct of scalars");
            }
        }
        let tables = program.tables.len();
        for counter in &program.counters {
            self.place = format!("counter {}", counter.name);
            if counter.table.is_some_and(|table| table.index() >= tables) {
                self.fail(1, "its table does not exist");
            }
        }
        for meter in &program.meters {
            self.place = format!("meter {}", meter.name);
            if meter.table.is_some_and(|table| table.index() >= tables) {
                self.fail(1, "its table does not exist");
            }
        }
        for set in &program.value_sets {
            self.place = format!("value set {}", set.name);
            if set.fields.is_empty() {
                self.fail(8, "it has no field");
            }
            for field in &set.fields {
                if field.width > MAX_WIDTH {
                    self.fail(2, format!("`{}` is wider than {MAX_WIDTH}", field.name));
                }
                if matches!(field.match_kind, MatchKind::Optional | MatchKind::Selector) {
                    let kind = field.match_kind;
                    self.fail(8, format!("`{}` is compared as {kind:?}", field.name));
                }
            }
        }
    }

    /// Bodies of parsers, controls, actions and functions.
    pub(super) fn callables(&mut self) {
        let program = self.program;
        for (index, parser) in program.parsers.iter().enumerate() {
            self.place = format!("parser {}", parser.name);
            let callee = Callee::Parser(ParserId(index as u32));
            self.graph.enter(Node::Call(callee));
            self.variables(&parser.params, &parser.locals);
            self.in_parser = true;
            self.stmts(&parser.init);
            if parser.start.index() >= parser.states.len() {
                self.fail(8, "its start state does not exist");
            }
            for state in &parser.states {
                self.place = format!("parser {}.{}", parser.name, state.name);
                self.stmts(&state.body);
                self.transition(&state.transition, parser.states.len());
            }
            self.in_parser = false;
        }
        for (index, control) in program.controls.iter().enumerate() {
            self.place = format!("control {}", control.name);
            let callee = Callee::Control(ControlId(index as u32));
            self.graph.enter(Node::Call(callee));
            self.variables(&control.params, &control.locals);
            self.in_control = true;
            self.stmts(&control.body);
            self.in_control = false;
        }
        for (index, action) in program.actions.iter().enumerate() {
            self.place = format!("action {}", action.name);
            let callee = Callee::Action(ActionId(index as u32));
            self.graph.enter(Node::Call(callee));
            self.variables(&action.params, &action.locals);
            for param in &action.params {
                if param.direction == Direction::Data
                    && let Some(ty) = self.var_type(param.var)
                    && index_or_scalar_width(ty).is_none()
                {
                    self.fail(7, "action data are scalars");
                }
            }
            self.stmts(&action.body);
        }
        for (index, function) in program.functions.iter().enumerate() {
            self.place = format!("function {}", function.name);
            let callee = Callee::Function(FunctionId(index as u32));
            self.graph.enter(Node::Call(callee));
            self.variables(&function.params, &function.locals);
            if let Some(result) = function.result {
                self.var_type(result);
            }
            self.stmts(&function.body);
        }
    }

    fn variables(&mut self, params: &[Param], locals: &[VarId]) {
        let params = params.iter().map(|param| param.var);
        for var in params.chain(locals.iter().copied()) {
            self.var_type(var);
        }
    }

    fn transition(&mut self, transition: &Transition, states: usize) {
        match transition {
            Transition::To(target) => self.target(*target, states),
            Transition::Select { keys, cases } => {
                for key in keys {
                    self.expr(key);
                    if index_or_scalar_width(key.ty).is_none() {
                        self.fail(8, "a key of a select is no scalar");
                    }
                }
                for (sets, target) in cases {
                    self.target(*target, states);
                    if sets.len() != keys.len() {
                        self.fail(8, "a case has not one key set for each key");
                    }
                    for (set, key) in sets.iter().zip(keys) {
                        self.key_set(8, set, key.ty);
                    }
                    self.members(sets);
                }
            }
        }
    }

    fn target(&mut self, target: Target, states: usize) {
        if let Target::State(StateId(state)) = target
            && state as usize >= states
        {
            self.fail(8, format!("state{state} does not exist"));
        }
    }

    /// Checks that the fields of value sets stand one after the other, all of them.
    fn members(&mut self, sets: &[KeySet]) {
        let mut wanted: Option<(ValueSetId, u32)> = None;
        for set in sets {
            let found = match set {
                KeySet::Member { set, field } => Some((*set, *field)),
                _ => None,
            };
            let sound = match (wanted, found) {
                (None, None | Some((_, 0))) => true,
                (wanted, found) => wanted == found,
            };
            if !sound {
                self.fail(8, "the fields of a value set are not all there in order");
                return;
            }
            wanted = found.and_then(|(id, field)| {
                let set = self.program.value_sets.get(id.index())?;
                ((field as usize) + 1 < set.fields.len()).then_some((id, field + 1))
            });
        }
        if wanted.is_some() {
            self.fail(8, "the fields of a value set are not all there in order");
        }
    }

    fn key_set(&mut self, rule: u8, set: &KeySet, ty: Type) {
        let Some(width) = index_or_scalar_width(ty) else {
            return;
        };
        let fits = |value: &BigUint| value.bits() <= u64::from(width);
        let fit = match set {
            KeySet::Any => true,
            KeySet::Exact(value) => fits(value),
            KeySet::Mask(first, second) | KeySet::Range(first, second) => {
                fits(first) && fits(second)
            }
            KeySet::Prefix(value, length) => fits(value) && *length <= width,
            KeySet::Member { set, field } => {
                let set = self.program.value_sets.get(set.index());
                let field = set.and_then(|set| set.fields.get(*field as usize));
                rule == 8 && field.is_some_and(|field| field.width == width)
            }
        };
        if !fit {
            self.fail(rule, format!("{set:?} does not fit {ty:?}"));
        }
    }

    /// Rule 7.
    pub(super) fn tables(&mut self) {
        let program = self.program;
        for (index, table) in program.tables.iter().enumerate() {
            self.place = format!("table {}", table.name);
            self.graph.enter(Node::Table(TableId(index as u32)));
            for key in &table.keys {
                self.expr(&key.expr);
                if index_or_scalar_width(key.expr.ty).is_none() {
                    self.fail(7, format!("key `{}` is no scalar", key.name));
                }
            }
            for listed in &table.actions {
                let ActionId(id) = listed.action;
                let Some(action) = program.actions.get(id as usize) else {
                    self.fail(1, format!("{} does not exist", listed.action));
                    return;
                };
                let directed: Vec<Param> = action
                    .params
                    .iter()
                    .copied()
                    .filter(|param| param.direction != Direction::Data)
                    .collect();
                self.args(7, &directed, &listed.bound);
            }
            self.action_call(&table.actions, &table.default_action);
            for entry in &table.entries {
                if entry.keys.len() != table.keys.len() {
                    self.fail(7, "an entry has not one key set for each key");
                }
                for (set, key) in entry.keys.iter().zip(&table.keys) {
                    self.key_set(7, set, key.expr.ty);
                }
                self.action_call(&table.actions, &entry.call);
            }
            let counters = program.counters.len();
            if table
                .direct_counter
                .is_some_and(|id| id.index() >= counters)
            {
                self.fail(1, "its direct counter does not exist");
            }
            let meters = program.meters.len();
            if table.direct_meter.is_some_and(|id| id.index() >= meters) {
                self.fail(1, "its direct meter does not exist");
            }
            self.implementation(table);
        }
    }

    fn implementation(&mut self, table: &crate::Table) {
        let selects = match table.implementation {
            None => false,
            Some(id) => match self.program.action_profiles.get(id.index()) {
                Some(profile) => profile.selector.is_some(),
                None => return self.fail(1, "its action profile does not exist"),
            },
        };
        let mut kinds = table.keys.iter().map(|key| key.match_kind);
        if !selects && kinds.any(|kind| kind == MatchKind::Selector) {
            self.fail(7, "it has a selector key and no action selector");
        }
    }

    fn action_call(&mut self, actions: &[crate::TableAction], call: &ActionCall) {
        let Some(listed) = actions.get(call.action as usize) else {
            self.fail(7, format!("it has no action {}", call.action));
            return;
        };
        let action = &self.program.actions[listed.action.index()];
        let data: Vec<Type> = action
            .params
            .iter()
            .filter(|param| param.direction == Direction::Data)
            .filter_map(|param| Some(self.program.vars.get(param.var.index())?.ty))
            .collect();
        if data.len() != call.data.len() {
            self.fail(
                7,
                format!(
                    "`{}` takes {} data, not {}",
                    action.name,
                    data.len(),
                    call.data.len()
                ),
            );
        }
        for (value, ty) in call.data.iter().zip(data) {
            self.constant(7, value, ty);
        }
    }

    /// Checks that a constant is of a type.
    pub(super) fn constant(&mut self, rule: u8, value: &Const, ty: Type) {
        let fits = match (value, ty) {
            (Const::Bool(_), Type::Bool) => true,
            (Const::Bits(value), Type::Bits(width) | Type::Int(width)) => {
                value.bits() <= u64::from(width)
            }
            (Const::Bits(value), Type::Error) => *value < BigUint::from(self.program.errors.len()),
            (Const::Bits(value), Type::Enum(id)) => {
                *value < BigUint::from(self.program.enums[id.index()].members.len())
            }
            _ => false,
        };
        if !fits {
            self.fail(rule, format!("{value:?} is no {ty:?}"));
        }
    }

    /// Rule 11.
    pub(super) fn pipeline(&mut self) {
        use Direction::{In, InOut, Out};
        let pipeline = &self.program.pipeline;
        let standard = Type::Struct(pipeline.standard_metadata);
        let (headers, metadata) = (pipeline.headers, pipeline.metadata);
        self.place = "pipeline".to_owned();
        match self.program.parsers.get(pipeline.parser.index()) {
            Some(parser) => self.block_params(
                "parser",
                &parser.params,
                &[(headers, Out), (metadata, InOut), (standard, InOut)],
            ),
            None => self.fail(1, "its parser does not exist"),
        }
        let all = [(headers, InOut), (metadata, InOut), (standard, InOut)];
        type Block<'a> = (&'a str, ControlId, &'a [(Type, Direction)]);
        let blocks: [Block<'_>; 5] = [
            ("verify_checksum", pipeline.verify_checksum, &all[..2]),
            ("ingress", pipeline.ingress, &all),
            ("egress", pipeline.egress, &all),
            ("compute_checksum", pipeline.compute_checksum, &all[..2]),
            ("deparser", pipeline.deparser, &[(headers, In)]),
        ];
        for (name, id, wanted) in blocks {
            match self.program.controls.get(id.index()) {
                Some(control) => self.block_params(name, &control.params, wanted),
                None => self.fail(1, format!("its {name} does not exist")),
            }
        }
    }

    fn block_params(&mut self, block: &str, params: &[Param], wanted: &[(Type, Direction)]) {
        let found: Vec<_> = params
            .iter()
            .filter_map(|param| {
                let var = self.program.vars.get(param.var.index())?;
                Some((var.ty, param.direction))
            })
            .collect();
        if found != wanted {
            self.fail(
                11,
                format!("the parameters of {block} are {found:?}, not {wanted:?}"),
            );
        }
    }

    /// Rule 12.
    pub(super) fn field_lists(&mut self) {
        let program = self.program;
        for (index, list) in program.field_lists.iter().enumerate() {
            self.place = format!("field list {}", list.number);
            if program.field_lists[..index]
                .iter()
                .any(|other| other.number == list.number)
            {
                self.fail(12, "its number is taken");
            }
            for path in &list.fields {
                let mut ty = Some(program.pipeline.metadata);
                for &step in path {
                    ty = ty.and_then(|ty| program.step_type(ty, &crate::Projection::Field(step)));
                }
                if ty.is_none() {
                    self.fail(12, format!("the user metadata has no member {path:?}"));
                }
            }
        }
    }

    /// Rules 6 and 7: arguments fit parameters.
    pub(super) fn args(&mut self, rule: u8, params: &[Param], args: &[Arg]) {
        if params.len() != args.len() {
            self.fail(
                rule,
                format!("{} arguments for {} parameters", args.len(), params.len()),
            );
        }
        for (index, (param, arg)) in params.iter().zip(args).enumerate() {
            let found = match (param.direction, arg) {
                (Direction::In | Direction::Data, Arg::In(value)) => {
                    self.expr(value);
                    Some(value.ty)
                }
                (Direction::Out, Arg::Out(place)) | (Direction::InOut, Arg::InOut(place)) => {
                    self.place(place)
                }
                _ => {
                    self.fail(
                        rule,
                        format!("argument {index} is not {:?}", param.direction),
                    );
                    None
                }
            };
            let wanted = self.var_type(param.var);
            if let (Some(wanted), Some(found)) = (wanted, found) {
                self.expect_type(rule, &format!("argument {index}"), wanted, found);
            }
        }
    }
}
