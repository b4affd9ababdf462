// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package external is the system behind the managed resources of the test
// provider: objects by name that a test holds in its own process, so that they
// outlive a provider that is killed. It writes down every call and what the
// managed resource was like that it was made for, and can be known to be slow,
// to fail and to change by itself.
package external
