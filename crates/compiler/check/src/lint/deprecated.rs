//! Uses of what its author marked `@deprecated`.

use super::Lint;
use crate::annotation;
use crate::codes;
use stateplane_diagnostics::{Diagnostic, Span};
use stateplane_syntax::tree::{Annotation, Path};

impl Lint<'_, '_> {
    /// Warns if what is used at `span` is deprecated.
    pub(super) fn used(&mut self, name: &str, annotations: &[Annotation], span: Span) {
        let Some(deprecated) = annotation::find(annotations, "deprecated") else {
            return;
        };
        let diagnostic =
            Diagnostic::warning(codes::DEPRECATED, span, format!("`{name}` is deprecated"))
                .with_secondary(deprecated.span, "it says so here");
        self.report(match deprecated.string() {
            Some(advice) => diagnostic.with_help(advice.to_string()),
            None => diagnostic,
        });
    }

    /// A name that no local declares is mentioned.
    pub(super) fn mention_global(&mut self, path: &Path) {
        let annotations = self.index.annotations(path.name.as_str());
        self.used(path.name.as_str(), annotations, path.span);
    }
}
