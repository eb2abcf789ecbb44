//! Numbers and texts for readers.

use isotherm_core::Nanos;

/// Formats a ratio as a percentage: `83.1 %`, or `-` if unknown.
pub(crate) fn percent(ratio: f64) -> String {
    if ratio.is_finite() { format!("{:.1} %", ratio * 100.0) } else { "-".into() }
}

/// Formats a share with its bounds: `87 % (84-90)`. Bounds are rounded outwards.
pub(crate) fn between(share: f64, bounds: Option<[f64; 2]>) -> String {
    let Some([low, high]) = bounds else { return percent(share) };
    format!("{:.0} % ({:.0}-{:.0})", share * 100.0, (low * 100.0).floor(), (high * 100.0).ceil())
}

/// Formats the length of a run, rounded up: `90s`, `40min`, `3h`.
pub(crate) fn length(time: Nanos) -> String {
    let seconds = time.0.div_ceil(Nanos::SECOND.0);
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7200 => format!("{}min", seconds.div_ceil(60)),
        _ => format!("{}h", seconds.div_ceil(3600)),
    }
}

/// Formats a factor such as a slowdown: `1.21`, or `-` if unknown.
pub(crate) fn factor(value: f64) -> String {
    if value.is_finite() { format!("{value:.2}") } else { "-".into() }
}

/// Formats a count with a decimal suffix and three digits: `950`, `12.3k`, `4.56M`.
pub(crate) fn count(value: u64) -> String {
    const STEPS: [(f64, &str); 4] = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    let number = value as f64;
    // From 999.5 of a step on, three digits would read 1000: use the next step.
    let step = STEPS.iter().find(|(size, _)| number >= size * 0.9995 && value >= 1000);
    step.map_or_else(
        || value.to_string(),
        |(size, suffix)| format!("{}{suffix}", three_digits(number / size)),
    )
}

fn three_digits(number: f64) -> String {
    let decimals = if number < 9.995 { 2 } else { usize::from(number < 99.95) };
    format!("{number:.decimals$}")
}

/// Formats a share of memory: `1/9` where that is near, else `37.5 %`.
pub(crate) fn share(part: u64, whole: u64) -> String {
    if part == 0 || whole == 0 {
        return percent(0.0);
    }
    let inverse = whole as f64 / part as f64;
    let near = (inverse - inverse.round()).abs() <= inverse * 0.01;
    if near && (2.0..=1000.0).contains(&inverse.round()) {
        format!("1/{:.0}", inverse.round())
    } else {
        percent(part as f64 / whole as f64)
    }
}

/// Joins words as in a sentence: `a`, `a and b`, `a, b and c`.
pub(crate) fn list(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// Formats a number with its noun: `1 thread`, `8 threads`, `12.3k pages`.
pub(crate) fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { many })
}

/// Formats the counts of reasons that occurred: `busy 11, gone 2`.
pub(crate) fn reasons(counts: &[(&str, u64)]) -> String {
    let occurred = counts.iter().filter(|(_, number)| *number > 0);
    occurred.map(|(why, number)| format!("{why} {}", count(*number))).collect::<Vec<_>>().join(", ")
}

/// Returns a path without its folders.
pub(crate) fn file_name(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or(path)
}

/// Puts text from outside on one line, without control characters.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

/// Wraps text after `lead` at `width` columns where its words allow it; later lines start below the first
/// one's text. A percent sign stays with its number.
pub(crate) fn wrapped(lead: &str, text: &str, width: usize) -> String {
    let indent = lead.chars().count();
    let mut lines = String::from(lead);
    let mut column = indent;
    for word in text.replace(" %", "\u{a0}%").split([' ', '\n']).filter(|word| !word.is_empty()) {
        let length = word.chars().count();
        if column > indent && column + 1 + length > width {
            lines.push('\n');
            lines.extend(std::iter::repeat_n(' ', indent));
            column = indent;
        }
        if column > indent {
            lines.push(' ');
            column += 1;
        }
        lines.push_str(word);
        column += length;
    }
    lines.push('\n');
    lines.replace('\u{a0}', " ")
}

/// Cuts text to `limit` characters, with a mark that says so.
pub(crate) fn shortened(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        Some((end, _)) => format!("{}… ({} characters)", &text[..end], text.chars().count()),
        None => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_keep_three_digits_and_move_to_the_next_suffix_in_time() {
        let written = [0, 999, 1_000, 12_345, 999_499, 999_950, 4_560_000, u64::MAX].map(count);
        assert_eq!(written, ["0", "999", "1.00k", "12.3k", "999k", "1.00M", "4.56M", "18446744T"]);
    }

    #[test]
    fn shares_are_fractions_only_where_they_are_near_one() {
        assert_eq!(share(1, 9), "1/9");
        assert_eq!(share(111, 1000), "1/9");
        assert_eq!(share(3, 8), "37.5 %");
        assert_eq!(share(0, 8), "0.0 %");
        assert_eq!(share(8, 8), "100.0 %");
    }

    #[test]
    fn lengths_of_runs_are_rounded_up() {
        let written = [1, 119, 120, 121, 7200, 7201].map(|seconds| length(Nanos(seconds * Nanos::SECOND.0)));
        assert_eq!(written, ["1s", "119s", "2min", "3min", "2h", "3h"]);
        assert_eq!(length(Nanos(80_890_000_000)), "81s");
    }

    #[test]
    fn bounds_are_rounded_outwards() {
        assert_eq!(between(0.874, Some([0.848, 0.901])), "87 % (84-91)");
        assert_eq!(between(0.874, None), "87.4 %");
    }

    #[test]
    fn what_is_not_known_is_a_dash() {
        assert_eq!(percent(f64::NAN), "-");
        assert_eq!(factor(f64::INFINITY), "-");
    }

    #[test]
    fn lines_are_as_wide_as_allowed_and_start_below_the_text() {
        assert_eq!(wrapped("- ", "one two 3 % four", 9), "- one two\n  3 %\n  four\n");
        assert_eq!(wrapped("", "incomprehensible is a word", 8), "incomprehensible\nis a\nword\n");
        assert_eq!(wrapped("name ", "", 8), "name \n");
    }

    #[test]
    fn nothing_that_a_terminal_obeys_is_printable() {
        assert_eq!(printable("a\u{1b}[31mb\n\u{9b}ä"), "a [31mb  ä");
    }

    #[test]
    fn counts_are_told_with_their_nouns_and_reasons() {
        assert_eq!(counted(1, "page", "pages"), "1 page");
        assert_eq!(counted(12_345, "page", "pages"), "12.3k pages");
        assert_eq!(reasons(&[("busy", 11), ("gone", 0), ("denied", 1)]), "busy 11, denied 1");
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        assert_eq!(shortened("äöü", 3), "äöü");
        assert_eq!(shortened("äöü", 2), "äö… (3 characters)");
    }
}
