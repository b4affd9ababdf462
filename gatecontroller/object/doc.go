// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package object has what all controllers do with objects of any kind: find one in
// the version that is served, write its metadata and finalizers, and wait until the
// cache shows a write. NewController makes a controller that the leader starts and ends,
// which those of a manager cannot be.
//
// Its files:
//   - controller.go: a controller that waits where the cache is behind, without an error ([NewController])
//   - client.go: the client of all controllers: no stale reads, limited writes, gates first ([Client]); [Outdated]
//   - written.go: versions that our writes made, until the cache shows them ([Expectations])
//   - writer.go: annotations, finalizers and status values, written without conflicts with Crossplane and providers ([Writer]); [MergeFrom]
//   - find.go: one live object in any served version ([Find]); field manager, and names for patches and metrics
package object
