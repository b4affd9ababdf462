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
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/util/jsonpath"
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
	// formatName prints objects as kubectl names them.
	formatName = "name"
	// formatPath begins a JSONPath template, as kubectl takes it.
	formatPath = "jsonpath="
)

// errFormat is the cause when --output is something else.
var errFormat = errors.New("give json, yaml or " + formatPath + "TEMPLATE")

// outputOptions say how to print.
type outputOptions struct {
	format string
	// objects is true of a command about objects, which can be named.
	objects bool
}

func (o *outputOptions) flags(cmd *cobra.Command) {
	formats, more := []string{formatJSON, formatYAML, formatPath}, ""
	if o.objects {
		formats, more = append(formats, formatName), "; as name, the objects alone"
	}

	cmd.Flags().StringVarP(&o.format, "output", "o", "",
		"Print as json or yaml, or what "+formatPath+"TEMPLATE takes of these, of apiVersion "+outputVersion+more+"; for people without it.")

	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
}

// validate is to be called before anything is done.
func (o *outputOptions) validate() error {
	switch {
	case o.format == "" || o.format == formatJSON || o.format == formatYAML || o.format == formatName && o.objects:
		return nil
	case strings.HasPrefix(o.format, formatPath):
		_, err := o.template()

		return err
	case o.objects:
		return usageError{fmt.Errorf("cannot print as %q: %w, or %s", o.format, errFormat, formatName)}
	default:
		return usageError{fmt.Errorf("cannot print as %q: %w", o.format, errFormat)}
	}
}

// template parses that of a JSONPath. As with kubectl, what is not there prints as
// nothing.
func (o *outputOptions) template() (*jsonpath.JSONPath, error) {
	t := jsonpath.New("output").AllowMissingKeys(true)
	if err := t.Parse(strings.TrimPrefix(o.format, formatPath)); err != nil {
		return nil, usageError{fmt.Errorf("cannot print as %q: %w", o.format, err)}
	}

	return t, nil
}

// structured reports whether to print for programs.
func (o *outputOptions) structured() bool { return o.format != "" }

// listing is a document about objects.
type listing interface{ refs() []objectRef }

// print writes a document.
func (o *outputOptions) print(out io.Writer, document any) error {
	var raw []byte

	var err error

	switch {
	case o.format == formatYAML:
		raw, err = yaml.Marshal(document)
	case o.format == formatName:
		raw = names(document)
	case strings.HasPrefix(o.format, formatPath):
		raw, err = o.take(document)
	default:
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

// take is what a template takes of a document.
func (o *outputOptions) take(document any) ([]byte, error) {
	t, err := o.template()
	if err != nil {
		return nil, err
	}

	raw, err := json.Marshal(document)
	if err != nil {
		return nil, err
	}

	var decoded any
	if err := utiljson.Unmarshal(raw, &decoded); err != nil {
		return nil, err
	}

	var out bytes.Buffer

	err = t.Execute(&out, decoded)

	return out.Bytes(), err
}

// names are the objects of a document, a line each, as kubectl names them.
func names(document any) []byte {
	about, _ := document.(listing)
	if about == nil {
		return nil
	}

	var out bytes.Buffer

	for _, ref := range about.refs() {
		fmt.Fprintf(&out, "%s/%s\n", strings.ToLower(ref.groupKind().String()), ref.Name)
	}

	return out.Bytes()
}

// header starts every document.
type header struct {
	APIVersion string `json:"apiVersion"`
	// Kind of the document: Trace, Explanation, Verdict, VerdictList, Answer, Result, Diagnosis,
	// Audit, LintReport, TestReport, Replay, PendingList or Version.
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

// groupKind is the object's kind.
func (r objectRef) groupKind() schema.GroupKind {
	return schema.FromAPIVersionAndKind(r.APIVersion, r.Kind).GroupKind()
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
	// Objects are those that were written or deleted, or would be.
	Objects []objectRef `json:"objects"`
}

func (d resultDocument) refs() []objectRef { return d.Objects }

// result runs a command that says what it does line by line, and prints that.
func (o *outputOptions) result(out io.Writer, c *cluster, run func(io.Writer) error) error {
	if !o.structured() {
		return run(out)
	}

	var said bytes.Buffer

	err := run(&said)
	doc := resultDocument{
		header: header{APIVersion: outputVersion, Kind: "Result"}, DryRun: c.dry.on(), Done: []string{},
		Objects: append([]objectRef{}, c.written...),
	}

	for line := range strings.Lines(said.String()) {
		doc.Done = append(doc.Done, strings.TrimSpace(line))
	}

	return errors.Join(err, o.print(out, doc))
}
