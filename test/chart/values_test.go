// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package chart_test

// A set is one of values, and what the chart makes of them.
type set struct {
	reason string
	values string
	// want is what there has to be, as KIND/NAME, and args what the manager is
	// called with; without what there must not be.
	want, without, args []string
}

func sets() map[string]set {
	return map[string]set{
		"Defaults": {
			reason: "Two replicas, of which one leads, with certificates of their own.",
			want: []string{
				"Deployment/kausality-manager", "PodDisruptionBudget/kausality-manager", "Service/kausality-webhook", "Service/kausality-metrics",
				"ServiceAccount/kausality-manager", "ClusterRole/kausality-manager", "Role/kausality-manager", "ClusterRole/kausality-crossplane",
				"ClusterRole/kausality-manager-governed",
			},
			without: []string{
				"Certificate/kausality-webhook", "ServiceMonitor/kausality-manager", "Function/function-kausality", "NetworkPolicy/kausality-manager",
			},
			args: []string{"--leader-elect", "--webhook-secret=kausality-webhook-cert", "--webhook-service=kausality-webhook"},
		},
		"Governed": {
			reason: "What may be governed has roles that are aggregated, each of what it names.",
			values: "rbac: {governed: ['*.rds.example.org', deployments.apps, configmaps]}",
			want: []string{
				"ClusterRole/kausality-manager-governed", "ClusterRoleBinding/kausality-manager-governed",
				"ClusterRole/kausality-manager:*.rds.example.org", "ClusterRole/kausality-manager:deployments.apps", "ClusterRole/kausality-manager:configmaps",
			},
			without: []string{"ClusterRole/kausality-manager:*.*"},
		},
		"Wide": {
			reason: "Who wants it wide gets one role for all there is.",
			values: "rbac: {wide: true, governed: [configmaps]}",
			want:   []string{"ClusterRole/kausality-manager:*.*"}, without: []string{"ClusterRole/kausality-manager:configmaps"},
		},
		"CertManager": {
			reason: "Its certificate is mounted, and it injects the CA.",
			values: "webhook: {certificate: {from: cert-manager}}",
			want:   []string{"Issuer/kausality-webhook", "Certificate/kausality-webhook"},
			args:   []string{"--webhook-cert-dir=/etc/kausality/webhook", "--webhook-ca-from=kausality-system/kausality-webhook"},
		},
		"CertManagerWithAnIssuer": {
			reason:  "No Issuer is made where there is one.",
			values:  "webhook: {certificate: {from: cert-manager, issuerRef: {name: ca, kind: ClusterIssuer}}, url: 'https://10.1.2.3:9443'}",
			want:    []string{"Certificate/kausality-webhook"},
			without: []string{"Issuer/kausality-webhook"},
			args:    []string{"--webhook-url=https://10.1.2.3:9443"},
		},
		"Secret": {
			reason:  "A Secret that somebody else keeps needs no injection.",
			values:  "webhook: {certificate: {from: secret, secretName: mine}}",
			without: []string{"Certificate/kausality-webhook"},
			args:    []string{"--webhook-cert-dir=/etc/kausality/webhook"},
		},
		"Clients": {
			reason:  "Only who shows a certificate may ask, and only from where the API server is; but the CA's key is not mounted.",
			values:  "{webhook: {clients: {secretName: apiserver-client-ca, names: [kube-apiserver]}}, networkPolicy: {enabled: true, apiServer: [10.0.0.0/24]}}",
			want:    []string{"NetworkPolicy/kausality-manager"},
			args:    []string{"--webhook-client-ca=/etc/kausality/clients/ca.crt", "--webhook-client-name=kube-apiserver"},
			without: []string{"Certificate/kausality-webhook"},
		},
		"DecisionLog": {
			reason: "Each Pod logs to a file of its own.",
			values: "decisionLog: {enabled: true, maxFiles: 3, rate: 0.5}",
			want:   []string{"Deployment/kausality-manager"},
			args: []string{
				"--decision-log=/var/log/kausality/$(POD_NAME).log", "--decision-log-max-bytes=104857600", "--decision-log-max-files=3",
				"--decision-log-rate=0.5",
			},
		},
		"OneReplica": {
			reason:  "A budget for a single replica would only keep nodes from being drained.",
			values:  "{replicas: 1, leaderElection: {enabled: false}}",
			want:    []string{"Deployment/kausality-manager"},
			without: []string{"PodDisruptionBudget/kausality-manager"},
		},
		"FunctionOfAConfiguration": {
			reason: "A function that a Configuration brought along is known by its name there, without values that say so.",
			values: "{}",
			args:   []string{"--function-name=function-kausality", "--function-name=kausality-io-function-kausality"},
		},
		"GatesOnly": {
			reason:  "Without a webhook there is no Service of it.",
			values:  "webhook: {enabled: false}",
			without: []string{"Service/kausality-webhook"},
			args:    []string{"--no-enable-webhook"},
		},
		"WebhookOnly": {reason: "Gates can be left alone.", values: "gates: {enabled: false}", args: []string{"--no-enable-gates"}},
		"Everything": {
			reason: "Everything goes together.",
			values: everything,
			want: []string{
				"ServiceMonitor/kausality-manager", "Function/function-kausality", "Certificate/kausality-webhook",
				"DeploymentRuntimeConfig/function-kausality",
			},
			args: []string{
				"--gate-without-late-initialize=*.old.example.org", "--gate-identity=Topic.kafka.example.org=spec.forProvider.clusterId", "--overdue=Close", "--function-name=other", "--approvers=flux-system:approver", "--debug", "--max-open=2h",
				"--leader-retry-period=1s", "--webhook-bind-address=10.0.0.1:10443", "--metrics-bind-address=10.0.0.1:10080", "--zap-more",
			},
		},
	}
}

const everything = `
image: {repository: registry.example.org/k/m, digest: "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"}
imagePullSecrets: [{name: pull}]
replicas: 3
leaderElection: {leaseDuration: 20s, renewDeadline: 8s, retryPeriod: 1s}
serviceAccount: {name: manager, annotations: {team: platform}}
functionNames: [function-kausality, other]
approvers: ["flux-system:approver"]
function: {create: true, package: "registry.example.org/k/f:v1", pullSecrets: [{name: pull}], repair: Hold}
webhook: {port: 10443, url: "https://kausality.example.org", certificate: {from: cert-manager, lifetime: 2160h}}
gates: {lateInitialize: false, withoutLateInitialize: ["*.old.example.org"], withoutDrift: [Bucket.s3.aws.upbound.io], identity: [Topic.kafka.example.org=spec.forProvider.clusterId], settle: 90s, maxOpen: 2h, overdue: Close}
resources: {requests: {memory: 64Mi}}
metrics: {port: 10080, serviceMonitor: {enabled: true, labels: {release: prometheus}}}
health: {port: 10081}
listen: 10.0.0.1
debug: true
podDisruptionBudget: {maxUnavailable: 34%}
affinity: {nodeAffinity: {}}
topologySpreadConstraints: [{maxSkew: 1, topologyKey: rack, whenUnsatisfiable: DoNotSchedule}]
nodeSelector: {role: control}
tolerations: [{key: control, operator: Exists}]
priorityClassName: system-cluster-critical
podAnnotations: {a: b}
podLabels: {c: d}
hostNetwork: true
env: [{name: GOGC, value: "50"}]
extraArgs: [--zap-more]
`

// A refusal is a set of values that the schema refuses, and what it says.
type refusal struct {
	values string
	want   []string
}

func refusals() map[string]refusal {
	return map[string]refusal{
		"NoReplica":          {"replicas: 0", []string{"/replicas", "minimum: got 0, want 1"}},
		"NobodyLeads":        {"leaderElection: {enabled: false}", []string{"/leaderElection/enabled", "must be true"}},
		"NothingRuns":        {"{webhook: {enabled: false}, gates: {enabled: false}}", []string{"/webhook/enabled", "/gates/enabled"}},
		"Misspelt":           {"replica: 3", []string{"additional properties 'replica' not allowed"}},
		"MisspeltBelow":      {"gates: {settled: 1m}", []string{"/gates", "'settled' not allowed"}},
		"NoDuration":         {"gates: {settle: soon}", []string{"/gates/settle", "does not match pattern"}},
		"NumberAsDuration":   {"gates: {maxOpen: 3600}", []string{"/gates/maxOpen", "want string"}},
		"NoKind":             {"gates: {withoutLateInitialize: [Bucket]}", []string{"/gates/withoutLateInitialize/0"}},
		"NoField":            {"gates: {identity: [Topic.kafka.example.org]}", []string{"/gates/identity/0"}},
		"UnknownAction":      {"gates: {overdue: Open}", []string{"/gates/overdue", "'Warn', 'Close'"}},
		"UnknownCertificate": {"webhook: {certificate: {from: vault}}", []string{"/webhook/certificate/from", "'self', 'cert-manager', 'secret'"}},
		"IssuerOfNobody":     {"webhook: {certificate: {issuerRef: {name: ca}}}", []string{"/webhook/certificate/from", "'cert-manager'"}},
		"NamelessIssuer":     {"webhook: {certificate: {from: cert-manager, issuerRef: {kind: Issuer}}}", []string{"missing property 'name'"}},
		"NobodySignsNames":   {"webhook: {clients: {names: [kube-apiserver]}}", []string{"/webhook/clients/secretName", "minLength"}},
		"NetworkOfNobody":    {"networkPolicy: {enabled: true}", []string{"/networkPolicy/apiServer", "minItems"}},
		"NoCIDR":             {"networkPolicy: {enabled: true, apiServer: [kubernetes]}", []string{"/networkPolicy/apiServer/0"}},
		"PlainURL":           {"webhook: {url: 'http://x'}", []string{"/webhook/url"}},
		"FunctionOfNothing":  {"function: {create: true}", []string{"/function/package", "minLength"}},
		"RepairOfNothing":    {"function: {repair: Never}", []string{"/function/repair", "'Apply', 'Hold'"}},
		"AllOfNoGroup":       {"rbac: {governed: ['*']}", []string{"/rbac/governed/0", "does not match pattern"}},
		"AllOfAllGroups":     {"rbac: {governed: ['*.*']}", []string{"/rbac/governed/0", "does not match pattern"}},
		"Subresource":        {"rbac: {governed: [pods/exec]}", []string{"/rbac/governed/0", "does not match pattern"}},
		"RightsOfNobody":     {"rbac: {create: false, wide: true}", []string{"/rbac/wide", "must be false"}},
		"TwoMonitors":        {"metrics: {serviceMonitor: {enabled: true}, podMonitor: {enabled: true}}", []string{"/metrics", "'not' failed"}},
		"NothingToMonitor":   {"metrics: {enabled: false, podMonitor: {enabled: true}}", []string{"/metrics/podMonitor/enabled"}},
		"NoDigest":           {"image: {digest: v1}", []string{"/image/digest"}},
		"ApproverOfNobody":   {"approvers: [flux-system/approver]", []string{"/approvers/0", "does not match pattern"}},
		"NoServiceAccount":   {"crossplaneServiceAccount: crossplane", []string{"/crossplaneServiceAccount"}},
		"LogOfNoWebhook":     {"{decisionLog: {enabled: true}, webhook: {enabled: false}}", []string{"/webhook/enabled", "must be true"}},
		"LogOfOneFile":       {"decisionLog: {maxFiles: 1}", []string{"/decisionLog/maxFiles", "minimum: got 1, want 2"}},
		"LogOnTwoVolumes":    {"decisionLog: {volume: {emptyDir: {}, hostPath: {path: /a}}}", []string{"/decisionLog/volume", "maxProperties"}},
		"NoPort":             {"health: {port: 0}", []string{"/health/port"}},
	}
}
