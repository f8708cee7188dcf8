//! A gateway that listens on loopback, for tests that speak to it from outside. Holds no test.

use std::sync::Arc;

use moored::{
    gateway::Gateway,
    listener::{self, Routes},
};
use mooring_runtime::Tasks;

/// Has `gateway` listen, for as long as `tasks` run; the URL of its endpoint.
pub(crate) async fn listen(gateway: &Arc<Gateway>, tasks: &Tasks) -> String {
    let socket = listener::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let url = format!("http://{}/mcp", socket.local_addr().unwrap());
    tasks.spawn(listener::serve(socket, Routes::one(Arc::clone(gateway)), tasks.clone()));
    url
}
