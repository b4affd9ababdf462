// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package examples_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/play"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// shop is where the buckets and their external objects are.
const shop = "shop"

// reading is what is read of a situation.
type reading struct {
	// said is what the command printed, and condition what the bucket's says.
	said, condition string
	// events, trace and diagnosis are lines of text.
	events, trace, diagnosis string
}

// player plays situations.
type player struct {
	client.Client

	t *testing.T
}

func newPlayer(t *testing.T) *player {
	t.Helper()

	p := &player{Client: world.Connect(t, running.Config()), t: t}
	p.must(play.Command{Text: "kubectl create namespace " + shop})
	p.must(play.Command{Text: "kubectl apply -f test/examples/testdata/situations/buckets.yaml"})

	return p
}

// run runs what somebody types.
func (p *player) run(c play.Command) (out string, ok bool) {
	p.t.Helper()

	return p.runIn(p.t.Context(), c)
}

func (p *player) runIn(ctx context.Context, c play.Command) (out string, ok bool) {
	p.t.Helper()

	out, err := shell().Type(ctx, c)

	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		p.t.Fatalf("%s: %v", c.Text, err)
	}

	return out, err == nil
}

func (p *player) must(c play.Command) {
	p.t.Helper()

	if out, ok := p.run(c); !ok {
		p.t.Fatalf("%s\n%s", c.Text, out)
	}
}

func bucketKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "shop.example.org", Version: "v1", Kind: "Bucket"}
}

// condition is what the condition of a bucket says; its error is that there is none.
func (p *player) condition(ctx context.Context, name string) (string, error) {
	text, _, err := p.conditionAndGeneration(ctx, name)

	return text, err
}

// conditionAndGeneration is also what the generation of the bucket is.
func (p *player) conditionAndGeneration(ctx context.Context, name string) (text string, generation int64, err error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(bucketKind())

	if err := p.Get(ctx, client.ObjectKey{Namespace: shop, Name: name}, u); err != nil {
		return "", 0, err
	}

	c, _ := resource.ConditionOf(u, v1alpha1.ConditionKausality)

	return fmt.Sprintf("%s, %s: %s", c.Status, c.Reason, c.Message), u.GetGeneration(), nil
}

// arrived checks that Crossplane has composed the last change of a bucket: the condition
// is of its generation, and nothing is on its way.
func (p *player) arrived(ctx context.Context, name string) error {
	said, generation, err := p.conditionAndGeneration(ctx, name)
	if err == nil && (!strings.Contains(said, fmt.Sprintf(": generation %d: ", generation)) || strings.Contains(said, "in progress")) {
		err = fmt.Errorf("the condition of generation %d says %q: %w", generation, said, world.ErrOther)
	}

	return err
}

// made makes a bucket with a separate Composition, and waits until it has settled.
func (p *player) made(name string) {
	p.t.Helper()

	raw, err := os.ReadFile(filepath.Join("testdata", "situations", "composition.yaml"))
	if err != nil {
		p.t.Fatal(err)
	}

	bucket := fmt.Sprintf("\napiVersion: shop.example.org/v1\nkind: Bucket\nmetadata: {name: %[1]s, namespace: %[2]s}\n"+
		"spec: {size: small, color: red, crossplane: {compositionRef: {name: %[1]s}}}\n", name, shop)

	p.must(apply("\n" + replace(string(raw), "{name: NAME}", "{name: "+name+"}")))
	p.eventually("a bucket", func(ctx context.Context) error {
		if out, ok := p.runIn(ctx, apply(bucket)); !ok {
			return fmt.Errorf("%s: %w", out, world.ErrOther)
		}

		return nil
	})
	p.rests("a settled bucket", func(ctx context.Context) error {
		said, err := p.condition(ctx, name)
		if err == nil && (!strings.HasPrefix(said, "True, Allowed: ") || !strings.Contains(said, ": settled")) {
			err = fmt.Errorf("the condition says %q: %w", said, world.ErrOther)
		}

		return errors.Join(err, p.outside(ctx, name, "size=small"))
	})
}

// outside checks what the external object has.
func (p *player) outside(ctx context.Context, name, want string) error {
	m := &corev1.ConfigMap{}
	if err := p.Get(ctx, client.ObjectKey{Namespace: shop, Name: name}, m); err != nil {
		return err
	}

	if key, value, _ := strings.Cut(want, "="); m.Data[key] != value {
		return fmt.Errorf("outside is %v, want %s: %w", m.Data, want, world.ErrOther)
	}

	return nil
}

// inForce waits until the policies of a situation that are applied are ready.
func (p *player) inForce(s *situation) {
	p.t.Helper()

	own := s.policyNames()

	p.eventually("policies that are looked at", func(ctx context.Context) error {
		for _, kind := range []string{"AllowancePolicy", "UpgradeAllowance", "Enforcement"} {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(v1alpha1.GroupVersion().WithKind(kind + "List"))

			if err := p.List(ctx, list); err != nil {
				return err
			}

			for i := range list.Items {
				u := &list.Items[i]
				if !slices.Contains(own, kind+"/"+u.GetName()) {
					continue
				}

				c, ok := resource.ConditionOf(u, "Ready")
				if !ok || c.ObservedGeneration < u.GetGeneration() || c.Status == "Unknown" {
					return fmt.Errorf("%s %q: condition %+v: %w", kind, u.GetName(), c, world.ErrOther)
				}
			}
		}

		return nil
	})
}

// passing is the reason of a run of the function between two writes about one edit: the one says that the XR has settled, the other one
// removes the allowances. Some plays have such a run, and others of the same situation do not.
const passing = "its allowance is used up"

// events are those of Kausality about what belongs to a bucket, in order, but for what is [passing].
func (p *player) events(ctx context.Context, name string, since time.Time) (string, error) {
	list := &eventsv1.EventList{}
	if err := p.List(ctx, list, client.InNamespace(shop)); err != nil {
		return "", err
	}

	var out []string

	for _, e := range list.Items {
		of := e.Regarding.Name == name || strings.HasPrefix(e.Regarding.Name, name+"-")
		if of && strings.Contains(e.Reason, "Kausality") && !strings.Contains(e.Note, passing) && !e.CreationTimestamp.Time.Before(since) {
			out = append(out, fmt.Sprintf("%s %s on %s %s: %s", e.Type, e.Reason, e.Regarding.Kind, e.Regarding.Name, e.Note))
		}
	}

	slices.Sort(out)

	return strings.Join(slices.Compact(out), "\n"), nil
}

// alone checks that what a bucket was made of has no owner.
func (p *player) alone(ctx context.Context, name string) error {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "kubernetes.m.crossplane.io", Version: "v1alpha1", Kind: "ObjectList"})

	if err := p.List(ctx, list, client.InNamespace(shop), client.MatchingLabels{"crossplane.io/composite": name}); err != nil {
		return err
	}

	if len(list.Items) != 1 || len(list.Items[0].GetOwnerReferences()) > 0 {
		return fmt.Errorf("%d managed resources, of %v: %w", len(list.Items), list.Items, world.ErrOther)
	}

	return nil
}

// diagnosis is what the doctor finds about some objects, by NAME or KIND/NAME, and what is made for them.
func (p *player) diagnosis(names ...string) string {
	p.t.Helper()

	_, all, err := shell().Doctor(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}

	var lines []string

	for _, f := range all {
		object := f.Object[strings.LastIndexAny(f.Object, " /")+1:]
		if f.Severity != "ok" && slices.ContainsFunc(names, func(n string) bool {
			n = n[strings.Index(n, "/")+1:]

			return object == n || strings.HasPrefix(object, n+"-")
		}) {
			lines = append(lines, fmt.Sprintf("%s: %s: %s", f.Severity, f.Object, strings.Join(filled(f.What, f.Why, f.Remedy), "; ")))
		}
	}

	return strings.Join(lines, "\n")
}

func filled(list ...string) []string {
	return slices.DeleteFunc(list, func(s string) bool { return s == "" })
}

// play plays a situation to its end.
func (p *player) play(s *situation) reading {
	p.t.Helper()
	p.made(s.name)

	// 1. What leads there.
	if s.policies != "" {
		p.must(apply(s.policies))
		p.inForce(s)
	}

	since := time.Now().Add(-time.Second).Truncate(time.Second)

	for _, c := range s.before {
		p.must(c)
		// It is reported by itself: what comes next must not take the place of that.
		p.eventually("what leads to "+s.name, func(ctx context.Context) error { return p.arrived(ctx, s.name) })
	}

	// 2. It happens.
	var r reading

	said, ok := p.run(s.does)
	if r.said = said; ok == s.fails {
		p.t.Fatalf("%s\n%s", s.does.Text, said)
	}

	if s.fails {
		r.events = p.reported(s, since)
		r.diagnosis = p.diagnosis(policiesOf(s.policies)...)
	} else {
		p.read(s, &r, since)
	}

	// 3. The way out of it is one.
	p.fixes(s)

	p.must(play.Command{Text: "kubectl delete --ignore-not-found " + strings.Join(s.policyNames(), " ")})
	p.eventually("buckets that nothing is about", p.ungoverned)

	return r
}

// ungoverned checks that the webhook is not asked about buckets any more: what is said
// of the next one may not depend on how soon that is so.
func (p *player) ungoverned(ctx context.Context) error {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(bucketKind())
	u.SetNamespace(shop)
	u.SetName("nobody-s")

	if err := unstructured.SetNestedField(u.Object, "small", "spec", "size"); err != nil {
		return err
	}

	if err := p.Create(ctx, u, client.DryRunAll); err != nil {
		return err
	}

	if text := u.GetAnnotations()[v1alpha1.AnnotationTrace]; text != "" {
		return fmt.Errorf("its creation is recorded: %s: %w", text, world.ErrOther)
	}

	return nil
}

// reported are the events about what was refused, once the one that is waited for is there.
func (p *player) reported(s *situation, since time.Time) (events string) {
	p.t.Helper()

	p.rests(s.title, func(ctx context.Context) error {
		var err error
		if events, err = p.events(ctx, s.name, since); err != nil {
			return err
		}

		if !strings.Contains(events, s.until) {
			return fmt.Errorf("the events are %q: %w", events, world.ErrOther)
		}

		return nil
	})

	return events
}

// read reads what is said, once that is said.
func (p *player) read(s *situation, r *reading, since time.Time) {
	p.t.Helper()

	p.rests(s.title, func(ctx context.Context) error {
		var err error
		if r.events, err = p.events(ctx, s.name, since); err != nil {
			return err
		}

		r.condition, err = p.condition(ctx, s.name)
		if client.IgnoreNotFound(err) != nil {
			return err
		}

		if !strings.Contains(r.condition, s.until) && !strings.Contains(r.events, s.until) {
			return fmt.Errorf("the condition says %q, the events %q: %w", r.condition, r.events, world.ErrOther)
		}

		return nil
	})

	if r.condition != "" {
		r.trace, _ = p.run(play.Command{Text: "kubectl kausality trace bucket/" + s.name + " -n " + shop})
	}

	r.diagnosis = p.diagnosis(append(policiesOf(s.policies+s.does.Text), s.name)...)
}

// fixes shows that the remedy works, and that nothing changed outside before.
func (p *player) fixes(s *situation) {
	p.t.Helper()

	want := s.outside
	if want == "" {
		want = "size=small"
	} else if p.outside(p.t.Context(), s.name, want) == nil {
		p.t.Errorf("%s: it was outside before", s.title)
	}

	for _, c := range s.fix {
		p.must(c)
		p.inForce(s)

		if !strings.Contains(c.Text, "kind: ") && s.outside != "" {
			p.eventually("a condition for "+c.Text, func(ctx context.Context) error { return p.arrived(ctx, s.name) })
		}
	}

	p.rests("the remedy", func(ctx context.Context) error {
		if err := p.outside(ctx, s.name, want); err != nil || !s.alone {
			return err
		}

		return p.alone(ctx, s.name)
	})
}

// policiesOf are the policies in manifests, as KIND/NAME.
func policiesOf(manifests string) []string {
	var (
		out  []string
		kind string
	)

	for line := range strings.Lines(manifests) {
		if text, ok := strings.CutPrefix(line, "kind: "); ok {
			kind = strings.TrimSpace(text)
		}

		if name, ok := strings.CutPrefix(line, "metadata: {name: "); ok {
			out = append(out, kind+"/"+strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(name), "}")))
		}
	}

	return out
}

// policyNames are all policies that a situation applies, as KIND/NAME.
func (s *situation) policyNames() []string {
	out := policiesOf(s.policies)
	for _, c := range slices.Concat(s.before, []play.Command{s.does}, s.fix) {
		out = append(out, policiesOf(c.Text)...)
	}

	slices.Sort(out)

	return slices.Compact(out)
}

func (p *player) eventually(what string, ok func(context.Context) error) {
	p.t.Helper()

	if err := scenario.Eventually(p.t.Context(), what, ok); err != nil {
		p.t.Fatal(err)
	}
}

// rests waits until something is so for two seconds: a condition may say once more
// what a late pass of Crossplane has read before.
func (p *player) rests(what string, ok func(context.Context) error) {
	p.t.Helper()

	p.eventually(what+", for a while", func(ctx context.Context) error {
		for end := time.Now().Add(2 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
			if err := ok(ctx); err != nil {
				return err
			}
		}

		return nil
	})
}

func replace(text, from, to string) string {
	if !strings.Contains(text, from) {
		panic(fmt.Sprintf("%q is not in %q", from, text))
	}

	return strings.ReplaceAll(text, from, to)
}
