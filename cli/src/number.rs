//! Parsers of numbers for clap, with error messages that name the allowed range.

use std::num::NonZeroUsize;

use clap::Args;

/// Returns a parser of a whole number from `least` to `most`; `name` is the number's name in errors.
pub fn whole<T: TryFrom<u64> + 'static>(
    name: &'static str,
    least: u64,
    most: u64,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static {
    move |text| {
        let number = text.parse().ok().filter(|number| (least..=most).contains(number));
        number
            .and_then(|number| T::try_from(number).ok())
            .ok_or_else(|| format!("{name} is a whole number from {least} to {most}"))
    }
}

/// Returns a parser of a number from `least` to `most`; `name` is the number's name in errors.
pub fn real(
    name: &'static str,
    least: f64,
    most: f64,
) -> impl Fn(&str) -> Result<f64, String> + Clone + Send + Sync + 'static {
    move |text| {
        // No range contains NaN.
        let number = text.trim().parse().ok().filter(|number| (least..=most).contains(number));
        number.ok_or_else(|| format!("{name} is a number from {least} to {most}"))
    }
}

/// The option `--threads`.
#[derive(Args)]
pub struct Threads {
    /// Threads [default: one per core]
    #[arg(long, value_name = "N", value_parser = whole::<usize>("the number of threads", 1, 1024), allow_negative_numbers = true)]
    threads: Option<usize>,
}

impl Threads {
    /// Returns whether the option was given.
    pub fn is_given(&self) -> bool {
        self.threads.is_some()
    }

    /// Returns the number of threads, by default the number of cores.
    pub fn count(&self) -> NonZeroUsize {
        self.threads.and_then(NonZeroUsize::new).unwrap_or_else(cores)
    }
}

/// Returns the number of cores that this process may use.
pub fn cores() -> NonZeroUsize {
    std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}
