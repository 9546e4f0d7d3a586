//! Connections: accepted, given time for the heads of their requests, ended when they are done.

use std::{
    io::{Error, ErrorKind},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::GracefulShutdown,
    service::TowerToHyperService,
};
use tokio::{net::TcpListener, sync::Semaphore};

use crate::Options;

/// After a failure to accept that is not one connection's, such as too many open files.
const PAUSE: Duration = Duration::from_millis(200);

/// Serves `app` until `shutdown` ends. Then nothing is accepted, connections end with the request
/// that they are at, and what is not done after [`Options::drain`] is left.
pub(crate) async fn serve(
    listener: TcpListener,
    app: Router,
    options: &Options,
    shutdown: impl Future<Output = ()>,
) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(options.head_timeout);
    let connections = GracefulShutdown::new();
    let places = Arc::new(Semaphore::new(options.connections));
    // Who finds no place waits in the listener's own queue.
    let accept = async || {
        let place = places.clone().acquire_owned().await;
        listener.accept().await.map(|(stream, _)| (stream, place))
    };
    let mut shutdown = pin!(shutdown);
    loop {
        let accepted = tokio::select! {
            accepted = accept() => accepted,
            () = &mut shutdown => break,
        };
        let (stream, place) = match accepted {
            Ok(accepted) => accepted,
            Err(error) if of_one_connection(&error) => continue,
            Err(_) => {
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        // Replies are written whole; where it cannot be set they are merely later.
        let _ = stream.set_nodelay(true);
        let service = TowerToHyperService::new(app.clone());
        let connection = http.serve_connection(TokioIo::new(stream), service);
        let connection = connections.watch(connection);
        tokio::spawn(async move {
            // How a connection fails is its client's to know.
            let _ = connection.await;
            drop(place);
        });
    }
    drop(listener);
    // What is left ends with the caller's runtime.
    let _ = tokio::time::timeout(options.drain, connections.shutdown()).await;
}

fn of_one_connection(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ConnectionAborted
            | ErrorKind::ConnectionReset
            | ErrorKind::ConnectionRefused
            | ErrorKind::Interrupted
    )
}
