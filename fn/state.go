// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package fn

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	sdk "github.com/crossplane/function-sdk-go/request"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/composition"
	"github.com/kausality-io/kausality-crossplane/engine/composition/condition"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/enforcement"
	"github.com/kausality-io/kausality-crossplane/engine/identity"
	"github.com/kausality-io/kausality-crossplane/engine/inforce"
	"github.com/kausality-io/kausality-crossplane/engine/management"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// errNoKind is the cause when a composed resource cannot be known.
var errNoKind = errors.New("it has no apiVersion and kind")

// state is one request, decoded.
type state struct {
	input    *v1alpha1.Input
	xr       *unstructured.Unstructured
	wantedXR *unstructured.Unstructured
	names    []string
	observed map[string]*unstructured.Unstructured
	desired  map[string]*unstructured.Unstructured
	ungated  map[string]bool
	// gatedIn are the versions with spec.managementPolicies of those whose version has none.
	gatedIn map[string]string
	// selectsNamespaces is true where a policy asks for the XR's namespace.
	selectsNamespaces bool
	// params are those of policies.
	params *params
	// oldRuntimes are kinds that know no Observe with LateInitialize alone.
	oldRuntimes management.Kinds
	// identity is what decides in this installation which external object a managed resource stands for.
	identity identity.Fields
	base     composition.Request
	problems []error
	// answered is false where Crossplane did not send what it was asked for;
	// conditions is true where it says that it stores them.
	answered, conditions bool
	// awaited is true where something that is decided by is still to be sent: this is decided
	// once more with it, and what is decided now comes to nothing.
	awaited  bool
	outcomes map[string]composition.Result
	// decisions logs what is decided; nil for nobody. What is to be logged is in logging.
	decisions DecisionLog
	logging   []loggedDecision
	// limit is how long an XR may be ready before it counts as settled; overdue is
	// true where that is over.
	limit   time.Duration
	overdue bool
	// settled is true where nothing is under way.
	settled bool
}

// readState decodes a request.
func (f *Function) readState(req *fnv1.RunFunctionRequest, in *v1alpha1.Input) (*state, error) {
	uid := metaOf(req.GetObserved().GetComposite().GetResource(), "uid")
	s := &state{
		input:    in,
		xr:       decode(req.GetObserved().GetComposite().GetResource()),
		wantedXR: decode(req.GetDesired().GetComposite().GetResource()),
		observed: f.decoded.all(uid, req.GetObserved().GetResources()),
		desired:  f.decoded.all(uid, req.GetDesired().GetResources()),
		outcomes: map[string]composition.Result{},

		limit:      f.limit,
		decisions:  f.decisions,
		answered:   answered(req),
		conditions: sdk.HasCapability(req, fnv1.Capability_CAPABILITY_CONDITIONS),
	}

	var err error
	if s.oldRuntimes, err = management.ParseKinds(in.WithoutLateInitialize); err != nil {
		return nil, fmt.Errorf("cannot read the step's input: withoutLateInitialize: %w", err)
	}

	if s.identity, err = identity.ParseFields(in.Identity); err != nil {
		return nil, fmt.Errorf("cannot read the step's input: identity: %w", err)
	}

	if s.xr.GetKind() == "" {
		return nil, fmt.Errorf("cannot read the observed composite resource: %w", errNoKind)
	}

	s.xr = composition.Recorded(s.xr, s.observed)
	s.ungated, s.gatedIn = map[string]bool{}, map[string]string{}

	for name, u := range s.desired {
		if u.GetKind() == "" || u.GetAPIVersion() == "" {
			return nil, fmt.Errorf("cannot read desired composed resource %q: %w", name, errNoKind)
		}

		if gvk := u.GroupVersionKind(); ungated(req, gvk) {
			s.ungated[name], s.gatedIn[name] = true, gatedIn(req, gvk)
		}
	}

	all := maps.Clone(s.observed)
	maps.Copy(all, s.desired)
	s.names = slices.Sorted(maps.Keys(all))

	f.readPolicies(req, s)

	return s, nil
}

// readPolicies reads what Crossplane sent beside the resources.
func (f *Function) readPolicies(req *fnv1.RunFunctionRequest, s *state) {
	ours := v1alpha1.GroupVersion()
	list, badPolicies := policies(given(req, keyPolicies, ours.WithKind(v1alpha1.KindPolicy)))
	windows, badWindows := upgrades(given(req, keyUpgrades, ours.WithKind(v1alpha1.KindUpgrade)))
	enforcing, badList := enforcements(given(req, keyEnforced, ours.WithKind(v1alpha1.KindEnforcement)))
	objects := inforce.Objects{Policies: list, Windows: windows, Enforcements: enforcing}
	set := f.compiled.Set(objects)
	s.problems = slices.Concat(badPolicies, badWindows, badList, set.Bad)

	s.selectsNamespaces = s.xr.GetNamespace() != "" && objects.ReadNamespaces()

	s.params = readParams(req, list)

	was, _ := resource.StateOf(s.xr)
	if was == nil {
		was = &v1alpha1.State{}
	}

	settings := request.Settings{Crossplane: s.input.ServiceAccount, WithoutLateInitialize: s.oldRuntimes, Identity: s.identity}

	s.base = composition.Request{
		Basis: set.Basis(settings, f.now()), Resources: enforcement.ResourcesOf(enforcing), Mode: s.input.Mode,
		Was: was, Repair: cmp.Or(s.input.Repair, f.repair),
		XR: s.xr, Namespace: namespaceOf(req, s.xr.GetNamespace()),
		User: policy.User{Name: s.input.ServiceAccount, Groups: policy.ServiceAccountGroups(s.input.ServiceAccount)},
	}
	s.base.Basis.Params = s.params.find
}

func (s *state) decide() {
	first := composition.First(s.xr)
	room := v1alpha1.MaxWishesBytes
	others := composition.Others(s.xr, s.observed, s.desired)
	successors := composition.Successors(s.observed, s.desired, s.identity)
	s.base.Withheld = composition.WithheldCreations(s.observed)
	listed := composition.ListedOf(s.xr)
	s.base.Left = composition.RepairsLeft(s.base.Was, s.observed, s.base.Basis.Now)

	for _, name := range s.names {
		req := s.base
		req.Other, req.Listed, req.Successor = others[name], listed[name], successors[name]
		req.Name, req.Observed, req.Desired, req.Ungated = name, s.observed[name], s.desired[name], s.ungated[name]
		req.GatedIn = s.gatedIn[name]
		req.Baseline, req.Room = first, min(room, v1alpha1.MaxWishBytes)
		s.watch(&req)

		out := composition.Decide(req)

		if out.Desired != nil {
			room -= len(resource.Annotation(out.Desired, v1alpha1.AnnotationWish))
		}

		if len(out.Repaired) > 0 {
			s.base.Left--
		}

		s.outcomes[name] = out
		s.problems = append(s.problems, out.Problems...)
	}

	s.problems = append(s.problems, composition.RecordCreations(s.observed, s.outcomes)...)
}

// held are the held changes of all composed resources, and of the XR itself.
func (s *state) held() []condition.Held {
	var out []condition.Held

	for _, name := range s.names {
		out = append(out, s.outcomes[name].Held...)
	}

	return append(out, condition.HeldOn(s.xr)...)
}
