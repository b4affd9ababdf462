// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package bench measures the manager at a real API server. Of its admission webhook: what it adds to a
// write, beside no webhook, a webhook of the same framework that allows everything, and a
// ValidatingAdmissionPolicy. Of its gate controller: how soon it has reconciled many managed resources,
// and how soon it opens and closes gates, beside bare controllers of the same framework. Of both: what
// the process takes of CPU time, memory and the API server. Of what is held: how soon it is listed, and made
// once it is approved, beside a change that is allowed.
//
// All that is beside each other is configured at once, each for kinds of its own, and the machine runs
// nothing but etcd, kube-apiserver, the manager, the peers, and the clients; for approvals, also Crossplane and a
// provider. Run it with
//
//	make bench PACKAGES=./test/bench
//
// Units: p50-ms and p99-ms are milliseconds per request, as its client sees it; cpu-us/op is
// microseconds of CPU time, user and system, of the webhook's process per request, all it does because
// of it included, such as taking note of the change (source: /proc/PID/stat, which counts in ticks of
// 10 ms); api-calls/op is requests of the manager to the API server per request (source:
// rest_client_requests_total of its metrics); writes/op and events/op are writes that the API server
// took of it (source: apiserver_request_total of the API server's metrics); MiB are resident memory
// (source: /proc/PID/status); -x is how many times as much as a peer.
package bench
