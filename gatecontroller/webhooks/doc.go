// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package webhooks applies the webhook configurations and guards that
// engine/admission builds.
package webhooks
