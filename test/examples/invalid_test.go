// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package examples_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/test/refusal"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// invalid is the folder of what must be refused.
const invalid = "invalid"

// dryRun asks the API server about an object without storing it. The webhook
// that reads our kinds may still be on its way.
func dryRun(ctx context.Context, c client.Client, u *unstructured.Unstructured) error {
	var err error

	return errors.Join(scenario.Eventually(ctx, "an answer of the webhook", func(ctx context.Context) error {
		err = c.Create(ctx, u.DeepCopy(), client.DryRunAll)
		if apierrors.IsInternalError(err) {
			return err
		}

		return nil
	}), err)
}

// TestWhatIsInvalidIsRefusedForTheReasonItStates compares the API server's
// message with the one in the head of each file: the lines after "Refused:".
func TestWhatIsInvalidIsRefusedForTheReasonItStates(t *testing.T) {
	t.Parallel()

	files, err := filepath.Glob(filepath.Join(dir, invalid, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}

	if len(files) < 10 {
		t.Errorf("%d documents, want at least 10", len(files))
	}

	c := somebody(t)

	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			t.Parallel()

			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}

			want := refusal.Stated(raw)
			if want == "" {
				t.Fatal("the file does not say why it is refused")
			}

			for _, u := range world.Parse(t, raw) {
				err := dryRun(t.Context(), c, u)
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%s %q\nis refused: %v\nand not for: %s", u.GetKind(), u.GetName(), err, want)
				}
			}
		})
	}
}
