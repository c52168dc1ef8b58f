//! Calendar timestamps.

/// A date and a time of day, UTC. Displays as in RFC 3339.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UtcDateTime {
    /// The year.
    pub year: i64,
    /// The month, from 1.
    pub month: u8,
    /// The day, from 1.
    pub day: u8,
    /// The hour.
    pub hour: u8,
    /// The minute.
    pub minute: u8,
    /// The second.
    pub second: u8,
    /// The microsecond.
    pub microsecond: u32,
}

const DAY_US: i64 = 86_400_000_000;
/// The days of 400 years, the period of the calendar.
const ERA_DAYS: i64 = 146_097;
/// The days from 1 March of year 0 to 1 January 1970.
const EPOCH_DAYS: i64 = 719_468;

impl UtcDateTime {
    /// Converts microseconds since the beginning of 1970 (Hinnant 2013, "chrono-compatible low-level date algorithms",
    /// `civil_from_days`, in which years begin in March so that a leap day is the last day).
    pub fn from_unix_microseconds(microseconds: i64) -> UtcDateTime {
        let (days, rest) = (microseconds.div_euclid(DAY_US), microseconds.rem_euclid(DAY_US));
        let days = days + EPOCH_DAYS;
        let (era, day_of_era) = (days.div_euclid(ERA_DAYS), days.rem_euclid(ERA_DAYS));
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let march_month = (5 * day_of_year + 2) / 153;
        let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
        let seconds = rest / 1_000_000;
        UtcDateTime {
            year: year_of_era + 400 * era + i64::from(month <= 2),
            month: month as u8,
            day: (day_of_year - (153 * march_month + 2) / 5 + 1) as u8,
            hour: (seconds / 3_600) as u8,
            minute: (seconds / 60 % 60) as u8,
            second: (seconds % 60) as u8,
            microsecond: (rest % 1_000_000) as u32,
        }
    }
}

impl std::fmt::Display for UtcDateTime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let UtcDateTime { year, month, day, hour, minute, second, microsecond } = self;
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{microsecond:06}Z")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn converts_known_timestamps() {
        for (microseconds, text) in [
            (0, "1970-01-01T00:00:00.000000Z"),
            (-1, "1969-12-31T23:59:59.999999Z"),
            (951_782_400_000_000, "2000-02-29T00:00:00.000000Z"),
            (951_868_799_000_001, "2000-02-29T23:59:59.000001Z"),
            (1_700_000_000_000_000, "2023-11-14T22:13:20.000000Z"),
            (4_107_542_400_000_000, "2100-03-01T00:00:00.000000Z"),
        ] {
            assert_eq!(UtcDateTime::from_unix_microseconds(microseconds).to_string(), text);
        }
    }
}
