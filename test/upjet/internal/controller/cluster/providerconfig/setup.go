// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package providerconfig counts what uses a ProviderConfig, and keeps one that is
// used.
package providerconfig

import (
	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/providerconfig"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	"github.com/crossplane/upjet/v2/pkg/controller"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/test/upjet/apis/cluster/v1beta1"
)

// Setup adds the controllers.
func Setup(mgr ctrl.Manager, o controller.Options) error {
	return setup(mgr, o, &v1beta1.ProviderConfig{}, "ProviderConfig")
}

// SetupGated adds them once their kinds are served.
func SetupGated(mgr ctrl.Manager, o controller.Options) error {
	o.Gate.Register(func() {
		if err := Setup(mgr, o); err != nil {
			mgr.GetLogger().Error(err, "Cannot add the controllers of ProviderConfigs")
		}
	}, v1beta1.SchemeGroupVersion.WithKind("ProviderConfig"), v1beta1.SchemeGroupVersion.WithKind("ProviderConfigUsage"))

	return nil
}

func setup(mgr ctrl.Manager, o controller.Options, config client.Object, kind string) error {
	gvk := v1beta1.SchemeGroupVersion.WithKind(kind)
	name := providerconfig.ControllerName(gvk.GroupKind().String())

	return ctrl.NewControllerManagedBy(mgr).
		Named(name).
		WithOptions(o.ForControllerRuntime()).
		For(config).
		Watches(&v1beta1.ProviderConfigUsage{}, &resource.EnqueueRequestForProviderConfig{}).
		Complete(providerconfig.NewReconciler(mgr, resource.ProviderConfigKinds{
			Config:    gvk,
			Usage:     v1beta1.SchemeGroupVersion.WithKind("ProviderConfigUsage"),
			UsageList: v1beta1.SchemeGroupVersion.WithKind("ProviderConfigUsageList"),
		}, providerconfig.WithLogger(o.Logger), providerconfig.WithRecorder(event.NewNopRecorder())))
}
