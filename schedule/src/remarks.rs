//! What the user of a finished tuning run should know about its answer.

use agon_arena::spec::tune::{Parameter, number};
use agon_stats::scale::Scale;
use agon_stats::spsa::{self, Movement};

/// The share of a range within which an answer is at its bound.
const AT_BOUND: f64 = 0.01;

/// Returns what an iteration's path shows.
pub(crate) fn of_path(tune: &spsa::Tune) -> Vec<String> {
    let iterations = tune.prefix();
    let moved = match tune.movement() {
        Movement::Identical { zeros } => {
            return vec![format!(
                "The two sides scored the same in {zeros} of {iterations} iterations: the parameters hardly change the play. \
                 Widen `min` to `max` or give a larger `step`, raise the limit, or vary the openings."
            )];
        }
        Movement::Chance { p } => Some(format!(
            "The path is no longer than chance explains (p = {p:.2}): nothing shows that the parameters matter, or the start \
             is as good as its surroundings. Play more bouts, or widen `min` to `max`."
        )),
        Movement::Directed => None,
    };
    let end = match tune.converged() {
        Some(count) => {
            format!(
                "The answer is the mean of the last {count} iterations, over which the path has converged."
            )
        }
        None => "The path still moved at its end: more bouts may improve the answer.".to_string(),
    };
    moved.into_iter().chain([end]).collect()
}

/// Returns which values of an answer lie at a bound.
pub(crate) fn of_bounds(parameters: &[Parameter], answer: &[f64]) -> Vec<String> {
    let remark = |(parameter, value): (&Parameter, &f64)| {
        let scale = if parameter.log { Scale::Log } else { Scale::Linear };
        let [low, high] = parameter.bounds.map(|bound| scale.coordinate(number(bound)));
        let share = (scale.coordinate(*value) - low) / (high - low);
        let (key, bound) = match share {
            _ if share <= AT_BOUND => ("min", parameter.bounds[0]),
            _ if share >= 1.0 - AT_BOUND => ("max", parameter.bounds[1]),
            _ => return None,
        };
        Some(format!(
            "`{}` ended at its `{key}` of {}: the best value may lie beyond it. Widen the range if the value makes sense.",
            parameter.path,
            number(bound)
        ))
    };
    parameters.iter().zip(answer).filter_map(remark).collect()
}
