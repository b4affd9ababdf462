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

{{- /* Flags of every manager. */ -}}
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

{{- /* Flags of the manager that serves the webhook. */ -}}
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

{{- /* One Deployment: root, component, name, replicas, resources, args, and serves for the webhook's. */ -}}
{{- define "kausality.deployment" -}}
{{- $root := .root -}}
{{- $selector := printf "%s\napp.kubernetes.io/component: %s" (include "kausality.selector" $root) .component -}}
{{- $mounts := and .serves (include "kausality.mounts" $root) -}}
{{- $clients := and .serves $root.Values.webhook.clients.secretName -}}
{{- $log := and .serves $root.Values.decisionLog.enabled -}}
{{- with $root.Values -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ $.name }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "kausality.labels" $root | nindent 4 }}
    app.kubernetes.io/component: {{ $.component }}
spec:
  replicas: {{ $.replicas }}
  selector:
    matchLabels:
      {{- $selector | nindent 6 }}
  strategy:
    # A new one is ready before an old one goes: the webhook of governed kinds fails closed.
    type: RollingUpdate
    rollingUpdate: {maxSurge: 1, maxUnavailable: 0}
  template:
    metadata:
      labels:
        {{- include "kausality.labels" $root | nindent 8 }}
        app.kubernetes.io/component: {{ $.component }}
        {{- with .podLabels }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- with .podAnnotations }}
      annotations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
    spec:
      serviceAccountName: {{ .serviceAccount.name }}
      {{- with .imagePullSecrets }}
      imagePullSecrets:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .priorityClassName }}
      priorityClassName: {{ . }}
      {{- end }}
      {{- if .hostNetwork }}
      hostNetwork: true
      dnsPolicy: ClusterFirstWithHostNet
      {{- end }}
      securityContext:
        runAsNonRoot: true
        runAsUser: 65532
        runAsGroup: 65532
        fsGroup: 65532
        seccompProfile: {type: RuntimeDefault}
      containers:
      - name: manager
        image: {{ include "kausality.image" $root | quote }}
        imagePullPolicy: {{ .image.pullPolicy }}
        args:
          {{- include "kausality.args" $root | nindent 10 }}
          {{- $.args | nindent 10 }}
          {{- with .extraArgs }}
          {{- toYaml . | nindent 10 }}
          {{- end }}
        env:
        - name: POD_NAMESPACE
          valueFrom: {fieldRef: {fieldPath: metadata.namespace}}
        {{- if $log }}
        - name: POD_NAME
          valueFrom: {fieldRef: {fieldPath: metadata.name}}
        {{- end }}
        {{- with .env }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
        ports:
        {{- if $.serves }}
        - {name: webhook, containerPort: {{ .webhook.port }}, protocol: TCP}
        {{- end }}
        {{- if .metrics.enabled }}
        - {name: metrics, containerPort: {{ .metrics.port }}, protocol: TCP}
        {{- end }}
        - {name: health, containerPort: {{ .health.port }}, protocol: TCP}
        livenessProbe:
          httpGet: {path: /healthz, port: health}
          initialDelaySeconds: 10
          periodSeconds: 10
          failureThreshold: 6
        readinessProbe:
          httpGet: {path: /readyz, port: health}
          periodSeconds: 5
        resources:
          {{- toYaml $.resources | nindent 10 }}
        securityContext:
          allowPrivilegeEscalation: false
          readOnlyRootFilesystem: true
          privileged: false
          capabilities: {drop: [ALL]}
        {{- if or $mounts $clients $log }}
        volumeMounts:
        {{- if $mounts }}
        - {name: webhook, mountPath: /etc/kausality/webhook, readOnly: true}
        {{- end }}
        {{- if $clients }}
        - {name: clients, mountPath: /etc/kausality/clients, readOnly: true}
        {{- end }}
        {{- if $log }}
        - {name: decisions, mountPath: /var/log/kausality}
        {{- end }}
        {{- end }}
      {{- if or $mounts $clients $log }}
      volumes:
      {{- if $mounts }}
      - name: webhook
        secret: {secretName: {{ .webhook.certificate.secretName }}}
      {{- end }}
      {{- if $clients }}
      - name: clients
        secret: {secretName: {{ $clients }}, items: [{key: ca.crt, path: ca.crt}]}
      {{- end }}
      {{- if $log }}
      - name: decisions
        {{- include "kausality.logVolume" $root | nindent 8 }}
      {{- end }}
      {{- end }}
      {{- with .nodeSelector }}
      nodeSelector:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .tolerations }}
      tolerations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      affinity:
        {{- with .affinity }}
        {{- toYaml . | nindent 8 }}
        {{- else }}
        podAntiAffinity:
          preferredDuringSchedulingIgnoredDuringExecution:
          - weight: 100
            podAffinityTerm:
              topologyKey: kubernetes.io/hostname
              labelSelector:
                matchLabels:
                  {{- $selector | nindent 18 }}
        {{- end }}
      topologySpreadConstraints:
        {{- with .topologySpreadConstraints }}
        {{- toYaml . | nindent 8 }}
        {{- else }}
        - maxSkew: 1
          topologyKey: topology.kubernetes.io/zone
          whenUnsatisfiable: ScheduleAnyway
          labelSelector:
            matchLabels:
              {{- $selector | nindent 14 }}
        {{- end }}
{{- if and .podDisruptionBudget.enabled (gt (int $.replicas) 1) }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ $.name }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "kausality.labels" $root | nindent 4 }}
spec:
  maxUnavailable: {{ .podDisruptionBudget.maxUnavailable }}
  # A replica that is not ready answers nobody: it keeps no node from being drained.
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels:
      {{- $selector | nindent 6 }}
{{- end }}
{{- end -}}
{{- end }}
