// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package served

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

const (
	// versionsFor is how long what was found of versions is good for: a CRD may get
	// another one at any time, and Enforcements are about the resource then.
	versionsFor = 2 * time.Second
	// versionsWait is how long that may take to find out.
	versionsWait = time.Second
)

// Versions finds out in which versions resources are served, of which it asks the API
// server every two seconds at most. It is safe for concurrent use. Nil knows of none.
type Versions struct {
	discovery rest.Interface
	now       func() time.Time

	mu    sync.Mutex
	known map[schema.GroupResource]*versionsAnswer
}

// versionsAnswer is found out by the first who asks; others wait for it.
type versionsAnswer struct {
	once  sync.Once
	until time.Time
	list  []string
}

// NewVersions makes Versions of a client of the API server's discovery.
func NewVersions(discovery rest.Interface, now func() time.Time) *Versions {
	return &Versions{discovery: discovery, now: now, known: map[schema.GroupResource]*versionsAnswer{}}
}

// Of are those in which a resource is served, sorted; nil where that cannot be found out.
func (v *Versions) Of(ctx context.Context, gr schema.GroupResource) []string {
	if v == nil {
		return nil
	}

	a := v.answer(gr)
	a.once.Do(func() {
		// Others wait for it, whose requests go on when this one has ended.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), versionsWait)
		defer cancel()

		if list, err := v.find(ctx, gr); err == nil {
			a.list = list
		}
	})

	return a.list
}

// answer is what is remembered of a resource, or is to be found out.
func (v *Versions) answer(gr schema.GroupResource) *versionsAnswer {
	now := v.now()

	v.mu.Lock()
	defer v.mu.Unlock()

	if a, ok := v.known[gr]; ok && now.Before(a.until) {
		return a
	}

	maps.DeleteFunc(v.known, func(_ schema.GroupResource, a *versionsAnswer) bool { return !now.Before(a.until) })

	a := &versionsAnswer{until: now.Add(versionsFor)}
	v.known[gr] = a

	return a
}

// find asks for the versions of a group, and for the resources of each. Nothing is known
// where one of them does not answer, or none has the resource: who asks has it.
func (v *Versions) find(ctx context.Context, gr schema.GroupResource) ([]string, error) {
	at, versions, err := v.ofGroup(ctx, gr.Group)
	if err != nil {
		return nil, err
	}

	var out []string

	for _, version := range versions {
		list := &metav1.APIResourceList{}

		switch err := v.get(ctx, at+"/"+version, list); {
		case apierrors.IsNotFound(err):
			continue // It was taken away in between.
		case err != nil:
			return nil, err
		case slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == gr.Resource }):
			out = append(out, version)
		}
	}

	slices.Sort(out)

	return out, nil
}

// ofGroup is where a group is served, and in which versions.
func (v *Versions) ofGroup(ctx context.Context, group string) (at string, versions []string, err error) {
	if group == "" {
		list := &metav1.APIVersions{}
		err = v.get(ctx, "/api", list)

		return "/api", list.Versions, err
	}

	at = "/apis/" + group
	found := &metav1.APIGroup{}

	err = v.get(ctx, at, found)
	for _, version := range found.Versions {
		versions = append(versions, version.Version)
	}

	return at, versions, err
}

func (v *Versions) get(ctx context.Context, path string, into runtime.Object) error {
	if err := v.discovery.Get().AbsPath(path).Do(ctx).Into(into); err != nil {
		return fmt.Errorf("cannot get %s: %w", path, err)
	}

	return nil
}
