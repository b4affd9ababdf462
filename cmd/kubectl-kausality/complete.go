// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// maxCompletions is how many names are asked for: more help nobody.
const maxCompletions = 500

// completion completes one argument or flag.
type completion = func(cmd *cobra.Command, args []string, text string) ([]string, cobra.ShellCompDirective)

// completeObject completes KIND/NAME, or KIND and NAME.
func completeObject(o *clusterOptions) completion {
	return func(cmd *cobra.Command, args []string, text string) ([]string, cobra.ShellCompDirective) {
		switch {
		case len(args) == 0:
			return completeBy(o)(cmd, args, text)
		case len(args) == 1 && !strings.Contains(args[0], "/"):
			return o.complete(cmd.Context(), func(ctx context.Context, c *cluster) []string { return c.names(ctx, args[0], text) })
		default:
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
	}
}

// completeBy completes KIND/NAME.
func completeBy(o *clusterOptions) completion {
	return func(cmd *cobra.Command, _ []string, text string) ([]string, cobra.ShellCompDirective) {
		kind, name, ok := strings.Cut(text, "/")
		if !ok {
			out, directive := o.complete(cmd.Context(), func(_ context.Context, c *cluster) []string { return c.kinds(text) })

			return out, directive | cobra.ShellCompDirectiveNoSpace
		}

		return o.complete(cmd.Context(), func(ctx context.Context, c *cluster) []string {
			out := c.names(ctx, kind, name)
			for i := range out {
				out[i] = kind + "/" + out[i]
			}

			return out
		})
	}
}

// completeNamespace completes a namespace.
func completeNamespace(o *clusterOptions) completion {
	return func(cmd *cobra.Command, _ []string, text string) ([]string, cobra.ShellCompDirective) {
		return o.complete(cmd.Context(), func(ctx context.Context, c *cluster) []string { return c.names(ctx, "namespaces", text) })
	}
}

// completeContext completes a context of the kubeconfig.
func completeContext(o *clusterOptions) completion {
	return func(_ *cobra.Command, _ []string, text string) ([]string, cobra.ShellCompDirective) {
		raw, err := o.loader().RawConfig()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}

		names := slices.Sorted(maps.Keys(raw.Contexts))

		return slices.DeleteFunc(names, func(n string) bool { return !strings.HasPrefix(n, text) }), cobra.ShellCompDirectiveNoFileComp
	}
}

// complete asks the cluster. What cannot be asked completes nothing.
func (o *clusterOptions) complete(ctx context.Context, ask func(context.Context, *cluster) []string) ([]string, cobra.ShellCompDirective) {
	c, err := newCluster(*o)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}

	return ask(ctx, c), cobra.ShellCompDirectiveNoFileComp
}

// kinds are the resources that can be read, each with its group and a slash.
func (c *cluster) kinds(prefix string) []string {
	// What one broken API service serves is missing, and all else is there.
	lists, _ := discovery.ServerPreferredResources(c.discovery)

	var out []string

	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}

		for _, r := range list.APIResources {
			name := schema.GroupResource{Group: gv.Group, Resource: r.Name}.String() + "/"
			if slices.Contains(r.Verbs, "get") && !strings.Contains(r.Name, "/") && strings.HasPrefix(name, prefix) {
				out = append(out, name)
			}
		}
	}

	slices.Sort(out)

	return slices.Compact(out)
}

// names are those of the objects of a kind.
func (c *cluster) names(ctx context.Context, kind, prefix string) []string {
	m, err := c.mapping(kind)
	if err != nil {
		return nil
	}

	at := c.client.Resource(m.Resource).Namespace("")
	if m.Scope.Name() == meta.RESTScopeNameNamespace {
		at = c.client.Resource(m.Resource).Namespace(c.namespace)
	}

	list, err := at.List(ctx, metav1.ListOptions{Limit: maxCompletions})
	if err != nil {
		return nil
	}

	var out []string

	for i := range list.Items {
		if name := list.Items[i].GetName(); strings.HasPrefix(name, prefix) {
			out = append(out, name)
		}
	}

	return out
}
