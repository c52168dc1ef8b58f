//! Numbers in calls, refused with a sentence of our own.

/// A parser for clap: a whole number from `least` to `most`, or a sentence that says what `name` is.
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

/// A parser for clap: a number from `least` to `most`, or a sentence that says what `name` is.
pub fn real(
    name: &'static str,
    least: f64,
    most: f64,
) -> impl Fn(&str) -> Result<f64, String> + Clone + Send + Sync + 'static {
    move |text| {
        // No range contains what is not a number.
        let number = text.trim().parse().ok().filter(|number| (least..=most).contains(number));
        number.ok_or_else(|| format!("{name} is a number from {least} to {most}"))
    }
}
