// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
)

func explainCommand() *cobra.Command {
	var opts inquiryOptions

	cmd := &cobra.Command{
		Use:   "explain KIND/NAME [FIELD[=VALUE]]...",
		Short: "Show all that decides what may be changed of an object",
		Long: "Show in the most explicit form what decides whether an object may be changed, in the order in which it is tried: " +
			"the allowances of its parent, UpgradeAllowances, AllowancePolicies with each condition, subject and binding, " +
			"the phase of its parent, and Enforcements with their exceptions. Defaults are filled in, and of each it says whether " +
			"it holds for the object as it is, and for the user.\n\n" +
			"With FIELD, a path such as spec.size, or create or delete, it shows what is about that field, and what would be decided of a change " +
			"of it. With =VALUE, which is YAML, the object is looked at with that value; without, as it is: conditions about a new value " +
			"cannot be judged then.\n\n" +
			"It reads as whoever runs it, also where --as names somebody else. What may not be read is said.\n\n" + exitHelp,
		Example: "  kubectl kausality explain databaseclaim/my-database\n" +
			"  kubectl kausality explain databaseclaim/my-database spec.size=large --as anna@example.com --as-group app-team",
		Args:              usageArgs(cobra.MinimumNArgs(1)),
		ValidArgsFunction: completeBy(&opts.clusterOptions),
		RunE: func(cmd *cobra.Command, args []string) error {
			i, err := newInquirer(cmd.Context(), opts)
			if err != nil {
				return err
			}

			return i.explain(cmd.Context(), cmd.OutOrStdout(), args, opts.outputOptions)
		},
	}

	opts.objects = true
	opts.flags(cmd)

	return cmd
}

// explain prints what holds for one object.
func (i *inquirer) explain(ctx context.Context, out io.Writer, args []string, as outputOptions) error {
	kind, name, err := split(args[:1])
	if err != nil {
		return err
	}

	values, fields, err := askedValues(args[1:])
	if err != nil {
		return err
	}

	u, err := i.Get(ctx, kind, name)
	if err != nil {
		return err
	}

	to := u.DeepCopy()
	if err := values.set(to); err != nil {
		return err
	}

	req, problems := i.request(ctx, u, to)

	doc, err := explanationOf(req, fields)
	if err != nil {
		return err
	}

	doc.Problems = append(problems, doc.Problems...)

	if as.structured() {
		return as.print(out, doc)
	}

	return say(out, "%s", wrap(doc.render(), widthOf(out)))
}

// askedValues are the values that are asked about, and the fields: those that get values, and
// others.
func askedValues(args []string) (askedFields, []string, error) {
	var with []string

	fields := make([]string, 0, len(args))

	for _, arg := range args {
		path, _, given := strings.Cut(arg, "=")
		if given {
			with = append(with, arg)
		}

		fields = append(fields, path)
	}

	values, err := parseFields(with)

	return values, fields, err
}

// explanationOf explains what holds for the object of a request, and for fields of it.
func explanationOf(req request.Request, fields []string) (explanationDocument, error) {
	// What is deleted or created has other conditions than what is changed.
	if len(fields) == 1 && fields[0] == string(deletion) {
		req.Operation, req.New, fields = request.OperationDelete, nil, nil
	}

	x, err := explained(req, fields)
	if err != nil {
		return explanationDocument{}, err
	}

	return documentOfExplanation(req, x), nil
}
