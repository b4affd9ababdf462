// CRDs of others, which the chart makes objects of.
module github.com/kausality-io/kausality-crossplane/test/chart/foreign

go 1.26.0

require (
	github.com/cert-manager/cert-manager v1.19.1
	github.com/prometheus-operator/prometheus-operator v0.85.0
)
