// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/internal/doctor"
)

// versionDocument is what version prints for programs.
type versionDocument struct {
	header `json:",inline"`

	// Client is the version of this program.
	Client string `json:"client"`
	// Installed is what runs in the cluster.
	Installed []installed `json:"installed"`
	// Problems say what could not be read.
	Problems []string `json:"problems,omitempty"`
}

// installed is one program in the cluster.
type installed struct {
	// Program is kausality-manager or function-kausality.
	Program string `json:"program"`
	// Object that runs it, as KIND NAME.
	Object string `json:"object"`
	// Version is the tag of its image or package; empty where it has none.
	Version string `json:"version"`
	// Image or package.
	Image string `json:"image"`
}

func versionCommand() *cobra.Command {
	var (
		opts      clusterOptions
		functions []string
		client    bool
	)

	cmd := &cobra.Command{
		Use:   "version",
		Short: "Say which versions there are, here and in the cluster",
		Long: "Say which version this program has, and which ones the manager and the function have that are installed in the cluster: " +
			"by the images of Deployments in Kausality's namespace, and by the packages of Providers and Functions.\n\n" + exitHelp,
		Example: "  kubectl kausality version\n  kubectl kausality version --client -o yaml",
		Args:    usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := opts.validate(); err != nil {
				return err
			}

			doc := versionDocument{header: header{outputVersion, "Version"}, Client: version, Installed: []installed{}}

			if !client {
				c, err := newCluster(opts)
				if err != nil {
					return err
				}

				c.versions(cmd.Context(), &doc, functions)
				c.recorded(cmd.Context(), &doc)
			}

			return doc.show(cmd.OutOrStdout(), &opts.outputOptions)
		},
	}

	opts.flags(cmd)
	opts.homeFlag(cmd)
	cmd.Flags().BoolVar(&client, "client", false, "Say only this program's version, and ask no cluster.")
	functionNames(cmd.Flags(), &functions)

	return cmd
}

// show prints versions.
func (d *versionDocument) show(out io.Writer, as *outputOptions) error {
	if as.structured() {
		return as.print(out, d)
	}

	var text strings.Builder

	fmt.Fprintf(&text, "kubectl-kausality %s\n", d.Client)

	for _, i := range d.Installed {
		fmt.Fprintf(&text, "%s %s (%s)\n", i.Program, i.Version, strings.TrimSuffix(i.Object+", "+i.Image, ", "))
	}

	for _, p := range d.Problems {
		fmt.Fprintf(&text, "unknown: %s\n", p)
	}

	return say(out, "%s", text.String())
}

// program is one of ours, and where it was found: what its list has, and the images
// of one of these.
type program struct {
	name   string
	lists  []doctor.List
	images func(*unstructured.Unstructured) []string
}

// versions finds what is installed.
func (c *cluster) versions(ctx context.Context, doc *versionDocument, functions []string) {
	const manager = "kausality-manager"

	deployments := doctor.Deployments
	deployments.Home = true

	for _, p := range []program{
		{
			// Crossplane runs a Provider's container under a name of its own; its Provider says.
			name: manager, lists: []doctor.List{c.list(ctx, doctor.Providers, ""), c.list(ctx, deployments, c.home)},
			images: func(u *unstructured.Unstructured) []string {
				return append(packageOf(u, func() bool { return repository(u) == "provider-kausality" }), imagesOf(u, manager)...)
			},
		},
		{
			name: functionKausality, lists: []doctor.List{c.list(ctx, doctor.Functions, "")},
			images: func(u *unstructured.Unstructured) []string {
				return packageOf(u, func() bool { return slices.Contains(functions, u.GetName()) })
			},
		},
	} {
		doc.add(p)
	}
}

// add adds where a program was found.
func (d *versionDocument) add(p program) {
	var problems []string

	before := len(d.Installed)

	for _, l := range p.lists {
		for _, u := range l.Items {
			for _, image := range p.images(u) {
				d.Installed = append(d.Installed, installed{p.name, object(u), tag(image), image})
			}
		}

		if l.Problem != "" {
			problems = append(problems, p.name+": "+l.Problem)
		}
	}

	if len(d.Installed) == before && len(problems) == 0 {
		problems = append(problems, p.name+": nothing in the cluster tells of it")
	}

	d.Problems = append(d.Problems, problems...)
}

// packageOf is the package of a Provider or a Function, if it is ours.
func packageOf(u *unstructured.Unstructured, ours func() bool) []string {
	if image := resource.String(u.Object, "spec", "package"); image != "" && ours() {
		return []string{image}
	}

	return nil
}

// repository is the last part of the name of a package, without its tag.
func repository(u *unstructured.Unstructured) string {
	name, _, _ := strings.Cut(resource.String(u.Object, "spec", "package"), "@")
	name = name[strings.LastIndexByte(name, '/')+1:]
	name, _, _ = strings.Cut(name, ":")

	return name
}

// imagesOf are the images of a workload that have a program in their name.
func imagesOf(u *unstructured.Unstructured, program string) []string {
	var out []string

	for _, v := range resource.List(u.Object, "spec", "template", "spec", "containers") {
		if container, ok := v.(map[string]any); ok {
			if image := resource.String(container, "image"); strings.Contains(image, program) || resource.String(container, "name") == program {
				out = append(out, image)
			}
		}
	}

	return out
}

// tag is an image's tag, or else its digest.
func tag(image string) string {
	name, digest, _ := strings.Cut(image, "@")
	if i := strings.LastIndexByte(name, ':'); i > strings.LastIndexByte(name, '/') {
		return name[i+1:]
	}

	return digest
}
