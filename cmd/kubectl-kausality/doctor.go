// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kausality-io/kausality-crossplane/internal/doctor"
)

// doctorOptions say what to check.
type doctorOptions struct {
	clusterOptions

	functions []string
	maxOpen   time.Duration
	homeGiven bool
	all       bool
	verbose   bool
	// roles prints the roles that are missing, platform checks all that is
	// Crossplane's, governed or not, and held prints those that are there, too.
	roles, platform, held bool
	// owners are resources to be read besides, as RESOURCE.GROUP.
	owners []string
}

func doctorCommand() *cobra.Command {
	opts := doctorOptions{}

	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Find out whether all is installed and at work",
		Long: "Find out whether Kausality is installed and at work as it should be: kinds, webhook configurations, guards, " +
			"the manager and its rights, whether the API server reaches each webhook (by dry-run requests), certificates, " +
			"the function and the Compositions that need it, " +
			"versions of Crossplane and providers, policies, Enforcements, windows, what is held for a day, gates that are overdue, orphans.\n\n" +
			"Of each finding it says what it is, why it matters and what helps. Nothing is changed. What it may not read it says, " +
			"as a warning. The manager is found by what it writes on its webhook configurations, or else by its Deployment. Without " +
			"--namespace managed resources of all namespaces are looked at.\n\n" +
			"With --roles it prints, for kubectl apply, the ClusterRoles that give the manager the rights it lacks for what is governed, and " +
			"nothing else; with --crossplane also those for all other kinds of Claims, XRs and managed resources there are, " +
			"with --for those to read what owns objects that are governed, and with --all-rights also those of rights that it has by now.\n\n" +
			exitHelp,
		Example: "  kubectl kausality doctor\n" +
			"  kubectl kausality doctor --roles | kubectl apply -f -\n" +
			"  kubectl kausality doctor -n team-a -o json | jq '.findings[] | select(.severity == \"error\")'",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := newCluster(opts.clusterOptions)
			if err != nil {
				return err
			}

			opts.homeGiven = cmd.Flags().Changed(homeName)

			if opts.all || !cmd.Flags().Changed("namespace") {
				c.namespace = ""
			}

			if !opts.roles && (opts.platform || opts.held || len(opts.owners) > 0) {
				return usageError{errOnlyRoles}
			}

			if opts.roles {
				return prescribe(cmd.Context(), c, cmd.OutOrStdout(), cmd.ErrOrStderr(), opts)
			}

			return diagnose(cmd.Context(), c, cmd.OutOrStdout(), opts)
		},
	}

	opts.flags(cmd)
	opts.homeFlag(cmd)

	cmd.PreRun = nil // It finds the manager itself.

	flags := cmd.Flags()
	functionNames(flags, &opts.functions)
	flags.DurationVar(&opts.maxOpen, "max-open", 0,
		"How long a gate may be open where no policy says. If not given, what the manager was started with.")
	flags.BoolVarP(&opts.all, "all-namespaces", "A", false, "Look at managed resources in all namespaces, as without --namespace.")
	flags.BoolVar(&opts.roles, "roles", false, "Print the ClusterRoles that the manager lacks, as YAML, and nothing else.")
	flags.BoolVar(&opts.platform, "crossplane", false, "Ask for the rights on all Claims, XRs and managed resources, governed or not.")
	flags.BoolVar(&opts.held, "all-rights", false, "With --roles, print those of rights that the manager has, too.")
	flags.StringSliceVar(&opts.owners, "for", nil, "With --roles, also what it takes to read owners of what is governed, as RESOURCE.GROUP.")
	flags.BoolVarP(&opts.verbose, "verbose", "v", false, "Show what is fine, too.")

	return cmd
}

// diagnosis is what doctor prints for programs.
type diagnosis struct {
	header `json:",inline"`

	// Severity is the worst of all findings: ok, warning or error.
	Severity doctor.Severity `json:"severity"`
	// Findings are all that was found, in the order of the checks.
	Findings []doctor.Finding `json:"findings"`
}

// diagnose checks a cluster and prints what it finds. The error is errFinding
// if something is wrong.
func diagnose(ctx context.Context, c *cluster, out io.Writer, opts doctorOptions) error {
	state, err := examination{c}.state(ctx, opts)
	if err != nil {
		return err
	}

	found := doctor.Diagnose(state)
	worst := doctor.Worst(found)

	if opts.structured() {
		err = opts.print(out, diagnosis{header{outputVersion, "Diagnosis"}, worst, found})
	} else {
		err = say(out, "%s", prescription(found, opts.verbose))
	}

	if err == nil && worst == doctor.Error {
		err = errFinding
	}

	return err
}

// prescription writes findings for people.
func prescription(found []doctor.Finding, verbose bool) string {
	var out strings.Builder

	count := map[doctor.Severity]int{}

	for _, f := range found {
		count[f.Severity]++

		if f.Severity == doctor.OK && !verbose {
			continue
		}

		fmt.Fprintf(&out, "%-7s  %s: ", strings.ToUpper(string(f.Severity)), f.Check)

		if f.Object != "" {
			fmt.Fprintf(&out, "%s: ", f.Object)
		}

		fmt.Fprintln(&out, f.What)

		for _, line := range [][2]string{{"why", f.Why}, {"remedy", f.Remedy}} {
			if line[1] != "" {
				fmt.Fprintf(&out, "         %s: %s\n", line[0], line[1])
			}
		}
	}

	fmt.Fprintf(&out, "%d errors, %d warnings, %d ok\n", count[doctor.Error], count[doctor.Warning], count[doctor.OK])

	return out.String()
}
