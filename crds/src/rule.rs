//! What is said when a served field breaks its rule. Words only; each says what to write instead.
//!
//! The API server says it by CEL; operator and `moored serve` say it of objects that no API server has checked.

/// `spec.auth` of a gateway.
pub const AUTH_NEEDED: &str =
    "auth says nobody may call; write oidc, serviceAccount, or, to serve anybody, anonymous: {}";
/// `spec.auth` of a gateway and of an agent.
pub const ANONYMOUS_ALONE: &str =
    "anonymous excludes oidc and serviceAccount; remove anonymous, or both others";
/// `spec.auth.oidc.issuer`.
pub const ISSUER: &str =
    "issuer is no absolute URL; write it exactly as in the tokens' iss, like https://id.example.org";
/// `spec.auth.oidc.audiences` and `spec.auth.serviceAccount.audiences`.
pub const AUDIENCES: &str = "spec.auth has an empty list of audiences, or an empty audience; write what tokens for this gateway carry in aud, most often its URL";
/// `spec.auth.oidc.requiredScopes`.
pub const SCOPES: &str = "an entry of requiredScopes is no scope; write one scope an entry, without spaces, quotes and backslashes";
/// `spec.auth.oidc.requiredClaims` and the claims of `spec.access`.
pub const CLAIMS: &str = "a claim has no name, or no value that it may have; write claim and values";
/// `spec.auth.serviceAccount.allowed`.
pub const ALLOWED_ACCOUNTS: &str = "an entry of spec.auth.serviceAccount.allowed has no namespace; write it";
/// `spec.auth.denied`.
pub const DENIED: &str = "an entry of spec.auth.denied has no subject; write the tokens' sub";
/// `spec.auth.denied` of a gateway and of an agent, beside `anonymous`.
pub const DENIED_NOBODY: &str = "denied denies nobody where callers are anonymous; remove denied, or write oidc or serviceAccount in place of anonymous";
/// `spec.auth.serviceAccount` without a cluster.
pub const NO_CLUSTER: &str = "spec.auth.serviceAccount needs a cluster, whose keys verify the tokens; write oidc, or, to serve anybody, anonymous: {}";
/// `spec.expose.path`.
pub const EXPOSE_PATH: &str =
    "path begins with / and holds letters, digits and . _ ~ - / only; write it like /mcp";
/// `spec.tools.separator`.
pub const SEPARATOR: &str = "separator holds other characters than . _ and -, which clients refuse in tool names or take for part of the name; write at most 8 of these, like ___";
/// `spec.endpoint.publicURL`.
pub const PUBLIC_URL: &str = "publicURL is no absolute http or https URL without user, query or fragment; write it like https://tools.example.org/mcp";
/// `spec.endpoint.allowedOrigins`.
pub const ALLOWED_ORIGINS: &str = "an entry of allowedOrigins is no origin; write scheme, host and port without a path, like https://app.example.org";
/// `spec.endpoint.allowedHosts`.
pub const ALLOWED_HOSTS: &str = "an entry of allowedHosts is no host name; write it without scheme, port and path, like tools.example.org";
/// `spec.endpoint.trustedProxies`.
pub const TRUSTED_PROXIES: &str =
    "an entry of trustedProxies is no network; write it as CIDR, like 10.0.0.0/8";
/// `spec.session.idleTimeoutSeconds` against `timeoutSeconds`.
pub const IDLE_TIMEOUT: &str = "idleTimeoutSeconds is above timeoutSeconds, which no session outlives; write an idleTimeoutSeconds of at most timeoutSeconds";
/// `spec.session` with `mode: Stateless`.
pub const STATELESS_SESSION: &str = "idleTimeoutSeconds, maxPerPrincipal and endBefore are of sessions, and with mode: Stateless there are none; remove them, or write mode: Stateful";
/// `spec.limits` with `spec.session.mode: Stateless`.
pub const STATELESS_LIMITS: &str = "streamsPerSession and requestsInFlightPerSession are of sessions, and with session.mode: Stateless there are none; remove them and write requestsInFlight, or write session.mode: Stateful";
/// `spec.limits.streamsPerSession` with `spec.streaming: Disabled`.
pub const UNSTREAMED_LIMITS: &str = "streamsPerSession is of event streams, and with streaming: Disabled there are none; remove it, or write streaming: Enabled";
/// `spec.podTemplate.labels`.
pub const POD_LABELS: &str = "labels beginning with app.kubernetes.io/ or mooring.dev/ are set by the operator; write the label under another prefix";
/// `spec.podTemplate.annotations`.
pub const POD_ANNOTATIONS: &str = "annotations beginning with mooring.dev/ are set by the operator; write the annotation under another prefix";
/// `spec.server.url` against `spec.server.type`.
pub const SERVER_URL: &str =
    "url goes with type URL and is needed there; write type: URL with url.address, or remove url";
/// `spec.server.service` against `spec.server.type`.
pub const SERVER_SERVICE: &str = "service goes with type Service and is needed there; write type: Service with service.name and service.port, or remove service";
/// `spec.server.container` against `spec.server.type`.
pub const SERVER_CONTAINER: &str = "container goes with type Container and is needed there; write type: Container with container.image, or remove container";
/// `spec.protocol: SSE` against `spec.server.type`.
pub const PROTOCOL_SSE: &str =
    "protocol SSE goes with server.type URL or Service; remove protocol, or write server.type: Service";
/// `spec.server.container.command`, where it is a process of this machine.
pub const COMMAND_NEEDED: &str = "spec.server.container.command is empty, and moored serve starts no image; write the command, the program first";
/// `spec.server.container.port` against `spec.server.container.transport`.
pub const CONTAINER_PORT: &str = "port goes with transport StreamableHTTP and is needed there; write transport: StreamableHTTP with port, or remove port";
/// `spec.server.container.path` against `spec.server.container.transport`.
pub const CONTAINER_PATH: &str =
    "path goes with transport StreamableHTTP; write transport: StreamableHTTP, or remove path";
/// `spec.server.url.address`.
pub const SERVER_ADDRESS: &str = "address is no absolute http or https URL without user and fragment; write it like https://mcp.example.org/mcp, and credentials under spec.credentials";
/// `spec.server.service.name`.
pub const SERVICE_NAME: &str = "name is no Service's name; write the name alone, like weather, and for another namespace use server.type URL";
/// `spec.server.service.path`.
pub const SERVER_PATH: &str = "path begins with / and has no fragment or space; write it like /mcp";
/// `spec.gatewayRefs`.
pub const GATEWAY_REFS: &str = "spec.gatewayRefs has none or more than 16 entries; write 1 to 16 gateways";
/// `spec.gatewayRefs[].prefix`.
pub const PREFIX: &str = "prefix is letters, digits and . _ - only, at most 63, with a letter or digit at both ends; write it like weather";
/// `spec.timeouts.requestSeconds` against `maximumSeconds`.
pub const TIMEOUTS_ORDER: &str = "requestSeconds is above maximumSeconds, which nothing exceeds; write a maximumSeconds of at least requestSeconds";
/// `spec.credentials.headers` against `spec.credentials.type`.
pub const CREDENTIALS_HEADERS: &str = "headers goes with type Headers and is needed there; write type: Headers with at least one header, or remove headers";
/// `spec.credentials.clientCredentials` against `spec.credentials.type`.
pub const CREDENTIALS_CLIENT: &str = "clientCredentials goes with type ClientCredentials and is needed there; write both, or remove clientCredentials";
/// `spec.credentials.tokenExchange` against `spec.credentials.type`.
pub const CREDENTIALS_EXCHANGE: &str =
    "tokenExchange goes with type TokenExchange and is needed there; write both, or remove tokenExchange";
/// `spec.credentials.serviceAccountToken` against `spec.credentials.type`.
pub const CREDENTIALS_ACCOUNT: &str = "serviceAccountToken goes with type ServiceAccountToken and is needed there; write both, or remove serviceAccountToken";
/// `spec.credentials.headers`.
pub const MOST_CREDENTIALS: &str = "spec.credentials.headers has more than 10 entries; write at most 10";
/// `spec.credentials.headers[].name`.
pub const HEADER_NAME: &str =
    "name is no header's name; write letters, digits and - only, like Authorization";
/// `spec.credentials.headers[].name`, of a header that is not for credentials.
pub const ROUTING_HEADER: &str = "the gateway writes headers of routing and transport itself; remove it and write a header that carries a credential, like Authorization or X-API-Key";
/// `spec.credentials.*.tokenURL`.
pub const TOKEN_URL: &str = "tokenURL is no absolute http or https URL without user and fragment; write it like https://id.example.org/token";
/// `spec.credentials.serviceAccountToken.audience`.
pub const TOKEN_AUDIENCE: &str = "audience is the Kubernetes API server, where the token would speak for the gateway itself; write what the server expects in aud, most often its URL";
/// `caRef` and `clientCertificateRef` of a server that is asked in plain HTTP.
pub const TLS_NEEDS_HTTPS: &str = "caRef and clientCertificateRef are for https, and the server is asked in plain http; write an https address or scheme: HTTPS, or remove them";
/// `spec.headers`.
pub const MOST_PROPAGATED: &str = "a list of spec.headers has more than 10 entries; write at most 10 in each";
/// Entries of `spec.headers`.
pub const PROPAGATED_NAME: &str =
    "an entry of spec.headers is no header's or parameter's name; write it like X-Trace-Id";
/// `spec.headers.allowedRequest`.
pub const REQUEST_HEADERS: &str = "headers that carry identity, routing or transport are handed on by nobody; remove Authorization, Cookie, Host, Forwarded, X-Forwarded-*, Mcp-*, Last-Event-ID and hop-by-hop headers, and write credentials under spec.credentials";
/// `spec.headers.allowedResponse`.
pub const RESPONSE_HEADERS: &str = "headers that carry identity, routing or transport are handed on by nobody; remove Set-Cookie, WWW-Authenticate, Location, Access-Control-*, Mcp-* and hop-by-hop headers";
/// `Mcp-Session-Id` among headers.
pub const SESSION_ID_HEADER: &str = "Mooring mints and keeps the session id of each side itself; remove it";
