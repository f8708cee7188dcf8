//! One pod of a gateway: the daemon, restricted, with what the manifest adds. Pure.
//!
//! Nothing of the configuration is in here: a change of targets reaches the daemon without a new pod.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::{
        Capabilities, ConfigMapVolumeSource, Container, ContainerPort, EnvVar, EnvVarSource, HTTPGetAction,
        ObjectFieldSelector, PodSecurityContext, PodSpec, Probe, ResourceFieldSelector, ResourceRequirements,
        SeccompProfile, SecretVolumeSource, SecurityContext, TopologySpreadConstraint, Volume, VolumeMount,
    },
    apimachinery::pkg::{api::resource::Quantity, util::intstr::IntOrString},
};
use mooring_crds::pod_template::PodTemplate;

use super::Parts;

/// Where clients connect.
pub(super) const MCP_PORT: (&str, i32) = ("mcp", 8080);
/// Where probes and scrapes connect.
const HEALTH_PORT: (&str, i32) = ("health", 9090);
const CONFIG_DIR: &str = "/etc/mooring";
const CREDENTIALS_DIR: &str = "/etc/mooring-credentials";
const CONTAINER: &str = "moored";
/// The user of the image; any other without root's rights would do.
const USER: i64 = 65_532;
/// Seconds from the end of the drain to SIGKILL: for the daemon's last words.
const MARGIN: i64 = 10;

pub(super) fn spec(parts: &Parts<'_>, template: PodTemplate) -> PodSpec {
    // Without `..`: a field that is added to the manifest must be handled here.
    let PodTemplate {
        labels: _,
        annotations: _,
        resources,
        node_selector,
        tolerations,
        affinity,
        topology_spread_constraints,
        priority_class_name,
        runtime_class_name,
        image_pull_secrets,
    } = template;
    let drain = &parts.gateway.spec.drain;
    PodSpec {
        service_account_name: Some(parts.names.workload.clone()),
        enable_service_links: Some(false),
        termination_grace_period_seconds: Some(
            i64::from(drain.delay_seconds) + i64::from(drain.deadline_seconds) + MARGIN,
        ),
        security_context: Some(PodSecurityContext {
            run_as_non_root: Some(true),
            run_as_user: Some(USER),
            run_as_group: Some(USER),
            seccomp_profile: Some(SeccompProfile {
                type_: "RuntimeDefault".to_owned(),
                ..SeccompProfile::default()
            }),
            ..PodSecurityContext::default()
        }),
        containers: vec![container(parts, resources.unwrap_or_else(default_resources))],
        volumes: Some(volumes(parts)),
        node_selector: some(node_selector, BTreeMap::is_empty),
        tolerations: some(tolerations, Vec::is_empty),
        affinity,
        topology_spread_constraints: Some(if topology_spread_constraints.is_empty() {
            vec![spread(parts)]
        } else {
            topology_spread_constraints
        }),
        priority_class_name,
        runtime_class_name,
        image_pull_secrets: some(image_pull_secrets, Vec::is_empty),
        ..PodSpec::default()
    }
}

fn volumes(parts: &Parts<'_>) -> Vec<Volume> {
    vec![
        Volume {
            name: "config".to_owned(),
            config_map: Some(ConfigMapVolumeSource {
                name: parts.names.config.clone(),
                ..ConfigMapVolumeSource::default()
            }),
            ..Volume::default()
        },
        Volume {
            name: "credentials".to_owned(),
            secret: Some(SecretVolumeSource {
                secret_name: Some(parts.names.credentials.clone()),
                // A pod starts without: the daemon watches it, and says what it lacks.
                optional: Some(true),
                ..SecretVolumeSource::default()
            }),
            ..Volume::default()
        },
    ]
}

fn container(parts: &Parts<'_>, resources: ResourceRequirements) -> Container {
    let names = parts.names;
    let args = [
        "gateway",
        "--config-dir",
        CONFIG_DIR,
        "--config-map",
        &names.config,
        "--credentials-dir",
        CREDENTIALS_DIR,
        "--credentials-secret",
        &names.credentials,
        "--report-map",
        &names.report,
        "--listen",
        &format!("0.0.0.0:{}", MCP_PORT.1),
        "--health-address",
        &format!("0.0.0.0:{}", HEALTH_PORT.1),
        "--log",
        "info",
    ];
    Container {
        name: CONTAINER.to_owned(),
        image: Some(parts.settings.daemon_image.clone()),
        image_pull_policy: Some(parts.settings.daemon_image_pull_policy.clone()),
        args: Some(args.iter().map(|arg| (*arg).to_owned()).collect()),
        env: Some(vec![
            field("POD_NAME", "metadata.name"),
            field("POD_NAMESPACE", "metadata.namespace"),
            limit("MOORED_MEMORY_LIMIT", "limits.memory"),
        ]),
        ports: Some(vec![port(MCP_PORT), port(HEALTH_PORT)]),
        liveness_probe: Some(probe("/livez", 10, 3)),
        readiness_probe: Some(probe("/readyz", 2, 2)),
        resources: Some(resources),
        security_context: Some(SecurityContext {
            allow_privilege_escalation: Some(false),
            read_only_root_filesystem: Some(true),
            capabilities: Some(Capabilities { drop: Some(vec!["ALL".to_owned()]), add: None }),
            ..SecurityContext::default()
        }),
        volume_mounts: Some(vec![mount("config", CONFIG_DIR), mount("credentials", CREDENTIALS_DIR)]),
        ..Container::default()
    }
}

fn mount(volume: &str, path: &str) -> VolumeMount {
    VolumeMount {
        name: volume.to_owned(),
        mount_path: path.to_owned(),
        read_only: Some(true),
        ..VolumeMount::default()
    }
}

/// Enough to start with. The memory limit is what the daemon bounds its bodies by.
fn default_resources() -> ResourceRequirements {
    let amounts = |amounts: &[(&str, &str)]| -> BTreeMap<_, _> {
        amounts.iter().map(|(name, amount)| ((*name).to_owned(), Quantity((*amount).to_owned()))).collect()
    };
    ResourceRequirements {
        requests: Some(amounts(&[("cpu", "100m"), ("memory", "128Mi")])),
        limits: Some(amounts(&[("memory", "512Mi")])),
        claims: None,
    }
}

/// Pods of one gateway rather on different nodes.
fn spread(parts: &Parts<'_>) -> TopologySpreadConstraint {
    TopologySpreadConstraint {
        max_skew: 1,
        topology_key: "kubernetes.io/hostname".to_owned(),
        when_unsatisfiable: "ScheduleAnyway".to_owned(),
        label_selector: Some(parts.pods()),
        ..TopologySpreadConstraint::default()
    }
}

fn probe(path: &str, period: i32, failures: i32) -> Probe {
    Probe {
        http_get: Some(HTTPGetAction {
            path: Some(path.to_owned()),
            port: IntOrString::String(HEALTH_PORT.0.to_owned()),
            ..HTTPGetAction::default()
        }),
        period_seconds: Some(period),
        failure_threshold: Some(failures),
        timeout_seconds: Some(2),
        ..Probe::default()
    }
}

fn port((name, number): (&str, i32)) -> ContainerPort {
    ContainerPort {
        name: Some(name.to_owned()),
        container_port: number,
        protocol: Some("TCP".to_owned()),
        ..ContainerPort::default()
    }
}

fn field(name: &str, path: &str) -> EnvVar {
    let source = ObjectFieldSelector { field_path: path.to_owned(), api_version: None };
    let value_from = EnvVarSource { field_ref: Some(source), ..EnvVarSource::default() };
    EnvVar { name: name.to_owned(), value: None, value_from: Some(value_from) }
}

fn limit(name: &str, resource: &str) -> EnvVar {
    let source = ResourceFieldSelector {
        container_name: Some(CONTAINER.to_owned()),
        resource: resource.to_owned(),
        divisor: None,
    };
    let value_from = EnvVarSource { resource_field_ref: Some(source), ..EnvVarSource::default() };
    EnvVar { name: name.to_owned(), value: None, value_from: Some(value_from) }
}

/// A list or map that is empty is not written: an apply would own the empty field.
fn some<T>(value: T, is_empty: impl Fn(&T) -> bool) -> Option<T> {
    (!is_empty(&value)).then_some(value)
}
