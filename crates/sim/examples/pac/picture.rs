//! Draws panels of points as one SVG.

use std::fmt::Write as _;

/// Points of one colour.
pub(crate) struct Series {
    pub(crate) name: &'static str,
    pub(crate) colour: &'static str,
    pub(crate) points: Vec<(f64, f64)>,
}

/// One pair of axes.
pub(crate) struct Panel {
    pub(crate) title: String,
    pub(crate) x: String,
    pub(crate) y: String,
    /// Whether both axes are logarithmic, with the same range and a diagonal.
    pub(crate) log: bool,
    pub(crate) series: Vec<Series>,
}

const COLUMNS: usize = 3;
const WIDTH: f64 = 360.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 58.0;
const TOP: f64 = 34.0;
const SIDE: f64 = 240.0;

/// Draws the panels, three in a row.
pub(crate) fn draw(panels: &[Panel]) -> String {
    let rows = panels.len().div_ceil(COLUMNS);
    let (width, height) = (WIDTH * COLUMNS as f64, HEIGHT * rows as f64);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    for (index, panel) in panels.iter().enumerate() {
        let (x, y) = ((index % COLUMNS) as f64 * WIDTH, (index / COLUMNS) as f64 * HEIGHT);
        let _ = writeln!(svg, "<g transform=\"translate({x} {y})\">");
        panel.draw(&mut svg);
        svg.push_str("</g>\n");
    }
    svg.push_str("</svg>\n");
    svg
}

/// Maps a value to its place between two others, from 0 to 1.
struct Axis {
    low: f64,
    high: f64,
    log: bool,
}

impl Axis {
    fn of(values: impl Iterator<Item = f64>, log: bool) -> Self {
        let shown = values.filter(|&value| !log || value > 0.0);
        let (low, high) =
            shown.fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)));
        let low = if log { low } else { 0.0 };
        Self { low, high: if high > low { high } else { low + 1.0 }, log }
    }

    fn place(&self, value: f64) -> f64 {
        if self.log {
            (value.max(self.low) / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        }
    }

    fn label(value: f64) -> String {
        if value >= 100.0 { format!("{value:.0}") } else { format!("{value:.3}") }
    }
}

impl Panel {
    fn draw(&self, svg: &mut String) {
        let points = || self.series.iter().flat_map(|series| &series.points);
        let (x, y) = if self.log {
            let both = || points().flat_map(|point| [point.0, point.1]);
            (Axis::of(both(), true), Axis::of(both(), true))
        } else {
            (Axis::of(points().map(|point| point.0), false), Axis::of(points().map(|point| point.1), false))
        };
        let _ = writeln!(svg, "<text x=\"{LEFT}\" y=\"20\" font-size=\"13\">{}</text>", self.title);
        let _ = writeln!(
            svg,
            "<rect x=\"{LEFT}\" y=\"{TOP}\" width=\"{SIDE}\" height=\"{SIDE}\" fill=\"none\" stroke=\"#444\"/>"
        );
        let bottom = TOP + SIDE;
        if self.log {
            let right = LEFT + SIDE;
            let _ = writeln!(
                svg,
                "<line x1=\"{LEFT}\" y1=\"{bottom}\" x2=\"{right}\" y2=\"{TOP}\" stroke=\"#ccc\"/>"
            );
        }
        for series in &self.series {
            let _ = writeln!(svg, "<g fill=\"{}\" fill-opacity=\"0.55\">", series.colour);
            for &(a, b) in &series.points {
                let (cx, cy) = (LEFT + SIDE * x.place(a), bottom - SIDE * y.place(b));
                let radius = if self.log { 3.0 } else { 1.3 };
                let _ = writeln!(svg, "<circle cx=\"{cx:.1}\" cy=\"{cy:.1}\" r=\"{radius}\"/>");
            }
            svg.push_str("</g>\n");
        }
        self.labels(svg, &x, &y, bottom);
    }

    fn labels(&self, svg: &mut String, x: &Axis, y: &Axis, bottom: f64) {
        let mut text = |at: (f64, f64), anchor: &str, what: &str| {
            let _ =
                writeln!(svg, "<text x=\"{}\" y=\"{}\" text-anchor=\"{anchor}\">{what}</text>", at.0, at.1);
        };
        text((LEFT, bottom + 14.0), "start", &Axis::label(x.low));
        text((LEFT + SIDE, bottom + 14.0), "end", &Axis::label(x.high));
        text((LEFT - 4.0, bottom), "end", &Axis::label(y.low));
        text((LEFT - 4.0, TOP + 10.0), "end", &Axis::label(y.high));
        text((LEFT + SIDE / 2.0, bottom + 28.0), "middle", &self.x);
        text((LEFT + 4.0, TOP + 14.0), "start", &self.y);
        for (index, series) in self.series.iter().enumerate() {
            let _ = writeln!(
                svg,
                "<text x=\"{}\" y=\"{}\" text-anchor=\"end\" fill=\"{}\">{}</text>",
                LEFT + SIDE - 4.0,
                bottom - 6.0 - 14.0 * index as f64,
                series.colour,
                series.name
            );
        }
    }
}
