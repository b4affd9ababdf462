// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package mask hides values that only the readers of an object may see, in all
// that is said about the object elsewhere: conditions, events, records, traces,
// logs, warnings and refusals.
//
// Its files:
//   - mask.go: hidden values of an object ([Value], [Hides])
//   - name.go: field names of credentials; private keys, URLs with a password
//   - object.go: a whole object with hidden values replaced ([Object]), managedFields too
//   - error.go: CEL errors without quoted credentials ([Error]); also an object without kubectl's last-applied annotation
package mask
