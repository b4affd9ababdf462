// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/inforce"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/internal/decisionlog"
)

const (
	byAnna = `
apiVersion: kausality.io/v1alpha1
kind: AllowancePolicy
metadata: {name: widgets}
spec:
  match: {kind: Widget, fields: [spec.size]}
  subjects: [{kind: User, name: anna, mayInitiate: true}]
  allow: [{kind: ConfigMap, mutations: [data]}]
`
	denying = `
apiVersion: kausality.io/v1alpha1
kind: Enforcement
metadata: {name: all}
spec:
  match: {resourceRules: [{apiGroups: ["*"], resources: ["*"]}]}
  validationActions: [Deny]
`
)

// writeReplayLog writes a log in which some users change widgets from small to large, under
// the policies.
func writeReplayLog(t *testing.T, path string, users ...string) {
	t.Helper()

	var objects inforce.Objects

	if _, err := addPolicies([]byte(byAnna+"---"+denying), &objects); err != nil {
		t.Fatal(err)
	}

	var (
		out     bytes.Buffer
		encoder decisionlog.Encoder
	)

	set := inforce.NewCache().Set(objects)

	for i, user := range users {
		widget := func(size string) *unstructured.Unstructured {
			return &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "example.org/v1", "kind": "Widget",
				"metadata": map[string]any{"name": fmt.Sprint("widget-", i), "namespace": "shop"}, "spec": map[string]any{"size": size},
			}}
		}

		req := request.Request{
			Basis:     set.Basis(request.Settings{}, time.Date(2026, 1, 6, 12, 0, i, 0, time.UTC)),
			Operation: request.OperationUpdate, Old: widget("small"), New: widget("large"), User: policy.User{Name: user},
			Resource: schema.GroupResource{Group: "example.org", Resource: "widgets"},
		}
		d := decision.Decide(req)

		e, err := encoder.Encode(decisionlog.Asked{By: decisionlog.By{Part: decisionlog.PartMutate}}, &req, &d)
		if err != nil {
			t.Fatal(err)
		}

		if i == 0 {
			out.Write(e.InForce)
		}

		out.Write(e.Decision)
	}

	if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// took is how long a replay took.
var took = regexp.MustCompile(`replayed in [0-9.]+m?s`)

func TestALogIsReplayed(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)

	writeReplayLog(t, "decisions.log", "hans", "hans", "anna", "bob")

	byHans := strings.Replace(byAnna, "name: anna", "name: hans", 1)
	for name, text := range map[string]string{
		"policies/hans.yaml": byHans, "policies/other.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n", "policies/read.me": "no YAML: [",
		"same/anna.yaml": byAnna, "wrong/typo.yaml": strings.Replace(byAnna, "subjects:", "subject:", 1),
		"none/other.yaml": "kind: ConfigMap\n", "broken/cel.yaml": strings.Replace(byAnna, "fields: [spec.size]", `fields: [spec.size], cel: ["1 +"]`, 1),
		"future/kind.yaml": "apiVersion: kausality.io/v1\nkind: AllowancePolicy\nmetadata: {name: a}\n", "torn.log": `{"apiVersion":` + "\n",
		"list/got.yaml": "apiVersion: v1\nkind: List\nitems:\n- " + strings.ReplaceAll(strings.TrimSpace(byAnna), "\n", "\n  ") +
			"\n- {apiVersion: v1, kind: ConfigMap}\n",
		"labelled/list.yaml": strings.Replace(byAnna, "{name: widgets}", "{name: widgets, labels: [team]}", 1),
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}

		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	for name, tc := range map[string]struct {
		reason, args, out, err string
		code                   int
	}{
		"AsRecorded": {
			"By the policies of the log all is decided as it was.", "decisions.log", "4 decisions replayed in TIME: 4 as recorded; 0 change\n", "", 0,
		},
		"Same": {
			"And by the same.", "decisions.log --policies same", "4 decisions replayed in TIME: 4 as recorded; 0 change\n", "", 0,
		},
		"List": {
			"And by the same as kubectl get prints them.", "decisions.log --policies list", "4 decisions replayed in TIME: 4 as recorded; 0 change\n", "", 0,
		},
		"Labelled": {
			"A policy that cannot be read is not left out.", "decisions.log --policies same --policies labelled", "",
			"cannot read policies in \"labelled/list.yaml\": cannot read AllowancePolicy \"widgets\": error unmarshaling JSON: " +
				"while decoding JSON: json: cannot unmarshal array into Go struct field ObjectMeta.metadata.labels of type map[string]string", exitError,
		},
		"Two": {
			"There is one of a name.", "decisions.log --policies same --policies policies", "",
			"cannot read policies in \"policies/hans.yaml\": cannot read AllowancePolicy \"widgets\": there is another one of that name", exitError,
		},
		"Stdin": {
			"Standard input is one more.", "decisions.log -", "8 decisions replayed in TIME: 8 as recorded; 0 change\n", "", 0,
		},
		"Others": {
			"What is alike is shown once; that Bob lacks something else is no change.", "decisions.log --policies policies",
			"Widget spec.size: Denied -> Allowed, policy \"widgets\"\n" +
				"  2 decisions about 2 objects, by hans\n" +
				"  UPDATE shop/widget-0 at 2026-01-06T12:00:00Z, decisions.log:2\n" +
				"  UPDATE shop/widget-1 at 2026-01-06T12:00:01Z, decisions.log:3\n" +
				"Widget spec.size: Allowed -> Denied, policy \"widgets\": only User hans may, not anna\n" +
				"  1 decision about 1 object, by anna\n" +
				"  UPDATE shop/widget-2 at 2026-01-06T12:00:02Z, decisions.log:4\n" +
				"4 decisions replayed in TIME: 1 as recorded (1 of them for another reason); 3 change: 2 would be allowed, 1 would not\n",
			"replayed 4 decisions: not all is decided as it was", exitFinding,
		},
		"Kind": {
			"What is about other kinds is neither decided nor counted.", "decisions.log --policies policies --kind widget.example.org --kind gadget",
			"Widget spec.size: Denied -> Allowed, policy \"widgets\"\n" +
				"  2 decisions about 2 objects, by hans\n" +
				"  UPDATE shop/widget-0 at 2026-01-06T12:00:00Z, decisions.log:2\n" +
				"  UPDATE shop/widget-1 at 2026-01-06T12:00:01Z, decisions.log:3\n" +
				"Widget spec.size: Allowed -> Denied, policy \"widgets\": only User hans may, not anna\n" +
				"  1 decision about 1 object, by anna\n" +
				"  UPDATE shop/widget-2 at 2026-01-06T12:00:02Z, decisions.log:4\n" +
				"4 decisions replayed in TIME: 1 as recorded (1 of them for another reason); 3 change: 2 would be allowed, 1 would not\n",
			"replayed 4 decisions: not all is decided as it was", exitFinding,
		},
		"OtherKind": {
			"A kind of another group is another kind.", "decisions.log --policies policies --kind Widget.shop.example.org",
			"0 decisions replayed in TIME: 0 as recorded; 0 change\n", "", 0,
		},
		"Path": {
			"A program takes what it needs.", "decisions.log --policies policies -o jsonpath={.kind}:{.changed}:{.changes[*].decisions}", "Replay:3:2 1",
			"replayed 4 decisions: not all is decided as it was", exitFinding,
		},
		"Unreadable": {
			"What cannot be read is said, and the rest is replayed.", "torn.log decisions.log",
			"torn.log:1: cannot read line: unexpected end of JSON input\n4 decisions replayed in TIME: 4 as recorded; 0 change; 1 line cannot be read\n",
			"cannot replay: not all of it can be read", exitError,
		},
		"Gone": {
			"So is a file that is not there.", "gone.log",
			"gone.log: open gone.log: no such file or directory\n0 decisions replayed in TIME: 0 as recorded; 0 change; 1 line cannot be read\n",
			"cannot replay: not all of it can be read", exitError,
		},
		"Typo": {
			"A field that there is not is no policy.", "decisions.log --policies wrong", "",
			"cannot read policies in \"wrong/typo.yaml\": cannot read AllowancePolicy \"widgets\": " +
				"error unmarshaling JSON: while decoding JSON: json: unknown field \"subject\"", exitError,
		},
		"None": {
			"A directory without policies is a mistake.", "decisions.log --policies none", "",
			"cannot read policies in \"none\": there are no AllowancePolicies, AllowanceBindings, UpgradeAllowances or Enforcements", exitError,
		},
		"Future": {
			"So is a version that is not known.", "decisions.log --policies future", "",
			"cannot read policies in \"future/kind.yaml\": cannot read AllowancePolicy \"a\": it is of no kind or version that is known", exitError,
		},
		"NoLog": {
			"There has to be a log.", "", "", "requires at least 1 arg(s), only received 0; see kubectl kausality replay --help", exitUsage,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer

			in, err := os.Open("decisions.log")
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close() //nolint:errcheck // It was read.

			cmd := root()
			cmd.SetOut(&out)
			cmd.SetErr(io.Discard)
			cmd.SetIn(in)

			err = run(t.Context(), cmd, append([]string{"kubectl-kausality", "replay"}, strings.Fields(tc.args)...))
			if code := exitCode(err); code != tc.code || (tc.err != "") != (err != nil) || err != nil && err.Error() != tc.err {
				t.Errorf("%s\nexit code %d, %v; want %d, %s", tc.reason, code, err, tc.code, tc.err)
			}

			if diff := cmp.Diff(tc.out, took.ReplaceAllString(out.String(), "replayed in TIME")); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}

	// What does not compile is said before anything is decided.
	err := replayLogs(t.Context(), io.Discard, io.Discard, nil, replayOptions{policies: []string{"broken"}})
	if err == nil || !strings.Contains(err.Error(), `cannot use AllowancePolicy "widgets"`) {
		t.Errorf("broken: %v", err)
	}
}

func TestNumbersAreGroupedForPeople(t *testing.T) {
	t.Parallel()

	for n, want := range map[int]string{0: "0 decisions", 1: "1 decision", 999: "999 decisions", 1000: "1,000 decisions", 1234567: "1,234,567 decisions"} {
		if got := plural(n, "decision"); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
