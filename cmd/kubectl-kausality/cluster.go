// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
)

// errAmbiguous is the cause when several groups have a kind of a name.
var errAmbiguous = errors.New("several groups have it, give it as one of these")

// clusterOptions say which cluster to read.
type clusterOptions struct {
	outputOptions

	kubeconfig string
	overrides  clientcmd.ConfigOverrides
	// home is the namespace Kausality runs in, and dry whether nothing is to be
	// changed.
	home string
	dry  dryRun
}

// flags are those of all commands.
func (o *clusterOptions) flags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "Kubeconfig file; $KUBECONFIG or ~/.kube/config without one.")
	o.outputOptions.flags(cmd)

	clientcmd.BindOverrideFlags(&o.overrides, flags, clientcmd.RecommendedConfigOverrideFlags(""))

	_ = cmd.RegisterFlagCompletionFunc("namespace", completeNamespace(o))
	_ = cmd.RegisterFlagCompletionFunc("context", completeContext(o))
}

// writing are those of commands that change something.
func (o *clusterOptions) writing(cmd *cobra.Command) {
	o.objects = true
	o.flags(cmd)

	o.homeFlag(cmd)
	o.dry.flag(cmd)

	cmd.PreRun = func(cmd *cobra.Command, args []string) {
		o.dry.warn(cmd.ErrOrStderr())
		o.findHome(cmd, args)
	}
}

// homeFlag is that of commands that check Kausality itself.
func (o *clusterOptions) homeFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.home, homeName, defaultHome,
		"Namespace Kausality runs in, where records are kept. If not given, that of the webhook's Service, where there is one.")

	cmd.PreRun = o.findHome

	_ = cmd.RegisterFlagCompletionFunc(homeName, completeNamespace(o))
}

// loader reads the kubeconfig.
func (o *clusterOptions) loader() clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.kubeconfig

	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &o.overrides)
}

// cluster reads objects by kinds as kubectl takes them: plural, singular or
// short name, or kind, with or without a group.
type cluster struct {
	config    *rest.Config
	client    dynamic.Interface
	discovery discovery.CachedDiscoveryInterface
	mapper    meta.RESTMapper
	namespace string
	home      string
	dry       dryRun

	// written are the objects that were written or deleted, or would be.
	written []objectRef
}

func newCluster(o clusterOptions) (*cluster, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}

	loader := o.loader()

	cfg, err := loader.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("cannot read kubeconfig: %w", err)
	}

	// The API server's own priority and fairness limits us.
	cfg.QPS = -1
	// As kubectl does.
	cfg.WarningHandler = rest.NewWarningWriter(os.Stderr, rest.WarningWriterOptions{Deduplicate: true})

	namespace, _, err := loader.Namespace()
	if err != nil {
		return nil, fmt.Errorf("cannot read kubeconfig: %w", err)
	}

	disco, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("cannot make a client: %w", err)
	}

	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("cannot make a client: %w", err)
	}

	cached := memory.NewMemCacheClient(disco)
	mapper := restmapper.NewShortcutExpander(restmapper.NewDeferredDiscoveryRESTMapper(cached), cached, nil)

	return &cluster{config: cfg, client: client, discovery: cached, mapper: mapper, namespace: namespace, home: o.home, dry: o.dry}, nil
}

// Get reads one object.
func (c *cluster) Get(ctx context.Context, kind, name string) (*unstructured.Unstructured, error) {
	mapping, err := c.mapping(kind)
	if err != nil {
		return nil, err
	}

	var resource dynamic.ResourceInterface = c.client.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		resource = c.client.Resource(mapping.Resource).Namespace(c.namespace)
	}

	u, err := resource.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("cannot get %s %q: %w", mapping.GroupVersionKind.Kind, name, err)
	}

	return u, nil
}

// mapping finds a kind: first as a resource, then as a kind.
func (c *cluster) mapping(text string) (*meta.RESTMapping, error) {
	full, short := schema.ParseResourceArg(strings.ToLower(text))
	if full == nil {
		full = &schema.GroupVersionResource{}
	}

	for _, r := range []schema.GroupVersionResource{*full, short.WithVersion("")} {
		gvk, err := c.mapper.KindFor(r)
		if err != nil || r.Empty() {
			continue
		}

		if err := c.ambiguous(text, r, gvk); err != nil {
			return nil, err
		}

		return c.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	}

	gvk, gk := schema.ParseKindArg(text)
	if gvk != nil {
		if m, err := c.mapper.RESTMapping(gvk.GroupKind(), gvk.Version); err == nil {
			return m, nil
		}
	}

	m, err := c.mapper.RESTMapping(gk)
	if err != nil {
		return nil, fmt.Errorf("cannot find kind %q: %w", text, err)
	}

	return m, nil
}

// ambiguous is an error where a resource that is named without a group is one of
// several groups. kubectl takes one of them and does not say so. What is in the core
// group has no other name.
func (c *cluster) ambiguous(text string, r schema.GroupVersionResource, first schema.GroupVersionKind) error {
	if r.Group != "" || first.Group == "" {
		return nil
	}

	all, err := c.mapper.KindsFor(r)
	if err != nil {
		return fmt.Errorf("cannot find kind %q: %w", text, err)
	}

	var names []string

	for _, gvk := range all {
		if name := strings.ToLower(gvk.GroupKind().String()); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}

	if len(names) < 2 {
		return nil
	}

	slices.Sort(names)

	return usageError{fmt.Errorf("cannot tell which %q is meant: %w: %s", text, errAmbiguous, strings.Join(names, ", "))}
}
