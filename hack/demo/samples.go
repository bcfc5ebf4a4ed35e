// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// sample is one file of config/samples, which holds one object.
type sample struct {
	file string
	text string
	kind string
	name string
	pods bool // its work is a Job
}

// readSamples reads the directory, in the order of the names of the files.
func readSamples(dir string) ([]sample, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, err
	}
	slices.Sort(files)
	var samples []sample
	for _, file := range files {
		if filepath.Base(file) == "kustomization.yaml" {
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		s, err := parseSample(filepath.Base(file), data)
		if err != nil {
			return nil, err
		}
		samples = append(samples, s)
	}
	return samples, nil
}

// parseSample reads what is needed of an object. A JobRun has what any of the kinds has besides.
func parseSample(file string, data []byte) (sample, error) {
	object := batchv1alpha1.JobRun{}
	if err := yaml.Unmarshal(data, &object); err != nil {
		return sample{}, fmt.Errorf("sample %s: %w", file, err)
	}
	s := sample{file: file, text: string(data), kind: object.Kind, name: object.Name}
	s.pods = object.Spec.Work != nil && object.Spec.Work.Job != nil
	return s, nil
}

// at returns the text of the samples as one stream, with the server at another address.
func at(samples []sample, address string) string {
	texts := make([]string, len(samples))
	for i, s := range samples {
		texts[i] = strings.ReplaceAll(s.text, samplesAddress, address)
	}
	return strings.Join(texts, "---\n")
}
