// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package unmanaged makes controllers that the leader starts and ends together, which
// those of a manager cannot be.
package unmanaged

import (
	"fmt"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// New makes a controller that reconciles objects by name.
func New(name string, r reconcile.Reconciler, log logr.Logger, sources ...source.Source) (controller.Controller, error) {
	skip := true // Several managers of a test have one each.

	ctl, err := controller.NewUnmanaged(name, controller.Options{Reconciler: r, SkipNameValidation: &skip, Logger: log})
	if err != nil {
		return nil, fmt.Errorf("cannot make the %s controller: %w", name, err)
	}

	for _, src := range sources {
		if err := ctl.Watch(src); err != nil {
			return nil, fmt.Errorf("cannot have the %s controller watch: %w", name, err)
		}
	}

	return ctl, nil
}
