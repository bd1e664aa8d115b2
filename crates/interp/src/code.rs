//! What is worked out once for a program.

use stateplane_ir::{ParserId, Program, Type, VarId};
use stateplane_target::bits::mask;
use stateplane_target::layout::{Leaf, MAX_WORDS, scalar_bits};
use stateplane_target::{Layout, StateError};
use std::ops::Range;

/// A field of the standard metadata: its first word among all variables, and a mask
/// of its width.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MetaField {
    pub(crate) at: usize,
    pub(crate) mask: u128,
}

/// Fields of the standard metadata that the architecture sets or reads; those that a
/// program's `standard_metadata_t` lacks are `None`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MetaFields {
    pub(crate) ingress_port: Option<MetaField>,
    pub(crate) egress_spec: Option<MetaField>,
    pub(crate) egress_port: Option<MetaField>,
    pub(crate) instance_type: Option<MetaField>,
    pub(crate) packet_length: Option<MetaField>,
    pub(crate) enq_timestamp: Option<MetaField>,
    pub(crate) enq_qdepth: Option<MetaField>,
    pub(crate) deq_timedelta: Option<MetaField>,
    pub(crate) deq_qdepth: Option<MetaField>,
    pub(crate) ingress_global_timestamp: Option<MetaField>,
    pub(crate) egress_global_timestamp: Option<MetaField>,
    pub(crate) mcast_grp: Option<MetaField>,
    pub(crate) egress_rid: Option<MetaField>,
    pub(crate) checksum_error: Option<MetaField>,
    pub(crate) parser_error: Option<MetaField>,
}

/// Fields that one field list preserves.
#[derive(Clone, Debug)]
pub(crate) struct Preserve {
    pub(crate) number: u32,
    /// Offsets are words among all variables.
    pub(crate) leaves: Vec<Leaf>,
}

/// Variables that a callable resets when it is entered, as ranges of words.
pub(crate) type Resets = Vec<Range<usize>>;

/// A program with its layout.
#[derive(Debug)]
pub(crate) struct Code {
    pub(crate) program: Program,
    pub(crate) layout: Layout,
    /// First word of each variable.
    pub(crate) bases: Vec<usize>,
    /// Words of all variables.
    pub(crate) words: usize,
    /// The words of a packet between blocks: headers, user metadata, standard
    /// metadata. They come first.
    pub(crate) packet: Range<usize>,
    pub(crate) metadata: Range<usize>,
    pub(crate) standard: Range<usize>,
    pub(crate) meta: MetaFields,
    pub(crate) preserves: Vec<Preserve>,
    pub(crate) parser_resets: Vec<Resets>,
    pub(crate) control_resets: Vec<Resets>,
    pub(crate) action_resets: Vec<Resets>,
    pub(crate) function_resets: Vec<Resets>,
}

impl Code {
    /// Lays out a verified program.
    ///
    /// The blocks of the pipeline work on one packet one after the other, so their
    /// parameters of headers, metadata and standard metadata share their words: what
    /// one block leaves is what the next one finds.
    pub(crate) fn new(program: Program) -> Result<Code, StateError> {
        let layout = Layout::new(&program)?;
        let pipeline = &program.pipeline;
        let headers_end = layout.words(pipeline.headers);
        let metadata_end = headers_end + layout.words(pipeline.metadata);
        let standard = Type::Struct(pipeline.standard_metadata);
        let packet_end = metadata_end + layout.words(standard);

        let mut shared = vec![None; program.vars.len()];
        let starts = [0, headers_end, metadata_end];
        let mut share = |params: &[stateplane_ir::Param]| {
            for (param, start) in params.iter().zip(starts) {
                shared[param.var.index()] = Some(start);
            }
        };
        share(&program.parsers[pipeline.parser.index()].params);
        for control in [
            pipeline.verify_checksum,
            pipeline.ingress,
            pipeline.egress,
            pipeline.compute_checksum,
            pipeline.deparser,
        ] {
            share(&program.controls[control.index()].params);
        }

        let mut words = packet_end;
        let mut bases = Vec::with_capacity(program.vars.len());
        for (var, shared) in program.vars.iter().zip(&shared) {
            bases.push(shared.unwrap_or(words));
            if shared.is_none() {
                words = words.saturating_add(layout.words(var.ty));
            }
        }
        if words > MAX_WORDS {
            return Err(StateError::TooLarge {
                what: "the program's variables".to_owned(),
                size: words as u64,
                limit: MAX_WORDS as u64,
            });
        }

        let resets = |locals: &[VarId]| {
            let ranges = locals.iter().map(|var| {
                let start = bases[var.index()];
                start..start + layout.words(program.vars[var.index()].ty)
            });
            merged(ranges.collect())
        };
        let parser_resets = program.parsers.iter().map(|p| resets(&p.locals)).collect();
        let control_resets = program.controls.iter().map(|c| resets(&c.locals)).collect();
        let action_resets = program.actions.iter().map(|a| resets(&a.locals)).collect();
        let function_resets = program
            .functions
            .iter()
            .map(|f| {
                let locals: Vec<VarId> = f.locals.iter().copied().chain(f.result).collect();
                resets(&locals)
            })
            .collect();

        let mut code = Code {
            meta: MetaFields::default(),
            preserves: Vec::new(),
            parser_resets,
            control_resets,
            action_resets,
            function_resets,
            bases,
            words,
            packet: 0..packet_end,
            metadata: headers_end..metadata_end,
            standard: metadata_end..packet_end,
            layout,
            program,
        };
        code.meta = code.meta_fields();
        code.preserves = code.preserved_lists();
        Ok(code)
    }

    /// The pipeline's parser.
    pub(crate) fn parser(&self) -> ParserId {
        self.program.pipeline.parser
    }

    fn meta_fields(&self) -> MetaFields {
        let id = self.program.pipeline.standard_metadata;
        let def = &self.program.structs[id.index()];
        let field = |name: &str| {
            let position = def.fields.iter().position(|field| field.name == name)?;
            let width = scalar_bits(def.fields[position].ty);
            (1..=128).contains(&width).then(|| MetaField {
                at: self.standard.start
                    + self.layout.field_offset(Type::Struct(id), position as u32),
                mask: mask(width),
            })
        };
        MetaFields {
            ingress_port: field("ingress_port"),
            egress_spec: field("egress_spec"),
            egress_port: field("egress_port"),
            instance_type: field("instance_type"),
            packet_length: field("packet_length"),
            enq_timestamp: field("enq_timestamp"),
            enq_qdepth: field("enq_qdepth"),
            deq_timedelta: field("deq_timedelta"),
            deq_qdepth: field("deq_qdepth"),
            ingress_global_timestamp: field("ingress_global_timestamp"),
            egress_global_timestamp: field("egress_global_timestamp"),
            mcast_grp: field("mcast_grp"),
            egress_rid: field("egress_rid"),
            checksum_error: field("checksum_error"),
            parser_error: field("parser_error"),
        }
    }

    fn preserved_lists(&self) -> Vec<Preserve> {
        self.program
            .field_lists
            .iter()
            .map(|list| {
                let mut leaves = Vec::new();
                for path in &list.fields {
                    let mut ty = self.program.pipeline.metadata;
                    let mut at = self.metadata.start;
                    for &step in path {
                        at += self.layout.field_offset(ty, step);
                        let step = stateplane_ir::Projection::Field(step);
                        ty = self.program.step_type(ty, &step).unwrap_or(Type::Bits(0));
                    }
                    leaves.extend(self.layout.leaves(ty).into_iter().map(|leaf| Leaf {
                        offset: leaf.offset + at,
                        ..leaf
                    }));
                }
                Preserve {
                    number: list.number,
                    leaves,
                }
            })
            .collect()
    }
}

/// Ranges in order, those that touch made one.
fn merged(mut ranges: Resets) -> Resets {
    ranges.sort_unstable_by_key(|range| range.start);
    let mut merged: Resets = Vec::new();
    for range in ranges {
        match merged.last_mut() {
            Some(last) if last.end >= range.start => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    merged
}
