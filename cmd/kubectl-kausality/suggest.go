// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/internal/suggestion"
)

// errIncomplete is the cause when a Composition could not be followed all the way.
var errIncomplete = errors.New("not all of it could be followed: see the warnings")

// What --external says.
const (
	externalUpdate = "Update"
	externalNone   = "none"
)

// suggestOptions say what to suggest, and from what.
type suggestOptions struct {
	clusterOptions

	// logs are files, or - for standard input.
	logs []string

	files    []string
	subjects []string
	external string
	// crossplane is the user name that Crossplane works under.
	crossplane string
	functions  []string
	prefix     string
	create     bool
	remove     bool
	held       bool
}

func suggestCommand() *cobra.Command {
	opts := suggestOptions{}

	cmd := &cobra.Command{
		Use:   "suggest [COMPOSITION]",
		Short: "Suggest AllowancePolicies for a Composition, ready to review",
		Long: "Suggest AllowancePolicies for a Composition: which fields of what it composes may follow from which field of the Claim " +
			"and the XR, with one policy for all fields that lead to the same. The patches of function-patch-and-transform are followed exactly, " +
			"also those of Compositions without a pipeline: through PatchSets, the environment, the XR's status, and the Compositions of XRs that " +
			"are composed. Comments say which patch each mutation comes from, and what no policy is about. Of what other functions compose, " +
			"that is suggested which was seen: --from-log reads what kausality-manager and function-kausality wrote with --decision-log, and " +
			"--held what the conditions of XRs report as held or, in mode Audit, as passed. Comments say how often and where each was seen, and " +
			"what is a GUESS: fields of the XR of which several were changed each time. Nothing is suggested that was not seen.\n\n" +
			"The Composition, its CompositeResourceDefinition and the CustomResourceDefinitions of what it composes are read from the cluster, " +
			"or from files, and then no cluster is asked. Nothing is written. What could not be followed is said on standard error.\n\n" + exitHelp,
		Example: "  kubectl kausality suggest xdatabases.example.org --subject Group=platform-team > policies.yaml\n" +
			"  # From files, without a cluster.\n" +
			"  kubectl kausality suggest -f examples/nested-xr --subject Group=platform-team --subject ServiceAccount=ci/deployer\n" +
			"  # What another function composes, once it was seen.\n" +
			"  kubectl kausality suggest -f composition.yaml -f xrd.yaml --from-log manager.log --from-log function.log\n" +
			"  kubectl kausality suggest xqueues.example.org --held",
		Args: usageArgs(cobra.MaximumNArgs(1)),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, text string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}

			return opts.complete(cmd.Context(), func(ctx context.Context, c *cluster) []string { return c.names(ctx, compositions, text) })
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return suggestFrom(cmd.Context(), opts, strings.Join(args, ""), cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}

	opts.suggesting(cmd)

	return cmd
}

// suggesting adds the flags.
func (o *suggestOptions) suggesting(cmd *cobra.Command) {
	o.flags(cmd)

	flags := cmd.Flags()
	flags.Lookup("output").Usage = "Print as yaml, with comments, or as json, a List of AllowancePolicies without; or what " +
		formatPath + "TEMPLATE takes of that."
	flags.StringSliceVarP(&o.files, "filename", "f", nil,
		"Files, or directories of them, with the Composition, CompositeResourceDefinitions, Compositions of XRs that it composes, "+
			"CustomResourceDefinitions and, with --held, XRs; - for standard input.")
	flags.StringArrayVar(&o.subjects, "subject", nil,
		"Who may start a change: User=NAME, Group=NAME, ServiceAccount=NAMESPACE/NAME (or its user name) or Permission=NAME. "+
			"May be given again. "+
			"Without any the policies let nobody in, and say where to write it.")
	flags.StringVar(&o.external, "external", externalUpdate,
		"What a provider may do where a managed resource changes: Update (and Create where one is made), or none.")
	flags.StringVar(&o.crossplane, "crossplane-service-account", defaultCrossplane, "User name Crossplane works under.")
	flags.StringVar(&o.prefix, "policy-prefix", "", "What the policies' names begin with.")
	flags.BoolVar(&o.create, "create", true, "Let the subjects make Claims, or XRs that have none.")
	flags.BoolVar(&o.remove, "delete", false, "Let the subjects delete Claims, or XRs that have none, and all they stand for.")
	flags.StringArrayVar(&o.logs, "from-log", nil,
		"Decision log, also a compressed one, or - for standard input, of which to suggest what was seen, too. May be given again.")
	flags.BoolVar(&o.held, "held", false, "Suggest what conditions of the Composition's XRs report as held or passed, too.")
	functionNames(flags, &o.functions)

	_ = cmd.RegisterFlagCompletionFunc("external",
		cobra.FixedCompletions([]string{externalUpdate, externalNone}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("subject", cobra.FixedCompletions(
		[]string{"User=", "Group=", "ServiceAccount=", "Permission="}, cobra.ShellCompDirectiveNoSpace|cobra.ShellCompDirectiveNoFileComp,
	))
}

// suggestFrom reads what there is to read, suggests, and prints. The error is errIncomplete
// where something could not be followed.
func suggestFrom(ctx context.Context, o suggestOptions, name string, in io.Reader, out, warnings io.Writer) error {
	how, err := o.options()
	if err != nil {
		return err
	}

	if err := o.validate(); err != nil {
		return err
	}

	read := materialReader{suggestOptions: o, in: in}

	m, err := read.material(ctx, name)
	if err != nil {
		return err
	}

	if err := read.observe(ctx, &m, newProgress(warnings)); err != nil {
		return err
	}

	s, err := suggestion.Suggest(m, how)
	if err != nil {
		return err
	}

	return printSuggestion(s, how, read.problems, o.outputOptions, out, warnings)
}

// options are those of suggestions.
func (o *suggestOptions) options() (suggestion.Options, error) {
	out := suggestion.Options{
		External: o.external == externalUpdate, Create: o.create, Delete: o.remove, Prefix: o.prefix, Silent: o.functions,
	}

	if o.external != externalUpdate && o.external != externalNone {
		return out, usageError{fmt.Errorf("cannot suggest --external=%s: %w", o.external, errExternal)}
	}

	for _, text := range o.subjects {
		s, err := subjectOf(text)
		if err != nil {
			return out, err
		}

		s.MayInitiate = true
		out.Subjects = append(out.Subjects, s)
	}

	var err error
	if out.Crossplane, err = userOf(o.crossplane); err != nil {
		return out, err
	}

	return out, checkPrefix(o.prefix)
}

// Causes of errors in the command line.
var (
	errExternal = errors.New("give Update or none; what has an external object made anew is written by hand")
	errSubject  = errors.New("give User=NAME, Group=NAME, ServiceAccount=NAMESPACE/NAME or Permission=NAME")
	errUser     = errors.New("give a user name; that of a service account is system:serviceaccount:NAMESPACE:NAME")
	errPrefix   = errors.New("it has to begin a name: with a lower-case letter or digit, and with these, - and . behind it")
)

// subjectOf reads a subject.
func subjectOf(text string) (v1alpha1.Subject, error) {
	kind, name, _ := strings.Cut(text, "=")
	out := v1alpha1.Subject{Kind: v1alpha1.SubjectKind(kind), Name: name}
	wrong := usageError{fmt.Errorf("cannot read subject %q: %w", text, errSubject)}

	switch out.Kind {
	case v1alpha1.SubjectUser, v1alpha1.SubjectGroup:
	case v1alpha1.SubjectPermission:
		if len(suggestion.NameErrors(name)) > 0 {
			return out, wrong
		}
	case v1alpha1.SubjectServiceAccount:
		var ok bool
		if out.Namespace, out.Name, ok = accountOf(name); !ok {
			return out, wrong
		}
	default:
		return out, wrong
	}

	if out.Name == "" {
		return out, wrong
	}

	return out, nil
}

// accountOf reads a service account, as NAMESPACE/NAME or as its user name.
func accountOf(text string) (namespace, name string, ok bool) {
	if namespace, name, err := serviceaccount.SplitUsername(text); err == nil {
		return namespace, name, true
	}

	namespace, name, _ = strings.Cut(text, "/")

	return namespace, name, len(validation.IsDNS1123Label(namespace))+len(validation.IsDNS1123Subdomain(name)) == 0
}

// userOf is the subject of a user name: a service account where it is that of one.
func userOf(name string) (v1alpha1.Subject, error) {
	namespace, account, err := serviceaccount.SplitUsername(name)
	if err == nil {
		return v1alpha1.Subject{Kind: v1alpha1.SubjectServiceAccount, Namespace: namespace, Name: account}, nil
	}

	// NAMESPACE/NAME is none, and nobody would notice before the policy lets nobody in.
	if _, _, ok := accountOf(name); ok || name == "" || strings.HasPrefix(name, serviceaccount.ServiceAccountUsernamePrefix) {
		return v1alpha1.Subject{}, usageError{fmt.Errorf("cannot take %q as --crossplane-service-account: %w", name, errUser)}
	}

	return v1alpha1.Subject{Kind: v1alpha1.SubjectUser, Name: name}, nil
}

// checkPrefix is an error where no name of a policy can begin so.
func checkPrefix(prefix string) error {
	if errs := suggestion.NameErrors(prefix + "a"); len(errs) > 0 {
		return usageError{fmt.Errorf("cannot take %q as --policy-prefix: %w", prefix, errPrefix)}
	}

	return nil
}

// listDocument is what suggest prints as JSON: a List, as kubectl apply takes it.
type listDocument struct {
	APIVersion string           `json:"apiVersion"`
	Kind       string           `json:"kind"`
	Items      []policyDocument `json:"items"`
}

// policyDocument is an AllowancePolicy that nobody has stored yet.
type policyDocument struct {
	metav1.TypeMeta `json:",inline"`

	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec v1alpha1.AllowancePolicySpec `json:"spec"`
}

// printSuggestion prints policies, and on standard error what could not be followed.
func printSuggestion(s suggestion.Suggestion, how suggestion.Options, unread []string, as outputOptions, out, warnings io.Writer) error {
	var err error

	if as.format == "" || as.format == formatYAML {
		err = say(out, "%s", s.Manifest())
	} else {
		doc := listDocument{APIVersion: "v1", Kind: "List", Items: []policyDocument{}}

		for _, p := range s.Policies {
			item := policyDocument{TypeMeta: p.Policy.TypeMeta, Spec: p.Policy.Spec}
			item.Metadata.Name = p.Policy.Name
			doc.Items = append(doc.Items, item)
		}

		err = as.print(out, doc)
	}

	if err != nil {
		return err
	}

	if len(how.Subjects) == 0 && len(s.Policies) > 0 {
		fmt.Fprintf(warnings, "Warning: no --subject is given: the policies let nobody start anything until %q is replaced in them\n",
			suggestion.ReplaceMe().Name)
	}

	for _, u := range unread {
		fmt.Fprintf(warnings, "Warning: %s\n", u)
	}

	for _, p := range s.Problems {
		fmt.Fprintf(warnings, "Warning: %s\n", p)
	}

	if len(s.Problems)+len(unread) > 0 {
		return errIncomplete
	}

	return nil
}

// compositions is the resource of Compositions.
const compositions = "compositions.apiextensions.crossplane.io"
