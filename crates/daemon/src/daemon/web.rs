//! Serves the metrics and the state over HTTP, read-only.

use std::net::SocketAddr;
use std::sync::{Arc, PoisonError, RwLock};
use std::thread::JoinHandle;

use isotherm_core::machine_status::MachineStatus;
use tiny_http::{Header, Method, Request, Response, Server};

/// The content type of OpenMetrics.
const METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

type Status = Arc<RwLock<Arc<MachineStatus>>>;

/// A server, which ends on drop.
pub(super) struct Web {
    server: Arc<Server>,
    thread: Option<JoinHandle<()>>,
}

impl Web {
    pub(super) fn start(address: SocketAddr, status: Status) -> Result<Self, String> {
        let server = Server::http(address).map_err(|error| format!("{address}: {error}"))?;
        let server = Arc::new(server);
        let answering = server.clone();
        let answer = move || answering.incoming_requests().for_each(|request| answer(request, &status));
        let thread = std::thread::Builder::new().name("web".into()).spawn(answer);
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

fn answer(request: Request, status: &Status) {
    let state = status.read().unwrap_or_else(PoisonError::into_inner).clone();
    let path = request.url().split('?').next().unwrap_or_default();
    let (code, kind, text) = match (request.method(), path) {
        (Method::Get | Method::Head, "/metrics") => (200, METRICS, isotherm_report::machine_metrics(&state)),
        (Method::Get | Method::Head, "/status.json") => {
            (200, "application/json", serde_json::to_string(&*state).unwrap_or_default())
        }
        (Method::Get | Method::Head, _) => {
            (404, "text/plain", "expected /metrics or /status.json\n".to_owned())
        }
        _ => (405, "text/plain", "expected GET\n".to_owned()),
    };
    let mut response = Response::from_string(text).with_status_code(code);
    if let Ok(kind) = Header::from_bytes("Content-Type", kind) {
        response.add_header(kind);
    }
    // A client that goes away is none of the daemon's problems.
    let _ = request.respond(response);
}
