//! Serves the page, the metrics and the state over HTTP, read-only.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread::JoinHandle;

use isotherm_core::machine_status::MachineStatus;
use tiny_http::{Header, Method, Request, Response, Server};

use super::history::History;

/// The content type of OpenMetrics.
const METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// The page loads nothing from elsewhere and sends nothing there.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'; img-src data:";

type Status = Arc<RwLock<Arc<MachineStatus>>>;

/// A server, which ends on drop.
pub(crate) struct Web {
    server: Arc<Server>,
    thread: Option<JoinHandle<()>>,
}

impl Web {
    pub(crate) fn start(
        address: SocketAddr,
        status: Status,
        history: Arc<Mutex<History>>,
    ) -> Result<Self, String> {
        let server = Server::http(address).map_err(|error| format!("{address}: {error}"))?;
        let server = Arc::new(server);
        let answering = server.clone();
        let page = isotherm_report::machine_page();
        let serve = move || {
            for request in answering.incoming_requests() {
                let allowed = !address.ip().is_loopback() || is_local(&request);
                serve(request, allowed, &page, &status, &history);
            }
        };
        let thread = std::thread::Builder::new().name("web".into()).spawn(serve);
        Ok(Self { server, thread: Some(thread.map_err(|error| error.to_string())?) })
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        self.server.unblock();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Returns whether the client knows the server by its address, not by a name that a web page may have pointed
/// here to read what only this machine may.
fn is_local(request: &Request) -> bool {
    let host = request.headers().iter().find(|header| header.field.equiv("Host"));
    host.is_none_or(|host| {
        let host = host.value.as_str();
        let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
        name == "localhost" || host.parse::<SocketAddr>().is_ok() || host.parse::<IpAddr>().is_ok()
    })
}

fn serve(request: Request, allowed: bool, page: &str, status: &Status, history: &Mutex<History>) {
    let (code, kind, text) = match request.method() {
        _ if !allowed => (403, "text/plain", "expected this machine's address as the host\n".to_owned()),
        Method::Get | Method::Head => answer(request.url(), page, status, history),
        _ => (405, "text/plain", "expected GET\n".to_owned()),
    };
    let mut response = Response::from_string(text).with_status_code(code);
    let headers =
        [("Content-Type", kind), ("Content-Security-Policy", POLICY), ("Cache-Control", "no-store")];
    for (name, value) in headers {
        if let Ok(header) = Header::from_bytes(name, value) {
            response.add_header(header);
        }
    }
    // A client that goes away is none of the daemon's problems.
    let _ = request.respond(response);
}

/// Returns the answer to a request for an address: its status, the kind of its text, and the text.
fn answer(url: &str, page: &str, status: &Status, history: &Mutex<History>) -> (u16, &'static str, String) {
    let (path, query) = url.split_once('?').unwrap_or((url, ""));
    // The names of groups have no letters that an address would encode.
    let asked = |key: &str| {
        query.split('&').find_map(|pair| pair.split_once('=').filter(|pair| pair.0 == key)).map(|pair| pair.1)
    };
    let state = || status.read().unwrap_or_else(PoisonError::into_inner).clone();
    let history = || history.lock().unwrap_or_else(PoisonError::into_inner);
    let found = match path {
        "/" => return (200, "text/html; charset=utf-8", page.to_owned()),
        "/metrics" => return (200, METRICS, isotherm_report::machine_metrics(&state())),
        "/status.json" => Some(serde_json::to_string(&*state()).unwrap_or_default()),
        "/history.json" => {
            let since = asked("since").and_then(|since| since.parse().ok()).unwrap_or(0.0);
            asked("group")
                .and_then(|group| history().moments(group, since))
                .map(|moments| moments.to_string())
        }
        "/heat.json" => asked("group").and_then(|group| history().heat(group)).map(|map| map.to_string()),
        _ => None,
    };
    let missing = "expected /, /metrics, /status.json, /history.json?group=NAME or /heat.json?group=NAME\n";
    found.map_or_else(|| (404, "text/plain", missing.to_owned()), |text| (200, "application/json", text))
}
