// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/kausality-io/kausality-crossplane/internal/doctor"
)

func TestTheCommandLineEndsAsTheHelpSays(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(empty, []byte("apiVersion: v1\nkind: Config\ncontexts: [{name: prod, context: {}}, {name: test, context: {}}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}

	cases := map[string]struct {
		reason string
		args   string
		code   int
		out    string
		err    string
	}{
		"Version": {
			reason: "No cluster is asked for this program's version.", args: "version --client",
			out: "kubectl-kausality dev\n",
		},
		"JSON": {
			reason: "A document has a version and a kind.", args: "version --client -o json",
			out: "{\n  \"apiVersion\": \"cli.kausality.io/v1alpha1\",\n  \"kind\": \"Version\",\n  \"client\": \"dev\",\n  \"installed\": []\n}\n",
		},
		"YAML": {
			reason: "YAML has the same fields.", args: "version --client --output=yaml",
			out: "apiVersion: cli.kausality.io/v1alpha1\nclient: dev\ninstalled: []\nkind: Version\n",
		},
		"NoFormat": {
			reason: "A format that there is not is an error in the command line, before anything is done.",
			args:   "release pod/a -o table", code: exitUsage, err: `cannot print as "table": give json, yaml or jsonpath=TEMPLATE, or name`,
		},
		"NoCommand": {
			reason: "So is a command that there is not.", args: "frob", code: exitUsage,
			err: `unknown command "frob" for "kubectl kausality"; see kubectl kausality --help`,
		},
		"NoFlag": {
			reason: "So is a flag.", args: "doctor --frob", code: exitUsage, err: "unknown flag: --frob; see kubectl kausality doctor --help",
		},
		"NoObject": {
			reason: "So is a missing object.", args: "trace", code: exitUsage,
			err: "accepts between 1 and 2 arg(s), received 0; see kubectl kausality trace --help",
		},
		"NoAction": {
			reason: "So is what is about to be done.", args: "allowed workspace/net", code: exitUsage,
			err: "say what is about to be done, with --action, such as apply or sync",
		},
		"NoLeave": {
			reason: "Removing does not decide what becomes of managed resources.", args: "uninstall", code: exitUsage,
			err: "say how managed resources are to be left, with --leave=open or --leave=closed",
		},
		"ApprovedByAProgramWithoutADigest": {
			reason: "A program says what it looked at.", args: "approve claim/db --yes", code: exitUsage,
			err: "--yes goes with --digest, the status.digest of the PendingChange that was looked at",
		},
		"DigestWithoutYes": {
			reason: "A person looks now.", args: "reject claim/db --digest sha256:1", code: exitUsage, err: "--digest goes with --yes",
		},
		"TimeoutWithoutFollow": {
			reason: "Nothing is waited for.", args: "approve claim/db --timeout 1m", code: exitUsage, err: "--timeout goes with --follow",
		},
		"NothingToApprove": {
			reason: "What is approved is named.", args: "approve", code: exitUsage,
			err: "requires at least 1 arg(s), only received 0; see kubectl kausality approve --help",
		},
		"NoCluster": {
			reason: "That no cluster is there is a failure.", args: "doctor --context nowhere --kubeconfig " + empty, code: exitError,
			err: `cannot read kubeconfig: context "nowhere" does not exist`,
		},
		"Contexts": {
			reason: "Contexts are completed from the kubeconfig.", args: "__complete doctor --kubeconfig " + empty + " --context p",
			out: "prod\n:4\n",
		},
		"Formats": {reason: "Formats are completed.", args: "__complete trace --output j", out: "json\nyaml\njsonpath=\nname\n:4\n"},
		"NoNames": {
			reason: "What is about no objects names none.", args: "version --client -o name", code: exitUsage,
			err: `cannot print as "name": give json, yaml or jsonpath=TEMPLATE`,
		},
		"Path": {reason: "As kubectl it takes what a template names, and adds nothing.", args: "version --client -o jsonpath={.kind}:{.nothing}", out: "Version:"},
		"NoPath": {
			reason: "A template that does not parse is an error in the command line.", args: "version --client -o jsonpath={.kind", code: exitUsage,
			err: `cannot print as "jsonpath={.kind": unclosed action`,
		},
		"DryRuns": {reason: "What there is of dry runs is completed.", args: "__complete release --dry-run=s", out: "none\nserver\nclient\n:4\n"},
		"NoDryRun": {
			reason: "One that there is not is an error in the command line.", args: "release a/b --dry-run=api", code: exitUsage,
			err: `invalid argument "api" for "--dry-run" flag: must be "none", "server", or "client"; see kubectl kausality release --help`,
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer

			cmd := root()
			cmd.SetOut(&out)
			cmd.SetErr(io.Discard)

			err := run(t.Context(), cmd, append([]string{"kubectl-kausality"}, strings.Fields(tc.args)...))
			if code := exitCode(err); code != tc.code || (tc.err != "") != (err != nil) || err != nil && err.Error() != tc.err {
				t.Errorf("%s\n%s: exit code %d, %v; want %d, %s", tc.reason, tc.args, code, err, tc.code, tc.err)
			}

			if diff := cmp.Diff(tc.out, out.String()); diff != "" {
				t.Errorf("%s\n%s: -want, +got:\n%s", tc.reason, tc.args, diff)
			}
		})
	}
}

// TestEveryShellIsCompleted and kubectl's own way, by the program's name.
func TestEveryShellIsCompleted(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		var out bytes.Buffer

		cmd := root()
		cmd.SetOut(&out)

		if err := run(t.Context(), cmd, []string{"kubectl-kausality", "completion", shell}); err != nil || !strings.Contains(out.String(), "__complete") {
			t.Errorf("completion %s: %v: %s", shell, err, out.String())
		}
	}

	var out bytes.Buffer

	cmd := root()
	cmd.SetOut(&out)
	cmd.SetErr(io.Discard)

	err := run(t.Context(), cmd, []string{"/usr/bin/kubectl_complete-kausality", "doc"})
	if err != nil || !strings.HasPrefix(out.String(), "doctor\t") {
		t.Errorf("kubectl_complete-kausality doc: %v: %s", err, out.String())
	}
}

// TestEveryCommandHasExamplesAndExitCodes in its help.
func TestEveryCommandHasExamplesAndExitCodes(t *testing.T) {
	for _, cmd := range root().Commands() {
		if cmd.Name() == "completion" || cmd.Name() == "help" || strings.HasPrefix(cmd.Name(), cobra.ShellCompRequestCmd) {
			continue
		}

		if cmd.Name() == "diff" { // It is diff's, and asks no cluster.
			if !strings.Contains(cmd.Long, diffHelp) || cmd.Example == "" {
				t.Errorf("%s: %s\n%s", cmd.Name(), cmd.Long, cmd.Example)
			}

			continue
		}

		if !strings.Contains(cmd.Long, exitHelp) || !strings.Contains(cmd.Example, "kubectl kausality "+cmd.Name()) {
			t.Errorf("%s: %s\n%s", cmd.Name(), cmd.Long, cmd.Example)
		}

		if cmd.Name() == "lint" || cmd.Name() == "test" || cmd.Name() == "replay" { // They ask no cluster.
			continue
		}

		for _, flag := range []string{"kubeconfig", "context", "namespace", "output", "as"} {
			if f := cmd.Flags().Lookup(flag); f == nil || flag == "as" && !strings.Contains(f.Usage, "impersonate") {
				t.Errorf("%s has no flag --%s as kubectl has it", cmd.Name(), flag)
			}
		}
	}
}

func TestFindingsArePrintedForPeople(t *testing.T) {
	got := prescription([]doctor.Finding{
		{Check: "crds", Severity: doctor.OK, What: "All is there."},
		{Check: "guards", Severity: doctor.Error, Object: "Guard g", What: "it is missing", Why: "gates open", Remedy: "make it"},
		{Check: "gates", Severity: doctor.Warning, What: "cannot look"},
	}, false)

	want := `ERROR    guards: Guard g: it is missing
         why: gates open
         remedy: make it
WARNING  gates: cannot look
1 errors, 1 warnings, 1 ok
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("prescription: -want, +got:\n%s", diff)
	}

	if code := exitCode(fmt.Errorf("doctor: %w", errFinding)); code != exitFinding {
		t.Errorf("exit code of a finding: %d", code)
	}
}

func TestAResultShowsWhatWasDoneBeforeAFailure(t *testing.T) {
	var out bytes.Buffer

	failed := errors.New("second step")
	c := &cluster{dry: dryRun{mode: dryServer}}
	err := (&outputOptions{format: formatYAML}).result(&out, c, func(out io.Writer) error {
		c.note(parse(t, left))

		return errors.Join(say(out, "made %s\n", "it"), failed)
	})

	want := "apiVersion: cli.kausality.io/v1alpha1\ndone:\n- made it\ndryRun: true\nkind: Result\n" +
		"objects:\n- apiVersion: rds.example.org/v1\n  kind: Instance\n  name: db-1\n"
	if diff := cmp.Diff(want, out.String()); !errors.Is(err, failed) || diff != "" {
		t.Errorf("result: %v, -want, +got:\n%s", err, diff)
	}
}

func TestVersionsAreReadFromImages(t *testing.T) {
	for image, want := range map[string]string{
		"registry.example.org:5000/kausality-manager:v1.2.3@sha256:00": "v1.2.3",
		"registry.example.org:5000/kausality-manager@sha256:00":        "sha256:00",
		"kausality-manager": "",
	} {
		if got := tag(image); got != want {
			t.Errorf("tag(%q): %q, want %q", image, got, want)
		}
	}
}
