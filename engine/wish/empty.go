// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package wish

import (
	"slices"

	"github.com/kausality-io/kausality-crossplane/engine/fieldpath"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// meant are the fields of built-in kinds that are stored where they are empty,
// for that says another thing than to leave them out: user 0 is root, and a
// selector that selects all is not one that is not there. The API server drops
// what is empty in the others, which makes it as good as absent.
//
// Source: k8s.io/api core/v1, batch/v1, networking/v1, policy/v1: fields that are
// pointers and have no default.
func meant() []string {
	return []string{
		"automountServiceAccountToken", "allowPrivilegeEscalation", "privileged", "readOnlyRootFilesystem", "runAsNonRoot",
		"enableServiceLinks", "shareProcessNamespace", "hostUsers", "setHostnameAsFQDN", "hostProcess", "allowVolumeExpansion",
		"runAsUser", "runAsGroup", "fsGroup", "ttlSecondsAfterFinished", "activeDeadlineSeconds", "tolerationSeconds",
		"minAvailable", "maxUnavailable", "startingDeadlineSeconds", "terminationGracePeriodSeconds",
		"immutable", "optional", "mode", "completions", "manualSelector", "backoffLimitPerIndex", "maxFailedIndexes",
		"namespaceSelector", "podSelector", "labelSelector", "runtimeClassName", "ingressClassName",
	}
}

// isNew reports whether what is empty, not stored, and not recorded was not wished
// before, and says more than none does. A record has all that was wished. Without
// one, what was applied is the manager's, unless it is a map or a list without
// anything.
func (c *Comparison) isNew(wish any, own bool) bool {
	switch {
	case !c.stores(wish):
		return false
	case c.in.Record.whole():
		return true
	case own || c.in.Baseline:
		return false
	}

	switch t := wish.(type) {
	case map[string]any:
		return false
	case []any:
		return len(t) > 0
	default:
		return true
	}
}

// stores reports whether the API server stores what is empty at the place that is
// compared: in kinds of its own where it is meant, and a list that has elements,
// and in others as it is.
func (c *Comparison) stores(wish any) bool {
	if list, ok := wish.([]any); ok {
		return len(list) > 0
	}

	if !c.builtIn() {
		return true
	}

	last := c.at[len(c.at)-1]

	return last.Type == fieldpath.SegmentField && slices.Contains(meant(), last.Field)
}

// builtIn reports whether the object is of a kind of Kubernetes' own.
func (c *Comparison) builtIn() bool { return resource.BuiltIn(c.in.Stored.GroupVersionKind().Group) }
