// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/crossplane/upjet/v2/pkg/controller"

	providerconfig "github.com/kausality-io/kausality-crossplane/test/upjet/internal/controller/namespaced/providerconfig"
	database "github.com/kausality-io/kausality-crossplane/test/upjet/internal/controller/namespaced/sql/database"
	grant "github.com/kausality-io/kausality-crossplane/test/upjet/internal/controller/namespaced/sql/grant"
	role "github.com/kausality-io/kausality-crossplane/test/upjet/internal/controller/namespaced/sql/role"
	view "github.com/kausality-io/kausality-crossplane/test/upjet/internal/controller/namespaced/sql/view"
)

// Setup creates all controllers with the supplied logger and adds them to
// the supplied manager.
func Setup(mgr ctrl.Manager, o controller.Options) error {
	for _, setup := range []func(ctrl.Manager, controller.Options) error{
		providerconfig.Setup,
		database.Setup,
		grant.Setup,
		role.Setup,
		view.Setup,
	} {
		if err := setup(mgr, o); err != nil {
			return err
		}
	}
	return nil
}

// SetupGated creates all controllers with the supplied logger and adds them to
// the supplied manager gated.
func SetupGated(mgr ctrl.Manager, o controller.Options) error {
	for _, setup := range []func(ctrl.Manager, controller.Options) error{
		providerconfig.SetupGated,
		database.SetupGated,
		grant.SetupGated,
		role.SetupGated,
		view.SetupGated,
	} {
		if err := setup(mgr, o); err != nil {
			return err
		}
	}
	return nil
}
