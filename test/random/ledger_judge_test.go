// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package random_test

import (
	"strings"
	"testing"
	"time"

	"github.com/kausality-io/kausality-crossplane/test/provider/external"
)

// The history of the tests: hans makes a small server, anna asks for a large one, berta approves
// that, and it is made. A time is so many seconds after the beginning.
func at(second int) time.Time { return time.Unix(1_800_000_000+int64(second), 0) }

func asks(second int, allowed bool, field, value string) asking {
	return asking{at: at(second), name: "s", field: field, value: value, allowed: allowed}
}

func decides(second int, user, name string) verdict {
	return verdict{
		name: name, uid: "uid-" + name, user: user, at: at(second), stored: at(second), changes: []approvable{{name: "s", uid: "1", field: "size", from: "small", value: "large"}},
	}
}

func changes(second int, size string, approvals ...string) call {
	return call{name: "s", uid: "1", verb: external.Update, at: at(second), payload: values{"size": size}, approvals: approvals}
}

func honest() *ledger {
	return &ledger{
		askings: []asking{asks(0, true, fieldCreate, ""), asks(0, true, "size", "small"), asks(10, false, "size", "large")},
		calls: []call{
			{name: "s", uid: "1", verb: external.Create, at: at(1), payload: values{"size": "small"}},
			changes(13, "large", "ok"), changes(14, "large", "ok"), // The provider tries once more.
		},
		verdicts: []verdict{decides(12, "berta", "ok")},
		outside:  map[string]values{"s": {"size": "large"}},
	}
}

// spare is another server, which a Composition asks for.
func spare() *ledger {
	l := honest()
	l.askings = append(l.askings, asking{at: at(20), name: "t", field: fieldCreate}, asking{at: at(20), name: "t", field: "size", value: "large"})
	l.verdicts = append(l.verdicts, verdict{name: "spare", uid: "uid-spare", user: "berta", at: at(22), changes: []approvable{
		{name: "t", field: fieldCreate, made: values{"size": "large"}},
	}})
	l.calls = append(l.calls, call{name: "t", uid: "2", verb: external.Create, at: at(23), payload: values{"size": "large"}, approvals: []string{"spare"}})
	l.outside["t"] = values{"size": "large"}

	return l
}

func TestTheLedgerReportsWhatWasNotApprovedOrNotMade(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		ledger *ledger
		change func(l *ledger)
		// want is part of the one thing that is wrong; empty for nothing.
		want string
	}{
		"All is as it was approved": {ledger: honest()},
		"Nobody approved it": {
			ledger: honest(), change: func(l *ledger) { l.verdicts, l.calls = nil, []call{l.calls[0], changes(13, "large")} },
			want: "Update size=large of s 1 at ",
		},
		"It was approved afterwards": {
			ledger: honest(), change: func(l *ledger) { l.verdicts[0].at = at(15) }, want: "no policy allows it, and nobody approved it",
		},
		"An approval of another value": {
			ledger: honest(), change: func(l *ledger) { l.verdicts[0].changes[0].value = "huge" }, want: "no policy allows it, and nobody approved it",
		},
		"An approval of another field": {
			ledger: honest(), change: func(l *ledger) { l.verdicts[0].changes[0].field = "color" }, want: "no policy allows it, and nobody approved it",
		},
		"An approval of an object that was there before": {
			ledger: honest(), change: func(l *ledger) {
				l.verdicts[0].changes[0].uid = "0"
				l.calls = []call{l.calls[0], changes(13, "large")}
			},
			want: "no policy allows it, and nobody approved it",
		},
		"More than was approved": {
			ledger: honest(), change: func(l *ledger) { l.calls[1].payload["color"], l.calls[2].payload["color"] = "red", "red" },
			want: "Update color=red of s 1 at ",
		},
		"An approval that is used twice": {
			ledger: honest(), change: func(l *ledger) {
				l.askings = append(l.askings, asks(20, true, "size", "small"), asks(30, false, "size", "large"))
				l.calls = append(l.calls, changes(21, "small"), changes(31, "large"))
			},
			want: "its approval was used before",
		},
		"What was approved once more": {
			ledger: honest(), change: func(l *ledger) {
				l.askings = append(l.askings, asks(20, true, "size", "small"), asks(30, false, "size", "large"))
				l.verdicts = append(l.verdicts, decides(31, "berta", "again"))
				l.calls = append(l.calls, changes(21, "small"), changes(32, "large"))
			},
		},
		"One that is made once more under its name": {
			ledger: honest(), change: func(l *ledger) {
				l.askings = append(l.askings, asks(20, true, "size", "small"), asks(30, false, "size", "large"))
				l.verdicts[0].ended = at(29)
				again := decides(31, "berta", "ok")
				again.void = true
				l.verdicts = append(l.verdicts, again)
				l.calls = append(l.calls, changes(21, "small"), changes(32, "large"))
			},
			want: "its approval was used before",
		},
		"What a policy allows it does once": {
			ledger: honest(), change: func(l *ledger) {
				l.askings = append(l.askings, asks(20, false, "size", "small"))
				l.calls = append(l.calls, changes(21, "small"))
			},
		},
		"A rejection": {
			ledger: honest(), change: func(l *ledger) {
				no := decides(11, "clara", "no")
				no.rejects = true
				l.verdicts = append([]verdict{no}, l.verdicts...)
			},
			want: "its approval was rejected all along",
		},
		"A rejection that is withdrawn": {
			ledger: honest(), change: func(l *ledger) {
				no := decides(11, "clara", "no")
				no.rejects, no.ended = true, at(12)
				l.verdicts = append([]verdict{no}, l.verdicts...)
			},
		},
		"A rejection of who approves it then": {
			ledger: honest(), change: func(l *ledger) {
				no := decides(11, "berta", "no")
				no.rejects = true
				l.verdicts = append([]verdict{no}, l.verdicts...)
			},
		},
		"A rejection that came too late": {
			ledger: honest(), change: func(l *ledger) {
				no := decides(15, "clara", "no")
				no.rejects = true
				l.verdicts = append(l.verdicts, no)
			},
		},
		"An approval that nobody made": {
			ledger: honest(), change: func(l *ledger) { l.calls[2].approvals = []string{"forged"} }, want: "is for ChangeApproval \"forged\", which nobody made",
		},
		"An approval that is lost": {
			ledger: honest(), change: func(l *ledger) { l.calls, l.outside["s"] = l.calls[:1], values{"size": "small"} },
			want: "size=large of s was approved by berta",
		},
		"An approval that is lost after it was used": {
			ledger: honest(), change: func(l *ledger) { l.outside["s"] = values{"size": "small"} }, want: "size=large of s was approved by berta",
		},
		"What is taken back is not lost": {
			ledger: honest(), change: func(l *ledger) {
				l.askings = append(l.askings, asks(13, false, "size", "small"))
				l.calls, l.outside["s"] = l.calls[:1], values{"size": "small"}
			},
		},
		"What was taken back meanwhile is not lost": {
			ledger: honest(), change: func(l *ledger) {
				l.askings = append(l.askings, asks(13, false, "size", "small"), asks(14, false, "size", "large"))
				l.calls, l.outside["s"] = l.calls[:1], values{"size": "small"}
			},
		},
		"What is withdrawn is not lost": {
			ledger: honest(), change: func(l *ledger) {
				l.verdicts[0].ended = at(13)
				l.calls, l.outside["s"] = l.calls[:1], values{"size": "small"}
			},
		},
		"What is made long after it was withdrawn": {
			ledger: honest(), change: func(l *ledger) { l.verdicts[0].ended, l.calls = at(13), []call{l.calls[0], changes(60, "large")} },
			want: "its approval was withdrawn long before",
		},
		"What is approved of what was listed once is not lost": {
			ledger: honest(), change: func(l *ledger) {
				l.verdicts[0].loose = true
				l.calls, l.outside["s"] = l.calls[:1], values{"size": "small"}
			},
		},
		"What somebody has rejected before is not lost": {
			ledger: honest(), change: func(l *ledger) {
				no := decides(11, "clara", "no")
				no.rejects = true
				l.verdicts = append([]verdict{no}, l.verdicts...)
				l.askings = []asking{l.askings[0], l.askings[1], asks(10, false, "size", "large"), asks(11, false, "size", "huge"), asks(12, false, "size", "large")}
				l.calls, l.outside["s"] = l.calls[:1], values{"size": "small"}
			},
		},
		"What somebody rejects is not lost": {
			ledger: honest(), change: func(l *ledger) {
				no := decides(13, "clara", "no")
				no.rejects = true
				l.verdicts = append(l.verdicts, no)
				l.calls, l.outside["s"] = l.calls[:1], values{"size": "small"}
			},
		},
		"What somebody rejects and approves within one second is not lost": {
			ledger: honest(), change: func(l *ledger) {
				no := decides(12, "berta", "no")
				no.rejects, no.at = true, no.at.Add(-time.Millisecond)
				l.verdicts = append([]verdict{no}, l.verdicts...)
				l.calls, l.outside["s"] = l.calls[:1], values{"size": "small"}
			},
		},
		"What somebody rejects, and approves a second later, is lost": {
			ledger: honest(), change: func(l *ledger) {
				no := decides(11, "berta", "no")
				no.rejects = true
				l.verdicts = append([]verdict{no}, l.verdicts...)
				l.calls, l.outside["s"] = l.calls[:1], values{"size": "small"}
			},
			want: "size=large of s was approved by berta",
		},
		"What is approved from a value that it has no more is not lost": {
			ledger: honest(), change: func(l *ledger) {
				l.verdicts[0].changes[0].from = "tiny"
				l.calls, l.outside["s"] = l.calls[:1], values{"size": "small"}
			},
		},
		"What was rejected is lost once that is withdrawn": {
			ledger: honest(), change: func(l *ledger) {
				no := decides(13, "clara", "no")
				no.rejects, no.ended = true, at(14)
				l.verdicts = append(l.verdicts, no)
				l.calls, l.outside["s"] = l.calls[:1], values{"size": "small"}
			},
			want: "size=large of s was approved by berta",
		},
		"A creation": {ledger: spare()},
		"A creation that nobody approved": {
			ledger: spare(), change: func(l *ledger) { l.verdicts = l.verdicts[:1]; l.calls[3].approvals = nil }, want: "Create create of t 2 at ",
		},
		"A creation with another value": {
			ledger: spare(), change: func(l *ledger) { l.calls[3].payload = values{"size": "huge"}; l.outside["t"] = values{"size": "large"} },
			want: "Create size=huge of t 2 at ",
		},
		"A creation that is lost": {
			ledger: spare(), change: func(l *ledger) { l.calls = l.calls[:3]; delete(l.outside, "t") }, want: "create of t was approved by berta",
		},
		"A creation that is made twice": {
			ledger: spare(), change: func(l *ledger) {
				l.verdicts = append(l.verdicts, verdict{name: "gone", uid: "uid-gone", user: "berta", at: at(31), changes: []approvable{{name: "t", uid: "2", field: fieldDelete}}})
				l.askings = append(l.askings, asking{at: at(30), name: "t", field: fieldDelete}, asking{at: at(40), name: "t", field: fieldCreate})
				l.calls = append(l.calls, call{name: "t", uid: "2", verb: external.Delete, at: at(32)},
					call{name: "t", uid: "3", verb: external.Create, at: at(41), payload: values{"size": "large"}})
			},
			want: "Create create of t 3 at ",
		},
		"A deletion that nobody approved": {
			ledger: spare(), change: func(l *ledger) {
				l.askings = append(l.askings, asking{at: at(30), name: "t", field: fieldDelete})
				l.calls = append(l.calls, call{name: "t", uid: "2", verb: external.Delete, at: at(32)})
				delete(l.outside, "t")
			},
			want: "Delete delete of t 2 at ",
		},
		"A deletion that is lost": {
			ledger: spare(), change: func(l *ledger) {
				l.verdicts = append(l.verdicts, verdict{name: "gone", uid: "uid-gone", user: "berta", at: at(31), changes: []approvable{{name: "t", uid: "2", field: fieldDelete}}})
				l.askings = append(l.askings, asking{at: at(30), name: "t", field: fieldDelete})
			},
			want: "delete of t was approved by berta",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			if tc.change != nil {
				tc.change(tc.ledger)
			}

			got := tc.ledger.wrong()
			if tc.want == "" && len(got) > 0 || tc.want != "" && (len(got) != 1 || !strings.Contains(got[0], tc.want)) {
				t.Errorf("want %q, got\n%s", tc.want, strings.Join(got, "\n"))
			}
		})
	}
}
