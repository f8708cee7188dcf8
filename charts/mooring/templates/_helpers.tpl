{{/* The name of the operator's own objects. Never that of a gateway's children: those end with -mcp. */}}
{{- define "mooring.name" -}}
{{- $name := ternary .Release.Name (printf "%s-mooring" .Release.Name) (contains "mooring" .Release.Name) -}}
{{- printf "%s-operator" ($name | trunc 52 | trimSuffix "-") -}}
{{- end -}}

{{/* The name of what belongs to the whole cluster: two releases in two namespaces may have one name. */}}
{{- define "mooring.clusterName" -}}
{{- printf "%s.%s" (include "mooring.name" .) .Release.Namespace -}}
{{- end -}}

{{- define "mooring.selector" -}}
app.kubernetes.io/name: mooring-operator
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "mooring.labels" -}}
{{ include "mooring.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: mooring
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{/* An image of the values, by default of the chart's appVersion. Takes (dict "image" ... "chart" ...). */}}
{{- define "mooring.image" -}}
{{- printf "%s:%s" .image.repository (.image.tag | default .chart.AppVersion) -}}
{{- end -}}

{{/*
What the operator may do where it reconciles. Of ConfigMaps and Secrets it holds all that a daemon's Role holds, since nobody may
grant what he does not hold.
*/}}
{{- define "mooring.rules" -}}
- apiGroups: [mooring.dev]
  resources: [mcpgateways, mcptargets, acpagents]
  verbs: [get, list, watch]
- apiGroups: [mooring.dev]
  resources: [mcpgateways/status, mcptargets/status, acpagents/status]
  verbs: [get, patch]
# Nothing is ever deleted: where the admission plugin OwnerReferencesPermissionEnforcement runs, it lets only those who
# may delete an object change its owner references, and ours are applied.
- apiGroups: [""]
  resources: [configmaps, secrets, serviceaccounts, services]
  verbs: [get, list, watch, create, patch, delete]
# Only to hand on: a daemon whose targets want tokens of its account may ask for them, for that account alone.
- apiGroups: [""]
  resources: [serviceaccounts/token]
  verbs: [create]
- apiGroups: [apps]
  resources: [deployments]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [rbac.authorization.k8s.io]
  resources: [roles, rolebindings]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [discovery.k8s.io]
  resources: [endpointslices]
  verbs: [get, list, watch]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create, patch]
{{- end -}}
