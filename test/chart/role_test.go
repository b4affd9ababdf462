// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package chart_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// A right is one verb of one resource, as in a rule. The names of objects, if it is
// about no others, are separated by spaces.
type right struct {
	role, group, resource, verb, names string
}

func (r right) String() string {
	text := r.role + " " + r.resource + "." + r.group + " " + r.verb
	if r.names != "" {
		text += " by name"
	}

	return text
}

// elsewhere are rights that nothing in this package needs, and what does.
func elsewhere() map[string]string {
	const (
		applied = "to make something by server-side apply takes create besides patch, which is what the log says (gatecontroller/configuration)"
		empty   = "guards go where no managed resource is governed any more (engine/admission/guards.go)"
		group   = ".admissionregistration.k8s.io "
	)

	const (
		params   = "guards of our CRDs have our kinds as parameters, which takes get of who makes them (engine/admission/definitionguard.go)"
		lists    = "the API server of this test streams lists, which takes watch alone; others do not"
		packages = "CRDs that a package brought are kept (gatecontroller/configuration/definition.go)"
		xrs      = "there is no Crossplane here (gatecontroller/discovery)"
		own      = "the certificate is somebody else's here (webhook/certificate/own.go)"
		reports  = "OpenReports' CRDs are not installed here (gatecontroller/report)"
		held     = "nothing is held here, nor approved (gatecontroller/pending, gatecontroller/approval)"
		windows  = "there is no window here, nor an Enforcement or a binding (gatecontroller/status)"
	)

	return map[string]string{
		"ClusterRole allowancepolicies.kausality.io get":                  params,
		"ClusterRole enforcements.kausality.io get":                       params,
		"ClusterRole upgradeallowances.kausality.io get":                  params,
		"ClusterRole allowancebindings.kausality.io list":                 lists,
		"ClusterRole allowancepolicies.kausality.io list":                 lists,
		"ClusterRole enforcements.kausality.io list":                      lists,
		"ClusterRole upgradeallowances.kausality.io list":                 lists,
		"ClusterRole customresourcedefinitions.apiextensions.k8s.io list": lists + "; and it is listed where an owner's version is not served (internal/served)",

		"Role leases.coordination.k8s.io list": lists,

		"ClusterRole subjectaccessreviews.authorization.k8s.io create": "no policy has a Permission here, nor a condition that asks (webhook/permission.go)",

		"ClusterRole allowancebindings/status.kausality.io patch": windows,
		"ClusterRole enforcements/status.kausality.io patch":      windows,
		"ClusterRole upgradeallowances.kausality.io patch":        windows,
		"ClusterRole upgradeallowances/status.kausality.io patch": windows,

		"ClusterRole changeapprovals.kausality.io delete":       held,
		"ClusterRole changeapprovals.kausality.io get":          held,
		"ClusterRole changeapprovals.kausality.io list":         held,
		"ClusterRole changeapprovals.kausality.io watch":        held,
		"ClusterRole changeapprovals/status.kausality.io patch": held,
		"ClusterRole pendingchanges.kausality.io create":        held,
		"ClusterRole pendingchanges.kausality.io delete":        held,
		"ClusterRole pendingchanges.kausality.io get":           held,
		"ClusterRole pendingchanges.kausality.io list":          held,
		"ClusterRole pendingchanges.kausality.io watch":         held,
		"ClusterRole pendingchanges/status.kausality.io patch":  held,

		"ClusterRole customresourcedefinitions.apiextensions.k8s.io patch by name": packages,
		"ClusterRole compositionrevisions.apiextensions.crossplane.io get":         xrs,
		"ClusterRole compositionrevisions.apiextensions.crossplane.io list":        xrs,
		"ClusterRole compositionrevisions.apiextensions.crossplane.io watch":       xrs,

		"ClusterRole functionrevisions.pkg.crossplane.io list": held,

		"ClusterRole clusterreports.openreports.io create": reports,
		"ClusterRole clusterreports.openreports.io delete": reports,
		"ClusterRole clusterreports.openreports.io get":    reports,
		"ClusterRole clusterreports.openreports.io list":   reports,
		"ClusterRole clusterreports.openreports.io patch":  reports,
		"ClusterRole reports.openreports.io create":        reports,
		"ClusterRole reports.openreports.io delete":        reports,
		"ClusterRole reports.openreports.io get":           reports,
		"ClusterRole reports.openreports.io list":          reports,
		"ClusterRole reports.openreports.io patch":         reports,

		"ClusterRole events.events.k8s.io patch": "an event that is told again becomes a series (client-go tools/events)",
		"ClusterRole namespaces. patch":          "what deleting a namespace gives is written on it (webhook/deletion.go)",
		"ClusterRole *.sql.example.org get":      "parents are read live where a cache does not tell (webhook/objects.go)",

		"ClusterRole mutatingwebhookconfigurations" + group + "create by name":     applied,
		"ClusterRole validatingwebhookconfigurations" + group + "create by name":   applied,
		"ClusterRole validatingadmissionpolicies" + group + "create by name":       applied,
		"ClusterRole validatingadmissionpolicybindings" + group + "create by name": applied,
		"ClusterRole validatingadmissionpolicies" + group + "delete by name":       empty,
		"ClusterRole validatingadmissionpolicybindings" + group + "delete by name": empty,

		"Role secrets. create":         "the Secret of the manager's own certificate (webhook/certificate/own.go), and records of what is left behind (gatecontroller/deletion/leftovers.go)",
		"Role secrets. get by name":    own,
		"Role secrets. update by name": own,
	}
}

// rights checks that the manager was refused nothing, and that it needed all that
// the chart's role gives it.
func (l *life) rights(t *testing.T) {
	t.Helper()

	raw, err := os.ReadFile(running.Process("kube-apiserver").Log())
	if err != nil {
		t.Fatal(err)
	}

	used := map[right]bool{}
	given := granted(t, l.release.objects)
	requests := 0

	for line := range strings.Lines(string(raw)) {
		e := auditv1.Event{}
		if !strings.HasPrefix(line, "{") || json.Unmarshal([]byte(line), &e) != nil || e.ObjectRef == nil {
			continue
		}

		requests++

		if e.ResponseStatus != nil && e.ResponseStatus.Code == http.StatusForbidden {
			t.Errorf("refused: %s %s: %s", e.Verb, e.RequestURI, e.ResponseStatus.Message)
		}

		for r := range given {
			if r.covers(&e) {
				used[r] = true
			}
		}
	}

	known := elsewhere()

	for _, r := range slices.SortedFunc(maps.Keys(given), func(a, b right) int { return strings.Compare(a.String(), b.String()) }) {
		if _, ok := known[r.String()]; !ok && !used[r] {
			t.Errorf("nothing needs %s", r)
		}
	}

	t.Logf("%d requests needed %d of %d rights", requests, len(used), len(given))
}

// covers reports whether a request needs a right.
func (r right) covers(e *auditv1.Event) bool {
	resource := e.ObjectRef.Resource
	if e.ObjectRef.Subresource != "" {
		resource += "/" + e.ObjectRef.Subresource
	}

	return r.verb == e.Verb && (r.names == "" || slices.Contains(strings.Fields(r.names), e.ObjectRef.Name)) && (r.group == e.ObjectRef.APIGroup || r.group == rbacv1.APIGroupAll) &&
		(r.resource == resource || r.resource == rbacv1.ResourceAll) && (r.role == "ClusterRole" || e.ObjectRef.Namespace == home)
}

// granted are the rights that the chart's roles give the manager.
func granted(t *testing.T, list []*unstructured.Unstructured) map[right]bool {
	t.Helper()

	out := map[right]bool{}

	for _, u := range list {
		kind := u.GetKind()
		if kind != "Role" && kind != "ClusterRole" || !strings.HasPrefix(u.GetName(), "kausality-manager") {
			continue
		}

		role := &rbacv1.ClusterRole{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, role); err != nil {
			t.Fatal(err)
		}

		for _, rule := range role.Rules {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, verb := range rule.Verbs {
						out[right{role: kind, group: group, resource: resource, verb: verb, names: strings.Join(rule.ResourceNames, " ")}] = true

						if group == rbacv1.APIGroupAll {
							t.Errorf("%s %q is about all groups", kind, u.GetName())
						}
					}
				}
			}
		}
	}

	return out
}
