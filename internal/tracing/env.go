// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"encoding/binary"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Variables of OpenTelemetry that are read here; the others are read by its own libraries.
const (
	envDisabled       = "OTEL_SDK_DISABLED"
	envExporter       = "OTEL_TRACES_EXPORTER"
	envEndpoint       = "OTEL_EXPORTER_OTLP_ENDPOINT"
	envTracesEndpoint = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	envProtocol       = "OTEL_EXPORTER_OTLP_PROTOCOL"
	envTracesProtocol = "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"
	envSampler        = "OTEL_TRACES_SAMPLER"
	envSamplerArg     = "OTEL_TRACES_SAMPLER_ARG"
)

// enabled reports whether the environment asks for traces.
func enabled(env func(string) string) (bool, error) {
	if strings.EqualFold(env(envDisabled), "true") || env(envExporter) == "none" {
		return false, nil
	}
	endpoint := first(env, envTracesEndpoint, envEndpoint)
	if env(endpoint) == "" {
		return false, nil
	}
	if at, err := url.Parse(env(endpoint)); err != nil || (at.Scheme != "http" && at.Scheme != "https") || at.Host == "" {
		return false, fmt.Errorf("%s is no address; write one such as http://otel-collector.monitoring:4317", endpoint)
	}
	if name := env(envExporter); name != "" && name != "otlp" {
		return false, fmt.Errorf("%s is %q; use otlp, or none", envExporter, name)
	}
	if name := first(env, envTracesProtocol, envProtocol); env(name) != "" && env(name) != "grpc" {
		return false, fmt.Errorf("%s is %q; use grpc", name, env(name))
	}
	return true, nil
}

// first returns the name of the variable that is meant for traces alone if it is set, and of the one for everything otherwise.
func first(env func(string) string, ofTraces, ofAll string) string {
	if env(ofTraces) != "" {
		return ofTraces
	}
	return ofAll
}

// portion is the part of all traces that is told, from 0 to 1. All spans of a trace share its fate, and so does what the work
// tells: the trace's ID decides.
func portion(env func(string) string) (float64, error) {
	switch name := strings.TrimPrefix(env(envSampler), "parentbased_"); name {
	case "", "always_on":
		return 1, nil
	case "always_off":
		return 0, nil
	case "traceidratio":
		text := env(envSamplerArg)
		if text == "" {
			return 1, nil
		}
		p, err := strconv.ParseFloat(text, 64)
		if err != nil || !(p >= 0 && p <= 1) {
			return 0, fmt.Errorf("%s is %q; use a number from 0 to 1", envSamplerArg, text)
		}
		return p, nil
	default:
		return 0, fmt.Errorf("%s is %q; use always_on, always_off or traceidratio", envSampler, env(envSampler))
	}
}

// sampler tells that part of the traces.
type sampler float64

// takes reports whether the trace is told. Only the last seven bytes count: in a UID those are random.
func (p sampler) takes(id trace.TraceID) bool {
	const bits = 56
	random := binary.BigEndian.Uint64(id[8:]) & (1<<bits - 1)
	return float64(random) < float64(p)*(1<<bits)
}

// ShouldSample decides for the SDK.
func (p sampler) ShouldSample(parameters sdktrace.SamplingParameters) sdktrace.SamplingResult {
	if p.takes(parameters.TraceID) {
		return sdktrace.SamplingResult{Decision: sdktrace.RecordAndSample}
	}
	return sdktrace.SamplingResult{Decision: sdktrace.Drop}
}

// Description names the sampler.
func (p sampler) Description() string { return fmt.Sprintf("TraceIDRatio{%g}", float64(p)) }
