// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/run"
)

// traceID is the UID without its dashes, so that a person finds the trace of a run; a hash of one that is not made that way.
func traceID(uid types.UID) trace.TraceID {
	var id trace.TraceID
	digits, err := hex.DecodeString(strings.ReplaceAll(string(uid), "-", ""))
	if err != nil || len(digits) != len(id) {
		sum := sha256.Sum256([]byte(uid))
		digits = sum[:]
	}
	copy(id[:], digits)
	return id
}

// spanID is the same whenever and by whomever it is made.
func spanID(uid types.UID, kind string, attempt int32) trace.SpanID {
	sum := sha256.Sum256([]byte(string(uid) + "/" + kind + "/" + strconv.Itoa(int(attempt))))
	var id trace.SpanID
	copy(id[:], sum[:])
	return id
}

// spanContext names a span to others.
func spanContext(uid types.UID, kind string, attempt int32) trace.SpanContext {
	return trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: traceID(uid), SpanID: spanID(uid, kind, attempt), TraceFlags: trace.FlagsSampled,
	})
}

// traceparent is the header of W3C Trace Context for what the work of the run does.
func traceparent(r *batchv1alpha1.JobRun, sampled bool) string {
	c := spanContext(run.ChainUID(r), kindWork, run.Attempt(r))
	flags := 0
	if sampled {
		flags = 1
	}
	return fmt.Sprintf("00-%s-%s-%02x", c.TraceID(), c.SpanID(), flags)
}

// chosen has the SDK use identifiers that are made here: the one of the span that the context carries.
type chosen struct{}

type chosenKey struct{}

func choose(ctx context.Context, c trace.SpanContext) context.Context {
	return context.WithValue(ctx, chosenKey{}, c)
}

// NewIDs returns those of a span without a parent.
func (chosen) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	c, _ := ctx.Value(chosenKey{}).(trace.SpanContext)
	return c.TraceID(), c.SpanID()
}

// NewSpanID returns that of a span with a parent.
func (chosen) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	c, _ := ctx.Value(chosenKey{}).(trace.SpanContext)
	return c.SpanID()
}
