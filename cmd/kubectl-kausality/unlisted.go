// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// errGoverned is the cause when a group that cannot be listed may have objects with
// gates.
var errGoverned = errors.New("Kausality governs kinds of it, and could not release these: " + //nolint:staticcheck // A name.
	"repair its APIService, or delete that if nothing serves it any more")

// unlisted checks what discovery could not list. A group that Kausality governs is
// in the way, for its objects may be gated; another one is only reported: an
// APIService whose backend is down is nothing to wait for.
func (c uninstallation) unlisted(ctx context.Context, out io.Writer, failed error) error {
	var partial *discovery.ErrGroupDiscoveryFailed

	switch {
	case failed == nil:
		return nil
	case !errors.As(failed, &partial):
		return fmt.Errorf("cannot list the kinds of the cluster: %w", failed)
	}

	governed, err := c.governed(ctx)
	if err != nil {
		return err
	}

	var problems []error

	for _, gv := range slices.SortedFunc(maps.Keys(partial.Groups), compareVersions) {
		why := partial.Groups[gv]

		if slices.Contains(governed, gv.Group) || slices.Contains(governed, "*") {
			problems = append(problems, fmt.Errorf("cannot list the kinds of %s: %w: %w", gv, why, errGoverned))

			continue
		}

		if err := say(out, "%s cannot be listed, and is left alone, for Kausality governs nothing of it: %s\n", gv, why); err != nil {
			return err
		}
	}

	return errors.Join(problems...)
}

func compareVersions(a, b schema.GroupVersion) int {
	switch {
	case a.String() < b.String():
		return -1
	case a.String() > b.String():
		return 1
	default:
		return 0
	}
}

// governed are the groups that the API server asks about, or guards.
func (c uninstallation) governed(ctx context.Context) ([]string, error) {
	var groups []string

	for _, n := range slices.Concat(askers(), deletionGuards()) {
		u, err := c.read(ctx, n.gvk, "", n.name)
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
			continue
		}

		if err != nil {
			return nil, err
		}

		for _, webhook := range resource.List(u.Object, "webhooks") {
			groups = append(groups, ruledGroups(webhook, "rules")...)
		}

		groups = append(groups, ruledGroups(u.Object, "spec", "matchConstraints", "resourceRules")...)
	}

	return slices.DeleteFunc(groups, func(g string) bool { return g == v1alpha1.Group }), nil
}

// ruledGroups are the groups of a list of rules.
func ruledGroups(in any, path ...string) []string {
	m, _ := in.(map[string]any)
	rules := resource.List(m, path...)
	groups := make([]string, 0, len(rules))

	for _, r := range rules {
		rule, _ := r.(map[string]any)
		groups = append(groups, resource.Strings(rule, "apiGroups")...)
	}

	return groups
}
