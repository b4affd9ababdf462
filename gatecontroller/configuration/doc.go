// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package configuration reconciles what follows from all policies, windows and
// Enforcements together: which kinds are watched and gated, and by which guards and
// webhook configurations. What that is, is planned from what was read, by planFor;
// each part of the plan is then a request of its own, which fails and is retried by
// itself. Applier writes guards and webhook configurations, and DefinitionOwner has our
// CRDs outlive the package that brought them.
//
// Its files:
//   - reconciler.go: the events that lead to a new plan, and the order and retry of its parts ([Reconciler.Reconcile])
//   - request.go: names of the parts; how soon an incomplete part is tried again, and how often all are
//   - kinds.go: the read policies, windows, Enforcements and served kinds, as input of a new plan ([Reconciler.observe])
//   - gatedkinds.go: gated kinds that no policy names: composed by XRs, or with objects that still need guards ([Reconciler.findGated])
//   - plan.go: guards, kinds for the webhook and kinds to watch; no I/O ([planFor])
//   - part.go: what each part does: guards, watches, webhook configurations, statuses, adoption, pruning
//   - applier.go: server-side apply of webhook configurations, guards and their bindings ([Applier]); the age of a guard
//   - webhook.go: address, paths and CA of the webhook, as the manager is configured ([Webhook])
//   - authority.go: a new CA, as an event for the webhook configurations
//   - fingerprint.go: the gate settings of all policies as one text; after a change, open gates are reconciled
//   - definition.go: our namespace as an owner of our CRDs, so that policies outlive an uninstalled package ([DefinitionOwner])
package configuration
