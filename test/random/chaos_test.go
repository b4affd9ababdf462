// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package random_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// chaos kills processes and starts them again.
type chaos struct {
	rng *rand.Rand
	// also are processes that die beside those that all tests have.
	also []string

	mu    sync.Mutex
	kills map[string]int
	diary []string
}

// run kills one process after another until the context ends; then all of them
// run. The API server and etcd go down less often: while they are, nothing
// happens at all.
func (c *chaos) run(ctx context.Context) error {
	for {
		names := []string{processManager, processProvider, processManager, processProvider, processManager, processProvider}
		names = append(names, c.also...)

		if c.rng.IntN(2) == 0 {
			names = append(names, processAPIServer)
		} else {
			names = append(names, processEtcd)
		}

		name, up, down := names[c.rng.IntN(len(names))], c.span(2, 6), c.span(0, 1)

		select {
		case <-ctx.Done():
			return nil
		case <-time.After(up):
		}

		process := running.Process(name)
		c.note(name, "is killed")

		if err := process.Kill(); err != nil {
			return err
		}

		time.Sleep(down)

		// Also when there is nothing left to disturb: others need it.
		if err := process.Restart(context.WithoutCancel(ctx)); err != nil {
			return err
		}

		c.note(name, "is back")
	}
}

// span is a time between two numbers of seconds.
func (c *chaos) span(from, to float64) time.Duration {
	return time.Duration((from + c.rng.Float64()*(to-from)) * float64(time.Second))
}

func (c *chaos) note(name, what string) {
	c.mu.Lock()
	defer c.mu.Unlock()

	if what == "is killed" {
		c.kills[name]++
	}

	c.diary = append(c.diary, fmt.Sprintf("%s %s %s", time.Now().Format("15:04:05.000"), name, what))
}
