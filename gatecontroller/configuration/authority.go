// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package configuration

import (
	"context"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// onNewCA has webhook configurations applied when their CA changes. It is no
// source.Channel, for what makes certificates names no object.
func onNewCA(trust Trust) source.TypedSource[Request] {
	return source.TypedFunc[Request](func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[Request]) error {
		go func() {
			for {
				select {
				case <-ctx.Done():
					return
				case <-trust.Changed():
					queue.Add(Webhooks)
				}
			}
		}()

		return nil
	})
}
