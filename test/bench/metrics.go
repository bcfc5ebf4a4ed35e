// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/http"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/client-go/rest"
)

// scrape reads all metrics of a process, by name.
func scrape(ctx context.Context, client *http.Client, url string) (map[string]*dto.MetricFamily, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("reading %s: %s", url, response.Status)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(response.Body)
}

// label returns the value of a label, "" without one.
func label(m *dto.Metric, name string) string {
	for _, l := range m.GetLabel() {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}

// Served is how many requests the API server has answered since its start, of all clients, by verb and resource.
func (b *Bench) Served(ctx context.Context) (map[string]float64, error) {
	config := b.Plane.Config()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	families, err := scrape(ctx, client, config.Host+"/metrics")
	if err != nil {
		return nil, err
	}
	served := map[string]float64{}
	for _, m := range families["apiserver_request_total"].GetMetric() {
		what := label(m, "verb") + " " + label(m, "resource")
		if sub := label(m, "subresource"); sub != "" {
			what += "/" + sub
		}
		served[what] += m.GetCounter().GetValue()
	}
	return served, nil
}
