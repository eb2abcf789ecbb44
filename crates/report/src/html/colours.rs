//! The colours of policies: one each, the same in every page, on light and on dark.

use std::fmt::Write;

use isotherm_policies::{ALL, Kind};

/// Colours on white and on dark, in the registry's order of what is no bound to measure against.
///
/// Chosen one after the other, each as far as possible from those before it to people with usual, red-blind
/// and green-blind vision, so that the first ones differ most. A line has a dash and a mark as well.
const COLOURS: [(&str, &str); 24] = [
    ("#0b62c4", "#5aa9ff"),
    ("#5b007f", "#9a59be"),
    ("#970c02", "#e06351"),
    ("#3c8d0f", "#88d56c"),
    ("#03464c", "#42878d"),
    ("#ad74b2", "#f9c1fd"),
    ("#473e9e", "#8281e7"),
    ("#8d5403", "#d39655"),
    ("#4da070", "#99eeb9"),
    ("#1b7548", "#66b987"),
    ("#7f256e", "#c668b2"),
    ("#6a1d2d", "#b15d69"),
    ("#735194", "#b692db"),
    ("#5d65e4", "#acb8fe"),
    ("#448579", "#8bcdbf"),
    ("#375a37", "#759b74"),
    ("#819808", "#cbe66d"),
    ("#2c1e9d", "#636dd7"),
    ("#9b5e96", "#e6a4e0"),
    ("#727e4e", "#b8c592"),
    ("#6b2f8a", "#ae71d1"),
    ("#284700", "#61883f"),
    ("#579a92", "#a2e7de"),
    ("#a0895a", "#edd4a3"),
];

/// Returns the number of a policy's colour; `None` for a bound to measure against, which is grey. What the
/// registry does not know takes one of the last colours, by its name.
pub(crate) fn colour(policy: &str) -> Option<usize> {
    let is_limit = |kind: Kind| matches!(kind, Kind::Bound(bound) if bound.is_limit());
    let mut coloured = ALL.iter().filter(|entry| !is_limit(entry.kind));
    let known = ALL.iter().find(|entry| entry.name == policy);
    if known.is_some_and(|entry| is_limit(entry.kind)) {
        return None;
    }
    let count = coloured.clone().count();
    let free = COLOURS.len().saturating_sub(count).max(1);
    let sum = policy.bytes().fold(0, |sum: usize, letter| (sum * 31 + usize::from(letter)) % 65_521);
    let place = coloured.position(|entry| entry.name == policy).unwrap_or(count + sum % free);
    Some(place % COLOURS.len())
}

/// Returns the colour as a value in a style sheet.
pub(crate) fn css(policy: &str) -> String {
    colour(policy).map_or_else(|| "var(--bound)".into(), |number| format!("var(--p{number})"))
}

/// Returns the colours as variables of the page's style: on light, and on dark.
pub(super) fn variables() -> String {
    let set = |pick: fn(&(&'static str, &'static str)) -> &'static str| {
        COLOURS.iter().enumerate().fold(String::new(), |mut set, (number, colours)| {
            let _ = write!(set, "--p{number}:{};", pick(colours));
            set
        })
    };
    format!(
        ":root{{{}}}@media screen and (prefers-color-scheme:dark){{:root{{{}}}}}",
        set(|colours| colours.0),
        set(|colours| colours.1)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    type Linear = [f64; 3];

    fn linear(hex: &str) -> Linear {
        std::array::from_fn(|channel| {
            let part = u8::from_str_radix(&hex[1 + 2 * channel..3 + 2 * channel], 16).expect("two digits");
            let part = f64::from(part) / 255.0;
            if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
        })
    }

    fn times(matrix: [Linear; 3], vector: Linear) -> Linear {
        matrix.map(|row| row.iter().zip(vector).map(|(one, other)| one * other).sum::<f64>().max(0.0))
    }

    /// Returns the place in the space OKLab, where distances are about as seen.
    fn seen(colour: Linear) -> Linear {
        const CONES: [Linear; 3] = [
            [0.412_221_470_8, 0.536_332_536_3, 0.051_445_992_9],
            [0.211_903_498_2, 0.680_699_545_1, 0.107_396_956_6],
            [0.088_302_461_9, 0.281_718_837_6, 0.629_978_700_5],
        ];
        let [l, m, s] = times(CONES, colour).map(f64::cbrt);
        [
            0.210_454_255_3 * l + 0.793_617_785 * m - 0.004_072_046_8 * s,
            1.977_998_495_1 * l - 2.428_592_205 * m + 0.450_593_709_9 * s,
            0.025_904_037_1 * l + 0.782_771_766_2 * m - 0.808_675_766 * s,
        ]
    }

    /// Matrices of Machado, Oliveira and Fernandes (2009) for the two usual kinds of colour blindness.
    const BLIND: [[Linear; 3]; 2] = [
        [
            [0.152_286, 1.052_583, -0.204_868],
            [0.114_503, 0.786_281, 0.099_216],
            [-0.003_882, -0.048_116, 1.051_998],
        ],
        [
            [0.367_322, 0.860_646, -0.227_968],
            [0.280_085, 0.672_501, 0.047_413],
            [-0.011_820, 0.042_940, 0.968_881],
        ],
    ];

    fn distance(one: Linear, other: Linear) -> f64 {
        let of = |one: Linear, other: Linear| {
            let (one, other) = (seen(one), seen(other));
            one.iter().zip(other).map(|(one, other)| (one - other).powi(2)).sum::<f64>().sqrt()
        };
        let blind = BLIND.map(|matrix| of(times(matrix, one), times(matrix, other)));
        of(one, other).min(1.6 * blind[0].min(blind[1]))
    }

    fn contrast(one: Linear, other: Linear) -> f64 {
        let bright = |colour: Linear| 0.2126 * colour[0] + 0.7152 * colour[1] + 0.0722 * colour[2] + 0.05;
        let (one, other) = (bright(one), bright(other));
        one.max(other) / one.min(other)
    }

    #[test]
    fn colours_differ_to_colour_blind_people_and_stand_out_from_the_page() {
        for (page, pick) in [("#ffffff", 0), ("#171a1f", 1)] {
            let colours: Vec<Linear> =
                COLOURS.iter().map(|pair| linear(if pick == 0 { pair.0 } else { pair.1 })).collect();
            for (index, &colour) in colours.iter().enumerate() {
                assert!(contrast(colour, linear(page)) >= 3.0, "{:?} on {page}", COLOURS[index]);
                let near = colours[..index].iter().map(|&other| distance(colour, other)).fold(1.0, f64::min);
                let least = if index < 5 { 0.11 } else { 0.05 };
                assert!(near >= least, "{:?} on {page}: {near}", COLOURS[index]);
            }
        }
    }

    #[test]
    fn each_policy_has_its_own_colour_and_limits_have_none() {
        let mut numbers: Vec<usize> = ALL.iter().filter_map(|entry| colour(entry.name)).collect();
        let count = numbers.len();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), count, "two policies share a colour: add some");
        assert_eq!(["all-fast", "belady"].map(colour), [None; 2]);
        assert!(colour("of-a-plugin").is_some_and(|number| number >= count), "no policy's own colour");
        assert_eq!(colour("first-touch"), Some(0));
    }
}
