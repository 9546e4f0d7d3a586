//! What `GET /metrics` tells, in Prometheus' text format.

use std::{
    collections::BTreeMap,
    fmt::Write,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use crate::Service;

/// Upper bounds of the latency histogram, in seconds.
const BUCKETS: [f64; 10] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 20.0, 60.0];

/// Counters of requests.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    /// By route and status code.
    requests: Mutex<BTreeMap<(&'static str, u16), u64>>,
    buckets: [AtomicU64; BUCKETS.len()],
    answered: AtomicU64,
    microseconds: AtomicU64,
    in_flight: AtomicU64,
}

impl Metrics {
    pub(crate) fn begin(&self) {
        self.in_flight.fetch_add(1, Relaxed);
    }

    /// To be called for every [`Metrics::begin`], also when the client went away (code 499).
    pub(crate) fn end(&self, route: &'static str, code: u16, took: Duration) {
        self.in_flight.fetch_sub(1, Relaxed);
        self.answered.fetch_add(1, Relaxed);
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.microseconds.fetch_add(micros, Relaxed);
        for (bucket, bound) in self.buckets.iter().zip(BUCKETS) {
            bucket.fetch_add(u64::from(took.as_secs_f64() <= bound), Relaxed);
        }
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        *requests.entry((route, code)).or_default() += 1;
    }
}

/// All of it as text.
pub(crate) fn text(service: &Service) -> String {
    let metrics = service.metrics();
    let (sandbox, judge) = (service.sandbox().stats(), service.judge().stats());
    let mut out = String::new();
    let mut family = |name: &str, kind: &str, help: &str, samples: &[(String, f64)]| {
        // Writing to memory has no way to fail.
        let _ = writeln!(
            out,
            "# HELP etude_{name} {help}\n# TYPE etude_{name} {kind}"
        );
        for (labels, value) in samples {
            let _ = writeln!(out, "etude_{name}{labels} {value}");
        }
    };
    let plain = |value: f64| vec![(String::new(), value)];
    let requests = metrics
        .requests
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    let by_route: Vec<(String, f64)> = requests
        .iter()
        .map(|((route, code), n)| (format!("{{route=\"{route}\",code=\"{code}\"}}"), *n as f64))
        .collect();
    drop(requests);
    family("requests_total", "counter", "Requests answered.", &by_route);
    let in_flight = metrics.in_flight.load(Relaxed) as f64;
    family(
        "requests_in_flight",
        "gauge",
        "Requests under way.",
        &plain(in_flight),
    );
    let statuses = serde_json::to_value(sandbox.statuses).unwrap_or_default();
    let statuses: Vec<(String, f64)> = statuses
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, n)| (format!("{{status=\"{name}\"}}"), n.as_f64().unwrap_or(0.0)))
        .collect();
    family(
        "runs_total",
        "counter",
        "Jail runs by how they ended.",
        &statuses,
    );
    family(
        "sandbox_errors_total",
        "counter",
        "Jail runs that the machinery failed.",
        &plain(sandbox.errors as f64),
    );
    family(
        "sandbox_refused_total",
        "counter",
        "Jobs refused for a full queue.",
        &plain(sandbox.refused as f64),
    );
    family(
        "queue_depth",
        "gauge",
        "Jobs that wait for a slot.",
        &plain(sandbox.queued as f64),
    );
    family(
        "runs_in_flight",
        "gauge",
        "Jail runs under way.",
        &plain(sandbox.running as f64),
    );
    family(
        "slots_started_total",
        "counter",
        "Slots, first and replaced.",
        &plain(sandbox.slots_started as f64),
    );
    family(
        "verdicts_total",
        "counter",
        "Verdicts.",
        &plain(judge.verdicts as f64),
    );
    family(
        "verdict_cache_hits_total",
        "counter",
        "Verdicts that were not executed.",
        &plain(judge.cache_hits as f64),
    );
    family(
        "verdict_timeouts_total",
        "counter",
        "Verdicts that timed out.",
        &plain(judge.timeouts as f64),
    );
    let answered = metrics.answered.load(Relaxed) as f64;
    let mut samples: Vec<(String, f64)> = metrics
        .buckets
        .iter()
        .zip(BUCKETS)
        .map(|(n, bound)| (format!("_bucket{{le=\"{bound}\"}}"), n.load(Relaxed) as f64))
        .collect();
    samples.push(("_bucket{le=\"+Inf\"}".to_owned(), answered));
    samples.push((
        "_sum".to_owned(),
        metrics.microseconds.load(Relaxed) as f64 / 1e6,
    ));
    samples.push(("_count".to_owned(), answered));
    family(
        "request_seconds",
        "histogram",
        "Seconds from request to reply.",
        &samples,
    );
    out
}
