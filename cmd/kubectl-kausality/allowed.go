// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/decision/explain"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/inforce"
	"github.com/kausality-io/kausality-crossplane/internal/doctor"
)

// Reasons why an action is not taken.
var (
	errNotAllowed = errors.New("it is not allowed")
	errNoAction   = errors.New("say what is about to be done, with --action, such as apply or sync")
)

// actionReader reads what it takes to answer.
type actionReader interface {
	getter
	list(ctx context.Context, src doctor.Source, namespace string) doctor.List
}

func allowedCommand() *cobra.Command {
	var (
		opts   clusterOptions
		action string
	)

	cmd := &cobra.Command{
		Use:   "allowed KIND/NAME --action ACTION",
		Short: "Ask whether another system may do something now",
		Long: "Ask whether another system, such as Terraform or Argo CD, may do something for an object as it is stored: whether a " +
			"change that lets the action out was allowed, and none since that does not. Run it before terraform apply, or in a hook before " +
			"a sync. Of a managed resource Create, Update and Delete can be asked for as well: whether its gate is open.\n\n" +
			"It says who asked for it, or what is missing. It reads the object, and AllowancePolicies and UpgradeAllowances, " +
			"if it may.\n\n" + exitHelp,
		Example: "  # Apply only what somebody asked for.\n" +
			"  kubectl kausality allowed workspace/network --action apply && terraform apply\n" +
			"  # In a hook of Argo CD.\n" +
			"  kubectl kausality allowed application.argoproj.io/shop -n argocd --action sync",
		Args:              usageArgs(cobra.RangeArgs(1, 2)),
		ValidArgsFunction: completeObject(&opts),
		RunE: func(cmd *cobra.Command, args []string) error {
			if action == "" {
				return usageError{errNoAction}
			}

			c, err := newCluster(opts)
			if err != nil {
				return err
			}

			return ask(cmd.Context(), c, cmd.OutOrStdout(), args, action, opts.outputOptions)
		},
	}

	opts.flags(cmd)
	cmd.Flags().StringVar(&action, "action", "",
		"What is about to be done, as mutations of External in policies say it: apply, destroy, sync.")

	return cmd
}

// answerDocument is what allowed prints for programs.
type answerDocument struct {
	header `json:",inline"`

	Object objectRef `json:"object"`
	// Action that was asked about.
	Action string `json:"action"`
	// Allowed is true where it may be done now; the exit code is 3 where not.
	Allowed bool `json:"allowed"`
	// By are the allowances that let it out.
	By []v1alpha1.Allowance `json:"by"`
	// Missing says why it is not allowed, and what helps.
	Missing []string `json:"missing"`
}

// ask answers whether an action may be taken for one object. The error is
// errNotAllowed where it may not.
func ask(ctx context.Context, from actionReader, out io.Writer, args []string, action string, as outputOptions) error {
	kind, name, err := split(args)
	if err != nil {
		return err
	}

	u, err := from.Get(ctx, kind, name)
	if err != nil {
		return err
	}

	set, unread := policiesOf(ctx, from)

	answer, err := explain.DecideAction(explain.ActionRequest{
		Object: u, Action: action, Basis: set.Basis(request.Settings{}, time.Now()),
	})
	if err != nil {
		return fmt.Errorf("%s: %w", object(u), err)
	}

	doc := answerDocument{
		header: header{outputVersion, "Answer"}, Object: refOf(u), Action: action,
		Allowed: answer.Allowed, By: answer.By, Missing: answer.Missing,
	}

	if !answer.Allowed {
		doc.Missing = append(doc.Missing, unread...)
	}

	if err := doc.write(out, u, as); err != nil {
		return err
	}

	if !answer.Allowed {
		return fmt.Errorf("cannot %s %s: %w", action, object(u), errNotAllowed)
	}

	return nil
}

// write prints an answer.
func (d answerDocument) write(out io.Writer, u *unstructured.Unstructured, as outputOptions) error {
	// Lists are lists, also empty ones.
	if d.By == nil {
		d.By = []v1alpha1.Allowance{}
	}

	if d.Missing == nil {
		d.Missing = []string{}
	}

	if as.structured() {
		return as.print(out, d)
	}

	var text strings.Builder

	verdict := "is allowed"
	if !d.Allowed {
		verdict = "is not allowed"
	}

	fmt.Fprintf(&text, "%s: %s %s\n", object(u), d.Action, verdict)

	for _, a := range d.By {
		fmt.Fprintf(&text, "- %s (generation %d%s)\n", givenBy(a), a.Generation, byPolicy(a))
	}

	for _, m := range d.Missing {
		fmt.Fprintf(&text, "- %s\n", m)
	}

	return say(out, "%s", text.String())
}

// byPolicy names the policy that gave an allowance; none did what is made while
// its parent is initializing.
func byPolicy(a v1alpha1.Allowance) string {
	if a.Policy == "" {
		return ""
	}

	return ", policy " + a.Policy
}

// policiesOf reads what says who may allow what. What may not be read is said.
func policiesOf(ctx context.Context, from actionReader) (*inforce.Set, []string) {
	var (
		policies []v1alpha1.AllowancePolicy
		windows  []v1alpha1.UpgradeAllowance
		unread   []string
	)

	for _, src := range []doctor.Source{doctor.AllowancePolicies, doctor.UpgradeAllowances} {
		list := from.list(ctx, src, "")
		if list.Problem != "" {
			unread = append(unread, "what could allow it is not known: "+list.Problem)
		}

		for _, u := range list.Items {
			var err error

			if src == doctor.AllowancePolicies {
				policies, err = appendAs(policies, u)
			} else {
				windows, err = appendAs(windows, u)
			}

			if err != nil {
				unread = append(unread, err.Error())
			}
		}
	}

	return inforce.NewCache().Set(inforce.Objects{Policies: policies, Windows: windows}), unread
}

// appendAs adds an object to a list of its type.
func appendAs[T any](list []T, u *unstructured.Unstructured) ([]T, error) {
	var out T

	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &out); err != nil {
		return list, fmt.Errorf("cannot read %s: %w", object(u), err)
	}

	return append(list, out), nil
}
