// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/mask"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

var (
	// errNoEdit is the cause when a field is named of which no edit is recorded.
	errNoEdit = errors.New("no edit of it is recorded")
	// errSomeStay is the cause when not all can be put back.
	errSomeStay = errors.New("not all of it can be put back, and nothing was written: put the rest back with --field, and these by hand")
	// errNoYes is what helps where nobody can be asked.
	errNoYes = fmt.Errorf("%w: give --yes", errNoTerminal)
)

// discardOptions say what to put back.
type discardOptions struct {
	clusterOptions

	fields []string
	yes    bool
}

func discardCommand() *cobra.Command {
	opts := discardOptions{}

	cmd := &cobra.Command{
		Use:   "discard KIND/NAME",
		Short: "Put back what was edited and is not allowed",
		Long: "Put back, as the user who runs it, what is recorded as edited without being allowed: of the object, or of the one that people " +
			"edit above it, such as its Claim. It shows what it would write, and asks. Values that are cut or hidden in the record cannot be " +
			"put back, nor those of a list that is another one by now, or of which nobody can know whether they were text or a number: then " +
			"nothing is, unless --field says which are to be.\n\n" + exitHelp,
		Example: "  kubectl kausality discard databaseclaim/my-database -n team-a\n" +
			"  kubectl kausality discard databaseclaim/my-database -n team-a --field spec.size --yes",
		Args:              usageArgs(cobra.RangeArgs(1, 2)),
		ValidArgsFunction: completePending(&opts.clusterOptions),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := newCluster(opts.clusterOptions)
			if err != nil {
				return err
			}

			show := cmd.OutOrStdout()
			if opts.structured() {
				show = cmd.ErrOrStderr()
			}

			return opts.result(cmd.OutOrStdout(), c, func(out io.Writer) error {
				d := discarder{
					cluster: c, opts: opts, out: out, show: show, paint: paintOf(show), asker: askerOf(cmd.InOrStdin(), show),
					schemas: (&resolver.ClientDiscoveryResolver{Discovery: c.discovery}).ResolveSchema,
				}

				return d.discard(cmd.Context(), args)
			})
		},
	}

	opts.writing(cmd)

	flags := cmd.Flags()
	flags.StringSliceVar(&opts.fields, "field", nil, "Put back these fields alone, as they are recorded.")
	flags.BoolVarP(&opts.yes, "yes", "y", false, "Do not ask.")

	return cmd
}

// discarder puts back what was edited.
type discarder struct {
	*cluster

	opts discardOptions
	// out is where is said what was done, show what a person is shown before.
	out, show io.Writer
	paint     paint
	asker     asker
	// schemas returns the schema of a kind, as the API server publishes it.
	schemas func(gvk schema.GroupVersionKind) (*spec.Schema, error)
}

// discard puts back what was edited of one object.
func (d *discarder) discard(ctx context.Context, args []string) error {
	kind, name, err := split(args)
	if err != nil {
		return err
	}

	u, edits, err := d.edited(ctx, kind, name)
	if err != nil {
		return err
	}

	if edits, err = d.chosen(u, edits); err != nil {
		return err
	}

	if len(edits) == 0 {
		return say(d.out, "No edit of %s is recorded that is not allowed.\n", object(u))
	}

	sch, _ := d.schemas(u.GroupVersionKind()) // Without one what is there tells, or nothing.

	changed, list, stay := putBackAll(u, edits, sch)

	if err := say(d.show, "%s", d.diff(u, list, stay)); err != nil {
		return err
	}

	what := shortText(v1alpha1.ObjectReference{Kind: u.GetKind(), Name: u.GetName()})

	switch {
	case len(stay) > 0:
		return fmt.Errorf("cannot put back the edits of %s: %w: %s", what, errSomeStay, strings.Join(stay, "; "))
	case len(list) == 0:
		return say(d.out, "%s has the values from before already.\n", object(u))
	}

	if err := d.confirm(ctx, fmt.Sprintf("Put back %s of %s?", counted(len(list), "field"), what)); err != nil {
		return fmt.Errorf("cannot put back the edits of %s: %w", what, err)
	}

	return d.write(ctx, u, changed, len(list))
}

// edited reads the object that was edited: the one that is named, or else the one that people
// edit above it.
func (d *discarder) edited(ctx context.Context, kind, name string) (*unstructured.Unstructured, []v1alpha1.HeldChange, error) {
	u, err := d.Get(ctx, kind, name)
	if err != nil {
		return nil, nil, err
	}

	if u.GroupVersionKind().GroupKind() == pendingKind().GroupKind() {
		if u, err = d.objectOf(ctx, u); err != nil {
			return nil, nil, err
		}
	}

	edits, err := allowance.ParseStored(u)
	if err == nil && len(edits) == 0 {
		if u, err = d.rootOf(ctx, u); err != nil {
			return nil, nil, err
		}

		edits, err = allowance.ParseStored(u)
	}

	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", object(u), err)
	}

	return u, edits, nil
}

// objectOf reads the object that a PendingChange is about.
func (d *discarder) objectOf(ctx context.Context, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	p, err := pendingOf(u)
	if err != nil {
		return nil, err
	}

	ref := p.Spec.ObjectRef

	return d.find(ctx, resource.Reference{APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name})
}

// chosen are the edits of the fields that are named, or all.
func (d *discarder) chosen(u *unstructured.Unstructured, edits []v1alpha1.HeldChange) ([]v1alpha1.HeldChange, error) {
	if len(d.opts.fields) == 0 {
		return edits, nil
	}

	var out []v1alpha1.HeldChange

	for _, field := range d.opts.fields {
		i := slices.IndexFunc(edits, func(e v1alpha1.HeldChange) bool { return e.Field == field })
		if i < 0 {
			return nil, fmt.Errorf("cannot put back %s of %s: %w", field, object(u), errNoEdit)
		}

		if !slices.ContainsFunc(out, func(e v1alpha1.HeldChange) bool { return e.Field == field }) {
			out = append(out, edits[i])
		}
	}

	return out, nil
}

// putBackAll is an object with all values from before, what of that is another value than is
// there now, and what cannot be put back and why.
func putBackAll(
	u *unstructured.Unstructured, edits []v1alpha1.HeldChange, sch *spec.Schema,
) (changed *unstructured.Unstructured, list []putBack, stay []string) {
	for _, e := range edits {
		p, err := previous(u.Object, e, sch)
		if err != nil {
			stay = append(stay, visible(e.Field)+": "+err.Error())

			continue
		}

		// Of an element of a list it may be another one that has the value.
		now, ok := p.path.In(u.Object)
		if ok != p.remove && (!ok || change.Text(now, maxShown) == e.From) && firstIndex(p.path) < 0 {
			continue
		}

		list = append(list, p)
	}

	if len(stay) > 0 {
		slices.Sort(stay)

		return u, list, stay
	}

	object, ok := restoredObject(u.Object, list)
	if ok {
		return &unstructured.Unstructured{Object: object}, list, nil
	}

	for _, p := range list {
		if firstIndex(p.path) >= 0 {
			stay = append(stay, visible(p.edit.Field)+": "+errNoElement.Error())
		}
	}

	slices.Sort(stay)

	return u, list, stay
}

// diff writes what would be written.
func (d *discarder) diff(u *unstructured.Unstructured, list []putBack, stay []string) string {
	var out strings.Builder

	out.WriteString(d.paint.heading(visible(object(u))) + "\n")

	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b putBack) int { return strings.Compare(a.edit.Field, b.edit.Field) })

	for _, p := range list {
		fmt.Fprintf(&out, "  %s  (edited by %s at %s)\n", visible(p.edit.Field), visible(allowance.Author(p.edit)),
			allowance.StoredSince(p.edit).UTC().Format(time.RFC3339))

		if now, ok := p.path.In(u.Object); ok {
			writeLines(&out, d.paint.removed, "  - ", change.Text(mask.Value(p.path, now, u.Object), maxShown))
		}

		if !p.remove {
			writeLines(&out, d.paint.added, "  + ", p.edit.From)
		}
	}

	for _, text := range stay {
		out.WriteString("Cannot be put back: " + text + "\n")
	}

	return out.String()
}

func (d *discarder) confirm(ctx context.Context, question string) error {
	if d.opts.yes {
		return nil
	}

	err := d.asker.confirm(ctx, question)
	if errors.Is(err, errNoTerminal) {
		return usageError{errNoYes}
	}

	return err
}

// write has the API server take what was put back, unless the object is another one by now.
func (d *discarder) write(ctx context.Context, u, changed *unstructured.Unstructured, fields int) error {
	patch, err := mergePatch(u, changed)
	if err != nil {
		return err
	}

	if _, err := d.patch(ctx, u, patch); err != nil {
		return err
	}

	if d.dry.on() {
		return say(d.out, "%s of %s would have the value from before; nothing was changed\n", counted(fields, "field"), object(u))
	}

	return say(d.out, "%s of %s put back\n", counted(fields, "field"), object(u))
}

// mergePatch makes one object of another, with the resourceVersion by which the API server
// knows that nobody wrote it meanwhile. It is nil where both are the same.
func mergePatch(from, to *unstructured.Unstructured) (map[string]any, error) {
	out := merging(from.Object, to.Object)
	if len(out) == 0 {
		return nil, nil //nolint:nilnil // As patches are none.
	}

	return out, unstructured.SetNestedField(out, from.GetResourceVersion(), "metadata", "resourceVersion")
}

// merging is the JSON merge patch (RFC 7386) of two objects. That of a library reads numbers as
// floats, and great integers have more digits.
func merging(from, to map[string]any) map[string]any {
	out := map[string]any{}

	for key := range from {
		if _, ok := to[key]; !ok {
			out[key] = nil
		}
	}

	for key, is := range to {
		was, there := from[key]
		old, first := was.(map[string]any)
		now, second := is.(map[string]any)

		switch {
		case first && second:
			if sub := merging(old, now); len(sub) > 0 {
				out[key] = sub
			}
		case !there || !reflect.DeepEqual(was, is):
			out[key] = is
		}
	}

	return out
}
