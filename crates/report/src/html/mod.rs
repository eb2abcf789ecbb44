//! The self-contained HTML page: pictures drawn by scripts from aggregated data, tables written here.

mod data;
mod reduce;
mod tables;

use isotherm_sim::Report;
use serde::Serialize;

pub(crate) use data::{gauges, heat, rounded};
pub(crate) use reduce::merge_factor;
pub(crate) use tables::{MAX_ROWS, listed, machine, parameter_table, provenance, table};

use crate::format::{count, shortened};
use crate::{facts, to_json, verdict};

/// Largest size of a page, whatever was run: larger ones make browsers fail.
pub const MAX_HTML_BYTES: usize = 5_000_000;

/// Characters to which text from outside is cut.
pub(crate) const MAX_TEXT: usize = 200;

pub(crate) const STYLE: &str = include_str!("../../assets/page.css");
const CHARTING_LIBRARY: &str = include_str!("../../assets/vendor/chart-4.6.1.min.js");
const SCRIPTS: [&str; 7] = [
    include_str!("../../assets/theme.js"),
    include_str!("../../assets/charts.js"),
    include_str!("../../assets/by-size.js"),
    include_str!("../../assets/over-time.js"),
    include_str!("../../assets/heatmap.js"),
    include_str!("../../assets/memory.js"),
    include_str!("../../assets/page.js"),
];

/// Returns the report as one self-contained HTML file of at most [`MAX_HTML_BYTES`].
///
/// Long runs are aggregated: neighbouring intervals and heatmap cells are merged, so that sums stay true.
pub fn html(report: &Report) -> String {
    let parts = [
        ("title", title(&report.input.name, &report.machine.name)),
        (
            "answer",
            prose(
                &verdict::simulated(report)
                    .map_or_else(|| "Nothing was run.".into(), |verdict| verdict.text()),
            ),
        ),
        ("facts", head(report)),
        ("notes", items(&facts::notes(report))),
        ("runs", tables::runs(report)),
        ("rounds", tables::rounds(report)),
        ("parameters", tables::parameters(report)),
        ("machine", machine(&report.machine)),
        ("provenance", provenance(&report.input.provenance)),
    ];
    page(include_str!("../../assets/page.html"), &SCRIPTS, &data::page(report), &parts)
}

/// Returns the head's facts about the input and the machine.
fn head(report: &Report) -> String {
    let input = &report.input;
    let terms = [
        (input.kind, input.name.clone()),
        ("accesses", count(input.accesses)),
        ("instructions", count(input.instructions)),
        ("threads", input.threads.to_string()),
        ("footprint", input.footprint_bytes.to_string()),
        ("machine", crate::table::machine(&report.machine)),
        ("scale", input.scale.to_string()),
        ("scale of times", input.time_scale.to_string()),
        ("seed", input.seed.to_string()),
        ("Isotherm", report.version.clone()),
    ];
    definitions(&terms)
}

/// Fills a page's template: style, data, charting library and scripts beside its own parts.
pub(crate) fn page(
    template: &str,
    scripts: &[&str],
    data: &impl Serialize,
    parts: &[(&str, String)],
) -> String {
    let common = [
        ("style", STYLE.into()),
        ("data", script_safe(&to_json(data))),
        ("library", CHARTING_LIBRARY.into()),
        ("scripts", scripts.concat()),
    ];
    fill(template, &[parts, &common].concat())
}

/// Returns a page's title.
pub(crate) fn title(input: &str, machine: &str) -> String {
    escape(&format!("{} on {machine}", shortened(input, MAX_TEXT)))
}

/// Writes terms and their values for a page's head.
pub(crate) fn definitions(terms: &[(&str, String)]) -> String {
    let definition = |(term, value): &(&str, String)| {
        format!("<div><dt>{}</dt><dd>{}</dd></div>", escape(term), escape(&shortened(value, MAX_TEXT)))
    };
    terms.iter().map(definition).collect()
}

/// Writes sentences as the items of a list.
pub(crate) fn items(sentences: &[String]) -> String {
    sentences.iter().map(|sentence| format!("<li>{}</li>", prose(sentence))).collect()
}

/// Puts each part where the template names it as `{{name}}`, in one pass: names inside parts stay.
pub(crate) fn fill(template: &str, parts: &[(&str, String)]) -> String {
    let mut page =
        String::with_capacity(template.len() + parts.iter().map(|(_, part)| part.len()).sum::<usize>());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        page.push_str(before);
        let (name, after) = after.split_once("}}").unwrap_or((after, ""));
        if let Some((_, part)) = parts.iter().find(|(known, _)| *known == name) {
            page.push_str(part);
        }
        rest = after;
    }
    page.push_str(rest);
    page
}

/// Escapes text for HTML, inside elements and quoted attributes.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            _ => escaped.push(letter),
        }
    }
    escaped
}

/// Escapes a sentence for HTML, without line breaks between a number and its percent sign.
pub(crate) fn prose(sentence: &str) -> String {
    escape(sentence).replace(" %", "&nbsp;%")
}

/// Escapes JSON so that it cannot end the script element around it. `<` occurs in JSON only inside strings.
fn script_safe(json: &str) -> String {
    json.replace('<', "\\u003c")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_not_searched_for_names() {
        let parts = [("a", "{{b}}".to_owned()), ("b", "x".to_owned())];
        assert_eq!(fill("<{{a}}|{{b}}|{{c}}>", &parts), "<{{b}}|x|>");
    }

    #[test]
    fn text_cannot_leave_its_element() {
        assert_eq!(escape("<b a=\"'&"), "&lt;b a=&quot;&#39;&amp;");
        assert_eq!(script_safe("[\"</script><!--\"]"), "[\"\\u003c/script>\\u003c!--\"]");
    }
}
