// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package enforcement compiles Enforcements once and answers which of them
// govern an object, how strictly, and whom they except.
//
// Its files:
//   - enforcement.go: compilation ([Compile]), whether an object is governed ([Enforcement.Governs]), actions, exceptions, exempt resources
//   - rule.go: resourceRules and excludeResourceRules: group, version, operation, scope, name ([Enforcement.CoversTarget])
//   - broken.go: Enforcements that do not compile: failurePolicy ([Enforcement.Refuses]); also selectors for the webhook configuration
//   - validate.go: errors of an Enforcement, for its refusal at admission ([Validate])
//   - cache.go: compilation once for each content; broken ones with failurePolicy Ignore are left out ([Cache.List])
//   - resource.go: plural resource names of kinds, from statuses or guessed ([Resources])
//   - names.go: resources covered by name or group, not by a rule about everything ([Enforcement.Names])
package enforcement
