// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"log"
	"os"
	"time"
)

const (
	// exitTerminated is the exit code of a process that SIGTERM has ended.
	exitTerminated = 128 + 15
	// exitFailed is the exit code of a task that went wrong by itself.
	exitFailed = 70
)

// task is what one container does, in the order of the fields.
type task struct {
	text string
	// sleep is how long it works; pause is for ever.
	sleep time.Duration
	pause bool
	eat   bool
	// address is where it answers HTTP calls, empty for not at all.
	address string
	// onTerm is how long it goes on after SIGTERM.
	onTerm time.Duration
	code   int
}

// run does the task and returns the exit code. A value from ended is a signal that asks for the end.
func (t *task) run(out io.Writer, ended <-chan os.Signal) int {
	output := log.New(out, "", 0)
	if t.text != "" {
		output.Println(t.text)
	}
	failed := make(chan error, 1)
	select {
	case <-t.work(out, failed):
		return t.code
	case err := <-failed:
		output.Println(err)
		return exitFailed
	case <-ended:
	}
	if t.onTerm == 0 {
		return exitTerminated
	}
	output.Printf("asked to end, going on for %v", t.onTerm)
	<-time.After(t.onTerm)
	return t.code
}

// work starts what takes time. The channel it returns tells of the end; nil has none.
func (t *task) work(out io.Writer, failed chan<- error) <-chan time.Time {
	switch {
	case t.eat:
		go func() { failed <- eat(maxMemory) }()
		return nil
	case t.address != "":
		go func() { failed <- serve(t.address, out) }()
		return nil
	case t.pause:
		return nil
	default:
		return time.After(t.sleep)
	}
}

// maxMemory is where a glutton that nobody kills stops, so that a test without a memory limit harms no machine.
const maxMemory = 1 << 30

// eat takes memory, page by page, until it is killed. It returns when it has had as much as it may.
func eat(most int) error {
	const (
		bite = 4 << 20
		page = 4 << 10
	)
	var eaten [][]byte
	for n := 0; n < most; n += bite {
		next := make([]byte, bite)
		for i := 0; i < bite; i += page {
			next[i] = 1 // memory that nobody touched is not taken
		}
		eaten = append(eaten, next)
	}
	return fmt.Errorf("took %d bytes, and nothing killed it: has the container a memory limit?", len(eaten)*bite)
}
