{{- define "kausality.labels" -}}
app.kubernetes.io/name: kausality-manager
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: kausality
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "kausality.selector" -}}
app.kubernetes.io/name: kausality-manager
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "kausality.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ printf "%s@%s" .repository .digest }}
{{- else -}}
{{ printf "%s:%s" .repository (default (printf "v%s" $.Chart.AppVersion) .tag) }}
{{- end -}}
{{- end -}}
{{- end }}

{{- define "kausality.mounts" -}}
{{- if and .Values.webhook.enabled (ne .Values.webhook.certificate.from "self") }}true{{ end -}}
{{- end }}

{{- /* The role that is generated from the code: its documents by kind. */ -}}
{{- define "kausality.rules" -}}
{{- $kind := .kind -}}
{{- range splitList "\n---\n" (.root.Files.Get "files/role.yaml") -}}
{{- $doc := fromYaml . -}}
{{- if eq (toString $doc.kind) $kind -}}
{{ toYaml $doc.rules | replace "kausality-webhook-cert" $.root.Values.webhook.certificate.secretName }}
{{- end -}}
{{- end -}}
{{- end }}

{{- /* Flags of the manager, but for those of its webhook. */ -}}
{{- define "kausality.args" -}}
{{- with .Values -}}
- --service-account={{ .serviceAccount.name }}
- --crossplane-service-account={{ .crossplaneServiceAccount }}
{{- range .functionNames }}
- --function-name={{ . }}
{{- end }}
{{- range .approvers }}
- --approvers={{ . }}
{{- end }}
{{- if .gates.enabled }}
- --settle={{ .gates.settle }}
- --max-open={{ .gates.maxOpen }}
- --overdue={{ .gates.overdue }}
{{- else }}
- --no-enable-gates
{{- end }}
{{- if not .gates.lateInitialize }}
- --no-gate-late-initialize
{{- end }}
{{- range .gates.withoutLateInitialize }}
- --gate-without-late-initialize={{ . }}
{{- end }}
{{- range .gates.withoutDrift }}
- --gate-without-drift={{ . }}
{{- end }}
{{- range .gates.identity }}
- --gate-identity={{ . }}
{{- end }}
{{- if .leaderElection.enabled }}
- --leader-elect
- --leader-lease-duration={{ .leaderElection.leaseDuration }}
- --leader-renew-deadline={{ .leaderElection.renewDeadline }}
- --leader-retry-period={{ .leaderElection.retryPeriod }}
{{- end }}
- --metrics-bind-address={{ if .metrics.enabled }}{{ .listen }}:{{ .metrics.port }}{{ else }}0{{ end }}
- --health-probe-bind-address={{ .listen }}:{{ .health.port }}
{{- if .debug }}
- --debug
{{- end }}
{{- end -}}
{{- end }}

{{- /* Flags of the webhook. */ -}}
{{- define "kausality.webhookArgs" -}}
{{- with .Values.webhook -}}
{{- if not .enabled -}}
- --no-enable-webhook
{{- else -}}
- --webhook-bind-address={{ $.Values.listen }}:{{ .port }}
- --webhook-service=kausality-webhook
{{- with .url }}
- --webhook-url={{ . }}
{{- end }}
{{- if eq .certificate.from "self" }}
- --webhook-secret={{ .certificate.secretName }}
- --webhook-cert-life={{ .certificate.lifetime }}
- --webhook-ca-life={{ .certificate.caLifetime }}
- --webhook-ca-publish={{ .certificate.caPublish }}
- --webhook-reload={{ .certificate.reload }}
{{- else }}
- --webhook-cert-dir=/etc/kausality/webhook
{{- end }}
{{- if eq .certificate.from "cert-manager" }}
- --webhook-ca-from={{ $.Release.Namespace }}/kausality-webhook
{{- end }}
{{- if .clients.secretName }}
- --webhook-client-ca=/etc/kausality/clients/ca.crt
{{- range .clients.names }}
- --webhook-client-name={{ . }}
{{- end }}
{{- end }}
{{- with $.Values.decisionLog }}
{{- if .enabled }}
- --decision-log=/var/log/kausality/$(POD_NAME).log
- --decision-log-max-bytes={{ int64 .maxBytes }}
- --decision-log-max-files={{ int64 .maxFiles }}
- --decision-log-rate={{ .rate }}
{{- end }}
{{- end }}
{{- end -}}
{{- end -}}
{{- end }}

{{- /* The volume of the log of decisions. One file is written, another one compressed, and one too many may be there
for a moment: an emptyDir that is full would have the Pod evicted. */ -}}
{{- define "kausality.logVolume" -}}
{{- with .Values.decisionLog -}}
{{- if .volume -}}
{{ toYaml .volume }}
{{- else -}}
emptyDir: {sizeLimit: "{{ mul (int64 .maxBytes) (add (int64 .maxFiles) 2) }}"}
{{- end -}}
{{- end -}}
{{- end }}
