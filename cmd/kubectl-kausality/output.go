// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// outputVersion is the version of what commands print with --output: fields are
// added to it, and never renamed or removed.
const outputVersion = "cli.kausality.io/v1alpha1"

// Formats of --output; without it commands print for people.
const (
	formatJSON = "json"
	formatYAML = "yaml"
)

// errFormat is the cause when --output is something else.
var errFormat = errors.New("give json or yaml")

// outputOptions say how to print.
type outputOptions struct{ format string }

func (o *outputOptions) flags(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&o.format, "output", "o", "", "Print as json or yaml, of apiVersion "+outputVersion+"; for people without it.")

	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{formatJSON, formatYAML}, cobra.ShellCompDirectiveNoFileComp))
}

// validate is to be called before anything is done.
func (o *outputOptions) validate() error {
	switch o.format {
	case "", formatJSON, formatYAML:
		return nil
	default:
		return usageError{fmt.Errorf("cannot print as %q: %w", o.format, errFormat)}
	}
}

// structured says whether to print for programs.
func (o *outputOptions) structured() bool { return o.format != "" }

// print writes a document.
func (o *outputOptions) print(out io.Writer, document any) error {
	var raw []byte

	var err error

	if o.format == formatYAML {
		raw, err = yaml.Marshal(document)
	} else {
		raw, err = json.MarshalIndent(document, "", "  ")
		raw = append(raw, '\n')
	}

	if err != nil {
		return fmt.Errorf("cannot encode as %s: %w", o.format, err)
	}

	if _, err := out.Write(raw); err != nil {
		return fmt.Errorf("cannot print: %w", err)
	}

	return nil
}

// header starts every document.
type header struct {
	APIVersion string `json:"apiVersion"`
	// Kind of the document: Trace, Answer, Result, Diagnosis or Version.
	Kind string `json:"kind"`
}

// objectRef names an object of the cluster.
type objectRef struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	Generation int64  `json:"generation,omitempty"`
}

func refOf(u *unstructured.Unstructured) objectRef {
	return objectRef{
		APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName(),
		Generation: resource.Generation(u),
	}
}

// resultDocument is what a command that changes something prints.
type resultDocument struct {
	header `json:",inline"`

	// DryRun is true where nothing was changed.
	DryRun bool `json:"dryRun,omitempty"`
	// Done are the steps that were made, in order and in words, also where a later
	// one failed.
	Done []string `json:"done"`
}

// result runs a command that says what it does line by line, and prints that.
func (o *outputOptions) result(out io.Writer, dry bool, run func(io.Writer) error) error {
	if !o.structured() {
		return run(out)
	}

	var said bytes.Buffer

	err := run(&said)
	doc := resultDocument{header: header{APIVersion: outputVersion, Kind: "Result"}, DryRun: dry, Done: []string{}}

	for line := range strings.Lines(said.String()) {
		doc.Done = append(doc.Done, strings.TrimSpace(line))
	}

	return errors.Join(err, o.print(out, doc))
}
