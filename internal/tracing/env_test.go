// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"testing"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
)

// variables returns an environment of pairs of names and values.
func variables(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

const receiver = "http://127.0.0.1:4317"

func TestThereAreTracesOnlyWhereTheEnvironmentNamesAReceiver(t *testing.T) {
	for name, c := range map[string]struct {
		env func(string) string
		on  bool
	}{
		"nothing is set":                     {variables(), false},
		"a receiver of everything":           {variables(envEndpoint, receiver), true},
		"a receiver of traces":               {variables(envTracesEndpoint, receiver), true},
		"a receiver, and its exporter":       {variables(envEndpoint, receiver, envExporter, "otlp"), true},
		"a receiver, but of other things":    {variables(envEndpoint, receiver, envExporter, "none"), false},
		"a receiver, but all is turned off":  {variables(envEndpoint, receiver, envDisabled, "true"), false},
		"a receiver, and its protocol":       {variables(envEndpoint, receiver, envProtocol, "grpc"), true},
		"a receiver of traces by gRPC alone": {variables(envEndpoint, receiver, envProtocol, "http/protobuf", envTracesProtocol, "grpc"), true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			on, err := enabled(c.env)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(on).To(Equal(c.on))
		})
	}
}

func TestAVariableThatCannotBeMeantIsNamed(t *testing.T) {
	for name, c := range map[string]struct {
		env  func(string) string
		says string
	}{
		"an address without a scheme": {variables(envEndpoint, "collector:4317"), "OTEL_EXPORTER_OTLP_ENDPOINT is no address; write one such as http://"},
		"an address without a host":   {variables(envTracesEndpoint, "http://"), "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is no address"},
		"another exporter":            {variables(envEndpoint, receiver, envExporter, "zipkin"), `OTEL_TRACES_EXPORTER is "zipkin"; use otlp, or none`},
		"another protocol":            {variables(envEndpoint, receiver, envProtocol, "http/protobuf"), `OTEL_EXPORTER_OTLP_PROTOCOL is "http/protobuf"; use grpc`},
		"another one of traces":       {variables(envEndpoint, receiver, envTracesProtocol, "http/json"), `OTEL_EXPORTER_OTLP_TRACES_PROTOCOL is "http/json"; use grpc`},
		"a sampler of others":         {variables(envEndpoint, receiver, envSampler, "jaeger_remote"), `OTEL_TRACES_SAMPLER is "jaeger_remote"`},
		"a part that is a word":       {variables(envEndpoint, receiver, envSampler, "traceidratio", envSamplerArg, "half"), `OTEL_TRACES_SAMPLER_ARG is "half"; use a number from 0 to 1`},
		"a part beyond the whole":     {variables(envEndpoint, receiver, envSampler, "traceidratio", envSamplerArg, "1.5"), `OTEL_TRACES_SAMPLER_ARG is "1.5"`},
		"a part that is none":         {variables(envEndpoint, receiver, envSampler, "traceidratio", envSamplerArg, "NaN"), `OTEL_TRACES_SAMPLER_ARG is "NaN"`},
	} {
		t.Run(name, func(t *testing.T) {
			tracer, err := FromEnv(t.Context(), c.env, "m", logr.Discard())
			g := NewWithT(t)
			g.Expect(tracer).To(BeNil())
			g.Expect(err).To(MatchError(ContainSubstring(c.says)))
		})
	}
}

func TestThePartThatIsToldIsThatOfTheSampler(t *testing.T) {
	for name, c := range map[string]struct {
		sampler, arg string
		want         float64
	}{
		"none named":               {"", "", 1},
		"all":                      {"always_on", "", 1},
		"nothing":                  {"always_off", "", 0},
		"a tenth":                  {"traceidratio", "0.1", 0.1},
		"a part that is not named": {"traceidratio", "", 1},
		"the usual default":        {"parentbased_always_on", "", 1},
		"the usual part":           {"parentbased_traceidratio", "0.25", 0.25},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			part, err := portion(variables(envSampler, c.sampler, envSamplerArg, c.arg))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(part).To(Equal(c.want))
		})
	}
}
