//! Condition types and reasons, as constants with their meaning. Decides nothing.

/// The manifest is valid and this version can serve it. False: the message says what to write.
pub const ACCEPTED: &str = "Accepted";
/// Everything the manifest refers to exists and may be referred to.
pub const RESOLVED_REFS: &str = "ResolvedRefs";
/// Every daemon works by this generation of the manifest.
pub const PROGRAMMED: &str = "Programmed";
/// It does what it is for, now. Where it is False its reason is the first thing that stands in the way.
pub const READY: &str = "Ready";
/// A warning where False: sessions end with the pod that holds them.
pub const SESSIONS_DURABLE: &str = "SessionsDurable";
/// A warning where False: sessions are bound to nobody.
pub const PRINCIPALS_BOUND: &str = "PrincipalsBound";

/// Reasons: CamelCase words of a bounded set, so that they can be labels of metrics.
pub mod reason {
    /// Accepted: the manifest is valid and served.
    pub const ACCEPTED: &str = "Accepted";
    /// Accepted: a field is written that this version does not serve; the message names it.
    pub const NOT_IMPLEMENTED: &str = "NotImplemented";
    /// Accepted: a field's value cannot be served by any version.
    pub const INVALID: &str = "Invalid";
    /// Accepted: a session's timeout is outside what the installation allows.
    pub const TIMEOUT_OUT_OF_RANGE: &str = "TimeoutOutOfRange";
    /// Accepted: the store lives in one pod, and more are asked for.
    pub const STORE_NEEDS_ONE_REPLICA: &str = "StoreNeedsOneReplica";
    /// Accepted, of a target at a gateway: the gateway takes no targets of its namespace, or none with its credentials.
    pub const NOT_ALLOWED: &str = "NotAllowed";
    /// Accepted, of a target at a gateway: an older target has the same alias.
    pub const CONFLICTED: &str = "Conflicted";
    /// Accepted, of a target at a gateway: the gateway has as many older targets as one may have.
    pub const TOO_MANY_TARGETS: &str = "TooManyTargets";
    /// Accepted, of a target at a gateway: its configuration is too large. ResolvedRefs: a value is.
    pub const TOO_LARGE: &str = "TooLarge";
    /// Accepted, of a target: not every gateway it refers to has the same to say; `status.gateways` tells.
    pub const PARTIALLY_ACCEPTED: &str = "PartiallyAccepted";
    /// Accepted: the API server's object does not decode into this version's type.
    pub const UNDECODABLE: &str = "Undecodable";

    /// ResolvedRefs: everything referred to exists.
    pub const RESOLVED: &str = "Resolved";
    /// ResolvedRefs, of a target: there is no such gateway.
    pub const GATEWAY_NOT_FOUND: &str = "GatewayNotFound";
    /// ResolvedRefs, of a target: the gateway itself is not accepted.
    pub const GATEWAY_NOT_ACCEPTED: &str = "GatewayNotAccepted";
    /// ResolvedRefs, of a target: there is no such Service, or not this port of it.
    pub const SERVICE_NOT_FOUND: &str = "ServiceNotFound";
    /// ResolvedRefs: a Secret or ConfigMap, or a key of one, is not there.
    pub const SECRET_NOT_FOUND: &str = "SecretNotFound";

    /// Programmed: every daemon works by this generation.
    pub const PROGRAMMED: &str = "Programmed";
    /// Programmed, Ready: daemons have not all taken up the configuration yet.
    pub const PENDING: &str = "Pending";

    /// Ready: it works.
    pub const READY: &str = "Ready";
    /// Ready, of a gateway: too few pods are available.
    pub const PODS_NOT_READY: &str = "PodsNotReady";
    /// Ready, of a gateway: it was scaled to nothing.
    pub const SCALED_TO_ZERO: &str = "ScaledToZero";
    /// Ready, of a gateway: a child could not be written; the message says which and why.
    pub const APPLY_FAILED: &str = "ApplyFailed";
    /// Ready, of a gateway: an object of somebody else's has a child's name; the message says which.
    pub const CHILD_CONFLICT: &str = "ChildConflict";
    /// Ready, of a target: no connection, or no answer in time.
    pub const UNREACHABLE: &str = "Unreachable";
    /// Ready, of a target: it speaks no version of MCP that Mooring does.
    pub const UNSUPPORTED_VERSION: &str = "UnsupportedVersion";
    /// Ready, of a target: it answered something that is not MCP, or an error.
    pub const FAILED: &str = "Failed";

    /// SessionsDurable: records live in the memory of one pod.
    pub const MEMORY_STORE: &str = "MemoryStore";
    /// PrincipalsBound: a session is used by whoever began it, and by nobody else.
    pub const AUTHENTICATED: &str = "Authenticated";
    /// PrincipalsBound: anybody is served.
    pub const ANONYMOUS: &str = "Anonymous";
}
