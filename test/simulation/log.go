// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"strings"

	"github.com/go-logr/logr"
)

// sink knows which reconcile logs, so that its requests can be told apart, and tells a history that is watched what is logged.
type sink struct {
	process    *process
	controller string
	namespace  string
	who        string
	name       string
}

var _ logr.LogSink = (*sink)(nil)

// Init is not needed.
func (s *sink) Init(logr.RuntimeInfo) {}

// Enabled reports whether somebody watches.
func (s *sink) Enabled(level int) bool { return s.process.sim.verbose && level <= 1 }

// Info logs a line.
func (s *sink) Info(_ int, msg string, kv ...any) { s.line(msg, kv) }

// Error logs a line.
func (s *sink) Error(err error, msg string, kv ...any) {
	if s.process.sim.verbose {
		s.line(fmt.Sprintf("%s: %v", msg, err), kv)
	}
}

func (s *sink) line(msg string, kv []any) {
	if s.process.ended() {
		return
	}
	var b strings.Builder
	for i := 0; i+1 < len(kv); i += 2 {
		fmt.Fprintf(&b, " %v=%v", kv[i], kv[i+1])
	}
	s.process.sim.note("    %s %s [%s] %s%s", s.process.id, s.name, s.who, msg, b.String())
}

// WithValues remembers which reconcile it is.
func (s *sink) WithValues(kv ...any) logr.LogSink {
	c := *s
	for i := 0; i+1 < len(kv); i += 2 {
		switch kv[i] {
		case "controller":
			c.controller = fmt.Sprint(kv[i+1])
			c.who = c.controller
		case "namespace":
			c.namespace = fmt.Sprint(kv[i+1])
		case "name":
			c.who = c.controller + " " + c.namespace + "/" + fmt.Sprint(kv[i+1])
		}
	}
	return &c
}

// WithName names a part of the process.
func (s *sink) WithName(name string) logr.LogSink {
	c := *s
	c.name = name
	return &c
}
