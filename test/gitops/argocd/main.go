// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// argocd reads the objects of a file, or applies them, as Argo CD's controller of
// Applications does: with its libraries, its field manager, its tracking annotation
// and the Application's ignoreDifferences. KUBECONFIG says where, --as who it is.
//
//	argocd [--as=USER] [--project=FILE] diff|sync|autosync APPLICATION FILE
//
// For each object diff prints Synced or OutOfSync, for each way of comparing that
// Argo CD has. By autosync it compares, syncs and prunes, time and again until its
// standard input ends, see [automated]; the user is who compares, and it syncs as the
// service account that the AppProject names.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/argoproj/argo-cd/v3/common"
	"github.com/argoproj/argo-cd/v3/pkg/apis/application/v1alpha1"
	"github.com/argoproj/argo-cd/v3/util/argo"
	argodiff "github.com/argoproj/argo-cd/v3/util/argo/diff"
	"github.com/argoproj/argo-cd/v3/util/argo/normalizers"
	"github.com/argoproj/gitops-engine/pkg/diff"
	synccommon "github.com/argoproj/gitops-engine/pkg/sync/common"
	"github.com/argoproj/gitops-engine/pkg/utils/kube"
	"github.com/argoproj/gitops-engine/pkg/utils/tracing"
	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/openapi"
	"sigs.k8s.io/yaml"
)

var errUsage = errors.New("usage: argocd [--as=USER] [--project=FILE] diff|sync|autosync APPLICATION FILE")

func main() {
	as := flag.String("as", "", "`user` to be")
	project := flag.String("project", "", "`file` of the AppProject, for autosync")
	flag.Parse()

	if err := run(context.Background(), *as, *project, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "argocd:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, as, project string, args []string) error {
	if len(args) != 3 {
		return errUsage
	}

	app := &v1alpha1.Application{}
	if err := load(args[1], app); err != nil {
		return err
	}

	c, err := newCluster(as)
	if err != nil {
		return err
	}
	defer c.close()

	if args[0] == "autosync" {
		return autosync(ctx, c, app, project, args[2])
	}

	raw, err := os.ReadFile(args[2])
	if err != nil {
		return err
	}

	objects, err := build(app, raw)
	if err != nil {
		return fmt.Errorf("cannot read %q: %w", args[2], err)
	}

	for _, u := range objects {
		switch args[0] {
		case "diff":
			err = c.diff(ctx, app, u)
		case "sync":
			err = c.sync(ctx, app, u)
		default:
			err = errUsage
		}

		if err != nil {
			return err
		}
	}

	return nil
}

// load reads an Application, or its AppProject, strictly.
func load(file string, into any) error {
	raw, err := os.ReadFile(file)
	if err != nil {
		return err
	}

	if err := yaml.UnmarshalStrict(raw, into); err != nil {
		return fmt.Errorf("cannot read %q: %w", file, err)
	}

	return nil
}

// build makes objects as Argo CD would apply them: with what tracks them.
func build(app *v1alpha1.Application, raw []byte) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured

	for dec := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(raw), 4096); ; {
		u := &unstructured.Unstructured{}

		switch err := dec.Decode(u); {
		case errors.Is(err, io.EOF):
			return out, nil
		case err != nil:
			return nil, err
		}

		err := argo.NewResourceTracking().SetAppInstance(u, common.LabelKeyAppInstance, app.GetName(),
			app.Spec.Destination.Namespace, v1alpha1.TrackingMethodAnnotation, "")
		if err != nil {
			return nil, fmt.Errorf("cannot track %q: %w", u.GetName(), err)
		}

		out = append(out, u)
	}
}

// cluster is what Argo CD has for a cluster.
type cluster struct {
	dynamic.Interface

	config   *rest.Config
	kubectl  *kube.KubectlCmd
	schema   openapi.Resources
	mapper   meta.RESTMapper
	applier  kube.ResourceOperations
	dry      diff.ServerSideDryRunner
	builder  func(*v1alpha1.Application) *argodiff.DiffConfigBuilder
	cleanups []func()
}

func newCluster(as string) (*cluster, error) {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("cannot find the cluster: %w", err)
	}

	config.Impersonate = rest.ImpersonationConfig{UserName: as}

	c := &cluster{config: config}
	if c.Interface, err = dynamic.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("cannot make a client: %w", err)
	}

	disco, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("cannot make a client: %w", err)
	}

	c.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(disco))

	if err := c.connect(config); err != nil {
		c.close()

		return nil, err
	}

	return c, nil
}

// connect makes what applies and compares.
func (c *cluster) connect(config *rest.Config) error {
	kubectl := &kube.KubectlCmd{Log: logr.Discard(), Tracer: tracing.NopTracer{}}

	schema, parser, err := kubectl.LoadOpenAPISchema(config)
	if err != nil {
		return fmt.Errorf("cannot load schemas: %w", err)
	}

	applier, cleanup, err := kubectl.ManageResources(config, schema)
	if err != nil {
		return fmt.Errorf("cannot make what applies: %w", err)
	}

	c.kubectl, c.schema = kubectl, schema
	c.applier, c.cleanups = applier, append(c.cleanups, cleanup)

	dry, cleanup, err := kube.ManageServerSideDiffDryRuns(config, schema, tracing.NopTracer{}, logr.Discard(), nil)
	if err != nil {
		return fmt.Errorf("cannot make what applies for a trial: %w", err)
	}

	c.dry, c.cleanups = diff.NewK8sServerSideDryRunner(dry), append(c.cleanups, cleanup)
	c.builder = func(app *v1alpha1.Application) *argodiff.DiffConfigBuilder {
		return argodiff.NewDiffConfigBuilder().
			WithDiffSettings(app.Spec.IgnoreDifferences, nil, false, normalizers.IgnoreNormalizerOpts{}).
			WithTracking(common.LabelKeyAppInstance, string(v1alpha1.TrackingMethodAnnotation)).
			WithNoCache().
			WithGVKParser(parser).
			WithManager(common.ArgoCDSSAManager)
	}

	return nil
}

func (c *cluster) close() {
	for _, cleanup := range slices.Backward(c.cleanups) {
		cleanup()
	}
}

// diff compares an object in every way, and says to standard error where it is not
// as it should be.
func (c *cluster) diff(ctx context.Context, app *v1alpha1.Application, u *unstructured.Unstructured) error {
	live, err := c.live(ctx, u)
	if err != nil {
		return err
	}

	for _, way := range []struct {
		name    string
		builder *argodiff.DiffConfigBuilder
	}{
		{"as it applies", c.builder(app).WithStructuredMergeDiff(serverSide(app))},
		{"three-way", c.builder(app)},
		{"server-side", c.builder(app).WithServerSideDiff(true).WithServerSideDryRunner(c.dry)},
		{"server-side with webhooks", c.builder(app).WithServerSideDiff(true).WithServerSideDryRunner(c.dry).WithIgnoreMutationWebhook(false)},
	} {
		config, err := way.builder.Build()
		if err != nil {
			return fmt.Errorf("cannot compare %s: %w", way.name, err)
		}

		result, err := argodiff.StateDiff(live, u.DeepCopy(), config)
		if err != nil {
			return fmt.Errorf("cannot compare %s: %w", way.name, err)
		}

		state := "Synced"
		if result.Modified {
			state = "OutOfSync"

			fmt.Fprintf(os.Stderr, "%s: -live, +predicted:\n%s", way.name, cmp.Diff(string(result.NormalizedLive), string(result.PredictedLive)))
		}

		fmt.Printf("%s %s, compared %s: %s\n", u.GetKind(), u.GetName(), way.name, state)
	}

	return nil
}

// live reads an object; nil if there is none.
func (c *cluster) live(ctx context.Context, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	gvk := u.GroupVersionKind()

	mapping, err := c.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, fmt.Errorf("cannot find kind %q: %w", gvk.Kind, err)
	}

	live, err := c.Resource(mapping.Resource).Namespace(u.GetNamespace()).Get(ctx, u.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // There is none.
	}

	return live, err
}

// sync applies an object as the Application says.
func (c *cluster) sync(ctx context.Context, app *v1alpha1.Application, u *unstructured.Unstructured) error {
	said, err := c.applier.ApplyResource(ctx, u, cmdutil.DryRunNone, false, true,
		serverSide(app), common.ArgoCDSSAManager)
	if err != nil {
		return fmt.Errorf("cannot apply %q: %w", u.GetName(), err)
	}

	fmt.Println(said)

	return nil
}

// serverSide reports whether an Application is applied by the API server.
func serverSide(app *v1alpha1.Application) bool {
	return app.Spec.SyncPolicy != nil && app.Spec.SyncPolicy.SyncOptions.HasOption(synccommon.SyncOptionServerSideApply)
}
