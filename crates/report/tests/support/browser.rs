//! Pages in a real browser: headless Chromium, which Debian's `chromium` installs with `make setup`;
//! `ISOTHERM_CHROMIUM` names another one.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// A page in a frame of a width, because a browser's window has a least width.
pub struct Shown<'a> {
    pub html: &'a str,
    pub width: u32,
    pub height: u32,
    pub dark: bool,
}

impl<'a> Shown<'a> {
    pub fn new(html: &'a str, width: u32) -> Self {
        Self { html, width, height: 900, dark: false }
    }

    pub fn dark(self) -> Self {
        Self { dark: true, ..self }
    }

    /// Runs the body of a function in the page once it is drawn, and returns what it returns.
    pub fn run(&self, script: &str) -> Value {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let arguments = ["--dump-dom".to_owned(), "--window-size=2000,1000".to_owned()];
        let document = self.browse(folder.path(), &arguments, script);
        let answer = between(&document, "<pre id=\"answer\">", "</pre>");
        let answer = answer.unwrap_or_else(|| panic!("the browser gave no answer: {document:.2000}"));
        let answer: Value = serde_json::from_str(&decoded(answer)).expect("the script's answer in JSON");
        assert!(answer["failed"].is_null(), "{answer}");
        answer
    }

    /// Returns the mean colours of squares of the page, row by row, in hexadecimal digits of red, green and
    /// blue each.
    pub fn looks(&self, square: u32) -> Vec<String> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let picture = folder.path().join("page.png");
        let size = format!("--window-size={},{}", self.width.max(500), self.height);
        self.browse(folder.path(), &[format!("--screenshot={}", picture.display()), size], "return 1");
        let picture = std::fs::read(&picture).expect("a picture of the page");
        let (columns, rows) = (self.width / square, self.height / square);
        let script = format!(
            "const bytes = {picture:?};
             let text = '';
             bytes.forEach((byte) => {{ text += String.fromCharCode(byte); }});
             const image = new Image();
             await new Promise((done) => {{
               image.onload = done;
               image.src = 'data:image/png;base64,' + btoa(text);
             }});
             const canvas = document.createElement('canvas');
             [canvas.width, canvas.height] = [{square} * {columns}, {square} * {rows}];
             const pen = canvas.getContext('2d');
             pen.drawImage(image, 0, 0);
             const means = [];
             for (let square = 0; square < {columns} * {rows}; square += 1) {{
               const [x, y] = [square % {columns}, Math.floor(square / {columns})];
               const data = pen.getImageData({square} * x, {square} * y, {square}, {square}).data;
               for (let part = 0; part < 3; part += 1) {{
                 let sum = 0;
                 for (let at = part; at < data.length; at += 4) sum += data[at];
                 means.push(Math.floor((4 * sum) / data.length));
               }}
             }}
             return means;"
        );
        let pixels = Shown::new("<!DOCTYPE html>", 100).run(&script);
        let pixels: Vec<u64> = pixels.as_array().expect("pixels").iter().filter_map(Value::as_u64).collect();
        let line = |row: &[u64]| row.iter().map(|part| format!("{:x}", part / 16)).collect::<String>();
        pixels.chunks(3 * columns as usize).map(line).collect()
    }

    fn browse(&self, folder: &Path, arguments: &[String], script: &str) -> String {
        let frame = folder.join("frame.html");
        let text = |text: &str| Value::from(text).to_string().replace('<', "\\u003c");
        let page = format!(
            "<!DOCTYPE html><meta charset=\"utf-8\"><style>body {{ margin: 0 }} pre {{ display: none }} \
             iframe {{ border: 0; display: block; width: {}px; height: {}px }}</style><script>
             onload = () => {{
               const frame = document.createElement('iframe');
               const answer = (value) => {{
                 const place = document.createElement('pre');
                 place.id = 'answer';
                 place.textContent = encodeURIComponent(JSON.stringify(value ?? null));
                 document.body.append(place);
               }};
               frame.onload = () => setTimeout(async () => {{
                 try {{
                   answer(await frame.contentWindow.eval('(async () => {{' + {} + '\\n}})()'));
                 }} catch (error) {{
                   answer({{ failed: String(error) }});
                 }}
               }}, 200);
               frame.srcdoc = {};
               document.body.append(frame);
             }};</script>",
            self.width,
            self.height,
            text(script),
            text(self.html),
        );
        std::fs::write(&frame, page).expect("the page can be written");
        let browser = std::env::var("ISOTHERM_CHROMIUM").unwrap_or_else(|_| "chromium".into());
        let quiet = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-sync",
            "--disable-background-networking",
            "--disable-component-update",
            "--hide-scrollbars",
            "--js-flags=--expose-gc",
            "--enable-precise-memory-info",
            "--virtual-time-budget=8000",
        ];
        let output = Command::new(&browser)
            .args(quiet)
            .arg(format!("--blink-settings=preferredColorScheme={}", u8::from(!self.dark)))
            .arg(format!("--user-data-dir={}", folder.join("profile").display()))
            .args(arguments)
            .arg(format!("file://{}", frame.display()))
            .output()
            .unwrap_or_else(|error| {
                panic!("{browser} cannot be started ({error}): run `make setup`, it installs Chromium")
            });
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

fn between<'a>(text: &'a str, before: &str, behind: &str) -> Option<&'a str> {
    text.split_once(before)?.1.split_once(behind).map(|(between, _)| between)
}

/// Decodes a text of `encodeURIComponent`.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let digits: Vec<u8> = if byte == b'%' { rest.by_ref().take(2).collect() } else { Vec::new() };
        let digits = std::str::from_utf8(&digits).expect("digits");
        bytes.push(if digits.is_empty() {
            byte
        } else {
            u8::from_str_radix(digits, 16).expect("two digits")
        });
    }
    String::from_utf8(bytes).expect("text")
}
