// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package fn_test

import (
	"strings"
	"testing"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
)

func TestAResponseThatCrossplaneCouldNotReadNamesWhatIsLarge(t *testing.T) {
	config := func(name string, size int) *fnv1.Resource {
		return resourceOf(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: "+name+"}\ndata: {text: "+strings.Repeat("x", size)+"}")
	}

	const mebibyte = 1 << 20

	for name, tc := range map[string]struct {
		reason string
		size   int
		want   string
	}{
		"Fits": {reason: "Somewhat less than 3 MiB is answered.", size: mebibyte - 10_000},
		"Large": {
			reason: "More is not, and what is large is named.", size: mebibyte,
			want: `the desired state is too large for Crossplane to read: it has 3`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			req := call(t, "apiVersion: example.org/v1\nkind: XDatabase\nmetadata: {name: db}", "", "", "")
			req.Desired.Resources = map[string]*fnv1.Resource{"small": config("small", 10)}

			for _, name := range []string{"a", "b", "c"} {
				req.Desired.Resources[name] = config(name, tc.size)
			}

			rsp := run(t, req)

			fatal := ""

			for _, r := range rsp.GetResults() {
				if r.GetSeverity() == fnv1.Severity_SEVERITY_FATAL {
					fatal = r.GetMessage()
				}
			}

			if !strings.HasPrefix(fatal, tc.want) || (fatal == "") != (tc.want == "") {
				t.Errorf("%s\nfatal: %q", tc.reason, fatal)
			}

			if tc.want == "" {
				return
			}

			if !strings.Contains(fatal, `of 3072 KiB at most; the largest of 4 composed resources, and of what else there is, are `+
				`"a" (ConfigMap a) with 1025 KiB, "b" (ConfigMap b) with 1025 KiB, "c" (ConfigMap c) with 1025 KiB, `) || len(rsp.GetDesired().GetResources()) > 0 {
				t.Errorf("it says %q, and desires %d", fatal, len(rsp.GetDesired().GetResources()))
			}
		})
	}
}
