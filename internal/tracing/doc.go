// SPDX-License-Identifier: Apache-2.0

// Package tracing tells the story of each chain as one OpenTelemetry trace, from the tick to the outcome: how late it was fired,
// how long each attempt waited and worked, and what became of it.
//
// It is off unless the standard variables OTEL_EXPORTER_OTLP_ENDPOINT or OTEL_EXPORTER_OTLP_TRACES_ENDPOINT name a receiver. The
// identifiers are made from those of the runs, so no manager need remember a trace: the one that sees a run end tells of it,
// whoever had started it, and the work itself can join the trace from the beginning, by its traceparent.
//
// Spans are made from transitions that a watch shows, beside the reconcilers: nothing waits for them. What the receiver does not
// take in time is dropped, and a transition that no leader sees is not told. Traces explain; they are no record.
package tracing
