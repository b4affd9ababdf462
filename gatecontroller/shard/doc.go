// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package shard divides objects among managers by the label of their namespace. It
// reads namespaces and leases, strips objects of other shards in the cache, and
// reports shards that no manager runs for in events and a metric.
package shard
