// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package typecheck finds what is wrong with policies, bindings and Enforcements that does
// not keep them from being used: by the schemas of the kinds that they are about, and by
// what others give. The manager writes it into their statuses, and the command line finds
// it before anything is applied.
package typecheck
