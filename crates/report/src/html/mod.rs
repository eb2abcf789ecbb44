//! Defines the self-contained HTML page: pictures drawn by scripts from aggregated data, tables written here.

mod data;
mod reduce;
mod tables;

use isotherm_sim::Report;

pub(crate) use data::{Heat, gauges, heat, rounded};
pub(crate) use reduce::merge_factor;
pub(crate) use tables::{MAX_ROWS, parameter_table, table};

use crate::facts;
use crate::format::{count, shortened};

/// No page is larger, whatever was run: larger ones make browsers fail.
pub const MAX_HTML_BYTES: usize = 5_000_000;

/// Text from outside is cut to this many characters.
pub(crate) const MAX_TEXT: usize = 200;

const PAGE: &str = include_str!("../../assets/page.html");
pub(crate) const STYLE: &str = include_str!("../../assets/page.css");
pub(crate) const CHARTING_LIBRARY: &str = include_str!("../../assets/vendor/chart-4.6.1.min.js");
const SCRIPTS: [&str; 7] = [
    include_str!("../../assets/theme.js"),
    include_str!("../../assets/charts.js"),
    include_str!("../../assets/by-size.js"),
    include_str!("../../assets/over-time.js"),
    include_str!("../../assets/heatmap.js"),
    include_str!("../../assets/memory.js"),
    include_str!("../../assets/page.js"),
];

/// The report as one HTML file without any reference to another, at most [`MAX_HTML_BYTES`] long.
///
/// Long runs are aggregated: neighbouring intervals and heatmap cells are merged, so that sums stay true.
pub fn html(report: &Report) -> String {
    let parts = [
        ("title", escape(&format!("{} on {}", shortened(&report.input.name, MAX_TEXT), report.machine.name))),
        ("style", STYLE.into()),
        ("answer", prose(&facts::answer(report).unwrap_or_else(|| "Nothing was run.".into()))),
        ("facts", head(report)),
        ("notes", items(&facts::notes(report))),
        ("runs", tables::runs(report)),
        ("parameters", tables::parameters(report)),
        ("machine", tables::machine(report)),
        ("provenance", tables::provenance(report)),
        ("data", script_safe(&data::json(report))),
        ("library", CHARTING_LIBRARY.into()),
        ("scripts", SCRIPTS.concat()),
    ];
    fill(PAGE, &parts)
}

/// The head line: what was replayed, as terms and values.
fn head(report: &Report) -> String {
    let input = &report.input;
    let terms = [
        (input.kind, shortened(&input.name, MAX_TEXT)),
        ("accesses", count(input.accesses)),
        ("instructions", count(input.instructions)),
        ("threads", input.threads.to_string()),
        ("footprint", input.footprint_bytes.to_string()),
        ("machine", format!("{}: {}", report.machine.name, shortened(&report.machine.title, MAX_TEXT))),
        ("scale", input.scale.to_string()),
        ("scale of times", input.time_scale.to_string()),
        ("seed", input.seed.to_string()),
        ("Isotherm", report.version.clone()),
    ];
    definitions(&terms)
}

/// Terms and their values, for the page's head.
pub(crate) fn definitions(terms: &[(&str, String)]) -> String {
    let definition = |(term, value): &(&str, String)| {
        format!("<div><dt>{}</dt><dd>{}</dd></div>", escape(term), escape(value))
    };
    terms.iter().map(definition).collect()
}

/// Sentences as the items of a list.
pub(crate) fn items(sentences: &[String]) -> String {
    sentences.iter().map(|sentence| format!("<li>{}</li>", prose(sentence))).collect()
}

/// Puts each part where the template names it as `{{name}}`, in one pass: a part's own text is never looked into.
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

/// Text as HTML, inside elements and quoted attributes.
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

/// A sentence as HTML; no line breaks between a number and its percent sign.
pub(crate) fn prose(sentence: &str) -> String {
    escape(sentence).replace(" %", "&nbsp;%")
}

/// JSON that cannot end or comment out the script element around it. `<` occurs in JSON only inside strings.
pub(crate) fn script_safe(json: &str) -> String {
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
