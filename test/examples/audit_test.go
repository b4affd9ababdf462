// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package examples_test

import (
	"bufio"
	"cmp"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// managerAccount is who the manager is.
const managerAccount = "system:serviceaccount:kausality-system:kausality-manager"

// write is one that the API server's audit log has, be it refused; a dry run is none.
type write struct {
	user, verb, resource, name string
	code                       int
}

// auditLog is what the API server logs, from some moment on.
type auditLog int64

func auditFile() string { return filepath.Join(running.LogDir(), "kube-apiserver.log") }

// auditPolicy is the file that says what the API server logs.
func auditPolicy() string {
	dir, err := os.Getwd()
	if err != nil {
		return "" // The API server says so.
	}

	return filepath.Join(dir, "testdata", "audit-policy.yaml")
}

// auditFromNow is what it logs from now on.
func auditFromNow(t *testing.T) auditLog {
	t.Helper()

	info, err := os.Stat(auditFile())
	if err != nil {
		t.Fatal(err)
	}

	return auditLog(info.Size())
}

// writes are those that it has by now and that are meant. What is written to a subresource is of
// resource/subresource.
func (l auditLog) writes(t *testing.T, meant func(write) bool) []write {
	t.Helper()

	file, err := os.Open(auditFile())
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // It was read.

	if _, err := file.Seek(int64(l), io.SeekStart); err != nil {
		t.Fatal(err)
	}

	var out []write

	for lines := bufio.NewReader(file); ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			return out // The end.
		}

		type named struct {
			Username string `json:"username"`
		}

		var event struct {
			Verb             string `json:"verb"`
			RequestURI       string `json:"requestURI"`
			User             named  `json:"user"`
			ImpersonatedUser named  `json:"impersonatedUser"`
			ObjectRef        struct {
				Resource    string `json:"resource"`
				Subresource string `json:"subresource"`
				Name        string `json:"name"`
			} `json:"objectRef"`
			ResponseStatus struct {
				Code int `json:"code"`
			} `json:"responseStatus"`
		}

		if !strings.HasPrefix(line, `{"kind":"Event"`) || json.Unmarshal([]byte(line), &event) != nil || strings.Contains(event.RequestURI, "dryRun=") {
			continue
		}

		w := write{
			user: cmp.Or(event.ImpersonatedUser.Username, event.User.Username), verb: event.Verb,
			resource: event.ObjectRef.Resource, name: event.ObjectRef.Name, code: event.ResponseStatus.Code,
		}
		if sub := event.ObjectRef.Subresource; sub != "" {
			w.resource += "/" + sub
		}

		if meant(w) {
			out = append(out, w)
		}
	}
}
