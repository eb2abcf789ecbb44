//! Draws bounds over clear intervals, on a logarithmic scale from 0 up.

use std::fmt::{self, Write};

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 50.0;
const RIGHT: f64 = 60.0;
const BOTTOM: f64 = 40.0;
const TOP: f64 = 10.0;
/// The scale's greatest bound.
const MAX: f64 = 10_000.0;
/// Colours that differ in lightness too (Okabe and Ito, 2008).
const COLOURS: [&str; 5] = ["#000000", "#d55e00", "#009e73", "#56b4e9", "#cc79a7"];

fn height(bound: f64) -> f64 {
    HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * (bound + 1.0).min(MAX).log10() / MAX.log10()
}

/// Returns the picture as SVG: a line for each series, which has a name and a bound after each interval.
pub(crate) fn draw(series: &[(String, Vec<u32>)]) -> Result<String, fmt::Error> {
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#fff\"/>\n"
    );
    for bound in [0.0, 10.0, 100.0, 1000.0] {
        let (y, right) = (height(bound), WIDTH - RIGHT);
        writeln!(svg, "<path d=\"M{LEFT} {y:.1}H{right}\" stroke=\"#ccc\"/>")?;
        writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{bound}</text>",
            LEFT - 6.0,
            y + 4.0
        )?;
    }
    let intervals = series.iter().map(|(_, bounds)| bounds.len()).max().unwrap_or(0).max(2);
    let x = |interval: usize| LEFT + (WIDTH - LEFT - RIGHT) * interval as f64 / (intervals - 1) as f64;
    for interval in (0..intervals).step_by(5) {
        let y = HEIGHT - BOTTOM + 16.0;
        writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{y}\" text-anchor=\"middle\">{}</text>",
            x(interval),
            interval + 1
        )?;
    }
    for (index, ((name, bounds), colour)) in series.iter().zip(COLOURS.iter().cycle()).enumerate() {
        let points: Vec<String> = bounds
            .iter()
            .enumerate()
            .map(|(interval, &bound)| format!("{:.1},{:.1}", x(interval), height(bound.into())))
            .collect();
        let points = points.join(" ");
        writeln!(
            svg,
            "<polyline points=\"{points}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>"
        )?;
        let (x, y) = (WIDTH - RIGHT + 8.0, TOP + 16.0 * (index as f64 + 1.0));
        writeln!(svg, "<text x=\"{x}\" y=\"{y}\" fill=\"{colour}\">{name}</text>")?;
    }
    let (middle, y) = ((LEFT + WIDTH - RIGHT) / 2.0, HEIGHT - 6.0);
    writeln!(svg, "<text x=\"{middle}\" y=\"{y}\" text-anchor=\"middle\">clear interval</text>")?;
    let y = (TOP + HEIGHT - BOTTOM) / 2.0;
    writeln!(
        svg,
        "<text transform=\"translate(12 {y}) rotate(-90)\" text-anchor=\"middle\">error bound</text>"
    )?;
    svg.push_str("</svg>\n");
    Ok(svg)
}
