//! The self-contained HTML pages: one frame, pictures drawn by scripts from aggregated data, tables written
//! here.

pub(crate) mod colours;
mod data;
mod ranking;
mod reduce;
mod tables;

use isotherm_sim::Report;
use serde::Serialize;

pub(crate) use data::{gauges, heat, rounded};
pub(crate) use reduce::merge_factor;
pub(crate) use tables::{MAX_ROWS, listed, machine, parameter_table, provenance, table};

use crate::format::{count, counted, shortened};
use crate::verdict::{Advice, Verdict};
use crate::{facts, to_json, verdict};

/// Largest size of a page, whatever was run: larger ones make browsers fail.
pub const MAX_HTML_BYTES: usize = 5_000_000;

/// Characters to which text from outside is cut.
pub(crate) const MAX_TEXT: usize = 200;

const FRAME: &str = include_str!("../../assets/page.html");
const STYLE: &str = include_str!("../../assets/page.css");
/// Scripts of every page: tables that sort and save themselves.
const COMMON: &str = include_str!("../../assets/page.js");
/// Scripts of pages with pictures.
pub(crate) const PLOT: &str = include_str!("../../assets/plot.js");
/// Pictures over time of live tiering.
pub(crate) const OVER_TIME: &str = include_str!("../../assets/time.js");
pub(crate) const HEATMAP: &str = include_str!("../../assets/heatmap.js");
const SIMULATE: &str = include_str!("../../assets/simulate.js");

/// A page's content, in the order of the page.
#[derive(Default)]
pub(crate) struct Page {
    /// Kind of the result: `simulation`.
    pub(crate) kind: &'static str,
    /// Subject of the page, in text.
    pub(crate) title: String,
    /// The verdict's advice, if there is one.
    pub(crate) advice: Option<Advice>,
    /// The first sentence, and how sure it is.
    pub(crate) answer: [String; 2],
    /// Terms and their values.
    pub(crate) facts: Vec<(&'static str, String)>,
    /// Sentences needed to read the numbers right.
    pub(crate) notes: Vec<String>,
    /// HTML of the sections.
    pub(crate) body: String,
    /// Style beside that of all pages.
    pub(crate) style: &'static str,
    /// Scripts beside those of all pages, in order.
    pub(crate) scripts: &'static [&'static str],
}

impl Page {
    /// Starts a page that begins with a verdict.
    pub(crate) fn of(kind: &'static str, title: String, verdict: Option<Verdict>) -> Self {
        let page = Self { kind, title, ..Self::default() };
        match verdict {
            None => Self { answer: ["Nothing was run.".into(), String::new()], ..page },
            Some(Verdict { advice, sentence, sure, .. }) => {
                Self { advice: Some(advice), answer: [sentence, sure], ..page }
            }
        }
    }

    /// Writes the page as one file; `data` is for its scripts.
    pub(crate) fn html(self, data: &impl Serialize) -> String {
        let (class, badge) = match self.advice {
            None => ("", ""),
            Some(Advice::Tier) => (" tier", "Tier"),
            Some(Advice::DoNotTier) => (" leave", "Do not tier"),
            Some(Advice::Unknown) => (" unknown", "No verdict"),
        };
        let [answer, sure] = self.answer.map(|sentence| prose(&sentence));
        let facts: String = self.facts.iter().map(definition).collect();
        let notes: String = self.notes.iter().map(|note| format!("<li>{}</li>", prose(note))).collect();
        let element = |name: &str, class: &str, content: String| {
            let empty = content.is_empty();
            if empty { content } else { format!("<{name} class=\"{class}\">{content}</{name}>") }
        };
        let parts = [
            ("kind", escape(self.kind)),
            ("title", escape(&shortened(&self.title, MAX_TEXT))),
            ("class", class.into()),
            ("badge", element("b", "badge", badge.into())),
            ("answer", answer),
            ("sure", element("p", "sure", sure)),
            ("facts", element("dl", "facts", facts)),
            ("notes", element("ul", "notes", notes)),
            ("body", self.body),
            ("style", format!("{}{STYLE}{}", colours::variables(), self.style)),
            ("data", script_safe(&to_json(data))),
            ("scripts", format!("{COMMON}{}", self.scripts.concat())),
        ];
        fill(FRAME, &parts)
    }
}

/// Returns the report as one self-contained HTML file of at most [`MAX_HTML_BYTES`].
///
/// Long runs are aggregated: neighbouring intervals and heatmap cells are merged, so that sums stay true.
pub fn html(report: &Report) -> String {
    let shown = &report.runs[..report.runs.len().min(data::MAX_RUNS)];
    let mut sizes: Vec<u64> = shown.iter().map(|run| run.fast_bytes.0).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let picture = figure("heatmap", "Accesses by time and address", HEATMAP_CAPTION, OVERLAY);
    let over =
        figure("over-time", "Hit ratio over time", "Share of the misses that the fast tier served.", "");
    let curve = figure("curve", "Slowdown against size", CURVE_CAPTION, "");
    let internal = figure("internals", "Internals over time", INTERNALS_CAPTION, INTERNALS);
    let size = "<label>fast tier <select id=\"size\"></select></label>";
    let body = [
        section(
            "Ranking",
            size,
            &format!("<div id=\"ranking\">{}</div>", ranking::ranking(report, shown, &sizes)),
        ),
        section("Memory", "", &picture),
        section("Policies", "", &format!("{CHOICE}<div class=\"pair\">{curve}{over}</div>")),
        fold("Internals", "what each policy shows of itself, moves, samples", &internal),
        fold("All runs", &counted(report.runs.len() as u64, "run", "runs"), &tables::runs(report)),
        tables::rounds(report),
        tables::objects(report).map_or_else(String::new, |table| {
            fold("Whose memory", "misses by mapping or allocation site", &table)
        }),
        fold("Parameters", "in force", &tables::parameters(report)),
        fold("Machine", &report.machine.name, &machine(&report.machine)),
        fold("Provenance", &report.input.name, &provenance(&report.input.provenance)),
    ];
    let title = format!("{} on {}", shortened(&report.input.name, MAX_TEXT), report.machine.name);
    let page = Page {
        facts: head(report),
        notes: facts::notes(report),
        body: body.concat(),
        scripts: &[PLOT, HEATMAP, SIMULATE],
        ..Page::of("simulation", title, verdict::simulated(report))
    };
    page.html(&data::page(report, shown, &sizes))
}

const OVERLAY: &str = "<label>fast under <select id=\"overlay\"></select></label>";
const INTERNALS: &str = "<label>number <select id=\"number\"></select></label>";
const CHOICE: &str =
    "<fieldset id=\"choice\" class=\"chips\"><legend>Policies in the pictures</legend></fieldset>";
const HEATMAP_CAPTION: &str = "Coloured: in the fast tier under the chosen policy; grey: in slow memory. \
                               Gaps between mappings are left out.";
const CURVE_CAPTION: &str = "Modelled time over that with all memory fast. Dashed grey: the bounds.";
const INTERNALS_CAPTION: &str = "Of the policies chosen above.";

/// Returns the head's facts about the input and the machine.
fn head(report: &Report) -> Vec<(&'static str, String)> {
    let input = &report.input;
    vec![
        ("misses", count(input.accesses)),
        ("instructions", count(input.instructions)),
        ("threads", input.threads.to_string()),
        ("footprint", input.footprint_bytes.to_string()),
        ("machine", crate::table::machine(&report.machine)),
        ("scale", format!("{} (times {})", input.scale, input.time_scale)),
        ("seed", input.seed.to_string()),
        ("Isotherm", report.version.clone()),
    ]
}

/// Returns a section with its heading, beside which `controls` stand.
pub(crate) fn section(title: &str, controls: &str, body: &str) -> String {
    format!("<section><h2>{}{controls}</h2>{body}</section>", escape(title))
}

/// Returns a section that is folded until the reader opens it.
pub(crate) fn fold(title: &str, detail: &str, body: &str) -> String {
    let (title, detail) = (escape(title), escape(&shortened(detail, MAX_TEXT)));
    format!("<details><summary><h2>{title}</h2> <span>{detail}</span></summary>{body}</details>")
}

/// Returns the place of a picture with its caption, in text; `controls` is HTML.
pub(crate) fn figure(id: &str, title: &str, caption: &str, controls: &str) -> String {
    let [title, caption] = [title, caption].map(escape);
    format!(
        "<figure id=\"{id}\"><figcaption>{controls}<b>{title}</b> {caption}</figcaption><div class=\"plot\"></div>\
         </figure>"
    )
}

fn definition((term, value): &(&'static str, String)) -> String {
    format!("<div><dt>{}</dt><dd>{}</dd></div>", escape(term), escape(&shortened(value, MAX_TEXT)))
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
