//! One message for each kind of object.

use crate::annotation::{documentation, has, kept, wrong};
use crate::error::GenerateError;
use crate::fields::field_ids;
use crate::proto;
use crate::symbols::{Kind, Symbols};
use crate::types::{TypeTable, flatten, reference};
use num_bigint::BigInt;
use num_traits::ToPrimitive;
use stateplane_ir::{
    Action, ActionId, ActionProfile, Annotation, Const, Counter, CounterId, CounterKind, DataType,
    DigestInterface, Interface, MatchKind, Meter, MeterId, NamedTypeId, NamedTypeKind, Program,
    Register, RegisterId, Table, TableId, ValueSet, ValueSetId,
};

/// Entries of a table that does not say, or says 0.
const DEFAULT_SIZE: i64 = 1024;

/// Inputs of the messages.
pub(crate) struct Objects<'a> {
    pub(crate) program: &'a Program,
    pub(crate) interface: &'a Interface,
    pub(crate) symbols: &'a Symbols,
    pub(crate) types: TypeTable<'a>,
}

impl Objects<'_> {
    fn preamble(&self, kind: Kind, name: &str, annotations: &[Annotation]) -> proto::Preamble {
        self.preamble_except(kind, name, annotations, &[])
    }

    fn preamble_except(
        &self,
        kind: Kind,
        name: &str,
        annotations: &[Annotation],
        except: &[&str],
    ) -> proto::Preamble {
        let kept = kept(annotations, except);
        proto::Preamble {
            id: self.symbols.id(kind, name),
            name: name.to_owned(),
            alias: self.symbols.alias(name).to_owned(),
            annotations: kept.unstructured,
            structured_annotations: kept.structured,
            doc: documentation(annotations),
            annotation_locations: Vec::new(),
        }
    }

    /// A table.
    pub(crate) fn table(
        &mut self,
        id: TableId,
        table: &Table,
    ) -> Result<proto::Table, GenerateError> {
        let default = &table.actions[table.default_action.action as usize];
        let default_id = self.action_id(default.action);
        let preamble = self.preamble(Kind::Table, &table.name, &table.annotations);
        let facts = self.interface.tables.get(&id);
        let size = facts
            .and_then(|facts| facts.size)
            .and_then(|size| i64::try_from(size).ok())
            .filter(|size| *size != 0)
            .unwrap_or(DEFAULT_SIZE);
        let mut direct_resource_ids = Vec::new();
        if let Some(counter) = table.direct_counter {
            let name = &self.program.counters[counter.index()].name;
            direct_resource_ids.push(self.symbols.id(Kind::DirectCounter, name));
        }
        if let Some(meter) = table.direct_meter {
            let name = &self.program.meters[meter.index()].name;
            direct_resource_ids.push(self.symbols.id(Kind::DirectMeter, name));
        }
        let implementation_id = table.implementation.map_or(0, |profile| {
            let name = &self.program.action_profiles[profile.index()].name;
            self.symbols.id(Kind::ActionProfile, name)
        });
        Ok(proto::Table {
            preamble: Some(preamble),
            match_fields: self.match_fields(id, table)?,
            action_refs: self.action_refs(id, table),
            const_default_action_id: if table.const_default { default_id } else { 0 },
            initial_default_action: Some(proto::TableActionCall {
                action_id: default_id,
                arguments: self.default_arguments(default.action, table)?,
            }),
            implementation_id,
            direct_resource_ids,
            size,
            idle_timeout_behavior: i32::from(table.support_timeout),
            is_const_table: table.const_entries,
            has_initial_entries: !table.entries.is_empty(),
            other_properties: None,
        })
    }

    fn action_id(&self, id: ActionId) -> u32 {
        let name = &self.program.actions[id.index()].name;
        self.symbols.id(Kind::Action, name)
    }

    fn match_fields(
        &mut self,
        id: TableId,
        table: &Table,
    ) -> Result<Vec<proto::MatchField>, GenerateError> {
        let Some(facts) = self.interface.tables.get(&id) else {
            return Ok(Vec::new());
        };
        let annotations = facts
            .keys
            .iter()
            .map(|(_, annotations)| annotations.as_slice());
        let ids = field_ids(&table.name, annotations)?;
        let mut fields = Vec::new();
        for ((key, (ty, annotations)), id) in table.keys.iter().zip(&facts.keys).zip(ids) {
            let Some(match_type) = match_type(key.match_kind) else {
                continue;
            };
            let (bitwidth, type_name) = self.types.field(ty)?;
            let kept = kept(annotations, &[]);
            fields.push(proto::MatchField {
                id,
                name: key.name.clone(),
                annotations: kept.unstructured,
                structured_annotations: kept.structured,
                doc: documentation(annotations),
                bitwidth,
                r#match: Some(match_type),
                type_name,
                annotation_locations: Vec::new(),
            });
        }
        Ok(fields)
    }

    fn action_refs(&self, id: TableId, table: &Table) -> Vec<proto::ActionRef> {
        use proto::action_ref::Scope;
        let Some(facts) = self.interface.tables.get(&id) else {
            return Vec::new();
        };
        let refs = facts.action_refs.iter();
        refs.map(|(action, annotations)| {
            let kept = kept(annotations, &[]);
            let listed = table.actions.iter().find(|listed| listed.action == *action);
            let scope = match listed.map(|listed| (listed.in_entries, listed.as_default)) {
                Some((true, false)) => Scope::TableOnly,
                Some((false, true)) => Scope::DefaultOnly,
                _ => Scope::TableAndDefault,
            };
            proto::ActionRef {
                id: self.action_id(*action),
                scope: scope.into(),
                annotations: kept.unstructured,
                structured_annotations: kept.structured,
                annotation_locations: Vec::new(),
            }
        })
        .collect()
    }

    fn default_arguments(
        &self,
        action: ActionId,
        table: &Table,
    ) -> Result<Vec<proto::table_action_call::Argument>, GenerateError> {
        let Some(facts) = self.interface.actions.get(&action) else {
            return Ok(Vec::new());
        };
        let name = &self.program.actions[action.index()].name;
        let annotations = facts
            .params
            .iter()
            .map(|param| param.annotations.as_slice());
        let ids = field_ids(name, annotations)?;
        let data = &table.default_action.data;
        let arguments = facts.params.iter().zip(ids).zip(data);
        Ok(arguments
            .map(|((param, id), value)| proto::table_action_call::Argument {
                param_id: id,
                value: value_bytes(
                    &number(value),
                    crate::types::width(self.interface, &param.ty),
                ),
            })
            .collect())
    }

    /// An action; `has_data` tells whether the control plane gives its data.
    pub(crate) fn action(
        &mut self,
        id: ActionId,
        action: &Action,
        has_data: bool,
    ) -> Result<proto::Action, GenerateError> {
        let facts = self.interface.actions.get(&id).filter(|_| has_data);
        let params = facts.map_or(&[][..], |facts| &facts.params);
        let annotations = params.iter().map(|param| param.annotations.as_slice());
        let ids = field_ids(&action.name, annotations)?;
        let mut messages = Vec::new();
        for (param, id) in params.iter().zip(ids) {
            let (bitwidth, mut type_name) = self.types.field(&param.ty)?;
            if let DataType::Named(named) = &param.ty {
                let named = self.types.named(*named);
                if matches!(named.kind, NamedTypeKind::Enum(_)) {
                    type_name = Some(reference(&named.name));
                }
            }
            let kept = kept(&param.annotations, &[]);
            messages.push(proto::action::Param {
                id,
                name: param.name.clone(),
                annotations: kept.unstructured,
                structured_annotations: kept.structured,
                doc: documentation(&param.annotations),
                bitwidth,
                type_name,
                annotation_locations: Vec::new(),
            });
        }
        Ok(proto::Action {
            preamble: Some(self.preamble(Kind::Action, &action.name, &action.annotations)),
            params: messages,
        })
    }

    /// An action profile or selector, with the tables that use it.
    pub(crate) fn action_profile(
        &self,
        profile: &ActionProfile,
        table_ids: Vec<u32>,
    ) -> Result<proto::ActionProfile, GenerateError> {
        use proto::action_profile::{SelectorSizeSemantics, SumOfMembers, SumOfWeights};
        const GROUP_SIZE: &str = "max_group_size";
        const SEMANTICS: &str = "selector_size_semantics";
        const WEIGHT: &str = "max_member_weight";
        let annotations = &profile.annotations;
        let with_selector = profile.selector.is_some();
        let number = |name| match Annotation::find(annotations, name) {
            Some(annotation) if with_selector => annotation
                .integer()
                .and_then(ToPrimitive::to_i32)
                .ok_or_else(|| wrong(&profile.name, annotation, "expected one number")),
            _ => Ok(0),
        };
        let semantics = match Annotation::find(annotations, SEMANTICS) {
            Some(annotation) if with_selector => {
                let text = annotation.string().unwrap_or_default();
                match text.to_ascii_lowercase().as_str() {
                    "sum_of_weights" => Some(SelectorSizeSemantics::SumOfWeights(SumOfWeights {})),
                    "sum_of_members" => Some(SelectorSizeSemantics::SumOfMembers(SumOfMembers {
                        max_member_weight: number(WEIGHT)?,
                    })),
                    _ => {
                        let expected = "expected \"sum_of_weights\" or \"sum_of_members\"";
                        return Err(wrong(&profile.name, annotation, expected));
                    }
                }
            }
            _ => None,
        };
        let except = [GROUP_SIZE, SEMANTICS, WEIGHT];
        let preamble =
            self.preamble_except(Kind::ActionProfile, &profile.name, annotations, &except);
        Ok(proto::ActionProfile {
            preamble: Some(preamble),
            table_ids,
            with_selector,
            size: i64::try_from(profile.size).unwrap_or(i64::MAX),
            max_group_size: number(GROUP_SIZE)?,
            selector_size_semantics: semantics,
            weights_disallowed: false,
        })
    }

    /// An indirect counter.
    pub(crate) fn counter(&self, id: usize, counter: &Counter) -> proto::Counter {
        proto::Counter {
            preamble: Some(self.counter_preamble(Kind::Counter, id, counter)),
            spec: Some(counter_spec(counter)),
            size: i64::try_from(counter.size).unwrap_or(i64::MAX),
            index_type_name: None,
        }
    }

    /// A table's counter.
    pub(crate) fn direct_counter(
        &self,
        id: usize,
        counter: &Counter,
        table: TableId,
    ) -> proto::DirectCounter {
        proto::DirectCounter {
            preamble: Some(self.counter_preamble(Kind::DirectCounter, id, counter)),
            spec: Some(counter_spec(counter)),
            direct_table_id: self.table_id(table),
        }
    }

    fn counter_preamble(&self, kind: Kind, id: usize, counter: &Counter) -> proto::Preamble {
        let annotations = self.interface.counters.get(&CounterId(id as u32));
        let annotations = annotations.map_or(&[][..], Vec::as_slice);
        self.preamble(kind, &counter.name, annotations)
    }

    fn table_id(&self, id: TableId) -> u32 {
        let name = &self.program.tables[id.index()].name;
        self.symbols.id(Kind::Table, name)
    }

    /// An indirect meter.
    pub(crate) fn meter(&self, id: usize, meter: &Meter) -> proto::Meter {
        proto::Meter {
            preamble: Some(self.meter_preamble(Kind::Meter, id, meter)),
            spec: Some(meter_spec(meter)),
            size: i64::try_from(meter.size).unwrap_or(i64::MAX),
            index_type_name: None,
        }
    }

    /// A table's meter.
    pub(crate) fn direct_meter(
        &self,
        id: usize,
        meter: &Meter,
        table: TableId,
    ) -> proto::DirectMeter {
        proto::DirectMeter {
            preamble: Some(self.meter_preamble(Kind::DirectMeter, id, meter)),
            spec: Some(meter_spec(meter)),
            direct_table_id: self.table_id(table),
        }
    }

    fn meter_preamble(&self, kind: Kind, id: usize, meter: &Meter) -> proto::Preamble {
        let annotations = self.interface.meters.get(&MeterId(id as u32));
        let annotations = annotations.map_or(&[][..], Vec::as_slice);
        self.preamble(kind, &meter.name, annotations)
    }

    /// A header of packets to or from the controller; none if it is hidden.
    pub(crate) fn controller_header(
        &mut self,
        id: NamedTypeId,
    ) -> Result<Option<proto::ControllerPacketMetadata>, GenerateError> {
        let header = self.types.named(id);
        let NamedTypeKind::Header(members) = &header.kind else {
            return Ok(None);
        };
        if has(&header.annotations, "hidden") {
            return Ok(None);
        }
        let annotation = Annotation::find(&header.annotations, "controller_header");
        let Some(name) = annotation.and_then(Annotation::string) else {
            return match annotation {
                None => Ok(None),
                Some(annotation) => Err(wrong(
                    &header.name,
                    annotation,
                    "expected a name in quotes, for example \"packet_in\"",
                )),
            };
        };
        let fields = flatten(self.interface, members);
        let annotations = fields
            .iter()
            .map(|(_, annotations, _)| annotations.as_slice());
        let ids = field_ids(&header.name, annotations)?;
        let mut metadata = Vec::new();
        for ((field, annotations, ty), id) in fields.iter().zip(ids) {
            if has(annotations, "hidden") {
                continue;
            }
            let (bitwidth, type_name) = self.types.field(ty)?;
            let kept = kept(annotations, &[]);
            metadata.push(proto::controller_packet_metadata::Metadata {
                id,
                name: field.clone(),
                annotations: kept.unstructured,
                structured_annotations: kept.structured,
                bitwidth,
                type_name,
                annotation_locations: Vec::new(),
            });
        }
        // The name is the annotation's, but the id that of the header.
        let kept = kept(&header.annotations, &[]);
        let preamble = proto::Preamble {
            id: self.symbols.id(Kind::ControllerHeader, &header.name),
            name: name.to_owned(),
            alias: name.to_owned(),
            annotations: kept.unstructured,
            structured_annotations: kept.structured,
            doc: documentation(&header.annotations),
            annotation_locations: Vec::new(),
        };
        Ok(Some(proto::ControllerPacketMetadata {
            preamble: Some(preamble),
            metadata,
        }))
    }

    /// A parser's value set. Members that are structs have a field for each of theirs.
    pub(crate) fn value_set(
        &mut self,
        id: usize,
        set: &ValueSet,
    ) -> Result<proto::ValueSet, GenerateError> {
        let element = self.interface.value_sets.get(&ValueSetId(id as u32));
        let members = match element {
            Some(DataType::Named(named)) => match &self.types.named(*named).kind {
                NamedTypeKind::Struct(members) => flatten(self.interface, members),
                _ => Vec::new(),
            },
            _ => Vec::new(),
        };
        let annotations_of = |position: usize| match members.get(position) {
            Some((_, annotations, _)) => annotations.as_slice(),
            None => &[],
        };
        let annotations = (0..set.fields.len()).map(annotations_of);
        let ids = field_ids(&set.name, annotations)?;
        let mut fields = Vec::new();
        for ((position, field), id) in set.fields.iter().enumerate().zip(ids) {
            let annotations = annotations_of(position);
            let kept = kept(annotations, &["match"]);
            let name = match members.get(position) {
                Some((name, _, _)) => name.clone(),
                None => field.name.clone(),
            };
            fields.push(proto::MatchField {
                id,
                name,
                annotations: kept.unstructured,
                structured_annotations: kept.structured,
                doc: documentation(annotations),
                bitwidth: i32::try_from(field.width).unwrap_or(i32::MAX),
                r#match: match_type(field.match_kind),
                type_name: None,
                annotation_locations: Vec::new(),
            });
        }
        Ok(proto::ValueSet {
            preamble: Some(self.preamble(Kind::ValueSet, &set.name, &set.annotations)),
            r#match: fields,
            size: i32::try_from(set.size).unwrap_or(i32::MAX),
        })
    }

    /// A register array.
    pub(crate) fn register(
        &mut self,
        id: usize,
        register: &Register,
    ) -> Result<proto::Register, GenerateError> {
        let facts = self.interface.registers.get(&RegisterId(id as u32));
        let type_spec = match facts {
            Some(facts) => Some(self.types.spec(&facts.element)?),
            None => None,
        };
        let annotations = facts.map_or(&register.annotations, |facts| &facts.annotations);
        Ok(proto::Register {
            preamble: Some(self.preamble(Kind::Register, &register.name, annotations)),
            type_spec,
            size: i32::try_from(register.size).unwrap_or(i32::MAX),
            index_type_name: None,
        })
    }

    /// A message to the controller.
    pub(crate) fn digest(
        &mut self,
        digest: &DigestInterface,
    ) -> Result<proto::Digest, GenerateError> {
        Ok(proto::Digest {
            type_spec: Some(self.types.spec(&digest.ty)?),
            preamble: Some(self.preamble(Kind::Digest, &digest.name, &[])),
        })
    }
}

/// Match type of a field; `None` for inputs of a selector's hash, which the control plane does not
/// see.
fn match_type(kind: MatchKind) -> Option<proto::match_field::Match> {
    use proto::match_field::{Match, MatchType};
    let kind = match kind {
        MatchKind::Exact => MatchType::Exact,
        MatchKind::Lpm => MatchType::Lpm,
        MatchKind::Ternary => MatchType::Ternary,
        MatchKind::Range => MatchType::Range,
        MatchKind::Optional => MatchType::Optional,
        MatchKind::Selector => return None,
    };
    Some(Match::MatchType(kind.into()))
}

fn counter_spec(counter: &Counter) -> proto::CounterSpec {
    use proto::counter_spec::Unit;
    let unit = match counter.kind {
        CounterKind::Packets => Unit::Packets,
        CounterKind::Bytes => Unit::Bytes,
        CounterKind::PacketsAndBytes => Unit::Both,
    };
    proto::CounterSpec { unit: unit.into() }
}

fn meter_spec(meter: &Meter) -> proto::MeterSpec {
    use proto::meter_spec::{Type, Unit};
    let unit = if meter.bytes {
        Unit::Bytes
    } else {
        Unit::Packets
    };
    proto::MeterSpec {
        unit: unit.into(),
        r#type: Type::TwoRateThreeColor.into(),
    }
}

fn number(value: &Const) -> BigInt {
    match value {
        Const::Bool(value) => BigInt::from(u8::from(*value)),
        Const::Bits(bits) => BigInt::from(bits.clone()),
    }
}

/// A value of that many bits in big-endian bytes, not shortened, as the reference
/// compiler writes them. A negative value is in two's complement.
pub(crate) fn value_bytes(value: &BigInt, width: i32) -> Vec<u8> {
    let width = u32::try_from(width).unwrap_or(0);
    let length = width.div_ceil(8) as usize;
    let modulus = BigInt::from(1) << width;
    let value = ((value % &modulus) + &modulus) % &modulus;
    let (_, digits) = value.to_bytes_be();
    let mut bytes = vec![0; length];
    let digits = &digits[digits.len().saturating_sub(length)..];
    bytes[length - digits.len()..].copy_from_slice(digits);
    bytes
}

/// The preambles of all objects.
pub(crate) fn preambles(info: &proto::P4Info) -> impl Iterator<Item = &proto::Preamble> {
    let tables = info.tables.iter().map(|it| &it.preamble);
    let actions = info.actions.iter().map(|it| &it.preamble);
    let profiles = info.action_profiles.iter().map(|it| &it.preamble);
    let counters = info.counters.iter().map(|it| &it.preamble);
    let direct_counters = info.direct_counters.iter().map(|it| &it.preamble);
    let meters = info.meters.iter().map(|it| &it.preamble);
    let direct_meters = info.direct_meters.iter().map(|it| &it.preamble);
    let headers = info
        .controller_packet_metadata
        .iter()
        .map(|it| &it.preamble);
    let value_sets = info.value_sets.iter().map(|it| &it.preamble);
    let registers = info.registers.iter().map(|it| &it.preamble);
    let digests = info.digests.iter().map(|it| &it.preamble);
    tables
        .chain(actions)
        .chain(profiles)
        .chain(counters)
        .chain(direct_counters)
        .chain(meters)
        .chain(direct_meters)
        .chain(headers)
        .chain(value_sets)
        .chain(registers)
        .chain(digests)
        .flatten()
}
