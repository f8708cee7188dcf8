//! The ready addresses behind a Service's port, from its EndpointSlices. Pure.

use std::{collections::BTreeSet, net::IpAddr, sync::Arc};

use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::core::DynamicObject;
use serde_json::Value;

/// The most addresses of one target: a configuration is one ConfigMap. The Service serves the others.
const MOST: usize = 64;

/// The most bytes that the addresses of all targets of one gateway take in its configuration.
const MOST_IN_ALL: usize = 128 * 1024;

/// What is left in a gateway's configuration for addresses.
#[derive(Debug)]
pub struct Room(usize);

impl Default for Room {
    fn default() -> Self {
        Self(MOST_IN_ALL)
    }
}

impl Room {
    /// The addresses of one target, or none where they do not fit: its Service serves.
    pub fn take(&mut self, addresses: Vec<String>) -> Vec<String> {
        // Quotes and a comma.
        let size = addresses.iter().map(|address| address.len() + 3).sum();
        let Some(rest) = self.0.checked_sub(size) else { return Vec::new() };
        self.0 = rest;
        addresses
    }
}

/// The addresses that are ready, `address:port`, sorted; none where the Service is an alias or has no such port.
pub fn ready(service: &DynamicObject, port: i32, slices: &[Arc<EndpointSlice>]) -> Vec<String> {
    if service.data.pointer("/spec/type").and_then(Value::as_str) == Some("ExternalName") {
        return Vec::new();
    }
    let ports = service.data.pointer("/spec/ports").and_then(Value::as_array);
    let numbered =
        |of: &&Value| of.get("port").and_then(Value::as_i64).is_some_and(|number| number == i64::from(port));
    let Some(port) = ports.into_iter().flatten().find(numbered) else { return Vec::new() };
    // A slice's port has the name of the Service's; one alone may have none.
    let name = port.get("name").and_then(Value::as_str).unwrap_or_default();
    let all: BTreeSet<String> = slices.iter().flat_map(|slice| of_slice(slice, name)).collect();
    all.into_iter().take(MOST).collect()
}

fn of_slice(slice: &EndpointSlice, name: &str) -> Vec<String> {
    let named = |port: &&k8s_openapi::api::discovery::v1::EndpointPort| {
        port.name.as_deref().unwrap_or_default() == name
    };
    let Some(port) = slice.ports.iter().flatten().find(named).and_then(|port| port.port) else {
        return Vec::new();
    };
    let endpoints = slice.endpoints.iter().flatten().filter(|endpoint| {
        let conditions = endpoint.conditions.as_ref();
        // Not said means ready, and an endpoint that ends is not.
        conditions.and_then(|conditions| conditions.ready).unwrap_or(true)
    });
    // One address of an endpoint: all of them lead to the same pod.
    let addresses = endpoints.filter_map(|endpoint| endpoint.addresses.first()?.parse::<IpAddr>().ok());
    addresses
        .map(|address| match address {
            IpAddr::V4(address) => format!("{address}:{port}"),
            IpAddr::V6(address) => format!("[{address}]:{port}"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_addresses_of_all_targets_of_a_gateway_are_bounded_whole_targets_at_a_time() {
        let addresses = vec!["[2001:db8:ffff:ffff:ffff:ffff:ffff:ffff]:65535".to_owned(); MOST];
        let mut room = Room::default();
        let taken: Vec<_> = (0..256).map(|_| room.take(addresses.clone())).collect();
        let configured = serde_json::to_string(&taken).unwrap().len();
        assert!(configured < MOST_IN_ALL + 4 * 256, "{configured}");
        assert_eq!(taken[0], addresses);
        assert!(taken[255].is_empty());
        assert_eq!(room.take(vec!["10.0.0.1:80".to_owned()]).len(), 1, "what is small still fits");
    }

    fn service(spec: &Value) -> DynamicObject {
        serde_json::from_value(json!({"metadata": {"name": "a"}, "spec": spec})).unwrap()
    }

    fn slice(addresses: &[(&str, Option<bool>)], ports: &Value) -> Arc<EndpointSlice> {
        let endpoints: Vec<_> = addresses
            .iter()
            .map(|(address, ready)| json!({"addresses": [address], "conditions": {"ready": ready}}))
            .collect();
        Arc::new(
            serde_json::from_value(
                json!({"metadata": {}, "addressType": "IPv4", "endpoints": endpoints, "ports": ports}),
            )
            .unwrap(),
        )
    }

    #[test]
    fn ready_addresses_are_those_of_the_port_of_that_name_in_one_order() {
        let spec = json!({"ports": [{"port": 80, "name": "mcp"}, {"port": 9090, "name": "metrics"}]});
        let ports = json!([{"name": "metrics", "port": 9}, {"name": "mcp", "port": 8080}]);
        let slices = [
            slice(&[("10.0.0.2", Some(true)), ("10.0.0.3", Some(false))], &ports),
            slice(&[("10.0.0.1", None), ("10.0.0.2", Some(true))], &ports),
        ];
        assert_eq!(ready(&service(&spec), 80, &slices), ["10.0.0.1:8080", "10.0.0.2:8080"]);
        assert!(ready(&service(&spec), 81, &slices).is_empty());
    }

    #[test]
    fn an_alias_has_none_and_an_unnamed_port_is_the_unnamed_one() {
        let slices = [slice(&[("fd00::1", None)], &json!([{"port": 8080}]))];
        assert_eq!(ready(&service(&json!({"ports": [{"port": 80}]})), 80, &slices), ["[fd00::1]:8080"]);
        let alias = json!({"type": "ExternalName", "ports": [{"port": 80}]});
        assert!(ready(&service(&alias), 80, &slices).is_empty());
    }
}
