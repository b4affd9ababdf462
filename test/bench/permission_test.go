// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package bench_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// initiators is the group that may initiate, by its name or by a Permission.
const initiators = "bench-initiators"

// requests are how many each subject gets in a turn.
const requests = 25

// errUnstamped is the cause where a change that is to be measured was not allowed.
var errUnstamped = errors.New("nothing was stamped")

// BenchmarkPermission measures a change of a root by whoever has a Permission beside one by a Group
// under the same policy, in turns: of one user, of whom the answers are remembered, and of another
// user each time, of whom the API server is asked twice. One p50-x is how many times as long
// it takes as with the Group, and added-ms is by how many milliseconds longer.
func BenchmarkPermission(b *testing.B) {
	f := setup(b)
	root := kindOf(byKausality, root)

	permissions.Do(func() { f.configurePermission(b, root) })

	obj := newObject(root, "permission")

	for name, another := range map[string]bool{"same": false, "another": true} {
		b.Run("user="+name+"/by=kausality", func(b *testing.B) {
			as := &impersonator{another: another}
			c := as.client(b, f)

			eventually(b, "the rights of the group", func(ctx context.Context) error {
				_, err := changed(ctx, c, obj, settingOf(v1alpha1.Subject{Kind: v1alpha1.SubjectPermission}))

				return err
			})

			took := map[v1alpha1.SubjectKind][]time.Duration{}

			for b.Loop() {
				for kind := range map[v1alpha1.SubjectKind]bool{v1alpha1.SubjectGroup: true, v1alpha1.SubjectPermission: true} {
					for range requests {
						d, err := changed(b.Context(), c, obj, settingOf(v1alpha1.Subject{Kind: kind}))
						if err != nil {
							b.Fatal(err)
						}

						took[kind] = append(took[kind], d)
					}
				}
			}

			ours, theirs := percentile(took[v1alpha1.SubjectPermission], median), percentile(took[v1alpha1.SubjectGroup], median)
			b.ReportMetric(ours/theirs, "p50-x")
			b.ReportMetric(ours-theirs, "added-ms")
		})
	}
}

// permissions are configured once.
var permissions sync.Once

// configurePermission has the same policy twice, with a Group and with a Permission, and makes
// an object of the kind.
func (f *fixture) configurePermission(tb testing.TB, root string) {
	tb.Helper()

	for _, s := range []v1alpha1.Subject{
		{Kind: v1alpha1.SubjectGroup, Name: initiators, MayInitiate: true},
		{Kind: v1alpha1.SubjectPermission, Name: "bench", MayInitiate: true},
	} {
		p := rootPolicy()
		p.Name = "root-" + settingOf(s)
		p.Spec.Match.Fields = []string{"spec.settings[" + settingOf(s) + "]"}
		p.Spec.Subjects = []v1alpha1.Subject{s}
		f.create(tb, p)
		f.inForce(tb, "AllowancePolicy", p.Name)
	}

	rules := []rbacv1.PolicyRule{
		{APIGroups: []string{group}, Resources: []string{resourceOf(root)}, Verbs: []string{"patch"}},
		{APIGroups: []string{group}, Resources: []string{resourceOf(root) + "/kausality"}, Verbs: []string{"initiate:bench"}},
	}
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: initiators}}
	f.create(tb, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: initiators}, Rules: rules},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: initiators}, Subjects: subjects, RoleRef: rbacv1.RoleRef{
			APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: initiators,
		}}, newObject(root, "permission"))
}

// settingOf is the setting that a policy with a subject is about.
func settingOf(s v1alpha1.Subject) string { return "by-" + strings.ToLower(string(s.Kind)) }

// changed changes a setting of an object without storing it, and says how long that took.
func changed(ctx context.Context, c client.Client, obj *unstructured.Unstructured, setting string) (time.Duration, error) {
	u := obj.DeepCopy()
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec": {"settings": {%q: "a"}}}`, setting))

	start := time.Now()
	err := c.Patch(ctx, u, patch, client.DryRunAll)
	took := time.Since(start)

	if err == nil && resource.Annotation(u, v1alpha1.AnnotationAllowances) == "" {
		err = errUnstamped
	}

	return took, err
}

// impersonator asks as a user of the group: the same, or another one for each request.
type impersonator struct {
	another bool
	next    http.RoundTripper
	count   atomic.Int64
}

func (i *impersonator) client(tb testing.TB, f *fixture) client.Client {
	tb.Helper()

	config := f.stack.Config()
	config.QPS = -1
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		i.next = next

		return i
	})

	c, err := client.New(config, client.Options{})
	if err != nil {
		tb.Fatal(err)
	}

	return c
}

// RoundTrip implements http.RoundTripper.
func (i *impersonator) RoundTrip(r *http.Request) (*http.Response, error) {
	name := "bench-user"
	if i.another {
		name = fmt.Sprintf("bench-user-%d", i.count.Add(1))
	}

	r = r.Clone(r.Context())
	r.Header.Set("Impersonate-User", name)
	r.Header.Add("Impersonate-Group", initiators)
	r.Header.Add("Impersonate-Group", "system:authenticated")

	return i.next.RoundTrip(r)
}
