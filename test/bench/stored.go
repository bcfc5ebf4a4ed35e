// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"k8s.io/client-go/rest"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// Stored is how many bytes the API server has of a run, managed fields included.
func (b *Bench) Stored(ctx context.Context, r *batchv1alpha1.JobRun) (float64, error) {
	config := b.Plane.Config()
	c, err := rest.HTTPClientFor(config)
	if err != nil {
		return 0, err
	}
	url := fmt.Sprintf("%s/apis/%s/namespaces/%s/jobruns/%s", config.Host, batchv1alpha1.GroupVersion, r.Namespace, r.Name)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	response, err := c.Do(request)
	if err != nil {
		return 0, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("reading a run: %s", response.Status)
	}
	return float64(len(body)), err
}
