// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/argoproj/argo-cd/v3/common"
	"github.com/argoproj/argo-cd/v3/pkg/apis/application/v1alpha1"
	"github.com/argoproj/argo-cd/v3/util/argo"
	argodiff "github.com/argoproj/argo-cd/v3/util/argo/diff"
	"github.com/argoproj/argo-cd/v3/util/glob"
	"github.com/argoproj/gitops-engine/pkg/cache"
	"github.com/argoproj/gitops-engine/pkg/sync"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	// every is how often it compares.
	every = 200 * time.Millisecond
	// selfHealTimeout is how long Argo CD waits after a sync before it syncs the same commit
	// once more.
	selfHealTimeout = 5 * time.Second
)

// What a comparison comes to.
const (
	inSync    = "InSync"
	outOfSync = "OutOfSync"
	changed   = "Changed"
	failed    = "Failed"
)

// automated is an Application that is synced automatically: as long as standard input goes on,
// the objects of the file are compared, and synced where Argo CD would. Each time it prints the
// first characters of the file's digest, which stand for the commit; InSync, OutOfSync, Changed
// or Failed; and a message.
type automated struct {
	*cluster

	app     *v1alpha1.Application
	project *v1alpha1.AppProject
	file    string
	live    cache.ClusterCache
	// last is the sync of the newest commit.
	last operation
}

func autosync(ctx context.Context, c *cluster, app *v1alpha1.Application, project, file string) error {
	a := &automated{cluster: c, app: app, project: &v1alpha1.AppProject{}, file: file}

	if err := load(project, a.project); err != nil {
		return err
	}

	if app.Spec.SyncPolicy == nil || !app.Spec.SyncPolicy.IsAutomatedSyncEnabled() || app.Spec.Project != a.project.Name {
		return fmt.Errorf("not an Application of this AppProject that is synced automatically: %q, %q: %w", app.Name, a.project.Name, errUsage)
	}

	a.live = a.watching()
	if err := a.live.EnsureSynced(); err != nil {
		return err
	}

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)

		cancel()
	}()

	for ctx.Err() == nil {
		raw, err := os.ReadFile(file)
		if err != nil {
			return err
		}

		revision := fmt.Sprintf("%.7x", sha256.Sum256(raw))
		state, message := a.round(revision, raw)
		fmt.Printf("%s %s %s\n", revision, state, strings.ReplaceAll(message, "\n", " "))

		select {
		case <-ctx.Done():
		case <-time.After(every):
		}
	}

	return nil
}

// watching is the cache of live objects of the Application's namespace, by its tracking.
func (a *automated) watching() cache.ClusterCache {
	tracking := argo.NewResourceTracking()

	return cache.NewClusterCache(a.config,
		cache.SetKubectl(a.kubectl),
		cache.SetNamespaces([]string{a.app.Spec.Destination.Namespace}),
		cache.SetSettings(cache.Settings{ResourcesFilter: inclusions{}}),
		cache.SetPopulateResourceInfoHandler(func(u *unstructured.Unstructured, root bool) (any, bool) {
			app := tracking.GetAppName(u, common.LabelKeyAppInstance, v1alpha1.TrackingMethodAnnotation, "")
			if !root {
				app = ""
			}

			return app, app != ""
		}))
}

// inclusions are resource.inclusions of Argo CD's settings: what the tests have in Git, for to
// watch hundreds of kinds takes a while.
type inclusions struct{}

func (inclusions) IsExcludedResource(group, _, _ string) bool {
	return group != "kausality.io" && group != "shop.example.org"
}

// round compares, and syncs if need be.
func (a *automated) round(revision string, raw []byte) (state, message string) {
	c, err := a.compare(raw)

	switch {
	case err != nil:
		return failed, err.Error()
	case !c.modified:
		return inSync, ""
	}

	// Argo CD's controller goes about it like this, in autoSync.
	switch policy := a.app.Spec.SyncPolicy.Automated; {
	case c.needPrune > 0 && c.needPrune == c.others && !policy.Prune:
		return outOfSync, "something requires pruning"
	case a.last.revision == revision && !a.last.phase.Successful():
		return failed, a.last.message
	case a.last.revision == revision && (!policy.SelfHeal || time.Since(a.last.at) < selfHealTimeout):
		return outOfSync, "it is synced already to this commit"
	case policy.Prune && !policy.AllowEmpty && c.needPrune == len(c.result.Target):
		return failed, "Skipping sync attempt: auto-sync will wipe out all resources"
	}

	a.last = a.synced(c.result)
	a.last.revision = revision

	if !a.last.phase.Successful() {
		return failed, a.last.message
	}

	return changed, a.last.message
}

// comparison of what is in Git with what there is.
type comparison struct {
	result sync.ReconciliationResult
	// modified is true where something is not as it should be.
	modified bool
	// others is how much is not as it should be, and needPrune how much of it is not in Git.
	others, needPrune int
}

func (a *automated) compare(raw []byte) (comparison, error) {
	targets, err := build(a.app, raw)
	if err != nil {
		return comparison{}, err
	}

	live, err := a.live.GetManagedLiveObjs(targets, func(r *cache.Resource) bool { return r.Info == a.app.GetName() })
	if err != nil {
		return comparison{}, err
	}

	c := comparison{result: sync.Reconcile(targets, live, a.app.Spec.Destination.Namespace, a.live)}

	config, err := a.builder(a.app).WithStructuredMergeDiff(serverSide(a.app)).Build()
	if err != nil {
		return c, err
	}

	for i, target := range c.result.Target {
		switch {
		case target == nil:
			c.needPrune++
			c.others++
		case c.result.Live[i] == nil:
			c.others++
		default:
			result, err := argodiff.StateDiff(c.result.Live[i], target.DeepCopy(), config)
			if err != nil {
				return c, err
			}

			if result.Modified {
				c.others++
			}
		}
	}

	c.modified = c.others > 0

	return c, nil
}

var errNoAccount = errors.New("no matching service account found")

// account is the user of the service account to sync as: that of the first destination of the
// AppProject which matches.
func (a *automated) account() (string, error) {
	to := a.app.Spec.Destination

	for _, d := range a.project.Spec.DestinationServiceAccounts {
		server, err := glob.MatchWithError(d.Server, to.Server)
		if err != nil {
			return "", err
		}

		namespace, err := glob.MatchWithError(d.Namespace, to.Namespace)
		if err != nil {
			return "", err
		}

		if !server || !namespace {
			continue
		}

		if strings.Contains(d.DefaultServiceAccount, ":") {
			return "system:serviceaccount:" + d.DefaultServiceAccount, nil
		}

		return "system:serviceaccount:" + to.Namespace + ":" + d.DefaultServiceAccount, nil
	}

	return "", fmt.Errorf("%w for destination server %s and namespace %s", errNoAccount, to.Server, to.Namespace)
}
