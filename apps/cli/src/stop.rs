//! When the user or the system asks a command to end.

use tokio::signal::{
    ctrl_c,
    unix::{SignalKind, signal},
};

/// Ends at Ctrl-C and at SIGTERM, which `timeout`, services and CI send.
pub(crate) async fn asked_to_stop() {
    let Ok(mut terminated) = signal(SignalKind::terminate()) else {
        let _ = ctrl_c().await;
        return;
    };
    tokio::select! {
        _ = ctrl_c() => {}
        _ = terminated.recv() => {}
    }
}
