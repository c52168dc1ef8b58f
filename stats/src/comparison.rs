//! The comparison of two players: the one place that decides who is called stronger, and in which words.

use statrs::distribution::{ContinuousCDF as _, StudentsT};

/// The likelihood of superiority from which a player is called stronger. It is reached exactly if the 95 % interval of
/// the difference excludes 0.
pub const SURE: f64 = 0.975;

/// The likelihood of superiority from which a player is called probably stronger.
pub const LIKELY: f64 = 0.8;

/// A player compared with another.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Comparison {
    /// The estimated Elo difference, always finite.
    pub elo: f64,
    /// The lower end of its 95 % interval; `None` if the results do not bound it.
    pub low: Option<f64>,
    /// The upper end; `None` if the results do not bound it.
    pub high: Option<f64>,
    /// The likelihood of superiority, from 0 to 1.
    pub los: f64,
    /// Whether there are enough results to call a player stronger: whether a clean sweep of as many would.
    pub enough: bool,
}

/// What a likelihood of superiority says about a player and another one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The player is stronger.
    Stronger,
    /// The player is probably stronger.
    ProbablyStronger,
    /// Either may be stronger.
    Unclear,
    /// The player is probably weaker.
    ProbablyWeaker,
    /// The player is weaker.
    Weaker,
}

impl Verdict {
    /// Returns the verdict for a likelihood of superiority.
    pub fn of(los: f64) -> Verdict {
        match los {
            _ if los >= SURE => Verdict::Stronger,
            _ if los >= LIKELY => Verdict::ProbablyStronger,
            _ if los > 1.0 - LIKELY => Verdict::Unclear,
            _ if los > 1.0 - SURE => Verdict::ProbablyWeaker,
            _ => Verdict::Weaker,
        }
    }
}

impl Comparison {
    /// Compares a player with equal opponents in the other seats by its share of the points of each bout; none without bouts.
    ///
    /// The Elo difference is that of Plackett and Luce's model, in which the share is w / (w + seats - 1). Two added bouts, one
    /// won and one lost, keep a sweep from looking certain.
    pub fn of_shares(shares: &[f64], seats: usize) -> Option<Comparison> {
        let others = seats as f64 - 1.0;
        let mean = |shares: &[f64]| shares.iter().sum::<f64>() / shares.len() as f64;
        let elo = |share: f64| {
            (share > 0.0 && share < 1.0).then(|| 400.0 * (others * share / (1.0 - share)).log10())
        };
        let padded: Vec<f64> = shares.iter().copied().chain([0.0, 1.0]).collect();
        let freedom = padded.len() as f64 - 1.0;
        let squares: f64 = padded.iter().map(|share| (share - mean(&padded)).powi(2)).sum();
        let error = (squares / freedom / padded.len() as f64).sqrt();
        let student = StudentsT::new(0.0, 1.0, freedom).ok()?;
        let margin = student.inverse_cdf(SURE) * error;
        let share = if shares.is_empty() { return None } else { mean(shares) };
        Some(Comparison {
            elo: elo(share).or_else(|| elo(mean(&padded))).unwrap_or_default(),
            low: elo(share - margin),
            high: elo(share + margin),
            los: student.cdf((share - 1.0 / seats as f64) / error),
            enough: (1.0 - 1.0 / seats as f64) > margin,
        })
    }

    /// Returns the verdict.
    pub fn verdict(&self) -> Verdict {
        Verdict::of(self.los)
    }

    /// Returns half the width of the interval; `None` if an end is open.
    pub fn error(&self) -> Option<f64> {
        self.low.zip(self.high).map(|(low, high)| (high - low) / 2.0)
    }

    /// Returns the same comparison from the other player's view.
    #[must_use]
    pub fn reversed(&self) -> Comparison {
        Comparison {
            elo: -self.elo,
            low: self.high.map(|high| -high),
            high: self.low.map(|low| -low),
            los: 1.0 - self.los,
            enough: self.enough,
        }
    }

    /// Returns the warning that the results, of `unit`s such as bouts, are too few; `None` if they are not.
    pub fn caution(&self, unit: &str) -> Option<String> {
        (!self.enough).then(|| too_few(unit))
    }

    /// Returns the conclusion for players of these names, without a full stop.
    pub fn sentence(&self, one: &str, other: &str) -> String {
        match self.verdict() {
            Verdict::Stronger => format!("{one} is stronger than {other}"),
            Verdict::Weaker => format!("{one} is weaker than {other}"),
            _ if !self.enough => format!("too few results to call {one} or {other} stronger"),
            Verdict::ProbablyStronger => format!("{one} is probably stronger than {other}"),
            Verdict::ProbablyWeaker => format!("{one} is probably weaker than {other}"),
            Verdict::Unclear => format!("either {one} or {other} may be stronger"),
        }
    }
}

/// Returns the warning that the results are too few.
pub(crate) fn too_few(unit: &str) -> String {
    format!("The {unit}s are too few: even if one player won all, the other might be stronger.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_follow_superiority() {
        let words = |los: f64, enough: bool| {
            Comparison { elo: 10.0, low: None, high: None, los, enough }.sentence("a", "b")
        };
        assert_eq!(words(0.975, true), "a is stronger than b");
        assert_eq!(words(0.974, true), "a is probably stronger than b");
        assert_eq!(words(0.5, true), "either a or b may be stronger");
        assert_eq!(words(0.9, false), "too few results to call a or b stronger");
        assert_eq!(words(0.1, true), "a is probably weaker than b");
        assert_eq!(words(0.02, true), "a is weaker than b");
    }

    #[test]
    fn caution_belongs_to_few_results() {
        let of = |enough| Comparison { elo: 10.0, low: None, high: None, los: 0.9, enough };
        let text = "The bouts are too few: even if one player won all, the other might be stronger.";
        assert_eq!(of(false).caution("bout").as_deref(), Some(text));
        assert_eq!(of(true).caution("bout"), None);
    }
}
