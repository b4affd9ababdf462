// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package configuration reconciles what follows from all policies, windows and
// Enforcements together: which kinds are watched and gated, and by which guards and
// webhook configurations. It reads them and discovery, and has the other packages
// write what follows.
package configuration
