// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"k8s.io/client-go/discovery"
	authorizationv1 "k8s.io/client-go/kubernetes/typed/authorization/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kausality-io/kausality-crossplane/gatecontroller/pending"
	"github.com/kausality-io/kausality-crossplane/internal/logfile"
	"github.com/kausality-io/kausality-crossplane/internal/parameter"
	"github.com/kausality-io/kausality-crossplane/internal/recorder"
	"github.com/kausality-io/kausality-crossplane/internal/served"
	"github.com/kausality-io/kausality-crossplane/webhook"
	"github.com/kausality-io/kausality-crossplane/webhook/cached"
	"github.com/kausality-io/kausality-crossplane/webhook/certificate"
)

// heartbeat is the lease that shows that a manager with a webhook runs, whatever
// its Service is called: doctor and uninstall search for it.
const heartbeat = "kausality-webhook"

// addWebhook adds the endpoints, if there are any, and what reports whether they are ready.
func (c *cli) addWebhook(ctx context.Context, mgr ctrl.Manager, cert certificate.Provider) error {
	if cert == nil {
		return nil
	}

	judge, err := c.judge(mgr, c.inputs, cert)
	if err != nil {
		return err
	}

	refusals := (&pending.Refusals{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Namespace: c.Namespace, Log: mgr.GetLogger().WithName("refusals"), Now: time.Now,
	}).Init()
	judge.Refusals = refusals

	scaler := webhook.NewScaler(mgr.GetRESTMapper())

	heart := webhook.NewHeartbeat(mgr.GetClient(), client.ObjectKey{Namespace: c.Namespace, Name: heartbeat},
		mgr.GetLogger().WithName("heartbeat"), time.Now)
	if err := heart.Register(ctx, metrics.Registry); err != nil {
		return err
	}

	c.counts = judge.Metrics

	for _, r := range []manager.Runnable{cert, scaler, heart, refusals} {
		if err := mgr.Add(r); err != nil {
			return fmt.Errorf("cannot add %T: %w", r, err)
		}
	}

	server := mgr.GetWebhookServer()
	for path, endpoint := range map[string]http.Handler{
		webhook.ValidatePath: &admission.Webhook{Handler: webhook.Validator{}},
		webhook.UsagePath:    &admission.Webhook{Handler: &webhook.Usages{Live: mgr.GetAPIReader()}},
		webhook.MutatePath:   webhook.NewEndpoint(&webhook.Mutator{Judge: judge, Scaler: scaler}),
		webhook.EnforcePath:  webhook.NewEndpoint(&webhook.Enforcer{Judge: judge, Scaler: scaler}),
		webhook.ApprovePath: &admission.Webhook{Handler: &webhook.Approver{
			Reviewer: &webhook.Reviewer{Authorizer: judge.Authorizer, Mapper: mgr.GetRESTMapper(), Approvers: c.Approvers},
			Live:     judge.Live, Metrics: judge.Metrics, Log: judge.Log,
		}},
	} {
		server.Register(path, c.only(endpoint))
	}

	for name, ok := range map[string]healthz.Checker{"webhook": server.StartedChecker(), "certificate": certificate.Valid(cert, time.Now)} {
		if err := mgr.AddReadyzCheck(name, ok); err != nil {
			return fmt.Errorf("cannot add a readiness check: %w", err)
		}
	}

	return nil
}

// judge is what the endpoints share.
func (c *cli) judge(mgr ctrl.Manager, inputs *cached.Inputs, cert certificate.Provider) (*webhook.Judge, error) {
	counts, err := webhook.NewMetrics(metrics.Registry, cert)
	if err != nil {
		return nil, err
	}

	// Of its own, so that no controller that is refused all the time keeps events of
	// gates waiting.
	recorded, err := recorder.New(metrics.Registry, mgr.GetEventRecorder(recorder.Name), mgr.GetScheme())
	if err != nil {
		return nil, err
	}

	if err := mgr.Add(recorded); err != nil {
		return nil, fmt.Errorf("cannot add the recorder of events: %w", err)
	}

	reviews, err := authorizationv1.NewForConfig(mgr.GetConfig())
	if err != nil {
		return nil, fmt.Errorf("cannot make a client of the cluster's authorizer: %w", err)
	}

	permissions, err := webhook.NewAuthorizer(reviews)
	if err != nil {
		return nil, fmt.Errorf("cannot make an authorizer: %w", err)
	}

	disco, err := discovery.NewDiscoveryClientForConfig(mgr.GetConfig())
	if err != nil {
		return nil, fmt.Errorf("cannot make a discovery client: %w", err)
	}

	out := &webhook.Judge{
		Inputs:   inputs,
		Patches:  c.access.Patches,
		Objects:  cached.NewObjects(mgr.GetCache(), mgr.GetAPIReader(), mgr.GetRESTMapper(), c.access),
		Live:     mgr.GetAPIReader(),
		Writer:   mgr.GetClient(),
		Events:   recorded,
		Metrics:  counts,
		Settings: c.settings(),
		Log:      mgr.GetLogger().WithName("webhook"),
		Now:      time.Now,

		Authorizer: permissions,
		Parameters: parameter.NewReader(mgr.GetAPIReader(), mgr.GetRESTMapper(), c.access, time.Now),
		Versions:   served.NewVersions(disco.RESTClient(), time.Now).Of,
	}

	log := out.Log.WithName("decisions")

	c.decisions, err = logfile.New(c.Decisions, counts.Log(), func(err error) { log.Error(err, "Decisions are not logged") })
	if err != nil {
		return nil, err
	}

	if c.decisions != nil {
		out.Decisions = c.decisions
	}

	return out, nil
}

// webhookClients are those who may put reviews to the webhook; nil for whoever
// reaches it.
func (c *cli) webhookClients() (*webhook.Clients, error) {
	switch {
	case c.WebhookClientCA != "":
		return webhook.NewClients(c.WebhookClientCA, c.WebhookClientName, ctrl.Log.WithName("clients"))
	case len(c.WebhookClientName) > 0:
		return nil, errNoClientCA
	default:
		return nil, nil //nolint:nilnil // Whoever reaches it.
	}
}

// only lets an endpoint be asked by those who may.
func (c *cli) only(endpoint http.Handler) http.Handler {
	if c.clients == nil {
		return endpoint
	}

	return c.clients.Only(endpoint)
}

// errNoClientCA is the cause when names are given and nothing to verify them by.
var errNoClientCA = errors.New("--webhook-client-name needs --webhook-client-ca")
