//! The endpoint in the cluster. Pure.

use k8s_openapi::{
    api::core::v1::{Service, ServicePort, ServiceSpec},
    apimachinery::pkg::util::intstr::IntOrString,
};
use mooring_crds::serving::ServiceType;

use super::{Parts, pod::MCP_PORT, selector};

pub(super) fn service(parts: &Parts<'_>) -> Service {
    let spec = &parts.gateway.spec;
    let expose = &spec.expose;
    let kind = match expose.service_type {
        ServiceType::ClusterIP => "ClusterIP",
        ServiceType::NodePort => "NodePort",
        ServiceType::LoadBalancer => "LoadBalancer",
    };
    let port = ServicePort {
        name: Some(MCP_PORT.0.to_owned()),
        port: expose.port,
        target_port: Some(IntOrString::String(MCP_PORT.0.to_owned())),
        protocol: Some("TCP".to_owned()),
        app_protocol: Some(if spec.tls.is_some() { "https" } else { "http" }.to_owned()),
        node_port: None,
    };
    Service {
        metadata: parts.meta(&parts.names.workload),
        spec: Some(ServiceSpec {
            type_: Some(kind.to_owned()),
            ports: Some(vec![port]),
            selector: Some(selector(parts.instance)),
            ..ServiceSpec::default()
        }),
        status: None,
    }
}
