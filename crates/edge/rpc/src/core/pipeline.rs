//! Pipelines: checked, saved, committed, shown.

use super::{Core, PipelineAction, Prepared, Saved};
use crate::entity::{Context, Shadow, replication};
use crate::fit;
use crate::gather;
use crate::pipeline::Pipeline;
use crate::proto::v1;
use crate::reconcile;
use crate::refusal::Refusal;
use stateplane_runtime::Engine;
use stateplane_switch::{Fellows, Switch};

impl<E: Engine> Core<E> {
    pub(super) fn change_pipeline(
        &mut self,
        switch: &mut Switch<E>,
        fellows: &mut dyn Fellows<E>,
        now: u64,
        request: v1::SetForwardingPipelineConfigRequest,
        prepared: Option<Prepared<E>>,
    ) -> Result<(), Refusal> {
        self.sessions.check_writer(
            request.device_id,
            &request.role,
            request.election_id.as_ref(),
        )?;
        let action = PipelineAction::try_from(request.action)
            .ok()
            .filter(|action| *action != PipelineAction::Unspecified)
            .ok_or_else(|| Refusal::invalid("the request says not what to do with the config"))?;
        if action == PipelineAction::Commit {
            let saved = self
                .saved
                .take()
                .ok_or_else(|| Refusal::not_found("no config is saved: VERIFY_AND_SAVE one"))?;
            return self.commit(switch, fellows, now, saved, false);
        }
        let given = request
            .config
            .ok_or_else(|| Refusal::invalid("the request has no config"))?;
        let saved = self.verify(given, prepared)?;
        match action {
            PipelineAction::VerifyAndSave => {
                self.saved = Some(saved);
                Ok(())
            }
            PipelineAction::VerifyAndCommit => self.commit(switch, fellows, now, saved, false),
            PipelineAction::ReconcileAndCommit => self.commit(switch, fellows, now, saved, true),
            PipelineAction::Verify | PipelineAction::Commit | PipelineAction::Unspecified => Ok(()),
        }
    }

    /// Checks a config against its program.
    fn verify(
        &self,
        given: v1::ForwardingPipelineConfig,
        prepared: Option<Prepared<E>>,
    ) -> Result<Saved<E>, Refusal> {
        let Prepared {
            engine,
            load,
            info,
            headers,
        } = prepared.unwrap_or_else(|| self.program.clone());
        let engine = match engine {
            Some(engine) => engine,
            None => load()?,
        };
        let ports = &self.options.port_names;
        let mut pipeline = match given.p4info {
            Some(given) => {
                let fitted = fit::fit(&given, &info)?;
                let headers = fit::headers(&headers, &info, &fitted);
                let mut pipeline = Pipeline::new(fitted, &headers, engine.state(), ports)?;
                pipeline.info = given;
                pipeline
            }
            None => Pipeline::new(info.clone(), &headers, engine.state(), ports)?,
        };
        pipeline.device_config = given.p4_device_config;
        pipeline.cookie = given.cookie.map(|cookie| cookie.cookie);
        Ok(Saved {
            pipeline,
            engine,
            load,
            headers,
            info,
        })
    }

    /// Lets packets run the new program from here on.
    fn commit(
        &mut self,
        switch: &mut Switch<E>,
        fellows: &mut dyn Fellows<E>,
        now: u64,
        mut saved: Saved<E>,
        reconcile: bool,
    ) -> Result<(), Refusal> {
        if let Some(present) = &self.pipeline {
            let source = &mut saved.pipeline.device_config;
            if source.is_empty() {
                source.clone_from(&present.device_config);
            }
            if reconcile {
                fit::check_same_ids(&present.info, &saved.pipeline.info)?;
                saved.pipeline.learn_names(present);
            }
            let source = &saved.pipeline.device_config;
            if reconcile && *source == present.device_config {
                // The program is the same: with its engine go on copies that are held, which
                // no other engine could take over.
                self.pipeline = Some(saved.pipeline);
                return Ok(());
            }
        }
        saved.pipeline.release_names();
        let old = self.pipeline.take();
        let kept = match (&old, reconcile) {
            (Some(old), true) => {
                gather::all(switch, fellows);
                reconcile::keep(old, &self.shadow, switch, now)
            }
            _ => reconcile::Kept::default(),
        };
        fellows.each(&mut |fellow| fellow.finish_egress());
        drop(switch.replace_engine(saved.engine));
        fellows.follow(switch);
        self.program = Prepared {
            engine: None,
            load: saved.load,
            info: saved.info,
            headers: saved.headers,
        };
        if !reconcile {
            replication::clear(switch, &mut self.shadow);
            self.digests.clear();
        }
        let multicast = std::mem::take(&mut self.shadow.multicast);
        let sessions = std::mem::take(&mut self.shadow.sessions);
        self.shadow = Shadow {
            multicast,
            sessions,
            ..Shadow::default()
        };
        let pipeline = self.pipeline.insert(saved.pipeline);
        let mut context = Context {
            switch,
            fellows,
            pipeline,
            shadow: &mut self.shadow,
            digests: &mut self.digests,
            now,
        };
        kept.put_back(&mut context);
        Ok(())
    }

    pub(super) fn shown_pipeline(
        &self,
        request: &v1::GetForwardingPipelineConfigRequest,
    ) -> Result<v1::ForwardingPipelineConfig, Refusal> {
        use v1::get_forwarding_pipeline_config_request::ResponseType;
        self.sessions.check_reader(request.device_id)?;
        let pipeline = self.ready()?;
        let wanted = ResponseType::try_from(request.response_type).map_err(|_| {
            Refusal::invalid(format!(
                "there is no response type {}",
                request.response_type
            ))
        })?;
        let info = matches!(wanted, ResponseType::All | ResponseType::P4infoAndCookie);
        let device = matches!(
            wanted,
            ResponseType::All | ResponseType::DeviceConfigAndCookie
        );
        Ok(v1::ForwardingPipelineConfig {
            p4info: info.then(|| pipeline.info.clone()),
            p4_device_config: if device {
                pipeline.device_config.clone()
            } else {
                Vec::new()
            },
            cookie: pipeline
                .cookie
                .map(|cookie| v1::forwarding_pipeline_config::Cookie { cookie }),
        })
    }
}
