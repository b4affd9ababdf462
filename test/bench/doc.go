// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package bench measures the admission webhook in front of a real API server: what it adds to a write,
// beside no webhook, a webhook of the same framework that allows everything, and a
// ValidatingAdmissionPolicy; and what its process takes of CPU time, memory and the API server.
//
// All of them are configured at once, each for kinds of its own, and the machine runs nothing but etcd,
// kube-apiserver, the manager, the webhook beside it, and the clients. Run it with
//
//	make bench PACKAGES=./test/bench
//
// Units: p50-ms and p99-ms are milliseconds per request, as its client sees it; cpu-us/op is
// microseconds of CPU time, user and system, of the webhook's process per request, all it does because
// of it included, such as taking note of the change (source: /proc/PID/stat, which counts in ticks of
// 10 ms); api-calls/op is requests of the manager to the API server per request (source:
// rest_client_requests_total of its metrics); MiB are resident memory (source: /proc/PID/status).
package bench
