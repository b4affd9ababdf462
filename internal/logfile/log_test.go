// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package logfile

import (
	"bufio"
	stdcmp "cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/internal/decisionlog"
	"github.com/kausality-io/kausality-crossplane/test/patience"
)

func counters() Counters {
	return Counters{
		Bytes: prometheus.NewCounter(prometheus.CounterOpts{Name: "bytes_total", Help: "Bytes."}), Decisions: prometheus.NewCounter(prometheus.CounterOpts{Name: "decisions_total", Help: "Decisions."}),
		Dropped: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "dropped_total", Help: "Dropped."}, []string{"reason"}),
	}
}

// dropped are the decisions that were dropped, by reason.
func (c *Counters) dropped(reason string) int {
	return int(testutil.ToFloat64(c.Dropped.WithLabelValues(reason)))
}

// request is one about an object of a name, with a text of a length.
func requestFor(name string, size int) (*request.Request, *decision.Decision) {
	req := &request.Request{Operation: request.OperationCreate, New: &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}, "data": map[string]any{"text": strings.Repeat("x", size)},
	}}}
	d := decision.Decide(*req)

	return req, &d
}

func entry(tb testing.TB, name string, size int) decisionlog.Entry {
	tb.Helper()

	var encoder decisionlog.Encoder

	req, d := requestFor(name, size)

	out, err := encoder.Encode(decisionlog.Asked{}, req, d)
	if err != nil {
		tb.Fatal(err)
	}

	return out
}

func options(t *testing.T) Options {
	t.Helper()

	return Options{File: filepath.Join(t.TempDir(), "log", "decisions.log"), MaxBytes: 1 << 20, MaxFiles: 3}
}

// silent fails where there is something to complain of.
func silent(t *testing.T) func(error) {
	t.Helper()

	return func(err error) { t.Errorf("complained: %v", err) }
}

// read are the lines of a file, by kind; each has to be whole, and each decision after what
// was in force.
func read(t *testing.T, path string) map[string]int {
	t.Helper()

	raw, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close() //nolint:errcheck // It was read.

	var in io.Reader = raw
	if strings.HasSuffix(path, ".gz") {
		if in, err = gzip.NewReader(raw); err != nil {
			t.Fatal(err)
		}
	}

	out, digests := map[string]int{}, map[string]bool{}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<24)

	for lines.Scan() {
		if lines.Text() == "" {
			continue
		}

		var line struct {
			decisionlog.Header

			Digest    string `json:"digest"`
			InForce   string `json:"inForce"`
			Decisions int    `json:"decisions"`
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Errorf("%s: %v: %.80s", path, err, lines.Text())
		}

		switch line.Kind {
		case decisionlog.KindInForce:
			digests[line.Digest] = true
		case decisionlog.KindDecision:
			if !digests[line.InForce] {
				t.Errorf("%s: what was in force is not before the decision", path)
			}
		}

		out[line.Kind] += max(1, line.Decisions)
	}

	return out
}

func TestManyWritersLogWholeLines(t *testing.T) {
	t.Parallel()

	const writers, each = 8, 50

	opts, count := options(t), counters()

	log, err := New(opts, count, silent(t))
	if err != nil {
		t.Fatal(err)
	}

	var group sync.WaitGroup

	for i := range writers {
		group.Go(func() {
			for k := range each {
				req, d := requestFor(fmt.Sprint(i, "-", k), 100)
				log.Record(decisionlog.Asked{}, req, d)
			}
		})
	}

	group.Wait()
	log.Close()
	log.Close() // Once more does no harm.

	if diff := cmp.Diff(map[string]int{"Decision": writers * each, "InForce": 1}, read(t, opts.File)); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}

	info, err := os.Stat(opts.File)
	if err != nil {
		t.Fatal(err)
	}

	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}

	if got := testutil.ToFloat64(count.Bytes); int64(got) != info.Size() || testutil.ToFloat64(count.Decisions) != writers*each {
		t.Errorf("%v bytes, want %d; %v decisions", got, info.Size(), testutil.ToFloat64(count.Decisions))
	}

	// What comes later is left out.
	req, d := requestFor("late", 1)
	log.Record(decisionlog.Asked{}, req, d)

	if count.dropped(reasonQueue) != 1 {
		t.Errorf("%d dropped after it was closed, want 1", count.dropped(reasonQueue))
	}
}

func TestNothingIsLoggedWithoutAFile(t *testing.T) {
	t.Parallel()

	log, err := New(Options{}, counters(), silent(t))
	if log != nil || err != nil {
		t.Errorf("%v, %v", log, err)
	}

	req, d := requestFor("a", 1)
	log.Record(decisionlog.Asked{}, req, d)
	log.Close()
}

// settled are the files of a log once there are so many: some are compressed, and some removed,
// a moment after they are rotated.
func settled(t *testing.T, opts Options, files int) []string {
	t.Helper()

	for deadline := time.Now().Add(patience.Limit); ; time.Sleep(10 * time.Millisecond) {
		names, err := filepath.Glob(filepath.Join(filepath.Dir(opts.File), "*"))
		if err != nil {
			t.Fatal(err)
		}

		plain := slices.ContainsFunc(names, func(n string) bool { return n != opts.File && !strings.HasSuffix(n, ".gz") })
		if len(names) == files && !plain {
			return names
		}

		if time.Now().After(deadline) {
			t.Fatalf("files: %v", names)
		}
	}
}

func TestFilesAreRotatedWithinTheirBounds(t *testing.T) {
	t.Parallel()

	opts, count := options(t), counters()
	log := newLog(opts, count, silent(t))

	const decisions = 60

	for i := range decisions {
		log.write(entry(t, strconv.Itoa(i), 200*1024))
		time.Sleep(2 * time.Millisecond) // Rotated files are named after the time, in milliseconds.
	}

	log.file.close()

	names := settled(t, opts, opts.MaxFiles)

	for _, name := range names {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}

		if got := read(t, name); info.Size() > opts.MaxBytes || got["Decision"] == 0 || got["InForce"] != 1 {
			t.Errorf("%s: %d bytes, %v", name, info.Size(), got)
		}
	}

	if n := testutil.ToFloat64(count.Decisions); n != decisions {
		t.Errorf("%v written", n)
	}
}

func TestWhatIsLeftOutIsCounted(t *testing.T) {
	t.Parallel()

	record := func(log *Log, n int) {
		for range n {
			req, d := requestFor("a", 1)
			log.Record(decisionlog.Asked{}, req, d)
		}
	}

	large := func(o *Options) { o.MaxBytes = 64 << 20 }

	for name, tc := range map[string]struct {
		reason string
		opts   func(*Options)
		run    func(*testing.T, *Log)
		drops  string
		want   map[string]int
	}{
		"Rate": {
			"More than --decision-log-rate are not even encoded.", func(o *Options) { o.Rate = 0.001 },
			func(t *testing.T, log *Log) {
				t.Helper()
				record(log, 4)
				log.limiter.SetLimit(1e9)
				time.Sleep(time.Millisecond)
				record(log, 1)
			}, reasonRate,
			map[string]int{"Decision": 2, "InForce": 1, "Dropped": 3},
		},
		"Queue": {
			"What the file is too slow for is left out.", large,
			func(t *testing.T, log *Log) {
				t.Helper()
				record(log, maxQueued+3)
			}, reasonQueue,
			map[string]int{"Decision": maxQueued, "InForce": 1, "Dropped": 3},
		},
		"QueuedMeanwhile": {
			"So is what others are faster than, who fill the queue while it is encoded.", large,
			func(t *testing.T, log *Log) {
				t.Helper()

				one := entry(t, "late", 1)

				record(log, maxQueued)

				for range 3 {
					log.enqueue(one)
				}
			}, reasonQueue,
			map[string]int{"Decision": maxQueued, "InForce": 1, "Dropped": 3},
		},
		"QueuedBytes": {
			"Few that are large are too many, too.", func(*Options) {},
			func(t *testing.T, log *Log) {
				t.Helper()

				one := entry(t, "large", 900*1024)
				log.bytes.Add(maxQueuedBytes)
				log.enqueue(one)
				record(log, 3)
				log.bytes.Add(-maxQueuedBytes)
			}, reasonQueue,
			map[string]int{"Decision": 1, "InForce": 1, "Dropped": 3},
		},
		"Size": {
			"One that is larger than a file is in none.", func(*Options) {},
			func(t *testing.T, log *Log) {
				t.Helper()

				for range 3 {
					log.enqueue(entry(t, "large", 2<<20))
				}

				record(log, 1)
			}, reasonSize,
			map[string]int{"Decision": 1, "InForce": 1, "Dropped": 3},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			opts, count := options(t), counters()
			tc.opts(&opts)
			log := newLog(opts, count, silent(t))

			tc.run(t, log)

			// Only now somebody writes.
			go log.run()

			log.Close()

			if diff := cmp.Diff(tc.want, read(t, opts.File)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}

			if got := count.dropped(tc.drops); got != 3 {
				t.Errorf("%s: %d dropped, want 3", tc.reason, got)
			}

			if got := log.bytes.Load(); got != 0 {
				t.Errorf("%s\n%d bytes wait of nothing", tc.reason, got)
			}
		})
	}
}

func TestAFileThatCannotBeWrittenIsComplainedOfOnce(t *testing.T) {
	t.Parallel()

	opts, count := options(t), counters()
	dir := filepath.Dir(opts.File)

	// A file in the place of its directory.
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}

	var complaints []string

	log := newLog(opts, count, func(err error) { complaints = append(complaints, err.Error()) })

	for range 3 {
		log.write(entry(t, "a", 1))
	}

	if len(complaints) != 1 || !strings.HasPrefix(complaints[0], "cannot write decision log ") || count.dropped(reasonWrite) != 3 {
		t.Errorf("complained %q, dropped %d", complaints, count.dropped(reasonWrite))
	}

	// It is there again, and goes on.
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}

	log.write(entry(t, "a", 1))
	log.file.close()

	if diff := cmp.Diff(map[string]int{"Decision": 1, "InForce": 1, "Dropped": 3}, read(t, opts.File)); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestAFullDiskTearsNoOtherLine where the system has a device that is always full.
func TestAFullDiskTearsNoOtherLine(t *testing.T) {
	t.Parallel()

	const full = "/dev/full"
	if _, err := os.Stat(full); err != nil {
		t.Skipf("there is no %s here", full)
	}

	opts, count := options(t), counters()
	if err := os.Mkdir(filepath.Dir(opts.File), 0o700); err != nil {
		t.Fatal(err)
	}

	if err := os.Symlink(full, opts.File); err != nil {
		t.Fatal(err)
	}

	var complaints []string

	log := newLog(opts, count, func(err error) { complaints = append(complaints, err.Error()) })
	for range 3 {
		log.write(entry(t, "a", 1))
	}

	if len(complaints) != 1 || !strings.HasSuffix(complaints[0], "no space left on device") || count.dropped(reasonWrite) != 3 {
		t.Errorf("complained %q, dropped %d", complaints, count.dropped(reasonWrite))
	}
}

// TestHalfALineOfOneThatWasKilledStaysALineOfItsOwn and what was in force is written again.
func TestHalfALineOfOneThatWasKilledStaysALineOfItsOwn(t *testing.T) {
	t.Parallel()

	opts := options(t)
	if err := os.Mkdir(filepath.Dir(opts.File), 0o700); err != nil {
		t.Fatal(err)
	}

	const half = `{"apiVersion":"log.kausality.io/v1alpha1","ki`
	if err := os.WriteFile(opts.File, []byte(half), 0o600); err != nil {
		t.Fatal(err)
	}

	log := newLog(opts, counters(), silent(t))
	one := entry(t, "a", 1)
	log.write(one)
	log.file.close()

	raw, err := os.ReadFile(opts.File)
	if err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff(half+"\n"+string(one.InForce)+string(one.Decision), string(raw)); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

func TestOptionsThatCannotBeAreRefused(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		opts Options
		want string
	}{
		"Bytes": {Options{MaxBytes: 1, MaxFiles: 2}, "cannot use --decision-log-max-bytes=1: it has to be at least 65536"},
		"Files": {Options{MaxBytes: 1 << 20, MaxFiles: 1}, "cannot use --decision-log-max-files=1: it has to be at least 2"},
		"Rate":  {Options{MaxBytes: 1 << 20, MaxFiles: 2, Rate: -1}, "cannot use --decision-log-rate=-1: it must not be negative"},
		"File": {
			Options{MaxBytes: 1 << 20, MaxFiles: 2, File: "/dev/null"},
			"cannot use --decision-log=/dev/null: it is no regular file, and could not be rotated",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			tc.opts.File = stdcmp.Or(tc.opts.File, "decisions.log")

			log, err := New(tc.opts, counters(), silent(t))
			if log != nil || err == nil || err.Error() != tc.want {
				t.Errorf("%v, %v, want %s", log, err, tc.want)
			}
		})
	}
}

// TestAFileThatSomebodyElseTouchesIsBegunAnew with what was in force, as each line has to be
// decided again by its own file.
func TestAFileThatSomebodyElseTouchesIsBegunAnew(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		reason string
		touch  func(path string) error
		want   map[string]int
	}{
		"Removed": {"It is made again.", os.Remove, map[string]int{"Decision": 2, "InForce": 1}},
		"Renamed": {
			"Another program may rotate it.", func(path string) error { return os.Rename(path, path+".1") },
			map[string]int{"Decision": 2, "InForce": 1},
		},
		"Emptied": {
			"Another program may copy and empty it.", func(path string) error { return os.Truncate(path, 0) },
			map[string]int{"Decision": 2, "InForce": 1},
		},
		"DirectoryRemoved": {
			"So is its directory.", func(path string) error { return os.RemoveAll(filepath.Dir(path)) },
			map[string]int{"Decision": 2, "InForce": 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			opts := options(t)
			log := newLog(opts, counters(), silent(t))

			log.write(entry(t, "a", 1))

			if err := tc.touch(opts.File); err != nil {
				t.Fatal(err)
			}

			log.write(entry(t, "b", 1))
			log.write(entry(t, "c", 1))
			log.file.close()

			if diff := cmp.Diff(tc.want, read(t, opts.File)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestTwoThatWriteOneFileWriteWholeLines as two replicas may on a volume that they share.
func TestTwoThatWriteOneFileWriteWholeLines(t *testing.T) {
	t.Parallel()

	opts := options(t)
	logs := []*Log{newLog(opts, counters(), silent(t)), newLog(opts, counters(), silent(t))}

	const each = 10

	for i := range each {
		for _, log := range logs {
			log.write(entry(t, strconv.Itoa(i), 1024))
		}
	}

	for _, log := range logs {
		log.file.close()
	}

	if diff := cmp.Diff(map[string]int{"Decision": len(logs) * each, "InForce": len(logs)}, read(t, opts.File)); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestALogIsClosedThoughTheFileTakesNothing as a pod has to end.
func TestALogIsClosedThoughTheFileTakesNothing(t *testing.T) {
	t.Parallel()

	opts := options(t)
	if err := os.Mkdir(filepath.Dir(opts.File), 0o700); err != nil {
		t.Fatal(err)
	}

	// Nobody reads from it: to open it takes until somebody does.
	if err := syscall.Mkfifo(opts.File, 0o600); err != nil {
		t.Fatal(err)
	}

	log := newLog(opts, counters(), silent(t))
	log.grace = 10 * time.Millisecond

	go log.run()

	req, d := requestFor("a", 1)
	log.Record(decisionlog.Asked{}, req, d)

	closed := make(chan struct{})

	go func() {
		log.Close()
		close(closed)
	}()

	select {
	case <-closed:
	case <-time.After(patience.Limit):
		t.Error("it is not closed")
	}
}

// TestALinkIsFollowed so that what is rotated stays on the volume that it leads to.
func TestALinkIsFollowed(t *testing.T) {
	t.Parallel()

	opts := options(t)
	link, target := opts.File, filepath.Join(t.TempDir(), "decisions.log")

	if err := errors.Join(os.WriteFile(target, nil, 0o600), os.Mkdir(filepath.Dir(opts.File), 0o700), os.Symlink(target, opts.File)); err != nil {
		t.Fatal(err)
	}

	log, err := New(opts, counters(), silent(t))
	if err != nil {
		t.Fatal(err)
	}

	for range 2 {
		req, d := requestFor("a", 600*1024)
		log.Record(decisionlog.Asked{}, req, d)
	}

	log.Close()

	opts.File = target
	settled(t, opts, 2)

	if info, err := os.Lstat(link); err != nil || info.Mode().IsRegular() {
		t.Errorf("the link is %v, %v", info.Mode(), err)
	}

	if got := read(t, target)["Decision"]; got != 1 {
		t.Errorf("%d decisions in the last file, want 1", got)
	}
}

// panics when it is encoded.
type panics struct{}

func (panics) MarshalJSON() ([]byte, error) { panic("it cannot be encoded") }

// TestWhatCannotBeEncodedIsLeftOut and does not take the request with it that was decided.
func TestWhatCannotBeEncodedIsLeftOut(t *testing.T) {
	t.Parallel()

	opts, count := options(t), counters()

	log, err := New(opts, count, silent(t))
	if err != nil {
		t.Fatal(err)
	}

	req, d := requestFor("a", 1)
	bad := *req
	bad.Options = map[string]any{"fieldManager": panics{}}

	log.Record(decisionlog.Asked{}, &bad, d)
	log.Record(decisionlog.Asked{}, req, d)
	log.Close()

	if diff := cmp.Diff(map[string]int{"Decision": 1, "InForce": 1, "Dropped": 1}, read(t, opts.File)); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}

	if got := count.dropped(reasonEncode); got != 1 {
		t.Errorf("%d dropped, want 1", got)
	}
}

// TestWhatWaitsIsBoundedWithWhatWasInForce which a function makes anew for each composite
// resource, and which is larger than decisions are.
func TestWhatWaitsIsBoundedWithWhatWasInForce(t *testing.T) {
	t.Parallel()

	const large, few = 1 << 20, 3

	for name, tc := range map[string]struct {
		reason string
		digest func(i int) string
		want   int
	}{
		"Others": {"Each has to have room.", strconv.Itoa, maxQueuedBytes/large + 1},
		"Same": {
			"The same is there once.", func(int) string { return "same" }, 2 * maxQueuedBytes / large,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			log := newLog(options(t), counters(), silent(t))
			texts, n := map[*byte]bool{}, 0

			for i := 0; !log.full() && i < 2*maxQueuedBytes/large; i++ {
				log.enqueue(decisionlog.Entry{Digest: tc.digest(i), InForce: make([]byte, large), Decision: []byte("{}\n")})
				n++
			}

			if n < tc.want-few || n > tc.want {
				t.Errorf("%s\n%d wait, want about %d", tc.reason, n, tc.want)
			}

			for range n {
				one := <-log.queue
				texts[&one.InForce[0]] = true
				log.dequeued(one)
			}

			if len(texts)*large > maxQueuedBytes+large {
				t.Errorf("%s\n%d texts wait", tc.reason, len(texts))
			}

			if got := log.bytes.Load(); got != 0 {
				t.Errorf("%d bytes wait of nothing", got)
			}
		})
	}
}
