// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package composition

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/enforcement"
	"github.com/kausality-io/kausality-crossplane/engine/managedfields"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// composed is a composed resource of an XR.
type composed struct {
	XR *unstructured.Unstructured
	// Name of it in its Composition.
	Name string
	// Observed is nil where there is none yet, and Desired, a partial object, where it is to go.
	Observed, Desired *unstructured.Unstructured
	// mode says what to do about unallowed changes.
	mode v1alpha1.Mode
	// user under which Crossplane composes, and manager of the fields that it applies.
	user, manager string
	// mending says what to do about what somebody has changed or deleted by hand.
	mending mending
}

// composedOf is that of a request.
func composedOf(req *Request) composed {
	return composed{
		XR: req.XR, Name: req.Name, Observed: req.Observed, Desired: req.Desired, mode: req.Mode, user: req.User.Name,
		manager: managedfields.ManagerOf(req.XR),
		mending: mending{apply: req.Repair == v1alpha1.RepairApply, left: req.Left, was: req.Was, now: req.Basis.Now},
	}
}

// mending is what is known of repairs of composed resources of an XR.
type mending struct {
	// apply is true where repairs are applied, and left is how many resources may be repaired now.
	apply bool
	left  int
	// was is what the XR has on record of the last run.
	was *v1alpha1.State
	now time.Time
}

// asker is what decisions about a composed resource depend on, besides it.
type asker struct {
	basis     request.Basis
	user      policy.User
	namespace *unstructured.Unstructured
	resources enforcement.Resources
	successor string
	ungated   bool
	withheld  allowance.Withheld
	listed    []allowance.Listed
	// asked is told what is asked and answered; nil for nobody.
	asked func(*request.Request, *decision.Decision)
}

// askerOf is that of a request.
func askerOf(req *Request) *asker {
	return &asker{
		basis: req.Basis, user: req.User, namespace: req.Namespace, resources: req.Resources, successor: req.Successor, ungated: req.Ungated,
		withheld: req.Withheld, listed: req.Listed, asked: req.Asked,
	}
}
