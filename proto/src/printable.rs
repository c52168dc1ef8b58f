//! Printable texts in the answers to operators: a coordinator may have stored what others sent, or be another program.

use agon_games::printable::printable;

use crate::v1;

/// A message whose texts can be made printable before they are shown.
pub trait Printable {
    /// Returns the message with each text as one printable line.
    fn printable(self) -> Self;
}

fn clean(text: &mut String) {
    *text = printable(text).into_owned();
}

impl Printable for v1::RunStatus {
    fn printable(mut self) -> Self {
        for text in [&mut self.run, &mut self.name, &mut self.game, &mut self.data, &mut self.waiting] {
            clean(text);
        }
        clean(&mut self.caution);
        self.verdict.iter_mut().for_each(clean);
        self.standings.iter_mut().for_each(|standing| clean(&mut standing.player));
        if let Some(sprt) = &mut self.sprt {
            clean(&mut sprt.verdict);
        }
        if let Some(hypotheses) = &mut self.hypotheses {
            clean(&mut hypotheses.player);
            clean(&mut hypotheses.against);
        }
        if let Some(tune) = &mut self.tune {
            clean(&mut tune.method);
            tune.parameters.iter_mut().for_each(|parameter| clean(&mut parameter.path));
        }
        self
    }
}

impl Printable for v1::ListRunsResponse {
    fn printable(self) -> Self {
        v1::ListRunsResponse { runs: self.runs.into_iter().map(Printable::printable).collect() }
    }
}

impl Printable for v1::WorkerStatus {
    fn printable(mut self) -> Self {
        for text in [&mut self.worker, &mut self.build, &mut self.flag] {
            clean(text);
        }
        self
    }
}

impl Printable for v1::ListWorkersResponse {
    fn printable(self) -> Self {
        v1::ListWorkersResponse { workers: self.workers.into_iter().map(Printable::printable).collect() }
    }
}

impl Printable for v1::ListAuditResponse {
    fn printable(mut self) -> Self {
        for entry in &mut self.entries {
            for text in [&mut entry.kind, &mut entry.worker, &mut entry.run, &mut entry.text] {
                clean(text);
            }
        }
        self
    }
}

impl Printable for v1::VoidBoutsResponse {
    fn printable(self) -> Self {
        self
    }
}
