// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/decision/explain"
	"github.com/kausality-io/kausality-crossplane/engine/decision/finding"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
)

// errNothingAsked is the cause where can is asked about no change.
var errNothingAsked = errors.New("name a field, as spec.size or spec.size=large, or create or delete, or give a manifest with -f")

func canCommand() *cobra.Command {
	var (
		opts  inquiryOptions
		files []string
	)

	cmd := &cobra.Command{
		Use:   "can KIND/NAME FIELD[=VALUE]... | -f FILE",
		Short: "Ask whether a change is allowed, and what it lacks",
		Long: "Ask whether somebody may change fields of an object as it is stored, create it or delete it: what the webhook, and for what an " +
			"XR composes the function, would decide, by which policy or for want of what, and what may follow. Nothing is changed.\n\n" +
			"FIELD is a path such as spec.size, or create or delete. With =VALUE, which is YAML, the object is looked at with that value; " +
			"without, as it is: conditions about the new value cannot be judged then. With -f it is asked about the fields that a manifest " +
			"names, of an object that is stored or is not yet.\n\n" +
			"It reads what it takes as whoever runs it, also where --as names somebody else: the object, its parent and namespace, policies, " +
			"bindings, windows, Enforcements and parameters. What may not be read is said. Whom the cluster's authorizer grants a Permission " +
			"it can ask for others only with the right to create subjectaccessreviews.\n\n" + exitHelp,
		Example: "  kubectl kausality can databaseclaim/my-database spec.size=large\n" +
			"  kubectl kausality can databaseclaim/my-database spec.size delete --as anna@example.com --as-group app-team\n" +
			"  kubectl kausality can -f claim.yaml",
		Args:              usageArgs(cobra.ArbitraryArgs),
		ValidArgsFunction: completeBy(&opts.clusterOptions),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(files) == 0 && len(args) < 2 || len(files) > 0 && len(args) > 0 {
				return usageError{errNothingAsked}
			}

			i, err := newInquirer(cmd.Context(), opts)
			if err != nil {
				return err
			}

			if len(files) > 0 {
				return i.canApply(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout(), files, opts.outputOptions)
			}

			return i.can(cmd.Context(), cmd.OutOrStdout(), args, opts.outputOptions)
		},
	}

	opts.flags(cmd)
	cmd.Flags().StringSliceVarP(&files, "filename", "f", nil, "Manifest to ask about; - for standard input. May be given several times.")

	return cmd
}

// can answers whether fields of one object may be changed.
func (i *inquirer) can(ctx context.Context, out io.Writer, args []string, as outputOptions) error {
	kind, name, err := split(args[:1])
	if err != nil {
		return err
	}

	asked, err := parseFields(args[1:])
	if err != nil {
		return err
	}

	from, err := i.Get(ctx, kind, name)

	switch {
	case apierrors.IsNotFound(err) && asked.create:
		if from, err = i.blank(kind, name); err != nil {
			return err
		}

		return i.answer(ctx, out, as, asked, nil, from)
	case err != nil:
		return err
	case asked.create:
		return usageError{fmt.Errorf("cannot ask whether %s may be created: %w", object(from), errExists)}
	}

	return i.answer(ctx, out, as, asked, from, from.DeepCopy())
}

// errExists is the cause where the creation of what exists is asked about.
var errExists = errors.New("it exists")

// blank is an object of which nothing but the name is known.
func (i *inquirer) blank(kind, name string) (*unstructured.Unstructured, error) {
	m, err := i.mapping(kind)
	if err != nil {
		return nil, err
	}

	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(m.GroupVersionKind)
	u.SetName(name)

	if m.Scope.Name() == "namespace" {
		u.SetNamespace(i.namespace)
	}

	return u, nil
}

// answer answers about one object, and prints that.
func (i *inquirer) answer(
	ctx context.Context, out io.Writer, as outputOptions, asked askedFields, from, to *unstructured.Unstructured,
) error {
	if err := asked.set(to); err != nil {
		return err
	}

	doc, err := i.judge(ctx, asked, from, to)
	if err != nil {
		return err
	}

	return printVerdicts(out, as, doc)
}

// judge decides what is asked of one object. Neither version is modified.
func (i *inquirer) judge(ctx context.Context, asked askedFields, from, to *unstructured.Unstructured) (verdictDocument, error) {
	if asked.delete {
		to = nil
	}

	req, problems := i.request(ctx, from, to)

	doc, err := verdictOf(req, asked.fields)
	doc.Problems = append(problems, doc.Problems...)

	return doc, err
}

// verdictDocument is what can prints for programs.
type verdictDocument struct {
	header `json:",inline"`

	Object objectRef `json:"object"`
	// User who would make the change, and groups.
	User   string   `json:"user"`
	Groups []string `json:"groups"`
	// Allowed is true where every change is allowed or not governed; the exit code is 3 where not.
	Allowed bool `json:"allowed"`
	// Action that is taken on changes that are not allowed: Deny, Hold, Warn or Audit; absent for none, where they
	// are stored and nothing follows.
	Action string `json:"action,omitempty"`
	// Changes that were asked about.
	Changes []verdictEntry `json:"changes"`
	// Follows are the allowances that would be left for what may follow.
	Follows []v1alpha1.Allowance `json:"follows"`
	// Problems say what could not be read.
	Problems []string `json:"problems,omitempty"`
}

// verdictEntry is what is decided of one change.
type verdictEntry struct {
	// Field that changes, or create or delete.
	Field string `json:"field"`
	// Verdict is Allowed, Unallowed or Ungoverned.
	Verdict string `json:"verdict"`
	// Rule that allows it, see [the rules](rules.md); absent where none does.
	Rule string `json:"rule,omitempty"`
	// Policy, UpgradeAllowance or ENFORCEMENT/EXCEPTION that allows it.
	Policy string `json:"policy,omitempty"`
	// Initiator is who is taken to have asked for it.
	Initiator string `json:"initiator,omitempty"`
	// Missing says what it would take, nearest first.
	Missing []string `json:"missing,omitempty"`
}

func (d verdictDocument) refs() []objectRef { return []objectRef{d.Object} }

// verdictOf decides a request. Of fields that it does not change it is found out what would
// be decided of some change.
func verdictOf(req request.Request, fields []string) (verdictDocument, error) {
	x, err := explained(req, fields)
	if err != nil {
		return verdictDocument{}, err
	}

	target := req.New
	if target == nil {
		target = req.Old
	}

	doc := verdictDocument{
		header: header{APIVersion: outputVersion, Kind: "Verdict"}, Object: refOf(target),
		User: req.User.Name, Groups: append([]string{}, req.User.Groups...), Allowed: true, Action: string(x.Action),
		Changes: []verdictEntry{}, Follows: []v1alpha1.Allowance{},
	}

	for _, f := range x.Changes {
		doc.Changes = append(doc.Changes, entryOf(f))
		doc.Allowed = doc.Allowed && f.Verdict != finding.Unallowed
	}

	for _, p := range x.Problems {
		doc.Problems = append(doc.Problems, p.Error())
	}

	d := decision.Decide(req)
	if d.Object != nil {
		doc.Follows = append(doc.Follows, newAllowances(req.Old, d.Object)...)
	}

	return doc, nil
}

// explained explains a request; with fields, what would be decided of a change of each.
func explained(req request.Request, fields []string) (explain.Explanation, error) {
	in := explain.Inquiry{Request: req}

	if len(fields) == 0 {
		return explain.Explain(in)
	}

	base, err := explain.Explain(in)
	if err != nil {
		return explain.Explanation{}, err
	}

	for _, f := range base.Changes {
		in.Changes = append(in.Changes, f.Change)
	}

	target := req.New
	if target == nil {
		target = req.Old
	}

	for _, text := range fields {
		c, err := explain.FieldChange(target.Object, text)
		if err != nil {
			return explain.Explanation{}, usageError{err}
		}

		if !slices.ContainsFunc(in.Changes, func(o change.Change) bool { return o.Field == c.Field }) {
			in.Changes = append(in.Changes, c)
		}
	}

	return explain.Explain(in)
}

// entryOf is a finding as it is printed.
func entryOf(f finding.Finding) verdictEntry {
	out := verdictEntry{
		Field: f.Change.Field, Verdict: string(f.Verdict), Rule: string(f.Rule), Policy: f.Policy, Initiator: f.Initiator(),
	}
	for _, l := range f.Lacks {
		out.Missing = append(out.Missing, l.String())
	}

	return out
}

// newAllowances are those that an object would carry and does not yet.
func newAllowances(from, to *unstructured.Unstructured) []v1alpha1.Allowance {
	list, err := allowance.Parse(to)
	if err != nil || from == nil {
		return list
	}

	had, _ := allowance.Parse(from)

	return slices.DeleteFunc(list, func(a v1alpha1.Allowance) bool {
		return slices.ContainsFunc(had, func(b v1alpha1.Allowance) bool { return a.ID == b.ID && a.Mutation == b.Mutation })
	})
}

// printVerdicts prints answers. The error is errNotAllowed where any change is not allowed.
func printVerdicts(out io.Writer, as outputOptions, docs ...verdictDocument) error {
	var failed error

	for _, d := range docs {
		if !d.Allowed && failed == nil {
			failed = fmt.Errorf("cannot change %s %s: %w", d.Object.Kind, d.Object.Name, errNotAllowed)
		}
	}

	if as.structured() {
		var all any = verdictsDocument{header: header{APIVersion: outputVersion, Kind: "VerdictList"}, Items: docs}
		if len(docs) == 1 {
			all = docs[0]
		}

		return errors.Join(as.print(out, all), failed)
	}

	var text strings.Builder
	for _, d := range docs {
		d.render(&text)
	}

	if err := say(out, "%s", wrap(text.String(), widthOf(out))); err != nil {
		return err
	}

	return failed
}

// verdictsDocument is what can prints for programs about several objects.
type verdictsDocument struct {
	header `json:",inline"`

	// Items are the answers, in the order of the manifests.
	Items []verdictDocument `json:"items"`
}

// render writes an answer for people.
func (d verdictDocument) render(out *strings.Builder) {
	name := d.Object.Name
	if d.Object.Namespace != "" {
		name = d.Object.Namespace + "/" + name
	}

	fmt.Fprintf(out, "%s %s, changed by %s:\n", d.Object.Kind, name, d.User)

	if len(d.Changes) == 0 {
		out.WriteString("- nothing that is governed changes\n")
	}

	for _, e := range d.Changes {
		fmt.Fprintf(out, "- %s: %s\n", e.Field, e.text(d.Action))

		for _, m := range e.Missing {
			fmt.Fprintf(out, "  - %s\n", m)
		}
	}

	for i, a := range d.Follows {
		if i == 0 {
			out.WriteString("Then may follow:\n")
		}

		fmt.Fprintf(out, "- %s\n", whatOf(a))
	}

	for _, p := range d.Problems {
		fmt.Fprintf(out, "Not known: %s\n", p)
	}
}

// text says what is decided.
func (e verdictEntry) text(action string) string {
	switch finding.Verdict(e.Verdict) {
	case finding.Allowed:
		if e.Policy == "" {
			return fmt.Sprintf("allowed (rule %s)", e.Rule)
		}

		return fmt.Sprintf("allowed by %s (rule %s)", e.Policy, e.Rule)
	case finding.Ungoverned:
		return "not governed: no policy is about it, and nothing follows from it"
	default:
		if action == "" {
			return "not allowed: it would be saved with a warning, and not applied"
		}

		return fmt.Sprintf("not allowed (%s)", action)
	}
}

// whatOf says what an allowance is for.
func whatOf(a v1alpha1.Allowance) string {
	if allowance.External(a) {
		return "external " + strings.Join(a.Mutations, ", ")
	}

	return a.Kind + " " + a.Mutation
}
