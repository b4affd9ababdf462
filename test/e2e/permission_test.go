// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// TestWhoTheAuthorizerGrantsThePermissionMayInitiate has users with roles of all sorts, and
// compares what they may with what kubectl auth can-i says.
func TestWhoTheAuthorizerGrantsThePermissionMayInitiate(t *testing.T) { //nolint:tparallel // Steps build on each other.
	t.Parallel()

	l := newLab(t, "lab-permission", "none")
	rule := func(verb, resource string, names ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{labGroup}, Resources: []string{resource}, Verbs: []string{verb}, ResourceNames: names}
	}

	cases := map[string]struct {
		reason  string
		rule    rbacv1.PolicyRule
		cluster bool
		group   string
		want    bool
	}{
		"role":        {reason: "A Role has the verb.", rule: rule("initiate:may", "plans/kausality"), want: true},
		"general":     {reason: "A Role has the general verb.", rule: rule("initiate", "plans/kausality"), want: true},
		"clusterrole": {reason: "A ClusterRole has it.", rule: rule("initiate:may", "plans/kausality"), cluster: true, want: true},
		"named":       {reason: "A Role has it for the object.", rule: rule("initiate:may", "plans/kausality", "plan"), want: true},
		"other":       {reason: "And for another object.", rule: rule("initiate:may", "plans/kausality", "another")},
		"group":       {reason: "A group has it.", rule: rule("initiate:may", "plans/kausality"), group: "lab-initiators", want: true},
		"narrow":      {reason: "Another Permission is another verb.", rule: rule("initiate:size", "plans/kausality")},
		"editor":      {reason: "Who may do all with the kind may not.", rule: rule("*", "plans"), cluster: true},
		"all":         {reason: "Who may do all with all of its group may.", rule: rule("*", "*"), want: true},
	}

	t.Run("granted", func(t *testing.T) {
		for name, tc := range cases {
			t.Run(name, func(t *testing.T) {
				t.Parallel()

				who := "lab-permission-" + name
				groups := []string{"system:authenticated"}
				subject := userNamed(who)

				if tc.group != "" {
					groups = append(groups, tc.group)
					subject = rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: tc.group}
				}

				l.grant(t, who, subject, tc.rule, tc.cluster)
				l.grant(t, who+"-patches", userNamed(who), rule("patch", "plans"), false)

				as := impersonate(t, who, groups...)

				if err := scenario.Eventually(t.Context(), "a verdict", func(ctx context.Context) error {
					can, err := l.can(ctx, who, groups)
					if err != nil {
						return err
					}

					may, err := l.initiates(ctx, as)
					if err != nil {
						return err
					}

					if can != tc.want || may != can {
						return fmt.Errorf("%s kubectl auth can-i says %t, and the change is allowed: %t: %w", tc.reason, can, may, world.ErrOther)
					}

					return nil
				}); err != nil {
					t.Error(err)
				}
			})
		}
	})

	const who = "lab-permission-counted"

	as := warnedAs(t, who, "system:authenticated")
	l.grant(t, who+"-patches", userNamed(who), rule("patch", "plans"), false)

	t.Run("counted", func(t *testing.T) { l.counted(t, as, who, rule("initiate", "plans/kausality")) })
	t.Run("condition", func(t *testing.T) { l.painted(t, as, who, rule("paint", "plans", "plan")) })
}

// counted counts what the API server is asked of a user: both verbs at most, and nothing that
// was answered a moment ago.
func (l lab) counted(t *testing.T, as client.Client, who string, rule rbacv1.PolicyRule) {
	t.Helper()

	var may bool

	// The right to patch may come late; until then nobody is asked.
	if err := scenario.Eventually(t.Context(), "an answer", func(ctx context.Context) (err error) {
		may, err = l.initiates(ctx, as)

		return err
	}); err != nil || may {
		t.Fatalf("allowed %t: %v", may, err)
	}

	if got, want := asked(t, who), []string{"initiate", "initiate:may"}; !slices.Equal(got, want) {
		t.Errorf("it was asked for %v, want %v", got, want)
	}

	l.grant(t, who, userNamed(who), rule, false)

	if err := scenario.Eventually(t.Context(), "a grant", func(ctx context.Context) error {
		if may, err := l.initiates(ctx, as); err != nil || !may {
			return errors.Join(err, world.ErrOther)
		}

		return nil
	}); err != nil {
		t.Fatal(err)
	}

	before := asked(t, who)

	for range 3 {
		if may, err := l.initiates(t.Context(), as); err != nil || !may {
			t.Errorf("allowed %t: %v", may, err)
		}
	}

	// The general verb was granted: the narrower one is asked for no more.
	if after := asked(t, who); len(after) != len(before) || after[len(after)-1] != "initiate" {
		t.Errorf("it was asked for %v, and before for %v", after, before)
	}
}

// painted has a condition of a policy ask the authorizer.
func (l lab) painted(t *testing.T, as *world.Warned, who string, rule rbacv1.PolicyRule) {
	t.Helper()

	may := func(ctx context.Context) (bool, error) {
		plan := l.plan.DeepCopy()
		err := as.Patch(ctx, plan, world.Merge(`{"spec": {"settings": {"paint.lab.example.org/cost": "a"}}}`), client.DryRunAll)

		return resource.Annotation(plan, v1alpha1.AnnotationAllowances) != "", err
	}

	as.Take()

	if ok, err := may(t.Context()); err != nil || ok || !mentions(as.Take(), `condition "may-paint": only who may paint`) {
		t.Errorf("who may not paint: allowed %t: %v", ok, err)
	}

	l.grant(t, who+"-paints", userNamed(who), rule, false)

	if err := scenario.Eventually(t.Context(), "the right to paint", func(ctx context.Context) error {
		if ok, err := may(ctx); err != nil || !ok {
			return errors.Join(err, world.ErrOther)
		}

		return nil
	}); err != nil {
		t.Error(err)
	}
}

// TestNobodyMayInitiateWhileNobodyCanBeAsked takes from the manager the right to ask, which all other tests need: it runs
// while none of them does.
func TestNobodyMayInitiateWhileNobodyCanBeAsked(t *testing.T) { //nolint:paralleltest // As said.
	const who = "lab-permission-asks"

	l, as := newLab(t, "lab-permission-down", "none"), warnedAs(t, who, "system:authenticated")
	l.grant(t, who+"-patches", userNamed(who), rbacv1.PolicyRule{
		APIGroups: []string{labGroup}, Resources: []string{"plans"}, Verbs: []string{"patch"},
	}, false)

	role := &rbacv1.ClusterRole{}
	if err := l.Get(t.Context(), client.ObjectKey{Name: "kausality-manager"}, role); err != nil {
		t.Fatal(err)
	}

	whole := slices.Clone(role.Rules)
	set := func(ctx context.Context, rules []rbacv1.PolicyRule) error {
		raw, err := json.Marshal(map[string]any{"rules": rules})
		if err != nil {
			return err
		}

		return l.Patch(ctx, role, world.Merge(string(raw)))
	}

	t.Cleanup(func() {
		if err := set(context.WithoutCancel(t.Context()), whole); err != nil {
			t.Error(err)
		}
	})

	if err := set(t.Context(), slices.DeleteFunc(slices.Clone(whole), func(r rbacv1.PolicyRule) bool {
		return slices.Contains(r.Resources, "subjectaccessreviews")
	})); err != nil {
		t.Fatal(err)
	}

	if err := scenario.Eventually(t.Context(), "nobody to ask", func(ctx context.Context) error {
		as.Take()

		may, err := l.initiates(ctx, as)
		if text := as.Take(); err != nil || may || !mentions(text, "the cluster's authorizer cannot be asked") {
			return fmt.Errorf("allowed %t (%w), and said %q: %w", may, err, text, world.ErrOther)
		}

		return nil
	}); err != nil {
		t.Error(err)
	}
}

func userNamed(name string) rbacv1.Subject {
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}
}

// initiates reports whether a user may change what a Permission is about.
func (l lab) initiates(ctx context.Context, as client.Client) (bool, error) {
	plan := l.plan.DeepCopy()
	err := as.Patch(ctx, plan, world.Merge(`{"spec": {"settings": {"may.lab.example.org/cost": "a"}}}`), client.DryRunAll)

	return resource.Annotation(plan, v1alpha1.AnnotationAllowances) != "", err
}

// asked are the verbs that the API server was asked for about a user, by its audit log.
func asked(t *testing.T, user string) []string {
	t.Helper()

	raw, err := os.ReadFile(filepath.Join(running.LogDir(), "kube-apiserver.log"))
	if err != nil {
		t.Fatal(err)
	}

	var out []string

	for line := range strings.Lines(string(raw)) {
		var event struct {
			RequestObject authorizationv1.SubjectAccessReview `json:"requestObject"`
		}

		if strings.HasPrefix(line, `{"kind":"Event"`) && strings.Contains(line, user) && json.Unmarshal([]byte(line), &event) == nil &&
			event.RequestObject.Kind == "SubjectAccessReview" && event.RequestObject.Spec.User == user {
			out = append(out, event.RequestObject.Spec.ResourceAttributes.Verb)
		}
	}

	return out
}

// grant gives a subject a role of a name.
func (c cluster) grant(t *testing.T, name string, subject rbacv1.Subject, rule rbacv1.PolicyRule, cluster bool) {
	t.Helper()

	meta := metav1.ObjectMeta{Name: name, Namespace: c.namespace}
	objects := []client.Object{
		&rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{rule}},
		&rbacv1.RoleBinding{
			ObjectMeta: meta, Subjects: []rbacv1.Subject{subject},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		},
	}

	if cluster {
		meta.Namespace = ""
		objects = []client.Object{
			&rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{rule}},
			&rbacv1.ClusterRoleBinding{
				ObjectMeta: meta, Subjects: []rbacv1.Subject{subject},
				RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			},
		}
	}

	for _, obj := range objects {
		if err := c.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}

		t.Cleanup(func() { _ = c.Delete(context.WithoutCancel(t.Context()), obj) })
	}
}

// can is what kubectl auth can-i says of either verb.
func (l lab) can(ctx context.Context, who string, groups []string) (bool, error) {
	for _, verb := range []string{"initiate", "initiate:may"} {
		if yes, err := l.canI(ctx, who, verb, "plans."+labGroup+"/plan", v1alpha1.SubresourceKausality, groups...); yes || err != nil {
			return yes, err
		}
	}

	return false, nil
}

// canI is what kubectl auth can-i says of an object, or a subresource of it.
func (c cluster) canI(ctx context.Context, who, verb, object, subresource string, groups ...string) (bool, error) {
	args := make([]string, 0, 16)
	args = append(args, "auth", "can-i", verb, object, "--subresource="+subresource, "-n", c.namespace, "--as", who,
		"--kubeconfig", filepath.Join(running.Dir(), "kubeconfig"))

	for _, g := range groups {
		args = append(args, "--as-group", g)
	}

	out, err := exec.CommandContext(ctx, running.Tools().Binary("kubectl"), args...).Output()

	// Its exit code is 1 where the answer is no.
	switch said := strings.TrimSpace(string(out)); {
	case said == "yes":
		return true, nil
	case !strings.HasPrefix(said, "no"):
		return false, fmt.Errorf("kubectl auth can-i %s says %q: %w", verb, said, errors.Join(err, world.ErrOther))
	}

	return false, nil
}
