// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package bench_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// managerName is the name of our process in the stack.
const managerName = "kausality-manager"

// procfs reports whether the system tells about processes as Linux does. Others are not asked for CPU time
// and memory.
const procfs = runtime.GOOS == "linux"

// tick is the unit of /proc/PID/stat: USER_HZ is 100 on every architecture of Linux that Go runs on.
//
// Source: proc_pid_stat(5), include/asm-generic/param.h of the kernel.
const tick = 10 * time.Millisecond

// Positions of utime and stime behind the name of the program in /proc/PID/stat, which is in
// parentheses and may contain anything.
const (
	statUser   = 11
	statSystem = 12
)

// cpu returns the CPU time a process has taken by now.
func cpu(pid int) (time.Duration, error) {
	if !procfs {
		return 0, nil
	}

	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}

	fields := bytes.Fields(raw[bytes.LastIndexByte(raw, ')')+1:])

	user, err := strconv.ParseInt(string(fields[statUser]), 10, 64)
	if err != nil {
		return 0, err
	}

	system, err := strconv.ParseInt(string(fields[statSystem]), 10, 64)

	return time.Duration(user+system) * tick, err
}

// memory returns one of the sizes in /proc/PID/status in MiB: VmRSS is what is resident now, VmHWM the
// most that ever was.
func memory(pid int, which string) (float64, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}

	for line := range strings.Lines(string(raw)) {
		if rest, ok := strings.CutPrefix(line, which+":"); ok {
			kib, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 64)

			return kib / 1024, err
		}
	}

	return 0, fmt.Errorf("cannot find %s of process %d", which, pid)
}

// manager returns the process id of our manager.
func (c *cluster) manager() int { return c.stack.Process(managerName).PID() }

// counted sums a counter of the manager's metrics.
func (c *cluster) counted(ctx context.Context, name string, labels ...string) (float64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.stack.ManagerMetricsURL(), http.NoBody)
	if err != nil {
		return 0, err
	}

	rsp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer rsp.Body.Close() //nolint:errcheck // It was read.

	raw, err := io.ReadAll(rsp.Body)
	if err != nil {
		return 0, err
	}

	return sum(raw, name, labels...)
}

// calls returns how many requests the manager has made of the API server by now.
func (c *cluster) calls(ctx context.Context) (float64, error) {
	return c.counted(ctx, "rest_client_requests_total")
}

// sum adds up the values of a counter, in Prometheus' text format, over all that have some labels.
func sum(raw []byte, name string, labels ...string) (float64, error) {
	var out float64

lines:
	for line := range strings.Lines(string(raw)) {
		rest, ok := strings.CutPrefix(line, name+"{")
		if !ok {
			continue
		}

		for _, label := range labels {
			if !strings.Contains(rest, label) {
				continue lines
			}
		}

		value, err := strconv.ParseFloat(strings.TrimSpace(rest[strings.LastIndexByte(rest, '}')+1:]), 64)
		if err != nil {
			return 0, err
		}

		out += value
	}

	return out, nil
}
