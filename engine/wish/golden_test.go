// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package wish_test

import (
	"testing"

	"github.com/kausality-io/kausality-crossplane/engine/wish"
)

// TestARecordReadsTheSameInLaterVersions has the text that is on objects in
// clusters: where it changes, so must the version that it names, or all that it
// records is a changed wish.
func TestARecordReadsTheSameInLaterVersions(t *testing.T) {
	const want = `apiVersion: apps/v1
kind: Deployment
leaves: ` + "AQkYWXNTFLRPlpw5HFMkeYOucUJAQGmQyVzF0ydrop2amXmsMG/R7kpXk0tzuT19tfriwUI4uXjAcZKDnwYI9EsHtZAaJc/3yus/VkV9OBgYLh" +
		"e50wowB1GvmL9c3ruPMInYsmFvWFgJYSsHtey1peTbh7da565KByxJqTbJ6mL1kbt8W5vEulKBCOT+zAJeaZKvY69MhgGgFQ" + `
version: 1
`

	got, err := wish.RecordOf(map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"spec": map[string]any{
			"replicas": int64(2), "paused": false, "ratio": 1.5, "name": "ünï<&>", "nothing": nil, "empty": map[string]any{}, "args": []any{"a", int64(1)},
			"containers": []any{map[string]any{"name": "web", "image": "nginx"}, map[string]any{"name": "log", "ports": []any{}}},
		},
	}).Format("apps/v1", "Deployment")
	if err != nil || got != want {
		t.Errorf("Format: %v, got\n%s\nwant\n%s", err, got, want)
	}
}
