// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package bench_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// controllers are who writes because somebody has asked for something: the user names of service accounts begin so.
const controllers = "system:serviceaccount:"

// audit is what the API server was asked to write, as it says itself.
type audit struct {
	path   string
	offset int64
}

// calls counts the writes of controllers that the API server took, as WHO VERB RESOURCE.
type calls map[string]int

// add reads what has been written since the last time.
func (a *audit) add(to calls) error {
	raw, err := os.ReadFile(a.path)
	if err != nil {
		return err
	}

	for line := range strings.Lines(string(raw[a.offset:])) {
		if !strings.HasSuffix(line, "\n") {
			break // It is being written.
		}

		a.offset += int64(len(line))

		e := auditv1.Event{}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			return fmt.Errorf("cannot read an audit event: %w", err)
		}

		const failure = 300

		who, ours := strings.CutPrefix(e.User.Username, controllers)
		if !ours || e.ObjectRef == nil || e.ResponseStatus == nil || e.ResponseStatus.Code >= failure || strings.Contains(e.RequestURI, "dryRun=") {
			continue
		}

		resource := e.ObjectRef.Resource
		if e.ObjectRef.Subresource != "" {
			resource += "/" + e.ObjectRef.Subresource
		}

		to[who[strings.LastIndexByte(who, ':')+1:]+" "+e.Verb+" "+resource]++
	}

	return nil
}

// since returns the writes since the last time, once there were none for a while.
func (a *audit) since(b *testing.B) calls {
	b.Helper()

	var (
		out   = calls{}
		was   int
		since = time.Now()
	)

	eventually(b, "rest of the writers", func(context.Context) error {
		if err := a.add(out); err != nil {
			return err
		}

		if now := out.sum(""); now != was {
			was, since = now, time.Now()
		}

		if left := calm - time.Since(since); left > 0 {
			return fmt.Errorf("there were %d writes", was)
		}

		return nil
	})

	return out
}

// sum is how many there are of which somebody begins with something, without those of Events.
func (c calls) sum(who string) (out int) {
	for name, n := range c {
		if strings.HasPrefix(name, who) && !strings.HasSuffix(name, " events") {
			out += n
		}
	}

	return out
}

// events is how many Events there are among them.
func (c calls) events() (out int) {
	for name, n := range c {
		if strings.HasSuffix(name, " events") {
			out += n
		}
	}

	return out
}

func (c calls) String() string {
	lines := make([]string, 0, len(c))
	for _, name := range slices.Sorted(maps.Keys(c)) {
		lines = append(lines, fmt.Sprintf("%s: %d", name, c[name]))
	}

	return strings.Join(lines, ", ")
}
