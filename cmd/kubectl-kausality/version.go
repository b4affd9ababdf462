// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/engine/doctor"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
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
			"by the images of Deployments in Kausality's namespace, and by the package of the Function.\n\n" + exitHelp,
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

// versions finds what is installed.
func (c *cluster) versions(ctx context.Context, doc *versionDocument, functions []string) {
	const manager = "kausality-manager"

	deployments := doctor.Deployments
	deployments.Home = true

	for _, l := range []struct {
		list    doctor.List
		program string
		images  func(*unstructured.Unstructured) []string
	}{
		{c.list(ctx, deployments, c.home), manager, func(u *unstructured.Unstructured) []string { return imagesOf(u, manager) }},
		{c.list(ctx, doctor.Functions, ""), functionKausality, func(u *unstructured.Unstructured) []string {
			for _, n := range functions {
				if u.GetName() == n {
					return []string{resource.String(u.Object, "spec", "package")}
				}
			}

			return nil
		}},
	} {
		before := len(doc.Installed)

		for _, u := range l.list.Items {
			for _, image := range l.images(u) {
				doc.Installed = append(doc.Installed, installed{l.program, object(u), tag(image), image})
			}
		}

		switch {
		case l.list.Problem != "":
			doc.Problems = append(doc.Problems, l.program+": "+l.list.Problem)
		case len(doc.Installed) == before:
			doc.Problems = append(doc.Problems, l.program+": nothing in the cluster tells of it")
		}
	}
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
