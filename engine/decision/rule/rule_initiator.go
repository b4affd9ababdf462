// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/decision/authority"
	"github.com/kausality-io/kausality-crossplane/engine/decision/finding"
	"github.com/kausality-io/kausality-crossplane/engine/decision/input"
	"github.com/kausality-io/kausality-crossplane/engine/decision/lack"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// byInitiator searches for a policy about the object's kind that lets the
// user start a chain. One that asks for approvals lets nobody.
func byInitiator(o request.Objects, by request.Writer, auth *authority.Authority, c change.Change) (finding.Finding, bool) {
	for _, p := range auth.Policies.For(o.GroupKind()) {
		if p.RequiredApprovals() == 0 && p.Covers(c) && auth.MightInitiate(p) && auth.Evaluate(p).Met && auth.MayInitiate(p) {
			return finding.Finding{Policy: p.Name(), Cause: finding.Cause{Initiator: by.User.Name}}, true
		}
	}

	return finding.Finding{}, false
}

// governed reports whether somebody has to be allowed to make a change of a root: a policy says who may initiate it, or that nobody
// may; or none names the field, and one says who may initiate others (see [lack.Unnamed]). Deleting takes it also where an Enforcement
// governs the object, or where a policy says who may initiate anything of the kind. Conditions of policies may be evaluated for that.
func governed(o request.Objects, by request.Writer, auth *authority.Authority, enforced input.Enforced, c change.Change) bool {
	if o.Operation == request.OperationDelete && len(enforced.Governing) > 0 {
		return true
	}

	return auth.DecidesWho(c) || lack.Unnamed(o, by, auth, enforced, c) ||
		o.Operation == request.OperationDelete && lack.HasInitiators(auth.Policies, o.GroupKind())
}

// isNamed reports whether a policy about the object's kind names a change.
func isNamed(policies *policy.Set, kind schema.GroupKind, c change.Change) bool {
	return slices.ContainsFunc(policies.For(kind), func(p *policy.Policy) bool { return p.Names(c) })
}
