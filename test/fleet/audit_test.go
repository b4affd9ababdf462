// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package fleet_test

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// event is a request that the API server has answered.
//
// Source: k8s.io/apiserver/pkg/apis/audit/v1.
type event struct {
	Verb string `json:"verb"`
	User struct {
		Username string `json:"username"`
	} `json:"user"`
	ObjectRef struct {
		Group       string `json:"apiGroup"`
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code   int    `json:"code"`
		Reason string `json:"reason"`
	} `json:"responseStatus"`
	ResponseObject json.RawMessage `json:"responseObject"`
	Stage          time.Time       `json:"stageTimestamp"`
}

// who is the last part of a user's name.
func (e *event) who() string {
	return e.User.Username[strings.LastIndex(e.User.Username, ":")+1:]
}

// what is the resource, with the subresource.
func (e *event) what() string {
	if e.ObjectRef.Subresource == "" {
		return e.ObjectRef.Resource
	}

	return e.ObjectRef.Resource + "/" + e.ObjectRef.Subresource
}

// writes reports whether the request is to change something.
func (e *event) writes() bool { return e.Verb != "get" && e.Verb != "list" }

// stores reports whether what is written stays: not a question, nor a lease.
func (e *event) stores() bool {
	return !strings.HasSuffix(e.ObjectRef.Resource, "reviews") && e.ObjectRef.Resource != "leases"
}

// conflicts reports whether somebody had changed before what the request is to change.
func (e *event) conflicts() bool {
	return e.ResponseStatus.Code == http.StatusConflict && e.ResponseStatus.Reason != "AlreadyExists"
}

// failed reports whether the request had no effect.
func (e *event) failed() bool { return e.ResponseStatus.Code >= http.StatusBadRequest }

// log reads on in the audit log.
type log struct {
	file *os.File
	read *bufio.Reader
	part []byte
}

func openLog(t *testing.T) *log {
	t.Helper()

	f, err := os.Open(audited)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = f.Close() })

	return &log{file: f, read: bufio.NewReaderSize(f, 1<<20)}
}

// next are the events since the last time.
func (l *log) next(t *testing.T) []event {
	t.Helper()

	var out []event

	for {
		line, err := l.read.ReadBytes('\n')
		l.part = append(l.part, line...)

		if err == io.EOF {
			return out // The last line may be written only in part.
		}

		if err != nil {
			t.Fatal(err)
		}

		var e event
		if err := json.Unmarshal(l.part, &e); err != nil {
			t.Fatalf("%v in %s", err, l.part)
		}

		l.part = l.part[:0]
		out = append(out, e)
	}
}

// bill is what a storm took, of so many composite resources.
type bill struct {
	xrs    int
	events []event
}

// rows are how often what was done for each composite resource, by whom, and what became of it.
func (b bill) rows() string {
	counts, bad := map[string]int{}, map[string]map[string]int{}

	for i := range b.events {
		e := &b.events[i]
		key := fmt.Sprintf("%-28s %-6s %s", e.who(), e.Verb, e.what())
		counts[key]++

		if e.failed() {
			if bad[key] == nil {
				bad[key] = map[string]int{}
			}

			bad[key][fmt.Sprintf("%d %s", e.ResponseStatus.Code, e.ResponseStatus.Reason)]++
		}
	}

	keys := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(strings.Compare(a[:28], b[:28]), counts[b]-counts[a], strings.Compare(a, b))
	})

	var out strings.Builder

	for _, key := range keys {
		per := float64(counts[key]) / float64(b.xrs)
		if per < rare && bad[key] == nil {
			continue
		}

		fmt.Fprintf(&out, "%8.2f  %s", per, key)

		for _, code := range slices.Sorted(maps.Keys(bad[key])) {
			fmt.Fprintf(&out, "  %s: %d", code, bad[key][code])
		}

		out.WriteByte('\n')
	}

	return out.String()
}

// runs is how often pipelines ran: each time Crossplane applies first what the composite resource refers to.
//
// Source: github.com/crossplane/crossplane/v2 internal/controller/apiextensions/composite/composition_functions.go.
func (b bill) runs(resource string) int {
	n := 0

	for i := range b.events {
		if e := &b.events[i]; e.who() == "crossplane" && e.Verb == "patch" && e.what() == resource {
			n++
		}
	}

	return n
}

// rare is how often for each composite resource what is done less is not shown.
const rare = 0.1

// object names what a request is about.
func (e *event) object() string {
	return e.ObjectRef.Resource + "/" + e.ObjectRef.Name
}

// conflicted are the conflicts of each object.
func (b bill) conflicted() map[string]int {
	out := map[string]int{}

	for i := range b.events {
		if e := &b.events[i]; e.conflicts() {
			out[e.object()]++
		}
	}

	return out
}

// alternations is how often a composite resource's status is written as it was before it was last written, and
// one of them, as the two texts of it.
func (b bill) alternations() (n int, example string) {
	last := map[string][2]string{}

	for i := range b.events {
		e := &b.events[i]
		if len(e.ResponseObject) == 0 || e.failed() {
			continue
		}

		text := conditions(e.ResponseObject)
		if two := last[e.object()]; text != two[1] {
			if text == two[0] && two[0] != "" {
				n++
				example = two[0] + "\n<->\n" + two[1]
			}

			last[e.object()] = [2]string{two[1], text}
		}
	}

	return n, example
}

// conditions is what conditions say, without since when.
func conditions(raw []byte) string {
	var u struct {
		Status struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}
	if err := json.Unmarshal(raw, &u); err != nil {
		return err.Error()
	}

	out := make([]string, 0, len(u.Status.Conditions))
	for _, c := range u.Status.Conditions {
		out = append(out, fmt.Sprintf("%s %s %s %s", c.Type, c.Status, c.Reason, c.Message))
	}

	slices.Sort(out)

	return strings.Join(out, "\n")
}

// total adds up counts.
func total[number int | time.Duration](counts map[string]number) number {
	var sum number
	for _, n := range counts {
		sum += n
	}

	return sum
}

// largest is the largest of counts; 0 for none.
func largest(counts map[string]int) int {
	most := 0
	for _, n := range counts {
		most = max(most, n)
	}

	return most
}
