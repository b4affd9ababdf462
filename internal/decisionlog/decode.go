// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decisionlog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/expression"
	"github.com/kausality-io/kausality-crossplane/engine/identity"
	"github.com/kausality-io/kausality-crossplane/engine/inforce"
	"github.com/kausality-io/kausality-crossplane/engine/management"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// Unknown is what a record does not know of what it was asked when it was decided again:
// each once, for a person. It is safe for concurrent use.
type Unknown struct {
	mu   sync.Mutex
	what []string
}

// Add adds something that is not known.
func (u *Unknown) Add(what string) {
	u.mu.Lock()
	defer u.mu.Unlock()

	if !slices.Contains(u.what, what) {
		u.what = append(u.what, what)
	}
}

// What is not known, in order; empty where all was.
func (u *Unknown) What() []string {
	u.mu.Lock()
	defer u.mu.Unlock()

	return slices.Sorted(slices.Values(u.what))
}

// errUnrecorded is what parameters and authorizer say that were not asked then.
var errUnrecorded = errors.New("it was not asked when this was decided")

// Request is the request that the record is of, as it is decided by what is in force; the
// settings are the record's. What it asks for that the record does not know is added to the
// unknown. The error is of a record that does not make sense.
func (d *Decision) Request(by *inforce.Set, unknown *Unknown) (request.Request, error) {
	kinds, err := management.ParseKinds(d.Settings.WithoutLateInitialize)
	if err != nil {
		return request.Request{}, fmt.Errorf("cannot read settings: %w", err)
	}

	settings := request.Settings{Crossplane: d.Settings.Crossplane, Manager: d.Settings.Manager, Gates: d.Settings.Gates}
	if len(kinds) > 0 {
		settings.WithoutLateInitialize = kinds
	}

	if settings.Identity, err = identity.ParseFields(d.Settings.Identity); err != nil {
		return request.Request{}, fmt.Errorf("cannot read settings: %w", err)
	}

	out := request.Request{
		Basis:     by.Basis(settings, d.Time),
		Operation: d.Operation, User: policy.User{Name: d.User.Name, UID: d.User.UID, Groups: d.User.Groups, Extra: d.User.Extra},
		Old: unstructuredOf(d.Old), New: unstructuredOf(d.New), Parent: unstructuredOf(d.Parent), Namespace: unstructuredOf(d.Namespace),
		ParentGone: d.ParentGone, ParentSettles: d.ParentSettles,
		Resource: schema.GroupResource{Group: d.Resource.Group, Resource: d.Resource.Resource}, Subresource: d.Subresource,
		ComposedResource: d.ComposedResource, Successor: d.Successor, Ungated: d.Ungated,
		Versions: d.Versions, DryRun: d.DryRun, Options: d.Options, FieldManager: d.FieldManager, Orphans: d.Orphans, Action: d.Action,
	}

	if len(d.Repaired) > 0 {
		out.RepairsNow = func(_ map[string]any, c change.Change) bool { return slices.Contains(d.Repaired, c.Field) }
	}

	if d.ReadsParameters {
		out.Basis.Params = d.params(unknown)
	}

	if d.Authorizes {
		out.Authorizer = d.authorizer(unknown)
	}

	if out.Old == nil && out.New == nil {
		return out, errNoObject
	}

	return out, nil
}

// errNoObject is the cause where a record is about nothing.
var errNoObject = errors.New("it has neither an old nor a new object")

func unstructuredOf(o Object) *unstructured.Unstructured {
	if o == nil {
		return nil
	}

	return &unstructured.Unstructured{Object: o}
}

// params finds the parameters that were found.
func (d *Decision) params(unknown *Unknown) expression.Params {
	return func(q expression.ParamQuery) (expression.ParamList, error) {
		asked := parameterOf(q)

		i := slices.IndexFunc(d.Parameters, asked.same)
		if i < 0 {
			unknown.Add(fmt.Sprintf("what %s was", q))

			return expression.ParamList{}, errUnrecorded
		}

		return d.Parameters[i].answer()
	}
}

// authorizer answers what was answered.
func (d *Decision) authorizer(unknown *Unknown) authorizer.UnconditionalAuthorizer {
	return authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		asked := checkOf(a, d.User.Name)

		i := slices.IndexFunc(d.Checks, asked.same)
		if i < 0 {
			unknown.Add("whether " + asked.who(d.User.Name) + " had the permission to " + asked.what())

			return authorizer.DecisionNoOpinion, "", errUnrecorded
		}

		return d.Checks[i].answer()
	})
}

func (c Check) who(user string) string {
	if c.User != "" {
		return c.User
	}

	return user
}

// what is asked, for a person.
func (c Check) what() string {
	if c.Path != "" {
		return c.Verb + " " + c.Path
	}

	out := c.Verb + " " + strings.TrimSuffix(schema.GroupResource{Group: c.Group, Resource: c.Resource}.String()+"/"+c.Subresource, "/")
	if c.Namespace != "" {
		out += " in namespace " + c.Namespace
	}

	return out
}

// Decide decides the request of the record as it was decided.
func (d *Decision) Decide(req request.Request) decision.Decision {
	if d.By.Stored {
		return decision.Verify(req)
	}

	return decision.Decide(req)
}
