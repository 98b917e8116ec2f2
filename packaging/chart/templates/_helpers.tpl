{{- define "tracekit.name" -}}
{{- if contains "tracekit" .Release.Name }}{{ .Release.Name | trunc 54 | trimSuffix "-" }}-recorder{{ else }}{{ .Release.Name | trunc 45 | trimSuffix "-" }}-tracekit-recorder{{ end }}
{{- end }}

{{- define "tracekit.selector" -}}
app.kubernetes.io/name: tracekit-recorder
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "tracekit.labels" -}}
{{ include "tracekit.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "tracekit.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "tracekit.confined" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
{{- end }}

{{- define "tracekit.rules" -}}
- apiGroups: [batch]
  resources: [jobs, cronjobs]
  verbs: [get, list, watch]
- apiGroups: [""]
  resources: [pods, events, resourcequotas]
  verbs: [get, list, watch]
{{- if .Values.logs }}
- apiGroups: [""]
  resources: [pods/log]
  verbs: [get]
{{- end }}
{{- if and .Values.watch.enabled .Values.watch.events }}
- apiGroups: [""]
  resources: [events]
  verbs: [create]
{{- end }}
{{- if not .Values.namespaces }}
- apiGroups: [""]
  resources: [namespaces]
  verbs: [get, list, watch]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [kube-controller-manager]
  verbs: [get, list, watch]
{{- if .Values.featureGates }}
- nonResourceURLs: [/metrics]
  verbs: [get]
{{- end }}
{{- end }}
{{- end }}
