// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package audit finds out from the objects of a cluster what is not as somebody asked
// for it, what can change without anybody having asked, and what waits for somebody.
// It is as pure as the engine; kubectl kausality audit, the reports that the manager
// keeps, and the doctor judge by it.
package audit
