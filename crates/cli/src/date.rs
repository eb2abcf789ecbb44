//! The date of a measurement.

use isotherm_linux::clock::unix_seconds;

/// Returns the current day in UTC.
pub(crate) fn today() -> String {
    date(unix_seconds())
}

/// Formats a day as `2026-11-22` (Hinnant, "chrono-Compatible Low-Level Date Algorithms", `civil_from_days`).
fn date(unix_seconds: u64) -> String {
    let days = unix_seconds / 86_400 + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let of_month = of_year - (153 * month + 2) / 5 + 1;
    let (month, later) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    format!("{:04}-{month:02}-{of_month:02}", year + era * 400 + later)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_named_as_in_the_calendar() {
        assert_eq!(date(0), "1970-01-01");
        assert_eq!(date(951_782_400), "2000-02-29");
        assert_eq!(date(951_868_800), "2000-03-01");
        assert_eq!(date(1_795_305_600), "2026-11-22");
        assert_eq!(date(1_798_761_599), "2026-12-31");
    }
}
