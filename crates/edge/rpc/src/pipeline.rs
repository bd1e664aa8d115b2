//! A pipeline: P4Info, and where its objects are in the target.

use crate::bytes::{Form, Forms};
use crate::names::Names;
use crate::packet::{HeaderField, Layout, PacketHeader};
use crate::proto::config;
use crate::refusal::Refusal;
use stateplane_runtime::{Port, TargetState};
use std::collections::BTreeMap;

/// P4Info with what serves it.
#[derive(Clone, Debug)]
pub struct Pipeline {
    /// P4Info of the control plane, or of the compiler.
    pub info: config::P4Info,
    /// The program's source as the control plane gave it.
    pub device_config: Vec<u8>,
    /// The control plane's mark.
    pub cookie: Option<u64>,
    pub(crate) tables: BTreeMap<u32, TableIndex>,
    pub(crate) actions: BTreeMap<u32, ActionIndex>,
    pub(crate) profiles: BTreeMap<u32, ProfileIndex>,
    pub(crate) counters: BTreeMap<u32, String>,
    pub(crate) meters: BTreeMap<u32, String>,
    pub(crate) registers: BTreeMap<u32, RegisterIndex>,
    pub(crate) value_sets: BTreeMap<u32, ValueSetIndex>,
    pub(crate) digests: BTreeMap<u32, DigestIndex>,
    /// Tables of direct counters and meters by the ids of these.
    pub(crate) direct: BTreeMap<u32, u32>,
    pub(crate) packet_in: Option<Layout>,
    pub(crate) packet_out: Option<Layout>,
    /// Texts by the names of their types.
    names: BTreeMap<String, Names>,
    action_ids: BTreeMap<String, u32>,
    table_ids: BTreeMap<String, u32>,
}

/// A field of a key or value set.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) id: u32,
    pub(crate) name: String,
    pub(crate) kind: config::match_field::MatchType,
    pub(crate) form: Form,
    pub(crate) width: u32,
}

#[derive(Clone, Debug)]
pub(crate) struct TableIndex {
    pub(crate) id: u32,
    /// Position among the target's tables.
    pub(crate) at: stateplane_ir::TableId,
    pub(crate) name: String,
    pub(crate) fields: Vec<Field>,
    pub(crate) actions: Vec<u32>,
    /// Id of its action profile, or 0.
    pub(crate) profile: u32,
    pub(crate) has_counter: bool,
    pub(crate) has_meter: bool,
    pub(crate) ages: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct ActionIndex {
    pub(crate) id: u32,
    pub(crate) name: String,
    pub(crate) params: Vec<ParamIndex>,
}

#[derive(Clone, Debug)]
pub(crate) struct ParamIndex {
    pub(crate) id: u32,
    pub(crate) name: String,
    pub(crate) form: Form,
}

#[derive(Clone, Debug)]
pub(crate) struct ProfileIndex {
    pub(crate) id: u32,
    pub(crate) name: String,
    pub(crate) with_selector: bool,
    pub(crate) max_group_size: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct RegisterIndex {
    pub(crate) at: stateplane_ir::RegisterId,
    pub(crate) name: String,
    pub(crate) spec: config::P4DataTypeSpec,
    /// Written by way of a view of sync alone.
    pub(crate) is_in_view: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct ValueSetIndex {
    pub(crate) name: String,
    pub(crate) fields: Vec<Field>,
}

#[derive(Clone, Debug)]
pub(crate) struct DigestIndex {
    pub(crate) id: u32,
    pub(crate) name: String,
    pub(crate) spec: config::P4DataTypeSpec,
}

/// Controller headers of packets in each direction, by the names that the specification
/// gives them.
const PACKET_IN: &str = "packet_in";
const PACKET_OUT: &str = "packet_out";

impl Pipeline {
    /// The pipeline of a P4Info for the program whose state is `state`. `headers` are the
    /// program's controller headers, whose hidden fields P4Info does not have; `ports` are
    /// what people call the ports.
    ///
    /// # Errors
    ///
    /// `INVALID_ARGUMENT` if the P4Info is not that of the program.
    pub fn new(
        info: config::P4Info,
        headers: &[PacketHeader],
        state: &TargetState,
        ports: &BTreeMap<Port, String>,
    ) -> Result<Pipeline, Refusal> {
        let forms = Forms::new(info.type_info.as_ref(), ports);
        let mut pipeline = Pipeline {
            info: config::P4Info::default(),
            device_config: Vec::new(),
            cookie: None,
            tables: BTreeMap::new(),
            actions: BTreeMap::new(),
            profiles: BTreeMap::new(),
            counters: BTreeMap::new(),
            meters: BTreeMap::new(),
            registers: BTreeMap::new(),
            value_sets: BTreeMap::new(),
            digests: BTreeMap::new(),
            direct: BTreeMap::new(),
            packet_in: header(headers, &info, PACKET_IN, &forms)?,
            packet_out: header(headers, &info, PACKET_OUT, &forms)?,
            names: BTreeMap::new(),
            action_ids: BTreeMap::new(),
            table_ids: BTreeMap::new(),
        };
        for action in &info.actions {
            let (id, name) = identity(&action.preamble)?;
            let params = action.params.iter().map(|param| ParamIndex {
                id: param.id,
                name: param.name.clone(),
                form: forms.of(param.bitwidth, param.type_name.as_ref()),
            });
            let action = ActionIndex {
                id,
                name: name.clone(),
                params: params.collect(),
            };
            pipeline.actions.insert(id, action);
            pipeline.action_ids.insert(name, id);
        }
        for table in &info.tables {
            pipeline.add_table(table, &forms, state)?;
        }
        for profile in &info.action_profiles {
            let (id, name) = identity(&profile.preamble)?;
            present(state.profile(&name).is_ok(), "action profile", &name)?;
            let profile = ProfileIndex {
                id,
                name,
                with_selector: profile.with_selector,
                max_group_size: u64::try_from(profile.max_group_size).unwrap_or(0),
            };
            pipeline.profiles.insert(id, profile);
        }
        for counter in &info.counters {
            let (id, name) = identity(&counter.preamble)?;
            present(state.counter(&name).is_ok(), "counter", &name)?;
            pipeline.counters.insert(id, name);
        }
        for meter in &info.meters {
            let (id, name) = identity(&meter.preamble)?;
            present(state.meter(&name).is_ok(), "meter", &name)?;
            pipeline.meters.insert(id, name);
        }
        for register in &info.registers {
            let (id, name) = identity(&register.preamble)?;
            let at = state.registers().iter().position(|it| it.name() == name);
            present(at.is_some(), "register", &name)?;
            let register = RegisterIndex {
                at: stateplane_ir::RegisterId(at.unwrap_or(0) as u32),
                name,
                spec: register.type_spec.clone().unwrap_or_default(),
                is_in_view: at.is_some_and(|at| state.registers()[at].is_in_view()),
            };
            pipeline.registers.insert(id, register);
        }
        for set in &info.value_sets {
            let (id, name) = identity(&set.preamble)?;
            let found = state.value_set(&name);
            let count = found.map_or(0, |set| set.keys().len());
            present(count == set.r#match.len() && count > 0, "value set", &name)?;
            let fields = set.r#match.iter().map(|field| self::field(field, &forms));
            let fields = fields.collect();
            pipeline
                .value_sets
                .insert(id, ValueSetIndex { name, fields });
        }
        for digest in &info.digests {
            let (id, name) = identity(&digest.preamble)?;
            let spec = digest.type_spec.clone().unwrap_or_default();
            pipeline.digests.insert(id, DigestIndex { id, name, spec });
        }
        for counter in &info.direct_counters {
            let (id, _) = identity(&counter.preamble)?;
            pipeline.direct.insert(id, counter.direct_table_id);
        }
        for meter in &info.direct_meters {
            let (id, _) = identity(&meter.preamble)?;
            pipeline.direct.insert(id, meter.direct_table_id);
        }
        pipeline.info = info;
        pipeline.names = forms.into_names();
        Ok(pipeline)
    }

    fn add_table(
        &mut self,
        table: &config::Table,
        forms: &Forms,
        state: &TargetState,
    ) -> Result<(), Refusal> {
        let (id, name) = identity(&table.preamble)?;
        let at = state.tables().iter().position(|it| it.name() == name);
        present(at.is_some(), "table", &name)?;
        let at = at.unwrap_or(0);
        let target = &state.tables()[at];
        if target.keys().len() != table.match_fields.len() {
            return Err(Refusal::invalid(format!(
                "table `{name}` has {} match fields in the P4Info, {} in the program",
                table.match_fields.len(),
                target.keys().len()
            )));
        }
        for (field, key) in table.match_fields.iter().zip(target.keys()) {
            if field.name != key.name {
                return Err(Refusal::invalid(format!(
                    "a match field of table `{name}` is `{}` in the P4Info, `{}` in the program",
                    field.name, key.name
                )));
            }
        }
        for listed in &table.action_refs {
            if !self.actions.contains_key(&listed.id) {
                return Err(Refusal::invalid(format!(
                    "table `{name}` refers to action {}, which the P4Info does not have",
                    listed.id
                )));
            }
        }
        let has = |kind: config::p4_ids::Prefix| {
            table
                .direct_resource_ids
                .iter()
                .any(|id| id >> 24 == kind as u32)
        };
        let index = TableIndex {
            id,
            at: stateplane_ir::TableId(at as u32),
            name: name.clone(),
            fields: table
                .match_fields
                .iter()
                .map(|field| self::field(field, forms))
                .collect(),
            actions: table.action_refs.iter().map(|listed| listed.id).collect(),
            profile: table.implementation_id,
            has_counter: has(config::p4_ids::Prefix::DirectCounter),
            has_meter: has(config::p4_ids::Prefix::DirectMeter),
            ages: table.idle_timeout_behavior != 0,
        };
        self.tables.insert(id, index);
        self.table_ids.insert(name, id);
        Ok(())
    }

    /// Takes over the texts of types that `before` had too.
    pub(crate) fn learn_names(&self, before: &Pipeline) {
        for (name, names) in &self.names {
            if let Some(known) = before.names.get(name) {
                names.learn(known);
            }
        }
    }

    /// True if some type is translated to texts.
    pub(crate) fn has_names(&self) -> bool {
        !self.names.is_empty()
    }

    /// Forgets the texts that nothing uses.
    pub(crate) fn forget_unused_names(&self) {
        self.names.values().for_each(Names::forget_unused);
    }

    /// Counts no texts as used: what is kept is written anew.
    pub(crate) fn release_names(&self) {
        self.names.values().for_each(Names::release_all);
    }

    pub(crate) fn table(&self, id: u32) -> Result<&TableIndex, Refusal> {
        self.tables.get(&id).ok_or_else(|| unknown("table", id))
    }

    pub(crate) fn action(&self, id: u32) -> Result<&ActionIndex, Refusal> {
        // The specification has INVALID_ARGUMENT for an action that the table lacks.
        self.actions
            .get(&id)
            .ok_or_else(|| Refusal::invalid(format!("the P4Info has no action {id}")))
    }

    pub(crate) fn action_named(&self, name: &str) -> Option<&ActionIndex> {
        self.actions.get(self.action_ids.get(name)?)
    }

    pub(crate) fn table_named(&self, name: &str) -> Option<&TableIndex> {
        self.tables.get(self.table_ids.get(name)?)
    }

    pub(crate) fn profile(&self, id: u32) -> Result<&ProfileIndex, Refusal> {
        self.profiles
            .get(&id)
            .ok_or_else(|| unknown("action profile", id))
    }

    pub(crate) fn register(&self, id: u32) -> Result<&RegisterIndex, Refusal> {
        self.registers
            .get(&id)
            .ok_or_else(|| unknown("register", id))
    }

    pub(crate) fn value_set(&self, id: u32) -> Result<&ValueSetIndex, Refusal> {
        self.value_sets
            .get(&id)
            .ok_or_else(|| unknown("value set", id))
    }

    pub(crate) fn digest(&self, id: u32) -> Result<&DigestIndex, Refusal> {
        self.digests.get(&id).ok_or_else(|| unknown("digest", id))
    }

    pub(crate) fn digest_named(&self, name: &str) -> Option<&DigestIndex> {
        self.digests.values().find(|digest| digest.name == name)
    }

    pub(crate) fn types(&self) -> Option<&config::P4TypeInfo> {
        self.info.type_info.as_ref()
    }
}

/// Refusal of an id that the P4Info does not contain.
pub(crate) fn unknown(what: &str, id: u32) -> Refusal {
    Refusal::not_found(format!("the P4Info has no {what} {id} ({id:#010x})"))
}

fn identity(preamble: &Option<config::Preamble>) -> Result<(u32, String), Refusal> {
    match preamble {
        Some(preamble) => Ok((preamble.id, preamble.name.clone())),
        None => Err(Refusal::invalid("an object of the P4Info has no preamble")),
    }
}

fn present(is: bool, what: &str, name: &str) -> Result<(), Refusal> {
    if is {
        Ok(())
    } else {
        Err(Refusal::invalid(format!(
            "the program has no {what} `{name}` like that of the P4Info"
        )))
    }
}

fn field(field: &config::MatchField, forms: &Forms) -> Field {
    use config::match_field::{Match, MatchType};
    let kind = match field.r#match {
        Some(Match::MatchType(number)) => {
            MatchType::try_from(number).unwrap_or(MatchType::Unspecified)
        }
        _ => MatchType::Unspecified,
    };
    Field {
        id: field.id,
        name: field.name.clone(),
        kind,
        form: forms.of(field.bitwidth, field.type_name.as_ref()),
        width: u32::try_from(field.bitwidth).unwrap_or(0),
    }
}

fn header(
    headers: &[PacketHeader],
    info: &config::P4Info,
    name: &str,
    forms: &Forms,
) -> Result<Option<Layout>, Refusal> {
    let mut wanted = info.controller_packet_metadata.iter();
    let wanted = wanted.find(|it| it.preamble.as_ref().is_some_and(|it| it.name == name));
    let Some(wanted) = wanted else {
        return Ok(None);
    };
    let Some(found) = headers.iter().find(|header| header.name == name) else {
        return Err(Refusal::invalid(format!(
            "the program has no header with @controller_header(\"{name}\")"
        )));
    };
    let form = |field: &HeaderField| {
        let mut metadata = wanted.metadata.iter();
        let known = metadata.find(|it| Some(it.id) == field.id);
        match known.and_then(|it| it.type_name.as_ref()) {
            Some(name) => match forms.of(0, Some(name)) {
                Form::Bits(_) => Form::Bits(field.width),
                text => text,
            },
            None => Form::Bits(field.width),
        }
    };
    Ok(Some(Layout {
        forms: found.fields.iter().map(form).collect(),
        header: found.clone(),
    }))
}
