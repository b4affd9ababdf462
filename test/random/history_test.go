// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package random_test

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/management"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// A history is every version of servers that the API server told of, as far as
// it was up to tell, and what was wrong with them.
type history struct {
	mu      sync.Mutex
	servers map[string]*past
}

// past is what was seen of one server.
type past struct {
	versions []*unstructured.Unstructured
	// consumed is the greatest generation of an allowance that has served.
	consumed int64
	wrong    []string
}

// follow writes down what happens to servers until the context ends.
func follow(ctx context.Context, c client.WithWatch) *history {
	h := &history{servers: map[string]*past{}}
	world.Watch(ctx, c, serverKind(), func(u *unstructured.Unstructured, _ watch.EventType) { h.add(u) })

	return h
}

// add writes down a version.
func (h *history) add(u *unstructured.Unstructured) {
	h.mu.Lock()
	defer h.mu.Unlock()

	p, ok := h.servers[u.GetName()]
	if !ok {
		p = &past{}
		h.servers[u.GetName()] = p
	}

	if n := len(p.versions); n > 0 && p.versions[n-1].GetResourceVersion() == u.GetResourceVersion() {
		return
	}

	u.SetManagedFields(nil)
	p.versions = append(p.versions, u)

	if wrong := p.judge(u); wrong != "" {
		p.wrong = append(p.wrong, fmt.Sprintf("version %s, generation %d: %s", u.GetResourceVersion(), u.GetGeneration(), wrong))
	}
}

// judge says what is wrong with a version: a gate that is open wider than what
// allowances of people who may give them say, or for allowances that have
// served.
func (p *past) judge(u *unstructured.Unstructured) string {
	rec, err := allowance.ParseGate(u)
	if err != nil {
		return err.Error()
	}

	if rec == nil {
		return "" // As it was made.
	}

	defer func() { p.consumed = max(p.consumed, rec.Consumed) }()

	for _, action := range management.Acting(resource.Strings(u.Object, "spec", "managementPolicies")) {
		if !granted(rec, action, p.consumed) {
			return fmt.Sprintf("it is open for %s, without an allowance above %d: %+v", action, p.consumed, *rec)
		}
	}

	return ""
}

// granted reports whether a gate's record has an allowance for an action that has
// not served, and that one of those gave who may.
func granted(rec *v1alpha1.GateRecord, action string, consumed int64) bool {
	if rec.State != v1alpha1.GateOpen || !slices.Contains(rec.Actions, action) {
		return false
	}

	return slices.ContainsFunc(rec.Allowances, func(a v1alpha1.Allowance) bool {
		return a.Generation > consumed && grants(a, action)
	})
}

// grants reports whether an allowance is for an action, and genuine.
func grants(a v1alpha1.Allowance, action string) bool {
	if !allowance.External(a) || !slices.Contains(a.Mutations, action) {
		return false
	}

	switch a.Policy {
	case "server-creation":
		return a.Initiator == crossplaneName && action != management.ActionDelete
	case "server-change":
		return a.Initiator == hansName && action == management.ActionUpdate
	case "server-deletion":
		return a.Initiator == hansName && action == management.ActionDelete
	default:
		return false
	}
}

// wrong returns what was wrong with a server, and versions all that was seen of
// it.
func (h *history) wrong(name string) []string {
	h.mu.Lock()
	defer h.mu.Unlock()

	if p := h.servers[name]; p != nil {
		return slices.Clone(p.wrong)
	}

	return nil
}

func (h *history) versions(name string) []*unstructured.Unstructured {
	h.mu.Lock()
	defer h.mu.Unlock()

	if p := h.servers[name]; p != nil {
		return slices.Clone(p.versions)
	}

	return nil
}

// forget releases a server that ended well.
func (h *history) forget(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()

	delete(h.servers, name)
}
