// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package rights_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/engine/right"
	"github.com/kausality-io/kausality-crossplane/test/demo/session"
	"github.com/kausality-io/kausality-crossplane/test/play"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/stack"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

const example = "../../examples/claim-with-ticket/"

// kubectl runs kubectl as the administrator.
func kubectl(t *testing.T, stdin string, args ...string) {
	t.Helper()

	if out, err := (play.Shell{Stack: running, Input: stdin}).Command(t.Context(), play.Admin, "kubectl", args...).CombinedOutput(); err != nil {
		t.Fatalf("kubectl %q: %v: %s", args, err, out)
	}
}

// doctor runs the plugin's command.
func doctor(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()

	r, err := play.Shell{Stack: running}.Run(t.Context(), play.Admin, "kubectl-kausality", append([]string{"doctor"}, args...)...)
	if err != nil {
		t.Fatal(err)
	}

	return r.Stdout, r.Stderr, r.Code
}

// ready reports whether the condition Ready of a policy has a status, a reason, and
// words in its message.
func ready(c client.Client, name, status, reason string, words ...string) func(context.Context) error {
	return says(c, name, "Ready", status, reason, words...)
}

// says reports whether a condition of a policy has a status, a reason, and words in its
// message.
func says(c client.Client, name, condition, status, reason string, words ...string) func(context.Context) error {
	return func(ctx context.Context) error {
		p := world.Prototype(schema.GroupVersionKind{Group: "kausality.io", Version: "v1alpha1", Kind: "AllowancePolicy"})
		if err := c.Get(ctx, client.ObjectKey{Name: name}, p); err != nil {
			return err
		}

		got, _ := resource.ConditionOf(p, condition)
		if got.Status != status || got.Reason != reason {
			return fmt.Errorf("policy %s: %s=%s %s: %s: %w", name, condition, got.Status, got.Reason, got.Message, world.ErrOther)
		}

		for _, w := range words {
			if !strings.Contains(got.Message, w) {
				return fmt.Errorf("policy %s: no %q in %q: %w", name, w, got.Message, world.ErrOther)
			}
		}

		return nil
	}
}

// may reports whether the manager may do something in all namespaces.
func may(t *testing.T, r right.Right) bool {
	t.Helper()

	c, err := client.New(running.Config(), client.Options{Scheme: clientgoscheme.Scheme})
	if err != nil {
		t.Fatal(err)
	}

	name, sub := r.Split()
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:               "system:serviceaccount:" + stack.KausalityNamespace + ":kausality-manager",
		Groups:             []string{"system:serviceaccounts", "system:serviceaccounts:" + stack.KausalityNamespace, "system:authenticated"},
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: r.Verb, Group: r.Group, Resource: name, Subresource: sub},
	}}

	if err := c.Create(t.Context(), review); err != nil {
		t.Fatal(err)
	}

	return review.Status.Allowed
}

func read(t *testing.T, file string) string {
	t.Helper()

	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}

	return string(raw)
}

// TestAManagerWithTheRolesThatDoctorPrintsWorksFromClaimToExternalObject and says
// before what it lacks.
func TestAManagerWithTheRolesThatDoctorPrintsWorksFromClaimToExternalObject(t *testing.T) {
	c := world.Connect(t, running.Config())
	policies := map[string][]string{
		"database-claim-to-xr": {"get, list, patch and watch databaseclaims.example.org, xdatabases.example.org"},
		"xdatabase-to-object":  {"get, list, patch and watch xdatabases.example.org"},
	}

	// 1. Policies about kinds without rights say so at once, with the remedy.
	kubectl(t, read(t, example+"xrd.yaml"), "apply", "-f", "-")
	kubectl(t, read(t, example+"composition.yaml"), "apply", "-f", "-")
	served(t, c, "xdatabases.example.org", "databaseclaims.example.org")

	start := time.Now()

	kubectl(t, read(t, example+"policies.yaml"), "apply", "-f", "-")

	for name, words := range policies {
		world.Eventually(t, name+" to say what the manager may not do",
			ready(c, name, "False", "RightsMissing", append(words, right.Remedy)...))
	}

	t.Logf("said after %s", time.Since(start).Round(time.Millisecond))

	// 2. So does the doctor, which prints the roles.
	out, _, code := doctor(t)
	if code == 0 || !strings.Contains(out, "ERROR    rights: ServiceAccount kausality-system/kausality-manager: "+
		"the manager may not get, list, patch and watch xdatabases.example.org") {
		t.Errorf("doctor: exit code %d: %s", code, out)
	}

	roles, problem, code := doctor(t, "--roles")
	if code != 0 || !strings.Contains(roles, "name: kausality-governed:example.org") ||
		!strings.Contains(roles, "name: kausality-governed:kubernetes.crossplane.io") {
		t.Fatalf("doctor --roles: exit code %d: %s%s", code, problem, roles)
	}

	t.Logf("doctor --roles prints:\n%s", roles)

	// 3. They are applied as they are, and the policies come into force by themselves.
	start = time.Now()

	kubectl(t, roles, "apply", "-f", "-")

	for name := range policies {
		world.Eventually(t, name+" to be in force", ready(c, name, "True", "InForce"))
	}

	t.Logf("in force after %s", time.Since(start).Round(time.Millisecond))

	if out, problem, code := doctor(t, "--roles"); code != 0 || out != "" || !strings.Contains(problem, "has all rights") {
		t.Errorf("doctor --roles, once they are applied: exit code %d: %s%s", code, problem, out)
	}

	// What was given is printed again for who keeps it in a repository, and what it
	// takes to read owners of a kind that nothing names.
	_, given, _ := strings.Cut(roles, "---\n")

	all, problem, code := doctor(t, "--roles", "--all-rights")
	if _, again, _ := strings.Cut(all, "---\n"); code != 0 || given == "" || again != given {
		t.Errorf("doctor --roles --all-rights: exit code %d: %s%s, not what was applied: %s", code, problem, all, given)
	}

	owners, problem, code := doctor(t, "--roles", "--for", "fleets.lab.example.org")
	if code != 0 || strings.Count(owners, "kind: ClusterRole\n") != 1 || strings.Contains(owners, "patch") ||
		!strings.Contains(owners, "name: kausality-governed:fleets.lab.example.org:get-list-watch") {
		t.Errorf("doctor --roles --for: exit code %d: %s%s", code, problem, owners)
	}

	// 4. That is enough for all of the story.
	s, err := scenario.New(running, "../../examples", session.New(t.Output(), false, time.Now))
	if err != nil {
		t.Fatal(err)
	}

	for _, step := range s.Steps() {
		if err := step.Run(t.Context()); err != nil {
			t.Fatalf("%s: %v", step.Title, err)
		}
	}

	// 5. And it gives nothing else.
	for _, r := range []right.Right{
		{Verb: "get", Resource: "secrets"},
		{Verb: "list", Resource: "configmaps"},
		{Verb: "get", Resource: "nodes/proxy"},
		{Verb: "get", Resource: "pods/exec"},
		{Verb: "patch", Group: "rbac.authorization.k8s.io", Resource: "clusterroles"},
		{Verb: "patch", Group: "apps", Resource: "deployments"},
		{Verb: "delete", Group: "example.org", Resource: "xdatabases"},
		{Verb: "patch", Group: "admissionregistration.k8s.io", Resource: "validatingwebhookconfigurations"},
		{Verb: "create", Group: "admissionregistration.k8s.io", Resource: "mutatingwebhookconfigurations"},
		{Verb: "create", Group: "admissionregistration.k8s.io", Resource: "validatingadmissionpolicybindings"},
		{Verb: "patch", Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"},
	} {
		if may(t, r) {
			t.Errorf("the manager may %s %s of group %q", r.Verb, r.Resource, r.Group)
		}
	}
}

// served waits until CRDs are.
func served(t *testing.T, c client.Client, names ...string) {
	t.Helper()

	for _, name := range names {
		world.Eventually(t, "CRD "+name, func(ctx context.Context) error {
			crd := &unstructured.Unstructured{}
			crd.SetAPIVersion("apiextensions.k8s.io/v1")
			crd.SetKind("CustomResourceDefinition")

			if err := c.Get(ctx, client.ObjectKey{Name: name}, crd); err != nil {
				return err
			}

			if got, _ := resource.ConditionOf(crd, "Established"); !got.True() {
				return world.ErrOther
			}

			return nil
		})
	}
}

const cautious = `
apiVersion: kausality.io/v1alpha1
kind: AllowancePolicy
metadata: {name: %[1]s}
spec:
  match: {kind: %[2]s, fields: [spec]}
  allow: [{kind: %[3]s, mutations: [spec]}]
`

// TestAKindWithoutRightsStopsNoOther neither in what is kept up for policies, nor in
// what people may write.
func TestAKindWithoutRightsStopsNoOther(t *testing.T) {
	c := world.Connect(t, running.Config())

	// 1. Two policies, one of which takes rights that are there at any time.
	kubectl(t, fmt.Sprintf(cautious, "without-rights", "StatefulSet", "Pod")+"---"+fmt.Sprintf(cautious, "with-rights", "Namespace", "Namespace"),
		"apply", "-f", "-")
	world.Eventually(t, "a policy without rights", ready(c, "without-rights", "False", "RightsMissing",
		"statefulsets.apps", "get, list, patch and watch pods"))
	world.Eventually(t, "one with rights", ready(c, "with-rights", "True", "InForce"))

	// 2. Nobody is prevented from anything that is not enforced.
	kubectl(t, `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: free, namespace: default}
spec: {serviceName: free, replicas: 0, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: a}]}}}
`, "apply", "-f", "-")

	// 3. Each of Kubernetes' own resources has a role of its own.
	roles, _, _ := doctor(t, "--roles")
	for _, name := range []string{"statefulsets.apps", "pods"} {
		if !strings.Contains(roles, "name: kausality-governed:"+name+"\n") {
			t.Errorf("no role for %s in %s", name, roles)
		}
	}

	kubectl(t, roles, "apply", "-f", "-")
	world.Eventually(t, "a policy that got its rights", ready(c, "without-rights", "True", "InForce"))

	if may(t, right.Right{Verb: "get", Resource: "pods/exec"}) {
		t.Error("who may watch pods may exec into them")
	}
}

const (
	limits = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: limits.rights.example.org}
spec:
  group: rights.example.org
  scope: Namespaced
  names: {kind: Limit, listKind: LimitList, plural: limits, singular: limit}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`
	parameterized = `
apiVersion: kausality.io/v1alpha1
kind: AllowancePolicy
metadata: {name: %[1]s}
spec:
  paramKind: {apiVersion: %[2]s, kind: %[3]s}
  paramRef: {name: default, namespace: default}
  match: {kind: Namespace, fields: [spec]}
  allow: [{kind: Namespace, mutations: [spec]}]
`
)

// TestAPolicyWithParametersComesIntoForceWithTheRoleThatDoctorPrints for the manager and for
// Crossplane; one whose parameters nobody can watch does not, and is given no role.
func TestAPolicyWithParametersComesIntoForceWithTheRoleThatDoctorPrints(t *testing.T) {
	c := world.Connect(t, running.Config())

	kubectl(t, limits, "apply", "-f", "-")
	served(t, c, "limits.rights.example.org")

	kubectl(t, fmt.Sprintf(parameterized, "with-limits", "rights.example.org/v1", "Limit")+"---"+
		fmt.Sprintf(parameterized, "with-reviews", "authorization.k8s.io/v1", "SubjectAccessReview"), "apply", "-f", "-")

	// 1. Both say what they lack.
	world.Eventually(t, "a policy whose parameters nobody may read",
		says(c, "with-limits", "ParametersReadable", "False", "RightsMissing", "limits.rights.example.org", right.Remedy))
	world.Eventually(t, "one whose parameters nobody can read",
		says(c, "with-reviews", "ParametersReadable", "False", "KindUnsupported", "does not support get, list and watch of subjectaccessreviews"))

	// 2. The doctor prints a role for the one.
	roles, problem, code := doctor(t, "--roles")
	if code != 0 || !strings.Contains(roles, "name: kausality-governed:params:limits.rights.example.org\n") ||
		!strings.Contains(roles, right.LabelOfCrossplane+`: "true"`) || strings.Contains(roles, "subjectaccessreviews") {
		t.Fatalf("doctor --roles: exit code %d: %s%s", code, problem, roles)
	}

	// 3. With it that comes into force by itself, and the other one does not.
	kubectl(t, roles, "apply", "-f", "-")
	world.Eventually(t, "a policy whose parameters can be read", says(c, "with-limits", "ParametersReadable", "True", "Readable"))
	world.Eventually(t, "that policy to be in force", ready(c, "with-limits", "True", "InForce"))
	world.Eventually(t, "the other one", ready(c, "with-reviews", "False", "ParametersUnreadable", "does not support"))

	if out, problem, code := doctor(t, "--roles"); code != 0 || strings.Contains(out, "params:") {
		t.Errorf("doctor --roles, once it is applied: exit code %d: %s%s", code, problem, out)
	}

	// 4. What is kept in a repository has it all the same.
	if out, problem, code := doctor(t, "--roles", "--all-rights"); code != 0 || !strings.Contains(out, "name: kausality-governed:params:limits.rights.example.org\n") {
		t.Errorf("doctor --roles --all-rights: exit code %d: %s%s", code, problem, out)
	}
}
