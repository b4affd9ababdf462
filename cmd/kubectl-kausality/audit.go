// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/kausality-io/kausality-crossplane/internal/audit"
)

// auditOptions say what to look for.
type auditOptions struct {
	clusterOptions

	functions           []string
	maxOpen, heldLonger time.Duration
	all, report         bool
}

func auditCommand() *cobra.Command {
	opts := auditOptions{}

	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Find what is not as asked for, and what can change unasked",
		Long: "Find what is not as somebody asked for it: values that are stored and were not allowed, or that a gate keeps from the " +
			"external object; what waits for somebody: changes that are held, with since when, what nobody owns any more, policies that " +
			"are not in force; and what can change without anybody having asked: open gates, XRs whose Composition does not run the " +
			"function, kinds that XRs compose and nobody governs, open windows and exceptions.\n\n" +
			"It reads as the user who runs it, and says what that user may not read. Without --namespace it looks at the whole cluster; " +
			"with it at what is in that namespace, and at the cluster-scoped XRs and resources that belong to Claims there. " +
			"Whether Kausality itself works is what doctor says.\n\n" +
			"With --report it also writes what it finds as Reports and a ClusterReport of OpenReports, named " + auditName + ", and deletes " +
			"those of an earlier run for which nothing is left. The manager keeps its own, named kausality, where OpenReports' CRDs are " +
			"installed.\n\n" + exitHelp + " Here 3 means that something was found.",
		Example: "  kubectl kausality audit\n" +
			"  kubectl kausality audit -n team-a --held-longer-than 24h\n" +
			"  kubectl kausality audit -o json | jq -r '.findings[] | select(.severity == \"high\") | .message'\n" +
			"  kubectl kausality audit --report --dry-run=server",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := newCluster(opts.clusterOptions)
			if err != nil {
				return err
			}

			if opts.all || !cmd.Flags().Changed("namespace") {
				c.namespace = ""
			}

			return runAudit(cmd.Context(), c, cmd.OutOrStdout(), newProgress(cmd.ErrOrStderr()), opts, time.Now())
		},
	}

	opts.writing(cmd)

	flags := cmd.Flags()
	functionNames(flags, &opts.functions)
	flags.DurationVar(&opts.maxOpen, "max-open", 0,
		"How long a gate may be open where no policy says. If not given, what the manager was started with.")
	flags.DurationVar(&opts.heldLonger, "held-longer-than", 0,
		"Leave out what is held for less, such as 24h. What nobody knows the time of is not left out.")
	flags.BoolVarP(&opts.all, "all-namespaces", "A", false, "Look at all namespaces, as without --namespace.")
	flags.BoolVar(&opts.report, "report", false, "Write what is found as Reports of OpenReports, too.")

	return cmd
}

// auditDocument is what audit prints for programs.
type auditDocument struct {
	header `json:",inline"`

	// Namespace that was looked at; absent for the whole cluster.
	Namespace string `json:"namespace,omitempty"`
	// Objects is how many were looked at, of so many Kinds.
	Objects int `json:"objects"`
	// Kinds is of how many kinds they are.
	Kinds int `json:"kinds"`
	// Findings are all that was found, what is not as asked for first. The exit code is 3
	// where there are any.
	Findings []audit.Finding `json:"findings"`
	// DryRun is true where no Report was written.
	DryRun bool `json:"dryRun,omitempty"`
	// Reports are those that were written or deleted, or would be.
	Reports []reportRef `json:"reports,omitempty"`
}

// reportRef is a Report that was written, or would be.
type reportRef struct {
	objectRef `json:",inline"`

	// Deleted is true where nothing was left to report, and it was deleted.
	Deleted bool `json:"deleted,omitempty"`
}

// refs are the objects that findings are about, each once.
func (d *auditDocument) refs() []objectRef {
	var out []objectRef

	for _, f := range d.Findings {
		ref := objectRef{APIVersion: f.Object.APIVersion, Kind: f.Object.Kind, Namespace: f.Object.Namespace, Name: f.Object.Name}
		if ref.Name != "" && !slices.Contains(out, ref) {
			out = append(out, ref)
		}
	}

	return out
}

// runAudit looks at a cluster, prints what it finds, and writes Reports if it is to. The
// error is errFinding if there is something.
func runAudit(ctx context.Context, c *cluster, out io.Writer, show *progress, opts auditOptions, now time.Time) error {
	if err := opts.validate(); err != nil {
		return err
	}

	// 1. Look.
	doc, complete, err := auditing{cluster: c, show: show}.look(ctx, opts, now)

	show.done()

	if err != nil {
		return err
	}

	// 2. Report.
	if opts.report {
		doc.DryRun = c.dry.on()
		doc.Reports, err = reporting{c}.write(ctx, doc.Findings, complete, now)
		if err != nil {
			return err
		}
	}

	// 3. Print.
	if opts.structured() {
		err = opts.print(out, &doc)
	} else {
		err = say(out, "%s", wrap(doc.text(now), widthOf(out)))
	}

	if err == nil && len(doc.Findings) > 0 {
		err = errFinding
	}

	return err
}

// headings of categories, in their order.
func headings() []struct {
	category audit.Category
	text     string
} {
	return []struct {
		category audit.Category
		text     string
	}{
		{audit.Changed, "Not as asked for"},
		{audit.Pending, "Waits for somebody"},
		{audit.Changeable, "Can change without anybody having asked"},
		{audit.Unknown, "Not known"},
	}
}

// text is the document for people.
func (d *auditDocument) text(now time.Time) string {
	var out strings.Builder

	count := map[audit.Severity]int{}

	for _, h := range headings() {
		first := true

		for _, f := range d.Findings {
			if f.Category != h.category {
				continue
			}

			if first {
				fmt.Fprintf(&out, "%s:\n", h.text)
			}

			first = false
			count[f.Severity]++

			fmt.Fprint(&out, findingText(f, now))
		}

		if !first {
			fmt.Fprintln(&out)
		}
	}

	for _, r := range d.Reports {
		verb := "is written"
		if d.DryRun {
			verb = "would be written"
		}

		if r.Deleted {
			verb = strings.Replace(verb, "written", "deleted", 1)
		}

		fmt.Fprintf(&out, "%s %s %s\n", r.Kind, path(r.Namespace, r.Name), verb)
	}

	fmt.Fprintf(&out, "%d high, %d medium, %d low, %d info; %d objects of %d kinds were looked at\n",
		count[audit.High], count[audit.Medium], count[audit.Low], count[audit.Info], d.Objects, d.Kinds)

	return out.String()
}

// findingText is a finding for people.
func findingText(f audit.Finding, now time.Time) string {
	since := ""
	if f.Since != nil {
		since = fmt.Sprintf(", since %s (%s)", f.Since.UTC().Format(time.RFC3339), duration.HumanDuration(now.Sub(f.Since.Time)))
	}

	return fmt.Sprintf("- %s: %s (%s%s): %s\n    why: %s\n    remedy: %s\n",
		strings.ToUpper(string(f.Severity)), f.Object, f.Rule, since, f.Message, f.Why, f.Remedy)
}
